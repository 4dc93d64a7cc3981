"""Scans as lazy frames of polars: columns, filters and limits are pushed into the scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.spec.arrow_schema import schema_to_pyarrow

if TYPE_CHECKING:
    import polars as pl

    from icecomb.format.scan.table_scan import TableScan


def lazy_frame(scan: TableScan) -> pl.LazyFrame:
    """Return a lazy frame that reads only what the query needs, when it is collected."""
    import polars as pl
    from polars.io.plugins import register_io_source

    from icecomb.format.expressions.forms.polars_form import implied_by

    empty = pl.from_arrow(
        schema_to_pyarrow(scan.projection(), include_field_ids=False).empty_table()
    )
    assert isinstance(empty, pl.DataFrame)  # noqa: S101 - of a table

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        part = scan
        if rows is not None:
            part = replace(part, limit=rows if part.limit is None else min(rows, part.limit))
        # A limit counts rows before the filter, so polars must filter then.
        if predicate is not None and part.limit is None:
            part = part.filter(implied_by(predicate, part.schema()))
        if columns is not None:
            asked = [] if predicate is None else predicate.meta.root_names()
            part = part.select(*dict.fromkeys([*columns, *asked]))
        for batch in part.to_arrow_batches():
            frame = pl.DataFrame(batch)
            if not frame.width:
                frame = pl.repeat(None, batch.num_rows, eager=True).to_frame()
            if predicate is not None:
                frame = frame.filter(predicate)
            # a frame keeps its rows when it drops all columns, and loses them when it selects none
            kept = empty.columns if columns is None else columns
            yield frame.select(kept) if kept else frame.drop(frame.columns)

    return register_io_source(read, schema=empty.schema)
