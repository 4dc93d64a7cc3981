"""DELETE and TRUNCATE by the planner itself, without a Spark job."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.format.cancellation import pause
from icecomb.format.errors import ConflictError, UnsupportedError, ValidationError
from icecomb.format.expressions.binding import ColumnNames
from icecomb.format.operation.snapshot_producer import check_branch_columns
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.spark.planner.options import Options, write_properties
from icecomb.spark.planner.protocol.catalogs import Done
from icecomb.spark.planner.protocol.writes import CanDeleteWhere, DeleteWhere, Possible
from icecomb.spark.planner.scan.predicates import exact_filter
from icecomb.spark.planner.table.audit import commit_target, head
from icecomb.spark.planner.table.catalogs import Catalogs
from icecomb.spark.planner.table.states import TableStates
from icecomb.spark.planner.write.table_change import check_same_table
from icecomb.spark.planner.write.write import snapshot_properties

if TYPE_CHECKING:
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.spark.planner.table.states import TableState


class Deletes:
    """The protocol's methods that delete rows by a filter."""

    def __init__(self, catalogs: Catalogs, states: TableStates) -> None:
        self._catalogs = catalogs
        self._states = states

    def can_delete_where(self, request: CanDeleteWhere) -> Possible:
        """Answer `CanDeleteWhere`: whether the filters can be evaluated exactly as in Spark."""
        state = self._states.find(request.reference)
        try:
            exact_filter(request.filters, state.schema, case_sensitive=True)
        except UnsupportedError:
            return Possible(possible=False)
        return Possible(possible=True)

    def delete_where(self, request: DeleteWhere) -> Done:
        """Delete rows: drop files whose rows all match unread, else by ``write.delete.mode``.

        As only the table itself is read, a conflict with concurrent commits is retried from the
        start, up to ``commit.retry.num-retries`` times.
        """
        from icecomb.catalog.commit.commit import RetrySettings

        state = self._states.find(request.reference)
        if state.is_read_only:
            raise ValidationError(
                f"A version of table {state.name} cannot be changed",
                hint="Delete from the table itself, or from a branch of it (….branch_name).",
            )
        rows = exact_filter(request.filters, state.schema, case_sensitive=True)
        catalog = self._catalogs[state.catalog].properties
        settings = RetrySettings.of(state.metadata.properties, catalog, locked=True)
        end = time.monotonic() + settings.total_s
        for attempt in range(1, settings.retries + 1):
            with suppress(ConflictError):
                return self._delete(state, request, rows)
            left = end - time.monotonic()
            if left <= 0:
                break
            pause(min(settings.pause(attempt), left))
        return self._delete(state, request, rows)

    def _delete(self, state: TableState, request: DeleteWhere, rows: BooleanExpression) -> Done:
        table = self._catalogs.load_table(state.catalog, state.identifier)
        check_same_table(table, str(state.metadata.table_uuid))
        target = commit_target(request.audit, table.metadata, state.branch)
        begin = head(table.metadata, target.branch)
        if begin is not None:
            there = table.metadata.snapshot_by_id(begin)
            check_branch_columns(table.metadata, there, target.branch)
        rows = ColumnNames(state.schema).now(rows, table.metadata.schema())
        options = Options({}, request.settings)
        table.write_properties = write_properties(table.metadata, options)
        summary = {
            **self._catalogs.application(state.catalog),
            **snapshot_properties(options),
            **target.summary,
        }
        if target.branch in table.metadata.refs or target.branch == MAIN_BRANCH:
            table.delete(rows, summary, branch=target.branch)
        elif (begin := table.metadata.current_snapshot_id) is not None:
            with table.transaction() as change:
                with change.manage_snapshots() as manage:
                    manage.create_branch(begin, target.branch)
                change.delete(rows, summary, branch=target.branch)
        return Done()
