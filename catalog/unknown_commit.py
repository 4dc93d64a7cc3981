"""Commits whose outcome was unknown: what became of them, and how to rule them out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

from icecomb.catalog.commit.commit_status import CommitState, CommitStatus, is_old
from icecomb.catalog.commit.version_line import other_lines
from icecomb.catalog.table.table import tables_in_folder
from icecomb.format.errors import (
    IcecombError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import (
    Changes,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
)
from icecomb.format.spec.metadata_file import read_metadata, read_named_metadata
from icecomb.format.spec.own_folders import OwnFolders, folder_counts

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.identifier import Name
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata

_FENCE: Final = "icecomb.fence"


def commit_status(
    catalog: Catalog, identifier: Name, metadata_location: str, *, expectation_sent: bool = False
) -> CommitStatus:
    """Return the status of the commit that wrote ``metadata_location``; nothing is changed.

    Args:
        expectation_sent: Whether the commit's request named the pointer it expects, as icecomb's
            do if the metastore checks it: after later commits the expected pointer is gone.
            Otherwise a commit counts as not made once its file is an hour old, and not earlier.
    """
    try:
        table = catalog.load_table(identifier)
    except NoSuchIcebergTableError:
        if not _is_view(catalog, identifier):
            raise
        return catalog.view_commit_status(
            identifier, metadata_location, expectation_sent=expectation_sent
        )
    current = table.metadata_location
    named = [entry.metadata_file for entry in table.metadata.metadata_log]
    # other spellings, as a listing shows them, are the same file
    file, pointer, *log = Spelling(table.io.properties).identities(
        [metadata_location, current, *named]
    )
    if file == pointer:
        return CommitStatus(CommitState.COMMITTED, "the table points at it", current)
    if file in log:
        later = len(log) - log.index(file)
        return CommitStatus(
            CommitState.SUPERSEDED, f"{later} later commits went on from it", current
        )
    try:
        new = read_metadata(table.io, metadata_location)
    except NoSuchFileError:
        return CommitStatus(CommitState.UNKNOWN, "the file is gone, and no log names it", current)
    # A table of format version 1 may get its uuid with this very commit.
    if table.metadata.table_uuid not in {None, new.table_uuid}:
        raise ValidationError(
            f"{metadata_location} is a file of another table: its uuid is {new.table_uuid}, that "
            f"of {'.'.join(table.name())} is {table.metadata.table_uuid}",
            hint="The table was dropped and re-created since, or the file's name is wrong.",
        )
    checked = catalog.rejects_stale_swap(identifier, expectation_sent=expectation_sent)
    return _judge(table, new, metadata_location, named, checked=checked)


def fence(catalog: Catalog, identifier: Name) -> None:
    """Move the pointer without changing the table or view, so that a late request fails."""
    if _is_view(catalog, identifier):
        catalog.load_view(identifier).change(replace)
    else:
        catalog.load_table(identifier).commit(_Fence())


def remove_leftovers(catalog: Catalog, status: CommitStatus) -> None:
    """Delete the leftovers of a commit that is proven not to have happened."""
    if status.state is not CommitState.NOT_COMMITTED:
        raise ValidationError(
            f"Nothing is removed: the commit is {status.state}: {status.reason}",
            hint="Leave the files in place: they may be part of the table.",
        )
    catalog.io.delete(status.leftovers)


class _Fence:
    """A change that leaves the table unchanged, but still makes a new metadata file."""

    starting_point: None = None
    writes_files: ClassVar[bool] = False

    def apply(self, base: TableMetadata) -> Changes:
        updates = (SetPropertiesUpdate({_FENCE: "0"}), RemovePropertiesUpdate((_FENCE,)))
        return Changes((AssertTableUUID(base.table_uuid),), updates)

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Implement `Producer.clean_up`: it writes no files."""


def _is_view(catalog: Catalog, identifier: Name) -> bool:
    with suppress(UnsupportedError):
        return catalog.view_exists(identifier)
    return False


