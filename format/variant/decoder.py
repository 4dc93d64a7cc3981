"""Decoding of variant values to Python values.

Memory and time are bounded by the length of the bytes: members of objects and arrays are together
no longer than these, and levels are limited.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from datetime import date, time, timedelta
from typing import Any, Final

from icecomb.format.spec.values.decimal_value import scaled
from icecomb.format.spec.values.temporal import MICROS_PER_DAY
from icecomb.format.variant import layout
from icecomb.format.variant.dictionary import name_of, names_of

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
