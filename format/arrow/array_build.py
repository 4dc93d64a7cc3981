"""Arrow values built from bytes.

`pyarrow.array` and `pyarrow.scalar` import pandas, if it is installed, only to find that their
arguments are not of it. For a process that plans one scan that is half of the time, so planning
builds its few constants here.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from math import inf
from typing import Any, Final, cast

import pyarrow as pa

_GREATEST_FLOAT: Final = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a scalar of an Arrow type; None is null."""
    if value is None:
        return null(kind)
    if isinstance(value, bool) and pa.types.is_boolean(kind):
        return mask(1, value=value)[0]
    if isinstance(value, bytes) and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        offsets = struct.pack("<2i" if pa.types.is_binary(kind) else "<2q", 0, len(value))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(value)]
        return pa.Array.from_buffers(kind, 1, buffers)[0]
    if isinstance(value, str) and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        stored = pa.binary() if pa.types.is_string(kind) else pa.large_binary()
        return scalar(value.encode(), stored).cast(kind)
    code = _code(value, kind)
    if code is None:
        return pa.scalar(value, kind)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(struct.pack(code, value))])[0]


def _code(value: Any, kind: pa.DataType) -> str | None:
    """Return how a number is stored; None for other values, and for numbers that do not fit."""
    if isinstance(value, float):
        fits = not _GREATEST_FLOAT < abs(value) < inf
        return "<d" if kind == pa.float64() else "<f" if kind == pa.float32() and fits else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    for width, code in ((32, "<i"), (64, "<q")):
        whole = pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind)
        if whole and kind.bit_width == width and -(1 << width - 1) <= value < 1 << width - 1:
            return code
    return None


@cache
def null(kind: pa.DataType) -> pa.Scalar:
    """Return the null of an Arrow type."""
    return pa.nulls(1, kind)[0]


def mask(length: int, *, value: bool) -> pa.BooleanArray:
    """Return an array that repeats one bool ``length`` times."""
    bits = (b"\xff" if value else b"\x00") * ((length + 7) // 8)
    return pa.Array.from_buffers(pa.bool_(), length, [None, pa.py_buffer(bits)])


def integers(values: Sequence[int | None]) -> pa.Int64Array:
    """Return an array of 64-bit integers; None is null."""
    validity = None
    try:
        numbers = array("q", cast("Sequence[int]", values))
    except TypeError:
        numbers, validity = array("q", [value or 0 for value in values]), _validity(values)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [validity, pa.py_buffer(numbers)])


def binaries(values: Sequence[bytes | None]) -> pa.LargeBinaryArray:
    """Return an array of bytes; None is null."""
    filled = [value or b"" for value in values]
    offsets = pa.py_buffer(array("q", accumulate(map(len, filled), initial=0)))
    buffers = [_validity(values), offsets, pa.py_buffer(b"".join(filled))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def texts(values: Sequence[str | None]) -> pa.LargeStringArray:
    """Return an array of texts; None is null."""
    return binaries([None if v is None else v.encode() for v in values]).cast(pa.large_string())


def _validity(values: Iterable[object]) -> pa.Buffer | None:
    bits = 0
    count = missing = 0
    for count, value in enumerate(values, start=1):
        if value is None:
            missing += 1
        else:
            bits |= 1 << (count - 1)
    return pa.py_buffer(bits.to_bytes(count // 8 + 1, "little")) if missing else None


TRUE: Final = scalar(value=True, kind=pa.bool_())
FALSE: Final = scalar(value=False, kind=pa.bool_())
ZERO: Final = scalar(0, pa.int64())
"""Scalars that kernels accept without conversion."""
