"""Name mappings: field ids for files without ids (spec: Column Projection, Name Mapping)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from icecomb.format.errors import CorruptFileError, SchemaError
from icecomb.format.input_limit import TOO_DEEP, bounded_json
from icecomb.format.spec.schema import children

if TYPE_CHECKING:
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import IcebergType, NestedField


@dataclass(frozen=True, slots=True)
class MappedField:
    """A field and the names under which it occurs in files.

    Attributes:
        field_id: The field's id; None for a name that stands for no field.
        names: The field's names, any of which counts.
        fields: The fields inside it; a list has `element`, a map `key` and `value`.
    """

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the field as in the table property."""
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
        """Return the field at a path of names, or None."""
        level: Sequence[MappedField] = self.fields
        found: MappedField | None = None
        for name in names:
            found = next((f for f in level if name in f.names), None)
            if found is None:
                return None
            level = found.fields
        return found

    def to_json(self) -> str:
        """Return the text of the table property `schema.name-mapping.default`."""
        return json.dumps([f.to_json() for f in self.fields])

    @classmethod
    def from_json(cls, raw: str | Sequence[Mapping[str, Any]]) -> NameMapping:
        """Read the table property, or its parsed JSON.

        Raises:
            CorruptFileError: If it is not a name mapping.
        """
        try:
            items = bounded_json(raw) if isinstance(raw, str) else raw
            return cls(_fields(items))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = TOO_DEEP if isinstance(error, RecursionError) else f"{error!r}"
            raise CorruptFileError(
                f"The table's name mapping cannot be read: {reason}",
                hint="Correct the property schema.name-mapping.default.",
            ) from error


def create_name_mapping(schema: Schema) -> NameMapping:
    """Return the mapping that finds every field by its present name."""
    return NameMapping(_mapped(schema.as_struct()))


def update_name_mapping(mapping: NameMapping, before: Schema, after: Schema) -> NameMapping:
    """Return the mapping after a schema change, under which files without ids read as before.

    A name stands for the field that had it first, even if that one was dropped or renamed: files
    with the name are read by it. A new or renamed field is also found by its new name, unless the
    name stands for another field; then only files with ids can have it.

    Iceberg Java and PyIceberg give such a name to the new field, whose values are then those of the
    old one (MappingUtil.removeReassignedNames).
    """
    known = {i: before.find_field(i).name for i in before.field_ids}
    return NameMapping(_updated(mapping.fields, after.fields, known))


def join_name_mappings(mapping: NameMapping, other: NameMapping) -> NameMapping:
    """Return the mapping that reads files written or described with either mapping the same.

    SchemaError is raised if a name stands for different fields in the two mappings.
    """
    return NameMapping(_joined(mapping.fields, other.fields))


def _updated(
    mapped: Sequence[MappedField], fields: Sequence[NestedField], known: Mapping[int, str]
) -> tuple[MappedField, ...]:
    owners = {name: m.field_id for m in mapped for name in m.names}
    found = {m.field_id: m for m in mapped if m.field_id is not None}
    added: list[MappedField] = []
    for f in sorted(fields, key=lambda f: f.field_id):
        old = found.get(f.field_id)
        named = f.name != known.get(f.field_id) and f.name not in owners
        if old is not None:
            names = (*old.names, f.name) if named else old.names
            inner = _updated(old.fields, children(f.field_type), known)
            found[f.field_id] = replace(old, names=names, fields=inner)
        elif named:
            added.append(MappedField(f.field_id, (f.name,), _mapped(f.field_type)))
    kept = (m if m.field_id is None else found[m.field_id] for m in mapped)
    return (*kept, *added)


def _joined(mapped: Sequence[MappedField], other: Sequence[MappedField]) -> tuple[MappedField, ...]:
    owners = {name: m.field_id for m in mapped for name in m.names}
    found = {m.field_id: m for m in mapped if m.field_id is not None}
    added: list[MappedField] = []
    for o in other:
        for name in o.names:
            if owners.setdefault(name, o.field_id) != o.field_id:
                raise SchemaError(
                    f"the name {name!r} means the field of id {o.field_id}, elsewhere that of id "
                    f"{owners[name]}",
                    hint="Rewrite the files that have the name with field ids.",
                )
        old = None if o.field_id is None else found.get(o.field_id)
        if o.field_id is None or old is None:
            added.append(o)
            continue
        names = (*old.names, *(name for name in o.names if name not in old.names))
        found[o.field_id] = replace(old, names=names, fields=_joined(old.fields, o.fields))
    kept = (m if m.field_id is None else found[m.field_id] for m in mapped)
    return (*kept, *added)


def _mapped(field_type: IcebergType) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(f.field_id, (f.name,), _mapped(f.field_type)) for f in children(field_type)
    )


def _fields(items: Sequence[Mapping[str, Any]]) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(item.get("field-id"), tuple(item["names"]), _fields(item.get("fields") or ()))
        for item in items
    )
