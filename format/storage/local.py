"""Files of this machine and of file systems mounted on it."""

# pathlib normalizes names, and these must be kept exactly
# ruff: noqa: PTH110, PTH112, PTH113, PTH116, PTH118, PTH120, PTH123

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
    check_levels,
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
_UPWARD = re.compile(r"/\.\.(?:/|$)")
_MOST_LINKS = 40
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
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

    What creates, deletes, moves or copies follows no link in a path that another user made, root
    aside: who may write to a folder could otherwise lead it to files of whoever runs this, at any
    moment. Two dots in a location remove the part before them, also where that is a link.

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
            _regular(location)
            # it may be exchanged since it was looked at, and a FIFO would wait for its writer
            return _whole(os.open(_local_path(location), _READ), location)

    def read_to_copy(self, location: str) -> bytes:
        """Implement `FileSystem.read_to_copy`."""
        with _failures("copy", location):
            _regular(location)
            return _whole(_opened_file(_local_path(location)), location)

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002
        """Implement `FileIO.open_input`."""
        with _failures("open", location):
            _regular(location)
            return _arrow_file(os.open(_local_path(location), _READ), location)

    def open_to_copy(self, location: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002
        """Implement `FileIO.open_to_copy`."""
        with _failures("copy", location):
            _regular(location)
            return _arrow_file(_opened_file(_local_path(location)), location)

    def create(self, location: str, data: bytes) -> None:
        """Implement `FileIO.create`."""
        with self._created(location, sync=True) as stream:
            stream.write(data)

    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Implement `FileIO.create_stream`."""
        return self._created(location, sync=self._sync_streams)

    @contextmanager
    def _created(self, location: str, *, sync: bool) -> Iterator[BinaryIO]:
        folder, name = _folder_and_name(location)
        draft = draft_name()
        with _failures("create", location):
            file = self._new_draft(folder, name, draft)
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
                    hint="Free space there; no file of this name was created.",
                    path=location,
                ) from error
            with _failures("create", location), _opened(folder) as opened:
                _publish(draft, opened, name, opened, location)
                if sync:
                    _sync_folder(opened)
                _unlink(draft, opened)
            is_done = True
        finally:
            if not is_done:
                with suppress(OSError), _opened(folder) as opened:
                    os.unlink(draft, dir_fd=opened)
                self._drop_folders(folder)

    def _new_draft(self, folder: str, name: str, draft: str) -> BinaryIO:
        while True:
            with _opened(folder, self._made) as opened:
                if _is_there(name, opened):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
                # another thread may just have discarded the only file there, and the folder
                with suppress(FileNotFoundError):
                    return _new_file(draft, opened)

    def _drop_folders(self, folder: str) -> None:
        """Delete a folder, and those above it, that were made here and are empty again."""
        while folder in self._made:
            above, name = os.path.split(folder)
            try:
                with _opened(above) as opened:
                    os.rmdir(name, dir_fd=opened)
            except OSError:
                return  # others use it
            self._made.discard(folder)
            folder = above

    @contextmanager
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> Iterator[Callable[[], None]]:
        """Implement `FileIO.prepare`; the file is written when it is published."""
        yield lambda: (self._replace if replace else self.create)(location, data)

    def delete(self, locations: Iterable[str]) -> None:
        """Implement `FileIO.delete`."""
        failed: list[tuple[str, OSError]] = []
        files = [(location, *_folder_and_name(location)) for location in locations]
        by_folder = itemgetter(1)
        for folder, inside in groupby(sorted(files, key=by_folder), by_folder):
            failed += _delete_all(folder, [(location, name) for location, _, name in inside])
        if failed:
            location, cause = failed[0]
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise FileIOError(
                f"Cannot delete {location}{more}: {cause.strerror}",
                hint="Check the permissions of the folder, and who made the links in its path.",
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
            written = _written_path(prefix)
            shown = prefix[: len(prefix) - len(written)] + written.rstrip("/")
            for name, status in _walk(path.rstrip("/") or "/"):
                yield _status(f"{shown}/{name}", status)

    def rename(self, source: str, target: str) -> None:
        """Implement `FileIO.rename`."""
        above, name = _folder_and_name(source)
        folder, new = _folder_and_name(target)
        with _failures("rename", source):
            _regular(source)
        with (
            _failures("rename to", target),
            _opened(above) as old_folder,
            _opened(folder, set()) as new_folder,
        ):
            _publish(name, old_folder, new, new_folder, target)
            _sync_folder(new_folder)
            os.unlink(name, dir_fd=old_folder)
            _sync_folder(old_folder)
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
            above, name = os.path.split(_local_path(location).rstrip("/") or "/")
            with _opened(above, set()) as folder:
                os.mkdir(name or ".", dir_fd=folder)
                _sync_folder(folder)

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
        folder, name = _folder_and_name(location)
        draft = draft_name()
        with _failures("replace", location), _opened(folder) as opened:
            try:
                with _new_file(draft, opened) as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                _drop_checksum(name, opened)
                os.replace(draft, name, src_dir_fd=opened, dst_dir_fd=opened)
                _sync_folder(opened)
            finally:
                _unlink(draft, opened)


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
    """Return the path of a location without dots, as `plain_locations` compares it."""
    path = _written_path(location)
    return os.path.normpath(path) if _UPWARD.search(path) else path


def _folder_and_name(location: str) -> tuple[str, str]:
    folder, name = os.path.split(_local_path(location))
    return folder, name or "."


def _written_path(location: str) -> str:
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
                hint="Write /folder/file, file:/folder/file or file:///folder/file",
                path=location,
            )
        path = match["path"]
    if "\0" in path:
        raise ValidationError(
            f"A file name cannot hold a NUL: {location!r}",
            hint="Leave the NUL out of the name.",
            path=location,
        )
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"{sys.getfilesystemencoding()}, which encodes the names of files here, lacks "
            f"characters of {location!r}",
            hint="Run the process in a UTF-8 locale (LC_ALL=C.UTF-8, or PYTHONUTF8=1)",
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
            hint="Rename it.",
        ) from error


def _arrow_file(descriptor: int, location: str) -> pa.NativeFile:
    """Return Arrow's file of a descriptor, which is closed; FileIOError if it is not a file."""
    import pyarrow as pa

    try:
        _checked(os.fstat(descriptor), location)
        # by its own name it could be another file by now
        with suppress(FileNotFoundError):
            return pa.OSFile(f"{_DESCRIPTORS}/{descriptor}", "rb")
        # no /proc is mounted
        return pa.PythonFile(open(os.dup(descriptor), "rb"), mode="r")
    finally:
        os.close(descriptor)


def _whole(descriptor: int, location: str) -> bytes:
    """Return the content of an opened file, which is closed; FileIOError if it is too long."""
    with open(descriptor, "rb", buffering=0) as file:
        # a file without blocks may say that it has terabytes
        size = _checked(os.fstat(descriptor), location).st_size
        limit = unpacked_bytes()
        data = b""
        while size <= limit and (piece := file.read(size + 1 - len(data))):
            data = data + piece if data else piece
            size = max(size, len(data))
    if size > limit:
        raise FileIOError(
            f"{location} is not read whole: it has {size} bytes, the limit is {UNPACKED}",
            hint="Set that variable to more MiB if the file is sound.",
            path=location,
        )
    return data


def _regular(location: str) -> os.stat_result:
    return _checked(os.stat(_local_path(location)), location)


def _checked(found: os.stat_result, location: str) -> os.stat_result:
    if stat.S_ISDIR(found.st_mode):
        raise FileIOError(
            f"{location} cannot be read: it is a folder, not a file",
            hint="Name the files in it.",
            path=location,
        )
    if not stat.S_ISREG(found.st_mode):
        # reading one waits for a writer, or never ends
        raise FileIOError(
            f"{location} cannot be read: it is {_kind(found)}, not a file",
            hint="Replace it by the file that belongs there, or remove it.",
            path=location,
        )
    return found


def _kind(found: os.stat_result) -> str:
    if stat.S_ISREG(found.st_mode):
        return "a file"
    if stat.S_ISFIFO(found.st_mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(found.st_mode) else "a device"


def _sync_folder(folder: int) -> None:
    """Wait until the names in a folder are on the disk."""
    try:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return  # a folder that cannot be read cannot be synced
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)


def _new_file(name: str, folder: int) -> BinaryIO:
    return open(name, "xb", opener=lambda name, flags: os.open(name, flags, 0o666, dir_fd=folder))


def _is_there(name: str, folder: int) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except (OSError, ValueError):
        return False
    return True


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _publish(draft: str, old_folder: int, name: str, new_folder: int, location: str) -> None:
    """Link a file to its name, which is in another opened folder or in the same one."""
    if not _is_there(name, new_folder):
        _drop_checksum(name, new_folder)
    try:
        os.link(draft, name, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
    except OSError as error:
        # NFS repeats a request whose response was lost, and then finds its own first success.
        with suppress(OSError):
            if os.path.samestat(
                os.lstat(draft, dir_fd=old_folder), os.lstat(name, dir_fd=new_folder)
            ):
                return
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        raise FileIOError(
            f"Cannot create {location}: {error.strerror}",
            hint="The file system must allow hard links: they publish without overwriting.",
            path=location,
        ) from error


def _drop_checksum(name: str, folder: int) -> None:
    _unlink(f".{name}.crc", folder)


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
        _unlink(name, folder)
        _drop_checksum(name, folder)
    except OSError as error:
        return error
    return None


@contextmanager
def _opened(
    folder: str, made: set[str] | None = None, real: list[str] | None = None
) -> Iterator[int]:
    """Open a folder by its absolute path, part by part, so that nobody can exchange a part.

    PermissionError is raised if a part is a link that another user made, root aside.

    Args:
        folder: The path.
        made: Gets the paths of folders that were missing, and are created; None to create none.
        real: Gets the parts of the path without links, up to the first that is missing.
    """
    real = [] if real is None else real
    parts = [part for part in reversed(folder.split("/")) if part]
    # the parts of the path itself; those of links follow
    written = len(parts)
    links = 0
    found = os.open("/", _SEARCH)
    try:
        while parts:
            part = parts.pop()
            try:
                following = os.open(part, _SEARCH | os.O_NOFOLLOW, dir_fd=found)
            except FileNotFoundError:
                if made is None or len(parts) >= written:
                    real += [part, *reversed(parts)]
                    raise
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=found)
                    _sync_folder(found)
                    made.add(_above(folder, len(parts)))
                parts.append(part)
                continue
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
                written = min(written, len(parts))
                try:
                    target = _target(part, found, folder)
                except NotADirectoryError:
                    if made is None:
                        raise
                    raise _no_folder(folder, _above(folder, written), part, found) from error
                parts += [each for each in reversed(target.split("/")) if each]
                following = os.open("/" if target.startswith("/") else ".", _SEARCH, dir_fd=found)
                real[:] = [] if target.startswith("/") else real
            else:
                real[:] = real[:-1] if part == ".." else [*real, part]
            # the descriptor must not be closed twice if an interrupt comes between
            found, last = following, found
            os.close(last)
        yield found
    finally:
        os.close(found)


def trusted_path(folder: str) -> str | None:
    """Return what `real_folder` does; None where it fails."""
    try:
        return real_folder(folder)
    except (OSError, ValueError):
        return None


def real_folder(folder: str) -> str:
    """Return the absolute path of a folder, which may be missing, without links.

    OSError is raised if a part of it is a link of another user, or nothing that can be gone
    through; see `_opened`.
    """
    real: list[str] = []
    with suppress(FileNotFoundError), _opened(folder, real=real):
        pass
    return os.path.normpath("/" + "/".join(real))


def _opened_file(path: str) -> int:
    """Open a file for reading by its absolute path, with the links that `_opened` follows."""
    for _ in range(_MOST_LINKS):
        above, name = os.path.split(path)
        with _opened(above) as folder:
            try:
                return os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                path = os.path.join(above, _target(name, folder, above))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _above(folder: str, levels: int) -> str:
    for _ in range(levels):
        folder = os.path.dirname(folder)
    return folder


def _no_folder(folder: str, path: str, part: str, above: int) -> FileIOError:
    kind = _kind(os.lstat(part, dir_fd=above))
    return FileIOError(
        f"Cannot create {folder}: {path} is {kind}, not a folder",
        hint="Choose another location, or move the existing file away.",
        path=path,
    )


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
        check_levels(root, f"{root}/{inner}")
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
            hint="Check the permissions, who made the links in its path, and that there is space.",
            path=location,
        ) from error
