"""Merge-on-read in Spark: how rows that go and rows that come are shared out to tasks and written.

The distribution and the order are Iceberg Java's: rows that go are put together by the partition of
their data file, in a table without partitions by the file itself, so that the deletes of one file
do not end up with many tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.metadata_columns import PARTITION
from icecomb.format.rows.write.file_options import delete_properties
from icecomb.format.spec.table_property import (
    COMMAND_DISTRIBUTION_MODE,
    DATA_FORMAT,
    DELETE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_BYTES,
    FANOUT,
)
from icecomb.format.spec.transform import IdentityTransform
from icecomb.spark.partitioning import spark_transform
from icecomb.spark.planner.file_instructions import file_instructions
from icecomb.spark.planner.metadata_columns import partition_struct
from icecomb.spark.planner.protocol import DeleteInstructions, PlannedChange, SortField
from icecomb.spark.planner.written_files import POSITION_DELETES

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.protocol import PlanChange
    from icecomb.spark.planner.states import TableState

_FILE: Final = "_file"
_POSITION: Final = "_pos"
_SPEC_ID: Final = "_spec_id"


def planned_change(state: TableState, request: PlanChange) -> PlannedChange:
    """How a statement changes rows, as ``write.<command>.mode`` says.

    Raises:
        ConfigurationError: The mode is unknown, or the table's format version has no delete files.
        UnsupportedError: A column of the table hides what says in which file, or where, a row is.
    """
    from icecomb.format.row_changes.write_target import WriteTarget

    merge_on_read = WriteTarget(state.io, state.metadata).merges_on_read(request.command)
    _check_hides_nothing(state, request.command, merge_on_read=merge_on_read)
    if not merge_on_read:
        return PlannedChange(merge_on_read=False, metadata_columns=())
    return PlannedChange(merge_on_read=True, metadata_columns=_partition_columns(state.metadata))


def _check_hides_nothing(state: TableState, command: str, *, merge_on_read: bool) -> None:
    needed = {_FILE, _POSITION, _SPEC_ID, PARTITION.name} if merge_on_read else {_FILE}
    for field in state.metadata.schema().fields:
        name = field.name.lower()
        if name in needed:
            other = "" if name == _FILE else f", or set write.{command}.mode to copy-on-write"
            raise UnsupportedError(
                f"Table {state.name}: its column {field.name} hides Spark's metadata column of "
                f"that name, which {command.upper()} needs to find rows",
                hint=f"rename the column{other}",
                table=state.name,
            )


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows go to the tasks that write them.

    Args:
        distribution: Transforms to cluster by.
        ordering: The order in a task.
        ranges: The order whose ranges make the tasks, instead of `distribution`.
    """

    distribution: tuple[Any, ...]
    ordering: tuple[SortField, ...]
    ranges: tuple[SortField, ...] = ()


def delta_layout(
    metadata: TableMetadata,
    command: str,
    options: Options,
    partitioning: Sequence[Any],
    in_order: Sequence[SortField],
) -> Layout:
    """The layout of a change, as ``write.<command>.distribution-mode`` says.

    Args:
        metadata: The table.
        command: ``delete``, ``update`` or ``merge``.
        options: Of the write.
        partitioning: The table's partitioning, as Spark's transforms.
        in_order: The order that new rows are to be in where files are written one after another.

    Raises:
        ConfigurationError: A property is set to what it cannot be.
    """
    properties = metadata.properties
    mode = options.of(
        COMMAND_DISTRIBUTION_MODE[command],
        properties,
        "distribution-mode",
        "distribution-mode",
        default="hash",
    )
    of_files = _partition_columns(metadata)
    together = [_column(name) for name in of_files]
    if metadata.spec().is_unpartitioned:
        together.append(_column(_FILE))
    # DELETE has no new rows, and no column of the table
    adds = command != "delete"
    coming, order = (partitioning, in_order) if adds else ((), ())
    ordering: tuple[SortField, ...] = ()
    sorted_rows = adds and bool(metadata.sort_order().fields)
    if sorted_rows or not options.of(FANOUT, properties, "fanout-enabled"):
        places = (_column(name) for name in (*of_files, _FILE, _POSITION))
        ordering = (*map(_ascending, places), *order)
    return Layout(
        distribution=(*together, *coming) if mode == "hash" else (),
        ordering=ordering,
        ranges=(*map(_ascending, together), *order) if mode == "range" else (),
    )


def delete_instructions(metadata: TableMetadata, options: Options) -> DeleteInstructions:
    """How tasks write position deletes.

    Args:
        metadata: The table.
        options: Of the write.

    Raises:
        ConfigurationError: An option or property is set to what it cannot be.
    """
    properties = delete_properties(metadata.properties)
    data_format = options.of(DATA_FORMAT, properties, "write-format")
    file_format = options.of(DELETE_FORMAT, properties, "delete-format", default=data_format)
    granularity = options.of(DELETE_GRANULARITY, properties, "delete-granularity")
    return DeleteInstructions(
        files=file_instructions(
            file_format,
            POSITION_DELETES,
            options.of(DELETE_TARGET_FILE_BYTES, properties, "target-delete-file-size-bytes"),
            # readers find by whole paths which data files are meant
            {str(i): "full" for i in sorted(POSITION_DELETES.field_ids)},
            properties,
            options,
        ),
        by_file=granularity == "file",
    )


def _partition_columns(metadata: TableMetadata) -> tuple[str, ...]:
    """The metadata columns that tell partitions of data files apart, as far as Spark has them."""
    values = partition_struct(metadata)
    return (_SPEC_ID, PARTITION.name) if values and values["fields"] else (_SPEC_ID,)


def _column(name: str) -> dict[str, Any]:
    return spark_transform(IdentityTransform(), [name])


def _ascending(transform: Any) -> SortField:
    return SortField(transform, "asc", "first")
