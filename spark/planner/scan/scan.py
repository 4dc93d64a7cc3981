"""Planning of scans: file ranges that Spark reads, with constants and deleted rows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icecomb.format.errors import UnsupportedError
from icecomb.format.input_limit import whole_number
from icecomb.format.property.table_property import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)
from icecomb.format.rows.values.scan_task import FileScanTask, ScanTaskGroup, plan_task_groups
from icecomb.format.scan.scan_planner import PlanningMetrics
from icecomb.format.scan.top_rows import TopRows
from icecomb.format.spec.transform import BucketTransform, IdentityTransform, TimeTransform
from icecomb.format.spec.types import NANO_TYPES, UUIDType
from icecomb.format.statistics.statistics_file import BLOB_TYPE, newest_statistics
from icecomb.spark.partitioning import spark_transform
from icecomb.spark.planner.changes.files import Changelog, stated_rows
from icecomb.spark.planner.files import (
    HadoopLocations,
    PlannedFiles,
    PositionsOfFiles,
)
from icecomb.spark.planner.protocol.scans import (
    ColumnEstimate,
    GroupingField,
    NarrowedScan,
    NarrowScan,
    PlanScan,
    ScanPage,
    ScanPlan,
    ScanStatistics,
    Selection,
)
from icecomb.spark.planner.scan.predicates import row_filter
from icecomb.spark.planner.scan.read_options import ReadOptions, check_is_whole
from icecomb.spark.planner.session.session_rewrites import named_group
from icecomb.spark.planner.session.session_work import PendingWorks
from icecomb.spark.planner.table.change_columns import CHANGELOGS, CHANGES
from icecomb.spark.planner.table.selectors import MOVED_ROWS
from icecomb.spark.planner.table.states import TableState, TableStates
from icecomb.spark.schema import check_has_type, spark_type
from icecomb.spark.values import shown_to_json, value_to_json

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan
    from icecomb.format.spec.partition import PartitionField, PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import IcebergType
    from icecomb.spark.planner.changes.files import FileChange
    from icecomb.spark.planner.protocol.scans import PlannedFile, SplitHints


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
                    hint="Change rows of the table itself.",
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
                hint="Select _row_id and _last_updated_sequence_number of the table itself.",
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
        selection = request.selection
        state = self._states.find(selection.reference)
        scan = _scan(state, selection, ReadOptions.of_selection(selection))
        locations = HadoopLocations(state.io)
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
    locations = HadoopLocations(state.io)
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


def partition_columns(
    state: TableState, read_ids: Sequence[int], tasks: Iterable[FileScanTask]
) -> tuple[str, ...]:
    """Return the columns to read that partition files of the scan, under any transform.

    As in Iceberg Java, older specs count if files still have them. Fields inside structs are left
    out: Spark supports top-level columns only. A changelog has none: its files are not those of one
    snapshot.
    """
    if state.metadata_table is not None:
        return ()
    specs = {task.spec.spec_id: task.spec for task in tasks}
    sources = {field.source_id for spec in specs.values() for field in spec.fields}
    columns = (field for field in state.schema.fields if field.field_id in sources)
    return tuple(field.name for field in columns if field.field_id in read_ids)


def column_estimates(
    scan: TableScan, field_ids: Iterable[int], rows: int
) -> dict[str, ColumnEstimate]:
    """Return estimates of columns whose number of distinct values is known, by id as text.

    The numbers are those of the scanned snapshot, or of its newest ancestor that has any, for all
    rows: the property `ndv` of a sketch (Puffin specification, ``apache-datasketches-theta-v1``),
    which table metadata repeats; the statistics file is not read. Nulls, minima and maxima are
    those of the files that the scan's filter selects.
    """
    snapshot = scan.snapshot()
    file = newest_statistics(scan.metadata, None if snapshot is None else snapshot.snapshot_id)
    wanted = frozenset(field_ids)
    distinct = {each: number for each, number in _sketched(file or {}) if each in wanted}
    if not distinct:
        return {}
    schema, found = scan.schema(), {}
    for field_id, known in scan.column_ranges(distinct).items():
        kind, nulls = schema.find_type(field_id), known.nulls
        # numbers of the statistics file are older than values that came since
        values = 0 if known.is_empty else max(1, min(distinct[field_id], rows - (nulls or 0)))
        found[str(field_id)] = ColumnEstimate(
            values,
            None if nulls is None else min(nulls, rows),
            shown_to_json(kind, known.lower),
            shown_to_json(kind, known.upper),
        )
    return found


def _sketched(file: Mapping[str, Any]) -> Iterable[tuple[int, int]]:
    """Yield the columns of a statistics file with their numbers."""
    blobs = file.get("blob-metadata")
    for blob in blobs if isinstance(blobs, list) else ():
        match blob:
            case {"type": str(kind), "fields": [int(field_id)], "properties": {"ndv": str(said)}}:
                number = whole_number(said)
                if kind == BLOB_TYPE and number is not None:
                    yield field_id, number


class GroupingKey:
    """The partition fields by which the tasks of a scan are grouped.

    As in Iceberg Java these are the fields shared by all specs of the scan's files, if their column
    is read. Fields that cannot be described to Spark are left out:

    * `truncate`: Spark up to 4.3 supports no transform with an argument but `bucket`, and would
      consider two widths equal;
    * `bucket` of a uuid: Spark sees text, whose bucket differs;
    * `identity` of nanoseconds: Spark sees microseconds, the same of several partitions;
    * fields inside structs: Spark supports top-level columns only.
    """

    def __init__(
        self,
        fields: Sequence[tuple[PartitionField, str, IcebergType]] = (),
        specs: Iterable[PartitionSpec] = (),
    ) -> None:
        self.fields = tuple(
            GroupingField(
                transform=spark_transform(field.transform, [name]),
                type=spark_type(field.transform.result_type(source)),
            )
            for field, name, source in fields
        )
        self._types = [field.transform.result_type(source) for field, _, source in fields]
        ids = [field.field_id for field, _, _ in fields]
        self._places: dict[int, list[int]] = {}
        for spec in specs:
            places = {field.field_id: place for place, field in enumerate(spec.fields)}
            self._places[spec.spec_id] = [places[field_id] for field_id in ids]

    @classmethod
    def of(
        cls, tasks: Iterable[FileScanTask], schema: Schema, read_ids: Iterable[int]
    ) -> GroupingKey:
        """Return the key of the tasks of one scan, for a schema as given to Spark."""
        specs = {task.spec.spec_id: task.spec for task in tasks}
        if not specs:
            return cls()
        columns = {f.field_id: f for f in schema.fields if f.field_id in set(read_ids)}
        first, *others = (specs[spec_id] for spec_id in sorted(specs, reverse=True))
        shared = [
            field
            for field in first.fields
            if field.source_id in columns and all(map(_has(field), others))
        ]
        keyed = [(f, columns[f.source_id].name, columns[f.source_id].field_type) for f in shared]
        return cls([each for each in keyed if _is_known(each[0], each[2])], specs.values())

    def task_groups(
        self, tasks: Iterable[FileScanTask], size: SplitSize
    ) -> Iterator[tuple[tuple[Any, ...], ScanTaskGroup]]:
        """Yield what each Spark task reads, with the JSON of its one value of `fields`."""
        for key, members in self._by_key(tasks):
            values = tuple(map(value_to_json, self._types, key))
            groups = plan_task_groups(members, size.target, size.lookback, size.open_cost)
            for group in groups:
                yield values, group

    def _by_key(
        self, tasks: Iterable[FileScanTask]
    ) -> Iterable[tuple[tuple[Any, ...], Iterable[FileScanTask]]]:
        if not self.fields:
            return [((), tasks)]
        found: dict[tuple[Any, ...], list[FileScanTask]] = {}
        for task in tasks:
            places = self._places[task.spec.spec_id]
            key = tuple(task.file.partition[place] for place in places)
            found.setdefault(key, []).append(task)
        return found.items()


def _has(field: PartitionField) -> Any:
    def check(spec: PartitionSpec) -> bool:
        wanted = (field.field_id, field.source_id, field.transform)
        return any(wanted == (f.field_id, f.source_id, f.transform) for f in spec.fields)

    return check


def _is_known(field: PartitionField, source: IcebergType) -> bool:
    if isinstance(field.transform, BucketTransform):
        return not isinstance(source, UUIDType)
    if isinstance(field.transform, IdentityTransform):
        return source.is_primitive and not isinstance(source, NANO_TYPES)
    return isinstance(field.transform, TimeTransform)


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Parameters of split planning, as in Iceberg's table properties.

    Args:
        target: The target weight of a partition, in bytes.
        open_cost: The least weight of a file, in bytes.
        lookback: The number of partitions that stay open while packing.
    """

    target: int = SPLIT_TARGET_SIZE.default
    open_cost: int = SPLIT_OPEN_FILE_COST.default
    lookback: int = SPLIT_LOOKBACK.default


