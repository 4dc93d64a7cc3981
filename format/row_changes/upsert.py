"""Upserts: merges by unique keys, which replace rows that differ and insert the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from icecomb.format.arrow.batch_stream import GivenRows
from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.row_changes.key_index import key_field
from icecomb.format.row_changes.merge import merge_rows
from icecomb.format.row_changes.merge_clause import Action, Clause, MergeClauses, MergeCondition
from icecomb.format.row_changes.write_target import NoChange, WriteTarget, WrittenChange
from icecomb.format.rows.values.arrow_projection import Projection
from icecomb.format.rows.values.metadata_columns import METADATA_COLUMNS
from icecomb.format.rows.write.data_writer import FrameProjections, check_required, in_pieces
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, UnknownType


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
    for f in keys:
        if nulls := source.column(f.name).null_count:
            raise ValidationError(
                f"Key column {f.name!r} holds {nulls} nulls: a null equals no key",
                hint="Leave such rows out, and append them.",
                column=f.name,
            )
    condition = MergeCondition(tuple((f.name, f.name) for f in keys))
    clauses = MergeClauses(
        (Clause(Action.UPDATE),) * update, (Clause(Action.INSERT),) * insert, is_upsert=True
    )
    change, merged = merge_rows(target, source, condition, clauses)
    result = UpsertResult(merged.rows_updated, merged.rows_inserted)
    return change if source.num_rows else None, result


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
