"""Thrift's compact protocol, the encoding of Parquet's metadata structures.

Structures keep every field with its kind, so that unknown fields are written back unchanged (Apache
Thrift: Compact Protocol Encoding).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from icecomb.format.avro.varint import read_varint

Data: TypeAlias = "bytes | memoryview"

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12

_WHOLE: Final = frozenset({I16, I32, I64})
_DEEPEST: Final = 40


class CompactError(ValueError):
    """The bytes violate the protocol, or end too early."""


class TruncatedError(CompactError):
    """The bytes end within a structure."""


@dataclass(slots=True)
class Items:
    """A list or set."""

    kind: int
    values: list[Any]


@dataclass(slots=True)
class Pairs:
    """A map."""

    key_kind: int
    value_kind: int
    values: list[tuple[Any, Any]]


class Struct:
    """A structure: kinds and values by field number."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[int, tuple[int, Any]]] = ()) -> None:
        self._fields: dict[int, tuple[int, Any]] = dict(fields)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def __iter__(self) -> Iterator[int]:
        return iter(self._fields)

    def __getitem__(self, number: int) -> Any:
        """Return the value of a field; CompactError if it is missing."""
        try:
            return self._fields[number][1]
        except KeyError:
            raise CompactError(f"field {number} is missing") from None

    def get(self, number: int, default: Any = None) -> Any:
        """Return the value of a field, or the default if it is missing."""
        found = self._fields.get(number)
        return default if found is None else found[1]

    def put(self, number: int, kind: int, value: Any) -> None:
        """Set a field; a structure may be given as its encoded bytes."""
        self._fields[number] = (kind, value)

    def drop(self, *numbers: int) -> None:
        """Remove fields, if present."""
        for number in numbers:
            self._fields.pop(number, None)

    def copy(self) -> Struct:
        """Return a shallow copy."""
        return Struct(self._fields.items())

    def items(self) -> Iterable[tuple[int, tuple[int, Any]]]:
        """Return the fields in the order of their numbers."""
        return sorted(self._fields.items())

    def encoded(self) -> bytes:
        """Return the encoded bytes."""
        out = bytearray()
        _write_struct(out, self)
        return bytes(out)


def read_struct(data: Data, at: int = 0) -> tuple[Struct, int]:
    """Decode a structure at an offset; return it and the offset of the byte after it.

    It raises TruncatedError if the bytes end within it, CompactError if it is not valid.
    """
    try:
        return _struct(data, at, 0)
    except IndexError:
        raise TruncatedError("the bytes end within a structure") from None
    except CompactError:
        raise
    except ValueError as problem:
        raise CompactError(str(problem)) from None


def _struct(data: Data, at: int, depth: int) -> tuple[Struct, int]:
    if depth > _DEEPEST:
        raise CompactError(f"structures are nested more than {_DEEPEST} deep")
    found = Struct()
    fields = found._fields
    number = 0
    while True:
        head = data[at]
        at += 1
        if not head:
            return found, at
        kind = head & 0x0F
        if head >> 4:
            number += head >> 4
        else:
            raw, at = read_varint(data, at)
            number = _signed(raw)
        if I16 <= kind <= I64:
            raw = data[at]
            at += 1
            if raw >= 0x80:
                raw, at = read_varint(data, at - 1)
            fields[number] = kind, (raw >> 1) ^ -(raw & 1)
        elif kind == STRUCT:
            value, at = _struct(data, at, depth + 1)
            fields[number] = kind, value
        elif kind in {TRUE, FALSE}:
            fields[number] = kind, kind == TRUE
        else:
            value, at = _value(data, at, kind, depth + 1)
            fields[number] = kind, value


def _value(data: Data, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _WHOLE:
        raw, at = read_varint(data, at)
        return _signed(raw), at
    if kind == BINARY:
        length, at = read_varint(data, at)
        end = at + length
        if end > len(data):
            raise IndexError(end)
        return bytes(data[at:end]), end
    if kind == STRUCT:
        return _struct(data, at, depth)
    if kind in {LIST, SET}:
        return _items(data, at, depth)
    if kind in {TRUE, FALSE}:
        return data[at] == TRUE, at + 1
    if kind == BYTE:
        byte = data[at]
        return byte - 256 if byte > 127 else byte, at + 1
    if kind == DOUBLE:
        if at + 8 > len(data):
            raise IndexError(at)
        return struct.unpack_from("<d", data, at)[0], at + 8
    if kind == MAP:
        return _pairs(data, at, depth)
    raise CompactError(f"unknown kind of value {kind}")


def _items(data: Data, at: int, depth: int) -> tuple[Items, int]:
    if depth > _DEEPEST:
        raise CompactError(f"lists are nested more than {_DEEPEST} deep")
    head = data[at]
    at += 1
    size, kind = head >> 4, head & 0x0F
    if size == 0x0F:
        size, at = read_varint(data, at)
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth + 1)
        values.append(value)
    return Items(kind, values), at


def _pairs(data: Data, at: int, depth: int) -> tuple[Pairs, int]:
    size, at = read_varint(data, at)
    if not size:
        return Pairs(0, 0, []), at
    kinds = data[at]
    at += 1
    found = Pairs(kinds >> 4, kinds & 0x0F, [])
    for _ in range(size):
        key, at = _value(data, at, found.key_kind, depth + 1)
        value, at = _value(data, at, found.value_kind, depth + 1)
        found.values.append((key, value))
    return found, at


def _signed(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


def _write_struct(out: bytearray, given: Struct) -> None:
    last = 0
    for number, (kind, value) in given.items():
        wire = (TRUE if value else FALSE) if kind in {TRUE, FALSE} else kind
        if 0 < number - last <= 0x0F:
            out.append((number - last) << 4 | wire)
        else:
            out.append(wire)
            _write_whole(out, number)
        last = number
        if I16 <= kind <= I64:
            _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
        elif kind > FALSE:
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _write_whole(out, value)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        if isinstance(value, bytes):
            out += value
        else:
            _write_struct(out, value)
    elif kind in {LIST, SET}:
        _write_items(out, value)
    elif kind in {TRUE, FALSE}:
        out.append(TRUE if value else FALSE)
    elif kind == BYTE:
        out.append(value & 0xFF)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        _write_pairs(out, value)


def _write_items(out: bytearray, given: Items) -> None:
    size = len(given.values)
    if size < 0x0F:
        out.append(size << 4 | given.kind)
    else:
        out.append(0xF0 | given.kind)
        _write_varint(out, size)
    for value in given.values:
        _write_value(out, given.kind, value)


def _write_pairs(out: bytearray, given: Pairs) -> None:
    _write_varint(out, len(given.values))
    if given.values:
        out.append(given.key_kind << 4 | given.value_kind)
    for key, value in given.values:
        _write_value(out, given.key_kind, key)
        _write_value(out, given.value_kind, value)


def _write_whole(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
