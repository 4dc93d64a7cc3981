"""Branches, tags, and the choice of the current snapshot (spec: Snapshot References)."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from icecomb.format.argument import MAX_LONG, checked_instant, checked_int, checked_text
from icecomb.format.errors import (
    CommitFailedError,
    IcecombError,
    NoSuchSnapshotError,
    ValidationError,
)
from icecomb.format.evolution.pending_update import Commit, RecordedUpdate
from icecomb.format.operation.snapshot_producer import check_moved, staged_snapshot
from icecomb.format.spec.change.requirement import (
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
)
from icecomb.format.spec.change.update import (
    Changes,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.snapshot import (
    MAIN_BRANCH,
    SnapshotRef,
    SnapshotRefType,
    ancestors_of,
    is_ancestor,
    latest_ancestor_before,
)
from icecomb.format.spec.values.temporal import human_timestamptz

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from typing_extensions import Self

    from icecomb.format.operation.cherry_pick import CherryPick
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_BRANCH, _TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG
T = TypeVar("T")


class ManageSnapshots(RecordedUpdate["RefEdit"]):
    """An update of branches and tags: create, move, remove, roll back, or cherry-pick.

    Each call works on the result of the calls before it. What is refused on older metadata is tried
    on the newest. A branch or tag that another writer moved meanwhile is not overwritten: the
    commit fails.

    Args:
        base: The table metadata.
        io: File system for manifests: `cherry_pick` needs it, and what moves `main` to rows that
            may lack values of columns which became required.
        commit: See `PendingUpdate`.
        newest: A function that loads the current table metadata, for what other writers have made
            or expired meanwhile.
        check_files: A function that refuses metadata by which manifests would go to a folder that
            nothing vouches for.
    """

    def __init__(
        self,
        base: TableMetadata,
        io: FileIO | None = None,
        commit: Commit | None = None,
        newest: Callable[[], TableMetadata] | None = None,
        check_files: Callable[[TableMetadata], None] | None = None,
    ) -> None:
        super().__init__(base, commit)
        self._io = io
        self._newest = newest
        self._check_files = check_files
        self._picks: list[CherryPick] = []

    @property
    def writes_files(self) -> bool:
        """Whether a snapshot is picked."""
        return bool(self._picks)

    def create_branch(
        self,
        snapshot_id: int,
        branch_name: str,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Create a branch.

        Args:
            snapshot_id: The snapshot to be its head.
            branch_name: Its name, which must not be in use.
            max_ref_age_ms: The age of its head, in milliseconds, above which expiration removes
                the branch.
            max_snapshot_age_ms: The age, in milliseconds, above which expiration removes its
                snapshots.
            min_snapshots_to_keep: The number of its snapshots that expiration always keeps.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot.
            ValidationError: If the name is in use.
        """
        ref = SnapshotRef(
            snapshot_id, _BRANCH, min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms
        )
        self._record(lambda edit: edit.create(branch_name, ref))
        return self

    def create_tag(
        self, snapshot_id: int, tag_name: str, max_ref_age_ms: int | None = None
    ) -> Self:
        """Create a tag; see `create_branch`."""
        ref = SnapshotRef(snapshot_id, _TAG, max_ref_age_ms=max_ref_age_ms)
        self._record(lambda edit: edit.create(tag_name, ref))
        return self

    def replace_branch(self, snapshot_id: int, branch_name: str) -> Self:
        """Point a branch to any snapshot; its limits are kept."""
        return self._move(branch_name, _BRANCH, snapshot_id)

    def replace_tag(self, snapshot_id: int, tag_name: str) -> Self:
        """Point a tag to another snapshot."""
        return self._move(tag_name, _TAG, snapshot_id)

    def remove_branch(self, branch_name: str) -> Self:
        """Remove a branch; its snapshots are kept until they expire.

        Raises:
            NoSuchSnapshotError: If there is no such branch.
            ValidationError: If the name is `main`, or that of a tag.
        """
        return self._remove(branch_name, _BRANCH)

    def remove_tag(self, tag_name: str) -> Self:
        """Remove a tag; see `remove_branch`."""
        return self._remove(tag_name, _TAG)

    def rename_branch(self, branch_name: str, new_name: str) -> Self:
        """Rename a branch to a name that is not in use; `main` cannot be renamed."""

        def old(edit: RefEdit) -> SnapshotRef:
            if checked_text("name of a branch or tag", new_name) in edit.metadata.refs:
                raise ValidationError(
                    f"There is a branch or tag {new_name!r} already", hint="Choose another name."
                )
            return edit.removable(branch_name, _BRANCH)

        seen = self._looked_up(old)

        def rename(edit: RefEdit) -> None:
            edit.remove(branch_name, _BRANCH, seen.snapshot_id)
            edit.create(new_name, seen)

        self._record(rename)
        return self

    def fast_forward(self, branch_name: str, to: str) -> Self:
        """Move a branch to the snapshot of another branch or tag that descends from its head.

        A branch that does not exist is created.

        Raises:
            ValidationError: If the branch has snapshots that the other one does not have.
        """
        self._record(lambda edit: edit.fast_forward(branch_name, to))
        return self

    def set_min_snapshots_to_keep(self, branch_name: str, min_snapshots_to_keep: int) -> Self:
        """Let expiration always keep this many snapshots of a branch."""
        return self._limit(branch_name, _BRANCH, min_snapshots_to_keep=min_snapshots_to_keep)

    def set_max_snapshot_age_ms(self, branch_name: str, max_snapshot_age_ms: int) -> Self:
        """Let expiration remove snapshots of a branch above this age in milliseconds."""
        return self._limit(branch_name, _BRANCH, max_snapshot_age_ms=max_snapshot_age_ms)

    def set_max_ref_age_ms(self, ref_name: str, max_ref_age_ms: int) -> Self:
        """Let expiration remove a branch or tag above this age of its head in milliseconds."""
        return self._limit(ref_name, None, max_ref_age_ms=max_ref_age_ms)

    def set_current_snapshot(
        self, snapshot_id: int | None = None, ref_name: str | None = None
    ) -> Self:
        """Point `main` to any snapshot, given by its id or by a branch or tag.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot, branch or tag.
            ValidationError: If both arguments are given, or neither.
        """
        if (snapshot_id is None) is (ref_name is None):
            raise ValidationError(
                "Give either snapshot_id or ref_name", hint="Give exactly one of the two."
            )
        if ref_name is not None:
            snapshot_id = self._looked_up(lambda edit: edit.ref(ref_name)).snapshot_id
        return self._set_main(0 if snapshot_id is None else snapshot_id)

    def rollback_to_snapshot(self, snapshot_id: int, branch: str = MAIN_BRANCH) -> Self:
        """Point a branch back to one of its earlier snapshots.

        Args:
            snapshot_id: The snapshot.
            branch: The branch; Iceberg Java and PyIceberg roll back `main` only.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot or branch.
            ValidationError: If the snapshot is not an ancestor of the branch's head.
        """

        def check(edit: RefEdit) -> None:
            head = edit.head(branch)
            edit.check_snapshot(snapshot_id)
            if not is_ancestor(edit.metadata, snapshot_id, head):
                whose = "the current one" if branch == MAIN_BRANCH else f"the head of {branch!r}"
                raise ValidationError(
                    f"Cannot roll back to snapshot {snapshot_id}: it is not an ancestor of {whose}",
                    hint="set_current_snapshot takes any snapshot, replace_branch for other "
                    "branches.",
                )

        self._looked_up(check)
        return self._set_head(branch, snapshot_id)

    def rollback_to_timestamp(
        self, timestamp_ms: int | datetime, branch: str = MAIN_BRANCH
    ) -> Self:
        """Point a branch back to its newest snapshot that is older than a time.

        Args:
            timestamp_ms: The time, in milliseconds since the epoch, or a datetime with a zone; the
                snapshot is strictly older.
            branch: The branch; Iceberg Java and PyIceberg roll back `main` only.

        Raises:
            NoSuchSnapshotError: If no ancestor of its head is that old, or there is no such branch.
        """
        instant = checked_instant("timestamp_ms", timestamp_ms)

        def older(edit: RefEdit) -> Snapshot:
            found = latest_ancestor_before(edit.metadata, instant, edit.head(branch))
            if found is not None:
                return found
            whose = "the current snapshot" if branch == MAIN_BRANCH else f"the head of {branch!r}"
            raise NoSuchSnapshotError(
                f"Cannot roll back: no ancestor of {whose} is older than "
                f"{human_timestamptz(instant * 1000)}, or those that are have expired",
                hint="See the table's snapshots for the available times.",
                timestamp_ms=instant,
            )

        return self._set_head(branch, self._looked_up(older).snapshot_id)

    def cherry_pick(self, snapshot_id: int) -> Self:
        """Repeat a snapshot's changes on `main`; see `CherryPick`.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot.
            ValidationError: If the snapshot cannot be picked, or was picked before.
        """
        from icecomb.format.operation.cherry_pick import CherryPick

        if self._io is None:
            raise ValidationError(
                "Cannot cherry-pick without access to the table's files",
                hint="Use manage_snapshots() of a table.",
            )
        pick = CherryPick(self._io, snapshot_id)
        self._picks.append(pick)
        self._check_folders(self._base)

        def stage(edit: RefEdit) -> None:
            edit.stage(pick.apply(edit.metadata))

        self._record(stage)
        return self

    def _cherry_pick_staged(self, wap_id: str) -> Self:
        """Repeat on `main` the changes that were staged under a ``wap.id``; see `cherry_pick`."""
        staged = self._looked_up(lambda edit: staged_snapshot(edit.metadata, wap_id))
        return self.cherry_pick(staged.snapshot_id)

    def _record(self, call: Callable[[RefEdit], None]) -> None:
        self._looked_up(call)
        self._calls.append(call)

    def _looked_up(self, find: Callable[[RefEdit], T]) -> T:
        """Return what is found; in the newest metadata where older metadata refuses it."""
        try:
            return find(self._edit)
        except IcecombError:
            if not self._renew():
                raise
            return find(self._edit)

    def _renew(self) -> bool:
        """Repeat the calls so far on newer metadata, and return whether there was any."""
        newest = self._base if self._newest is None else self._newest()
        AssertTableUUID(self._base.table_uuid).check(newest)
        if newest.last_updated_ms == self._base.last_updated_ms:
            return False
        self._check_folders(newest)
        self._first = self._replayed(newest)
        self._base = newest
        return True

    def _check_folders(self, base: TableMetadata) -> None:
        if self._picks and self._check_files is not None:
            self._check_files(base)

    def apply(self, base: TableMetadata) -> Changes:
        edit = self._replayed(base)
        return Changes(edit.requirements, tuple(edit.updates))

    def clean_up(self, committed: TableMetadata | None) -> None:
        for pick in self._picks:
            pick.clean_up(committed)

    def _begin(self, base: TableMetadata) -> RefEdit:
        return RefEdit(base, self._io)

    def _move(self, name: str, kind: SnapshotRefType, snapshot_id: int) -> Self:
        seen = self._looked_up(lambda edit: edit.ref(name, kind)).snapshot_id
        self._record(lambda edit: edit.move(name, kind, snapshot_id, seen))
        return self

    def _remove(self, name: str, kind: SnapshotRefType) -> Self:
        seen = self._looked_up(lambda edit: edit.removable(name, kind)).snapshot_id
        self._record(lambda edit: edit.remove(name, kind, seen))
        return self

    def _limit(self, name: str, kind: SnapshotRefType | None, **limits: int) -> Self:
        self._record(lambda edit: edit.limit(name, kind, limits))
        return self

    def _set_head(self, branch: str, snapshot_id: int) -> Self:
        if branch == MAIN_BRANCH:
            return self._set_main(snapshot_id)
        return self._move(branch, _BRANCH, snapshot_id)

    def _set_main(self, snapshot_id: int) -> Self:
        seen = self._edit.metadata.current_snapshot_id
        self._record(lambda edit: edit.set_main(snapshot_id, seen))
        return self


