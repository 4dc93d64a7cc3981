"""All table properties that have a meaning, for the code that reads or sets them.

Names and defaults are Iceberg Java's unless stated otherwise. Properties that are not known here
belong to other programs and may have any value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from icecomb.format.errors import ConfigurationError, IcecombError, ValidationError
from icecomb.format.input_limit import bounded_json
from icecomb.format.property.property import (
    Property,
    choice,
    choices,
    flag,
    fraction,
    milliseconds,
    nearest,
    number,
    optional_number,
    registered,
    text,
)

RESERVED_PROPERTIES: Final = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names under which the metastore shows the state of a table; they follow it and cannot be set."""

MIGRATION_DIGEST: Final = "icecomb.migration-digest"
"""The parameter by which a metastore's entry confirms the journal of the table's migration."""
MIGRATION_VERIFIED: Final = "icecomb.migration-verified"
"""The parameter of an entry that names the migration that `icecomb migrate verify` confirmed."""
MIGRATION_TAKEN: Final = "icecomb.migration-taken"
"""The parameter of an entry that confirms the journal's list of the partitions that it lost."""

ENTRY_PROPERTIES: Final = frozenset(
    {
        "metadata_location",
        "previous_metadata_location",
        "table_type",
        MIGRATION_DIGEST,
        MIGRATION_VERIFIED,
        MIGRATION_TAKEN,
    }
)
"""Names by which a metastore's entry points to a table or view, or vouches for files beside it.

They cannot be set as properties, but one that another writer set may be removed.
"""

_METRICS_MODE: Final = re.compile(r"none|counts|full|truncate\([1-9]\d*\)", re.IGNORECASE)
_METRICS: Final = "none, counts, full or truncate(n)"


def _is_metrics_mode(said: str) -> bool:
    return _METRICS_MODE.fullmatch(said) is not None


def _folders(said: str) -> tuple[str, ...]:
    found = bounded_json(said)
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise ValueError(said)
    return tuple(found)


def _is_true(said: str) -> bool:
    return said.lower() == "true"


def _is_name_mapping(said: str) -> bool:
    from icecomb.format.spec.name_mapping import NameMapping

    try:
        NameMapping.from_json(said)
    except IcecombError:
        return False
    return True


COMMIT_RETRIES: Final = number(
    "commit.retry.num-retries",
    4,
    "Retries of a commit that lost a race; 100 by default where tables are not locked.",
    least=0,
)
COMMIT_MIN_WAIT: Final = milliseconds(
    "commit.retry.min-wait-ms", 100, "The longest pause before the first retry."
)
COMMIT_MAX_WAIT: Final = milliseconds(
    "commit.retry.max-wait-ms",
    60_000,
    "The longest pause before any retry, within the catalog's property; 1000 by default where "
    "tables are not locked.",
)
COMMIT_TOTAL_TIMEOUT: Final = milliseconds(
    "commit.retry.total-timeout-ms",
    1_800_000,
    "The time for a commit with all its retries, within the catalog's property.",
)
STATUS_CHECKS: Final = number(
    "commit.status-check.num-retries",
    3,
    "Further checks of the pointer after an answer was lost.",
    least=0,
)
STATUS_CHECK_MIN_WAIT: Final = milliseconds(
    "commit.status-check.min-wait-ms", 1_000, "The pause before the second check."
)
STATUS_CHECK_MAX_WAIT: Final = milliseconds(
    "commit.status-check.max-wait-ms", 60_000, "The longest pause before a check."
)
STATUS_CHECK_TOTAL_TIMEOUT: Final = milliseconds(
    "commit.status-check.total-timeout-ms",
    1_800_000,
    "The time for all checks; more is taken for the default.",
)
MANIFEST_TARGET_BYTES: Final = number(
    "commit.manifest.target-size-bytes",
    8 << 20,
    "The target size of merged manifests, in bytes.",
    least=1,
)
MANIFEST_MIN_COUNT: Final = number(
    "commit.manifest.min-count-to-merge",
    100,
    "The number of manifests from which on the newest are merged.",
    least=0,
)
MANIFEST_MERGE: Final = flag(
    "commit.manifest-merge.enabled", "Whether commits merge manifests.", default=True
)

