"""The name mapping of a migrated table: every name that its files have, and what it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

import pyarrow as pa

from icecomb.format.rows.read.arrow_projection import FileField
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import NestedField

_Names: TypeAlias = "dict[str, _Names]"


@dataclass(frozen=True, slots=True)
class UnreadField:
    """A field that a file has and the table does not: one that was dropped in Hive.

    Attributes:
        parent_id: the table's field that it is inside of; None for a column.
        field: the field.
    """

    parent_id: int | None
    field: FileField


def mapping_of(schema: Schema, spellings: Iterable[Mapping[int, str]]) -> NameMapping:
    """The mapping of a schema's fields; the schema's own spelling is the first name of each.

    Args:
        schema: the table's schema.
        spellings: one mapping of field id to name a file.
    """
    names: dict[int, dict[str, None]] = {}
    for one in spellings:
        for field_id, name in one.items():
            names.setdefault(field_id, {})[name] = None

    def mapped(field: NestedField) -> MappedField:
        own = {field.name: None, **names.get(field.field_id, {})}
        inner = tuple(mapped(child) for child in children(field.field_type))
        return MappedField(field_id=field.field_id, names=tuple(own), fields=inner)

    return NameMapping(tuple(mapped(field) for field in schema.fields))


def with_unread(
    mapping: NameMapping, unread: Iterable[UnreadField], last_column_id: int
) -> tuple[NameMapping, int]:
    """The mapping with ids for what files have and the table does not, as if it had been dropped.

    A column that is added later must not be filled by what files happen to have under its name, or
    under the id that it gets.

    Args:
        mapping: the mapping of the table's fields.
        unread: fields of any number of files.
        last_column_id: the highest id of the table.

    Returns:
        The mapping, and the highest id of table and files.
    """
    names: dict[int | None, _Names] = {}
    for one in unread:
        if one.field.by_name:
            _collect(names.setdefault(one.parent_id, {}), one.field.name, one.field)
        last_column_id = max(last_column_id, *_ids(one.field))
    ids = count(last_column_id + 1)

    def numbered(level: _Names) -> tuple[MappedField, ...]:
        return tuple(MappedField(next(ids), (n,), numbered(inner)) for n, inner in level.items())

    def grown(fields: Iterable[MappedField], owner: int | None) -> tuple[MappedField, ...]:
        kept = [replace(f, fields=grown(f.fields, f.field_id)) for f in fields]
        return (*kept, *numbered(names.get(owner, {})))

    return NameMapping(grown(mapping.fields, None)), next(ids) - 1


def _collect(level: _Names, name: str, field: FileField) -> None:
    inner = level.setdefault(name, {})
    for part, child in zip(_part_names(field), field.children, strict=True):
        _collect(inner, part, child)


def _part_names(field: FileField) -> Iterable[str]:
    if pa.types.is_struct(field.arrow_type):
        return [child.name for child in field.children]
    return ("key", "value") if len(field.children) == 2 else ("element",)[: len(field.children)]


def _ids(field: FileField) -> Iterator[int]:
    yield field.field_id or 0
    for child in field.children:
        yield from _ids(child)
