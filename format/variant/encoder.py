"""Encoding of Python values as variants, each as narrow as its value allows."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.spec.values.decimal_value import unscaled
from icecomb.format.variant import layout
from icecomb.format.variant.layout import malformed, packed, unpacked, width_of

_INTEGERS: Final = ((layout.INT8, 1), (layout.INT16, 2), (layout.INT32, 4), (layout.INT64, 8))
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def encode(value: Any) -> tuple[bytes, bytes]:
    """Return the metadata and the value of a variant, of at most 500 levels; see `Variant.of`."""
    try:
        metadata, ids = dictionary(frozenset(_names(value)))
        return metadata, _value(value, ids, 0)
    except UnicodeEncodeError as error:
        raise _unfit(f"a text has half of a character: {error}") from None


def decimal(number: Decimal) -> bytes:
    """Return a finite decimal of at most 38 digits as a variant value.

    The precision of the narrowest type holds the scale too: Spark reads no others.
    """
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise _unfit(f"{number} is not finite")
    if exponent > layout.MOST_DIGITS:
        raise _unfit(f"{number} has more than {layout.MOST_DIGITS} digits")
    digits, scale = unscaled(number) * 10 ** max(exponent, 0), max(-exponent, 0)
    return exact(digits, scale)


def exact(digits: int, scale: int) -> bytes:
    """Return a decimal of its unscaled value and scale as a variant value."""
    for kind, size, most in layout.DECIMALS:
        if abs(digits) < 10**most and scale <= most:
            data = bytes((scale,)) + digits.to_bytes(size, "little", signed=True)
            return layout.primitive(kind, data)
    raise _unfit(f"a decimal has more than {layout.MOST_DIGITS} digits")


def whole(number: int) -> bytes:
    """Return an integer as a variant value; a decimal, if 64 bits do not hold it."""
    if -128 <= number < 128:
        return _SMALL_INTEGERS[number]
    for kind, size in _INTEGERS:
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
            return layout.primitive(kind, number.to_bytes(size, "little", signed=True))
    return exact(number, 0)


_SMALL_INTEGERS: Final = {
    number: layout.primitive(layout.INT8, number.to_bytes(1, "little", signed=True))
    for number in range(-128, 128)
}


def _names(value: Any) -> set[str]:
    """Return the names of all fields; what they are is checked when they are encoded."""
    names: set[str] = set()
    rest = [(value, 0)]
    while rest:
        each, depth = rest.pop()
        if _is_object(each):
            names.update(each)
            inside = list(each.values())
        elif isinstance(each, (list, tuple)):
            inside = list(each)
        else:
            continue
        if depth >= layout.DEEPEST:
            raise _unfit(f"it has more than {layout.DEEPEST} levels")
        rest.extend((one, depth + 1) for one in inside if type(one) not in _BY_TYPE)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise _unfit(f"the name of a field is {odd[0]!r}, not text")
    return names


def _is_object(value: Any) -> bool:
    # most values are of types that need not be asked whether they are a mapping
    kind = type(value)
    return kind is dict or (kind not in _BY_TYPE and isinstance(value, Mapping))


def _value(value: Any, ids: Mapping[str, int], depth: int) -> bytes:
    if (encode_one := _BY_TYPE.get(type(value))) is not None:
        return encode_one(value)
    if _is_object(value):
        parts = {}
        for name, each in value.items():
            parts[ids[name]] = _value(each, ids, depth + 1)
        order = sorted(parts)
        return layout.object_value(order, [parts[number] for number in order])
    if isinstance(value, (list, tuple)):
        elements = []
        for each in value:
            elements.append(_value(each, ids, depth + 1))  # noqa: PERF401 - a frame a level
        return layout.array(elements)
    return _primitive(value)


def _primitive(value: Any) -> bytes:
    if value is None:
        return layout.VARIANT_NULL
    if isinstance(value, bool):
        return layout.primitive(layout.TRUE if value else layout.FALSE)
    if isinstance(value, str):
        return layout.string(value.encode())
    if isinstance(value, int):
        return whole(value)
    if type(value) is float:
        return _double(value)
    if isinstance(value, Decimal):
        return decimal(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return layout.sized(layout.BINARY, bytes(value))
    if isinstance(value, uuid.UUID):
        return layout.primitive(layout.UUID, value.bytes)
    if isinstance(value, datetime) and not getattr(value, "nanosecond", 0):
        return _timestamp(value)
    if type(value) is date:
        return _number(layout.DATE, value.toordinal() - _EPOCH_DAY, 4)
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise _unfit(f"{value} is a time of day with a zone")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return _number(layout.TIME, seconds * 1_000_000 + value.microsecond, 8)
    return _other(value)


def _double(value: float) -> bytes:
    return _DOUBLE + _PACK_DOUBLE(value)


_DOUBLE: Final = layout.primitive(layout.DOUBLE)
_PACK_DOUBLE: Final = struct.Struct("<d").pack
_TRUTHS: Final = (layout.primitive(layout.FALSE), layout.primitive(layout.TRUE))
_BY_TYPE: Final[Mapping[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: layout.VARIANT_NULL,
    bool: lambda value: _TRUTHS[value],
    int: whole,
    float: _double,
    str: lambda value: layout.string(value.encode()),
}
"""The encoders of the types that are met most."""


def _other(value: Any) -> bytes:
    """Encode an Arrow scalar, or a number or time of NumPy or pandas."""
    import pyarrow as pa

    scalar = value
    if not isinstance(value, pa.Scalar):
        try:
            scalar = _pandas_time(value) if hasattr(value, "nanosecond") else pa.scalar(value)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
            raise _unfit(f"a value is of type {type(value).__name__}") from None
    try:
        encoded = _scalar(scalar) if scalar.is_valid else layout.VARIANT_NULL
    except (pa.ArrowException, OverflowError) as error:
        raise _unfit(f"{scalar.type} out of range: {error}") from None
    if encoded is None:
        raise _unfit(f"a value is of type {scalar.type}")
    return encoded


def _scalar(scalar: Any) -> bytes | None:
    """Encode an Arrow scalar that is not null; return None if its type has no variant form."""
    import pyarrow as pa

    kind, types = scalar.type, pa.types
    if types.is_timestamp(kind):
        zoned = kind.tz is not None
        if kind.unit == "ns":
            nanos = layout.TIMESTAMPTZ_NANO if zoned else layout.TIMESTAMP_NANO
            return _number(nanos, scalar.value, 8)
        micros = scalar.cast(pa.timestamp("us", kind.tz)).value
        return _number(layout.TIMESTAMPTZ if zoned else layout.TIMESTAMP, micros, 8)
    if types.is_date32(kind):
        return _number(layout.DATE, scalar.value, 4)
    if types.is_signed_integer(kind):
        size = kind.bit_width // 8
        return _number(next(k for k, n in _INTEGERS if n == size), scalar.as_py(), size)
    if kind == pa.float32():
        return layout.primitive(layout.FLOAT, struct.pack("<f", scalar.as_py()))
    plain = scalar.as_py()
    known = (bool, str, int, float, Decimal, bytes, uuid.UUID, date, time)
    return _primitive(plain) if isinstance(plain, known) else None


def _pandas_time(value: Any) -> Any:
    """Return a timestamp of pandas, or its missing one, as an Arrow scalar of nanoseconds."""
    import pyarrow as pa

    kind = pa.timestamp("ns", None if value.tzinfo is None else "UTC")
    present = value == value  # noqa: PLR0124 - the missing one equals nothing
    return pa.scalar(value.value if present else None, kind)


def _timestamp(value: datetime) -> bytes:
    zoned = value.tzinfo is not None
    passed = value - (layout.UTC_EPOCH if zoned else layout.EPOCH)
    micros = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return _number(layout.TIMESTAMPTZ if zoned else layout.TIMESTAMP, micros, 8)


def _number(kind: int, number: int, size: int) -> bytes:
    return layout.primitive(kind, number.to_bytes(size, "little", signed=True))


def _unfit(what: str) -> SchemaError:
    return SchemaError(
        f"Not a value for a variant: {what}",
        hint="Give None, booleans, numbers, text, bytes, dates, times, UUIDs, and lists and dicts "
        "of these.",
    )


NO_NAMES: Final = b"\x01\x00\x00"
"""The dictionary without names."""
_VERSION: Final = 1
_SORTED: Final = 1 << 4
_KEPT_BYTES: Final = 1 << 12
_KEPT_NAMES: Final = 1 << 7
"""The length up to which a dictionary is kept: mostly many variants have the same."""


def dictionary(names: frozenset[str]) -> tuple[bytes, Mapping[str, int]]:
    """Return the dictionary of field names, sorted, and the number of each name.

    UnicodeEncodeError is raised if a name has halves of characters.
    """
    return _known_dictionary(names) if len(names) <= _KEPT_NAMES else _dictionary(names)


def _dictionary(names: frozenset[str]) -> tuple[bytes, Mapping[str, int]]:
    ordered = sorted(names)
    if not ordered:
        return NO_NAMES, {}
    encoded = [name.encode() for name in ordered]
    offsets, end = [0], 0
    for name in encoded:
        end += len(name)
        offsets.append(end)
    width = width_of(max(end, len(ordered)))
    head = bytes((_VERSION | _SORTED | (width - 1) << 6,))
    numbers = packed([len(ordered), *offsets], width)
    return b"".join((head, numbers, *encoded)), {name: at for at, name in enumerate(ordered)}


def names_of(metadata: bytes) -> Sequence[str]:
    """Return the names in a dictionary, by number."""
    return _known_names(metadata) if len(metadata) <= _KEPT_BYTES else _names_of(metadata)


def name_of(names: Sequence[str], number: int) -> str:
    """Return the name of a number that an object has for a field."""
    if number >= len(names):
        raise malformed(f"a field has the name {number}, its metadata has {len(names)}")
    return names[number]


def _names_of(metadata: bytes) -> Sequence[str]:
    if not metadata:
        raise malformed("its metadata is empty")
    version, width = metadata[0] & 0x0F, (metadata[0] >> 6) + 1
    if version != _VERSION:
        raise UnsupportedError(
            f"A variant has metadata of version {version}, only version {_VERSION} is known",
            hint="Read it with the engine that wrote it.",
        )
    begin = 1 + width
    count = int.from_bytes(metadata[1:begin], "little")
    text = begin + (count + 1) * width
    if text > len(metadata):
        raise malformed(f"its metadata of {len(metadata)} bytes is too short for {count} names")
    offsets = unpacked(metadata, begin, count + 1, width)
    if offsets[0] or text + offsets[count] > len(metadata):
        raise malformed(f"the names in its metadata reach from {offsets[0]} to {offsets[count]}")
    if any(after < before for before, after in pairwise(offsets)):
        raise malformed("the names in its metadata are not one after the other")
    try:
        return [metadata[text + start : text + end].decode() for start, end in pairwise(offsets)]
    except UnicodeDecodeError as error:
        raise malformed(f"a name in its metadata is not UTF-8: {error}") from None


_known_names = lru_cache(maxsize=64)(_names_of)
_known_dictionary = lru_cache(maxsize=64)(_dictionary)
