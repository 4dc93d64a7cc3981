"""Upload of a large object: parts are sent while the next one is filled."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final

from icecomb.format.storage.object_store.client import PART, PartUpload
from icecomb.format.storage.object_store.creation import complete_once
from icecomb.format.storage.output_stream import Upload

_AT_ONCE: Final = 4
"""Parts in flight: with the one being filled 40 MiB, enough for more than one connection."""


class PartStream(Upload):
    """The output stream of a large file."""

    def __init__(self, upload: PartUpload, location: str) -> None:
        super().__init__(location)
        self._upload = upload
        self._filling = bytearray()
        self._number = 0
        self._sending: set[Future[None]] = set()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="icecomb-part")

    def write(self, data: Any, /) -> int:
        """Buffer a chunk, sending full parts; raise the error of a part sent earlier."""
        piece = memoryview(data).cast("B")
        taken = 0
        while taken < len(piece):
            some = piece[taken : taken + PART - len(self._filling)]
            self._filling += some
            taken += len(some)
            if len(self._filling) == PART:
                self._send()
        self.written += len(piece)
        return len(piece)

    def _send(self) -> None:
        if len(self._sending) >= _AT_ONCE:
            self._settle(wait(self._sending, return_when=FIRST_COMPLETED).done)
        self._number += 1
        self._sending.add(self._pool.submit(self._upload.send, self._number, self._filling))
        self._filling = bytearray()

    def _settle(self, done: set[Future[None]]) -> None:
        self._sending -= done
        for each in done:
            each.result()

    def finish(self, attempts: int) -> None:
        """Send the rest, make the object visible; FileAlreadyExistsError if the key is taken."""
        if self._filling or not self._number:
            self._send()
        self._settle(wait(self._sending).done)
        self._pool.shutdown()
        complete_once(self._upload, self._location, attempts)
        self.close()

    def abandon(self) -> None:
        """Delete the parts sent so far."""
        self._pool.shutdown(cancel_futures=True)
        self._upload.abort()
        self.close()
