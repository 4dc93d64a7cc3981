"""The findings about readers of a table after its migration, and what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icecomb.catalog.configuration.catalog_property import ENGINE_ENABLED, FORMAT_VERSION_MAX
from icecomb.catalog.configuration.engine_version import too_old_engines
from icecomb.catalog.hive.engine import engine_properties
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.source import format_of, provider_of
from icecomb.catalog.report.finding import Finding, blocker, note, warning
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property.table_property import HIVE_ENGINE, INTEROP, PARTITION_OVERWRITE_MODE
from icecomb.format.spec.metadata import DEFAULT_FORMAT_VERSION


def reader_finding(
    table: HiveTable, settings: Mapping[str, str], interop: tuple[str, ...] | None
) -> Finding:
    """Return the finding about changes for engines that use the table by its name.

    Args:
        interop: The engines that will use it; see `engine_properties`.
    """
    name = table.full_name
    needed = engine_properties(interop, table.parameters, settings)
    by_hive = HIVE_ENGINE.of({**table.parameters, **needed}, default=ENGINE_ENABLED.of(settings))
    hive = (
        "as before from version 4 on, older ones with iceberg-hive-runtime; Impala as before"
        if by_hive
        else "not at all, nor older Impalas; `apply --interop hive,impala` lets them (Hive before "
        "4 with iceberg-hive-runtime on its class path)"
    )
    if by_hive and _has_avro_times(table):
        hive += "; its runtime for Hive 3 (1.4.3) cannot read times in Hive's Avro files, 1.11 can"
    return note(
        "readers",
        f"users of the name {name} get an Iceberg table from then on",
        "`icecomb spark-conf --session-catalog` keeps the name for Spark; docs/migration.md",
        (
            f"Spark with icecomb's or Iceberg's session catalog: {name} as before"
            + (", but INSERT OVERWRITE (overwrite-mode)" if table.partition_keys else ""),
            f"Spark without it: {name} fails; the table is <catalog>.{name} in an Iceberg catalog"
            + (
                f". Any: SHOW TABLE EXTENDED of {table.database}, as Hive reads it"
                if by_hive
                else ""
            ),
            f"Hive: {hive}",
            "Trino, Flink, PyIceberg: in an Iceberg catalog on this metastore",
            "views and jobs that name it: as the engine that runs them",
        ),
    )


def overwrite_findings(table: HiveTable) -> Iterator[Finding]:
    """Yield the finding about Spark's INSERT OVERWRITE of a partitioned table."""
    if not table.partition_keys:
        return
    setting = "spark.sql.sources.partitionOverwriteMode"
    if provider_of(table) == "hive":
        yield warning(
            "overwrite-mode",
            "INSERT OVERWRITE and insertInto replace the partitions that get rows, as before, only "
            "where Spark has icecomb's catalogs: in Iceberg's own they replace the whole table",
            f"set {setting}=dynamic where jobs that overwrite the table run with Iceberg's own "
            f"catalogs; in icecomb's, the property {PARTITION_OVERWRITE_MODE} says so",
        )
    else:
        yield note(
            "overwrite-mode",
            f"INSERT OVERWRITE and insertInto follow {setting}, as before; a PARTITION clause that "
            "names a whole partition empties it, if there is no row for it, only in icecomb's "
            "catalogs where that is dynamic",
            f"the property {PARTITION_OVERWRITE_MODE} says so; leave the setting static for such "
            "jobs where Spark has Iceberg's own catalogs",
        )


def version_findings(
    table: HiveTable,
    settings: Mapping[str, str],
    interop: tuple[str, ...] | None,
    format_version: int,
) -> Iterator[Finding]:
    """Return the findings about engines that cannot read a table of a format version.

    Args:
        interop: The engines that will use it; see `engine_properties`.
    """
    stated = table.parameters.get("format-version")
    if stated is not None and stated != str(format_version):
        yield note(
            "format-version",
            f"{table.full_name} becomes a table of format version {format_version}: its own "
            f"parameter format-version={stated} does not count, as Hive does not know it",
            "ask for a version by the property format-version",
        )
    if format_version <= DEFAULT_FORMAT_VERSION:
        return
    told = f"{table.full_name} becomes a table of format version {format_version}"
    highest = FORMAT_VERSION_MAX.of(settings)
    if highest is not None and format_version > highest:
        yield blocker(
            "format-version",
            f"{told}, and the catalog's {FORMAT_VERSION_MAX.key} is {highest}",
            f"leave out the property format-version, or raise {FORMAT_VERSION_MAX.key} once all "
            "engines that read the table know the version",
        )
        return
    engines = INTEROP.read(engine_properties(interop, table.parameters, settings)[INTEROP.key])
    if old := too_old_engines(engines, format_version):
        yield warning(
            "format-version",
            f"{told}, which {old} cannot read",
            "use these versions or newer ones, or leave out the property format-version; there is "
            "no way back to version 2 but a revert",
        )
    else:
        said = "readers that know only version 2 cannot read it"
        yield note("format-version", told, said)


def _has_avro_times(table: HiveTable) -> bool:
    """Return whether files of a table may hold what Hive's Avro has for times: timestamp-millis."""
    types = (column.type.lower() for column in table.storage.columns)
    return format_of(table.storage) is FileFormat.AVRO and any(
        "timestamp" in kind for kind in types
    )
