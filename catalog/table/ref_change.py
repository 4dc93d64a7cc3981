"""Creating, moving and dropping branches and tags, as in Iceberg's DDL for Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from icecomb.format.errors import ValidationError
from icecomb.format.operation.append import FastAppend

if TYPE_CHECKING:
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.operation.snapshot_management import ManageSnapshots


@dataclass(frozen=True, slots=True)
class MakeRef:
    """``CREATE``, ``CREATE OR REPLACE`` or ``REPLACE`` of a branch or tag.

    Args:
        create: Whether to create one that does not exist.
        replace: Whether to move an existing one.
        if_not_exists: Whether to keep an existing one.
        snapshot_id: The snapshot to point to; the table's current snapshot by default.
        max_ref_age_ms: Milliseconds after which expiration removes it, by its head's age.
        min_snapshots_to_keep: Number of a branch's snapshots that expiration keeps.
        max_snapshot_age_ms: Milliseconds after which expiration removes a branch's snapshots.
    """

    kind: Literal["branch", "tag"]
    name: str
    create: bool
    replace: bool
    if_not_exists: bool = False
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DropRef:
    """``DROP BRANCH`` or ``DROP TAG [IF EXISTS] name``."""

    kind: Literal["branch", "tag"]
    name: str
    if_exists: bool = False


def make_ref(transaction: Transaction, wanted: MakeRef) -> None:
    """Create a branch or tag, or move one."""
    metadata = transaction.metadata
    exists = wanted.name in metadata.refs
    if exists and wanted.if_not_exists:
        return
    snapshot_id = wanted.snapshot_id
    if snapshot_id is None:
        snapshot_id = metadata.current_snapshot_id
    moves = wanted.replace and (exists or not wanted.create)
    if snapshot_id is None:
        if moves or wanted.kind == "tag":
            raise ValidationError(
                f"{wanted.kind.title()} {wanted.name!r} has nothing to point to: "
                "the table has no snapshot",
                hint="Insert rows first, or name a snapshot (AS OF VERSION, --snapshot-id).",
            )
        # as in Iceberg Java: a branch of a table without snapshots begins with an empty one
        transaction.commit(FastAppend(transaction.io, branch=wanted.name))
    with transaction.manage_snapshots() as manage:
        if snapshot_id is not None:
            _point(manage, wanted, snapshot_id, moves=moves)
        _limit(manage, wanted)


def drop_ref(transaction: Transaction, wanted: DropRef) -> None:
    """Drop a branch or tag; its snapshots stay until they expire."""
    if wanted.if_exists and wanted.name not in transaction.metadata.refs:
        return
    with transaction.manage_snapshots() as manage:
        (manage.remove_branch if wanted.kind == "branch" else manage.remove_tag)(wanted.name)


def _point(manage: ManageSnapshots, wanted: MakeRef, snapshot_id: int, *, moves: bool) -> None:
    branch = wanted.kind == "branch"
    if moves:
        (manage.replace_branch if branch else manage.replace_tag)(snapshot_id, wanted.name)
    elif branch:
        manage.create_branch(snapshot_id, wanted.name)
    else:
        manage.create_tag(snapshot_id, wanted.name)


def _limit(manage: ManageSnapshots, wanted: MakeRef) -> None:
    if wanted.min_snapshots_to_keep is not None:
        manage.set_min_snapshots_to_keep(wanted.name, wanted.min_snapshots_to_keep)
    if wanted.max_snapshot_age_ms is not None:
        manage.set_max_snapshot_age_ms(wanted.name, wanted.max_snapshot_age_ms)
    if wanted.max_ref_age_ms is not None:
        manage.set_max_ref_age_ms(wanted.name, wanted.max_ref_age_ms)
