"""Examination of a table's metastore entry: its pointer, its parameters and its locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import LOCK_ENABLED
from icecomb.catalog.hive.engine import examine_engines
from icecomb.catalog.hive.lock import abandoned_locks, describe_holder
from icecomb.catalog.hive.metadata_files import (
    TrailFile,
    find_recovery,
    may_be_read_later,
    read_trail,
)
from icecomb.catalog.hive.parameters import PREVIOUS_METADATA_LOCATION
from icecomb.catalog.hive.pointer import pointed_at
from icecomb.catalog.hive.repair import stale_parameters
from icecomb.catalog.hive.thrift.entity import HiveTable, LockState
from icecomb.catalog.identifier import database_and_table
from icecomb.catalog.lost_commits import is_settled
from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import IcecombError, MetastoreError
from icecomb.format.property.table_property import HIVE_LOCK
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import clock_skew, read_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.identifier import Name
    from icecomb.format.spec.metadata import TableMetadata

_SHOWN: Final = 5


def examine_table(catalog: HiveCatalog, identifier: Name) -> Iterator[Finding]:
    """Return the problems of a table, each with its remedy."""
    entry = catalog.client.table(*database_and_table(identifier))
    location = pointed_at(entry)
    try:
        metadata = read_metadata(catalog.io, location)
    except (IcecombError, OSError) as error:
        yield _unreadable(catalog, entry, error)
    else:
        snapshots = len(metadata.snapshots)
        yield Finding(
            Severity.OK, "metadata file", f"{location} can be read: {snapshots} snapshots"
        )
        if (skew := clock_skew(metadata)) is not None:
            yield Finding(Severity.WARNING, "clock", skew, "check the clocks of its writers")
        yield from _trail(catalog, entry, metadata)
        yield from _kind(entry)
        yield from _lock_mode(catalog, entry, metadata)
        yield from _stale(catalog, entry, metadata)
        yield from examine_engines(entry, metadata, catalog.io)


def _unreadable(catalog: HiveCatalog, entry: HiveTable, error: Exception) -> Finding:
    said = error.message if isinstance(error, IcecombError) else str(error)
    if may_be_read_later(error):
        return Finding(
            Severity.PROBLEM,
            "metadata file",
            f"{said}: a repair cannot mend that",
            getattr(error, "hint", None) or "look at the file system, and who may read the file",
        )
    found = find_recovery(catalog.io, entry)
    if found is None and entry.parameters.get("migrated") == "true":
        return Finding(
            Severity.PROBLEM,
            "metadata file",
            f"{said}; no other metadata file of the table can be read",
            f"{shell_command('migrate', 'revert', entry.full_name)} gives back the Hive table "
            "that it was, unless the migration was finalized",
        )
    if found is None:
        return Finding(
            Severity.PROBLEM,
            "metadata file",
            f"{said}; no other metadata file of the table can be read",
            "restore the file from a backup; `icecomb drop` works without it",
        )
    return Finding(
        Severity.PROBLEM,
        "metadata file",
        f"{said}; the newest one that can be read is {found.location}: {found.reservation}",
        shell_command("repair", entry.full_name, "--to", found.location),
    )


def _either(entry: HiveTable, location: str) -> str:
    back = shell_command("repair", entry.full_name, "--reapply", location)
    seen = shell_command("register", f"{entry.full_name}_lost", location)
    return f"bring it back: {back}; to look at it: {seen}"


def _trail(catalog: HiveCatalog, entry: HiveTable, metadata: TableMetadata) -> Iterator[Finding]:
    """Return findings about metadata files that are not in the pointer's history."""
    log = metadata.metadata_log
    oldest_ms = log[0].timestamp_ms if log else metadata.last_updated_ms
    read = read_trail(catalog.io, entry)
    location = entry.metadata_location or ""
    current = read.name_of(location)
    history = {read.name_of(one.metadata_file): one.metadata_file for one in log}
    known = {current, *history}
    came_back = _came_back(catalog, metadata, history, current)
    trail = [one for one in read.files if one.name not in known and not came_back(one)]
    witnesses = [one for one in read.witnesses if one.name not in known]
    # A writer bases its file on what the table is, so the files that it names were all committed,
    # and so was the one that the pointer left last.
    proven = {name for one in witnesses for name in one.ancestors} - known
    proven |= {read.name_of(entry.parameters.get(PREVIOUS_METADATA_LOCATION, location))} - known
    proven |= {one.name for one in trail if _is_described(entry, one, metadata)}
    later = [
        one
        for one in trail
        if current in one.ancestors and (one.name in proven or one.ancestors[-1] != current)
    ]
    lost = [one for one in trail if one.name in proven and _is_younger(one, oldest_ms)]
    if later:
        sure = _newest([one for one in later if one.name in proven] or later)
        last = _newest(later)
        perhaps = f", or {last.location} if its writer was told that it was committed"
        yield Finding(
            Severity.PROBLEM,
            "pointer",
            f"it went backwards: {sure.location} was committed after {location}, which the table "
            "points at",
            shell_command("repair", entry.full_name, "--to", sure.location)
            + (perhaps if last is not sure else ""),
        )
    elif lost:
        newest = _newest(lost)
        yield Finding(
            Severity.PROBLEM,
            "pointer",
            f"it went backwards, and others went on from there: {newest.location} was committed, "
            "and is not in the table's history",
            _either(entry, newest.location),
        )
    else:
        yield Finding(Severity.OK, "pointer", "it never went backwards, as far as the folder tells")
    unsettled = [one for one in trail if one.ancestors[-1:] == [current] and one not in later]
    for one in unsettled[:_SHOWN]:
        yield Finding(
            Severity.NOTE,
            "leftover",
            f"{one.location} was written and, as far as is known, not committed",
            shell_command("commit", "settle", entry.full_name, one.location),
        )
    followed = (known | {one.name for one in lost}) - {current}
    forks = [
        one
        for one in trail
        if one.ancestors[-1:]
        and one.ancestors[-1] in followed
        and one.name not in proven
        and one not in later
    ]
    for one in forks[:_SHOWN]:
        yield Finding(
            Severity.WARNING,
            "fork",
            f"{one.location} was written on {one.base}, and the table's history went on "
            "without it: its commit failed, or an old copy of the entry (Hive's alter_table) took "
            "it away after its writer was told that it was made",
            f"if that writer was told so, {_either(entry, one.location)}",
        )


