"""The handlers of the protocol's methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from icecomb.spark.planner import protocol
from icecomb.spark.planner.changes.changelogs import Changelogs
from icecomb.spark.planner.procedures.procedure_calls import Procedures
from icecomb.spark.planner.protocol.message import Message, Request
from icecomb.spark.planner.scan.metadata_rows import MetadataRows
from icecomb.spark.planner.scan.push_down import PushDown
from icecomb.spark.planner.scan.scan import Scans
from icecomb.spark.planner.session.session_work import PendingWorks
from icecomb.spark.planner.streams.streams import Streams
from icecomb.spark.planner.table.catalogs import Catalogs
from icecomb.spark.planner.table.staging import StagedTables
from icecomb.spark.planner.table.states import TableStates
from icecomb.spark.planner.table.tables import Tables
from icecomb.spark.planner.table.views import Views
from icecomb.spark.planner.transport.transport import Answer, Handler
from icecomb.spark.planner.write.deletes import Deletes
from icecomb.spark.planner.write.write import Writes

Q = TypeVar("Q", bound=Request)


def handlers() -> dict[str, Handler]:
    """Return the handler of every method by name, over one set of open catalogs."""
    catalogs = Catalogs()
    states = TableStates(catalogs)
    staged = StagedTables()
    tables = Tables(catalogs, states, staged)
    views = Views(catalogs)
    works = PendingWorks()
    procedures = Procedures(catalogs, works)
    scans = Scans(states, works)
    push_down = PushDown(states)
    streams = Streams(states)
    metadata_rows = MetadataRows(states)
    writes = Writes(catalogs, states, staged, works)
    deletes = Deletes(catalogs, states)
    changelogs = Changelogs(states)
    return dict(
        (
            _served(protocol.OpenCatalog, catalogs.open_catalog),
            _served(protocol.ListNamespaces, catalogs.list_namespaces),
            _served(protocol.LoadNamespace, catalogs.load_namespace),
            _served(protocol.CreateNamespace, catalogs.create_namespace),
            _served(protocol.AlterNamespace, catalogs.alter_namespace),
            _served(protocol.DropNamespace, catalogs.drop_namespace),
            _served(protocol.ListTables, tables.list_tables),
            _served(protocol.TableExists, tables.table_exists),
            _served(protocol.LoadTable, tables.load_table),
            _served(protocol.CreateTable, tables.create_table),
            _served(protocol.CreateTableLike, tables.create_table_like),
            _served(protocol.StageTable, tables.stage_table),
            _served(protocol.AlterTable, tables.alter_table),
            _served(protocol.DropTable, tables.drop_table),
            _served(protocol.RenameTable, tables.rename_table),
            _served(protocol.ListViews, views.list_views),
            _served(protocol.ViewExists, views.view_exists),
            _served(protocol.LoadView, views.load_view),
            _served(protocol.CreateView, views.create_view),
            _served(protocol.ReplaceView, views.replace_view),
            _served(protocol.AlterView, views.alter_view),
            _served(protocol.DropView, views.drop_view),
            _served(protocol.RenameView, views.rename_view),
            _served(protocol.ListProcedures, procedures.list_procedures),
            _served(protocol.LoadProcedure, procedures.load_procedure),
            _served(protocol.CallProcedure, procedures.call_procedure),
            _served(protocol.EndWork, procedures.end_work),
            _served(protocol.DecideFilters, push_down.decide_filters),
            _served(protocol.AggregateFiles, push_down.aggregate_files),
            _served(protocol.PlanScan, scans.plan_scan),
            _served(protocol.NarrowScan, scans.narrow_scan),
            _served(protocol.OpenStream, streams.open_stream),
            _served(protocol.StreamEnd, streams.stream_end),
            _served(protocol.LatestOffset, streams.latest_offset),
            _served(protocol.PlanStream, streams.plan_stream),
            _served(protocol.ReadRows, metadata_rows.read_rows),
            _served(protocol.PlanChange, writes.plan_change),
            _served(protocol.BeginWrite, writes.begin_write),
            _served(protocol.CommitWrite, writes.commit_write),
            _served(protocol.AbortWrite, writes.abort_write),
            _served(protocol.CommitStaged, writes.commit_staged),
            _served(protocol.AbortStaged, writes.abort_staged),
            _served(protocol.LoadChangelog, changelogs.load_changelog),
            _served(protocol.CanDeleteWhere, deletes.can_delete_where),
            _served(protocol.DeleteWhere, deletes.delete_where),
        )
    )


def _served(
    request: type[Q], serve: Callable[[Q], Message | Generator[Message, None, Message]]
) -> tuple[str, Handler]:
    """Return a method's name and its handler from JSON to JSON."""

    def answer(params: dict[str, Any]) -> Answer:
        found = serve(request.parse(params))
        return found.to_json() if isinstance(found, Message) else _paged(found)

    return re.sub(r"(?<=.)([A-Z])", r"_\1", request.__name__).lower(), answer


def _paged(messages: Generator[Message, None, Message]) -> Generator[Any, None, Any]:
    while True:
        try:
            page = next(messages)
        except StopIteration as end:
            return end.value.to_json()
        yield page.to_json()
