"""The metadata files that a table's current one continues, and those that continue elsewhere.

Metadata copied to another folder, or registered in a second catalog, keeps its uuid: both tables
commit from there on, each with metadata files of its own, and neither catalog knows the other's.
Their metadata logs tell them apart. A commit that failed or is still under way leaves one file
that follows a version of the table; a second file after it proves that somebody went on from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icecomb.format.errors import CorruptFileError, NoSuchFileError
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.spec.metadata_file import (
    METADATA_SUFFIXES,
    UNPUBLISHED,
    metadata_folder,
    metadata_version,
    read_metadata,
    read_metadata_document,
    version_of,
)

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_SLACK_MS: Final = 86_400_000
"""The difference between a storage's clock and a writer's that is tolerated."""


class Relation(str, Enum):
    """The relation of a metadata file with a table's uuid to the table.

    Attributes:
        UNNEEDED: An earlier version or a failed commit from before the table's metadata log, or a
            copy staged for another folder.
        OPEN: It follows a version of the log: a commit that failed or is under way, or the first
            one by another catalog.
        OTHER: Another catalog's table went on from it, or it is in another folder than the table's
            metadata.
    """

    UNNEEDED = "unneeded"
    OPEN = "open"
    OTHER = "other"


class VersionLine:
    """A table's current metadata file and those of its log, compared by `spelling`'s rules.

    Links are followed once for each location, and as columns: the logs of the versions of a table
    have nearly all their files in common.
    """

    def __init__(self, metadata: TableMetadata, location: str, spelling: Spelling) -> None:
        self._spelling = spelling
        self._location = location
        self._folder = metadata.location.rstrip("/")
        files = [*(entry.metadata_file for entry in metadata.metadata_log), location]
        self._known: dict[str, tuple[int, str]] = {}
        self._keys = set(self._identities(files))
        self._names = {_name(file) for file in files}
        folders = {f"{self._folder}/metadata", metadata_folder(metadata)}
        folders.update(file.rpartition("/")[0] for file in files)
        self._places = tuple(f"{path}/" for path in spelling.paths(pa.array(sorted(folders))))
        self._number = _number(files[0])
        self.since_ms = (
            metadata.metadata_log[0].timestamp_ms
            if metadata.metadata_log
            else metadata.last_updated_ms
        )

    def others(self, locations: Iterable[str]) -> list[str]:
        """Return the locations that are none of these files."""
        given = list(locations)
        keys = zip(given, self._identities(given), strict=True)
        return [location for location, key in keys if key not in self._keys]

    def relation(self, location: str, document: Mapping[str, Any]) -> Relation:
        """Return the relation of a file with the table's uuid that is not one of these."""
        log = [str(entry.get("metadata-file")) for entry in document.get("metadata-log") or ()]
        _, *keys = self._identities([location, *log])
        if not self._known[location][1].startswith(self._places):
            return Relation.OTHER  # a copy of any age, in a folder of its own
        shared = [at for at, key in enumerate(keys) if key in self._keys]
        place = str(document.get("location")).rstrip("/")
        here, there, folder = self._identities([self._folder, place, table_folder(location)])
        if there != here:
            if there == folder:
                return Relation.OTHER
            if not shared:
                return Relation.UNNEEDED
        is_numbered = version_of(self._location) is not None
        if is_numbered and UNPUBLISHED.fullmatch(_name(location)):
            return Relation.UNNEEDED  # its writer was killed
        if is_numbered != (version_of(location) is not None):
            return Relation.OTHER
        if shared:
            followed = shared[-1] < len(log) - 1
            return Relation.OTHER if followed or _name(location) in self._names else Relation.OPEN
        number = _number(location)
        if number is None or self._number is None:
            changed = document.get("last-updated-ms")
            is_older = isinstance(changed, int) and changed <= self.since_ms
        else:
            is_older = number < self._number
        if is_older:
            return Relation.UNNEEDED
        return Relation.OTHER if _name(location) in self._names else Relation.OPEN

    def _identities(self, locations: Iterable[str]) -> list[int]:
        given = list(locations)
        new = [one for one in dict.fromkeys(given) if one not in self._known]
        if new:
            keys = self._spelling.keys(pa.array(new, pa.string()))
            found = zip(keys.whole.tolist(), keys.paths, strict=True)
            self._known.update(zip(new, found, strict=True))
        return [self._known[one][0] for one in given]


def other_lines(
    io: FileIO, metadata: TableMetadata, location: str
) -> Iterator[tuple[TableMetadata, str]]:
    """Yield the metadata, and its file, of other tables that went on from a table's metadata.

    They are looked for where the table's metadata files belong, and have files in common with it; a
    file-system table may rest since before the table's metadata log begins.
    """
    line = VersionLine(metadata, location, Spelling(io.properties))
    uuid = str(metadata.table_uuid)
    versions = {
        file.location: file
        for file in _files(io, metadata_folder(metadata))
        if file.location.endswith(METADATA_SUFFIXES)
    }
    there = [versions[location] for location in line.others(versions)]
    highest = max((version_of(file.location) or 0 for file in there), default=0)
    found = [
        file.location
        for file in there
        if file.mtime_ms >= line.since_ms - _SLACK_MS or version_of(file.location) == highest
    ]
    for file in found:
        with suppress(NoSuchFileError, CorruptFileError):
            document = read_metadata_document(io, file) or {}
            if (
                document.get("table-uuid") == uuid
                and line.relation(file, document) is Relation.OTHER
            ):
                yield read_metadata(io, file), file


def table_folder(location: str) -> str:
    """Return the folder of the table that a metadata file's own location suggests."""
    folder = location.rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    return above if last == "metadata" else folder


def _files(io: FileIO, folder: str) -> Any:
    with suppress(NoSuchFileError):
        return io.entries(folder).files
    return ()


def _name(location: str) -> str:
    return location.rpartition("/")[2]


def _number(location: str) -> int | None:
    version = version_of(location)
    if version is None and (version := metadata_version(location)) < 0:
        return None
    return version
