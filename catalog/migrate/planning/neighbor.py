"""Other tables of a database whose folders equal, are inside, or contain a table's folder.

Operations on one table's whole folder meet the files of the other there: readers that descend into
subfolders, DROP TABLE of a managed table, the removal of orphan files.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.source_files import plain_folders
from icecomb.catalog.report.finding import Finding, warning


class Neighbors:
    """The folders of all tables of one database.

    Args:
        entries: The database's entries; views have no folder.
        properties: Properties of the `FileIO`, which name HDFS clusters.
    """

    def __init__(self, entries: Iterable[HiveTable], properties: Mapping[str, str]) -> None:
        self._properties = properties
        placed = [(one.full_name, one.storage.location) for one in entries if not one.is_view]
        names = [name for name, location in placed if location]
        plain = self._plain([location for _, location in placed if location])
        self._sorted = sorted(zip(plain, names, strict=True))
        self._by_folder: dict[str, list[str]] = {}
        for folder, name in self._sorted:
            self._by_folder.setdefault(folder, []).append(name)

    def findings(self, table: HiveTable) -> Iterator[Finding]:
        """Yield the findings about a table with such neighbors."""
        if not table.storage.location:
            return
        own, name = self._plain([table.storage.location])[0], table.full_name
        same = [other for other in self._by_folder.get(own, ()) if other != name]
        if same:
            yield warning(
                "same-folder",
                f"its folder is that of {_listed(same)}, too: {table.storage.location}",
                "one of them can be migrated, the others read its folder as before, with files of "
                "old states and without those elsewhere: drop their entries, or make them views",
                tuple(same),
            )
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


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
