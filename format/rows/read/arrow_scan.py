"""Reading of scan tasks as Arrow data: projected by field id, deletes and filters applied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.batch_stream import filtered, in_order, stream
from icecomb.format.arrow.number_view import mask_of
from icecomb.format.errors import CorruptFileError
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.expression import AlwaysFalse, AlwaysTrue, BooleanExpression
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.rows.deletes.equality_delete import (
    ColumnPlaces,
    EqualityKeys,
    Keys,
    KeySource,
)
from icecomb.format.rows.deletes.position_delete import PositionDeletes, Positions, live_mask
from icecomb.format.rows.parquet.batch_limit import BATCH_BYTES
from icecomb.format.rows.read.data_file import open_data_file
from icecomb.format.rows.read.data_file_reader import DataFileReader
from icecomb.format.rows.read.row_filter import may_match, row_mask
from icecomb.format.rows.values.arrow_projection import FileField, Projection
from icecomb.format.rows.values.metadata_columns import (
    FILE_PATH,
    IS_DELETED,
    LAST_UPDATED,
    LINEAGE_IDS,
    PARTITION,
    ROW_ID,
    SPEC_ID,
    partition_value,
)
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.arrow_schema import child_fields, schema_to_pyarrow
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import NANO_TYPES, NestedField, StructType
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    from icecomb.format.rows.values.scan_task import FileScanTask

BATCH_ROWS = 1 << 17
_TABLE_BATCH_ROWS = 1 << 20
"""Tables, which are held in memory whole, are read in fewer, larger batches."""
_MOST_BYTES = 1 << 62
_CHOOSERS = 2
"""Threads that choose the rows of a batch while the next one is decoded."""
LARGE_BATCH = 1 << 14
"""The number of rows that are worth handing over to another thread."""
_WORKERS = 8
"""The default number of tasks read in parallel; of local files at most one per processor."""
_NOT_ASCII = 0x80


class ArrowScan:
    """A reader of the tasks of one scan.

    Args:
        projected_schema: The columns to return; metadata columns by their reserved ids.
        ordered: Whether rows come in the order of the tasks.
        workers: The number of tasks to read in parallel; by default one per processor, at most
            eight, and eight for remote files, as most tasks then wait for the network.
        keys: The source of the keys that equality delete files delete; the files by default.
        schema: The schema with which the scan reads, the current one by default: it has the
            columns of filters and deletes.
    """

    def __init__(
        self,
        table_metadata: TableMetadata,
        io: FileIO,
        projected_schema: Schema,
        *,
        limit: int | None = None,
        ordered: bool = True,
        batch_size: int = BATCH_ROWS,
        workers: int | None = None,
        checksums: bool = False,
        keys: KeySource | None = None,
        schema: Schema | None = None,
    ) -> None:
        self._metadata = table_metadata
        self._schema = schema
        self._as_read = table_metadata
        if schema is not None and schema.schema_id != table_metadata.current_schema_id:
            self._as_read = replace(table_metadata, current_schema_id=schema.schema_id)
        self._io = io
        self._projected = projected_schema
        self._limit = limit
        self._ordered = ordered
        self._batch_size = batch_size
        self._asked_workers = workers
        self._workers = workers or min(_WORKERS, os.cpu_count() or 1)
        self._checksums = checksums
        self._name_mapping = table_metadata.name_mapping()
        self._ids = frozenset(projected_schema.field_ids)
        columns = self._as_read.schema().fields
        self._nanoseconds = [f.field_id for f in columns if isinstance(f.field_type, NANO_TYPES)]
        self._latest: tuple[tuple[FileField, ...], str, Projection] | None = None
        self._deletes = PositionDeletes(io)
        self._equality_deletes: KeySource = keys or EqualityKeys(io, self._as_read)
        places = [f.field_id for f in projected_schema.fields]
        self._flag = places.index(IS_DELETED.field_id) if IS_DELETED.field_id in places else None
        self._with_partition = PARTITION.field_id in places

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return schema_to_pyarrow(self._projected, include_field_ids=False)

    def to_table(self, tasks: Iterable[FileScanTask]) -> pa.Table:
        """Read all rows into one table."""
        rows = self._batch_size
        # pyarrow cannot read nested values in one piece beyond 2 GiB.
        if self._limit is None and not any(f.type.num_fields for f in self.schema):
            rows = max(rows, _TABLE_BATCH_ROWS)
        # All rows are held in memory anyway, so tasks need not wait: decode them in parallel.
        batches = self._batches(tasks, rows, use_threads=self._workers == 1, depth=0)
        return pa.Table.from_batches(list(batches), self.schema)

    def to_record_batches(self, tasks: Iterable[FileScanTask]) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch; only the batches in flight are held in memory."""
        # In order, a task that is ahead soon waits: decode columns in parallel instead.
        return self._batches(tasks, self._batch_size, use_threads=self._ordered)

    def to_reader(self, tasks: Iterable[FileScanTask]) -> pa.RecordBatchReader:
        """Return the rows as a stream for other Arrow libraries."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_record_batches(tasks))

    def count(self, tasks: Iterable[FileScanTask]) -> int:
        """Count the rows; open data files only where a filter must be applied to rows."""
        total = 0
        unknown = []
        for task in tasks:
            known = self._known_count(task)
            if known is None:
                unknown.append(task)
            else:
                total += known
        if unknown:
            counting = ArrowScan(
                self._metadata,
                self._io,
                Schema() if self._flag is None else Schema((IS_DELETED,)),
                ordered=False,
                workers=self._asked_workers,
                schema=self._schema,
            )
            total += sum(b.num_rows for b in counting.to_record_batches(unknown))
        return total if self._limit is None else min(total, self._limit)

    def read(
        self, task: FileScanTask, *, use_threads: bool = True, batch_size: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task in the order of its file."""
        positional, equal = _by_content(task.delete_files)
        deleted = self._deletes.of(task.file, positional)
        keys = self._equality_deletes.of(equal)
        if isinstance(task.residual, AlwaysFalse):
            return
        reader = open_data_file(
            self._io,
            task.file,
            self._name_mapping,
            checksums=self._checksums,
            nanoseconds=self._nanoseconds,
        )
        try:
            rows = batch_size or self._batch_size
            parts = partial(reader.batches, use_threads=use_threads)
            # a decoding error comes before rows that would have been enough for a limit
            ahead = use_threads and self._limit is None and _is_long(task, rows)
            yield from self._rows(
                task, reader, deleted, keys, parts=parts, batch_size=rows, ahead=ahead
            )
        finally:
            reader.close()

    def _rows(
        self,
        task: FileScanTask,
        reader: DataFileReader,
        deleted: Positions | None,
        keys: Sequence[Keys],
        *,
        parts: Callable[..., Iterator[tuple[int, pa.RecordBatch]]],
        batch_size: int,
        ahead: bool,
    ) -> Iterator[pa.RecordBatch]:
        residual, constants = task.residual, file_constants(task.file, task.spec)
        if self._flag is not None:
            constants[IS_DELETED.field_id] = False
        if self._with_partition:
            kind = self._projected.find_type(PARTITION.field_id)
            assert isinstance(kind, StructType)  # noqa: S101 - so `metadata_column` makes it
            value = partition_value(task.spec, task.file.partition, self._metadata, kind)
            constants[PARTITION.field_id] = value
        asked = ColumnPlaces(
            [*bound_references(residual), *(i for k in keys for i in k.field_ids)],
            self._projected.fields,
            self._as_read,
        )
        projection = self._projection(reader, constants, asked.extra)
        row_groups = reader.row_groups(task.start, _range(task))
        selective = not isinstance(residual, AlwaysTrue)
        if selective:
            row_groups = _matching(row_groups, residual, reader, constants, task.file)
        width = len(self._projected.fields)

        def chosen(part: tuple[int, pa.RecordBatch]) -> pa.RecordBatch:
            position, raw = part
            rows = raw.num_rows
            check_text(raw, reader.location)
            batch = projection.apply(raw, position)
            arrays = asked.arrays(batch) if keys or selective else {}
            live = _live(deleted, keys, arrays, position, rows)
            keep = row_mask(residual, arrays, rows) if selective else None
            if self._flag is not None:
                if live is not None:
                    batch = batch.set_column(
                        self._flag, projection.schema.field(self._flag), pc.invert(live)
                    )
            elif live is not None:
                keep = live if keep is None else pc.and_(keep, live)
            if asked.extra:
                batch = batch.select(range(width))
            return batch if keep is None else filtered(batch, keep)

        # one long value in metadata is a value of each row
        most = max(BATCH_BYTES // max(projection.constant_bytes, 1), 1)
        found = parts(projection.leaves, row_groups, batch_size=min(batch_size, most))
        chooses = selective or bool(keys) or deleted is not None
        for batch in in_order(chosen, found, _CHOOSERS if ahead and chooses else 1):
            if batch.num_rows:
                yield batch

    def _projection(
        self, reader: DataFileReader, constants: dict[int, Any], extra: Sequence[NestedField]
    ) -> Projection:
        """Return the projection of a file's batches, reusing the previous file's if possible."""
        if extra:
            return Projection((*self._projected.fields, *extra), reader.fields, constants)
        used = {i: value for i, value in constants.items() if i in self._ids}
        # text distinguishes 0.0 from -0.0
        text = repr({i: _encoded(value) for i, value in used.items()})
        fields, same, projection = self._latest or ((), None, None)
        if projection is None or fields is not reader.fields or same != text:
            projection = Projection(self._projected.fields, reader.fields, used)
            self._latest = (reader.fields, text, projection)
        return projection

    def _batches(
        self, tasks: Iterable[FileScanTask], rows: int, *, use_threads: bool, depth: int = 2
    ) -> Iterator[pa.RecordBatch]:
        read = partial(self.read, use_threads=use_threads, batch_size=rows)
        waiting = iter(tasks)
        first = list(islice(waiting, 1))
        producers = (partial(read, task) for task in chain(first, waiting))
        workers = self._workers
        # a limit is mostly reached in the first files: others would be opened in vain
        if self._asked_workers is None and self._limit is None:
            storages = (self._io.served_by(task.file.file_path) for task in first)
            far = any(storage.has_slow_requests for storage in storages)
            workers = _WORKERS if far else workers
        batches = stream(producers, workers, ordered=self._ordered, depth=depth)
        try:
            yield from batches if self._limit is None else _limited(batches, self._limit)
        finally:
            batches.close()  # type: ignore[attr-defined]  # stream is a generator

    def _known_count(self, task: FileScanTask) -> int | None:
        if isinstance(task.residual, AlwaysFalse):
            return 0
        if task.file.record_count < 0:  # unknown to its writer
            return None
        whole = task.start == 0 and task.length >= task.file.file_size_in_bytes
        if not isinstance(task.residual, AlwaysTrue) or not whole:
            return None
        if self._flag is not None:
            return task.file.record_count
        positional, equal = _by_content(task.delete_files)
        if equal:
            return None
        deleted = self._deletes.of(task.file, positional)
        if deleted is None:
            return task.file.record_count
        return task.file.record_count - int(np.searchsorted(deleted, task.file.record_count))


def _range(task: FileScanTask) -> int:
    """Return the length of a task's part, unbounded where it extends to the file's stated end.

    A manifest may state too small a size, which must not hide rows.
    """
    to_the_end = task.start + task.length >= task.file.file_size_in_bytes
    return _MOST_BYTES if to_the_end else task.length


def read_task(
    task: FileScanTask, table_metadata: TableMetadata, projected_schema: Schema, io: FileIO
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one task in the calling thread."""
    return ArrowScan(table_metadata, io, projected_schema, workers=1).read(task)


def file_constants(file: DataFile, spec: PartitionSpec) -> dict[int, Any]:
    """Return the values by field id that hold for every row of a file.

    Identity partition values take precedence over the file's, as in Iceberg Java: files of migrated
    Hive tables do not have these columns. This includes dropped columns: earlier snapshots still
    have them, and equality deletes may compare them.
    """
    constants: dict[int, Any] = {
        FILE_PATH.field_id: file.file_path,
        SPEC_ID.field_id: spec.spec_id,
        ROW_ID.field_id: file.first_row_id,
        # without ids, rows have no lineage at all
        LAST_UPDATED.field_id: None if file.first_row_id is None else file.sequence_number,
    }
    for field, value in zip(spec.fields, file.partition, strict=True):
        if isinstance(field.transform, IdentityTransform):
            constants[field.source_id] = value
    return constants


def _encoded(value: Any) -> Any:
    """Return an Arrow scalar as bytes: Python does not have all dates and times."""
    if not isinstance(value, pa.Scalar):
        return value
    batch = pa.RecordBatch.from_arrays([pa.repeat(value, 1)], [""])
    return batch.serialize().to_pybytes()


def check_text(batch: pa.RecordBatch, location: str) -> None:
    """Reject text that is not UTF-8, as readers of Parquet and ORC accept any bytes."""
    for number, field in enumerate(batch.schema):
        if _has_text(field.type) and not _is_ascii(array := batch.column(number)):
            try:
                array.validate(full=True)
            except pa.ArrowInvalid as problem:
                raise CorruptFileError(
                    f"Cannot read data file {location}, column {field.name!r}: {problem}",
                    hint="Its writer used another encoding: rewrite it, or read other columns.",
                    path=location,
                    column=field.name,
                ) from problem


def _is_ascii(array: pa.Array) -> bool:
    """Return whether all bytes are ASCII, a test ten times as fast as that for UTF-8."""
    if not pa.types.is_string(array.type):
        return False
    _, places, content = array.buffers()
    if not content:
        return True
    offsets = np.frombuffer(places, np.int32)[array.offset : array.offset + len(array) + 1]
    used = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    return bool(used.max(initial=0) < _NOT_ASCII)


def _has_text(kind: pa.DataType) -> bool:
    if not kind.num_fields:
        return bool(pa.types.is_string(kind))
    return any(_has_text(f.type) for f in child_fields(kind))


def _by_content(files: Iterable[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    """Separate position delete files from equality delete files."""
    positional: list[DataFile] = []
    equal: list[DataFile] = []
    for file in files:
        (equal if file.content is DataFileContent.EQUALITY_DELETES else positional).append(file)
    return positional, equal


def _is_long(task: FileScanTask, batch_rows: int) -> bool:
    return batch_rows >= LARGE_BATCH and task.file.record_count > 2 * batch_rows


def _live(
    deleted: Positions | None,
    keys: Sequence[Keys],
    arrays: Mapping[int, pa.Array],
    position: int,
    rows: int,
) -> pa.BooleanArray | None:
    """Return a mask of the rows of a batch that are not deleted; None when all are live."""
    mask = None if deleted is None else live_mask(deleted, position, rows)
    live = None if mask is None else mask_of(mask)
    for key_set in keys:
        other = pc.invert(key_set.contains(arrays))
        live = other if live is None else pc.and_(live, other)
    return live


def _matching(
    row_groups: Sequence[int],
    residual: BooleanExpression,
    reader: DataFileReader,
    constants: dict[int, Any],
    file: DataFile,
) -> list[int]:
    lineage = {
        field_id: _lineage_statistics(field_id, reader, constants[field_id], file.record_count)
        for field_id in bound_references(residual)
        if field_id in LINEAGE_IDS
    }
    readers = {
        field_id: reader.statistics(field_id, term.field_type)
        for field_id, term in bound_references(residual).items()
        if field_id not in constants
    }

    def known(group: int) -> Callable[[int], ChunkStatistics | None]:
        def statistics(field_id: int) -> ChunkStatistics | None:
            if field_id in lineage:
                return lineage[field_id]
            chunk = readers.get(field_id)
            return None if chunk is None else chunk(group)

        return statistics

    return [g for g in row_groups if may_match(residual, known(g))]


def _lineage_statistics(
    field_id: int, reader: DataFileReader, inherited: int | None, rows: int
) -> ChunkStatistics | None:
    """Return the statistics of a row lineage column that all rows inherit.

    None if the file has the column: its rows inherit where it is null.
    """
    if rows < 0:  # unknown to its writer
        return None
    if inherited is None:
        return ChunkStatistics(rows, rows)
    if any(f.field_id == field_id for f in reader.fields):
        return None
    last = inherited + rows - 1 if field_id == ROW_ID.field_id else inherited
    return ChunkStatistics(rows, 0, inherited, last)


def _limited(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    if left <= 0:
        return
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return
