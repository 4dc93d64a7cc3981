"""Removal of padding from strings of the ORC type `char(n)`, which files pad with spaces.

ORC's Java library strips the spaces, so that Hive, Spark and Iceberg Java never see them; the C++
library in pyarrow returns them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.spec.arrow_schema import child_fields


class Padding:
    """The padded columns of one file.

    Args:
        padded: Whether each type is `char`; types are counted depth-first, the row being 0.
    """

    def __init__(self, schema: pa.Schema, padded: Sequence[bool]) -> None:
        self._places: dict[str, frozenset[int]] = {}
        number = 1
        for field in schema:
            end = number + 1 + _inside(field.type)
            places = frozenset(
                n - number for n in range(number, end) if padded[n : n + 1] == [True]
            )
            if places:
                self._places[field.name] = places
            number = end

    def removed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of any of the columns without the padding."""
        for name in self._places.keys() & set(batch.schema.names):
            at = batch.schema.get_field_index(name)
            array = _removed(batch.column(at), self._places[name], 0)
            batch = batch.set_column(at, batch.schema.field(at), array)
        return batch


def _inside(kind: pa.DataType) -> int:
    return sum(1 + _inside(child.type) for child in child_fields(kind))


def _removed(array: pa.Array, places: frozenset[int], number: int) -> pa.Array:
    kind = array.type
    if number in places:
        return pc.utf8_rtrim(array, " ")
    children = child_fields(kind)
    if not children:
        return array
    numbers = [number + 1]
    for child in children[:-1]:
        numbers.append(numbers[-1] + 1 + _inside(child.type))
    if pa.types.is_struct(kind):
        parts = [_removed(array.field(i), places, n) for i, n in enumerate(numbers)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=children, mask=mask)
    if pa.types.is_map(kind):
        keys, items = array.keys, array.items
        parts = [_removed(part, places, n) for part, n in zip((keys, items), numbers, strict=True)]
        values: pa.Array = pa.StructArray.from_arrays(parts, fields=children)
    else:
        values = _removed(array.values, places, numbers[0])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], array.null_count, array.offset, [values]
    )
