"""Positions of the rows of a data file that its delete files delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.deletes.position_delete import PositionDeletes
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.spec.schema import Schema
from icecomb.spark.planner.files.delete_files import position_delete_files

if TYPE_CHECKING:
    import numpy.typing as npt

    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.spark.planner.table.states import TableState


def stated_rows(file: DataFile) -> int:
    """Return the row count of a data file according to its manifest."""
    if file.record_count < 0:
        raise UnsupportedError(
            f"The changes of data file {file.file_path} cannot be read: "
            f"its manifest says that it has {file.record_count} rows",
            hint="Rewrite it with rewrite_data_files; changes after that can be read.",
            path=file.file_path,
        )
    return file.record_count


class DeletedRows:
    """The deleted rows of data files; with equality deletes, compared columns are read."""

    def __init__(self, state: TableState) -> None:
        self._positions = PositionDeletes(state.io)
        self._scan = ArrowScan(state.metadata, state.io, Schema(ROW_POSITION), workers=1)

    def of(self, task: FileScanTask) -> npt.NDArray[np.int64]:
        """Return the distinct positions of a whole file's deleted rows, ascending."""
        check_wanted()
        by_position = position_delete_files(task)
        if len(by_position) == len(task.delete_files):
            found = self._positions.of(task.file, by_position) if by_position else None
            return np.empty(0, np.int64) if found is None else found
        deleted = np.ones(stated_rows(task.file), np.bool_)
        for batch in self._scan.read(task):
            deleted[np.asarray(batch.column(0))] = False
        return np.flatnonzero(deleted)
