"""Planning of scans: file ranges that Spark reads, with constants and deleted rows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.planning_metrics import PlanningMetrics
from icecomb.format.scan.top_rows import TopRows
from icecomb.spark.planner.changes.files import Changelog
from icecomb.spark.planner.changes.planned import ChangedFiles
from icecomb.spark.planner.files.hadoop_locations import HadoopLocations
from icecomb.spark.planner.files.planned_files import PlannedFiles, PositionsOfFiles
from icecomb.spark.planner.protocol.scans import (
    NarrowedScan,
    NarrowScan,
    PlanScan,
    ScanPage,
    ScanPlan,
    ScanStatistics,
    Selection,
)
from icecomb.spark.planner.scan.column_statistics import column_estimates
from icecomb.spark.planner.scan.grouping_key import GroupingKey
from icecomb.spark.planner.scan.partition_columns import partition_columns
from icecomb.spark.planner.scan.predicates import row_filter
from icecomb.spark.planner.scan.read_options import ReadOptions, check_is_whole
from icecomb.spark.planner.scan.scan_metrics import ScanMetrics
from icecomb.spark.planner.scan.split_size import split_size
from icecomb.spark.planner.session.group_rewrites import named_group
from icecomb.spark.planner.session.session_work import PendingWorks
from icecomb.spark.planner.table.change_columns import CHANGELOGS
from icecomb.spark.planner.table.selectors import MOVED_ROWS
from icecomb.spark.planner.table.states import TableState, TableStates
from icecomb.spark.schema import check_has_type

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan


class Scans:
    """The protocol's methods that plan a scan and narrow it."""

    def __init__(self, states: TableStates, works: PendingWorks) -> None:
        self._states = states
        self._works = works

    def plan_scan(self, request: PlanScan) -> Generator[ScanPage, None, ScanPlan]:
        """Answer `PlanScan`: pages, and the files in them, are produced as they are consumed."""
        selection = request.selection
        state = self._states.find(selection.reference)
        options = ReadOptions.of_selection(selection)
        if state.metadata_table in CHANGELOGS:
            if request.changes:
                raise UnsupportedError(
                    f"The changes of table {state.name} cannot be changed",
                    hint="change rows of the table itself",
                    table=state.name,
                )
            given = {key.lower(): text for key, text in selection.options.items()}
            log = Changelog(state, given)
            log.tasks = _of_files(log.tasks, state, request)
            return (
                yield from scan_plan(
                    state,
                    log.tasks,
                    request,
                    ScanMetrics(),
                    lambda size: ChangedFiles(state, request, log, size),
                )
            )
        rewrite = named_group(self._works, options)
        if rewrite is not None:
            rewrite.check(state)
            # the session may have cached older metadata, without the group's partition spec
            state = replace(state, metadata=rewrite.job.metadata)
            return (yield from scan_plan(state, rewrite.tasks(), request, ScanMetrics()))
        if state.moves_rows:
            raise UnsupportedError(
                f"{state.name}.{MOVED_ROWS} is for rewrite_data_files only",
                hint="select _row_id and _last_updated_sequence_number of the table itself",
                table=state.name,
            )
        scan = _scan(state, selection, options)
        if request.changes:
            check_is_whole(state, options)
        begun = time.monotonic()
        metrics = PlanningMetrics()
        tasks = _of_files(_planned(scan, request, metrics), state, request)
        plan = yield from scan_plan(state, tasks, request, ScanMetrics(metrics, begun))
        if not request.estimates_columns or not options.reports_column_statistics():
            return plan
        columns = column_estimates(scan, request.field_ids, plan.statistics.rows)
        return replace(plan, statistics=replace(plan.statistics, columns=columns))

    def narrow_scan(self, request: NarrowScan) -> NarrowedScan:
        """Answer `NarrowScan`."""
        selection = request.selection
        state = self._states.find(selection.reference)
        scan = _scan(state, selection, ReadOptions.of_selection(selection))
        locations = HadoopLocations(state.io.properties)
        return NarrowedScan(tuple(locations.of(t.file.file_path) for t in scan.plan_files()))


def scan_plan(
    state: TableState,
    tasks: deque[FileScanTask],
    request: PlanScan,
    metrics: ScanMetrics,
    planned: Callable[[int], PlannedFiles] | None = None,
) -> Generator[ScanPage, None, ScanPlan]:
    """Plan how Spark reads files.

    Args:
        tasks: The tasks of whole files; they are consumed.
        metrics: The scan's metrics so far.
        planned: A function that returns the files' description, given the split size in bytes.
    """
    _check_columns(state, request)
    options = ReadOptions.of_selection(request.selection)
    properties = state.metadata.properties
    total = sum(task.file_size_in_bytes for task in tasks)
    rows = sum(task.record_count for task in tasks)
    metrics.add_result(tasks, total)
    columns = partition_columns(state, request.field_ids, tasks)
    size = split_size(properties, options, request.hints, total)
    files = (
        PlannedFiles(state, request, PositionsOfFiles(state, tasks), size.target)
        if planned is None
        else planned(size.target)
    )
    key = (
        GroupingKey.of(tasks, state.schema, request.field_ids)
        if options.keeps_partitions_apart() and planned is None
        else GroupingKey()
    )
    for values, group in key.task_groups(files.begun(_taken(tasks)), size):
        files.add(group, values)
        if files.has_page:
            yield files.page()
    yield files.page()
    mapping = state.metadata.name_mapping()
    return ScanPlan(
        name_mapping=None if mapping is None else [f.to_json() for f in mapping.fields],
        statistics=ScanStatistics(rows - files.positions.count, total, columns={}),
        vectorized=options.is_vectorized(properties),
        batch_rows=options.batch_rows(properties),
        partition_columns=columns,
        grouping=key.fields,
        locality=options.is_local(on_hdfs=files.on_hdfs),
        metrics=metrics.to_json(),
    )


def _check_columns(state: TableState, request: PlanScan) -> None:
    """Refuse columns to read that are shown as binary, as Spark has no type for them."""
    schema = state.schema
    for field_id in request.field_ids:
        if schema.contains(field_id):
            check_has_type(schema.find_field(field_id), downcast=state.downcasts)


def _planned(
    scan: TableScan, request: PlanScan, metrics: PlanningMetrics
) -> Iterator[FileScanTask]:
    """Plan the files that hold enough rows for the request's limit."""
    if request.files is not None:
        # files that suffice for the limit may not be among those that are read
        return replace(scan, limit=None).plan_files(metrics)
    top = request.top
    if top is None:
        return replace(scan, limit=request.limit).plan_files(metrics)
    rows = TopRows(top.field_id, top.descending, top.nulls_first, top.count)
    return scan.plan_top_files(rows, metrics)


def _of_files(
    tasks: Iterable[FileScanTask], state: TableState, request: PlanScan
) -> deque[FileScanTask]:
    """Return the tasks of the files that are read."""
    if request.files is None:
        return deque(tasks)
    wanted = frozenset(request.files)
    locations = HadoopLocations(state.io.properties)
    return deque(task for task in tasks if locations.of(task.file_path) in wanted)


def _taken(tasks: deque[FileScanTask]) -> Iterator[FileScanTask]:
    """Yield the tasks, releasing each as it is consumed."""
    while tasks:
        yield tasks.popleft()


def _scan(state: TableState, selection: Selection, options: ReadOptions) -> TableScan:
    """Return the scan of a query, with its filters."""
    scan = options.scan_of(state)
    predicate = row_filter(
        selection.filters,
        state.schema,
        case_sensitive=selection.case_sensitive,
        read=scan.schema(),
    )
    return scan.filter(predicate)
