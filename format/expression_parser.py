"""SQL text as expressions: `"day >= '2024-01-01' and id in (1, 2)"`.

Understood are comparisons of a column with a constant (`= == != <> < <= > >= <=>`), `IN`,
`BETWEEN`, `LIKE` with a prefix pattern, `IS [NOT] NULL`, `IS [NOT] NAN`, `IS [NOT] TRUE`,
`isnan(x)`, `starts_with(x, 'a')`, boolean columns alone, `AND OR NOT` and parentheses. Constants
are numbers, `'text'`, `true`, `X'cafe'`, and `DATE '2024-01-31'` or `TIMESTAMP '...'`. Names may
be quoted with double quotes or backticks, and dots lead into structs.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from icecomb.format.errors import ExpressionError
from icecomb.format.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    EqualTo,
    In,
    IsNaN,
    IsNull,
    NotNull,
    Operation,
    StartsWith,
    conjunction,
    disjunction,
    literal_predicate,
)

_HINT = (
    "Compare columns with constants: a = 1, a IN (1, 2), a BETWEEN 1 AND 2, a LIKE 'x%', "
    "a IS NULL, joined by AND, OR, NOT."
)
_COMPARISONS: dict[type[exp.Expression], Operation] = {
    exp.EQ: Operation.EQ,
    exp.NEQ: Operation.NOT_EQ,
    exp.LT: Operation.LT,
    exp.LTE: Operation.LT_EQ,
    exp.GT: Operation.GT,
    exp.GTE: Operation.GT_EQ,
}
_MIRRORED = {
    Operation.LT: Operation.GT,
    Operation.LT_EQ: Operation.GT_EQ,
    Operation.GT: Operation.LT,
    Operation.GT_EQ: Operation.LT_EQ,
}
# What a node may carry; anything else would change its meaning unseen.
_UNDERSTOOD = frozenset(("this", "expression", "expressions", "low", "high", "negate"))


class _Filter(Dialect):
    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - the class is sqlglot's to fill
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012


def parse(text: str) -> BooleanExpression:
    """Read a predicate.

    Raises:
        ExpressionError: The text is not SQL, or asks something that is not a predicate on columns.
    """
    if not text.strip():
        raise ExpressionError("The predicate is empty", hint=_HINT)
    try:
        tree = sqlglot.parse_one(text, into=exp.Condition, dialect=_Filter)
    except SqlglotError as error:
        raise ExpressionError(f"Cannot read the predicate {text!r}: {_reason(error)}") from error
    return _convert(tree, text)


def _reason(error: SqlglotError) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        near = str(first.get("highlight") or "").strip()
        where = f" at {near!r}, column {first.get('col')}" if near else ""
        return f"{str(first.get('description')).rstrip('.')}{where}"
    return str(error).splitlines()[0]


def _convert(node: Any, text: str) -> BooleanExpression:
    if not isinstance(node, (exp.Column, exp.Dot)):
        unexpected = {name for name, value in node.args.items() if value} - _UNDERSTOOD
        if unexpected:
            raise _unknown(node, text)
    convert = _CONVERTERS.get(type(node))
    comparison = _COMPARISONS.get(type(node))
    if convert is not None:
        expression = convert(node, text)
    elif comparison is not None:
        expression = _comparison(comparison, node, text)
    else:
        raise _unknown(node, text)
    return ~expression if node.args.get("negate") else expression


def _unknown(node: exp.Expression, text: str) -> ExpressionError:
    return ExpressionError(
        f"Not a predicate on columns: {node.sql()!r} in {text!r}", hint=_HINT, predicate=text
    )


def _and(node: exp.And, text: str) -> BooleanExpression:
    return conjunction([_convert(child, text) for child in node.flatten()])


def _or(node: exp.Or, text: str) -> BooleanExpression:
    return disjunction([_convert(child, text) for child in node.flatten()])


def _not(node: exp.Not, text: str) -> BooleanExpression:
    # NOT is undone at once, so that NOT (a IN ()) and the like stay simple
    return ~_convert(node.this, text)


def _paren(node: exp.Paren, text: str) -> BooleanExpression:
    return _convert(node.this, text)


def _boolean(node: exp.Boolean, _: str) -> BooleanExpression:
    return AlwaysTrue() if node.this else AlwaysFalse()


def _column_alone(node: exp.Expression, text: str) -> BooleanExpression:
    return EqualTo(_column(node, text), True)


def _comparison(operation: Operation, node: exp.Expression, text: str) -> BooleanExpression:
    column, value = node.args["this"], node.args["expression"]
    if not _is_column(column):
        column, value = value, column
        operation = _MIRRORED.get(operation, operation)
    return literal_predicate(operation, _column(column, text), _literal(value, text))


def _null_safe_equal(node: exp.NullSafeEQ, text: str) -> BooleanExpression:
    column, value = node.this, node.expression
    if not _is_column(column):
        column, value = value, column
    name = _column(column, text)
    if isinstance(value, exp.Null):
        return IsNull(name)
    return NotNull(name) & EqualTo(name, _literal(value, text))


def _in(node: exp.In, text: str) -> BooleanExpression:
    return In(_column(node.this, text), [_literal(value, text) for value in node.expressions])


def _between(node: exp.Between, text: str) -> BooleanExpression:
    name = _column(node.this, text)
    low, high = _literal(node.args["low"], text), _literal(node.args["high"], text)
    return literal_predicate(Operation.GT_EQ, name, low) & literal_predicate(
        Operation.LT_EQ, name, high
    )


def _is(node: exp.Is, text: str) -> BooleanExpression:
    name, what = _column(node.this, text), node.expression
    if isinstance(what, exp.Null):
        return IsNull(name)
    if isinstance(what, exp.Boolean):
        return NotNull(name) & EqualTo(name, what.this)
    if isinstance(what, exp.Column) and what.name.lower() == "nan":
        return IsNaN(name)
    raise _unknown(node, text)


def _is_nan(node: exp.IsNan, text: str) -> BooleanExpression:
    return IsNaN(_column(node.this, text))


def _starts_with(node: exp.StartsWith, text: str) -> BooleanExpression:
    return StartsWith(_column(node.this, text), _literal(node.expression, text))


def _like(node: exp.Like, text: str, escape: str | None = None) -> BooleanExpression:
    name, pattern = _column(node.this, text), _literal(node.expression, text)
    if not isinstance(pattern, str):
        raise _unknown(node, text)
    prefix, rest = _like_prefix(pattern, escape)
    if not rest:
        return EqualTo(name, prefix)
    if rest.strip("%"):
        raise ExpressionError(
            f"Only patterns that are a prefix can be looked for, like 'abc%': {node.sql()!r}",
            predicate=text,
        )
    return StartsWith(name, prefix) if prefix else NotNull(name)


def _like_prefix(pattern: str, escape: str | None) -> tuple[str, str]:
    prefix, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape and position + 1 < len(pattern):
            position += 1
            character = pattern[position]
        elif character in "%_":
            break
        prefix += character
        position += 1
    return prefix, pattern[position:]


def _escaped_like(node: exp.Escape, text: str) -> BooleanExpression:
    escape = _literal(node.expression, text)
    if not isinstance(node.this, exp.Like) or not isinstance(escape, str) or len(escape) != 1:
        raise _unknown(node, text)
    expression = _like(node.this, text, escape)
    return ~expression if node.this.args.get("negate") else expression


def _is_column(node: Any) -> bool:
    if isinstance(node, exp.Paren):
        return _is_column(node.this)
    return isinstance(node, (exp.Column, exp.Dot))


def _column(node: Any, text: str) -> str:
    if isinstance(node, exp.Paren):
        return _column(node.this, text)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return ".".join(part.name for part in node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return f"{_column(node.this, text)}.{node.expression.name}"
    raise ExpressionError(
        f"Expected a column, found {node.sql()!r} in {text!r}", hint=_HINT, predicate=text
    )


def _literal(node: Any, text: str) -> Any:
    if isinstance(node, (exp.Paren, exp.Cast)):
        # The column decides the type: DATE '2024-01-31' says no more than the string does
        if isinstance(node, exp.Cast) and not isinstance(node.this, (exp.Literal, exp.Neg)):
            raise _not_constant(node, text)
        return _literal(node.this, text)
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else _number(node.this)
    if isinstance(node, exp.Neg):
        value = _literal(node.this, text)
        if not isinstance(value, (int, float, Decimal)):
            raise _not_constant(node, text)
        return -value
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.HexString):
        return _bytes(node, text)
    if isinstance(node, exp.Null):
        raise ExpressionError(
            f"A comparison with NULL is never true, in {text!r}",
            hint="Use IS NULL, or leave NULL out of the list.",
            predicate=text,
        )
    raise _not_constant(node, text)


def _not_constant(node: Any, text: str) -> ExpressionError:
    what = "a column" if _is_column(node) else "an expression"
    return ExpressionError(
        f"Expected a constant, found {what}: {node.sql()!r} in {text!r}",
        hint='Quote text with single quotes; "x" and `x` are names.',
        predicate=text,
    )


def _number(text: str) -> int | float | Decimal:
    try:
        return int(text)
    except ValueError:
        exact, number = Decimal(text), float(text)
        return number if Decimal(repr(number)) == exact else exact


def _bytes(node: exp.HexString, text: str) -> bytes:
    try:
        return bytes.fromhex(node.this)
    except ValueError as error:
        raise ExpressionError(
            f"Not hexadecimal: {node.sql()!r} in {text!r}", predicate=text
        ) from error


_CONVERTERS: dict[type[exp.Expression], Callable[[Any, str], BooleanExpression]] = {
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Paren: _paren,
    exp.Boolean: _boolean,
    exp.Column: _column_alone,
    exp.Dot: _column_alone,
    exp.NullSafeEQ: _null_safe_equal,
    exp.In: _in,
    exp.Between: _between,
    exp.Is: _is,
    exp.IsNan: _is_nan,
    exp.StartsWith: _starts_with,
    exp.Like: _like,
    exp.Escape: _escaped_like,
}
