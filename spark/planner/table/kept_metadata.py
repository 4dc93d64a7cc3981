"""The planner's cache of table metadata, bounded by memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

KEPT_BYTES: Final = 64 << 20

_BYTES: Final = 16 << 10
_SNAPSHOT_BYTES: Final = 2 << 10
_LOG_BYTES: Final = 256
_FIELD_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class _Kept:
    metadata: TableMetadata
    io: FileIO
    table: tuple[str, str]
    nbytes: int


class KeptMetadata:
    """A thread-safe cache of table metadata by catalog and metadata location.

    Every commit makes a version. Above the limit, older versions of tables are dropped before the
    only version of another table, least recently used first.

    Args:
        limit: The most bytes of metadata to keep, besides the last added.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._newest: dict[tuple[str, str], tuple[str, str]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, catalog: str, location: str) -> tuple[TableMetadata, FileIO] | None:
        """Return the cached metadata of a file with the table's file system; None if missing."""
        key = (catalog, location)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found.metadata, found.io

    def keep(self, catalog: str, location: str, metadata: TableMetadata, io: FileIO) -> None:
        """Add the metadata of a file."""
        key, table = (catalog, location), (catalog, metadata.location)
        kept = _Kept(metadata, io, table, estimated_bytes(metadata))
        with self._lock:
            self._drop(key)
            self._kept[key] = kept
            self._bytes += kept.nbytes
            newest = self._kept.get(self._newest.get(table, key), kept)
            if newest.metadata.last_updated_ms <= metadata.last_updated_ms:
                self._newest[table] = key
            self._shrink(key)

    def discard(self, catalog: str) -> None:
        """Drop the metadata of a catalog's tables."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == catalog]:
                self._drop(key)

    def _shrink(self, last: tuple[str, str]) -> None:
        older = [key for key, each in self._kept.items() if self._newest.get(each.table) != key]
        for key in (*older, *self._kept):
            if self._bytes <= self._limit:
                return
            if key != last:
                self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._bytes -= dropped.nbytes
            if self._newest.get(dropped.table) == key:
                del self._newest[dropped.table]


def estimated_bytes(metadata: TableMetadata) -> int:
    """Estimate the memory that metadata takes: mostly its snapshots, 2 KiB each."""
    logged = len(metadata.snapshot_log) + len(metadata.metadata_log) + len(metadata.refs)
    fields = sum(len(schema.fields) for schema in metadata.schemas)
    return (
        _BYTES
        + len(metadata.snapshots) * _SNAPSHOT_BYTES
        + logged * _LOG_BYTES
        + fields * _FIELD_BYTES
    )
