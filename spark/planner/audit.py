"""Write, audit, publish: where the changes of a session go that are to be looked at first.

As Iceberg Java has it: on tables with the property ``write.wap.enabled``, a session with
``spark.wap.id`` stages its changes, which no branch shows before they are published, and one with
``spark.wap.branch`` writes to that branch and reads it once it is there. A statement that names a
branch writes to that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.evolution.staging import WAP_ID, is_audited
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.protocol import Audit, WriteState
    from icecomb.spark.planner.states import TableState

_ID: Final = "spark.wap.id"
_BRANCH: Final = "spark.wap.branch"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change goes.

    Args:
        branch: The branch; one that does not exist begins where main is.
        wap_id: What the change is staged under; None to let the branch show it.
    """

    branch: str = MAIN_BRANCH
    wap_id: str | None = None

    @classmethod
    def of(cls, write: WriteState) -> Place:
        """The place that was chosen when the write began."""
        return cls(write.branch, write.wap_id)

    @property
    def summary(self) -> dict[str, str]:
        """What the snapshot says of it."""
        return {} if self.wap_id is None else {WAP_ID: self.wap_id}

    @property
    def is_staged(self) -> bool:
        """Whether no branch is to show the change."""
        return self.wap_id is not None


def branch_to_read(audit: Audit, metadata: TableMetadata) -> str | None:
    """The branch that queries of a session read; None for the table's own state."""
    known = is_audited(metadata) and audit.wap_branch in metadata.refs
    return audit.wap_branch if known else None


def identity_of(audit: Audit, state: TableState) -> str:
    """Return what tells the table that a session sees from what other sessions see of it.

    The setting counts, and not whether its branch is there: the table stays the same for the
    session when it makes the branch.

    Args:
        audit: The session's settings.
        state: The table as the session named it.
    """
    branch = audit.wap_branch if is_audited(state.metadata) and not state.is_selected else None
    uuid = str(state.metadata.table_uuid)
    return uuid if branch in {None, MAIN_BRANCH} else f"{uuid}, branch {branch}"


def branch_of(state: TableState, asked: str | None) -> str | None:
    """The branch that a query names.

    Args:
        state: The table; its name may say it.
        asked: What the option ``branch`` says.

    Raises:
        ValidationError: It names two.
    """
    if asked is not None and state.branch not in {None, asked}:
        raise ValidationError(
            f"Explicitly configured branch {state.branch!r} and option branch {asked!r} are in "
            f"conflict for table {state.name}",
            hint="leave one of them out",
        )
    return state.branch if asked is None else asked


def place_of(audit: Audit, metadata: TableMetadata, named: str | None = None) -> Place:
    """Where changes of a session go.

    Args:
        audit: The session's settings.
        metadata: The table.
        named: The branch that the statement names itself.

    Raises:
        ValidationError: Both settings say where, or one is empty.
    """
    if not is_audited(metadata):
        return Place(named or MAIN_BRANCH)
    # a branch that is named is asked for before the session's, as Iceberg Java has it from 1.11 on
    wap_branch = audit.wap_branch if named is None else None
    if audit.wap_id is not None and wap_branch is not None:
        raise ValidationError(
            f"Cannot set both WAP ID and branch: {_ID} is {audit.wap_id!r}, {_BRANCH} is "
            f"{wap_branch!r}",
            hint=f"RESET {_ID} to write to the branch, or RESET {_BRANCH} to stage the change",
        )
    if "" in (audit.wap_id, wap_branch):
        raise ValidationError(
            f"{_ID if wap_branch is None else _BRANCH} is set, but empty",
            hint="give it a name, or RESET it",
        )
    return Place(wap_branch or named or MAIN_BRANCH, audit.wap_id)


def check_read(audit: Audit, state: TableState) -> None:
    """Refuse to replace rows of another branch than the statement has read.

    Raises:
        CommitFailedError: The settings were changed while the statement ran.
    """
    if state.branch is None and state.ref != branch_to_read(audit, state.metadata):
        raise CommitFailedError(
            f"{_BRANCH} was changed while a statement read table {state.name}",
            hint="run the statement again",
            table=state.name,
        )


def head(metadata: TableMetadata, branch: str) -> int | None:
    """The snapshot that a change of a branch builds on."""
    ref = metadata.refs.get(branch)
    return metadata.current_snapshot_id if ref is None else ref.snapshot_id
