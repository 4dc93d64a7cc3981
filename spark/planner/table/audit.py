"""Write-audit-publish (WAP): the branch or staged snapshot that a session's changes go to.

As in Iceberg Java: on tables with the property ``write.wap.enabled``, a session with
``spark.wap.id`` stages its changes, which no branch shows before they are published, and one with
``spark.wap.branch`` writes to that branch and reads it once it exists. A statement that names a
branch writes to that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.operation.snapshot_producer import WAP_ID, is_audited
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.protocol.tables import Audit
    from icecomb.spark.planner.protocol.writes import WriteState
    from icecomb.spark.planner.table.states import TableState

_ID: Final = "spark.wap.id"
_BRANCH: Final = "spark.wap.branch"


@dataclass(frozen=True, slots=True)
class CommitTarget:
    """The target of a change: a branch, or a staged snapshot.

    Args:
        branch: The branch; a missing one is created at main's snapshot.
        wap_id: The id to stage the change under; None to commit to the branch.
    """

    branch: str = MAIN_BRANCH
    wap_id: str | None = None

    @classmethod
    def of(cls, write: WriteState) -> CommitTarget:
        """Return the target that was chosen when the write began."""
        return cls(write.branch, write.wap_id)

    @property
    def summary(self) -> dict[str, str]:
        """Summary properties of the snapshot."""
        return {} if self.wap_id is None else {WAP_ID: self.wap_id}

    @property
    def is_staged(self) -> bool:
        """Whether the change is staged, shown by no branch."""
        return self.wap_id is not None


def branch_to_read(audit: Audit, metadata: TableMetadata) -> str | None:
    """Return the branch that a session's queries read; None for the table's current snapshot."""
    known = is_audited(metadata) and audit.wap_branch in metadata.refs
    return audit.wap_branch if known else None


def identity_of(audit: Audit, state: TableState) -> str:
    """Return an identity that differs between sessions that see the table differently.

    The setting counts, not whether its branch exists: the table keeps its identity for the session
    when the session creates the branch.
    """
    branch = audit.wap_branch if is_audited(state.metadata) and not state.is_selected else None
    uuid = str(state.metadata.table_uuid)
    return uuid if branch in {None, MAIN_BRANCH} else f"{uuid}, branch {branch}"


def branch_of(state: TableState, asked: str | None) -> str | None:
    """Return the branch that a query names, by the table's name or the option ``branch``."""
    if asked is not None and state.branch not in {None, asked}:
        raise ValidationError(
            f"Explicitly configured branch {state.branch!r} and option branch {asked!r} are in "
            f"conflict for table {state.name}",
            hint="Leave one of them out.",
        )
    return state.branch if asked is None else asked


def commit_target(audit: Audit, metadata: TableMetadata, named: str | None = None) -> CommitTarget:
    """Return the target of a session's changes.

    Args:
        named: The branch named by the statement.
    """
    if not is_audited(metadata):
        return CommitTarget(named or MAIN_BRANCH)
    # a named branch takes precedence over the session's, as in Iceberg Java since 1.11
    wap_branch = audit.wap_branch if named is None else None
    if audit.wap_id is not None and wap_branch is not None:
        raise ValidationError(
            f"Cannot set both WAP ID and branch: {_ID} is {audit.wap_id!r}, {_BRANCH} is "
            f"{wap_branch!r}",
            hint=f"RESET {_ID} to write to the branch, or RESET {_BRANCH} to stage the change.",
        )
    if "" in (audit.wap_id, wap_branch):
        raise ValidationError(
            f"{_ID if wap_branch is None else _BRANCH} is set, but empty",
            hint="Give it a name, or RESET it.",
        )
    return CommitTarget(wap_branch or named or MAIN_BRANCH, audit.wap_id)


def check_read(audit: Audit, state: TableState) -> None:
    """Refuse to replace rows of a branch other than the one the statement read."""
    if state.branch is None and state.ref != branch_to_read(audit, state.metadata):
        raise CommitFailedError(
            f"{_BRANCH} was changed while a statement read table {state.name}",
            hint="Run the statement again.",
            table=state.name,
        )


def head(metadata: TableMetadata, branch: str) -> int | None:
    """Return the snapshot that a change of a branch builds on."""
    ref = metadata.refs.get(branch)
    return metadata.current_snapshot_id if ref is None else ref.snapshot_id