MANIFEST_CODEC: Final = choice(
    "write.manifest.compression-codec",
    ("gzip", "deflate", "zstd", "snappy", "uncompressed", "none"),
    "The codec of manifests and manifest lists.",
)
MANIFEST_LEVEL: Final = optional_number(
    "write.manifest.compression-level", "The level of that codec."
)
METADATA_CODEC: Final = choice(
    "write.metadata.compression-codec",
    ("none", "gzip", "uncompressed"),
    "The codec of metadata files; gzip by default for views.",
)
METADATA_PATH: Final = text("write.metadata.path", "The folder of new metadata files.", "a folder")
METADATA_PREVIOUS_VERSIONS: Final = number(
    "write.metadata.previous-versions-max",
    100,
    "The number of earlier metadata files in the metadata log; at least 1.",
    least=0,
)
METADATA_DELETE_AFTER_COMMIT: Final = flag(
    "write.metadata.delete-after-commit.enabled",
    "Whether files dropped from the metadata log are deleted.",
    default=False,
)
METRICS_DEFAULT: Final = text(
    "write.metadata.metrics.default",
    "The metrics kept for columns; truncate(16) by default.",
    _METRICS,
    _is_metrics_mode,
)
METRICS_OF_COLUMN: Final = text(
    "write.metadata.metrics.column.", "The same for one column.", _METRICS, _is_metrics_mode
)
METRICS_MAX_INFERRED: Final = number(
    "write.metadata.metrics.max-inferred-column-defaults",
    100,
    "The number of columns for which metrics are kept where no default is set.",
    least=0,
)
SUMMARY_PARTITION_LIMIT: Final = number(
    "write.summary.partition-limit",
    0,
    "The most changed partitions for which a snapshot's summary lists each one's changes.",
    least=0,
)

DATA_FORMAT: Final = choice(
    "write.format.default", ("parquet", "avro", "orc"), "The format of data files."
)
DELETE_FORMAT: Final = choice(
    "write.delete.format.default",
    ("parquet", "avro", "orc"),
    "The format of delete files; that of data files by default.",
)
DELETE_GRANULARITY: Final = choice(
    "write.delete.granularity",
    ("file", "partition"),
    "Whether a position delete file covers one data file or a whole partition.",
)
TARGET_FILE_BYTES: Final = number(
    "write.target-file-size-bytes",
    512 << 20,
    "The approximate size of data files, in bytes.",
    least=1,
)
DELETE_TARGET_FILE_BYTES: Final = number(
    "write.delete.target-file-size-bytes",
    64 << 20,
    "The approximate size of delete files, in bytes.",
    least=1,
)
DISTRIBUTION_MODE: Final = choice(
    "write.distribution-mode",
    ("none", "hash", "range"),
    "How Spark distributes rows; by default range if the table is sorted, hash if partitioned.",
)
FANOUT: Final = flag(
    "write.spark.fanout.enabled",
    "Whether a Spark task keeps files of several partitions open; by default if unsorted.",
    default=False,
)
ADVISORY_PARTITION_BYTES: Final = optional_number(
    "write.spark.advisory-partition-size-bytes",
    "The approximate shuffle bytes per Spark task; by default as many as give well-sized files.",
    least=1,
)
ACCEPT_ANY_SCHEMA: Final = flag(
    "write.spark.accept-any-schema",
    "Whether Spark leaves checking the columns of written rows to the options of the write.",
    default=False,
)
SCHEMA_EVOLUTION: Final = flag(
    "write.spark.auto-schema-evolution.enabled",
    "Whether Spark's statements WITH SCHEMA EVOLUTION may change the columns.",
    default=True,
)
DATA_PATH: Final = text("write.data.path", "The folder of new data files.", "a folder")
FOLDER_STORAGE_PATH: Final = text(
    "write.folder-storage.path", "An older name of `write.data.path`.", "a folder"
)
OBJECT_STORE_PATH: Final = text(
    "write.object-storage.path", "An older name of `write.data.path`.", "a folder"
)
FORMER_FOLDERS: Final[Property[tuple[str, ...]]] = Property(
    "icecomb.former-folders",
    (),
    "Other folders whose files are the table's own, so that they are deleted once nothing needs "
    "them. icecomb adds the old folder when a location or a path of files changes, and "
    "`migrate finalize` those of partitions elsewhere.",
    "a JSON list of folders",
    _folders,
)
FOLDER_PATHS: Final = (DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORE_PATH)
"""The properties whose values are folders of the table."""
OBJECT_STORE: Final = flag(
    "write.object-storage.enabled",
    "Whether a hash in the names of data files spreads them over an object store.",
    default=False,
)
OBJECT_STORE_PARTITIONED: Final = flag(
    "write.object-storage.partitioned-paths",
    "Whether such names include the partition, too.",
    default=True,
)
WAP_ENABLED: Final = flag(
    "write.wap.enabled", "Whether writers may stage snapshots for an audit.", default=False
)

