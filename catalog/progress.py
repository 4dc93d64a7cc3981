"""Where long steps report how far they are; the command line shows it, scripts may ignore it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol, TypeAlias, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_Task: TypeAlias = AbstractContextManager[Callable[[int], None]]
THREADS: Final = 16
"""Whoever waits for storage has more of them than cores under way."""


def threads_each(jobs: int) -> int:
    """How many threads each of some jobs has that run side by side, and wait for storage in turn.

    Args:
        jobs: How many there are.
    """
    return max(2, 2 * THREADS // jobs)


class Progress(Protocol):
    """A receiver of progress."""

    def task(self, what: str, total: int, unit: str) -> _Task:
        """Begin a step of ``total`` units; the function given back is told of each unit done."""

    def say(self, message: str) -> None:
        """Tell of a step that is done."""


class Silent:
    """Progress that nobody watches."""

    def task(self, what: str, total: int, unit: str) -> _Task:  # noqa: ARG002
        """See `Progress.task`."""
        return nullcontext(lambda _: None)

    def say(self, message: str) -> None:
        """See `Progress.say`."""


SILENT: Final = Silent()


def each(  # noqa: PLR0917 - what is said of the work, then the work
    progress: Progress,
    what: str,
    unit: str,
    items: Iterable[_T],
    work: Callable[[_T], _R],
    threads: int = THREADS,
    *,
    total: int | None = None,
    ahead: int | None = None,
) -> Iterator[_R]:
    """Do a step with each item, several at a time; results come in the order of the items.

    Args:
        progress: Told of each item that is done.
        what: The step, for people.
        unit: What the items are.
        items: What to do it with.
        work: Does it.
        threads: How many at a time.
        total: How many items there are, where they are no sequence.
        ahead: How many results may wait for whoever takes them; default any number.
    """
    if total is None:
        total = len(items) if isinstance(items, Sized) else 0
    with progress.task(what, total, unit) as advance, workers(threads) as pool:
        for result in in_order(pool, items, work, ahead):
            yield result
            advance(1)


@contextmanager
def workers(threads: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads; what they have not begun at the end of the block is not done."""
    with ThreadPoolExecutor(threads, "icecomb-takeover") as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def in_order(
    pool: ThreadPoolExecutor,
    items: Iterable[_T],
    work: Callable[[_T], _R],
    ahead: int | None = None,
) -> Iterator[_R]:
    """Do something with each item by the threads of a pool; see `each`."""
    waiting: deque[Future[_R]] = deque()
    for item in items:
        if ahead is not None and len(waiting) >= ahead:
            yield waiting.popleft().result()
        waiting.append(pool.submit(work, item))
    while waiting:
        yield waiting.popleft().result()
