"""Partitions that Hive drops while a migration removes all partitions' entries.

Both look the same in the metastore, so the journal lists those that the migration removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.source.partition_folders import DigestSet, PartitionBytes, digest
from icecomb.catalog.migrate.source.source import partition_folder, partition_name
from icecomb.catalog.migrate.source.source_schema import source_schema

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_PAGE: Final = 500


class DroppedPartitions:
    """The partitions of a journal that Hive dropped since the entry was converted.

    Empty where that is unknown: with journals of older versions, and before the conversion.
    """

    def __init__(self, context: MigrationContext, journal: Journal, table: HiveTable) -> None:
        self._context = context
        self.names: list[str] = []
        # by encoded values: NaN is not equal to itself, and -0.0 is to 0.0
        self._names: dict[bytes, str] = {}
        self._packing: PartitionBytes | None = None
        self._texts: set[tuple[str, ...]] = set()
        self._folders: tuple[str, ...] = ()
        old = journal.table
        told = journal.tells_taken and journal.step(Step.SWAPPED) is not None
        if not told or not old.partition_keys:
            return
        taken = values_of(journal.taken())
        there = present_values(context) if table.partition_keys else DigestSet(b"")
        converted = source_schema(old, journal.choices.timestamp)
        self._packing = packing = PartitionBytes(converted.spec, converted.schema)
        folders = []
        for partition in journal.partitions():
            asked = [digest(repr(partition.values))]
            if taken.among(asked)[0] or there.among(asked)[0]:
                continue
            name = partition_name(old, partition)
            found = partition_folder(old, partition, converted, journal.choices.time_zone)
            self.names.append(name)
            folders.append(f"{found.location.rstrip('/')}/")
            self._names[packing.pack(found.values)] = name
            self._texts.add(partition.values)
        self._folders = tuple(folders)

    def __contains__(self, texts: tuple[str, ...]) -> bool:
        """Return whether the partition with these values in Hive is one of them."""
        return texts in self._texts

    def name_of(self, values: tuple[Any, ...]) -> str | None:
        """Return the name in Hive of the one with a partition tuple in Iceberg, or None."""
        return self._names.get(self._packing.pack(values)) if self._packing else None

    def had(self, location: str) -> bool:
        """Return whether a file is or was in the folder of one: Hive dropped it with the folder."""
        return location.startswith(self._folders)

    def with_rows(self, metadata: TableMetadata) -> list[str]:
        """Return the names of those with files in the Iceberg table."""
        from icecomb.format.scan.table_scan import TableScan

        if not self._names or metadata.current_snapshot() is None:
            return []
        found: set[str] = set()
        for task in TableScan(metadata, self._context.io).plan_files():
            if task.file.spec_id != metadata.partition_specs[0].spec_id:
                return self.names  # rows rewritten under another spec may be theirs
            if name := self.name_of(task.file.partition):
                found.add(name)
        return [name for name in self.names if name in found]


def present_values(context: MigrationContext) -> DigestSet:
    """Return the values of the metastore's current partitions."""
    pages = context.client.partitions.pages(context.database, context.name, _PAGE)
    return values_of(one.values for page in pages for one in page)


def values_of(found: Iterable[tuple[str, ...]]) -> DigestSet:
    """Return a set of partition values, looked up by the digest of their `repr`."""
    return DigestSet(b"".join(digest(repr(values)) for values in found))
