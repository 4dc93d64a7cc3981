"""Selection of the manifests that can hold matching files, by their partition summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from icecomb.format.arrow.array_build import binaries, integers
from icecomb.format.expressions.bound import BoundReference
from icecomb.format.expressions.comparison import ComparableColumn, bounds_column
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.expressions.metrics_evaluator import might_match
from icecomb.format.manifests.manifest import ManifestFile, PartitionFieldSummary
from icecomb.format.spec.partition import PartitionSpec

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
        return integers(self._each(field_id, _null_count))

    def nan_count(self, field_id: int) -> pa.Array:
        return integers(self._each(field_id, _nan_count))

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
