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
    """The name of a table that a statement makes, changes or drops.

    Raises:
        NoSuchNamespaceError: It has too few levels, or too many.
        UnsupportedError: It names something below a table, or a table by its place.
    """
    meant = named(table)
    if meant.selector is not None:
        raise UnsupportedError(
            f"The name {'.'.join((*table.namespace, table.name))} stands for something of table "
            f"{'.'.join(meant.identifier)}: it cannot be created, altered or dropped",
            hint="name the table itself; branches and tags are made and dropped with "
            "ALTER TABLE … CREATE BRANCH, DROP BRANCH, CREATE TAG, DROP TAG",
        )
    if is_place(meant.identifier):
        raise UnsupportedError(
            f"The table in the folder {table.name} cannot be created, altered or dropped by its "
            "place",
            hint="do it in a catalog, or from Python with a file-system catalog (type=hadoop); "
            "rows can be written to it",
        )
    return meant.identifier


def is_place(name: tuple[str, ...]) -> bool:
    """Whether a table is named by its place."""
    return len(name) == 1
