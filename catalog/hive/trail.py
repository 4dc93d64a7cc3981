"""The metadata files that lie in a table's folder, whether its pointer knows of them or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import IcecombError
from icecomb.format.metadata_file import metadata_version, read_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.file_io import FileIO
    from icecomb.format.metadata import TableMetadata

_SUFFIXES: Final = (".metadata.json", ".metadata.json.gz")
_LOOKED_INTO: Final = 30


@dataclass(frozen=True, slots=True)
class TrailFile:
    """A metadata file that can be read.

    Attributes:
        location: The file.
        metadata: What is in it.
    """

    location: str
    metadata: TableMetadata

    @property
    def ancestors(self) -> list[str]:
        """The files before it, oldest first: each was the table at its time."""
        return [entry.metadata_file for entry in self.metadata.metadata_log]


def read_trail(io: FileIO, entry: HiveTable) -> list[TrailFile]:
    """The newest readable metadata files beside the one an entry points at, newest first.

    Those of another table (by its uuid) are left out.
    """
    return list(_readable(io, entry))


def newest_ancestor(io: FileIO, entry: HiveTable) -> TrailFile | None:
    """The newest readable file from which an entry may go on whose own file is lost.

    It is the one that the entry calls its previous one, if that can be read; else the newest that
    another file names as committed; else the newest there is.
    """
    trail = [one for one in read_trail(io, entry) if one.location != entry.metadata_location]
    previous = entry.parameters.get("previous_metadata_location")
    proven = {name for one in trail for name in one.ancestors}
    for wanted in ({previous}, proven):
        for one in trail:
            if one.location in wanted:
                return one
    return trail[0] if trail else None


def _readable(io: FileIO, entry: HiveTable) -> Iterator[TrailFile]:
    folder = (entry.metadata_location or "").rpartition("/")[0]
    own = {name for name in (entry.parameters.get("previous_metadata_location"),) if name}
    try:
        found = {
            status.location: status.mtime_ms
            for status in io.list(folder)
            if status.location.endswith(_SUFFIXES)
        }
    except (IcecombError, OSError):
        found = {}
    found |= {name: found.get(name, 0) for name in own}
    newest = sorted(found, key=lambda name: (metadata_version(name), found[name]), reverse=True)
    wanted = entry.parameters.get("uuid")
    for location in newest[:_LOOKED_INTO]:
        try:
            metadata = read_metadata(io, location)
        except (IcecombError, OSError):
            continue
        if wanted is None or wanted == str(metadata.table_uuid):
            yield TrailFile(location, metadata)
