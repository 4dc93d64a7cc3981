"""The start of a rewrite, and the conflict of some of its groups with later commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.errors import ConflictError, NoSuchSnapshotError, ValidationError
from icecomb.format.operation.conflict import History
from icecomb.format.operation.snapshot_producer import WrittenWith

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class RewriteConflictError(ConflictError):
    """Error raised if groups, by number, have to be rewritten again; nothing was committed."""

    def __init__(self, groups: Mapping[int, str], *, hint: str) -> None:
        super().__init__(
            f"{len(groups)} groups of files were changed while they were rewritten: "
            f"{next(iter(groups.values()))}",
            hint=hint,
        )
        self.groups = frozenset(groups)


@dataclass(frozen=True, slots=True)
class RewriteStart:
    """The state of a table that a rewrite read.

    Attributes:
        written_with: The schema and specs of the table, and of new data files.
    """

    written_with: WrittenWith
    name_mapping: NameMapping | None
    snapshot: Snapshot
    branch: str
    format_version: int

    @classmethod
    def of(cls, metadata: TableMetadata, branch: str) -> RewriteStart:
        """Return the current state of a branch."""
        snapshot = head_of(metadata, branch)
        if snapshot is None:
            raise NoSuchSnapshotError(
                f"Branch {branch!r} of {metadata.location} has no snapshot",
                hint="There is nothing to rewrite.",
            )
        return cls(
            WrittenWith.of(metadata),
            metadata.name_mapping(),
            snapshot,
            branch,
            metadata.format_version,
        )

    @property
    def schema(self) -> Schema:
        """The columns of the table."""
        return self.written_with.schema

    def check_names(self, base: TableMetadata, groups: int) -> None:
        """Check that the name mapping is unchanged, and the format version below 3 if it was.

        It raises RewriteConflictError, for all groups, if one of them has changed.
        """
        if base.name_mapping() != self.name_mapping:
            # new files have field ids; those of the sources came from the mapping, which changed
            why = "the names of columns were mapped to others"
            raise _of_all(groups, why)
        if self.format_version < 3 <= base.format_version:
            # version 3 has deletion vectors instead of position delete files, and ids of rows
            why = f"the table was upgraded to format version {base.format_version}"
            raise _of_all(groups, why)

    def moved_to(self, io: FileIO, base: TableMetadata, groups: int) -> Snapshot | None:
        """Return the head of the branch if it has changed; None if it has not.

        It raises RewriteConflictError, for all groups, if the head does not descend from the
        snapshot that was read.
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


def _of_all(groups: int, why: str) -> RewriteConflictError:
    return RewriteConflictError(dict.fromkeys(range(groups), why), hint="Rewrite them again.")


def head_of(base: TableMetadata, branch: str) -> Snapshot | None:
    """Return the head of a branch, if it has one."""
    return base.snapshot_by_name(branch) or (base.current_snapshot() if branch == "main" else None)
