"""Files of partition statistics: columns, writing, reading (spec: Partition Statistics File)."""

from __future__ import annotations

import io as streams
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import UNREADABLE, CorruptFileError, UnsupportedError
from icecomb.format.input_limit import UNPACKED, unpacked_bytes
from icecomb.format.inspect.partition_statistics import (
    COUNTS,
    SPEC_ID,
    UPDATED_AT,
    UPDATED_BY,
    PartitionCounter,
    of_type,
    storage,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.rows.avro.reader import AvroReader
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.parquet.writer import ParquetFileWriter, ParquetOptions
from icecomb.format.rows.values.arrow_projection import Projection
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.partition_writer import StoredColumns
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.metadata_file import metadata_folder
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import ancestors_of
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StructType
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.own_folders import OwnFolders
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_LOG: Final = logging.getLogger(__name__)
PARTITION: Final = "partition"
_PARTITION_ID: Final = 1
_VECTORS: Final = NestedField(
    13, "dv_count", IntegerType(), required=True, initial_default=0, write_default=0
)
_UPDATE_KEY: Final = "icecomb.last-updated"
_OF_LIVE_FILES: Final = "newest-live-file"
_BATCH_ROWS: Final = 1 << 20
_COUNTED_BYTES: Final = 1 << 8
"""About the memory of a partition while its counts are added to others."""


def statistics_schema(metadata: TableMetadata) -> Schema:
    """Return the columns of the table's new partition statistics files, by its format version."""
    return _schema(partition_union(metadata), metadata.format_version)


def write_statistics(
    io: FileIO,
    metadata: TableMetadata,
    snapshot_id: int,
    counter: PartitionCounter,
    counts: pa.Table,
) -> dict[str, Any]:
    """Write partition statistics, sorted, nulls first; return the file as metadata names it."""
    rows = _in_order(counter, counts)
    columns = StoredColumns(statistics_schema(metadata))
    batch = _batch(counter, counts.take(rows), statistics_schema(metadata))
    settings = FileSettings(columns.schema, ParquetOptions(), MetricsConfig())
    stream = streams.BytesIO()
    writer = ParquetFileWriter(stream, settings, ParquetOptions(), {_UPDATE_KEY: _OF_LIVE_FILES})
    writer.write([columns.of(batch)])
    writer.close()
    content = stream.getvalue()
    name = f"partition-stats-{snapshot_id}-{uuid.uuid4()}.parquet"
    location = f"{metadata_folder(metadata)}/{name}"
    io.create(location, content)
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": location,
        "file-size-in-bytes": len(content),
    }


@dataclass(frozen=True, slots=True)
class StatedPartitions:
    """The content of a file of partition statistics.

    Attributes:
        counts: See `PartitionCounter`; also of partitions without files. Fields of the
            partition that the file lacks are null.
        has_live_updates: Whether the update of a partition is that of its newest live file; it
            may be a deletion if not.
    """

    counts: pa.Table
    fields: frozenset[int]
    has_live_updates: bool


def read_statistics(
    counter: PartitionCounter, io: FileIO, file: Mapping[str, Any]
) -> StatedPartitions:
    """Read a file of partition statistics, of any writer, in Parquet or Avro."""
    location, stated = str(file["statistics-path"]), file.get("file-size-in-bytes")
    size = stated if isinstance(stated, int) else None
    reader: ParquetReader | AvroReader
    if location.endswith(".parquet"):
        reader = ParquetReader(io, location, size=size)
        notes = reader.notes
    elif location.endswith(".avro"):
        reader, notes = AvroReader(io, location, size=size), {}
    else:
        raise UnsupportedError(
            f"Partition statistics {location} are neither Parquet nor Avro",
            hint="Compute them again, for a newer snapshot.",
            path=location,
        )
    try:
        # older files may lack what only format version 3 requires
        fields = (*_schema(counter.union, 2).fields, _VECTORS)
        projection = Projection(fields, reader.fields, {})
        batches, taken = [], 0
        for position, batch in reader.batches(projection.leaves, reader.row_groups(), _BATCH_ROWS):
            batches.append(projection.apply(batch, position))
            taken += batches[-1].nbytes + batch.num_rows * _COUNTED_BYTES
            if taken > unpacked_bytes():  # equal rows may take no bytes in the file
                raise CorruptFileError(
                    f"Partition statistics {location} take more memory than the limit ({UNPACKED})",
                    hint="If the file is sound, set that environment variable to more MiB.",
                    path=location,
                )
        found = next(f for f in reader.fields if f.field_id == _PARTITION_ID)
    finally:
        reader.close()
    return StatedPartitions(
        _counts(counter, pa.Table.from_batches(batches, projection.schema)),
        frozenset(f.field_id for f in found.children if f.field_id is not None),
        notes.get(_UPDATE_KEY) == _OF_LIVE_FILES,
    )


def _counts(counter: PartitionCounter, rows: pa.Table) -> pa.Table:
    partition = pa.concat_arrays(
        [pa.nulls(0, rows.schema.field(PARTITION).type), *rows.column(PARTITION).chunks]
    )
    columns = dict(zip(counter.keys, map(storage, partition.flatten()), strict=True))
    columns[SPEC_ID] = rows.column(SPEC_ID)
    for name in (*COUNTS, UPDATED_AT, UPDATED_BY):
        column = rows.column(name).cast(pa.int64())
        columns[name] = pc.fill_null(column, 0) if name in COUNTS else column
    return pa.table(columns)


