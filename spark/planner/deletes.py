"""DELETE and TRUNCATE that the planner does alone, without a job of Spark."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.format.cancellation import pause
from icecomb.format.errors import ConflictError, UnsupportedError
from icecomb.format.expressions.column_names import ColumnNames
from icecomb.format.operation.written_schema import check_branch
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.spark.planner.audit import head, place_of
from icecomb.spark.planner.catalogs import Catalogs
from icecomb.spark.planner.options import Options
from icecomb.spark.planner.predicates import exact_filter
from icecomb.spark.planner.protocol import CanDeleteWhere, DeleteWhere, Done, Possible
from icecomb.spark.planner.snapshot_properties import snapshot_properties
from icecomb.spark.planner.states import TableStates
from icecomb.spark.planner.table_change import check_same_table

if TYPE_CHECKING:
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.spark.planner.states import TableState


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
        Nothing but the table is read for it: it is made anew where others contradict it meanwhile,
        as often as ``commit.retry.num-retries`` says.

        Raises:
            UnsupportedError: A filter is not understood exactly, or the table is a version.
            ConflictError: Others contradicted the change each time.
            ValidationError: The session's settings of write-audit-publish contradict it.
            CommitFailedError: Certainly not committed.
            CommitStateUnknownError: It cannot be told.
        """
        from icecomb.catalog.commit import RetrySettings

        state = self._states.find(request.reference)
        if state.is_read_only:
            raise UnsupportedError(
                f"A version of table {state.name} cannot be changed",
                hint="delete from the table itself, or from a branch of it (….branch_name)",
            )
        rows = exact_filter(request.filters, state.schema, case_sensitive=True)
        settings = RetrySettings.of(state.metadata.properties, locked=True)
        for attempt in range(1, settings.retries + 1):
            with suppress(ConflictError):
                return self._delete(state, request, rows)
            pause(settings.pause(attempt))
        return self._delete(state, request, rows)

    def _delete(self, state: TableState, request: DeleteWhere, rows: BooleanExpression) -> Done:
        table = self._catalogs.load_table(state.catalog, state.identifier)
        check_same_table(table, str(state.metadata.table_uuid))
        place = place_of(request.audit, table.metadata, state.branch)
        begin = head(table.metadata, place.branch)
        if begin is not None:
            there = table.metadata.snapshot_by_id(begin)
            check_branch(table.metadata, there, place.branch)
        rows = ColumnNames(state.schema).now(rows, table.metadata.schema())
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
