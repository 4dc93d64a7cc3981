"""Conversion of schemas between Iceberg and Spark's JSON.

Spark reads and writes ``StructType`` as JSON, and every ``StructField`` carries a metadata
object. Field ids travel there, because Iceberg identifies fields by id; names are only labels:

* ``parquet.field.id``: the id of the field (the key Spark's Parquet code knows);
* ``icecomb.nested.ids``: ids that no ``StructField`` can carry, those of list elements and of map
  keys and values, by their path below the field: ``{"element": 7, "element.key": 8,
  "element.value": 9}``. Paths start again in a struct inside a list, whose fields have metadata
  of their own;
* ``icecomb.type``: ``uuid`` where a ``string`` column holds 16 bytes in the file, ``fixed[4]``
  where a ``binary`` column holds 4, ``timestamp_ns`` or ``timestamptz_ns`` where a timestamp shows
  the microseconds of nanoseconds;
* ``icecomb.nested.types``: the same of list elements, map keys and values, by the paths of their
  ids;
* ``icecomb.default``: the field's initial default as text of JSON, see `icecomb.spark.values`; of a
  struct ``{}``;
* ``CURRENT_DEFAULT``, ``EXISTS_DEFAULT``: Spark's own keys, with the write default and the initial
  default of a column as SQL; ``icecomb.default.of.table`` marks those of a table, which queries of
  it pass on to other tables;
* ``comment``: the field's doc.

Types map as Iceberg's Spark integration maps them: ``timestamp`` is *timestamptz*,
``timestamp_ntz`` is *timestamp*, ``byte`` and ``short`` widen to *int*, ``char(n)`` and
``varchar(n)`` become *string*, a *uuid* shows as ``string`` and a *fixed* as ``binary``. Where a
catalog asks for it, *timestamp_ns* and *timestamptz_ns* show as the types of microseconds, which
are read and never written.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.expressions.sql.parser import constant_of
from icecomb.format.spec.schema import Schema, children
from icecomb.format.spec.types import (
    NANO_TYPES,
    ZONED_TYPES,
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
    UUIDType,
    VariantType,
)
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.values import value_to_json

FIELD_ID: Final = "parquet.field.id"
NESTED_IDS: Final = "icecomb.nested.ids"
ICEBERG_TYPE: Final = "icecomb.type"
NESTED_TYPES: Final = "icecomb.nested.types"
DEFAULT: Final = "icecomb.default"
COMMENT: Final = "comment"

_MARKED: Final = (UUIDType, FixedType, *NANO_TYPES)

_SQL_NAMES: Final = {"integer": "INT", "long": "BIGINT"}
_TO_SPARK: Final[Mapping[type[IcebergType], str]] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
    TimestampNanoType: "timestamp_ntz",
    TimestamptzNanoType: "timestamp",
    StringType: "string",
    UUIDType: "string",
    FixedType: "binary",
    BinaryType: "binary",
    VariantType: "variant",
}
_FROM_SPARK: Final[Mapping[str, IcebergType]] = {
    "boolean": BooleanType(),
    "byte": IntegerType(),
    "short": IntegerType(),
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    # SHOW CREATE TABLE prints the default collation
    "string collate UTF8_BINARY": StringType(),
    "binary": BinaryType(),
    "variant": VariantType(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_CHARACTERS = re.compile(r"(var)?char\(\d+\)")
CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"
EXISTS_DEFAULT: Final = "EXISTS_DEFAULT"
INHERITED: Final = "icecomb.default.of.table"
_SUBSTITUTED: Final = frozenset("'\\$")


def spark_schema(schema: Schema) -> dict[str, Any]:
    """Convert a schema to the JSON of a Spark ``StructType``, ids in the fields' metadata."""
    found = spark_struct(schema.as_struct().fields)
    for field, told in zip(schema.fields, found["fields"], strict=True):
        if field.write_default is not None and field.field_type.is_primitive:
            told["metadata"] |= {
                CURRENT_DEFAULT: sql_of(field.field_type, field.write_default),
                EXISTS_DEFAULT: sql_of(field.field_type, field.initial_default),
                INHERITED: True,
            }
    return found


