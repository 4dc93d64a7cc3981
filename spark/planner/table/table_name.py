"""Table names as given by Spark, and selectors behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from icecomb.format.errors import UnsupportedError
from icecomb.spark.planner.table.catalogs import one_level

if TYPE_CHECKING:
    from icecomb.spark.planner.protocol.tables import TableName


class Named(NamedTuple):
    """A parsed table name.

    Args:
        identifier: Namespace and name of a table, or only its location, which contains a slash.
        selector: The selected state or metadata table, see `selectors`; None for the table itself.
    """

    identifier: tuple[str, ...]
    selector: str | None = None


def named(table: TableName) -> Named:
    """Parse a name: ``db.t``, ``db.t.files``, ``/folder/t`` or ``/folder/t#files``."""
    if not table.namespace and "/" in table.name:
        place, _, selector = table.name.partition("#")
        return Named((place,), selector or None)
    if len(table.namespace) == len(("db", "t")):
        return Named(table.namespace, table.name)
    return Named((*one_level(table.namespace), table.name))


def below(table: tuple[str, ...], selector: str) -> tuple[str, ...]:
    """Return the name of what a selector names below a table."""
    return (f"{table[0]}#{selector}",) if is_location(table) else (*table, selector)


def identifier(table: TableName) -> tuple[str, ...]:
    """Return the catalog name of a table or view that a statement creates, changes or drops."""
    name = name_or_location(table)
    if is_location(name):
        raise UnsupportedError(
            f"{table.name} is a folder: a table there cannot be renamed, and no view can be there",
            hint="name a table or view of the catalog",
        )
    return name


def name_or_location(table: TableName) -> tuple[str, ...]:
    """Return the name or location of a table that a statement creates, changes or drops."""
    meant = named(table)
    if meant.selector is not None:
        raise UnsupportedError(
            f"The name {'.'.join((*table.namespace, table.name))} stands for something of table "
            f"{'.'.join(meant.identifier)}: it cannot be created, altered or dropped",
            hint="name the table itself; branches and tags are created and dropped with "
            "ALTER TABLE … CREATE BRANCH, DROP BRANCH, CREATE TAG, DROP TAG",
        )
    return meant.identifier


def is_location(name: tuple[str, ...]) -> bool:
    """Return whether a table is named by its location."""
    return len(name) == 1
