"""Thrift's binary encoding as bytes: structs and fields cut out without decoding.

Newer metastores send fields that older interface files do not name (the catalog name, the owner's
type, write ids). A decoder drops them, and writing the rest back would erase them on the server.
Cut out here, they are carried over unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_STOP: Final = 0
_I32: Final = 8
_STRING: Final = 11
STRUCT: Final = 12
_MAP: Final = 13
_SET: Final = 14
LIST: Final = 15
_FIXED: Final = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
"""Sizes in bytes of bool, byte, double, i16, i32 and i64."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: its header starts at ``start``, its value is ``value:end``."""

    field_id: int
    type_id: int
    start: int
    value: int
    end: int


def fields(data: bytes, position: int = 0) -> Iterator[Field]:
    """Yield the fields of the struct that starts at ``position``."""
    while True:
        start = position
        if start >= len(data):
            raise ValueError("a thrift struct ends early")
        type_id = data[start]
        if type_id == _STOP:
            return
        value = start + 3
        field_id = int.from_bytes(data[start + 1 : value], "big", signed=True)
        position = _end(data, value, type_id)
        yield Field(field_id, type_id, start, value, position)


def find(data: bytes, position: int, field_id: int) -> Field | None:
    """Return the field ``field_id`` of the struct at ``position``, or None if it is not set."""
    return next((one for one in fields(data, position) if one.field_id == field_id), None)


def list_items(data: bytes, value: int) -> Iterator[bytes]:
    """Yield the encoded elements of the list whose value starts at ``value``."""
    type_id = data[value]
    count = int.from_bytes(data[value + 1 : value + 5], "big")
    position = value + 5
    for _ in range(count):
        _check_within(data, position)
        end = _end(data, position, type_id)
        yield data[position:end]
        position = end


def first_id(data: bytes, position: int) -> int | None:
    """Return the id of the first field of the struct at ``position``; None if it is empty."""
    if data[position] == _STOP:
        return None
    return int.from_bytes(data[position + 1 : position + 3], "big", signed=True)


def reply_body(data: bytes) -> int:
    """Return the position of the result struct in a strict binary reply message."""
    return 8 + int.from_bytes(data[4:8], "big") + 4


def carry_over(encoded: bytes, original: bytes | None, known: frozenset[int]) -> bytes:
    """Return a struct with the fields of ``original`` added whose ids are not ``known``."""
    if original is None:
        return encoded
    foreign = b"".join(
        original[one.start : one.end] for one in fields(original) if one.field_id not in known
    )
    return encoded[:-1] + foreign + b"\0"


def without(data: bytes, path: Sequence[int]) -> bytes:
    """Return a struct without the field that a path of ids leads to, if there is one."""
    found = find(data, 0, path[0])
    if found is None:
        return data
    inner = b""
    if path[1:]:
        inner = data[found.start : found.value] + without(data[found.value : found.end], path[1:])
    return data[: found.start] + inner + data[found.end :]


def with_field_of(original: bytes, data: bytes, path: Sequence[int]) -> bytes:
    """Return ``data`` with the field at a path of ids taken from ``original``, if it is there."""
    theirs = find(original, 0, path[0])
    if theirs is None:
        return data
    ours = find(data, 0, path[0])
    if ours is None:
        return data[:-1] + original[theirs.start : theirs.end] + b"\0" if not path[1:] else data
    inner = original[theirs.value : theirs.end]
    if path[1:]:
        inner = with_field_of(inner, data[ours.value : ours.end], path[1:])
    return data[: ours.value] + inner + data[ours.end :]


def string_field(field_id: int, text: str) -> bytes:
    """Return an encoded string field."""
    return _header(_STRING, field_id) + _string(text)


def struct_field(field_id: int, encoded: bytes) -> bytes:
    """Return a field holding an encoded struct."""
    return _header(STRUCT, field_id) + encoded


def struct_list_field(field_id: int, encoded: list[bytes]) -> bytes:
    """Return a field holding a list of encoded structs."""
    count = len(encoded).to_bytes(4, "big")
    return _header(LIST, field_id) + bytes([STRUCT]) + count + b"".join(encoded)


def string_list_field(field_id: int, texts: Sequence[str]) -> bytes:
    """Return a field holding a list of strings."""
    count = len(texts).to_bytes(4, "big")
    return _header(LIST, field_id) + bytes([_STRING]) + count + b"".join(map(_string, texts))


def number_list_field(field_id: int, numbers: Sequence[int]) -> bytes:
    """Return a field holding a list of 32-bit numbers."""
    count = len(numbers).to_bytes(4, "big")
    body = b"".join(number.to_bytes(4, "big", signed=True) for number in numbers)
    return _header(LIST, field_id) + bytes([_I32]) + count + body


def map_field(field_id: int, mapping: dict[str, str]) -> bytes:
    """Return a field holding a map of strings."""
    count = len(mapping).to_bytes(4, "big")
    body = b"".join(_string(key) + _string(value) for key, value in mapping.items())
    return _header(_MAP, field_id) + bytes([_STRING, _STRING]) + count + body


def _header(type_id: int, field_id: int) -> bytes:
    return bytes([type_id]) + field_id.to_bytes(2, "big")


def _string(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(4, "big") + raw


def _end(data: bytes, position: int, type_id: int) -> int:
    width = _FIXED.get(type_id)
    if width is None and type_id == _STRING:
        width = 4 + int.from_bytes(data[position : position + 4], "big")
    if width is not None:
        # else a list could go on for as many elements as it states
        if position + width > len(data):
            raise ValueError("a thrift value ends early")
        return position + width
    if type_id == STRUCT:
        while data[position] != _STOP:
            position = _end(data, position + 3, data[position])
        return position + 1
    if type_id in {LIST, _SET}:
        count = int.from_bytes(data[position + 1 : position + 5], "big")
        return _end_of(data, position + 5, (data[position],), count)
    if type_id == _MAP:
        count = int.from_bytes(data[position + 2 : position + 6], "big")
        return _end_of(data, position + 6, (data[position], data[position + 1]), count)
    raise ValueError(f"thrift type {type_id} is unknown")


def _end_of(data: bytes, position: int, types: tuple[int, ...], count: int) -> int:
    for _ in range(count):
        _check_within(data, position)
        for type_id in types:
            position = _end(data, position, type_id)
    return position


def _check_within(data: bytes, position: int) -> None:
    """Check that another element can begin here: a few bytes state a list of billions."""
    if position >= len(data):
        raise ValueError("a thrift container ends early")
