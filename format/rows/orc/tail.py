"""The tail of an ORC file: offsets of stripes, and their statistics (ORC specification v1).

pyarrow reads a stripe by number, but gives neither its offset nor its statistics. It returns the
footer as a protocol buffer message, of which the few fields needed are decoded here. Statistics
that cannot be trusted are not used: all by writers that counted no values, those of text by writers
before HIVE-8732, and those of floating-point numbers where a NaN may be among them. Timestamps are
widened by a day, because writers disagree on their zone.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from icecomb.format.avro.container import inflated, unpacked, unsnapped
from icecomb.format.avro.varint import read_varint
from icecomb.format.input_limit import LEVELS, unpacked_bytes
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
)

Message: TypeAlias = Mapping[int, Sequence[Any]]
"""The values of a protocol buffer message by field number, undecoded."""

_DAY: Final = 86_400_000_000
_TEXT_KINDS: Final = frozenset((7, 16))
_INTEGER_KINDS: Final = frozenset((1, 2, 3, 4))
_TIMESTAMP_KINDS: Final = frozenset((9, 18))
_BOOLEAN_KIND: Final = 0
_CHAR_KIND: Final = 17
_INTEGERS, _DOUBLES, _TEXTS, _BUCKETS, _DECIMALS, _DATES, _TIMESTAMPS = 2, 3, 4, 5, 6, 7, 9
_PROLEPTIC: Final = 2
_TRUSTED_TEXT: Final = 1
_TRUSTED_TIMES: Final = 6


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe of an ORC file, by its offset and length in bytes."""

    offset: int
    length: int
    rows: int


