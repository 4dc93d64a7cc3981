"""Files of a table, by location: read, create without overwriting, rename, delete, list.

A location is the text written in table metadata: `/x`, `file:/x`, `hdfs://nn/x`. It is never
normalized, decoded or escaped, because other engines compare locations as text. Without a scheme
it is in the file system of `fs.defaultFS`, as for Hadoop's programs: the local one by default.
Every file is immutable: nothing here changes or replaces an existing file, except
`FileIO.prepare(replace=True)`, and a new file is visible under its name only when it is complete.

Another kind of storage is added by registering a `FileSystem` under its scheme.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from icecomb.format.arrow.batch_stream import in_order
from icecomb.format.errors import (
    FileIOError,
    IcecombError,
    NoSuchFileError,
    UnsupportedError,
)
from icecomb.format.secret import ShownProperties, remember_setting
from icecomb.format.storage.file_system import (
    FileStatus,
    FileSystem,
    FolderEntries,
    FolderLock,
    check_levels,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs
    from typing_extensions import Self

S = TypeVar("S")
T = TypeVar("T")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_PIECE_BYTES: Final = 1 << 20


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
        scheme: The scheme without the colon; case does not matter.
        factory: Function called at the first use of such a location.
    """
    _FILE_SYSTEMS[scheme.lower()] = factory


