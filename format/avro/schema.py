"""Conversion of Iceberg types to Avro schemas and back (spec: Appendix A, Avro).

Field ids are kept in `field-id`, `element-id`, `key-id`, `value-id`; a map whose keys are not
strings is an array of key-value records with the logical type `map`; a name that Avro does not
allow is escaped, and the original is kept in `iceberg-field-name`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from icecomb.format.errors import SchemaError
from icecomb.format.spec.types import (
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
from icecomb.format.spec.values.decimal_value import rescaled, scaled, unscaled

_PRIMITIVES: Final[dict[type[PrimitiveType], Any]] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: {"type": "long", "logicalType": "time-micros"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    TimestamptzType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    TimestampNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    TimestamptzNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    UnknownType: "null",
    UUIDType: {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}
_SIMPLE: Final[dict[str, PrimitiveType]] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "bytes": BinaryType(),
}
_VALID_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema(struct: StructType, name: str) -> dict[str, Any]:
    """Return the Avro schema of a record, as JSON values."""
    return _record(struct, name, set())


def is_null_first(field: NestedField) -> bool:
    """Return whether null is the first branch of an optional field's union.

    A default is of the first branch in all versions of Avro, and equals the initial default.
    """
    return field.initial_default is None


def avro_name(name: str) -> str:
    """Return a field name that Avro allows, escaped in the way of Iceberg Java.

    A leading digit is preceded by `_`; any other character becomes `_x` and its hexadecimal
    UTF-16 code units. Iceberg Java keeps letters of all alphabets, which Avro does not allow:
    strict readers refuse such files.

    >>> avro_name("1st"), avro_name("a b-c"), avro_name("größe")
    ('_1st', 'a_x20b_x2Dc', 'gr_xF6_xDFe')
    """
    if _VALID_NAME.fullmatch(name):
        return name
    return "".join(
        char if _VALID_NAME.fullmatch(char if i == 0 else f"_{char}") else _escape(char)
        for i, char in enumerate(name)
    )


def decimal_size(precision: int) -> int:
    """Return the number of bytes of a decimal of `precision` digits in two's complement."""
    greatest: int = 10**precision - 1
    return (greatest.bit_length() + 8) // 8


def iceberg_type(schema: Any) -> PrimitiveType | None:
    """Return the Iceberg type of an Avro primitive, not of a union; None for Avro's `null`."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    found: PrimitiveType | None = None
    if kind == "null":
        return None
    if logical == "decimal":
        found = DecimalType(schema["precision"], schema.get("scale", 0))
    elif logical == "uuid":
        found = UUIDType()
    elif logical == "date" and kind == "int":
        found = DateType()
    elif logical == "time-micros" and kind == "long":
        found = TimeType()
    elif logical in ("timestamp-micros", "local-timestamp-micros") and kind == "long":
        found = TimestamptzType() if schema.get("adjust-to-utc") else TimestampType()
    elif logical in ("timestamp-nanos", "local-timestamp-nanos") and kind == "long":
        found = TimestamptzNanoType() if schema.get("adjust-to-utc") else TimestampNanoType()
    elif kind == "fixed":
        found = FixedType(schema["size"])
    elif isinstance(kind, str):
        found = _SIMPLE.get(kind)
    if found is None:
        raise SchemaError(
            f"No Iceberg type is stored as {schema!r} in Avro",
            hint="Write the file again with types that the table format has.",
        )
    return found


def to_avro(field_type: IcebergType, value: Any) -> Any:
    """Convert an internal value to Avro's form: decimals and UUIDs to bytes, others unchanged."""
    if value is None:
        return None
    if isinstance(field_type, DecimalType):
        return _unscaled(value, field_type).to_bytes(
            decimal_size(field_type.precision), "big", signed=True
        )
    if isinstance(field_type, UUIDType):
        return value.bytes
    return value


def from_avro(field_type: IcebergType | None, value: Any) -> Any:
    """Convert Avro's form to an internal value; the inverse of `to_avro`."""
    if value is None or field_type is None:
        return None
    if isinstance(field_type, DecimalType):
        return scaled(int.from_bytes(value, "big", signed=True), field_type.scale)
    if isinstance(field_type, UUIDType):
        return UUID(value) if isinstance(value, str) else UUID(bytes=value)
    return value


def plain_schema(schema: Any, names: Mapping[int, str], *, fixed_as_bytes: bool = False) -> Any:
    """Return a schema of the same byte layout whose fields are named `names[id]`, or `f<id>`.

    `fixed_as_bytes` reads `fixed` without a logical type as `bytes`, with a length first: Iceberg
    Java 1.11 declares the former and writes the latter.
    """
    plain = _plain(schema, names, {}, [0])
    return _fixed_as_bytes(plain) if fixed_as_bytes else plain


def _unscaled(value: Decimal, field_type: DecimalType) -> int:
    with contextlib.suppress(ValueError):
        number = unscaled(rescaled(value, field_type.scale))
        if abs(number) < 10**field_type.precision:
            return number
    raise SchemaError(
        f"{value} has more digits than {field_type}",
        hint="Give the column more digits, or round the value.",
    )


def _record(struct: StructType, name: str, seen: set[str]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [_field(field, seen) for field in struct.fields],
    }


def _field(field: NestedField, seen: set[str]) -> dict[str, Any]:
    name = avro_name(field.name)
    inner = _convert(field.field_type, field.field_id, seen)
    union = _nullable(inner) if is_null_first(field) else [inner, "null"]
    out: dict[str, Any] = {"name": name, "type": inner if field.required else union}
    if not field.required or field.initial_default is not None:
        out["default"] = _default(field.field_type, field.initial_default)
    if name != field.name:
        out["iceberg-field-name"] = field.name
    out["field-id"] = field.field_id
    return out