PUBLISHED_SNAPSHOTS: Final = text(
    "icecomb.published-snapshots",
    "The snapshots that were published or cherry-picked, as long as they or the snapshots made "
    "from them are in the table: none is published again, even after its copy on `main` expired. "
    "Maintained by icecomb.",
    "ids of snapshots, separated by commas",
    lambda said: all(
        part.strip().lstrip("-").isascii() and part.strip().lstrip("-").isdecimal()
        for part in said.split(",")
    ),
)

PARQUET_CODEC: Final = choice(
    "write.parquet.compression-codec",
    ("zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed", "none"),
    "The codec of Parquet files.",
)
PARQUET_LEVEL: Final = optional_number(
    "write.parquet.compression-level", "The level of that codec."
)
PARQUET_ROW_GROUP_BYTES: Final = number(
    "write.parquet.row-group-size-bytes", 128 << 20, "The size of a row group, in bytes.", least=1
)
PARQUET_ROW_GROUP_ROWS: Final = number(
    "write.parquet.row-group-limit", 1 << 20, "The maximum number of rows in a row group.", least=1
)
PARQUET_PAGE_BYTES: Final = number(
    "write.parquet.page-size-bytes", 1 << 20, "The approximate size of a page, in bytes.", least=1
)
PARQUET_PAGE_ROWS: Final = number(
    "write.parquet.page-row-limit", 20_000, "The maximum number of rows in a page.", least=1
)
PARQUET_PAGE_VERSION: Final = choice(
    "write.parquet.page-version", ("v1", "v2"), "The version of data pages."
)
PARQUET_DICTIONARY_BYTES: Final = number(
    "write.parquet.dict-size-bytes",
    2 << 20,
    "The largest dictionary, in bytes; a larger one is given up.",
    least=1,
)
PARQUET_DICTIONARY: Final = flag(
    "write.parquet.dict-encoding-enabled.column.",
    "Whether a column may have a dictionary; by default a sample of its values decides.",
    default=True,
)
PARQUET_STATISTICS: Final = flag(
    "write.parquet.stats-enabled.column.", "Whether a column has statistics.", default=True
)
PARQUET_BLOOM: Final = flag(
    "write.parquet.bloom-filter-enabled.column.",
    "Whether a column has bloom filters.",
    default=False,
)
PARQUET_BLOOM_FPP: Final = fraction(
    "write.parquet.bloom-filter-fpp.column.", 0.01, "Their rate of false positives."
)
PARQUET_BLOOM_NDV: Final = optional_number(
    "write.parquet.bloom-filter-ndv.column.",
    "The distinct values for which they are sized; by default as many as rows.",
    least=1,
)
PARQUET_BLOOM_MAX_BYTES: Final = number(
    "write.parquet.bloom-filter-max-bytes", 1 << 20, "The largest bloom filter, in bytes.", least=1
)
PARQUET_BLOOM_ADAPTIVE: Final = flag(
    "write.parquet.bloom-filter-adaptive-enabled",
    "Whether Spark tries several sizes of a bloom filter and keeps the smallest that suffices.",
    default=False,
)
PARQUET_CHECK_MIN_ROWS: Final = number(
    "write.parquet.row-group-check-min-record-count",
    100,
    "The number of rows after which Spark first checks whether a page or row group is full.",
    least=1,
)
PARQUET_CHECK_MAX_ROWS: Final = number(
    "write.parquet.row-group-check-max-record-count",
    10_000,
    "The maximum number of rows until Spark checks again.",
    least=1,
)
ORC_CODEC: Final = choice(
    "write.orc.compression-codec",
    ("zlib", "zstd", "snappy", "lz4", "none", "uncompressed"),
    "The codec of ORC files.",
)
ORC_STRATEGY: Final = choice(
    "write.orc.compression-strategy",
    ("speed", "compression"),
    "Whether that codec saves time or space.",
)
ORC_STRIPE_BYTES: Final = number(
    "write.orc.stripe-size-bytes", 64 << 20, "The size of a stripe, in bytes.", least=1
)
ORC_BLOCK_BYTES: Final = number(
    "write.orc.block-size-bytes",
    256 << 20,
    "The block size of the file system, in bytes; Spark's stripes stay within a block.",
    least=1,
)
ORC_BATCH_ROWS: Final = number(
    "write.orc.vectorized.batch-size",
    1024,
    "The number of rows encoded at once, for which memory is taken.",
    least=1,
    most=1 << 14,
)
ORC_BLOOM_COLUMNS: Final = text(
    "write.orc.bloom.filter.columns", "The columns with bloom filters.", "names separated by commas"
)
ORC_BLOOM_FPP: Final = fraction(
    "write.orc.bloom.filter.fpp", 0.05, "Their rate of false positives."
)
AVRO_CODEC: Final = choice(
    "write.avro.compression-codec",
    ("gzip", "zstd", "snappy", "uncompressed", "none"),
    "The codec of Avro data files.",
)
AVRO_LEVEL: Final = optional_number("write.avro.compression-level", "The level of that codec.")

