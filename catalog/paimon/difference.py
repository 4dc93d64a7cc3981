"""Differences between two schemas of a table, with fields matched by id at all depths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icecomb.catalog.paimon.data_type import DataField, DataType, RowType, VectorType, children
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.table.field_difference import (
    ROOT,
    Difference,
    FieldPosition,
    field_differences,
)


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
