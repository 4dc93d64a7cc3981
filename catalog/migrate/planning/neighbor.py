"""Other tables of a database whose folders equal, are inside, or contain a table's folder.

Operations on one table's whole folder meet the files of the other there: readers that descend into
subfolders, DROP TABLE of a managed table, the removal of orphan files.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.source_files import plain_folders
from icecomb.catalog.report.finding import Finding, blocker, warning

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog

_RECENT_S: Final = 300
_LARGE: Final = 500


class Neighbors:
    """The folders of all tables of one database, read at the monotonic time `read_s`.

    Args:
        properties: Properties of the `FileIO`, which name HDFS clusters.
    """

    def __init__(self, entries: Iterable[HiveTable], properties: Mapping[str, str]) -> None:
        self._properties = properties
        self.read_s = time.monotonic()
        kept = [one for one in entries if not one.is_view]
        placed = [(one.full_name, one.storage.location) for one in kept]
        self._hives = {one.full_name for one in kept if not one.is_iceberg}
        names = [name for name, location in placed if location]
        plain = self._plain([location for _, location in placed if location])
        self._sorted = sorted(zip(plain, names, strict=True))
        self._by_folder: dict[str, list[str]] = {}
        for folder, name in self._sorted:
            self._by_folder.setdefault(folder, []).append(name)

    def __len__(self) -> int:
        """Return the number of tables with a folder."""
        return len(self._sorted)

    def of_same_folder(self, table: HiveTable, accept: Collection[str]) -> Iterator[Finding]:
        """Yield the finding about a table whose folder other tables have, too."""
        if not table.storage.location:
            return
        folder = self._plain([table.storage.location])[0]
        same = [other for other in self._by_folder.get(folder, ()) if other != table.full_name]
        if not same:
            return
        text = f"its folder is that of {_listed(same)}, too: {table.storage.location}"
        if self._hives.isdisjoint(same) or "same-folder" in accept:
            remedy = "accepted" if "same-folder" in accept else "drop the entries that nobody needs"
            yield warning("same-folder", text, remedy, tuple(same))
            return
        yield blocker(
            "same-folder",
            f"{text}; Hive's readers of one without partitions would fail at the folder `metadata` "
            "that apply makes there, those of one with partitions see files of old states as well",
            "drop the other entries, or make them views of this table; `icecomb migrate apply "
            "--accept same-folder` goes on in spite of it",
            tuple(same),
        )

    def findings(self, table: HiveTable, accept: Collection[str] = ()) -> Iterator[Finding]:
        """Yield the findings about a table with such neighbors."""
        yield from self.of_same_folder(table, accept)
        if not table.storage.location:
            return
        own = self._plain([table.storage.location])[0]
        inside = list(self._inside(own))
        if inside:
            yield warning(
                "tables-inside",
                f"its folder contains the tables {_listed(inside)}",
                "move them out (ALTER TABLE ... SET LOCATION): the removal of orphan files of this "
                "table would take theirs for orphans",
                tuple(inside),
            )
        around = list(self._around(own))
        if around:
            yield warning(
                "inside-table",
                f"its folder is in that of {_listed(around)}",
                "give it a folder outside: DROP TABLE of a managed table, and the removal of "
                "orphan files of an Iceberg table, delete everything in their folder",
                tuple(around),
            )

    def _inside(self, own: str) -> Iterator[str]:
        for at in range(bisect_left(self._sorted, (own, "")), len(self._sorted)):
            folder, name = self._sorted[at]
            if not folder.startswith(own):
                return
            if folder != own:
                yield name

    def _around(self, own: str) -> Iterator[str]:
        folder = own[:-1]
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            yield from self._by_folder.get(f"{folder}/", ())

    def _plain(self, locations: Iterable[str]) -> list[str]:
        """Normalize locations, each with one trailing slash, so that prefixes are containers."""
        return [f"{one.rstrip('/')}/" for one in plain_folders(self._properties, locations)]


def neighbors_of(catalog: HiveCatalog, database: str) -> Neighbors:
    """Read the folders of a database's tables."""
    entries = catalog.client.tables(database, catalog.client.table_names(database))
    return Neighbors(entries, catalog.io.properties)


class RecentNeighbors:
    """The folders of tables; those of large databases are read again only after a while."""

    def __init__(self) -> None:
        self.least = _LARGE
        self._found: WeakKeyDictionary[HiveCatalog, dict[str, Neighbors]] = WeakKeyDictionary()
        self._lock = Lock()

    def of_same_folder(
        self, catalog: HiveCatalog, table: HiveTable, accept: Collection[str]
    ) -> list[Finding]:
        """Return the finding about other tables in a table's folder, if there are any.

        Nothing that was read a while ago blocks a table.
        """
        with self._lock:
            known = self._found.setdefault(catalog, {})
            before = known.get(table.database)
            recent = before is not None and time.monotonic() - before.read_s < _RECENT_S
            if before is not None and recent and not list(before.of_same_folder(table, accept)):
                return []
            now = neighbors_of(catalog, table.database)
            if len(now) >= self.least:
                known[table.database] = now
        return list(now.of_same_folder(table, accept))


RECENT: Final = RecentNeighbors()


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
