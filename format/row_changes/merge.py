"""Merges: rows of a table are updated, deleted and inserted by the rows of a source.

The source is held in memory; the table is streamed file by file. Files that cannot hold a key of
the source are read only if a clause is about rows that match no row of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.batch_stream import GivenRows
from icecomb.format.arrow.plain_layout import plain_schema
from icecomb.format.arrow.row_selection import (
    RowNumbers,
    in_parts,
    no_rows,
    rows_at_once,
    take_rows,
    whole_column,
)
from icecomb.format.errors import ExpressionError, SchemaError, ValidationError
from icecomb.format.expressions.expression import AlwaysFalse, AlwaysTrue, BooleanExpression
from icecomb.format.row_changes.key_index import (
    KEY_BATCH_ROWS,
    KeyIndex,
    key_field,
    key_filter,
    key_text,
)
from icecomb.format.row_changes.merge_clause import (
    Action,
    Mask,
    MergeClauses,
    MergeCondition,
    PreparedClause,
    assignment,
)
from icecomb.format.row_changes.row_expression import RowExpressions, Sides, may_name
from icecomb.format.row_changes.row_level_change import RowLevelChange, row_ids, row_level_change
from icecomb.format.row_changes.write_target import NoChange, WriteTarget, WrittenChange
from icecomb.format.rows.deletes.position_delete import Positions
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import (
    LAST_UPDATED,
    LINEAGE,
    ROW_ID,
    ROW_POSITION,
    lineage,
    metadata_column,
)
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import in_pieces
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import BinaryType, NestedField, StringType

if TYPE_CHECKING:
    from icecomb.format.arrow.row_selection import RowNumbers
    from icecomb.format.rows.deletes.position_delete import Positions
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.types import NestedField


_PAIRS = 1 << 17
"""The number of pairs of rows, or of rows to insert, to process at a time."""
_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge.

    Attributes:
        rows_inserted: The number of rows of the source that were added.
        rows_updated: The number of rows of the table that were replaced, even by equal ones.
        rows_deleted: The number of rows of the table that were removed.
        data_files_added: The number of data files written.
        data_files_removed: The number of data files that the table no longer has.
        delete_files_added: The number of delete files written.
    """

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    data_files_added: int = 0
    data_files_removed: int = 0
    delete_files_added: int = 0


def merge_rows(
    target: WriteTarget,
    data: GivenRows,
    condition: MergeCondition,
    clauses: MergeClauses,
    *,
    target_alias: str = "t",
    source_alias: str = "s",
) -> tuple[WrittenChange | NoChange, MergeResult]:
    """Merge the rows of a source into a table; return the change to commit, if any, and its size.

    The property `write.merge.mode` decides how rows are replaced, and `write.merge.isolation-level`
    what other writers may do meanwhile with rows of the source's keys (with any rows, if a clause
    is about rows that match no row of the source). Nulls in keys are not equal to anything.
    """
    clauses.check()
    target = replace(target, case_sensitive=True)
    expressions = RowExpressions()
    try:
        with row_level_change(target, "merge", replaces_rows=True) as change:
            merge = _Merge(
                change,
                _table(data),
                condition,
                clauses,
                aliases=(target_alias, source_alias),
                expressions=expressions,
            )
            rows = merge.row_filter()
            if not isinstance(rows, AlwaysFalse):
                for task in target.tasks(rows):
                    merge.merge_file(task)
            merge.update()
            merge.insert()
            written = change.finish(rows)
            if isinstance(written, NoChange):
                return written, MergeResult()
            return written, merge.result(written)
    finally:
        expressions.close()


@dataclass(frozen=True, slots=True)
class _Origins:
    """The positions of rows in their file, and their ids; None in a table without row lineage."""

    positions: Positions
    ids: RowNumbers | None

    def __getitem__(self, chosen: RowNumbers | Mask | slice) -> _Origins:
        return _Origins(self.positions[chosen], None if self.ids is None else self.ids[chosen])


