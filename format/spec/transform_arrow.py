"""Transforms over whole Arrow arrays.

Integers, dates and timestamps never become Python objects: bucket hashes and the rounding of time
and truncate are Arrow kernels. Text, bytes and decimals are transformed once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import plain_array
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    bucket_hash,
    truncate_decimal,
)
from icecomb.format.spec.values.decimal_value import decimal_bytes
from icecomb.format.spec.values.temporal import MICROS_PER_DAY, MICROS_PER_HOUR

_TO_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
# pc.year counts in 16 bits; days more than 8,000 years from 1970 are converted one by one.
_SAFE_DAYS = 3_000_000


def apply(transform: Transform, array: Any) -> Any:
    """Apply a transform to an Array or ChunkedArray; the result has the same shape."""
    if isinstance(array, pa.ChunkedArray):
        chunks = [apply(transform, chunk) for chunk in array.chunks]
        kind = chunks[0].type if chunks else apply(transform, pa.array([], array.type)).type
        return pa.chunked_array(chunks, kind)
    if pa.types.is_dictionary(array.type):
        return apply(transform, array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        return apply(transform, plain_array(array))
    if isinstance(array, pa.ExtensionArray):
        if isinstance(transform, (IdentityTransform, VoidTransform)):
            return array if isinstance(transform, IdentityTransform) else _nulls(array)
        array = array.storage
    if isinstance(transform, IdentityTransform):
        return array
    if isinstance(transform, VoidTransform):
        return _nulls(array)
    if isinstance(transform, BucketTransform):
        return _bucket(transform, array)
    if isinstance(transform, TruncateTransform):
        return _truncate(transform, array)
    if isinstance(transform, TimeTransform):
        return _time(transform, array)
    raise UnsupportedError(
        f"Cannot apply the unknown transform {transform}",
        hint="A newer writer may have created it: use a newer icecomb.",
    )


def _nulls(array: Any) -> Any:
    return pa.nulls(len(array), array.type)


def _refuse(transform: Transform, kind: Any) -> ValidationError:
    return ValidationError(
        f"Cannot apply transform {transform} to an Arrow array of type {kind}",
        hint="Choose a transform that fits the type.",
    )


def _bucket(transform: BucketTransform, array: Any) -> Any:
    kind = array.type
    if pa.types.is_integer(kind):
        hashes = _murmur3_long(array.cast(pa.int64()))
    elif pa.types.is_date(kind):
        hashes = _murmur3_long(_days(array))
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        hashes = _murmur3_long(_micros(array))
    elif _is_text(kind) or _is_bytes(kind):
        hashes = _distinct(array, bucket_hash, pa.int32())
    elif pa.types.is_decimal(kind):
        hashes = _distinct(array, lambda v: bucket_hash(decimal_bytes(v)), pa.int32())
    else:
        raise _refuse(transform, kind)
    positive = pc.bit_wise_and(hashes.cast(pa.int64()), 0x7FFFFFFF)
    return _subtract_multiple(positive, transform.num_buckets).cast(pa.int32())


def _truncate(transform: TruncateTransform, array: Any) -> Any:
    kind, width = array.type, transform.width
    if pa.types.is_integer(kind):
        narrow = array.cast(pa.int32()) if kind.bit_width < 32 else array
        return pc.subtract(narrow, _floor_mod(narrow, width))
    if _is_text(kind):
        return pc.utf8_slice_codeunits(_no_view(array, pa.string()), 0, width)
    if pa.types.is_fixed_size_binary(kind):
        raise _refuse(transform, kind)
    if _is_bytes(kind):
        return pc.binary_slice(_no_view(array, pa.binary()), 0, width)
    if pa.types.is_decimal(kind):
        try:
            return _distinct(array, lambda v: truncate_decimal(v, width), kind)
        except pa.ArrowInvalid:
            # -9.99 in steps of 0.10 is -10.00: one digit more than the column has.
            wider = pa.decimal128(min(kind.precision + 1, 38), kind.scale)
        try:
            return _distinct(array, lambda v: truncate_decimal(v, width), wider)
        except pa.ArrowInvalid as error:
            raise ValidationError(
                f"Cannot apply transform {transform} to a column of type {kind}: "
                f"a result has more than 38 digits: {error}",
                hint="Partition by another transform, or keep such values out.",
            ) from error
    raise _refuse(transform, kind)


def _time(transform: TimeTransform, array: Any) -> Any:
    kind = array.type
    if isinstance(transform, HourTransform):
        if not pa.types.is_timestamp(kind):
            raise _refuse(transform, kind)
        hours = _floor_div(_micros(array), MICROS_PER_HOUR)
        try:
            return hours.cast(pa.int32())
        except pa.ArrowInvalid:
            return hours
    if pa.types.is_timestamp(kind):
        days = _floor_div(_micros(array), MICROS_PER_DAY)
    elif pa.types.is_date(kind):
        days = _days(array)
    else:
        raise _refuse(transform, kind)
    if isinstance(transform, DayTransform):
        return days.cast(pa.int32()).cast(pa.date32())
    bounds = pc.min_max(days).as_py()
    low, high = bounds["min"], bounds["max"]
    if low is not None and (low < -_SAFE_DAYS or high > _SAFE_DAYS):
        return _distinct(days, transform.from_days, pa.int32())
    dates = days.cast(pa.int32()).cast(pa.date32())
    years = pc.subtract(pc.year(dates), 1970)
    if isinstance(transform, YearTransform):
        return years.cast(pa.int32())
    if isinstance(transform, MonthTransform):
        months = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(dates), 1))
        return months.cast(pa.int32())
    raise _refuse(transform, kind)


def _days(array: Any) -> Any:
    if pa.types.is_date64(array.type):
        return _floor_div(array.view(pa.int64()), 86_400_000)
    return array.view(pa.int32()).cast(pa.int64())


def _micros(array: Any) -> Any:
    unit = array.type.unit
    counts = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    if unit == "ns":
        return _floor_div(counts, 1_000)
    return counts if unit == "us" else pc.multiply_checked(counts, _TO_MICROS[unit])


def _floor_mod(array: Any, width: int) -> Any:
    # The width may exceed the range of the type, so the arithmetic is done in 64 bits.
    wide = array.cast(pa.int64())
    rest = _subtract_multiple(wide, width)
    floor = pc.if_else(pc.less(rest, 0), pc.add(rest, width), rest)
    return floor.cast(array.type)


def _floor_div(array: Any, width: int) -> Any:
    quotient = pc.divide(array, width)
    rest = pc.subtract(array, pc.multiply(quotient, width))
    return pc.if_else(pc.less(rest, 0), pc.subtract(quotient, 1), quotient)


def _subtract_multiple(array: Any, width: int) -> Any:
    return pc.subtract(array, pc.multiply(pc.divide(array, width), width))


def _murmur3_long(array: Any) -> Any:
    """Return the Murmur3 x86 32-bit hash, with seed 0, of each number's 8 little-endian bytes."""
    words = array.view(pa.uint64())
    low = pc.bit_wise_and(words, pa.scalar(0xFFFFFFFF, pa.uint64())).cast(pa.uint32())
    high = pc.shift_right(words, pa.scalar(32, pa.uint64())).cast(pa.uint32())
    state = _mix_state(None, low)
    state = _mix_state(state, high)
    state = pc.bit_wise_xor(state, _u32(8))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = pc.bit_wise_xor(state, pc.shift_right(state, _u32(shift)))
        state = pc.multiply(state, _u32(factor))
    state = pc.bit_wise_xor(state, pc.shift_right(state, _u32(16)))
    return state.view(pa.int32())


def _mix_state(state: Any, block: Any) -> Any:
    mixed = pc.multiply(_rotate(pc.multiply(block, _u32(0xCC9E2D51)), 15), _u32(0x1B873593))
    # The seed is 0, so the first block is not combined with anything.
    joined = mixed if state is None else pc.bit_wise_xor(state, mixed)
    return pc.add(pc.multiply(_rotate(joined, 13), _u32(5)), _u32(0xE6546B64))


def _rotate(array: Any, bits: int) -> Any:
    return pc.bit_wise_or(pc.shift_left(array, _u32(bits)), pc.shift_right(array, _u32(32 - bits)))


def _u32(value: int) -> Any:
    return pa.scalar(value, pa.uint32())


def _distinct(array: Any, function: Callable[[Any], Any], kind: Any) -> Any:
    encoded = array.dictionary_encode()
    values = [function(v) for v in encoded.dictionary.to_pylist()]
    return pa.array(values, kind).take(encoded.indices)


def _no_view(array: Any, kind: Any) -> Any:
    is_view = pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type)
    return array.cast(kind) if is_view else array


def _is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_bytes(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )
