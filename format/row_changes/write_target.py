"""The table metadata and branch that a change is written for, and the change to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow.compute as pc

from icecomb.format.argument import checked_text
from icecomb.format.arrow.number_view import mask_of
from icecomb.format.errors import ConfigurationError
from icecomb.format.expressions.binding import ColumnNames
from icecomb.format.expressions.expression import AlwaysFalse, AlwaysTrue, BooleanExpression
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.conflict import History, VectorConflictError
from icecomb.format.operation.file_match import FileMatcher
from icecomb.format.operation.snapshot_producer import (
    WrittenWith,
    check_branch_columns,
    check_no_ids_since,
)
from icecomb.format.property.table_property import ISOLATION_LEVEL, ROW_LEVEL_MODE
from icecomb.format.rows.values.metadata_columns import bind_rows, filter_columns
from icecomb.format.scan.delete_index import partition_keys
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.change.update import Changes
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.operation.snapshot_producer import SnapshotProducer
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.scan.delete_index import PartitionKey
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class WrittenChange:
    """A change whose data and delete files are written, but which is not yet committed.

    The new files are deleted if nothing was committed.

    Attributes:
        written_with: The schema and specs that the files were written with; the files are
            refused if the table has given these another meaning.
        data_files_removed: The number of data files that the table loses.
        without_ids: Whether rows without ids were moved to the new data files.
    """

    producer: SnapshotProducer
    written_with: WrittenWith
    data_files: Sequence[DataFile] = ()
    delete_files: Sequence[DataFile] = ()
    data_files_removed: int = 0
    without_ids: bool = False
    writes_files: ClassVar[bool] = True

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """The branch and starting snapshot; see `SnapshotProducer.starting_point`."""
        return self.producer.starting_point

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `SnapshotProducer.apply`.

        It raises VectorConflictError if the table takes no position delete files any more.
        """
        self.producer.check_not_committed(base)
        self.written_with.check(base)
        self.written_with.check_nulls(base, self.producer.added_data_files)
        if base.format_version >= 3 and any(not f.is_deletion_vector for f in self.delete_files):
            raise VectorConflictError(
                f"The table was upgraded to format version {base.format_version}, where rows are "
                "deleted by deletion vectors, after position delete files had been written",
                hint="Load the table again and repeat the change.",
            )
        if self.without_ids and self.starting_point is not None:
            check_no_ids_since(base, *self.starting_point)
        return self.producer.apply(base)

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Delete the files that are not used, including the data and delete files."""
        self.producer.clean_up(committed)
        if committed is None and not self.producer.is_committed:
            written = (*self.data_files, *self.delete_files)
            self.producer.io.discard(dict.fromkeys(file.file_path for file in written))


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """A branch of a table as it was when the operation began."""

    io: FileIO
    metadata: TableMetadata
    branch: str = MAIN_BRANCH
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = True

    @property
    def written_with(self) -> WrittenWith:
        """The schema and specs that an operation writes files with."""
        return WrittenWith.of(self.metadata)

    def snapshot(self) -> Snapshot | None:
        """Return the head of the branch; None if the table is empty."""
        return self._scan(AlwaysTrue()).snapshot()

    def check_branch_columns(self) -> None:
        """Refuse a branch that is read with other columns than the table now has."""
        check_branch_columns(self.metadata, self.start(), self.branch)

    def bound(self, row_filter: BooleanExpression) -> BooleanExpression:
        """Return a filter bound to the table's columns, and to those of row lineage."""
        schema = self.metadata.schema()
        return bind_rows(self.metadata, schema, row_filter, case_sensitive=self.case_sensitive)

    def start(self) -> Snapshot | None:
        """Return the head of the branch, or of main if the commit will create the branch."""
        branch = checked_text("name of a branch", self.branch)
        name = branch if branch in self.metadata.refs else MAIN_BRANCH
        return self.metadata.snapshot_by_name(name)

    def snapshot_id(self) -> int | None:
        """Return the id of `snapshot`."""
        snapshot = self.snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    def tasks(
        self, row_filter: BooleanExpression, *, unread: bool = False
    ) -> Iterator[FileScanTask]:
        """Yield the data files that may hold matching rows, with their deletes.

        Args:
            unread: Whether no row of the files will be read.
        """
        scan = self._scan(row_filter)
        return (replace(scan, selected_fields=()) if unread else scan).plan_files()

    def wholly_matching(self, row_filter: BooleanExpression) -> set[tuple[str, PartitionKey]]:
        """Return the data files whose every row matches, by metrics and partitions.

        Each comes with its partition, as a file may be in several partitions.
        """
        snapshot = self.snapshot()
        if snapshot is None:
            return set()
        matcher = FileMatcher(
            self.io, self.metadata, row_filter, case_sensitive=self.case_sensitive
        )
        manifests = [
            manifest
            for manifest in read_manifests(self.io, snapshot)
            if manifest.content is ManifestContent.DATA and matcher.might_contain(manifest)
        ]
        found: set[tuple[str, PartitionKey]] = set()
        for columns in matcher.read(manifests):
            _, must = matcher.match(columns)
            rows = pc.indices_nonzero(pc.and_(columns.live, mask_of(must)))
            paths = columns.column("file_path").take(rows).to_pylist()
            found.update(zip(paths, partition_keys(columns, rows), strict=True))
        return found

    def is_serializable(self, command: str) -> bool:
        """Return whether added data conflicts, by property `write.<command>.isolation-level`."""
        return ISOLATION_LEVEL[command].of(self.metadata.properties) == "serializable"

    def merges_on_read(self, command: str) -> bool:
        """Return whether rows are deleted by delete files, by property `write.<command>.mode`."""
        mode = ROW_LEVEL_MODE[command]
        if mode.of(self.metadata.properties) == "copy-on-write":
            return False
        if self.metadata.format_version < 2:
            raise ConfigurationError(
                f"{mode.key}=merge-on-read: a table of format version 1 has no delete files",
                hint=f"Upgrade the table to version 2, or set {mode.key} to copy-on-write.",
            )
        return True

    def _scan(self, row_filter: BooleanExpression) -> TableScan:
        scan = TableScan(self.metadata, self.io, row_filter, case_sensitive=self.case_sensitive)
        return scan.use_ref(self.branch)


