"""Partitions that Hive drops while a migration takes all of them away.

Both look the same in the metastore: so the journal says which ones the migration took.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.context import Workplace
from icecomb.catalog.migrate.journal import Journal, Step
from icecomb.catalog.migrate.place_list import DigestSet, digest
from icecomb.catalog.migrate.source import partition_name, partition_place
from icecomb.catalog.migrate.source_schema import source_schema

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_PAGE: Final = 500


class DroppedPartitions:
    """The partitions of a journal that Hive dropped since the entry was turned.

    None where that is not told: by journals of older versions, and before the turn.

    Args:
        place: where.
        journal: of the migration.
        table: the entry as it is now.

    Attributes:
        names: their names, as Hive says them.
        values: their partition tuples in Iceberg, with the names.
    """

    def __init__(self, place: Workplace, journal: Journal, table: HiveTable) -> None:
        self._place = place
        self.names: list[str] = []
        self.values: dict[tuple[Any, ...], str] = {}
        self._texts: set[tuple[str, ...]] = set()
        self._folders: tuple[str, ...] = ()
        old = journal.table
        told = journal.tells_taken and journal.step(Step.SWAPPED) is not None
        if not told or not old.partition_keys:
            return
        taken = values_of(journal.taken())
        there = present_values(place) if table.partition_keys else DigestSet(b"")
        converted = source_schema(old, journal.choices.timestamp)
        folders = []
        for partition in journal.partitions():
            asked = [digest(repr(partition.values))]
            if taken.among(asked)[0] or there.among(asked)[0]:
                continue
            name = partition_name(old, partition)
            found = partition_place(old, partition, converted, journal.choices.time_zone)
            self.names.append(name)
            folders.append(f"{found.location.rstrip('/')}/")
            self.values[found.values] = name
            self._texts.add(partition.values)
        self._folders = tuple(folders)

    def __contains__(self, texts: tuple[str, ...]) -> bool:
        """Whether the partition of these values in Hive is one of them."""
        return texts in self._texts

    def had(self, location: str) -> bool:
        """Whether a file lies, or lay, in the folder of one of them: Hive took it along."""
        return location.startswith(self._folders)

    def with_rows(self, metadata: TableMetadata) -> list[str]:
        """The names of those that the Iceberg table has files of."""
        from icecomb.format.scan.table_scan import TableScan

        if not self.values or metadata.current_snapshot() is None:
            return []
        found: set[str] = set()
        for task in TableScan(metadata, self._place.io).plan_files():
            if task.file.spec_id != metadata.partition_specs[0].spec_id:
                return self.names  # rows that were written anew, by another spec, may be theirs
            if name := self.values.get(task.file.partition):
                found.add(name)
        return [name for name in self.names if name in found]


def present_values(place: Workplace) -> DigestSet:
    """The values of the partitions that the metastore has now."""
    pages = place.client.partitions.pages(place.database, place.name, _PAGE)
    return values_of(one.values for page in pages for one in page)


def values_of(found: Iterable[tuple[str, ...]]) -> DigestSet:
    """Values of partitions, of which one asks by the digest of their `repr`."""
    return DigestSet(b"".join(digest(repr(values)) for values in found))
