"""Writing of position delete files, which list deleted rows (spec: Position Delete Files).

The rows of a file are sorted by data file and position, as the specification requires. Its bounds
are whole paths, by which readers find the data files that it refers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from icecomb.format.arrow.array_build import scalar
from icecomb.format.arrow.number_view import array_of
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.property.table_property import (
    DATA_FORMAT,
    DELETE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_BYTES,
)
from icecomb.format.rows.deletes.position_delete import Positions, only_target
from icecomb.format.rows.parquet.writer import ParquetOptions
from icecomb.format.rows.values.data_metrics import MetricsConfig, MetricsKind, MetricsMode
from icecomb.format.rows.values.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POS,
    DELETE_FILE_ROW_ID,
)
from icecomb.format.rows.write.file_options import delete_properties, load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import load_location_provider
from icecomb.format.rows.write.partition_writer import OpenDataFile, RollingWriter
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.partition import partition_key
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, StructType

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_ROWS: Final = 1 << 18
"""The maximum number of rows in a batch, each of which repeats a path."""
_FULL: Final = MetricsMode(MetricsKind.FULL)


class DeleteTarget(Protocol):
    """A data file from which rows are deleted."""

    @property
    def file_path(self) -> str:
        """The location, as the manifest spells it."""

    @property
    def spec_id(self) -> int:
        """The id of the partition spec."""

    @property
    def partition(self) -> tuple[Any, ...]:
        """The partition tuple."""


class PositionDeleteWriter:
    """A writer of position delete files, for one data file or for one partition each.

    The table property `write.delete.granularity` decides between the two: `file`, the default as in
    Spark, or `partition`. `write.delete.parquet.*` (and so on) set how files are written, or else
    `write.parquet.*`.

    Args:
        rows: Whether to store the deleted rows as well, in the optional column `row` with the
            columns of the table's current schema. Each `add` must then give them.
        target: The approximate size of files, in bytes; that of the table property by default.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        operation_id: str,
        *,
        rows: bool = False,
        target: int | None = None,
    ) -> None:
        properties = delete_properties(metadata.properties)
        self._by_file = DELETE_GRANULARITY.of(properties) == "file"
        self._io = io
        self._metadata = metadata
        self._operation_id = operation_id
        self._schema = _schema(metadata.schema() if rows else None)
        self._arrow = schema_to_pyarrow(self._schema, include_field_ids=False)
        self._target = target or DELETE_TARGET_FILE_BYTES.of(properties)
        chosen = DELETE_FORMAT.of(properties, default=DATA_FORMAT.of(properties))
        options = load_file_options(chosen, properties)
        if isinstance(options, ParquetOptions):
            # Paths take much memory; and bloom filters are meant for the table's columns.
            few = min(options.row_group_rows, _ROWS)
            options = replace(options, row_group_rows=few, bloom_filters={})
        self._settings = FileSettings(
            self._schema,
            options.fitting(self._target, self._target),
            _metrics(metadata, rows=rows),
            content=DataFileContent.POSITION_DELETES,
        )
        self._locations = load_location_provider(io, metadata.location, properties)
        self._numbers = count(1)
        self._waiting: dict[tuple[Any, ...], list[_Deletes]] = {}
        self._done: list[DataFile] = []

    def add(self, file: DeleteTarget, positions: Positions, rows: pa.Table | None = None) -> None:
        """Delete rows, by ascending positions, of a data file, which may be given only once.

        Args:
            rows: The rows themselves, in the columns and types of the table's current schema.
        """
        if self._stores_rows != (rows is not None):
            wanted = "needs" if self._stores_rows else "takes no"
            raise ValidationError(
                f"A writer of position deletes {wanted} deleted rows",
                hint="Give the rows to every call of a writer that stores them, and to no other.",
            )
        if not len(positions):
            return
        deletes = (file, positions, rows)
        if self._by_file:
            self._write([deletes])
        else:
            key = (file.spec_id, partition_key(file.partition))
            self._waiting.setdefault(key, []).append(deletes)

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        while self._waiting:
            _, deletes = self._waiting.popitem()
            self._write(deletes)
        return self._done

    def abort(self) -> None:
        """Remove every file of this writer."""
        self._waiting.clear()
        self._io.discard([f.file_path for f in self._done])
        self._done = []

    @property
    def _stores_rows(self) -> bool:
        return len(self._schema.fields) > 2

    def _write(self, deletes: list[_Deletes]) -> None:
        deletes.sort(key=lambda item: item[0].file_path.encode())
        first = deletes[0][0]
        writer = RollingWriter(lambda: self._open(first), self._settings, self._target)
        try:
            for batch in self._batches(deletes):
                writer.add(batch)
            written = writer.close()
        except BaseException as problem:
            self._io.discard([f.file_path for f in writer.abort(problem)])
            raise
        self._done += [referring(f) for f in written]

    def _open(self, file: DeleteTarget) -> OpenDataFile:
        spec = self._metadata.spec_by_id(file.spec_id)
        folder = None
        if file.partition:
            folder = spec.partition_to_path(file.partition, self._metadata.schema())
        extension = self._settings.options.file_format.value.lower()
        number = next(self._numbers)
        name = f"{0:05d}-0-{self._operation_id}-{number:05d}-deletes.{extension}"
        location = self._locations.new_data_location(name, folder)
        return OpenDataFile(self._io, location, self._settings, spec, file.partition)

    def _batches(self, deletes: Iterable[_Deletes]) -> Iterator[pa.RecordBatch]:
        for file, positions, rows in deletes:
            path = scalar(file.file_path, pa.string())
            for start in range(0, len(positions), _ROWS):
                part = array_of(positions[start : start + _ROWS])
                columns = [pa.repeat(path, len(part)), part]
                if rows is not None:
                    columns.append(_struct(rows.slice(start, len(part)), self._arrow.field(2)))
                yield pa.RecordBatch.from_arrays(columns, schema=self._arrow)


_Deletes = tuple[DeleteTarget, Positions, pa.Table | None]


def _schema(row: Schema | None) -> Schema:
    fields = (DELETE_FILE_PATH, DELETE_FILE_POS)
    if row is None:
        return Schema(fields)
    # A file with rows must have one for each delete.
    return Schema(
        (*fields, NestedField(DELETE_FILE_ROW_ID, "row", StructType(row.fields), required=True))
    )


def _metrics(metadata: TableMetadata, *, rows: bool) -> MetricsConfig:
    """Return full metrics for paths and positions, and the table's for deleted rows."""
    own = {DELETE_FILE_PATH.field_id: _FULL, DELETE_FILE_POS.field_id: _FULL}
    if not rows:
        return MetricsConfig(modes=own)
    of_rows = MetricsConfig.from_properties(metadata.properties, metadata.schema())
    return MetricsConfig(of_rows.default, {**of_rows.modes, **own})


def _struct(rows: pa.Table, field: pa.Field) -> pa.StructArray:
    (batch,) = rows.combine_chunks().to_batches()
    fields = [field.type.field(i) for i in range(field.type.num_fields)]
    return pa.StructArray.from_arrays(batch.columns, fields=fields)


def referring(file: DataFile) -> DataFile:
    """Return a delete file with `referenced_data_file` set if it refers to only one data file."""
    return replace(file, referenced_data_file=only_target(file))
