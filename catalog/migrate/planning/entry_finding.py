"""Properties of a Hive table's entry that a migration changes or loses, without blocking it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from icecomb.catalog.configuration.catalog_property import PARAMETER_SIZE
from icecomb.catalog.hive.thrift.entity import HiveDatabase, HiveTable
from icecomb.catalog.hive.thrift.thrift_codec import skewed_columns
from icecomb.catalog.migrate.source.source import mapping_of
from icecomb.catalog.migrate.source.source_schema import SourceSchema
from icecomb.catalog.report.finding import Finding, blocker, note, warning
from icecomb.format.errors import IcecombError
from icecomb.format.property.table_property import NAME_MAPPING, check_properties

COLUMN_STATISTICS: Final = '"COLUMN_STATS"'
_BASIC: Final = ("numRows", "numFiles", "totalSize", "rawDataSize")
_SPARK_COLUMNS: Final = "spark.sql.statistics.colStats."
_REPLICATION: Final = (
    "repl.source.for",
    "repl.target.for",
    "repl.last.id",
    "repl.first.inc.pending",
    "repl.incompatible",
)
"""Parameters of Hive's replication (ReplConst, ReplicationSpec)."""
_ENCRYPTED: Final = "encryption.key-id"
_FORMAT_VERSION: Final = "format-version"
_NEARLY: Final = 0.9


def entry_findings(
    table: HiveTable, converted: SourceSchema, settings: Mapping[str, str]
) -> Iterable[Finding]:
    """Yield the findings about the entry of a Hive table."""
    if skewed := skewed_columns(table):
        yield warning(
            "skewed",
            f"it is SKEWED BY ({', '.join(skewed)}): Iceberg keeps no such layout",
            "the rows stay; sort or partition the table by these columns afterwards",
            skewed,
        )
    mixed = tuple(f.name for f in converted.schema.columns if f.name != f.name.lower())
    if mixed:
        yield note(
            "mixed-case",
            f"{len(mixed)} columns keep upper case letters in Iceberg, which Hive shows in lower",
            "engines that tell upper from lower case need the names as they are here",
            mixed,
        )
    yield from _statistics(table)
    yield from _wide(table, converted, settings)


def property_findings(properties: Mapping[str, str]) -> Iterable[Finding]:
    """Yield a blocker for properties that an Iceberg table cannot have."""
    named = (pair for pair in properties.items() if pair[0] != _FORMAT_VERSION)
    wrong = [reason for reason in (_refusal(*pair) for pair in named) if reason]
    if _ENCRYPTED in properties:
        wrong.append(f"{_ENCRYPTED}: icecomb cannot write to a table that is encrypted")
    if wrong:
        yield blocker(
            "property",
            f"{len(wrong)} parameters cannot be properties of an Iceberg table: {wrong[0]}",
            "ALTER TABLE ... UNSET TBLPROPERTIES in Hive, or give another value: `icecomb migrate "
            "apply --property`",
            wrong,
        )


def _refusal(key: str, value: str) -> str:
    """Return why a table cannot have a property, or ""."""
    try:
        check_properties({key: value})
    except IcecombError as error:
        return f"{key}={value}: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return ""


def replication_findings(table: HiveTable, database: HiveDatabase | None) -> Iterable[Finding]:
    """Yield a finding if Hive's replication (REPL DUMP, REPL LOAD) has the table or database."""
    of_table = [key for key in _REPLICATION if key in table.parameters]
    of_database = [key for key in _REPLICATION if database and key in database.parameters]
    if of_table or of_database:
        where = "the table" if of_table else f"database {table.database}"
        yield warning(
            "replicated",
            f"Hive's replication knows {where} ({', '.join(of_table or of_database)})",
            "take the table out of the replication policy before apply: a load of Hive's would "
            "write over the Iceberg table, and a dump has none of its snapshots",
            tuple(of_table or of_database),
        )


def _statistics(table: HiveTable) -> Iterable[Finding]:
    parameters = table.parameters
    if any(parameters.get(key, "-1") not in {"", "-1", "0"} for key in _BASIC):
        yield note(
            "hive-statistics",
            "the entry has Hive's counts of rows, files and bytes",
            "apply replaces them with Iceberg's counts, revert restores them",
            tuple(key for key in _BASIC if key in parameters),
        )
    recorded = COLUMN_STATISTICS in parameters.get("COLUMN_STATS_ACCURATE", "")
    if recorded or any(key.startswith(_SPARK_COLUMNS) for key in parameters):
        yield lost_statistics("the table", ())


def lost_statistics(what: str, places: Collection[str]) -> Finding:
    """Return the finding about lost column statistics."""
    return warning(
        "statistics-lost",
        f"{what} has statistics of columns (ANALYZE ... FOR COLUMNS), which plans of joins use; "
        "they are lost",
        "bounds and null counts come from the files; after a revert, ANALYZE it again in Hive",
        places,
    )


def _wide(
    table: HiveTable, converted: SourceSchema, settings: Mapping[str, str]
) -> Iterable[Finding]:
    limit = PARAMETER_SIZE.of(settings) or PARAMETER_SIZE.default
    mapping = mapping_of(converted.schema, []).to_json()
    sizes = {key: len(value) for key, value in table.parameters.items()}
    sizes[NAME_MAPPING.key] = len(mapping)
    wide = tuple(
        f"{key}: {size:,} characters" for key, size in sizes.items() if size > limit * _NEARLY
    )
    if wide:
        yield warning(
            "wide-entry",
            f"{len(wide)} parameters of the entry are near or above the metastore's {limit:,} "
            "characters",
            "a metastore whose database has less room refuses the conversion, and nothing is "
            "changed: widen PARAM_VALUE of TABLE_PARAMS there, or shorten the parameter",
            wide,
        )
