"""The folders of a table: its files may be deleted there, and nowhere else.

A path in metadata, or in a file beside it, may be anybody's: whoever can write to one of a table's
folders can name any file of whoever maintains the table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.property.table_property import FOLDER_PATHS, FORMER_FOLDERS
from icecomb.format.storage.location import outside

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_METADATA_FILE: Final = re.compile(r".*\.metadata\.json(?:\.gz)?", re.DOTALL)
_MANIFEST: Final = re.compile(r"(?:snap-.*|.*-m\d+)\.avro", re.DOTALL)
"""Names that writers give to manifest lists and manifests."""
_SHOWN: Final = 3
_MOST_CHARACTERS: Final = 3_500
"""Some metastores keep 4,000 characters of a property."""


class OwnFolders:
    """The folders of one table: its location, those that its properties name, and former ones.

    The `properties` are those of the `FileIO`, which name the HDFS clusters.
    """

    def __init__(self, metadata: TableMetadata, properties: Mapping[str, str]) -> None:
        self._folders = named_folders(metadata)
        self._properties = properties

    def outside(self, locations: Iterable[str]) -> frozenset[str]:
        """Return the files that lie in none of the folders; see `location.outside`."""
        return outside(self._folders, locations, self._properties, names=False)

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


def named_folders(metadata: TableMetadata) -> list[str]:
    """Return the folders that are a table's own, as its metadata spells them."""
    given = (each.of(metadata.properties) for each in FOLDER_PATHS)
    former = FORMER_FOLDERS.of(metadata.properties)
    return [metadata.location, *(folder for folder in given if folder), *former]


def former_folders(metadata: TableMetadata, others: Iterable[str]) -> dict[str, str]:
    """Return the property by which a table keeps folders as its own; nothing if it has them.

    What a metastore cannot hold of `others`, more folders of the table, is left out.
    """
    starts = [f"{folder.rstrip('/')}/" for folder in named_folders(metadata)]
    known = FORMER_FOLDERS.of(metadata.properties)
    kept = dict.fromkeys(known)
    for folder in others:
        start = f"{folder.rstrip('/')}/"
        if not start.startswith(tuple(starts)):
            kept[folder] = None
            starts.append(start)
            if len(json.dumps([*kept])) > _MOST_CHARACTERS:
                return {}
    return {FORMER_FOLDERS.key: json.dumps([*kept])} if len(kept) > len(known) else {}


def outside_text(outside: Collection[str]) -> str:
    """Return in words how many files are outside of a table's folders, and where most are."""
    folders = Counter(location.rpartition("/")[0] for location in outside).most_common()
    shown = ", ".join(f"{folder} ({count})" for folder, count in folders[:_SHOWN])
    more = f" and {len(folders) - _SHOWN} more folders" if len(folders) > _SHOWN else ""
    return f"{len(outside)} files outside of the table's folders: {shown}{more}"