def shown_schema(schema: Schema, *, downcast: bool = False) -> dict[str, Any]:
    """Convert a schema like `spark_schema`, with binary columns for what Spark cannot read.

    The others can be read; `check_has_type` refuses these.

    Args:
        downcast: Whether nanoseconds are shown as microseconds.
    """
    if not any(_nanoseconds(field.field_type) for field in schema.fields):
        with suppress(UnsupportedError):
            return spark_schema(schema)
    # one by one
    fields = [_shown_field(field, downcast=downcast) for field in schema.fields]
    return {"type": "struct", "fields": fields}


def _shown_field(field: NestedField, *, downcast: bool) -> dict[str, Any]:
    try:
        check_has_type(field, downcast=downcast)
    except UnsupportedError:
        told = f"{field.field_type}, which Spark cannot read"
        return {
            "name": field.name,
            "type": "binary",
            "nullable": not field.required,
            "metadata": {FIELD_ID: field.field_id, COMMENT: _commented(told, field.doc)},
        }
    shown: dict[str, Any] = spark_schema(Schema(field))["fields"][0]
    if _nanoseconds(field.field_type):
        shown["metadata"][COMMENT] = _commented(f"{field.field_type} in microseconds", field.doc)
    return shown


def _commented(told: str, doc: str | None) -> str:
    return f"{told}: {doc}" if doc else told


def _nanoseconds(field_type: IcebergType) -> IcebergType | None:
    """Return a type of nanoseconds that values of a type have at any depth."""
    if isinstance(field_type, NANO_TYPES):
        return field_type
    if field_type.is_primitive:
        return None
    inside = (_nanoseconds(each.field_type) for each in children(field_type))
    return next(filter(None, inside), None)


def _keys(field_type: IcebergType) -> Iterator[IcebergType]:
    """Yield the types of the keys of maps at any depth."""
    if isinstance(field_type, MapType):
        yield field_type.key_type
    if not field_type.is_primitive:
        for each in children(field_type):
            yield from _keys(each.field_type)


def _check_has_no_nanoseconds(field_type: IcebergType, where: str = "") -> None:
    from icecomb.catalog.configuration.catalog_property import DOWNCAST_NANOSECONDS

    if found := _nanoseconds(field_type):
        others = "Select the other columns by name, or read the table from Python."
        asked = f"set the catalog's option {DOWNCAST_NANOSECONDS.key} to true to see microseconds, "
        raise UnsupportedError(
            f"Spark has no type for Iceberg's {found}{where}",
            hint=others if where else asked + others,
        )


def check_has_type(field: NestedField, *, written: bool = False, downcast: bool = False) -> None:
    """Refuse a column for which Spark has no type.

    Args:
        written: Whether it is written; else it is read.
        downcast: Whether nanoseconds that are read are shown as microseconds.
    """
    try:
        _spark_field(field)
        if written or not downcast:
            _check_has_no_nanoseconds(field.field_type)
        for keys in _keys(field.field_type):
            _check_has_no_nanoseconds(keys, " as keys of maps, of which several may be the same")
    except UnsupportedError as error:
        raise UnsupportedError(
            f"Column {field.name} cannot be {'written' if written else 'read'} by Spark: "
            f"{error.message}",
            hint="Write rows from Python." if written else error.hint,
            column=field.name,
        ) from error


def spark_struct(fields: Iterable[NestedField]) -> dict[str, Any]:
    """Convert fields to the JSON of a Spark ``StructType``."""
    return {"type": "struct", "fields": [_spark_field(field) for field in fields]}


def spark_type(iceberg_type: IcebergType) -> str | dict[str, Any]:
    """Convert a type to Spark's JSON; raise ``UnsupportedError`` if Spark has no such type."""
    if isinstance(iceberg_type, StructType):
        return spark_struct(iceberg_type.fields)
    if isinstance(iceberg_type, ListType):
        return {
            "type": "array",
            "elementType": spark_type(iceberg_type.element_type),
            "containsNull": not iceberg_type.element_required,
        }
    if isinstance(iceberg_type, MapType):
        return {
            "type": "map",
            "keyType": spark_type(iceberg_type.key_type),
            "valueType": spark_type(iceberg_type.value_type),
            "valueContainsNull": not iceberg_type.value_required,
        }
    if isinstance(iceberg_type, DecimalType):
        return f"decimal({iceberg_type.precision},{iceberg_type.scale})"
    name = _TO_SPARK.get(type(iceberg_type))
    if name is None:
        raise UnsupportedError(
            f"Spark has no type for Iceberg's {iceberg_type}",
            hint="Select the other columns by name, or read the table from Python.",
        )
    return name