class OrcTail:
    """The decoded tail of an ORC file, given as pyarrow returns it; ValueError if it is not one."""

    def __init__(self, serialized: bytes) -> None:
        tail = _message(serialized)
        self._script, footer = _message(_bytes(tail, 1)), _message(_bytes(tail, 2))
        types = [_message(raw) for raw in footer.get(4, ())]
        _check_types(types)
        self._kinds = [_number(one, 1) for one in types]
        self.lengths = [_number(one, 4) for one in types]
        """For each type, the most characters of `varchar` and `char`; else 0."""
        self._totals: Sequence[bytes] = footer.get(7, ())
        self.rows = _number(footer, 6)
        """The number of rows in the file."""
        self.julian = _number(footer, 9) == 0 and _number(footer, 11) != _PROLEPTIC
        """True if ORC's Java library numbered old dates by the Julian calendar (ORC-622)."""
        self._statistics: list[Sequence[bytes]] = []
        self.stripes = tuple(_stripes(map(_message, footer.get(3, ()))))
        end = _number(tail, 3) - 1 - _number(tail, 4) - _number(self._script, 1)
        self.metadata_range = (end - _number(self._script, 5), end)
        """Start and end of the section with statistics of stripes, in bytes."""

    @property
    def type_count(self) -> int:
        """The number of types at every depth, including the row itself."""
        return len(self._kinds)

    @property
    def padded(self) -> list[bool]:
        """For each type, True if it is `char`; counted depth-first, the row being 0."""
        return [kind == _CHAR_KIND for kind in self._kinds]

    def load_statistics(self, section: bytes) -> None:
        """Load the stripes' statistics from their section of the file, or raise ValueError."""
        try:
            metadata = _message(self._unpacked(section))
        except (IndexError, MemoryError) as error:
            raise ValueError(f"stripe statistics: {error}") from error
        found = [_message(raw).get(1, ()) for raw in metadata.get(1, ())]
        if len(found) == len(self.stripes):
            self._statistics = found

    def chunk(self, stripe: int, column: int, kind: IcebergType) -> ChunkStatistics | None:
        """Return the statistics of a column in a stripe; None if they are unknown.

        Args:
            column: The number of the column's type, counted depth-first, the row being 0.
            kind: The type of the table's column.
        """
        if not self._statistics or column >= len(self._statistics[stripe]):
            return None
        rows, statistics = self.stripes[stripe].rows, self._statistics[stripe]
        try:
            if not _are_counted(statistics, rows):
                return None
            known = _message(statistics[column])
        except ValueError:
            return None
        return self._column(rows, known, column, kind)

    def total(self, column: int, kind: IcebergType) -> tuple[int | None, ChunkStatistics | None]:
        """Return a column's size on disk in bytes, and its statistics in the whole file.

        Either is None if the writer did not record it; the arguments are as for `chunk`.
        """
        if column >= len(self._totals):
            return None, None
        try:
            known = _message(self._totals[column])
            size = _number(known, 11) or None
            if not _are_counted(self._totals, self.rows):
                return size, None
            return size, self._column(self.rows, known, column, kind)
        except ValueError:
            return None, None

    def _column(
        self, rows: int, known: Message, column: int, kind: IcebergType
    ) -> ChunkStatistics | None:
        if 1 not in known:
            return None
        try:
            nulls = rows - _number(known, 1)
            lower, upper = self._bounds(known, self._kinds[column], kind)
        except (
            ValueError, IndexError, TypeError, AttributeError, struct.error, InvalidOperation,
        ):  # fmt: skip
            return None
        if nulls < 0:
            return None
        return ChunkStatistics(rows, nulls, lower, upper)

    def _bounds(self, known: Message, stored: int, kind: IcebergType) -> tuple[Any, Any]:
        version = _number(self._script, 6)
        if isinstance(kind, (IntegerType, LongType, TimeType)) and stored in _INTEGER_KINDS:
            return _signed(known, _INTEGERS)
        if isinstance(kind, DateType):
            return _signed(known, _DATES)
        if isinstance(kind, BooleanType) and stored == _BOOLEAN_KIND:
            return _booleans(known)
        if isinstance(kind, (FloatType, DoubleType)):
            return _doubles(known)
        if isinstance(kind, StringType) and stored in _TEXT_KINDS and version >= _TRUSTED_TEXT:
            return _texts(known)
        if isinstance(kind, DecimalType):
            return _decimals(known)
        timed = isinstance(kind, TIMESTAMP_TYPES) and stored in _TIMESTAMP_KINDS
        if timed and version >= _TRUSTED_TIMES:
            lower, upper = _signed(known, _TIMESTAMPS, 3)
            if lower is not None and upper is not None:
                unit = 1000 if isinstance(kind, NANO_TYPES) else 1
                return (lower * 1000 - _DAY) * unit, ((upper + 1) * 1000 + _DAY) * unit
        return None, None

    def _unpacked(self, section: bytes) -> bytes:
        codec = _number(self._script, 2)
        if codec == 0:
            return section
        parts, at, room = [], 0, unpacked_bytes()
        while at < len(section):
            header = int.from_bytes(section[at : at + 3], "little")
            chunk = section[at + 3 : at + 3 + (header >> 1)]
            at += 3 + (header >> 1)
            parts.append(chunk if header & 1 else _unpacked(codec, chunk, room))
            room -= len(parts[-1])
        return b"".join(parts)


def _stripes(messages: Iterable[Message]) -> Iterator[Stripe]:
    """Yield the stripes; ValueError if they overlap, by which few bytes would be many rows."""
    end = 0
    for one in messages:
        offset, rows = _number(one, 1), _number(one, 5)
        length = sum(_number(one, field) for field in (2, 3, 4))
        if offset < end:
            raise ValueError("its stripes overlap")
        end = offset + max(length, 1)
        yield Stripe(offset, length, rows)


def _check_types(types: Sequence[Message]) -> None:
    """Check that types have names that are texts, and not too many levels of nested ones."""
    levels, most = [0] * len(types), LEVELS.value
    for number, one in enumerate(types):
        for name in one.get(3, ()):
            if isinstance(name, bytes):  # pyarrow refuses others
                name.decode()
        for inner in _numbers(one, 2):
            # pyarrow accepts no other order
            if number < inner < len(types):
                levels[inner] = levels[number] + 1
                if levels[inner] > most:
                    raise ValueError(f"types are nested more deeply than the limit ({LEVELS})")


def _are_counted(statistics: Sequence[bytes], rows: int) -> bool:
    """Return whether values were counted at all, by the count of the row itself.

    A Java writer without row indexes (`orc.create.index`, `orc.row.index.stride`) counts none: all
    columns appear to hold only nulls.
    """
    return _number(_message(statistics[0]), 1) == rows


