"""The layout of variant values: headers, sizes and offsets (Parquet: Variant Binary Encoding).

A value begins with a byte: its basic type in the two low bits, and above them the type of a
primitive, the length of a short string, or the widths of an object's or array's numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import accumulate
from typing import Final, NamedTuple

from icecomb.format.errors import UnsupportedError, ValidationError

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
(NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16, DATE,
 TIMESTAMPTZ, TIMESTAMP, FLOAT, BINARY, STRING, TIME, TIMESTAMPTZ_NANO, TIMESTAMP_NANO,
 UUID) = range(21)  # fmt: skip
SIZES: Final = {
    NULL: 0,
    TRUE: 0,
    FALSE: 0,
    INT8: 1,
    INT16: 2,
    INT32: 4,
    INT64: 8,
    DOUBLE: 8,
    DECIMAL4: 5,
    DECIMAL8: 9,
    DECIMAL16: 17,
    DATE: 4,
    TIMESTAMPTZ: 8,
    TIMESTAMP: 8,
    FLOAT: 4,
    TIME: 8,
    TIMESTAMPTZ_NANO: 8,
    TIMESTAMP_NANO: 8,
    UUID: 16,
}
"""The lengths of primitives of one length in bytes, without the first byte."""
MOST_DIGITS: Final = 38
"""The most digits of a decimal, and its greatest scale."""
DECIMALS: Final = ((DECIMAL4, 4, 9), (DECIMAL8, 8, 18), (DECIMAL16, 16, MOST_DIGITS))
"""The types of decimals, with the bytes of their numbers and their most digits."""
DEEPEST: Final = 500
"""The most levels of objects and arrays in a value."""
EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of local times
UTC_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
VARIANT_NULL: Final = bytes((NULL << 2 | PRIMITIVE,))

_LONGEST_SHORT: Final = 63
_SMALL: Final = 0xFF
_PREFIX: Final = 4
"""The bytes of the length of a string or binary value."""


@dataclass(frozen=True, slots=True)
class Members:
    """The members of an object or array.

    Attributes:
        ids: The numbers of an object's field names in the dictionary; None for an array.
        spans: The offsets of the first byte of each member in the value's buffer, and of the byte
            after it.
    """

    ids: Sequence[int] | None
    spans: Sequence[tuple[int, int]]


def malformed(what: str) -> ValidationError:
    """Return the error for bytes that are not a variant."""
    return ValidationError(
        f"Not a variant: {what}",
        hint="Restore the file from which it was read, or write the value again.",
    )


def primitive(kind: int, data: bytes = b"") -> bytes:
    """Return a primitive value of its type and bytes."""
    return bytes((kind << 2 | PRIMITIVE,)) + data


def sized(kind: int, data: bytes) -> bytes:
    """Return a string or binary value, which has its length before its bytes."""
    return primitive(kind, len(data).to_bytes(_PREFIX, "little") + data)


def string(data: bytes) -> bytes:
    """Return a string of its UTF-8 bytes: a short one, if they are fewer than 64."""
    if len(data) <= _LONGEST_SHORT:
        return bytes((len(data) << 2 | SHORT_STRING,)) + data
    return sized(STRING, data)


def array(parts: Sequence[bytes]) -> bytes:
    """Return an array of values."""
    ends = _ends(parts)
    if len(parts) <= _SMALL and ends[-1] <= _SMALL:
        return bytes((ARRAY, len(parts), *ends)) + b"".join(parts)
    width = width_of(ends[-1])
    large = len(parts) > _SMALL
    head = bytes(((large << 2 | width - 1) << 2 | ARRAY,))
    count = _count(len(parts), large=large)
    return b"".join((head, count, packed(ends, width), *parts))


def object_value(ids: Sequence[int], parts: Sequence[bytes]) -> bytes:
    """Return an object; `ids` number its fields in the dictionary, ordered by name."""
    ends, most = _ends(parts), max(ids, default=0)
    if max(len(parts), ends[-1], most) <= _SMALL:
        return bytes((OBJECT, len(parts), *ids, *ends)) + b"".join(parts)
    width, id_width = width_of(ends[-1]), width_of(most)
    large = len(parts) > _SMALL
    head = bytes(((large << 4 | id_width - 1 << 2 | width - 1) << 2 | OBJECT,))
    count = _count(len(parts), large=large)
    return b"".join((head, count, packed(ids, id_width), packed(ends, width), *parts))


def members(data: bytes, at: int, limit: int) -> Members:
    """Return the members of the object or array at an offset, before `limit`.

    Together they are not longer than what contains them, so that whoever follows them is done in
    time however they overlap.
    """
    frame = _frame(data, at, limit)
    offsets = unpacked(data, frame.offsets, frame.size + 1, frame.width)
    end = frame.values + offsets[frame.size]
    if end > limit:
        raise malformed(f"the members of the object or array at {at} end at {end}, of {limit}")
    starts = [frame.values + offset for offset in offsets[: frame.size]]
    spans = [(start, extent(data, start, end)) for start in starts]
    if sum(after - start for start, after in spans) > end - frame.values:
        raise malformed(f"members of the object or array at {at} share bytes")
    ids = unpacked(data, frame.ids, frame.size, frame.id_width) if frame.id_width else None
    return Members(ids, spans)


def extent(data: bytes, at: int, limit: int) -> int:
    """Return the offset of the byte after the value at an offset; members are not looked at."""
    if at >= limit:
        raise malformed("a value is empty")
    basic, header = data[at] & 3, data[at] >> 2
    if basic in {OBJECT, ARRAY}:
        frame = _frame(data, at, limit)
        last = frame.values - frame.width
        end = frame.values + int.from_bytes(data[last : frame.values], "little")
    elif basic == SHORT_STRING:
        end = at + 1 + header
    elif header in SIZES:
        end = at + 1 + SIZES[header]
    elif header in {BINARY, STRING}:
        end = at + 1 + _PREFIX
        if end <= limit:
            end += int.from_bytes(data[at + 1 : end], "little")
    else:
        raise UnsupportedError(
            f"A variant has a value of the type {header}, which is not known",
            hint="Read it with the engine that wrote it.",
        )
    if end > limit:
        raise malformed(f"the value at {at} ends at {end}, of {limit}")
    return end


class _Frame(NamedTuple):
    """The number of members of an object or array, and where its other numbers begin."""

    size: int
    ids: int
    id_width: int
    offsets: int
    width: int
    values: int


def _frame(data: bytes, at: int, limit: int) -> _Frame:
    header, is_object = data[at] >> 2, data[at] & 3 == OBJECT
    width = (header & 3) + 1
    large = header >> 4 & 1 if is_object else header >> 2 & 1
    ids = at + 1 + (4 if large else 1)
    if ids > limit:
        raise malformed(f"the object or array at {at} is cut")
    count = int.from_bytes(data[at + 1 : ids], "little")
    id_width = (header >> 2 & 3) + 1 if is_object else 0
    offsets = ids + count * id_width
    values = offsets + (count + 1) * width
    if values > limit:
        raise malformed(f"the {count} members of the object or array at {at} reach beyond its end")
    return _Frame(count, ids, id_width, offsets, width, values)


def width_of(number: int) -> int:
    """Return the number of bytes, at most four, that hold a number."""
    width = max((number.bit_length() + 7) // 8, 1)
    if width > 4:
        raise ValidationError(
            "A variant cannot be longer than 4 GiB", hint="Split the value, or make it smaller."
        )
    return width


def packed(numbers: Sequence[int], width: int) -> bytes:
    """Return unsigned numbers of the given width, the lowest byte first."""
    if width == 1:
        return bytes(numbers)
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def unpacked(data: bytes, at: int, count: int, width: int) -> Sequence[int]:
    """Return unsigned numbers of the given width, the lowest byte first."""
    if width == 1:
        return data[at : at + count]
    if width == 3:
        ends = range(at + 3, at + 3 * count + 1, 3)
        return [int.from_bytes(data[end - 3 : end], "little") for end in ends]
    return struct.unpack_from(f"<{count}{'H' if width == 2 else 'I'}", data, at)


def _count(number: int, *, large: bool) -> bytes:
    return number.to_bytes(4 if large else 1, "little")


def _ends(parts: Sequence[bytes]) -> list[int]:
    """Return zero and the offset after each value."""
    return list(accumulate(map(len, parts), initial=0))
