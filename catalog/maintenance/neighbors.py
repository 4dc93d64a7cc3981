"""Other tables stored in a table's folder, found by their metadata and in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icecomb.catalog.commit.version_line import Relation, VersionLine, table_folder
from icecomb.catalog.commit.version_name import version_of
from icecomb.catalog.report.progress import SILENT, each
from icecomb.format.errors import CorruptFileError, NoSuchFileError, ValidationError
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.spec.metadata_file import (
    metadata_folder,
    metadata_version,
    read_metadata,
    read_metadata_document,
)

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.folder_listing import FolderListing
    from icecomb.catalog.table.table import Table
    from icecomb.format.operation.expiry.reachable_files import ReachableFiles
    from icecomb.format.storage.file_io import FileIO

_METADATA: Final = "metadata"


@dataclass(frozen=True, slots=True)
class Neighbors:
    """Other tables in a folder.

    Attributes:
        folders: Folders whose contents belong to other tables, with a description of these.
        metadata_files: Metadata files of other tables in folders of this one.
    """

    folders: dict[str, str]
    metadata_files: tuple[str, ...]


def find_neighbors(
    table: Table, root: str, listing: FolderListing, reachable: ReachableFiles, spelling: Spelling
) -> Neighbors:
    """Find the other tables in a folder, and mark the files that their metadata reaches.

    If metadata of a table that the catalog has in this folder is unreadable, it raises: it is
    unknown which files are its own.
    """
    own = spelling.identities([table.location().rstrip("/")])
    folders = dict(listing.others)
    for folder, what in listing.others.items():
        _check_not_own(table, own, spelling, folder, what)
    known = table.metadata.table_uuid
    for entry in table.catalog.entries_below(root, uuid=None if known is None else str(known)):
        if entry.identifier == table.name():
            continue
        name = ".".join(entry.identifier)
        if entry.metadata_location is None:
            _check_not_own(table, own, spelling, entry.location, f"table {name}")
        else:
            metadata = read_metadata(table.io, entry.metadata_location)
            reachable.add_table(metadata, entry.metadata_location)
        if spelling.identities([entry.location.rstrip("/")]) != own:
            folders[entry.location.rstrip("/")] = f"table {name}"
    foreign = _foreign_metadata(table, listing.metadata_files, reachable, spelling)
    shared = []
    places = (metadata_folder(table.metadata), table.metadata_location.rpartition("/")[0])
    of_metadata = set(spelling.identities(places))
    for location, uuid in foreign.items():
        inner = table_folder(location)
        (beside,) = spelling.identities([location.rpartition("/")[0]])
        if beside in of_metadata or spelling.identities([inner]) == own:
            shared.append(location)
        else:
            folders[inner] = f"a table with the uuid {uuid}"
    return Neighbors(folders, tuple(shared))


def _foreign_metadata(
    table: Table, files: Mapping[str, int], reachable: ReachableFiles, spelling: Spelling
) -> dict[str, str]:
    """Return other tables' metadata files with uuids; mark the files that they reach."""
    own = spelling.identities([table.location().rstrip("/")])
    own_uuid = str(table.metadata.table_uuid)
    line = VersionLine(table.metadata, table.metadata_location, spelling)
    found: dict[str, str] = {}
    followed: set[int] = set()

    def read(location: str) -> dict[str, Any] | None:
        return _facts(table.io, location)

    unknown = _unreached(table, files, reachable, spelling)
    for location, facts in zip(
        unknown, each(SILENT, "examining", "files", unknown, read), strict=True
    ):
        if facts is None:
            continue
        uuid, folder = facts.get("table-uuid"), facts.get("location")
        if uuid is None and isinstance(folder, str):
            # metadata of format version 1 may have no uuid: its location identifies the table
            uuid = own_uuid if spelling.identities([folder.rstrip("/")]) == own else folder
        if uuid == own_uuid and line.relation(location, facts) is Relation.UNNEEDED:
            continue
        found[location] = str(uuid)
        if uuid != own_uuid:
            # the last commit may have failed, and its base or another one that follows this be the
            # table; two commits on a version prove that somebody went on from it
            log = [str(entry.get("metadata-file")) for entry in facts.get("metadata-log") or ()]
            followed.update(spelling.identities(log[:-1]))
    for location, key in zip(found, spelling.identities(list(found)), strict=True):
        if key not in followed:
            with suppress(NoSuchFileError, CorruptFileError):
                reachable.add_table(read_metadata(table.io, location), location, damaged=True)
    return found


def _unreached(
    table: Table, files: Mapping[str, int], reachable: ReachableFiles, spelling: Spelling
) -> list[str]:
    """Return the unreached metadata files: in own folders all, in others the highest versions."""
    if not files:
        return []
    locations = pa.array(list(files), pa.string())
    needed, _ = reachable.sort(spelling.keys(locations))
    folders = {f"{table.location().rstrip('/')}/{_METADATA}"}
    by_folder: dict[str, list[str]] = {}
    for file, is_needed in zip(files, needed.tolist(), strict=True):
        folder = file.rpartition("/")[0]
        if is_needed:
            folders.add(folder)
        else:
            by_folder.setdefault(folder, []).append(file)
    own = set(spelling.identities(sorted(folders)))
    found: list[str] = []
    for folder, inside in by_folder.items():
        is_own = not own.isdisjoint(spelling.identities([folder]))
        found += inside if is_own else _highest(inside, files)
    return found


def _highest(inside: list[str], files: Mapping[str, int]) -> list[str]:
    """Return the files of the highest version, by each way to name them, or else the youngest.

    Times do not tell: copies and restored backups have those of their making.
    """
    found: list[str] = []
    for number_of in (lambda file: version_of(file) or -1, metadata_version):
        numbers = {file: number_of(file) for file in inside}
        highest = max(numbers.values())
        if highest >= 0:
            found += [file for file in inside if numbers[file] == highest]
    return found or [max(inside, key=lambda file: (files[file], file))]


def _facts(io: FileIO, location: str) -> dict[str, Any] | None:
    """Return what a metadata file says; None if it is not one, or gone."""
    with suppress(NoSuchFileError):
        return read_metadata_document(io, location)
    return None


def _check_not_own(table: Table, own: Any, spelling: Spelling, folder: str, what: str) -> None:
    if spelling.identities([folder.rstrip("/")]) == own:
        name = ".".join(table.name())
        raise ValidationError(
            f"Orphan files of {name} are unknown: its folder is also that of {what}: {folder}",
            hint="its files are unknown here: give one of the two tables a folder of its own",
            table=name,
            path=folder,
        )
