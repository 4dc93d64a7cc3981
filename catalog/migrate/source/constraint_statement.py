"""Hive statements that drop a table's constraints and add them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.catalog.migrate.source.copy_statement import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.catalog.hive.thrift.constraints import Constraint
    from icecomb.catalog.hive.thrift.entity import HiveTable


def drop_statement(table: HiveTable, constraint: Constraint) -> str:
    """Return the statement that drops a constraint."""
    return f"ALTER TABLE {_name(table)} DROP CONSTRAINT {quoted(constraint.name)}"


def add_statement(table: HiveTable, constraint: Constraint) -> str:
    """Return the statement that adds a constraint again, under its name and on its columns.

    Hive validates no constraint, and rejects statements that ask for it.
    """
    named = f"CONSTRAINT {quoted(constraint.name)}"
    state = (
        f"{'ENABLE' if constraint.enabled else 'DISABLE'} NOVALIDATE "
        f"{'RELY' if constraint.relied else 'NORELY'}"
    )
    if constraint.kind in {"NOT NULL", "DEFAULT", "CHECK"}:
        # Hive stores the parentheses of a check with it.
        said = f"{constraint.kind} {constraint.expression}".rstrip()
        if not constraint.columns:
            return f"ALTER TABLE {_name(table)} ADD {named} {said} {state}"
        (column,) = constraint.columns
        types = {one.name: one.type for one in (*table.storage.columns, *table.partition_keys)}
        change = f"{quoted(column)} {quoted(column)} {types.get(column.lower(), '')}".rstrip()
        return f"ALTER TABLE {_name(table)} CHANGE COLUMN {change} {named} {said} {state}"
    said = f"{constraint.kind} ({_list(constraint.columns)})"
    if constraint.kind == "FOREIGN KEY":
        parent = ".".join(map(quoted, constraint.parent))
        said += f" REFERENCES {parent} ({_list(constraint.parent_columns)})"
    return f"ALTER TABLE {_name(table)} ADD {named} {said} {state}"


def _name(table: HiveTable) -> str:
    return f"{quoted(table.database)}.{quoted(table.name)}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))
