"""The files a Hive table consists of: what readers see in the folders of its partitions.

Hive and Spark pass over names that begin with ``_`` or ``.``; files of folders that are not
registered as partitions belong to nobody. Empty files hold no rows and no footer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from icecomb.catalog.progress import THREADS, Progress, each
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from icecomb.format.storage.location import plain_texts

AHEAD: Final = 256
"""Answers of storage that may wait."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that holds rows of one partition (or of the whole table when it has none).

    Attributes:
        name: How Hive names the partition, for messages; "" for an unpartitioned table.
        location: The folder, as the metastore has it.
        values: The partition tuple in Iceberg's internal values.
        readable: Whether its files are of a format that is taken over.
        positional: Whether its entry says that Hive finds columns of ORC files by position.
    """

    name: str
    location: str
    values: tuple[Any, ...]
    readable: bool = True
    positional: bool = False


@dataclass(frozen=True, slots=True)
class PlaceFiles:
    """What was found in a place.

    Attributes:
        place: The place.
        exists: Whether its folder exists.
        files: The visible files with rows directly in the folder, in order of their names.
        nested: Visible files in sub-folders.
        empty: How many files have no bytes.
    """

    place: Place
    exists: bool
    files: tuple[FileStatus, ...]
    nested: tuple[FileStatus, ...]
    empty: int


def list_places(
    io: FileIO, places: Iterable[Place], progress: Progress, threads: int = THREADS
) -> list[PlaceFiles]:
    """Return the files of all places, listed in parallel, in the order of the places.

    Raises:
        FileIOError: If a folder cannot be listed.
    """
    return list(look_into(io, list(places), progress, threads))


def look_into(
    io: FileIO, places: Sequence[Place], progress: Progress, threads: int = THREADS
) -> Iterator[PlaceFiles]:
    """Yield the same, of any number of places: not many answers wait for whoever takes them.

    Raises:
        FileIOError: If a folder cannot be listed.
    """
    work = partial(list_place, io)
    return each(progress, "listing", "partitions", places, work, threads, ahead=AHEAD)


def shared_folders(io: FileIO, folders: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of places in a list that are one folder, however it is spelled or linked.

    Hive shows the rows of such a folder in both partitions; a file of Iceberg's is in one.
    """
    first: dict[str, int] = {}
    plain = enumerate(plain_folders(io.properties, folders))
    pairs = ((first.setdefault(folder, at), at) for at, folder in plain)
    return [(one, other) for one, other in pairs if one != other]


def plain_folders(properties: Mapping[str, str], folders: Iterable[str]) -> list[str]:
    """Folders as texts that are equal where the folders are; links between local ones count.

    Args:
        properties: Of the `FileIO`: what HDFS clusters there are.
        folders: Their locations.
    """
    texts = plain_texts((folder.rstrip("/") or "/" for folder in folders), properties)
    return [os.path.realpath(text) if text.startswith("/") else text for text in texts]


def list_place(io: FileIO, place: Place, *, by_folders: bool = False) -> PlaceFiles:
    """Return what is in one place.

    Args:
        io: Lists it.
        place: The place.
        by_folders: Whether folders below say values, in which case ``_year=2024`` is none that is
            hidden (Spark, HadoopFSUtils.shouldFilterOutPathName).

    Raises:
        FileIOError: If its folder cannot be listed.
    """
    prefix = place.location.rstrip("/") + "/"
    files: list[FileStatus] = []
    nested: list[FileStatus] = []
    empty = 0
    anything = False
    for status in io.list(place.location):
        anything = True
        below = status.location[len(prefix) :].split("/")
        hidden = [part for part in below if part.startswith(("_", "."))]
        if any(part[0] == "." or "=" not in part or not by_folders for part in hidden):
            continue
        if status.size == 0:
            empty += 1
        elif len(below) == 1:
            files.append(status)
        else:
            nested.append(status)
    return PlaceFiles(
        place, anything or _is_folder(io, place.location), tuple(files), tuple(nested), empty
    )


def _is_folder(io: FileIO, location: str) -> bool:
    from pyarrow.fs import FileType

    file_system, path = io.filesystem(location)
    return bool(file_system.get_file_info(path).type == FileType.Directory)
