"""Writing of rows to the files of their partitions, with bounded memory and open files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from icecomb.format.errors import FileIOError, IcecombError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.parquet.writer import ParquetOptions, dictionary_columns
from icecomb.format.rows.values.data_metrics import new_data_file
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import LocationProvider
from icecomb.format.rows.write.partition_split import PartitionSplit
from icecomb.format.rows.write.stored_columns import StoredColumns
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.storage.file_io import FileIO

BUFFERED_BYTES = 256 << 20
OPEN_FILES = 64
_FULL = 0.95
"""The fraction of the target size at which a file gets no more row groups."""
_LEAST_RATIO = 0.01


class OpenDataFile:
    """A data or delete file being written, which appears at its location when it is closed."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        settings: FileSettings,
        spec: PartitionSpec,
        partition: tuple[Any, ...],
    ) -> None:
        self.settings = settings
        self._location = location
        self._spec = spec
        self._partition = partition
        self._stored = StoredColumns(settings.schema)
        self._creation: AbstractContextManager[BinaryIO] = io.create_stream(location)
        self._stream = self._creation.__enter__()
        try:
            with writing(location):
                stored = replace(settings, schema=self._stored.schema)
                self._writer = settings.options.open(self._stream, stored)
        except BaseException as problem:
            self.abort(problem)
            raise

    @property
    def bytes_written(self) -> int:
        """The length of the file so far."""
        return self._writer.bytes_written

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches, in Parquet as one row group."""
        with writing(self._location):
            self._writer.write([self._stored.of(batch) for batch in batches])

    def close(self) -> DataFile:
        """Finish the file and return its description."""
        settings = self.settings
        with writing(self._location):
            metrics = self._writer.close()
            size = self._stream.tell()
            self._creation.__exit__(None, None, None)
        file_format = settings.options.file_format
        written = new_data_file(
            self._location, size, metrics, self._spec, self._partition, file_format=file_format
        )
        return replace(
            written,
            content=settings.content,
            equality_ids=settings.equality_ids,
            sort_order_id=settings.sort_order_id,
            has_exact_bounds=True,
        )

    def abort(self, problem: BaseException) -> None:
        """Discard the file."""
        try:
            self._creation.__exit__(type(problem), problem, problem.__traceback__)
        except BaseException as raised:
            if raised is not problem:
                raise


@contextmanager
def writing(location: str) -> Iterator[None]:
    """Name the file in system errors (disk full, quota, lost connection) and in Arrow's."""
    try:
        yield
    except IcecombError:
        raise
    except (OSError, pa.ArrowException) as problem:
        raise FileIOError(
            f"Cannot write data file {location}: {problem}",
            hint="Check that there is space, and that the values are valid for their types.",
            path=location,
        ) from problem


class RollingWriter:
    """A writer that collects one partition's rows into row groups, and these into files.

    The next file is opened by `create`; `target` is the approximate length of a file, in bytes.
    """

    def __init__(
        self, create: Callable[[], OpenDataFile], settings: FileSettings, target: int
    ) -> None:
        self._create = create
        self._options = settings.options
        self._target = target
        self._rows = 0
        self._batches: list[pa.RecordBatch] = []
        self._file: OpenDataFile | None = None
        self._file_bytes = 0
        self._done: list[DataFile] = []
        self._ratio = 1.0
        self.buffered = 0

    @property
    def is_open(self) -> bool:
        """True if a file is open."""
        return self._file is not None

    def add(self, batch: pa.RecordBatch) -> int:
        """Write rows; return by how many bytes the buffered rows grew (or shrank)."""
        before = self.buffered
        row_bytes = max(batch.nbytes / batch.num_rows, 0.01)
        start = 0
        while start < batch.num_rows:
            rows_left = self._options.row_group_rows - self._rows
            bytes_left = max(self._group_bytes() - self.buffered, 0)
            part = batch.slice(start, min(rows_left, int(bytes_left / row_bytes) + 1))
            start += part.num_rows
            self._batches.append(part)
            self._rows += part.num_rows
            self.buffered += part.nbytes
            if part.num_rows == rows_left or self.buffered >= self._group_bytes():
                self.flush()
        return self.buffered - before

    def flush(self) -> int:
        """Write the buffered rows as a row group; return their former size in bytes."""
        freed = self.buffered
        if self._batches:
            self._file = self._file or self._create()
            self._file.write(self._batches)
            written = self._file.bytes_written
            self._file_bytes += freed
            self._ratio = written / max(self._file_bytes, 1)
            self._batches, self._rows, self.buffered = [], 0, 0
            if written >= self._target * _FULL:
                self._finish_file()
        return freed

    def close(self) -> list[DataFile]:
        """Finish the last file and return all of them."""
        self.flush()
        self._finish_file()
        return self._done

    def abort(self, problem: BaseException) -> list[DataFile]:
        """Discard the open file; return the finished ones, for the caller to remove."""
        if self._file is not None:
            file, self._file = self._file, None
            file.abort(problem)
        return self._done

    def _finish_file(self) -> None:
        if self._file is not None:
            self._done.append(self._file.close())
            self._file, self._file_bytes = None, 0

    def _group_bytes(self) -> float:
        """Return the size in memory of a row group that hardly overshoots the file's target."""
        if self._file is None:
            left = self._target
        else:
            left = max(self._target - self._file.bytes_written, 0)
        # Encoded rows are smaller than in memory; estimate the ratio from the file so far.
        ratio = max(self._ratio, _LEAST_RATIO)
        return min(
            self._options.row_group_bytes / ratio,
            self._options.buffer_bytes,
            max(left / ratio, 1 << 20),
        )


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
