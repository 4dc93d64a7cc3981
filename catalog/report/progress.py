"""Progress of long steps; the command line shows it, scripts may ignore it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, TypeAlias, TypeVar

from icecomb.format.arrow.batch_stream import pooled, thread_pool

_T = TypeVar("_T")
_R = TypeVar("_R")
_Task: TypeAlias = AbstractContextManager[Callable[[int], None]]
THREADS: Final = 16
"""Threads that wait for storage outnumber the cores."""


def threads_each(jobs: int) -> int:
    """Return the threads per job for concurrent jobs that mostly wait for storage."""
    return max(2, 2 * THREADS // jobs)


class Progress(Protocol):
    """A receiver of progress."""

    def task(self, what: str, total: int, unit: str) -> _Task:
        """Begin a step of ``total`` units; the yielded function takes newly done units."""

    def say(self, message: str) -> None:
        """Report a finished step."""


class Silent:
    """Progress that is discarded."""

    def task(self, what: str, total: int, unit: str) -> _Task:  # noqa: ARG002
        """Implement `Progress.task`: report nothing."""
        return nullcontext(lambda _: None)

    def say(self, message: str) -> None:
        """Implement `Progress.say`: report nothing."""


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
    """Run a step for each item, several at once; yield results in the order of the items.

    Args:
        total: Number of items, if they are not a sequence.
        ahead: Number of results that may wait to be taken; default any number.
    """
    if total is None:
        total = len(items) if isinstance(items, Sized) else 0
    with progress.task(what, total, unit) as advance, thread_pool(threads) as pool:
        for result in pooled(pool, work, items, ahead):
            yield result
            advance(1)
