"""The metadata table `partitions`, with the counts for each partition of a snapshot in any spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.inspect.manifest_choice import choose_manifests, spec_of
from icecomb.format.inspect.metadata_schema import PARTITION, partitions_schema
from icecomb.format.inspect.metadata_table import BatchRows, Part, Request, Rows, number_array
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import DataFileContent, ManifestFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest_columns
from icecomb.format.rows.values.partition_union import partition_union, union_columns
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.storage.file_io import FileIO

_SUMS: Final = {
    "record_count": (DataFileContent.DATA, "record_count"),
    "file_count": (DataFileContent.DATA, None),
    "total_data_file_size_in_bytes": (DataFileContent.DATA, "file_size_in_bytes"),
    "position_delete_record_count": (DataFileContent.POSITION_DELETES, "record_count"),
    "position_delete_file_count": (DataFileContent.POSITION_DELETES, None),
    "equality_delete_record_count": (DataFileContent.EQUALITY_DELETES, "record_count"),
    "equality_delete_file_count": (DataFileContent.EQUALITY_DELETES, None),
}
"""The counts of a partition: which files count, and by which of their columns (None: one each)."""
_LATEST: Final = ("spec_id", "last_updated_at", "last_updated_snapshot_id")
_EVERYWHERE: Final = "everywhere"
_MICROS: Final = 1000


@dataclass(frozen=True)
class PartitionsTable:
    """The partitions of a snapshot.

    If specs share a partition, the row names the spec of the file that was added last.

    Args:
        metadata: The table metadata.
        io: File system that holds the table.
        snapshots: The snapshot; empty if there is none.
    """

    metadata: TableMetadata
    io: FileIO
    snapshots: Sequence[Snapshot]

    @cached_property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return partitions_schema(self.metadata)

    def parts(self, request: Request) -> Iterator[Part]:
        """Yield a single part, as a partition's files may be in any manifest."""
        yield lambda: self._rows(request)

    def _rows(self, request: Request) -> Iterator[Rows]:
        union = partition_union(self.metadata)
        keys = [f"key{field.field_id}" for field in union.fields]
        ids = {field.field_id: field.field_id for field in union.fields}
        found = []
        for snapshot in self.snapshots:
            manifests = [m for m in read_manifests(self.io, snapshot) if m.has_live_files()]
            for manifest in choose_manifests(
                manifests, request.row_filter, self.metadata, ids, only_partitions=True
            ):
                files = self._files(manifest, keys)
                if files.num_rows:
                    found.append(_grouped(files, keys))
        if found:
            yield self._result(_grouped(pa.concat_tables(found), keys), keys)

    def _files(self, manifest: ManifestFile, keys: Sequence[str]) -> pa.Table:
        spec = spec_of(manifest, self.metadata)
        columns = read_manifest_columns(self.io, manifest, (), spec=spec)
        updated, snapshot_ids = self._updates(columns)
        doubted = ColumnDoubts(self.metadata, self.metadata.schema()).of(columns)
        partition = union_columns(columns, spec, partition_union(self.metadata).fields, doubted)
        table = {
            **{key: _storage(array) for key, array in zip(keys, partition, strict=True)},
            _EVERYWHERE: pa.repeat(pa.scalar(0, pa.int8()), len(columns)),
            "spec_id": pa.repeat(pa.scalar(spec.spec_id, pa.int32()), len(columns)),
            "last_updated_at": updated,
            "last_updated_snapshot_id": snapshot_ids,
        }
        one = pa.repeat(pa.scalar(1, pa.int64()), len(columns))
        nothing = pa.scalar(0, pa.int64())
        for name, (content, source) in _SUMS.items():
            counts = pc.equal(columns.column("content"), content.value)
            values = one if source is None else columns.column(source)
            table[name] = pc.if_else(counts, values, nothing)
        return pa.table(table).filter(columns.live)

    def _updates(self, columns: ManifestColumns) -> tuple[pa.Array, pa.Array]:
        """Return when and by which snapshot each file was added; null if that has expired."""
        encoded = columns.column("snapshot_id").dictionary_encode()
        known = [
            None if number is None else self.metadata.snapshot_by_id(number)
            for number in encoded.dictionary.to_pylist()
        ]
        times = [None if s is None else s.timestamp_ms * _MICROS for s in known]
        ids = [None if s is None else s.snapshot_id for s in known]
        return (
            number_array("last_updated_at", times, pa.int64()).take(encoded.indices),
            pa.array(ids, pa.int64()).take(encoded.indices),
        )

    def _result(self, groups: pa.Table, keys: Sequence[str]) -> Rows:
        arrow = schema_to_pyarrow(self.schema)
        arrays = []
        for field in arrow:
            if field.name == PARTITION:
                children = [
                    _of_type(groups.column(key), child.type)
                    for key, child in zip(keys, field.type, strict=True)
                ]
                arrays.append(pa.StructArray.from_arrays(children, fields=list(field.type)))
            else:
                arrays.append(_of_type(groups.column(field.name), field.type))
        return BatchRows(self.schema, pa.RecordBatch.from_arrays(arrays, schema=arrow))


def _grouped(files: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row per partition; the rows may have been grouped before."""
    # Files of expired snapshots come first, so that they are never the last of a partition.
    order = pc.sort_indices(files, sort_keys=[("last_updated_at", "ascending", "at_start")])
    groups = files.take(order).group_by([*keys, _EVERYWHERE], use_threads=False)
    wanted = [(name, "sum") for name in _SUMS] + [(name, "last") for name in _LATEST]
    result = groups.aggregate(wanted)
    names = {f"{name}_{how}": name for name, how in wanted}
    return result.rename_columns([names.get(name, name) for name in result.column_names])


def _storage(array: pa.Array) -> pa.Array:
    # Grouping does not support extension types.
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _of_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = column.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array)
    return array.cast(kind)
