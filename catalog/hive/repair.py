"""Repairing a table's entry: where it points, or what it says about the file it points at."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.catalog.hive.entry_change import EntryChange, Expectation
from icecomb.catalog.hive.metadata_files import (
    find_recovery,
    lost_snapshots,
    may_be_read_later,
    read_trail,
)
from icecomb.catalog.hive.parameters import METADATA_LOCATION, described
from icecomb.catalog.hive.pointer import pointed_at
from icecomb.catalog.hive.settlement import Seen, Sight
from icecomb.catalog.identifier import database_and_table
from icecomb.catalog.pointer import Committed, Conflict, MetadataVersion, Outcome
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    ValidationError,
)

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Name
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.lock import TableLock
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.spec.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair does; `apply_repair` does it.

    Attributes:
        table: As ``db.table``.
        current: Where the entry points.
        readable: Whether that file can be read.
        target: Where it will point; the same for a repair of what the entry says.
        lost_snapshots: Snapshots that the table is known to have and ``target`` has not.
        counted: Whether these are all of them: the current file tells, though it may be damaged.
        parameters: What the entry will say otherwise: old and new text by parameter.
    """

    table: str
    current: str
    readable: bool
    target: str
    lost_snapshots: tuple[int, ...]
    counted: bool
    parameters: dict[str, tuple[str | None, str | None]]


def plan_repair(catalog: HiveCatalog, identifier: Name, target: str | None = None) -> Repair:
    """What `apply_repair` would do; nothing is changed.

    Args:
        catalog: The catalog.
        identifier: The table.
        target: The metadata file to point at; None: only what the entry says about the file that
            it points at is written anew.

    Raises:
        NoSuchTableError, NoSuchIcebergTableError: there is no such table.
        ValidationError: ``target`` is a file of another table; or there is none, and the current
            file is lost.
        FileMissingError, CorruptFileError: ``target`` cannot be read.
        UnsupportedError, FileIOError: there is none, and the current file cannot be read here and
            now, though nothing says that it is damaged.
    """
    entry, current = _present(catalog, identifier)
    location = pointed_at(entry)
    if target is None:
        if current is None:
            raise _lost(catalog, entry)
        stale = stale_parameters(catalog, entry, current)
        return Repair(entry.full_name, location, True, location, (), True, stale)
    metadata = _target(catalog, entry, current, target)
    if current is None:
        lost, counted = lost_snapshots(read_trail(catalog.io, entry), entry, metadata)
    else:
        ids = (snapshot.snapshot_id for snapshot in current.snapshots)
        lost, counted = tuple(one for one in ids if not metadata.has_snapshot(one)), True
    return Repair(entry.full_name, location, current is not None, target, lost, counted, {})


def apply_repair(catalog: HiveCatalog, repair: Repair) -> None:
    """Do what was planned, under the table's lock and checked like a commit.

    No metadata file is written or deleted, whatever the outcome.

    Raises:
        CommitFailedError: the table moved since the plan; nothing was changed.
        CommitStateUnknownError: it cannot be told whether it was repaired.
        LockTimeoutError: the lock was not granted in time.
    """
    entry, current = _present(catalog, repair.table)
    place = database_and_table(repair.table)
    pointer = catalog.pointer(place)
    if repair.target == repair.current:
        if current is None:
            raise _lost(catalog, entry)
        with pointer.queue(), pointer.guard(current) as lock:
            outcome = _rewrite(catalog, repair, pointer.change, current, lock)
    else:
        metadata = _target(catalog, entry, current, repair.target)
        expected = MetadataVersion(repair.current, current or metadata)
        # not `settle`, which deletes the file of a commit that failed: this one was there before
        with pointer.queue():
            outcome = pointer.swap(expected, MetadataVersion(repair.target, metadata))
    if isinstance(outcome, Committed):
        return
    if isinstance(outcome, Conflict):
        raise _moved(repair, outcome)
    raise CommitStateUnknownError(
        f"{repair.table}: it is unknown whether it was repaired: {outcome.reason}",
        hint="nothing was deleted; look at the table again: icecomb doctor " + repair.table,
        table=repair.table,
        new=repair.target,
        current=outcome.current,
    ) from outcome.cause


def _rewrite(
    catalog: HiveCatalog,
    repair: Repair,
    change: EntryChange,
    metadata: TableMetadata,
    lock: TableLock | None,
) -> Outcome:
    """Write anew what the entry says; where it points stays."""
    newest = catalog.client.table(*database_and_table(repair.table))
    if newest.metadata_location != repair.current:
        return Conflict("another writer was first", newest.metadata_location)
    rewritten = described(newest, None, metadata, catalog.properties)

    def look() -> Seen:
        now = change.read()
        if now is None or now.metadata_location != repair.current:
            return Seen(Sight.OVERTAKEN, now)
        stale = stale_parameters(catalog, now, metadata)
        return Seen(Sight.NOT_YET if stale else Sight.HAPPENED, now)

    expectation = Expectation(METADATA_LOCATION, repair.current)
    return change.alter(rewritten, expectation, look, metadata.properties, lock)


