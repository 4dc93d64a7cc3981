"""ORC types of a table's columns, with the attributes of the specification (Appendix A, ORC)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icecomb.format.errors import SchemaError
from icecomb.format.spec.types import (
    NANO_TYPES,
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
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.sql_statement import quoted_name

_NAMES: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "bigint",
    TimestampType: "timestamp",
    TimestamptzType: "timestamp with local time zone",
    TimestampNanoType: "timestamp",
    TimestamptzNanoType: "timestamp with local time zone",
    StringType: "string",
    UUIDType: "binary",
    FixedType: "binary",
    BinaryType: "binary",
}


def orc_type(kind: IcebergType) -> str:
    """Return the ORC type in the notation that ORC's libraries write and parse."""
    if isinstance(kind, StructType):
        inner = ",".join(f"{quoted_name(f.name)}:{orc_type(f.field_type)}" for f in kind.fields)
        return f"struct<{inner}>"
    if isinstance(kind, ListType):
        return f"array<{orc_type(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"map<{orc_type(kind.key_type)},{orc_type(kind.value_type)}>"
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    name = _NAMES.get(type(kind))
    if name is None:
        raise SchemaError(f"No ORC type for the type {kind}", hint="Give the column another type.")
    return name


def orc_attributes(field: NestedField) -> dict[str, str]:
    """Return the attributes of a field's type: its id and what the ORC type does not tell."""
    about = {"iceberg.id": str(field.field_id), "iceberg.required": str(field.required).lower()}
    kind = field.field_type
    if isinstance(kind, LongType):
        about["iceberg.long-type"] = "LONG"
    elif isinstance(kind, TimeType):
        about["iceberg.long-type"] = "TIME"
    elif isinstance(kind, NANO_TYPES):
        about["iceberg.timestamp-unit"] = "NANOS"
    elif isinstance(kind, UUIDType):
        about["iceberg.binary-type"] = "UUID"
    elif isinstance(kind, FixedType):
        about["iceberg.binary-type"] = "FIXED"
        about["iceberg.length"] = str(len(kind))
    elif isinstance(kind, BinaryType):
        about["iceberg.binary-type"] = "BINARY"
    return about


def fields_in_order(fields: Sequence[NestedField]) -> Iterator[NestedField]:
    """Yield all fields in the order in which ORC numbers types from 1: outer ones first."""
    for field in fields:
        yield field
        kind = field.field_type
        if isinstance(kind, StructType):
            yield from fields_in_order(kind.fields)
        elif isinstance(kind, ListType):
            yield from fields_in_order((kind.element_field,))
        elif isinstance(kind, MapType):
            yield from fields_in_order((kind.key_field, kind.value_field))
