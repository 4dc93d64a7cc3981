"""Metadata files in a table's folder, in or outside of the history of its pointer."""

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
_EXAMINED: Final = 30
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class TrailFile:
    """A metadata file that can be read.

    Attributes:
        name: The location in the one spelling by which files are compared.
        ancestors: Names of the files before it, oldest first: each was the table at its time.
    """

    location: str
    metadata: TableMetadata
    name: str
    ancestors: list[str]

    @property
    def base(self) -> str:
        """Location of the file before it, as its writer spelled it."""
        return self.metadata.metadata_log[-1].metadata_file

    @property
    def snapshot_ids(self) -> list[int]:
        """Ids of the table's snapshots at that time."""
        return [snapshot.snapshot_id for snapshot in self.metadata.snapshots]


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that is JSON, but not valid metadata; it still names the files before it."""

    location: str
    name: str
    ancestors: list[str]
    snapshot_ids: list[int]


@dataclass(frozen=True, slots=True)
class Trail:
    """The newest metadata files in a table's folder, newest first, without other tables'.

    Attributes:
        files: The valid ones.
        broken: Those that are at least JSON.
        name_of: Function from a location to its name; engines spell the scheme differently.
    """

    files: list[TrailFile]
    broken: list[BrokenFile]
    name_of: Callable[[str], str]

    @property
    def witnesses(self) -> list[TrailFile | BrokenFile]:
        """All files that name those before them; a writer starts from the committed table."""
        return [*self.files, *self.broken]

    def find(self, location: str | None) -> TrailFile | BrokenFile | None:
        """Return the file at a location, if there is one."""
        if location is None:
            return None
        name = self.name_of(location)
        return next((one for one in self.witnesses if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Recovery:
    """The file to which an entry can point whose own file is lost.

    Attributes:
        committed: Whether the entry or another file says that it was committed.
        others: Other candidates, if it is not known to be committed.
        lost: Ids of the table's known snapshots that the file lacks.
        counted: Whether `lost` is complete.
    """

    location: str
    committed: bool
    others: tuple[str, ...]
    lost: tuple[int, ...]
    counted: bool

    @property
    def reservation(self) -> str:
        """The loss that people must know of before they use the file."""
        said = describe_loss(self.lost, counted=self.counted)
        if self.committed:
            return said
        instead = f" (or is it {', or '.join(self.others)}?)" if self.others else ""
        return f"no file that is left says that it was ever committed{instead}; {said}"


def read_trail(io: FileIO, entry: HiveTable) -> Trail:
    """Read the newest metadata files in the folder of an entry's current one."""

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
    """Return the newest readable file to which an entry can point whose own file is lost.

    It is the newest that the entry or another file names as committed. If neither the lost file
    nor its predecessor names the files before it, a newer one may have been committed unnamed.
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
    """Return the ids of known snapshots that ``target`` lacks, and whether they are complete.

    They are if the lost file itself could still be parsed.
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
    """Describe the snapshots that a file lacks; see `lost_snapshots`."""
    some = ", ".join(str(one) for one in lost[:_SHOWN]) + (", ..." if len(lost) > _SHOWN else "")
    if counted:
        return f"it lacks {len(lost)} snapshots: {some}" if lost else "it lacks no snapshot"
    if lost:
        return f"it lacks at least {len(lost)} snapshots, {some}; others cannot be counted"
    return "it has the snapshots that the table is known to have had; others cannot be counted"


def may_be_read_later(error: Exception) -> bool:
    """Return whether a file may be intact though it cannot be read now.

    Its format version may be known to others, or the file system refused or failed.
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
    for location in newest[:_EXAMINED]:
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
