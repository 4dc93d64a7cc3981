"""Distribution of rows to the tasks that write them, and their order in a task.

Distributions and orders are Iceberg Java's. ``hash`` clusters the rows of a partition, ``range``
those adjacent in the table's order, ``none`` does not move rows. Merge-on-read changes are
clustered by the partition of their data file, in an unpartitioned table by the file itself, so that
the deletes of one file are not spread over many tasks. Copy-on-write DELETE and UPDATE keep the
rows of a file together in an unpartitioned table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.property.property import flag, number, text
from icecomb.format.property.table_property import (
    ADVISORY_PARTITION_BYTES,
    COMMAND_DISTRIBUTION_MODE,
    DATA_FORMAT,
    DELETE_FORMAT,
    DISTRIBUTION_MODE,
    FANOUT,
)
from icecomb.format.rows.values.metadata_columns import PARTITION
from icecomb.format.rows.write.file_options import USE_TABLE_LAYOUT, delete_properties
from icecomb.format.spec.sort import NullOrder
from icecomb.format.spec.transform import IdentityTransform, VoidTransform
from icecomb.spark.partitioning import name_path, spark_transform, spark_transforms
from icecomb.spark.planner.options import codec
from icecomb.spark.planner.protocol.writes import WriteOrder
from icecomb.spark.planner.table.tables import partition_struct

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder
    from icecomb.format.spec.transform import Transform
    from icecomb.spark.planner.options import Options

FILE_ID: Final = "_icecomb_file"
"""A number that identifies the file: paths would make up most of the shuffled bytes."""
POSITION: Final = "_pos"
SPEC_ID: Final = "_spec_id"

_SPARKS_ADVISORY: Final = number(
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    64 << 20,
    "Advisory size of a shuffle partition.",
    least=1,
)
_SHUFFLE_COMPRESS: Final = flag(
    "spark.shuffle.compress", "Whether shuffles are compressed.", default=True
)
_SHUFFLE_CODEC: Final = text("spark.io.compression.codec", "Codec of shuffles.", "a codec")
_DATA_FILE_BYTES: Final = 128 << 20
_DELETE_FILE_BYTES: Final = 32 << 20
_STRONG, _FAST = ("zstd", "gzip", "zlib"), ("snappy", "lz4")
_COLUMNAR: Final = {
    "none": (4.0, 3.0),
    "zstd": (2.0, 1.5),
    "snappy": (3.0, 2.0),
    "lz4": (3.0, 2.0),
}
_BY_ROWS: Final = {
    "none": (2.0, 1.0),
    "zstd": (1.0, 0.5),
    "snappy": (1.5, 1.0),
    "lz4": (1.5, 1.0),
}
"""Bytes of a shuffle per byte of a file, by the shuffle's codec, for file codecs that compress
well and for fast ones. Iceberg Java's estimates."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Distribution and order of the rows to write.

    Args:
        distribution: Transforms to cluster by.
        ordering: The order within a task.
        ranges: The order whose ranges are distributed to tasks, instead of `distribution`.
        advisory_bytes: The approximate bytes of a shuffle per task; None for Spark's default.
    """

    distribution: tuple[Any, ...] = ()
    ordering: tuple[WriteOrder, ...] = ()
    ranges: tuple[WriteOrder, ...] = ()
    advisory_bytes: int | None = None


def rows_layout(metadata: TableMetadata, options: Options) -> Layout:
    """Return the layout of an append or overwrite, according to ``write.distribution-mode``."""
    if not _uses_tables(options):
        return Layout()
    return _of_rows(metadata, options, _mode_of_rows(metadata, options))


def rewrite_layout(metadata: TableMetadata, command: str, options: Options) -> Layout:
    """Return the layout of a copy-on-write change: ``write.<command>.distribution-mode``."""
    if not _uses_tables(options):
        return Layout()
    if command == "merge":
        default = "hash" if metadata.spec().is_partitioned() else _mode_of_rows(metadata, options)
        mode = _fitting(metadata, _mode_of_command(metadata, command, options, default))
        return _of_rows(metadata, options, mode)
    mode = _mode_of_command(metadata, command, options, "hash")
    if metadata.spec().is_partitioned() or (mode == "range" and metadata.sort_order().fields):
        return _of_rows(metadata, options, mode)
    return Layout(
        distribution=(_column(FILE_ID),) if mode == "hash" else (),
        ordering=_order_in_task(metadata, options),
        ranges=_ascending(FILE_ID, POSITION) if mode == "range" else (),
        advisory_bytes=_advisory_bytes(metadata, options),
    )


def group_layout(
    metadata: TableMetadata,
    spec: PartitionSpec,
    order: SortOrder | None,
    *,
    file_bytes: int,
    mixed: bool,
    options: Options,
) -> Layout:
    """Return the layout of a file group that is rewritten.

    Args:
        spec: The partition spec of new files.
        order: The order of rows; None if they need not be sorted.
        file_bytes: The approximate size of a new file.
        mixed: Whether rows may belong to several partitions.
    """
    schema = metadata.schema()
    advisory = max(int(file_bytes * _file_packing(metadata, options)), 1)
    if order is not None:
        fields = _order_of(schema, spec, order)
        return Layout(ordering=fields, ranges=fields, advisory_bytes=advisory)
    clustering = tuple(spark_transforms(spec, schema)) if mixed else ()
    return Layout(distribution=clustering, advisory_bytes=advisory)


def rewrite_columns(metadata: TableMetadata, command: str, options: Options) -> tuple[str, ...]:
    """Return the metadata columns besides the file that `rewrite_layout` refers to."""
    named = rewrite_layout(metadata, command, options).ranges
    return (POSITION,) if _ascending(POSITION)[0] in named else ()


def delta_layout(metadata: TableMetadata, command: str, options: Options) -> Layout:
    """Return the layout of a merge-on-read change: ``write.<command>.distribution-mode``."""
    if not _uses_tables(options):
        return Layout()
    mode = _mode_of_command(metadata, command, options, "hash")
    of_files = partition_columns(metadata)
    together = of_files if metadata.spec().is_partitioned() else (*of_files, FILE_ID)
    # DELETE has no new rows, and none of the table's columns
    adds = command != "delete"
    coming = tuple(spark_transforms(metadata.spec(), metadata.schema())) if adds else ()
    order = _order(metadata) if adds else ()
    sorted_rows = adds and bool(metadata.sort_order().fields)
    in_place = (
        ()
        if _fans_out(metadata, options) and not sorted_rows
        else (
            *_ascending(*of_files, FILE_ID, POSITION),
            *order,
        )
    )
    return Layout(
        distribution=(*map(_column, together), *coming) if mode == "hash" else (),
        ordering=in_place,
        ranges=(*_ascending(*together), *order) if mode == "range" else (),
        advisory_bytes=_advisory_bytes(metadata, options, of_deletes=not adds),
    )


def partition_columns(metadata: TableMetadata) -> tuple[str, ...]:
    """Return the metadata columns that identify a data file's partition, if Spark has them."""
    values = partition_struct(metadata)
    return (SPEC_ID, PARTITION.name) if values and values["fields"] else (SPEC_ID,)


def fans_out(metadata: TableMetadata, options: Options, layout: Layout) -> bool:
    """Return whether tasks keep files of several partitions open; the default if unsorted."""
    return _fans_out(metadata, options, default=not layout.ordering)


def _fans_out(metadata: TableMetadata, options: Options, *, default: bool = True) -> bool:
    return options.of(FANOUT, metadata.properties, "fanout-enabled", default=default)


def _uses_tables(options: Options) -> bool:
    return options.of(USE_TABLE_LAYOUT, {}, USE_TABLE_LAYOUT.key)


def _mode_of_rows(metadata: TableMetadata, options: Options) -> str:
    default = "none"
    if metadata.sort_order().fields:
        default = "range"
    elif metadata.spec().is_partitioned():
        default = "hash"
    mode = options.of(
        DISTRIBUTION_MODE,
        metadata.properties,
        "distribution-mode",
        "distribution-mode",
        default=default,
    )
    return _fitting(metadata, mode)


def _mode_of_command(metadata: TableMetadata, command: str, options: Options, default: str) -> str:
    return options.of(
        COMMAND_DISTRIBUTION_MODE[command],
        metadata.properties,
        "distribution-mode",
        "distribution-mode",
        default=default,
    )


def _fitting(metadata: TableMetadata, mode: str) -> str:
    """Return the mode, or "none" if the table has nothing to distribute rows by."""
    partitioned = metadata.spec().is_partitioned()
    if mode == "hash" and not partitioned:
        return "none"
    if mode == "range" and not partitioned and not metadata.sort_order().fields:
        return "none"
    return mode


