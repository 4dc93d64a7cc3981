"""Selection of tables by name, by pattern, by database, or all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.identifier import database_and_table, name_pattern, parts_of
from icecomb.catalog.migrate.journal.folder_journals import FolderJournals, was_migrated
from icecomb.format.errors import NoSuchTableError

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog

ALL: Final = "*"
"""The name that selects every table of every database."""
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class SelectedTables:
    """The selected tables.

    Attributes:
        tables: Database and name of each table, once.
        left_out: Entries that match patterns but are not selected, as "db.name", such as views.
        many: Whether the names may select more than one table.
    """

    tables: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    many: bool


def select(
    client: HiveClient,
    names: Iterable[str | tuple[str, ...]],
    meant: Callable[[HiveTable], bool],
) -> SelectedTables:
    """Select tables by names and patterns.

    Args:
        names: Each ``db.table``; ``db.pattern``, in which ``*`` stands for any characters; ``db``
            for all tables of a database; or ``*`` for all of the metastore.
        meant: Returns whether to select an entry that a pattern matches; tables given by name are
            always selected.
    """
    given = list(names)
    tables: dict[tuple[str, str], None] = {}
    left_out: dict[str, None] = {}
    for name in given:
        pattern = _pattern(name)
        if pattern is None:
            tables[database_and_table(name)] = None
            continue
        found: list[tuple[str, str]] = []
        others: list[str] = []
        for entry in _matching(client, pattern):
            if meant(entry):
                found.append((entry.database, entry.name))
            else:
                others.append(entry.full_name)
        if not found and name != ALL:
            raise _nothing(client, ".".join(pattern), pattern[0], others)
        tables.update(dict.fromkeys(found))
        left_out.update(dict.fromkeys(others))
    return SelectedTables(
        tuple(tables),
        tuple(other for other in left_out if database_and_table(other) not in tables),
        len(given) != 1 or _pattern(given[0]) is not None,
    )


def is_hive_table(entry: HiveTable) -> bool:
    """Return whether an entry could be migrated: it is neither a view nor an Iceberg table."""
    return not entry.is_view and not entry.is_iceberg


def has_way_back(catalog: HiveCatalog, entry: HiveTable) -> bool:
    """Return whether there is something to revert, including an interrupted apply or revert."""
    if entry.is_view or entry.is_iceberg:
        return was_migrated(entry)
    return bool(entry.storage.location) and FolderJournals(catalog, entry).live is not None


def _pattern(name: str | tuple[str, ...]) -> tuple[str, str] | None:
    """Return database and table patterns, either with a ``*``; None for the name of a table."""
    parts = parts_of(name)
    if len(parts) == 1 and parts[0]:
        return parts[0].lower(), "*"
    if len(parts) == 2 and all(parts) and any("*" in part for part in parts):
        return parts[0].lower(), parts[1].lower()
    return None


def _matching(client: HiveClient, pattern: tuple[str, str]) -> Iterator[HiveTable]:
    databases = [pattern[0]]
    if "*" in pattern[0]:
        databases = sorted(filter(name_pattern(pattern[0]).fullmatch, client.databases()))
    for database in databases:
        listed = client.table_names(database)
        names = sorted(filter(name_pattern(pattern[1]).fullmatch, listed))
        for start in range(0, len(names), _PAGE):
            page = client.tables(database, names[start : start + _PAGE])
            yield from sorted(page, key=lambda entry: entry.name)


def _nothing(
    client: HiveClient, pattern: str, database: str, others: list[str]
) -> NoSuchTableError:
    if "*" not in database:
        client.database(database)  # raises if there is none
        if not client.table_names(database):
            return NoSuchTableError(
                f"No table matches {pattern}: namespace {database} is empty",
                hint="DB.* means all tables of the database DB.",
            )
    if others:
        return NoSuchTableError(
            f"No suitable table matches {pattern}: {len(others)} others do, such as {others[0]}",
            hint="Name one to see why it is not suitable.",
        )
    return NoSuchTableError(
        f"No table matches {pattern}", hint="A * stands for any characters: DB.*, DB.sales_*."
    )