class _Merge:
    """A merge in progress."""

    def __init__(
        self,
        change: RowLevelChange,
        source: pa.Table,
        condition: MergeCondition,
        clauses: MergeClauses,
        *,
        aliases: tuple[str, str],
        expressions: RowExpressions,
    ) -> None:
        target = change.target
        self._change = change
        self._source = source
        self._expressions = expressions
        self._target_alias, self._source_alias = aliases
        self._rest = condition.rest
        self._one_row_decides = clauses.one_row_decides
        schema = target.metadata.schema()
        named = _named(target.metadata, condition, clauses)
        change.by_lineage = bool(named)
        columns = (*schema.fields, *reversed(named))
        known = columns if named or _needs_rows(condition, clauses) else ()
        self._known = len(known)
        old = schema_to_pyarrow(Schema(known), include_field_ids=False)
        sides = self._sides(no_rows(old), no_rows(source.schema))
        theirs, ours = {aliases[0]: sides[aliases[0]]}, {aliases[1]: sides[aliases[1]]}
        prepared = partial(
            PreparedClause,
            schema=schema,
            target=aliases[0],
            source=aliases[1],
            expressions=expressions,
        )
        if clauses.not_matched_by_source and any(
            c.values is None and c.action is not Action.DELETE
            for c in clauses.not_matched_by_source
        ):
            raise ValidationError(
                "Rows without a row of the source need values to update with",
                hint="Give the values, or delete these rows.",
            )
        self._matched = [prepared(c, sides=sides) for c in clauses.matched]
        self._unmatched = [prepared(c, sides=ours) for c in clauses.not_matched]
        self._not_matched_by_source = [
            prepared(c, sides=theirs) for c in clauses.not_matched_by_source
        ]
        if self._rest is not None:
            expressions.compute([self._rest], sides)
        self._keys = [key_field(Schema(columns), name) for name, _ in condition.keys]
        self._index_source([name for _, name in condition.keys])
        duplicate = None if self._index is None else self._index.duplicate
        if clauses.is_upsert and duplicate is not None:
            raise ValidationError(
                f"The data has several rows with the key {self._key(duplicate)}",
                hint="Deduplicate the data: each key may occur only once.",
            )
        self._outdated: list[tuple[_Origins, RowNumbers]] = []
        self._difference: RowDifference | None = None
        if clauses.is_upsert and clauses.matched:
            self._difference = RowDifference(target, source, self._keys)
        self.found = np.zeros(source.num_rows, np.bool_)
        self._counts = dict.fromkeys(Action, 0)
        ids = (ROW_ID,) if lineage(target.metadata) else ()
        self._with_ids = bool(ids)
        keys = [*(f for f in dict.fromkeys(self._keys) if f not in ids), *ids]
        self._key_places = [keys.index(f) for f in self._keys]
        scan = partial(ArrowScan, target.metadata, target.io.to_copy(), workers=1)
        self._key_scan = scan(Schema((*keys, ROW_POSITION)), batch_size=KEY_BATCH_ROWS)
        self._row_places = [known.index(f) for f in self._keys if known]
        self._row_scan = scan(Schema((*dict.fromkeys((*known, *ids)), ROW_POSITION)))

    def row_filter(self) -> BooleanExpression:
        """Return a filter that all rows of the table that the merge is about match."""
        if self._not_matched_by_source:
            return AlwaysTrue()
        if self._index is None:
            return AlwaysFalse()
        return key_filter(self._keys, self._columns)

    def merge_file(self, task: FileScanTask) -> None:
        """Apply the clauses to the rows of a data file."""
        removed: list[Positions] = [_NONE]
        if self._not_matched_by_source:
            self._rely_on(task)
            for batch in self._row_scan.read(task):
                rows = batch.select(range(self._known))
                found = self._find([rows.column(i) for i in self._row_places])
                removed += self._merge_rows(rows, self._origins(batch), found)
        else:
            origins, keys = self._with_key(task)
            if len(keys):
                self._rely_on(task)
                if self._difference is None:
                    removed += self._merge_matched(task, origins, keys)
                else:
                    differ = self._difference.of(task, origins.positions, self._with_keys[keys])
                    self._outdated.append((origins[differ], keys[differ]))
                    removed.append(origins.positions[differ])
        self._change.remove(task, np.sort(np.concatenate(removed)))

    def _merge_matched(
        self, task: FileScanTask, origins: _Origins, keys: RowNumbers
    ) -> Iterator[Positions]:
        """Apply the clauses to the rows of a file that have keys of the source."""
        if not self._known:
            yield from self._merge_rows(_unread(len(keys)), origins, keys)
            return
        for batch in self._row_scan.read(task):
            places = np.asarray(batch.column(batch.num_columns - 1))
            begin, end = np.searchsorted(origins.positions, (places[0], places[-1] + 1))
            if begin < end:
                part = slice(begin, end)
                here = np.searchsorted(places, origins.positions[part])
                rows = batch.select(range(self._known)).take(pa.array(here))
                yield from self._merge_rows(rows, origins[part], keys[part])

    def _rely_on(self, task: FileScanTask) -> None:
        """Note that rows of the source are not inserted because of rows of this file."""
        if self._unmatched:
            self._change.rely_on(task.file)

    def update(self) -> None:
        """Replace the rows that an upsert found to differ, in the order of the source."""
        if self._outdated:
            origins, keys = _joined(self._outdated)
            order = np.argsort(keys)
            list(self._merge_rows(_unread(len(keys)), origins[order], keys[order]))

    def insert(self) -> None:
        """Add the rows of the source that match no row of the table, as the clauses say."""
        if not self._unmatched:
            return
        left = np.flatnonzero(~self.found)
        for rows in in_parts(self._source, left, _PAIRS):
            self._apply(self._unmatched, {self._source_alias: rows})

    def result(self, written: WrittenChange) -> MergeResult:
        """Return the result of the merge."""
        counts = self._counts
        return MergeResult(
            counts[Action.INSERT],
            counts[Action.UPDATE],
            counts[Action.DELETE],
            len(written.data_files),
            written.data_files_removed,
            len(written.delete_files),
        )

    def _index_source(self, names: Sequence[str]) -> None:
        """Index the source by key; rows with a null in their key are left out."""
        columns = []
        for field, name in zip(self._keys, names, strict=True):
            if name not in self._source.schema.names:
                raise SchemaError(
                    f"The source has no column {name!r} to find rows by",
                    hint=f"Its columns: {', '.join(self._source.schema.names)}.",
                    column=name,
                )
            column = whole_column(self._source.column(name), name)
            columns.append(assignment(field, column.type)(column))
        valid = np.ones(self._source.num_rows, np.bool_)
        for column in columns:
            valid &= np.asarray(column.is_valid())
        self._with_keys = np.flatnonzero(valid)
        if len(self._with_keys) < len(valid):
            columns = [column.take(pa.array(self._with_keys)) for column in columns]
        self._columns = columns
        self._index = KeyIndex(columns) if len(self._with_keys) else None

    def _with_key(self, task: FileScanTask) -> tuple[_Origins, RowNumbers]:
        """Return the origins of a file's rows that have a key of the source, and those keys."""
        parts = []
        for batch in self._key_scan.read(task):
            found = self._find([batch.column(i) for i in self._key_places])
            hits = np.flatnonzero(found >= 0)
            parts.append((self._origins(batch)[hits], found[hits]))
        return _joined(parts)

    def _find(self, columns: Sequence[pa.Array]) -> RowNumbers:
        """Return the rows of the source with these keys, -1 where it has none."""
        if self._index is None:
            return np.full(len(columns[0]), -1, np.int64)
        found = self._index.find(columns)
        if self._rest is None:
            self._mark(self._index, found[found >= 0])
        return found

    def _mark(self, index: KeyIndex, keys: RowNumbers) -> None:
        """Mark all rows of the source with these keys as matching a row of the table."""
        once, counts = np.unique(keys, return_counts=True)
        _, rows = index.same_key(once)
        if self._difference is not None:
            again = once[(counts > 1) | self.found[rows]]
            if len(again):
                raise ValidationError(
                    f"The table has several rows with the key {self._key(int(again[0]))}",
                    hint="Delete all but one, or choose other key columns.",
                )
        self.found[self._with_keys[rows]] = True

    def _origins(self, batch: pa.RecordBatch) -> _Origins:
        """Return the last columns of a batch: positions, and before them ids, if there are any."""
        last = batch.num_columns - 1
        ids = row_ids(batch.column(last - 1)) if self._with_ids else None
        return _Origins(np.asarray(batch.column(last)), ids)

    def _merge_rows(
        self, rows: pa.RecordBatch, origins: _Origins, found: RowNumbers
    ) -> Iterator[Positions]:
        """Apply the clauses to rows of the table, and yield the positions of rows to remove.

        Args:
            found: Their keys in the source, -1 where it has none.
        """
        hits = np.flatnonzero(found >= 0)
        chosen, partners = self._pairs(rows, hits, found[hits])
        if self._matched:
            step = rows_at_once(self._source, _PAIRS)
            for start in range(0, len(chosen), step):
                part = slice(start, start + step)
                new = take_rows(self._source, partners[part])
                both = self._sides(rows.take(pa.array(chosen[part])), new)
                yield from self._apply(self._matched, both, origins[chosen[part]])
        if self._not_matched_by_source:
            unmatched = np.ones(rows.num_rows, np.bool_)
            unmatched[chosen] = False
            left = rows.filter(pa.array(unmatched))
            yield from self._apply(
                self._not_matched_by_source, {self._target_alias: left}, origins[unmatched]
            )

    def _pairs(
        self, rows: pa.RecordBatch, hits: RowNumbers, found: RowNumbers
    ) -> tuple[RowNumbers, RowNumbers]:
        """Return the matched rows of the table, each once, and a matching row of the source."""
        if self._index is None or not len(hits):
            return _NONE, _NONE
        if self._rest is None:
            several = self._index.key_counts(found) > 1
            if self._one_row_decides and several.any():
                raise self._ambiguous(int(found[several][0]))
            return hits, self._with_keys[found]
        chosen, partners = [], []
        for places, mates in self._candidates(found):
            there, new = hits[places], self._with_keys[mates]
            both = self._sides(rows.take(pa.array(there)), take_rows(self._source, new))
            (mask,) = self._expressions.compute([self._rest], both)
            true = np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
            there, new = there[true], new[true]
            self.found[new] = True
            once, first, counts = np.unique(there, return_index=True, return_counts=True)
            if self._one_row_decides and len(once) < len(there):
                raise self._ambiguous(int(mates[true][first[counts > 1][0]]))
            chosen.append(once)
            partners.append(new[first])
        return np.concatenate(chosen), np.concatenate(partners)

    def _candidates(self, found: RowNumbers) -> Iterator[tuple[RowNumbers, RowNumbers]]:
        """Yield pairs of an index in `found` and a row with its key, a bounded number at a time.

        All pairs of one index come at once.
        """
        if self._index is None:
            return
        ends = np.cumsum(self._index.key_counts(found))
        start = 0
        while start < len(found):
            before = ends[start - 1] if start else 0
            most = rows_at_once(self._source, _PAIRS)
            end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            places, mates = self._index.same_key(found[start:end])
            yield places + start, mates
            start = end

    def _apply(
        self, clauses: Sequence[PreparedClause], rows: Sides, origins: _Origins | None = None
    ) -> list[Positions]:
        """Apply to each row the first clause that selects it; return positions to remove."""
        removed: list[Positions] = []
        for clause in clauses:
            mask = clause.selected(rows)
            if mask.any():
                chosen = _filtered(rows, mask)
                self._counts[clause.action] += int(mask.sum())
                gone = None if origins is None else origins[mask]
                if gone is not None:
                    removed.append(gone.positions)
                if clause.action is not Action.DELETE:
                    written = pa.Table.from_batches([clause.written(chosen)])
                    if gone is None:
                        self._change.write_all(written)
                    else:
                        self._change.write_updated(written, gone.ids)
            if mask.all():
                break
            rows = _filtered(rows, ~mask)
            origins = None if origins is None else origins[~mask]
        return removed

    def _sides(self, old: pa.RecordBatch, new: pa.RecordBatch) -> Sides:
        return {self._target_alias: old, self._source_alias: new}

    def _ambiguous(self, key: int) -> ValidationError:
        return ValidationError(
            f"Several rows of the source match the row of the table with {self._key(key)}",
            hint="Deduplicate the source by its key, or narrow the condition of the merge.",
        )

    def _key(self, row: int) -> str:
        return key_text(self._keys, [column[row] for column in self._columns])


