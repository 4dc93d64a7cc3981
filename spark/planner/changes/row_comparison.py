"""Comparison of the rows that a commit deleted and inserted, by lineage (spec: Row Lineage).

A moved row keeps its id and the number of the commit that updated it last; an updated one keeps
its id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import LINEAGE, ROW_POSITION
from icecomb.format.scan.change_scan import Lineage
from icecomb.format.spec.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.spark.planner.table.states import TableState


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The rows that a commit deleted from a file, or inserted, without those it only moved.

    Args:
        count: The number of rows, moved ones included.
        others: The positions of the rows that the commit's other side lacks, ascending.
        updated: The positions of those that it has with other values, ascending.
    """

    count: int
    others: npt.NDArray[np.int64]
    updated: npt.NDArray[np.int64]


class RowComparison:
    """Comparison of the rows that a commit deleted with those that it inserted.

    Their ids are read by the planner, and those of one commit are in memory at once.
    """

    def __init__(self, state: TableState) -> None:
        self._location = state.metadata.location
        columns = Schema((ROW_POSITION, *LINEAGE))
        self._scan = ArrowScan(state.metadata, state.io, columns, workers=1)

    def compare(
        self, *sides: Sequence[tuple[FileScanTask, npt.NDArray[np.int64] | None]]
    ) -> Iterator[list[ComparedRows]]:
        """Compare the rows of both sides, and yield those of each side's files, in order.

        Args:
            sides: The files with deleted rows, and those with inserted ones: each with the
                positions of these rows, or None for all live rows.
        """
        read = [[self._read(*file) for file in side] for side in sides]
        joined = [np.concatenate(files, axis=1) for files in read]
        known = [Lineage.of(ids, updates, self._location) for _, ids, updates in joined]
        for files, (positions, ids, updates), other in zip(read, joined, known[::-1], strict=True):
            counts = [files_rows.shape[1] for files_rows in files]
            ends = np.cumsum(counts)
            parts = [
                [positions[rows] for rows in np.split(kind, np.searchsorted(kind, ends[:-1]))]
                for kind in other.changes(ids, updates)
            ]
            yield [ComparedRows(*one) for one in zip(counts, *parts, strict=True)]

    def _read(
        self, task: FileScanTask, rows: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.int64]:
        """Return positions, ids and numbers of the last updates of rows, one array each."""
        found = [np.empty((3, 0), np.int64)]
        for batch in self._scan.read(task):
            check_wanted()
            if batch.column(1).null_count:
                raise UnsupportedError(
                    f"Rows of {task.file_path} have no ids: it is older than the upgrade of the "
                    f"table at {self._location} to format version 3",
                    hint="begin later, or give deduplicationMode = 'none' without computeUpdates",
                    path=task.file_path,
                )
            read = np.stack([numbers_of(column) for column in batch.columns])
            found.append(read if rows is None else read[:, np.isin(read[0], rows)])
        return np.concatenate(found, axis=1)
