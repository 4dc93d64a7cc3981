"""Health of tables: what makes them slow or large, how much, and the command that fixes it.

    from icecomb.catalog import health, load_catalog

    lake = load_catalog("lake")
    for found in health.check_health(lake, ["sales.*"]):
        print(found.table, [one.command for one in found.findings])

`table.maintenance.health()` checks one table; the command is `icecomb health`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from icecomb.catalog.report.progress import SILENT, Progress

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.health.table_health import TableHealth

__all__ = ["check_health"]


def check_health(
    catalog: Catalog,
    names: str | Iterable[str | tuple[str, ...]] = "*",
    *,
    orphans: bool = False,
    jobs: int = 8,
    progress: Progress = SILENT,
) -> Iterator[TableHealth]:
    """Check the health of many tables, several at once, and yield it in the order of their names.

    Nothing is changed. A table that cannot be read stops nothing: its health has the reason.

    >>> for found in check_health(lake, "sales.*"):  # doctest: +SKIP
    ...     print(found.table, len(found.findings))

    Args:
        catalog: The catalog of the tables.
        names: One name or several: each `db.table`, or a pattern such as `db.*`, where * matches
            any characters; `db` means all tables of a namespace, `*` all of the catalog.
        orphans: Whether to search for files that nothing refers to, which lists all folders.
        jobs: Number of tables examined at once.
        progress: Reporter of each finished table.

    Raises:
        NoSuchNamespaceError, NoSuchTableError: If a pattern matches nothing; raised at once.
    """
    from icecomb.catalog.health.examination import examine_all
    from icecomb.catalog.health.selection import select_tables
    from icecomb.format.argument import check_flags, checked_int

    check_flags(orphans=orphans)
    jobs = checked_int("jobs", jobs, 1)
    given = [names] if isinstance(names, str) else list(names)
    chosen = select_tables(catalog, given)
    return examine_all(catalog, chosen, orphans=orphans, jobs=jobs, progress=progress)
