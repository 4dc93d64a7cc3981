"""The handlers of the protocol's methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from icecomb.spark.planner.changes.changelogs import Changelogs
from icecomb.spark.planner.procedures.procedure_calls import Procedures
from icecomb.spark.planner.protocol.catalogs import (
    AlterNamespace,
    CreateNamespace,
    DropNamespace,
    ListNamespaces,
    LoadNamespace,
    OpenCatalog,
)
from icecomb.spark.planner.protocol.changes import LoadChangelog
from icecomb.spark.planner.protocol.message import Message, Request
from icecomb.spark.planner.protocol.procedures import (
    CallProcedure,
    EndWork,
    ListProcedures,
    LoadProcedure,
)
from icecomb.spark.planner.protocol.scans import (
    AggregateFiles,
    DecideFilters,
    NarrowScan,
    PlanScan,
    ReadRows,
)
from icecomb.spark.planner.protocol.streams import LatestOffset, OpenStream, PlanStream, StreamEnd
from icecomb.spark.planner.protocol.tables import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropTable,
    ListTables,
    LoadTable,
    RenameTable,
    StageTable,
    TableExists,
)
from icecomb.spark.planner.protocol.views import (
    AlterView,
    CreateView,
    DropView,
    ListViews,
    LoadView,
    RenameView,
    ReplaceView,
    ViewExists,
)
from icecomb.spark.planner.protocol.writes import (
    AbortStaged,
    AbortWrite,
    BeginWrite,
    CanDeleteWhere,
    CommitStaged,
    CommitWrite,
    DeleteWhere,
    PlanChange,
)
from icecomb.spark.planner.scan.metadata_rows import MetadataRows
from icecomb.spark.planner.scan.push_down import PushDown
from icecomb.spark.planner.scan.scan import Scans
from icecomb.spark.planner.session.session_work import PendingWorks
from icecomb.spark.planner.streams import Streams
from icecomb.spark.planner.table.catalogs import Catalogs
from icecomb.spark.planner.table.states import TableStates
from icecomb.spark.planner.table.tables import StagedTables, Tables
from icecomb.spark.planner.table.views import PlannerViews
from icecomb.spark.planner.transport import Answer, Handler
from icecomb.spark.planner.write.deletes import Deletes
from icecomb.spark.planner.write.write import Writes

Q = TypeVar("Q", bound=Request)


def handlers() -> dict[str, Handler]:
    """Return the handler of every method by name, over one set of open catalogs."""
    catalogs = Catalogs()
    states = TableStates(catalogs)
    staged = StagedTables()
    tables = Tables(catalogs, states, staged)
    views = PlannerViews(catalogs)
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
            _served(OpenCatalog, catalogs.open_catalog),
            _served(ListNamespaces, catalogs.list_namespaces),
            _served(LoadNamespace, catalogs.load_namespace),
            _served(CreateNamespace, catalogs.create_namespace),
            _served(AlterNamespace, catalogs.alter_namespace),
            _served(DropNamespace, catalogs.drop_namespace),
            _served(ListTables, tables.list_tables),
            _served(TableExists, tables.table_exists),
            _served(LoadTable, tables.load_table),
            _served(CreateTable, tables.create_table),
            _served(CreateTableLike, tables.create_table_like),
            _served(StageTable, tables.stage_table),
            _served(AlterTable, tables.alter_table),
            _served(DropTable, tables.drop_table),
            _served(RenameTable, tables.rename_table),
            _served(ListViews, views.list_views),
            _served(ViewExists, views.view_exists),
            _served(LoadView, views.load_view),
            _served(CreateView, views.create_view),
            _served(ReplaceView, views.replace_view),
            _served(AlterView, views.alter_view),
            _served(DropView, views.drop_view),
            _served(RenameView, views.rename_view),
            _served(ListProcedures, procedures.list_procedures),
            _served(LoadProcedure, procedures.load_procedure),
            _served(CallProcedure, procedures.call_procedure),
            _served(EndWork, procedures.end_work),
            _served(DecideFilters, push_down.decide_filters),
            _served(AggregateFiles, push_down.aggregate_files),
            _served(PlanScan, scans.plan_scan),
            _served(NarrowScan, scans.narrow_scan),
            _served(OpenStream, streams.open_stream),
            _served(StreamEnd, streams.stream_end),
            _served(LatestOffset, streams.latest_offset),
            _served(PlanStream, streams.plan_stream),
            _served(ReadRows, metadata_rows.read_rows),
            _served(PlanChange, writes.plan_change),
            _served(BeginWrite, writes.begin_write),
            _served(CommitWrite, writes.commit_write),
            _served(AbortWrite, writes.abort_write),
            _served(CommitStaged, writes.commit_staged),
            _served(AbortStaged, writes.abort_staged),
            _served(LoadChangelog, changelogs.load_changelog),
            _served(CanDeleteWhere, deletes.can_delete_where),
            _served(DeleteWhere, deletes.delete_where),
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
