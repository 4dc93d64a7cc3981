"""The Hive table that is to become an Iceberg table, as migration sees it."""

from __future__ import annotations

from collections.abc import Iterable

from icecomb.catalog.hive.thrift.entity import FieldSchema, HivePartition, HiveTable
from icecomb.catalog.migrate.partition_value import DEFAULT_PARTITION
from icecomb.catalog.migrate.source_schema import SourceColumn, SourceSchema, source_schema

_NULL_NAME = "hive.exec.default.partition.name"


def table_schema(table: HiveTable, timestamp: str) -> SourceSchema:
    """The Iceberg schema and spec of a Hive table; see `source_schema`."""
    return source_schema(
        _columns(table.storage.columns),
        _columns(table.partition_keys),
        table.parameters,
        timestamp=timestamp,
    )


def null_name(table: HiveTable) -> str:
    """The text that stands for null in partition values."""
    return table.parameters.get(_NULL_NAME) or DEFAULT_PARTITION


def partition_name(table: HiveTable, partition: HivePartition) -> str:
    """How people call a partition: ``dt=2024-01-01/k=1``, not escaped; "" without keys."""
    pairs = zip(table.partition_keys, partition.values, strict=False)
    return "/".join(f"{key.name}={value}" for key, value in pairs)


def is_parquet(input_format: str | None) -> bool:
    """Whether Hive reads files of this input format as Parquet."""
    return "parquet" in (input_format or "").lower()


def _columns(columns: Iterable[FieldSchema]) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(one.name, one.type, one.comment) for one in columns)
