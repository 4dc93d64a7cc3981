"""A file of HDFS as a seekable stream that asks for few and large ranges.

A request costs milliseconds whatever its size, so what is near is fetched along: all of a small
file, the end of a file with its footer, ever longer pieces of one that is read on and on. A large
read is split among several connections.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CorruptFileError

if TYPE_CHECKING:
    from icecomb.format.hdfs.web_hdfs import WebHdfs

_WHOLE: Final = 1 << 20
_LEAST: Final = 256 << 10
_FARTHEST: Final = 8 << 20
_PART: Final = 8 << 20
_PARTS: Final = 4


class HdfsInput:
    """What `pyarrow.PythonFile` reads from.

    Args:
        web: Of the cluster.
        path: There.
        location: For messages.
        size: Bytes.
        verified: Whether the name node says so. Else one more byte is asked for at the end: there
            must be none.
    """

    def __init__(
        self, web: WebHdfs, path: str, location: str, size: int, *, verified: bool = True
    ) -> None:
        self._web = web
        self._path = path
        self._location = location
        self._size = size
        self._verified = verified
        self._position = 0
        self._start = 0
        self._window = b""
        self._ahead = _LEAST
        self.closed = False

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is not."""
        return False

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def size(self) -> int:
        """Bytes of the whole file."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to `offset` from the start, from here, or from the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def read(self, length: int | None = -1) -> bytes:
        """Up to `length` bytes, fewer only at the end of the file.

        Raises:
            CorruptFileError: the file is shorter, or longer, than was said.
            FileMissingError: there is none, which is noticed here if its size was given.
        """
        rest = max(self._size - self._position, 0)
        wanted = rest if length is None or length < 0 else min(length, rest)
        if not wanted:
            return b""
        begin = self._position - self._start
        if begin < 0 or begin + wanted > len(self._window):
            begin = self._fetch(wanted)
        self._position += wanted
        if begin == 0 and wanted == len(self._window):
            return self._window
        return self._window[begin : begin + wanted]

    def flush(self) -> None:
        """Does nothing: nothing is written."""

    def close(self) -> None:
        """Forgets what was fetched."""
        self._window = b""
        self.closed = True

    def _fetch(self, wanted: int) -> int:
        """Makes the window hold what is wanted; answers where in it that begins."""
        start = self._position
        goes_on = self._start <= start <= self._start + len(self._window) and self._window
        self._ahead = min(self._ahead * 2, _FARTHEST) if goes_on else _LEAST
        end = min(max(start + wanted, start + self._ahead), self._size)
        if self._size <= _WHOLE:
            start, end = 0, self._size
        elif end == self._size:
            start = max(min(start, end - _LEAST), 0)
        self._window = self._range(start, end - start)
        self._start = start
        return self._position - start

    def _range(self, start: int, length: int) -> bytes:
        count = min(-(-length // _PART), _PARTS)
        if count <= 1:
            return self._exactly(start, length)
        step = -(-length // count)
        parts = [(at, min(step, start + length - at)) for at in range(start, start + length, step)]
        with ThreadPoolExecutor(count, thread_name_prefix="hdfs-read") as pool:
            return b"".join(pool.map(lambda part: self._exactly(*part), parts))

    def _exactly(self, start: int, length: int) -> bytes:
        probe = not self._verified and start + length == self._size
        found = self._web.read(self._path, self._location, start, length + probe)
        if len(found) == length:
            return found
        source = "the name node" if self._verified else "the table's metadata"
        ends = f"goes on after byte {self._size}"
        if len(found) < length:
            ends = f"ends at byte {start + len(found)}" if found else f"ends before byte {start}"
        raise CorruptFileError(
            f"{self._location} {ends}; {source} gave its length as {self._size}",
            hint="the file was cut or replaced: restore it, or remove it from the table",
            path=self._location,
        )
