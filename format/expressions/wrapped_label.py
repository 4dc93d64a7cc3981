"""The label that truncation gave to the least values of a column that was once `int`.

Truncation of the least integers wraps around: -2147483648 truncated to tens is 2147483646 as an
`int`. A column may become `long` (spec: Schema Evolution), and its partitions keep their labels.
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

_LEAST: Final = -(1 << 31)
_WRAPPED_BY: Final = 1 << 32
_NEGATIVE: Final = (Operation.NOT_EQ, Operation.NOT_IN)


def with_label_of_ints(
    projected: BooleanExpression,
    predicate: BoundPredicate,
    term: BoundReference,
    transform: TruncateTransform,
    *,
    inclusive: bool,
) -> BooleanExpression:
    """Allow for a partition that got its label while the column was `int`.

    Args:
        projected: What would hold of a partition if the column had always been `long`.
        predicate: What was projected: of the column, or of the truncated column.
        term: The partition field.
        transform: Its transform.
        inclusive: Which of the two projections.
    """
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


def _holds_for_some(predicate: BoundPredicate, values: range) -> bool:
    """Whether a comparison may hold for one of the values."""
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
    """Whether a comparison may be false for one of the values; null checks are not."""
    if not isinstance(predicate, (BoundLiteralPredicate, BoundSetPredicate)):
        return False
    return _holds_for_some(replace(predicate, operation=predicate.operation.negated), values)
