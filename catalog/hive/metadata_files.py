"""The metadata files that lie in a table's folder, whether its pointer knows of them or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.hive.parameters import PREVIOUS_METADATA_LOCATION
from icecomb.format.errors import IcecombError, UnsupportedError
from icecomb.format.spec.metadata_file import (
    metadata_version,
    read_metadata,
    read_metadata_document,
)
from icecomb.format.storage.location import plain_texts

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_SUFFIXES: Final = (".metadata.json", ".metadata.json.gz")
_LOOKED_INTO: Final = 30
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class TrailFile:
    """A metadata file that can be read.

    Attributes:
        location: The file.
        metadata: Its contents.
        name: The location in the one spelling that names are compared by.
        ancestors: Names of the files before it, oldest first: each was the table at its time.
    """

    location: str
    metadata: TableMetadata
    name: str
    ancestors: list[str]

    @property
    def base(self) -> str:
        """The location of the file before it, as its writer spelled it."""
        return self.metadata.metadata_log[-1].metadata_file

    @property
    def snapshot_ids(self) -> list[int]:
        """The snapshots of the table at its time."""
        return [snapshot.snapshot_id for snapshot in self.metadata.snapshots]


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that is no valid metadata, but JSON: it still says what came before it.

    Attributes:
        location: The file.
        name: As of a `TrailFile`.
        ancestors: As of a `TrailFile`.
        snapshot_ids: As of a `TrailFile`.
    """

    location: str
    name: str
    ancestors: list[str]
    snapshot_ids: list[int]


