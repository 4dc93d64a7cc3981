"""A fair in-process lock per table: first come, first served."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakValueDictionary

from icecomb.format.cancellation import wait_for
from icecomb.format.errors import LockTimeoutError

_LOG: Final = logging.getLogger(__name__)


class FairLock:
    """A fair lock of one table."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[tuple[threading.Event, str]] = deque()

    @contextmanager
    def take(self, name: str, timeout_s: float, setting: str) -> Iterator[bool]:
        """Wait for the lock and hold it; yield whether it had to wait.

        Args:
            name: The table's name, for messages.
            timeout_s: Seconds to wait for the lock.
            setting: The property with that time, for messages.

        Raises:
            LockTimeoutError: If another thread held the lock for longer than ``timeout_s``.
            OperationCanceledError: If the work was canceled.
        """
        ticket = (threading.Event(), threading.current_thread().name)
        with self._guard:
            contended = bool(self._waiting)
            self._waiting.append(ticket)
            self._waiting[0][0].set()
        begun = time.monotonic()
        try:
            if not wait_for(ticket[0], timeout_s):
                with self._guard:
                    holder = self._waiting[0][1]
                raise LockTimeoutError(
                    f"{name}: thread {holder!r} of this process has been committing to it for "
                    f"{timeout_s:g} s",
                    hint=f"wait for that commit, or raise {setting}",
                    table=name,
                )
            if contended:
                waited = (time.monotonic() - begun) * 1000
                _LOG.debug("%s: waited %.0f ms for other threads", name, waited)
            yield contended
        finally:
            with self._guard:
                self._waiting.remove(ticket)
                if self._waiting:
                    self._waiting[0][0].set()


# Per process, not per catalog: two catalogs of one metastore or folder have the same tables.
_ALL: Final[WeakValueDictionary[Hashable, FairLock]] = WeakValueDictionary()
_ALL_GUARD: Final = threading.Lock()


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
