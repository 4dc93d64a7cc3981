"""Cancellation of work that nobody waits for anymore, at points where nothing is half done.

A thread that serves others binds a `Cancellation` to its work. Code that may run long asks here
whether to continue, and sleeps and waits here. Without one bound, nothing is canceled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue

from icecomb.format.errors import OperationCanceledError


class Signal:
    """An event that one thread waits for; an interrupt while it is set leaves nothing locked."""

    __slots__ = ("_is_set", "_queue")

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """Wake the thread that waits, or will wait."""
        self._is_set = True
        self._queue.put(None)

    def is_set(self) -> bool:
        """Return whether it was set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until it is set; return whether it is."""
        if not self._is_set:
            with suppress(Empty):
                self._queue.get(timeout=max(0.0, seconds))
        return self._is_set


class Cancellation:
    """A thread-safe flag that says whether work is still wanted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._waiting: list[Signal] = []
        self._parts: list[Cancellation] = []

    @property
    def is_canceled(self) -> bool:
        """True if nobody waits for the work anymore."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel the work, and wake every thread that sleeps or waits as part of it."""
        with self._lock:
            self._event.set()
            for event in self._waiting:
                event.set()
            parts = list(self._parts)
        for part in parts:
            part.cancel()

    @contextmanager
    def part(self) -> Iterator[Cancellation]:
        """Provide a cancellation for a part of the work: canceled with the whole, or on its own."""
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
        """Sleep; return whether the work is still wanted afterwards."""
        return not self._event.wait(seconds)

    def wait(self, event: Signal, seconds: float) -> bool:
        """Wait for an event, for which nothing else may wait; return whether it is set."""
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
    """Bind a cancellation to the work of this thread."""
    token = _BOUND.set(cancellation)
    try:
        yield
    finally:
        _BOUND.reset(token)


@contextmanager
def stoppable() -> Iterator[Cancellation]:
    """Provide a cancellation for work that other threads do for this one, to be bound there."""
    with (_BOUND.get() or Cancellation()).part() as part:
        yield part


def check_wanted() -> None:
    """Raise OperationCanceledError if the work was canceled."""
    bound = _BOUND.get()
    if bound is not None and bound.is_canceled:
        raise _canceled()


def rest(seconds: float) -> bool:
    """Sleep; return whether the work is still wanted, and at once when it is not."""
    bound = _BOUND.get()
    if bound is not None:
        return bound.pause(seconds)
    time.sleep(seconds)
    return True


def pause(seconds: float) -> None:
    """Sleep, or raise OperationCanceledError if the work was canceled."""
    if not rest(seconds):
        raise _canceled()


def wait_for(event: Signal, seconds: float) -> bool:
    """Wait for an event that nothing else waits for; return whether it was set in time.

    It raises OperationCanceledError if the work was canceled.
    """
    bound = _BOUND.get()
    if bound is None:
        return event.wait(seconds)
    found = bound.wait(event, seconds)
    check_wanted()
    return found


def _canceled() -> OperationCanceledError:
    return OperationCanceledError(
        "The statement was canceled, and its work was stopped",
        hint="What it was about to change is unchanged; run it again if it is still wanted.",
    )
