"""Internal and serialized values as Arrow arrays of the types in which rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.expressions.comparison import as_binary, bounds_column
from icecomb.format.spec.arrow_schema import scalar_to_pyarrow, type_to_pyarrow
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
)

_DECIMAL_BYTES = 16


def default_scalar(field_type: IcebergType, value: Any) -> pa.Scalar:
    """Return the Arrow scalar of a default value, with the initial defaults of fields inside it."""
    wanted = type_to_pyarrow(field_type, include_field_ids=False)
    if field_type.is_primitive or value is None:
        return scalar_to_pyarrow(value, wanted)
    return _defaults(field_type, [value])[0]


def _defaults(field_type: IcebergType, values: Sequence[Any]) -> pa.Array:
    wanted = type_to_pyarrow(field_type, include_field_ids=False)
    if isinstance(field_type, StructType):
        children = [
            _defaults(f.field_type, [(v or {}).get(f.field_id, f.initial_default) for v in values])
            for f in field_type.fields
        ]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if isinstance(field_type, ListType | MapType):
        ends = list(accumulate((len(value or ()) for value in values), initial=0))
        starts = [None if v is None else at for v, at in zip(values, ends, strict=False)]
        offsets = pa.array([*starts, ends[-1]], pa.int32())
        flat = [inner for value in values for inner in value or ()]
        if isinstance(field_type, ListType):
            return pa.ListArray.from_arrays(
                offsets, _defaults(field_type.element_type, flat), wanted
            )
        items = [inner for value in values for inner in (value or {}).values()]
        keys = _defaults(field_type.key_type, flat)
        return pa.MapArray.from_arrays(
            offsets, keys, _defaults(field_type.value_type, items), wanted
        )
    if isinstance(field_type, UUIDType):
        raw = [None if value is None else value.bytes for value in values]
        return pa.ExtensionArray.from_storage(wanted, pa.array(raw, pa.binary(16)))
    return pa.array(values, wanted)


def internal_to_arrow(array: pa.Array, field_type: PrimitiveType) -> pa.Array:
    """Convert internal values (days, microseconds, 16 bytes) to the type in which rows are read."""
    target = type_to_pyarrow(field_type)
    if array.type == target:
        return array
    if isinstance(field_type, UUIDType):
        return pa.ExtensionArray.from_storage(target, array.cast(pa.binary(16)))
    if pa.types.is_date32(target):
        return array.cast(pa.int32()).view(target)
    if pa.types.is_temporal(target):
        return array.cast(pa.int64()).view(target)
    return array.cast(target)


def bounds_to_arrow(array: pa.Array, field_type: PrimitiveType) -> pa.Array:
    """Convert bounds from bytes (spec: Appendix D, binary) to the type in which rows are read.

    A bound that cannot be decoded becomes null. A truncated fixed value is padded with zeros, which
    leaves it a bound.
    """
    if isinstance(field_type, UnknownType):
        return pa.nulls(len(array))
    array = as_binary(array)
    if isinstance(field_type, StringType):
        return _text(array)
    if isinstance(field_type, BinaryType):
        return array.cast(pa.binary())
    if isinstance(field_type, FixedType):
        return _filled(array, field_type.length)
    if isinstance(field_type, DecimalType):
        return _decimals(array, field_type)
    values = bounds_column(array, field_type).values
    if isinstance(field_type, BooleanType):
        return pc.not_equal(values, pa.scalar(b"\x00", values.type))
    return internal_to_arrow(values, field_type)


def int_view(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return integers without nulls as a numpy array."""
    found: npt.NDArray[np.int64] = np.asarray(array.to_numpy(zero_copy_only=False), np.int64)
    return found


def _text(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        texts = (None if raw is None else raw.decode(errors="replace") for raw in array.to_pylist())
        return pa.array(texts, pa.string())


def _filled(array: pa.Array, length: int) -> pa.Array:
    size = pc.binary_length(array)
    fits = pc.less_equal(size, length)
    array = pc.if_else(fits, array, pa.scalar(None, array.type))
    missing = pc.subtract(pa.scalar(length, size.type), pc.binary_length(array))
    zeros = pc.binary_repeat(pa.scalar(b"\x00", array.type), missing)
    whole = pc.binary_join_element_wise(array, zeros, pa.scalar(b"", array.type))
    return whole.cast(pa.binary(length))


def _decimals(array: pa.Array, field_type: DecimalType) -> pa.Array:
    sizes = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    values = np.zeros((len(array), _DECIMAL_BYTES), np.uint8)
    for size in np.unique(sizes[(sizes > 0) & (sizes <= _DECIMAL_BYTES)]).tolist():
        rows = np.flatnonzero(sizes == size)
        packed = array.take(pa.array(rows)).cast(pa.binary(size))
        digits = np.frombuffer(packed.buffers()[1], np.uint8, len(rows) * size).reshape(-1, size)
        values[rows, :size] = digits[:, ::-1]
        values[rows, size:] = np.where(digits[:, :1] >= 0x80, 0xFF, 0)
    there = (sizes > 0) & (sizes <= _DECIMAL_BYTES)
    valid = pa.py_buffer(np.packbits(there, bitorder="little"))
    widest = pa.decimal128(38, field_type.scale)
    found = pa.Array.from_buffers(widest, len(array), [valid, pa.py_buffer(values)])
    nines = (9,) * field_type.precision
    inside = pc.and_(
        pc.less_equal(found, pa.scalar(Decimal((0, nines, -field_type.scale)), widest)),
        pc.greater_equal(found, pa.scalar(Decimal((1, nines, -field_type.scale)), widest)),
    )
    return pc.if_else(inside, found, pa.scalar(None, widest)).cast(type_to_pyarrow(field_type))