@dataclass(frozen=True, slots=True)
class Trail:
    """The newest files in a table's folder, newest first; those of other tables are left out.

    Attributes:
        files: Those that can be read.
        broken: Those that at least are JSON.
        name_of: Gives the name of a location: engines spell the scheme of one file as they like.
    """

    files: list[TrailFile]
    broken: list[BrokenFile]
    name_of: Callable[[str], str]

    @property
    def witnesses(self) -> list[TrailFile | BrokenFile]:
        """All that say what came before them; a writer begins with what the table is."""
        return [*self.files, *self.broken]

    def find(self, location: str | None) -> TrailFile | BrokenFile | None:
        """Return the file at a location, if there is one."""
        if location is None:
            return None
        name = self.name_of(location)
        return next((one for one in self.witnesses if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Recovery:
    """The file from which an entry may go on whose own file is lost.

    Attributes:
        location: The file.
        committed: Whether the entry or another file says that it was the table once.
        others: Files that may be the right one instead, if it is not known to be committed.
        lost: Snapshots that the table is known to have, and the file has not.
        counted: Whether these are all of them.
    """

    location: str
    committed: bool
    others: tuple[str, ...]
    lost: tuple[int, ...]
    counted: bool

    @property
    def reservation(self) -> str:
        """What people must know before they go on from there."""
        said = describe_loss(self.lost, counted=self.counted)
        if self.committed:
            return said
        instead = f" (or is it {', or '.join(self.others)}?)" if self.others else ""
        return f"no file that is left says that it was ever committed{instead}; {said}"


def read_trail(io: FileIO, entry: HiveTable) -> Trail:
    """The newest metadata files beside the one an entry points at, that one included."""

    @cache  # the logs of the files name much the same ones
    def name_of(location: str) -> str:
        return plain_texts([location], io.properties)[0]

    found = list(_files(io, entry, name_of))
    return Trail(
        [one for one in found if isinstance(one, TrailFile)],
        [one for one in found if isinstance(one, BrokenFile)],
        name_of,
    )


def find_recovery(io: FileIO, entry: HiveTable) -> Recovery | None:
    """The newest readable file from which an entry may go on whose own file is lost.

    It is the newest that the entry or another file names as committed. Where neither the lost file
    nor the one before it says what they followed, a newer one may have been committed unnamed.
    """
    trail = read_trail(io, entry)
    locations = (
        entry.metadata_location or "",
        entry.parameters.get(PREVIOUS_METADATA_LOCATION, ""),
    )
    current, previous = map(trail.name_of, locations)
    files = [one for one in trail.files if one.name != current]
    committed = {name for one in trail.witnesses for name in one.ancestors}
    sure = next((one for one in files if one.name == previous), None)
    sure = sure or next((one for one in files if one.name in committed), None)
    newer = files if sure is None else files[: files.index(sure)]
    known = any(one is not None and one.ancestors for one in map(trail.find, locations))
    unnamed = [] if known else [one for one in newer if current not in one.ancestors]
    if sure is None and not unnamed:
        unnamed = files
    best = unnamed[0] if unnamed else sure
    if best is None:
        return None
    version = metadata_version(best.location)
    rivals = [one for one in unnamed[1:] if metadata_version(one.location) == version]
    others = [*rivals, *([sure] if sure else [])] if unnamed else []
    lost, counted = lost_snapshots(trail, entry, best.metadata)
    return Recovery(
        best.location, not unnamed, tuple(one.location for one in others), lost, counted
    )


def lost_snapshots(
    trail: Trail, entry: HiveTable, target: TableMetadata
) -> tuple[tuple[int, ...], bool]:
    """Snapshots that a table whose file is lost is known to have, and ``target`` has not.

    Returns:
        Their ids, and whether these are all: the lost file itself still tells.
    """
    own = trail.find(entry.metadata_location)
    known = dict.fromkeys(own.snapshot_ids if own else ())
    if own is None:
        before = trail.find(entry.parameters.get(PREVIOUS_METADATA_LOCATION))
        known.update(dict.fromkeys(before.snapshot_ids if before else ()))
        described = entry.parameters.get("current-snapshot-id", "")
        if described.isdecimal():
            known[int(described)] = None
    return tuple(one for one in known if not target.has_snapshot(one)), own is not None


def describe_loss(lost: Sequence[int], *, counted: bool) -> str:
    """What a file lacks, in words; see `lost_snapshots`."""
    some = ", ".join(str(one) for one in lost[:_SHOWN]) + (", ..." if len(lost) > _SHOWN else "")
    if counted:
        return f"it lacks {len(lost)} snapshots: {some}" if lost else "it lacks no snapshot"
    if lost:
        return f"it lacks at least {len(lost)} snapshots, {some}; others cannot be counted"
    return "it has the snapshots that the table is known to have had; others cannot be counted"


def may_be_read_later(error: Exception) -> bool:
    """Whether a file is perhaps as it should be, though it cannot be read here and now.

    It is of a format version that others know, or the file system refused or failed.
    """
    if isinstance(error, UnsupportedError):
        return True
    return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)


def _files(
    io: FileIO, entry: HiveTable, name_of: Callable[[str], str]
) -> Iterator[TrailFile | BrokenFile]:
    folder = (entry.metadata_location or "").rpartition("/")[0]
    own = {name for name in (entry.parameters.get(PREVIOUS_METADATA_LOCATION),) if name}
    try:
        found = {
            status.location: status.mtime_ms
            for status in io.list(folder)
            if status.location.endswith(_SUFFIXES)
        }
    except (IcecombError, OSError):
        found = {}
    listed = {name_of(location) for location in found}
    found |= {location: 0 for location in own if name_of(location) not in listed}
    newest = sorted(found, key=lambda name: (metadata_version(name), found[name]), reverse=True)
    wanted = entry.parameters.get("uuid")
    for location in newest[:_LOOKED_INTO]:
        try:
            metadata = read_metadata(io, location)
        except (IcecombError, OSError):
            yield from _broken(io, location, wanted, name_of)
            continue
        if wanted is None or wanted == str(metadata.table_uuid):
            ancestors = [name_of(log.metadata_file) for log in metadata.metadata_log]
            yield TrailFile(location, metadata, name_of(location), ancestors)


def _broken(
    io: FileIO, location: str, wanted: str | None, name_of: Callable[[str], str]
) -> Iterator[BrokenFile]:
    try:
        document = read_metadata_document(io, location)
    except (IcecombError, OSError):
        return
    if document is None or wanted not in {None, document.get("table-uuid")}:
        return
    log, snapshots = document.get("metadata-log", []), document.get("snapshots")
    if isinstance(log, list) and isinstance(snapshots, list):
        ancestors = [name_of(file) for file in _members(log, "metadata-file", str)]
        members = _members(snapshots, "snapshot-id", int)
        yield BrokenFile(location, name_of(location), ancestors, members)


def _members(items: list[Any], name: str, kind: type) -> list[Any]:
    found = [one.get(name) for one in items if isinstance(one, dict)]
    return [one for one in found if isinstance(one, kind)]
