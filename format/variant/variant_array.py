"""Arrow arrays of variants."""

from __future__ import annotations

import base64
import json
import math
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from icecomb.format.argument import name_of_type
from icecomb.format.errors import SchemaError
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.types import VariantType
from icecomb.format.spec.values.decimal_value import scaled
from icecomb.format.spec.values.temporal import (
    MICROS_PER_DAY,
    human_date,
    iso_timestamp,
    iso_timestamp_ns,
)
from icecomb.format.variant import layout
from icecomb.format.variant.encoder import encode, name_of, names_of
from icecomb.format.variant.layout import MOST_DIGITS

VARIANT_ARROW: Final = type_to_pyarrow(VariantType())
"""The Arrow type of variants: a struct of two required binary parts."""


def variants_to_arrow(values: Iterable[Any]) -> pa.StructArray:
    """Return an Arrow array of variants, as columns of type `variant` have it.

    Args:
        values: Python values, each encoded as by `Variant.of`, or `Variant`s; None is the null of
            the column, and `Variant.of(None)` a variant null.

    Raises:
        SchemaError: If a value has no variant form, or one value is given in place of several.
    """
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise SchemaError(
            f"Variants are made of a list of values, not of {name_of_type(values)}",
            hint="Give a list, also for one value: variants_to_arrow([value]).",
        )
    each = (v if v is None or isinstance(v, Variant) else Variant.of(v) for v in values)
    return variant_array([None if v is None else (v.metadata, v.value) for v in each])


def variants_from_arrow(array: pa.Array | pa.ChunkedArray) -> list[Variant | None]:
    """Return the variants of an Arrow column, None for nulls of the column.

    Raises:
        SchemaError: If it is not an array of structs of `metadata` and `value`.
    """
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise SchemaError(
            f"Variants come from an Arrow array, not from a {type(array).__name__}",
            hint="Give a column of type variant, such as table.scan().to_arrow()['v'].",
        )
    kind = array.type
    if not pa.types.is_struct(kind) or {f.name for f in kind} != {"metadata", "value"}:
        raise SchemaError(
            f"An array of {kind} has no variants",
            hint="Give a column of type variant: struct<metadata: binary, value: binary>.",
        )
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [
        Variant(metadata, value) if present else None
        for chunk in chunks
        for present, metadata, value in zip(
            chunk.is_valid().to_pylist(),
            chunk.field("metadata").to_pylist(),
            chunk.field("value").to_pylist(),
            strict=True,
        )
    ]


def variant_array(values: Sequence[tuple[bytes, bytes] | None]) -> pa.StructArray:
    """Return an array of variants from pairs of metadata and value; None is null."""
    parts = [_binary([b"" if pair is None else pair[at] for pair in values]) for at in (0, 1)]
    mask = pa.array([pair is None for pair in values], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_ARROW), mask=mask)


