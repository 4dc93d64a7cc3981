"""Writing of Arrow data as data files of a table.

Rows are checked against the table, sorted by its sort order, split by its partition spec, and
written to files of about the table's target size. Memory is bounded whatever the length of the
input. When anything fails, every file of the attempt is removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from icecomb.format.arrow.hidden_null import without_hidden_nulls
from icecomb.format.arrow.plain_layout import plain_batch
from icecomb.format.arrow.row_stream import GivenRows
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.property.table_property import DATA_FORMAT, DISTRIBUTION_MODE, TARGET_FILE_BYTES
from icecomb.format.rows.values.arrow_projection import Projection, names_as_ids
from icecomb.format.rows.values.arrow_values import writing_cast
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.values.metadata_columns import with_lineage
from icecomb.format.rows.write.file_options import load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.frame_check import check_frame, check_required
from icecomb.format.rows.write.location_provider import load_location_provider
from icecomb.format.rows.write.partition_writer import PartitionWriter
from icecomb.format.rows.write.row_key import sort_keys
from icecomb.format.rows.write.row_sort import RowSorter
from icecomb.format.rows.write.write_option import USE_TABLE_LAYOUT
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema, children, with_children
from icecomb.format.spec.types import NestedField
from icecomb.format.storage.file_io import FileIO

_PIECE_ROWS = 1 << 18
_PIECE_BYTES = 1 << 30
"""Strings and lists in one Arrow array are limited to 2 GiB."""


def write_data(
    io: FileIO,
    metadata: TableMetadata,
    data: GivenRows,
    *,
    operation_id: str | None = None,
    options: Mapping[str, str] | None = None,
) -> list[DataFile]:
    """Write rows as data files of a table; the caller commits them.

    Args:
        data: The rows; columns are matched by name. A reader is consumed batch by batch.
        operation_id: The common part of the file names of one operation; random by default.
        options: Properties that override the table's for this write; see `DataWriter`.
    """
    writer = DataWriter(io, metadata, operation_id or str(uuid.uuid4()), options=options)
    try:
        writer.write_all(data)
        return writer.close()
    except BaseException as problem:
        writer.abort(problem)
        raise


class DataWriter:
    """A writer of batches into files by the table's partitioning and target size.

    The property `write.format.default` sets the format: `parquet`, `orc` or `avro`. If the table
    has a sort order, all rows of one writer are sorted by it in each partition, and files record it
    (`sort_order_id`); more rows than fit into some 128 MiB are spilled to temporary files on this
    machine. Files of one partition then do not overlap. Every `write.distribution-mode` (`none`,
    `hash`, `range`) requires that of one process.

    Args:
        task_id: The number of this writer among those of the operation.
        options: Properties that override the table's for this write, for example
            `{"write.format.default": "orc"}`. Spark's
            `{"use-table-distribution-and-ordering": "false"}` leaves rows in their order.
        moved: Whether batches may have the columns of row lineage, for rows of other files. Rows
            without them are new.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        operation_id: str,
        task_id: int = 0,
        *,
        options: Mapping[str, str] | None = None,
        moved: bool = False,
    ) -> None:
        properties = {**metadata.properties, **(options or {})}
        schema, order = metadata.schema(), metadata.sort_order()
        DISTRIBUTION_MODE.of(properties)
        ordered = USE_TABLE_LAYOUT.of(properties)
        keys = sort_keys(schema, metadata.spec(), order) if ordered else None
        written = with_lineage(schema) if moved else schema
        settings = FileSettings(
            written,
            load_file_options(DATA_FORMAT.of(properties), properties),
            MetricsConfig.from_properties(properties, schema, order),
            sort_order_id=None if keys is None else order.order_id,
        )
        self._schema = written
        self._sorter = None if keys is None else RowSorter(keys)
        self._files = PartitionWriter(
            io,
            load_location_provider(io, metadata.location, properties),
            settings,
            metadata.spec(),
            target=TARGET_FILE_BYTES.of(properties),
            name=lambda number: f"{0:05d}-{task_id}-{operation_id}-{number:05d}",
        )
        self._projections = FrameProjections(written)

    def write_all(self, data: GivenRows) -> None:
        """Write all rows; a reader is consumed batch by batch."""
        self._projections.of(data.schema)
        for batch in in_pieces(data):
            self.write(batch)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, whose columns are matched by name."""
        if not batch.num_rows:
            return
        fitted = self._projections.of(batch.schema).apply(batch, 0)
        check_required(self._schema, fitted)
        fitted = without_hidden_nulls(fitted)
        if self._sorter is None:
            self._files.write(fitted)
        else:
            self._sorter.add(fitted)

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        if self._sorter is not None:
            with closing(self._sorter.drain()) as batches:
                for batch in batches:
                    self._files.write(batch, clustered=True)
        return self._files.close()

    def abort(self, problem: BaseException) -> None:
        """Remove every file of this writer, finished or not."""
        if self._sorter is not None:
            self._sorter.discard()
        self._files.abort(problem)


class FrameProjections:
    """Cached projections of frames to a table's columns, by schema of the frame."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[pa.Schema, Projection] = {}

    def of(self, frame: pa.Schema) -> Projection:
        """Return the projection for a schema of batches; see `frame_projection`."""
        found = self._known.get(frame)
        if found is None:
            found = self._known[frame] = frame_projection(self._schema, frame)
        return found


def frame_projection(schema: Schema, frame: pa.Schema) -> Projection:
    """Return the projection of a frame's batches to a table's columns, matched by name."""
    check_frame(schema, frame)
    fields = [_written_default(f) for f in schema.fields]
    return Projection(fields, names_as_ids(frame, fields), {}, writing_cast)


def in_pieces(data: pa.Table | Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the data in batches of suitable size, neither copied nor split without need.

    Batches may have different schemas; those of the same schema are joined. Yielded batches have
    plain layouts.
    """
    batches = data.to_batches(max_chunksize=_PIECE_ROWS) if isinstance(data, pa.Table) else data
    small: list[pa.RecordBatch] = []
    rows = size = 0
    plain = (
        plain_batch(whole.slice(start, _PIECE_ROWS))
        for whole in batches
        for start in range(0, whole.num_rows, _PIECE_ROWS)
    )
    for batch in chain.from_iterable(map(_bounded, plain)):
        more = batch.nbytes
        if small and (size + more > _PIECE_BYTES or small[0].schema != batch.schema):
            yield _joined(small)
            small, rows, size = [], 0, 0
        small.append(batch)
        rows, size = rows + batch.num_rows, size + more
        if rows >= _PIECE_ROWS:
            yield _joined(small)
            small, rows, size = [], 0, 0
    if small:
        yield _joined(small)


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= _PIECE_BYTES:
        yield batch
    else:
        half = batch.num_rows // 2
        yield from _bounded(batch.slice(0, half))
        yield from _bounded(batch.slice(half))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _written_default(field: NestedField) -> NestedField:
    """Return the field with write defaults as the values that projections fill in if missing."""
    kind = field.field_type
    if inside := children(kind):
        kind = with_children(kind, map(_written_default, inside))
    return replace(field, field_type=kind, initial_default=field.write_default)
