"""Writing of one partition's rows to files and row groups of uniform size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa

from icecomb.format.errors import FileIOError, IcecombError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.values.data_metrics import data_file
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.stored_columns import StoredColumns
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.storage.file_io import FileIO

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
        written = data_file(
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
