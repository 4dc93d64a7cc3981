"""Differences between the metastore's columns of a Paimon table and its latest schema.

Evolving the schema files without the metastore leaves its columns unchanged, and Hive plans with
those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.catalog.paimon.table_schema import TableSchema

_MAX_CHAR: Final = 255
_MAX_VARCHAR: Final = 65535
_PLAIN: Final = {"VARBINARY": "binary", "BINARY": "binary", "BLOB": "binary", "TIME": "string"}
_ZONED: Final = "timestamp with local time zone"


@dataclass(frozen=True, slots=True)
class Drift:
    """One column that differs between the two sides.

    Attributes:
        kind: `missing` in the metastore, `extra` there, `type`, `comment` or `order`.
        schema: The value in the schema file; None if there is none.
        metastore: The value in the metastore; None if there is none.
    """

    column: str
    kind: str
    schema: str | None
    metastore: str | None


def drifts(schema: TableSchema, table: HiveTable) -> list[Drift]:
    """Return all differences, in the order of the schema's columns; names ignore case."""
    there = {c.name.lower(): c for c in (*table.storage.columns, *table.partition_keys)}
    wanted = {f.name.lower(): f for f in schema.fields}
    found: list[Drift] = []
    for name, field in wanted.items():
        column, kind = there.get(name), hive_type(field.field_type)
        if column is None:
            found.append(Drift(field.name, "missing", kind, None))
            continue
        # Hive 2 has no type for instants and calls them timestamp.
        if _plain(column.type) not in {
            _plain(kind),
            _plain(kind).replace(_plain(_ZONED), "timestamp"),
        }:
            found.append(Drift(field.name, "type", kind, column.type))
        if (column.comment or "") != (field.description or ""):
            found.append(Drift(field.name, "comment", field.description, column.comment))
    found += [Drift(c.name, "extra", None, c.type) for n, c in there.items() if n not in wanted]
    keys = {key.name.lower() for key in table.partition_keys}
    before = [n for n in wanted if n in there and n not in keys]
    after = [n for n in there if n in wanted and n not in keys]
    found += [
        Drift(wanted[ours].name, "order", f"position {at + 1}", f"position {after.index(ours) + 1}")
        for at, ours in enumerate(before)
        if after[at] != ours
    ]
    return found


def hive_type(kind: DataType) -> str:
    """Return the Hive type that Paimon gives a column in the metastore (Paimon: HiveTypeUtils)."""
    if isinstance(kind, ArrayType | VectorType):
        return f"array<{hive_type(kind.element)}>"
    if isinstance(kind, MultisetType):
        return f"map<{hive_type(kind.element)},int>"
    if isinstance(kind, MapType):
        return f"map<{hive_type(kind.key)},{hive_type(kind.value)}>"
    if isinstance(kind, RowType):
        return f"struct<{','.join(f'{f.name}:{hive_type(f.field_type)}' for f in kind.fields)}>"
    assert isinstance(kind, AtomicType)  # noqa: S101 - the types there are
    root, parameters = kind.root, kind.parameters
    if root == "DECIMAL":
        return f"decimal({parameters[0]},{parameters[1]})"
    if root in {"CHAR", "VARCHAR"}:
        limit = _MAX_CHAR if root == "CHAR" else _MAX_VARCHAR
        return "string" if parameters[0] > limit else f"{root.lower()}({parameters[0]})"
    if root == LOCAL_ZONED:
        return _ZONED
    return _PLAIN.get(root, root.lower())


def _plain(text: str) -> str:
    return re.sub(r"\s", "", text).lower()
