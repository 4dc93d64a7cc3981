"""Rows in Paimon's binary form, in which manifests store partitions (Paimon: BinaryRow).

Four bytes, big-endian, count the fields. Then, little-endian: one byte of the row's kind and a bit
for each field that is null, in whole words of eight bytes; a word for each field; longer values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from icecomb.catalog.paimon.data_type import LOCAL_ZONED, AtomicType, DataField
from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.spec.values.decimal_value import scaled

_WORD: Final = 8
_INLINE: Final = 0x80
_COMPACT_DECIMAL: Final = 18
_MILLISECONDS: Final = 3
_FORMATS: Final = {
    "BOOLEAN": "<?",
    "TINYINT": "<b",
    "SMALLINT": "<h",
    "INT": "<i",
    "BIGINT": "<q",
    "FLOAT": "<f",
    "DOUBLE": "<d",
    "DATE": "<i",
    "TIME": "<i",
}


def read_row(data: bytes, fields: Sequence[DataField]) -> tuple[Any, ...]:
    """Return the values of a row for Iceberg: dates in days, times in microseconds."""
    try:
        (count,) = struct.unpack_from(">i", data)
        if count != len(fields):
            raise CorruptFileError(
                f"A partition has {count} values, its keys are {len(fields)}",
                hint="Restore the manifest from a backup, or roll the table back in Paimon.",
            )
        return tuple(_value(data[4:], at, len(fields), field) for at, field in enumerate(fields))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise CorruptFileError(
            f"A partition of a manifest cannot be read: {error}",
            hint="Restore the manifest from a backup, or roll the table back in Paimon.",
        ) from error


def _value(row: bytes, at: int, count: int, field: DataField) -> Any:
    bit = at + 8
    if row[bit // 8] >> (bit % 8) & 1:
        return None
    start = (count + 63 + 8) // 64 * _WORD + at * _WORD
    kind = field.field_type
    if not isinstance(kind, AtomicType):
        raise UnsupportedError(
            f"Partition key {field.name}: {kind} cannot be read",
            hint="Bring the table over without this partition key, through Spark or Flink.",
        )
    if kind.root in _FORMATS:
        (value,) = struct.unpack_from(_FORMATS[kind.root], row, start)
        return value * 1000 if kind.root == "TIME" else value
    if kind.root in {"CHAR", "VARCHAR"}:
        return _bytes(row, start).decode("utf-8")
    if kind.root in {"BINARY", "VARBINARY"}:
        return _bytes(row, start)
    if kind.root == "DECIMAL":
        return _decimal(row, start, *kind.parameters)
    if kind.root in {"TIMESTAMP", LOCAL_ZONED}:
        return _timestamp(row, start, kind.parameters[0])
    raise UnsupportedError(
        f"Partition key {field.name}: {kind} cannot be read",
        hint="Bring the table over without this partition key, through Spark or Flink.",
    )


def _bytes(row: bytes, start: int) -> bytes:
    mark = row[start + _WORD - 1]
    if mark & _INLINE:
        return row[start : start + (mark & ~_INLINE)]
    size, offset = struct.unpack_from("<II", row, start)
    return _slice(row, offset, size)


def _decimal(row: bytes, start: int, precision: int, scale: int) -> Decimal:
    if precision <= _COMPACT_DECIMAL:
        (number,) = struct.unpack_from("<q", row, start)
    else:
        size, offset = struct.unpack_from("<II", row, start)
        number = int.from_bytes(_slice(row, offset, size), "big", signed=True)
    return scaled(number, scale)


def _timestamp(row: bytes, start: int, precision: int) -> int:
    if precision <= _MILLISECONDS:
        (milliseconds,) = struct.unpack_from("<q", row, start)
        return int(milliseconds) * 1000
    nanoseconds, offset = struct.unpack_from("<II", row, start)
    (milliseconds,) = struct.unpack_from("<q", row, offset)
    return int(milliseconds) * 1000 + int(nanoseconds) // 1000


def _slice(row: bytes, offset: int, size: int) -> bytes:
    found = row[offset : offset + size]
    if len(found) != size:
        raise IndexError("it is cut short")
    return found
