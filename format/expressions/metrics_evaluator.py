"""Evaluation of predicates on column metrics: whether files can, or must, hold matching rows.

The inclusive evaluator excludes a file only if no row can match; the strict one selects a file only
if every row matches. Both evaluate all files of a manifest at once, on Arrow columns. Missing
metrics prove nothing; bounds may be truncated and are never treated as values. Impossible metrics,
such as fewer values than rows or a lower bound above the upper one, are treated as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import FALSE, TRUE, ZERO, binaries, integers, mask, scalar
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTransform,
)
from icecomb.format.expressions.comparison import (
    ComparableColumn,
    bounds_column,
    combine,
    known_bounds,
)
from icecomb.format.expressions.expression import (
    AlwaysTrue,
    BooleanExpression,
    PredicateOperation,
)
from icecomb.format.manifests.manifest import ManifestFile, PartitionFieldSummary
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.types import UUIDType

_IN_LIMIT = 200
"""The length from which lists are compared with bounds only by their least and greatest value."""


class FileMetrics(Protocol):
    """The metrics of files: one value per file, null where a file does not state it."""

    @property
    def record_count(self) -> pa.Array:
        """The number of rows per file."""

    def value_count(self, field_id: int) -> pa.Array:
        """Return the numbers of values of a column, nulls and NaNs included."""

    def null_count(self, field_id: int) -> pa.Array:
        """Return the numbers of nulls of a column."""

    def nan_count(self, field_id: int) -> pa.Array:
        """Return the numbers of NaNs of a column."""

    def lower_bound(self, reference: BoundReference) -> ComparableColumn:
        """Return lower bounds of a column: no value is less."""

    def upper_bound(self, reference: BoundReference) -> ComparableColumn:
        """Return upper bounds of a column: no value is greater."""


def might_match(expression: BooleanExpression, metrics: FileMetrics) -> pa.BooleanArray:
    """Return which files can hold a matching row, as a mask without nulls."""
    result = combine(expression, lambda predicate: _inclusive(predicate, metrics))
    rows = metrics.record_count
    if isinstance(result, bool):
        result = mask(len(rows), value=result)
    # A negative count means that it is unknown (old Avro imports).
    result = pc.or_(result, pc.less(rows, ZERO).fill_null(FALSE))
    return pc.and_(result, pc.not_equal(rows, ZERO).fill_null(TRUE))


def must_match(expression: BooleanExpression, metrics: FileMetrics) -> pa.BooleanArray:
    """Return which files hold only matching rows, as a mask without nulls."""
    result = combine(expression, lambda predicate: _strict(predicate, metrics))
    rows = metrics.record_count
    if isinstance(result, bool):
        result = mask(len(rows), value=result)
    return pc.or_(result, pc.equal(rows, ZERO).fill_null(FALSE))


def _inclusive(predicate: BoundPredicate, metrics: FileMetrics) -> pa.BooleanArray:
    operation, term = predicate.operation, predicate.term
    reference = term.reference
    if operation is PredicateOperation.IS_NULL:
        # Counts of a nested field may omit rows in which a struct around it is null.
        return _every(metrics) if reference.nested else _not_zero(_null_count(metrics, reference))
    all_null = _all_null(metrics, reference)
    if operation is PredicateOperation.NOT_NULL:
        return pc.invert(all_null)
    if operation is PredicateOperation.NOT_NAN:
        return pc.invert(_all_nan(metrics, reference))
    if operation is PredicateOperation.IS_NAN:
        return pc.and_(_not_zero(_nan_count(metrics, reference)), pc.invert(all_null))
    if isinstance(term, BoundTransform):
        return pc.invert(all_null)
    return pc.and_not(_inclusive_bounds(predicate, metrics), all_null)


def _inclusive_bounds(predicate: BoundPredicate, metrics: FileMetrics) -> pa.BooleanArray:
    operation, term = predicate.operation, predicate.term.reference
    lower, upper = _bounds(term, metrics)
    if isinstance(predicate, BoundSetPredicate):
        if operation is PredicateOperation.IN:
            might = _might_hold_any(predicate.literals, lower, _reliable(lower, upper))
            return pc.and_not(might, _all_nan(metrics, term))
        return pc.invert(_is_constant(metrics, term, lower, upper, predicate.literals))
    if not isinstance(predicate, BoundLiteralPredicate):
        raise ExpressionError(
            f"Cannot evaluate {predicate} on metrics",
            hint="Build it from the classes of icecomb.format, or give SQL text.",
        )
    literal = predicate.literal
    if operation is PredicateOperation.NOT_EQ:
        return pc.invert(_is_constant(metrics, term, lower, upper, frozenset((literal,))))
    if operation is PredicateOperation.STARTS_WITH:
        return pc.invert(_disjoint_with_prefix(lower, upper, literal))
    if operation is PredicateOperation.NOT_STARTS_WITH:
        both = pc.and_(lower.starts_with(literal), upper.starts_with(literal))
        return pc.invert(both.fill_null(FALSE))
    if operation in (PredicateOperation.LT, PredicateOperation.LT_EQ):
        might = _unless(lower.compare(operation.negated, literal))
    elif operation in (PredicateOperation.GT, PredicateOperation.GT_EQ):
        might = _unless(upper.compare(operation.negated, literal))
    else:
        might = _might_hold(literal, lower, _reliable(lower, upper)).fill_null(TRUE)
    return pc.and_not(might, _all_nan(metrics, term))


def _strict(predicate: BoundPredicate, metrics: FileMetrics) -> pa.BooleanArray:
    operation, term = predicate.operation, predicate.term
    if isinstance(term, BoundTransform) or term.nested:
        # Bounds say nothing about buckets. Counts of a nested field may omit rows in which a struct
        # around it is null.
        return _none(metrics)
    if operation is PredicateOperation.IS_NULL:
        return _all_null(metrics, term)
    if operation is PredicateOperation.NOT_NULL:
        return _zero(_null_count(metrics, term))
    if operation is PredicateOperation.IS_NAN:
        return _all_nan(metrics, term)
    if operation is PredicateOperation.NOT_NAN:
        return pc.or_(_zero(_nan_count(metrics, term)), _all_null(metrics, term))
    no_null = _zero(_null_count(metrics, term)) if term.may_be_null else _every(metrics)
    return pc.and_(_strict_bounds(predicate, metrics), no_null)


def _strict_bounds(predicate: BoundPredicate, metrics: FileMetrics) -> pa.BooleanArray:
    operation, term = predicate.operation, predicate.term.reference
    lower, upper = _bounds(term, metrics)
    if operation in (PredicateOperation.NOT_EQ, PredicateOperation.NOT_IN):
        literals = _literals(predicate)
        might = _might_hold_any(literals, lower, _reliable(lower, upper))
        return pc.or_(pc.invert(might), _all_nan(metrics, term))
    if operation in (PredicateOperation.EQ, PredicateOperation.IN):
        return _is_constant(metrics, term, lower, upper, _literals(predicate))
    if not isinstance(predicate, BoundLiteralPredicate):
        raise ExpressionError(
            f"Cannot evaluate {predicate} on metrics",
            hint="Build it from the classes of icecomb.format, or give SQL text.",
        )
    literal = predicate.literal
    if operation is PredicateOperation.STARTS_WITH:
        both = pc.and_(lower.starts_with(literal), upper.starts_with(literal))
        return both.fill_null(FALSE)
    if operation is PredicateOperation.NOT_STARTS_WITH:
        return _disjoint_with_prefix(lower, upper, literal)
    bound = upper if operation in (PredicateOperation.LT, PredicateOperation.LT_EQ) else lower
    inside = bound.compare(operation, literal).fill_null(FALSE)
    return pc.and_(inside, _no_nan(metrics, term))


def _bounds(
    term: BoundReference, metrics: FileMetrics
) -> tuple[ComparableColumn, ComparableColumn]:
    lower, upper = metrics.lower_bound(term), metrics.upper_bound(term)
    if isinstance(term.field_type, UUIDType):
        lower, upper = _uuid_bounds(lower, upper)
    return known_bounds(lower, upper)


def _uuid_bounds(
    lower: ComparableColumn, upper: ComparableColumn
) -> tuple[ComparableColumn, ComparableColumn]:
    """Return bounds that hold however their writer ordered UUIDs.

    The right order is that of the bytes; Iceberg Java (1.11 and before) compares UUIDs as two
    signed numbers, also in manifest lists.
    """
    low, high = lower.values, upper.values
    kind = low.type
    same_sign = pc.equal(_is_negative(low), _is_negative(high))
    # With two signs, only one order puts the lower bound first; with one sign, both orders agree on
    # the first halves.
    known = pc.or_(same_sign, pc.less(low, high))
    unclear = pc.invert(known.fill_null(FALSE))
    exact = pc.or_(pc.invert(same_sign), pc.equal(low, high))
    first_halves = (pc.binary_slice(bound, 0, 8) for bound in (low, high))
    least, greatest = (
        pc.binary_join_element_wise(half, scalar(rest, kind), scalar(b"", kind))
        for half, rest in zip(first_halves, (b"\x00" * 8, b"\xff" * 8), strict=True)
    )
    return (
        ComparableColumn(pc.if_else(exact, low, least), UUIDType()).without(unclear),
        ComparableColumn(pc.if_else(exact, high, greatest), UUIDType()).without(unclear),
    )


def _is_negative(values: pa.Array) -> pa.BooleanArray:
    return pc.greater_equal(pc.binary_slice(values, 0, 1), scalar(b"\x80", values.type))


def _literals(predicate: BoundPredicate) -> frozenset[Any]:
    if isinstance(predicate, BoundSetPredicate):
        return predicate.literals
    if isinstance(predicate, BoundLiteralPredicate):
        return frozenset((predicate.literal,))
    raise ExpressionError(
        f"Cannot evaluate {predicate} on metrics",
        hint="Build it from the classes of icecomb.format, or give SQL text.",
    )


def _reliable(lower: ComparableColumn, upper: ComparableColumn) -> ComparableColumn:
    # A bound that is NaN comes from a writer that did not exclude NaNs: then neither bound counts.
    if not pa.types.is_floating(lower.values.type):
        return upper
    return upper.without(lower.is_nan())


def _might_hold(literal: Any, lower: ComparableColumn, upper: ComparableColumn) -> pa.BooleanArray:
    """Return whether a literal is within bounds; null if a missing bound leaves that open."""
    above = pc.or_(lower.compare(PredicateOperation.LT_EQ, literal), lower.is_nan())
    below = pc.or_(upper.compare(PredicateOperation.GT_EQ, literal), upper.is_nan())
    return pc.and_kleene(above, below)


def _might_hold_any(
    literals: Iterable[Any], lower: ComparableColumn, upper: ComparableColumn
) -> pa.BooleanArray:
    ordered = sorted(literals)
    if len(ordered) > _IN_LIMIT:
        above = pc.or_(lower.compare(PredicateOperation.LT_EQ, ordered[-1]), lower.is_nan())
        below = pc.or_(upper.compare(PredicateOperation.GT_EQ, ordered[0]), upper.is_nan())
        return pc.and_kleene(above, below).fill_null(TRUE)
    found = _might_hold(ordered[0], lower, upper)
    for literal in ordered[1:]:
        found = pc.or_kleene(found, _might_hold(literal, lower, upper))
    return found.fill_null(TRUE)


def _is_constant(
    metrics: FileMetrics,
    term: BoundReference,
    lower: ComparableColumn,
    upper: ComparableColumn,
    literals: frozenset[Any],
) -> pa.BooleanArray:
    """Return whether all values but nulls are one of the literals, equal to both bounds."""
    meets = pc.equal(lower.values, upper.values).fill_null(FALSE)
    found = pc.and_(meets, lower.is_in(literals).fill_null(FALSE))
    return pc.and_(found, _no_nan(metrics, term))


def _disjoint_with_prefix(
    lower: ComparableColumn, upper: ComparableColumn, prefix: Any
) -> pa.BooleanArray:
    below = upper.compare(PredicateOperation.LT, prefix).fill_null(FALSE)
    above = lower.compare(PredicateOperation.GT, prefix).fill_null(FALSE)
    return pc.or_(below, pc.and_not(above, lower.starts_with(prefix).fill_null(FALSE)))


def _all_null(metrics: FileMetrics, term: BoundReference) -> pa.BooleanArray:
    values, nulls = metrics.value_count(term.field_id), _null_count(metrics, term)
    return pc.equal(values, nulls).fill_null(FALSE)


def _all_nan(metrics: FileMetrics, term: BoundReference) -> pa.BooleanArray:
    if not term.may_be_nan:
        return _none(metrics)
    values, nans = metrics.value_count(term.field_id), _nan_count(metrics, term)
    return pc.equal(values, nans).fill_null(FALSE)


def _no_nan(metrics: FileMetrics, term: BoundReference) -> pa.BooleanArray:
    return _zero(_nan_count(metrics, term)) if term.may_be_nan else _every(metrics)


def _null_count(metrics: FileMetrics, term: BoundReference) -> pa.Array:
    return _possible(metrics.null_count(term.field_id), metrics, term)


def _nan_count(metrics: FileMetrics, term: BoundReference) -> pa.Array:
    return _possible(metrics.nan_count(term.field_id), metrics, term)


def _possible(counts: pa.Array, metrics: FileMetrics, term: BoundReference) -> pa.Array:
    """Return the counts of a column, null where they are impossible."""
    rows, values = metrics.record_count, metrics.value_count(term.field_id)
    negative = pc.or_kleene(pc.less(counts, ZERO), pc.less(values, ZERO))
    too_many = pc.or_kleene(pc.greater(counts, values), pc.greater(counts, rows))
    if term.nested:
        # rows without the struct around it may be omitted, but hardly all rows
        not_counted = pc.and_kleene(pc.equal(values, ZERO), pc.not_equal(rows, ZERO))
    else:
        not_counted = pc.not_equal(values, rows)
    impossible = pc.or_kleene(pc.or_kleene(negative, too_many), not_counted)
    return pc.if_else(impossible.fill_null(FALSE), scalar(None, counts.type), counts)


def _unless(proof: pa.BooleanArray) -> pa.BooleanArray:
    return pc.invert(proof.fill_null(FALSE))


def _zero(counts: pa.Array) -> pa.BooleanArray:
    return pc.equal(counts, ZERO).fill_null(FALSE)


def _not_zero(counts: pa.Array) -> pa.BooleanArray:
    return pc.not_equal(counts, ZERO).fill_null(TRUE)


def _none(metrics: FileMetrics) -> pa.BooleanArray:
    return mask(len(metrics.record_count), value=False)


def _every(metrics: FileMetrics) -> pa.BooleanArray:
    return mask(len(metrics.record_count), value=True)


_T = TypeVar("_T")


def select_manifests(
    manifests: Sequence[ManifestFile], spec: PartitionSpec, partition_filter: BooleanExpression
) -> list[ManifestFile]:
    """Return the manifests of a spec that can hold a file whose partition satisfies a filter."""
    if isinstance(partition_filter, AlwaysTrue) or not manifests:
        return list(manifests)
    selected = might_match(partition_filter, _Summaries(manifests, spec)).to_pylist()
    return [manifest for manifest, keep in zip(manifests, selected, strict=True) if keep]


class _Summaries:
    """Partition summaries presented as metrics of files that hold one value, or an unknown one."""

    def __init__(self, manifests: Sequence[ManifestFile], spec: PartitionSpec) -> None:
        self._manifests = manifests
        self._positions = {field.field_id: at for at, field in enumerate(spec.fields)}
        self.record_count = integers([1] * len(manifests))

    def value_count(self, field_id: int) -> pa.Array:
        return integers(self._each(field_id, lambda _: 1))

    def null_count(self, field_id: int) -> pa.Array:
        return integers(self._each(field_id, _summary_nulls))

    def nan_count(self, field_id: int) -> pa.Array:
        return integers(self._each(field_id, _summary_nans))

    def lower_bound(self, reference: BoundReference) -> ComparableColumn:
        bounds = self._each(reference.field_id, lambda summary: summary.lower_bound)
        return bounds_column(binaries(bounds), reference.field_type)

    def upper_bound(self, reference: BoundReference) -> ComparableColumn:
        bounds = self._each(reference.field_id, lambda summary: summary.upper_bound)
        return bounds_column(binaries(bounds), reference.field_type)

    def _each(
        self, field_id: int, value: Callable[[PartitionFieldSummary], _T | None]
    ) -> list[_T | None]:
        position = self._positions[field_id]
        return [
            value(m.partitions[position])
            if m.partitions is not None and position < len(m.partitions)
            else None
            for m in self._manifests
        ]


def _summary_nulls(summary: PartitionFieldSummary) -> int | None:
    if not summary.contains_null:
        return 0
    only_nulls = summary.lower_bound is None and summary.contains_nan is False
    return 1 if only_nulls else None


def _summary_nans(summary: PartitionFieldSummary) -> int | None:
    if summary.contains_nan is False:
        return 0
    only_nans = (
        summary.contains_nan is True and summary.lower_bound is None and not summary.contains_null
    )
    return 1 if only_nans else None
