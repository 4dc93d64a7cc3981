"""Files of a table, by location: read, create without overwriting, rename, delete, list.

A location is the text that stands in table metadata: `/x`, `file:/x`, `file:///x`. It is never
normalised, decoded or escaped, because other engines compare locations as text.
Every file is immutable: nothing here changes or replaces a file that exists, unless
`FileIO.prepare` is told to, and a new file is visible under its name only when it is complete.

A further kind of storage is one more `FileSystem` registered under its scheme.
"""

# pathlib normalises names, and these must be kept exactly
# ruff: noqa: PTH103, PTH105, PTH106, PTH108, PTH112, PTH113, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import errno
import os
import re
import stat
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from icecomb.format.errors import (
    FileExistsAlreadyError,
    FileIOError,
    FileMissingError,
    IcecombError,
    UnsupportedError,
    ValidationError,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_LOCAL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)", re.DOTALL | re.IGNORECASE)
_STORAGE_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One file of a listing.

    Attributes:
        location: Spelled like the prefix that was listed.
        size: Bytes.
        mtime_ms: Time of the last change, milliseconds since the epoch.
    """

    location: str
    size: int
    mtime_ms: int


class FileSystem(ABC):
    """One kind of storage; `FileIO` documents what each method promises."""

    @abstractmethod
    def read(self, location: str) -> bytes:
        """See `FileIO.read`."""

    @abstractmethod
    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """See `FileIO.open_input`."""

    @abstractmethod
    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """See `FileIO.create_stream`."""

    @abstractmethod
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> AbstractContextManager[Callable[[], None]]:
        """See `FileIO.prepare`."""

    @abstractmethod
    def delete(self, locations: Iterable[str]) -> None:
        """See `FileIO.delete`."""

    @abstractmethod
    def size(self, location: str) -> int:
        """See `FileIO.size`."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[FileStatus]:
        """See `FileIO.list`."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """See `FileIO.rename`."""

    @abstractmethod
    def is_folder(self, location: str) -> bool:
        """See `FileIO.is_folder`."""

    @abstractmethod
    def folders(self, location: str) -> Sequence[str]:
        """See `FileIO.folders`."""

    @abstractmethod
    def create_folder(self, location: str) -> None:
        """See `FileIO.create_folder`."""

    @abstractmethod
    def delete_folder(self, location: str) -> bool:
        """See `FileIO.delete_folder`."""

    @abstractmethod
    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """See `FileIO.filesystem`."""

    def create(self, location: str, data: bytes) -> None:
        """See `FileIO.create`."""
        with self.create_stream(location) as stream:
            stream.write(data)

    def side_by_side(self) -> AbstractContextManager[None]:
        """See `FileIO.side_by_side`."""
        return nullcontext()

    @abstractmethod
    def exists(self, location: str) -> bool:
        """See `FileIO.exists`."""


class LocalFileSystem(FileSystem):
    """Files of this machine and of file systems mounted on it.

    A file is written under a temporary name in the folder it belongs to and then hard-linked to
    its own name: `link` is the one POSIX call that publishes a complete file and never replaces
    one. Hadoop's local file system keeps checksums beside its files (`.<name>.crc`) and refuses a
    file whose checksum is stale, so a checksum never outlives its file.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = properties or {}

    def read(self, location: str) -> bytes:
        """See `FileIO.read`."""
        with _failures("read", location), open(_local_path(location), "rb") as file:
            return file.read()

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002
        """See `FileIO.open_input`."""
        import pyarrow as pa

        with _failures("open", location):
            path = _local_path(location)
            _regular(path)
            return pa.OSFile(path, "rb")

    @contextmanager
    def create_stream(self, location: str) -> Iterator[BinaryIO]:
        """See `FileIO.create_stream`."""
        path = _local_path(location)
        folder = os.path.dirname(path)
        with _failures("create", location):
            os.makedirs(folder, exist_ok=True)
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            temporary = os.path.join(folder, f".{uuid.uuid4().hex}.tmp")
            file = open(temporary, "xb")  # noqa: SIM115
        try:
            try:
                with file:
                    yield file
            except OSError as error:
                # the block may fail for reasons of its own; only what the storage says is ours
                if error.errno not in _STORAGE_FAILED or isinstance(error, IcecombError):
                    raise
                raise FileIOError(
                    f"cannot write {location}: {error.strerror}", path=location
                ) from error
            with _failures("create", location):
                _publish(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    @contextmanager
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> Iterator[Callable[[], None]]:
        """See `FileIO.prepare`: all is done when it is published."""
        yield lambda: (self._replace if replace else self.create)(location, data)

    def delete(self, locations: Iterable[str]) -> None:
        """See `FileIO.delete`."""
        failed: list[tuple[str, OSError]] = []
        for location in locations:
            path = _local_path(location)
            try:
                with suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(path)
                _drop_checksum(path)
            except OSError as error:
                failed.append((location, error))
        if failed:
            location, cause = failed[0]
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise FileIOError(
                f"cannot delete {location}{more}: {cause.strerror}",
                path=location,
                failed=tuple(name for name, _ in failed),
            ) from cause

    def exists(self, location: str) -> bool:
        """See `FileIO.exists`."""
        return os.path.isfile(_local_path(location))

    def size(self, location: str) -> int:
        """See `FileIO.size`."""
        with _failures("look at", location):
            return _regular(_local_path(location)).st_size

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """See `FileIO.list`."""
        with _failures("list", prefix):
            path = _local_path(prefix)
            if os.path.isfile(path):
                found = os.stat(path)
                yield FileStatus(prefix, found.st_size, found.st_mtime_ns // 1_000_000)
                return
            root = path.rstrip("/") or "/"
            shown = prefix[: len(prefix) - len(path)] + ("" if root == "/" else root)
            for name, status in _walk(root):
                yield FileStatus(f"{shown}/{name}", status.st_size, status.st_mtime_ns // 1_000_000)

    def rename(self, source: str, target: str) -> None:
        """See `FileIO.rename`."""
        source_path, target_path = _local_path(source), _local_path(target)
        with _failures("rename", source):
            _regular(source_path)
        with _failures("rename to", target):
            os.makedirs(os.path.dirname(target_path), exist_ok=True)
            _publish(source_path, target_path)
            os.unlink(source_path)
            _drop_checksum(source_path)

    def is_folder(self, location: str) -> bool:
        """See `FileIO.is_folder`."""
        return os.path.isdir(_local_path(location))

    def folders(self, location: str) -> Sequence[str]:
        """See `FileIO.folders`."""
        with _failures("list", location), os.scandir(_local_path(location)) as scan:
            return sorted(entry.name for entry in scan if entry.is_dir(follow_symlinks=False))

    def create_folder(self, location: str) -> None:
        """See `FileIO.create_folder`."""
        with _failures("create", location):
            os.makedirs(_local_path(location))

    def delete_folder(self, location: str) -> bool:
        """See `FileIO.delete_folder`."""
        with _failures("delete", location):
            try:
                os.rmdir(_local_path(location))
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
        return True

    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """See `FileIO.filesystem`."""
        import pyarrow.fs

        return pyarrow.fs.LocalFileSystem(), _local_path(location)

    @staticmethod
    def _replace(location: str, data: bytes) -> None:
        path = _local_path(location)
        temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.tmp")
        with _failures("replace", location):
            try:
                with open(temporary, "xb") as file:
                    file.write(data)
                _drop_checksum(path)
                os.replace(temporary, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)


def _hdfs(properties: Mapping[str, str]) -> FileSystem:
    from icecomb.format.hdfs.hdfs_file_system import HdfsFileSystem

    return HdfsFileSystem(properties)


_FILE_SYSTEMS: dict[str, Callable[[Mapping[str, str]], FileSystem]] = {
    "file": LocalFileSystem,
    **dict.fromkeys(("hdfs", "webhdfs", "swebhdfs", "viewfs"), _hdfs),
}


def register_file_system(scheme: str, factory: Callable[[Mapping[str, str]], FileSystem]) -> None:
    """Serve all locations `scheme:...` by `factory(properties)`, one object per `FileIO`.

    Args:
        scheme: Without the colon; case does not matter.
        factory: Called at the first use of such a location.
    """
    _FILE_SYSTEMS[scheme.lower()] = factory


class FileIO:
    """All files a table may refer to, whatever storage they are on.

    Args:
        properties: Settings handed to each file system (catalog and table properties).

    Every method raises `FileMissingError`, `FileExistsAlreadyError` or another `FileIOError`
    naming the location, and `UnsupportedError` for a scheme that no file system serves.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: Mapping[str, str] = MappingProxyType(dict(properties or {}))
        self._open: dict[str, FileSystem] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": dict(self.properties)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["properties"])  # type: ignore[misc]

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

        The file appears complete or not at all, also when the process dies or the disk is full.

        Raises:
            FileExistsAlreadyError: Something has this name; it is left as it is.
        """
        self._of(location).create(location, data)

    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Create a file piece by piece: `with io.create_stream(x) as out: out.write(...)`.

        The file appears under its name when the block ends without an error, else never.

        Raises:
            FileExistsAlreadyError: Something has this name, at the start or at the end.
        """
        return self._of(location).create_stream(location)

    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> AbstractContextManager[Callable[[], None]]:
        """Create a file in two steps: `with io.prepare(x, data) as publish: ...; publish()`.

        Storage far away may take the bytes under another name meanwhile. The file appears when
        `publish` is called, which raises what `create` does; without that call there is none.

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

    def delete(self, locations: str | Iterable[str]) -> None:
        """Delete files; those that do not exist are passed over, and a folder is none.

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

        A folder that does not exist has none. Links to folders are not followed.
        """
        return self._of(prefix).list(prefix)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in the same storage, atomically and without overwriting.

        Raises:
            FileExistsAlreadyError: `target` is taken; nothing has changed.
            FileMissingError: There is no `source`.
        """
        system = self._of(source)
        if self._of(target) is not system:
            raise UnsupportedError(
                f"cannot rename {source} to {target}: they are on different file systems",
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

    def _of(self, location: str) -> FileSystem:
        match = _SCHEME.match(location)
        scheme = match[1].lower() if match else "file"
        system = self._open.get(scheme)
        if system is None:
            factory = _FILE_SYSTEMS.get(scheme)
            if factory is None:
                raise UnsupportedError(
                    f"no file system serves {scheme}: locations, such as {location}",
                    hint=f"known schemes: {', '.join(sorted(_FILE_SYSTEMS))}",
                    path=location,
                )
            system = self._open.setdefault(scheme, factory(self.properties))
        return system


def _local_path(location: str) -> str:
    path = location
    if not location.startswith("/"):
        match = _LOCAL.fullmatch(location)
        if (
            match is None
            or match["host"] not in (None, "", "localhost")
            or (match["host"] is None and match["path"].startswith("//"))
        ):
            raise ValidationError(
                f"not an absolute local location: {location!r}",
                hint="write /folder/file, file:/folder/file or file:///folder/file",
                path=location,
            )
        path = match["path"]
    if "\0" in path:
        raise ValidationError(f"a file name cannot hold a NUL: {location!r}", path=location)
    return path


def _regular(path: str) -> os.stat_result:
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return found


def _publish(temporary: str, path: str) -> None:
    if not os.path.lexists(path):
        _drop_checksum(path)
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        # NFS repeats a request whose answer was lost, and then finds its own first success.
        with suppress(OSError):
            if os.path.samestat(os.lstat(temporary), os.lstat(path)):
                return
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        raise FileIOError(
            f"cannot create {path}: {error.strerror}",
            hint="the file system must allow hard links: they publish without overwriting",
            path=path,
        ) from error


def _drop_checksum(path: str) -> None:
    folder, name = os.path.split(path)
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    folders = [""]
    while folders:
        inner = folders.pop()
        try:
            with os.scandir(f"{root}/{inner}") as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        below = []
        for entry in entries:
            name = f"{inner}{entry.name}"
            # a file that another process deletes meanwhile is no error of a listing
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    below.append(f"{name}/")
                elif entry.is_file():
                    yield name, entry.stat()
        folders.extend(reversed(below))


@contextmanager
def _failures(verb: str, location: str) -> Iterator[None]:
    try:
        yield
    except IcecombError:
        raise
    except FileExistsError as error:
        raise FileExistsAlreadyError(f"{location} exists already", path=location) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileMissingError(f"{location} does not exist", path=location) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileIOError(f"cannot {verb} {location}: {reason}", path=location) from error
