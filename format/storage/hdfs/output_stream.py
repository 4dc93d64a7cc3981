"""A new file of HDFS as a stream: a small one is held back and sent whole, as often as it takes."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, Final

from icecomb.format.storage.hdfs.failure import HdfsDataLostError
from icecomb.format.storage.hdfs.upload import Upload

Begin = Callable[[], AbstractContextManager[Upload]]
"""Starts a file anew: published when the block ends without an error, else nothing is left."""

_HELD: Final = 8 << 20
_TRIES: Final = 5


class HdfsOutput(io.RawIOBase):
    """What data files are written to.

    Args:
        begin: How the file is made.
        stack: Ends the file when the caller's block ends.
    """

    def __init__(self, begin: Begin, stack: ExitStack) -> None:
        super().__init__()
        self._begin = begin
        self._stack = stack
        self._held = bytearray()
        self._upload: Upload | None = None

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Bytes so far: writers of data files ask."""
        return len(self._held) if self._upload is None else self._upload.written

    def write(self, data: Any, /) -> int:
        """Take a piece; one that exceeds what is held back is sent at once.

        Raises:
            HdfsDataLostError: the data node is gone, or too slow.
            FileIOError: the file is refused.
        """
        piece = memoryview(data).cast("B")
        if self._upload is None:
            if len(self._held) + len(piece) <= _HELD:
                self._held += piece
                return len(piece)
            self._upload = self._stack.enter_context(self._begin())
            self._upload.write(self._held)
            self._held = bytearray()
        if self._upload.closed:
            # the file is given up: a writer that is cleaned away still writes its footer
            return len(piece)
        return self._upload.write(piece)

    def held(self) -> bytearray | None:
        """All of a small file, still to be sent; a longer one ends with the caller's block."""
        return self._held if self._upload is None else None


def send_whole(begin: Begin, data: bytes | bytearray) -> None:
    """Make a file of these bytes, again if a data node loses them.

    Raises:
        HdfsDataLostError: time and again.
    """

    def send() -> None:
        with begin() as upload:
            upload.write(data)

    for attempt in range(1, _TRIES):
        with suppress(HdfsDataLostError):
            return send()
        time.sleep(0.2 * attempt)
    return send()
