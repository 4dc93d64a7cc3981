"""Single values as bytes and as JSON (spec: Appendix D, Single-value serialization)."""

from __future__ import annotations

import math
import re
import struct
import uuid
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from icecomb.format.errors import ValidationError, reason_of
from icecomb.format.spec.promotion import promoted_date
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
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
)
from icecomb.format.spec.values.decimal_value import decimal_bytes, rescaled, scaled, unscaled
from icecomb.format.spec.values.temporal import (
    human_date,
    iso_time,
    iso_timestamp,
    iso_timestamp_ns,
    parse_date,
    parse_time,
    parse_timestamp,
    parse_timestamp_ns,
    parse_timestamptz,
    parse_timestamptz_ns,
)

_PACKED: dict[type, str] = {
    IntegerType: "<i",
    DateType: "<i",
    LongType: "<q",
    TimeType: "<q",
    TimestampType: "<q",
    TimestamptzType: "<q",
    TimestampNanoType: "<q",
    TimestamptzNanoType: "<q",
    FloatType: "<f",
    DoubleType: "<d",
}
# Bounds written before a column's promotion have the shorter form.
_BEFORE_PROMOTION: dict[type, tuple[int, str]] = {LongType: (4, "<i"), DoubleType: (4, "<f")}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BYTES: Final = re.compile(r"([0-9a-fA-F]{2})*")
_UTC: Final = ("+00:00", "Z")