class FileIO:
    """All files a table may refer to, whatever storage they are on.

    Args:
        properties: Settings handed to each file system (catalog and table properties).

    Every method raises `NoSuchFileError`, `FileAlreadyExistsError` or another `FileIOError`
    naming the location, and `UnsupportedError` for a scheme that no file system serves.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: Mapping[str, str] = MappingProxyType(ShownProperties(properties or {}))
        for key, value in self.properties.items():
            remember_setting(key, value)
        self._open: dict[str, FileSystem] = {}
        self._companions: dict[tuple[type[Any], int], Any] = {}
        self._copies = False

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": dict(self.properties), "copies": self._copies}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["properties"])  # type: ignore[misc]
        self._copies = state["copies"]

    def companion(self, kind: type[T]) -> T:
        """Return the one object of this type that lives as long as this `FileIO`.

        A copy and a forked process have their own: locks that threads of the parent hold would
        never be released in the child.
        """
        key = (kind, os.getpid())
        found: T = self._companions.get(key) or self._companions.setdefault(key, kind())
        return found

    def close(self) -> None:
        """Close the connections that are kept open; the object stays usable."""
        for system in [*self._open.values()]:
            system.close()

    def served_by(self, location: str) -> FileSystem:
        """Return the file system that serves a location, for features of one kind of storage."""
        scheme = self.scheme_of(location)
        system = self._open.get(scheme)
        if system is None:
            factory = _FILE_SYSTEMS.get(scheme)
            if factory is None:
                known = f"Known schemes: {', '.join(sorted(_FILE_SYSTEMS))}."
                raise UnsupportedError(
                    f"No file system serves {scheme}: locations, such as {location}",
                    hint=known
                    if _SCHEME.match(location)
                    else f"fs.defaultFS names that file system: write file://{location} for a "
                    f"local file. {known}",
                    path=location,
                )
            # a storage with several schemes is opened once
            held = [*self._open.items()]
            same = next((one for name, one in held if _FILE_SYSTEMS.get(name) is factory), None)
            system = self._open.setdefault(scheme, same or factory(self.properties))
        return system

    def read(self, location: str) -> bytes:
        """Read a whole file."""
        served = self.served_by(location)
        return served.read_to_copy(location) if self._copies else served.read(location)

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Open a seekable file for reading ranges; the caller closes it.

        Args:
            location: The file.
            size: Length in bytes, if a manifest states it: it saves a request to remote storage,
                and a missing file, or one of another length, is noticed when it is read.
        """
        if self._copies:
            return self.open_to_copy(location, size)
        return self.served_by(location).open_input(location, size)

    def open_to_copy(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Open a file to copy it; the caller closes it.

        On local disks a link of another user is not followed: a private file would be copied.

        Args:
            location: The file.
            size: Length in bytes; see `open_input`.
        """
        return self.served_by(location).open_to_copy(location, size)

    def to_copy(self) -> Self:
        """Return an object for the same files, which reads them as `open_to_copy` opens them.

        What writes rows of files, their bounds, or entries of manifests again, into other files,
        reads them by it.
        """
        # unlike a copy by `copy`, it shares what is open
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, _copies=True)
        return found

    def create(self, location: str, data: bytes) -> None:
        """Create a file, and the folders above it.

        The file appears complete or not at all, even if the process dies, the disk is full or the
        power fails. Use it for files that others refer to: when this returns, the file is durable
        as far as the storage allows (on HDFS `dfs.datanode.synconclose` decides).

        Raises:
            FileAlreadyExistsError: If the name is taken; nothing is changed.
        """
        self.served_by(location).create(location, data)

    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Create a file piece by piece: `with io.create_stream(x) as out: out.write(...)`.

        The file appears under its name when the block ends without an error, else never. Use it
        for data files: on local disks `local.sync-data-files` decides whether it is durable then.

        Raises:
            FileAlreadyExistsError: If the name is taken, at the start or at the end.
        """
        return self.served_by(location).create_stream(location)

    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> AbstractContextManager[Callable[[], None]]:
        """Create a file in two steps: `with io.prepare(x, data) as publish: ...; publish()`.

        Remote storage may receive the bytes under another name in the meantime. The file appears
        when `publish` is called, with the guarantees and errors of `create`; without that call no
        file is created.

        Args:
            location: The file, in a folder that exists.
            data: The complete content.
            replace: Whether to replace an existing file of this name: readers find the old bytes or
                the new ones. Only for files nobody depends on: of two concurrent writers the last
                one wins, and after an error either content may be there.
        """
        return self.served_by(location).prepare(location, data, replace=replace)

    def side_by_side(self, location: str) -> AbstractContextManager[None]:
        """Create small files concurrently inside the block, where that is faster.

        Creating a file may return before the file exists. All exist when the block ends, which
        raises the error of any that failed. Other operations of this thread on one of them wait
        for it.

        Args:
            location: Any location in the storage.
        """
        return self.served_by(location).side_by_side()

    def replaces_nothing(self, location: str) -> bool:
        """Return whether exactly one of several writers that create the same file succeeds.

        Local folders and HDFS ensure that. An object store is probed once with a test object: some
        stores ignore `If-None-Match: *`, and on those only names that nobody else uses are safe.

        Args:
            location: A folder where files may be created; it need not exist.

        Raises:
            FileIOError: If it cannot be determined.
        """
        return self.served_by(location).replaces_nothing(location)

    def at_once(self, location: str) -> int:
        """Return the useful number of concurrent requests: 1 for storage without a network.

        Args:
            location: Any location in the storage.
        """
        return self.served_by(location).at_once

    def each(
        self,
        location: str,
        work: Callable[[S], T],
        items: Iterable[S],
        at_most: int | None = None,
        *,
        needs_all: bool = True,
    ) -> Iterator[T]:
        """Yield the result of `work` for each item, in order.

        Threads work on up to `at_once` items ahead of the consumer; if that is 1, each item is
        worked on when its result is requested.

        Args:
            location: Any location in the storage.
            work: Function that reads or checks one item; it may raise.
            items: The items, consumed lazily.
            at_most: Maximum number of items at a time, for work that takes much memory.
            needs_all: Whether all results will be requested; if not, items are worked on ahead
                only where requests are slow.
        """
        ahead = needs_all or self.served_by(location).has_slow_requests
        at_once = self.at_once(location) if ahead else 1
        return in_order(work, items, at_once if at_most is None else min(at_once, at_most))

    def folder_lock(self, location: str) -> FolderLock | None:
        """Return a lock on a folder, not yet acquired; None if this kind of storage has no locks.

        The lock is advisory and leaves no file.

        Args:
            location: A folder that may be read.
        """
        return self.served_by(location).folder_lock(location)

    def delete(self, locations: str | Iterable[str]) -> None:
        """Delete files; missing ones are ignored, and a folder is an error.

        Object stores cannot distinguish a folder from a file that does not exist.

        Raises:
            FileIOError: If some could not be deleted (`context["failed"]`); the others are gone.
        """
        for system, group in self._by_system(locations):
            system.delete(group)

    def discard(self, locations: str | Iterable[str]) -> None:
        """Delete files of an attempt that failed, and folders that were made for them.

        Folders that others made, or have files in, stay.

        Raises:
            FileIOError: As in `delete`.
        """
        for system, group in self._by_system(locations):
            system.discard(group)

    def exists(self, location: str) -> bool:
        """Return whether there is a file of this name; a folder does not count."""
        return self.served_by(location).exists(location)

    def size(self, location: str) -> int:
        """Return a file's length in bytes."""
        return self.served_by(location).size(location)

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """Yield all files in the folder `prefix` and below, folder by folder in order of name.

        Object stores, which have no folders, list them in order of whole keys. A folder that does
        not exist has no files. Links to folders are not followed.
        """
        return self.served_by(prefix).list(prefix)

    def rename(self, source: str, target: str) -> None:
        """Rename a file within one storage: durably, atomically and without overwriting.

        Raises:
            FileAlreadyExistsError: If `target` is taken; nothing has changed.
            NoSuchFileError: If there is no `source`.
            FileStateUnknownError: If the rename may have happened or may still happen.
        """
        system = self.served_by(source)
        if self.served_by(target) is not system:
            raise UnsupportedError(
                f"Cannot rename {source} to {target}: they are on different file systems",
                hint="Copy the file, then delete the old one.",
                path=source,
            )
        system.rename(source, target)

    def is_folder(self, location: str) -> bool:
        """Return whether there is a folder of this name."""
        return self.served_by(location).is_folder(location)

    def check_writable(self, location: str) -> None:
        """Check that the user may create files in a folder, as far as storage tells without trying.

        Raises:
            FileIOError: If that is denied.
            NoSuchFileError: If there is no such folder.
        """
        self.served_by(location).check_writable(location)

    def folders(self, location: str) -> Sequence[str]:
        """Return the sorted names of the folders in a folder; links do not count.

        Raises:
            NoSuchFileError: If there is no such folder.
        """
        return self.served_by(location).folders(location)

    def folder_tree(self, location: str) -> Iterator[str]:
        """Return a folder and all folders below it, each after those in it; links do not count.

        Folders that do not exist are left out.
        """
        left, found = [location], []
        while left:
            folder = left.pop()
            check_levels(location, folder)
            with suppress(NoSuchFileError):
                left += [f"{folder}/{name}" for name in self.folders(folder)]
                found.append(folder)
        return reversed(found)

    def entries(self, location: str) -> FolderEntries:
        """Return the files and folders directly in a folder; `list` also yields files below it.

        A folder that does not exist is empty.
        """
        return self.served_by(location).entries(location)

    def create_folder(self, location: str) -> None:
        """Create a folder, and those above it.

        Raises:
            FileAlreadyExistsError: If the name is taken.
        """
        self.served_by(location).create_folder(location)

    def delete_folder(self, location: str) -> bool:
        """Delete a folder if it is empty; return whether it was.

        Raises:
            NoSuchFileError: If there is no such folder.
        """
        return self.served_by(location).delete_folder(location)

    def undeletable_folder(self, location: str) -> str | None:
        """Return the folder, this one or one in it, that stays although its files can be deleted.

        On HDFS that is a folder that has snapshots; None if none is known.
        """
        return self.served_by(location).undeletable_folder(location)

    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """Return the storage as an Arrow file system, and the path of `location` in it."""
        return self.served_by(location).filesystem(location)

    def scheme_of(self, location: str) -> str:
        """Return a location's scheme, or that of `fs.defaultFS` if it has none, in lower case."""
        match = _SCHEME.match(location)
        return match[1].lower() if match else self._default_scheme

    @cached_property
    def _default_scheme(self) -> str:
        from icecomb.format.storage.hdfs.address import default_scheme, hadoop_properties

        return default_scheme(hadoop_properties(self.properties))

    def _by_system(
        self, locations: str | Iterable[str]
    ) -> Iterable[tuple[FileSystem, Sequence[str]]]:
        found: dict[FileSystem, list[str]] = {}
        for location in [locations] if isinstance(locations, str) else locations:
            found.setdefault(self.served_by(location), []).append(location)
        return found.items()


def copy_file(io: FileIO, location: str, target: str) -> None:
    """Copy a file; the target has its name when it is whole.

    FileAlreadyExistsError is raised if there is a file at the target. Links of other users are not
    followed.
    """
    size = io.size(location)
    with io.open_to_copy(location) as source, io.create_stream(target) as out:
        shutil.copyfileobj(source, out, _PIECE_BYTES)
    if (copied := io.size(target)) != size:
        with suppress(IcecombError):
            io.delete(target)
        raise FileIOError(
            f"{location} was copied to {target} with {copied} of its {size} bytes",
            hint="Check the free space. The file stays where it was.",
            path=location,
        )


def have_same_bytes(io: FileIO, location: str, other: str) -> bool:
    """Return whether two files have the same bytes.

    Args:
        io: File system that holds both.
        location: The location of one file.
        other: The location of the other file.
    """
    if io.size(location) != io.size(other):
        return False
    with io.open_input(location) as one, io.open_input(other) as two:
        while piece := one.read(_PIECE_BYTES):
            if piece != two.read(_PIECE_BYTES):
                return False
    return True
