"""Rewriting of data files: small ones are combined, deletes applied, rows sorted if wanted.

Each group of files is rewritten by itself. Concurrent changes of its files are applied to the new
ones at the commit; where that is impossible, only that group is rewritten again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from icecomb.catalog.maintenance.engine import (
    Engine,
    RewriteEngine,
    RewriteJob,
    is_for_session,
    rewritten_by,
)
from icecomb.catalog.maintenance.rewrite_run import RewriteRun
from icecomb.catalog.report.progress import SILENT, Progress
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.maintenance.dangling_deletes import DanglingDeletesRemoval
from icecomb.format.maintenance.file_group import FileGroup, plan_groups
from icecomb.format.maintenance.file_rewriter import FileRewriter, RewrittenGroup
from icecomb.format.maintenance.rewrite_commit import RewriteCommit, RewriteStart
from icecomb.format.maintenance.rewrite_options import RewriteOptions, Strategy
from icecomb.format.maintenance.row_group_copier import SourceMetrics, is_large_enough
from icecomb.format.maintenance.row_order import ZOrder, parse_order, row_order, z_order
from icecomb.format.operation import snapshot_producer as written_schema
from icecomb.format.property.table_property import LOCAL_LIMIT
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.own_folders import OwnFolders, outside_text
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.spec.sort import SortOrder

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.expressions.filter_argument import RowFilter
    from icecomb.format.maintenance.row_order import RowOrder
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedRewrite:
    """A group of files that would be rewritten.

    Attributes:
        partition: The files' partition path; "" without one, or for files of older specs.
        delete_files: Number of delete files that apply to them.
        size: Bytes of the files.
        rows: Number of rows, deleted ones included.
    """

    partition: str
    files: int
    delete_files: int
    size: int
    rows: int
    expected_files: int


@dataclass(frozen=True, slots=True)
class RewrittenDataFiles:
    """The result of a rewrite.

    Attributes:
        rewritten_data_files_count: Replaced files.
        added_data_files_count: New files.
        rewritten_bytes_count: Bytes of the replaced files.
        failed_data_files_count: Files of groups that could not be rewritten, or not be committed.
        removed_delete_files_count: Removed delete files that no longer applied to anything.
        plan: The groups of a dry run.
    """

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    plan: tuple[PlannedRewrite, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """The arguments of a rewrite.

    Attributes:
        strategy: `binpack` or `sort`; None derives it from the order.
        sort_order: The order as text; None for the table's.
        where: Filter of the files: only those that may hold matching rows.
        session: The session that rewrites if this machine does not; None without one.
    """

    strategy: str | None = None
    sort_order: str | None = None
    where: RowFilter | None = None
    branch: str = MAIN_BRANCH
    options: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = True
    snapshot_properties: Mapping[str, str] | None = None
    engine: Engine = Engine.AUTO
    session: RewriteEngine | None = None


def rewrite_data_files(
    table: Table, request: RewriteRequest, *, dry_run: bool, progress: Progress = SILENT
) -> RewrittenDataFiles:
    """Run `Maintenance.rewrite_data_files`."""
    run = _Run(table.refresh(), request, progress)
    groups = run.plan()
    run.choose_engine(groups)
    run.warn_of_others(groups)
    if dry_run:
        return RewrittenDataFiles(plan=tuple(map(run.planned, groups)))
    if groups:
        run.rewrite(groups)
    if run.options.remove_dangling_deletes:
        removal = DanglingDeletesRemoval(table.io, request.branch, request.snapshot_properties)
        table.commit(removal)
        run.removed_delete_files = removal.removed
    return run.result()


class _Run(RewriteRun[FileGroup, RewrittenGroup]):
    """One rewrite of a table's files."""

    def __init__(self, table: Table, request: RewriteRequest, progress: Progress) -> None:
        self._request = request
        metadata = table.metadata
        order = request.sort_order
        self._order = (
            None
            if order is None
            else parse_order(order, metadata.schema(), case_sensitive=request.case_sensitive)
        )
        self._strategy = _strategy(request.strategy, self._order)
        self.options = RewriteOptions.read(request.options, self._strategy, metadata.properties)
        super().__init__(table, request.branch, self.options, progress)
        self._operation_id = str(uuid.uuid4())
        self.removed_delete_files = 0
        self._session: RewriteEngine | None = None
        self._spec = self._output_spec(metadata)
        # report errors before any work
        self._row_order(metadata, self._spec)
        check_is_branch(metadata, request.branch, self._name)

    def plan(self, among: Iterable[str] | None = None) -> list[FileGroup]:
        """Return the file groups of the current snapshot; `among` only, whatever their sizes."""
        metadata = self._table.metadata
        if among is None:
            tasks: Iterable[FileScanTask] = self._tasks(metadata)
            return plan_groups(tasks, self.options, self._spec.spec_id)
        wanted = frozenset(among)
        tasks = (task for task in self._tasks(metadata) if task.file_path in wanted)
        chosen = RewriteOptions.read(
            {**self._request.options, "rewrite-all": "true"}, self._strategy, metadata.properties
        )
        return plan_groups(tasks, chosen, self._spec.spec_id)

    def choose_engine(self, groups: Sequence[FileGroup]) -> None:
        """Choose the engine for the whole run; see `is_for_session`."""
        request = self._request
        if is_for_session(
            request.engine,
            request.session,
            groups,
            self._strategy,
            copy=self.options.copy,
            limit=LOCAL_LIMIT.of(self._table.metadata.properties),
        ):
            self._session = request.session

    def warn_of_others(self, groups: Sequence[FileGroup]) -> None:
        """Say which rows a rewrite copies from elsewhere, which the metadata may have made up."""
        table = self._table
        folders = table._own_folders()  # noqa: SLF001 - the table knows its pointer
        own = OwnFolders(folders, table.metadata, table.io.properties)
        paths = (task.file_path for group in groups for task in group.tasks)
        outside = own.outside(paths, names=True)
        if outside:
            _LOG.warning(
                "%s: a rewrite copies the rows of %s into the table, for all who may read it",
                self._name,
                outside_text(outside),
            )

    def planned(self, group: FileGroup) -> PlannedRewrite:
        """Describe a group for people."""
        metadata = self._table.metadata
        path = (
            self._spec.partition_to_path(group.partition, metadata.schema())
            if group.partition
            else ""
        )
        deletes = {file.identity for task in group.tasks for file in task.delete_files}
        return PlannedRewrite(
            path,
            len(group.tasks),
            len(deletes),
            group.size,
            group.record_count,
            group.expected_files,
        )

    def plan_again(self, groups: Sequence[FileGroup]) -> list[FileGroup]:
        return self.plan(task.file_path for group in groups for task in group.tasks)

    def rewriter(
        self, groups: Sequence[FileGroup]
    ) -> Callable[[int, FileGroup, int], RewrittenGroup]:
        metadata = self._table.metadata
        if self._session is not None:
            return self._by_session(self._session, metadata)
        return FileRewriter(
            self._table.io,
            self._written_by(),
            self._spec,
            self._operation_id,
            order=self._row_order(metadata, self._spec),
            copy=self.options.copy,
            sources=self._sources(metadata, groups),
        ).rewrite

    def replacement(self, start: RewriteStart, done: Sequence[RewrittenGroup]) -> RewriteCommit:
        return RewriteCommit(
            self._table.io,
            start,
            done,
            keeps_age=self.options.use_starting_sequence_number,
            snapshot_properties=self._request.snapshot_properties,
            write_properties=self._table.write_properties,
        )

    def result(self) -> RewrittenDataFiles:
        """Return the result so far."""
        return RewrittenDataFiles(
            sum(len(one.group.tasks) for one in self.rewritten),
            sum(len(one.files) for one in self.rewritten),
            sum(one.group.size for one in self.rewritten),
            self.failed_files,
            self.removed_delete_files,
        )

    def _by_session(
        self, session: RewriteEngine, metadata: TableMetadata
    ) -> Callable[[int, FileGroup, int], RewrittenGroup]:
        sorted_by = self._row_order(metadata, self._spec)
        order = None
        if sorted_by is not None:
            order = self._order if isinstance(self._order, SortOrder) else metadata.sort_order()

        def rewrite(number: int, group: FileGroup, workers: int) -> RewrittenGroup:
            del number, workers  # of this machine
            return rewritten_by(
                session,
                RewriteJob(
                    self._table.name(),
                    self._table.io,
                    metadata,
                    group,
                    self._spec,
                    order,
                    0 if sorted_by is None else sorted_by.sort_order_id,
                    self.options.longest_file_bytes,
                ),
            )

        return rewrite

    def _sources(self, metadata: TableMetadata, groups: Sequence[FileGroup]) -> SourceMetrics:
        snapshot = self._scan(metadata).snapshot()
        assert snapshot is not None  # noqa: S101 - there were files
        copied = (group for group in groups if is_large_enough(group, metadata.properties))
        paths = [task.file_path for group in copied for task in group.tasks]
        return SourceMetrics(self._table.io, snapshot, paths)

    def _tasks(self, metadata: TableMetadata) -> Iterator[FileScanTask]:
        return self._scan(metadata).plan_files()

    def _scan(self, metadata: TableMetadata) -> TableScan:
        request = self._request
        where = AlwaysTrue() if request.where is None else request.where
        scan = TableScan(metadata, self._table.io, where, case_sensitive=request.case_sensitive)
        return scan.use_ref(request.branch)

    def _output_spec(self, metadata: TableMetadata) -> PartitionSpec:
        spec_id = self.options.output_spec_id
        if spec_id is None:
            return metadata.spec()
        if spec_id not in metadata.specs():
            raise ValidationError(
                f"{self._name} has no partition spec {spec_id}",
                hint=f"It has: {', '.join(map(str, sorted(metadata.specs())))}.",
            )
        return metadata.spec_by_id(spec_id)

    def _row_order(self, metadata: TableMetadata, spec: PartitionSpec) -> RowOrder | None:
        if self._strategy is Strategy.BIN_PACK:
            return None
        if isinstance(self._order, ZOrder):
            return z_order(
                metadata.schema(),
                spec,
                self._order,
                most_bytes=self.options.z_bytes,
                text_bytes=self.options.z_text_bytes,
            )
        order = metadata.sort_order() if self._order is None else self._order
        return row_order(metadata, spec, order, self._name)


def check_is_branch(metadata: TableMetadata, branch: str, table: str) -> None:
    """Refuse a tag, and a branch that is read with other columns than the table has."""
    ref = metadata.refs.get(branch)
    written_schema.check_branch_columns(metadata, metadata.snapshot_by_name(branch), branch)
    if ref is not None and not ref.is_branch:
        raise ValidationError(
            f"{branch!r} is a tag of {table}: only a branch takes new files",
            hint="Name a branch, or create one from the tag.",
        )


def _strategy(name: str | None, order: object) -> Strategy:
    """Return the strategy of a call, which must take an order if there is one."""
    given = None if name is None else name.strip().lower()
    if given not in {None, "binpack", "sort"}:
        raise ValidationError(
            f"There is no strategy {name!r} to rewrite data files by",
            hint="There are binpack and sort; sort_order may be 'zorder(a, b)'",
        )
    if given == "binpack" and order is not None:
        raise ValidationError(
            "Rewriting by binpack keeps the order of rows: it does not take a sort_order",
            hint="Set strategy to sort, or leave sort_order out.",
        )
    if isinstance(order, ZOrder):
        return Strategy.Z_ORDER
    return Strategy.SORT if order is not None or given == "sort" else Strategy.BIN_PACK
