"""Entries of migrated tables that somebody overwrote with an old copy of the Hive table's.

Impala's catalogd, and tasks of Hive, read an entry and send all of it back later, with a change of
their own, without a lock and whatever it has become meanwhile. The pointer is gone then, and so are
the partitions that were taken away before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from icecomb.catalog.hive.metadata_files import read_trail
from icecomb.catalog.hive.parameters import METADATA_LOCATION
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.journal import Journal, Step
from icecomb.format.errors import MigrationError
from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class OverwrittenEntry:
    """What is known of such an entry.

    Attributes:
        name: "db.table".
        pointer: The newest metadata file of the Iceberg table; None if none can be read.
        finalized: Whether the migration's way back was given up.
    """

    name: str
    pointer: str | None
    finalized: bool

    @property
    def error(self) -> MigrationError:
        """Why nothing is done that would take it for a table that never was an Iceberg table."""
        where = self.pointer or "a metadata file that cannot be read any more"
        remedy = (
            f"it is external once EXTERNAL=TRUE is set: drop it then, and icecomb register "
            f"{self.name} {where}"
            if self.finalized
            else f"icecomb migrate revert {self.name} gives back the partitions that were taken "
            "away, and says what that loses"
        )
        return MigrationError(
            f"{self.name} was turned into an Iceberg table, and somebody overwrote its entry with "
            f"an old copy of the Hive table's; it pointed at {where}",
            hint=f"find out who writes old copies, as Impala's catalogd does; {remedy}",
            table=self.name,
        )


def find_overwritten(io: FileIO, table: HiveTable, journal: Journal) -> OverwrittenEntry | None:
    """Return what was overwritten; None if the entry is as the migration left it, or is another table's.

    Args:
        io: The table's files.
        table: The entry as it is now.
        journal: Of the table's migration.
    """
    # No alter changes the time: the entry of a table that was dropped, and made anew, has another.
    if table.is_iceberg or table.create_time != journal.table.create_time:
        return None
    if table.metadata_location == journal.marker or journal.step(Step.SWAPPED) is None:
        return None
    if journal.reverted or journal.step(Step.RETURNED) is not None:
        return None
    prepared = journal.step(Step.PREPARED) or {"uuid": "", "metadata-location": ""}
    first = {"uuid": prepared["uuid"], METADATA_LOCATION: prepared["metadata-location"]}
    turned = replace(table, parameters=first)
    files = read_trail(io, turned).files
    return OverwrittenEntry(
        table.full_name, files[0].location if files else None, journal.finalized
    )
