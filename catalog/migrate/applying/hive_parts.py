"""Hive's parts of a converted table's entry: partitions and partition keys.

They are removed after the conversion, and restored before the conversion back, so that no reader
ever sees a Hive table without its partitions. Readers of Iceberg tables ignore them, so this need
not be fast: the lock is released after each page of partitions, and others commit in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from icecomb.catalog.hive.lock import TableLock
from icecomb.catalog.hive.parameters import pointed
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import MissingCallError, RefusedError
from icecomb.catalog.migrate.journal.context import MigrationContext, being_reverted
from icecomb.catalog.migrate.journal.dropped_partitions import (
    DroppedPartitions,
    present_values,
    values_of,
)
from icecomb.catalog.migrate.journal.file_history import TAKEN_IN
from icecomb.catalog.migrate.journal.journal import Journal, Step, lasting_id
from icecomb.catalog.migrate.journal.late_write import find_late_writes
from icecomb.catalog.migrate.journal.overwritten_entry import RestoredEntries, find_overwritten
from icecomb.catalog.migrate.journal.writer_in_flight import WAIT_S, WritersInFlight
from icecomb.catalog.migrate.source.partition_folders import DigestSet, digest
from icecomb.catalog.migrate.source.source_files import PartitionFolder, list_folders
from icecomb.catalog.report.progress import THREADS
from icecomb.format.errors import CommitFailedError, MigrationError
from icecomb.format.holding import Holding
from icecomb.format.operation.file_addition import known_paths
from icecomb.format.property.table_property import MIGRATION_TAKEN
from icecomb.format.secret import one_line
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import read_metadata

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

PAGE: Final = 200
"""Partitions that are dropped or added before the lock is released: about a second."""
_SHOWN: Final = 20


class HiveParts:
    """The partitions and partition keys of one table.

    Args:
        journal: The journal of the migration that converted the table.
        wait_s: Seconds to wait for writers that began before the conversion.
    """

    def __init__(
        self,
        context: MigrationContext,
        journal: Journal,
        threads: int = THREADS,
        wait_s: float = WAIT_S,
    ) -> None:
        self._context = context
        self._journal = journal
        self._threads = threads
        self._wait_s = wait_s
        self._dropped = 0

    def take_away(self) -> None:
        """Drop all partitions, then the keys; safe to repeat at any point. No file is touched.

        It waits for writers that began before the conversion first: Hive replaces the files of a
        partition without an entry.
        """
        # what a run before this one told the entry may not be all
        self._journal = replace(self._journal, told_taken="")
        old = self._journal.table
        WritersInFlight(
            self._context, old, self._journal.partitions, self._wait_s, self._threads
        ).wait("it is an Iceberg table, and what is left to do waits for them", locks=True)
        self.take_in()
        partitions = self._context.client.partitions
        database, name = self._context.database, self._context.name
        known = DigestSet(b"".join(map(_identity, self._journal.partitions())))
        some = self._journal.partition_count > 0
        if not self._journal.digests and not self._journal.grants():
            self.note_grants()
        with self._context.progress.task(
            "dropping metastore partitions", self._journal.partition_count, "partitions"
        ) as advance:
            for page in partitions.name_pages(database, name, PAGE) if some else ():
                with Holding() as held, held, self._converted(held):
                    self._drop(page, known)
                advance(len(page))
        with Holding() as held, held, self._converted(held) as (table, lock):
            if table.partition_keys:
                for page in partitions.name_pages(database, name, PAGE):
                    self._drop(page, known)
            location = table.metadata_location or ""
            metadata = read_metadata(self._context.io, location)
            self._check_none_dropped(table, metadata)
            # Settings of Hive's files, such as delimiters and buckets, are not the Iceberg table's.
            bare = replace(table, storage=StorageDescriptor(location=table.storage.location))
            shown = pointed(bare, metadata, metadata, location, self._context.settings).storage
            said = {MIGRATION_TAKEN: self._journal.taken_told()} if old.partition_keys else {}
            self._context.entry.take_keys_away(shown, said, lock)
        self.take_in()
        self._journal.record(Step.CLEANED)

    def take_in(self) -> bool:
        """Take in files that Hive's writers added after the conversion; return whether any."""
        with Holding() as held, held, self._converted(held) as (table, _):
            metadata = read_metadata(self._context.io, table.metadata_location or "")
        late = find_late_writes(self._context, self._journal, table, metadata, self._threads)
        timed = any(key.type.lower() == "timestamp" for key in self._journal.table.partition_keys)
        if late.replaced or late.gone or late.elsewhere or (late.added and timed):
            raise late.error
        if not late.added:
            return False
        # Recorded first: a revert leaves them where Hive wrote them.
        stated = [
            (one.location, one.size, one.mtime_ms, lasting_id(one)) for one in late.stated.values()
        ]
        self._journal.record(Step.ADDING, files=list(late.added), stated=stated)
        loaded = self._context.catalog.load_table((self._context.database, self._context.name))
        loaded.add_files(
            list(late.added),
            {TAKEN_IN: self._journal.migration_id},
            on_duplicate="skip",
            partition=lambda path: late.added[path],
            parallelism=self._threads,
        )
        self._context.progress.say(
            f"{table.full_name}: {len(late.added)} files that Hive added after the conversion were "
            "taken in"
        )
        return True

    def give_back(self, pointer: str) -> None:
        """Restore the keys and the partitions of the journal; safe to repeat at any point.

        Partitions that Hive dropped after the conversion stay dropped. The entry must point at
        `pointer` throughout.
        """
        journal, entry = self._journal, self._context.entry
        old, dropped = journal.table, DroppedPartitions(self._context, journal, entry.load())
        self._dropped = len(dropped.names)
        with Holding() as held, held, self.pointing_at(held, pointer) as lock:
            entry.give_keys_back(old, lock)
        with self._context.progress.task(
            "restoring metastore partitions", journal.partition_count, "partitions"
        ) as advance:
            partitions = RestoredEntries(journal).partitions()
            left = (one for one in partitions if one.values not in dropped)
            while page := list(islice(left, PAGE)):
                with Holding() as held, held, self.pointing_at(held, pointer):
                    entry.give_partitions_back(page)
                advance(len(page))
        with Holding() as held, held, self.pointing_at(held, pointer):
            self._give_grants_back()

    def give_rest_back(self) -> None:
        """Restore the removed partitions that a Hive table lacks; the caller holds the lock.

        Existing partitions are not touched: Hive may have changed them. Safe to repeat at any
        point.
        """
        journal, there = self._journal, present_values(self._context)
        taken = values_of(journal.taken()) if journal.tells_taken else None
        with self._context.progress.task(
            "restoring metastore partitions", journal.partition_count, "partitions"
        ) as advance:
            left = RestoredEntries(journal).partitions()
            while page := list(islice(left, PAGE)):
                digests = [digest(repr(one.values)) for one in page]
                were_taken = [True] * len(page) if taken is None else taken.among(digests)
                missing = [
                    one
                    for one, is_there, was_taken in zip(
                        page, there.among(digests), were_taken, strict=True
                    )
                    if was_taken and not is_there
                ]
                if missing:
                    self._context.entry.give_partitions_back(missing)
                advance(len(page))
        self._give_grants_back()

    def check_given_back(self) -> None:
        """Check that no partition was dropped since it was restored."""
        if not self._journal.table.partition_keys:
            return
        names = self._context.client.partitions.names(self._context.database, self._context.name)
        wanted = self._journal.partition_count - self._dropped
        if len(names) < wanted:
            raise CommitFailedError(
                f"{self._context.database}.{self._context.name} has {len(names)} partitions of "
                f"{wanted}: somebody dropped them while it was reverted",
                hint="Revert again.",
                table=f"{self._context.database}.{self._context.name}",
            )

    @contextmanager
    def pointing_at(self, held: Holding, pointer: str) -> Iterator[TableLock | None]:
        """Hold the lock on the table, until `held` ends, while it points at a metadata file."""
        lock = self._context.locked(held, self._context.entry.load())
        self._context.entry.expect(pointer)
        with self._context.noting_unanswered(self._journal, self._context.entry.load()):
            yield lock

    def _drop(self, names: Sequence[str], known: DigestSet) -> None:
        found = self._context.client.partitions.named(
            self._context.database, self._context.name, names
        )
        same = known.among(list(map(_identity, found)))
        if strangers := [one for one, is_known in zip(found, same, strict=True) if not is_known]:
            self._check_taken_over(strangers)
        if found:
            self._journal.note_taken(found)
        self._context.entry.drop_partitions(names)

    def note_grants(self) -> None:
        """Record privileges on partitions, which a metastore drops with their entries."""
        if not self._journal.partition_count:
            return
        name = (self._context.database, self._context.name)
        try:
            if found := self._context.client.grants.of(*name):
                self._journal.note_grants(found)
        except (MissingCallError, RefusedError) as error:
            self._context.progress.say(
                f"{'.'.join(name)}: whether privileges were granted on partitions is unknown "
                f"({error.message}); a revert would not restore them"
            )

    def _give_grants_back(self) -> None:
        """Grant the privileges on partitions again that were there before; safe to repeat."""
        if not (before := self._journal.grants()):
            return
        if not (self._journal.digests or self._context.trust_journal):
            self._context.progress.say(
                f"{self._context.database}.{self._context.name}: {len(before)} privileges on "
                f"partitions in {self._journal.location} are not granted again: nothing vouches "
                "for them"
            )
            return
        name = (self._context.database, self._context.name)
        # A table may hand its own privileges to new partitions (PARTITION_LEVEL_PRIVILEGE).
        there = set(self._context.client.grants.of(*name))
        present = present_values(self._context).among([digest(repr(one.values)) for one in before])
        pairs = zip(before, present, strict=True)
        missing = [one for one, is_present in pairs if is_present and one not in there]
        refused: list[str] = []
        for one in missing:
            try:
                self._context.client.grants.add(*name, [one])
            except RefusedError as error:  # noqa: PERF203 - of a role that is gone, say
                refused.append(one_line(f"{one.privilege} to {one.principal}: {error.answer}"))
        if refused:
            self._context.progress.say(
                f"{'.'.join(name)}: {len(refused)} privileges on partitions could not be granted "
                f"again: {refused[0]}"
            )

    @contextmanager
    def _converted(self, held: Holding) -> Iterator[tuple[HiveTable, TableLock | None]]:
        """Hold the lock on the table while it still is the Iceberg table of the journal."""
        lock = self._context.locked(held, self._context.entry.load())
        table = self._context.entry.load()
        if self._journal.step(Step.REVERTING) is not None:
            raise being_reverted(table)
        if overwritten := find_overwritten(self._context.io, table, self._journal):
            raise overwritten.error
        prepared = self._journal.step(Step.PREPARED)
        if prepared is None or table.parameters.get("uuid") != prepared["uuid"]:
            raise CommitFailedError(
                f"{table.full_name} was replaced by somebody else",
                hint=f"{shell_command('migrate', 'status', table.full_name)} shows what it is now.",
                table=table.full_name,
            )
        self._context.require_metadata(table)
        with self._context.noting_unanswered(self._journal, table):
            yield table, lock

    def check_not_moved(self) -> None:
        """Check that Hive moved no partition, whose rows would be lost, since the conversion."""
        if self._journal.step(Step.CLEANED) is not None:
            return  # there are none
        partitions = self._context.client.partitions
        database, name = self._context.database, self._context.name
        known = values_of(one.values for one in self._journal.partitions())
        homes = DigestSet(b"".join(map(_home, self._journal.partitions())))
        for page in partitions.name_pages(database, name, PAGE):
            found = partitions.named(database, name, page)
            old = known.among([digest(repr(one.values)) for one in found])
            same = homes.among(list(map(_home, found)))
            for one, is_old, is_same in zip(found, old, same, strict=True):
                if is_old and not is_same:
                    raise MigrationError(
                        f"{database}.{name} cannot be reverted: Hive gave partition "
                        f"{'/'.join(one.values)} the folder {one.storage.location} after the "
                        "conversion",
                        hint="Move its files into its old folder, give the partition that folder "
                        "again, then revert again.",
                        table=f"{database}.{name}",
                    )

    def _check_none_dropped(self, table: HiveTable, metadata: TableMetadata) -> None:
        """Check that no partition that Hive dropped after the conversion still has rows."""
        names = DroppedPartitions(self._context, self._journal, table).with_rows(metadata)
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise MigrationError(
                f"{table.full_name} is an Iceberg table, but Hive dropped {len(names)} partitions "
                "after the conversion, whose rows are still in it: "
                f"{', '.join(names[:_SHOWN])}{more}",
                hint="Delete these rows with Table.delete, or add the partitions in Hive again, "
                "then apply again; a revert leaves them dropped.",
                table=table.full_name,
            )

    def _check_taken_over(self, strangers: Sequence[HivePartition]) -> None:
        """Check that partitions added after the conversion can be dropped without losing rows."""
        loaded = self._context.catalog.load_table((self._context.database, self._context.name))
        snapshot = loaded.current_snapshot()
        # One without a folder has no rows.
        homes = (one.storage.location for one in strangers)
        folders = [PartitionFolder("", home, ()) for home in homes if home]
        listed = list_folders(self._context.io, folders, self._context.progress, self._threads)
        paths = [status.location for found in listed for status in (*found.files, *found.nested)]
        there = (
            known_paths(self._context.io, loaded.metadata, snapshot, paths, set())
            if snapshot
            else set()
        )
        if left := [path for path in paths if path not in there]:
            raise MigrationError(
                f"{'.'.join(loaded.name())} is an Iceberg table, but Hive added "
                f"{len(left)} files to partitions after the conversion, which are not in it: "
                f"{left[0]}",
                hint="Stop Hive's writers, add the files with Table.add_files, then apply again.",
                table=".".join(loaded.name()),
            )


def _identity(partition: HivePartition) -> bytes:
    """Return a digest of a partition and its rows.

    Hive records its writes in the parameters, at least their time, so rows added to a known
    folder change it, too. A server may send the same parameters in another order.
    """
    said = sorted(partition.parameters.items())
    return digest(repr((partition.values, partition.storage.location, said)))


def _home(partition: HivePartition) -> bytes:
    return digest(repr((partition.values, partition.storage.location)))
