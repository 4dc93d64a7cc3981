"""The manifest lists that this process wrote last, on which the next commit to the table builds.

A list is found by its table and its whole snapshot, and only through the `FileIO` that wrote it.
Commits look up the head of a branch in metadata they have just checked; another writer's commit has
another snapshot, whose list is read. Scans always read from storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.lru import Lru
from icecomb.format.manifests.cache import manifest_cache

if TYPE_CHECKING:
    from uuid import UUID

    from icecomb.format.manifests.manifest_list import ManifestList
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

MAX_MANIFESTS: Final = 100_000
"""Maximum number of manifests in all lists of one `FileIO`, some 700 bytes each."""


class WrittenLists:
    """The last list written of each table; beyond `limit` manifests, the oldest are dropped."""

    def __init__(self, limit: int = MAX_MANIFESTS) -> None:
        self._kept = Lru["UUID", "tuple[Snapshot, ManifestList]"](limit, lambda one: one[1].count())

    def find(self, table: UUID | None, snapshot: Snapshot) -> ManifestList | None:
        """Return the list of a snapshot, if it was the last one written for the table."""
        found = None if table is None else self._kept.find(table)
        return found[1] if found is not None and found[0] == snapshot else None

    def keep(self, table: UUID | None, snapshot: Snapshot, written: ManifestList) -> None:
        """Replace the list of a table; a table without a UUID is ignored."""
        if table is not None:
            self._kept.keep(table, (snapshot, written))


def written_lists(io: FileIO) -> WrittenLists:
    """Return the lists written through a `FileIO`; empty without `io.manifest.cache-enabled`."""
    if manifest_cache(io.properties) is None:
        return WrittenLists(limit=0)
    return io.companion(WrittenLists)
