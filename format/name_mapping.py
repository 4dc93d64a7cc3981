"""Name mapping: the field ids of files that carry none (spec: Column Projection, Name Mapping)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from icecomb.format.errors import CorruptFileError
from icecomb.format.schema import children

if TYPE_CHECKING:
    from icecomb.format.schema import Schema
    from icecomb.format.types import IcebergType, NestedField

_ROOT = -1


@dataclass(frozen=True, slots=True)
class MappedField:
    """The names under which a field occurs in files.

    Attributes:
        field_id: The field's id, None for a name that stands for no field.
        names: Its names, any of which counts.
        fields: The fields inside it; a list has `element`, a map `key` and `value`.
    """

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The field as in the table property."""
        out: dict[str, Any] = {} if self.field_id is None else {"field-id": self.field_id}
        out["names"] = list(self.names)
        if self.fields:
            out["fields"] = [f.to_json() for f in self.fields]
        return out


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The mapped fields at the top of a schema."""

    fields: tuple[MappedField, ...] = ()

    def find(self, *names: str) -> MappedField | None:
        """The field at this path of names, or None."""
        level: Sequence[MappedField] = self.fields
        found: MappedField | None = None
        for name in names:
            found = next((f for f in level if name in f.names), None)
            if found is None:
                return None
            level = found.fields
        return found

    def to_json(self) -> str:
        """The text of the table property `schema.name-mapping.default`."""
        return json.dumps([f.to_json() for f in self.fields])

    @classmethod
    def from_json(cls, raw: str | Sequence[Mapping[str, Any]]) -> NameMapping:
        """Read the table property, or its parsed JSON.

        Raises:
            CorruptFileError: It is not a name mapping.
        """
        try:
            items = json.loads(raw) if isinstance(raw, str) else raw
            return cls(_fields(items))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptFileError(
                f"the table's name mapping cannot be read: {error!r}",
                hint="Correct the property schema.name-mapping.default.",
            ) from error


def create_name_mapping(schema: Schema) -> NameMapping:
    """The mapping that takes every field by its present name."""
    return NameMapping(_mapped(schema.as_struct()))


def update_name_mapping(
    mapping: NameMapping,
    updates: Mapping[int, NestedField],
    adds: Mapping[int, Sequence[NestedField]],
) -> NameMapping:
    """The mapping after a change of the schema: old names go on to find what files have by them.

    A renamed field is found by both names, a new one by its own; a name that was given to another
    field stands for that one only.

    Args:
        mapping: The mapping before.
        updates: The changed fields by id.
        adds: The new fields by the id of the struct they are in, -1 for columns.
    """
    fields = _renamed(mapping.fields, updates, adds)
    return NameMapping(_with_new(fields, adds.get(_ROOT, ())))


def _renamed(
    fields: Sequence[MappedField],
    updates: Mapping[int, NestedField],
    adds: Mapping[int, Sequence[NestedField]],
) -> tuple[MappedField, ...]:
    out = []
    owners: dict[str, int] = {}
    for f in fields:
        inner = _renamed(f.fields, updates, adds)
        names = f.names
        if f.field_id is not None:
            inner = _with_new(inner, adds.get(f.field_id, ()))
            if (changed := updates.get(f.field_id)) is not None:
                owners[changed.name] = f.field_id
                names = names if changed.name in names else (*names, changed.name)
        out.append(replace(f, names=names, fields=inner))
    return _without_names(out, owners)


def _with_new(fields: Sequence[MappedField], new: Sequence[NestedField]) -> tuple[MappedField, ...]:
    if not new:
        return tuple(fields)
    kept = _without_names(fields, {f.name: f.field_id for f in new})
    return (*kept, *(MappedField(f.field_id, (f.name,), _mapped(f.field_type)) for f in new))


def _without_names(
    fields: Sequence[MappedField], owners: Mapping[str, int]
) -> tuple[MappedField, ...]:
    out = []
    for f in fields:
        names = tuple(name for name in f.names if owners.get(name, f.field_id) == f.field_id)
        if names:
            out.append(replace(f, names=names))
    return tuple(out)


def _mapped(field_type: IcebergType) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(f.field_id, (f.name,), _mapped(f.field_type)) for f in children(field_type)
    )


def _fields(items: Sequence[Mapping[str, Any]]) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(item.get("field-id"), tuple(item["names"]), _fields(item.get("fields") or ()))
        for item in items
    )
