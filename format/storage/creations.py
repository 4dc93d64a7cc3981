"""Concurrent creation of small files.

Remote storage takes 20 ms or more per file whatever its length, which delays commits and writes to
many partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import local


class Creations:
    """The `FileIO.side_by_side` block of each thread.

    At most `at_once` files, of at most 8 MiB each, are in flight or queued.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._of_thread = local()

    @contextmanager
    def block(self) -> Iterator[None]:
        """Wait at the end for all files submitted in the block; raise the first error."""
        around, under_way = self._under_way(), dict[str, Future[None]]()
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="icecomb-create") as pool:
            self._of_thread.block = pool, under_way
            try:
                yield
            finally:
                self._of_thread.block = around
        for each in under_way.values():
            each.result()

    def submit(self, location: str, create: Callable[[], None]) -> None:
        """Create a file: immediately outside of a block, else at some time before its end."""
        block = self._under_way()
        if block is None:
            create()
            return
        pool, under_way = block
        self.wait_for(location)
        unfinished = [each for each in under_way.values() if not each.done()]
        if len(unfinished) >= self._at_once:
            wait(unfinished, return_when=FIRST_COMPLETED)
        under_way[location] = pool.submit(create)

    def wait_for(self, location: str) -> None:
        """Wait until a submitted file exists; raise the error that prevented it."""
        block = self._under_way()
        if block is not None and location in block[1]:
            block[1][location].result()

    def wait(self) -> None:
        """Wait until every submitted file exists or has failed."""
        block = self._under_way()
        if block is not None:
            wait(block[1].values())

    def _under_way(self) -> tuple[ThreadPoolExecutor, dict[str, Future[None]]] | None:
        return getattr(self._of_thread, "block", None)