def split_size(
    properties: Mapping[str, str],
    options: ReadOptions,
    hints: SplitHints,
    total_bytes: int,
) -> SplitSize:
    """Return the sizes of one scan: read option, else session setting, else table property.

    Unless a read option or the session sets a size, a scan smaller than the cluster is split so
    that every core has work.
    """
    open_cost = SPLIT_OPEN_FILE_COST.of(
        properties, _either(options.text("file-open-cost"), hints.open_cost_bytes)
    )
    lookback = SPLIT_LOOKBACK.of(properties, options.text("lookback"))
    chosen = _either(options.text("split-size", "read.split-size"), hints.split_bytes)
    target = SPLIT_TARGET_SIZE.of(properties, chosen)
    if chosen is None and options.is_adaptive(properties):
        share = total_bytes // options.parallelism(max(1, hints.parallelism))
        target = max(1, min(target, max(open_cost, share)))
    return SplitSize(target, open_cost, lookback)


def _either(said: str | None, hint: int | None) -> str | int | None:
    return hint if said is None else said


class ScanMetrics:
    """Numbers of manifests and files scanned, skipped and found by planning.

    Args:
        planning: The metrics of planning, if it was measured.
        begun: The start of planning, in seconds of the monotonic clock; by default now.
    """

    def __init__(self, planning: PlanningMetrics | None = None, begun: float | None = None) -> None:
        self._planning = PlanningMetrics() if planning is None else planning
        self._begun = time.monotonic() if begun is None else begun
        self._data_files = self._data_bytes = self._delete_files = self._delete_bytes = 0

    def add_result(self, tasks: Iterable[FileScanTask], total_bytes: int) -> None:
        """Count the files to read, and the delete files of each, as Iceberg Java does."""
        self._data_bytes += total_bytes
        for task in tasks:
            self._data_files += 1
            if task.delete_files:
                self._delete_files += len(task.delete_files)
                self._delete_bytes += sum(file.content_length for file in task.delete_files)

    def to_json(self) -> dict[str, int]:
        """Return the metrics under Iceberg Java's names, one of which is in the singular."""
        seen = self._planning
        indexed = seen.positional_delete_files + seen.deletion_vectors + seen.equality_delete_files
        return {
            "totalPlanningDuration": round((time.monotonic() - self._begun) * 1000),
            "totalDataManifest": seen.total_data_manifests,
            "scannedDataManifests": seen.scanned_data_manifests,
            "skippedDataManifests": seen.total_data_manifests - seen.scanned_data_manifests,
            "resultDataFiles": self._data_files,
            "skippedDataFiles": seen.skipped_data_files,
            "totalDataFileSize": self._data_bytes,
            "totalDeleteManifests": seen.total_delete_manifests,
            "scannedDeleteManifests": seen.scanned_delete_manifests,
            "skippedDeleteManifests": seen.total_delete_manifests - seen.scanned_delete_manifests,
            "totalDeleteFileSize": self._delete_bytes,
            "resultDeleteFiles": self._delete_files,
            "equalityDeleteFiles": seen.equality_delete_files,
            "indexedDeleteFiles": indexed,
            "positionalDeleteFiles": seen.positional_delete_files,
            "skippedDeleteFiles": seen.skipped_delete_files,
        }


