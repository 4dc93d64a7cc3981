"""A new file far away as a stream: a small one is held back and sent whole, maybe repeatedly."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final


class Upload(io.RawIOBase):
    """A stream to write to; nothing tells whether all arrived before it is finished.

    Args:
        location: The file, for messages.

    Attributes:
        written: Bytes so far.
    """

    def __init__(self, location: str) -> None:
        super().__init__()
        self._location = location
        self.written = 0

    def writable(self) -> bool:
        """It is."""
        return True


Begin = Callable[[], AbstractContextManager[Upload]]
"""Starts a file anew: published when the block ends without an error, else nothing is left."""

_HELD: Final = 8 << 20


class HeldOutput(io.RawIOBase):
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
            FileIOError: the file is refused, or the storage is gone.
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
