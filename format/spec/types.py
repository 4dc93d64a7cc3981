"""Iceberg types of all format versions (spec: Schemas and Data Types, Appendix C).

Types are immutable, hashable values, equal if all their members are. `str(type)` is the
specification's string of a primitive type; `to_json()` returns the form in metadata files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from icecomb.format.argument import (
    any_text,
    checked_flag,
    checked_int,
    checked_members,
    json_of_pyiceberg,
    members_or_named,
)
from icecomb.format.errors import SchemaError
from icecomb.format.input_limit import one_level
from icecomb.format.spec.simple_type import (
    NANO_TYPES,
    OPAQUE_TYPES,
    SHAPE_TYPES,
    TIMESTAMP_TYPES,
    V3_TYPES,
    ZONED_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    parse_simple_type,
)
from icecomb.format.spec.values.json_object import extra_field, optional, required, unknown_members

__all__ = [
    "NANO_TYPES",
    "OPAQUE_TYPES",
    "SHAPE_TYPES",
    "TIMESTAMP_TYPES",
    "V3_TYPES",
    "ZONED_TYPES",
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "IcebergType",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampNanoType",
    "TimestampType",
    "TimestamptzNanoType",
    "TimestamptzType",
    "UUIDType",
    "UnknownType",
    "VariantType",
    "as_type",
    "parse_type",
]

_DEFAULTS = frozenset(("initial-default", "write-default"))
_FIELD = frozenset(("id", "name", "required", "type", "doc")) | _DEFAULTS
_STRUCT = frozenset(("type", "fields"))
_LIST = frozenset(("type", "element-id", "element", "element-required"))
_MAP = frozenset(("type", "key-id", "key", "value-id", "value", "value-required"))


@dataclass(frozen=True, slots=True)
class NestedField:
    """A field of a struct.

    Args:
        field_id: The id by which the field is found in data files, whatever its name.
        name: The name among the fields of its struct.
        field_type: The type, or the string of a primitive one.
        required: Whether nulls are not allowed.
        doc: A comment.
        initial_default: The value of rows written before the field was added (format version 3).
        write_default: The value that writers use where none is given (format version 3).
        extra: Members that icecomb does not know; they are written back.

    Raises:
        SchemaError: If a member is of the wrong type, or the type is unknown and the field is
            required.
    """

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None
    extra: Mapping[str, Any] = extra_field()

    def __post_init__(self) -> None:
        name = any_text("name of a field", self.name, SchemaError)
        put = object.__setattr__
        put(self, "name", name)
        put(
            self, "field_id", checked_int(f"id of field {name!r}", self.field_id, error=SchemaError)
        )
        put(self, "field_type", as_type(self.field_type))
        checked_flag(f"required of field {name!r}", self.required, SchemaError)
        if self.required and isinstance(self.field_type, UnknownType):
            raise _only_nulls(f"field {name!r}")
        if self.doc is not None:
            put(self, "doc", any_text(f"doc of field {name!r}", self.doc, SchemaError))

    @property
    def optional(self) -> bool:
        """True if the field may be null."""
        return not self.required

    @property
    def default_text(self) -> str:
        """The defaults as in ` default 8, in older rows 7`; empty if both are null."""
        if self.initial_default is None and self.write_default is None:
            return ""
        raw = self.to_json()
        first, later = (
            json.dumps(raw.get(key), ensure_ascii=False)
            for key in ("initial-default", "write-default")
        )
        return f" default {later}" + ("" if first == later else f", in older rows {first}")

    def __str__(self) -> str:
        need = "required" if self.required else "optional"
        doc = f" ({self.doc})" if self.doc else ""
        return f"{self.field_id}: {self.name}: {need} {self.field_type}{self.default_text}{doc}"

    def to_json(self) -> dict[str, Any]:
        """Return the field as in metadata files."""
        out: dict[str, Any] = {
            "id": self.field_id,
            "name": self.name,
            "required": self.required,
            "type": self.field_type.to_json(),
        }
        if self.doc is not None:
            out["doc"] = self.doc
        for key, value in (
            ("initial-default", self.initial_default),
            ("write-default", self.write_default),
        ):
            if value is not None:
                out[key] = _value_to_json(self.field_type, value)
        return {**out, **self.extra}

    @classmethod
    def from_json(cls, raw: Any) -> NestedField:
        """Read a field.

        Raises:
            SchemaError: If a required member is missing or has the wrong shape.
        """
        field_id = required(raw, "id", int, "field", SchemaError)
        name = required(raw, "name", str, "field", SchemaError)
        if "type" not in raw:
            raise SchemaError(
                f"Invalid field {name!r}: type is missing", hint='Give its type, such as "long".'
            )
        field_type = parse_type(raw["type"])
        what = f"field {name!r}"
        return cls(
            field_id,
            name,
            field_type,
            required(raw, "required", bool, what, SchemaError),
            optional(raw, "doc", str, what, SchemaError),
            _value_from_json(field_type, raw.get("initial-default")),
            _value_from_json(field_type, raw.get("write-default")),
            unknown_members(raw, _FIELD),
        )


@dataclass(frozen=True, slots=True, init=False)
class StructType(IcebergType):
    """A tuple of named fields.

    Args:
        fields: The fields, in order: as one sequence, or one argument each.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        SchemaError: If one of the fields is not a `NestedField`.
    """

    fields: tuple[NestedField, ...] = ()
    extra: Mapping[str, Any] = extra_field()

    @overload
    def __init__(self, *fields: NestedField) -> None: ...

    @overload
    def __init__(
        self, fields: Iterable[NestedField] = (), extra: Mapping[str, Any] | None = None
    ) -> None: ...

    def __init__(self, *args: Any, **more: Any) -> None:
        names = ("fields", "extra")
        given = members_or_named("StructType", names, NestedField, args, more)
        fields = given.get("fields", ())
        put = object.__setattr__
        put(self, "fields", checked_members("fields of a struct", fields, NestedField, SchemaError))
        put(self, "extra", given.get("extra") or {})

    @property
    def is_struct(self) -> bool:
        """True if a value is a tuple of named fields."""
        return True

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"

    def __len__(self) -> int:
        return len(self.fields)

    def field(self, field_id: int) -> NestedField | None:
        """Return the direct child of this id, or None."""
        return next((f for f in self.fields if f.field_id == field_id), None)

    def field_by_name(self, name: str, *, case_sensitive: bool = True) -> NestedField | None:
        """Return the direct child of this name, or None."""
        if case_sensitive:
            return next((f for f in self.fields if f.name == name), None)
        lowered = name.lower()
        return next((f for f in self.fields if f.name.lower() == lowered), None)

    def to_json(self) -> Any:
        """Return the struct as in metadata files."""
        return {"type": "struct", "fields": [f.to_json() for f in self.fields], **self.extra}


@dataclass(frozen=True, slots=True, init=False)
class ListType(IcebergType):
    """A list of elements of one type.

    Args:
        element_id: The field id of the elements.
        element_type: Their type, or the string of a primitive one; also given as `element=`.
        element_required: Whether null elements are not allowed.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        SchemaError: If a member is of the wrong type.
    """

    element_id: int
    element_type: IcebergType
    element_required: bool = False
    extra: Mapping[str, Any] = extra_field()

    def __init__(
        self,
        element_id: int,
        element_type: IcebergType | str | None = None,
        element_required: bool = False,  # noqa: FBT001, FBT002 - PyIceberg's signature
        extra: Mapping[str, Any] | None = None,
        *,
        element: IcebergType | str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "element_id", checked_int("element id", element_id, error=SchemaError))
        put(self, "element_type", _one_type("element", element_type, element))
        required = checked_flag("required of a list's elements", element_required, SchemaError)
        if required and isinstance(self.element_type, UnknownType):
            raise _only_nulls("elements of a list")
        put(self, "element_required", required)
        put(self, "extra", extra or {})

    @property
    def element_field(self) -> NestedField:
        """The elements as a field named `element`."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"

    def to_json(self) -> Any:
        """Return the list as in metadata files."""
        return {
            "type": "list",
            "element-id": self.element_id,
            "element": self.element_type.to_json(),
            "element-required": self.element_required,
            **self.extra,
        }


