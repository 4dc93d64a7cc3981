"""Parquet files that others wrote, described by their footers."""

from typing import Any

import pyarrow.parquet as pq

from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.parquet.footer import parquet_metrics
from icecomb.format.rows.values.arrow_projection import file_fields
from icecomb.format.rows.values.data_metrics import MetricsConfig, new_data_file
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO


def data_file_from_parquet(
    io: FileIO,
    location: str,
    schema: Schema,
    spec: PartitionSpec,
    partition: tuple[Any, ...],
    name_mapping: NameMapping | None = None,
    metrics_config: MetricsConfig | None = None,
) -> DataFile:
    """What a manifest says about a Parquet file, taken as it is."""
    with io.open_input(location) as source:
        size, footer = source.size(), pq.read_metadata(source)
    fields = file_fields(footer.schema.to_arrow_schema(), name_mapping, location)
    metrics = parquet_metrics(footer, fields, schema, metrics_config or MetricsConfig())
    return new_data_file(location, size, metrics, spec, partition)
