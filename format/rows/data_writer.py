"""Arrow data written as the data files of a table.

Rows are checked against the table first, split by its partition spec, and written to files of
about the table's target size. Memory is bounded whatever the length of the input. When anything
fails, every file of the attempt is removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from icecomb.format.errors import UnsupportedError
from icecomb.format.file_io import FileIO
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.metadata import TableMetadata
from icecomb.format.rows.arrow_projection import Projection, names_as_ids
from icecomb.format.rows.arrow_values import writing_cast
from icecomb.format.rows.data_metrics import MetricsConfig
from icecomb.format.rows.dictionary_choice import dictionary_columns
from icecomb.format.rows.frame_check import check_frame, check_required
from icecomb.format.rows.location_provider import load_location_provider
from icecomb.format.rows.parquet_writer import ParquetOptions, positive
from icecomb.format.rows.partition_split import PartitionSplit
from icecomb.format.rows.rolling_writer import FileSettings, OpenDataFile, RollingWriter
from icecomb.format.schema import Schema
from icecomb.format.types import NestedField

TARGET_FILE_BYTES = "write.target-file-size-bytes"
DEFAULT_FORMAT = "write.format.default"

_DEFAULT_TARGET = 512 << 20
_PIECE_ROWS = 1 << 18
_BUFFERED_BYTES = 256 << 20
_OPEN_FILES = 64


def write_data(
    io: FileIO,
    metadata: TableMetadata,
    data: pa.Table | pa.RecordBatchReader,
    *,
    operation_id: str | None = None,
) -> list[DataFile]:
    """Write rows as data files of a table; the caller commits them.

    Args:
        io: Where the files go.
        metadata: The table: its schema, partition spec and properties say how.
        data: The rows; columns go by name. A reader is consumed batch by batch.
        operation_id: The part of the file names that is common to one operation.

    Returns:
        The files, in no particular order; empty when there are no rows.

    Raises:
        SchemaError: The columns do not fit, or a value cannot be converted without loss.
        ValidationError: A required column holds a null.
        UnsupportedError: The table's default file format is not Parquet.
    """
    writer = DataWriter(io, metadata, operation_id or str(uuid.uuid4()))
    try:
        writer.write_all(data)
        return writer.close()
    except BaseException as problem:
        writer.abort(problem)
        raise


class DataWriter:
    """Writes batches into as many files as the table's partitioning and target size ask for.

    Args:
        io: Where the files go.
        metadata: The table.
        operation_id: The common part of the file names.
        task_id: The number of this writer among those of the operation.
    """

    def __init__(
        self, io: FileIO, metadata: TableMetadata, operation_id: str, task_id: int = 0
    ) -> None:
        self._io = io
        self._metadata = metadata
        self._schema = metadata.schema()
        self._spec = metadata.spec()
        self._table = FileSettings(
            self._schema,
            ParquetOptions.from_properties(metadata.properties),
            MetricsConfig.from_properties(metadata.properties, self._schema, metadata.sort_order()),
        )
        self._target = positive(metadata.properties, TARGET_FILE_BYTES, _DEFAULT_TARGET)
        self._locations = load_location_provider(metadata.location, metadata.properties)
        self._split = PartitionSplit(self._spec, self._schema)
        self._projections: dict[pa.Schema, Projection] = {}
        numbers = count(1)
        self._next_name: Callable[[], str] = lambda: (
            f"{0:05d}-{task_id}-{operation_id}-{next(numbers):05d}.parquet"
        )
        # In the order of last use, so that the first is the one to close when too many are open.
        self._partitions: dict[tuple[Any, ...], RollingWriter] = {}
        self._buffered = 0
        self._done: list[DataFile] = []

    def write_all(self, data: pa.Table | pa.RecordBatchReader) -> None:
        """Take over all rows; a reader is consumed batch by batch.

        Raises:
            SchemaError: The columns do not fit, or a value cannot be converted without loss.
            ValidationError: A required column holds a null.
            UnsupportedError: The table's default file format is not Parquet.
        """
        _check_format(self._metadata)
        check_frame(self._schema, data.schema)
        for batch in _pieces(data):
            self.write(batch)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take over the rows of a batch; its columns go by name.

        Raises:
            SchemaError: A value cannot be converted without loss.
            ValidationError: A required column holds a null.
            UnsupportedError: The table's default file format is not Parquet.
        """
        if not batch.num_rows:
            return
        fitted = self._projection(batch.schema).apply(batch, 0)
        check_required(self._schema, fitted)
        if self._table.dictionaries is None:
            limit = self._table.options.dictionary_bytes
            chosen = dictionary_columns(self._schema.fields, fitted, limit)
            self._table = replace(self._table, dictionaries=tuple(chosen))
        for partition, rows in self._split.split(fitted):
            writer = self._partitions.pop(partition, None)
            if writer is None:
                writer = RollingWriter(self._new_file(partition), self._table, self._target)
            self._partitions[partition] = writer
            self._buffered += writer.add(rows)
        self._keep_bounds()

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        for partition in list(self._partitions):
            self._finish(partition)
        return self._done

    def abort(self, problem: BaseException) -> None:
        """Remove every file of this writer, finished or not."""
        for writer in self._partitions.values():
            self._done += writer.abort(problem)
        self._partitions.clear()
        self._io.delete([f.file_path for f in self._done])
        self._done = []

    def _projection(self, schema: pa.Schema) -> Projection:
        found = self._projections.get(schema)
        if found is None:
            _check_format(self._metadata)
            found = self._projections[schema] = frame_projection(self._schema, schema)
        return found

    def _keep_bounds(self) -> None:
        while self._buffered > _BUFFERED_BYTES:
            largest = max(self._partitions.values(), key=lambda w: w.buffered)
            self._buffered -= largest.flush()
        while sum(w.is_open for w in self._partitions.values()) > _OPEN_FILES:
            oldest = next(p for p, w in self._partitions.items() if w.is_open)
            self._finish(oldest)

    def _finish(self, partition: tuple[Any, ...]) -> None:
        writer = self._partitions[partition]
        self._buffered -= writer.buffered
        self._done += writer.close()
        del self._partitions[partition]

    def _new_file(self, partition: tuple[Any, ...]) -> Callable[[], OpenDataFile]:
        path = self._spec.partition_to_path(partition, self._schema) if partition else None

        def create() -> OpenDataFile:
            location = self._locations.new_data_location(self._next_name(), path)
            return OpenDataFile(self._io, location, self._table, self._spec, partition)

        return create