@dataclass(frozen=True, slots=True)
class NoChange:
    """The finding that there is nothing to change, with what commits of others may make it wrong.

    A transaction commits it with its changes: nothing is changed by it, only checked.

    Attributes:
        rows: The filter of the change: commits about other rows make no difference.
        serializable: Whether the isolation level asks for the check.
        relied_on: Data files for whose rows others were not added; they must not lose rows.
        start: The snapshot that the transaction began with, after which commits are looked at.
        own: The ids of the transaction's own snapshots, which are not looked at.
    """

    target: WriteTarget
    rows: BooleanExpression
    serializable: bool
    relied_on: Sequence[DataFile] = ()
    by_lineage: bool = False
    start: int | None = None
    own: frozenset[int] = frozenset()
    starting_point: None = None
    writes_files: ClassVar[bool] = False

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `Producer.apply`: there are no changes, only a check for conflicts."""
        branch = self.target.branch
        head = base.snapshot_by_name(branch if branch in base.refs else MAIN_BRANCH)
        history = History(self.target.io, base, head, self.start, self.own)
        if history.snapshots and not isinstance(self.rows, AlwaysFalse):
            history.no_new_data(self._named(base))
        if history.snapshots and self.relied_on:
            history.files_exist([file.file_path for file in self.relied_on])
            history.no_new_deletes_for(self.relied_on)
        if history.snapshots and self.by_lineage:
            check_no_ids_since(base, branch, self.start)
        return Changes((), ())

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Implement `Producer.clean_up`: no files were written."""

    def _named(self, base: TableMetadata) -> BooleanExpression:
        """Return the filter with the current names of its columns."""
        seen = filter_columns(self.target.metadata.schema())
        names = ColumnNames(seen, self.target.case_sensitive)
        return names.now(self.rows, filter_columns(base.schema()))
