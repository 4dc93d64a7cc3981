"""Scan planning: manifests are pruned by summaries, files by partitions and metrics.

Filters are evaluated on whole columns of a manifest; only chosen files become Python objects.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import ZERO, integers, mask as constant, scalar
from icecomb.format.arrow.batch_stream import in_order
from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.bound import BoundReference
from icecomb.format.expressions.column_doubts import ColumnDoubts, believed_spec
from icecomb.format.expressions.comparison import ComparableColumn, evaluate, typed_column
from icecomb.format.expressions.expression import AlwaysFalse, AlwaysTrue, BooleanExpression
from icecomb.format.expressions.manifest_metrics import (
    BOUNDS,
    METRICS,
    ManifestMetrics,
    bounded_columns,
    partition_columns,
)
from icecomb.format.expressions.metrics_evaluator import might_match, select_manifests
from icecomb.format.expressions.projection import ResidualEvaluator, project_inclusive
from icecomb.format.manifests.cache import manifest_cache
from icecomb.format.manifests.columns import ManifestColumns, cache_key
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import (
    Batch,
    Fetched,
    decoding_threads,
    fetch_batches,
    read_batch,
    read_each_columns,
    read_manifest_columns,
)
from icecomb.format.rows.values.metadata_columns import LAST_UPDATED, LINEAGE_IDS
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.delete_index import DELETE_STATISTICS, DeleteFileIndex, comparable_columns
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import PrimitiveType
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot


_WORKERS = min(4, os.cpu_count() or 1)
_ChosenDeletes = tuple[ManifestColumns, "list[int] | None", bool]
_FEW = 4
"""`DataFile` objects are built at once when fewer than one in this many entries are chosen."""


@dataclass(frozen=True, slots=True)
class _SpecFilter:
    spec: PartitionSpec
    partition: BooleanExpression
    residuals: ResidualEvaluator


@dataclass(frozen=True, slots=True)
class Selected:
    """The chosen entries of a manifest.

    Attributes:
        columns: The manifest; with bounds if they can rule out equality deletes, and with the
            statistics that were requested.
        rows: Indices of the chosen rows; None for all.
        residuals: The residual filter of each entry; empty when it is the whole filter.
    """

    columns: ManifestColumns
    rows: list[int] | None
    residuals: Sequence[BooleanExpression]

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self.columns) if self.rows is None else len(self.rows)

    def part(self, start: int, end: int) -> Selected:
        """Return the entries from `start` up to, but not including, `end`."""
        if start == 0 and end >= self.count:
            return self
        rows = range(self.count) if self.rows is None else self.rows
        return Selected(self.columns, list(rows[start:end]), self.residuals[start:end])

    def some(self, places: Sequence[int]) -> Selected:
        """Return the entries at the given positions among the chosen ones."""
        rows = range(self.count) if self.rows is None else self.rows
        residuals = [self.residuals[place] for place in places] if self.residuals else ()
        return Selected(self.columns, [rows[place] for place in places], residuals)

    def column(self, name: str) -> pa.Array:
        """Return a column of the manifest, for the chosen entries."""
        return self.chosen(self.columns.column(name))

    def chosen(self, array: pa.Array) -> pa.Array:
        """Return the values of the chosen entries in an array over the whole manifest."""
        return array if self.rows is None else array.take(integers(self.rows))


class _LineageMetrics(ManifestMetrics):
    """Metrics of files, and of row lineage what all files tell: rows are not younger than they."""

    def upper_bound(self, reference: BoundReference) -> ComparableColumn:
        if reference.field_id == LAST_UPDATED.field_id:
            numbers = self._columns.column("file_sequence_number")
            return typed_column(numbers, reference.field_type)
        return super().upper_bound(reference)


class _LazyFiles:
    """The chosen files of one manifest, built together on first access."""

    __slots__ = ("_columns", "_files", "_known", "_rows")

    def __init__(self, columns: ManifestColumns, rows: list[int] | None) -> None:
        self._columns: ManifestColumns | None = columns
        self._rows = rows
        self._files: list[DataFile] = []
        self._known: dict[str, list[Any]] = {}

    def number(self, row: int, name: str) -> int:
        found: int = self._member(row, name)
        return found

    def path(self, row: int) -> str:
        found: str = self._member(row, "file_path")
        return found

    def _member(self, row: int, name: str) -> Any:
        columns = self._columns
        if columns is None:
            return getattr(self._files[row], name)
        values = self._known.get(name)
        if values is None:
            array = columns.column(name)
            chosen = array if self._rows is None else array.take(integers(self._rows))
            values = self._known[name] = chosen.to_pylist()
        return values[row]

    def data_file(self, row: int) -> DataFile:
        columns = self._columns
        if columns is not None:
            self._files = columns.data_files(self._rows)
            self._columns = None
            self._known = {}
        return self._files[row]


class ScanPlanner:
    """A planner of scans with one bound filter; counts are added to `metrics`.

    Args:
        read: Field ids of the columns to read from the chosen files; all by default. Planning fails
            where a file is known to have one of them with another type.
        added_by: Ids of snapshots, to plan only files that they added; all live files by default.
        removed_by: Ids of snapshots, to plan only files that they removed.
        keep: Statistics that `Selected` has in addition to those the filter needs.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        schema: Schema,
        row_filter: BooleanExpression,
        *,
        read: Iterable[int] | None = None,
        added_by: Iterable[int] | None = None,
        removed_by: Iterable[int] | None = None,
        keep: Iterable[str] = (),
        metrics: PlanningMetrics | None = None,
    ) -> None:
        self._metrics = PlanningMetrics() if metrics is None else metrics
        self._metadata = metadata
        self._io = io
        self._schema = schema
        self._filter = row_filter
        changed_by = added_by if removed_by is None else removed_by
        self._changed_by = None if changed_by is None else integers(list(changed_by))
        status = ManifestEntryStatus.ADDED if removed_by is None else ManifestEntryStatus.DELETED
        self._status = scalar(status.value, pa.int32())
        self._keep = tuple(keep)
        self._doubts = ColumnDoubts(metadata, schema)
        self._read = None if read is None else frozenset(read)
        self._specs: dict[tuple[int, frozenset[int]], _SpecFilter] = {}
        self._bounded = bounded_columns(row_filter)
        self._statistics = METRICS if self._bounded is None else BOUNDS if self._bounded else ()

    def plan(self, snapshot: Snapshot, *, limit: int | None = None) -> Iterator[FileScanTask]:
        """Yield the tasks of a snapshot, as they are found.

        Planning stops once the files chosen are certain to hold `limit` matching rows; None for no
        limit.
        """
        if isinstance(self._filter, AlwaysFalse) or limit == 0:
            return
        manifests, deletes = self.live(snapshot)
        yield from self.plan_manifests(manifests, deletes, limit=limit)

    def live(self, snapshot: Snapshot) -> tuple[list[ManifestFile], DeleteFileIndex]:
        """Return a snapshot's manifests with live files, and the deletes that may apply."""
        listed = read_manifests(self._io, snapshot)
        data = sum(m.content is ManifestContent.DATA for m in listed)
        self._metrics.total_data_manifests += data
        self._metrics.total_delete_manifests += len(listed) - data
        manifests = [m for m in listed if m.has_live_files()]
        return manifests, self._index_deletes(self._prune(manifests, ManifestContent.DELETES))

    def plan_manifests(
        self,
        manifests: Sequence[ManifestFile],
        deletes: DeleteFileIndex,
        *,
        limit: int | None = None,
    ) -> Iterator[FileScanTask]:
        """Yield the tasks of the data manifests among these; for `limit` see `plan`."""
        for selected in self.selected(manifests, deletes, limit=limit):
            yield from self.tasks(selected, deletes)

    def selected(
        self,
        manifests: Sequence[ManifestFile],
        deletes: DeleteFileIndex,
        *,
        limit: int | None = None,
    ) -> Iterator[Selected]:
        """Yield the chosen entries, one manifest at a time; see `plan_manifests`."""
        if isinstance(self._filter, AlwaysFalse) or limit == 0:
            return
        missing = limit
        for selected in self._select_all(self._prune(manifests, ManifestContent.DATA), deletes):
            check_wanted()
            self._metrics.scanned_data_manifests += 1
            self._metrics.skipped_data_files += selected.columns.live.true_count - selected.count
            if missing is None or deletes:
                yield selected
                continue
            enough, sure = _first_files(selected, missing)
            yield selected.part(0, enough)
            missing -= sure
            if missing <= 0:
                return

    def _prune(
        self, manifests: Sequence[ManifestFile], content: ManifestContent
    ) -> list[ManifestFile]:
        by_spec: dict[int, list[ManifestFile]] = {}
        for manifest in manifests:
            if manifest.content is content:
                by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
        kept: set[int] = set()
        for spec_id, members in by_spec.items():
            found = self._spec_filter(spec_id, self._doubts.ids)
            kept.update(map(id, select_manifests(members, found.spec, found.partition)))
        return [manifest for manifest in manifests if id(manifest) in kept]

    def _spec_filter(self, spec_id: int, doubted: frozenset[int] = frozenset()) -> _SpecFilter:
        found = self._specs.get((spec_id, doubted))
        if found is None:
            spec = self._metadata.specs().get(spec_id)
            if spec is None:
                raise ValidationError(
                    f"A manifest has partition spec {spec_id}, which the table does not have",
                    hint="The metadata is damaged: read an older snapshot or metadata file.",
                )
            believed = believed_spec(spec, doubted)
            found = self._specs[spec_id, doubted] = _SpecFilter(
                spec,
                project_inclusive(self._filter, believed),
                ResidualEvaluator(self._filter, believed),
            )
        return found

    def _spec(self, spec_id: int) -> PartitionSpec:
        return self._spec_filter(spec_id).spec

    def _index_deletes(self, manifests: Sequence[ManifestFile]) -> DeleteFileIndex:
        chosen: list[_ChosenDeletes] = []
        decoded = read_each_columns(self._io, manifests, self._spec, DELETE_STATISTICS)
        for manifest, columns in zip(manifests, decoded, strict=True):
            found = self._spec_filter(manifest.partition_spec_id, self._doubts.of(columns))
            mask = _and(
                columns.live, evaluate(found.partition, partition_columns(columns, found.spec))
            )
            chosen.append((columns, _rows(mask), found.spec.is_unpartitioned))
            position = scalar(DataFileContent.POSITION_DELETES.value, pa.int32())
            by_position = pc.and_(mask, pc.equal(columns.column("content"), position)).true_count
            vectors = pc.and_(mask, columns.vectors).true_count
            self._metrics.scanned_delete_manifests += 1
            self._metrics.skipped_delete_files += columns.live.true_count - mask.true_count
            self._metrics.positional_delete_files += by_position - vectors
            self._metrics.deletion_vectors += vectors
            self._metrics.equality_delete_files += mask.true_count - by_position
        types = comparable_columns(self._metadata.schemas) if chosen else {}
        cache = manifest_cache(self._io.properties) if chosen else None
        if cache is None:
            return _delete_index(chosen, types)
        keys = (
            (
                cache_key(columns.manifest),
                columns.partition_columns,
                None if rows is None else tuple(rows),
                unpartitioned,
            )
            for columns, rows, unpartitioned in chosen
        )
        key = ("delete index", tuple(types.items()), *keys)
        return cache.derived(key, lambda: _delete_index(chosen, types))

    def _select_all(
        self, manifests: Sequence[ManifestFile], deletes: DeleteFileIndex
    ) -> Iterator[Selected]:
        def columns(manifest: ManifestFile) -> tuple[str, ...]:
            return (*self._statistics, *self._kept(manifest, deletes))

        def select(batch: Batch) -> list[Selected]:
            decoded = read_batch(self._io, batch, self._spec, columns)
            return [self._select(*one, deletes) for one in zip(decoded, batch, strict=True)]

        batches = fetch_batches(self._io, manifests, columns)
        workers = decoding_threads(manifests, _WORKERS)
        yield from chain.from_iterable(in_order(select, batches, workers))

    def _kept(self, manifest: ManifestFile, deletes: DeleteFileIndex) -> tuple[str, ...]:
        return (*self._keep, *(BOUNDS if deletes.may_reach(manifest) else ()))

    def _select(
        self,
        columns: ManifestColumns,
        fetched: Fetched,
        deletes: DeleteFileIndex,
    ) -> Selected:
        manifest, content = fetched
        data = content if isinstance(content, bytes) else None
        doubted = self._doubts.of(columns)
        found = self._spec_filter(manifest.partition_spec_id, doubted)
        keep = self._kept(manifest, deletes)
        if not self._statistics:
            rows = _rows(self._wanted(columns))
            self._doubts.check(columns, rows, self._read)
            return Selected(columns.without_statistics(keep), rows, ())
        partition = partition_columns(columns, found.spec)
        mask = _and(self._wanted(columns), evaluate(found.partition, partition))
        if mask.true_count:
            metrics = _LineageMetrics(columns, doubted | LINEAGE_IDS)
            mask = pc.and_(mask, might_match(self._filter, metrics))
            if self._needs_counts(columns, metrics, mask):
                self._statistics = METRICS  # other manifests are likely to need them, too
                complete = read_manifest_columns(
                    self._io, manifest, (*METRICS, *keep), spec=found.spec, data=data
                )
                return self._select(complete, fetched, deletes)
        rows = _rows(mask)
        self._doubts.check(columns, rows, self._read)
        count = len(columns) if rows is None else len(rows)
        chosen = partition_columns(columns, found.spec, rows)
        residuals = found.residuals.residuals(chosen, count)
        return Selected(columns.without_statistics(keep), rows, residuals)

    def _needs_counts(
        self, columns: ManifestColumns, metrics: ManifestMetrics, mask: pa.BooleanArray
    ) -> bool:
        """Return whether counts that were not read could rule out some of these files."""
        if self._bounded is None or columns.statistics >= set(METRICS):
            return False
        return any(
            pc.and_not(mask, metrics.has_bounds(reference)).true_count
            for reference in self._bounded
        )

    def _wanted(self, columns: ManifestColumns) -> pa.BooleanArray:
        if self._changed_by is None:
            return columns.live
        by_these = pc.is_in(columns.column("snapshot_id"), value_set=self._changed_by)
        return pc.and_(pc.equal(columns.column("status"), self._status), by_these)

    def tasks(self, selected: Selected, deletes: DeleteFileIndex) -> Iterator[FileScanTask]:
        """Yield the tasks of the chosen entries."""
        count = selected.count
        if not count:
            return
        columns, rows = selected.columns, selected.rows
        spec = self._spec_filter(columns.manifest.partition_spec_id).spec
        files = _LazyFiles(columns.without_statistics(), rows)
        if count * _FEW < len(columns):
            files.data_file(0)
        residuals = selected.residuals or (self._filter,) * count
        if not deletes:
            for row, residual in enumerate(residuals):
                yield FileScanTask.lazy(files, row, (), residual, spec)
            return
        found, vectors = deletes.lazy_files_for(columns, rows)
        for row, (others, index, residual) in enumerate(
            zip(found, vectors, residuals, strict=True)
        ):
            vector = None if index < 0 else (deletes, index)
            yield FileScanTask.lazy(files, row, others, residual, spec, vector)


