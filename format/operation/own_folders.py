"""The folders of a table: its files may be deleted there, and nowhere else.

A path in metadata, or in a file beside it, may be anybody's: whoever can write to one of a table's
folders can name any file of whoever maintains the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.property.table_property import FOLDER_PATHS
from icecomb.format.storage.location import plain_texts

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_METADATA_FILE: Final = re.compile(r".*\.metadata\.json(?:\.gz)?", re.DOTALL)
_MANIFEST: Final = re.compile(r"(?:snap-.*|.*-m\d+)\.avro", re.DOTALL)
"""Names that writers give to manifest lists and manifests."""


class OwnFolders:
    """The folders of one table: its location, and those that its properties name.

    Args:
        metadata: The table metadata.
        properties: Properties of the `FileIO`, which name the HDFS clusters.
    """

    def __init__(self, metadata: TableMetadata, properties: Mapping[str, str]) -> None:
        given = (each.of(metadata.properties) for each in FOLDER_PATHS)
        folders = [metadata.location, *(folder for folder in given if folder)]
        self._properties = properties
        self._starts = tuple(f"{one.rstrip('/')}/" for one in plain_texts(folders, properties))

    def outside(self, locations: Iterable[str]) -> frozenset[str]:
        """Return the files that lie in none of the folders, however their paths are spelled."""
        names = list(locations)
        plain = plain_texts(names, self._properties)
        pairs = zip(names, plain, strict=True)
        return frozenset(name for name, path in pairs if not path.startswith(self._starts))

    def metadata_files(self, locations: Iterable[str]) -> list[str]:
        """Return those locations that are metadata files of the table, by folder and name."""
        return self._named(locations, _METADATA_FILE)

    def manifests(self, locations: Iterable[str]) -> list[str]:
        """Return those locations that are manifests or lists of the table, by folder and name."""
        return self._named(locations, _MANIFEST)

    def _named(self, locations: Iterable[str], name: re.Pattern[str]) -> list[str]:
        found = [one for one in locations if name.fullmatch(one.rpartition("/")[2])]
        outside = self.outside(found)
        return [one for one in found if one not in outside]