def _of_rows(metadata: TableMetadata, options: Options, mode: str) -> Layout:
    clustering = tuple(spark_transforms(metadata.spec(), metadata.schema()))
    return Layout(
        distribution=clustering if mode == "hash" else (),
        ordering=_order_in_task(metadata, options),
        ranges=_order(metadata) if mode == "range" else (),
        advisory_bytes=_advisory_bytes(metadata, options),
    )


def _order_in_task(metadata: TableMetadata, options: Options) -> tuple[WriteOrder, ...]:
    if _fans_out(metadata, options) and not metadata.sort_order().fields:
        return ()
    return _order(metadata)


def _order(metadata: TableMetadata) -> tuple[WriteOrder, ...]:
    return _order_of(metadata.schema(), metadata.spec(), metadata.sort_order())


def _order_of(schema: Schema, spec: PartitionSpec, order: SortOrder) -> tuple[WriteOrder, ...]:
    """Return a sort order, preceded by the partition fields that it does not keep together."""
    before = [
        WriteOrder(spark_transform(transform, name_path(schema, source)), "asc", "first")
        for source, transform in _partitions_to_sort(spec, order)
    ]
    return (*before, *_sort_fields(schema, order))


def _partitions_to_sort(spec: PartitionSpec, order: SortOrder) -> list[tuple[int, Transform]]:
    """Return the partition fields that a sort order does not keep together."""
    fields = [
        (field.source_id, field.transform)
        for field in spec.fields
        if not isinstance(field.transform, VoidTransform)
    ]
    left = [
        one
        for one in fields
        if not any(
            other is not one and other[0] == one[0] and other[1].satisfies_order_of(one[1])
            for other in fields
        )
    ]
    for field in order.fields:
        if (field.source_id, field.transform) in left:
            left.remove((field.source_id, field.transform))
            continue
        return [
            one
            for one in left
            if one[0] != field.source_id or not field.transform.satisfies_order_of(one[1])
        ]
    return left


def _sort_fields(schema: Schema, order: SortOrder) -> Iterator[WriteOrder]:
    for field in order.fields:
        yield WriteOrder(
            spark_transform(field.transform, name_path(schema, field.source_id)),
            field.direction.value,
            "last" if field.null_order is NullOrder.NULLS_LAST else "first",
        )


def _advisory_bytes(
    metadata: TableMetadata, options: Options, *, of_deletes: bool = False
) -> int | None:
    """Estimate the shuffle bytes that make a full file, at least Spark's own setting."""
    properties = metadata.properties
    file_format = options.of(DATA_FORMAT, properties, "write-format")
    wanted = _DATA_FILE_BYTES
    if of_deletes:
        file_format = options.of(DELETE_FORMAT, properties, "delete-format", default=file_format)
        properties, wanted = delete_properties(properties), _DELETE_FILE_BYTES
    ratio = _packing(options, file_format, codec(file_format, properties, options))
    default = max(int(wanted * ratio), options.spark(_SPARKS_ADVISORY))
    return options.of(
        ADVISORY_PARTITION_BYTES,
        properties,
        "advisory-partition-size",
        "advisory-partition-size",
        default=default,
    )


def _file_packing(metadata: TableMetadata, options: Options) -> float:
    properties = metadata.properties
    file_format = options.of(DATA_FORMAT, properties, "write-format")
    return _packing(options, file_format, codec(file_format, properties, options))


def _packing(options: Options, file_format: str, file_codec: str) -> float:
    known = _BY_ROWS if file_format == "avro" else _COLUMNAR
    usual = 1.0 if file_format == "avro" else 2.0
    shuffle = (options.spark(_SHUFFLE_CODEC) or "lz4").lower()
    if not options.spark(_SHUFFLE_COMPRESS):
        shuffle = "none"
    strong, fast = known.get(shuffle, (usual, usual))
    if file_codec in _STRONG:
        return strong
    return fast if file_codec in _FAST else usual


def _column(name: str) -> dict[str, Any]:
    return spark_transform(IdentityTransform(), [name])


def _ascending(*names: str) -> tuple[WriteOrder, ...]:
    return tuple(WriteOrder(_column(name), "asc", "first") for name in names)
