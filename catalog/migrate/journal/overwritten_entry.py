"""Entries of migrated tables that were overwritten with an old copy of the Hive table's.

Impala's catalogd, and tasks of Hive, read an entry and later send all of it back with a change of
their own, without a lock and regardless of its current state. Then the pointer is gone, and so are
the partitions that were removed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from icecomb.catalog.hive.metadata_files import TrailFile, read_trail
from icecomb.catalog.hive.parameters import METADATA_LOCATION
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.format.errors import MigrationError
from icecomb.format.shell_command import shell_command
from icecomb.format.storage.file_io import FileIO

DROPPED: Final = "dropped-commits"
"""The blocker of `dropped_commits`."""


@dataclass(frozen=True, slots=True)
class OverwrittenEntry:
    """An overwritten entry of a migrated table.

    Attributes:
        pointer: The newest metadata file of the Iceberg table; None if none can be read.
    """

    name: str
    pointer: str | None
    finalized: bool

    @property
    def error(self) -> MigrationError:
        """The error for steps that would take it for a table that was never migrated."""
        where = self.pointer or "a metadata file that cannot be read any more"
        remedy = (
            "it is external once EXTERNAL=TRUE is set: drop it then, and "
            + shell_command("register", self.name, self.pointer or "METADATA_FILE")
            if self.finalized
            else f"{shell_command('migrate', 'revert', self.name)} restores the partitions that "
            "were removed, and says what that loses"
        )
        return MigrationError(
            f"{self.name} was converted to an Iceberg table, and somebody overwrote its entry with "
            f"an old copy of the Hive table's; it pointed at {where}",
            hint=f"Find out who writes old copies, as Impala's catalogd does; {remedy}",
            table=self.name,
        )


def find_overwritten(
    io: FileIO, table: HiveTable, journal: Journal, *, trusted: bool = False
) -> OverwrittenEntry | None:
    """Return what was overwritten; None if the entry was not, or is another table's.

    Args:
        trusted: Whether to read metadata outside the table's folder that only the journal names.
    """
    # No alter changes the creation time: only a table that was dropped and re-created has another.
    if table.is_iceberg or table.create_time != journal.table.create_time:
        return None
    if table.metadata_location == journal.marker or journal.step(Step.SWAPPED) is None:
        return None
    if journal.reverted or journal.step(Step.RETURNED) is not None:
        return None
    newest = _newest(io, table, journal) if trusted or journal.is_at_home else None
    pointer = None if newest is None else newest.location
    return OverwrittenEntry(table.full_name, pointer, journal.finalized)


def dropped_commits(io: FileIO, table: HiveTable, journal: Journal) -> MigrationError | None:
    """Return why a table re-created in a migrated one's folder lacks that table's commits.

    Their files are in ``data``, where neither Hive nor a migration of the new table looks for any.
    Return None if the entry is not such a table, or the migrated one had no commits of its own.
    """
    if table.is_iceberg or table.create_time == journal.table.create_time:
        return None
    if journal.reverted or journal.step(Step.SWAPPED) is None:
        return None
    newest = _newest(io, table, journal)
    migrated = (journal.step(Step.PREPARED) or {}).get("snapshot-id")
    if newest is None or newest.metadata.current_snapshot_id in {None, migrated}:
        return None
    return MigrationError(
        f"{table.full_name} was made in the folder of an Iceberg table that a migration made and "
        "somebody dropped; what was committed to that table is not in this one: "
        f"{newest.location}",
        hint=f"{shell_command('register', f'{table.full_name}_dropped', newest.location)} shows "
        f"that table's rows; `icecomb migrate apply --accept {DROPPED}` leaves them behind.",
        table=table.full_name,
    )


def _newest(io: FileIO, table: HiveTable, journal: Journal) -> TrailFile | None:
    """Return the newest metadata file of a journal's Iceberg table; None if none can be read."""
    prepared = journal.step(Step.PREPARED) or {"uuid": "", "metadata-location": ""}
    first = {"uuid": prepared["uuid"], METADATA_LOCATION: prepared["metadata-location"]}
    files = read_trail(io, replace(table, parameters=first)).files
    return files[0] if files else None


_ACCURATE: Final = "COLUMN_STATS_ACCURATE"


class RestoredEntries:
    """The entries of one table whose revert has begun."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        changed = (journal.step(Step.REVERTING) or {}).get("changed") or ()
        self._changed = frozenset(changed)

    @property
    def table(self) -> HiveTable:
        """The old table."""
        old = self._journal.table
        if not self._changed or old.partition_keys:
            return old
        return replace(old, parameters=_doubted(old.parameters))

    def partitions(self) -> Iterator[HivePartition]:
        """Yield the old partitions."""
        for one in self._journal.partitions():
            if (one.storage.location or "").rstrip("/") in self._changed:
                yield replace(one, parameters=_doubted(one.parameters), wire=None)
            else:
                yield one


def folders_of(locations: Iterable[str]) -> list[str]:
    """Return the folders that files are in, directly or not."""
    found: set[str] = set()
    for location in locations:
        folder = location.rpartition("/")[0]
        while folder not in found and folder.rstrip("/:") == folder and "/" in folder:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)


def _doubted(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key != _ACCURATE}
