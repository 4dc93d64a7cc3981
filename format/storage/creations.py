"""Small files that are created at the same time, instead of one after the other.

A storage far away takes 20 ms and more for a file whatever its length: a commit waits for its
files, and a write to many partitions for theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import local


class Creations:
    """The block that each thread is in, see `FileIO.side_by_side`.

    Args:
        at_once: So many files, of at most 8 MiB each, are on their way or wait for it.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._of_thread = local()

    @contextmanager
    def block(self) -> Iterator[None]:
        """All that is submitted in here is done when it ends; raises the first error of any."""
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
        """Create a file: outside of a block at once, else some time before its end."""
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
        """Return when a file that was submitted is there; raise what prevented it."""
        block = self._under_way()
        if block is not None and location in block[1]:
            block[1][location].result()

    def wait(self) -> None:
        """Return when all of them are there, or have failed."""
        block = self._under_way()
        if block is not None:
            wait(block[1].values())

    def _under_way(self) -> tuple[ThreadPoolExecutor, dict[str, Future[None]]] | None:
        return getattr(self._of_thread, "block", None)
