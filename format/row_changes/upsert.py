"""Upserts: rows are updated by key, and inserted if the table has no row with their key.

The new rows and their keys are held in memory; the table is streamed file by file, and only files
that may hold one of the keys are read. Nothing is done per row in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.batch_stream import GivenRows
from icecomb.format.arrow.row_selection import (
    filtered_table,
    rows_at_once,
    take_rows,
    whole_column,
)
from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.expressions.expression import BooleanExpression
from icecomb.format.row_changes.key_index import (
    KEY_BATCH_ROWS,
    KeyIndex,
    Rows,
    key_field,
    key_filter,
    key_text,
)
from icecomb.format.row_changes.row_level_change import row_ids, row_level_change
from icecomb.format.row_changes.write_target import NoChange, WriteTarget, WrittenChange
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.arrow_projection import Projection
from icecomb.format.rows.values.metadata_columns import (
    METADATA_COLUMNS,
    ROW_ID,
    ROW_POSITION,
    lineage,
)
from icecomb.format.rows.write.data_writer import FrameProjections, check_required, in_pieces
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import BinaryType, NestedField, StringType, UnknownType

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.rows.deletes.position_delete import Positions
    from icecomb.format.rows.values.scan_task import FileScanTask


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """The result of an upsert.

    Attributes:
        rows_updated: The number of rows of the table that were replaced; equal rows are not.
        rows_inserted: The number of rows that were added.
    """

    rows_updated: int = 0
    rows_inserted: int = 0


def upsert_rows(
    target: WriteTarget,
    data: GivenRows,
    join_cols: Sequence[str] | None = None,
    *,
    update: bool = True,
    insert: bool = True,
) -> tuple[WrittenChange | NoChange | None, UpsertResult]:
    """Replace the rows that have the key of a new row, and add the other new rows.

    The property `write.merge.mode` decides how rows are replaced, and `write.merge.isolation-level`
    what other writers may do meanwhile with rows of such keys. Without new rows, the change is
    None.

    Args:
        join_cols: The columns of the key; by default the schema's identifier fields.
    """
    if not update and not insert:
        raise ValidationError(
            "An upsert that neither updates nor inserts does nothing",
            hint="Set when_matched_update_all or when_not_matched_insert_all.",
        )
    schema = target.metadata.schema()
    # a string is a sequence of strings, too: one name is meant
    keys = _key_fields(target, [join_cols] if isinstance(join_cols, str) else join_cols)
    source = _fitted(schema, data, complete=update)
    matching = _Matching(replace(target, case_sensitive=True), source, keys, update=update)
    with row_level_change(target, "merge", replaces_rows=True) as change:
        if not source.num_rows:
            return None, UpsertResult()
        rows = matching.row_filter()
        for task in replace(target, case_sensitive=True).tasks(rows):
            change.remove(task, matching.outdated(task))
        for file in matching.files if insert else ():
            change.rely_on(file)
        updated = filtered_table(source, matching.changed)
        inserted = filtered_table(source, ~matching.found) if insert else source.slice(0, 0)
        ids = None if matching.ids is None else matching.ids[matching.changed]
        change.write_updated(updated, ids)
        change.write_all(inserted)
        return change.finish(rows), UpsertResult(updated.num_rows, inserted.num_rows)


class _Matching:
    """The rows of a table that have the keys of new rows.

    Attributes:
        found: A mask of the new rows whose key was found in the files examined so far.
        changed: A mask of those that differ from the table's row.
        files: The data files that have keys of new rows.
        ids: The row ids of the table's rows that have the keys of new rows, -1 where there is
            none; None in a table without row lineage.
    """

    def __init__(
        self, target: WriteTarget, source: pa.Table, keys: Sequence[NestedField], *, update: bool
    ) -> None:
        self._source = source
        self._keys = keys
        self._update = update
        self._columns = [whole_column(source.column(f.name), f.name) for f in keys]
        for f, column in zip(keys, self._columns, strict=True):
            if column.null_count:
                raise ValidationError(
                    f"Key column {f.name!r} holds {column.null_count} nulls: a null equals no key",
                    hint="Leave such rows out, and append them.",
                    column=f.name,
                )
        self._index = KeyIndex(self._columns)
        if self._index.duplicate is not None:
            raise ValidationError(
                f"The data has several rows with the key {self._key(self._index.duplicate)}",
                hint="Deduplicate the data: each key may occur only once.",
            )
        self.found = np.zeros(source.num_rows, np.bool_)
        self.changed = np.zeros(source.num_rows, np.bool_)
        self.files: list[DataFile] = []
        ids = (ROW_ID,) if lineage(target.metadata) else ()
        self.ids = np.full(source.num_rows, -1) if ids else None
        taken = {f.field_id for f in keys}
        schema = target.metadata.schema()
        values = [f for f in schema.fields if f.field_id not in taken]
        scan = partial(ArrowScan, target.metadata, target.io, workers=1)
        self._key_scan = scan(Schema((*keys, *ids, ROW_POSITION)), batch_size=KEY_BATCH_ROWS)
        # Columns that are cheap to read are compared first: mostly they differ already, and the
        # rest need not be read.
        cheap = [f for f in values if _is_cheap(f)]
        parts = cheap[:1], cheap[1:], [f for f in values if not _is_cheap(f)]
        self._value_scans = [(part, scan(Schema((*part, ROW_POSITION)))) for part in parts if part]

    def row_filter(self) -> BooleanExpression:
        """Return a filter that all rows with one of the keys match, and few others."""
        return key_filter(self._keys, self._columns)

    def outdated(self, task: FileScanTask) -> Positions:
        """Return the positions, ascending, of the rows of a file that are to be replaced."""
        positions, rows = self._matches(task)
        if len(rows):
            self.files.append(task.file)
        outdated = np.zeros(len(rows), np.bool_)
        for fields, scan in self._value_scans if self._update else ():
            equal = np.flatnonzero(~outdated)
            if not len(equal):
                break
            asked = positions[equal]
            for batch in scan.read(task):
                places = np.asarray(batch.column(batch.num_columns - 1))
                begin, end = np.searchsorted(asked, (places[0], places[-1] + 1))
                if begin < end:
                    present = pa.array(np.searchsorted(places, asked[begin:end]))
                    here = equal[begin:end]
                    outdated[here] = self._differing(batch.take(present), fields, rows[here])
        self.changed[rows[outdated]] = True
        return positions[outdated]

    def _matches(self, task: FileScanTask) -> tuple[Positions, Rows]:
        """Return the positions of a file's rows that have a key, and the new rows with that key."""
        positions = [np.empty(0, np.int64)]
        rows = [np.empty(0, np.int64)]
        for batch in self._key_scan.read(task):
            found = self._index.find(batch.columns[: len(self._keys)])
            hits = np.flatnonzero(found >= 0)
            if len(hits):
                self._mark(found[hits])
                if self.ids is not None:
                    self.ids[found[hits]] = row_ids(batch.column(len(self._keys)))[hits]
                positions.append(np.asarray(batch.column(batch.num_columns - 1))[hits])
                rows.append(found[hits])
        return np.concatenate(positions), np.concatenate(rows)

    def _mark(self, rows: Rows) -> None:
        again = self.found[rows]
        if self._update and (again.any() or len(np.unique(rows)) < len(rows)):
            once, counts = np.unique(rows, return_counts=True)
            twice = rows[again] if again.any() else once[counts > 1]
            raise ValidationError(
                f"The table has several rows with the key {self._key(int(twice[0]))}",
                hint="Delete all but one, or choose other key columns.",
            )
        self.found[rows] = True

    def _differing(self, batch: pa.RecordBatch, fields: Sequence[NestedField], rows: Rows) -> Mask:
        source = self._source.select([f.name for f in fields])
        different = np.zeros(len(rows), np.bool_)
        step = rows_at_once(source, len(rows))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            new, old = take_rows(source, rows[part]), batch.slice(start, step)
            for i in range(len(fields)):
                different[part] |= differing(old.column(i), new.column(i))
        return different

    def _key(self, row: int) -> str:
        return key_text(self._keys, [column[row] for column in self._columns])


