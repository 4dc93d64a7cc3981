"""Choice of the manifests that can hold files of known partitions, by partition summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from icecomb.format.spec.single_value import range_from_bytes
from icecomb.format.spec.types import PrimitiveType

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile, PartitionFieldSummary
    from icecomb.format.spec.metadata import TableMetadata

PartitionValues = tuple[int, tuple[Any, ...]]
"""A partition: the id of its spec, and its values."""


class PartitionPlaces:
    """Partitions whose files are looked for in manifests."""

    def __init__(self, base: TableMetadata, partitions: Iterable[PartitionValues]) -> None:
        self._base = base
        self._by_spec: dict[int, list[tuple[Any, ...]]] = {}
        for spec_id, values in partitions:
            self._by_spec.setdefault(spec_id, []).append(values)

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may hold a file of one of the partitions."""
        partitions = self._by_spec.get(manifest.partition_spec_id)
        if not partitions:
            return False
        spec = self._base.spec_by_id(manifest.partition_spec_id)
        fields = spec.partition_type(self._base.schema_of(spec)).fields
        summaries = manifest.partitions
        if summaries is None or len(summaries) != len(fields):
            return True
        ranges = [
            _Range(field.field_type, summary)
            for field, summary in zip(fields, summaries, strict=True)
        ]
        return any(
            len(values) != len(ranges)
            or all(found.may_hold(value) for found, value in zip(ranges, values, strict=True))
            for values in partitions
        )


class _Range:
    """The values of one partition field in a manifest."""

    def __init__(self, kind: Any, summary: PartitionFieldSummary) -> None:
        self._summary = summary
        self._bounds: tuple[Any, Any] | None = None
        low, high = summary.lower_bound, summary.upper_bound
        # Bounds are missing for a reason: there are only nulls and NaNs.
        self._is_empty = low is None and bool(summary.contains_null or summary.contains_nan)
        if isinstance(kind, PrimitiveType):
            # unknown, too, where they are of the type that the column had before it was changed
            self._bounds = range_from_bytes(kind, low, high)

    def may_hold(self, value: Any) -> bool:
        if value is None:
            return self._summary.contains_null
        if isinstance(value, float) and math.isnan(value):
            return self._summary.contains_nan is not False
        if self._bounds is None:
            return not self._is_empty
        low, high = self._bounds
        try:
            return bool(low <= value <= high)
        except TypeError:
            return True
