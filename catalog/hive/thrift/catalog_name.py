"""The metastore's own catalogs: since Hive 3 every database is in one, by default in ``hive``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icecomb.catalog.hive.thrift import wire

DEFAULT_CATALOG: Final = "hive"
"""The one that a metastore has from the start (HIVE-18755)."""


@dataclass(frozen=True, slots=True)
class CatalogName:
    """Names a catalog in calls, in the two ways that Hive 3 and 4 know (HIVE-18755).

    Attributes:
        name: None leaves it to the server, and to servers that know no catalogs.
    """

    name: str | None = None

    def database(self, database: str) -> str:
        """How a call that takes a database's name is told of one in this catalog."""
        return database if self.name is None else f"@{self.name}#{database}"

    def mark(self, struct: bytes, field_id: int) -> bytes:
        """The encoded ``struct`` with this catalog in its field ``field_id``, if that is unset."""
        if self.name is None or wire.find(struct, 0, field_id) is not None:
            return struct
        return struct[:-1] + wire.string_field(field_id, self.name) + b"\0"