def frame_projection(schema: Schema, frame: pa.Schema) -> Projection:
    """What turns batches of a frame into batches of a table's columns; names decide.

    Raises:
        SchemaError: The columns do not fit.
    """
    check_frame(schema, frame)
    fields = [_written_default(f) for f in schema.fields]
    return Projection(fields, names_as_ids(frame, fields), {}, writing_cast)


def _check_format(metadata: TableMetadata) -> None:
    chosen = metadata.properties.get(DEFAULT_FORMAT, "parquet").lower()
    if chosen != "parquet":
        raise UnsupportedError(
            f"{DEFAULT_FORMAT}={chosen}: only Parquet files can be written",
            hint=f"Set the table property {DEFAULT_FORMAT} to parquet.",
        )


def _pieces(data: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The data in batches of a size worth a call, neither copied nor split without need."""
    batches = data.to_batches(max_chunksize=_PIECE_ROWS) if isinstance(data, pa.Table) else data
    small: list[pa.RecordBatch] = []
    rows = 0
    for whole in batches:
        for start in range(0, whole.num_rows, _PIECE_ROWS):
            batch = whole.slice(start, _PIECE_ROWS)
            small.append(batch)
            rows += batch.num_rows
            if rows >= _PIECE_ROWS:
                yield _joined(small)
                small, rows = [], 0
    if small:
        yield _joined(small)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _written_default(field: NestedField) -> NestedField:
    """The field with what a missing column is written as where its projection looks for it."""
    return replace(field, initial_default=field.write_default)
