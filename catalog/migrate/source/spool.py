"""Rows of Arrow on the local disk, for facts about more files than fit into memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from icecomb.format.storage.temporary_file import cannot_keep

ROWS: Final = 10_000
"""Number of rows of a batch, unless they are long."""
BYTES: Final = 32 << 20
IN_MEMORY: Final = 4 << 20
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class Spool:
    """Batches of rows that are appended, and read any number of times, from any thread.

    A few megabytes stay in memory, so that tables of usual size need no file. The file has no name:
    its disk space is freed when the spool is garbage-collected, or the process dies.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._memory: list[pa.Buffer] = []
        self._ranges: list[tuple[int, int]] = []
        self._held = self._written = 0
        self._descriptor: int | None = None
        self.rows = 0

    @property
    def batches(self) -> int:
        """Number of batches."""
        return len(self._ranges)

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a batch at the end."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema, options=_OPTIONS) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        if self._descriptor is None and self._held + data.size <= IN_MEMORY:
            self._memory.append(data)
            self._held += data.size
            self._ranges.append((0, data.size))
        else:
            try:
                self._spill()
                self._write(data)
            except OSError as error:
                raise cannot_keep("facts about the files", error) from error
        self.rows += batch.num_rows

    def batch(self, number: int) -> pa.RecordBatch:
        """Return a batch by its number."""
        at, size = self._ranges[number]
        if self._descriptor is None:
            data = self._memory[number]
        else:
            data = pa.py_buffer(os.pread(self._descriptor, size, at))
        return pa.ipc.open_stream(data).read_next_batch()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches."""
        return map(self.batch, range(len(self._ranges)))

    def _spill(self) -> None:
        if self._descriptor is not None:
            return
        descriptor, path = tempfile.mkstemp(prefix="icecomb-")
        Path(path).unlink()
        weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        memory, self._memory, self._ranges = self._memory, [], []
        for data in memory:
            self._write(data)

    def _write(self, data: pa.Buffer) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor or 0, left) :]
        self._ranges.append((self._written, data.size))
        self._written += data.size


class RowWriter:
    """A writer of rows to a spool, a batch at a time; `flush` writes the last ones.

    Args:
        weight: The column that may be long, whose size ends a batch, too.
    """

    def __init__(self, schema: pa.Schema, weight: str | None = None) -> None:
        self.spool = Spool(schema)
        self._schema = schema
        self._weight = None if weight is None else schema.names.index(weight)
        self._rows: list[tuple[object, ...]] = []
        self._bytes = 0

    def add(self, row: tuple[object, ...]) -> None:
        """Add a row with a value for each column."""
        self._rows.append(row)
        if self._weight is not None:
            long = row[self._weight]
            self._bytes += len(long) if isinstance(long, bytes) else 0
        if len(self._rows) >= ROWS or self._bytes >= BYTES:
            self.flush()

    def flush(self) -> pa.RecordBatch | None:
        """Append the remaining rows and return their batch; None if there are none."""
        if not self._rows:
            return None
        batch = batch_of(self._schema, self._rows)
        self.spool.append(batch)
        self._rows, self._bytes = [], 0
        return batch


def batch_of(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    """Return rows as a batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
