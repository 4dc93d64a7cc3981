"""Bytes to table state and back: the Iceberg specification as code.

Here lie types, schemas, partitioning, sorting, snapshots, and the metadata that hold them together.
Around them: `avro` and `manifests` (the files of a snapshot), `expressions` and `scan` (which files
a query reads), `rows` (data and delete files), `operation` (snapshots made of files), `row_changes`
(operations made of rows), `evolution` (everything else that changes), `inspect` (metadata tables).

Names are loaded at first use, so that importing one light thing never loads a heavy library.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "icecomb.format.errors": (
        "CommitFailedError",
        "CommitStateUnknownError",
        "ConfigurationError",
        "CorruptFileError",
        "ExpressionError",
        "FileExistsAlreadyError",
        "FileIOError",
        "FileMissingError",
        "IcecombError",
        "JavaError",
        "LockTimeoutError",
        "MetastoreError",
        "MigrationError",
        "MissingDependencyError",
        "NamespaceAlreadyExistsError",
        "NamespaceNotEmptyError",
        "NoSuchIcebergTableError",
        "NoSuchNamespaceError",
        "NoSuchSnapshotError",
        "NoSuchTableError",
        "SchemaError",
        "TableAlreadyExistsError",
        "UnsupportedError",
        "ValidationError",
    ),
    "icecomb.format.schema": ("Schema", "assign_fresh_schema_ids"),
    "icecomb.format.types": (
        "BinaryType",
        "BooleanType",
        "DateType",
        "DecimalType",
        "DoubleType",
        "FixedType",
        "FloatType",
        "IcebergType",
        "IntegerType",
        "ListType",
        "LongType",
        "MapType",
        "NestedField",
        "PrimitiveType",
        "StringType",
        "StructType",
        "TimeType",
        "TimestampType",
        "TimestamptzType",
        "UUIDType",
        "parse_type",
    ),
    "icecomb.format.metadata": (
        "TableMetadata",
        "new_table_metadata",
    ),
    "icecomb.format.metadata_file": (
        "read_metadata",
        "write_metadata",
    ),
    "icecomb.format.name_mapping": (
        "MappedField",
        "NameMapping",
        "create_name_mapping",
    ),
    "icecomb.format.partition": (
        "PartitionField",
        "PartitionSpec",
        "UNPARTITIONED_PARTITION_SPEC",
    ),
    "icecomb.format.sort": (
        "NullOrder",
        "SortDirection",
        "SortField",
        "SortOrder",
        "UNSORTED_SORT_ORDER",
    ),
    "icecomb.format.snapshot": (
        "MetadataLogEntry",
        "Operation",
        "Snapshot",
        "SnapshotLogEntry",
        "SnapshotRef",
        "SnapshotRefType",
    ),
    "icecomb.format.transform": (
        "BucketTransform",
        "DayTransform",
        "HourTransform",
        "IdentityTransform",
        "MonthTransform",
        "Transform",
        "TruncateTransform",
        "UnknownTransform",
        "VoidTransform",
        "YearTransform",
        "parse_transform",
    ),
    "icecomb.format.update": (
        "AddPartitionSpecUpdate",
        "AddSchemaUpdate",
        "AddSnapshotUpdate",
        "AddSortOrderUpdate",
        "AssignUUIDUpdate",
        "Changes",
        "RemovePropertiesUpdate",
        "RemoveSnapshotRefUpdate",
        "RemoveSnapshotsUpdate",
        "SetCurrentSchemaUpdate",
        "SetDefaultSortOrderUpdate",
        "SetDefaultSpecUpdate",
        "SetLocationUpdate",
        "SetPropertiesUpdate",
        "SetSnapshotRefUpdate",
        "UpgradeFormatVersionUpdate",
        "update_table_metadata",
    ),
    "icecomb.format.requirement": (
        "AssertCreate",
        "AssertCurrentSchemaId",
        "AssertDefaultSortOrderId",
        "AssertDefaultSpecId",
        "AssertLastAssignedFieldId",
        "AssertLastAssignedPartitionId",
        "AssertRefSnapshotId",
        "AssertTableUUID",
    ),
    "icecomb.format.expressions.expression": (
        "AlwaysFalse",
        "AlwaysTrue",
        "And",
        "BooleanExpression",
        "EqualTo",
        "GreaterThan",
        "GreaterThanOrEqual",
        "In",
        "IsNaN",
        "IsNull",
        "LessThan",
        "LessThanOrEqual",
        "Not",
        "NotEqualTo",
        "NotIn",
        "NotNaN",
        "NotNull",
        "NotStartsWith",
        "Or",
        "StartsWith",
    ),
    "icecomb.format.expressions.term": (
        "Reference",
        "bucket",
        "day",
        "days",
        "hour",
        "hours",
        "month",
        "months",
        "truncate",
        "year",
        "years",
    ),
    "icecomb.format.file_io": (
        "FileIO",
        "FileStatus",
        "FileSystem",
        "register_file_system",
    ),
    "icecomb.format.manifests.manifest": (
        "DataFile",
        "DataFileContent",
        "FileFormat",
        "ManifestContent",
        "ManifestEntry",
        "ManifestEntryStatus",
        "ManifestFile",
        "PartitionFieldSummary",
    ),
    "icecomb.format.scan.table_scan": ("TableScan",),
    "icecomb.format.scan.task": ("FileScanTask",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    try:
        module = _MODULE_OF[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