def _joined(parts: Sequence[tuple[_Origins, RowNumbers]]) -> tuple[_Origins, RowNumbers]:
    """Join origins of rows, and their keys."""
    positions = np.concatenate([_NONE, *(origins.positions for origins, _ in parts)])
    ids = [origins.ids for origins, _ in parts if origins.ids is not None]
    keys = np.concatenate([_NONE, *(found for _, found in parts)])
    return _Origins(positions, np.concatenate(ids) if ids else None), keys


def _unread(count: int) -> pa.RecordBatch:
    """Return rows in place of those of the table for clauses that ask for none of its columns."""
    return pa.record_batch([pa.nulls(count)], ["_"])


def _needs_rows(condition: MergeCondition, clauses: MergeClauses) -> bool:
    """Return whether expressions may name the table's columns, or clauses keep their values."""
    return (
        condition.rest is not None
        or bool(clauses.not_matched_by_source)
        or any(c.condition is not None or c.values is not None or c.kept for c in clauses.matched)
    )


def _named(
    metadata: TableMetadata, condition: MergeCondition, clauses: MergeClauses
) -> tuple[NestedField, ...]:
    """Return the columns of row lineage that a merge reads of the table's rows, ids first."""
    own = {field.name for field in metadata.schema().fields}
    keys = {name for name, _ in condition.keys}
    texts = [*keys, condition.rest or ""]
    for clause in (*clauses.matched, *clauses.not_matched_by_source):
        texts += (clause.condition or "", *(clause.values or {}).values())
    said = " ".join(texts)
    named = [f for f in LINEAGE if may_name(said, f.name) and f.name not in own]
    for field in named:
        if field.name in keys:
            metadata_column(field.name, metadata)
    found = lineage(metadata)
    return found if LAST_UPDATED in named else found[: len(named)]


