"""The name mapping of a migrated table, with every spelling of a column in its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import NestedField


def mapping_of(schema: Schema, spellings: Iterable[Mapping[int, str]]) -> NameMapping:
    """Return the mapping of a schema's fields, whose first name is the schema's spelling.

    Args:
        spellings: For each file, a mapping of field id to name.
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