def _binary(values: list[bytes]) -> pa.BinaryArray:
    array = pa.array(values, pa.binary())
    if isinstance(array, pa.ChunkedArray):
        raise SchemaError(
            f"{len(values)} variants have more than 2 GiB",
            hint="Make, or read, fewer rows at once.",
        )
    return array


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of a column of type `variant`, in its two binary parts (Parquet: Variant Encoding).

    Two variants are equal if their bytes are; equal values may have different bytes. A variant
    null is a value: it is not the null of a column.

    Args:
        metadata: The dictionary of the names of all objects' fields.
        value: The encoded value.

    Raises:
        SchemaError: If a part is not bytes.
    """

    metadata: bytes
    value: bytes

    def __post_init__(self) -> None:
        for name, part in (("metadata", self.metadata), ("value", self.value)):
            if not isinstance(part, bytes):
                raise SchemaError(
                    f"The {name} of a variant is bytes, not {name_of_type(part)}",
                    hint="Make variants by Variant.of(value) or Variant.from_json(text).",
                )

    @classmethod
    def of(cls, value: Any) -> Variant:
        """Encode a Python value.

        Each value is as narrow as it can be: integers have 8 to 64 bits, beyond that they are
        decimals; a float is a double. Datetimes have microseconds, with a time zone those of
        UTC. An Arrow or NumPy scalar decides its own type: `pa.scalar(1, pa.int64())`,
        `numpy.float32(1.5)`, `pa.scalar(1, pa.timestamp("ns"))`.

        Args:
            value: None, a boolean, number, text, bytes, date, datetime, time, UUID or scalar; a
                list or tuple of values; a mapping from text to values.

        Raises:
            SchemaError: If a value is something else, a number has more than 38 digits, or there
                are more than 500 levels.
        """
        return cls(*encode(value))

    @classmethod
    def from_json(cls, text: str | bytes) -> Variant:
        """Encode the value of JSON text, numbers with a point as decimals.

        A number with an exponent, or of more than 38 digits, is a double.

        Raises:
            SchemaError: If it is not JSON, has a name twice in an object or more than 500 levels.
        """
        return cls.of(parse_json(text))

    def to_python(self) -> Any:
        """Decode the value: objects are dicts, arrays are lists.

        Nanoseconds, and days and times before the year 1 or after 9999, come as Arrow scalars.

        Raises:
            UnsupportedError: If the version, or a type, is not known.
            ValidationError: If the bytes are not a variant, or it has more than 500 levels.
        """
        return decode(self.metadata, self.value)

    def to_json(self) -> str:
        """Return the value as JSON text.

        Dates and times are texts in the form of ISO 8601, bytes in Base64; numbers that JSON does
        not have are "NaN", "Infinity" and "-Infinity".

        Raises:
            UnsupportedError: If the version, or a type, is not known.
            ValidationError: If the bytes are not a variant, or it has more than 500 levels.
        """
        return json_text(self.to_python())


_DECIMALS: Final = frozenset(kind for kind, *_ in layout.DECIMALS)


def decode(metadata: bytes, value: bytes) -> Any:
    """Return the Python value of a variant, of at most 500 levels; see `Variant.to_python`."""
    end = layout.extent(value, 0, len(value))
    return _Decoder(names_of(metadata), value).value(0, end, 0)


class _Decoder:
    def __init__(self, names: Sequence[str], data: bytes) -> None:
        self._names = names
        self._data = data

    def value(self, at: int, end: int, depth: int) -> Any:
        """Return the value of which these are the first byte and the byte after it."""
        data = self._data
        basic = data[at] & 3
        if basic == layout.SHORT_STRING:
            return _text(data[at + 1 : end])
        if basic == layout.PRIMITIVE:
            return _primitive(data[at] >> 2, data[at + 1 : end])
        if depth >= layout.DEEPEST:
            raise layout.malformed(f"it has more than {layout.DEEPEST} levels")
        found = layout.members(data, at, end)
        if found.ids is None:
            elements = []
            for start, after in found.spans:
                elements.append(self.value(start, after, depth + 1))
            return elements
        fields: dict[str, Any] = {}
        for number, (start, after) in zip(found.ids, found.spans, strict=True):
            name = name_of(self._names, number)
            if name in fields:
                raise layout.malformed(f"an object has the field {name!r} twice")
            fields[name] = self.value(start, after, depth + 1)
        return fields


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise layout.malformed(f"a string is not UTF-8: {error}") from None


def _primitive(kind: int, data: bytes) -> Any:
    if kind in _DECIMALS:
        scale = data[0]
        if scale > layout.MOST_DIGITS:
            raise layout.malformed(f"a decimal has the scale {scale}")
        number = int.from_bytes(data[1:], "little", signed=True)
        if abs(number) >= 10**layout.MOST_DIGITS:
            raise layout.malformed(f"a decimal has more than {layout.MOST_DIGITS} digits")
        return scaled(number, scale)
    return _READ[kind](data)


def _whole(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _date(data: bytes) -> Any:
    try:
        return date(1970, 1, 1) + timedelta(days=_whole(data))
    except OverflowError:
        return _scalar(_whole(data), "date32")


def _time(data: bytes) -> time:
    micros = _whole(data)
    if not 0 <= micros < MICROS_PER_DAY:
        raise layout.malformed(f"a time of day is {micros} microseconds")
    return (layout.EPOCH + timedelta(microseconds=micros)).time()


def _timestamp(data: bytes) -> Any:
    try:
        return layout.EPOCH + timedelta(microseconds=_whole(data))
    except OverflowError:
        return _scalar(_whole(data), "timestamp", "us")


def _timestamptz(data: bytes) -> Any:
    try:
        return layout.UTC_EPOCH + timedelta(microseconds=_whole(data))
    except OverflowError:
        return _scalar(_whole(data), "timestamp", "us", "UTC")


def _scalar(number: int, kind: str, *arguments: str) -> Any:
    import pyarrow as pa

    return pa.scalar(number, getattr(pa, kind)(*arguments))


_READ: Final[dict[int, Callable[[bytes], Any]]] = {
    layout.NULL: lambda _: None,
    layout.TRUE: lambda _: True,
    layout.FALSE: lambda _: False,
    layout.INT8: _whole,
    layout.INT16: _whole,
    layout.INT32: _whole,
    layout.INT64: _whole,
    layout.DOUBLE: lambda data: struct.unpack("<d", data)[0],
    layout.FLOAT: lambda data: struct.unpack("<f", data)[0],
    layout.DATE: _date,
    layout.TIMESTAMPTZ: _timestamptz,
    layout.TIMESTAMP: _timestamp,
    layout.TIMESTAMPTZ_NANO: lambda data: _scalar(_whole(data), "timestamp", "ns", "UTC"),
    layout.TIMESTAMP_NANO: lambda data: _scalar(_whole(data), "timestamp", "ns"),
    layout.TIME: _time,
    layout.BINARY: lambda data: data[4:],
    layout.STRING: lambda data: _text(data[4:]),
    layout.UUID: lambda data: uuid.UUID(bytes=data),
}


def parse_json(text: str | bytes) -> Any:
    """Return the Python value of JSON text, numbers with a point as decimals, as Spark does.

    A number with an exponent, or of more than 38 digits, is a float. A repeated name in an object
    raises SchemaError.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise _wrong(f"it is of type {type(text).__name__}, not text")
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_constant,
        )
    except RecursionError:
        raise _wrong("it has too many levels") from None
    except UnicodeDecodeError as error:
        raise _wrong(f"it is not UTF-8: {error}") from None
    except json.JSONDecodeError as error:
        raise _wrong(str(error)) from None


