"""Conversion of Iceberg schemas to Arrow schemas and back.

Field ids are stored in the metadata of Arrow fields under `PARQUET:field_id`, where pyarrow puts
them when it reads a Parquet file and looks for them when it writes one; comments under `doc`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

from icecomb.format.arrow.array_build import scalar
from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.schema import MAX_LEVELS, Schema, assign_fresh_schema_ids, too_deep
from icecomb.format.spec.types import (
    SHAPE_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

FIELD_ID_KEY = b"PARQUET:field_id"
ORC_FIELD_ID_KEY = b"iceberg.id"
DOC_KEY = b"doc"

_TO_ARROW: dict[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", tz="UTC"),
    TimestampNanoType: pa.timestamp("ns"),
    TimestamptzNanoType: pa.timestamp("ns", tz="UTC"),
    UnknownType: pa.null(),
    VariantType: pa.struct(
        [pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")]
    ),
    StringType: pa.string(),
    UUIDType: pa.uuid(),
    BinaryType: pa.binary(),
}


def schema_to_pyarrow(schema: Schema | StructType, *, include_field_ids: bool = True) -> pa.Schema:
    """Return the Arrow schema of a table's schema; ids are `PARQUET:field_id` at every depth."""
    return pa.schema(
        [field_to_pyarrow(f, include_field_ids=include_field_ids) for f in schema.fields]
    )


def field_to_pyarrow(field: NestedField, *, include_field_ids: bool = True) -> pa.Field:
    """Return the Arrow field of a field, with its id and doc in the metadata."""
    if isinstance(field.field_type, SHAPE_TYPES):
        raise UnsupportedError(
            f"Column {field.name!r} is of type {field.field_type}: such values can be neither read "
            "nor written",
            hint="Select the other columns by name; write rows with an engine that has the type.",
            column=field.name,
        )
    metadata = {}
    if field.doc:
        metadata[DOC_KEY] = field.doc.encode("utf-8", "replace")
    if include_field_ids:
        metadata[FIELD_ID_KEY] = str(field.field_id).encode()
    kind = type_to_pyarrow(field.field_type, include_field_ids=include_field_ids)
    try:
        return pa.field(field.name, kind, nullable=not field.required, metadata=metadata or None)
    except UnicodeEncodeError:
        raise SchemaError(
            f"The name of column {field.field_id}, {field.name!r}, is not valid Unicode",
            hint="Rename the column with the engine that named it.",
            column=field.name,
        ) from None


def type_to_pyarrow(field_type: IcebergType, *, include_field_ids: bool = True) -> pa.DataType:
    """Return the Arrow type in which values of an Iceberg type are read and written."""

    def inner(field: NestedField) -> pa.Field:
        return field_to_pyarrow(field, include_field_ids=include_field_ids)

    if isinstance(field_type, StructType):
        return pa.struct([inner(f) for f in field_type.fields])
    if isinstance(field_type, ListType):
        return pa.list_(inner(field_type.element_field))
    if isinstance(field_type, MapType):
        return pa.map_(inner(field_type.key_field), inner(field_type.value_field))
    if isinstance(field_type, DecimalType):
        return pa.decimal128(field_type.precision, field_type.scale)
    if isinstance(field_type, FixedType):
        return pa.binary(field_type.length)
    try:
        return _TO_ARROW[type(field_type)]
    except KeyError:
        raise UnsupportedError(
            f"Type {field_type} has no Arrow type", hint="Give the column another type."
        ) from None


def pyarrow_to_schema(
    schema: pa.Schema, name_mapping: NameMapping | None = None, *, nanoseconds: bool = False
) -> Schema:
    """Return the Iceberg schema of an Arrow schema.

    Field ids are kept when fields of every depth have one; otherwise they come from the name
    mapping, and without one they are numbered from 1, level by level.

    Args:
        schema: The Arrow schema; dictionary, large and view types count as their plain types.
        nanoseconds: Whether timestamps of nanoseconds get their own types (format version 3), or
            those of microseconds.
    """
    kind_of = partial(pyarrow_to_type, nanoseconds=nanoseconds)
    complete = all(_has_ids(f) for f in schema)
    placeholder = count(1)

    def own(field: pa.Field, _: MappedField | None) -> int:
        return field_id(field) or 0

    def mapped(field: pa.Field, known: MappedField | None) -> int:
        if known is None or known.field_id is None:
            raise SchemaError(
                f"Column {field.name!r} has no field id and is not in the name mapping",
                hint="Add it to the table property schema.name-mapping.default.",
            )
        return known.field_id

    def numbered(_: pa.Field, __: MappedField | None) -> int:
        return next(placeholder)

    if complete:
        return Schema(_fields(schema, (), own, kind_of))
    if name_mapping is not None:
        return Schema(_fields(schema, name_mapping.fields, mapped, kind_of))
    return assign_fresh_schema_ids(Schema(_fields(schema, (), numbered, kind_of)))


def check_arrow_depth(schema: pa.Schema) -> None:
    """Check that columns are not nested too deep.

    See `icecomb.format.spec.schema.check_depth`.
    """
    deepest, left = 0, [(kind, 1) for kind in schema.types]
    while left:
        kind, level = left.pop()
        deepest = max(deepest, level)
        if pa.types.is_map(kind):
            left += [(kind.key_type, level + 2), (kind.item_type, level + 2)]
        else:
            below = level + (1 if pa.types.is_struct(kind) else 2)
            left.extend((kind.field(i).type, below) for i in range(kind.num_fields))
    if deepest > MAX_LEVELS:
        raise too_deep(deepest)


