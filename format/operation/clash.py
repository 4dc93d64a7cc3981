"""The error that names the commits of other writers that conflict with a change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ConflictError
from icecomb.format.spec.values.temporal import utc_moment

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

_COMMITS: Final = 3
_FILES: Final = 3
"""The number of commits and files to name; the others are only counted."""


class VectorConflictError(ConflictError):
    """Deleted rows have to be found again, because of what others did to their data files.

    Others deleted rows of the same data files, which need one deletion vector each, or upgraded the
    table, so that it has vectors, and its rows ids.
    """


class OutdatedError(ConflictError):
    """What a change left as it is has been changed by others: it has to be found again."""


def clash_error(
    what: str,
    found: Iterable[tuple[int | None, str]],
    table: TableMetadata,
    hint: str,
    kind: type[ConflictError] = ConflictError,
) -> ConflictError | None:
    """Return the error that says which commits, and which of their files, conflict with a change.

    None if there are no such files; `found` has each with the snapshot that added or removed it.
    """
    files: dict[int | None, list[str]] = {}
    for snapshot_id, path in found:
        files.setdefault(snapshot_id, []).append(path)
    if not files:
        return None
    snapshots = [table.snapshot_by_id(i) for i in files if i is not None]
    known = sorted((s for s in snapshots if s is not None), key=_age)
    described = [_described(each, files[each.snapshot_id]) for each in known[:_COMMITS]]
    rest = files.keys() - {each.snapshot_id for each in known[:_COMMITS]}
    count = sum(map(len, files.values()))
    if not known:
        described = [_some(sorted(path for paths in files.values() for path in paths))]
    elif rest:
        more = sum(len(files[each]) for each in rest)
        described.append(f"{len(rest)} more {_plural('commit', len(rest))}: {_counted(more)}")
    first = known[0].snapshot_id if known else next(iter(files))
    return kind(
        f"{what}: {'; '.join(described)}",
        hint=hint,
        snapshot_ids=tuple(each.snapshot_id for each in known),
        path=min(files[first]),
        file_count=count,
    )


def _described(snapshot: Snapshot, files: list[str]) -> str:
    facts = [snapshot.operation or "unknown operation", utc_moment(snapshot.timestamp_ms)]
    facts += writer_of(snapshot)
    name = f"snapshot {snapshot.snapshot_id} ({', '.join(facts)})"
    return f"{name}, {_counted(len(files))}: {_some(sorted(files))}"


def writer_of(snapshot: Snapshot) -> list[str]:
    """Return the engine and application that made a snapshot, as far as its summary says."""
    summary = snapshot.summary
    engine = " ".join(summary[key] for key in ("engine-name", "engine-version") if summary.get(key))
    application = (
        summary.get("app-id") or summary.get("spark.app.id") or summary.get("flink.job-id")
    )
    return [*([engine] if engine else []), *([f"application {application}"] if application else [])]


def _some(files: list[str]) -> str:
    more = len(files) - _FILES
    return ", ".join(files[:_FILES]) + (f" and {more} more" if more > 0 else "")


def _counted(number: int) -> str:
    return f"{number} {_plural('file', number)}"


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def _age(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number, snapshot.timestamp_ms
