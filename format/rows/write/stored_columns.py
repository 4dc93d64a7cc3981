"""The columns of a table that its data files contain: all but those of type unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from icecomb.format.errors import UnsupportedError
from icecomb.format.spec.arrow_schema import field_to_pyarrow
from icecomb.format.spec.schema import Schema, children, walk, with_children
from icecomb.format.spec.types import (
    SHAPE_TYPES,
    NestedField,
    StructType,
    UnknownType,
)


class StoredColumns:
    """The stored part of rows; the attribute `schema` has the columns of the files."""

    def __init__(self, schema: Schema) -> None:
        self._rows = schema.fields
        self.schema = schema
        if not schema.fields:
            raise UnsupportedError(
                "The table has no columns, so that data files would have none",
                hint="Add a column first.",
            )
        kinds = [f.field_type for f in walk(schema.as_struct())]
        self._whole = not any(
            isinstance(kind, (UnknownType, *SHAPE_TYPES)) or kind == StructType() for kind in kinds
        )
        if self._whole:
            return
        fields = tuple(_stored(schema.fields, ""))
        if not fields:
            raise UnsupportedError(
                "All columns are of type unknown, so that data files would have none",
                hint="Give a column another type first.",
            )
        self.schema = Schema(fields, schema.schema_id)
        self._arrow = pa.schema([field_to_pyarrow(f, include_field_ids=False) for f in fields])

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the stored columns of a batch of rows."""
        if self._whole:
            return batch
        arrays = _kept(self._rows, batch.columns, self.schema.fields, list(self._arrow))
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)


def _stored(fields: Sequence[NestedField], prefix: str) -> list[NestedField]:
    return [
        _stored_field(f, f"{prefix}{f.name}")
        for f in fields
        if not isinstance(f.field_type, UnknownType)
    ]


def _stored_field(field: NestedField, path: str) -> NestedField:
    kind = field.field_type
    if isinstance(kind, SHAPE_TYPES):
        raise UnsupportedError(
            f"Column {path!r} is of type {kind}: such values cannot be written",
            hint="Write rows with an engine that has the type, or drop the column.",
            column=path,
        )
    if kind == StructType():
        raise UnsupportedError(
            f"Column {path!r} is a struct without fields: data files cannot store it",
            hint="Add a field to it first, or drop the column.",
            column=path,
        )
    inside = children(kind)
    if not inside:
        return field
    kept = _stored(inside, f"{path}.")
    if not kept or (len(kept) < len(inside) and not isinstance(kind, StructType)):
        raise UnsupportedError(
            f"Column {path!r} of type {kind} cannot be written: a file cannot leave out what is "
            "unknown in it",
            hint="Give what is unknown in it another type, or drop the column.",
            column=path,
        )
    return replace(field, field_type=with_children(kind, kept))


def _kept(
    rows: Sequence[NestedField],
    arrays: Sequence[pa.Array],
    stored: Sequence[NestedField],
    arrows: Sequence[pa.Field],
) -> list[pa.Array]:
    by_id = {f.field_id: (f, array) for f, array in zip(rows, arrays, strict=True)}
    return [
        _part(*by_id[f.field_id], f, arrow.type) for f, arrow in zip(stored, arrows, strict=True)
    ]


def _part(row: NestedField, array: pa.Array, stored: NestedField, kind: pa.DataType) -> pa.Array:
    """Return the stored part of an array."""
    if row.field_type == stored.field_type:
        return array
    inside, kept = children(row.field_type), children(stored.field_type)
    if pa.types.is_struct(kind):
        parts = [array.field(i) for i in range(len(inside))]
        found = _kept(inside, parts, kept, list(kind))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(found, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        entries = _kept(inside, [array.keys, array.items], kept, fields)
        values: pa.Array = pa.StructArray.from_arrays(entries, fields=fields)
    else:
        (values,) = _kept(inside, [array.values], kept, [kind.value_field])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], array.null_count, array.offset, [values]
    )