def _judge(
    table: Table, new: TableMetadata, location: str, log: list[str], *, checked: bool
) -> CommitStatus:
    current, now = table.metadata_location, table.metadata
    before = [entry.metadata_file for entry in new.metadata_log]
    base = before[-1] if before else None
    added = _added_snapshots(table, new, base, location)
    if any(now.has_snapshot(one) for one in added):
        return CommitStatus(
            CommitState.SUPERSEDED, "the table has snapshots that it added", current
        )
    old = is_old(new.last_updated_ms)
    moved = base in log
    if moved and (checked or old):
        reason = "others went on from the file that it was based on"
    elif current == base and old and not checked:
        reason = "it is over an hour old, and the table still points to its base"
    elif current == base or moved:
        return CommitStatus(
            CommitState.PENDING, "not so far; a request still under way could commit it", current
        )
    else:
        return CommitStatus(
            CommitState.UNKNOWN, "the table's metadata log does not reach back to its base", current
        )
    folders = table._own_folders()  # noqa: SLF001 - the table knows its pointer
    own = OwnFolders(folders, now, table.io.properties)
    written = dict.fromkeys([*_manifests(table, new, added), location])
    outside = own.outside(written)
    written.pop(location)
    files = [*own.manifests(written), *own.metadata_files([location]), *sorted(outside)]
    unneeded = _unneeded(table, files)
    leftovers = tuple(one for one in unneeded if one not in outside)
    left = folder_counts(one for one in unneeded if one in outside)
    return CommitStatus(CommitState.NOT_COMMITTED, reason, current, leftovers, left)


def _unneeded(table: Table, leftovers: list[str]) -> tuple[str, ...]:
    """Return the leftovers that are not the table's, nor those of another on its metadata.

    Return none of them if that cannot be found out.
    """
    reachable = ReachableFiles(table.io, Spelling(table.io.properties))
    log = (entry.metadata_file for entry in table.metadata.metadata_log)
    reachable.add([table.metadata_location, *log])
    folder, *_ = table._own_folders()  # noqa: SLF001 - the table knows its pointer
    name = table.name()
    with suppress(IcecombError, OSError):
        for other, location in chain(
            tables_in_folder(table.catalog, name, table.metadata, table.io, folder, anywhere=True),
            other_lines(table.io, table.metadata, table.metadata_location),
        ):
            reachable.add_table(other, location)
        return tuple(reachable.unneeded(leftovers))
    return ()


def _added_snapshots(
    table: Table, new: TableMetadata, base: str | None, location: str
) -> list[int]:
    """Return the snapshots that the commit would have added, as far as its base tells."""
    if base is None:
        return []
    try:
        before = read_named_metadata(table.io, base, location)
    except (IcecombError, OSError):
        return []
    ids = (snapshot.snapshot_id for snapshot in new.snapshots)
    return [one for one in ids if not before.has_snapshot(one)]


def _manifests(table: Table, new: TableMetadata, added: list[int]) -> list[str]:
    """Return lists and manifests of the added snapshots that the table does not contain."""
    from icecomb.format.manifests.manifest_list import read_manifests

    found: dict[str, None] = {}
    for one in added:
        snapshot = new.snapshot_by_id(one)
        if snapshot is None or snapshot.manifest_list is None:
            continue
        with suppress(IcecombError, OSError):
            for manifest in read_manifests(table.io, snapshot):
                if manifest.added_snapshot_id == one:
                    found[manifest.manifest_path] = None
        found[snapshot.manifest_list] = None
    # A writer that retried may have reused files of its earlier attempt.
    for snapshot in table.metadata.snapshots:
        if new.has_snapshot(snapshot.snapshot_id) or not found:
            continue
        found.pop(snapshot.manifest_list or "", None)
        for manifest in read_manifests(table.io, snapshot):
            found.pop(manifest.manifest_path, None)
    return list(found)