def _default(field_type: IcebergType, value: Any) -> Any:
    """Return an internal value as the default of an Avro field."""
    if isinstance(field_type, StructType) and value is not None:
        # not every reader fills in the defaults of fields
        return {
            avro_name(f.name): _default(f.field_type, value.get(f.field_id, f.initial_default))
            for f in field_type.fields
        }
    if isinstance(field_type, ListType) and value is not None:
        return [_default(field_type.element_type, each) for each in value]
    if isinstance(field_type, MapType) and value is not None:
        pairs = [
            (_default(field_type.key_type, key), _default(field_type.value_type, each))
            for key, each in value.items()
        ]
        if isinstance(field_type.key_type, StringType):
            return dict(pairs)
        return [{"key": key, "value": each} for key, each in pairs]
    found = to_avro(field_type, value)
    # bytes are text in JSON, one character each
    return found.decode("latin-1") if isinstance(found, bytes) else found


def _convert(field_type: IcebergType, field_id: int, seen: set[str]) -> Any:
    if isinstance(field_type, StructType):
        return _record(field_type, f"r{field_id}", seen)
    if isinstance(field_type, ListType):
        items = _convert(field_type.element_type, field_type.element_id, seen)
        if not field_type.element_required:
            items = _nullable(items)
        return {"type": "array", "items": items, "element-id": field_type.element_id}
    if isinstance(field_type, MapType):
        return _map(field_type, seen)
    if isinstance(field_type, VariantType):
        parts = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
        name = f"r{field_id}"
        return {"type": "record", "name": name, "logicalType": "variant", "fields": parts}
    if isinstance(field_type, DecimalType):
        precision, scale = field_type.precision, field_type.scale
        decimal = {
            "type": "fixed",
            "name": f"decimal_{precision}_{scale}",
            "size": decimal_size(precision),
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        }
        return _named(decimal, field_id, seen)
    if isinstance(field_type, FixedType):
        size = len(field_type)
        fixed = {"type": "fixed", "name": f"fixed_{size}", "size": size}
        return _named(fixed, field_id, seen)
    plain = _PRIMITIVES.get(type(field_type))  # type: ignore[arg-type]
    if plain is None:
        raise SchemaError(
            f"No Avro schema for the type {field_type}", hint="Give the column another type."
        )
    return _named(plain, field_id, seen) if isinstance(plain, dict) else plain


def _map(field_type: MapType, seen: set[str]) -> dict[str, Any]:
    if isinstance(field_type.key_type, StringType):
        values = _convert(field_type.value_type, field_type.value_id, seen)
        if not field_type.value_required:
            values = _nullable(values)
        ids = {"key-id": field_type.key_id, "value-id": field_type.value_id}
        return {"type": "map", "values": values, **ids}
    pair = StructType((field_type.key_field, field_type.value_field))
    name = f"k{field_type.key_id}_v{field_type.value_id}"
    return {"type": "array", "items": _record(pair, name, seen), "logicalType": "map"}


def _nullable(schema: Any) -> Any:
    return schema if schema == "null" else ["null", schema]


def _named(schema: dict[str, Any], field_id: int, seen: set[str]) -> Any:
    name = schema.get("name")
    if name in seen:
        # not every reader resolves references to named types
        return {**schema, "name": f"{name}_{field_id}"}
    if name is not None:
        seen.add(name)
    return dict(schema)


def _escape(char: str) -> str:
    if char.isascii() and char.isdigit():
        return f"_{char}"
    units = char.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"_x{units[i : i + 4].lstrip('0') or '0'}" for i in range(0, len(units), 4))


def _plain(schema: Any, names: Mapping[int, str], known: dict[str, Any], counter: list[int]) -> Any:
    if isinstance(schema, str):
        # a repeated name refers to the whole type; namespaces do not matter here
        named = known.get(schema.rpartition(".")[2])
        return schema if named is None else _plain(named, names, known, counter)
    if isinstance(schema, list):
        return [_plain(branch, names, known, counter) for branch in schema]
    kind = schema["type"]
    if "name" in schema:
        known[schema["name"].rpartition(".")[2]] = schema
    if kind in ("record", "error"):
        counter[0] += 1
        name = f"r{counter[0]}"
        pair = {field["name"] for field in schema["fields"]} == {"key", "value"}
        fields = [
            {
                "name": field["name"] if pair else _plain_name(field, names),
                "type": _plain(field["type"], names, known, counter),
            }
            for field in schema["fields"]
        ]
        return {"type": "record", "name": name, "fields": fields}
    if kind == "array":
        return {"type": "array", "items": _plain(schema["items"], names, known, counter)}
    if kind == "map":
        return {"type": "map", "values": _plain(schema["values"], names, known, counter)}
    if kind == "fixed":
        counter[0] += 1
        name = f"{'logical' if 'logicalType' in schema else 'r'}{counter[0]}"
        return {"type": "fixed", "name": name, "size": schema["size"]}
    if kind == "enum":
        counter[0] += 1
        return {"type": "enum", "name": f"r{counter[0]}", "symbols": schema["symbols"]}
    return _plain(kind, names, known, counter)


def _fixed_as_bytes(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_fixed_as_bytes(branch) for branch in plain]
    if not isinstance(plain, dict):
        return plain
    if plain["type"] == "fixed":
        return plain if plain["name"].startswith("logical") else "bytes"
    if plain["type"] == "record":
        fields = [{**field, "type": _fixed_as_bytes(field["type"])} for field in plain["fields"]]
        return {**plain, "fields": fields}
    return plain


def _plain_name(field: Mapping[str, Any], names: Mapping[int, str]) -> str:
    field_id = field.get("field-id")
    if field_id is None:
        return str(field["name"])
    return names.get(int(field_id), f"f{field_id}")
