"""Where long steps report how far they are; the command line shows it, scripts may ignore it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """A receiver of progress."""

    def task(
        self, what: str, total: int, unit: str
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Begin a step of ``total`` units; the function given back is told of each unit done."""

    def say(self, message: str) -> None:
        """Tell of a step that is done."""


class Silent:
    """Progress that nobody watches."""

    def task(
        self,
        what: str,  # noqa: ARG002
        total: int,  # noqa: ARG002
        unit: str,  # noqa: ARG002
    ) -> AbstractContextManager[Callable[[int], None]]:
        """See `Progress.task`."""
        return nullcontext(lambda _: None)

    def say(self, message: str) -> None:
        """See `Progress.say`."""
