"""Conversion of polars filters (`pl.col("a") > 3`) to expressions, to read less.

polars exposes the content of an expression only as JSON, whose form is not stable. Parts that are
not understood are dropped: the result selects every row that the filter selects, and maybe more, so
polars must filter again. Comparisons with numbers keep NaN, which polars treats as the greatest
number.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import (
    AlwaysTrue,
    BooleanExpression,
    IsNaN,
    IsNull,
    NotNull,
    PredicateOperation,
    StartsWith,
    conjunction,
    disjunction,
    folded,
    literal_predicate,
    set_predicate,
)
from icecomb.format.expressions.literal import scalar_value
from icecomb.format.spec.types import DoubleType, FloatType, PrimitiveType

if TYPE_CHECKING:
    import polars as pl

    from icecomb.format.spec.schema import Schema

_COMPARISONS: Final = {
    "Eq": PredicateOperation.EQ,
    "Lt": PredicateOperation.LT,
    "LtEq": PredicateOperation.LT_EQ,
    "Gt": PredicateOperation.GT,
    "GtEq": PredicateOperation.GT_EQ,
}
_AND: Final = frozenset(("And", "LogicalAnd"))
_OR: Final = frozenset(("Or", "LogicalOr"))


def implied_by(predicate: pl.Expr, schema: Schema) -> BooleanExpression:
    """Return an expression that is true wherever a filter of polars is.

    Polars must have converted its literals to the types of the columns.
    """
    try:
        parsed = json.loads(predicate.meta.serialize(format="json"))
    except RecursionError:  # a chain of hundreds; polars filters again
        return AlwaysTrue()
    return _Translator(schema).implied(parsed)


class _Translator:
    def __init__(self, schema: Schema) -> None:
        self._types = {f.name: f.field_type for f in schema.fields}
        self._schema = schema

    def implied(self, node: Any) -> BooleanExpression:
        return folded(node, _sides, self._implied)

    def _implied(self, node: Any, sides: list[BooleanExpression]) -> BooleanExpression:
        kind, content = _only(node)
        if sides:
            return conjunction(sides) if content["op"] in _AND else disjunction(sides)
        try:
            found = self._predicate(kind, content)
            if found is not None:
                bind(self._schema, found, True)
                return found
        except (ExpressionError, KeyError, TypeError, ValueError):
            pass
        return AlwaysTrue()

    def _predicate(self, kind: str, content: Any) -> BooleanExpression | None:
        if kind == "BinaryExpr" and content["op"] in _COMPARISONS:
            name = self._column(content["left"])
            (value,) = _values(content["right"])
            if name is None or value is None:
                return None
            compared = literal_predicate(_COMPARISONS[content["op"]], name, value)
            return self._or_nan(name, compared)
        if kind == "Function":
            return self._function(content["function"], content["input"])
        return None

    def _function(self, function: Any, inputs: list[Any]) -> BooleanExpression | None:
        name = self._column(inputs[0])
        if name is None:
            return None
        family, which = _only(function)
        if family == "StringExpr" and which == "StartsWith":
            (prefix,) = _values(inputs[1])
            return StartsWith(name, prefix)
        if family != "Boolean":
            return None
        if which == "IsNull":
            return IsNull(name)
        if which == "IsNotNull":
            return NotNull(name)
        if _only(which) == ("IsIn", {"nulls_equal": False}):
            (values,) = _values(inputs[1])
            known = [v for v in values if v is not None]
            return self._or_nan(name, set_predicate(PredicateOperation.IN, name, known))
        if _only(which)[0] == "IsBetween":
            (low,), (high,) = _values(inputs[1]), _values(inputs[2])
            at_least = literal_predicate(PredicateOperation.GT_EQ, name, low)
            return self._or_nan(
                name, at_least & literal_predicate(PredicateOperation.LT_EQ, name, high)
            )
        return None

    def _or_nan(self, name: str, compared: BooleanExpression) -> BooleanExpression:
        if isinstance(self._types[name], (DoubleType, FloatType)):
            return disjunction([compared, IsNaN(name)])
        return compared

    def _column(self, node: Any) -> str | None:
        kind, name = _only(node)
        known = kind == "Column" and isinstance(self._types.get(name), PrimitiveType)
        # A dot in a column's name would be read as the path into a struct.
        return name if known and "." not in name else None


def _sides(node: Any) -> list[Any]:
    """Return the operands of AND or OR; none for any other node."""
    kind, content = _only(node)
    joins = kind == "BinaryExpr" and content.get("op") in _AND | _OR
    return [content["left"], content["right"]] if joins else []


def _only(node: Any) -> tuple[str, Any]:
    """Return the only entry of a JSON object; for a text, the text and None."""
    if isinstance(node, dict) and len(node) == 1:
        return next(iter(node.items()))
    return (node, None) if isinstance(node, str) else ("", {})


def _values(node: Any) -> list[Any]:
    """Return the values of a constant, computed by polars itself."""
    from io import BytesIO

    import polars as pl

    if _only(node)[0] != "Literal":
        raise ValueError("not a constant")
    try:
        expression = pl.Expr.deserialize(BytesIO(json.dumps(node).encode()), format="json")
        found = pl.select(expression).to_series()
    except pl.exceptions.PolarsError as error:  # of NaN, which JSON does not have
        raise ValueError(str(error)) from error
    if isinstance(found.dtype, pl.List):
        return [None if values is None else _of_series(values) for values in found]
    return _of_series(found)


def _of_series(series: Any) -> list[Any]:
    if getattr(series.dtype, "time_unit", None) == "ns" and series.dtype.is_temporal():
        # Python has no nanoseconds
        return [scalar_value(scalar) for scalar in series.to_arrow()]
    found: list[Any] = series.to_list()
    return found
