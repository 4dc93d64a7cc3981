"""Merges: rows of a table are updated, deleted and inserted by the rows of a source.

The source is held in memory; the table is streamed file by file. Files that cannot hold a key of
the source are read only if a clause is about rows that match no row of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.batch_stream import GivenRows
from icecomb.format.arrow.plain_layout import plain_schema
from icecomb.format.arrow.row_selection import (
    in_parts,
    rows_at_once,
    take_rows,
    whole_column,
)
from icecomb.format.errors import ExpressionError, SchemaError, ValidationError
from icecomb.format.expressions.expression import AlwaysFalse, AlwaysTrue, BooleanExpression
from icecomb.format.row_changes.key_index import (
    KEY_BATCH_ROWS,
    KeyIndex,
    Rows,
    key_field,
    key_filter,
    key_text,
)
from icecomb.format.row_changes.merge_clause import (
    Action,
    Mask,
    MergeClauses,
    PreparedClause,
    assignment,
    prepared,
)
from icecomb.format.row_changes.merge_condition import MergeCondition
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

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.types import NestedField

_PAIRS = 1 << 17
"""The number of pairs of rows, or of rows to insert, to process at a time."""


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
    ids: Rows | None

    def __getitem__(self, chosen: Rows | Mask) -> _Origins:
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
        known = (*schema.fields, *named)
        self._known, self._own = len(known), len(schema.fields)
        old = schema_to_pyarrow(Schema(known), include_field_ids=False).empty_table()
        sides = self._sides(_batch(old), _batch(source.schema.empty_table()))
        theirs, ours = {self._target_alias: sides[aliases[0]]}, {aliases[1]: sides[aliases[1]]}
        names = {"target": aliases[0], "source": aliases[1], "expressions": expressions}
        if clauses.not_matched_by_source and any(
            c.values is None and c.action is not Action.DELETE
            for c in clauses.not_matched_by_source
        ):
            raise ValidationError(
                "Rows without a row of the source need values to update with",
                hint="Give the values, or delete these rows.",
            )
        self._matched = prepared(clauses.matched, schema, sides, **names)
        self._unmatched = prepared(clauses.not_matched, schema, ours, **names)
        self._not_matched_by_source = prepared(
            clauses.not_matched_by_source, schema, theirs, **names
        )
        if self._rest is not None:
            expressions.compute([self._rest], sides)
        self._keys = [key_field(Schema(known), name) for name, _ in condition.keys]
        self._index_source([name for _, name in condition.keys])
        self.found = np.zeros(source.num_rows, np.bool_)
        self._counts = dict.fromkeys(Action, 0)
        self._key_scan = ArrowScan(
            target.metadata,
            target.io,
            Schema((*dict.fromkeys(self._keys), ROW_POSITION)),
            batch_size=KEY_BATCH_ROWS,
            workers=1,
        )
        self._key_places = [list(dict.fromkeys(self._keys)).index(f) for f in self._keys]
        self._row_places = [known.index(f) for f in self._keys]
        self._with_ids = bool(lineage(target.metadata))
        ids = (ROW_ID,) if self._with_ids and ROW_ID not in known else ()
        self._row_scan = ArrowScan(
            target.metadata,
            target.io,
            Schema((*known, *ids, ROW_POSITION)),
            workers=1,
        )

    def row_filter(self) -> BooleanExpression:
        """Return a filter that all rows of the table that the merge is about match."""
        if self._not_matched_by_source:
            return AlwaysTrue()
        if self._index is None:
            return AlwaysFalse()
        return key_filter(self._keys, self._columns)

    def merge_file(self, task: FileScanTask) -> None:
        """Apply the clauses to the rows of a data file."""
        removed: list[Positions] = [np.empty(0, np.int64)]
        if self._not_matched_by_source:
            self._rely_on(task)
            for batch in self._row_scan.read(task):
                origins, rows = self._origins(batch)
                found = self._find([rows.column(i) for i in self._row_places])
                removed += self._merge_rows(rows, origins, found)
        else:
            positions, partners = self._with_key(task)
            if not len(positions):
                self._change.remove(task, positions)
                return
            self._rely_on(task)
            if not self._matched and self._rest is None:
                self._mark(partners)
                return
            for batch in self._row_scan.read(task):
                origins, rows = self._origins(batch)
                places = origins.positions
                begin, end = np.searchsorted(positions, (places[0], places[-1] + 1))
                if begin < end:
                    here = np.searchsorted(places, positions[begin:end])
                    chosen = rows.take(pa.array(here))
                    removed += self._merge_rows(chosen, origins[here], partners[begin:end])
        self._change.remove(task, np.sort(np.concatenate(removed)))

    def _rely_on(self, task: FileScanTask) -> None:
        """Note that rows of the source are not inserted because of rows of this file."""
        if self._unmatched:
            self._change.rely_on(task.file)

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

    def _with_key(self, task: FileScanTask) -> tuple[Positions, Rows]:
        """Return the positions of a file's rows that have a key of the source, and those keys."""
        positions = [np.empty(0, np.int64)]
        partners = [np.empty(0, np.int64)]
        for batch in self._key_scan.read(task):
            places, keys = _split(batch)
            found = self._find([keys.column(i) for i in self._key_places])
            hits = np.flatnonzero(found >= 0)
            positions.append(places[hits])
            partners.append(found[hits])
        return np.concatenate(positions), np.concatenate(partners)

    def _find(self, columns: Sequence[pa.Array]) -> Rows:
        if self._index is None:
            return np.full(len(columns[0]), -1, np.int64)
        return self._index.find(columns)

    def _mark(self, keys: Rows) -> None:
        """Mark all rows of the source with these keys as matching a row of the table."""
        if self._index is not None:
            _, rows = self._index.same_key(np.unique(keys))
            self.found[self._with_keys[rows]] = True

    def _origins(self, batch: pa.RecordBatch) -> tuple[_Origins, pa.RecordBatch]:
        """Return the positions and ids in a batch of the row scan, and its other columns."""
        places, rows = _split(batch)
        if not self._with_ids:
            return _Origins(places, None), rows
        ids = row_ids(rows.column(self._own))
        return _Origins(places, ids), rows.select(range(self._known))

    def _merge_rows(
        self, rows: pa.RecordBatch, origins: _Origins, found: Rows
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

    def _pairs(self, rows: pa.RecordBatch, hits: Rows, found: Rows) -> tuple[Rows, Rows]:
        """Return the matched rows of the table, each once, and a matching row of the source."""
        if self._index is None or not len(hits):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if self._rest is None:
            self._mark(found)
            several = self._index.key_counts(found) > 1
            if self._one_row_decides and several.any():
                raise self._ambiguous(rows, int(hits[several][0]))
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
                raise self._ambiguous(rows, int(once[counts > 1][0]))
            chosen.append(once)
            partners.append(new[first])
        return np.concatenate(chosen), np.concatenate(partners)

    def _candidates(self, found: Rows) -> Iterator[tuple[Rows, Rows]]:
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

    def _ambiguous(self, rows: pa.RecordBatch, row: int) -> ValidationError:
        key = key_text(self._keys, [rows.column(i)[row] for i in self._row_places])
        return ValidationError(
            f"Several rows of the source match the row of the table with {key}",
            hint="Deduplicate the source by its key, or narrow the condition of the merge.",
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


def _split(batch: pa.RecordBatch) -> tuple[Positions, pa.RecordBatch]:
    """Return the last column of a batch, which holds positions, and its other columns."""
    last = batch.num_columns - 1
    return np.asarray(batch.column(last)), batch.select(range(last))


def _array(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def _batch(table: pa.Table) -> pa.RecordBatch:
    return pa.record_batch([_array(c) for c in table.columns], table.schema)


def _filtered(rows: Sides, mask: Mask) -> Sides:
    keep = pa.array(mask)
    return {name: batch.filter(keep) for name, batch in rows.items()}
