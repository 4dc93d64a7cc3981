"""What a metadata table is to the scan that reads it: columns, and rows in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import BooleanExpression
from icecomb.format.rows.read.arrow_projection import Projection, file_fields
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, StructType


class Rows(Protocol):
    """Some rows, whose columns are made when they are asked for."""

    def __len__(self) -> int: ...

    def column(self, field: NestedField) -> pa.Array:
        """A column of the table, or what the field keeps of its struct."""

    def filter(self, mask: pa.BooleanArray) -> Rows:
        """Some of the rows."""


Part: TypeAlias = Callable[[], Iterable[Rows]]


@dataclass(frozen=True, slots=True)
class Request:
    """What a scan wants of a table.

    Attributes:
        fields: The columns of the projection and of the filter; nothing else need be read.
        row_filter: Bound to the table's columns. Leaving out what it cannot select is up to the
            table, the scan checks every row.
    """

    fields: Schema
    row_filter: BooleanExpression


class MetadataTable(Protocol):
    """One of the metadata tables of one state of a table."""

    @property
    def schema(self) -> Schema:
        """Its columns."""

    def parts(self, request: Request) -> Iterator[Part]:
        """Where its rows come from; parts may be read at the same time."""


class BatchRows:
    """Rows that are there with all columns of a schema.

    Args:
        schema: The columns.
        batch: Their values.
    """

    def __init__(self, schema: Schema, batch: pa.RecordBatch) -> None:
        self._schema = schema
        self._batch = batch

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def column(self, field: NestedField) -> pa.Array:
        """A column, or what the field keeps of it."""
        fields = file_fields(schema_to_pyarrow(self._schema), None, "")
        return Projection((field,), fields, {}).apply(self._batch, 0).column(0)

    def filter(self, mask: pa.BooleanArray) -> Rows:
        """Some of the rows."""
        return BatchRows(self._schema, self._batch.filter(mask))


def batch_rows(schema: Schema, columns: Sequence[Sequence[object]]) -> BatchRows:
    """Rows of Python values, one sequence a column."""
    arrow = schema_to_pyarrow(schema)
    arrays = [
        number_array(field.name, values, field.type)
        for values, field in zip(columns, arrow, strict=True)
    ]
    return BatchRows(schema, pa.RecordBatch.from_arrays(arrays, schema=arrow))


def number_array(name: str, values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """A column of numbers that metadata states.

    Raises:
        ValidationError: The column's type cannot hold one of them.
    """
    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        farthest = max((n for n in values if isinstance(n, int)), key=abs, default=None)
        raise ValidationError(
            f"Column {name} of type {kind} cannot hold what the metadata states: {farthest}",
            hint="look at table.metadata, which has all numbers as they were written",
        ) from None


def struct_array(field: NestedField, children: Sequence[pa.Array]) -> pa.Array:
    """A struct that is never null."""
    assert isinstance(field.field_type, StructType)  # noqa: S101 - callers dispatch on it
    return pa.StructArray.from_arrays(
        list(children), fields=list(schema_to_pyarrow(field.field_type))
    )


def leaf_arrays(rows: Rows, schema: Schema, field_ids: Iterable[int]) -> Mapping[int, pa.Array]:
    """Columns of any depth of structs by field id.

    Args:
        rows: Where they are.
        schema: Holds the columns of these ids.
        field_ids: Which.
    """
    wanted, found = set(field_ids), {}

    def visit(field: NestedField, array: pa.Array) -> None:
        if field.field_id in wanted:
            found[field.field_id] = array
        elif isinstance(field.field_type, StructType):
            for child, values in zip(field.field_type.fields, array.flatten(), strict=True):
                visit(child, values)

    for field in schema.fields:
        visit(field, rows.column(field))
    return found
