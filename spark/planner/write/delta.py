"""The row-level mode of UPDATE, DELETE and MERGE, and instructions for position deletes."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from icecomb.format.errors import UnsupportedError
from icecomb.format.property.table_property import (
    DATA_FORMAT,
    DELETE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_BYTES,
)
from icecomb.format.rows.values.metadata_columns import PARTITION, lineage
from icecomb.format.rows.write.file_options import delete_properties
from icecomb.spark.planner.options import Options
from icecomb.spark.planner.protocol.writes import DeleteInstructions, PlannedChange
from icecomb.spark.planner.scan.read_options import ReadOptions, check_is_whole
from icecomb.spark.planner.write.file_instructions import file_instructions
from icecomb.spark.planner.write.layout import (
    FILE_ID,
    POSITION,
    SPEC_ID,
    partition_columns,
    rewrite_columns,
)
from icecomb.spark.planner.write.written_files import POSITION_DELETES

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.protocol.writes import PlanChange
    from icecomb.spark.planner.table.states import TableState


def planned_change(state: TableState, request: PlanChange) -> PlannedChange:
    """Plan how a statement changes rows, according to ``write.<command>.mode``."""
    from icecomb.format.row_changes.write_target import WriteTarget

    metadata, command = state.metadata, request.command
    check_is_whole(state, ReadOptions(request.options, request.settings))
    options = Options(request.options, request.settings)
    merge_on_read = WriteTarget(state.io, metadata).merges_on_read(command)
    columns = (
        partition_columns(metadata)
        if merge_on_read
        else rewrite_columns(metadata, command, options)
    )
    needed = {FILE_ID, *columns} | ({POSITION, SPEC_ID, PARTITION.name} if merge_on_read else set())
    if not merge_on_read or command != "delete":
        moved = tuple(field.name for field in lineage(metadata))
        if moved and not request.keeps_metadata:
            error = _loses_ids(state, command)
            if command != "delete":
                raise error
            return PlannedChange(merge_on_read=False, metadata_columns=columns, refusal=str(error))
        columns, needed = (*columns, *moved), needed.union(moved)
    _check_hides_nothing(state, command, needed, merge_on_read=merge_on_read)
    return PlannedChange(merge_on_read=merge_on_read, metadata_columns=columns, refusal=None)


def _loses_ids(state: TableState, command: str) -> UnsupportedError:
    return UnsupportedError(
        f"Cannot {command.upper()} rows of table {state.name} by Spark before version 4.0 as this "
        "session is configured: rows that move to other files would lose their ids, which tables "
        f"of format version {state.metadata.format_version} keep",
        hint="set spark.sql.extensions to org.icecomb.spark.IcecombSessionExtensions, which keeps "
        "them; with the property write.delete.mode set to merge-on-read DELETE moves no rows",
        table=state.name,
    )


def _check_hides_nothing(
    state: TableState, command: str, needed: Collection[str], *, merge_on_read: bool
) -> None:
    for field in state.metadata.schema().fields:
        name = field.name.lower()
        if name in needed:
            free = merge_on_read and name in {POSITION, SPEC_ID, PARTITION.name}
            other = f", or set write.{command}.mode to copy-on-write" if free else ""
            raise UnsupportedError(
                f"Table {state.name}: its column {field.name} hides Spark's metadata column of "
                f"that name, which {command.upper()} needs to find rows",
                hint=f"rename the column{other}",
                table=state.name,
            )


def delete_instructions(metadata: TableMetadata, options: Options) -> DeleteInstructions:
    """Return the instructions for tasks that write position deletes."""
    properties = delete_properties(metadata.properties)
    data_format = options.of(DATA_FORMAT, properties, "write-format")
    file_format = options.of(DELETE_FORMAT, properties, "delete-format", default=data_format)
    as_vectors = metadata.format_version >= 3
    granularity = options.of(DELETE_GRANULARITY, properties, "delete-granularity")
    return DeleteInstructions(
        files=file_instructions(
            file_format,
            POSITION_DELETES,
            options.of(DELETE_TARGET_FILE_BYTES, properties, "target-delete-file-size-bytes"),
            # readers match data files by whole paths, so bounds must not be truncated
            {str(i): "full" for i in sorted(POSITION_DELETES.field_ids)},
            properties,
            options,
        ),
        by_file=as_vectors or granularity == "file",
        as_vectors=as_vectors,
    )
