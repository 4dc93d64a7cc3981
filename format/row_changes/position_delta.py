"""Changes of a table that add rows and delete others by position."""

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
    """The files of a merge-on-read change, and the conditions under which it conflicts.

    Conflicts are those of Iceberg Java's writes from Spark: always that a file with deleted rows
    was rewritten; if rows are replaced, also that it was removed or that matching rows were
    deleted; if the change is serializable, also that matching rows were added.
    """

    rows: BooleanExpression
    added: Sequence[DataFile]
    deletes: Sequence[DataFile]
    referenced: Collection[str]
    replaces_rows: bool
    serializable: bool
    by_lineage: bool = False

    def add_to(self, operation: RowDelta) -> None:
        """Add the files and the checks to an operation that knows its starting snapshot."""
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
        if self.by_lineage:
            operation.found_by_lineage()