def to_bytes(field_type: PrimitiveType, value: Any) -> bytes:
    """Convert an internal value to bytes, as in bounds and partition summaries."""
    try:
        if (packed := _PACKED.get(type(field_type))) is not None:
            return struct.pack(packed, value)
        if isinstance(field_type, BooleanType):
            return b"\x01" if value else b"\x00"
        if isinstance(field_type, StringType):
            return bytes(value.encode())
        if isinstance(field_type, UUIDType):
            return bytes(value.bytes)
        if isinstance(field_type, DecimalType):
            return decimal_bytes(rescaled(value, field_type.scale))
        if isinstance(field_type, (FixedType, BinaryType)):
            return bytes(value)
    except (struct.error, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ValidationError(
            f"{value!r} is not a value of type {field_type}: {reason_of(error)}",
            hint="Give a value of that type.",
        ) from error
    raise ValidationError(
        f"Type {field_type} has no binary form", hint="Give a value of a primitive type."
    )


def from_bytes(field_type: PrimitiveType, data: bytes) -> Any:
    """Read an internal value from its bytes, or from those of a type promoted to its."""
    try:
        if (packed := _PACKED.get(type(field_type))) is not None:
            if len(data) == 4 and isinstance(field_type, (TimestampType, TimestampNanoType)):
                return promoted_date(struct.unpack("<i", data)[0], field_type)
            length, short = _BEFORE_PROMOTION.get(type(field_type), (0, ""))
            return struct.unpack(short if length == len(data) else packed, data)[0]
        if isinstance(field_type, BooleanType):
            return struct.unpack("?", data)[0]
        if isinstance(field_type, StringType):
            return bytes(data).decode()
        if isinstance(field_type, UUIDType):
            return uuid.UUID(bytes=bytes(data))
        if isinstance(field_type, DecimalType):
            return scaled(int.from_bytes(data, "big", signed=True), field_type.scale)
        if isinstance(field_type, (FixedType, BinaryType)):
            return bytes(data)
    except (struct.error, ValueError, TypeError) as error:
        raise ValidationError(
            f"{bytes(data).hex()!r} is not a value of type {field_type}: {reason_of(error)}",
            hint="The file or its metadata is damaged: read an older snapshot.",
        ) from error
    raise ValidationError(
        f"Type {field_type} has no binary form", hint="Give a value of a primitive type."
    )


def range_from_bytes(
    field_type: PrimitiveType, lower: bytes | None, upper: bytes | None
) -> tuple[Any, Any] | None:
    """Read the bounds of values; None where they are unknown.

    They are if one is missing, is not a value of the type, or the lower one is above the upper one:
    which of the two is wrong cannot be told.
    """
    if lower is None or upper is None:
        return None
    try:
        low, high = from_bytes(field_type, lower), from_bytes(field_type, upper)
    except ValidationError:
        return None
    return None if low > high else (low, high)


def to_json(field_type: IcebergType, value: Any) -> Any:
    """Convert an internal value to JSON, as in default values; None becomes null.

    Struct values are dicts by field id or sequences in field order.
    """
    if value is None:
        return None
    try:
        if isinstance(field_type, StructType):
            by_id = (
                value
                if isinstance(value, dict)
                else dict(zip((f.field_id for f in field_type.fields), value, strict=True))
            )
            return {
                str(f.field_id): to_json(f.field_type, by_id[f.field_id])
                for f in field_type.fields
                if f.field_id in by_id
            }
        if isinstance(field_type, ListType):
            return [to_json(field_type.element_type, v) for v in value]
        if isinstance(field_type, MapType):
            return {
                "keys": [to_json(field_type.key_type, k) for k in value],
                "values": [to_json(field_type.value_type, v) for v in value.values()],
            }
        return _primitive_to_json(field_type, value)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ValidationError(
            f"{value!r} is not a value of type {field_type}: {reason_of(error)}",
            hint="Give a value of that type.",
        ) from error


def from_json(field_type: IcebergType, raw: Any) -> Any:
    """Read an internal value from its JSON; structs become dicts by field id."""
    if raw is None:
        return None
    try:
        if isinstance(field_type, StructType):
            return _struct_from_json(field_type, _checked(raw, dict))
        if isinstance(field_type, ListType):
            return [_inside(field_type.element_field, v) for v in _checked(raw, list)]
        if isinstance(field_type, MapType):
            return _map_from_json(field_type, _checked(raw, dict))
        return _primitive_from_json(field_type, raw)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise _no_value(field_type, raw, error) from error
    except InvalidOperation as error:
        raise _no_value(field_type, raw, ValueError("it is not a number")) from error


def _no_value(field_type: IcebergType, raw: Any, error: Exception) -> ValidationError:
    return ValidationError(
        f"{raw!r} is not a value of type {field_type}: {reason_of(error)}",
        hint="Write it as the specification does (appendix D, JSON single-value serialization).",
    )


def _struct_from_json(field_type: StructType, raw: dict[str, Any]) -> dict[int, Any]:
    fields = {str(f.field_id): f for f in field_type.fields}
    if unknown := raw.keys() - fields.keys():
        raise ValueError(f"it has no field of id {min(unknown)}")
    return {fields[key].field_id: _inside(fields[key], value) for key, value in raw.items()}


def _map_from_json(field_type: MapType, raw: dict[str, Any]) -> dict[Any, Any]:
    keys, values = _checked(raw["keys"], list), _checked(raw["values"], list)
    found = {
        _inside(field_type.key_field, key): _inside(field_type.value_field, value)
        for key, value in zip(keys, values, strict=True)
    }
    if len(found) < len(keys):
        raise ValueError("it has a key twice")
    return found


def _inside(field: NestedField, raw: Any) -> Any:
    """Read the value of a field inside a nested type."""
    if raw is None and field.required:
        raise ValueError(f"{field.name} is required, and null")
    return from_json(field.field_type, raw)


def _primitive_to_json(field_type: IcebergType, value: Any) -> Any:
    if isinstance(field_type, (UnknownType, *OPAQUE_TYPES)):
        raise TypeError("only null can be written as JSON")
    if isinstance(field_type, DateType):
        return human_date(value)
    if isinstance(field_type, TimeType):
        return iso_time(value)
    if isinstance(field_type, TimestampType):
        return iso_timestamp(value)
    if isinstance(field_type, TimestamptzType):
        return f"{iso_timestamp(value)}+00:00"
    if isinstance(field_type, TimestampNanoType):
        return iso_timestamp_ns(value)
    if isinstance(field_type, TimestamptzNanoType):
        return f"{iso_timestamp_ns(value)}+00:00"
    if isinstance(field_type, UUIDType):
        return str(value)
    if isinstance(field_type, DecimalType):
        return f"{rescaled(value, field_type.scale):f}"
    if isinstance(field_type, (FixedType, BinaryType)):
        return value.hex()
    return value


def _primitive_from_json(field_type: IcebergType, raw: Any) -> Any:
    if isinstance(field_type, (UnknownType, *OPAQUE_TYPES)):
        raise TypeError("only null can be written as JSON")
    if isinstance(field_type, BooleanType):
        return _checked(raw, bool)
    if isinstance(field_type, StringType):
        return _checked(raw, str).encode().decode()  # JSON may have halves of characters
    if isinstance(field_type, (IntegerType, LongType)):
        return _packed(field_type, _checked(raw, int))
    if isinstance(field_type, (FloatType, DoubleType)):
        return _packed(field_type, _finite(float(_checked(raw, float, int))))
    text = str(_checked(raw, str))
    if isinstance(field_type, DateType):
        return _packed(field_type, parse_date(text))
    if isinstance(field_type, TimeType):
        return parse_time(text)
    if isinstance(field_type, TimestampType):
        return _packed(field_type, parse_timestamp(text))
    if isinstance(field_type, TimestampNanoType):
        return _packed(field_type, parse_timestamp_ns(text))
    if isinstance(field_type, ZONED_TYPES):
        if not text.endswith(_UTC):
            raise ValueError("its offset is not +00:00")
        fine = isinstance(field_type, TimestamptzNanoType)
        return _packed(field_type, (parse_timestamptz_ns if fine else parse_timestamptz)(text))
    if isinstance(field_type, UUIDType):
        return uuid.UUID(_matching(_UUID, text, "36 characters"))
    if isinstance(field_type, DecimalType):
        return _decimal(field_type, Decimal(text))
    data = bytes.fromhex(_matching(_BYTES, text, "hexadecimal digits"))
    if isinstance(field_type, FixedType) and len(data) != field_type.length:
        raise ValueError(f"it has {len(data)} bytes")
    return data


def _packed(field_type: IcebergType, value: float) -> Any:
    """Return a number as the type keeps it: checked for its range, rounded to its precision."""
    code = _PACKED[type(field_type)]
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except (struct.error, OverflowError) as error:
        raise ValueError("it is out of range") from error


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("JSON has no form of it")
    return value


def _decimal(field_type: DecimalType, value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent != field_type.scale:
        raise ValueError(f"it does not have {field_type.scale} digits after the point")
    if abs(unscaled(value)) >= 10**field_type.precision:
        raise ValueError(f"it has more than {field_type.precision} digits")
    return value


def _matching(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"it is not {what}")
    return text


def _checked(raw: Any, *kinds: type) -> Any:
    if type(raw) not in kinds:
        raise TypeError(f"it is of type {type(raw).__name__}")
    return raw
