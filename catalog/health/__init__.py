"""What makes tables slow or large, worth how much, and the command that mends it.

    from icecomb.catalog import health, load_catalog

    lake = load_catalog("lake")
    for found in health.check_health(lake, ["sales.*"]):
        print(found.table, found.score, [one.command for one in found.findings])

`table.maintenance.health()` does it for one table, `icecomb health` in a shell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from icecomb.catalog.progress import SILENT, Progress

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
    """The health of many tables, several looked at at a time, in the order of their names.

    Nothing is changed. A table that cannot be read ends nothing: its health says why.

    >>> for found in check_health(lake, "sales.*"):  # doctest: +SKIP
    ...     print(found.table, found.score.total)

    Args:
        catalog: Holds the tables.
        names: One or more: each `db.table`, or a pattern such as `db.*`, where * stands for any
            letters; `db` means all tables of a namespace, `*` all of the catalog.
        orphans: Whether to look for files that nothing refers to, which lists all folders.
        jobs: How many tables are looked at at once.
        progress: Told of each table.

    Raises:
        NoSuchNamespaceError, NoSuchTableError: If a pattern matches nothing; before the first table.
    """
    from icecomb.catalog.health.examination import examine_all
    from icecomb.catalog.health.selection import select_tables
    from icecomb.format.argument import checked_int

    jobs = checked_int("jobs", jobs, 1)
    given = [names] if isinstance(names, str) else list(names)
    chosen = select_tables(catalog, given)
    return examine_all(catalog, chosen, orphans=orphans, jobs=jobs, progress=progress)
