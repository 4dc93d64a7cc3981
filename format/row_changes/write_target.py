"""The state of a table that an operation reads before it writes, and what it then commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icecomb.format.errors import ConfigurationError
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.file_match import FileMatcher
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.spec.table_property import ISOLATION_LEVEL, ROW_LEVEL_MODE

if TYPE_CHECKING:
    from icecomb.format.operation.snapshot_producer import SnapshotProducer
    from icecomb.format.rows.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class WrittenChange:
    """A change whose data and delete files are written, and which is still to be committed.

    Attributes:
        producer: Makes the snapshot; None when there is nothing to change.
        written: The locations of the files, to be deleted when nothing was committed.
        data_files_added: How many data files are new.
        data_files_removed: How many data files the table loses.
        delete_files_added: How many delete files are new.
    """

    producer: SnapshotProducer | None = None
    written: tuple[str, ...] = ()
    data_files_added: int = 0
    data_files_removed: int = 0
    delete_files_added: int = 0


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """A branch of a table as it was when the operation began.

    Args:
        io: Where its files lie.
        metadata: The table.
        branch: The branch to read and to commit to.
        snapshot_properties: More keys for the snapshot's summary.
        case_sensitive: Whether `Id` and `id` are different columns.
    """

    io: FileIO
    metadata: TableMetadata
    branch: str = MAIN_BRANCH
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = True

    def snapshot(self) -> Snapshot | None:
        """The head of the branch; None while the table is empty.

        Raises:
            NoSuchSnapshotError: There is no such branch.
        """
        return self._scan(AlwaysTrue()).snapshot()

    def snapshot_id(self) -> int | None:
        """The id of `snapshot`."""
        snapshot = self.snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    def tasks(self, row_filter: BooleanExpression) -> Iterator[FileScanTask]:
        """The data files that may hold matching rows, with their deletes.

        Raises:
            ExpressionError: The filter does not fit the schema.
        """
        return self._scan(row_filter).plan_files()

    def wholly_matching(self, row_filter: BooleanExpression) -> set[str]:
        """The data files whose every row matches, as far as metrics and partitions prove it."""
        snapshot = self.snapshot()
        if snapshot is None:
            return set()
        matcher = FileMatcher(
            self.io, self.metadata, row_filter, case_sensitive=self.case_sensitive
        )
        found: set[str] = set()
        for manifest in read_manifests(self.io, snapshot):
            if manifest.content is ManifestContent.DATA and matcher.might_contain(manifest):
                columns = matcher.read(manifest)
                _, must = matcher.match(columns)
                found.update(columns.column("file_path").filter(must).to_pylist())
        return found

    def is_serializable(self, command: str) -> bool:
        """Property `write.<command>.isolation-level`: whether added data is a conflict, too.

        Args:
            command: `delete`, `update` or `merge`.

        Raises:
            ConfigurationError: The level is unknown.
        """
        return ISOLATION_LEVEL[command].of(self.metadata.properties) == "serializable"

    def merges_on_read(self, command: str) -> bool:
        """Property `write.<command>.mode`: whether rows are deleted by delete files.

        Args:
            command: `delete`, `update` or `merge`.

        Raises:
            ConfigurationError: The mode is unknown, or the table's format version has no such
                files.
        """
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