@dataclass(frozen=True, slots=True, init=False)
class MapType(IcebergType):
    """A map; keys are never null.

    Args:
        key_id: The field id of the keys.
        key_type: Their type, or the string of a primitive one; also given as `key=`.
        value_id: The field id of the values.
        value_type: Their type, or the string of a primitive one; also given as `value=`.
        value_required: Whether null values are not allowed.
        extra: Members that icecomb does not know; they are written back.

    Raises:
        SchemaError: If a member is of the wrong type.
    """

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool = False
    extra: Mapping[str, Any] = extra_field()

    def __init__(  # noqa: PLR0917 - PyIceberg's signature
        self,
        key_id: int,
        key_type: IcebergType | str | None = None,
        value_id: int | None = None,
        value_type: IcebergType | str | None = None,
        value_required: bool = False,  # noqa: FBT001, FBT002 - PyIceberg's signature
        extra: Mapping[str, Any] | None = None,
        *,
        key: IcebergType | str | None = None,
        value: IcebergType | str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "key_id", checked_int("key id", key_id, error=SchemaError))
        put(self, "key_type", _one_type("key", key_type, key))
        if isinstance(self.key_type, UnknownType):
            raise _only_nulls("keys of a map")
        put(self, "value_id", checked_int("value id", value_id, error=SchemaError))
        put(self, "value_type", _one_type("value", value_type, value))
        required = checked_flag("required of a map's values", value_required, SchemaError)
        if required and isinstance(self.value_type, UnknownType):
            raise _only_nulls("values of a map")
        put(self, "value_required", required)
        put(self, "extra", extra or {})

    @property
    def key_field(self) -> NestedField:
        """The keys as a field named `key`."""
        return NestedField(self.key_id, "key", self.key_type, required=True)

    @property
    def value_field(self) -> NestedField:
        """The values as a field named `value`."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"

    def to_json(self) -> Any:
        """Return the map as in metadata files."""
        return {
            "type": "map",
            "key-id": self.key_id,
            "key": self.key_type.to_json(),
            "value-id": self.value_id,
            "value": self.value_type.to_json(),
            "value-required": self.value_required,
            **self.extra,
        }


def _only_nulls(what: str) -> SchemaError:
    """Return the error for required values of type unknown."""
    return SchemaError(
        f"Cannot require values of type unknown, which are null: {what}",
        hint="Make it optional, or give it another type.",
    )


def _one_type(what: str, given: Any, alias: Any) -> IcebergType:
    """Return the type of a part, given under exactly one of its names."""
    if given is not None and alias is not None:
        raise SchemaError(f"Give either {what}_type or {what}", hint="Give exactly one of both.")
    return as_type(alias if given is None else given)


def as_type(given: Any) -> IcebergType:
    """Return a type, given itself, by its string, or as PyIceberg's."""
    if isinstance(given, IcebergType):
        return given
    if isinstance(given, str):
        return parse_type(given)
    if (raw := json_of_pyiceberg(given)) is not None:
        return parse_type(raw)
    raise SchemaError(
        f"Not a column's type: {given!r}",
        hint='Give one like StringType() or "decimal(9, 2)"; for types of pyarrow use '
        "union_by_name(pa.schema(...)).",
    )