def _key_fields(target: WriteTarget, join_cols: Sequence[str] | None) -> list[NestedField]:
    schema = target.metadata.schema()
    if join_cols is None:
        names = [schema.find_column_name(i) or str(i) for i in schema.identifier_field_ids]
    else:
        names = list(join_cols)
    own = {f.name for f in schema.fields}
    for name in names:
        if name in METADATA_COLUMNS and name not in own:
            raise ValidationError(
                f"An upsert finds rows by columns of the table, not by {name}",
                hint=f'Use merge(rows, on="t.{name} = s.{name}"), where the table has row ids.',
                column=name,
            )
    if not names:
        raise ValidationError(
            "There is no key to find rows by",
            hint="Give join_cols, or set the table's identifier fields.",
        )
    fields = [key_field(schema, name, case_sensitive=target.case_sensitive) for name in names]
    return list(dict.fromkeys(fields))


def _fitted(schema: Schema, data: GivenRows, *, complete: bool) -> pa.Table:
    """Convert the new rows, which may have to be complete, to the table's columns and types."""
    projections = FrameProjections(schema)

    def projection(frame: pa.Schema) -> Projection:
        if complete:
            _check_complete(schema, frame)
        return projections.of(frame)

    projection(data.schema)
    batches = []
    for batch in in_pieces(data):
        fitted = projection(batch.schema).apply(batch, 0)
        check_required(schema, fitted)
        batches.append(fitted)
    return pa.Table.from_batches(batches, schema_to_pyarrow(schema, include_field_ids=False))


def _check_complete(schema: Schema, frame: pa.Schema) -> None:
    valued = [f for f in schema.fields if not isinstance(f.field_type, UnknownType)]
    missing = [f.name for f in valued if f.name not in frame.names]
    if missing:
        raise SchemaError(
            f"The data has no column {missing[0]!r}: replaced rows would lose its values",
            hint="Give all columns of the table, or set when_matched_update_all to False.",
            column=missing[0],
        )


def _is_cheap(field: NestedField) -> bool:
    kind = field.field_type
    return kind.is_primitive and not isinstance(kind, (StringType, BinaryType))


Mask = npt.NDArray[np.bool_]


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
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type),
        len(array),
        [validity, offsets],
        array.null_count,
        array.offset,
        [entries],
    )


def _nan(array: pa.Array) -> pa.Array:
    return pc.is_nan(array).fill_null(False)


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
