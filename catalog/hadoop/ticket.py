"""Tickets: the turns of writers at one file-system table whose storage has no locks on folders.

Who lost a race draws a ticket, an empty folder named by the version it was to follow, and keeps it
until its change is committed or given up. Everybody looks for tickets before a commit, by one call,
and lets those go first who have one: only a commit that had looked before can still overtake them.
Several with tickets go in the order of their numbers. The names are unique: to delete one never
ends the wait of another, and no clock is compared with another.

As in `icecomb.catalog.hadoop.process_turn` nothing depends on it. The ticket of one that died, or
does not commit, is waited for only so long, and then deleted.
"""

from __future__ import annotations

import os
import re
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import FileMissingError, IcecombError

if TYPE_CHECKING:
    from icecomb.catalog.hadoop.process_turn import Patience
    from icecomb.format.storage.file_io import FileIO

WAITING: Final = "_icecomb_waiting"
"""The folder of tickets, in the table's ``metadata``; there is none where nobody waits."""

_NAME: Final = re.compile(r"[0-9]{1,18}\.[^/]+")
_FIRST_LOOK_S: Final = 0.01


class Tickets:
    """One table's.

    Args:
        io: Where the table is.
        metadata: The folder of the table's metadata.
        patience: How long one with a ticket is waited for.
        look_s: The longest pause between two looks whether it is still there.
    """

    def __init__(self, io: FileIO, metadata: str, patience: Patience, look_s: float) -> None:
        self._io = io
        self._metadata = metadata
        self._folder = f"{metadata}/{WAITING}"
        self._patience = patience
        self._look_s = look_s
        self._inside = False
        self._own: str | None = None
        self._passed: set[str] = set()

    @contextmanager
    def let_pass(self) -> Iterator[bool]:
        """Wait for those with a ticket, and say whether there were any; give back its own."""
        try:
            waited = self._wait_for(self._drawn())
            self._inside = True
            yield waited
        finally:
            self._inside = False
            self._give_back()

    def draw(self, version: int) -> bool:
        """Ask the others to wait; say, when it is this one's turn, whether they were asked.

        It is for a change under way, in the block of `let_pass`; else nobody is asked.

        Args:
            version: What the change is based on.
        """
        if not self._inside:
            return False
        try:
            if self._own is None or self._own not in self._drawn():
                self._give_back()
                # a table that was dropped must not get its folder again
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
        """The tickets there are, the first to go first, without those not waited for any more."""
        try:
            found = self._io.folders(self._folder)
        except IcecombError:  # nobody ever waited, or the storage has no folders
            return []
        known = (each for each in found if _NAME.fullmatch(each) and each not in self._passed)
        return sorted(known, key=_order)

    def _wait_for(self, tickets: Sequence[str]) -> bool:
        limit = self._patience.limit()
        with suppress(IcecombError):
            for ticket in tickets:
                gone = partial(self._is_gone, ticket)
                if self._patience.wait(gone, limit, self._looks()):
                    continue
                if time.monotonic() > limit:
                    break
                self._passed.add(ticket)
                self._delete(ticket)
        return bool(tickets)

    def _is_gone(self, ticket: str) -> bool:
        return ticket not in self._drawn()

    def _looks(self) -> Iterator[float]:
        pause = _FIRST_LOOK_S
        while True:
            yield min(pause, self._look_s)
            pause *= 1.25

    def _give_back(self) -> None:
        if self._own is None:
            return
        ticket, self._own = self._own, None
        self._passed.add(ticket)
        self._delete(ticket)

    def _create(self, ticket: str) -> None:
        try:
            self._io.create_folder(f"{self._folder}/{ticket}")
        except FileMissingError:  # the last ticket was given back, and their folder with it
            self._io.create_folder(f"{self._folder}/{ticket}")

    def _delete(self, ticket: str) -> None:
        with suppress(IcecombError):
            self._io.delete_folder(f"{self._folder}/{ticket}")
        with suppress(IcecombError):
            self._io.delete_folder(self._folder)


def _order(ticket: str) -> tuple[int, str]:
    return int(ticket.partition(".")[0]), ticket
