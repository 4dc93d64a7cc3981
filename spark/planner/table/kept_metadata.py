"""The planner's cache of table metadata, bounded by memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from icecomb.format.lru import Lru

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

KEPT_BYTES: Final = 64 << 20

_BYTES: Final = 16 << 10
_SNAPSHOT_BYTES: Final = 2 << 10
_LOG_BYTES: Final = 256
_FIELD_BYTES: Final = 512


class KeptMetadata:
    """A thread-safe cache of table metadata by catalog and metadata location.

    Every commit makes a version. Above the limit, older versions of tables are dropped before the
    only version of another table, least recently used first.

    Args:
        limit: The most bytes of metadata to keep, besides the last added.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._newest: dict[tuple[str, str], tuple[int, tuple[str, str]]] = {}
        self._spared: set[tuple[str, str]] = set()
        self._kept = Lru[tuple[str, str], "tuple[TableMetadata, FileIO]"](
            limit,
            lambda one: estimated_bytes(one[0]),
            keeps_last=True,
            spares=self._spared.__contains__,
        )
        self._lock = threading.Lock()

    def find(self, catalog: str, location: str) -> tuple[TableMetadata, FileIO] | None:
        """Return the cached metadata of a file with the table's file system; None if missing."""
        return self._kept.find((catalog, location))

    def keep(self, catalog: str, location: str, metadata: TableMetadata, io: FileIO) -> None:
        """Add the metadata of a file."""
        key, table = (catalog, location), (catalog, metadata.location)
        with self._lock:
            newest, there = self._newest.get(table, (metadata.last_updated_ms, key))
            if newest <= metadata.last_updated_ms:
                self._spared.discard(there)
                self._spared.add(key)
                self._newest[table] = metadata.last_updated_ms, key
            self._kept.keep(key, (metadata, io))

    def discard(self, catalog: str) -> None:
        """Drop the metadata of a catalog's tables."""
        with self._lock:
            for table in [table for table in self._newest if table[0] == catalog]:
                self._spared.discard(self._newest.pop(table)[1])
            self._kept.discard(lambda key: key[0] == catalog)


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