def json_text(value: Any) -> str:
    """Return the JSON text of a decoded value; see `Variant.to_json`."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    """Yield the text in pieces, without a frame for each level."""
    rest: list[tuple[str, Any]] = [("", value)]
    while rest:
        before, each = rest.pop()
        yield before
        if isinstance(each, dict):
            rest.append(("}", _End))
            inside = [
                (f"{',' if at else ''}{json.dumps(name, ensure_ascii=False)}:", one)
                for at, (name, one) in enumerate(each.items())
            ]
            yield "{"
            rest.extend(reversed(inside))
        elif isinstance(each, list):
            rest.append(("]", _End))
            yield "["
            rest.extend(reversed([("," if at else "", one) for at, one in enumerate(each)]))
        elif each is not _End:
            yield _json_scalar(each)


def _json_scalar(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, (uuid.UUID, datetime, date, time)):
        text = value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)
        return json.dumps(text)
    return json.dumps(_distant(value))


def _distant(scalar: Any) -> str:
    """Return the text of an Arrow scalar: a date or time that Python's own types cannot hold."""
    import pyarrow as pa

    kind = scalar.type
    if pa.types.is_date32(kind):
        return human_date(scalar.value)
    text = iso_timestamp_ns if kind.unit == "ns" else iso_timestamp
    return f"{text(scalar.value)}{'' if kind.tz is None else '+00:00'}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _wrong(f"an object has the name {twice!r} twice")
    return found


def _integer(text: str) -> int | float:
    if len(text) <= MOST_DIGITS or len(text.lstrip("-")) <= MOST_DIGITS:
        return int(text)
    return _float(text)


def _fraction(text: str) -> Decimal | float:
    exponent = "e" in text or "E" in text
    if not exponent and len(text.lstrip("-").replace(".", "").lstrip("0")) <= MOST_DIGITS:
        number = Decimal(text)
        if -int(number.as_tuple().exponent) <= MOST_DIGITS:
            return number
    return _float(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _wrong(f"the number {text[:20]}... is out of the range of a double")
    return number


def _constant(text: str) -> Any:
    raise _wrong(f"{text} is not a JSON value")


def _wrong(what: str) -> SchemaError:
    return SchemaError(f"Not JSON: {what}", hint="Give one JSON value.")


class _End:
    """The end of an object or array, after which nothing comes."""
