"""Data files described for a manifest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.rows.data_metrics import Metrics, MetricsConfig, parquet_metrics
from icecomb.format.rows.parquet.reader import reading
from icecomb.format.rows.read.arrow_projection import file_fields
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO

_MAGIC = b"PAR1"


def data_file_from_parquet(  # noqa: PLR0917 - the first seven are what a file is described by
    io: FileIO,
    location: str,
    schema: Schema,
    spec: PartitionSpec,
    partition: tuple[Any, ...],
    name_mapping: NameMapping | None = None,
    metrics_config: MetricsConfig | None = None,
    *,
    footer: bytes | None = None,
    file_size: int | None = None,
) -> DataFile:
    """What a manifest says about a Parquet file that exists, from its footer alone.

    Args:
        io: Where the file lies.
        location: The file.
        schema: The table's schema.
        spec: The partition spec of `partition`.
        partition: The file's partition tuple, internal values.
        name_mapping: The ids of its columns, when it has none itself.
        metrics_config: What to keep; by default what Iceberg keeps by default.
        footer: The footer's bytes, when the caller has them; then the file is not opened. Either
            the Thrift structure alone, or with the length and the magic number that follow it.
        file_size: The file's length, when the caller knows it.

    Raises:
        FileMissingError: There is no such file.
        CorruptFileError: There is no Parquet footer.
        SchemaError: The file has no ids and there is no name mapping.
    """
    with reading(location):
        if footer is None:
            with io.open_input(location) as source:
                file_size = source.size()
                found = pq.read_metadata(source)
        else:
            found = pq.read_metadata(pa.BufferReader(_as_file(footer, location)))
        arrow_schema = found.schema.to_arrow_schema()
    metrics = parquet_metrics(
        found,
        file_fields(arrow_schema, name_mapping, location),
        schema,
        metrics_config or MetricsConfig(),
    )
    size = io.size(location) if file_size is None else file_size
    return data_file(location, size, metrics, spec, partition)


def data_file(
    location: str,
    size: int,
    metrics: Metrics,
    spec: PartitionSpec,
    partition: tuple[Any, ...],
    *,
    file_format: FileFormat = FileFormat.PARQUET,
) -> DataFile:
    """A data file with its metrics."""
    return DataFile(
        file_path=location,
        file_format=file_format,
        partition=partition,
        record_count=metrics.record_count,
        file_size_in_bytes=size,
        column_sizes=metrics.column_sizes or None,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts=metrics.nan_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        split_offsets=metrics.split_offsets or None,
        spec_id=spec.spec_id,
    )


def _as_file(footer: bytes, location: str) -> bytes:
    """A file that consists of a footer only."""
    if footer.endswith(_MAGIC) and len(footer) > 8:
        length = int.from_bytes(footer[-8:-4], "little")
        if length <= len(footer) - 8:
            return _MAGIC + footer[-8 - length :]
    if not footer:
        raise CorruptFileError(
            f"The footer of {location} is empty",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        )
    return _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC
