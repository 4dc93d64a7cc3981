"""What a Hive table's partitions have that differs from the table or among them, or blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from icecomb.catalog.finding import Finding, blocker, note, warning
from icecomb.catalog.hive.thrift.entity import FieldSchema, HivePartition, HiveTable
from icecomb.catalog.migrate.entry_finding import COLUMN_STATISTICS, lost_statistics
from icecomb.catalog.migrate.obstacle import parquet_positions
from icecomb.catalog.migrate.source import parquet_by_position


class PartitionNotes:
    """What is noticed of their entries while partitions go by; only what differs is kept.

    Args:
        table: The Hive table.
    """

    def __init__(self, table: HiveTable) -> None:
        self._columns = _plain(table.storage.columns)
        self._by_position = parquet_by_position(table)
        self._formats: Counter[str] = Counter()
        self._schemas: list[str] = []
        self._analyzed: list[str] = []
        self._positions: list[str] = []
        self._homeless: list[str] = []

    def look(self, name: str, partition: HivePartition) -> None:
        """Take notice of one partition."""
        storage = partition.storage
        self._formats[_format(storage.input_format)] += 1
        if _plain(storage.columns) != self._columns:
            self._schemas.append(name)
        if COLUMN_STATISTICS in partition.parameters.get("COLUMN_STATS_ACCURATE", ""):
            self._analyzed.append(name)
        if parquet_by_position(partition) and not self._by_position:
            self._positions.append(name)
        if not storage.location:
            self._homeless.append(name)

    def findings(self) -> Iterable[Finding]:
        """What was noticed."""
        if self._homeless:
            yield blocker(
                "partition-location",
                f"{len(self._homeless)} partitions have no folder in the metastore",
                "ALTER TABLE ... PARTITION (...) SET LOCATION in Hive, or drop them there",
                tuple(self._homeless),
            )
        if self._positions:
            yield parquet_positions(self._positions)
        if len(self._formats) > 1:
            counted = tuple(f"{count:,} {kind}" for kind, count in self._formats.most_common())
            yield note(
                "mixed-formats",
                f"its partitions are of {len(counted)} file formats: {', '.join(counted)}",
                "each file is taken over as what it is; new files are Parquet unless the table's "
                "write.format.default says otherwise",
                counted,
            )
        if self._schemas:
            yield warning(
                "mixed-schemas",
                f"{len(self._schemas)} partitions have other columns than the table",
                "Iceberg reads all files by the table's columns, where Hive shows null for what "
                "the partition's entry lacks: compare, or ALTER TABLE ... CASCADE first",
                tuple(self._schemas),
            )
        if self._analyzed:
            many = f"of {len(self._analyzed)} partitions each" if len(self._analyzed) > 1 else ""
            yield lost_statistics(many or "a partition", tuple(self._analyzed))


def outside_findings(inside: Iterable[tuple[str, bool]]) -> Iterable[Finding]:
    """What is said of partitions that are not below the table's folder.

    Args:
        inside: The name of each partition, and whether it is.
    """
    names = tuple(name for name, below in inside if not below)
    if names:
        yield note(
            "outside-folder",
            f"{len(names)} partitions lie outside of the table's folder",
            "their files are taken over where they are; new ones go to the table's folder",
            names,
        )


def _plain(columns: Iterable[FieldSchema]) -> tuple[tuple[str, str], ...]:
    return tuple((one.name.lower(), one.type.lower().replace(" ", "")) for one in columns)


def _format(input_format: str | None) -> str:
    name = (input_format or "none").rpartition(".")[2]
    for kind in ("parquet", "orc", "avro", "rcfile", "sequencefile", "text", "json"):
        if kind in name.lower():
            return kind
    return name
