"""Planned files of a changelog, with the values of the changelog's own columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from icecomb.spark.planner.changes.files import stated_rows
from icecomb.spark.planner.files.planned_files import PlannedFiles, PositionsOfFiles
from icecomb.spark.planner.table.change_columns import CHANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.spark.planner.changes.files import Changelog, FileChange
    from icecomb.spark.planner.protocol.scans import PlannedFile, PlanScan
    from icecomb.spark.planner.table.states import TableState


class ChangedFiles(PlannedFiles):
    """The files of a changelog; see `PlannedFiles`."""

    def __init__(
        self, state: TableState, request: PlanScan, log: Changelog, split_size: int
    ) -> None:
        super().__init__(state, request, _ChangedPositions(state, log), split_size)
        self._changes = log.changes
        self._changelog = state.metadata_table or CHANGES
        self._read_ids = {str(field_id) for field_id in request.field_ids}

    def _planned(self, task: FileScanTask) -> PlannedFile:
        change = self._changes[id(task.file)]
        constants = change.constants(self._changelog)
        own = {i: value for i, value in constants.items() if i in self._read_ids}
        planned = super()._planned(task)
        return replace(planned, constants={**planned.constants, **own})


class _ChangedPositions(PositionsOfFiles):
    """Deleted positions that also exclude the unchanged rows of partly changed files."""

    def __init__(self, state: TableState, log: Changelog) -> None:
        super().__init__(state, log.tasks)
        self._changes: Mapping[int, FileChange] = log.changes

    def of(self, task: FileScanTask) -> int | None:
        change = self._changes[id(task.file)]
        if change.rows is None:
            return super().of(task)
        left_out = np.ones(stated_rows(change.file), np.bool_)
        left_out[change.rows] = False
        positions = np.flatnonzero(left_out)
        # if every row of the file changed, there are no positions to send
        return self._keep(positions) if len(positions) else None
