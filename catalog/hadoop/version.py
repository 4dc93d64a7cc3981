"""The numbered metadata files of a file-system table, and the hint at the newest of them.

The files are ``v<N>.metadata.json``, compressed ``v<N>.gz.metadata.json``, or
``v<N>.metadata.json.gz`` by old writers. The newest is the one whose successor does not exist;
``version-hint.text`` only tells where to start the search. It is written after the file that it
names, so it may be outdated, missing or useless, and nothing depends on it.

Of two writers, one of which compresses, both can write a version: which of the files is the table
is undecidable, unless both have the same contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit.version_name import (
    METADATA_SUFFIXES,
    VERSION_HINT,
    VERSION_NUMBER,
    version_of,
)
from icecomb.format.errors import CorruptFileError, IcecombError, NoSuchFileError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

_SPELLINGS: Final = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")


class VersionFiles:
    """The metadata files in the folder of a table, which need not exist."""

    def __init__(self, io: FileIO, folder: str) -> None:
        self._io = io
        self.folder = f"{folder}/metadata"

    def newest(self) -> str | None:
        """Return the newest metadata file; None if there is no numbered one."""
        found = self.beyond(-1) or self._listed()
        if found is None:
            return None
        version, location = found
        while (following := self.find(version + 1)) is not None:
            version, location = version + 1, following
        return location

    def behind_a_gap(self, location: str) -> str | None:
        """Return the newest file if the apparent one was written late, after its deletion.

        Both its own request and that of a hint were delayed. No writer deletes the version before
        the newest one.
        """
        version = version_of(location)
        if version is None or self.find(version - 1) is not None:
            return None
        listed = self._listed()
        return listed[1] if listed is not None and listed[0] > version else None

    def beyond(self, version: int) -> tuple[int, str] | None:
        """Return the version that the hint names and its file, if it exists and is a later one."""
        try:
            text = self._io.read(f"{self.folder}/{VERSION_HINT}").strip()
        except (IcecombError, OSError):
            return None
        if not re.fullmatch(VERSION_NUMBER.encode(), text) or int(text) <= version:
            return None
        location = self.find(int(text))
        return None if location is None else (int(text), location)

    def find(self, version: int, but: str | None = None) -> str | None:
        """Return the file of a version, ignoring the name `but`; None if there is none."""
        return next(self._there(version, but), None)

    def check_unambiguous(self, location: str, table: str) -> None:
        """Refuse a version of which another file has different contents: CorruptFileError."""
        from icecomb.format.spec.metadata_file import read_metadata_json

        version = version_of(location)
        if version is None:
            return

        def alike(other: str) -> bool:
            return read_metadata_json(self._io, other) == read_metadata_json(self._io, location)

        for other in self._there(version, location):
            with suppress(NoSuchFileError):
                # a proxy may have answered with another file: the second read decides
                if alike(other) or alike(other):
                    continue
                raise CorruptFileError(
                    f"{table} has two metadata files of version {version}, which differ: "
                    f"{location} and {other}",
                    hint="Two writers wrote it, and each lacks the other's commit: read both by "
                    "open_table(<file>), move one out of the folder, repeat its change.",
                    table=table,
                    path=other,
                )

    def _there(self, version: int, but: str | None) -> Iterator[str]:
        """Yield the files of a version except one; checked lazily where that is as quick."""
        names = [f"{self.folder}/v{version}{spelling}" for spelling in _SPELLINGS]
        names = [name for name in names if name != but]
        there = self._io.each(self.folder, self._io.exists, names, needs_all=False)
        return (name for name, found in zip(names, there, strict=True) if found)

    def name(self, version: int, marker: str) -> str:
        """Return the location for a new version's file; for `marker` see `compression_marker`."""
        return f"{self.folder}/v{version}{marker}.metadata.json"

    def others(self) -> str | None:
        """Return a metadata file of a table that a server's catalog manages; None without one."""
        for location in self._list():
            if location.endswith(METADATA_SUFFIXES) and version_of(location) is None:
                return location
        return None

    @contextmanager
    def hint(self, version: int) -> Iterator[Callable[[], None]]:
        """Prepare the hint at a version; yield the function that writes it.

        A failure only costs the next readers time.
        """
        data = str(version).encode()
        with self._io.prepare(f"{self.folder}/{VERSION_HINT}", data, replace=True) as publish:

            def write() -> None:
                with suppress(IcecombError, OSError):
                    publish()

            yield write

    def _listed(self) -> tuple[int, str] | None:
        found: dict[int, str] = {}
        for location in self._list():
            version = version_of(location)
            if version is not None:
                found[version] = location
        return max(found.items(), default=None)

    def _list(self) -> Iterator[str]:
        """Yield the files directly in the folder."""
        with suppress(NoSuchFileError):
            for status in self._io.list(self.folder):
                if status.location.rpartition("/")[0] == self.folder:
                    yield status.location
