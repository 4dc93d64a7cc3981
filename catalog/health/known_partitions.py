"""Partitions of which partition statistics prove what health reports, without their manifests.

A file of partition statistics has totals, no sizes of single files (spec: Partition Statistics
File). So a partition is known if nothing is deleted in it, and it has a single file, or fewer bytes
than the limits of small files: then all of its files are below them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import binaries
from icecomb.format.arrow.number_view import numbers_of, together, truths_of
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.comparison import (
    ComparableColumn,
    bounds_column,
    known_bounds,
    typed_column,
)
from icecomb.format.inspect.file_census import KnownPartitions
from icecomb.format.inspect.partition_counts import COUNTS, NEVER, PartitionCounts, added_up
from icecomb.format.manifests.manifest import ManifestContent, PartitionFieldSummary
from icecomb.format.rows.values.value_array import arrow_to_internal
from icecomb.format.spec.types import DecimalType, PrimitiveType, UUIDType

if TYPE_CHECKING:
    from icecomb.format.inspect.file_census import CensusLimits
    from icecomb.format.inspect.partition_statistics import PartitionCounter
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.spec.types import NestedField
    from icecomb.format.storage.file_io import FileIO

_STATED: Final = {
    "files": ("data_file_count",),
    "bytes": ("total_data_file_size_in_bytes",),
    "rows": ("data_record_count",),
    "position_delete_files": ("position_delete_file_count", "dv_count"),
    "position_deletes": ("position_delete_record_count",),
    "equality_delete_files": ("equality_delete_file_count",),
    "equality_deletes": ("equality_delete_record_count",),
}
"""The counts of a census, as sums of those of partition statistics."""
_DELETES: Final = tuple(name for name in _STATED if "delete" in name)
_MOST_PAIRS: Final = 20_000_000
"""The most pairs of a manifest and an unknown partition to compare; reading is cheaper then."""
_UNKNOWN: Final = PartitionFieldSummary(contains_null=True)
_Mask = npt.NDArray[np.bool_]


def known_partitions(
    metadata: TableMetadata,
    io: FileIO,
    snapshot: Snapshot,
    manifests: Sequence[ManifestFile],
    limits: CensusLimits,
) -> KnownPartitions | None:
    """Return the known partitions of a snapshot; None if no manifest is spared.

    The snapshot then has no statistics that can be used, findings need what they lack (sort orders,
    the snapshots that added files, or, for equality deletes of all partitions, the ages of files),
    or each manifest may have files of other partitions.
    """
    if limits.sort_order_id is not None or limits.by_snapshot:
        return None
    if all(f.get("snapshot-id") != snapshot.snapshot_id for f in metadata.partition_statistics):
        return None
    from icecomb.format.inspect.partition_statistics import SPEC_ID, PartitionCounter
    from icecomb.format.inspect.partition_statistics_file import stated_partitions

    try:
        counter = PartitionCounter(metadata, io)
    except ValidationError:  # a transform that is unknown: only its partitions cannot be compared
        return None
    stated = stated_partitions(counter, io, metadata, snapshot, manifests)
    if stated is None:
        return None
    known: dict[int, PartitionCounts] = {}
    spared: list[ManifestFile] = []
    of_data = [m for m in manifests if m.content is ManifestContent.DATA and m.has_live_files()]
    numbers = stated.counts.column(SPEC_ID)
    for spec_id in pc.unique(numbers).to_pylist():
        spec = metadata.spec_by_id(spec_id)
        fields = _fields(counter, [field.field_id for field in spec.fields])
        if fields is None:
            continue
        found = _counts(stated.counts.filter(pc.equal(numbers, spec_id)), fields, limits)
        if spec.is_unpartitioned and found["equality_delete_files"].any():
            return None
        is_known = _known(found, limits)
        known[spec_id] = found.take(np.flatnonzero(is_known))
        data = [m for m in of_data if m.partition_spec_id == spec_id]
        others = found.rows(np.flatnonzero(~is_known))
        spared += _without(data, fields, others, len(found) - len(known[spec_id]))
    return KnownPartitions(known, spared) if spared else None


def _fields(counter: PartitionCounter, field_ids: Collection[int]) -> list[NestedField] | None:
    """Return the fields of a spec; None if statistics lack one, as its column was dropped."""
    stated = {field.field_id: field for field in counter.union.fields}
    return [stated[number] for number in field_ids] if stated.keys() >= set(field_ids) else None


def _counts(rows: pa.Table, fields: Sequence[NestedField], limits: CensusLimits) -> PartitionCounts:
    """Return what is stated of one spec, with the counts of small files that known ones have."""
    count = len(rows)
    counts = dict.fromkeys(COUNTS, np.zeros(count, np.int64))
    for name, columns in _STATED.items():
        for column in columns:
            counts[name] = counts[name] + numbers_of(_whole(rows.column(column)))
    values = [arrow_to_internal(_whole(rows.column(f"key{field.field_id}"))) for field in fields]
    found = added_up(values, counts, np.full(count, NEVER))
    files, size = found["files"], found["bytes"]
    small, undersized = size < limits.small, size <= limits.undersized
    single = {
        "small_files": files * small,
        "small_bytes": size * small,
        "undersized_files": files * undersized,
        "undersized_bytes": size * undersized,
    }
    return replace(found, counts={**found.counts, **single})


def _known(found: PartitionCounts, limits: CensusLimits) -> _Mask:
    limit = min(limits.small - 1, limits.undersized)
    known: _Mask = (found["files"] <= 1) | (found["bytes"] <= limit)
    for name in _DELETES:
        known &= found[name] == 0
    return known


def _without(
    manifests: Sequence[ManifestFile],
    fields: Sequence[NestedField],
    values: Sequence[pa.Array],
    count: int,
) -> list[ManifestFile]:
    """Return the manifests of a spec that have no file of some partitions, by their summaries.

    The values of the `count` partitions are one array per field of the spec.
    """
    if len(manifests) * count > _MOST_PAIRS:
        return []
    may_have: _Mask = np.ones((len(manifests), count), np.bool_)
    for at, field in enumerate(fields):
        may_have &= _within(manifests, at, field, values[at])
    return [manifests[at] for at in np.flatnonzero(~may_have.any(axis=1)).tolist()]


def _within(
    manifests: Sequence[ManifestFile], at: int, field: NestedField, values: pa.Array
) -> _Mask:
    """Return which manifests (rows) may have a file with which values (columns) of a field."""
    kind = field.field_type
    if not isinstance(kind, PrimitiveType) or isinstance(kind, (DecimalType, UUIDType)):
        # decimals have other bytes in bounds, and writers do not agree on the order of UUIDs
        return np.ones((len(manifests), len(values)), np.bool_)
    summaries = [dict(enumerate(m.partitions or ())).get(at, _UNKNOWN) for m in manifests]
    lower, upper = known_bounds(
        bounds_column(binaries([s.lower_bound for s in summaries]), kind),
        bounds_column(binaries([s.upper_bound for s in summaries]), kind),
    )
    column = together([typed_column(values, kind).values, lower.values, upper.values])
    is_nan = ComparableColumn(column, kind).is_nan()
    parts = [len(values), len(values) + len(manifests)]
    ranks = numbers_of(pc.rank(column, sort_keys="ascending", tiebreaker="dense"))
    value, low, high = np.split(ranks, parts)
    there, has_low, has_high = np.split(truths_of(pc.and_not(column.is_valid(), is_nan)), parts)
    nan = truths_of(is_nan)[: len(values)]
    has_null = np.array([s.contains_null for s in summaries], np.bool_)
    has_nan = np.array([s.contains_nan is not False for s in summaries], np.bool_)
    unclear = ~(has_low & has_high | np.array(list(map(_is_bare, summaries)), np.bool_))
    inside = (low[:, None] <= value) & (value <= high[:, None]) & there
    return (
        inside | unclear[:, None] | (has_null[:, None] & ~(there | nan)) | (has_nan[:, None] & nan)
    )


def _is_bare(summary: PartitionFieldSummary) -> bool:
    """Return whether a manifest has nothing but nulls and NaNs of a field."""
    return (
        summary.contains_nan is not None
        and summary.lower_bound is summary.upper_bound is None
        and (summary.contains_null or summary.contains_nan)
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
