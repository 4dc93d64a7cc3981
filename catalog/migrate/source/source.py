"""Properties of a Hive table that a migration depends on."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.source.partition_value import DEFAULT_PARTITION, partition_values
from icecomb.catalog.migrate.source.source_files import PartitionFolder
from icecomb.catalog.migrate.source.source_schema import SourceSchema
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property.table_property import (
    ENTRY_PROPERTIES,
    PARTITION_OVERWRITE_MODE,
    RESERVED_PROPERTIES,
)

_FORMATS: Final = {
    "MapredParquetInputFormat": FileFormat.PARQUET,
    "DeprecatedParquetInputFormat": FileFormat.PARQUET,
    "ParquetInputFormat": FileFormat.PARQUET,
    "OrcInputFormat": FileFormat.ORC,
    "AvroContainerInputFormat": FileFormat.AVRO,
}
"""Classes that read every file of a folder; others, such as Hudi's for Parquet, select files."""
_SERDES: Final = {
    "ParquetHiveSerDe": FileFormat.PARQUET,
    "OrcSerde": FileFormat.ORC,
    "AvroSerDe": FileFormat.AVRO,
}
"""Classes that show rows unchanged from the files."""
_SKIPPED: Final = ("skip.header.line.count", "skip.footer.line.count")
_NOTHING: Final = re.compile(r"[+-]?0+|-[0-9]+")
_HIVE_ONLY: Final = re.compile(
    r"spark\.sql\..*|numFiles|numRows|rawDataSize|totalSize|COLUMN_STATS_ACCURATE|EXTERNAL|transient_lastDdlTime"
    r"|last_modified_(by|time)|bucketing_version|external\.table\.purge|numPartitions|path"
    r"|parquet\.column\.index\.access|DO_NOT_UPDATE_STATS|STATS_GENERATED.*|discover\.partitions"
    r"|serialization\.format|TRANSLATED_TO_EXTERNAL|avro\.schema\..*|orc\..*"
    r"|skip\.(header|footer)\.line\.count"
    r"|uuid|storage_handler|transactional.*"
)
"""Table parameters that describe only the Hive table."""
_NULL_NAME: Final = "hive.exec.default.partition.name"


def table_folder(table: HiveTable) -> PartitionFolder:
    """Return the folder of a table without partitions."""
    return PartitionFolder("", table.storage.location or "", ())


def partition_folder(
    table: HiveTable, partition: HivePartition, converted: SourceSchema, time_zone: str
) -> PartitionFolder:
    """Return the folder of a partition, with its values in Iceberg.

    Args:
        time_zone: Time zone of local timestamps in partition values.
    """
    values = partition_values(
        partition.values,
        converted.spec,
        converted.schema,
        hive_types=[key.type for key in table.partition_keys],
        null_name=null_name(table),
        time_zone=time_zone,
    )
    return PartitionFolder(
        partition_name(table, partition), partition.storage.location or "", values
    )


def null_name(table: HiveTable) -> str:
    """Return the text that stands for null in partition values."""
    return table.parameters.get(_NULL_NAME) or DEFAULT_PARTITION


def partition_name(table: HiveTable, partition: HivePartition) -> str:
    """Return the name of a partition for messages: ``dt=2024-01-01/k=1``, not escaped."""
    pairs = zip(table.partition_keys, partition.values, strict=False)
    return "/".join(f"{key.name}={value}" for key, value in pairs)


def orc_by_position(entry: HiveTable | HivePartition) -> bool:
    """Return whether Hive finds the columns of an entry's ORC files by position."""
    return _says(entry, "orc.force.positional.evolution")


def parquet_by_position(entry: HiveTable | HivePartition) -> bool:
    """Return whether Hive finds the columns of an entry's Parquet files by position."""
    return _says(entry, "parquet.column.index.access")


def skipped_rows(entry: HiveTable | HivePartition) -> str:
    """Return what makes Hive skip the first or last rows of each file, or ""; of any format.

    A value that is not a number counts: Hive cannot read such a table.
    """
    said = said_of(entry)
    found = ((key, said.get(key, "0")) for key in _SKIPPED)
    return next((f"{key}={text}" for key, text in found if not _NOTHING.fullmatch(text)), "")


def format_of(storage: StorageDescriptor) -> FileFormat | None:
    """Return the format of an entry's files, if Hive reads them unchanged.

    None for formats that Iceberg lacks, and where a third-party class takes part: only that knows
    which files count, or what their rows are.
    """
    kind = _FORMATS.get(_class(storage.input_format))
    serde = _class(storage.serde)
    return kind if not serde or _SERDES.get(serde) is kind else None


def classes_of(storage: StorageDescriptor) -> str:
    """Return the classes by which Hive reads an entry's files, for messages."""
    given = [one for one in (storage.input_format, storage.serde) if one]
    plain = format_of(replace(storage, serde=None)) is not None
    return ", ".join(given if plain else given[:1]) or "none"


def said_of(entry: HiveTable | HivePartition) -> dict[str, str]:
    """Return the parameters of an entry, with those of its SerDe as defaults."""
    return {**entry.storage.serde_parameters, **entry.parameters}


def is_transactional(table: HiveTable) -> bool:
    """Return whether Hive's transactions select its files; Hive ignores the key's case."""
    pairs = ((key.lower(), value.lower()) for key, value in table.parameters.items())
    return ("transactional", "true") in pairs


def provider_of(table: HiveTable) -> str:
    """Return the source by which Spark reads a table: ``hive`` for Hive's own."""
    return table.parameters.get("spark.sql.sources.provider", "hive").lower()


def iceberg_properties(table: HiveTable) -> dict[str, str]:
    """Return the properties that the Iceberg table has from a Hive table.

    They are the parameters that do not describe only the Hive table, and how Spark overwrites it.
    """
    mode = "dynamic" if provider_of(table) == "hive" else "static"
    kept = {
        key: value
        for key, value in table.parameters.items()
        if key not in RESERVED_PROPERTIES | ENTRY_PROPERTIES and not _HIVE_ONLY.fullmatch(key)
    }
    return {PARTITION_OVERWRITE_MODE.key: mode, **kept}


def _class(name: str | None) -> str:
    return (name or "").rpartition(".")[2]


def _says(entry: HiveTable | HivePartition, key: str) -> bool:
    """Return whether a parameter of an entry, or else of its SerDe, is true."""
    return said_of(entry).get(key, "").lower() == "true"
