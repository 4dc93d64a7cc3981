"""Decoding of blocks of Avro rows to Arrow columns, without a Python object for each row.

polars decodes the plain layout of the bytes; logical types are applied to whole columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icecomb.format.avro.container import AvroContainer
from icecomb.format.avro.records import end_record, is_simple, read_table
from icecomb.format.avro.schema import plain_schema
from icecomb.format.errors import CorruptFileError


def columnar_layout(schema: Any, kinds: Sequence[pa.DataType]) -> Any:
    """Return the layout of a file's records for polars; None if it lacks one of the types."""
    try:
        plain = plain_schema(schema, {})
    except (KeyError, TypeError, ValueError):
        return None
    names = [f"c{number}" for number in range(len(kinds))]
    fields = [{**f, "name": n} for f, n in zip(plain["fields"], names, strict=True)]
    known = is_simple(plain) and all(
        _decodable(f["type"], kind) for f, kind in zip(fields, kinds, strict=True)
    )
    return {**plain, "fields": fields} if known else None


def decoded_columns(
    location: str,
    layout: Any,
    rows: int,
    blocks: list[bytes],
    chosen: Sequence[tuple[int, pa.Field, Any]],
) -> pa.RecordBatch | None:
    """Decode the rows of uncompressed blocks; return None if they are invalid in any way.

    Args:
        layout: The layout that `columnar_layout` returned.
        chosen: Numbers of the columns to decode, with their Arrow fields.
    """
    names = [f"c{number}" for number, *_ in chosen]
    mark, ends = end_record(layout)
    container = AvroContainer(location, {}, None, rows + 1, (*blocks, mark))
    try:
        table = read_table(container, layout, frozenset(names) | _telling(names, ends))
        if table.slice(rows).to_pylist() != [{name: ends[name] for name in table.column_names}]:
            return None
        table = table.slice(0, rows)
        arrays = [
            _typed(_one(table.column(name)), field.type)
            for name, (_, field, _) in zip(names, chosen, strict=True)
        ]
    except (CorruptFileError, pa.ArrowException):
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f for _, f, _ in chosen]))


def _telling(names: Sequence[str], ends: Mapping[str, Any]) -> frozenset[str]:
    """Return a column that distinguishes the end record from a row, if none of these does."""
    telling = [
        n for n, end in ends.items() if isinstance(end, (str, int, float)) and end is not True
    ]
    return frozenset(() if set(telling).intersection(names) else telling[:1])


def _decodable(plain: Any, kind: pa.DataType) -> bool:
    if isinstance(plain, list):
        plain = next(branch for branch in plain if branch != "null")
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return isinstance(plain, dict) and plain["type"] == "fixed"
    if pa.types.is_struct(kind):
        parts = [f["type"] for f in plain["fields"]]
        return all(_decodable(p, f.type) for p, f in zip(parts, kind, strict=True))
    if pa.types.is_map(kind):
        parts = [f["type"] for f in plain["items"]["fields"]]
        return _decodable(parts[0], kind.key_type) and _decodable(parts[1], kind.item_type)
    if pa.types.is_list(kind):
        return _decodable(plain["items"], kind.value_type)
    return not pa.types.is_null(kind)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return _decimals(array, kind)
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary()).cast(kind)
    if pa.types.is_struct(kind):
        return _struct(array, list(kind))
    if pa.types.is_map(kind):
        entries = _struct(array.values, [kind.key_field, kind.item_field])
        return _lists(array, kind, entries)
    if pa.types.is_list(kind):
        return _lists(array, kind, _typed(array.values, kind.value_type))
    return array.cast(kind)


def _struct(array: pa.StructArray, fields: list[pa.Field]) -> pa.StructArray:
    parts = [_typed(array.field(i), f.type) for i, f in enumerate(fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def _lists(array: pa.LargeListArray, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Return the lists or maps with other contents."""
    offsets = array.offsets.cast(pa.int32())
    validity = None
    if array.null_count:
        validity = pa.array(np.asarray(array.is_valid())).buffers()[1]
    buffers = [validity, offsets.buffers()[1]]
    return pa.Array.from_buffers(
        kind, len(array), buffers, array.null_count, offsets.offset, [values]
    )


def _decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert big-endian two's complements of one length to decimals."""
    valid = np.asarray(array.is_valid())
    numbers = array.drop_null().cast(pa.binary())
    out = np.zeros((len(array), 16), np.uint8)
    if len(numbers):
        offsets = np.frombuffer(numbers.buffers()[1], np.int32)[numbers.offset :]
        data = np.frombuffer(numbers.buffers()[2], np.uint8)[offsets[0] : offsets[len(numbers)]]
        digits = data.reshape(len(numbers), -1)[:, -16:]
        filled = np.repeat((digits[:, :1] >> 7) * np.uint8(255), 16, axis=1)
        filled[:, 16 - digits.shape[1] :] = digits
        out[valid] = filled[:, ::-1]
    buffers = [pa.array(valid).buffers()[1], pa.py_buffer(out)]
    return pa.Array.from_buffers(kind, len(array), buffers)
