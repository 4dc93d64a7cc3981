"""The context of every step of a migration: the metastore, the files, the lock, the reporter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icecomb.catalog.commit.commit_status import OLD_MS, is_old
from icecomb.catalog.commit.pointer import Committed, Unknown
from icecomb.catalog.hive.lock import TableLock
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.journal.entry import DropUnansweredError, TableEntry
from icecomb.catalog.migrate.journal.folder_journals import FolderJournals
from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.journal.overwritten_entry import OverwrittenEntry, find_overwritten
from icecomb.catalog.migrate.journal.vouching import check_not_exchanged
from icecomb.catalog.report.progress import Progress
from icecomb.catalog.unknown_commit import fence
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    MigrationError,
    NoSuchFileError,
)
from icecomb.format.holding import Holding
from icecomb.format.property.table_property import MIGRATION_VERIFIED
from icecomb.format.shell_command import shell_command
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog


@dataclass(frozen=True, slots=True)
class MigrationContext:
    """The context of a migration of one table, with a reporter of every step."""

    catalog: HiveCatalog
    database: str
    name: str
    progress: Progress
    trust_journal: bool = False

    @property
    def client(self) -> HiveClient:
        """The metastore."""
        return self.catalog.client

    @property
    def io(self) -> FileIO:
        """The file system that holds the table."""
        return self.catalog.io

    @property
    def settings(self) -> Mapping[str, str]:
        """The catalog's properties."""
        return self.catalog.properties

    @property
    def entry(self) -> TableEntry:
        """The table's entry in the metastore."""
        return TableEntry(self.client, self.database, self.name, self.settings)

    def journals(self, table: HiveTable) -> FolderJournals:
        """Return all journals in the table's folder."""
        return FolderJournals(self.catalog, table, trusted=self.trust_journal)

    def journal(self, table: HiveTable) -> Journal | None:
        """Return the journal of the table's migration that was not reverted, or None."""
        found = self.journals(table)
        live = found.live
        if live is None:
            found.check_sole_migration()
        return live

    def migrated(self, table: HiveTable) -> tuple[Journal, dict[str, Any]] | None:
        """Return the journal of an Iceberg table that a migration made, and its step PREPARED."""
        journal = self.journal(table)
        if journal is not None and (found := find_overwritten(self.io, table, journal)):
            raise found.error
        if journal is not None and not self.trust_journal:
            check_not_exchanged(table, journal)
        prepared = journal.step(Step.PREPARED) if journal is not None else None
        if journal is None or prepared is None or not table.is_iceberg:
            return None
        return (journal, prepared) if table.parameters.get("uuid") == prepared["uuid"] else None

    def has_metadata(self, table: HiveTable) -> bool:
        """Return whether the metadata file exists that an Iceberg table's entry points at."""
        return self.io.exists(table.metadata_location or "")

    def require_metadata(self, table: HiveTable) -> None:
        """Check that an Iceberg table's current metadata file exists."""
        if not self.has_metadata(table):
            raise MigrationError(
                f"{table.full_name} is an Iceberg table, but {table.metadata_location} is gone, as "
                "after an overwrite of Hive that was under way when it was migrated",
                hint=f"{shell_command('migrate', 'revert', table.full_name)} tells what restoring "
                "the Hive table would lose.",
                table=table.full_name,
            )

    def overwritten(self, table: HiveTable) -> OverwrittenEntry | None:
        """Return what an old copy of the entry overwrote since the migration, or None."""
        live = self.journal_beside(table)
        return None if live is None else find_overwritten(self.io, table, live)

    def journal_beside(self, table: HiveTable) -> Journal | None:
        """Return the journal that is not reverted in the folder of a table of another format."""
        if table.is_iceberg or not table.storage.location:
            return None
        return self.journals(table).live

    def partitions(self, table: HiveTable) -> Iterator[HivePartition]:
        """Yield the metastore's current partitions, fetched in pages."""
        if table.partition_keys:
            for page in self.client.partitions.pages(table.database, table.name):
                yield from page

    def locked(self, held: Holding, table: HiveTable) -> TableLock | None:
        """Hold the metastore's exclusive lock on the table until `held` ends, as commits do.

        Return None if the table's parameters say that it is changed without locks.
        """
        return self.entry.change.guard(held, table.parameters)

    def require_lock(self, lock: TableLock | None) -> None:
        """Check that the lock was not lost."""
        if lock is not None and not lock.is_alive(ask=True):
            raise CommitFailedError(
                f"The lock on {self.database}.{self.name} was lost",
                hint="Run the same command again.",
                table=f"{self.database}.{self.name}",
            )

    def fence_conversion(self, journal: Journal, table: HiveTable, lock: TableLock | None) -> bool:
        """Ensure that no earlier run can still convert the Hive table, even by a late request.

        Return False if the table was changed meanwhile; `CommitStateUnknownError` if it is unknown
        for now.
        """
        asked = journal.step(Step.SWAPPING)
        if lock is not None and asked is None:
            return True
        if lock is not None and not self.entry.change.sends_expectation():
            if asked is None or is_old(asked["at-ms"]):
                return True
            raise CommitStateUnknownError(
                f"{table.full_name}: a request to make it an Iceberg table was not answered, and "
                "this metastore, which does not check what it replaces, may still carry it out",
                hint=f"Nothing was deleted; try again after {moment_after(asked['at-ms'])}",
                table=table.full_name,
            )
        outcome = self.entry.fence(table, lock)
        if isinstance(outcome, Unknown):
            raise CommitStateUnknownError(
                f"{table.full_name}: it is unknown whether a request to make it an Iceberg "
                f"table may still be carried out: {outcome.reason}",
                hint="Nothing was deleted; try again.",
                table=table.full_name,
            ) from outcome.cause
        return isinstance(outcome, Committed)

    @contextmanager
    def noting_unanswered(self, journal: Journal, table: HiveTable) -> Iterator[None]:
        """Record an unanswered request that would not be refused when it arrives late."""
        try:
            yield
        except CommitStateUnknownError as error:
            change = self.entry.change
            refused = change.sends_expectation() or not change.is_locked(table.parameters)
            if not refused or isinstance(error, DropUnansweredError):
                journal.record(Step.UNANSWERED)
            raise

    def fence(self, journal: Journal, table: HiveTable) -> None:
        """Bump ``metadata_location`` so that a late request of an earlier run is refused."""
        with self.noting_unanswered(journal, table):
            fence(self.catalog, (self.database, self.name))

    def note_verified(self, journal: Journal, table: HiveTable) -> None:
        """Note in the entry that a migration was verified, unless it is noted already."""
        if is_noted_verified(journal, table):
            return
        with self.noting_unanswered(journal, table), Holding() as held, held:
            lock = self.locked(held, table)
            self.entry.note_verified(table, journal.migration_id, lock)


def is_noted_verified(journal: Journal, table: HiveTable) -> bool:
    """Return whether an entry says that a migration was verified.

    Whoever may write to the table's folder could write the journal's step.
    """
    return table.parameters.get(MIGRATION_VERIFIED) == journal.migration_id


def moment(at_ms: int) -> str:
    """Format a time for messages."""
    found = dt.datetime.fromtimestamp(at_ms / 1000, dt.timezone.utc)
    return found.isoformat(sep=" ", timespec="seconds")


def moment_after(at_ms: int) -> str:
    """Format the time after which no request sent at ``at_ms`` can still be under way."""
    return moment(at_ms + OLD_MS)


def being_reverted(table: HiveTable) -> MigrationError:
    """Return the error for any other step during a revert."""
    return MigrationError(
        f"{table.full_name} is being reverted",
        hint=f"Finish it: {shell_command('migrate', 'revert', table.full_name, '--yes')}",
        table=table.full_name,
    )


def remove_empty_folder(io: FileIO, location: str) -> None:
    """Remove a folder if it is empty: even empty ones disturb readers of Hive tables."""
    with suppress(NoSuchFileError):
        io.delete_folder(location)
