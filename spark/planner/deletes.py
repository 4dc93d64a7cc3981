"""DELETE and TRUNCATE that the planner does alone, without a job of Spark."""

from __future__ import annotations

from icecomb.format.errors import UnsupportedError
from icecomb.format.expressions.column_names import ColumnNames
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.spark.planner.audit import place_of
from icecomb.spark.planner.catalogs import Catalogs
from icecomb.spark.planner.options import Options
from icecomb.spark.planner.predicates import exact_filter
from icecomb.spark.planner.protocol import CanDeleteWhere, DeleteWhere, Done, Possible
from icecomb.spark.planner.snapshot_properties import snapshot_properties
from icecomb.spark.planner.states import TableStates
from icecomb.spark.planner.table_change import check_same_table


class Deletes:
    """The methods of the protocol that delete rows by a filter."""

    def __init__(self, catalogs: Catalogs, states: TableStates) -> None:
        self._catalogs = catalogs
        self._states = states

    def can_delete_where(self, request: CanDeleteWhere) -> Possible:
        """See `CanDeleteWhere`: whether the filters mean here exactly what Spark means."""
        state = self._states.find(request.reference)
        try:
            exact_filter(request.filters, state.schema, case_sensitive=True)
        except UnsupportedError:
            return Possible(possible=False)
        return Possible(possible=True)

    def delete_where(self, request: DeleteWhere) -> Done:
        """See `DeleteWhere`.

        Files whose every row matches go unread; of others, rows go as ``write.delete.mode`` says.

        Raises:
            UnsupportedError: A filter is not understood exactly, or the table is a version.
            ValidationError: Others contradicted the change meanwhile, or the session's settings
                of write-audit-publish do.
            CommitFailedError: Certainly not committed.
            CommitStateUnknownError: It cannot be told.
        """
        state = self._states.find(request.reference)
        if state.is_read_only:
            raise UnsupportedError(
                f"A version of table {state.name} cannot be changed",
                hint="delete from the table itself, or from a branch of it (….branch_name)",
            )
        rows = exact_filter(request.filters, state.schema, case_sensitive=True)
        table = self._catalogs.load_table(state.catalog, state.identifier)
        check_same_table(table, str(state.metadata.table_uuid))
        rows = ColumnNames(state.schema).now(rows, table.metadata.schema())
        place = place_of(request.audit, table.metadata, state.branch)
        summary = {
            **self._catalogs.engine(state.catalog),
            **snapshot_properties(Options({}, request.settings)),
            **place.summary,
        }
        if place.branch in table.metadata.refs or place.branch == MAIN_BRANCH:
            table.delete(rows, summary, branch=place.branch)
        elif (begin := table.metadata.current_snapshot_id) is not None:
            with table.transaction() as change:
                with change.manage_snapshots() as manage:
                    manage.create_branch(begin, place.branch)
                change.delete(rows, summary, branch=place.branch)
        return Done()
