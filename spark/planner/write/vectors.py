"""Deletion vectors that the commit of a statement makes of the positions its tasks report."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import TYPE_CHECKING

from icecomb.format.errors import CommitFailedError
from icecomb.spark.planner.files.planned_files import decode_positions
from icecomb.spark.planner.scan.predicates import row_filter

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import numpy.typing as npt

    from icecomb.catalog.table.table import Table
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.rows.deletes.deletion_vector_writer import OlderDeletes
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.spark.planner.protocol.writes import Delta
    from icecomb.spark.planner.table.states import TableState


def deletion_vectors(
    table: Table, state: TableState, delta: Delta
) -> tuple[list[DataFile], list[DataFile]]:
    """Write a statement's deletion vectors, all in one file.

    Return the vectors, and the delete files that they replace.
    """
    found: dict[str, list[npt.NDArray[np.int64]]] = defaultdict(list)
    for deletes in delta.deletes:
        if deletes.positions is not None:
            found[deletes.files[0]].append(decode_positions(deletes.positions))
    if not found:
        return [], []
    from icecomb.format.rows.deletes.deletion_vector_writer import (
        DeletionVectorWriter,
        OlderDeletes,
    )
    from icecomb.format.rows.deletes.position_delete import distinct

    older = OlderDeletes(table.io)
    tasks = _read_files(state, delta, found.keys(), older)
    writer = DeletionVectorWriter(table.io, table.metadata, str(uuid.uuid4()))
    replaced: list[DataFile] = []
    try:
        for path in list(found):
            new = distinct(found.pop(path))
            positions, gone = older.joined(tasks[path], new)
            writer.add(tasks[path].file, positions)
            replaced += gone
        return writer.close(), replaced
    except BaseException:
        writer.abort()
        raise


def _read_files(
    state: TableState, delta: Delta, paths: Collection[str], older: OlderDeletes
) -> dict[str, FileScanTask]:
    """Plan the files that lose rows again, as the statement has read them, with their deletes."""
    scan = state.scan()
    rows = row_filter(delta.filters or (), state.schema, case_sensitive=True, read=scan.schema())
    planned = scan.filter(rows).plan_files()
    tasks: dict[str, FileScanTask] = {}
    for task in planned:
        if task.file_path in paths:
            older.take(task)
            tasks[task.file_path] = task
    if unread := sorted(paths - tasks.keys()):
        raise CommitFailedError(
            f"Table {state.name}: the statement deletes rows of {unread[0]}, which it has not read",
            hint="nothing was changed; please report it with the statement",
            table=state.name,
        )
    return tasks
