"""What a rewrite began with, and the conflict of some of its groups with what others did since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.errors import ConflictError, NoSuchSnapshotError, ValidationError
from icecomb.format.operation.conflict import History
from icecomb.format.operation.written_schema import WrittenWith

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class GroupConflictError(ConflictError):
    """Groups have to be rewritten again; nothing was committed. `groups` are their numbers."""

    def __init__(self, groups: Mapping[int, str], *, hint: str) -> None:
        super().__init__(
            f"{len(groups)} groups of files were changed while they were rewritten: "
            f"{next(iter(groups.values()))}",
            hint=hint,
        )
        self.groups = frozenset(groups)


@dataclass(frozen=True, slots=True)
class RewriteStart:
    """The state of a table that was read.

    Attributes:
        written_with: The schema and specs of the table, and of new data files.
        name_mapping: What files without ids of columns were read by, if anything.
        snapshot: What was read.
        branch: Whose head it was.
    """

    written_with: WrittenWith
    name_mapping: NameMapping | None
    snapshot: Snapshot
    branch: str

    @classmethod
    def of(cls, metadata: TableMetadata, branch: str) -> RewriteStart:
        """The state of now.

        Raises:
            NoSuchSnapshotError: The branch has no snapshot.
        """
        snapshot = head_of(metadata, branch)
        if snapshot is None:
            raise NoSuchSnapshotError(
                f"Branch {branch!r} of {metadata.location} has no snapshot",
                hint="there is nothing to rewrite",
            )
        return cls(WrittenWith.of(metadata), metadata.name_mapping(), snapshot, branch)

    @property
    def schema(self) -> Schema:
        """The columns of the table."""
        return self.written_with.schema

    def check_names(self, base: TableMetadata, groups: int) -> None:
        """Refuse where names of columns mean something else by now.

        Raises:
            GroupConflictError: Of all groups.
        """
        if base.name_mapping() != self.name_mapping:
            # new files say what their columns are; of others, names said so and say it anew
            why = "the names of columns were mapped to others"
            raise _of_all(groups, why)

    def moved_to(self, io: FileIO, base: TableMetadata, groups: int) -> Snapshot | None:
        """The head of the branch if it is another by now; None where nothing happened.

        Args:
            io: Reads manifests.
            base: The table as it is now.
            groups: How many groups there are.

        Raises:
            GroupConflictError: Of all groups: the head is no descendant of what was read. Rows that
                were read may not be there any more, and others be there again.
        """
        head = head_of(base, self.branch)
        if head is not None and head.snapshot_id == self.snapshot.snapshot_id:
            return None
        try:
            since = History(io, base, head, self.snapshot.snapshot_id).snapshots
        except ValidationError as error:
            raise _of_all(groups, error.message) from error
        if head is None or not since:
            raise _of_all(groups, "the branch was rolled back")
        return head


def _of_all(groups: int, why: str) -> GroupConflictError:
    return GroupConflictError(dict.fromkeys(range(groups), why), hint="rewrite them again")


def head_of(base: TableMetadata, branch: str) -> Snapshot | None:
    """The head of a branch, if it has one."""
    return base.snapshot_by_name(branch) or (base.current_snapshot() if branch == "main" else None)
