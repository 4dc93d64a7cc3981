"""Metrics of a data file as its Parquet footer has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.parquet as pq

from icecomb.format.rows.parquet.footer import ParquetFooter
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    column_types,
    summarised,
)
from icecomb.format.spec.schema import Schema


def parquet_metrics(
    metadata: pq.FileMetaData,
    fields: Sequence[FileField],
    schema: Schema,
    config: MetricsConfig,
    nan_counts: Mapping[int, int] | None = None,
) -> Metrics:
    """Return the metrics in a Parquet footer; columns that the schema does not have are left out.

    Args:
        nan_counts: NaN counts by field id, which no footer holds, if the writer counted them.
    """
    wanted = [i for i in schema.field_ids if config.mode(i).kind is not MetricsKind.NONE]
    footer = ParquetFooter(metadata)
    columns = footer.columns(fields, column_types(schema), frozenset(wanted))
    return summarised(footer, columns, config, nan_counts)
