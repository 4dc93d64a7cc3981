"""Writing of rows to the files of their partitions, with bounded memory and open files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.parquet.options import ParquetOptions
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import LocationProvider
from icecomb.format.rows.write.partition_split import PartitionSplit
from icecomb.format.rows.write.rolling_writer import OpenDataFile, RollingWriter
from icecomb.format.spec.partition import PartitionSpec

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

BUFFERED_BYTES = 256 << 20
OPEN_FILES = 64


FileOpener: TypeAlias = Callable[
    ["FileIO", str, FileSettings, PartitionSpec, tuple[Any, ...]], OpenDataFile
]
"""A function that begins a file; see `OpenDataFile`."""


class PartitionWriter:
    """A writer of batches into files of one partition each, of about the target size.

    Rows of a partition keep their order. At most 64 files are open and some 256 MiB of rows are
    buffered: beyond that, the partition with the largest buffer writes a row group early, and the
    file of the least recently used partition is finished early.

    Args:
        target: The approximate length of a file, in bytes.
        name: A function from a file's number to its name, without the extension.
        open_file: Begins a file; batches may have more columns than the schema if it handles them.
    """

    def __init__(
        self,
        io: FileIO,
        locations: LocationProvider,
        settings: FileSettings,
        spec: PartitionSpec,
        *,
        target: int,
        name: Callable[[int], str],
        open_file: FileOpener = OpenDataFile,
    ) -> None:
        self._io = io
        self._schema = settings.schema
        self._spec = spec
        self._target = target
        each = BUFFERED_BYTES // (1 if spec.is_unpartitioned else OPEN_FILES)
        self._settings = replace(settings, options=settings.options.fitting(target, each))
        self._locations = locations
        self._open_file = open_file
        self._split = PartitionSplit(spec, self._schema, locations.root)
        numbers = count(1)
        extension = settings.options.file_format.value.lower()
        self._next_name: Callable[[], str] = lambda: f"{name(next(numbers))}.{extension}"
        # In the order of last use, so that the first is the one to close when too many are open.
        self._partitions: dict[tuple[Any, ...], RollingWriter] = {}
        self._buffered = 0
        self._done: list[DataFile] = []

    def write(self, batch: pa.RecordBatch, *, clustered: bool = False) -> None:
        """Write rows; if `clustered`, partitions that are not in this batch are complete."""
        self._choose_dictionaries(batch)
        present = set()
        for partition, rows in self._split.split(batch):
            key = tuple(_signed(value) for value in partition)
            present.add(key)
            writer = self._partitions.pop(key, None)
            if writer is None:
                writer = RollingWriter(self._new_file(partition), self._settings, self._target)
            self._partitions[key] = writer
            self._buffered += writer.add(rows)
        if clustered:
            for key in [k for k in self._partitions if k not in present]:
                self._finish(key)
        self._keep_bounds()

    def close(self) -> list[DataFile]:
        """Finish all files and return them."""
        with self._io.side_by_side(self._locations.root):
            for key in list(self._partitions):
                self._finish(key)
        return self._done

    def abort(self, problem: BaseException) -> None:
        """Remove every file of this writer, finished or not."""
        for writer in self._partitions.values():
            self._done += writer.abort(problem)
        self._partitions.clear()
        self._io.discard([f.file_path for f in self._done])
        self._done = []

    def _choose_dictionaries(self, batch: pa.RecordBatch) -> None:
        options = self._settings.options
        if isinstance(options, ParquetOptions) and self._settings.dictionaries is None:
            from icecomb.format.rows.parquet.writer import dictionary_columns

            limit = options.dictionary_bytes
            own = batch.select(range(len(self._schema.fields)))
            chosen = dictionary_columns(self._schema.fields, own, limit)
            self._settings = replace(self._settings, dictionaries=tuple(chosen))

    def _keep_bounds(self) -> None:
        while self._buffered > BUFFERED_BYTES:
            largest = max(self._partitions.values(), key=lambda w: w.buffered)
            self._buffered -= largest.flush()
        while sum(w.is_open for w in self._partitions.values()) > OPEN_FILES:
            oldest = next(k for k, w in self._partitions.items() if w.is_open)
            self._finish(oldest)

    def _finish(self, key: tuple[Any, ...]) -> None:
        writer = self._partitions[key]
        self._buffered -= writer.buffered
        # On an error the writer must remain, to be aborted.
        self._done += writer.close()
        del self._partitions[key]

    def _new_file(self, partition: tuple[Any, ...]) -> Callable[[], OpenDataFile]:
        path = self._spec.partition_to_path(partition, self._schema) if partition else None

        def create() -> OpenDataFile:
            location = self._locations.new_data_location(self._next_name(), path)
            return self._open_file(self._io, location, self._settings, self._spec, partition)

        return create


def _signed(value: Any) -> Any:
    """Return the value as a key: the two zeros are different partitions, as in Iceberg Java."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value
