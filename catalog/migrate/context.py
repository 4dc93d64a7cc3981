"""What every step of a migration works with: the metastore, the files, the lock, the reporter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icecomb.catalog.commit_status import OLD_MS, fence, is_old
from icecomb.catalog.hive.lock import TableLock
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.entry import DropUnansweredError, Entry
from icecomb.catalog.migrate.folder_journals import FolderJournals
from icecomb.catalog.migrate.journal import Journal, Step
from icecomb.catalog.migrate.kept_footers import FooterFolder, forget_footers
from icecomb.catalog.migrate.overwritten_entry import OverwrittenEntry, find_overwritten
from icecomb.catalog.pointer import Committed, Unknown
from icecomb.catalog.progress import Progress
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    FileMissingError,
    IcecombError,
    MigrationError,
)
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog


@dataclass(frozen=True, slots=True)
class Workplace:
    """One table to work on.

    Attributes:
        catalog: the catalog.
        database: the table's database.
        name: the table's name.
        progress: told of every step.
    """

    catalog: HiveCatalog
    database: str
    name: str
    progress: Progress

    @property
    def client(self) -> HiveClient:
        """The metastore."""
        return self.catalog.client

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self.catalog.io

    @property
    def settings(self) -> Mapping[str, str]:
        """The catalog's properties."""
        return self.catalog.properties

    @property
    def entry(self) -> Entry:
        """The table's entry in the metastore."""
        return Entry(self.client, self.database, self.name, self.settings)

    def journals(self, table: HiveTable) -> FolderJournals:
        """All journals in the table's folder."""
        return FolderJournals(self.catalog, table)

    def journal(self, table: HiveTable) -> Journal | None:
        """The table's migration that was not reverted, if there is one.

        Raises:
            MigrationError: there is one, but it is another table's, which has the same folder.
        """
        found = self.journals(table)
        live = found.live
        if live is None:
            found.check_alone()
        return live

    def migrated(self, table: HiveTable) -> tuple[Journal, dict[str, Any]] | None:
        """The journal of an Iceberg table that a migration made, and what that prepared.

        Raises:
            MigrationError: see `journal`; or its entry was overwritten with an old copy.
        """
        journal = self.journal(table)
        if journal is not None and (found := find_overwritten(self.io, table, journal)):
            raise found.error
        prepared = journal.step(Step.PREPARED) if journal is not None else None
        if journal is None or prepared is None or not table.is_iceberg:
            return None
        return (journal, prepared) if table.parameters.get("uuid") == prepared["uuid"] else None

    def has_metadata(self, table: HiveTable) -> bool:
        """Whether the metadata file is there that an Iceberg table's entry points at."""
        return self.io.exists(table.metadata_location or "")

    def require_metadata(self, table: HiveTable) -> None:
        """Refuse what needs it where it is gone.

        Raises:
            MigrationError: It is.
        """
        if not self.has_metadata(table):
            raise MigrationError(
                f"{table.full_name} is an Iceberg table, but {table.metadata_location} is gone, as "
                "after an overwrite of Hive that was under way when it was migrated",
                hint=f"icecomb migrate revert {table.full_name} says what giving the Hive table "
                "back would lose",
                table=table.full_name,
            )

    def overwritten(self, table: HiveTable) -> OverwrittenEntry | None:
        """What an old copy of the entry overwrote since the table was migrated, if it did."""
        if table.is_iceberg or not table.storage.location:
            return None
        live = self.journals(table).live
        return None if live is None else find_overwritten(self.io, table, live)

    def partitions(self, table: HiveTable) -> Iterator[HivePartition]:
        """The partitions the metastore has now, fetched in pages."""
        if table.partition_keys:
            for page in self.client.partitions.pages(table.database, table.name):
                yield from page

    def footers(
        self, table: HiveTable, target: str | None, beside: str | None = None
    ) -> FooterFolder:
        """Where footers of the table's files are kept.

        Args:
            table: the Hive table.
            target: beside which folder new ones are kept; None for nowhere.
            beside: another folder beside which some may lie.
        """
        locations = [one for one in (table.storage.location, beside) if one]
        return FooterFolder(self.io, locations, self.progress, target)

    def forget_footers(self, location: str | None) -> None:
        """Remove the footers that are kept beside a folder: they have served.

        Args:
            location: the folder.
        """
        with suppress(IcecombError):  # in nobody's way: the next step of a migration tries again
            forget_footers(self.io, location or "")

    def locked(self, table: HiveTable) -> AbstractContextManager[TableLock | None]:
        """Hold the metastore's exclusive lock on the table, as a commit does.

        Args:
            table: the table: its parameters say whether it is changed without locks, and then
                there is none.

        Raises:
            ConfigurationError: it is, and the metastore does not check what it replaces.
            LockTimeoutError: somebody else holds it; the message names the holder.
        """
        return self.entry.change.guard(table.parameters)

    def require_lock(self, lock: TableLock | None) -> None:
        """Refuse to go on when the lock was lost.

        Raises:
            CommitFailedError: it was.
        """
        if lock is not None and not lock.is_alive(ask=True):
            raise CommitFailedError(
                f"The lock on {self.database}.{self.name} was lost",
                hint="run the same command again",
                table=f"{self.database}.{self.name}",
            )

    def rule_out_turn(self, journal: Journal, table: HiveTable, lock: TableLock | None) -> bool:
        """Make sure that the Hive table is not turned any more by an earlier run, even late.

        Args:
            journal: of the run.
            table: the Hive table.
            lock: its lock.

        Returns:
            Whether it is sure; if not, the table was changed meanwhile.

        Raises:
            CommitStateUnknownError: it cannot be told now.
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
                hint=f"nothing was deleted; try again after {moment_after(asked['at-ms'])}",
                table=table.full_name,
            )
        outcome = self.entry.fence(table, lock)
        if isinstance(outcome, Unknown):
            raise CommitStateUnknownError(
                f"{table.full_name}: it cannot be told whether a request to make it an Iceberg "
                f"table may still be carried out: {outcome.reason}",
                hint="nothing was deleted; try again",
                table=table.full_name,
            ) from outcome.cause
        return isinstance(outcome, Committed)

    @contextmanager
    def noting_unanswered(self, journal: Journal, table: HiveTable) -> Iterator[None]:
        """Record it if a request was not answered that is not refused when it arrives late."""
        try:
            yield
        except CommitStateUnknownError as error:
            change = self.entry.change
            refused = change.sends_expectation() or not change.is_locked(table.parameters)
            if not refused or isinstance(error, DropUnansweredError):
                journal.record(Step.UNANSWERED)
            raise

    def fence(self, journal: Journal, table: HiveTable) -> None:
        """Move an Iceberg table's pointer, so that what an earlier run asked for expects another.

        Raises:
            CommitFailedError, CommitStateUnknownError: see `Table.commit`.
        """
        with self.noting_unanswered(journal, table):
            fence(self.catalog, (self.database, self.name))


def moment(at_ms: int) -> str:
    """A time for people."""
    found = dt.datetime.fromtimestamp(at_ms / 1000, dt.timezone.utc)
    return found.isoformat(sep=" ", timespec="seconds")


def moment_after(at_ms: int) -> str:
    """When no request of a time can be under way any more, for people."""
    return moment(at_ms + OLD_MS)


def being_reverted(table: HiveTable) -> MigrationError:
    """The error of who does something else meanwhile."""
    return MigrationError(
        f"{table.full_name} is being reverted",
        hint=f"finish it: icecomb migrate revert {table.full_name} --yes",
        table=table.full_name,
    )


def remove_empty_folder(io: FileIO, location: str) -> None:
    """Remove a folder if there is nothing in it: even empty ones disturb readers of Hive tables."""
    with suppress(FileMissingError):
        io.delete_folder(location)