def parse_type(raw: Any) -> IcebergType:
    """Read a type from its JSON form: a string, or an object for a nested type.

    Raises:
        SchemaError: If it is not a type.
    """
    if isinstance(raw, str):
        return parse_simple_type(raw)
    if not isinstance(raw, dict):
        raise SchemaError(
            f"Invalid type: {raw!r}",
            hint=(
                'Write it as in the specification, such as "long", "decimal(9, 2)" or a '
                "nested object."
            ),
        )
    with one_level():
        return _parse_nested(raw)


def _parse_nested(raw: dict[str, Any]) -> IcebergType:
    kind = raw.get("type")
    if kind == "struct":
        fields = raw.get("fields")
        if not isinstance(fields, list):
            raise SchemaError("Invalid struct: fields are missing", hint="Give an array of fields.")
        return StructType(tuple(map(NestedField.from_json, fields)), unknown_members(raw, _STRUCT))
    if kind == "list":
        return ListType(
            required(raw, "element-id", int, "list", SchemaError),
            parse_type(raw.get("element")),
            required(raw, "element-required", bool, "list", SchemaError),
            unknown_members(raw, _LIST),
        )
    if kind == "map":
        return MapType(
            required(raw, "key-id", int, "map", SchemaError),
            parse_type(raw.get("key")),
            required(raw, "value-id", int, "map", SchemaError),
            parse_type(raw.get("value")),
            required(raw, "value-required", bool, "map", SchemaError),
            unknown_members(raw, _MAP),
        )
    if isinstance(kind, str):
        return parse_type(kind)
    raise SchemaError(
        f"Unknown type: {raw!r}",
        hint=(
            'Write it as in the specification, such as "long", "decimal(9, 2)" or a nested object.'
        ),
    )


def _value_to_json(field_type: IcebergType, value: Any) -> Any:
    from icecomb.format.spec import single_value

    return single_value.to_json(field_type, value)


def _value_from_json(field_type: IcebergType, raw: Any) -> Any:
    if raw is None:
        return None
    from icecomb.format.spec import single_value

    value = single_value.from_json(field_type, raw)
    if isinstance(field_type, StructType) and value:
        raise SchemaError(
            f"Invalid default {raw!r} of a struct: it has values of fields",
            hint="The default of a struct is null or {}: fields have defaults of their own.",
        )
    return value
