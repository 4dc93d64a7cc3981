"""The turns of processes at one file-system table: who has more to do has a turn as well.

Without them whoever takes longer between reading and publishing loses every race against one who
appends without a pause. They are a courtesy: nothing depends on them, other engines know nothing of
them, and storage without locks on folders has none.

There are two locks, on the table's folder (the door) and on its folder of metadata (the room). Who
wants to commit waits at the door, then inside it for the room, and leaves the door to the next one
when it has the room. So the one who has just left the room cannot be the next in it while anybody
waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import IcecombError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO, FolderLock

_LOOK_S: Final = 0.002


class ProcessTurns:
    """One table's.

    Args:
        io: Where the table is.
        folder: The table's folder.
        state: What changes with every commit.
        patience_s: How long one is waited for who does not commit; then it goes on without a turn,
            and does not wait again as long as that one is there.
        limit_s: How long all are waited for.
    """

    def __init__(
        self,
        io: FileIO,
        folder: str,
        state: Callable[[], object],
        *,
        patience_s: float,
        limit_s: float,
    ) -> None:
        self._io = io
        self._folder = folder
        self._state = state
        self._patience_s = patience_s
        self._limit_s = limit_s
        self._stuck = False

    @contextmanager
    def take(self) -> Iterator[bool]:
        """Waits for this process's turn and holds it; says whether there are turns here."""
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
            limit = time.monotonic() + self._limit_s
            self._stuck = not (self._wait(door, limit) and self._wait(room, limit))
        finally:
            door.close()
        return True

    def _wait(self, lock: FolderLock, limit: float) -> bool:
        """Whether it is held in the end."""
        if lock.acquire():
            return True
        if self._stuck:
            return False
        seen, until = self._state(), time.monotonic() + self._patience_s
        while not lock.acquire():
            now = time.monotonic()
            if now > limit:
                return False
            if now > until:
                found = self._state()
                if found == seen:
                    return False
                seen, until = found, now + self._patience_s
            time.sleep(_LOOK_S)
        return True
