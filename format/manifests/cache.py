"""Cache of decoded manifests in memory, and in a folder if one is configured.

Manifests never change, so cached ones stay valid. Properties of a `FileIO` set the limits and the
folder.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from icecomb.format.manifests.columns import ManifestColumns, cache_key
from icecomb.format.manifests.manifest import ManifestFile
from icecomb.format.storage.storage_property import (
    CACHE_BYTES,
    CACHE_ENABLED,
    CACHE_FOLDER,
    STORE_BYTES,
)

if TYPE_CHECKING:
    from icecomb.format.manifests.store import ManifestStore


class Sized(Protocol):
    """A value that the cache can hold."""

    @property
    def nbytes(self) -> int:
        """Its size in memory, in bytes."""


_S = TypeVar("_S", bound=Sized)


class ManifestCache:
    """A thread-safe LRU cache of decoded manifests, with up to `limit` bytes in memory.

    Args:
        store: Second-level cache on disk; None = none.
    """

    def __init__(
        self, limit: int = CACHE_BYTES.default, store: ManifestStore | None = None
    ) -> None:
        self.limit = limit
        self.store = store
        self._kept: OrderedDict[tuple[Any, ...], Sized] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, manifest: ManifestFile, statistics: frozenset[str]) -> ManifestColumns | None:
        """Return the cached columns of a manifest if they have these statistics, else None."""
        key = cache_key(manifest)
        found = cast("ManifestColumns | None", self._recall(key))
        if found is not None and statistics <= found.statistics:
            if found.is_shared:
                # manifests that share its arrays may be dropped long before it
                found = found.on_its_own()
                self._remember(key, found)
            return found
        stored = None if self.store is None else self.store.find(manifest, statistics)
        if stored is not None:
            self._remember(key, stored)
        return stored

    def keep(self, columns: ManifestColumns) -> None:
        """Add a decoded manifest to the cache."""
        self._remember(cache_key(columns.manifest), columns)
        if self.store is not None:
            self.store.keep(columns)

    def derived(self, key: tuple[Any, ...], make: Callable[[], _S]) -> _S:
        """Return a value derived from manifests, computed once and cached only in memory.

        The key has the value's inputs, a name and keys of manifests; the value must not change
        afterwards.
        """
        found = cast("_S | None", self._recall(key))
        if found is None:
            found = make()
            self._remember(key, found)
        return found

    def clear(self) -> None:
        """Drop everything in memory."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _recall(self, key: tuple[Any, ...]) -> Sized | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def _remember(self, key: tuple[Any, ...], value: Sized) -> None:
        size = value.nbytes
        with self._lock:
            replaced = self._kept.pop(key, None)
            if replaced is not None:
                self._bytes -= replaced.nbytes
            if size > self.limit:
                return
            self._kept[key] = value
            self._bytes += size
            while self._bytes > self.limit:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.nbytes


def manifest_cache(properties: Mapping[str, str]) -> ManifestCache | None:
    """Return this process's cache for these properties of a `FileIO`; None if disabled."""
    if not CACHE_ENABLED.of(properties):
        return None
    folder = CACHE_FOLDER.of(properties)
    return _cache(CACHE_BYTES.of(properties), folder, STORE_BYTES.of(properties) if folder else 0)


# One per process, not per FileIO: manifests are the same for all readers, the limit is on the
# process's memory, and tables loaded by path have a FileIO each.
@cache
def _cache(limit: int, folder: str | None, stored: int) -> ManifestCache:
    if not folder:
        return ManifestCache(limit)
    from icecomb.format.manifests.store import ManifestStore

    return ManifestCache(limit, ManifestStore(folder, stored))


# A thread that holds a lock of a cache does not exist in a forked process.
os.register_at_fork(after_in_child=_cache.cache_clear)
