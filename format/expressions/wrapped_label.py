"""Partition labels that wrapped around: those of the least integers, and of far hours.

Truncation of the least integers wraps around: -2147483648 truncated to tens is 2147483646 as an
`int`. A column may become `long` (spec: Schema Evolution), and its partitions keep their labels.
Hours are an `int`, too, and timestamps reach 416 million hours farther: writers that do not check,
such as Iceberg Java (DateTimeUtil.microsToHours), store them modulo 2^32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTransform,
)
from icecomb.format.expressions.expression import BooleanExpression, Operation
from icecomb.format.spec.transform import TruncateTransform
from icecomb.format.spec.values.temporal import MICROS_PER_HOUR

_LEAST: Final = -(1 << 31)
_WRAPPED_BY: Final = 1 << 32
_MAX_LONG: Final = (1 << 63) - 1
_FIRST_FAR: Final = (-_MAX_LONG - 1) // MICROS_PER_HOUR + _WRAPPED_BY
"""The label from which on there may be hours of timestamps far in the past."""
_LAST_FAR: Final = _MAX_LONG // MICROS_PER_HOUR - _WRAPPED_BY
"""The label up to which there may be hours of timestamps far in the future."""
_BELOW: Final = (Operation.LT, Operation.LT_EQ)
_ABOVE: Final = (Operation.GT, Operation.GT_EQ)
_NEGATIVE: Final = (Operation.NOT_EQ, Operation.NOT_IN)


def with_label_of_ints(
    projected: BooleanExpression,
    predicate: BoundPredicate,
    term: BoundReference,
    transform: TruncateTransform,
    *,
    inclusive: bool,
) -> BooleanExpression:
    """Adjust a projection for a partition that got its label while the column was `int`."""
    rounded = _LEAST - _LEAST % transform.width
    if rounded == _LEAST:
        return projected
    label = rounded + _WRAPPED_BY
    if isinstance(predicate.term, BoundTransform):
        values = range(rounded, rounded + 1)
    else:
        values = range(_LEAST, rounded + transform.width)
    if inclusive and _holds_for_some(predicate, values):
        return projected | BoundLiteralPredicate(Operation.EQ, term, label)
    if not inclusive and _fails_for_some(predicate, values):
        return projected & BoundLiteralPredicate(Operation.NOT_EQ, term, label)
    return projected


def with_far_hours(
    projected: BooleanExpression, term: BoundReference, *, inclusive: bool
) -> BooleanExpression:
    """Adjust a projection for partitions by hours whose labels wrapped around."""
    if isinstance(projected, BoundSetPredicate):
        return replace(projected, literals=frozenset(map(_as_int, projected.literals)))
    if not isinstance(projected, BoundLiteralPredicate):
        return projected
    if projected.operation in _BELOW and inclusive:
        return projected | BoundLiteralPredicate(Operation.GT_EQ, term, _FIRST_FAR)
    if projected.operation in _BELOW:
        return projected & BoundLiteralPredicate(Operation.GT, term, _LAST_FAR)
    if projected.operation in _ABOVE and inclusive:
        return projected | BoundLiteralPredicate(Operation.LT_EQ, term, _LAST_FAR)
    if projected.operation in _ABOVE:
        return projected & BoundLiteralPredicate(Operation.LT, term, _FIRST_FAR)
    return replace(projected, literal=_as_int(projected.literal))


def _as_int(label: int) -> int:
    return (label - _LEAST) % _WRAPPED_BY + _LEAST


def _holds_for_some(predicate: BoundPredicate, values: range) -> bool:
    """Return whether a comparison may hold for one of the values."""
    if isinstance(predicate, BoundSetPredicate):
        if predicate.operation in _NEGATIVE:
            return True
        return any(literal in values for literal in predicate.literals)
    if not isinstance(predicate, BoundLiteralPredicate):
        return False
    match predicate.operation:
        case Operation.EQ:
            return predicate.literal in values
        case Operation.LT:
            return bool(values[0] < predicate.literal)
        case Operation.LT_EQ:
            return bool(values[0] <= predicate.literal)
        case Operation.GT:
            return bool(values[-1] > predicate.literal)
        case Operation.GT_EQ:
            return bool(values[-1] >= predicate.literal)
        case _:
            return True


def _fails_for_some(predicate: BoundPredicate, values: range) -> bool:
    """Return whether a comparison may be false for one of the values; null checks never are."""
    if not isinstance(predicate, (BoundLiteralPredicate, BoundSetPredicate)):
        return False
    return _holds_for_some(replace(predicate, operation=predicate.operation.negated), values)
