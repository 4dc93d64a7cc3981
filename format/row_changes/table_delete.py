"""Deleting and replacing the rows that match a filter, or whole partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.operation.conflict import index_key
from icecomb.format.operation.overwrite import ReplacePartitions, has_other_specs, partition_rows
from icecomb.format.operation.snapshot_producer import parent_manifests
from icecomb.format.row_changes.row_level_change import (
    CopyOnWrite,
    RowLevelChange,
    replace_by,
    row_level_change,
)
from icecomb.format.row_changes.write_target import NoChange, WriteTarget, WrittenChange
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import LINEAGE_IDS, ROW_POSITION
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.schema import Schema

if TYPE_CHECKING:
    from icecomb.format.arrow.batch_stream import GivenRows
    from icecomb.format.rows.deletes.position_delete import Positions
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.scan.delete_index import PartitionKey


def delete_rows(target: WriteTarget, row_filter: BooleanExpression) -> WrittenChange | NoChange:
    """Delete the rows for which a filter is true; a row for which it is unknown is kept.

    Files whose every row matches are removed without being read. The property `write.delete.mode`
    decides how rows are removed from the other files, and `write.delete.isolation-level` what other
    writers may do meanwhile.
    """
    target.bound(row_filter)
    with row_level_change(target, "delete") as change:
        _remove_matching(change, row_filter)
        return change.finish(row_filter)


def overwrite_rows(
    target: WriteTarget, data: GivenRows, row_filter: BooleanExpression
) -> WrittenChange | NoChange:
    """Delete the rows that match a filter and add new ones, in one snapshot.

    Files that also hold other rows are rewritten. The isolation level is that of `delete_rows`; the
    new rows need not match the filter.
    """
    target.bound(row_filter)
    with CopyOnWrite(target, "delete") as change:
        change.write_all(data)
        _remove_matching(change, row_filter)
        return change.finish(row_filter)


def replace_partitions(target: WriteTarget, data: GivenRows) -> WrittenChange | NoChange | None:
    """Replace all rows of the partitions, of the current spec, that new rows, if any, belong to.

    Files of other specs that also hold other rows are rewritten.
    """
    if target.metadata.spec().is_unpartitioned:
        raise ValidationError(
            "The table is not partitioned: there are no partitions to replace",
            hint="Use overwrite to replace all rows, or those that match a filter.",
        )
    serializable = target.is_serializable("delete")
    operation = ReplacePartitions(target.io, target.snapshot_properties, target.branch)
    operation.validate_from_snapshot(target.snapshot_id())
    files = write_data(target.io, target.metadata, data)
    if not files:
        return None
    metadata = target.metadata
    manifests = parent_manifests(target.io, metadata, target.snapshot())
    if has_other_specs(manifests, [metadata.default_spec_id]):
        rows = partition_rows(metadata, metadata.schema(), files)
        with CopyOnWrite(target, "delete") as change:
            change.add_files(files)
            _remove_matching(change, rows)
            return change.finish(rows)
    replace_by(operation, files, serializable=serializable)
    return WrittenChange(operation, target.written_with, files)


def _remove_matching(change: RowLevelChange, row_filter: BooleanExpression) -> None:
    target = change.target
    change.by_lineage = not LINEAGE_IDS.isdisjoint(bound_references(target.bound(row_filter)))
    whole: set[tuple[str, PartitionKey]] | None = None
    scan = ArrowScan(
        target.metadata,
        target.io,
        Schema((ROW_POSITION,)),
        workers=1,
    )
    for task in target.tasks(row_filter, unread=isinstance(row_filter, AlwaysTrue)):
        if isinstance(task.residual, AlwaysTrue):
            change.drop(task, whole_partition=True)
            continue
        if whole is None:
            whole = target.wholly_matching(row_filter)
        if (task.file.file_path, index_key(task.file)) in whole:
            change.drop(task)
        else:
            change.remove(task, _positions(scan, task))


def _positions(scan: ArrowScan, task: FileScanTask) -> Positions:
    """Return the positions, ascending, of the rows that match the task's residual filter."""
    found = [numbers_of(batch.column(0)) for batch in scan.read(task)]
    return np.concatenate(found) if found else np.empty(0, np.int64)
