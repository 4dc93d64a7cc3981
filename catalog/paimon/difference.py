"""Differences between two schemas of a Paimon table, and of one to the metastore's columns.

Fields of schemas are matched by id at all depths. Evolving the schema files without the metastore
leaves its columns unchanged, and Hive plans with those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    children,
)
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.table.field_difference import (
    ROOT,
    Difference,
    FieldPosition,
    field_differences,
)

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable

_MAX_CHAR: Final = 255
_MAX_VARCHAR: Final = 65535
_PLAIN: Final = {"VARBINARY": "binary", "BINARY": "binary", "BLOB": "binary", "TIME": "string"}
_ZONED: Final = "timestamp with local time zone"


def differences(old: TableSchema, new: TableSchema) -> list[Difference]:
    """Return the differences from one schema to another: fields, then keys, options, comment.

    Besides those of fields that are added, dropped or moved, the kinds are `type`,
    `nullability`, `description`, `default`, `option`, `comment` and `keys`.
    """
    before, after = _positions(old.fields, "", ROOT), _positions(new.fields, "", ROOT)
    return [*field_differences(before, after), *_table_differences(old, new)]


def _table_differences(old: TableSchema, new: TableSchema) -> Iterator[Difference]:
    # A primary key with renamed columns is the same key.
    names = ({f.name: f.field_id for f in schema.fields} for schema in (old, new))
    was, is_ = names
    for key in ("partition_keys", "primary_keys"):
        before, after = getattr(old, key), getattr(new, key)
        if [was[name] for name in before] != [is_[name] for name in after]:
            yield Difference("keys", key.replace("_", " "), list(before), list(after))
    for key in sorted(old.options.keys() | new.options.keys()):
        if old.options.get(key) != new.options.get(key):
            yield Difference("option", key, old.options.get(key), new.options.get(key))
    if (old.comment or None) != (new.comment or None):
        yield Difference("comment", "", old.comment, new.comment)


def _positions(fields: Sequence[DataField], prefix: str, parent: int) -> Iterator[FieldPosition]:
    for field in fields:
        path, kind = f"{prefix}{field.name}", field.field_type
        aspects = {
            "type": _own_text(kind),
            "nullability": _null(kind),
            "description": field.description,
            "default": field.default_value,
        }
        yield FieldPosition(field.field_id, field.name, path, parent, str(kind), aspects)
        yield from _nested_positions(kind, f"{path}.", field.field_id)


def _nested_positions(kind: DataType, prefix: str, parent: int) -> Iterator[FieldPosition]:
    if isinstance(kind, RowType):
        yield from _positions(kind.fields, prefix, parent)
    inner = children(kind)
    names = ("key", "value") if len(inner) > 1 else ("element",)
    for name, child in zip(names, inner, strict=False):
        yield from _nested_positions(child, f"{prefix}{name}.", parent)


def _null(kind: DataType) -> str:
    return "NULL" if kind.nullable else "NOT NULL"


def _own_text(kind: DataType) -> str:
    """Return a type's text without its nullability and the fields of ROWs, which have ids."""
    text = str(kind.with_nullable(True))
    return _without_fields(kind) if children(kind) else "ROW" if isinstance(kind, RowType) else text


def _without_fields(kind: DataType) -> str:
    if isinstance(kind, RowType):
        return "ROW" if kind.nullable else "ROW NOT NULL"
    inner = children(kind)
    if not inner:
        return str(kind)
    if isinstance(kind, VectorType):
        return f"VECTOR<{_without_fields(kind.element)}, {kind.length}>"
    return f"{type(kind).__name__[:-4].upper()}<{', '.join(map(_without_fields, inner))}>"


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
