"""The manifest lists that this process wrote last: the next commit to the table builds on them.

A list is found by the table and by all that its snapshot says, and only through the `FileIO` that
wrote it. Commits ask for the head of a branch in metadata that they have just checked; what another
writer committed has another snapshot, and is read. Scans read what is in storage.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from icecomb.format.manifests.cache import manifest_cache

if TYPE_CHECKING:
    from uuid import UUID

    from icecomb.format.manifests.manifest_list import ManifestList
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

MAX_MANIFESTS: Final = 100_000
"""How many manifests the lists of one `FileIO` may name together, some 700 bytes each."""


class WrittenLists:
    """The last list of each table, those of the tables written to longest ago dropped first."""

    def __init__(self, limit: int = MAX_MANIFESTS) -> None:
        self._limit = limit
        self._count = 0
        self._lists: OrderedDict[UUID, tuple[Snapshot, ManifestList]] = OrderedDict()
        self._lock = Lock()

    def find(self, table: UUID | None, snapshot: Snapshot) -> ManifestList | None:
        """The list of a snapshot, if it was the last one written for the table."""
        found = None if table is None else self._lists.get(table)
        return found[1] if found is not None and found[0] == snapshot else None

    def keep(self, table: UUID | None, snapshot: Snapshot, written: ManifestList) -> None:
        """Remember a list instead of the one before; a table without identity has none."""
        if table is None:
            return
        with self._lock:
            self._drop(table)
            self._lists[table] = (snapshot, written)
            self._count += written.count()
            while self._count > self._limit:
                self._drop(next(iter(self._lists)))

    def _drop(self, table: UUID) -> None:
        dropped = self._lists.pop(table, None)
        if dropped is not None:
            self._count -= dropped[1].count()


def written_lists(io: FileIO) -> WrittenLists:
    """The lists written through a `FileIO`; none are kept without `io.manifest.cache-enabled`."""
    if manifest_cache(io.properties) is None:
        return WrittenLists(limit=0)
    return io.companion(WrittenLists)
