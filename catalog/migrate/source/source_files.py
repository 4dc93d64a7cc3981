"""The files of a Hive table: those that readers see in the folders of its partitions.

Hive and Spark skip names that begin with ``_`` or ``.``; files of folders that are not registered
as partitions do not belong to the table. Empty files hold no rows and no footer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from icecomb.catalog.report.progress import THREADS, Progress, each
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from icecomb.format.storage.location import plain_texts

AHEAD: Final = 256
"""Maximum number of listings fetched ahead."""


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """A folder that holds rows of one partition (or of the whole table if it has none).

    Attributes:
        name: Hive's name of the partition, for messages; "" for an unpartitioned table.
        location: The folder's location in the metastore.
        values: The partition tuple in Iceberg's internal values.
        readable: Whether its files are of a supported format.
        positional: Whether its entry says that Hive finds columns of ORC files by position.
    """

    name: str
    location: str
    values: tuple[Any, ...]
    readable: bool = True
    positional: bool = False


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """The listing of a folder.

    Attributes:
        files: The visible files with rows directly in the folder, in order of their names.
        nested: Visible files in subfolders.
        empty: Number of empty files.
    """

    folder: PartitionFolder
    exists: bool
    files: tuple[FileStatus, ...]
    nested: tuple[FileStatus, ...]
    empty: int


def list_folders(
    io: FileIO, folders: Iterable[PartitionFolder], progress: Progress, threads: int = THREADS
) -> list[PartitionListing]:
    """Return the listings of all folders, made in parallel, in the order of the folders."""
    return list(folder_listings(io, list(folders), progress, threads))


def folder_listings(
    io: FileIO, folders: Sequence[PartitionFolder], progress: Progress, threads: int = THREADS
) -> Iterator[PartitionListing]:
    """Yield the listings of any number of folders; only some are fetched ahead."""
    work = partial(list_folder, io)
    return each(progress, "listing", "partitions", folders, work, threads, ahead=AHEAD)


def shared_folders(io: FileIO, folders: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of positions in a list that are one folder, however spelled or linked.

    Hive shows the rows of such a folder in both partitions; an Iceberg file is in only one.
    """
    first: dict[str, int] = {}
    plain = enumerate(plain_folders(io.properties, folders))
    pairs = ((first.setdefault(folder, at), at) for at, folder in plain)
    return [(one, other) for one, other in pairs if one != other]


def plain_folders(properties: Mapping[str, str], folders: Iterable[str]) -> list[str]:
    """Normalize locations: texts are equal if the folders are; local links are resolved.

    Args:
        properties: Properties of the `FileIO`, which name HDFS clusters.
    """
    texts = plain_texts((folder.rstrip("/") or "/" for folder in folders), properties)
    return [os.path.realpath(text) if text.startswith("/") else text for text in texts]


def list_folder(
    io: FileIO, folder: PartitionFolder, *, by_folders: bool = False
) -> PartitionListing:
    """List one folder.

    Args:
        by_folders: Whether the names of subfolders tell values, in which case ``_year=2024`` is not
            hidden (Spark, HadoopFSUtils.shouldFilterOutPathName).
    """
    prefix = folder.location.rstrip("/") + "/"
    files: list[FileStatus] = []
    nested: list[FileStatus] = []
    empty = 0
    anything = False
    for status in io.list(folder.location):
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
    return PartitionListing(
        folder, anything or _is_folder(io, folder.location), tuple(files), tuple(nested), empty
    )


def _is_folder(io: FileIO, location: str) -> bool:
    from pyarrow.fs import FileType

    file_system, path = io.filesystem(location)
    return bool(file_system.get_file_info(path).type == FileType.Directory)
