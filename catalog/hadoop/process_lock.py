"""Fair queueing of processes for one file-system table.

Without it, a process that takes longer between reading and publishing loses every race against one
that appends without a pause. It is a courtesy: nothing depends on it, other engines do not know it,
and storage without locks on folders has `icecomb.catalog.hadoop.ticket` instead.

There are two locks: an outer one on the table's folder, an inner one on its metadata folder. A
process that wants to commit takes the outer lock, waits for the inner one while holding it, and
then releases the outer one to the next. So a process that has just released the inner lock cannot
be the next to take it while another waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Final

from icecomb.format.cancellation import pause
from icecomb.format.errors import IcecombError
from icecomb.format.holding import Holding

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO
    from icecomb.format.storage.file_system import FolderLock

_POLL_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of waiting for other processes.

    Attributes:
        state: Returns a value that changes with every commit.
        patience_s: Seconds to wait for one process that does not commit.
        limit_s: Seconds to wait for all.
    """

    state: Callable[[], object]
    patience_s: float
    limit_s: float

    def limit(self) -> float:
        """Return the latest end of a wait that begins now, on the monotonic clock."""
        return time.monotonic() + self.limit_s

    def wait(self, ready: Callable[[], bool], limit: float, pauses: Iterable[float]) -> bool:
        """Wait until ``ready`` is true; return whether it is.

        Args:
            limit: The end of the wait, from `limit`.
            pauses: Seconds between two checks.
        """
        if ready():
            return True
        seen, until = self.state(), time.monotonic() + self.patience_s
        for seconds in pauses:
            now = time.monotonic()
            if now > limit:
                return False
            if now > until:
                found = self.state()
                if found == seen:
                    return False
                seen, until = found, now + self.patience_s
            pause(seconds)
            if ready():
                return True
        return False


class ProcessLock:
    """The queue of processes for one table.

    A process that exceeds the limits of waiting is not waited for again as long as it holds the
    lock.
    """

    def __init__(self, io: FileIO, folder: str, patience: Patience) -> None:
        self._io = io
        self._folder = folder
        self._patience = patience
        self._stuck = False

    def take(self, held: Holding) -> bool:
        """Hold the inner lock until `held` ends; return whether folders can be locked here."""
        try:
            room = self._lock(held, f"{self._folder}/metadata")
            if room is None:
                return False
            with Holding() as outer, outer:
                door = self._lock(outer, self._folder)
                if door is None:
                    return False
                limit = self._patience.limit()
                self._stuck = not (self._wait(door, limit) and self._wait(room, limit))
        except IcecombError:  # the folder does not exist yet, or its storage cannot lock
            return False
        return True

    def _lock(self, held: Holding, folder: str) -> FolderLock | None:
        lock = self._io.folder_lock(folder)
        if lock is not None:
            held.add(lock.close)
        return lock

    def _wait(self, lock: FolderLock, limit: float) -> bool:
        """Wait for a lock; return whether it is held."""
        if self._stuck:
            return lock.acquire()
        return self._patience.wait(lock.acquire, limit, repeat(_POLL_S))