_COMMANDS: Final = ("delete", "update", "merge")
ROW_LEVEL_MODE: Final = {
    command: choice(
        f"write.{command}.mode",
        ("copy-on-write", "merge-on-read"),
        f"Whether {command.upper()} rewrites data files or writes delete files.",
    )
    for command in _COMMANDS
}
ISOLATION_LEVEL: Final = {
    command: choice(
        f"write.{command}.isolation-level",
        ("serializable", "snapshot"),
        f"Whether rows added by concurrent commits conflict with {command.upper()}.",
    )
    for command in _COMMANDS
}
COMMAND_DISTRIBUTION_MODE: Final = {
    command: choice(
        f"write.{command}.distribution-mode",
        ("none", "hash", "range"),
        f"How Spark distributes the rows of {command.upper()}; by default hash.",
    )
    for command in _COMMANDS
}

SPLIT_TARGET_SIZE: Final = number(
    "read.split.target-size", 128 << 20, "The size of a split of a scan, in bytes.", least=1
)
SPLIT_METADATA_TARGET_SIZE: Final = number(
    "read.split.metadata-target-size",
    32 << 20,
    "The same for metadata tables, in other engines.",
    least=1,
)
SPLIT_LOOKBACK: Final = number(
    "read.split.planning-lookback", 10, "The number of splits kept open while packing.", least=1
)
SPLIT_OPEN_FILE_COST: Final = number(
    "read.split.open-file-cost", 4 << 20, "The least weight of a file, in bytes.", least=0
)
SPLIT_ADAPTIVE: Final = flag(
    "read.split.adaptive-size.enabled",
    "Whether Spark cuts a small scan into enough splits for every core.",
    default=True,
)
PARQUET_VECTORIZED: Final = flag(
    "read.parquet.vectorization.enabled",
    "Whether Spark's tasks return batches of columns instead of rows.",
    default=True,
)
PARQUET_BATCH_ROWS: Final = optional_number(
    "read.parquet.vectorization.batch-size",
    "The number of rows per batch; by default as in Spark's settings.",
    least=1,
)

MAX_SNAPSHOT_AGE: Final = milliseconds(
    "history.expire.max-snapshot-age-ms",
    5 * 24 * 60 * 60 * 1000,
    "The age at which snapshots expire.",
)
MIN_SNAPSHOTS: Final = number(
    "history.expire.min-snapshots-to-keep",
    1,
    "The number of snapshots that a branch always keeps.",
    least=1,
)
MAX_REF_AGE: Final = number(
    "history.expire.max-ref-age-ms",
    (1 << 63) - 1,
    "The age in milliseconds at which branches and tags expire.",
    least=1,
)
GC_ENABLED: Final = flag(
    "gc.enabled",
    "Whether files may be deleted; false if another table uses them, too.",
    default=True,
)
COPY_MIN_ROW_GROUP_BYTES: Final = number(
    "icecomb.maintenance.copy-min-row-group-bytes",
    8 << 20,
    "The least average size of row groups, in bytes, that a rewrite copies without decoding.",
    least=0,
)
LOCAL_LIMIT: Final = number(
    "icecomb.maintenance.local-limit",
    50 << 30,
    "The most bytes that a CALL rewrites or counts on the driver's machine; beyond, executors do.",
    least=0,
)
HIVE_ENGINE: Final = flag(
    "engine.hive.enabled", "Whether Hive's own engine can read the table.", default=False
)
HIVE_LOCK: Final = flag(
    "engine.hive.lock-enabled",
    "Whether commits take a metastore lock; by default as the catalog is set.",
    default=True,
)
INTEROP: Final = choices(
    "icecomb.interop",
    ("hive", "spark", "trino", "impala"),
    "The engines that use the table: `icecomb doctor TABLE` reports what one of them lacks.",
)
PARTITION_OVERWRITE_MODE: Final = replace(
    choice(
        "icecomb.partition-overwrite-mode",
        ("dynamic", "static"),
        "How Spark's `INSERT OVERWRITE` and `insertInto` go on after a migration: with `dynamic`, "
        "as on Hive's tables, they replace the partitions that get rows, unless the session itself "
        "runs `SET spark.sql.sources.partitionOverwriteMode=static`; with `static` they follow "
        "that setting, as on Spark's own tables. With either, a `PARTITION` clause that names a "
        "whole partition replaces it, even by no rows. Without the property the setting alone "
        "decides, as in Iceberg.",
    ),
    default="",
)
EXTERNAL: Final = text(
    "EXTERNAL",
    "Makes Hive's DROP TABLE keep the files.",
    "TRUE; otherwise Hive's DROP TABLE deletes the files",
    _is_true,
)
NAME_MAPPING: Final = text(
    "schema.name-mapping.default",
    "The columns by name, for files without field ids.",
    "the JSON of a name mapping",
    _is_name_mapping,
)

