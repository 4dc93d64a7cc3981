"""The folders of a table: its files may be deleted there, and nowhere else.

A path in metadata, or in a file beside it, may be anybody's: whoever can write to one of a table's
folders can name any file of whoever maintains the table, and any folder as the table's. So the
folders are those that the table's catalog vouches for, which only a commit can change.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ConfigurationError, ValidationError
from icecomb.format.property.table_property import FOLDER_PATHS, FORMER_FOLDERS
from icecomb.format.storage.local import trusted_path
from icecomb.format.storage.location import PARTS, linked_texts, outside, plain_texts
from icecomb.format.storage.storage_property import ABSOLUTE, OWN_PREFIXES

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.view import ViewMetadata

_METADATA_FILE: Final = re.compile(r".*\.metadata\.json(?:\.gz)?", re.DOTALL)
_MANIFEST: Final = re.compile(r"(?:snap-.*|.*-m\d+)\.avro", re.DOTALL)
"""Names that writers give to manifest lists and manifests."""
_OBJECT_STORE: Final = re.compile(r"/(?:[01]{4}/){3}[01]{8}/(?P<owner>[^/=]+/[^/=]+)/.", re.DOTALL)
"""Paths in the layout for object stores outside of the table's location name the table."""
_SHOWN: Final = 10
_MOST_CHARACTERS: Final = 3_500
"""Some metastores keep 4,000 characters of a property."""


class OwnFolders:
    """The folders of a table or view: its location, those that properties name, and former ones.

    The `properties` are those of the `FileIO`, which name the HDFS clusters. The user says that
    the folders in `more` are the table's, too.
    """

    def __init__(
        self,
        vouched: Sequence[str],
        metadata: TableMetadata | ViewMetadata,
        properties: Mapping[str, str],
        more: Sequence[str] = (),
    ) -> None:
        self._vouched = vouched
        self._more = more
        self._metadata = metadata
        self._properties = properties
        self._allowed = OWN_PREFIXES.of(properties)

    @cached_property
    def folders(self) -> dict[str, str]:
        """The folders, as they were spelled, each with the text that paths below it begin with."""
        given, properties = [*self._vouched], self._properties
        if self._allowed:
            named = {_start(one): one for one in named_folders(self._metadata)}
            others = outside(self._allowed, named, properties)
            given += [one for start, one in named.items() if start not in others]
        given += self._more
        (root,) = linked_texts([_start(properties.get("warehouse", ""))], properties)
        plain = _plain(given, properties)
        is_local = [start.startswith("/") for start in plain]
        found: dict[str, str] = {}
        for start in sorted({*plain}, key=len):
            place = _place(start, found)
            if place and re.sub(PARTS, r"\g<path>", place) != "/" and not root.startswith(place):
                found[start] = place
        return {
            one: found[start]
            for number, (one, start) in enumerate(zip(given, plain, strict=True))
            if start in found
            and (is_local[0] or not is_local[number] or number >= len(self._vouched))
        }

    def outside(self, locations: Iterable[str], *, names: bool = False) -> frozenset[str]:
        """Return the files that lie in none of the folders; see `location.outside`.

        So do those in a folder of several tables whose paths name another one as their owner.
        """
        given, starts = [*locations], tuple(self.folders.values())
        location = self.folders.get(next(iter(self._vouched), ""))
        own = {owner_of(one) for one in self._vouched}

        def is_others(path: str) -> bool:
            if location is None or path.startswith(location):
                return False
            match = _OBJECT_STORE.search(path)
            return match is not None and match["owner"] not in own

        paths = linked_texts(given, self._properties, names=names)
        return frozenset(
            name
            for name, path in zip(given, paths, strict=True)
            if not path.startswith(starts) or is_others(path)
        )

    def check_more(self, name: str) -> None:
        """Refuse what a user says of folders if they can be no table's, as the root of a disk."""
        for folder in self._more:
            if not ABSOLUTE.match(folder) or folder not in self.folders:
                raise ValidationError(
                    f"{name}: no file is deleted in {folder}: it is relative, a root, holds the "
                    "warehouse, or is behind a link of another user",
                    hint="Name the folder whose files are this table's alone.",
                    table=name,
                    path=folder,
                )

    def metadata_files(self, locations: Iterable[str]) -> list[str]:
        """Return those locations that are metadata files of the table, by folder and name."""
        return self._named(locations, _METADATA_FILE)

    def manifests(self, locations: Iterable[str]) -> list[str]:
        """Return those locations that are manifests or lists of the table, by folder and name."""
        return self._named(locations, _MANIFEST)

    def check_new_files(self, name: str, folders: Iterable[str]) -> None:
        """Refuse to write to folders that only the metadata names: they may be anybody's.

        One that leads elsewhere by a link of another user is refused when a file is created.
        """
        # the usual case needs no arrays of Arrow, whose first one imports pandas
        plain = [_start(one) for one in self._vouched if one]
        given = [one for one in folders if not any(_is_within(one, start) for start in plain)]
        if not given:
            return
        known = tuple(_plain([*filter(None, self._vouched), *self.folders], self._properties))
        for folder, start in zip(given, _plain(given, self._properties), strict=True):
            path = trusted_path(start) if start.startswith("/") else None
            if start.startswith(known) or (
                path is not None and _start(path).startswith(tuple(self.folders.values()))
            ):
                continue
            raise ValidationError(
                f"{name}: new files would go to {folder}, which only its metadata file says; by "
                f"its catalog its folders are {', '.join(self._vouched)}",
                hint="If the folder is the table's alone, name it in the catalog's "
                f"{OWN_PREFIXES.key}; else change the location or the property (write.data.path "
                "and the like) that names it.",
                table=name,
                path=folder,
            )

    def _named(self, locations: Iterable[str], name: re.Pattern[str]) -> list[str]:
        found = [one for one in locations if name.fullmatch(one.rpartition("/")[2])]
        outside = self.outside(found)
        return [one for one in found if one not in outside]


