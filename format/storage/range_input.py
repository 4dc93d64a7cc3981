"""Seekable input stream from remote storage that requests few and large ranges.

A request costs milliseconds whatever its size, so more than asked is fetched: all of a small file,
the end of a file with its footer, ever longer ranges of one that is read sequentially, and finally
several of them ahead of the reader. A large read is split among several connections.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final

from icecomb.format.arrow.batch_stream import pooled, thread_pool
from icecomb.format.errors import CorruptFileError

if TYPE_CHECKING:
    import pyarrow as pa

ReadRange = Callable[[int, int], bytes]
"""Read bytes by offset and length: fewer only at the end of the file, none beyond it."""

_WHOLE: Final = 1 << 20
_LEAST: Final = 256 << 10
_FARTHEST: Final = 8 << 20
_PART: Final = 8 << 20
_PARTS: Final = 4
_COMING: Final = 3
PIECE: Final = 64 << 20
"""Bytes that Arrow takes memory for at once."""


def input_file(stream: RangeInput) -> pa.NativeFile:
    """Return a file of Arrow that reads from a stream."""
    return _file_type()(stream, mode="r")


@cache
def _file_type() -> type[pa.PythonFile]:
    """Return the type of files that take no memory for a size before its bytes came."""
    import pyarrow as pa

    class InputFile(pa.PythonFile):  # type: ignore[misc]
        def read(self, nbytes: int | None = None) -> bytes:
            if nbytes is not None and nbytes <= PIECE:
                found: bytes = super().read(nbytes)
                return found
            pieces = io.BytesIO()
            left = self.size() if nbytes is None else nbytes
            while left > 0 and (piece := super().read(min(left, PIECE))):
                pieces.write(piece)
                left -= len(piece)
            return pieces.getvalue()

        def readall(self) -> bytes:
            return self.read()

        def read_buffer(self, nbytes: int | None = None) -> pa.Buffer:
            return pa.py_buffer(self.read(nbytes))

    return InputFile


class RangeInput:
    """The file object that a `pyarrow.PythonFile` reads from.

    Args:
        read_range: Function that reads a range of the file; called by several threads at a time.
        size: Length of the file in bytes.
        source: Source of that length, for messages; None = the table's metadata, not the storage:
            then one more byte is requested at the end, and there must be none.
        reads_ahead: Whether several ranges of a sequentially read file are fetched concurrently.
    """

    def __init__(
        self,
        read_range: ReadRange,
        location: str,
        size: int,
        *,
        source: str | None = None,
        reads_ahead: bool = True,
    ) -> None:
        self._read_range = read_range
        self._location = location
        self._size = size
        self._source = source
        self._reads_ahead = reads_ahead
        self._position = 0
        self._start = 0
        self._window = b""
        self._ahead = _LEAST
        self._coming: deque[Future[bytes]] = deque()
        self._asked = 0
        self._pool: ThreadPoolExecutor | None = None
        self.closed = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def tell(self) -> int:
        """Return the offset at which the next read begins."""
        return self._position

    def size(self) -> int:
        """Return the length of the file in bytes."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the current position or the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def read(self, length: int | None = -1) -> bytes:
        """Read up to `length` bytes, fewer only at the end of the file.

        CorruptFileError is raised if the file is shorter or longer than stated. A missing file is
        noticed only here if its size was given.
        """
        rest = max(self._size - self._position, 0)
        wanted = rest if length is None or length < 0 else min(length, rest)
        pieces = []
        while wanted:
            begin = self._position - self._start
            if not 0 <= begin < len(self._window):
                begin = self._fetch(wanted)
            end = min(begin + wanted, len(self._window))
            whole = begin == 0 and end == len(self._window)
            pieces.append(self._window if whole else self._window[begin:end])
            self._position += end - begin
            wanted -= end - begin
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def flush(self) -> None:
        """Do nothing: the stream is read-only."""

    def close(self) -> None:
        """Discard fetched data, without waiting for requests in flight."""
        self._discard()
        self.closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def _discard(self) -> None:
        self._window = b""
        for each in self._coming:
            each.cancel()
        self._coming.clear()

    def _fetch(self, wanted: int) -> int:
        """Fill the window from the current position on; return that position's offset in it."""
        start = self._position
        if self._window and start == self._start + len(self._window):
            self._ahead = min(max(self._ahead * 2, len(self._window)), _FARTHEST)
        else:
            self._discard()
            self._ahead = _LEAST
        if self._ahead == _FARTHEST and self._reads_ahead:
            self._window = self._next(start)
            self._start = start
            return 0
        # a stated size justifies no request of all
        end = min(start + max(min(wanted, _PART * _PARTS), self._ahead), self._size)
        if self._size <= _WHOLE:
            start, end = 0, self._size
        elif end == self._size:
            start = max(min(start, end - _LEAST), 0)
        self._window = self._range(start, end - start)
        self._start = start
        return self._position - start

    def _next(self, start: int) -> bytes:
        """Return the range after the window, while threads fetch the following ones."""
        if self._pool is None:
            # it is closed while other threads read, too, as no generator can be
            self._pool = ThreadPoolExecutor(_COMING, thread_name_prefix="icecomb-ahead")
        if not self._coming:
            self._asked = start
        while len(self._coming) < _COMING and self._asked < self._size:
            length = min(_PART, self._size - self._asked)
            self._coming.append(self._pool.submit(self._exactly, self._asked, length))
            self._asked += length
        try:
            return self._coming.popleft().result()
        except BaseException:
            self._discard()
            raise

    def _range(self, start: int, length: int) -> bytes:
        count = min(-(-length // _PART), _PARTS)
        if count <= 1:
            return self._exactly(start, length)
        step = -(-length // count)
        parts = [(at, min(step, start + length - at)) for at in range(start, start + length, step)]
        with thread_pool(count) as pool:
            return b"".join(pooled(pool, lambda part: self._exactly(*part), parts))

    def _exactly(self, start: int, length: int) -> bytes:
        probe = self._source is None and start + length == self._size
        for _ in range(2):  # a proxy may have truncated the first response
            found = self._read_range(start, length + probe)
            if len(found) == length:
                return found
        source = self._source or "the table's metadata"
        ends = f"goes on after byte {self._size}"
        if len(found) < length:
            ends = f"ends at byte {start + len(found)}" if found else f"ends before byte {start}"
        raise CorruptFileError(
            f"{self._location} {ends}; {source} gave its length as {self._size}",
            hint="It was read twice: try again if a proxy truncates responses; if the file was "
            "truncated or replaced, restore it, or remove it from the table.",
            path=self._location,
        )
