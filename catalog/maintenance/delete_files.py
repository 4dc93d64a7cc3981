"""Rewriting of delete files: position deletes combined, equality deletes converted to these."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from icecomb.catalog.maintenance.compaction import RewriteRequest, check_is_branch
from icecomb.catalog.maintenance.rewrite_run import RewriteRun
from icecomb.catalog.report.progress import SILENT, Progress
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.maintenance.delete_replacement import DeleteReplacement
from icecomb.format.maintenance.equality_conversion import (
    EqualityConverter,
    EqualityGroup,
    plan_conversion,
)
from icecomb.format.maintenance.file_group import RewriteGroup
from icecomb.format.maintenance.position_deletes import PositionDeletePlan, PositionDeleteRewriter
from icecomb.format.maintenance.rewrite_options import PackingOptions
from icecomb.format.maintenance.rewritten_deletes import DeleteGroup, RewrittenDeletes
from icecomb.format.maintenance.vector_conversion import VectorConverter, VectorGroup, plan_vectors
from icecomb.format.scan.scan_planner import ScanPlanner
from icecomb.format.scan.table_scan import TableScan

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.maintenance.rewrite_commit import RewriteStart
    from icecomb.format.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PlannedDeletes:
    """A group of delete files that would be rewritten.

    Attributes:
        partition: The files' partition path; "" without one.
        data_files: Number of data files read for them.
        size: Bytes of the delete files.
    """

    partition: str
    delete_files: int
    data_files: int
    size: int
    deletes: int


@dataclass(frozen=True, slots=True)
class RewrittenDeleteFiles:
    """The result of rewriting delete files.

    Attributes:
        rewritten_delete_files_count: Replaced delete files.
        added_delete_files_count: New position delete files.
        rewritten_bytes_count: Bytes of the replaced files.
        added_bytes_count: Bytes of the new files.
        failed_delete_files_count: Files of groups that could not be rewritten, or not be committed.
        plan: The groups of a dry run.
    """

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    failed_delete_files_count: int = 0
    plan: tuple[PlannedDeletes, ...] = ()


@dataclass(frozen=True, slots=True)
class ConvertedDeleteFiles(RewrittenDeleteFiles):
    """The result of converting equality deletes.

    Attributes:
        rewritten_equality_delete_files_count: Replaced equality delete files.
    """

    rewritten_equality_delete_files_count: int = 0


def rewrite_position_delete_files(
    table: Table, request: RewriteRequest, *, dry_run: bool, progress: Progress = SILENT
) -> RewrittenDeleteFiles:
    """Run `Maintenance.rewrite_position_delete_files`."""
    run = _PositionRun(table.refresh(), request, progress)
    return RewrittenDeleteFiles(**run.results(dry_run=dry_run))


def convert_equality_deletes(
    table: Table, request: RewriteRequest, *, dry_run: bool, progress: Progress = SILENT
) -> ConvertedDeleteFiles:
    """Run `Maintenance.convert_equality_deletes`."""
    run = _EqualityRun(table.refresh(), request, progress)
    found = run.results(dry_run=dry_run)
    converted = found.get("rewritten_delete_files_count", 0)
    return ConvertedDeleteFiles(**found, rewritten_equality_delete_files_count=converted)


G = TypeVar("G", bound=DeleteGroup)


class _DeleteRun(RewriteRun[G, RewrittenDeletes]):
    """One rewrite of a table's delete files."""

    def __init__(
        self, table: Table, request: RewriteRequest, options: PackingOptions, progress: Progress
    ) -> None:
        super().__init__(table, request.branch, options, progress)
        self._request = request
        self._operation_id = str(uuid.uuid4())
        # report errors before any work
        check_is_branch(table.metadata, request.branch, self._name)
        self._scan().bound_filter()

    @abstractmethod
    def plan(self, head: Snapshot, chosen: Collection[str]) -> list[G]:
        """Return the groups of `chosen` files of a snapshot, planned on the current metadata."""

    def results(self, *, dry_run: bool) -> dict[str, Any]:
        """Run the rewrite, or only plan it; return the fields of the result."""
        head, chosen = self._chosen()
        groups = self.plan(head, chosen) if head is not None and chosen else []
        if dry_run:
            return {"plan": tuple(map(self._planned, groups))}
        if groups:
            self.rewrite(groups)
        added = [file for one in self.rewritten for file in one.files]
        return {
            "rewritten_delete_files_count": sum(len(one.group.tasks) for one in self.rewritten),
            "added_delete_files_count": len(added),
            "rewritten_bytes_count": sum(one.group.size for one in self.rewritten),
            "added_bytes_count": sum(
                file.file_size_in_bytes
                if file.content_size_in_bytes is None
                else file.content_size_in_bytes
                for file in added
            ),
            "failed_delete_files_count": self.failed_files,
        }

    def plan_again(self, groups: Sequence[G]) -> list[G]:
        head = self._scan().snapshot()
        again = {delete.file_path for group in groups for delete in group.tasks}
        return [] if head is None else self.plan(head, again)

    def replacement(
        self, start: RewriteStart, done: Sequence[RewrittenDeletes]
    ) -> DeleteReplacement:
        return DeleteReplacement(self._table.io, start, done, self._request.snapshot_properties)

    def _chosen(self) -> tuple[Snapshot | None, set[str]]:
        """Return the branch's head, and the delete files of partitions that may hold such rows."""
        scan = self._scan()
        head = scan.snapshot()
        if head is None:
            return None, set()
        planner = ScanPlanner(scan.metadata, scan.io, scan.schema(), scan.bound_filter())
        _, index = planner.live(head)
        return head, {file.file_path for file in index.files}

    def _scan(self) -> TableScan:
        request, table = self._request, self._table
        where = AlwaysTrue() if request.where is None else request.where
        scan = TableScan(table.metadata, table.io, where, case_sensitive=request.case_sensitive)
        return scan.use_ref(request.branch)

    def _planned(self, group: G) -> PlannedDeletes:
        """Describe a group for people."""
        metadata = self._table.metadata
        spec = metadata.spec_by_id(group.tasks[0].file.spec_id)
        return PlannedDeletes(
            spec.partition_to_path(group.partition, metadata.schema()) if group.partition else "",
            len(group.tasks),
            len(group.data) if isinstance(group, EqualityGroup | VectorGroup) else 0,
            group.size,
            group.record_count,
        )


