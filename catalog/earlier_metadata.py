"""What a table's metadata was before: its properties, spec and order, which snapshots do not tell.

The metadata file of now names those before it, as many as `write.metadata.previous-versions-max`
leaves (spec: Table Metadata, `metadata-log`); with `write.metadata.delete-after-commit.enabled`
older ones are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import FileMissingError
from icecomb.format.spec.metadata_file import read_metadata
from icecomb.format.spec.temporal import human_timestamptz

if TYPE_CHECKING:
    from icecomb.catalog.table import Table
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

_LOOKED_INTO: Final = 3
_HINT: Final = "write.metadata.previous-versions-max says how many older metadata files are kept"


def metadata_as_of(table: Table, timestamp_ms: int) -> TableMetadata:
    """The metadata that was current at a time; reads one file at most.

    Args:
        table: The table.
        timestamp_ms: Milliseconds since 1970 UTC.

    Raises:
        FileMissingError: If the file is not known any more, or is gone.
        CorruptFileError: If it cannot be read.
    """
    if timestamp_ms >= table.metadata.last_updated_ms:
        return table.metadata
    for entry in reversed(table.metadata.metadata_log):
        if entry.timestamp_ms <= timestamp_ms:
            return read_metadata(table.io, entry.metadata_file)
    raise _unknown(table, timestamp_ms)


def metadata_of(table: Table, snapshot: Snapshot) -> TableMetadata:
    """The metadata that the commit of a snapshot made; reads three files at most.

    Raises:
        FileMissingError: As for `metadata_as_of`.
        CorruptFileError: If the same.
    """
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in table.metadata.metadata_log]
    files.append((table.metadata.last_updated_ms, table.metadata_location))
    made = snapshot.timestamp_ms
    first = next((at for at, (time, _) in enumerate(files) if time >= made), len(files))
    # where no older file is known, a younger one need not be the first that had the snapshot
    if first > 0 or files[0][0] == made:
        for _, location in files[first : first + _LOOKED_INTO]:
            found = _read(table, location)
            if found.has_snapshot(snapshot.snapshot_id):
                return found
    raise _unknown(table, made)


def _read(table: Table, location: str) -> TableMetadata:
    if location == table.metadata_location:
        return table.metadata
    return read_metadata(table.io, location)


def _unknown(table: Table, timestamp_ms: int) -> FileMissingError:
    at = human_timestamptz(timestamp_ms * 1000)
    return FileMissingError(
        f"Table {'.'.join(table.name())} does not know its metadata file of {at} any more",
        hint=_HINT,
        timestamp_ms=timestamp_ms,
    )
