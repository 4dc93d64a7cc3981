"""Position delete files: which rows of which data files are deleted (spec: Position Delete Files).

The rows of a file are sorted by data file and position, as the specification asks for. Its bounds
are whole paths, so that readers find by them which data files it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icecomb.format.errors import ConfigurationError, UnsupportedError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.operation.manifest_filter import partition_key
from icecomb.format.operation.snapshot_producer import spec_of
from icecomb.format.rows.arrow import schema_to_pyarrow
from icecomb.format.rows.data_metrics import MetricsConfig
from icecomb.format.rows.location_provider import load_location_provider
from icecomb.format.rows.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.rows.parquet_writer import ParquetOptions
from icecomb.format.rows.position_delete import Positions
from icecomb.format.rows.rolling_writer import FileSettings, OpenDataFile
from icecomb.format.schema import Schema
from icecomb.format.single_value import to_bytes
from icecomb.format.types import LongType

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.metadata import TableMetadata

GRANULARITY: Final = "write.delete.granularity"
DELETE_FORMAT: Final = "write.delete.format.default"
_DELETE_PREFIX: Final = "write.delete.parquet."
_DATA_PREFIX: Final = "write.parquet."
_SCHEMA: Final = Schema((DELETE_FILE_PATH, DELETE_FILE_POS))
_ROWS: Final = 1 << 18
"""Rows of a row group: each repeats a path."""


class PositionDeleteWriter:
    """Writes position delete files: one a data file, or one a partition.

    Which of both, the table property `write.delete.granularity` says: `file`, the default, or
    `partition`. How, `write.delete.parquet.*` say, and `write.parquet.*` where they are not set.

    Args:
        io: Where the files go.
        metadata: The table.
        operation_id: The common part of the file names.

    Raises:
        ConfigurationError: The granularity, or how to write, makes no sense.
        UnsupportedError: `write.delete.format.default` is not Parquet.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, operation_id: str) -> None:
        properties = metadata.properties
        chosen = properties.get(DELETE_FORMAT, "parquet").lower()
        if chosen != "parquet":
            raise UnsupportedError(
                f"{DELETE_FORMAT}={chosen}: only Parquet files can be written",
                hint=f"Set the table property {DELETE_FORMAT} to parquet.",
            )
        granularity = properties.get(GRANULARITY, "file").lower()
        if granularity not in ("file", "partition"):
            raise ConfigurationError(
                f"{GRANULARITY} cannot be {granularity!r}", hint="Use file or partition."
            )
        self._by_file = granularity == "file"
        self._io = io
        self._metadata = metadata
        self._operation_id = operation_id
        self._settings = FileSettings(_SCHEMA, _options(properties), MetricsConfig())
        self._locations = load_location_provider(metadata.location, properties)
        self._numbers = count(1)
        self._waiting: dict[tuple[Any, ...], list[tuple[DataFile, Positions]]] = {}
        self._done: list[DataFile] = []

    def add(self, file: DataFile, positions: Positions) -> None:
        """Delete rows of a data file.

        Args:
            file: The data file; it is given once.
            positions: Which rows, ascending.
        """
        if not len(positions):
            return
        if self._by_file:
            self._done.append(self._write([(file, positions)]))
        else:
            key = (file.spec_id, partition_key(file.partition))
            self._waiting.setdefault(key, []).append((file, positions))

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        while self._waiting:
            _, deletes = self._waiting.popitem()
            self._done.append(self._write(deletes))
        return self._done

    def abort(self) -> None:
        """Remove every file of this writer."""
        self._waiting.clear()
        self._io.delete([f.file_path for f in self._done])
        self._done = []

    def _write(self, deletes: list[tuple[DataFile, Positions]]) -> DataFile:
        deletes.sort(key=lambda item: item[0].file_path.encode())
        first = deletes[0][0]
        open_file = self._open(first)
        try:
            for batch in _batches(deletes):
                open_file.write([batch])
            written = open_file.close()
        except BaseException as problem:
            open_file.abort(problem)
            raise
        path, pos = DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id
        lowest = min(int(positions[0]) for _, positions in deletes)
        highest = max(int(positions[-1]) for _, positions in deletes)
        return replace(
            written,
            content=DataFileContent.POSITION_DELETES,
            lower_bounds={path: first.file_path.encode(), pos: to_bytes(LongType(), lowest)},
            upper_bounds={
                path: deletes[-1][0].file_path.encode(),
                pos: to_bytes(LongType(), highest),
            },
            referenced_data_file=first.file_path if len(deletes) == 1 else None,
        )

    def _open(self, file: DataFile) -> OpenDataFile:
        spec = spec_of(self._metadata, file.spec_id)
        folder = None
        if file.partition:
            folder = spec.partition_to_path(file.partition, self._metadata.schema())
        name = f"{0:05d}-0-{self._operation_id}-{next(self._numbers):05d}-deletes.parquet"
        location = self._locations.new_data_location(name, folder)
        return OpenDataFile(self._io, location, self._settings, spec, file.partition)


def _batches(deletes: list[tuple[DataFile, Positions]]) -> Iterator[pa.RecordBatch]:
    schema = schema_to_pyarrow(_SCHEMA)
    for file, positions in deletes:
        for start in range(0, len(positions), _ROWS):
            part = pa.array(positions[start : start + _ROWS], pa.int64())
            paths = pa.repeat(pa.scalar(file.file_path, pa.string()), len(part))
            yield pa.RecordBatch.from_arrays([paths, part], schema=schema)


def _options(properties: Mapping[str, str]) -> ParquetOptions:
    own = {
        _DATA_PREFIX + key.removeprefix(_DELETE_PREFIX): value
        for key, value in properties.items()
        if key.startswith(_DELETE_PREFIX)
    }
    return replace(ParquetOptions.from_properties({**properties, **own}), bloom_filters={})
