"""Progress of long steps on stderr: a live line on a terminal, nothing elsewhere.

A step shows its count, rate and remaining time. The remaining time is the time since the start of
the step, scaled by what is left, which does not jump when one file is slow.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from icecomb.catalog.cli.output.terminal import write_line
from icecomb.format.printable_text import printable

_REFRESH_SECONDS = 0.1


class TerminalProgress:
    """Progress for people; silent if ``stream`` is not a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
        """Begin a step of ``total`` units; the yielded function takes newly done units."""
        if not self._live or total == 0:
            yield lambda _: None
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        started = time.monotonic()
        done = 0
        shown = 0.0

        def advance(count: int) -> None:
            nonlocal done, shown
            done += count
            now = time.monotonic()
            if now - shown >= _REFRESH_SECONDS or done == total:
                shown = now
                live.update(Text(line(what, done, total, unit, now - started)), refresh=True)

        console = Console(file=self._stream)
        with Live(Text(line(what, 0, total, unit, 0)), console=console, auto_refresh=False) as live:
            yield advance

    def say(self, message: str) -> None:
        """Report a finished step."""
        if self._live:
            write_line(message, self._stream)


def line(what: str, done: int, total: int, unit: str, seconds: float) -> str:
    """Format a step: name, count, rate, remaining time; ``seconds`` is the time since its start."""
    text = printable(f"{what}: {done:,} of {total:,} {unit}")
    if not done or seconds <= 0:
        return text
    rate = done / seconds
    text += f", {rate:,.0f}/s" if rate >= 1 else f", {rate:.2f}/s"
    if done >= total:
        return f"{text}, {duration(seconds)}"
    return f"{text}, {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    """Format a time for people: ``3 s``, ``2 min 05 s``, ``1 h 12 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"
