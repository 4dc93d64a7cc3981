"""Projection of predicates on columns to predicates on partition values (spec: Scan Planning).

The *inclusive* projection is true for every partition that can hold a matching row: it prunes. The
*strict* projection is true only for partitions in which every row matches: it makes filtering rows
unnecessary. Both are bound expressions whose columns are the partition fields, by their ids.

Residuals: the part of a filter to check on the rows of a file whose partition is known.

With partitions by `day(ts)`, `ts >= X and ts < Y` leaves nothing to check for the days between X
and Y, one comparison for each of the days at the ends, and no rows for the days outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTransform,
    BoundUnaryPredicate,
    bind_set,
    bound_predicates,
)
from icecomb.format.expressions.comparison import ComparableColumn, evaluate
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    PredicateOperation,
    conjunction,
    disjunction,
    replaced,
)
from icecomb.format.expressions.literal import integer_range
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
)
from icecomb.format.spec.values.decimal_value import scaled, unscaled
from icecomb.format.spec.values.temporal import MICROS_PER_HOUR

_Decided = dict[BoundPredicate, bool | None]


class ResidualEvaluator:
    """Residuals of one bound filter in the partitions of one spec."""

    def __init__(self, expression: BooleanExpression, spec: PartitionSpec) -> None:
        self.expression = expression
        self._projections = []
        for predicate in dict.fromkeys(bound_predicates(expression)):
            strict = project_predicate(predicate, spec, inclusive=False)
            inclusive = project_predicate(predicate, spec, inclusive=True)
            if not (isinstance(strict, AlwaysFalse) and isinstance(inclusive, AlwaysTrue)):
                self._projections.append((predicate, strict, inclusive))
        self._known: dict[tuple[bool | None, ...], BooleanExpression] = {}

    def residuals(
        self, column: Callable[[BoundReference], ComparableColumn], count: int
    ) -> Sequence[BooleanExpression]:
        """Return the residuals in `count` partitions, whose field values `column` returns."""
        if not self._projections:
            return [self.expression] * count
        decided = [
            _decide(evaluate(strict, column), evaluate(inclusive, column), count)
            for _, strict, inclusive in self._projections
        ]
        return [self._residual(key) for key in zip(*decided, strict=True)]

    def _residual(self, key: tuple[bool | None, ...]) -> BooleanExpression:
        found = self._known.get(key)
        if found is None:
            predicates = (predicate for predicate, _, _ in self._projections)
            found = _substitute(self.expression, dict(zip(predicates, key, strict=True)))
            self._known[key] = found
        return found


def _decide(strict: object, inclusive: object, count: int) -> Sequence[bool | None]:
    all_match = _listed(strict, count)
    some_match = _listed(inclusive, count)
    return [
        True if every else (None if some else False)
        for every, some in zip(all_match, some_match, strict=True)
    ]


def _listed(mask: object, count: int) -> list[bool]:
    if isinstance(mask, bool):
        return [mask] * count
    values: list[bool] = mask.to_pylist()  # type: ignore[attr-defined]
    return values


def _substitute(expression: BooleanExpression, decided: _Decided) -> BooleanExpression:
    def answer(predicate: BoundPredicate) -> BooleanExpression:
        found = decided.get(predicate)
        if found is None:
            return predicate
        return AlwaysTrue() if found else AlwaysFalse()

    return replaced(expression, BoundPredicate, answer)


Apply = Callable[[Any], Any]

_TIME_TRANSFORMS = (YearTransform, MonthTransform, DayTransform, HourTransform)
_NULL_CHECKS = (PredicateOperation.IS_NULL, PredicateOperation.NOT_NULL)
_ORDER = (
    PredicateOperation.LT,
    PredicateOperation.LT_EQ,
    PredicateOperation.GT,
    PredicateOperation.GT_EQ,
)


def project_inclusive(expression: BooleanExpression, spec: PartitionSpec) -> BooleanExpression:
    """Return the condition that a partition must satisfy for any of its rows to match."""
    return _project(expression, spec, inclusive=True)


def project_strict(expression: BooleanExpression, spec: PartitionSpec) -> BooleanExpression:
    """Return a condition on a partition that suffices for all of its rows to match."""
    return _project(expression, spec, inclusive=False)


def project_predicate(
    predicate: BoundPredicate, spec: PartitionSpec, *, inclusive: bool
) -> BooleanExpression:
    """Return the projection of a predicate through every partition field of its column."""
    projected = [
        _project_field(predicate, field, inclusive=inclusive)
        for field in spec.fields
        if field.source_id == predicate.term.field_id
    ]
    found = [expression for expression in projected if expression is not None]
    return conjunction(found) if inclusive else disjunction(found)


def _project(
    expression: BooleanExpression, spec: PartitionSpec, *, inclusive: bool
) -> BooleanExpression:
    return replaced(
        expression, BoundPredicate, lambda p: project_predicate(p, spec, inclusive=inclusive)
    )


def _project_field(
    predicate: BoundPredicate, field: PartitionField, *, inclusive: bool
) -> BooleanExpression | None:
    transform, source_type = field.transform, predicate.term.reference.field_type
    if not isinstance(source_type, PrimitiveType):
        return None
    term = _partition_reference(field, source_type)
    if isinstance(predicate.term, BoundTransform):
        if predicate.term.transform != transform:
            return None
        labels = _onto(term, predicate)
        if isinstance(transform, TruncateTransform) and isinstance(source_type, LongType):
            return with_label_of_ints(labels, predicate, term, transform, inclusive=inclusive)
        if isinstance(transform, HourTransform):
            return with_far_hours(labels, term, inclusive=inclusive)
        return labels
    if isinstance(transform, IdentityTransform):
        return _onto(term, predicate)
    if predicate.operation in _NULL_CHECKS and not _is_opaque(transform):
        return BoundUnaryPredicate(predicate.operation, term)
    if isinstance(transform, BucketTransform):
        apply = _applier(transform, source_type)
        return _project_equality(predicate, term, apply, inclusive=inclusive)
    if isinstance(transform, TruncateTransform):
        truncated = _project_truncate(predicate, term, transform, inclusive=inclusive)
        if truncated is not None and isinstance(source_type, LongType):
            return with_label_of_ints(truncated, predicate, term, transform, inclusive=inclusive)
        return truncated
    if isinstance(transform, _TIME_TRANSFORMS):
        apply = _applier(transform, source_type)
        projected = _project_order(predicate, term, apply, inclusive=inclusive, discrete=True)
        if isinstance(transform, DayTransform) and isinstance(source_type, DateType):
            return projected
        if projected is None:
            return None
        allowed = _with_wrong_negatives(projected, inclusive=inclusive)
        if isinstance(transform, HourTransform):
            return with_far_hours(allowed, term, inclusive=inclusive)
        return allowed
    return None


def _is_opaque(transform: Transform) -> bool:
    known = (IdentityTransform, BucketTransform, TruncateTransform, *_TIME_TRANSFORMS)
    return not isinstance(transform, known)


def _partition_reference(field: PartitionField, source_type: PrimitiveType) -> BoundReference:
    result = field.transform.result_type(source_type)
    return BoundReference(NestedField(field.field_id, field.name, result), field.name)


def _applier(transform: Transform, source_type: PrimitiveType) -> Apply:
    return lambda value: transform.apply(value, source_type)


def _onto(term: BoundReference, predicate: BoundPredicate) -> BooleanExpression:
    if isinstance(predicate, BoundLiteralPredicate):
        return BoundLiteralPredicate(predicate.operation, term, predicate.literal)
    if isinstance(predicate, BoundSetPredicate):
        return BoundSetPredicate(predicate.operation, term, predicate.literals)
    return BoundUnaryPredicate(predicate.operation, term)


def _literals(predicate: BoundPredicate) -> frozenset[Any]:
    if isinstance(predicate, BoundSetPredicate):
        return predicate.literals
    if isinstance(predicate, BoundLiteralPredicate):
        return frozenset((predicate.literal,))
    return frozenset()


def _project_equality(
    predicate: BoundPredicate, term: BoundReference, apply: Apply, *, inclusive: bool
) -> BooleanExpression | None:
    wanted = (
        (PredicateOperation.EQ, PredicateOperation.IN)
        if inclusive
        else (PredicateOperation.NOT_EQ, PredicateOperation.NOT_IN)
    )
    if predicate.operation not in wanted:
        return None
    return bind_set(wanted[1], term, map(apply, _literals(predicate)))


def _project_truncate(
    predicate: BoundPredicate,
    term: BoundReference,
    transform: TruncateTransform,
    *,
    inclusive: bool,
) -> BooleanExpression | None:
    source_type = predicate.term.field_type
    assert isinstance(source_type, PrimitiveType)  # noqa: S101 - checked by the caller
    apply = _applier(transform, source_type)
    if not isinstance(source_type, (StringType, BinaryType, FixedType)):
        projected = _project_order(predicate, term, apply, inclusive=inclusive, discrete=True)
        limits = integer_range(source_type)
        if limits is None or not isinstance(projected, BoundLiteralPredicate):
            return projected
        return _with_wrapped_labels(projected, predicate, limits[1] - transform.width)
    if predicate.operation in (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH):
        return _project_prefix(predicate, term, transform.width, inclusive=inclusive)
    return _project_order(predicate, term, apply, inclusive=inclusive, discrete=False)


def _project_order(
    predicate: BoundPredicate,
    term: BoundReference,
    apply: Apply,
    *,
    inclusive: bool,
    discrete: bool,
) -> BooleanExpression | None:
    """Return the projection, inclusive or strict, through a transform that preserves order.

    Args:
        discrete: Whether values have neighbors, so that `x < 5` is `x <= 4`.
    """
    if (found := _project_equality(predicate, term, apply, inclusive=inclusive)) is not None:
        return found
    if not isinstance(predicate, BoundLiteralPredicate) or predicate.operation not in _ORDER:
        return None
    literal, operation = predicate.literal, predicate.operation
    below = operation in (PredicateOperation.LT, PredicateOperation.LT_EQ)
    closed = operation in (PredicateOperation.LT_EQ, PredicateOperation.GT_EQ)
    if discrete and closed is not inclusive:
        literal = _neighbor(literal, predicate.term.field_type, -1 if below is inclusive else 1)
        if literal is None:
            return (
                AlwaysFalse()
                if inclusive
                else BoundUnaryPredicate(PredicateOperation.NOT_NULL, term)
            )
    # Values on both sides of the literal may have its label.
    if inclusive:
        operation = PredicateOperation.LT_EQ if below else PredicateOperation.GT_EQ
    else:
        operation = PredicateOperation.LT if below else PredicateOperation.GT
    return BoundLiteralPredicate(operation, term, apply(literal))


def _neighbor(value: Any, source_type: IcebergType, step: int) -> Any:
    """Return the next value of a type with discrete values; None past its end."""
    if isinstance(source_type, DecimalType):
        number = unscaled(value) + step
        past_end = abs(number) >= 10**source_type.precision
        return None if past_end else scaled(number, source_type.scale)
    limits = integer_range(source_type)
    neighbor = value + step
    return neighbor if limits is None or limits[0] <= neighbor <= limits[1] else None


def _with_wrapped_labels(
    projected: BoundLiteralPredicate, predicate: BoundPredicate, last: int
) -> BooleanExpression | None:
    """Adjust for the least integers, which truncation wraps around to labels above `last`."""
    operation, term = projected.operation, projected.term
    if not isinstance(predicate, BoundLiteralPredicate):
        return projected
    wrapped = predicate.literal < 0 < projected.literal
    if operation is PredicateOperation.LT_EQ:
        return projected | BoundLiteralPredicate(PredicateOperation.GT, term, last)
    if operation is PredicateOperation.GT_EQ and wrapped:
        return BoundUnaryPredicate(PredicateOperation.NOT_NULL, term)
    if operation is PredicateOperation.LT and wrapped:
        return None
    if operation is PredicateOperation.GT:
        return projected & BoundLiteralPredicate(PredicateOperation.LT_EQ, term, last)
    return projected


def _project_prefix(
    predicate: BoundPredicate, term: BoundReference, width: int, *, inclusive: bool
) -> BooleanExpression | None:
    assert isinstance(predicate, BoundLiteralPredicate)  # noqa: S101 - prefixes have a literal
    prefix, positive = predicate.literal, predicate.operation is PredicateOperation.STARTS_WITH
    if len(prefix) <= width:
        # The truncated value still shows whether the value begins with the prefix.
        return BoundLiteralPredicate(predicate.operation, term, prefix)
    if positive is inclusive:
        equality = PredicateOperation.EQ if positive else PredicateOperation.NOT_EQ
        return BoundLiteralPredicate(equality, term, prefix[:width])
    return None


def _with_wrong_negatives(projected: BooleanExpression, *, inclusive: bool) -> BooleanExpression:
    """Adjust for partitions of times before 1970 that old writers labeled one too high.

    Early Iceberg versions rounded toward zero: as in Iceberg Java, the inclusive projection
    includes such partitions, and the strict one does not trust them.
    """
    if isinstance(projected, BoundSetPredicate):
        literals = projected.literals | {v + 1 for v in projected.literals if v < 0}
        return BoundSetPredicate(projected.operation, projected.term, literals)
    if not isinstance(projected, BoundLiteralPredicate) or projected.literal >= 0:
        return projected
    operation, term, value = projected.operation, projected.term, projected.literal
    if operation in (PredicateOperation.EQ, PredicateOperation.NOT_EQ):
        as_set = (
            PredicateOperation.IN
            if operation is PredicateOperation.EQ
            else PredicateOperation.NOT_IN
        )
        return BoundSetPredicate(as_set, term, frozenset((value, value + 1)))
    widens = PredicateOperation.LT_EQ if inclusive else PredicateOperation.GT
    if operation is widens:
        return BoundLiteralPredicate(operation, term, value + 1)
    return projected


_LEAST: Final = -(1 << 31)
_WRAPPED_BY: Final = 1 << 32
_MAX_LONG: Final = (1 << 63) - 1
_FIRST_FAR: Final = (-_MAX_LONG - 1) // MICROS_PER_HOUR + _WRAPPED_BY
"""The label from which on there may be hours of timestamps far in the past."""
_LAST_FAR: Final = _MAX_LONG // MICROS_PER_HOUR - _WRAPPED_BY
"""The label up to which there may be hours of timestamps far in the future."""
_BELOW: Final = (PredicateOperation.LT, PredicateOperation.LT_EQ)
_ABOVE: Final = (PredicateOperation.GT, PredicateOperation.GT_EQ)
_NEGATIVE: Final = (PredicateOperation.NOT_EQ, PredicateOperation.NOT_IN)


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
        return projected | BoundLiteralPredicate(PredicateOperation.EQ, term, label)
    if not inclusive and _fails_for_some(predicate, values):
        return projected & BoundLiteralPredicate(PredicateOperation.NOT_EQ, term, label)
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
        return projected | BoundLiteralPredicate(PredicateOperation.GT_EQ, term, _FIRST_FAR)
    if projected.operation in _BELOW:
        return projected & BoundLiteralPredicate(PredicateOperation.GT, term, _LAST_FAR)
    if projected.operation in _ABOVE and inclusive:
        return projected | BoundLiteralPredicate(PredicateOperation.LT_EQ, term, _LAST_FAR)
    if projected.operation in _ABOVE:
        return projected & BoundLiteralPredicate(PredicateOperation.LT, term, _FIRST_FAR)
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
        case PredicateOperation.EQ:
            return predicate.literal in values
        case PredicateOperation.LT:
            return bool(values[0] < predicate.literal)
        case PredicateOperation.LT_EQ:
            return bool(values[0] <= predicate.literal)
        case PredicateOperation.GT:
            return bool(values[-1] > predicate.literal)
        case PredicateOperation.GT_EQ:
            return bool(values[-1] >= predicate.literal)
        case _:
            return True


def _fails_for_some(predicate: BoundPredicate, values: range) -> bool:
    """Return whether a comparison may be false for one of the values; null checks never are."""
    if not isinstance(predicate, (BoundLiteralPredicate, BoundSetPredicate)):
        return False
    return _holds_for_some(replace(predicate, operation=predicate.operation.negated), values)
