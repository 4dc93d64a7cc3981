"""Fields that files have and a table does not, from which no column may ever be filled.

Files written elsewhere, and those of Hive tables whose columns were dropped, may have more columns
than the table to which they are added. These are never read: they get names in the name mapping and
ids that no column has, as if they had been dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

import pyarrow as pa

from icecomb.format.rows.values.arrow_projection import FileField, ids_of
from icecomb.format.spec.name_mapping import MappedField, NameMapping

_Names: TypeAlias = "dict[str, _Names]"


@dataclass(frozen=True, slots=True)
class UnreadField:
    """A field that a file has and the table does not; `parent_id` is None at the top level."""

    parent_id: int | None
    field: FileField


def with_unread(
    mapping: NameMapping, unread: Iterable[UnreadField], last_column_id: int
) -> tuple[NameMapping, int]:
    """Return the mapping with ids for unread fields, and the highest id of table and files.

    The fields are treated like dropped columns: a column that is added later must not be filled
    from fields that files happen to have under its name, or under the id that it gets.
    """
    names: dict[int | None, _Names] = {}
    for one in unread:
        for new in _without_ids(one.parent_id, one.field.name, one.field):
            _collect(names.setdefault(new[0], {}), new[1], new[2])
        last_column_id = max(last_column_id, *_ids(one.field))
    ids = count(last_column_id + 1)

    def numbered(level: _Names) -> tuple[MappedField, ...]:
        return tuple(MappedField(next(ids), (n,), numbered(inner)) for n, inner in level.items())

    def grown(fields: Iterable[MappedField], owner: int | None) -> tuple[MappedField, ...]:
        kept = [replace(f, fields=grown(f.fields, f.field_id)) for f in fields]
        return (*kept, *numbered(names.get(owner, {})))

    return NameMapping(grown(mapping.fields, None)), next(ids) - 1


def _without_ids(
    parent_id: int | None, name: str, field: FileField
) -> Iterator[tuple[int | None, str, FileField]]:
    """Yield the outermost fields that have no id from the file or the mapping."""
    if field.field_id is None:
        if field.by_name:
            yield parent_id, name, field
        return
    for part, child in zip(_part_names(field), field.children, strict=True):
        yield from _without_ids(field.field_id, part, child)


def _collect(level: _Names, name: str, field: FileField) -> None:
    inner = level.setdefault(name, {})
    for part, child in zip(_part_names(field), field.children, strict=True):
        _collect(inner, part, child)


def _part_names(field: FileField) -> Iterable[str]:
    if pa.types.is_struct(field.arrow_type):
        return [child.name for child in field.children]
    return ("key", "value") if len(field.children) == 2 else ("element",)[: len(field.children)]


def _ids(field: FileField) -> Iterator[int]:
    yield 0
    yield from (number for number, _ in ids_of((field,)))
