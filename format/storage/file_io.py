"""Files of a table, by location: read, create without overwriting, rename, delete, list.

A location is the text that stands in table metadata: `/x`, `file:/x`, `hdfs://nn/x`. It is never
normalised, decoded or escaped, because other engines compare locations as text. Without a scheme
it is in the file system of `fs.defaultFS`, as for Hadoop's programs, which is the local one unless
the settings say otherwise.
Every file is immutable: nothing here changes or replaces a file that exists, unless
`FileIO.prepare` is told to, and a new file is visible under its name only when it is complete.

A further kind of storage is one more `FileSystem` registered under its scheme.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from icecomb.format.arrow.batch_stream import in_order
from icecomb.format.errors import UnsupportedError
from icecomb.format.property import ShownProperties
from icecomb.format.storage.delegation_token import MEMORY, find_tokens, token_sources
from icecomb.format.storage.file_system import FileStatus, FileSystem, FolderEntries, FolderLock
from icecomb.format.storage.storage_property import TOKEN_FILES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

S = TypeVar("S")
T = TypeVar("T")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")


def _local(properties: Mapping[str, str]) -> FileSystem:
    from icecomb.format.storage.local import LocalFileSystem

    return LocalFileSystem(properties)


def _hdfs(properties: Mapping[str, str]) -> FileSystem:
    from icecomb.format.storage.hdfs.file_system import HdfsFileSystem

    return HdfsFileSystem(properties)


def _s3(properties: Mapping[str, str]) -> FileSystem:
    from icecomb.format.storage.object_store.s3 import S3FileSystem

    return S3FileSystem(properties)


def _google(properties: Mapping[str, str]) -> FileSystem:
    from icecomb.format.storage.object_store.google import GoogleFileSystem

    return GoogleFileSystem(properties)


def _azure(properties: Mapping[str, str]) -> FileSystem:
    from icecomb.format.storage.object_store.azure import AzureFileSystem

    return AzureFileSystem(properties)


_FILE_SYSTEMS: dict[str, Callable[[Mapping[str, str]], FileSystem]] = {
    "file": _local,
    **dict.fromkeys(("hdfs", "webhdfs", "swebhdfs", "viewfs"), _hdfs),
    **dict.fromkeys(("s3", "s3a", "s3n"), _s3),
    "gs": _google,
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _azure),
}


def register_file_system(scheme: str, factory: Callable[[Mapping[str, str]], FileSystem]) -> None:
    """Serve all locations `scheme:...` by `factory(properties)`, one object per `FileIO`.

    Args:
        scheme: Without the colon; case does not matter.
        factory: Called at the first use of such a location.
    """
    _FILE_SYSTEMS[scheme.lower()] = factory


_OWN: Mapping[str, Callable[[Mapping[str, str]], FileSystem]] = dict(_FILE_SYSTEMS)


class FileIO:
    """All files a table may refer to, whatever storage they are on.

    Args:
        properties: Settings handed to each file system (catalog and table properties).

    Every method raises `FileMissingError`, `FileExistsAlreadyError` or another `FileIOError`
    naming the location, and `UnsupportedError` for a scheme that no file system serves.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: Mapping[str, str] = MappingProxyType(ShownProperties(properties or {}))
        self._open: dict[str, FileSystem] = {}
        self._companions: dict[tuple[type[Any], int], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": dict(self.properties)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["properties"])  # type: ignore[misc]

    def companion(self, kind: type[T]) -> T:
        """The one object of this type that lives as long as this `FileIO`; a copy has its own.

        So has a forked process: what threads of the parent hold would never be given free there.
        """
        key = (kind, os.getpid())
        found: T = self._companions.get(key) or self._companions.setdefault(key, kind())
        return found

    @property
    def is_portable(self) -> bool:
        """Whether its properties are all that a copy in another process needs.

        File systems that were registered here, and tokens that are held in memory, are only here.
        """
        sources = token_sources(TOKEN_FILES.of(self.properties))
        held = (find_tokens(each) for each in sources if each.startswith(MEMORY))
        return _FILE_SYSTEMS == _OWN and not any(held)

    def close(self) -> None:
        """Close the connections that are kept open; it stays usable."""
        for system in [*self._open.values()]:
            system.close()

    def served_by(self, location: str) -> FileSystem:
        """Who serves a location: for who asks what only one kind of storage knows."""
        return self._of(location)

    def read(self, location: str) -> bytes:
        """The whole file."""
        return self._of(location).read(location)

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """A seekable file for reading ranges; the caller closes it.

        Args:
            location: The file.
            size: Its length, when a manifest states it: storage far away then need not be asked,
                and a missing file, or one of another length, is noticed when it is read.
        """
        return self._of(location).open_input(location, size)

    def create(self, location: str, data: bytes) -> None:
        """Create a file, and the folders above it.

        The file appears complete or not at all, also when the process dies, the disk is full or the
        power fails. It is for what others point to: when this returns it is stored for good, as
        far as the storage can do that (on HDFS `dfs.datanode.synconclose` decides).

        Raises:
            FileExistsAlreadyError: Something has this name; it is left as it is.
        """
        self._of(location).create(location, data)

    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Create a file piece by piece: `with io.create_stream(x) as out: out.write(...)`.

        The file appears under its name when the block ends without an error, else never. It is for
        rows: on local disks `local.sync-data-files` says whether it is stored for good then.

        Raises:
            FileExistsAlreadyError: Something has this name, at the start or at the end.
        """
        return self._of(location).create_stream(location)

    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> AbstractContextManager[Callable[[], None]]:
        """Create a file in two steps: `with io.prepare(x, data) as publish: ...; publish()`.

        Storage far away may take the bytes under another name meanwhile. The file appears when
        `publish` is called, which raises and promises what `create` does; without that call there
        is none.

        Args:
            location: The file, in a folder that exists.
            data: All of it.
            replace: Take the place of the file of this name, if any: readers find the old bytes or
                the new ones. For what nobody depends on: of two writers at once the last one wins,
                and after an error either may be there.
        """
        return self._of(location).prepare(location, data, replace=replace)

    def side_by_side(self, location: str) -> AbstractContextManager[None]:
        """A block in which small files may be created at the same time, where that is faster.

        To create a file may return before it is there: all of them are when the block ends, which
        raises what went wrong with any. What this thread does to one of them waits for it.

        Args:
            location: Any in the storage that is meant.
        """
        return self._of(location).side_by_side()

    def replaces_nothing(self, location: str) -> bool:
        """Whether of several who create a file exactly one succeeds.

        Local folders and HDFS see to that. An object store is tried, once, with an object of our
        own: some do not know `If-None-Match: *`. There only names that nobody else uses are safe.

        Args:
            location: A folder where files may be created; it need not exist.

        Raises:
            FileIOError: it cannot be told.
        """
        return self._of(location).replaces_nothing(location)

    def at_once(self, location: str) -> int:
        """How many requests at a time pay off: one where none waits for a network.

        Args:
            location: Any in the storage that is meant.
        """
        return self._of(location).at_once

    def each(
        self,
        location: str,
        work: Callable[[S], T],
        items: Iterable[S],
        at_most: int | None = None,
    ) -> Iterator[T]:
        """What `work` makes of each item, in their order.

        Where a request takes long, up to `at_once` items are worked on by threads, ahead of who
        takes the results; else one after the other, as they are taken.

        Args:
            location: Any in the storage that is meant.
            work: Reads, or looks; it may fail.
            items: Taken as they are worked on.
            at_most: How many are worked on at a time, for what takes much memory.
        """
        at_once = self.at_once(location)
        return in_order(work, items, at_once if at_most is None else min(at_once, at_most))

    def folder_lock(self, location: str) -> FolderLock | None:
        """A lock on a folder, not held yet; None where this kind of storage has none.

        No file tells of it, and it keeps nobody from anything who does not ask for it, too.

        Args:
            location: A folder that may be read.
        """
        return self._of(location).folder_lock(location)

    def delete(self, locations: str | Iterable[str]) -> None:
        """Delete files; those that do not exist are passed over, and a folder is none.

        Object stores do not tell a folder from a file that does not exist.

        Raises:
            FileIOError: Some could not be deleted (`context["failed"]`); the others are gone.
        """
        by_system: dict[FileSystem, list[str]] = {}
        for location in [locations] if isinstance(locations, str) else locations:
            by_system.setdefault(self._of(location), []).append(location)
        for system, group in by_system.items():
            system.delete(group)

    def exists(self, location: str) -> bool:
        """Whether there is a file of this name (a folder is none)."""
        return self._of(location).exists(location)

    def size(self, location: str) -> int:
        """The file's length in bytes."""
        return self._of(location).size(location)

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """All files in the folder `prefix` and below, folder by folder in order of their names.

        Object stores, which have no folders, list them in order of their whole keys. A folder that
        does not exist has none. Links to folders are not followed.
        """
        return self._of(prefix).list(prefix)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in the same storage for good, atomically, without overwriting.

        Raises:
            FileExistsAlreadyError: `target` is taken; nothing has changed.
            FileMissingError: There is no `source`.
            FileStateUnknownError: It may have been done, or may be done yet.
        """
        system = self._of(source)
        if self._of(target) is not system:
            raise UnsupportedError(
                f"Cannot rename {source} to {target}: they are on different file systems",
                hint="copy the file, then delete the old one",
                path=source,
            )
        system.rename(source, target)

    def is_folder(self, location: str) -> bool:
        """Whether there is a folder of this name."""
        return self._of(location).is_folder(location)

    def folders(self, location: str) -> Sequence[str]:
        """The names of the folders in a folder, sorted; links are none.

        Raises:
            FileMissingError: There is no such folder.
        """
        return self._of(location).folders(location)

    def entries(self, location: str) -> FolderEntries:
        """What lies in a folder, without what is further down; `list` goes there, one by one.

        A folder that does not exist has nothing in it.
        """
        return self._of(location).entries(location)

    def create_folder(self, location: str) -> None:
        """Create a folder, and those above it.

        Raises:
            FileExistsAlreadyError: Something has this name.
        """
        self._of(location).create_folder(location)

    def delete_folder(self, location: str) -> bool:
        """Delete a folder if nothing is in it; says whether that was so.

        Raises:
            FileMissingError: There is no such folder.
        """
        return self._of(location).delete_folder(location)

    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """The same storage as Arrow's interface, and the path of `location` in it."""
        return self._of(location).filesystem(location)

    @cached_property
    def _default_scheme(self) -> str:
        from icecomb.format.storage.hdfs.address import default_scheme, hadoop_properties

        return default_scheme(hadoop_properties(self.properties))

    def _of(self, location: str) -> FileSystem:
        match = _SCHEME.match(location)
        scheme = match[1].lower() if match else self._default_scheme
        system = self._open.get(scheme)
        if system is None:
            factory = _FILE_SYSTEMS.get(scheme)
            if factory is None:
                known = f"known schemes: {', '.join(sorted(_FILE_SYSTEMS))}"
                raise UnsupportedError(
                    f"No file system serves {scheme}: locations, such as {location}",
                    hint=known
                    if match
                    else f"fs.defaultFS says that it is there: write file://{location} for a local "
                    f"file; {known}",
                    path=location,
                )
            # what has several schemes is one storage
            held = [*self._open.items()]
            same = next((one for name, one in held if _FILE_SYSTEMS.get(name) is factory), None)
            system = self._open.setdefault(scheme, same or factory(self.properties))
        return system
