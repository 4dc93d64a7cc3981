"""The comparison of rows of a table with rows that may replace them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.row_selection import rows_at_once, take_rows
from icecomb.format.row_changes.merge_clause import Mask
from icecomb.format.row_changes.write_target import WriteTarget
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import BinaryType, NestedField, StringType

if TYPE_CHECKING:
    from icecomb.format.arrow.row_selection import RowNumbers
    from icecomb.format.rows.deletes.position_delete import Positions
    from icecomb.format.rows.values.scan_task import FileScanTask


class RowDifference:
    """A comparison of rows of data files with those of a source that has the table's columns."""

    def __init__(self, target: WriteTarget, source: pa.Table, keys: Sequence[NestedField]) -> None:
        self._source = source
        values = [f for f in target.metadata.schema().fields if f not in keys]
        # Columns that are cheap to read are compared first: mostly they differ already, and the
        # rest need not be read.
        cheap = [f for f in values if _is_cheap(f)]
        parts = cheap[:1], cheap[1:], [f for f in values if not _is_cheap(f)]
        self._scans = [
            (
                fields,
                ArrowScan(target.metadata, target.io, Schema((*fields, ROW_POSITION)), workers=1),
            )
            for fields in parts
            if fields
        ]

    def of(self, task: FileScanTask, positions: Positions, rows: RowNumbers) -> Mask:
        """Return a mask of the rows of a file that differ from rows of the source.

        Args:
            positions: The rows of the file, ascending.
            rows: The row of the source for each.
        """
        differ = np.zeros(len(rows), np.bool_)
        for fields, scan in self._scans:
            equal = np.flatnonzero(~differ)
            if not len(equal):
                break
            asked = positions[equal]
            for batch in scan.read(task):
                places = np.asarray(batch.column(batch.num_columns - 1))
                begin, end = np.searchsorted(asked, (places[0], places[-1] + 1))
                if begin < end:
                    present = pa.array(np.searchsorted(places, asked[begin:end]))
                    here = equal[begin:end]
                    differ[here] = self._compared(batch.take(present), fields, rows[here])
        return differ

    def _compared(
        self, batch: pa.RecordBatch, fields: Sequence[NestedField], rows: RowNumbers
    ) -> Mask:
        source = self._source.select([f.name for f in fields])
        different = np.zeros(len(rows), np.bool_)
        step = rows_at_once(source, len(rows))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            new, old = take_rows(source, rows[part]), batch.slice(start, step)
            for i in range(len(fields)):
                different[part] |= differing(old.column(i), new.column(i))
        return different


def _is_cheap(field: NestedField) -> bool:
    kind = field.field_type
    return kind.is_primitive and not isinstance(kind, (StringType, BinaryType))


def differing(left: pa.Array, right: pa.Array) -> Mask:
    """Return a mask of the rows where two arrays of one type and length differ, at any depth.

    Lists and maps also differ if their elements are in a different order.
    """
    if isinstance(left, pa.ExtensionArray):
        return differing(left.storage, right.storage)
    null, other_null = _mask(left.is_null()), _mask(right.is_null())
    different: Mask = null != other_null
    both = ~(null | other_null)
    kind = left.type
    if pa.types.is_null(kind):
        return different
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            different |= both & differing(pc.struct_field(left, [i]), pc.struct_field(right, [i]))
        return different
    if pa.types.is_map(kind):
        return different | _in_lists(_entries(left), _entries(right), both)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return different | _in_lists(left, right, both)
    unequal = _mask(pc.fill_null(pc.not_equal(left, right), False))
    if pa.types.is_floating(kind):
        unequal &= ~(_mask(_nan(left)) & _mask(_nan(right)))
    return different | unequal


def _in_lists(left: pa.Array, right: pa.Array, both: Mask) -> Mask:
    length = _lengths(left)
    different: Mask = both & (length != _lengths(right))
    rows = np.flatnonzero(both & ~different & (length > 0))
    if len(rows):
        chosen = pa.array(rows)
        inside = differing(left.take(chosen).flatten(), right.take(chosen).flatten())
        starts = np.concatenate(([0], np.cumsum(length[rows])[:-1]))
        different[rows] = np.logical_or.reduceat(inside, starts)
    return different


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)


def _entries(array: pa.MapArray) -> pa.ListArray:
    """Convert a map to a list of its entries."""
    return array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))


def _nan(array: pa.Array) -> pa.Array:
    return pc.is_nan(array).fill_null(False)


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
