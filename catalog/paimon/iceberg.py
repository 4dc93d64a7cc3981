"""Conversion of Paimon schemas to Iceberg's, with the same field ids.

Elements of arrays, and keys and values of maps, which have no ids in Paimon, get the ids that
Paimon's Parquet files give them (Paimon: SpecialFields).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icecomb.catalog.paimon.data_type import (
    LOCAL_ZONED,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.spec.name_mapping import NameMapping, create_name_mapping, join_name_mappings
from icecomb.format.spec.partition import PartitionSpec, identity_spec
from icecomb.format.spec.promotion import can_promote
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType as IcebergMapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

_BASE: Final = 2_147_483_647 // 4
_DEPTHS: Final = 1 << 10
_MICROSECONDS: Final = 6

_PLAIN: Final[dict[str, IcebergType]] = {
    "BOOLEAN": BooleanType(),
    "TINYINT": IntegerType(),
    "SMALLINT": IntegerType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "DATE": DateType(),
    "TIME": TimeType(),
    "CHAR": StringType(),
    "VARCHAR": StringType(),
    "BINARY": BinaryType(),
    "VARBINARY": BinaryType(),
    "TIMESTAMP": TimestampType(),
    LOCAL_ZONED: TimestamptzType(),
}
_CODECS: Final = {"zstd", "snappy", "gzip", "lz4", "none"}


def iceberg_schema(schema: TableSchema) -> Schema:
    """Return the Iceberg schema; columns of the primary key become identifier fields.

    `UnsupportedError` for a type without counterpart in format version 2: nanoseconds, VARIANT,
    BLOB, VECTOR.
    """
    fields = tuple(_field(f, f.name) for f in schema.fields)
    by_name = {f.name: f for f in fields}
    keys = tuple(by_name[name].field_id for name in schema.primary_keys)
    return Schema(fields, schema.schema_id, keys)


def iceberg_type(kind: AtomicType) -> IcebergType:
    """Return the type, in format version 2, of the values of a column without children."""
    return _primitive(kind, "")


def iceberg_partition_spec(schema: TableSchema) -> PartitionSpec:
    """Return the partition keys, of primitive types, as identity partitions."""
    ids = {f.name: f for f in schema.fields}
    keys = [ids[name] for name in schema.partition_keys]
    for key in keys:
        if not isinstance(key.field_type, AtomicType):
            raise UnsupportedError(
                f"Partition key {key.name}: {key.field_type} cannot partition",
                hint="Copy the rows into a table with other partitions instead.",
            )
    return identity_spec(_field(key, key.name) for key in keys)


def iceberg_properties(schema: TableSchema) -> dict[str, str]:
    """Return the table properties that correspond to a Paimon table's options and comment."""
    properties: dict[str, str] = {}
    if schema.comment:
        properties["comment"] = schema.comment
    kind = schema.options.get("file.format", "parquet").lower()
    if kind in {"parquet", "orc", "avro"}:
        properties["write.format.default"] = kind
    codec = schema.options.get("file.compression", "").lower()
    if kind == "parquet" and codec in _CODECS:
        properties["write.parquet.compression-codec"] = "uncompressed" if codec == "none" else codec
    return properties


def iceberg_name_mapping(current: TableSchema, older: Iterable[TableSchema] = ()) -> NameMapping:
    """Return the name mapping for files without ids, from the current schema and older ones."""
    mapping, number = create_name_mapping(iceberg_schema(current)), current.schema_id
    try:
        for schema in older:
            number = schema.schema_id
            mapping = join_name_mappings(mapping, create_name_mapping(iceberg_schema(schema)))
    except SchemaError as error:
        raise SchemaError(f"In schema-{number} {error.message}", hint=error.hint) from error
    return mapping


def _field(field: DataField, path: str) -> NestedField:
    kind = _type(field.field_type, field.field_id, 0, path)
    return NestedField(
        field.field_id, field.name, kind, not field.field_type.nullable, field.description
    )


def _type(kind: DataType, owner: int, depth: int, path: str) -> IcebergType:
    """Return the type of a field, or of the part `depth` arrays and maps inside it.

    Args:
        owner: The id of the field.
        path: The field's full name, for errors.
    """
    if isinstance(kind, AtomicType):
        return _primitive(kind, path)
    if isinstance(kind, RowType):
        return StructType(tuple(_field(f, f"{path}.{f.name}") for f in kind.fields))
    inner = depth + 1
    above, below = _BASE + owner * _DEPTHS + inner, _BASE - owner * _DEPTHS - inner
    if isinstance(kind, ArrayType):
        element = _type(kind.element, owner, inner, f"{path}.element")
        return ListType(above, element, not kind.element.nullable)
    if isinstance(kind, MapType):
        key = _type(kind.key, owner, inner, f"{path}.key")
        value = _type(kind.value, owner, inner, f"{path}.value")
        return IcebergMapType(below, key, above, value, not kind.value.nullable)
    if isinstance(kind, MultisetType):
        key = _type(kind.element, owner, inner, f"{path}.element")
        return IcebergMapType(below, key, above, IntegerType(), True)
    raise _no_counterpart(kind, path)


def _primitive(kind: AtomicType, path: str) -> IcebergType:
    if kind.root == "DECIMAL":
        return DecimalType(*kind.parameters)
    if kind.root in {"TIMESTAMP", LOCAL_ZONED, "TIME"} and kind.parameters[0] > _MICROSECONDS:
        raise _no_counterpart(kind, path)
    found = _PLAIN.get(kind.root)
    if found is None:
        raise _no_counterpart(kind, path)
    return found


def _no_counterpart(kind: DataType, path: str) -> UnsupportedError:
    column = f"column {path}: " if path else ""
    return UnsupportedError(
        f"{column}{kind} has no counterpart in Iceberg's format version 2",
        hint="Drop the column, or rewrite it with another type, before importing the table.",
    )


def unreadable(old: Schema, new: Schema) -> str | None:
    """Return why rows of an older schema are unreadable by id under a newer one, or None.

    Iceberg promotes types by its specification (Schema Evolution) and has no other casts.
    """
    known = {field_id: old.find_field(field_id) for field_id in old.field_ids}
    for field_id in sorted(new.field_ids):
        field, path = new.find_field(field_id), new.find_column_name(field_id)
        before = known.get(field_id)
        if before is None:
            if field.required:
                return f"it has no {path}, which is NOT NULL"
            continue
        if field.required and not before.required and "." in (path or ""):
            return f"{path} may be null in it, and is NOT NULL now"
        was, is_ = before.field_type, field.field_type
        plain = isinstance(was, PrimitiveType) and isinstance(is_, PrimitiveType)
        if (plain and was != is_ and not can_promote(was, is_)) or (
            not plain and type(was) is not type(is_)
        ):
            return f"{path} changed from {was} to {is_}, which Iceberg cannot read"
    return None
