"""A scan of a metadata table, with a row filter and selected columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import check_flags
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.expression import AlwaysFalse, BooleanExpression
from icecomb.format.expressions.filter_argument import RowFilter, as_expression
from icecomb.format.spec.schema import Schema, prune, walk
from icecomb.format.spec.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.inspect.metadata_table import MetadataTable, Part, TableRows

_WORKERS: Final = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class MetadataScan:
    """A scan of one metadata table of one state of a table.

    Args:
        table: The metadata table.
        row_filter: A filter on rows: an expression on the metadata table's own columns, or SQL text
            such as `"partition.day >= '2024-01-01' and content = 0"`; None for all rows.
        selected_fields: The columns to return, also nested ones
            (`"readable_metrics.id.lower_bound"`), in the order of the table; `"*"` for all.
        case_sensitive: Whether column names are case-sensitive.

    Raises:
        ExpressionError: If the filter cannot be parsed.
    """

    table: MetadataTable
    row_filter: RowFilter | None = None
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_filter", as_expression(self.row_filter))
        object.__setattr__(self, "selected_fields", tuple(self.selected_fields))
        check_flags(case_sensitive=self.case_sensitive)

    @property
    def schema(self) -> Schema:
        """All columns of the metadata table."""
        return self.table.schema

    @cached_property
    def projection(self) -> Schema:
        """The columns that are returned.

        Raises:
            ValidationError: If a selected column is unknown.
        """
        return self.schema.select(*self.selected_fields, case_sensitive=self.case_sensitive)

    @cached_property
    def bound_filter(self) -> BooleanExpression:
        """The filter bound to the columns of the metadata table.

        Raises:
            ExpressionError: If a column is unknown, or a literal does not fit its type.
        """
        assert isinstance(self.row_filter, BooleanExpression)  # noqa: S101 - parsed on construction
        return bind(self.schema, self.row_filter, self.case_sensitive)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows; field ids are in the metadata of its fields."""
        from icecomb.format.spec.arrow_schema import schema_to_pyarrow

        return schema_to_pyarrow(self.projection)

    def to_arrow_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as non-empty Arrow record batches, about one per manifest.

        Raises:
            CorruptFileError: If a manifest or delete file cannot be read.
        """
        from icecomb.format.arrow.batch_stream import stream
        from icecomb.format.inspect.metadata_table import TableRequest

        if isinstance(self.bound_filter, AlwaysFalse):
            return
        wanted = prune(self.schema, self._wanted_ids())
        parts = self.table.parts(TableRequest(wanted, self.bound_filter))
        yield from stream(map(self._producer, parts), _WORKERS)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow record batches, in bounded memory."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_arrow_batches())

    def to_arrow(self) -> pa.Table:
        """Return the rows as one Arrow table."""
        import pyarrow as pa

        return pa.Table.from_batches(self.to_arrow_batches(), self.arrow_schema)

    def to_pandas(self, **options: Any) -> Any:
        """Return the rows as a pandas `DataFrame`; see `pyarrow.Table.to_pandas` for `options`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """Return the rows as a Polars `DataFrame`."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def _wanted_ids(self) -> set[int]:
        inside = walk(StructType(self.projection.fields))
        return {f.field_id for f in inside if not isinstance(f.field_type, StructType)} | set(
            bound_references(self.bound_filter)
        )

    def _producer(self, part: Part) -> Callable[[], Iterator[pa.RecordBatch]]:
        return lambda: self._batches(part)

    def _batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for rows in part():
            kept = self._filtered(rows)
            if len(kept):
                arrays = [kept.column(field) for field in self.projection.fields]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _filtered(self, rows: TableRows) -> TableRows:
        from icecomb.format.inspect.metadata_table import leaf_arrays
        from icecomb.format.rows.read.row_filter import row_mask

        references = bound_references(self.bound_filter)
        if not references or not len(rows):
            return rows
        asked = prune(self.schema, set(references))
        mask = row_mask(self.bound_filter, leaf_arrays(rows, asked, references), len(rows))
        return rows if mask.true_count == len(rows) else rows.filter(mask)
