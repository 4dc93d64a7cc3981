"""The record types of manifests and manifest lists, for format versions 1, 2 and 3.

Names, ids, order and optionality are those of the specification's tables, as Iceberg Java writes
them; fields that must not be written are left out, but have a name for reading.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

BLOCK_SIZE_IN_BYTES: Final = 64 * 1024 * 1024
"""The value of a field that version 1 requires but nobody uses."""

_PARTITION_SUMMARY = StructType(
    (
        NestedField(509, "contains_null", BooleanType(), required=True),
        NestedField(518, "contains_nan", BooleanType()),
        NestedField(510, "lower_bound", BinaryType()),
        NestedField(511, "upper_bound", BinaryType()),
    )
)
EXACT_BOUNDS: Final = "icecomb.exact-bounds"
"""The member of a manifest's header that says "true" if icecomb wrote all its live data files.

Nothing in the specification tells bounds that are values from wider ones, and other writers state
wider ones. A manifest that another writer makes of these entries does not have it.
"""


def _counts(map_id: int, name: str, key_id: int, value_id: int) -> NestedField:
    return NestedField(
        map_id, name, MapType(key_id, IntegerType(), value_id, LongType(), value_required=True)
    )


def _bounds(map_id: int, name: str, key_id: int, value_id: int) -> NestedField:
    return NestedField(
        map_id, name, MapType(key_id, IntegerType(), value_id, BinaryType(), value_required=True)
    )


_STATISTICS = (
    _counts(108, "column_sizes", 117, 118),
    _counts(109, "value_counts", 119, 120),
    _counts(110, "null_value_counts", 121, 122),
    _counts(137, "nan_value_counts", 138, 139),
    _bounds(125, "lower_bounds", 126, 127),
    _bounds(128, "upper_bounds", 129, 130),
)
STATISTICS: Final = tuple(field.name for field in _STATISTICS)
"""The names of the maps from column id to a count or a bound."""


def entry_type(format_version: int, partition: StructType) -> StructType:
    """Return the type of the records of a manifest of a format version and partition type."""
    optional: tuple[NestedField, ...] = (NestedField(1, "snapshot_id", LongType()),)
    if format_version > 1:
        optional += (
            NestedField(3, "sequence_number", LongType()),
            NestedField(4, "file_sequence_number", LongType()),
        )
    return StructType(
        (
            NestedField(0, "status", IntegerType(), required=True),
            *optional,
            NestedField(2, "data_file", data_file_type(format_version, partition), required=True),
        )
    )


def data_file_type(format_version: int, partition: StructType) -> StructType:
    """Return the type of a manifest entry's `data_file`."""
    first = (
        NestedField(100, "file_path", StringType(), required=True),
        NestedField(101, "file_format", StringType(), required=True),
        NestedField(102, "partition", partition, required=True),
        NestedField(103, "record_count", LongType(), required=True),
        NestedField(104, "file_size_in_bytes", LongType(), required=True),
    )
    last = (
        NestedField(131, "key_metadata", BinaryType()),
        NestedField(132, "split_offsets", ListType(133, LongType(), element_required=True)),
    )
    order = NestedField(140, "sort_order_id", IntegerType())
    if format_version == 1:
        block_size = NestedField(105, "block_size_in_bytes", LongType(), required=True)
        return StructType((*first, block_size, *_STATISTICS, *last, order))
    referenced = NestedField(143, "referenced_data_file", StringType())
    rest: tuple[NestedField, ...] = (referenced,)
    if format_version > 2:
        rest = (
            NestedField(142, "first_row_id", LongType()),
            referenced,
            NestedField(144, "content_offset", LongType()),
            NestedField(145, "content_size_in_bytes", LongType()),
        )
    return StructType(
        (
            NestedField(134, "content", IntegerType(), required=True),
            *first,
            *_STATISTICS,
            *last,
            NestedField(135, "equality_ids", ListType(136, IntegerType(), element_required=True)),
            order,
            *rest,
        )
    )


def stored_partition(partition: StructType) -> StructType:
    """Return the partition type in Avro's form.

    Iceberg Java 1.11 writes a length before a `fixed` partition value, and expects one, although
    the type has none; `bytes` reads the same everywhere.
    """
    return StructType(
        tuple(
            replace(field, field_type=BinaryType(), required=False)
            if isinstance(field.field_type, FixedType)
            else replace(field, required=False)
            for field in partition.fields
        )
    )


def manifest_file_type(format_version: int) -> StructType:
    """Return the type of a manifest list's records."""
    path = (
        NestedField(500, "manifest_path", StringType(), required=True),
        NestedField(501, "manifest_length", LongType(), required=True),
        NestedField(502, "partition_spec_id", IntegerType(), required=True),
    )
    added_by = NestedField(503, "added_snapshot_id", LongType(), required=True)
    stated = format_version > 1
    files: tuple[NestedField, ...] = (
        NestedField(504, "added_files_count", IntegerType(), required=stated),
        NestedField(505, "existing_files_count", IntegerType(), required=stated),
        NestedField(506, "deleted_files_count", IntegerType(), required=stated),
    )
    rows: tuple[NestedField, ...] = (
        NestedField(512, "added_rows_count", LongType(), required=stated),
        NestedField(513, "existing_rows_count", LongType(), required=stated),
        NestedField(514, "deleted_rows_count", LongType(), required=stated),
    )
    partitions = NestedField(
        507, "partitions", ListType(508, _PARTITION_SUMMARY, element_required=True)
    )
    key_metadata = NestedField(519, "key_metadata", BinaryType())
    if format_version == 1:
        return StructType((*path, added_by, *files, partitions, *rows, key_metadata))
    sequence = (
        NestedField(517, "content", IntegerType(), required=True),
        NestedField(515, "sequence_number", LongType(), required=True),
        NestedField(516, "min_sequence_number", LongType(), required=True),
    )
    last: tuple[NestedField, ...] = (key_metadata,)
    if format_version > 2:
        last = (key_metadata, NestedField(520, "first_row_id", LongType()))
    return StructType((*path, *sequence, added_by, *files, *rows, partitions, *last))


def _names(struct: StructType) -> dict[int, str]:
    names: dict[int, str] = {}
    for field in struct.fields:
        names[field.field_id] = field.name
        inner: IcebergType = field.field_type
        if isinstance(inner, ListType):
            inner = inner.element_type
        if isinstance(inner, StructType):
            names |= _names(inner)
    return names


ENTRY_NAMES: Final = _names(entry_type(1, StructType(()))) | _names(entry_type(3, StructType(())))
"""Field id to name, for all fields of manifests."""

MANIFEST_FILE_NAMES: Final = _names(manifest_file_type(3))
"""Field id to name, for all fields of manifest lists."""
