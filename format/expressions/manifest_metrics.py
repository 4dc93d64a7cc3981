"""Metrics and partition values of a decoded manifest, as predicates need them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import integers
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundReference,
    BoundSetPredicate,
    bound_predicates,
)
from icecomb.format.expressions.comparison import ComparableColumn, bounds_column, typed_column
from icecomb.format.expressions.expression import BooleanExpression
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.spec.partition import PartitionSpec

METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
"""The statistics that predicates on metrics may need."""
BOUNDS = ("lower_bounds", "upper_bounds")
"""The statistics that most predicates need."""


def bounded_columns(expression: BooleanExpression) -> list[BoundReference] | None:
    """Return the columns whose bounds suffice to find the files that might match.

    None if the counts of files with bounds matter, too. Columns with both bounds have values, so
    their counts prove nothing more.
    """
    found: list[BoundReference] = []
    for predicate in bound_predicates(expression):
        term = predicate.term
        compares = isinstance(predicate, (BoundLiteralPredicate, BoundSetPredicate))
        if not compares or not isinstance(term, BoundReference) or term.may_be_nan:
            return None
        found.append(term)
    return found


class ManifestMetrics:
    """Metrics of the files of a manifest, extracted once per statistic and column.

    Args:
        doubted: Ids of columns whose metrics are treated as unknown.
    """

    def __init__(self, columns: ManifestColumns, doubted: Collection[int] = ()) -> None:
        self._columns = columns
        self._doubted = doubted
        self._picked: dict[tuple[str, int], pa.Array] = {}
        self.record_count: pa.Array = columns.column("record_count")

    def value_count(self, field_id: int) -> pa.Array:
        """Return the numbers of values of a column, nulls and NaNs included, per file."""
        return self._count("value_counts", field_id)

    def null_count(self, field_id: int) -> pa.Array:
        """Return the numbers of nulls of a column, per file."""
        return self._count("null_value_counts", field_id)

    def nan_count(self, field_id: int) -> pa.Array:
        """Return the numbers of NaNs of a column, per file."""
        return self._count("nan_value_counts", field_id)

    def lower_bound(self, reference: BoundReference) -> ComparableColumn:
        """Return lower bounds of a column, per file."""
        return bounds_column(self._pick("lower_bounds", reference.field_id), reference.field_type)

    def upper_bound(self, reference: BoundReference) -> ComparableColumn:
        """Return upper bounds of a column, per file."""
        return bounds_column(self._pick("upper_bounds", reference.field_id), reference.field_type)

    def has_bounds(self, reference: BoundReference) -> pa.BooleanArray:
        """Return a mask of the files in which both bounds of a column are known."""
        lower, upper = self.lower_bound(reference), self.upper_bound(reference)
        return pc.and_(lower.values.is_valid(), upper.values.is_valid())

    def _count(self, name: str, field_id: int) -> pa.Array:
        if name not in self._columns.statistics:
            return pa.nulls(len(self._columns), pa.int64())
        return self._pick(name, field_id)

    def _pick(self, name: str, field_id: int) -> pa.Array:
        found = self._picked.get((name, field_id))
        if found is None:
            found = self._columns.statistic(name, field_id)
            if field_id in self._doubted:
                found = pa.nulls(len(found), found.type)
            self._picked[name, field_id] = found
        return found


def partition_columns(
    columns: ManifestColumns, spec: PartitionSpec, rows: Sequence[int] | None = None
) -> Callable[[BoundReference], ComparableColumn]:
    """Return a function that returns the files' partition values of a partition field."""
    indices = None if rows is None else integers(rows)
    positions = {field.field_id: at for at, field in enumerate(spec.fields)}
    positions |= {
        column.field_id: at
        for at, column in enumerate(columns.partition_columns)
        if column.field_id is not None
    }

    def column(reference: BoundReference) -> ComparableColumn:
        position = positions[reference.field_id]
        if position >= len(columns.partition_columns):
            return ComparableColumn(
                pa.nulls(len(columns) if rows is None else len(rows), pa.int64()),
                reference.field_type,
            )
        values = columns.partition(position)
        values = values if indices is None else values.take(indices)
        return typed_column(values, reference.field_type)

    return column
