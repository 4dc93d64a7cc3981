"""Catalogs inside a metastore: since Hive 3 every database is in one, by default ``hive``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icecomb.catalog.hive.thrift import wire

DEFAULT_CATALOG: Final = "hive"
"""The catalog that every metastore has (HIVE-18755)."""


@dataclass(frozen=True, slots=True)
class CatalogName:
    """The name of a catalog in calls, in the two forms of Hive 3 and 4 (HIVE-18755).

    It is None for the server's default, or for servers without catalogs.
    """

    name: str | None = None

    def database(self, database: str) -> str:
        """Return the name of a database in this catalog, for calls that take a database's name."""
        return database if self.name is None else f"@{self.name}#{database}"

    def mark(self, struct: bytes, field_id: int) -> bytes:
        """Return an encoded ``struct`` with this catalog in its field ``field_id``, if unset."""
        if self.name is None or wire.find(struct, 0, field_id) is not None:
            return struct
        return struct[:-1] + wire.string_field(field_id, self.name) + b"\0"
