"""Manifests and manifest lists in memory: they never change, so those kept stay valid."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from icecomb.format.lru import Lru
from icecomb.format.manifests.columns import ManifestColumns, cache_key
from icecomb.format.manifests.manifest import ManifestFile
from icecomb.format.storage.storage_property import CACHE_BYTES, CACHE_ENABLED

if TYPE_CHECKING:
    from uuid import UUID

    from icecomb.format.manifests.manifest_list import ManifestList
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

MAX_MANIFESTS: Final = 100_000
"""Maximum number of manifests in all lists of one `FileIO`, some 700 bytes each."""


class SizedManifest(Protocol):
    """A value that the cache can hold."""

    @property
    def nbytes(self) -> int:
        """Its size in memory, in bytes."""


_S = TypeVar("_S", bound=SizedManifest)


_STORES: Final = ("s3.", "client.", "gcs.", "adls.", "fs.", "dfs.", "hdfs.", "hadoop", "ha.")
"""How properties begin that say which store a location means."""


class ManifestCache:
    """A thread-safe LRU cache of decoded manifests, with up to `limit` bytes in memory."""

    def __init__(self, limit: int = CACHE_BYTES.default) -> None:
        self.limit = limit
        self._kept = Lru[tuple[Any, ...], SizedManifest](limit, lambda value: value.nbytes)
        self._stores: Any = None

    def of(self, properties: Mapping[str, str]) -> ManifestCache:
        """Return this cache for the stores that these properties of a `FileIO` name.

        Two stores may have different files at one location: a copy's writers need not be those of
        the original.
        """
        stores = frozenset(one for one in properties.items() if one[0].startswith(_STORES))
        if not stores:
            return self
        found = copy(self)
        found._stores = stores  # noqa: SLF001 - its own
        return found

    def find(self, manifest: ManifestFile, statistics: frozenset[str]) -> ManifestColumns | None:
        """Return the cached columns of a manifest if they have these statistics, else None."""
        key = self._stores, *cache_key(manifest)
        found = cast("ManifestColumns | None", self._kept.find(key))
        if found is None or not statistics <= found.statistics:
            return None
        if found.is_shared:
            # manifests that share its arrays may be dropped long before it
            found = found.on_its_own()
            self._kept.keep(key, found)
        return found

    def keep(self, columns: ManifestColumns) -> None:
        """Add a decoded manifest to the cache."""
        self._kept.keep((self._stores, *cache_key(columns.manifest)), columns)

    def derived(self, key: tuple[Any, ...], make: Callable[[], _S]) -> _S:
        """Return a value derived from manifests, computed once and cached only in memory.

        The key has the value's inputs, a name and keys of manifests; the value must not change
        afterwards.
        """
        key = self._stores, *key
        found = cast("_S | None", self._kept.find(key))
        if found is None:
            found = make()
            self._kept.keep(key, found)
        return found

    def clear(self) -> None:
        """Drop everything."""
        self._kept.discard()


def manifest_cache(properties: Mapping[str, str]) -> ManifestCache | None:
    """Return this process's cache for these properties of a `FileIO`; None if disabled."""
    if not CACHE_ENABLED.of(properties):
        return None
    return _cache(CACHE_BYTES.of(properties)).of(properties)


# One per process, not per FileIO: manifests are the same for all readers, the limit is on the
# process's memory, and tables loaded by path have a FileIO each.
@cache
def _cache(limit: int) -> ManifestCache:
    return ManifestCache(limit)


# A thread that holds a lock of a cache does not exist in a forked process.
os.register_at_fork(after_in_child=_cache.cache_clear)


class WrittenLists:
    """The last list written of each table; beyond `limit` manifests, the oldest are dropped.

    The next commit to the table builds on it. A list is found by its table and its whole snapshot,
    and only through the `FileIO` that wrote it. Commits look up the head of a branch in metadata
    they have just checked; another writer's commit has another snapshot, whose list is read. Scans
    always read from storage.
    """

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
