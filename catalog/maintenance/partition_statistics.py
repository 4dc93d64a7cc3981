"""Statistics of a table's partitions, computed and registered for a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.argument import MAX_LONG, checked_int
from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.inspect.partition_statistics import PartitionCounter
from icecomb.format.inspect.partition_statistics_file import (
    count_partitions,
    readable_file,
    write_statistics,
)
from icecomb.format.statistics.statistics_file import SetStatistics

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ComputedPartitionStats:
    """The partition statistics file of a snapshot.

    Attributes:
        partition_statistics_file: Location of the file; None for a snapshot without files.
    """

    partition_statistics_file: str | None


def compute_partition_stats(table: Table, *, snapshot: int | None) -> ComputedPartitionStats:
    """Run `Maintenance.compute_partition_stats`."""
    metadata, io = table.metadata, table.io
    table._check_new_files()  # noqa: SLF001 - the table knows its pointer
    chosen = snapshot_to_count(table, snapshot)
    counter = PartitionCounter(metadata, io)
    if not counter.keys:
        raise ValidationError(
            f"Table {'.'.join(table.name())} is not partitioned: it has no partition statistics",
            hint="The metadata table partitions counts the files and rows of the whole table.",
        )
    if chosen is None:
        return ComputedPartitionStats(None)
    known = readable_file(counter, io, metadata, chosen)
    if known is not None:
        return ComputedPartitionStats(known)
    counts = count_partitions(counter, io, metadata, chosen)
    if not len(counts):
        return ComputedPartitionStats(None)
    file = write_statistics(io, metadata, chosen.snapshot_id, counter, counts)
    table.commit(SetStatistics(file, io.delete, of_partitions=True))
    return ComputedPartitionStats(file["statistics-path"])


def snapshot_to_count(table: Table, snapshot_id: int | None) -> Snapshot | None:
    """Return the snapshot to compute statistics of: the current one if none is named."""
    if snapshot_id is None:
        return table.metadata.current_snapshot()
    number = checked_int("snapshot", snapshot_id, -MAX_LONG - 1, MAX_LONG)
    found = table.metadata.snapshot_by_id(number)
    if found is None:
        raise NoSuchSnapshotError(
            f"Table {'.'.join(table.name())} has no snapshot {snapshot_id} to compute "
            "statistics of",
            hint="Look for its id in the snapshots of the table; it may have expired.",
            snapshot_id=snapshot_id,
        )
    return found
