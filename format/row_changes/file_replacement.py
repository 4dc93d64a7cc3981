"""Changes of a table that replace whole data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.operation.overwrite import OverwriteFiles, ReplacePartitions


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """The files of a copy-on-write change, and the conditions under which it conflicts.

    Args:
        rows: The filter of the change: commits about other rows are not conflicts.
        serializable: Whether rows added by other writers are a conflict.
        relied_on: Other data files, which must not lose rows.
        left_alone: Delete files that apply to removed data files only.
    """

    rows: BooleanExpression
    added: Sequence[DataFile]
    removed: Sequence[DataFile]
    serializable: bool
    relied_on: Sequence[DataFile] = ()
    left_alone: Sequence[DataFile] = ()

    def add_to(self, operation: OverwriteFiles) -> None:
        """Add the files and the checks to an operation that knows its starting snapshot."""
        operation.conflict_detection_filter(self.rows).validate_files_unchanged(self.relied_on)
        for file in self.removed:
            operation.delete_data_file(file)
        for file in self.left_alone:
            operation.remove_deletes(file)
        replace_by(operation, self.added, serializable=self.serializable)


def replace_by(
    operation: OverwriteFiles | ReplacePartitions,
    added: Sequence[DataFile],
    *,
    serializable: bool,
) -> None:
    """Add the new files and the checks to an operation that knows which files it removes.

    Conflicts are those of Iceberg Java's writes from Spark: always that matching rows were deleted;
    if the change is serializable, also that matching rows were added.
    """
    for file in added:
        operation.append_data_file(file)
    operation.validate_no_conflicting_deletes()
    if serializable:
        operation.validate_no_conflicting_data()
