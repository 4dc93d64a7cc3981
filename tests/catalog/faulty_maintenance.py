"""Actions of maintenance behind a faulty network: see `faulty_operations`.

Rows stay as they are, whatever is said. What was written for a commit of unknown outcome must stay:
a late request would make it the table's.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import pyarrow as pa
from faulty_operations import Commit, Operation
from maintained_table import ALL, delete_by_value

from icecomb.catalog.commit.commit_status import CommitState
from icecomb.format.errors import CommitStateUnknownError


class _Rewrite(Commit):
    """A table of four files, position deletes and equality deletes; a new one for each case."""

    length = 1

    def prepare(self) -> None:
        super().prepare()
        with self.table.transaction() as all_at_once:
            all_at_once.set_properties({"write.delete.mode": "merge-on-read"})
            for first in (1, 3, 5, 7):
                all_at_once.append(pa.table({"id": pa.array([first, first + 1], pa.int64())}))
            for row in (2, 4):
                all_at_once.delete(f"id = {row}")
        delete_by_value(self.table, 6)
        self.before = len(self.table.refresh().snapshots())

    def commits(self) -> int:
        """How many there were; all rows are there."""
        table = self.world.direct.load_table(self.name)
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 5, 7, 8]
        return len(table.snapshots()) - self.before

    def happened(self) -> bool:
        found = self.commits()
        assert found in {0, 1}
        return bool(found)


class RewriteDataFiles(_Rewrite):
    def act(self) -> None:
        assert self.table.maintenance.rewrite_data_files(options=ALL).added_data_files_count == 1


class RewriteInParts(_Rewrite):
    """Two commits, of which each may fail by itself: the other is made all the same."""

    result: Any = None

    def act(self) -> None:
        options = {"max-file-group-input-files": "2", "partial-progress.enabled": "true"}
        self.result = None
        self.result = self.table.maintenance.rewrite_data_files(options={**ALL, **options})

    def happened(self) -> bool:
        found = self.commits()
        if self.result is None:
            return bool(found)
        assert self.result.rewritten_data_files_count == 2 * found
        assert self.result.failed_data_files_count == 4 - 2 * found
        return True

    def verdict(self, error: CommitStateUnknownError) -> CommitState | None:  # noqa: ARG002
        """It is asked about one of two commits."""
        return None


class RewritePositionDeletes(_Rewrite):
    """In version 3 they become vectors: version 2 left them."""

    properties: ClassVar[dict[str, str]] = {"format-version": "2"}

    def prepare(self) -> None:
        super().prepare()
        with self.table.update_properties() as update:
            update.set("format-version", self.world.version)

    def act(self) -> None:
        done = self.table.maintenance.rewrite_position_delete_files(options=ALL)
        assert done.rewritten_delete_files_count == 2


class ConvertEqualityDeletes(_Rewrite):
    def act(self) -> None:
        done = self.table.maintenance.convert_equality_deletes()
        assert done.rewritten_equality_delete_files_count == 1


class ComputeTableStats(Commit):
    """Statistics that are set are there; `needed_files` has their file."""

    length = 1

    def prepare(self) -> None:
        super().prepare()
        self.table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
        self.snapshot_id = self.table.metadata.snapshots[0].snapshot_id

    def act(self) -> None:
        assert self.table.maintenance.compute_table_stats().statistics_file

    def happened(self) -> bool:
        metadata = self.world.metadata(self.name)
        assert metadata is not None
        found = [file["snapshot-id"] for file in metadata.get("statistics", ())]
        assert found in ([], [self.snapshot_id])
        return bool(found)


MAINTENANCE: Final[dict[str, type[Operation]]] = {
    "rewrite-data-files": RewriteDataFiles,
    "rewrite-in-parts": RewriteInParts,
    "rewrite-position-deletes": RewritePositionDeletes,
    "convert-equality-deletes": ConvertEqualityDeletes,
    "compute-table-stats": ComputeTableStats,
}
