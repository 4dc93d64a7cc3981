"""Reading of ORC timestamps beyond the range of nanoseconds: before 1678 or after 2261.

pyarrow rejects such a stripe, as its ORC reader returns only nanoseconds. The columns with
timestamps are then read row by row as microseconds, which cover the range of Iceberg's type.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyorc

from icecomb.format.errors import CorruptFileError, IcecombError

_ROWS: Final = 1 << 14
"""The maximum number of rows held as Python objects at a time."""


class _Micros:
    """A converter of timestamps to numbers of microseconds."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, _: object) -> int:
        return seconds * 1_000_000 + nanoseconds // 1000

    to_orc = from_orc  # required, but not used


class _Days:
    """A converter that keeps dates as numbers of days."""

    @staticmethod
    def from_orc(days: int) -> int:
        return days

    to_orc = from_orc  # required, but not used


_CONVERTERS: Final[dict[Any, Any]] = {
    pyorc.TypeKind.TIMESTAMP: _Micros,
    pyorc.TypeKind.TIMESTAMP_INSTANT: _Micros,
    pyorc.TypeKind.DATE: _Days,
}


def read_columns(
    source: pa.NativeFile, location: str, schema: pa.Schema, stripe: int, columns: Sequence[int]
) -> list[pa.Array]:
    """Read columns, by ascending number, of a stripe, with timestamps truncated to microseconds."""
    try:
        file = pyorc.Reader(source, column_indices=columns, converters=_CONVERTERS)
        kinds = [_in_micros(schema.field(number).type) for number in columns]
        rows = iter(file.read_stripe(stripe))
        chunks: list[list[pa.Array]] = [[pa.array([], kind)] for kind in kinds]
        while some := list(islice(rows, _ROWS)):
            for n, kind in enumerate(kinds):
                chunks[n].append(pa.array([_plain(row[n], kind) for row in some], kind))
        return [pa.concat_arrays(parts) for parts in chunks]
    except (IcecombError, MemoryError):
        raise
    except Exception as problem:  # the library has no exception class of its own
        raise CorruptFileError(
            f"Cannot read data file {location}: {problem or type(problem).__name__}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from problem


def _in_micros(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_in_micros(f.type)) for f in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_in_micros(key.type)), item.with_type(_in_micros(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_micros(kind.value_type)))
    return kind


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Convert a value to the form Arrow takes: a struct as a dict, a map as pairs."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _plain(v, f.type) for f, v in zip(kind, value, strict=True)}
    if pa.types.is_map(kind):
        return [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in value.items()]
    if pa.types.is_list(kind):
        return [_plain(v, kind.value_type) for v in value]
    return value