def readable_file(
    counter: PartitionCounter,
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    own: OwnFolders,
) -> str | None:
    """Return the location of a snapshot's own statistics file, if it can be read."""
    file = _file_of(metadata, snapshot)
    if file is None:
        return None
    location = str(file["statistics-path"])
    if own.outside([location]):
        _LOG.warning("Partition statistics %s are outside of the table's folders", location)
        return None
    return None if _read(counter, io.to_copy(), file, location) is None else location


def stated_counts(
    counter: PartitionCounter, io: FileIO, metadata: TableMetadata, snapshot: Snapshot
) -> pa.Table | None:
    """Return what a snapshot's statistics file states, as a count of all files would be now.

    None if `stated_partitions` returns None, or if the file is of another writer and updates in it
    may be deletions, or if updates are no longer known.
    """
    read = stated_partitions(counter, io, metadata, snapshot)
    if read is None or not (read.has_live_updates or counter.only_added(read.counts)):
        return None
    return counter.known_updates(read.counts)


def stated_partitions(
    counter: PartitionCounter,
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
) -> StatedPartitions | None:
    """Return the statistics file, of any writer, of a snapshot, with partitions that have files.

    None if it has no such file or the file cannot be read; if the table changed in a way that makes
    it useless; or if the manifests state another number of files or rows.
    """
    file = _file_of(metadata, snapshot)
    by = snapshot.manifest_list or metadata.location
    read = None if file is None or counter.has_doubts else _read(counter, io, file, by)
    if read is None:
        return None
    counts = counter.with_files(read.counts)
    specs = metadata.specs()
    used = [specs.get(number) for number in pc.unique(counts.column(SPEC_ID)).to_pylist()]
    needed = {field.field_id for spec in used if spec is not None for field in spec.fields}
    if None in used or not needed & {f.field_id for f in counter.union.fields} <= read.fields:
        return None
    checked = counter.checked(counts, read_manifests(io, snapshot))
    return None if checked is None else replace(read, counts=checked)


def count_partitions(
    counter: PartitionCounter,
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    own: OwnFolders,
) -> pa.Table:
    """Return the counts of a snapshot, from its ancestors' latest statistics if these are `own`."""
    for ancestor in ancestors_of(metadata, snapshot.snapshot_id):
        file = _file_of(metadata, ancestor)
        if file is not None:
            if own.outside([str(file["statistics-path"])]):
                break  # what a stranger's file states would become the table's own statistics
            base = stated_counts(counter, io.to_copy(), metadata, ancestor)
            later = None if base is None else counter.after(base, ancestor.snapshot_id, snapshot)
            if later is not None:
                return later
            break
    return counter.of_manifests(read_manifests(io, snapshot))


def _file_of(metadata: TableMetadata, snapshot: Snapshot) -> Mapping[str, Any] | None:
    files = metadata.partition_statistics
    found = [file for file in files if file.get("snapshot-id") == snapshot.snapshot_id]
    return found[-1] if found and "statistics-path" in found[-1] else None


def _read(
    counter: PartitionCounter, io: FileIO, file: Mapping[str, Any], by: str
) -> StatedPartitions | None:
    """Read a file that a file beside `by` names; None if it cannot be: nothing depends on it."""
    try:
        check_local_names(io, by, [str(file["statistics-path"])])
        return read_statistics(counter, io, file)
    except UNREADABLE as problem:
        _LOG.warning("Partition statistics are not used: %s", problem)
        return None


def _in_order(counter: PartitionCounter, counts: pa.Table) -> pa.Array:
    """Return the indices of rows in the order of partitions and specs: nulls first, NaN last."""
    order: list[str] = []
    for key in counter.keys:
        kind = counts.schema.field(key).type
        if pa.types.is_floating(kind):
            order.append(f"nan{key}")
            counts = counts.append_column(order[-1], pc.is_nan(counts.column(key)))
        if not pa.types.is_null(kind):
            order.append(key)
    keys = [(name, "ascending", "at_start") for name in (*order, SPEC_ID)]
    return pc.sort_indices(counts, sort_keys=keys)


def _batch(counter: PartitionCounter, counts: pa.Table, schema: Schema) -> pa.RecordBatch:
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    arrays = []
    for field in arrow:
        if field.name == PARTITION:
            children = [
                of_type(counts.column(key), child.type)
                for key, child in zip(counter.keys, field.type, strict=True)
            ]
            arrays.append(pa.StructArray.from_arrays(children, fields=list(field.type)))
        elif field.name in counts.column_names:
            arrays.append(of_type(counts.column(field.name), field.type))
        else:
            # the exact number of rows would take reading equality deletes
            arrays.append(pa.nulls(len(counts), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def _schema(union: StructType, version: int) -> Schema:
    always = version >= 3
    return Schema(
        NestedField(_PARTITION_ID, PARTITION, union, required=True),
        NestedField(2, SPEC_ID, IntegerType(), required=True),
        NestedField(3, "data_record_count", LongType(), required=True),
        NestedField(4, "data_file_count", IntegerType(), required=True),
        NestedField(5, "total_data_file_size_in_bytes", LongType(), required=True),
        NestedField(6, "position_delete_record_count", LongType(), required=always),
        NestedField(7, "position_delete_file_count", IntegerType(), required=always),
        NestedField(8, "equality_delete_record_count", LongType(), required=always),
        NestedField(9, "equality_delete_file_count", IntegerType(), required=always),
        NestedField(10, "total_record_count", LongType()),
        NestedField(11, UPDATED_AT, LongType()),
        NestedField(12, UPDATED_BY, LongType()),
        *((_VECTORS,) if always else ()),
    )
