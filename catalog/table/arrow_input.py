"""Conversion of the forms in which rows are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.arrow.batch_stream import GivenRows
    from icecomb.format.spec.schema import Schema


def arrow_data(df: Any, table: Schema, *, may_be_nothing: bool = False) -> GivenRows:
    """Convert rows in any of the forms that `Table.append` takes to Arrow.

    Streams stay streams: readers, lazy frames of polars, relations of DuckDB and data sets are
    computed and read batch by batch. The NaNs of a pandas frame become nulls. Each named level of
    its index becomes a column, also a `RangeIndex`; unnamed levels are left out, unless the table
    has the column that Arrow makes of one (``__index_level_0__``).

    Args:
        may_be_nothing: Whether an empty iterable of batches is accepted, and means no rows.
            Otherwise it is refused, as neither its columns nor whether it is used up is known.
    """
    import pyarrow as pa

    from icecomb.format.arrow.batch_stream import RowStream
    from icecomb.format.errors import ValidationError

    if isinstance(df, (pa.Table, pa.RecordBatchReader)):
        return df
    if isinstance(df, pa.RecordBatch):
        return pa.Table.from_batches([df])
    if _is_of(df, "pandas") and hasattr(type(df), "columns"):
        return _of_pandas(df, table)
    if _is_of(df, "polars") and hasattr(type(df), "columns"):
        return _of_polars(df)
    problem: Exception | None = None
    try:
        if hasattr(df, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(df)
        if hasattr(df, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(df)])
    except (pa.ArrowInvalid, TypeError) as refused:
        # the protocol is also that of single columns
        problem = refused
    if _is_of(df, "pyarrow") and hasattr(df, "scanner"):
        return df.scanner().to_reader()
    if isinstance(df, Iterable) and not isinstance(df, (str, bytes, dict)):
        batches = iter(df)
        first = next(batches, None)
        if isinstance(first, pa.RecordBatch):
            return RowStream(first.schema, _checked(chain([first], batches)))
        # an empty column yields nothing either, but is not an iterable of batches
        nothing = first is None and isinstance(df, (Iterator, Sequence))
        if nothing and may_be_nothing:
            return table.as_arrow().empty_table()
        if nothing:
            raise ValidationError(
                f"{type(df).__name__} without a batch: its columns are not known, nor whether "
                "its rows were read before",
                hint="To go on without rows, give an empty table: "
                "table.schema().as_arrow().empty_table().",
            )
    raise ValidationError(
        f"{type(df).__name__} is not a table of rows",
        hint="Give a pyarrow table, record batches or a reader of them, a data frame of pandas or "
        "polars, a relation of DuckDB, or anything else with __arrow_c_stream__. For a list of "
        "dicts: pa.Table.from_pylist(rows, schema=table.schema().as_arrow()).",
    ) from problem


class Kept:
    """Rows that can be read again and again; the batches of a stream are kept as they come."""

    def __init__(self, rows: GivenRows) -> None:
        self.schema: pa.Schema = rows.schema
        self._rows = rows
        self._read: list[pa.RecordBatch] = []

    @property
    def rows(self) -> GivenRows:
        """The rows, from the start."""
        import pyarrow as pa

        from icecomb.format.arrow.batch_stream import RowStream

        if isinstance(self._rows, pa.Table):
            return self._rows
        return RowStream(self.schema, chain(tuple(self._read), self._unread(self._rows)))

    def _unread(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self._read.append(batch)
            yield batch


class OneUse:
    """Rows that know if they can still be read from the start; a stream is read only once."""

    def __init__(self, rows: GivenRows) -> None:
        import pyarrow as pa

        from icecomb.format.arrow.batch_stream import RowStream

        self.schema: pa.Schema = rows.schema
        self.rows = rows
        self.is_used_up = False
        if not isinstance(rows, pa.Table):
            self.rows = RowStream(rows.schema, self._batches(rows))

    def _batches(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self.is_used_up = self.is_used_up or bool(batch.num_rows)
            yield batch


def _is_of(df: object, library: str) -> bool:
    """Return whether a class or a base of it is a library's, without importing the library."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(df).__mro__)


def _of_pandas(frame: Any, table: Schema) -> pa.Table:
    import pyarrow as pa

    from icecomb.format.errors import ValidationError

    found = pa.Table.from_pandas(frame, preserve_index=False)
    for number, label in enumerate(frame.index.names):
        level = frame.index.get_level_values(number)
        name = f"__index_level_{number}__" if label is None else str(label)
        if label is None and (name in found.column_names or not _keeps(table, name, level)):
            continue
        (values,) = pa.Table.from_pandas(level.to_frame(name=name), preserve_index=False).columns
        if name not in found.column_names:
            # append_column keeps the frame's metadata, which marks it as pandas'
            found = found.append_column(name, values)
        elif found.column_names.count(name) > 1 or not found[name].equals(values):
            raise ValidationError(
                f"The index of the pandas frame and one of its columns are both named {name!r}, "
                "and their values differ",
                hint="Rename one of them (df.rename_axis), or leave the index out: "
                "df.reset_index(drop=True).",
            )
    return found


def _keeps(table: Schema, name: str, level: Any) -> bool:
    """Return whether a table has the column that Arrow makes of an unnamed index level.

    The default index of a frame counts as one only where that column holds integers.
    """
    import numpy as np

    from icecomb.format.spec.types import IntegerType, LongType

    kept = next((f.field_type for f in table.fields if f.name == name), None)
    given = isinstance(kept, (IntegerType, LongType)) or not np.array_equal(
        level, range(len(level))
    )
    return kept is not None and given


def _of_polars(frame: Any) -> pa.Table | pa.RecordBatchReader:
    """Convert a polars frame; not by its stream, whose views would have to be copied here."""
    import polars as pl
    import pyarrow as pa

    if not isinstance(frame, pl.LazyFrame):
        return frame.to_arrow()
    if not hasattr(frame, "collect_batches"):
        return frame.collect().to_arrow()
    schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema
    batches = (b for part in frame.collect_batches() for b in part.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _checked(batches: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from icecomb.format.errors import ValidationError

    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise ValidationError(
                f"A {type(batch).__name__} among record batches",
                hint="Give record batches only.",
            )
        yield batch
