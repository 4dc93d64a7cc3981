"""Output stream to remote storage: small files are buffered and sent in one retriable request."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final


class Upload(io.RawIOBase):
    """A stream whose content is not known to have arrived until the upload is finished."""

    def __init__(self, location: str) -> None:
        super().__init__()
        self._location = location
        self.written = 0

    def writable(self) -> bool:
        """Return True."""
        return True


Begin = Callable[[], AbstractContextManager[Upload]]
"""Begin an upload: it is published when the block ends without an error, else discarded."""

_HELD: Final = 8 << 20


class HeldOutput(io.RawIOBase):
    """The output stream of a data file; `stack` finishes the upload when the block ends."""

    def __init__(self, begin: Begin, stack: ExitStack) -> None:
        super().__init__()
        self._begin = begin
        self._stack = stack
        self._held = bytearray()
        self._upload: Upload | None = None

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes so far; writers of data files need it."""
        return len(self._held) if self._upload is None else self._upload.written

    def write(self, data: Any, /) -> int:
        """Buffer a chunk; once the buffer is full, send everything immediately."""
        piece = memoryview(data).cast("B")
        if self._upload is None:
            if len(self._held) + len(piece) <= _HELD:
                self._held += piece
                return len(piece)
            self._upload = self._stack.enter_context(self._begin())
            self._upload.write(self._held)
            self._held = bytearray()
        if self._upload.closed:
            # the upload was aborted, and a writer that is being closed still writes its footer
            return len(piece)
        return self._upload.write(piece)

    def held(self) -> bytearray | None:
        """Return the content of a small file, still to be sent; None once an upload has begun."""
        return self._held if self._upload is None else None
