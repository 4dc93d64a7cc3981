"""Repair of a table's entry: its pointer, or its description of the file it points at."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit.commit import swapped
from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion, Outcome
from icecomb.catalog.hive.entry_change import EntryChange, Expectation
from icecomb.catalog.hive.metadata_files import (
    find_recovery,
    lost_snapshots,
    may_be_read_later,
    read_trail,
)
from icecomb.catalog.hive.parameters import FOLDERS, METADATA_LOCATION, described
from icecomb.catalog.hive.pointer import pointed_at
from icecomb.catalog.hive.settlement import ChangeState, Observation
from icecomb.catalog.identifier import database_and_table
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    ValidationError,
)
from icecomb.format.holding import Holding
from icecomb.format.input_limit import bounded_json
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.lock import TableLock
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.catalog.identifier import Name
    from icecomb.format.spec.metadata import TableMetadata

_LOCATION: Final = "(location)"


@dataclass(frozen=True, slots=True)
class Repair:
    """A planned repair for `apply_repair`.

    Attributes:
        table: The table as ``db.table``.
        current: The metadata file that the entry points at.
        readable: Whether that file can be read.
        target: The metadata file that it will point at; the same for a repair of parameters.
        lost_snapshots: Ids of snapshots that the table is known to have and ``target`` lacks.
        counted: Whether these are all of them: the current file tells, though it may be damaged.
        parameters: The parameters that change: old and new text by name.
    """

    table: str
    current: str
    readable: bool
    target: str
    lost_snapshots: tuple[int, ...]
    counted: bool
    parameters: dict[str, tuple[str | None, str | None]]

    @property
    def names_folders(self) -> bool:
        """Whether the entry is to name other folders as the table's own than so far."""
        return not {_LOCATION, *FOLDERS}.isdisjoint(self.parameters)


def plan_repair(catalog: HiveCatalog, identifier: Name, target: str | None = None) -> Repair:
    """Plan a repair for `apply_repair`; change nothing.

    Args:
        target: The metadata file to point at; None rewrites only the entry's description of its
            current file.
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
    """Carry out a planned repair, under the table's lock and checked like a commit.

    No metadata file is written or deleted, whatever the outcome. CommitFailedError means that the
    table changed since the plan, or what the repair would write; CommitStateUnknownError that it is
    unknown whether it was repaired.
    """
    entry, current = _present(catalog, repair.table)
    place = database_and_table(repair.table)
    pointer = catalog.pointer(place)
    if repair.target == repair.current:
        if current is None:
            raise _lost(catalog, entry)
        with Holding() as held, held:
            pointer.queue(held)
            lock = pointer.guard(held, current)
            outcome = _rewrite(catalog, repair, pointer.change, current, lock)
    else:
        metadata = _target(catalog, entry, current, repair.target)
        expected = MetadataVersion(repair.current, current or metadata)
        # Not `settle`, which deletes the file of a failed commit: this one existed before.
        # the plan does not show what folders the file names
        pointer.keeps_folders = True
        with Holding() as held, held:
            pointer.queue(held)
            outcome = swapped(pointer, expected, MetadataVersion(repair.target, metadata))
    if isinstance(outcome, Committed):
        return
    if isinstance(outcome, Conflict):
        raise _moved(repair, outcome)
    raise CommitStateUnknownError(
        f"{repair.table}: it is unknown whether it was repaired: {outcome.reason}",
        hint="Nothing was deleted; look at the table again: "
        f"{shell_command('doctor', repair.table)}",
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
    """Rewrite the entry's description of its metadata, with the same pointer."""
    newest = catalog.client.table(*database_and_table(repair.table))
    if newest.metadata_location != repair.current:
        return Conflict("another writer was first", newest.metadata_location)
    # whoever may write to the table's folder may have changed the file since
    stale = stale_parameters(catalog, newest, metadata)
    if stale != repair.parameters:
        changed = {key for key, _ in stale.items() ^ repair.parameters.items()}
        reason = f"what it would change is other since it was planned: {', '.join(sorted(changed))}"
        return Conflict(reason, repair.current)
    rewritten = described(newest, None, metadata, catalog.properties)

    def poll() -> Observation:
        now = change.read()
        if now is None or now.metadata_location != repair.current:
            return Observation(ChangeState.OVERTAKEN, now)
        stale = stale_parameters(catalog, now, metadata)
        return Observation(ChangeState.NOT_YET if stale else ChangeState.HAPPENED, now)

    expectation = Expectation(METADATA_LOCATION, repair.current)
    return change.alter(rewritten, expectation, poll, metadata.properties, lock)


def stale_parameters(
    catalog: HiveCatalog, entry: HiveTable, metadata: TableMetadata
) -> dict[str, tuple[str | None, str | None]]:
    """Return the parameters that would be written differently now: old and new text by name."""
    wanted = described(entry, None, metadata, catalog.properties)
    old, new = dict(entry.parameters), dict(wanted.parameters)
    if entry.storage.location != wanted.storage.location:
        old[_LOCATION], new[_LOCATION] = str(entry.storage.location), metadata.location
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
    with suppress(ValueError, RecursionError):
        return bool(bounded_json(old) == bounded_json(new))
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
            hint="Nothing to do; to go back, name an older metadata file.",
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
            hint="icecomb doctor names the files that fit.",
        )
    snapshot = metadata.current_snapshot()
    if snapshot and snapshot.manifest_list and not catalog.io.exists(snapshot.manifest_list):
        raise ValidationError(
            f"{target} cannot be used: the manifest list of its snapshot {snapshot.snapshot_id} "
            f"does not exist: {snapshot.manifest_list}",
            hint="icecomb doctor names other files.",
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
        hint=shell_command("repair", entry.full_name, "--to", found.location)
        if found
        else "Its folder has no older metadata file: restore it from a backup.",
        table=entry.full_name,
    )


def _moved(repair: Repair, conflict: Conflict) -> CommitFailedError:
    if conflict.current == repair.current:
        return CommitFailedError(
            f"{repair.table} was not repaired: {conflict.reason}",
            hint="Plan the repair again.",
            table=repair.table,
        )
    return CommitFailedError(
        f"{repair.table} moved since the repair was planned: it points at {conflict.current} now",
        hint="Nothing was changed; plan the repair again.",
        table=repair.table,
        current=conflict.current,
    )
