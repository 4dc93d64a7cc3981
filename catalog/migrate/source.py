"""The Hive table that is to become an Iceberg table, as migration sees it."""

from __future__ import annotations

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.partition_value import DEFAULT_PARTITION, partition_values
from icecomb.catalog.migrate.source_files import Place
from icecomb.catalog.migrate.source_schema import SourceSchema
from icecomb.format.manifests.manifest import FileFormat

_FORMATS = {
    "parquet": FileFormat.PARQUET,
    "orcinputformat": FileFormat.ORC,
    "avrocontainerinputformat": FileFormat.AVRO,
}
_NULL_NAME = "hive.exec.default.partition.name"


def table_place(table: HiveTable) -> Place:
    """The folder of a table without partitions."""
    return Place("", table.storage.location or "", ())


def partition_place(
    table: HiveTable, partition: HivePartition, converted: SourceSchema, time_zone: str
) -> Place:
    """The folder of a partition, and its values in Iceberg.

    Args:
        table: the table.
        partition: the partition.
        converted: the table's schema and spec.
        time_zone: the zone of local timestamps in partition values.

    Raises:
        ValidationError: a value is no exact value of its column's type.
    """
    values = partition_values(
        partition.values,
        converted.spec,
        converted.schema,
        hive_types=[key.type for key in table.partition_keys],
        null_name=null_name(table),
        time_zone=time_zone,
    )
    return Place(partition_name(table, partition), partition.storage.location or "", values)


def null_name(table: HiveTable) -> str:
    """The text that stands for null in partition values."""
    return table.parameters.get(_NULL_NAME) or DEFAULT_PARTITION


def partition_name(table: HiveTable, partition: HivePartition) -> str:
    """How people call a partition: ``dt=2024-01-01/k=1``, not escaped."""
    pairs = zip(table.partition_keys, partition.values, strict=False)
    return "/".join(f"{key.name}={value}" for key, value in pairs)


def orc_by_position(entry: HiveTable | HivePartition) -> bool:
    """Whether Hive finds the columns of an entry's ORC files by position."""
    return _says(entry, "orc.force.positional.evolution")


def parquet_by_position(entry: HiveTable | HivePartition) -> bool:
    """The same of its Parquet files."""
    return _says(entry, "parquet.column.index.access")


def format_of(input_format: str | None) -> FileFormat | None:
    """What Hive takes files of this input format for; None for what Iceberg does not have."""
    name = (input_format or "").rpartition(".")[2].lower()
    return next((kind for text, kind in _FORMATS.items() if text in name), None)


def _says(entry: HiveTable | HivePartition, key: str) -> bool:
    """Whether a parameter, or else one of the SerDe's, is true."""
    said = {**entry.storage.serde_parameters, **entry.parameters}
    return said.get(key, "").lower() == "true"
