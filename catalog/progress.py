"""Where long steps report how far they are; the command line shows it, scripts may ignore it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, TypeAlias, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_Task: TypeAlias = AbstractContextManager[Callable[[int], None]]
THREADS: Final = 16
"""Whoever waits for storage has more of them than cores under way."""


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
    items: Sequence[_T],
    work: Callable[[_T], _R],
    threads: int = THREADS,
) -> Iterator[_R]:
    """Do a step with each item, several at a time; results come in the order of the items."""
    with (
        progress.task(what, len(items), unit) as advance,
        ThreadPoolExecutor(threads, "icecomb-takeover") as pool,
    ):
        for result in pool.map(work, items):
            yield result
            advance(1)
