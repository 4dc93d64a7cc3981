"""One call of a procedure: what it works on, and what it leaves for Spark to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.maintenance.engine import GroupEngine
    from icecomb.catalog.maintenance.session_listing import FolderEngine
    from icecomb.catalog.table import Table

SESSION_CATALOG: Final = "spark_catalog"
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")


@dataclass(frozen=True, slots=True)
class Call:
    """What a procedure is called with beside its arguments.

    Args:
        catalog: The catalog that it is called in.
        namespace: Where names without one are: the session's own, if it uses this catalog.
        session: Rewrites files where the planner should not.
        query: Gives the rows of a query of the session, as dictionaries.
        metastore: ``hive.metastore.uris`` of Spark's own Hive support.
        summary: What snapshots say about the application.
        case_sensitive: Whether names of columns are.
        statements: SQL that the session runs when the procedure is done; the procedure adds to it.
        listing: Lists folders where they are too many for the planner.
    """

    catalog: Catalog
    namespace: tuple[str, ...]
    session: GroupEngine
    query: Callable[[str], Iterator[Any]]
    metastore: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = False
    statements: list[str] = field(default_factory=list)
    listing: FolderEngine | None = None

    def identifier(self, table: str) -> tuple[str, str]:
        """The table that an argument names, as Iceberg reads it.

        It is ``t``, ``db.t`` or ``catalog.db.t``, with backquotes where Spark needs them.

        Raises:
            ValidationError: It is no name, or names a table of another catalog.
        """
        parts = parse_name(table)
        if len(parts) == 1:
            parts = (*self.namespace, *parts)
        elif parts[0] == self.catalog.name:
            parts = parts[1:]
        if len(parts) != 2:
            raise ValidationError(
                f"{table} is no table of catalog {self.catalog.name}",
                hint="name it db.table, and call the procedure of the catalog that has the table",
            )
        return parts[0], parts[1]

    def source(self, table: str) -> tuple[str, str]:
        """The Hive table that an argument names; ``spark_catalog`` is where Spark has it.

        Raises:
            ValidationError: It is no name, or Spark's own tables are in another metastore.
        """
        parts = parse_name(table)
        if len(parts) != 3 or parts[0] != SESSION_CATALOG or self.catalog.name == parts[0]:
            return self.identifier(table)
        uris = _servers(self.catalog.properties.get("uri"))
        if uris.isdisjoint(_servers(self.metastore)):
            raise ValidationError(
                f"{table} is not in the metastore of catalog {self.catalog.name}: Spark's own "
                f"tables are in {self.metastore or 'no metastore'}",
                hint=f"name it as catalog {self.catalog.name} has it: db.table",
            )
        return parts[1], parts[2]

    def load(self, table: str) -> Table:
        """The table that an argument names, as it is now."""
        return self.catalog.load_table(self.identifier(table))

    def changed(self, table: Table) -> None:
        """Let the session read a table anew where it has cached it."""
        self.statements.append(f"REFRESH TABLE {quoted(self.catalog.name, *table.name())}")


def parse_name(text: str) -> tuple[str, ...]:
    """The parts of a name in SQL.

    Raises:
        ValidationError: It is none.
    """
    parts: list[str] = []
    at = 0
    while match := _PART.match(text, at):
        parts.append(match[1].replace("``", "`") if match[1] else match[2])
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    raise ValidationError(
        f"{text!r} is no name of a table",
        hint="name it db.table; put parts with dots, blanks or backquotes between backquotes",
    )


def quoted(*parts: str) -> str:
    """A name in SQL, whatever its parts are."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _servers(uris: str | None) -> set[str]:
    return {uri.strip().lower() for uri in (uris or "").split(",") if uri.strip()}
