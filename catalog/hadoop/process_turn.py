"""The turns of processes at one file-system table: who has more to do has a turn as well.

Without them whoever takes longer between reading and publishing loses every race against one who
appends without a pause. They are a courtesy: nothing depends on them, other engines know nothing of
them, and storage without locks on folders has `icecomb.catalog.hadoop.ticket` instead.

There are two locks, on the table's folder (the door) and on its folder of metadata (the room). Who
wants to commit waits at the door, then inside it for the room, and leaves the door to the next one
when it has the room. So the one who has just left the room cannot be the next in it while anybody
waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Final

from icecomb.format.cancellation import pause
from icecomb.format.errors import IcecombError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO
    from icecomb.format.storage.file_system import FolderLock

_LOOK_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class Patience:
    """How long others are waited for.

    Attributes:
        state: What changes with every commit.
        patience_s: How long one is waited for who does not commit.
        limit_s: How long all are waited for.
    """

    state: Callable[[], object]
    patience_s: float
    limit_s: float

    def limit(self) -> float:
        """When a wait that begins now ends at the latest."""
        return time.monotonic() + self.limit_s

    def wait(self, ready: Callable[[], bool], limit: float, pauses: Iterable[float]) -> bool:
        """Wait until it is ready; say whether it is.

        Args:
            ready: Whether there is nothing to wait for any more.
            limit: See `limit`.
            pauses: Seconds between two looks.

        Raises:
            OperationCancelledError: What it waits for is not wanted any more.
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


class ProcessTurns:
    """One table's.

    Args:
        io: Where the table is.
        folder: The table's folder.
        patience: How long others are waited for; who is in the way longer than that is not waited
            for again as long as that one is there.
    """

    def __init__(self, io: FileIO, folder: str, patience: Patience) -> None:
        self._io = io
        self._folder = folder
        self._patience = patience
        self._stuck = False

    @contextmanager
    def take(self) -> Iterator[bool]:
        """Wait for this process's turn and hold it; say whether there are turns here."""
        with ExitStack() as held:
            try:
                there = self._enter(held)
            except IcecombError:  # the folder is not there yet, or its storage locks none
                there = False
            yield there

    def _enter(self, held: ExitStack) -> bool:
        room = self._io.folder_lock(f"{self._folder}/metadata")
        if room is None:
            return False
        held.callback(room.close)
        door = self._io.folder_lock(self._folder)
        if door is None:
            return False
        try:
            limit = self._patience.limit()
            self._stuck = not (self._wait(door, limit) and self._wait(room, limit))
        finally:
            door.close()
        return True

    def _wait(self, lock: FolderLock, limit: float) -> bool:
        """Whether it is held in the end."""
        if self._stuck:
            return lock.acquire()
        return self._patience.wait(lock.acquire, limit, repeat(_LOOK_S))
