"""Branches and tags made, moved and dropped, as in Iceberg's DDL (Spark: Branching and Tagging)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from icecomb.format.errors import ValidationError
from icecomb.format.operation.append import FastAppend

if TYPE_CHECKING:
    from icecomb.catalog.transaction import Transaction
    from icecomb.format.operation.snapshot_management import ManageSnapshots


@dataclass(frozen=True, slots=True)
class MakeRef:
    """``CREATE``, ``CREATE OR REPLACE`` or ``REPLACE`` of a branch or tag.

    Args:
        kind: What it is.
        name: Its name.
        create: Make one that is not there.
        replace: Move one that is there.
        if_not_exists: Leave one that is there.
        snapshot_id: Where it points; the table's current snapshot by default.
        max_ref_age_ms: Expiration removes it when its head is older, in milliseconds.
        min_snapshots_to_keep: Expiration leaves so many of a branch's snapshots.
        max_snapshot_age_ms: Expiration removes a branch's snapshots that are older.
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
    """Make a branch or tag, or move one.

    Raises:
        NoSuchSnapshotError: If there is no such snapshot, or nothing that could be moved.
        ValidationError: If the name is taken, or the table has no snapshot to point to.
    """
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
                hint="insert rows first, or name a snapshot (AS OF VERSION, --snapshot-id)",
            )
        # as Iceberg Java does: a branch of a table without rows begins with a snapshot of none
        transaction.commit(FastAppend(transaction.io, branch=wanted.name))
    with transaction.manage_snapshots() as manage:
        if snapshot_id is not None:
            _point(manage, wanted, snapshot_id, moves=moves)
        _limit(manage, wanted)


def drop_ref(transaction: Transaction, wanted: DropRef) -> None:
    """Drop a branch or tag; its snapshots stay until they expire.

    Raises:
        NoSuchSnapshotError: If there is none.
        ValidationError: If it is of the other kind, or `main`.
    """
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
