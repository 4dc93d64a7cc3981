"""Findings about tables of Spark's own sources whose files differ in Spark and the metastore.

Spark keeps such a table in parameters of its own (HiveExternalCatalog.restoreDataSourceTable),
which Hive ignores: its folder is the SerDe's parameter ``path``; its partitions are those of the
metastore only if ``spark.sql.partitionProvider`` says so, otherwise its subfolders; and options may
select among its files, or say how they are read (FileSourceOptions, AvroOptions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.source import provider_of
from icecomb.catalog.report.finding import Finding, blocker
from icecomb.format.sql_statement import printed_name, printed_text
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
"""Options by which Spark reads only some of the files, or columns by other rules than names."""


def spark_findings(table: HiveTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield blockers for contradictions between Spark and the metastore.

    Args:
        settings: Properties of the `FileIO`, which name HDFS clusters.
    """
    if provider_of(table) == "hive":
        return
    name = printed_name(table.database, table.name)
    if table.partition_keys and table.parameters.get(_PROVIDER) != _BY_METASTORE:
        yield blocker(
            "spark-partitions",
            "Spark finds its partitions among the folders in its folder, whatever the metastore "
            f"has of them: its parameter {_PROVIDER} is not {_BY_METASTORE}",
            f"MSCK REPAIR TABLE {name} in Spark registers them, and says so in the entry",
        )
    options = {key.lower(): value for key, value in table.storage.serde_parameters.items()}
    path, location = options.get(_PATH, ""), table.storage.location or ""
    # Partitions in the metastore are found by their own folders.
    if path and not table.partition_keys:
        one, other = plain_texts((path.rstrip("/"), location.rstrip("/")), settings)
        if one != other:
            yield blocker(
                "spark-location",
                f"Spark reads {path}, Hive reads {location}",
                f"ALTER TABLE {name} SET LOCATION {printed_text(location)} in Spark, or "
                f"{printed_text(path)} in Hive: both have one folder then",
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
