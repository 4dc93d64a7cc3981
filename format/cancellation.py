"""Work that somebody has stopped waiting for: it ends at the next point where nothing is half done.

A thread that serves others binds a `Cancellation` to its work. Whatever may take long asks here
whether to go on, and pauses and waits here. Without one bound, nobody cancels.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from icecomb.format.errors import OperationCancelledError


class Cancellation:
    """Whether work is still wanted; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._waiting: list[threading.Event] = []
        self._parts: list[Cancellation] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the work any more."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Say that nobody waits for it; wakes whoever pauses or waits in its course."""
        with self._lock:
            self._event.set()
            for event in self._waiting:
                event.set()
            parts = list(self._parts)
        for part in parts:
            part.cancel()

    @contextmanager
    def part(self) -> Iterator[Cancellation]:
        """One for a part of the work, which ends with the whole, or before it."""
        found = Cancellation()
        with self._lock:
            self._parts.append(found)
            if self._event.is_set():
                found.cancel()
        try:
            yield found
        finally:
            with self._lock:
                self._parts.remove(found)

    def pause(self, seconds: float) -> bool:
        """Sleep; say whether the work is still wanted then."""
        return not self._event.wait(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event that is waited for by nobody else: it is set when work is cancelled."""
        with self._lock:
            if self._event.is_set():
                return event.is_set()
            self._waiting.append(event)
        try:
            return event.wait(seconds)
        finally:
            with self._lock:
                self._waiting.remove(event)


_BOUND: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Bind a cancellation to what this thread does."""
    token = _BOUND.set(cancellation)
    try:
        yield
    finally:
        _BOUND.reset(token)


@contextmanager
def stoppable() -> Iterator[Cancellation]:
    """A cancellation for what other threads do for this one, to be bound there."""
    with (_BOUND.get() or Cancellation()).part() as part:
        yield part


def check_wanted() -> None:
    """Go on only if the work is still wanted.

    Raises:
        OperationCancelledError: It is not.
    """
    bound = _BOUND.get()
    if bound is not None and bound.is_cancelled:
        raise _cancelled()


def rest(seconds: float) -> bool:
    """Sleep; say whether the work is still wanted, at once when it is not."""
    bound = _BOUND.get()
    if bound is not None:
        return bound.pause(seconds)
    time.sleep(seconds)
    return True


def pause(seconds: float) -> None:
    """Sleep.

    Raises:
        OperationCancelledError: The work is not wanted any more.
    """
    if not rest(seconds):
        raise _cancelled()


def wait_for(event: threading.Event, seconds: float) -> bool:
    """Wait for an event that nobody else waits for; say whether it was set in time.

    Raises:
        OperationCancelledError: The work is not wanted any more.
    """
    bound = _BOUND.get()
    if bound is None:
        return event.wait(seconds)
    found = bound.wait(event, seconds)
    check_wanted()
    return found


def _cancelled() -> OperationCancelledError:
    return OperationCancelledError(
        "The statement was cancelled, and what it was doing ended where it was",
        hint="what it was about to change is as it was; run it again if it is still wanted",
    )