def _table(data: GivenRows) -> pa.Table:
    """Return the source in plain layouts, the only ones from which Arrow can take single rows."""
    _check_names(data.schema.names)
    pieces = groupby(in_pieces(data), lambda batch: batch.schema)
    tables = [pa.Table.from_batches(batches) for _, batches in pieces]
    for table in tables:
        _check_names(table.schema.names)
        if {*table.schema.names} != {*data.schema.names}:
            raise SchemaError(
                "The batches of the source have different columns: "
                f"{', '.join(data.schema.names)}; {', '.join(table.schema.names)}",
                hint="Give all batches the same columns.",
            )
    try:
        empty = plain_schema(data.schema).empty_table()
        return pa.concat_tables(tables, promote_options="permissive") if tables else empty
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"The batches of the source do not go together: {error}",
            hint="Cast their columns to one type.",
        ) from error


def _check_names(names: Sequence[str]) -> None:
    again = sorted({name for name in names if names.count(name) > 1})
    if again:
        raise SchemaError(
            f"The source has several columns {again[0]!r}",
            hint="Give the columns of the source different names.",
            column=again[0],
        )
    if not names:
        raise ExpressionError(
            "The source has no columns",
            hint="Give a source with the columns that the merge compares and writes.",
        )


def _filtered(rows: Sides, mask: Mask) -> Sides:
    if mask.all():
        return rows
    keep = pa.array(mask)
    return {name: batch.filter(keep) for name, batch in rows.items()}


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
