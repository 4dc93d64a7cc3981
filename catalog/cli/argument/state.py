"""The state of a table that a command is about: a snapshot, named in one of four ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from icecomb.catalog.cli.argument.value import age_of, instant, moment_of
from icecomb.format.errors import (
    CorruptFileError,
    FileIOError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.spec.snapshot import MAIN_BRANCH, SnapshotRefType

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

_OPTIONS = (
    click.option("--branch", help="Read the head of this branch."),
    click.option("--tag", help="Read the snapshot that this tag points to."),
    click.option("--snapshot-id", "--snapshot", type=int, metavar="ID", help="Read this snapshot."),
    click.option(
        "--at",
        callback=instant,
        metavar="TIME|AGE",
        help="The snapshot current at this time: 2024-05-01T12:00 (UTC), or an age such as 7d.",
    ),
)


@dataclass(frozen=True, slots=True)
class State:
    """The state that options name, or the current one; `at` is milliseconds since 1970 UTC."""

    branch: str | None = None
    tag: str | None = None
    snapshot_id: int | None = None
    at: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether no other state is named."""
        return self == State()

    def snapshot(self, metadata: TableMetadata) -> Snapshot | None:
        """Return the snapshot; None only if the table, or its main branch, has none yet."""
        from icecomb.format.operation.snapshot_management import RefEdit

        if self.at is not None:
            return metadata.snapshot_as_of(self.at)
        found = self.snapshot_id
        if self.branch == MAIN_BRANCH or self.is_current:
            found = metadata.current_snapshot_id
        elif self.branch is not None:
            found = RefEdit(metadata).ref(self.branch, SnapshotRefType.BRANCH).snapshot_id
        elif self.tag is not None:
            found = RefEdit(metadata).ref(self.tag, SnapshotRefType.TAG).snapshot_id
        if found is None:
            return None
        RefEdit(metadata).check_snapshot(found)
        return metadata.snapshot_by_id(found)

    def scan_arguments(self, table: Table) -> dict[str, Any]:
        """Return the arguments for `Table.scan`, which reads a branch with the table's schema."""
        found = self.snapshot(table.metadata)
        if self.branch is not None and found is not None:
            return {"ref": self.branch}
        return {} if self.is_current or found is None else {"snapshot_id": found.snapshot_id}

    def table_metadata(self, table: Table) -> tuple[TableMetadata | None, str | None]:
        """Return the table's metadata of that state, or None and the reason why it is unknown.

        For a branch this is the current metadata: branches are written with its spec.
        """
        from icecomb.catalog.table.earlier_metadata import metadata_as_of, metadata_of

        snapshot = self.snapshot(table.metadata)
        if self.is_current or self.branch is not None or snapshot is None:
            return table.metadata, None
        try:
            if self.at is not None:
                return metadata_as_of(table, self.at), None
            return metadata_of(table, snapshot), None
        except (FileIOError, CorruptFileError, UnsupportedError) as error:
            return None, error.message


def state_of(text: str, metadata: TableMetadata) -> State:
    """Parse a word that names a state: a snapshot's id, a branch or tag, a time, or an age.

    ValidationError is raised for both an id and the name of something else.
    """
    now = int(time.time() * 1000)
    ref = metadata.refs.get(text)
    number = int(text) if text.isascii() and text.isdigit() else None
    if number is not None and metadata.has_snapshot(number):
        if ref is not None and ref.snapshot_id != number:
            raise ValidationError(
                f"{text} is a snapshot, and a {ref.snapshot_ref_type} of another one",
                hint=f"Use the id that it points to: {ref.snapshot_id}.",
            )
        return State(snapshot_id=number)
    if text == MAIN_BRANCH:  # which a table without snapshots does not have yet
        return State(branch=text)
    if ref is not None:
        return State(branch=text) if ref.is_branch else State(tag=text)
    age = age_of(text)
    at = moment_of(text) if age is None else now - age
    if at is None:
        raise ValidationError(
            f"{text!r} is not a snapshot, branch or tag of the table, nor a time",
            hint="icecomb snapshots lists the first; a time is 2024-05-01T12:00, or an "
            "age like 7d.",
        )
    return State(at=at)


def with_state(command: Any) -> Callable[..., Any]:
    """Add the options that name a state to a command, which takes it as ``state``."""

    @wraps(command)
    def given(
        *others: Any,
        branch: str | None,
        tag: str | None,
        snapshot_id: int | None,
        at: int | None,
        **more: Any,
    ) -> Any:
        named = [one for one in (branch, tag, snapshot_id, at) if one is not None]
        if len(named) > 1:
            raise click.UsageError("give one of --branch, --tag, --snapshot-id and --at")
        return command(*others, state=State(branch, tag, snapshot_id, at), **more)

    for option in reversed(_OPTIONS):
        given = option(given)
    return given
