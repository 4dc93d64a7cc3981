"""Rows that are added and rows that are deleted by position, as one change of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.operation.row_delta import RowDelta


@dataclass(frozen=True, slots=True)
class PositionDelta:
    """The files of a change merge-on-read, and what others may not do before it is committed.

    What is a conflict is what Iceberg Java's writes from Spark call one: always that a file with
    deleted rows was rewritten; where rows are replaced, that it was removed or that others deleted
    matching rows, too; where the change is serializable, that others added matching rows.

    Args:
        rows: What the change is about: what others do to other rows is no conflict.
        added: New data files.
        deletes: New delete files.
        referenced: The data files that these delete rows of.
        replaces_rows: Whether rows are deleted because others replace them.
        serializable: Whether rows that others add are a conflict.
    """

    rows: BooleanExpression
    added: Sequence[DataFile]
    deletes: Sequence[DataFile]
    referenced: Collection[str]
    replaces_rows: bool
    serializable: bool

    def add_to(self, operation: RowDelta) -> None:
        """Put the files and the checks into an operation that knows where the change began."""
        operation.conflict_detection_filter(self.rows)
        for file in self.added:
            operation.add_rows(file)
        for file in self.deletes:
            operation.add_deletes(file)
        operation.validate_data_files_exist(self.referenced)
        if self.replaces_rows:
            operation.validate_deleted_files().validate_no_conflicting_delete_files()
        if self.serializable:
            operation.validate_no_conflicting_data_files()
