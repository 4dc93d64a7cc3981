"""Fair queueing of processes for one file-system table.

Without it, a process that takes longer between reading and publishing loses every race against one
that appends without a pause. It is a courtesy: nothing depends on it, other engines do not know it,
and storage without locks on folders has tickets instead.

There are two locks: an outer one on the table's folder, an inner one on its metadata folder. A
process that wants to commit takes the outer lock, waits for the inner one while holding it, and
then releases the outer one to the next. So a process that has just released the inner lock cannot
be the next to take it while another waits.

Tickets: fair queueing of writers at a file-system table whose storage cannot lock folders.

A writer that lost a race draws a ticket, an empty folder named by the version that its change is
based on, and keeps it until the change is committed or given up. Every writer checks for tickets
before a commit, by one call, and waits for them: only a commit that had checked earlier can still
overtake. Tickets are served in the order of their numbers. Their names are unique: deleting one
never ends the wait of another, and no clocks are compared.

Nothing depends on them, either. The ticket of a writer that died
or does not commit is deleted after a limited wait.
"""

from __future__ import annotations

import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Final

from icecomb.format.cancellation import pause
from icecomb.format.errors import IcecombError, NoSuchFileError
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


WAITING: Final = "_icecomb_waiting"
"""The folder of tickets, in the table's ``metadata``; it exists only while a writer waits."""

_NAME: Final = re.compile(r"[0-9]{1,18}\.[^/]+")
_FIRST_PAUSE_S: Final = 0.01


class Tickets:
    """The tickets of one table, checked at most `interval_s` seconds apart."""

    def __init__(self, io: FileIO, metadata: str, patience: Patience, interval_s: float) -> None:
        self._io = io
        self._metadata = metadata
        self._folder = f"{metadata}/{WAITING}"
        self._patience = patience
        self._interval_s = interval_s
        self._inside = False
        self._own: str | None = None
        self._passed: set[str] = set()

    def let_pass(self, held: Holding) -> bool:
        """Wait for all tickets; return whether there were any; `held` deletes the own one."""
        held.add(self._leave)
        waited = self._wait_for(self._drawn())
        self._inside = True
        return waited

    def draw(self, version: int) -> bool:
        """Draw a ticket and wait for earlier ones; return whether a ticket was drawn.

        It is for a change under way, based on `version`, after `let_pass`; elsewhere no ticket is
        drawn.
        """
        if not self._inside:
            return False
        try:
            if self._own is None or self._own not in self._drawn():
                self._give_back()
                # a dropped table must not get its folder back
                if not self._io.is_folder(self._metadata):
                    return False
                host = re.sub(r"[^0-9A-Za-z.-]", "", socket.gethostname())[:64]
                self._own = f"{version}.{host}.{os.getpid()}.{uuid.uuid4().hex}"
                self._create(self._own)
        except IcecombError:
            return False
        self._wait_for([each for each in self._drawn() if _order(each) < _order(self._own)])
        return True

    def _drawn(self) -> Sequence[str]:
        """Return the tickets in their order, without those given up on."""
        try:
            found = self._io.folders(self._folder)
        except IcecombError:  # no writer ever waited, or the storage has no folders
            return []
        known = (each for each in found if _NAME.fullmatch(each) and each not in self._passed)
        return sorted(known, key=_order)

    def _wait_for(self, tickets: Sequence[str]) -> bool:
        limit = self._patience.limit()
        with suppress(IcecombError):
            for ticket in tickets:
                gone = partial(self._is_gone, ticket)
                if self._patience.wait(gone, limit, self._pauses()):
                    continue
                if time.monotonic() > limit:
                    break
                self._passed.add(ticket)
                self._delete(ticket)
        return bool(tickets)

    def _is_gone(self, ticket: str) -> bool:
        return ticket not in self._drawn()

    def _pauses(self) -> Iterator[float]:
        pause = _FIRST_PAUSE_S
        while True:
            yield min(pause, self._interval_s)
            pause *= 1.25

    def _leave(self) -> None:
        self._inside = False
        self._give_back()

    def _give_back(self) -> None:
        if (ticket := self._own) is not None:
            self._passed.add(ticket)
            self._delete(ticket)
            self._own = None

    def _create(self, ticket: str) -> None:
        try:
            self._io.create_folder(f"{self._folder}/{ticket}")
        except NoSuchFileError:  # the last ticket was deleted, and with it their folder
            self._io.create_folder(f"{self._folder}/{ticket}")

    def _delete(self, ticket: str) -> None:
        with suppress(IcecombError):
            self._io.delete_folder(f"{self._folder}/{ticket}")
        with suppress(IcecombError):
            self._io.delete_folder(self._folder)


def _order(ticket: str) -> tuple[int, str]:
    return int(ticket.partition(".")[0]), ticket
