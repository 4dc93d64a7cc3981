"""Commits that a table lost after they were made, and bringing them back.

A writer that writes back an old copy of an entry, as Hive's `alter_table` does, removes the
commits since then; the next commit continues from the older metadata file, and the table's
history forks. The changes of the lost commits are picked into the table, by the rules of a
cherry-pick.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from icecomb.catalog.commit.commit_status import is_old
from icecomb.catalog.table.table_difference import layout_changes
from icecomb.format.errors import (
    AlreadyPublishedError,
    CorruptFileError,
    NoSuchFileError,
    ValidationError,
    reason_of,
)
from icecomb.format.operation.publication import check_not_picked
from icecomb.format.operation.reapplication import Reapplication
from icecomb.format.property.table_property import PUBLISHED_SNAPSHOTS
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.column_history import SOURCE_SNAPSHOT
from icecomb.format.spec.metadata_file import read_metadata
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation, ancestors_of
from icecomb.format.storage.location import plain_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot


class Outcome(str, Enum):
    """The outcome for a lost commit."""

    LOST = "lost"
    BROUGHT_BACK = "brought back"
    NOTHING_TO_DO = "nothing to do"
    REFUSED = "refused"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class LostCommit:
    """A snapshot that the table has lost.

    Attributes:
        outcome: ``LOST``: it can be brought back. ``BROUGHT_BACK``: it was, just now.
            ``NOTHING_TO_DO``: its rows are in the table, or it changed none. ``REFUSED``: it cannot
            be brought back.
        reason: The reason, for people; empty if it can be brought back.
    """

    snapshot: Snapshot
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LostLine:
    """The commits from the fork of a table's history up to a metadata file.

    Attributes:
        before: The last metadata that it and the table have in common.
        commits: The lost commits, the oldest first.
        left_out: Other changes of these commits, which are not brought back: columns, properties,
            branches.
    """

    location: str
    metadata: TableMetadata
    before: TableMetadata
    commits: tuple[LostCommit, ...]
    left_out: tuple[str, ...]


def plan_reapplication(table: Table, location: str) -> LostLine:
    """Refresh the table, and plan to `reapply` the lost commits up to ``location``.

    A file younger than an hour is refused, as its writer may retry.
    """
    now, name = table.refresh().metadata, ".".join(table.name())
    log = _plain(table, (entry.metadata_file for entry in now.metadata_log))
    current, plain = _plain(table, (table.metadata_location, location))
    if plain in {current, *log}:
        raise ValidationError(
            f"{location} is in the history of {name}: it is not lost",
            hint="Nothing to do; `icecomb rollback` also undoes a rollback.",
            table=name,
            path=location,
        )
    lost = read_metadata(table.io, location)
    if lost.table_uuid != now.table_uuid:
        raise ValidationError(
            f"{location} is a file of another table: its uuid is {lost.table_uuid}, that of {name} "
            f"is {now.table_uuid}",
            hint="icecomb doctor names the files that fit.",
            table=name,
            path=location,
        )
    ancestors = [entry.metadata_file for entry in lost.metadata_log]
    known = dict(zip(ancestors, _plain(table, ancestors), strict=True))
    if current in known.values():
        raise ValidationError(
            f"{location} was written on the current metadata of {name}: no commit has followed it",
            hint=f"{shell_command('repair', name, '--to', location)} points to it, if it was "
            "reported to its writer as committed.",
            table=name,
            path=location,
        )
    base = next((one for one in reversed(ancestors) if known[one] in log), None)
    if base is None:
        raise ValidationError(
            f"It is unknown where {location} and {name} forked: the table's metadata log does "
            "not reach back to there",
            hint=f"{shell_command('register', f'{name}_lost', location)} shows its rows; write "
            "those that are missing to the table again.",
            table=name,
            path=location,
        )
    if not is_old(lost.last_updated_ms):
        raise ValidationError(
            f"{location} is younger than an hour: its writer may be about to try again",
            hint="Bring it back when it is an hour old.",
            table=name,
            path=location,
        )
    before = read_metadata(table.io, base)
    main = list(ancestors_of(lost, lost.current_snapshot_id))
    commits = [_judge(table, one, lost, before, main) for one in _lost(lost, before)]
    judged = tuple(_after_what_follows(commits, main))
    return LostLine(location, lost, before, judged, tuple(_left_out(lost, before, commits)))


def reapply(table: Table, line: LostLine) -> LostLine:
    """Bring back the planned commits that the table lacks, and return the line with outcomes.

    It can be repeated, also after an interruption.
    """
    done = (
        _bring_back(table, one, line) if one.outcome is Outcome.LOST else one
        for one in line.commits
    )
    return replace(line, commits=tuple(done))


def is_settled(now: TableMetadata, lost: TableMetadata, before: TableMetadata) -> bool:
    """Return whether all snapshots that lost metadata added are known to be in the table again."""
    snapshots = _lost(lost, before)
    return bool(snapshots) and all(_reason_there(now, one) for one in snapshots)


def _plain(table: Table, locations: Iterable[str]) -> list[str]:
    return plain_texts(locations, table.io.properties)


def _lost(lost: TableMetadata, before: TableMetadata) -> list[Snapshot]:
    """Return the snapshots that only lost metadata or its `main` has, the oldest first."""
    there = {one.snapshot_id for one in ancestors_of(before, before.current_snapshot_id)}
    main = [
        one for one in ancestors_of(lost, lost.current_snapshot_id) if one.snapshot_id not in there
    ][::-1]
    ids = {one.snapshot_id for one in main}
    others = (
        one
        for one in lost.snapshots
        if one.snapshot_id not in ids and not before.has_snapshot(one.snapshot_id)
    )
    return [*main, *others]


def _judge(
    table: Table,
    one: Snapshot,
    lost: TableMetadata,
    before: TableMetadata,
    main: Sequence[Snapshot],
) -> LostCommit:
    now, number = table.metadata, one.snapshot_id
    if reason := _reason_there(now, one):
        return LostCommit(one, Outcome.NOTHING_TO_DO, reason)
    if all(number != own.snapshot_id for own in main):
        for own in main:
            if own.summary.get(SOURCE_SNAPSHOT) == str(number):
                reason = f"it was published as snapshot {own.snapshot_id}"
                return LostCommit(one, Outcome.NOTHING_TO_DO, reason)
        reason = f"it is not part of {MAIN_BRANCH}, but staged or of another branch"
        return LostCommit(one, Outcome.REFUSED, reason)
    return _tried(one, lambda: Reapplication(table.io, number, lost, before).check(now))


def _after_what_follows(
    commits: Sequence[LostCommit], main: Sequence[Snapshot]
) -> Iterator[LostCommit]:
    """Also refuse commits whose rows a later one, not brought back, may have removed."""
    ids = {one.snapshot_id for one in main}
    for at, one in enumerate(commits):
        later = (
            each.snapshot.snapshot_id
            for each in commits[at + 1 :]
            if each.outcome is not Outcome.LOST
            and each.snapshot.operation not in {Operation.APPEND, Operation.REPLACE}
            and each.snapshot.snapshot_id in ids
        )
        follower = next(later, None) if one.outcome is Outcome.LOST else None
        if follower is None:
            yield one
        else:
            reason = (
                f"snapshot {follower} may have removed rows of it, and is not brought back; to "
                "bring it back nevertheless, name the metadata file of its own commit"
            )
            yield replace(one, outcome=Outcome.REFUSED, reason=reason)


def _bring_back(table: Table, one: LostCommit, line: LostLine) -> LostCommit:
    snapshot = one.snapshot
    operation = Reapplication(table.io, snapshot.snapshot_id, line.metadata, line.before)
    found = _tried(snapshot, lambda: table.commit(operation))
    if found.outcome is not Outcome.LOST:
        return found
    made = table.metadata.current_snapshot_id
    return replace(found, outcome=Outcome.BROUGHT_BACK, reason=f"as snapshot {made}")


def _tried(snapshot: Snapshot, work: Callable[[], object]) -> LostCommit:
    try:
        work()
    except AlreadyPublishedError as error:
        return LostCommit(snapshot, Outcome.NOTHING_TO_DO, reason_of(error))
    except (ValidationError, NoSuchFileError, CorruptFileError) as error:
        return LostCommit(snapshot, Outcome.REFUSED, reason_of(error))
    return LostCommit(snapshot, Outcome.LOST)


def _reason_there(now: TableMetadata, snapshot: Snapshot) -> str:
    """Return why there is nothing to bring back, as far as metadata tells; else empty."""
    if snapshot.operation == Operation.REPLACE:
        return "it changed no rows"
    try:
        check_not_picked(now, snapshot)
    except AlreadyPublishedError as error:
        return reason_of(error)
    return ""


def _left_out(
    lost: TableMetadata, before: TableMetadata, commits: Sequence[LostCommit]
) -> Iterator[str]:
    for what, found in layout_changes(before, lost):
        if found.path != PUBLISHED_SNAPSHOTS.key:
            yield f"{what} {found.kind}: {found.path}: {found.before} -> {found.after}"
    brought = {one.snapshot.snapshot_id for one in commits}
    for name in sorted(before.refs.keys() | lost.refs.keys()):
        old, new = before.refs.get(name), lost.refs.get(name)
        moved = name == MAIN_BRANCH and new is not None and new.snapshot_id in brought
        if old != new and not moved:
            heads = (None if ref is None else ref.snapshot_id for ref in (old, new))
            yield f"branch or tag {name}: {' -> '.join(map(str, heads))}"
