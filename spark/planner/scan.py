"""Scans: which ranges of which files Spark reads, with what constants and which rows left out."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import UnsupportedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.metadata_columns import PARTITION
from icecomb.format.rows.scan_task import FileScanTask, plan_task_groups
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.transform import IdentityTransform
from icecomb.spark.planner.delete_files import ReadDeleteFiles, position_delete_files
from icecomb.spark.planner.hadoop_locations import HadoopLocations
from icecomb.spark.planner.metadata_columns import PartitionValues
from icecomb.spark.planner.partition_columns import partition_columns
from icecomb.spark.planner.predicates import row_filter
from icecomb.spark.planner.protocol import (
    FileEntry,
    FileRange,
    NarrowedScan,
    NarrowScan,
    PlannedFile,
    PlanScan,
    ScanPlan,
    ScanStatistics,
)
from icecomb.spark.planner.read_options import ReadOptions
from icecomb.spark.planner.split_size import split_size
from icecomb.spark.planner.states import TableState, TableStates
from icecomb.spark.planner.values import partition_types, value_to_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from icecomb.format.scan.table_scan import TableScan
    from icecomb.format.spec.types import IcebergType

_MOST_POSITIONS: Final = 1 << 20
"""Some MiB of plan: beyond that, tasks read the delete files themselves, once an executor."""


class Scans:
    """The methods of the protocol that plan a scan and make it smaller."""

    def __init__(self, states: TableStates) -> None:
        self._states = states

    def plan_scan(self, request: PlanScan) -> ScanPlan:
        """See `PlanScan`.

        Raises:
            UnsupportedError: A data or delete file is where Spark cannot open it, or rows that
                options choose are to be replaced.
            ValidationError: Read options contradict each other, or the name of the table.
        """
        state = self._states.find(request.reference)
        options = ReadOptions(request.options, request.settings)
        properties = state.metadata.properties
        scan = _scan(state, request, options)
        if request.rewrite:
            _check_is_whole(state, options)
        tasks = list(scan.plan_files())
        total = sum(task.file.file_size_in_bytes for task in tasks)
        size = split_size(properties, options, request.hints, total)
        groups = plan_task_groups(tasks, size.target, size.lookback, size.open_cost)
        deletes = _Deletes(state, tasks)
        files = _Files(state, request, deletes)
        partitions = tuple(tuple(files.range(task) for task in group.tasks) for group in groups)
        mapping = state.metadata.name_mapping()
        return ScanPlan(
            files=tuple(files.planned),
            partitions=partitions,
            deletes=tuple(deletes.encoded),
            delete_files=tuple(files.delete_files.files),
            keys=tuple(files.delete_files.keys),
            name_mapping=None if mapping is None else [f.to_json() for f in mapping.fields],
            statistics=ScanStatistics(
                rows=sum(task.file.record_count for task in tasks) - deletes.count, bytes=total
            ),
            vectorized=options.is_vectorized(properties),
            batch_rows=options.batch_rows(properties),
            partition_columns=partition_columns(state, request.field_ids, tasks),
        )

    def narrow_scan(self, request: NarrowScan) -> NarrowedScan:
        """See `NarrowScan`."""
        state = self._states.find(request.reference)
        scan = _scan(state, request, ReadOptions(request.options, request.settings))
        locations = HadoopLocations(state.io.properties)
        return NarrowedScan(tuple(locations.of(t.file.file_path) for t in scan.plan_files()))


def _check_is_whole(state: TableState, options: ReadOptions) -> None:
    """Refuse to replace other rows than those of the table as it was named.

    Raises:
        UnsupportedError: Options choose others.
    """
    if options.scan_of(state) != state.scan():
        raise UnsupportedError(
            f"Table {state.name}: a statement that changes rows cannot read others by read options",
            hint=f"name the branch: {state.name}.branch_…",
            table=state.name,
        )


def _scan(state: TableState, request: PlanScan | NarrowScan, options: ReadOptions) -> TableScan:
    """What the query reads."""
    scan = options.scan_of(state)
    predicate = row_filter(
        request.filters, state.schema, case_sensitive=request.case_sensitive, read=scan.schema()
    )
    return scan.filter(predicate)


class _Files:
    """The files of a plan, each once however many parts it is read in."""

    def __init__(self, state: TableState, request: PlanScan, deletes: _Deletes) -> None:
        self.planned: list[PlannedFile] = []
        self._metadata = state.metadata
        self._types: dict[int, list[IcebergType]] = {}
        self._deletes = deletes
        self._rewrite = request.rewrite
        self._locations = HadoopLocations(state.io.properties)
        self.delete_files = ReadDeleteFiles(state, self._locations)
        self._constants = _Constants(state, request.field_ids)
        asked = PARTITION.field_id in request.field_ids
        self._partitions = PartitionValues(state.metadata) if asked else None
        # by identity: a task's parts share its file, and every file lives as long as the tasks
        self._places: dict[int, int] = {}

    def range(self, task: FileScanTask) -> FileRange:
        """A part of a file."""
        place = self._places.get(id(task.file))
        if place is None:
            place = self._places[id(task.file)] = len(self.planned)
            self.planned.append(self._plan(task))
        return FileRange(place, task.start, task.length)

    def _plan(self, task: FileScanTask) -> PlannedFile:
        file = task.file
        by_value = self.delete_files.by_value(task)
        compared = (i for d in by_value for i in self.delete_files.keys[d.keys].field_ids)
        return PlannedFile(
            path=self._locations.of(file.file_path),
            format=file.file_format.value.lower(),
            spec_id=file.spec_id,
            constants=self._constants.of(file, compared),
            deletes=self._deletes.index(file),
            position_delete_files=(
                self.delete_files.by_position(task) if self._deletes.too_many else None
            ),
            equality_deletes=by_value,
            partition=None if self._partitions is None else self._partitions.of(file),
            entry=self._entry(task) if self._rewrite else None,
        )

    def _entry(self, task: FileScanTask) -> FileEntry:
        file = task.file
        if file.spec_id not in self._types:
            self._types[file.spec_id] = partition_types(self._metadata, file.spec_id)
        return FileEntry(
            path=file.file_path,
            spec_id=file.spec_id,
            partition=tuple(map(value_to_json, self._types[file.spec_id], file.partition)),
            rows=file.record_count,
            size=file.file_size_in_bytes,
            has_deletes=bool(task.delete_files),
        )


class _Constants:
    """Values of identity partition columns, from the manifest: files may lack the column."""

    def __init__(self, state: TableState, read_ids: Sequence[int]) -> None:
        self._state = state
        self._read_ids = frozenset(read_ids)
        self._specs = state.metadata.specs()
        self._sources: dict[int, list[tuple[int, int]]] = {}

    def of(self, file: DataFile, more: Iterable[int] = ()) -> dict[str, Any]:
        """The constants of a file, by field id as text.

        Args:
            file: The file.
            more: Ids of columns that are read besides; they may have been dropped.
        """
        if file.spec_id not in self._sources:
            self._sources[file.spec_id] = _identities(self._specs[file.spec_id])
        wanted = self._read_ids.union(more)
        return {
            str(source): value_to_json(self._type(source), file.partition[position])
            for position, source in self._sources[file.spec_id]
            if source in wanted
        }

    def _type(self, field_id: int) -> IcebergType:
        schema = self._state.schema
        if not schema.contains(field_id):
            schema = self._state.metadata.schema_with(field_id)
        return schema.find_type(field_id)


def _identities(spec: PartitionSpec) -> list[tuple[int, int]]:
    return [
        (position, field.source_id)
        for position, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform)
    ]


class _Deletes:
    """Deleted positions of the scan's files, encoded once a file, unless they are too many."""

    def __init__(self, state: TableState, tasks: Sequence[FileScanTask]) -> None:
        self.encoded: list[str] = []
        self.count = 0
        # by identity: a task's parts share its file, and every file lives as long as the tasks
        self._index: dict[int, int] = {}
        files = {f.file_path: f.record_count for task in tasks for f in position_delete_files(task)}
        self.too_many = sum(files.values()) > _MOST_POSITIONS
        if files and not self.too_many:
            self._read(state, tasks)

    def index(self, file: DataFile) -> int | None:
        """Where the deletes of a file are in `encoded`."""
        return self._index.get(id(file))

    def _read(self, state: TableState, tasks: Sequence[FileScanTask]) -> None:
        from icecomb.format.rows.deletes.position_delete import PositionDeletes

        reader = PositionDeletes(state.io)
        for task in tasks:
            files = position_delete_files(task)
            positions = reader.of(task.file, files) if files else None
            if positions is not None:
                self._index[id(task.file)] = len(self.encoded)
                self.encoded.append(encode_positions(positions))
                self.count += len(positions)


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Sorted distinct positions as base64 of the compressed little-endian int64 differences."""
    import numpy as np

    deltas = np.diff(positions, prepend=np.int64(0)).astype("<i8")
    return base64.b64encode(zlib.compress(deltas.tobytes(), 1)).decode("ascii")
