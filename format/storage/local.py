"""Files of this machine and of file systems mounted on it."""

# pathlib normalizes names, and these must be kept exactly
# ruff: noqa: PTH102, PTH103, PTH105, PTH106, PTH108, PTH110, PTH112, PTH113, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO

from icecomb.format.errors import (
    FileIOError,
    IcecombError,
    ValidationError,
)
from icecomb.format.input_limit import UNPACKED, unpacked_bytes
from icecomb.format.process import is_own
from icecomb.format.storage.file_system import (
    FileStatus,
    FileSystem,
    FolderEntries,
    FolderLock,
    draft_name,
    exists_already,
    is_missing,
)
from icecomb.format.storage.storage_property import SYNC_DATA_FILES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_LOCAL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)", re.DOTALL | re.IGNORECASE)
_STORAGE_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_MOST_LINKS = 40
# a folder that may be searched but not listed can be part of a path
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# Some network file systems cannot sync folders.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)


class LocalFileSystem(FileSystem):
    """Files of this machine and of file systems mounted on it.

    A file is written under a temporary name in its folder and then hard-linked to its own name:
    `link` is the only POSIX call that publishes a complete file and never replaces one. Hadoop's
    local file system keeps checksums beside its files (`.<name>.crc`) and refuses a file whose
    checksum is stale, so a checksum never outlives its file.

    After a power failure a file is complete or missing: its bytes are on the disk before its name
    is, and its name before the call returns.

    What deletes or moves follows no link in a path that another user made, root aside: who may
    write to a folder could otherwise lead it to files of whoever runs this, at any moment.

    If `local.sync-data-files` is `false`, the operating system decides when the bytes of streams
    reach the disk.
    """

    is_local = True
    refusal_is_proof = True

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = properties or {}
        self._sync_streams = SYNC_DATA_FILES.of(self.properties)
        self._made: set[str] = set()

    def read(self, location: str) -> bytes:
        """Implement `FileIO.read`."""
        with _failures("read", location):
            # a file without blocks may say that it has terabytes
            size = _regular(location).st_size
            if size > unpacked_bytes():
                raise FileIOError(
                    f"{location} is not read whole: it has {size} bytes, the limit is {UNPACKED}",
                    hint="set that variable to more MiB if the file is sound",
                    path=location,
                )
            with open(_local_path(location), "rb") as file:
                return file.read()

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002
        """Implement `FileIO.open_input`."""
        import pyarrow as pa

        with _failures("open", location):
            _regular(location)
            # pyarrow would encode a text as UTF-8, whatever the names of files are encoded in
            return pa.OSFile(os.fsencode(_local_path(location)), "rb")

    def create(self, location: str, data: bytes) -> None:
        """Implement `FileIO.create`."""
        with self._created(location, sync=True) as stream:
            stream.write(data)

    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Implement `FileIO.create_stream`."""
        return self._created(location, sync=self._sync_streams)

    @contextmanager
    def _created(self, location: str, *, sync: bool) -> Iterator[BinaryIO]:
        path = _local_path(location)
        folder = os.path.dirname(path)
        with _failures("create", location):
            self._made.update(_make_folders(folder))
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            temporary = os.path.join(folder, draft_name())
            file = self._new_draft(temporary)
        is_done = False
        try:
            try:
                with file:
                    yield file
                    if sync:
                        file.flush()
                        os.fsync(file.fileno())
            except OSError as error:
                # the block may fail for reasons of its own: convert only errors of the storage
                if error.errno not in _STORAGE_FAILED or isinstance(error, IcecombError):
                    raise
                raise FileIOError(
                    f"Cannot write {location}: {error.strerror}",
                    hint="free space there; no file of this name was created",
                    path=location,
                ) from error
            with _failures("create", location):
                _publish(temporary, path)
                if sync:
                    _sync_folder(folder)
            is_done = True
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            if not is_done:
                self._drop_folders(folder)

    def _new_draft(self, path: str) -> BinaryIO:
        with suppress(FileNotFoundError):
            return open(path, "xb")
        # another thread has just discarded the only file there
        self._made.update(_make_folders(os.path.dirname(path)))
        return self._new_draft(path)

    def _drop_folders(self, folder: str) -> None:
        """Delete a folder, and those above it, that were made here and are empty again."""
        while folder in self._made:
            try:
                os.rmdir(folder)
            except OSError:
                return  # others use it
            self._made.discard(folder)
            folder = os.path.dirname(folder)

    @contextmanager
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> Iterator[Callable[[], None]]:
        """Implement `FileIO.prepare`; the file is written when it is published."""
        yield lambda: (self._replace if replace else self.create)(location, data)

    def delete(self, locations: Iterable[str]) -> None:
        """Implement `FileIO.delete`."""
        failed: list[tuple[str, OSError]] = []
        files = [(location, *os.path.split(_local_path(location))) for location in locations]
        by_folder = itemgetter(1)
        for folder, inside in groupby(sorted(files, key=by_folder), by_folder):
            failed += _delete_all(folder, [(location, name) for location, _, name in inside])
        if failed:
            location, cause = failed[0]
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise FileIOError(
                f"Cannot delete {location}{more}: {cause.strerror}",
                hint="check the permissions of the folder, and who made the links in its path",
                path=location,
                failed=tuple(name for name, _ in failed),
            ) from cause

    def discard(self, locations: Iterable[str]) -> None:
        """Implement `FileIO.discard`."""
        files = [*locations]
        self.delete(files)
        for folder in dict.fromkeys(os.path.dirname(_local_path(file)) for file in files):
            self._drop_folders(folder)

    def exists(self, location: str) -> bool:
        """Implement `FileIO.exists`; special files such as FIFOs count."""
        path = _local_path(location)
        return os.path.isfile(path) or (os.path.exists(path) and not os.path.isdir(path))

    def size(self, location: str) -> int:
        """Implement `FileIO.size`."""
        with _failures("access", location):
            return _regular(location).st_size

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """Implement `FileIO.list`."""
        with _failures("list", prefix):
            path = _local_path(prefix)
            if os.path.isfile(path):
                found = os.stat(path)
                yield _status(prefix, found)
                return
            root = path.rstrip("/") or "/"
            shown = prefix[: len(prefix) - len(path)] + ("" if root == "/" else root)
            for name, status in _walk(root):
                yield _status(f"{shown}/{name}", status)

    def rename(self, source: str, target: str) -> None:
        """Implement `FileIO.rename`."""
        source_path, target_path = _local_path(source), _local_path(target)
        with _failures("rename", source):
            _regular(source)
        above, name = os.path.split(source_path)
        folder, new = os.path.split(target_path)
        with _failures("rename to", target):
            _make_folders(folder)
            with _opened(above) as old_folder, _opened(folder) as new_folder:
                _publish(name, new, old_folder, new_folder)
                _sync_folder(folder)
                os.unlink(name, dir_fd=old_folder)
                _sync_folder(above)
                _drop_checksum(name, old_folder)

    def is_folder(self, location: str) -> bool:
        """Implement `FileIO.is_folder`."""
        return os.path.isdir(_local_path(location))

    def check_writable(self, location: str) -> None:
        """Implement `FileIO.check_writable`."""
        path = _local_path(location)
        with _failures("write to", location):
            if not os.access(path, os.W_OK | os.X_OK):
                os.stat(path)
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def folders(self, location: str) -> Sequence[str]:
        """Implement `FileIO.folders`."""
        with _failures("list", location), os.scandir(_local_path(location)) as scan:
            return sorted(entry.name for entry in scan if entry.is_dir(follow_symlinks=False))

    def entries(self, location: str) -> FolderEntries:
        """Implement `FileIO.entries`."""
        with _failures("list", location):
            files, folders = _entries(_local_path(location).rstrip("/") or "/")
            shown = location.rstrip("/")
            return FolderEntries(
                [_status(f"{shown}/{name}", found) for name, found in files],
                folders,
            )

    def create_folder(self, location: str) -> None:
        """Implement `FileIO.create_folder`."""
        with _failures("create", location):
            path = _local_path(location).rstrip("/") or "/"
            _make_folders(os.path.dirname(path))
            os.mkdir(path)
            _sync_folder(os.path.dirname(path))

    def delete_folder(self, location: str) -> bool:
        """Implement `FileIO.delete_folder`."""
        with _failures("delete", location):
            above, name = os.path.split(_local_path(location).rstrip("/"))
            try:
                with _opened(above or "/") as folder:
                    os.rmdir(name, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
        return True

    def folder_lock(self, location: str) -> FolderLock:
        """Implement `FileIO.folder_lock` by locking the folder itself, without a lock file."""
        with _failures("lock", location):
            path = _local_path(location)
            return _FolderLock(location, os.open(path, os.O_RDONLY | os.O_DIRECTORY))

    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """Implement `FileIO.filesystem`."""
        import pyarrow.fs

        # pyarrow encodes the text as UTF-8 again
        return pyarrow.fs.LocalFileSystem(), _as_utf_8(_local_path(location))

    @staticmethod
    def _replace(location: str, data: bytes) -> None:
        path = _local_path(location)
        temporary = os.path.join(os.path.dirname(path), draft_name())
        with _failures("replace", location):
            try:
                with open(temporary, "xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                _drop_checksum(path)
                os.replace(temporary, path)
                _sync_folder(os.path.dirname(path))
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)


class _FolderLock(FolderLock):
    def __init__(self, location: str, descriptor: int) -> None:
        self._location = location
        self._descriptor: int | None = descriptor

    def acquire(self) -> bool:
        if self._descriptor is None:
            return False
        with _failures("lock", self._location):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def close(self) -> None:
        if (descriptor := self._descriptor) is not None:
            with suppress(OSError):
                # closing alone does not release it while forked children share the descriptor
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            # before it is closed: it may be another file's when an interrupted call is repeated
            self._descriptor = None
            os.close(descriptor)


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
                f"Not an absolute local location: {location!r}",
                hint="write /folder/file, file:/folder/file or file:///folder/file",
                path=location,
            )
        path = match["path"]
    if "\0" in path:
        raise ValidationError(
            f"A file name cannot hold a NUL: {location!r}",
            hint="leave the NUL out of the name",
            path=location,
        )
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"{sys.getfilesystemencoding()}, which encodes the names of files here, lacks "
            f"characters of {location!r}",
            hint="run the process in a UTF-8 locale (LC_ALL=C.UTF-8, or PYTHONUTF8=1)",
            path=location,
        ) from error
    return path


def _as_utf_8(path: str) -> str:
    """Return the text whose UTF-8 is the name of a file; ValidationError if there is none."""
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValidationError(
            f"The name of {os.fsencode(path)!r} is not UTF-8, so that pyarrow cannot open it",
            hint="rename it",
        ) from error


def _regular(location: str) -> os.stat_result:
    path = _local_path(location)
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        raise FileIOError(
            f"{location} cannot be read: it is a folder, not a file",
            hint="name the files in it",
            path=location,
        )
    if not stat.S_ISREG(found.st_mode):
        # reading one waits for a writer, or never ends
        raise FileIOError(
            f"{location} cannot be read: it is {_kind(found)}, not a file",
            hint="replace it by the file that belongs there, or remove it",
            path=location,
        )
    return found


def _kind(found: os.stat_result) -> str:
    if stat.S_ISREG(found.st_mode):
        return "a file"
    if stat.S_ISFIFO(found.st_mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(found.st_mode) else "a device"


def _make_folders(folder: str) -> list[str]:
    """Create a folder and those above it; sync the parent of each new one, and return these."""
    missing = []
    path = folder
    while path != "/":
        # a single call: others may create it between two checks
        try:
            found = os.stat(path)
        except OSError:
            missing.append(path)
            path = os.path.dirname(path)
            continue
        if stat.S_ISDIR(found.st_mode):
            break
        raise FileIOError(
            f"Cannot create {folder}: {path} is {_kind(found)}, not a folder",
            hint="choose another location, or move the existing file away",
            path=path,
        )
    os.makedirs(folder, exist_ok=True)
    for each in reversed(missing):
        _sync_folder(os.path.dirname(each))
    return missing


def _sync_folder(folder: str) -> None:
    """Wait until the names in a folder are on the disk."""
    try:
        descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return  # a folder that cannot be read cannot be synced
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)


def _publish(
    temporary: str, path: str, old_folder: int | None = None, new_folder: int | None = None
) -> None:
    """Link a file to its name; relative names are in the folders of these descriptors."""
    try:
        os.lstat(path, dir_fd=new_folder)
    except OSError:
        _drop_checksum(path, new_folder)
    try:
        os.link(
            temporary, path, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False
        )
    except OSError as error:
        # NFS repeats a request whose response was lost, and then finds its own first success.
        with suppress(OSError):
            if os.path.samestat(
                os.lstat(temporary, dir_fd=old_folder), os.lstat(path, dir_fd=new_folder)
            ):
                return
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        raise FileIOError(
            f"Cannot create {path}: {error.strerror}",
            hint="the file system must allow hard links: they publish without overwriting",
            path=path,
        ) from error


def _drop_checksum(path: str, above: int | None = None) -> None:
    folder, name = os.path.split(path)
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(folder, f".{name}.crc"), dir_fd=above)


def _delete_all(folder: str, files: Sequence[tuple[str, str]]) -> list[tuple[str, OSError]]:
    """Delete files, given by location and name, of a folder; return what failed, and why."""
    try:
        with _opened(folder) as opened:
            outcomes = [(location, _delete(name, opened)) for location, name in files]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        return [(location, error) for location, _ in files]
    return [(location, error) for location, error in outcomes if error is not None]


def _delete(name: str, folder: int) -> OSError | None:
    try:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        _drop_checksum(name, folder)
    except OSError as error:
        return error
    return None


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    """Open a folder by its absolute path, part by part, so that nobody can exchange a part.

    PermissionError is raised if a part is a link that another user made, root aside.
    """
    parts = [part for part in reversed(folder.split("/")) if part]
    links = 0
    found = os.open("/", _SEARCH)
    try:
        while parts:
            part = parts.pop()
            try:
                following = os.open(part, _SEARCH | os.O_NOFOLLOW, dir_fd=found)
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
                target = _target(part, found, folder)
                parts += [each for each in reversed(target.split("/")) if each]
                following = os.open("/" if target.startswith("/") else ".", _SEARCH, dir_fd=found)
            # the descriptor must not be closed twice if an interrupt comes between
            found, last = following, found
            os.close(last)
        yield found
    finally:
        os.close(found)


def _target(part: str, above: int, folder: str) -> str:
    """Return where a link in the path of a folder leads, if this user or root made it."""
    status = os.lstat(part, dir_fd=above)
    if not stat.S_ISLNK(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not is_own(status):
        reason = f"{part} in {folder} is a link of user {status.st_uid}, which is not followed"
        raise PermissionError(errno.EACCES, reason)
    target = os.readlink(part, dir_fd=above)
    # the link may have been exchanged since it was looked at: then it has another owner
    again = os.lstat(part, dir_fd=above)
    if not os.path.samestat(again, status) or again.st_ctime_ns != status.st_ctime_ns:
        raise PermissionError(errno.EACCES, f"{part} in {folder} changes while it is looked at")
    return target


def _status(location: str, found: os.stat_result) -> FileStatus:
    # hashes of numbers are the same in every process
    file_id = hash((found.st_dev, found.st_ino, found.st_ctime_ns))
    return FileStatus(location, found.st_size, found.st_mtime_ns // 1_000_000, file_id)


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    folders = [""]
    while folders:
        inner = folders.pop()
        files, below = _entries(f"{root}/{inner}")
        yield from ((f"{inner}{name}", status) for name, status in files)
        folders.extend(f"{inner}{name}/" for name in reversed(below))


def _entries(folder: str) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
    """Return the files in a folder, and the names of the folders in it."""
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except FileNotFoundError:
        return [], []
    files, below = [], []
    for entry in entries:
        # another process may delete a file during the listing
        with suppress(FileNotFoundError):
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
            elif entry.is_file():
                files.append((entry.name, entry.stat()))
    return files, below


@contextmanager
def _failures(verb: str, location: str) -> Iterator[None]:
    try:
        yield
    except IcecombError:
        raise
    except FileExistsError:
        raise exists_already(location) from None
    except (FileNotFoundError, NotADirectoryError):
        raise is_missing(location) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileIOError(
            f"Cannot {verb} {location}: {reason}",
            hint="check the permissions, and that there is space",
            path=location,
        ) from error
