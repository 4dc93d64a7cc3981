"""The interface of a metadata table to the scan that reads it: columns, and rows in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import BooleanExpression
from icecomb.format.rows.values.arrow_projection import Projection, file_fields
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, StructType


class TableRows(Protocol):
    """Rows whose columns are made on demand."""

    def __len__(self) -> int: ...

    def column(self, field: NestedField) -> pa.Array:
        """Return a column of the table, or the part of its struct that `field` has."""

    def filter(self, mask: pa.BooleanArray) -> TableRows:
        """Return the rows that a mask selects."""


Part: TypeAlias = Callable[[], Iterable[TableRows]]


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The request of a scan to a metadata table: the columns of the projection and of the filter.

    Attributes:
        row_filter: The bound filter. The table may leave out rows that it does not select; the
            scan checks every row.
    """

    fields: Schema
    row_filter: BooleanExpression


class MetadataTable(Protocol):
    """One of the metadata tables of one state of a table."""

    @property
    def schema(self) -> Schema:
        """The columns of the metadata table."""

    def parts(self, request: TableRequest) -> Iterator[Part]:
        """Yield the parts that the rows are read from, possibly several at the same time."""


class BatchRows:
    """Rows in memory, with all columns of a schema."""

    def __init__(self, schema: Schema, batch: pa.RecordBatch) -> None:
        self._schema = schema
        self._batch = batch

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def column(self, field: NestedField) -> pa.Array:
        """Return a column, or the part of its struct that `field` has."""
        fields = file_fields(schema_to_pyarrow(self._schema), None, "")
        return Projection((field,), fields, {}).apply(self._batch, 0).column(0)

    def filter(self, mask: pa.BooleanArray) -> TableRows:
        """Return the rows that a mask selects."""
        return BatchRows(self._schema, self._batch.filter(mask))


def batch_rows(schema: Schema, columns: Sequence[Sequence[object]]) -> BatchRows:
    """Make rows from Python values, one sequence per column."""
    arrow = schema_to_pyarrow(schema)
    arrays = [
        number_array(field.name, values, field.type)
        for values, field in zip(columns, arrow, strict=True)
    ]
    return BatchRows(schema, pa.RecordBatch.from_arrays(arrays, schema=arrow))


def number_array(name: str, values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Make a column of numbers that metadata states."""
    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        farthest = max((n for n in values if isinstance(n, int)), key=abs, default=None)
        raise ValidationError(
            f"Column {name} of type {kind} cannot hold what the metadata states: {farthest}",
            hint="Look at table.metadata, which has all numbers as they were written.",
        ) from None


def struct_array(field: NestedField, children: Sequence[pa.Array]) -> pa.Array:
    """Make a struct array without nulls."""
    assert isinstance(field.field_type, StructType)  # noqa: S101 - callers dispatch on it
    return pa.StructArray.from_arrays(
        list(children), fields=list(schema_to_pyarrow(field.field_type))
    )


def leaf_arrays(
    rows: TableRows, schema: Schema, field_ids: Iterable[int]
) -> Mapping[int, pa.Array]:
    """Return columns by field id, also those inside structs."""
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
