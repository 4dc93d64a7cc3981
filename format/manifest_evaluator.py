"""Which manifests of a snapshot can hold matching files, from their partition summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from icecomb.format.binding import BoundReference
from icecomb.format.comparison import ComparableColumn, bounds_column
from icecomb.format.expression import AlwaysTrue, BooleanExpression
from icecomb.format.manifest import ManifestFile, PartitionFieldSummary
from icecomb.format.metrics_evaluator import might_match
from icecomb.format.partition import PartitionSpec


def select_manifests(
    manifests: Sequence[ManifestFile], spec: PartitionSpec, partition_filter: BooleanExpression
) -> list[ManifestFile]:
    """The manifests that can hold a file whose partition satisfies a filter.

    Args:
        manifests: All of this spec.
        spec: Their partition spec.
        partition_filter: An inclusive projection onto the spec.
    """
    if isinstance(partition_filter, AlwaysTrue) or not manifests:
        return list(manifests)
    selected = might_match(partition_filter, _Summaries(manifests, spec)).to_pylist()
    return [manifest for manifest, keep in zip(manifests, selected, strict=True) if keep]


class _Summaries:
    """Partition summaries seen as metrics of files that hold one value, or an unknown one."""

    def __init__(self, manifests: Sequence[ManifestFile], spec: PartitionSpec) -> None:
        self._manifests = manifests
        self._positions = {field.field_id: at for at, field in enumerate(spec.fields)}
        self.record_count = pa.repeat(pa.scalar(1, pa.int64()), len(manifests))

    def value_count(self, field_id: int) -> pa.Array:
        return self._each(field_id, lambda _: 1, pa.int64())

    def null_count(self, field_id: int) -> pa.Array:
        return self._each(field_id, _null_count, pa.int64())

    def nan_count(self, field_id: int) -> pa.Array:
        return self._each(field_id, _nan_count, pa.int64())

    def lower_bound(self, reference: BoundReference) -> ComparableColumn:
        bounds = self._each(reference.field_id, lambda s: s.lower_bound, pa.large_binary())
        return bounds_column(bounds, reference.field_type)

    def upper_bound(self, reference: BoundReference) -> ComparableColumn:
        bounds = self._each(reference.field_id, lambda s: s.upper_bound, pa.large_binary())
        return bounds_column(bounds, reference.field_type)

    def _each(
        self,
        field_id: int,
        value: Callable[[PartitionFieldSummary], int | bytes | None],
        kind: pa.DataType,
    ) -> pa.Array:
        position = self._positions[field_id]
        return pa.array(
            [
                value(m.partitions[position])
                if m.partitions is not None and position < len(m.partitions)
                else None
                for m in self._manifests
            ],
            kind,
        )


def _null_count(summary: PartitionFieldSummary) -> int | None:
    if not summary.contains_null:
        return 0
    only_nulls = summary.lower_bound is None and summary.contains_nan is False
    return 1 if only_nulls else None


def _nan_count(summary: PartitionFieldSummary) -> int | None:
    if summary.contains_nan is False:
        return 0
    only_nans = (
        summary.contains_nan is True and summary.lower_bound is None and not summary.contains_null
    )
    return 1 if only_nans else None
