"""The metastore's calls about constraints of Hive tables (HIVE-13076, HIVE-16575)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.answer import result_list
from icecomb.catalog.hive.thrift.calls import Calls, Form
from icecomb.catalog.hive.thrift.catalog_name import DEFAULT_CATALOG, CatalogName
from icecomb.catalog.hive.thrift.failure import MissingCallError


class _Kind(NamedTuple):
    """A kind of constraint: its call, and the numbers of fields.

    Those of the request name the database, with the table behind it, and the catalog: the kinds of
    Hive 3 require it, Hive 2 passes over it. That of the answer names the constraint.
    """

    text: str
    call: str
    database: int
    catalog: int
    name: int


_KINDS: Final = (
    _Kind("PRIMARY KEY", "get_primary_keys", database=1, catalog=3, name=5),
    _Kind("FOREIGN KEY", "get_foreign_keys", database=3, catalog=5, name=10),
    _Kind("UNIQUE", "get_unique_constraints", database=2, catalog=1, name=6),
    _Kind("NOT NULL", "get_not_null_constraints", database=2, catalog=1, name=5),
    _Kind("DEFAULT", "get_default_constraints", database=2, catalog=1, name=6),
    _Kind("CHECK", "get_check_constraints", database=2, catalog=1, name=6),
)


class Constraints:
    """The constraints of a metastore's tables: `HiveClient.constraints`.

    Args:
        calls: Sends the calls.
        catalog: The metastore's own catalog that the tables are in.
    """

    def __init__(self, calls: Calls, catalog: CatalogName) -> None:
        self._calls = calls
        self._catalog = CatalogName(catalog.name or DEFAULT_CATALOG)

    def of(self, database: str, table: str) -> list[str]:
        """What constrains a table, as ``PRIMARY KEY pk_1``, sorted: a call for each kind.

        Metastores before Hive 3 know primary and foreign keys only.
        """
        return sorted({text for kind in _KINDS for text in self._of_kind(kind, database, table)})

    def _of_kind(self, kind: _Kind, database: str, table: str) -> Iterator[str]:
        named = wire.string_field(kind.database, database)
        named += wire.string_field(kind.database + 1, table) + b"\0"
        form = Form(
            kind.call,
            wire.struct_field(1, self._catalog.mark(named, kind.catalog)) + b"\0",
            lambda raw: result_list(raw, bytes, nested=True),
        )
        with suppress(MissingCallError):
            for found in self._calls.newest(form):
                name = wire.find(found, 0, kind.name)
                text = b"" if name is None else found[name.value + 4 : name.end]
                yield f"{kind.text} {text.decode('utf-8', 'replace')}".rstrip()