class _PositionRun(_DeleteRun[DeleteGroup]):
    """One rewrite of position delete files."""

    def __init__(self, table: Table, request: RewriteRequest, progress: Progress) -> None:
        properties = table.metadata.properties
        options = PackingOptions.of_position_deletes(request.options, properties)
        super().__init__(table, request, options, progress)
        self._plan: PositionDeletePlan | None = None

    def plan(self, head: Snapshot, chosen: Collection[str]) -> list[DeleteGroup]:
        table, options = self._table, self._grouping
        if table.metadata.format_version >= 3:
            return plan_vectors(table.io, table.metadata, head, chosen, options)
        if self._plan is not None:  # planned again: whatever is left of a group
            properties = table.metadata.properties
            again = {**self._request.options, "rewrite-all": "true"}
            options = PackingOptions.of_position_deletes(again, properties)
        self._plan = PositionDeletePlan(table.io, table.metadata, head, chosen, options)
        return self._plan.groups

    def rewriter(
        self,
        groups: Sequence[DeleteGroup],  # noqa: ARG002 - ages were looked up with the plan
    ) -> Callable[[int, RewriteGroup[Any], int], RewrittenDeletes]:
        table = self._table
        if table.metadata.format_version >= 3:
            return VectorConverter(table.io, table.metadata, self._operation_id).rewrite
        assert self._plan is not None  # noqa: S101 - there are groups
        return PositionDeleteRewriter(
            table.io, self._written_by(), self._operation_id, self._plan.ages
        ).rewrite


class _EqualityRun(_DeleteRun[EqualityGroup]):
    """One conversion of equality delete files."""

    def __init__(self, table: Table, request: RewriteRequest, progress: Progress) -> None:
        properties = table.metadata.properties
        options = PackingOptions.of_equality_deletes(request.options, properties)
        super().__init__(table, request, options, progress)

    def plan(self, head: Snapshot, chosen: Collection[str]) -> list[EqualityGroup]:
        table = self._table
        return plan_conversion(table.io, table.metadata, head, chosen, self._grouping)

    def rewriter(
        self,
        groups: Sequence[EqualityGroup],  # noqa: ARG002 - each has its data files
    ) -> Callable[[int, EqualityGroup, int], RewrittenDeletes]:
        return EqualityConverter(self._table.io, self._written_by(), self._operation_id).rewrite
