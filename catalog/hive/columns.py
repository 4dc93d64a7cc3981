"""Iceberg schemas as the metastore mirrors them: column names, Hive types, comments.

The mirror is for tools that read only the metastore. Iceberg readers never use it.
"""

from __future__ import annotations

from typing import Final

from icecomb.catalog.hive.thrift.entity import FieldSchema
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
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
    ListType,
    LongType,
    MapType,
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

# timestamptz is "timestamp" where the writer has Hive 2 libraries (Spark, Iceberg's own default);
# the other spelling would flip the column type at every commit by another engine.
# Iceberg Java 1.12 commits no nanoseconds, unknown columns or shapes to a metastore; its "unknown"
# for variants is refused by Hive 2.3. A metastore lets "void" become any type later.
_PLAIN: Final[dict[type[IcebergType], str]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "string",
    TimestampType: "timestamp",
    TimestamptzType: "timestamp",
    TimestampNanoType: "timestamp",
    TimestamptzNanoType: "timestamp",
    UnknownType: "void",
    VariantType: "binary",
    GeometryType: "binary",
    GeographyType: "binary",
    StringType: "string",
    UUIDType: "string",
    FixedType: "binary",
    BinaryType: "binary",
}


def hive_columns(schema: Schema) -> tuple[FieldSchema, ...]:
    """Return a schema's columns as Hive sees them; it ignores case, so names must not clash."""
    names: dict[str, str] = {}
    for column in schema.fields:
        other = names.setdefault(column.name.lower(), column.name)
        if other != column.name:
            raise ValidationError(
                f"Columns {other!r} and {column.name!r} are the same to a Hive metastore, which "
                "ignores case",
                hint="Rename one of them, or keep the table in a folder (type='hadoop').",
            )
    return tuple(
        FieldSchema(column.name, hive_type(column.field_type), column.doc)
        for column in schema.fields
    )


def hive_type(iceberg_type: IcebergType) -> str:
    """Return Hive's name of a type, such as ``struct<a:int,b:array<string>>``."""
    plain = _PLAIN.get(type(iceberg_type))
    if plain is not None:
        return plain
    if isinstance(iceberg_type, DecimalType):
        return f"decimal({iceberg_type.precision},{iceberg_type.scale})"
    if isinstance(iceberg_type, StructType):
        inner = ",".join(f"{one.name}:{hive_type(one.field_type)}" for one in iceberg_type.fields)
        return f"struct<{inner}>"
    if isinstance(iceberg_type, ListType):
        return f"array<{hive_type(iceberg_type.element_type)}>"
    if isinstance(iceberg_type, MapType):
        return f"map<{hive_type(iceberg_type.key_type)},{hive_type(iceberg_type.value_type)}>"
    raise UnsupportedError(
        f"Hive has no type for {iceberg_type}", hint="choose a type that Hive has for the column"
    )
