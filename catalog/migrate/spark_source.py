"""Which files a table of Spark's own sources has in Spark, where the metastore says something else.

Spark keeps such a table in parameters of its own (HiveExternalCatalog.restoreDataSourceTable), and
Hive does not look at them: its folder is the SerDe's parameter ``path``; its partitions are those
of the metastore only where ``spark.sql.partitionProvider`` says so, and else the folders below; and
options may choose among its files, or say how they are read (FileSourceOptions, AvroOptions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from icecomb.catalog.finding import Finding, blocker
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source import provider_of
from icecomb.format.storage.location import plain_texts

_PROVIDER: Final = "spark.sql.partitionProvider"
_BY_METASTORE: Final = "catalog"
_PATH: Final = "path"
_CHOOSING: Final = frozenset(
    option.lower()
    for option in (
        "pathGlobFilter",
        "modifiedBefore",
        "modifiedAfter",
        "avroSchema",
        "avroSchemaUrl",
        "positionalFieldMatching",
    )
)
"""Options by which Spark reads some of the files only, or columns by other rules than names."""


def spark_findings(table: HiveTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what Spark and the metastore do not agree on; all of it is in the way.

    Args:
        table: The Hive table.
        settings: Of the `FileIO`: what HDFS clusters there are.
    """
    if provider_of(table) == "hive":
        return
    name = table.full_name
    if table.partition_keys and table.parameters.get(_PROVIDER) != _BY_METASTORE:
        yield blocker(
            "spark-partitions",
            "Spark finds its partitions among the folders in its folder, whatever the metastore "
            f"has of them: its parameter {_PROVIDER} is not {_BY_METASTORE}",
            f"MSCK REPAIR TABLE {name} in Spark registers them, and says so in the entry",
        )
    options = {key.lower(): value for key, value in table.storage.serde_parameters.items()}
    path, location = options.get(_PATH, ""), table.storage.location or ""
    # Partitions that the metastore has are found by their own folders.
    if path and not table.partition_keys:
        one, other = plain_texts((path.rstrip("/"), location.rstrip("/")), settings)
        if one != other:
            yield blocker(
                "spark-location",
                f"Spark reads {path}, Hive reads {location}",
                f"ALTER TABLE {name} SET LOCATION '{location}' in Spark, or '{path}' in Hive: both "
                "have one folder then",
                (path, location),
            )
    said = {key for key, value in options.items() if value.lower() != "false"}
    if chosen := sorted(said & _CHOOSING):
        yield blocker(
            "spark-options",
            f"Spark reads its files by the options {', '.join(chosen)}, which Iceberg lacks",
            "copy it in Spark: CREATE TABLE ... AS SELECT, then migrate the copy",
            tuple(chosen),
        )
