"""The journals in a table's folder, distinguished by the table that each belongs to.

Two entries of the metastore may share a folder, which holds the journals of both. Acting on another
table's journal would change that table: its metadata would be moved or deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.journal.journal import Journal, Step, find_journals
from icecomb.catalog.migrate.source.source_files import plain_folders
from icecomb.format.errors import MigrationError, NoSuchNamespaceError, NoSuchTableError

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog


class FolderJournals:
    """The journals in the folder of one table's entry.

    Args:
        catalog: The catalog of the entry.
        table: The current entry.

    Attributes:
        own: The journals of this table, oldest first, with its current name.

    Raises:
        CorruptFileError: If a journal cannot be read.
    """

    def __init__(self, catalog: HiveCatalog, table: HiveTable) -> None:
        self._catalog = catalog
        self._table = table
        self.own: list[Journal] = []
        self._others: list[HiveTable] = []
        for journal in find_journals(catalog.io, table.storage.location or ""):
            if journal.is_copy and journal.table.create_time != table.create_time:
                continue  # belongs to a table that was dropped with its folder
            owner = self._other_owner(journal)
            if owner is None:
                self.own.append(journal.renamed(table.database, table.name))
            elif not journal.reverted:
                self._others.append(owner)

    @property
    def other(self) -> HiveTable | None:
        """Another table whose migration in the same folder is finished or under way."""
        return self._others[-1] if self._others else None

    @property
    def live(self) -> Journal | None:
        """The journal of this table's newest migration, unless reverted; None if there is none."""
        return next((journal for journal in reversed(self.own) if not journal.reverted), None)

    def check_sole_migration(self) -> None:
        """Check that no other table's migration in this folder is finished or under way.

        One under way would be taken for a crashed one, although it holds another lock.

        Raises:
            MigrationError: If there is such a migration.
        """
        table, other = self._table, self.other
        if other is not None:
            raise MigrationError(
                f"{table.full_name} has the folder of {other.full_name}, which a migration "
                f"made, or makes, an Iceberg table: {table.storage.location}",
                hint="drop one of the two entries, or revert the other table's migration; if both "
                "were begun at once, neither may have been changed: begin one of them again",
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
            folders = [one.storage.location or "" for one in (table, entry)]
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


def _uuid(table: HiveTable) -> str | None:
    return table.parameters.get("uuid") if table.is_iceberg else None
