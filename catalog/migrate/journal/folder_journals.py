"""The journals in a table's folder, distinguished by the table that each belongs to.

Two entries of the metastore may share a folder, which holds the journals of both. Acting on another
table's journal would change that table: its metadata would be moved or deleted.

An entry may say another folder than the one that its table is in: Hive 4 moves the location of a
table that it made external itself (TRANSLATED_TO_EXTERNAL) when it is renamed, not its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.catalog.hive.parameters import keeps_files
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.journal.journal import Journal, Step, find_journals
from icecomb.catalog.migrate.source.source_files import plain_folders
from icecomb.format.errors import (
    CorruptFileError,
    MigrationError,
    NoSuchFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from icecomb.format.property.table_property import MIGRATION_DIGEST, MIGRATION_TAKEN
from icecomb.format.property.way_back import MIGRATED
from icecomb.format.spec.metadata_file import read_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog


class FolderJournals:
    """The journals in the folder of one table.

    Attributes:
        home: The folder: that of the entry, or the one that the metadata names, if the journal of
            the entry's table is only there, and the entry vouches for it.
        own: The journals of this table, oldest first, with its current name.
    """

    def __init__(self, catalog: HiveCatalog, table: HiveTable, *, trusted: bool = False) -> None:
        self._catalog = catalog
        self._table = table
        self._trusted = trusted
        self._digest = table.parameters.get(MIGRATION_DIGEST)
        self.home = table.storage.location or ""
        self.own: list[Journal] = []
        self._others: list[HiveTable] = []
        self._find()
        # Whoever may write metadata could name another table's folder, with a journal of his own.
        confirmable = trusted or self._digest is not None
        if confirmable and was_migrated(table) and not self._has_made():
            self.home, before = self._named_by_metadata(), self.home
            if self.home.rstrip("/") != before.rstrip("/"):
                self._find()

    def _find(self) -> None:
        """Find the journals in `home`."""
        table, self.own, self._others = self._table, [], []
        wanted = self._digest
        shown = self._trusted or wanted or was_migrated(table) or not table.is_iceberg
        for found in find_journals(self._catalog.io, self.home):
            confirmed = found.confirmed(wanted) if wanted else None
            journal = replace(
                confirmed or found,
                told_taken=table.parameters.get(MIGRATION_TAKEN, "") if confirmed else "",
                is_open=table.is_iceberg and keeps_files(table),
            )
            if journal.is_copy and journal.table.create_time != table.create_time:
                continue  # belongs to a table that was dropped with its folder
            owner = self._other_owner(journal)
            if owner is None:
                if not shown:
                    continue  # nothing says that a migration made the Iceberg table
                self.own.append(journal.renamed(table.database, table.name))
            elif not journal.reverted:
                self._others.append(owner)

    def _has_made(self) -> bool:
        """Return whether a journal is of the migration that made the Iceberg table."""
        uuid = _uuid(self._table)
        return any((one.step(Step.PREPARED) or {}).get("uuid") == uuid for one in self.own)

    def _named_by_metadata(self) -> str:
        """Return the folder that the table's metadata names."""
        pointer = self._table.metadata_location or ""
        try:
            return read_metadata(self._catalog.io, pointer).location
        except (NoSuchFileError, CorruptFileError):
            return pointer.rpartition("/metadata/")[0]

    @property
    def other(self) -> HiveTable | None:
        """Another table whose migration in the same folder is finished or under way."""
        return self._others[-1] if self._others else None

    @property
    def live(self) -> Journal | None:
        """The journal of this table's newest migration, unless reverted; None if there is none.

        If the entry confirms one, it is that.
        """
        left = [journal for journal in reversed(self.own) if not journal.reverted]
        return next((one for one in left if one.digests), left[0] if left else None)

    def check_sole_migration(self) -> None:
        """Check that no other table's migration in this folder is finished or under way.

        One under way would be taken for a crashed one, although it holds another lock.
        """
        table, other = self._table, self.other
        if other is not None:
            raise MigrationError(
                f"{table.full_name} has the folder of {other.full_name}, which a migration "
                f"made, or makes, an Iceberg table: {self.home}",
                hint="Drop one of the two entries, or revert the other table's migration; if both "
                "were begun at once, neither may have been changed: begin one of them again.",
                table=table.full_name,
            )

    def _other_owner(self, journal: Journal) -> HiveTable | None:
        """Return the other entry that a journal belongs to; None if this table's, or gone."""
        table = self._table
        named = self._named(journal.table)
        prepared = journal.step(Step.PREPARED)
        uuid = None if prepared is None else prepared["uuid"]
        if named is not None and (table.is_iceberg and _uuid(table) == uuid):
            # It was renamed, and its old name given to a Hive table; or it is a copy.
            return named if _uuid(named) == uuid else None
        if named is not None or uuid is None or _uuid(table) == uuid or journal.reverted:
            return named
        # The journal's table may be another entry now, converted and renamed.
        return None if journal.step(Step.SWAPPING) is None else self._converted_table(uuid)

    def _named(self, journaled: HiveTable) -> HiveTable | None:
        """Return the entry that a journal names, if it is another one with this table's folder."""
        table = self._table
        if (journaled.database, journaled.name) == (table.database, table.name):
            return None
        with suppress(NoSuchTableError, NoSuchNamespaceError):
            entry = self._catalog.client.table(journaled.database, journaled.name)
            folders = [self.home, entry.storage.location or ""]
            one, same = plain_folders(self._catalog.io.properties, folders)
            return entry if one == same else None
        return None

    def _converted_table(self, uuid: str) -> HiveTable | None:
        """Return the Iceberg table of a uuid, under any name; None if it is this table."""
        found = next((entry for entry in self._iceberg_tables() if _uuid(entry) == uuid), None)
        own = self._table.full_name
        return None if found is None or found.full_name == own else found

    def _iceberg_tables(self) -> Iterator[HiveTable]:
        own, client = self._table.database, self._catalog.client
        for database in sorted(client.databases(), key=lambda name: (name != own, name)):
            with suppress(NoSuchNamespaceError):
                names = [place[-1] for place in self._catalog.list_tables((database,))]
                yield from client.tables(database, names)


def was_migrated(entry: HiveTable) -> bool:
    """Return whether an entry says that it is an Iceberg table made by a migration."""
    return entry.is_iceberg and entry.parameters.get(MIGRATED) == "true"


def _uuid(table: HiveTable) -> str | None:
    return table.parameters.get("uuid") if table.is_iceberg else None
