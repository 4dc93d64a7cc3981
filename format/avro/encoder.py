"""Encoding of values in Avro (Avro specification: Binary Encoding).

An encoder is composed once per schema as a chain of small functions. For manifests that is several
times faster than interpreting the schema for each value: they are mostly maps of a few dozen
integers and bounds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from icecomb.format.errors import SchemaError, ValidationError

Encoder = Callable[[Any], bytes]

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def encode_long(value: int) -> bytes:
    """Encode an integer: zigzag, seven bits per byte, the lowest first."""
    bits = value << 1 if value >= 0 else ~(value << 1)
    if bits < 0x80:
        return bytes((bits,))
    if bits < 0x4000:
        return bytes((bits & 0x7F | 0x80, bits >> 7))
    if bits < 0x200000:
        return bytes((bits & 0x7F | 0x80, bits >> 7 & 0x7F | 0x80, bits >> 14))
    if bits >> 64:
        raise ValidationError(
            f"{value} does not fit into 64 bits", hint="Give a number of at most 64 bits."
        )
    out = bytearray()
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def encode_bytes(value: bytes) -> bytes:
    """Encode bytes: a length and the bytes."""
    return encode_long(len(value)) + value


def encode_string(value: str) -> bytes:
    """Encode a string: a length in bytes and UTF-8."""
    data = value.encode()
    return encode_long(len(data)) + data


def encoder(schema: Any) -> Encoder:
    """Return the function that encodes a value of this plain schema (`avro.plain_schema`).

    The value of a record is a mapping by field name; that of an array of key-value records is a
    mapping of keys to values.
    """
    if isinstance(schema, str):
        found = _PRIMITIVES.get(schema)
        if found is None:
            raise SchemaError(
                f"Cannot encode Avro type {schema!r}", hint="Use a type of Avro's specification."
            )
        return found
    if isinstance(schema, list):
        return _optional(schema)
    if schema["type"] == "record":
        return _record(schema["fields"])
    if schema["type"] == "array":
        return _array(schema["items"])
    if schema["type"] == "fixed":
        return _fixed(schema["size"])
    raise SchemaError(
        f"Cannot encode Avro type {schema['type']!r}", hint="Use a type of Avro's specification."
    )


def _boolean(value: bool) -> bytes:  # noqa: FBT001 - the value to encode
    return b"\x01" if value else b"\x00"


def _null(value: None) -> bytes:
    if value is not None:
        raise ValidationError(
            f"{value!r} is not null, the only value of an unknown type", hint="Leave it out."
        )
    return b""


_PRIMITIVES: Final[Mapping[str, Encoder]] = {
    "null": _null,
    "boolean": _boolean,
    "int": encode_long,
    "long": encode_long,
    "float": _FLOAT.pack,
    "double": _DOUBLE.pack,
    "bytes": encode_bytes,
    "string": encode_string,
}


def _optional(union: list[Any]) -> Encoder:
    if len(union) != 2 or "null" not in union:
        raise SchemaError(
            f"Cannot encode the union {union}", hint="Use a union of null and one type."
        )
    null = union.index("null")
    absent, present = encode_long(null), encode_long(1 - null)
    encode = encoder(union[1 - null])

    def encode_optional(value: Any) -> bytes:
        return absent if value is None else present + encode(value)

    return encode_optional


def _record(fields: list[dict[str, Any]]) -> Encoder:
    parts = [(field["name"], encoder(field["type"])) for field in fields]

    def encode_record(value: Mapping[str, Any]) -> bytes:
        return b"".join([encode(value[name]) for name, encode in parts])

    return encode_record


def _array(items: Any) -> Encoder:
    if isinstance(items, dict) and [f["name"] for f in items.get("fields", ())] == ["key", "value"]:
        return _pairs(*(encoder(field["type"]) for field in items["fields"]))
    encode = encoder(items)

    def encode_array(values: Any) -> bytes:
        if not values:
            return b"\x00"
        return b"".join((encode_long(len(values)), *[encode(value) for value in values], b"\x00"))

    return encode_array


def _pairs(encode_key: Encoder, encode_value: Encoder) -> Encoder:
    keys: dict[Any, bytes] = {}

    def encode_pairs(values: Mapping[Any, Any]) -> bytes:
        if not values:
            return b"\x00"
        parts = [encode_long(len(values))]
        for key, value in values.items():
            # the keys are column ids
            known = keys.get(key)
            if known is None:
                known = keys[key] = encode_key(key)
            parts.append(known)
            parts.append(encode_value(value))
        parts.append(b"\x00")
        return b"".join(parts)

    return encode_pairs


def _fixed(size: int) -> Encoder:
    def encode_fixed(value: bytes) -> bytes:
        if len(value) != size:
            raise ValidationError(
                f"A value of {size} bytes has {len(value)}",
                hint="Give a value of exactly that length.",
            )
        return value

    return encode_fixed