def stale_parameters(
    catalog: HiveCatalog, entry: HiveTable, metadata: TableMetadata
) -> dict[str, tuple[str | None, str | None]]:
    """What an entry says otherwise than it would be written now: old and new text by parameter."""
    wanted = described(entry, None, metadata, catalog.properties)
    old, new = dict(entry.parameters), dict(wanted.parameters)
    if entry.storage.location != wanted.storage.location:
        old["(location)"], new["(location)"] = str(entry.storage.location), metadata.location
    old["(formats)"], new["(formats)"] = _formats(entry), _formats(wanted)
    columns = [
        ", ".join(f"{one.name} {one.type}" for one in side.storage.columns)
        for side in (entry, wanted)
    ]
    old["(columns)"], new["(columns)"] = columns
    return {
        key: (old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if not _same(key, old.get(key), new.get(key))
    }


def _formats(entry: HiveTable) -> str:
    storage = entry.storage
    return ", ".join(
        str(one) for one in (storage.input_format, storage.output_format, storage.serde)
    )


def _same(key: str, old: str | None, new: str | None) -> bool:
    if old == new or key == "DO_NOT_UPDATE_STATS":
        return True
    if old is None or new is None or key not in _JSON:
        return False
    import json

    with suppress(ValueError):
        return bool(json.loads(old) == json.loads(new))
    return False


_JSON = frozenset(
    ("current-schema", "default-partition-spec", "default-sort-order", "current-snapshot-summary")
)


def _present(catalog: HiveCatalog, identifier: Name) -> tuple[HiveTable, TableMetadata | None]:
    from icecomb.format.spec.metadata_file import read_metadata

    entry = catalog.client.table(*database_and_table(identifier))
    location = pointed_at(entry)
    try:
        return entry, read_metadata(catalog.io, location)
    except (IcecombError, OSError):
        return entry, None


def _target(
    catalog: HiveCatalog, entry: HiveTable, current: TableMetadata | None, target: str
) -> TableMetadata:
    from icecomb.format.spec.metadata_file import read_metadata

    if target == entry.metadata_location:
        raise ValidationError(
            f"{entry.full_name} points at {target} already",
            hint="nothing to do; to go back, name an older metadata file",
            table=entry.full_name,
            path=target,
        )
    metadata = read_metadata(catalog.io, target)
    known = str(current.table_uuid) if current else entry.parameters.get("uuid")
    same = str(metadata.table_uuid) == known
    if known in {None, "None"}:
        same = metadata.location.rstrip("/") == (entry.storage.location or "").rstrip("/")
    if not same:
        raise ValidationError(
            f"{target} is a file of another table: its uuid is {metadata.table_uuid}, that of "
            f"{entry.full_name} is {known}",
            hint="icecomb doctor names the files that fit",
        )
    snapshot = metadata.current_snapshot()
    if snapshot and snapshot.manifest_list and not catalog.io.exists(snapshot.manifest_list):
        raise ValidationError(
            f"{target} is of no use: the manifest list of its snapshot {snapshot.snapshot_id} does "
            f"not exist: {snapshot.manifest_list}",
            hint="icecomb doctor names other files",
        )
    return metadata


def _lost(catalog: HiveCatalog, entry: HiveTable) -> Exception:
    from icecomb.format.spec.metadata_file import read_metadata

    try:
        read_metadata(catalog.io, pointed_at(entry))
    except (IcecombError, OSError) as error:
        if may_be_read_later(error):
            return error
    found = find_recovery(catalog.io, entry)
    reservation = f"; of {found.location}: {found.reservation}" if found else ""
    return ValidationError(
        f"{entry.full_name}: its metadata file cannot be read: {entry.metadata_location}"
        f"{reservation}",
        hint=f"icecomb repair {entry.full_name} --to {found.location}"
        if found
        else "no older metadata file lies beside it: restore it from a backup",
        table=entry.full_name,
    )


def _moved(repair: Repair, conflict: Conflict) -> CommitFailedError:
    if conflict.current == repair.current:
        return CommitFailedError(
            f"{repair.table} was not repaired: {conflict.reason}",
            hint="try again",
            table=repair.table,
        )
    return CommitFailedError(
        f"{repair.table} moved since the repair was planned: it points at {conflict.current} now",
        hint="nothing was changed; plan the repair again",
        table=repair.table,
        current=conflict.current,
    )
