"""The footer of a Parquet file: its columns, counts and bounds."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

import pyarrow.parquet as pq

from icecomb.format.input_limit import bounded_json
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    column_types,
    summarised,
)
from icecomb.format.rows.values.file_tail import ColumnSummary, FileTail, is_old
from icecomb.format.rows.values.statistics import ColumnStatistics, leaves, merged
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import PrimitiveType

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_TEXT: Final = "__CHAR_VARCHAR_TYPE_STRING"
_SPARK_LENGTH: Final = re.compile(r"(?:var)?char\((\d+)\)")


class ParquetFooter(FileTail):
    """The footer of a Parquet file."""

    file_format = FileFormat.PARQUET

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self.metadata = metadata
        self.parquet_schema = metadata.schema
        super().__init__(
            metadata.schema.to_arrow_schema(), metadata.num_rows, split_offsets(metadata)
        )

    @property
    def writer_zone(self) -> str | None:
        """The time zone recorded by Hive: that of the local times, which Hive shows in any zone."""
        said = (self.metadata.metadata or {}).get(b"writer.time.zone")
        return None if said is None else said.decode("utf-8", "replace")

    @property
    def legacy_zone_conversion(self) -> bool:
        """True if Hive recorded that it converted local times as old Java does (HIVE-25104)."""
        said = (self.metadata.metadata or {}).get(b"writer.zone.conversion.legacy", b"")
        return bool(said.lower() == b"true")

    def columns(
        self,
        fields: Sequence[FileField],
        kinds: Mapping[int, PrimitiveType],
        wanted: Container[int],
    ) -> dict[int, ColumnSummary]:
        """Implement `FileTail.columns`."""
        groups = [self.metadata.row_group(g) for g in range(self.metadata.num_row_groups)]
        found = {}
        for leaf in leaves(fields):
            number = leaf.field.field_id
            kind = None if number is None else kinds.get(number)
            if number is None or kind is None:
                continue
            chunks = [group.column(leaf.index) for group in groups]
            values = None
            if not leaf.repeated and number in wanted:
                reader = ColumnStatistics(self.metadata, leaf.index, kind)
                values = merged([reader.of(chunk) for chunk in chunks])
            sizes = [chunk.total_compressed_size for chunk in chunks]
            size = None if any(each < 0 for each in sizes) else sum(sizes)
            old = values is not None and is_old(kind, values.lower) and self._julian()
            found[number] = ColumnSummary(kind, size, values, old)
        return found

    def text_lengths(self, fields: Sequence[FileField]) -> dict[int, int]:
        """Implement `FileTail.text_lengths`, for columns of files that Spark wrote."""
        found = {}
        lengths = _spark_lengths((self.metadata.metadata or {}).get(_SPARK_SCHEMA, b""))
        for field in fields:
            if field.field_id is not None and field.name in lengths:
                found[field.field_id] = lengths[field.name]
        return found

    def _julian(self) -> bool:
        """Return whether Spark or Hive recorded that they numbered old dates as old Java does."""
        said = self.metadata.metadata or {}
        if b"org.apache.spark.legacyDateTime" in said:
            return True
        if b"writer.date.proleptic" in said:
            return bool(said[b"writer.date.proleptic"].lower() == b"false")
        version = said.get(b"org.apache.spark.version", b"3").split(b".")[0]
        return version.isdigit() and int(version[:9]) < 3


@lru_cache(maxsize=16)
def _spark_lengths(schema: bytes) -> Mapping[str, int]:
    """Return the lengths of the `varchar` and `char` columns in Spark's schema of a file."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        told = (
            (f["name"], f["metadata"].get(_SPARK_TEXT, "")) for f in bounded_json(schema)["fields"]
        )
        known = ((name, _SPARK_LENGTH.fullmatch(text)) for name, text in told)
        return {name: int(length[1]) for name, length in known if length}
    return {}


def split_offsets(metadata: pq.FileMetaData) -> tuple[int, ...]:
    """Return the offsets of the row groups of a Parquet file in bytes, ascending."""
    offsets = []
    for group in range(metadata.num_row_groups):
        if metadata.num_columns == 0:
            break
        column = metadata.row_group(group).column(0)
        dictionary, data = column.dictionary_page_offset, column.data_page_offset
        offsets.append(min(dictionary, data) if dictionary else data)
    return tuple(sorted(offsets))


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
