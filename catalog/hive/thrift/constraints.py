"""The metastore's calls about constraints of Hive tables (HIVE-13076, HIVE-16575)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.answer import result_list
from icecomb.catalog.hive.thrift.calls import Calls, Form
from icecomb.catalog.hive.thrift.catalog_name import DEFAULT_CATALOG, CatalogName
from icecomb.catalog.hive.thrift.failure import MissingCallError


@dataclass(frozen=True, slots=True, order=True)
class Constraint:
    """A constraint of a table.

    Attributes:
        kind: The kind in SQL, such as ``PRIMARY KEY``.
        columns: The columns in order; none for a constraint of the table.
        expression: The expression of a default or a check, as Hive wrote it.
        parent: Database and table that a foreign key refers to.
        enabled: Whether Hive enforces it.
        relied: Whether Hive's optimizer relies on it.
    """

    kind: str
    name: str
    columns: tuple[str, ...]
    expression: str = ""
    parent: tuple[str, str] = ("", "")
    parent_columns: tuple[str, ...] = ()
    enabled: bool = False
    relied: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


class _Kind(NamedTuple):
    """A kind of constraint: its call, and the ids of Thrift fields.

    Fields of the request: the database, followed by the table, and the catalog, which the kinds of
    Hive 3 require and Hive 2 ignores. The others are fields of the answer. ``enabled`` is followed
    by `validated` and `relied`.
    """

    text: str
    call: str
    database: int
    catalog: int
    name: int
    column: int
    enabled: int
    position: int = 0
    expression: int = 0
    parent: int = 0


_KINDS: Final = (
    _Kind("PRIMARY KEY", "get_primary_keys", 1, 3, name=5, column=3, enabled=6, position=4),
    _Kind(
        "FOREIGN KEY", "get_foreign_keys", 3, 5, name=10, column=6, enabled=12, position=7, parent=1
    ),
    _Kind("UNIQUE", "get_unique_constraints", 2, 1, name=6, column=4, enabled=7, position=5),
    _Kind("NOT NULL", "get_not_null_constraints", 2, 1, name=5, column=4, enabled=6),
    _Kind("DEFAULT", "get_default_constraints", 2, 1, name=6, column=4, enabled=7, expression=5),
    _Kind("CHECK", "get_check_constraints", 2, 1, name=6, column=4, enabled=7, expression=5),
)


class Constraints:
    """The constraints of a metastore's tables: `HiveClient.constraints`."""

    def __init__(self, calls: Calls, catalog: CatalogName) -> None:
        self._calls = calls
        self._catalog = CatalogName(catalog.name or DEFAULT_CATALOG)

    def of(self, database: str, table: str) -> list[Constraint]:
        """Return a table's constraints, sorted, by one call for each kind.

        Metastores before Hive 3 have only primary and foreign keys.
        """
        return sorted(each for kind in _KINDS for each in self._of_kind(kind, database, table))

    def _of_kind(self, kind: _Kind, database: str, table: str) -> Iterator[Constraint]:
        named = wire.string_field(kind.database, database)
        named += wire.string_field(kind.database + 1, table) + b"\0"
        form = Form(
            kind.call,
            wire.struct_field(1, self._catalog.mark(named, kind.catalog)) + b"\0",
            lambda raw: result_list(raw, bytes, nested=True),
        )
        found: dict[object, list[bytes]] = {}
        with suppress(MissingCallError):
            answered = self._calls.newest(form)
            for at, element in enumerate(answered):
                # A key has an element for each of its columns.
                of = _text(element, kind.name) if kind.position else at
                found.setdefault(of, []).append(element)
        for elements in found.values():
            if kind.position:
                elements.sort(key=lambda element: _number(element, kind.position))
            first = elements[0]
            yield Constraint(
                kind.text,
                _text(first, kind.name),
                _texts(elements, kind.column),
                _text(first, kind.expression),
                (_text(first, kind.parent), _text(first, kind.parent and kind.parent + 1)),
                _texts(elements, kind.parent and kind.parent + 2),
                enabled=bool(_number(first, kind.enabled)),
                relied=bool(_number(first, kind.enabled + 2)),
            )


def _texts(elements: list[bytes], field_id: int) -> tuple[str, ...]:
    return tuple(text for element in elements if (text := _text(element, field_id)))


def _text(element: bytes, field_id: int) -> str:
    """Return the text of a field; empty where it is not set, or has the id 0."""
    found = wire.find(element, 0, field_id) if field_id else None
    text = b"" if found is None else element[found.value + 4 : found.end]
    return text.decode("utf-8", "replace")


def _number(element: bytes, field_id: int) -> int:
    found = wire.find(element, 0, field_id)
    return 0 if found is None else int.from_bytes(element[found.value : found.end], "big")