def _came_back(
    catalog: HiveCatalog, now: TableMetadata, history: Mapping[str, str], current: str
) -> Callable[[TrailFile], bool]:
    """Return a check whether the snapshots that a file added are in the table again."""

    @cache  # files of one fork parted from the table at one version
    def read(location: str) -> TableMetadata | None:
        try:
            return read_metadata(catalog.io, location)
        except (IcecombError, OSError):
            return None

    def came_back(one: TrailFile) -> bool:
        parted = next((history[name] for name in reversed(one.ancestors) if name in history), None)
        if parted is None or current in one.ancestors:
            return False
        before = read(parted)
        return before is not None and is_settled(now, one.metadata, before)

    return came_back


def _newest(files: list[TrailFile]) -> TrailFile:
    return max(files, key=lambda one: one.metadata.last_updated_ms)


def _is_described(entry: HiveTable, one: TrailFile, metadata: TableMetadata) -> bool:
    """Return whether an entry names the snapshot of a file, and its own metadata lacks it."""
    snapshot = one.metadata.current_snapshot()
    if snapshot is None or metadata.has_snapshot(snapshot.snapshot_id):
        return False
    return entry.parameters.get("current-snapshot-id") == str(snapshot.snapshot_id)


def _is_younger(one: TrailFile, oldest_ms: int) -> bool:
    return one.metadata.last_updated_ms > oldest_ms


def _kind(entry: HiveTable) -> Iterator[Finding]:
    if entry.table_type == "MANAGED_TABLE":
        yield Finding(
            Severity.WARNING,
            "type",
            "the metastore holds it for a managed table: DROP TABLE in Hive deletes its files",
            "set the table's property EXTERNAL=TRUE",
        )


def _lock_mode(
    catalog: HiveCatalog, entry: HiveTable, metadata: TableMetadata
) -> Iterator[Finding]:
    by_default = LOCK_ENABLED.of(catalog.properties)
    chosen = HIVE_LOCK.of(metadata.properties, default=by_default)
    mode = "with" if chosen else "without"
    wanted = f"{LOCK_ENABLED}={str(by_default).lower()}"
    if chosen != by_default:
        yield Finding(
            Severity.WARNING,
            "lock mode",
            f"the table is committed to {mode} locks ({LOCK_ENABLED}), the catalog's others are "
            "not: a writer that only knows the catalog's mode can lose commits",
            f"give the table and all its writers one mode: {wanted}",
        )
    else:
        yield Finding(Severity.OK, "lock mode", f"commits are made {mode} locks")
    if chosen:
        yield from _held(catalog, entry)
        return
    if obstacle := catalog.pointer((entry.database, entry.name)).change.lock_free_obstacle():
        what, helps = obstacle
        yield Finding(
            Severity.PROBLEM,
            "lock mode",
            f"the table is without locks, and the metastore {what}: no commit to it is possible "
            "from here, and others can lose theirs",
            f"set the table's property {LOCK_ENABLED}=true, or {helps}",
        )
    rows = catalog.client.locks(entry.database, entry.name)
    for row in rows[:_SHOWN]:
        yield Finding(
            Severity.WARNING,
            "lock mode",
            f"the table is without locks, but somebody uses one: {describe_holder(row)}",
            f"give the table and all its writers one mode ({LOCK_ENABLED})",
        )


def _stale(catalog: HiveCatalog, entry: HiveTable, metadata: TableMetadata) -> Iterator[Finding]:
    stale = stale_parameters(catalog, entry, metadata)
    if not stale:
        yield Finding(Severity.OK, "parameters", "the metastore says what the metadata says")
        return
    some = list(stale.items())
    told = "; ".join(
        f"{key} is {_brief(old)}, not {_brief(new)}" for key, (old, new) in some[:_SHOWN]
    )
    more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    yield Finding(
        Severity.WARNING,
        "parameters",
        f"the metastore says otherwise than the metadata: {told}{more}",
        shell_command("repair", entry.full_name),
    )


def _held(catalog: HiveCatalog, entry: HiveTable) -> Iterator[Finding]:
    """Return the live holders of the lock; `server_examination` reports the dead ones."""
    try:
        rows = catalog.client.locks(entry.database, entry.name)
        abandoned = abandoned_locks(catalog.client, rows)
    except MetastoreError:
        return
    for row in [row for row in rows if row not in abandoned][:_SHOWN]:
        if row.state is LockState.ACQUIRED:
            yield Finding(
                Severity.NOTE,
                "lock",
                f"it is held now: {describe_holder(row)}",
                "if its process is dead: "
                + shell_command("locks", "break", str(row.lock_id), "--yes"),
            )


def _brief(text: str | None) -> str:
    if text is None:
        return "missing"
    return repr(text if len(text) <= 60 else text[:57] + "...")