def _unpacked(codec: int, chunk: bytes, room: int) -> bytes:
    if codec == 1:
        return inflated(chunk, room)
    if codec == 2:
        return unsnapped(chunk, room)
    if codec == 5:
        return unpacked(chunk, "zstd", room)
    raise ValueError(f"codec {codec}")


def _message(data: bytes) -> Message:
    """Split a message into its fields (Protocol Buffers encoding)."""
    if not isinstance(data, bytes):  # a number stands where a message should
        raise ValueError("a field is not a message")  # noqa: TRY004 - in the file, not an argument
    fields: dict[int, list[Any]] = {}
    at, end = 0, len(data)
    while at < end:
        # Fast path: nearly all numbers are one byte.
        key, at = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
        wire = key & 7
        value: int | bytes
        if wire == 0:
            short = at < end and data[at] < 0x80
            value, at = (data[at], at + 1) if short else _varint(data, at)
        else:
            if wire == 2:
                size, at = _varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            if at + size > end:
                raise ValueError("a message ends too early")
            value = data[at : at + size]
            at += size
        number = key >> 3
        if number in fields:
            fields[number].append(value)
        else:
            fields[number] = [value]
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        return read_varint(data, at)
    except IndexError:
        raise ValueError("a number does not end") from None


def _number(message: Message, field: int) -> int:
    value = message.get(field, (0,))[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} is not a number")  # noqa: TRY004 - in the file, not an argument
    return value


def _numbers(message: Message, field: int) -> Iterator[int]:
    """Yield repeated numbers, packed or not."""
    for one in message.get(field, ()):
        if isinstance(one, int):
            yield one
            continue
        at = 0
        while at < len(one):
            number, at = _varint(one, at)
            yield number


def _bytes(message: Message, field: int) -> bytes:
    value = message.get(field, (b"",))[-1]
    if not isinstance(value, bytes):
        raise ValueError(f"field {field} is not a message")  # noqa: TRY004 - the same
    return value


def _pair(known: Message, kind: int, first: int) -> tuple[Any, Any]:
    inner = _message(_bytes(known, kind))
    return inner.get(first, (None,))[-1], inner.get(first + 1, (None,))[-1]


def _signed(known: Message, kind: int, first: int = 1) -> tuple[int | None, int | None]:
    lower, upper = _pair(known, kind, first)
    if lower is None or upper is None:
        return None, None
    return (lower >> 1) ^ -(lower & 1), (upper >> 1) ^ -(upper & 1)


def _doubles(known: Message) -> tuple[float | None, float | None]:
    inner = _message(_bytes(known, _DOUBLES))
    lower, upper = inner.get(1, (None,))[-1], inner.get(2, (None,))[-1]
    if lower is None or upper is None:
        return None, None
    low, high = struct.unpack("<d", lower)[0], struct.unpack("<d", upper)[0]
    # If a NaN comes first, in a file or in 10,000 rows, bounds omit the rows after it, as all
    # writers compare by < and >. The sum reveals any NaN.
    total = inner.get(3, (struct.pack("<d", math.nan),))[-1]
    if any(map(math.isnan, (low, high, struct.unpack("<d", total)[0]))):
        return None, None
    # Either zero may stand for both.
    return -0.0 if low == 0 else low, 0.0 if high == 0 else high


def _booleans(known: Message) -> tuple[bool | None, bool | None]:
    values, counts = _number(known, 1), _message(_bytes(known, _BUCKETS)).get(1, ())
    if not counts:
        return None, None
    true = _varint(counts[-1], 0)[0] if isinstance(counts[-1], bytes) else counts[-1]
    return true == values, true > 0


def _texts(known: Message) -> tuple[str | None, str | None]:
    lower, upper = _pair(known, _TEXTS, 1)
    return (
        None if lower is None else lower.decode(),
        None if upper is None else upper.decode(),
    )


def _decimals(known: Message) -> tuple[Decimal | None, Decimal | None]:
    lower, upper = _pair(known, _DECIMALS, 1)
    if lower is None or upper is None:
        return None, None
    return Decimal(lower.decode()), Decimal(upper.decode())
