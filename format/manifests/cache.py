"""Cache of decoded manifests in memory: they never change, so cached ones stay valid."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol, TypeVar, cast

from icecomb.format.lru import Lru
from icecomb.format.manifests.columns import ManifestColumns, cache_key
from icecomb.format.manifests.manifest import ManifestFile
from icecomb.format.storage.storage_property import CACHE_BYTES, CACHE_ENABLED


class SizedManifest(Protocol):
    """A value that the cache can hold."""

    @property
    def nbytes(self) -> int:
        """Its size in memory, in bytes."""


_S = TypeVar("_S", bound=SizedManifest)


class ManifestCache:
    """A thread-safe LRU cache of decoded manifests, with up to `limit` bytes in memory.

    Args:
        store: Second-level cache on disk; None = none.
    """

    def __init__(self, limit: int = CACHE_BYTES.default) -> None:
        self.limit = limit
        self._kept = Lru[tuple[Any, ...], SizedManifest](limit, lambda value: value.nbytes)

    def find(self, manifest: ManifestFile, statistics: frozenset[str]) -> ManifestColumns | None:
        """Return the cached columns of a manifest if they have these statistics, else None."""
        key = cache_key(manifest)
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
        self._kept.keep(cache_key(columns.manifest), columns)

    def derived(self, key: tuple[Any, ...], make: Callable[[], _S]) -> _S:
        """Return a value derived from manifests, computed once and cached only in memory.

        The key has the value's inputs, a name and keys of manifests; the value must not change
        afterwards.
        """
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
    return _cache(CACHE_BYTES.of(properties)) if CACHE_ENABLED.of(properties) else None


# One per process, not per FileIO: manifests are the same for all readers, the limit is on the
# process's memory, and tables loaded by path have a FileIO each.
@cache
def _cache(limit: int) -> ManifestCache:
    return ManifestCache(limit)


# A thread that holds a lock of a cache does not exist in a forked process.
os.register_at_fork(after_in_child=_cache.cache_clear)
