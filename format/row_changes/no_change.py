"""The finding of an operation that a table has no row for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.expressions.column_names import ColumnNames
from icecomb.format.expressions.expression import AlwaysFalse, BooleanExpression
from icecomb.format.operation.conflict import History
from icecomb.format.operation.written_schema import check_no_ids_since
from icecomb.format.rows.values.metadata_columns import filter_columns
from icecomb.format.spec.change.update import Changes
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.row_changes.write_target import WriteTarget
    from icecomb.format.spec.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class NoChange:
    """The finding that there is nothing to change, with what commits of others may make it wrong.

    A transaction commits it with its changes: nothing is changed by it, only checked.

    Attributes:
        rows: The filter of the change: commits about other rows make no difference.
        serializable: Whether the isolation level asks for the check.
        relied_on: Data files for whose rows others were not added; they must not lose rows.
        start: The snapshot that the transaction began with, after which commits are looked at.
        own: The ids of the transaction's own snapshots, which are not looked at.
    """

    target: WriteTarget
    rows: BooleanExpression
    serializable: bool
    relied_on: Sequence[DataFile] = ()
    by_lineage: bool = False
    start: int | None = None
    own: frozenset[int] = frozenset()
    starting_point: None = None

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `Producer.apply`: there are no changes, only a check for conflicts."""
        branch = self.target.branch
        head = base.snapshot_by_name(branch if branch in base.refs else MAIN_BRANCH)
        history = History(self.target.io, base, head, self.start, self.own)
        if history.snapshots and not isinstance(self.rows, AlwaysFalse):
            history.no_new_data(self._named(base))
        if history.snapshots and self.relied_on:
            history.files_exist([file.file_path for file in self.relied_on])
            history.no_new_deletes_for(self.relied_on)
        if history.snapshots and self.by_lineage:
            check_no_ids_since(base, branch, self.start)
        return Changes((), ())

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Implement `Producer.clean_up`: no files were written."""

    def _named(self, base: TableMetadata) -> BooleanExpression:
        """Return the filter with the current names of its columns."""
        seen = filter_columns(self.target.metadata.schema())
        names = ColumnNames(seen, self.target.case_sensitive)
        return names.now(self.rows, filter_columns(base.schema()))
