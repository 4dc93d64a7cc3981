"""The schemas of the metadata tables, with the names, order, types and ids of Iceberg Java."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from icecomb.format.inspect.readable_metrics import readable_metrics_field
from icecomb.format.rows.values.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POS,
    FILE_PATH,
    SPEC_ID,
)
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.format.spec.schema import Schema, prune, walk
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    BinaryType,
    BooleanType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

PARTITION: Final = "partition"
DATA_FILE: Final = "data_file"
READABLE_METRICS: Final = "readable_metrics"
STATUS_ID: Final = 0
DATA_FILE_ID: Final = 2
CONTENT_ID: Final = 134
SPEC_ID_ID: Final = 141
PARTITION_ID: Final = 102
REFERENCE_SNAPSHOT_ID: Final = 18
DELETED_ROW_ID: Final = 2147483544
CONTENT_OFFSET_ID: Final = 2147483641
CONTENT_SIZE_ID: Final = 2147483640
_DELETE_PARTITION_ID: Final = 2147483642
_PARTITION_DOC: Final = "Partition data tuple, schema based on the partition spec"


def _required(
    field_id: int, name: str, field_type: IcebergType, doc: str | None = None
) -> NestedField:
    return NestedField(field_id, name, field_type, required=True, doc=doc)


def _map(key_id: int, value: IcebergType) -> MapType:
    return MapType(key_id, IntegerType(), key_id + 1, value, value_required=True)


_INT, _LONG, _STRING, _BINARY = IntegerType(), LongType(), StringType(), BinaryType()
_BEFORE_PARTITION: Final = (
    NestedField(
        CONTENT_ID,
        "content",
        _INT,
        doc="Contents of the file: 0=data, 1=position deletes, 2=equality deletes",
    ),
    _required(100, "file_path", _STRING, "Location URI with FS scheme"),
    _required(101, "file_format", _STRING, "File format name: avro, orc, or parquet"),
    NestedField(SPEC_ID_ID, "spec_id", _INT, doc="Partition spec ID"),
)
_AFTER_PARTITION: Final = (
    _required(103, "record_count", _LONG, "Number of records in the file"),
    _required(104, "file_size_in_bytes", _LONG, "Total file size in bytes"),
    NestedField(
        108, "column_sizes", _map(117, _LONG), doc="Map of column id to total size on disk"
    ),
    NestedField(
        109,
        "value_counts",
        _map(119, _LONG),
        doc="Map of column id to total count, including null and NaN",
    ),
    NestedField(
        110, "null_value_counts", _map(121, _LONG), doc="Map of column id to null value count"
    ),
    NestedField(
        137,
        "nan_value_counts",
        _map(138, _LONG),
        doc="Map of column id to number of NaN values in the column",
    ),
    NestedField(125, "lower_bounds", _map(126, _BINARY), doc="Map of column id to lower bound"),
    NestedField(128, "upper_bounds", _map(129, _BINARY), doc="Map of column id to upper bound"),
    NestedField(131, "key_metadata", _BINARY, doc="Encryption key metadata blob"),
    NestedField(
        132,
        "split_offsets",
        ListType(133, _LONG, element_required=True),
        doc="Splittable offsets",
    ),
    NestedField(
        135,
        "equality_ids",
        ListType(136, _INT, element_required=True),
        doc="Equality comparison field IDs",
    ),
    NestedField(140, "sort_order_id", _INT, doc="Sort order ID"),
    NestedField(
        142,
        "first_row_id",
        _LONG,
        doc="The first row ID assigned to the first row in the data file",
    ),
    NestedField(
        143,
        "referenced_data_file",
        _STRING,
        doc="Fully qualified location (URI with FS scheme) of a data file that all deletes "
        "reference",
    ),
    NestedField(
        144, "content_offset", _LONG, doc="The offset in the file where the content starts"
    ),
    NestedField(
        145,
        "content_size_in_bytes",
        _LONG,
        doc="The length of referenced content stored in the file",
    ),
)

_OF_VECTOR: Final = (
    NestedField(
        CONTENT_OFFSET_ID,
        "content_offset",
        _LONG,
        doc="The offset in the DV where the content starts",
    ),
    NestedField(
        CONTENT_SIZE_ID, "content_size_in_bytes", _LONG, doc="The length in bytes of the DV blob"
    ),
)


def files_schema(metadata: TableMetadata) -> Schema:
    """Return the schema of `files`, `data_files`, `delete_files` and their `all_` forms."""
    return _with_metrics(_file_fields(metadata), metadata)


def entries_schema(metadata: TableMetadata) -> Schema:
    """Return the schema of `entries` and `all_entries`."""
    fields = (
        _required(STATUS_ID, "status", _INT),
        NestedField(1, "snapshot_id", _LONG),
        NestedField(3, "sequence_number", _LONG),
        NestedField(4, "file_sequence_number", _LONG),
        _required(DATA_FILE_ID, DATA_FILE, StructType(_file_fields(metadata))),
    )
    return _with_metrics(fields, metadata)


def partitions_schema(metadata: TableMetadata) -> Schema:
    """Return the schema of `partitions`, without partition and spec for an unpartitioned table."""
    union = partition_union(metadata)
    key: tuple[NestedField, ...] = ()
    if union.fields:
        key = (_required(1, PARTITION, union), _required(4, "spec_id", _INT))
    return Schema((*key, *_PARTITION_COUNTS))


def position_deletes_schema(metadata: TableMetadata) -> Schema:
    """Return the schema of `position_deletes`, with partition field ids that no column ever had."""
    union = partition_union(metadata)
    columns = metadata.schema()
    inside = list(walk(columns.as_struct()))
    if any(isinstance(f.field_type, OPAQUE_TYPES) for f in inside):
        shown = [f for f in inside if not isinstance(f.field_type, OPAQUE_TYPES)]
        columns = prune(columns, [f.field_id for f in shown if f.field_type.is_primitive])
    row = NestedField(DELETED_ROW_ID, "row", columns.as_struct(), doc="Deleted row values")
    path = replace(DELETE_FILE_PATH, doc="Path of a file in which a deleted row is stored")
    position = replace(DELETE_FILE_POS, doc="Ordinal position of a deleted row in the data file")
    spec = replace(SPEC_ID, name="spec_id", doc="Spec ID used to track the file containing a row")
    source = replace(
        FILE_PATH, name="delete_file_path", doc="Path of the file in which a row is stored"
    )
    last = (spec, source) if metadata.format_version < 3 else (spec, source, *_OF_VECTOR)
    if not union.fields:
        return Schema((path, position, row, *last))
    used = {f.field_id for schema in metadata.schemas for f in walk(schema.as_struct())}
    free = (number for number in count(1) if number not in used)
    renumbered = StructType(tuple(replace(f, field_id=next(free)) for f in union.fields))
    partition = _required(
        _DELETE_PARTITION_ID, PARTITION, renumbered, "Partition that position delete row belongs to"
    )
    return Schema((path, position, row, partition, *last))


def _file_fields(metadata: TableMetadata) -> tuple[NestedField, ...]:
    union = partition_union(metadata)
    if not union.fields:
        return (*_BEFORE_PARTITION, *_AFTER_PARTITION)
    partition = _required(PARTITION_ID, PARTITION, union, _PARTITION_DOC)
    return (*_BEFORE_PARTITION, partition, *_AFTER_PARTITION)


def _with_metrics(fields: tuple[NestedField, ...], metadata: TableMetadata) -> Schema:
    highest = Schema(fields).highest_field_id
    return Schema((*fields, readable_metrics_field(metadata.schema(), highest)))


def _manifests(*last: NestedField, stated: bool) -> Schema:
    # Iceberg Java calls contains_nan of all_manifests required, but format version 1 may omit it.
    summary = StructType(
        (
            _required(10, "contains_null", BooleanType()),
            NestedField(11, "contains_nan", BooleanType()),
            NestedField(12, "lower_bound", _STRING),
            NestedField(13, "upper_bound", _STRING),
        )
    )
    summaries = ListType(9, summary, element_required=True)
    return Schema(
        (
            _required(14, "content", _INT),
            _required(1, "path", _STRING),
            _required(2, "length", _LONG),
            NestedField(3, "partition_spec_id", _INT, required=stated),
            NestedField(4, "added_snapshot_id", _LONG, required=stated),
            NestedField(5, "added_data_files_count", _INT, required=stated),
            NestedField(6, "existing_data_files_count", _INT, required=stated),
            NestedField(7, "deleted_data_files_count", _INT, required=stated),
            _required(15, "added_delete_files_count", _INT),
            _required(16, "existing_delete_files_count", _INT),
            _required(17, "deleted_delete_files_count", _INT),
            NestedField(8, "partition_summaries", summaries, required=stated),
            *last,
        )
    )


MANIFESTS: Final = _manifests(stated=True)
ALL_MANIFESTS: Final = _manifests(
    _required(REFERENCE_SNAPSHOT_ID, "reference_snapshot_id", _LONG),
    NestedField(19, "key_metadata", _BINARY),
    stated=False,
)
_PARTITION_COUNTS: Final = (
    _required(2, "record_count", _LONG, "Count of records in data files"),
    _required(3, "file_count", _INT, "Count of data files"),
    _required(11, "total_data_file_size_in_bytes", _LONG, "Total size in bytes of data files"),
    _required(
        5, "position_delete_record_count", _LONG, "Count of records in position delete files"
    ),
    _required(6, "position_delete_file_count", _INT, "Count of position delete files"),
    _required(
        7, "equality_delete_record_count", _LONG, "Count of records in equality delete files"
    ),
    _required(8, "equality_delete_file_count", _INT, "Count of equality delete files"),
    NestedField(
        9,
        "last_updated_at",
        TimestamptzType(),
        doc="Commit time of snapshot that last updated this partition",
    ),
    NestedField(
        10,
        "last_updated_snapshot_id",
        _LONG,
        doc="Id of snapshot that last updated this partition",
    ),
)
HISTORY: Final = Schema(
    (
        _required(1, "made_current_at", TimestamptzType()),
        _required(2, "snapshot_id", _LONG),
        NestedField(3, "parent_id", _LONG),
        _required(4, "is_current_ancestor", BooleanType()),
    )
)
METADATA_LOG_ENTRIES: Final = Schema(
    (
        _required(1, "timestamp", TimestamptzType()),
        _required(2, "file", _STRING),
        NestedField(3, "latest_snapshot_id", _LONG),
        NestedField(4, "latest_schema_id", _INT),
        NestedField(5, "latest_sequence_number", _LONG),
    )
)
SNAPSHOTS: Final = Schema(
    (
        _required(1, "committed_at", TimestamptzType()),
        _required(2, "snapshot_id", _LONG),
        NestedField(3, "parent_id", _LONG),
        NestedField(4, "operation", _STRING),
        NestedField(5, "manifest_list", _STRING),
        NestedField(6, "summary", MapType(7, _STRING, 8, _STRING, value_required=True)),
    )
)
REFS: Final = Schema(
    (
        _required(1, "name", _STRING),
        _required(2, "type", _STRING),
        _required(3, "snapshot_id", _LONG),
        NestedField(4, "max_reference_age_in_ms", _LONG),
        NestedField(5, "min_snapshots_to_keep", _INT),
        NestedField(6, "max_snapshot_age_in_ms", _LONG),
    )
)