def sql_type(spark_json: str | Mapping[str, Any]) -> str:
    """Convert a type in Spark's JSON to SQL, as in CAST(x AS type)."""
    if isinstance(spark_json, str):
        return _SQL_NAMES.get(spark_json, spark_json)
    if spark_json["type"] == "struct":
        fields = (f"{quoted_name(f['name'])}: {sql_type(f['type'])}" for f in spark_json["fields"])
        return f"STRUCT<{', '.join(fields)}>"
    if spark_json["type"] == "array":
        return f"ARRAY<{sql_type(spark_json['elementType'])}>"
    return f"MAP<{sql_type(spark_json['keyType'])}, {sql_type(spark_json['valueType'])}>"


def defined_schema(struct: Mapping[str, Any]) -> Schema:
    """Convert the columns of a definition like `iceberg_schema`, with their DEFAULT clauses.

    A query passes on the defaults of the tables that it reads, which are not those of a table made
    of it. `UnsupportedError` also if a default is not a constant.
    """
    schema = iceberg_schema(struct)
    return Schema(tuple(map(_with_default, schema.fields, struct["fields"])))


def _with_default(field: NestedField, told: Mapping[str, Any]) -> NestedField:
    metadata = told.get("metadata") or {}
    if CURRENT_DEFAULT not in metadata or INHERITED in metadata:
        return field
    value = constant_of(metadata[CURRENT_DEFAULT], field.name)
    return replace(field, initial_default=value, write_default=value)


def iceberg_schema(struct: Mapping[str, Any]) -> Schema:
    """Convert the JSON of a Spark ``StructType`` to an Iceberg schema with fresh ids.

    Ids in the metadata are NOT used: Spark passes on the metadata of the query's source columns,
    whose ids belong to another table; nor are defaults.
    """
    if struct.get("type") != "struct":
        raise SchemaError(
            f"A table's schema must be a struct, not {struct.get('type')!r}",
            hint="This is what Spark sent: please report it with the statement.",
        )
    ids = itertools.count(1)
    return Schema(fields=_iceberg_fields(struct["fields"], ids, ()))


def iceberg_type(spark_json: str | Mapping[str, Any], ids: Iterator[int]) -> IcebergType:
    """Convert one Spark type to an Iceberg type; nested fields take their ids from ``ids``."""
    return _iceberg_type(spark_json, ids, ())


def _spark_field(field: NestedField) -> dict[str, Any]:
    metadata: dict[str, Any] = {FIELD_ID: field.field_id}
    nested = list(_nested(field.field_type, ""))
    if nested:
        metadata[NESTED_IDS] = {path: field_id for path, field_id, _ in nested}
    if marked := {path: str(kind) for path, _, kind in nested if isinstance(kind, _MARKED)}:
        metadata[NESTED_TYPES] = marked
    if isinstance(field.field_type, _MARKED):
        metadata[ICEBERG_TYPE] = str(field.field_type)
    if field.initial_default is not None:
        metadata[DEFAULT] = json.dumps(_default(field))
    if field.doc:
        metadata[COMMENT] = field.doc
    return {
        "name": field.name,
        "type": spark_type(field.field_type),
        "nullable": not field.required,
        "metadata": metadata,
    }


def _default(field: NestedField) -> Any:
    if isinstance(field.field_type, StructType):
        return {}  # filled by the defaults of its fields
    if not field.field_type.is_primitive:
        raise UnsupportedError(
            f"Column {field.name} has the default {field.initial_default}, and Spark is given "
            "those of simple types and structs only",
            hint="Read the table from Python.",
            column=field.name,
        )
    return value_to_json(field.field_type, field.initial_default)


def _nested(iceberg_type: IcebergType, prefix: str) -> Iterator[tuple[str, int, IcebergType]]:
    """Yield path, id and type of elements, keys and values below a field, outside of structs."""
    if isinstance(iceberg_type, ListType | MapType):
        for inner in children(iceberg_type):
            path = f"{prefix}{inner.name}"
            yield path, inner.field_id, inner.field_type
            yield from _nested(inner.field_type, f"{path}.")


def _iceberg_fields(
    fields: Sequence[Mapping[str, Any]], ids: Iterator[int], path: tuple[str, ...]
) -> tuple[NestedField, ...]:
    # the ids of one level come before those of the levels below, as in Iceberg Java
    numbered = [(next(ids), field) for field in fields]
    return tuple(_iceberg_field(field_id, field, ids, path) for field_id, field in numbered)