def owner_of(table_location: str) -> str:
    """Return how the layout for object stores names a table: by its folder and the one above."""
    return "/".join(table_location.rstrip("/").rsplit("/", 2)[-2:])


def _place(start: str, above: Mapping[str, str]) -> str | None:
    """Return the text that paths below a folder begin with; None if a stranger's link is there.

    Below another folder of the table no link is followed: whoever writes there makes them.
    """
    for one, place in above.items():
        if start.startswith(one):
            return place + start[len(one) :]
    if not start.startswith("/"):
        return start
    path = trusted_path(start)
    return None if path is None else _start(path)


def named_folders(metadata: TableMetadata | ViewMetadata) -> list[str]:
    """Return the folders that metadata calls its table's or view's, its location first."""
    return [metadata.location, *folders_of(metadata.properties)]


def folders_of(properties: Mapping[str, str]) -> list[str]:
    """Return the folders that properties call a table's."""
    given = [folder for each in FOLDER_PATHS if (folder := each.of(properties))]
    with suppress(ConfigurationError):  # a list that is none names none
        given += FORMER_FOLDERS.of(properties)
    return given


def confirmed(
    wanted: Iterable[str],
    vouched: Iterable[str],
    before: Iterable[str],
    properties: Mapping[str, str],
) -> set[str]:
    """Return those folders of new metadata that a catalog may vouch for from now on.

    Whoever commits vouches for what the metadata before did not name. What it named may be
    anybody's, unless the catalog vouches for that folder already; one inside of such a folder
    may become a link that leads out of it.

    Args:
        wanted: Folders that the new metadata names.
        vouched: The folders that the catalog vouches for so far.
        before: The folders that the metadata before the commit named.
        properties: Properties of the `FileIO`, which name the HDFS clusters.
    """
    given = [*wanted]
    as_written = {_start(one) for one in vouched if one}
    # as a rule nothing is new, and no array of Arrow is needed, whose first one imports pandas
    if as_written.issuperset(map(_start, given)):
        return {*given}
    known = {*_plain(as_written, properties)}
    doubtful = {*_plain(before, properties)} - known
    pairs = zip(given, _plain(given, properties), strict=True)
    return {one for one, start in pairs if start not in doubtful}


def former_folders(metadata: TableMetadata, others: Iterable[str]) -> dict[str, str]:
    """Return the property by which a table keeps folders as its own; nothing if it has them.

    What a metastore cannot hold of `others`, more folders of the table, is left out.
    """
    starts = [_start(folder) for folder in named_folders(metadata)]
    known = FORMER_FOLDERS.of(metadata.properties)
    kept = dict.fromkeys(known)
    for folder in others:
        start = _start(folder)
        if not start.startswith(tuple(starts)):
            kept[folder] = None
            starts.append(start)
            if len(json.dumps([*kept])) > _MOST_CHARACTERS:
                return {}
    return {FORMER_FOLDERS.key: json.dumps([*kept])} if len(kept) > len(known) else {}


def _is_within(folder: str, start: str) -> bool:
    """Return whether a path is below a folder as it is written, without dots and escapes."""
    text = _start(folder)
    return text.startswith(start) and not {".", "%", "\\"} & {*text[len(start) :]}


def _plain(folders: Iterable[str], properties: Mapping[str, str]) -> list[str]:
    return [_start(one) for one in plain_texts(map(_start, folders), properties)]


def _start(folder: str) -> str:
    return f"{folder.rstrip('/')}/"


def folder_counts(locations: Iterable[str]) -> dict[str, int]:
    """Return the folders of files with the number of files in each, the largest first."""
    return dict(Counter(one.rpartition("/")[0] for one in locations).most_common())


def outside_text(outside: Collection[str], of: str = "the table's folders") -> str:
    """Return in words how many files are outside of some folders, and where most are."""
    folders = [*folder_counts(outside).items()]
    shown = ", ".join(f"{folder} ({count})" for folder, count in folders[:_SHOWN])
    rest = folders[_SHOWN:]
    more = f" and {len(rest)} more folders ({sum(count for _, count in rest)})" if rest else ""
    return f"{len(outside)} files outside of {of}: {shown}{more}"