class ChangedFiles(PlannedFiles):
    """The files of a changelog; see `PlannedFiles`."""

    def __init__(
        self, state: TableState, request: PlanScan, log: Changelog, split_size: int
    ) -> None:
        super().__init__(state, request, _ChangedPositions(state, log), split_size)
        self._changes = log.changes
        self._changelog = state.metadata_table or CHANGES
        self._read_ids = {str(field_id) for field_id in request.field_ids}

    def _planned(self, task: FileScanTask) -> PlannedFile:
        change = self._changes[id(task.file)]
        constants = change.constants(self._changelog)
        own = {i: value for i, value in constants.items() if i in self._read_ids}
        planned = super()._planned(task)
        return replace(planned, constants={**planned.constants, **own})


class _ChangedPositions(PositionsOfFiles):
    """Deleted positions that also exclude the unchanged rows of partly changed files."""

    def __init__(self, state: TableState, log: Changelog) -> None:
        super().__init__(state, log.tasks)
        self._changes: Mapping[int, FileChange] = log.changes

    def of(self, task: FileScanTask) -> int | None:
        change = self._changes[id(task.file)]
        if change.rows is None:
            return super().of(task)
        left_out = np.ones(stated_rows(change.file), np.bool_)
        left_out[change.rows] = False
        positions = np.flatnonzero(left_out)
        # if every row of the file changed, there are no positions to send
        return self._keep(positions) if len(positions) else None
