"""The forms that rows are given in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_data(df: Any) -> pa.Table | pa.RecordBatchReader:
    """Rows in any of the forms that `Table.append` takes, as Arrow.

    Raises:
        ValidationError: it holds no rows of a known form.
    """
    import pyarrow as pa

    from icecomb.format.errors import ValidationError

    if isinstance(df, (pa.Table, pa.RecordBatchReader)):
        return df
    if isinstance(df, pa.RecordBatch):
        return pa.Table.from_batches([df])
    if hasattr(df, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(df)
    if type(df).__module__.startswith("pandas."):
        return pa.Table.from_pandas(df, preserve_index=False)
    raise ValidationError(
        f"{type(df).__name__} is no table of rows",
        hint="give a pyarrow table or record batch reader, or a data frame of pandas or polars",
    )
