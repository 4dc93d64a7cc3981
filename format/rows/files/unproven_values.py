"""A check of Parquet values that the footer does not prove to be of the column's type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.read.arrow_scan import BATCH_ROWS
from icecomb.format.rows.values.arrow_projection import FileField, Projection
from icecomb.format.spec.schema import children
from icecomb.format.spec.types import FixedType, IcebergType, StringType, StructType, UUIDType

if TYPE_CHECKING:
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO


def check_values(
    io: FileIO,
    location: str,
    name_mapping: NameMapping | None,
    schema: Schema,
    fields: Sequence[FileField],
) -> None:
    """Check columns of plain bytes that are strings, or of fixed length, in the table.

    Old writers left out the annotation of strings; values that are not strings after all would make
    every scan of the table fail. Files without such columns are not read.
    """
    found = {f.field_id: f for f in fields}
    columns = [
        c
        for c in schema.fields
        if c.field_id in found and _unproven(c.field_type, found[c.field_id])
    ]
    if not columns:
        return
    reader = ParquetReader(io, location, name_mapping)
    try:
        projection = Projection(columns, reader.fields, {})
        for position, batch in reader.batches(projection.leaves, reader.row_groups(), BATCH_ROWS):
            projection.apply(batch, position)
    finally:
        reader.close()


def _unproven(kind: IcebergType, found: FileField) -> bool:
    arrow = found.arrow_type
    if isinstance(kind, StringType | FixedType | UUIDType):
        return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow))
    if isinstance(kind, StructType):
        inner = ((f.field_type, found.child(f.field_id)) for f in kind.fields)
        return any(child is not None and _unproven(part, child) for part, child in inner)
    pairs = zip(children(kind), found.children, strict=False)
    return any(_unproven(part.field_type, child) for part, child in pairs)
