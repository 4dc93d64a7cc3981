"""Changes of a table's files by Hive's writers after they were planned.

A writer that began before the conversion may end at any moment of a migration, and after it. Its
files are then in Hive's folders and not in the Iceberg table, or replace files that are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.migrate.journal.dropped_partitions import DroppedPartitions
from icecomb.catalog.migrate.journal.journal import Journal, Step, kept_files, lasting_id
from icecomb.catalog.migrate.source.partition_folders import DigestSet, digest
from icecomb.catalog.migrate.source.source import null_name, partition_folder, table_folder
from icecomb.catalog.migrate.source.source_files import (
    AHEAD,
    PartitionFolder,
    PartitionListing,
    list_folder,
)
from icecomb.catalog.migrate.source.source_schema import source_schema
from icecomb.catalog.report.progress import THREADS, each
from icecomb.format.errors import MigrationError
from icecomb.format.operation.file_addition import known_paths
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.own_folders import named_folders
from icecomb.format.storage.file_system import FileStatus

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
    from icecomb.catalog.migrate.journal.context import MigrationContext
    from icecomb.format.spec.metadata import TableMetadata

_SHOWN: Final = 3


@dataclass(slots=True)
class LateWrites:
    """The changes that were found.

    Attributes:
        replaced: Files of the Iceberg table that were replaced by others of the same name.
        gone: Files of the Iceberg table that do not exist any more, or are empty.
        added: Files of migrated partitions that the Iceberg table never had, with the values of
            their partition columns.
        elsewhere: Such files of partitions that Hive added or moved, and in subfolders.
        stated: What storage says of the files in ``added``.
        finalized: Whether the table can no longer be reverted.
        lost: Files of the Hive table that do not exist any more, and that the Iceberg table does
            not need: only a revert would.
    """

    table: str
    replaced: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    added: dict[str, dict[str, str | None]] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)
    stated: dict[str, FileStatus] = field(default_factory=dict)
    finalized: bool = False
    lost: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.replaced) + len(self.gone) + len(self.added) + len(self.elsewhere)

    def descriptions(self) -> Iterator[str]:
        """Yield a sentence for each file."""
        yield from (f"{one}: replaced since it was planned" for one in self.replaced)
        yield from (f"{one}: in the Iceberg table, not in Hive's folders" for one in self.gone)
        yield from (
            f"{one}: in Hive's folder, not in the Iceberg table"
            for one in (*self.added, *self.elsewhere)
        )

    @property
    def error(self) -> MigrationError:
        """The error that says why the migration is not finished."""
        if lost := [*self.replaced, *self.gone]:
            return MigrationError(
                f"{self.table} is an Iceberg table, but Hive replaced or removed {len(lost)} of "
                f"its files since they were planned: {_some(lost)}",
                hint="Restore them from a backup."
                if self.finalized
                else f"Stop Hive's writers; {shell_command('migrate', 'revert', self.table)} "
                "restores the Hive table with the current files of its folders, then apply again.",
                table=self.table,
            )
        new = [*self.added, *self.elsewhere]
        return MigrationError(
            f"{self.table} is an Iceberg table, but Hive added {len(new)} files after the "
            f"conversion, which are not in it: {_some(new)}",
            hint="Stop Hive's writers; add the files with Table.add_files, or delete them: "
            "remove_orphan_files takes them for orphans."
            if self.finalized
            else "Stop Hive's writers, add the files with Table.add_files, then apply again.",
            table=self.table,
        )


def find_late_writes(
    context: MigrationContext,
    journal: Journal,
    table: HiveTable,
    metadata: TableMetadata,
    threads: int = THREADS,
) -> LateWrites:
    """Compare all folders of the Hive table with the Iceberg table."""
    return _Search(context, journal, table, metadata, threads).run()


def find_changes(
    context: MigrationContext, journal: Journal, table: HiveTable, metadata: TableMetadata
) -> LateWrites:
    """Compare all folders of the Hive table with the files of the journal only.

    Added files include those that the Iceberg table has; whether it uses a file does not count.
    """
    return _Search(context, journal, table, metadata, THREADS).run_by_journal()


class _Search:
    """One comparison."""

    def __init__(
        self,
        context: MigrationContext,
        journal: Journal,
        table: HiveTable,
        metadata: TableMetadata,
        threads: int,
    ) -> None:
        self._context = context
        self._journal = journal
        self._table = table
        self._metadata = metadata
        self._threads = threads
        prepared = journal.step(Step.PREPARED) or {}
        self._timed = bool(prepared.get("files-kept"))
        self._snapshot_id = prepared.get("snapshot-id")

    def run(self) -> LateWrites:
        found, below = self._compared()
        live = self._live(found.gone)
        found.lost = [one for one in found.gone if one not in live]
        found.gone = [one for one in found.gone if one in live]
        strange = dict.fromkeys([*below, *self._of_new_partitions()])
        ever = self._ever_had([*found.added, *strange])
        found.added = {one: given for one, given in found.added.items() if one not in ever}
        found.replaced += [one for one in self._restated(found) if one in ever]
        found.stated = {one: found.stated[one] for one in found.added}
        found.elsewhere = [one for one in strange if one not in ever and one not in found.added]
        return found

    def run_by_journal(self) -> LateWrites:
        found, below = self._compared()
        found.elsewhere = below
        found.replaced += self._restated(found)
        return found

    def _compared(self) -> tuple[LateWrites, list[str]]:
        """Return how the folders differ from the journal, and the strange files in subfolders."""
        names, states = bytearray(), bytearray()
        for page in self._planned():
            names += b"".join(digest(one.location) for one in page)
            states += b"".join(map(self._state, page))
        known, same = DigestSet(bytes(names)), DigestSet(bytes(states))
        taken_in = self._journal.added()
        own = self._own_folders()
        found = LateWrites(self._table.full_name, finalized=self._journal.finalized)
        there = bytearray()
        below: dict[str, None] = {}
        dropped = DroppedPartitions(self._context, self._journal, self._table)
        for listed, given in self._listed(dropped):
            files = [*listed.files, *listed.nested]
            digests = [digest(one.location) for one in files]
            there += b"".join(digests)
            is_known = known.among(digests)
            is_same = same.among(list(map(self._state, files)))
            for at, status in enumerate(files):
                if is_known[at]:
                    # Also one that the table deleted: Hive's rows took its name.
                    if not is_same[at]:
                        found.replaced.append(status.location)
                elif at < len(listed.files):
                    found.added[status.location] = given
                    found.stated[status.location] = status
                elif not status.location.startswith(own):
                    below[status.location] = None
        seen = DigestSet(bytes(there))
        planned = ([one.location for one in page] for page in self._planned())
        for names_of_page in chain(planned, [list(taken_in)]):
            here = seen.among(list(map(digest, names_of_page)))
            pairs = zip(names_of_page, here, strict=True)
            found.gone += [one for one, is_here in pairs if not is_here and not dropped.had(one)]
        return found, list(below)

    def _restated(self, found: LateWrites) -> list[str]:
        """Return the files that were taken in before, and replaced since."""
        return [
            one
            for one, before in self._journal.added().items()
            if before and (now := found.stated.get(one)) and self._state(before) != self._state(now)
        ]

    def _planned(self) -> Iterator[list[FileStatus]]:
        if self._timed:
            yield from kept_files(self._journal)
        elif self._metadata.has_snapshot(self._snapshot_id or -1):
            from icecomb.format.scan.table_scan import TableScan

            scan = TableScan(self._metadata, self._context.io, snapshot_id=self._snapshot_id)
            for task in scan.plan_files():
                yield [FileStatus(task.file.file_path, task.file.file_size_in_bytes, 0)]

    def _state(self, status: FileStatus) -> bytes:
        said: tuple[object, ...] = (status.location, status.size)
        if self._timed:
            said = (*said, status.mtime_ms, lasting_id(status))
        return digest(repr(said))

    def _listed(
        self, dropped: DroppedPartitions
    ) -> Iterator[tuple[PartitionListing, dict[str, str | None]]]:
        """Yield the listed folders of the Hive table, with their partition columns' values."""
        old, io = self._journal.table, self._context.io
        if not old.partition_keys:
            yield list_folder(io, table_folder(old)), {}
            return
        converted = source_schema(old, self._journal.choices.timestamp)
        zone, null = self._journal.choices.time_zone, null_name(old)

        def folders() -> Iterator[tuple[PartitionFolder, dict[str, str | None]]]:
            for one in self._journal.partitions():
                if one.values not in dropped:
                    pairs = zip(old.partition_keys, one.values, strict=True)
                    texts = {key.name: None if text == null else text for key, text in pairs}
                    yield partition_folder(old, one, converted, zone), texts

        def listed(
            asked: tuple[PartitionFolder, dict[str, str | None]],
        ) -> tuple[PartitionListing, dict[str, str | None]]:
            return list_folder(io, asked[0]), asked[1]

        yield from self._each(folders(), listed)

    def _of_new_partitions(self) -> Iterator[str]:
        """Yield the files of partitions that the journal lacks, or has in another folder."""
        # Also of an entry without keys: Hive may have added one right before they were taken away.
        if not self._journal.table.partition_keys:
            return
        homes = DigestSet(b"".join(map(_home, self._journal.partitions())))
        name = (self._context.database, self._context.name)
        for page in self._context.client.partitions.pages(*name):
            is_old = homes.among(list(map(_home, page)))
            pairs = zip(page, is_old, strict=True)
            # One without a folder has no rows.
            folders = [one.storage.location for one, old in pairs if not old]
            strange = [PartitionFolder("", folder, ()) for folder in folders if folder]
            for listed in self._each(strange, partial(list_folder, self._context.io)):
                yield from (one.location for one in (*listed.files, *listed.nested))

    def _each(self, items: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
        progress = self._context.progress
        yield from each(progress, "listing", "partitions", items, work, self._threads, ahead=AHEAD)

    def _own_folders(self) -> tuple[str, ...]:
        """Return the folders of the Iceberg table's own files, also of failed commits."""
        location = (self._journal.table.storage.location or "").rstrip("/")
        folders = [f"{location}/data", f"{location}/metadata", *named_folders(self._metadata)]
        starts = (f"{folder.rstrip('/')}/" for folder in folders)
        # Where Hive writes, too, nobody could tell its files from those of failed commits.
        return tuple(start for start in starts if not f"{location}/".startswith(start))

    def _live(self, paths: list[str]) -> set[str]:
        snapshot = self._metadata.current_snapshot()
        if not paths or snapshot is None:
            return set()
        return known_paths(self._context.io, self._metadata, snapshot, paths, set())

    def _ever_had(self, paths: list[str]) -> set[str]:
        """Return which of these files the table has or had, including deleted ones."""
        found: set[str] = set()
        read: set[str] = set()
        for snapshot in reversed(self._metadata.snapshots):
            left = [one for one in paths if one not in found]
            if not left:
                break
            found |= known_paths(self._context.io, self._metadata, snapshot, left, read)
        return found


def _home(partition: HivePartition) -> bytes:
    return digest(repr((partition.values, partition.storage.location)))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
