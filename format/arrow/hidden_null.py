"""Nulls of required fields inside null structs, which are not nulls to Iceberg.

Arrow puts such nulls into required fields when it creates null structs, and its Parquet writer
rejects them. They are invisible, so they are just dropped, without copying values.
"""

from __future__ import annotations

import pyarrow as pa


def without_hidden_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch, which lacks no required value, without nulls in required struct fields."""
    if not any(_has_required(f.type) for f in batch.schema):
        return batch
    arrays = [_shown(column) for column in batch.columns]
    return pa.record_batch(arrays, batch.schema)


def _has_required(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(not f.nullable or _has_required(f.type) for f in kind)
    if pa.types.is_map(kind):
        return _has_required(kind.item_type)
    return pa.types.is_list(kind) and _has_required(kind.value_type)


def _shown(array: pa.Array, *, required: bool = False) -> pa.Array:
    """Return the array, without any nulls if it is required."""
    kind = array.type
    if not (_has_required(kind) or (required and array.null_count)):
        return array
    buffers = array.buffers()
    validity = None if required else buffers[0]
    nulls = 0 if required else array.null_count
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _shown(array.storage, required=required))
    if pa.types.is_struct(kind):
        children = [_shown(array.field(n), required=not f.nullable) for n, f in enumerate(kind)]
        mask = None if required or not array.null_count else array.is_null()
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        items = _shown(array.items, required=not kind.item_field.nullable)
        inside = [pa.StructArray.from_arrays([array.keys, items], fields=fields)]
        buffers = buffers[:2]
    elif pa.types.is_list(kind):
        inside = [_shown(array.values, required=not kind.value_field.nullable)]
        buffers = buffers[:2]
    else:
        inside = []
    return pa.Array.from_buffers(
        kind, len(array), [validity, *buffers[1:]], nulls, array.offset, inside
    )
