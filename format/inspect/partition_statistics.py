"""Statistics of partitions: the counts of their live files by spec, and the last file added.

Counted from manifests, or by what later snapshots changed since earlier counts (spec: Partition
Statistics File). The update of a partition is that of its newest live file, as in the metadata
table `partitions`; Iceberg Java also counts deletions whose manifest entries still exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import takewhile
from types import EllipsisType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.inspect.manifest_choice import spec_of
from icecomb.format.manifests.cache import ManifestCache
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import (
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns, read_manifest_columns
from icecomb.format.rows.values.partition_union import partition_union, union_columns
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.snapshot import Snapshot, ancestors_of
from icecomb.format.spec.types import StructType
from icecomb.format.spec.values.json_object import lazily
from icecomb.format.storage.file_io import FileIO

SPEC_ID: Final = "spec_id"
UPDATED_AT: Final = "last_updated_at"
UPDATED_BY: Final = "last_updated_snapshot_id"
_POSITION: Final = "position"
_REMOVED: Final = "removed_sequence"
_DATA, _POSITIONS = DataFileContent.DATA, DataFileContent.POSITION_DELETES
_EQUALITY: Final = DataFileContent.EQUALITY_DELETES
COUNTS: Final = {
    "data_record_count": (_DATA, "record_count"),
    "data_file_count": (_DATA, None),
    "total_data_file_size_in_bytes": (_DATA, "file_size_in_bytes"),
    "position_delete_record_count": (_POSITIONS, "record_count"),
    "position_delete_file_count": (_POSITIONS, None),
    "dv_count": (_POSITIONS, None),
    "equality_delete_record_count": (_EQUALITY, "record_count"),
    "equality_delete_file_count": (_EQUALITY, None),
}
"""The counts of a partition: which files count, and by which of their columns (None: one each)."""
FILE_COUNTS: Final = (
    "data_file_count",
    "position_delete_file_count",
    "dv_count",
    "equality_delete_file_count",
)
_TOTALS: Final = {
    ManifestContent.DATA: (FILE_COUNTS[:1], "data_record_count"),
    ManifestContent.DELETES: (FILE_COUNTS[1:], None),
}
_NEVER: Final = -1


class PartitionCounter:
    """Counts of the files in the partitions of snapshots of one table.

    A table of counts has a row per spec and partition that has live files: columns for the
    partition (see `keys`), `spec_id`, `COUNTS`, `last_updated_at` in milliseconds since the epoch
    and `last_updated_snapshot_id`, both null if the snapshot of the newest file has expired.

    Args:
        cache: The cache of manifests; None to read their files, as who copies their entries does.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        cache: ManifestCache | EllipsisType | None = ...,
    ) -> None:
        self._metadata = metadata
        self._io = io
        self._cache = cache
        self.union: StructType = partition_union(metadata)
        self.keys = [f"key{field.field_id}" for field in self.union.fields]

    def of_manifests(self, manifests: Iterable[ManifestFile]) -> pa.Table:
        """Return the counts of the live files of manifests."""
        chosen = [manifest for manifest in manifests if manifest.has_live_files()]
        for manifest in chosen:
            spec_of(manifest, self._metadata)  # whose error names the manifest
        columns = read_each_columns(self._io, chosen, self._metadata.spec_by_id, cache=self._cache)
        return self._counted([self._live(each) for each in columns])

    def after(self, earlier: pa.Table, base_id: int, snapshot: Snapshot) -> pa.Table | None:
        """Return the counts of a snapshot, from those of an ancestor and later changes.

        None if only a count of all files can tell: a file that was the newest of its partition is
        gone, or manifests do not state all that changed.
        """
        parts = [self._with_order(earlier)]
        manifests = read_manifests(self._io, snapshot)
        ancestors = ancestors_of(self._metadata, snapshot.snapshot_id)
        for later in takewhile(lambda one: one.snapshot_id != base_id, ancestors):
            is_newest = later.snapshot_id == snapshot.snapshot_id
            for manifest in manifests if is_newest else read_manifests(self._io, later):
                if manifest.added_snapshot_id is None:
                    return None
                if manifest.added_snapshot_id == later.snapshot_id:
                    changed = self._changed(manifest)
                    if changed is None:
                        return None
                    parts.append(changed)
        result = self._grouped(pa.concat_tables(parts))
        if self._is_doubtful(result):
            return None
        return self.checked(result, manifests)

    def checked(self, counts: pa.Table, manifests: Sequence[ManifestFile]) -> pa.Table | None:
        """Return the counts of partitions that have files, if the manifests state as many."""
        counted = self.with_files(counts)
        return counted if _agrees(counted, manifests) else None

    def known_updates(self, counts: pa.Table) -> pa.Table | None:
        """Return earlier counts as they are now, without updates by expired snapshots.

        None if the newest file of a partition may be that of an older snapshot that is left.
        """
        positions = self._positions_of(counts.column(UPDATED_BY))
        expired = pc.and_(pc.is_null(positions), pc.is_valid(counts.column(UPDATED_AT)))
        latest = pc.max(counts.column(UPDATED_AT).filter(expired)).as_py()
        if latest is not None and self._first_time <= latest:
            return None
        for name in (UPDATED_AT, UPDATED_BY):
            column = pc.if_else(expired, pa.scalar(None, pa.int64()), counts.column(name))
            counts = counts.set_column(counts.column_names.index(name), name, column)
        return counts

    def only_added(self, counts: pa.Table) -> bool:
        """Return whether the updates of partitions are additions, if they may also be deletions.

        Certain are snapshots that removed no file, and those that alone are of their time.
        """
        snapshots = lazily(self._metadata.snapshots, Snapshot.from_json)
        times = Counter(snapshots.members("timestamp-ms"))
        named = pc.unique(counts.column(UPDATED_BY)).to_pylist()
        found = (self._metadata.snapshot_by_id(n) for n in named if n is not None)
        return all(
            one is None or (_removes_nothing(one) and times[one.timestamp_ms] == 1) for one in found
        )

    def over_specs(self, counts: pa.Table) -> pa.Table:
        """Return counts by partition alone, with the spec of the file that was added last."""
        everywhere = pa.repeat(pa.scalar(0, pa.int8()), len(counts))
        ordered = self._with_order(counts).append_column("everywhere", everywhere)
        return _grouped(ordered, [*self.keys, "everywhere"], (SPEC_ID, UPDATED_AT, UPDATED_BY))

    @property
    def has_doubts(self) -> bool:
        """Whether ids of partition columns were reused, so that counts depend on the schema."""
        return bool(ColumnDoubts(self._metadata, self._metadata.schema()).ids)

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {number: at for at, number in enumerate(self._metadata.snapshot_ids())}

    @cached_property
    def _first_time(self) -> int:
        snapshots = lazily(self._metadata.snapshots, Snapshot.from_json)
        return min(map(int, snapshots.members("timestamp-ms")))

    def _live(self, columns: ManifestColumns) -> pa.Table:
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(columns))
        return self._grouped(self._entries(columns, ones).filter(columns.live))

    def _changed(self, manifest: ManifestFile) -> pa.Table | None:
        """Return what a manifest says that its snapshot changed; None if it is not that alone."""
        columns = self._read(manifest)
        status = columns.column("status")
        added = pc.equal(status, ManifestEntryStatus.ADDED.value)
        deleted = pc.invert(columns.live)
        own = pc.or_(added, deleted)
        by_itself = pc.equal(columns.column("snapshot_id"), manifest.added_snapshot_id)
        if not pc.all(by_itself.filter(own)).as_py() and pc.any(own).as_py():
            return None
        signs = pc.if_else(added, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        table = self._entries(columns, signs)
        for name in (UPDATED_AT, UPDATED_BY, _POSITION):
            column = pc.if_else(added, table.column(name), pa.scalar(None, pa.int64()))
            table = table.set_column(table.column_names.index(name), name, column)
        # a file without a number may be the newest
        number = pc.fill_null(columns.column("file_sequence_number"), (1 << 63) - 1)
        removed = pc.if_else(deleted, number, pa.scalar(_NEVER, pa.int64()))
        table = table.set_column(table.column_names.index(_REMOVED), _REMOVED, removed)
        return self._grouped(table.filter(own))

    def _read(self, manifest: ManifestFile) -> ManifestColumns:
        spec = spec_of(manifest, self._metadata)
        return read_manifest_columns(self._io, manifest, (), spec=spec, cache=self._cache)

    def _entries(self, columns: ManifestColumns, signs: pa.Array) -> pa.Table:
        spec = spec_of(columns.manifest, self._metadata)
        doubted = ColumnDoubts(self._metadata, self._metadata.schema()).of(columns)
        partition = union_columns(columns, spec, self.union.fields, doubted)
        positions = self._positions_of(columns.column("snapshot_id"))
        table = {
            **{key: storage(array) for key, array in zip(self.keys, partition, strict=True)},
            SPEC_ID: pa.repeat(pa.scalar(spec.spec_id, pa.int32()), len(columns)),
            UPDATED_AT: self._times(positions),
            UPDATED_BY: pc.if_else(
                pc.is_valid(positions), columns.column("snapshot_id"), pa.scalar(None, pa.int64())
            ),
            _POSITION: positions,
            _REMOVED: pa.repeat(pa.scalar(_NEVER, pa.int64()), len(columns)),
        }
        nothing = pa.scalar(0, pa.int64())
        for name, (content, source) in COUNTS.items():
            counts = pc.equal(columns.column("content"), content.value)
            if content is _POSITIONS and source is None:
                is_vector = columns.vectors
                counts = pc.and_(counts, is_vector if name == "dv_count" else pc.invert(is_vector))
            values = signs if source is None else pc.multiply(columns.column(source), signs)
            table[name] = pc.if_else(counts, values, nothing)
        return pa.table(table)

    def _positions_of(self, snapshot_ids: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the positions of snapshots in the metadata; null for those that have expired."""
        if isinstance(snapshot_ids, pa.ChunkedArray):
            snapshot_ids = snapshot_ids.combine_chunks()
        encoded = snapshot_ids.dictionary_encode()
        known = [self._positions.get(number) for number in encoded.dictionary.to_pylist()]
        return pa.array(known, pa.int64()).take(encoded.indices)

    def _times(self, positions: pa.Array) -> pa.Array:
        encoded = positions.dictionary_encode()
        known = [self._metadata.snapshots[at].timestamp_ms for at in encoded.dictionary.to_pylist()]
        return pa.array(known, pa.int64()).take(encoded.indices)

    def _with_order(self, counts: pa.Table) -> pa.Table:
        never = pa.repeat(pa.scalar(_NEVER, pa.int64()), len(counts))
        positions = self._positions_of(counts.column(UPDATED_BY))
        return counts.append_column(_POSITION, positions).append_column(_REMOVED, never)

    def _grouped(self, files: pa.Table) -> pa.Table:
        latest = (UPDATED_AT, UPDATED_BY, _POSITION)
        found = _grouped(files, [*self.keys, SPEC_ID], latest)
        return found.select([*self.keys, SPEC_ID, *COUNTS, *latest, _REMOVED])

    def _counted(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Return the counts of partitions that have files, from parts."""
        if not parts:
            return self.nothing()
        found = parts[0] if len(parts) == 1 else self._grouped(pa.concat_tables(parts))
        return self.with_files(found)

    def with_files(self, counts: pa.Table) -> pa.Table:
        """Return the counts of the partitions that have files, without other columns."""
        names = [*self.keys, SPEC_ID, *COUNTS, UPDATED_AT, UPDATED_BY]
        files = [pc.not_equal(counts.column(name), 0) for name in FILE_COUNTS]
        return counts.select(names).filter(reduce(pc.or_, files))

    def nothing(self) -> pa.Table:
        """Return the counts of no partition."""
        from icecomb.format.spec.arrow_schema import type_to_pyarrow

        kinds = [type_to_pyarrow(field.field_type) for field in self.union.fields]
        numbers = [*COUNTS, UPDATED_AT, UPDATED_BY]
        fields = {
            **{key: _plain(kind) for key, kind in zip(self.keys, kinds, strict=True)},
            SPEC_ID: pa.int32(),
            **dict.fromkeys(numbers, pa.int64()),
        }
        return pa.schema(list(fields.items())).empty_table()

    def _is_doubtful(self, counts: pa.Table) -> bool:
        """Return whether the newest file of a partition may be among those removed."""
        removed = counts.column(_REMOVED).to_numpy()
        chosen = removed != _NEVER
        if not chosen.any():
            return False
        files = sum(counts.column(name).to_numpy()[chosen] for name in FILE_COUNTS)
        positions = counts.column(_POSITION).to_pylist()
        snapshots = self._metadata.snapshots
        for row, sequence, left in zip(chosen.nonzero()[0], removed[chosen], files, strict=True):
            at = positions[row]
            # of a partition without a known update, no file left has one either
            if left and at is not None and snapshots[at].sequence_number <= sequence:
                return True
        return False


def _removes_nothing(snapshot: Snapshot) -> bool:
    removed = (
        value for key, value in snapshot.summary.items() if key.startswith(("deleted-", "removed-"))
    )
    return snapshot.operation is not None and all(value == "0" for value in removed)


def _agrees(counts: pa.Table, manifests: Sequence[ManifestFile]) -> bool:
    """Return whether counts have as many files and rows as the manifests of a snapshot state."""
    if any((pc.min(counts.column(name)).as_py() or 0) < 0 for name in COUNTS):
        return False
    for content, (names, rows) in _TOTALS.items():
        chosen = [manifest for manifest in manifests if manifest.content is content]
        stated = [n for m in chosen for n in (m.added_files_count, m.existing_files_count)]
        stated_rows = [n for m in chosen for n in (m.added_rows_count, m.existing_rows_count)]
        if None in stated or sum(map(int, filter(None, stated))) != _sum(counts, names):
            return False
        if rows is not None and (
            None in stated_rows or sum(map(int, filter(None, stated_rows))) != _sum(counts, (rows,))
        ):
            return False
    return True


def _sum(counts: pa.Table, names: Iterable[str]) -> int:
    return sum(pc.sum(counts.column(name)).as_py() or 0 for name in names)


def _grouped(files: pa.Table, keys: Sequence[str], latest: Sequence[str]) -> pa.Table:
    """Return one row per key; the rows may have been grouped before."""
    # Files of expired snapshots come first, so that they are never the last of a partition.
    order = [(name, "ascending", "at_start") for name in (UPDATED_AT, _POSITION, SPEC_ID)]
    chosen = pc.sort_indices(files, sort_keys=order)
    groups = files.take(chosen).group_by(list(keys), use_threads=False)
    wanted = [(name, "sum") for name in COUNTS]
    wanted += [(_REMOVED, "max"), *((name, "last") for name in latest)]
    result = groups.aggregate(wanted)
    names = {f"{name}_{how}": name for name, how in wanted}
    return result.rename_columns([names.get(name, name) for name in result.column_names])


def storage(array: pa.Array) -> pa.Array:
    """Return the plain values of an array, as grouping does not support extension types."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def of_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return the values of a column of counts in a column's type."""
    array = column.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array)
    return array.cast(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
