"""Names of tables as Spark hands them over, and what may stand behind a table's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from icecomb.format.errors import UnsupportedError
from icecomb.spark.planner.catalogs import one_level

if TYPE_CHECKING:
    from icecomb.spark.planner.protocol import TableName


class Named(NamedTuple):
    """What a name says.

    Args:
        identifier: Namespace and name of a table; or its place alone, which has a slash in it.
        selector: What of the table is meant, see `selectors`; None for itself.
    """

    identifier: tuple[str, ...]
    selector: str | None = None


def named(table: TableName) -> Named:
    """What a name says: ``db.t``, ``db.t.files``, ``/folder/t`` or ``/folder/t#files``.

    Raises:
        NoSuchNamespaceError: It has too few levels, or too many.
    """
    if not table.namespace and "/" in table.name:
        place, _, selector = table.name.partition("#")
        return Named((place,), selector or None)
    if len(table.namespace) == len(("db", "t")):
        return Named(table.namespace, table.name)
    return Named((*one_level(table.namespace), table.name))


def identifier(table: TableName) -> tuple[str, ...]:
    """The name in a catalog of a table or view that a statement makes, changes or drops.

    Raises:
        NoSuchNamespaceError: It has too few levels, or too many.
        UnsupportedError: It names something below a table, or a table by its place.
    """
    name = name_or_place(table)
    if is_place(name):
        raise UnsupportedError(
            f"{table.name} is a folder: a table there cannot be renamed, and no view can be there",
            hint="name a table or view of the catalog",
        )
    return name


def name_or_place(table: TableName) -> tuple[str, ...]:
    """The name, or the place alone, of a table that a statement makes, changes or drops.

    Raises:
        NoSuchNamespaceError: It has too few levels, or too many.
        UnsupportedError: It names something below a table.
    """
    meant = named(table)
    if meant.selector is not None:
        raise UnsupportedError(
            f"The name {'.'.join((*table.namespace, table.name))} stands for something of table "
            f"{'.'.join(meant.identifier)}: it cannot be created, altered or dropped",
            hint="name the table itself; branches and tags are made and dropped with "
            "ALTER TABLE … CREATE BRANCH, DROP BRANCH, CREATE TAG, DROP TAG",
        )
    return meant.identifier


def is_place(name: tuple[str, ...]) -> bool:
    """Whether a table is named by its place."""
    return len(name) == 1