def _iceberg_field(
    field_id: int, field: Mapping[str, Any], ids: Iterator[int], path: tuple[str, ...]
) -> NestedField:
    metadata = field.get("metadata") or {}
    here = (*path, field["name"])
    return NestedField(
        field_id=field_id,
        name=field["name"],
        field_type=_iceberg_type(field["type"], ids, here),
        required=not field.get("nullable", True),
        doc=metadata.get(COMMENT),
    )


def _iceberg_type(
    spark_json: str | Mapping[str, Any], ids: Iterator[int], path: tuple[str, ...]
) -> IcebergType:
    if isinstance(spark_json, str):
        return _iceberg_primitive(spark_json, path)
    kind = spark_json.get("type")
    if kind == "struct":
        return StructType(fields=_iceberg_fields(spark_json["fields"], ids, path))
    if kind == "array":
        element_id = next(ids)
        return ListType(
            element_id=element_id,
            element_type=_iceberg_type(spark_json["elementType"], ids, (*path, "element")),
            element_required=not spark_json.get("containsNull", True),
        )
    if kind == "map":
        key_id, value_id = next(ids), next(ids)
        return MapType(
            key_id=key_id,
            key_type=_iceberg_type(spark_json["keyType"], ids, (*path, "key")),
            value_id=value_id,
            value_type=_iceberg_type(spark_json["valueType"], ids, (*path, "value")),
            value_required=not spark_json.get("valueContainsNull", True),
        )
    raise _no_such_type(str(kind), path)


def _iceberg_primitive(name: str, path: tuple[str, ...]) -> IcebergType:
    if known := _FROM_SPARK.get(name):
        return known
    if decimal := _DECIMAL.fullmatch(name):
        precision, scale = int(decimal[1]), int(decimal[2])
        if scale < 0:
            raise _no_such_type(name, path)
        return DecimalType(precision, scale)
    if _CHARACTERS.fullmatch(name):
        return StringType()
    raise _no_such_type(name, path)


def _no_such_type(name: str, path: tuple[str, ...]) -> UnsupportedError:
    where = f"column {'.'.join(path)}: " if path else ""
    return UnsupportedError(
        f"{where}Iceberg has no type for Spark's {name}",
        hint="Cast the column to a type Iceberg has, for example string, decimal or timestamp.",
    )


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def sql_of(field_type: IcebergType, value: Any) -> str:
    """Return Spark's SQL of a simple type's internal value, of nanoseconds in microseconds."""
    if value is None:
        return "NULL"
    if isinstance(field_type, NANO_TYPES):
        coarse = TimestamptzType() if isinstance(field_type, ZONED_TYPES) else TimestampType()
        return sql_of(coarse, value // NANOS_PER_MICRO)
    if isinstance(field_type, BooleanType):
        return str(value).lower()
    if isinstance(field_type, IntegerType):
        return str(value)
    if isinstance(field_type, LongType):
        # the least one would be parsed as the negation of one that is too great
        return f"{value}L" if value > -(1 << 63) else f"CAST('{value}' AS BIGINT)"
    if isinstance(field_type, FloatType | DoubleType):
        kind = "FLOAT" if isinstance(field_type, FloatType) else "DOUBLE"
        return f"CAST('{value!r}' AS {kind})"
    if isinstance(field_type, DecimalType):
        return f"CAST('{value:f}' AS DECIMAL({field_type.precision}, {field_type.scale}))"
    if isinstance(field_type, DateType):
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    if isinstance(field_type, TimestampType):
        return f"TIMESTAMP_NTZ '{_time(value)}'"
    if isinstance(field_type, TimestamptzType):
        return f"TIMESTAMP_LTZ '{_time(value)}+00:00'"
    if isinstance(field_type, FixedType | BinaryType):
        return f"X'{value.hex()}'"
    text = str(value)
    if text.isascii() and text.isprintable() and _SUBSTITUTED.isdisjoint(text):
        return f"'{text}'"
    # however the session reads escapes, and puts settings and the environment in for `${...}`
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _time(microseconds: int) -> str:
    time = _EPOCH + timedelta(microseconds=microseconds)
    return time.replace(tzinfo=None).isoformat(" ", "microseconds")
