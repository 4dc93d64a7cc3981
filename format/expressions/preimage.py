"""Conversion of predicates on transformed columns to predicates on the columns themselves.

A transform that preserves order maps ranges to ranges: `years(ts) = 54` is
`ts >= 2024-01-01 and ts < 2025-01-01`, `truncate(4, s) = 'abcd'` is `s` starting with `abcd`. So
all that is known about columns - partitions of any transform, metrics, statistics - serves such
predicates, too. Buckets do not preserve order: predicates on them stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTransform,
    BoundUnaryPredicate,
    not_null,
)
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Operation,
    Or,
    conjunction,
    disjunction,
)
from icecomb.format.expressions.literal import integer_range
from icecomb.format.spec.transform import (
    BucketTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
    units_per_hour,
)
from icecomb.format.spec.types import BinaryType, DateType, DecimalType, IcebergType, StringType
from icecomb.format.spec.values.decimal_value import scaled, unscaled
from icecomb.format.spec.values.temporal import days_from_civil

_NEGATIVE: Final = (
    Operation.NOT_EQ,
    Operation.GT,
    Operation.GT_EQ,
    Operation.NOT_STARTS_WITH,
)


def on_column(predicate: BoundPredicate) -> BooleanExpression:
    """Return the predicate on the column that has the same result; one of buckets stays."""
    term = predicate.term
    if not isinstance(term, BoundTransform) or isinstance(term.transform, BucketTransform):
        return predicate
    if isinstance(predicate, BoundSetPredicate):
        is_in = predicate.operation is Operation.IN
        single = Operation.EQ if is_in else Operation.NOT_EQ
        parts = [_compared(term, single, literal) for literal in predicate.literals]
        return disjunction(parts) if is_in else conjunction(parts)
    assert isinstance(predicate, BoundLiteralPredicate)  # noqa: S101 - null checks ask the column
    return _compared(term, predicate.operation, predicate.literal)


def _compared(term: BoundTransform, operation: Operation, literal: Any) -> BooleanExpression:
    if operation in _NEGATIVE:
        return _negated(_compared(term, operation.negated, literal), term)
    column = term.reference
    if isinstance(column.field_type, (StringType, BinaryType)):
        assert isinstance(term.transform, TruncateTransform)  # noqa: S101 - no other takes text
        return _text(column, operation, literal, term.transform.width)
    return _number(column, operation, literal, term.transform)


def _negated(expression: BooleanExpression, term: BoundTransform) -> BooleanExpression:
    """Return the expression that is true where another is false, and unknown for null, too."""
    if isinstance(expression, And):
        return disjunction(_negated(operand, term) for operand in expression.operands)
    if isinstance(expression, Or):
        return conjunction(_negated(operand, term) for operand in expression.operands)
    if isinstance(expression, AlwaysFalse):
        return not_null(term)
    # values are not null, so the unary predicate or the constant holds for all of them
    all_values = isinstance(expression, (AlwaysTrue, BoundUnaryPredicate))
    return AlwaysFalse() if all_values else ~expression


def _text(
    column: BoundReference, operation: Operation, literal: Any, width: int
) -> BooleanExpression:
    start = literal[:width]
    begins = (
        BoundLiteralPredicate(Operation.STARTS_WITH, column, start) if start else not_null(column)
    )
    if operation is Operation.STARTS_WITH:
        return begins if len(literal) <= width else AlwaysFalse()
    if operation is Operation.EQ:
        if len(literal) == width:
            return begins
        return (
            BoundLiteralPredicate(operation, column, literal)
            if start == literal
            else (AlwaysFalse())
        )
    # Truncated values are never greater than the values, and equal a shorter text only if nothing
    # was cut: so a literal that is not a truncated value compares as with the values themselves.
    whole = len(literal) < width or (len(literal) == width and operation is Operation.LT)
    if whole:
        return BoundLiteralPredicate(operation, column, literal)
    return disjunction((BoundLiteralPredicate(Operation.LT, column, start), begins))


def _number(
    column: BoundReference, operation: Operation, literal: Any, transform: Transform
) -> BooleanExpression:
    source = column.field_type
    label = unscaled(literal) if isinstance(source, DecimalType) else literal
    at_least, above = _thresholds(transform, source, label)
    before = _before(column, at_least), _before(column, above)
    if operation is Operation.LT:
        found = before[0]
    elif operation is Operation.LT_EQ:
        found = before[1]
    elif at_least == above:
        found = AlwaysFalse()
    else:
        found = conjunction((_from(column, at_least), before[1]))
    return _with_wrapped(column, operation, label, transform, found)


def _thresholds(transform: Transform, source: IcebergType, label: int) -> tuple[int, int]:
    """Return the least values whose results are at least a label, and above it."""
    if isinstance(transform, TruncateTransform):
        above = (label // transform.width + 1) * transform.width
        return (above if label % transform.width else label), above
    if isinstance(transform, HourTransform):
        unit = units_per_hour(source)
        return label * unit, (label + 1) * unit
    unit = 1 if isinstance(source, DateType) else 24 * units_per_hour(source)
    return _first_day(transform, label) * unit, _first_day(transform, label + 1) * unit


def _first_day(transform: Transform, label: int) -> int:
    if isinstance(transform, YearTransform):
        return days_from_civil(1970 + label, 1, 1)
    if isinstance(transform, MonthTransform):
        return days_from_civil(1970 + label // 12, label % 12 + 1, 1)
    return label


def _before(column: BoundReference, threshold: int) -> BooleanExpression:
    low, high = _range(column.field_type)
    if threshold <= low:
        return AlwaysFalse()
    if threshold > high:
        return not_null(column)
    return BoundLiteralPredicate(Operation.LT, column, _value(column, threshold))


def _from(column: BoundReference, threshold: int) -> BooleanExpression:
    low, high = _range(column.field_type)
    if threshold > high:
        return AlwaysFalse()
    if threshold <= low:
        return not_null(column)
    return BoundLiteralPredicate(Operation.GT_EQ, column, _value(column, threshold))


def _range(source: IcebergType) -> tuple[int, int]:
    if isinstance(source, DecimalType):
        return 1 - 10**source.precision, 10**source.precision - 1
    limits = integer_range(source)
    assert limits is not None  # noqa: S101 - the transforms take no other type
    return limits


def _value(column: BoundReference, number: int) -> Any:
    kind = column.field_type
    return scaled(number, kind.scale) if isinstance(kind, DecimalType) else number


_HOLDS: Final[dict[Operation, Callable[[int, int], bool]]] = {
    Operation.LT: lambda value, label: value < label,
    Operation.LT_EQ: lambda value, label: value <= label,
    Operation.EQ: lambda value, label: value == label,
}


def _with_wrapped(
    column: BoundReference,
    operation: Operation,
    label: int,
    transform: Transform,
    found: BooleanExpression,
) -> BooleanExpression:
    """Adjust for the least integers, which truncation wraps around to the greatest results."""
    low, high = _range(column.field_type)
    if not isinstance(transform, TruncateTransform) or isinstance(column.field_type, DecimalType):
        return found
    rounded = low - low % transform.width
    if rounded == low:
        return found
    wrapped = _HOLDS[operation](rounded + high - low + 1, label)
    if wrapped is _HOLDS[operation](rounded, label):
        return found
    regular = rounded + transform.width
    if wrapped:
        return disjunction((found, _before(column, regular)))
    return conjunction((found, _from(column, regular)))