def pyarrow_to_type(
    arrow_type: pa.DataType, path: str = "", *, nanoseconds: bool = False
) -> PrimitiveType:
    """Return the Iceberg type whose values are those of a primitive Arrow type.

    Errors name the column `path`; for `nanoseconds` see `pyarrow_to_schema`.
    """
    plain = _plain(arrow_type)
    found = _primitive(plain)
    if nanoseconds and pa.types.is_timestamp(plain) and plain.unit == "ns":
        found = TimestampNanoType() if plain.tz is None else TimestamptzNanoType()
    if found is None:
        raise SchemaError(
            f"Column {path!r} of Arrow type {arrow_type} has no Iceberg type",
            hint=_advice(arrow_type),
        )
    return found


def field_id(field: pa.Field) -> int | None:
    """Return the field id in the metadata of an Arrow field, or None."""
    metadata = field.metadata or {}
    raw = metadata.get(FIELD_ID_KEY, metadata.get(ORC_FIELD_ID_KEY))
    if raw is None:
        return None
    try:
        value = int(raw)
    except ValueError:
        raise SchemaError(
            f"Column {field.name} has the field id {raw!r}, which is not a number",
            hint="Write the file again with the ids of the table's columns, or with none.",
        ) from None
    # Parquet writers put -1 for "none".
    return value if value >= 0 else None


def scalar_to_pyarrow(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """Return an Arrow scalar of an internal value (days, microseconds, `uuid.UUID`, ...)."""
    if isinstance(value, pa.Scalar):
        return value
    if value is not None and arrow_type == pa.uuid():
        raw = value.bytes if isinstance(value, uuid.UUID) else bytes(value)
        return pa.ExtensionArray.from_storage(arrow_type, pa.array([raw], pa.binary(16)))[0]
    return scalar(value, arrow_type)


def child_fields(arrow_type: pa.DataType) -> list[pa.Field]:
    """Return the fields directly inside an Arrow type: a struct's, an element, a map's two.

    Dictionary and run-end encoding count as the type they encode.
    """
    kind = _plain(arrow_type)
    if pa.types.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if _is_list(kind):
        return [kind.value_field]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return []


def _fields(
    fields: Any,
    mapping: tuple[MappedField, ...],
    id_of: Callable[[pa.Field, MappedField | None], int],
    kind_of: Callable[[pa.DataType, str], PrimitiveType],
    prefix: str = "",
) -> tuple[NestedField, ...]:
    return tuple(_field(f, f.name, mapping, id_of, kind_of, prefix=prefix) for f in fields)


def _field(
    field: pa.Field,
    name: str,
    mapping: tuple[MappedField, ...],
    id_of: Callable[[pa.Field, MappedField | None], int],
    kind_of: Callable[[pa.DataType, str], PrimitiveType],
    *,
    prefix: str,
) -> NestedField:
    known = next((m for m in mapping if name in m.names), None)
    doc = (field.metadata or {}).get(DOC_KEY)
    path = f"{prefix}{name}"
    number = id_of(field, known)
    inside = known.fields if known is not None else ()
    kind = _plain(field.type)
    children = child_fields(kind)
    converted: IcebergType
    if pa.types.is_struct(kind):
        converted = StructType(_fields(children, inside, id_of, kind_of, f"{path}."))
    elif _is_list(kind):
        element = _field(children[0], "element", inside, id_of, kind_of, prefix=f"{path}.")
        converted = ListType(element.field_id, element.field_type, element.required)
    elif pa.types.is_map(kind):
        key = _field(children[0], "key", inside, id_of, kind_of, prefix=f"{path}.")
        value = _field(children[1], "value", inside, id_of, kind_of, prefix=f"{path}.")
        converted = MapType(
            key.field_id, key.field_type, value.field_id, value.field_type, value.required
        )
    else:
        converted = kind_of(kind, path)
    new = NestedField(number, name, converted, required=not field.nullable)
    return new if doc is None else replace(new, doc=doc.decode())


def _has_ids(field: pa.Field) -> bool:
    return field_id(field) is not None and all(_has_ids(f) for f in child_fields(field.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    return kind


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _primitive(kind: pa.DataType) -> PrimitiveType | None:
    types = pa.types
    if types.is_boolean(kind):
        return BooleanType()
    if types.is_integer(kind) and kind != pa.uint64():
        return LongType() if kind in (pa.int64(), pa.uint32()) else IntegerType()
    if types.is_floating(kind):
        return DoubleType() if kind == pa.float64() else FloatType()
    if types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return DecimalType(kind.precision, kind.scale)
    if types.is_date(kind):
        return DateType()
    if types.is_time(kind):
        return TimeType()
    if types.is_timestamp(kind):
        return TimestampType() if kind.tz is None else TimestamptzType()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return StringType()
    if types.is_fixed_size_binary(kind):
        return FixedType(kind.byte_width)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return BinaryType()
    if kind == pa.uuid():
        return UUIDType()
    return UnknownType() if types.is_null(kind) else None


def _advice(kind: pa.DataType) -> str:
    if kind == pa.uint64():
        return "Cast it to int64, or to decimal128(20, 0) where values exceed 2^63 - 1."
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return "Cast it to int64 and say in the column's name what it counts."
    return "Cast it to a type Iceberg has, or drop it."
