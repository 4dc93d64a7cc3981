"""What differs between two schemas of a table, fields found by id at all depths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from icecomb.catalog.paimon.data_type import DataField, DataType, RowType, VectorType, children
from icecomb.catalog.paimon.table_schema import TableSchema

_ROOT: Final = -1


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        kind: `added`, `dropped`, `renamed`, `moved`, `type`, `nullability`, `description`,
            `default`, `option`, `comment` or `keys`.
        path: The field's name with those around it, in the newer schema if it is there; or the
            option.
        before: What it was, None if it was not there.
        after: What it is, None if it is not there.
        field_id: The field's id; None for what is no field.
    """

    kind: str
    path: str
    before: Any
    after: Any
    field_id: int | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    field: DataField
    path: str
    parent: int


def differences(old: TableSchema, new: TableSchema) -> list[Difference]:
    """What leads from one schema to another: fields, then the table's keys, options, comment."""
    before = {place.field.field_id: place for place in _places(old.fields, "", _ROOT)}
    after = {place.field.field_id: place for place in _places(new.fields, "", _ROOT)}
    found = [
        Difference("dropped", place.path, str(place.field.field_type), None, field_id)
        for field_id, place in before.items()
        if field_id not in after
    ]
    moved = _moved(before, after)
    for field_id, place in after.items():
        known = before.get(field_id)
        if known is None:
            kind = str(place.field.field_type)
            found.append(Difference("added", place.path, None, kind, field_id))
        else:
            found += _field_differences(known, place)
            if field_id in moved:
                was, is_ = _neighbour(before, known), _neighbour(after, place)
                found.append(Difference("moved", place.path, was, is_, field_id))
    return [*found, *_table_differences(old, new)]


def _field_differences(old: _Place, new: _Place) -> Iterator[Difference]:
    before, after = old.field, new.field
    own = _own_text(before.field_type), _own_text(after.field_type)
    for kind, was, is_ in (
        ("renamed", before.name, after.name),
        ("type", *own),
        ("nullability", _null(before.field_type), _null(after.field_type)),
        ("description", before.description, after.description),
        ("default", before.default_value, after.default_value),
    ):
        if was != is_:
            yield Difference(kind, new.path, was, is_, after.field_id)


def _table_differences(old: TableSchema, new: TableSchema) -> Iterator[Difference]:
    # renamed columns of the primary key are no other key
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


def _places(fields: Sequence[DataField], prefix: str, parent: int) -> Iterator[_Place]:
    for field in fields:
        path = f"{prefix}{field.name}"
        yield _Place(field, path, parent)
        yield from _places_inside(field.field_type, f"{path}.", field.field_id)


def _places_inside(kind: DataType, prefix: str, parent: int) -> Iterator[_Place]:
    if isinstance(kind, RowType):
        yield from _places(kind.fields, prefix, parent)
    inner = children(kind)
    names = ("key", "value") if len(inner) > 1 else ("element",)
    for name, child in zip(names, inner, strict=False):
        yield from _places_inside(child, f"{prefix}{name}.", parent)


def _moved(before: Mapping[int, _Place], after: Mapping[int, _Place]) -> set[int]:
    moved: set[int] = set()
    for parent in {place.parent for place in after.values()}:
        old, new = (
            [i for i, p in places.items() if p.parent == parent and i in before and i in after]
            for places in (before, after)
        )
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        kept = {i for block in blocks for i in new[block.b : block.b + block.size]}
        moved |= set(new) - kept
    return moved


def _neighbour(places: Mapping[int, _Place], place: _Place) -> str:
    names = [p.field.name for p in places.values() if p.parent == place.parent]
    at = names.index(place.field.name)
    return f"after {names[at - 1]}" if at else "first"


def _null(kind: DataType) -> str:
    return "NULL" if kind.nullable else "NOT NULL"


def _own_text(kind: DataType) -> str:
    """The type without its own nullability and without the fields of ROWs, which have ids."""
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
