"""A fair in-process lock per table: first come, first served."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Hashable
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from icecomb.format.cancellation import Signal, wait_for
from icecomb.format.errors import CommitFailedError, LockTimeoutError
from icecomb.format.holding import Holding, note_handlers

_LOG: Final = logging.getLogger(__name__)


class _Ticket:
    def __init__(self, held: Holding) -> None:
        self.held = held
        self.is_next = Signal()
        self.thread = threading.current_thread().name


class FairLock:
    """A fair lock of one table."""

    def __init__(self) -> None:
        # reentrant for signal handlers, which interrupt the thread that has it
        self._guard = threading.RLock()
        self._waiting: deque[_Ticket] = deque()

    def take(self, held: Holding, name: str, timeout_s: float, setting: str) -> bool:
        """Wait for the lock and hold it until `held` ends; return whether it had to wait.

        CommitFailedError is raised if this very thread holds the lock: a signal handler wants it.
        """
        note_handlers()
        self._check_others(name)
        ticket = _Ticket(held)
        held.add(partial(self._leave, ticket))
        with self._guard:
            contended = bool(self._waiting)
            self._waiting.append(ticket)
            self._waiting[0].is_next.set()
        begun = time.monotonic()
        if not wait_for(ticket.is_next, timeout_s):
            with self._guard:
                holder = self._waiting[0].thread
            raise LockTimeoutError(
                f"{name}: thread {holder!r} of this process has been committing to it for "
                f"{timeout_s:g} s",
                hint=f"Wait for that commit, or raise {setting}.",
                table=name,
            )
        if contended:
            waited = (time.monotonic() - begun) * 1000
            _LOG.debug("%s: waited %.0f ms for other threads", name, waited)
        return contended

    def _check_others(self, name: str) -> None:
        with self._guard:
            others = tuple(self._waiting)
        for other in others:
            if other.held.is_abandoned():
                other.held.release()
            elif other.held.is_of_this_thread:
                raise CommitFailedError(
                    f"{name}: this thread is committing to it at this moment, and what "
                    "interrupted it, a signal handler or a finalizer, cannot commit meanwhile",
                    hint="Have the handler set a flag, and commit when the commit has returned.",
                    table=name,
                )

    def _leave(self, ticket: _Ticket) -> None:
        with self._guard:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if self._waiting:
                self._waiting[0].is_next.set()


# Per process, not per catalog: two catalogs of one metastore or folder have the same tables.
_ALL: Final[WeakValueDictionary[Hashable, FairLock]] = WeakValueDictionary()
_ALL_GUARD: Final = threading.RLock()


def fair_lock(key: Hashable) -> FairLock:
    """Return the lock of one table, the same for every thread that names it."""
    with _ALL_GUARD:
        found = _ALL.get(key)
        if found is None:
            found = _ALL[key] = FairLock()
        return found


def _reset() -> None:
    _ALL.clear()
    _ALL_GUARD.release()


# A forked process lacks the threads that hold locks, so these would never be released.
os.register_at_fork(
    before=_ALL_GUARD.acquire, after_in_parent=_ALL_GUARD.release, after_in_child=_reset
)