VIEW_HISTORY_SIZE: Final = number(
    "version.history.num-entries", 10, "The number of versions of a view to keep.", least=1
)
VIEW_DROP_DIALECT: Final = flag(
    "replace.drop-dialect.allowed",
    "Whether a new version of a view may lack a dialect of the old one.",
    default=False,
)


TABLE_PROPERTIES: Final[Mapping[str, Property[Any]]] = registered(list(globals().values()))
"""All table properties by key."""

_FAMILIES: Final = tuple(key for key in TABLE_PROPERTIES if key.endswith("."))
_DELETE: Final = "write.delete."
FORMAT_VERSION: Final = "format-version"
_LIKE_FORMAT_VERSION: Final = 0.9
_NAMESPACES: Final = ("commit.", "write.", "read.", "history.", "gc.", "engine.hive.", "schema.")
_OF_OTHERS: Final = frozenset(
    {
        "commit.num-retries",
        "read.orc.vectorization.batch-size",
        "read.orc.vectorization.enabled",
        "read.data-planning-mode",
        "read.delete-planning-mode",
        "write.location-provider.impl",
        "write.manifest-lists.enabled",
        "write.py-location-provider.impl",
        "write.parquet.page-size-check-interval",
        "write.parquet.row-group-size-track-uncompressed",
        "write.upsert.enabled",
    }
)
"""Properties of Iceberg Java and PyIceberg that have no meaning here."""


def check_properties(properties: Mapping[str, object]) -> None:
    """Check that properties can be set to these values, and are not misspellings of known ones."""
    check_not_reserved(properties)
    check_no_entry_properties(properties)
    for key, value in properties.items():
        known = table_property(key)
        if known is not None:
            known.read(value, key)
        elif meant := _meant(key):
            raise ConfigurationError(
                f"There is no property {key}", hint=f"Did you mean {meant}?", property=key
            )


def table_property(key: str) -> Property[Any] | None:
    """Return the description of a property; None if it belongs to other programs."""
    family = next((one for one in _FAMILIES if key.startswith(one)), key)
    return TABLE_PROPERTIES.get(family)


def _meant(key: str) -> str | None:
    # Every write.parquet.* property has a variant for delete files only.
    name = f"write.{key.removeprefix(_DELETE)}" if key.startswith(_DELETE) else key
    if nearest(re.sub(r"[._ ]", "-", key), [FORMAT_VERSION], _LIKE_FORMAT_VERSION):
        return FORMAT_VERSION
    if not key.startswith(_NAMESPACES) or {key, name} & _OF_OTHERS or table_property(name):
        return None
    return nearest(key, {*TABLE_PROPERTIES, *_OF_OTHERS})


def check_not_reserved(names: Iterable[str]) -> None:
    """Check that no names are reserved for the description of a table."""
    _refuse(
        RESERVED_PROPERTIES.intersection(names),
        "They show the state of the table, and follow its changes.",
    )


def check_no_entry_properties(names: Iterable[str]) -> None:
    """Check that no properties would point the entry of a table or view elsewhere."""
    _refuse(
        ENTRY_PROPERTIES.intersection(names),
        "They are the metastore's own: use register_table to create a table from a file.",
    )


def _refuse(reserved: Collection[str], hint: str) -> None:
    if reserved:
        names = ", ".join(sorted(reserved))
        raise ValidationError(f"Cannot set reserved properties: {names}", hint=hint)