class RefEdit:
    """The changes of references so far, and the table metadata after them."""

    def __init__(self, base: TableMetadata, io: FileIO | None = None) -> None:
        self._base = base
        self._io = io
        self.metadata = base
        self._required: dict[str, AssertRefSnapshotId] = {}
        self.updates: list[Any] = []

    @property
    def requirements(self) -> tuple[TableRequirement, ...]:
        """The requirements on the base."""
        return (AssertTableUUID(self._base.table_uuid), *self._required.values())

    def stage(self, changes: Changes) -> None:
        """Add changes to those made so far."""
        self.metadata = update_table_metadata(self.metadata, changes.updates)
        self.updates += changes.updates
        for requirement in changes.requirements:
            if isinstance(requirement, AssertRefSnapshotId):
                self._require(requirement.ref)

    def ref(self, name: str, kind: SnapshotRefType | None = None) -> SnapshotRef:
        """Return a branch or tag."""
        found = self.metadata.refs.get(checked_text("name of a branch or tag", name))
        if found is None:
            what = kind.value if kind else "branch or tag"
            names = ", ".join(self.metadata.refs)
            raise NoSuchSnapshotError(
                f"The table has no {what} {name!r}",
                hint=f"Branches and tags are: {names}."
                if names
                else "It has no branch or tag yet.",
            )
        if kind is not None and found.snapshot_ref_type is not kind:
            raise ValidationError(
                f"{name!r} is a {found.snapshot_ref_type}, not a {kind}",
                hint="Use the method for that kind, or another name.",
            )
        return found

    def head(self, branch: str) -> int | None:
        """Return the id of a branch's head; None for `main` without a snapshot."""
        if branch == MAIN_BRANCH:
            return self.metadata.current_snapshot_id
        return self.ref(branch, _BRANCH).snapshot_id

    def check_snapshot(self, snapshot_id: int) -> None:
        """Refuse a snapshot that does not exist."""
        snapshot_id = checked_int("snapshot_id", snapshot_id, -MAX_LONG - 1, MAX_LONG)
        existing_snapshot(self.metadata, snapshot_id, "The table has")

    def create(self, name: str, ref: SnapshotRef) -> None:
        """Create a branch or tag."""
        self.check_snapshot(ref.snapshot_id)
        if not checked_text("name of a branch or tag", name):
            raise ValidationError("A branch or tag needs a name", hint="Give the name.")
        if name in self.metadata.refs:
            raise ValidationError(
                f"There is a branch or tag {name!r} already",
                hint="Choose another name, or remove that one first.",
            )
        self._set(name, ref)

    def move(self, name: str, kind: SnapshotRefType, snapshot_id: int, seen: int | None) -> None:
        """Point a branch or tag to a snapshot, unless another writer moved it."""
        ref = self.ref(name, kind)
        self.check_snapshot(snapshot_id)
        self._check_seen(name, seen)
        self._set(name, replace(ref, snapshot_id=snapshot_id))

    def set_main(self, snapshot_id: int, seen: int | None) -> None:
        """Point `main` to a snapshot, unless another writer moved it."""
        self.check_snapshot(snapshot_id)
        self._check_seen(MAIN_BRANCH, seen)
        ref = self.metadata.refs.get(MAIN_BRANCH) or SnapshotRef(snapshot_id)
        self._set(MAIN_BRANCH, replace(ref, snapshot_id=snapshot_id))

    def removable(self, name: str, kind: SnapshotRefType) -> SnapshotRef:
        """Return a branch or tag that is not `main`, which exists even without a snapshot."""
        if name == MAIN_BRANCH and kind is _BRANCH:
            raise ValidationError(
                "The branch main cannot be removed or renamed",
                hint="Point it elsewhere by set_current_snapshot instead.",
            )
        return self.ref(name, kind)

    def remove(self, name: str, kind: SnapshotRefType, seen: int | None) -> None:
        """Remove a branch or tag, unless another writer moved it."""
        self.removable(name, kind)
        self._check_seen(name, seen)
        self._require(name)
        self._change(RemoveSnapshotRefUpdate(name))

    def fast_forward(self, name: str, to: str) -> None:
        """Move a branch forward."""
        target = self.ref(to).snapshot_id
        if checked_text("name of a branch", name) not in self.metadata.refs:
            self.create(name, SnapshotRef(target))
            return
        ref = self.ref(name, _BRANCH)
        if not is_ancestor(self.metadata, ref.snapshot_id, target):
            raise ValidationError(
                f"Cannot fast-forward {name!r}: its snapshot {ref.snapshot_id} is not an ancestor "
                f"of {target}, which {to!r} points to",
                hint="Cherry-pick what the branch lacks, or replace the branch.",
            )
        self._set(name, replace(ref, snapshot_id=target))

    def limit(self, name: str, kind: SnapshotRefType | None, limits: Mapping[str, Any]) -> None:
        """Change the lifetimes of a reference and its snapshots."""
        self._set(name, replace(self.ref(name, kind), **limits))

    def _check_seen(self, name: str, seen: int | None) -> None:
        ref = self.metadata.refs.get(name)
        found = None if ref is None else ref.snapshot_id
        if name == MAIN_BRANCH:
            found = self.metadata.current_snapshot_id
        if found != seen:
            raise CommitFailedError(
                f"{name!r} was moved from snapshot {seen} to {found} by another writer",
                hint="Refresh the table, and decide again.",
            )

    def _set(self, name: str, ref: SnapshotRef) -> None:
        snapshot = self.metadata.snapshot_by_id(ref.snapshot_id)
        goes_back = is_ancestor(self.metadata, ref.snapshot_id, self.metadata.current_snapshot_id)
        if name == MAIN_BRANCH and snapshot is not None and not goes_back:
            check_moved(
                self.metadata,
                snapshot,
                f"Cannot point {name!r} to snapshot {ref.snapshot_id}, which is of an older table",
                "Read it by its id, or replace the table by its rows, with their types.",
            )
            self._check_rows(ref.snapshot_id)
        ref.check_limits(self.metadata.refs.get(name))
        self._require(name)
        self._change(SetSnapshotRefUpdate.of(name, ref))

    def _check_rows(self, head: int) -> None:
        """Refuse rows that are new to `main` if they may lack values of required columns."""
        from icecomb.format.operation.staged_rows import check_staged_rows

        if self._io is not None:
            main = self.metadata.current_snapshot_id
            known = {snapshot.snapshot_id for snapshot in ancestors_of(self.metadata, main)}
            new = takewhile(
                lambda snapshot: snapshot.snapshot_id not in known,
                ancestors_of(self.metadata, head),
            )
            check_staged_rows(self._io, self.metadata, new, with_expired=True)

    def _change(self, update: Any) -> None:
        self.metadata = update_table_metadata(self.metadata, (update,))
        self.updates.append(update)

    def _require(self, name: str) -> None:
        ref = self._base.refs.get(name)
        seen = None if ref is None else ref.snapshot_id
        self._required.setdefault(name, AssertRefSnapshotId(name, seen))
