"""What every step of a migration works with: the metastore, the files, the lock, the reporter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from icecomb.catalog.configuration import flag
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.entity_json import partition_from_json, table_from_json
from icecomb.catalog.hive.thrift.server import lock_expiry_s
from icecomb.catalog.migrate.entry import Entry
from icecomb.catalog.migrate.journal import Journal
from icecomb.catalog.migrate.progress import Progress
from icecomb.format.errors import CommitFailedError
from icecomb.format.file_io import FileIO


@dataclass(frozen=True, slots=True)
class Workplace:
    """One table to work on.

    Attributes:
        client: the metastore.
        io: the table's files.
        settings: the catalog's properties.
        database: the table's database.
        name: the table's name.
        progress: told of every step.
    """

    client: HiveClient
    io: FileIO
    settings: Mapping[str, str]
    database: str
    name: str
    progress: Progress

    @property
    def entry(self) -> Entry:
        """The table's entry in the metastore."""
        return Entry(self.client, self.database, self.name)

    def partitions(self, table: HiveTable) -> Iterator[HivePartition]:
        """The partitions the metastore has now, fetched in pages."""
        if table.partition_keys:
            for page in self.client.partitions.pages(table.database, table.name):
                yield from page

    @contextmanager
    def locked(self) -> Iterator[Callable[[], None]]:
        """Hold the metastore's exclusive lock on the table, as a commit does.

        The function given back raises CommitFailedError if the lock was lost meanwhile.

        Raises:
            LockTimeoutError: somebody else holds it; the message names the holder.
        """
        if not flag(self.settings, "iceberg.engine.hive.lock-enabled", default=True):
            yield lambda: None
            return
        settings, expiry = LockSettings.of(self.settings), lock_expiry_s(self.client)
        lock = TableLock(self.client, self.database, self.name, settings, expiry)

        def ensure() -> None:
            if not lock.is_alive(ask=True):
                raise CommitFailedError(
                    f"the lock on {self.database}.{self.name} was lost",
                    hint="run the same command again",
                    table=f"{self.database}.{self.name}",
                )

        lock.acquire()
        try:
            yield ensure
        finally:
            lock.release()


def old_table(journal: Journal) -> HiveTable:
    """The Hive table of a journal."""
    return table_from_json(journal.table)


def old_partitions(journal: Journal) -> Iterator[list[HivePartition]]:
    """The Hive partitions of a journal, in pages."""
    for page in journal.partition_pages():
        yield [partition_from_json(raw) for raw in page]


def remove_empty_folder(io: FileIO, location: str) -> None:
    """Remove a folder if there is nothing in it: even empty ones disturb readers of Hive tables."""
    from pyarrow.fs import FileSelector, FileType

    file_system, path = io.filesystem(location)
    if file_system.get_file_info(path).type != FileType.Directory:
        return
    if not file_system.get_file_info(FileSelector(path)):
        file_system.delete_dir(path)
