"""Hive statements that drop a table's constraints and add them again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from icecomb.catalog.migrate.source.copy_statement import printed_type
from icecomb.format.errors import IcecombError
from icecomb.format.expressions.sql.sql_token import TokenKind, tokens
from icecomb.format.sql_statement import LEFT_OUT, is_whole, printed_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.catalog.hive.thrift.constraints import Constraint
    from icecomb.catalog.hive.thrift.entity import HiveTable

_LETTERS: Final = {
    TokenKind.WORD: "w",
    TokenKind.NAME: "n",
    TokenKind.TEXT: "t",
    TokenKind.BYTES: "b",
    TokenKind.NUMBER: "1",
}
_CHECK: Final = re.compile(r"\(\)")
_DEFAULT: Final = re.compile(r"[-+]?1|t|b|wt?|w\(\)")


def drop_statement(table: HiveTable, constraint: Constraint) -> str:
    """Return the statement that drops a constraint."""
    return f"ALTER TABLE {_name(table)} DROP CONSTRAINT {printed_name(constraint.name)}"


def add_statement(table: HiveTable, constraint: Constraint) -> str:
    """Return the statement that adds a constraint again, under its name and on its columns.

    Hive validates no constraint, and rejects statements that ask for it.
    """
    named = f"CONSTRAINT {printed_name(constraint.name)}"
    state = (
        f"{'ENABLE' if constraint.enabled else 'DISABLE'} NOVALIDATE "
        f"{'RELY' if constraint.relied else 'NORELY'}"
    )
    if constraint.kind in {"NOT NULL", "DEFAULT", "CHECK"}:
        # Hive stores the parentheses of a check with it.
        said = f"{constraint.kind} {_expression(constraint)}".rstrip()
        if not constraint.columns:
            return f"ALTER TABLE {_name(table)} ADD {named} {said} {state}"
        (column,) = constraint.columns
        types = {one.name: one.type for one in (*table.storage.columns, *table.partition_keys)}
        name = printed_name(column)
        change = f"{name} {name} {printed_type(types.get(column.lower(), ''))}"
        return f"ALTER TABLE {_name(table)} CHANGE COLUMN {change} {named} {said} {state}"
    said = f"{constraint.kind} ({_list(constraint.columns)})"
    if constraint.kind == "FOREIGN KEY":
        said += (
            f" REFERENCES {printed_name(*constraint.parent)} ({_list(constraint.parent_columns)})"
        )
    return f"ALTER TABLE {_name(table)} ADD {named} {said} {state}"


def _name(table: HiveTable) -> str:
    return printed_name(table.database, table.name)


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(printed_name, names))


def _expression(constraint: Constraint) -> str:
    """Return a constraint's expression, or `LEFT_OUT` if it is not surely one that Hive has.

    That is in parentheses for a check; a default is a constant or the call of a function.
    """
    text = constraint.expression
    if constraint.kind == "NOT NULL":
        return ""
    if "\\" in text or not is_whole(re.sub("['\"]", "", text)):
        return LEFT_OUT
    try:
        outer = _outer(text)
    except IcecombError:
        return LEFT_OUT
    known = _CHECK if constraint.kind == "CHECK" else _DEFAULT
    return text if known.fullmatch(outer) else LEFT_OUT


def _outer(text: str) -> str:
    """Return one letter for each token outside of parentheses, which stand for their contents."""
    depth, outer = 0, ""
    for token in tokens(text, of_spark=True):
        depth -= token.is_sign(")")
        if depth < 0:
            return ""
        if depth == 0 and token.kind is not TokenKind.END:
            outer += token.value if token.kind is TokenKind.SIGN else _LETTERS[token.kind]
        depth += token.is_sign("(")
    return outer if depth == 0 else ""
