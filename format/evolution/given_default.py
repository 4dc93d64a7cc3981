"""Default values in the forms in which callers give them, as internal values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icecomb.format.errors import ValidationError, reason_of
from icecomb.format.expressions.given_value import python_value
from icecomb.format.expressions.literal import convert_literal
from icecomb.format.spec.default_value import checked_default
from icecomb.format.spec.schema import Schema, children, walk, with_children
from icecomb.format.spec.types import IcebergType, ListType, MapType, NestedField, StructType


def given_default(field_type: IcebergType, value: Any, path: str) -> Any:
    """Return the internal value of a default that a caller gives.

    Dates, times, decimals and UUIDs may be those of Python, NumPy, pandas and Arrow, or text; a
    struct's default is ``{}`` or None.
    """
    try:
        found = _internal(field_type, value)
    except (KeyError, TypeError, ValueError) as error:
        raise ValidationError(
            f"Column {path!r} of type {field_type} cannot have the default {value!r}: "
            f"{reason_of(error)}",
            hint="Give a value of the column's type.",
            column=path,
        ) from error
    return checked_default(field_type, found, path)


def with_given_defaults(schema: Schema) -> Schema:
    """Return the schema with the defaults that a caller gives as internal values."""
    if not any(map(_has_default, walk(schema.as_struct()))):
        return schema
    fields = tuple(field_with_given_defaults(f) for f in schema.fields)
    return Schema(fields, schema.schema_id, schema.identifier_field_ids, schema.extra)


def field_with_given_defaults(field: NestedField, prefix: str = "") -> NestedField:
    """Return a field with its defaults, and those of the fields inside it, as internal values."""
    path = f"{prefix}{field.name}"
    kind = field.field_type
    if inside := children(kind):
        kind = with_children(kind, [field_with_given_defaults(f, f"{path}.") for f in inside])
    return replace(
        field,
        field_type=kind,
        initial_default=given_default(kind, field.initial_default, path),
        write_default=given_default(kind, field.write_default, path),
    )


def _has_default(field: NestedField) -> bool:
    return field.initial_default is not None or field.write_default is not None


def _internal(field_type: IcebergType, value: Any) -> Any:
    value = python_value(value)
    if value is None:
        return None
    if isinstance(field_type, StructType):
        given = _of(dict, value)
        types = {f.field_id: f.field_type for f in field_type.fields}
        return {field_id: _internal(types[field_id], each) for field_id, each in given.items()}
    if isinstance(field_type, ListType):
        return [_internal(field_type.element_type, each) for each in _of((list, tuple), value)]
    if isinstance(field_type, MapType):
        return {
            _internal(field_type.key_type, key): _internal(field_type.value_type, each)
            for key, each in _of(dict, value).items()
        }
    found = convert_literal(value, field_type)
    if not found.exact or found.above_all:
        raise ValueError("it is not exactly a value of the type")
    return found.floor


def _of(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"it is of type {type(value).__name__}")
    return value
