"""Conversion of Spark's predicates to expressions that skip files.

Spark evaluates every predicate again on the rows, so an expression here may match too much, never
too little. Three differences between Spark and Iceberg would lose rows if operators were simply
renamed:

* NaN is the greatest number for Spark (`x > 1` is true for it, and `NaN = NaN`), while bounds do
  not cover NaN;
* `<=>` is never unknown, so that its negation selects nulls;
* a literal of microseconds stands for all the nanoseconds that Spark shows as it.

Each leaf below is true exactly where Spark's is, and its negation exactly where Spark's is false,
so NOT stays correct. Conjuncts that cannot be converted are dropped, which only widens the result.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from icecomb.format.errors import IcecombError, UnsupportedError
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotNaN,
    NotNull,
    Or,
    StartsWith,
    conjunction,
    disjunction,
    folded,
)
from icecomb.format.expressions.term import Reference, Term, UnboundTransform
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    NANO_TYPES,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    PrimitiveType,
    StringType,
    TimeType,
    UUIDType,
)
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO
from icecomb.spark.schema import spark_type
from icecomb.spark.values import value_from_json

_COMPARISONS = {
    "eq": EqualTo,
    "not_eq": NotEqualTo,
    "lt": LessThan,
    "lt_eq": LessThanOrEqual,
    "gt": GreaterThan,
    "gt_eq": GreaterThanOrEqual,
}


_MOST: Final = (1 << 63) - 1
"""The most nanoseconds a timestamp has."""


class _UnknownPredicateError(Exception):
    """A predicate that is unknown here or cannot be converted exactly."""


def row_filter(
    predicates: Iterable[Mapping[str, Any]],
    schema: Schema,
    *,
    case_sensitive: bool,
    read: Schema | None = None,
) -> BooleanExpression:
    """Convert the conjunction of Spark's predicates; drop those that cannot be converted.

    Args:
        predicates: Predicates as in the protocol, columns as lists of names.
        schema: The schema the names belong to.
        read: The schema that the expression is for, which may name columns differently; `schema`
            by default.
    """
    translation = _Translation(schema, read or schema, case_sensitive=case_sensitive)
    return conjunction(map(translation.widened, predicates))


def exact_filter(
    predicates: Iterable[Mapping[str, Any]],
    schema: Schema,
    *,
    case_sensitive: bool,
    read: Schema | None = None,
) -> BooleanExpression:
    """Convert the conjunction of Spark's predicates exactly: true for the same rows.

    The arguments are those of `row_filter`; `UnsupportedError` if a predicate cannot be converted
    exactly.
    """
    translation = _Translation(schema, read or schema, case_sensitive=case_sensitive)
    return conjunction(map(translation.exact, predicates))


class _Translation:
    def __init__(self, schema: Schema, read: Schema, *, case_sensitive: bool) -> None:
        self._schema = schema
        self._read = read
        self._case_sensitive = case_sensitive

    def widened(self, predicate: Mapping[str, Any]) -> BooleanExpression:
        """Convert a predicate without the conjuncts that cannot be converted."""
        understood: list[BooleanExpression] = []
        waiting = [predicate]
        while waiting:
            found = waiting.pop()
            if found.get("op") == "and":
                waiting.extend(reversed(found["children"]))
                continue
            with suppress(UnsupportedError):
                understood.append(self.exact(found))
        return conjunction(understood)

    def exact(self, predicate: Mapping[str, Any]) -> BooleanExpression:
        """Convert a whole predicate exactly; `UnsupportedError` if a part of it cannot be."""
        try:
            return folded(predicate, _children, self._exact)
        except (
            _UnknownPredicateError,
            IcecombError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            raise UnsupportedError(
                f"The condition {reprlib.repr(predicate)} cannot be evaluated exactly here",
                hint="Compare columns, or partition transforms of them such as system.days(ts), "
                "with values: =, <>, <, <=, >, >=, IN, IS NULL, LIKE 'x%'",
            ) from error

    def _exact(
        self, predicate: Mapping[str, Any], children: list[BooleanExpression]
    ) -> BooleanExpression:
        op = predicate["op"]
        if op in {"always_true", "always_false"}:
            return AlwaysTrue() if op == "always_true" else AlwaysFalse()
        if op == "not":
            return Not(children[0])
        if op in {"and", "or"}:
            return conjunction(children) if op == "and" else disjunction(children)
        name, field_type = self._column(predicate["column"])
        if op in {"is_null", "not_null"}:
            return IsNull(name) if op == "is_null" else NotNull(name)
        term: Term = Reference(name)
        if (transform := predicate.get("transform")) is not None:
            term, field_type = _transformed(name, field_type, transform)
        if not _same_type(predicate["type"], field_type):
            raise _UnknownPredicateError
        return self._leaf(op, term, field_type, predicate)

    def _leaf(
        self, op: str, name: Term, field_type: IcebergType, predicate: Mapping[str, Any]
    ) -> BooleanExpression:
        if op == "in":
            values = [value_from_json(field_type, value) for value in predicate["values"]]
            if None in values:
                # a value not found is then unknown, not false: no expression expresses that in NOT
                raise _UnknownPredicateError
            if isinstance(field_type, NANO_TYPES):
                return disjunction(_compare_micros("eq", name, value) for value in values)
            return _in(name, values)
        value = value_from_json(field_type, predicate["value"])
        if op == "eq_null_safe":
            return (
                IsNull(name)
                if value is None
                else And(_compare("eq", name, field_type, value), NotNull(name))
            )
        if value is None:
            raise _UnknownPredicateError
        if op == "starts_with" and isinstance(field_type, StringType):
            return StartsWith(name, value)
        return _compare(op, name, field_type, value)

    def _column(self, path: Sequence[str]) -> tuple[str, IcebergType]:
        field = self._schema.find_field(".".join(path), self._case_sensitive)
        name = self._read.find_column_name(field.field_id)
        if name is None or self._read.find_type(field.field_id) != field.field_type:
            raise _UnknownPredicateError
        return name, field.field_type


def _children(predicate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if predicate["op"] == "not":
        return [predicate["child"]]
    return list(predicate["children"]) if predicate["op"] in {"and", "or"} else []


def _transformed(
    name: str, field_type: IcebergType, transform: str
) -> tuple[UnboundTransform, IcebergType]:
    """Return a partition transform of a column, and its result type.

    Spark has uuids as text and times as numbers, for which its functions have other results.
    """
    if not isinstance(field_type, PrimitiveType) or isinstance(field_type, UUIDType | TimeType):
        raise _UnknownPredicateError
    parsed = parse_transform(transform)
    return UnboundTransform(parsed, Reference(name)), parsed.result_type(field_type)


def _same_type(spark_json: Any, field_type: IcebergType) -> bool:
    """Return whether a literal of this Spark type means the same in a column of this type.

    Collated strings are a different type than plain ones, as they compare differently.
    """
    if isinstance(field_type, DecimalType):
        return str(spark_json).startswith("decimal(")
    return field_type.is_primitive and spark_json == spark_type(field_type)


def _compare(op: str, name: Term, field_type: IcebergType, value: Any) -> BooleanExpression:
    if op not in _COMPARISONS:
        raise _UnknownPredicateError
    if isinstance(field_type, NANO_TYPES):
        return _compare_micros(op, name, value)
    if not isinstance(field_type, FloatType | DoubleType):
        return _COMPARISONS[op](name, value)
    if math.isnan(value):
        return _compare_with_nan(op, name)
    plain = _COMPARISONS[op](name, value)
    if op in {"gt", "gt_eq", "not_eq"}:
        return Or(plain, IsNaN(name))
    return And(plain, NotNaN(name))


def _compare_micros(op: str, name: Term, micros: int) -> BooleanExpression:
    """Compare nanoseconds, rounded down to microseconds, with microseconds."""
    first, end = micros * NANOS_PER_MICRO, (micros + 1) * NANOS_PER_MICRO
    if op == "eq":
        return And(_at_least(name, first), _below(name, end))
    if op == "not_eq":
        return Or(_below(name, first), _at_least(name, end))
    if op in {"lt", "lt_eq"}:
        return _below(name, first if op == "lt" else end)
    return _at_least(name, first if op == "gt_eq" else end)


def _at_least(name: Term, nanos: int) -> BooleanExpression:
    """Compare with a number that may be out of the range of values; unknown for null even so."""
    if nanos > _MOST:
        return GreaterThan(name, _MOST)
    return GreaterThanOrEqual(name, max(nanos, -_MOST - 1))


def _below(name: Term, nanos: int) -> BooleanExpression:
    if nanos > _MOST:
        return LessThanOrEqual(name, _MOST)
    return LessThan(name, max(nanos, -_MOST - 1))


def _compare_with_nan(op: str, name: Term) -> BooleanExpression:
    """Compare with NaN, which equals itself and is the only number greater than infinity."""
    if op in {"eq", "gt_eq"}:
        return _above_infinity(name)
    if op in {"not_eq", "lt"}:
        return _compare("lt_eq", name, DoubleType(), math.inf)
    # nothing is greater than NaN, everything is at most NaN: neither says anything about a file
    raise _UnknownPredicateError


def _above_infinity(name: Term) -> BooleanExpression:
    """Return an expression true for NaN; not `IsNaN`, whose negation is true for null."""
    return _compare("gt", name, DoubleType(), math.inf)


def _in(name: Term, values: list[Any]) -> BooleanExpression:
    numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    found: BooleanExpression = In(name, numbers) if numbers else AlwaysFalse()
    if any(isinstance(value, float) for value in values):
        if len(numbers) < len(values):
            return disjunction((found, _above_infinity(name)))
        return And(found, NotNaN(name))
    return found
