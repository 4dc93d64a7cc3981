"""Earlier metadata of a table: its properties, spec and order, which snapshots do not tell.

The current metadata file names earlier ones, as many as `write.metadata.previous-versions-max`
keeps (spec: Table Metadata, `metadata-log`); with `write.metadata.delete-after-commit.enabled`
older ones are deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchFileError
from icecomb.format.spec.metadata_file import read_named_metadata
from icecomb.format.spec.values.temporal import human_timestamptz

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

_EXAMINED: Final = 3
_HINT: Final = "write.metadata.previous-versions-max says how many older metadata files are kept."


def metadata_as_of(table: Table, timestamp_ms: int) -> TableMetadata:
    """Return the metadata current at a time (ms since 1970 UTC); read one file at most."""
    if timestamp_ms >= table.metadata.last_updated_ms:
        return table.metadata
    for entry in reversed(table.metadata.metadata_log):
        if entry.timestamp_ms <= timestamp_ms:
            return _read(table, entry.metadata_file)
    raise _unknown(table, timestamp_ms)


def metadata_of(table: Table, snapshot: Snapshot) -> TableMetadata:
    """Return the metadata that the commit of a snapshot wrote; read three files at most."""
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in table.metadata.metadata_log]
    files.append((table.metadata.last_updated_ms, table.metadata_location))
    made = snapshot.timestamp_ms
    first = next((at for at, (time, _) in enumerate(files) if time >= made), len(files))
    # without an older file, a newer one need not be the first that had the snapshot
    if first > 0 or files[0][0] == made:
        for _, location in files[first : first + _EXAMINED]:
            found = _read(table, location)
            if found.has_snapshot(snapshot.snapshot_id):
                return found
    raise _unknown(table, made)


def _read(table: Table, location: str) -> TableMetadata:
    if location == table.metadata_location:
        return table.metadata
    return read_named_metadata(table.io, location, table.metadata_location)


def _unknown(table: Table, timestamp_ms: int) -> NoSuchFileError:
    at = human_timestamptz(timestamp_ms * 1000)
    return NoSuchFileError(
        f"Table {'.'.join(table.name())} no longer knows its metadata file of {at}",
        hint=_HINT,
        timestamp_ms=timestamp_ms,
    )
