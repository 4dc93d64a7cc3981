"""The metastore's calls about constraints of Hive tables (HIVE-13076, HIVE-16575)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.answer import result_list
from icecomb.catalog.hive.thrift.calls import Calls, Form
from icecomb.catalog.hive.thrift.catalog_name import CatalogName
from icecomb.catalog.hive.thrift.failure import MissingCallError

_DEFAULT_CATALOG: Final = "hive"


class _Kind(NamedTuple):
    """A kind of constraint: its call, where the request names a table, and what an answer names.

    Requests of Hive 3's own kinds begin with the catalog, the others end with it.
    """

    text: str
    call: str
    table: tuple[int, int]
    catalog: int
    required: bool
    name: int


_KINDS: Final = (
    _Kind("PRIMARY KEY", "get_primary_keys", (1, 2), 3, required=False, name=5),
    _Kind("FOREIGN KEY", "get_foreign_keys", (3, 4), 5, required=False, name=10),
    _Kind("UNIQUE", "get_unique_constraints", (2, 3), 1, required=True, name=6),
    _Kind("NOT NULL", "get_not_null_constraints", (2, 3), 1, required=True, name=5),
    _Kind("DEFAULT", "get_default_constraints", (2, 3), 1, required=True, name=6),
    _Kind("CHECK", "get_check_constraints", (2, 3), 1, required=True, name=6),
)


class Constraints:
    """The constraints of a metastore's tables: `HiveClient.constraints`.

    Args:
        calls: Sends the calls.
        catalog: The metastore's own catalog that the tables are in.
    """

    def __init__(self, calls: Calls, catalog: CatalogName) -> None:
        self._calls = calls
        self._catalog = catalog

    def of(self, database: str, table: str) -> list[str]:
        """What constrains a table, as ``PRIMARY KEY pk_1``, sorted: a call for each kind.

        Metastores before Hive 3 know primary and foreign keys only.
        """
        return sorted({text for kind in _KINDS for text in self._of_kind(kind, database, table)})

    def _of_kind(self, kind: _Kind, database: str, table: str) -> Iterator[str]:
        catalog = self._catalog.name or (_DEFAULT_CATALOG if kind.required else None)
        named = {kind.table[0]: database, kind.table[1]: table, kind.catalog: catalog}
        request = b"".join(
            wire.string_field(number, text) for number, text in sorted(named.items()) if text
        )
        form = Form(
            kind.call,
            wire.struct_field(1, request + b"\0") + b"\0",
            lambda raw: result_list(raw, bytes, nested=True),
        )
        with suppress(MissingCallError):
            for found in self._calls.newest(form):
                name = wire.find(found, 0, kind.name)
                text = b"" if name is None else found[name.value + 4 : name.end]
                yield f"{kind.text} {text.decode('utf-8', 'replace')}".rstrip()
