"""The context of a procedure call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.options import Options, write_properties

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.maintenance import SessionEngines
    from icecomb.catalog.table.table import Table

SESSION_CATALOG: Final = "spark_catalog"
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")


@dataclass(frozen=True, slots=True)
class Call:
    """The context of a procedure call, besides its arguments.

    Args:
        namespace: The namespace of unqualified names: the session's own, if it uses this catalog.
        session: The engines that rewrite, list or read what is too much for the planner.
        query: A function that returns the rows of a query run by the session, as dictionaries.
        metastore: ``hive.metastore.uris`` of Spark's own Hive support.
        summary: Summary properties of snapshots that identify the application.
        settings: Settings of the session that begin with ``spark.sql.iceberg.``.
        refreshed: Names of tables, in SQL, that the session may have cached.
        views: Queries of temporary views that the session makes, by their names in SQL.
    """

    catalog: Catalog
    namespace: tuple[str, ...]
    session: SessionEngines | None
    query: Callable[[str], Iterator[Any]]
    metastore: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    refreshed: list[str] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)

    def identifier(self, table: str) -> tuple[str, str]:
        """Parse the name of a table in an argument, as Iceberg does.

        It is ``t``, ``db.t`` or ``catalog.db.t``, with backquotes if Spark needs them.
        """
        parts = parse_name(table)
        if len(parts) == 1:
            parts = (*self.namespace, *parts)
        elif parts[0] == self.catalog.name:
            parts = parts[1:]
        if len(parts) != 2:
            raise ValidationError(
                f"{table} is not a table of catalog {self.catalog.name}",
                hint="Name it db.table, and call the procedure of the catalog that has the table.",
            )
        return parts[0], parts[1]

    def source(self, table: str) -> tuple[str, str]:
        """Parse the name of a Hive table in an argument; it may begin with ``spark_catalog``."""
        parts = parse_name(table)
        if len(parts) != 3 or parts[0] != SESSION_CATALOG or self.catalog.name == parts[0]:
            return self.identifier(table)
        uris = _servers(self.catalog.properties.get("uri"))
        if uris.isdisjoint(_servers(self.metastore)):
            raise ValidationError(
                f"{table} is not in the metastore of catalog {self.catalog.name}: Spark's own "
                f"tables are in {self.metastore or 'no metastore'}",
                hint=f"Name it as catalog {self.catalog.name} has it: db.table.",
            )
        return parts[1], parts[2]

    def load(self, table: str) -> Table:
        """Load the table named by an argument."""
        return self.catalog.load_table(self.identifier(table))

    def load_to_rewrite(self, table: str) -> Table:
        """Load the table named by an argument; new files go by the session's settings."""
        found = self.load(table)
        found.write_properties = write_properties(found.metadata, Options({}, self.settings))
        return found

    def changed(self, table: Table) -> None:
        """Make the session refresh a table that it may have cached."""
        self.refreshed.append(quoted_name(self.catalog.name, *table.name()))


def parse_name(text: str) -> tuple[str, ...]:
    """Split an SQL name into its parts."""
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
        f"{text!r} is not a table name",
        hint="Name it db.table; put parts with dots, blanks or backquotes between backquotes.",
    )


def _servers(uris: str | None) -> set[str]:
    return {uri.strip().lower() for uri in (uris or "").split(",") if uri.strip()}
