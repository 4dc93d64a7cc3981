"""Scans: which ranges of which files Spark reads, with what constants and which rows left out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.scan_task import FileScanTask
from icecomb.format.scan.planning_metrics import PlanningMetrics
from icecomb.format.scan.top_rows import TopRows
from icecomb.spark.planner.changes.columns import CHANGELOGS
from icecomb.spark.planner.changes.files import Changelog
from icecomb.spark.planner.changes.planned import ChangedFiles
from icecomb.spark.planner.column_statistics import distinct_values
from icecomb.spark.planner.group_rewrites import named_group
from icecomb.spark.planner.grouping_key import GroupingKey
from icecomb.spark.planner.hadoop_locations import HadoopLocations
from icecomb.spark.planner.partition_columns import partition_columns
from icecomb.spark.planner.planned_files import PlannedFiles, PositionsOfFiles
from icecomb.spark.planner.predicates import row_filter
from icecomb.spark.planner.protocol import (
    NarrowedScan,
    NarrowScan,
    PlanScan,
    ScanPage,
    ScanPlan,
    ScanStatistics,
    Selection,
)
from icecomb.spark.planner.read_options import ReadOptions, check_is_whole
from icecomb.spark.planner.scan_metrics import ScanMetrics
from icecomb.spark.planner.session_work import PendingWorks
from icecomb.spark.planner.split_size import split_size
from icecomb.spark.planner.states import TableState, TableStates

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan


class Scans:
    """The methods of the protocol that plan a scan and make it smaller."""

    def __init__(self, states: TableStates, works: PendingWorks) -> None:
        self._states = states
        self._works = works

    def plan_scan(self, request: PlanScan) -> Generator[ScanPage, None, ScanPlan]:
        """See `PlanScan`: pages are made as they are taken, of files that are made then.

        Raises:
            UnsupportedError: A data or delete file is where Spark cannot open it, or rows that
                options choose are to be replaced.
            ValidationError: Read options contradict each other, or the name of the table.
        """
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
            # the session may have cached an older one, without the group's partitioning
            state = replace(state, metadata=rewrite.job.metadata)
            return (yield from scan_plan(state, rewrite.tasks(), request, ScanMetrics()))
        scan = _scan(state, selection, options)
        if request.changes:
            check_is_whole(state, options)
        begun = time.monotonic()
        metrics = PlanningMetrics()
        tasks = _of_files(_planned(scan, request, metrics), state, request)
        plan = yield from scan_plan(state, tasks, request, ScanMetrics(metrics, begun))
        if not options.reports_column_statistics():
            return plan
        distinct = distinct_values(scan, request.field_ids)
        return replace(plan, statistics=replace(plan.statistics, distinct_values=distinct))

    def narrow_scan(self, request: NarrowScan) -> NarrowedScan:
        """See `NarrowScan`."""
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
    """How Spark reads these files.

    Args:
        state: The table.
        tasks: Whole files; they are taken out.
        request: Which columns are read, and how big partitions are.
        metrics: Of the scan so far.
        planned: Makes what tells Spark of the files, given the size of parts of them.

    Raises:
        UnsupportedError: A data or delete file is where Spark cannot open it.
    """
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
        statistics=ScanStatistics(rows - files.positions.count, total, distinct_values={}),
        vectorized=options.is_vectorized(properties),
        batch_rows=options.batch_rows(properties),
        partition_columns=columns,
        grouping=key.fields,
        locality=options.is_local(on_hdfs=files.on_hdfs),
        metrics=metrics.to_json(),
    )


def _planned(
    scan: TableScan, request: PlanScan, metrics: PlanningMetrics
) -> Iterator[FileScanTask]:
    """The files that have as many rows as are enough."""
    if request.files is not None:
        # some of the files that are enough may not be among those that are read
        return replace(scan, limit=None).plan_files(metrics)
    top = request.top
    if top is None:
        return replace(scan, limit=request.limit).plan_files(metrics)
    rows = TopRows(top.field_id, top.descending, top.nulls_first, top.count)
    return scan.plan_top_files(rows, metrics)


def _of_files(
    tasks: Iterable[FileScanTask], state: TableState, request: PlanScan
) -> deque[FileScanTask]:
    """Those of files that are read."""
    if request.files is None:
        return deque(tasks)
    wanted = frozenset(request.files)
    locations = HadoopLocations(state.io.properties)
    return deque(task for task in tasks if locations.of(task.file_path) in wanted)


def _taken(tasks: deque[FileScanTask]) -> Iterator[FileScanTask]:
    """The tasks; one that was taken is not held any more."""
    while tasks:
        yield tasks.popleft()


def _scan(state: TableState, selection: Selection, options: ReadOptions) -> TableScan:
    """What the query reads."""
    scan = options.scan_of(state)
    predicate = row_filter(
        selection.filters,
        state.schema,
        case_sensitive=selection.case_sensitive,
        read=scan.schema(),
    )
    return scan.filter(predicate)