def _delete_index(
    chosen: Iterable[_ChosenDeletes], types: Mapping[int, PrimitiveType]
) -> DeleteFileIndex:
    index = DeleteFileIndex(types)
    for columns, rows, unpartitioned in chosen:
        index.add(columns, rows, unpartitioned=unpartitioned)
    index.settle()
    return index


def _and(
    mask: pa.BooleanArray,
    other: pa.BooleanArray | bool,  # noqa: FBT001 - one answer for all rows
) -> pa.BooleanArray:
    if isinstance(other, bool):
        return mask if other else constant(len(mask), value=False)
    return pc.and_(mask, other)


def _rows(mask: pa.BooleanArray) -> list[int] | None:
    if mask.true_count == len(mask):
        return None
    rows: list[int] = pc.indices_nonzero(mask).to_pylist()
    return rows


def _first_files(selected: Selected, rows: int) -> tuple[int, int]:
    """Return how many first entries make `rows` matching rows certain, and those rows.

    The number is that of all entries if they do not suffice; the rows are what they certainly hold.
    """
    # a negative count means that it is unknown
    counts = pc.max_element_wise(selected.column("record_count"), ZERO)
    if selected.residuals:
        sure = pa.array([isinstance(r, AlwaysTrue) for r in selected.residuals], pa.bool_())
        counts = pc.if_else(sure, counts, ZERO)
    so_far = pc.cumulative_sum(counts)
    short = int(pc.sum(pc.less(so_far, scalar(rows, pa.int64()))).as_py() or 0)
    count = min(short + 1, selected.count)
    return count, int(so_far[count - 1].as_py()) if count else 0


@dataclass(slots=True)
class PlanningMetrics:
    """Counts of one scan, updated by planning and named like Iceberg's scan metrics.

    Manifests that were not scanned were skipped. Skipped files are those in scanned manifests that
    cannot match or apply; the counts by kind of delete are of files that may apply.
    """

    total_data_manifests: int = 0
    scanned_data_manifests: int = 0
    skipped_data_files: int = 0
    total_delete_manifests: int = 0
    scanned_delete_manifests: int = 0
    skipped_delete_files: int = 0
    positional_delete_files: int = 0
    deletion_vectors: int = 0
    equality_delete_files: int = 0
