"""The columns by which the files of a scan are partitioned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.spark.planner.table.states import TableState


def partition_columns(
    state: TableState, read_ids: Sequence[int], tasks: Iterable[FileScanTask]
) -> tuple[str, ...]:
    """Return the columns to read that partition files of the scan, under any transform.

    As in Iceberg Java, older specs count if files still have them. Fields inside structs are left
    out: Spark supports top-level columns only. A changelog has none: its files are not those of one
    snapshot.
    """
    if state.metadata_table is not None:
        return ()
    specs = {task.spec.spec_id: task.spec for task in tasks}
    sources = {field.source_id for spec in specs.values() for field in spec.fields}
    columns = (field for field in state.schema.fields if field.field_id in sources)
    return tuple(field.name for field in columns if field.field_id in read_ids)
