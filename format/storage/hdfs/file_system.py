"""HDFS as a `FileSystem` of `icecomb.format.storage.file_io`.

A file is uploaded under a hidden name in its folder, its length is compared with the one the name
node reports, and then it is renamed without overwriting. A broken connection leaves a closed,
truncated file behind, which never appears under the final name.
"""

from __future__ import annotations

import os
import posixpath
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from icecomb.format.arrow.batch_stream import in_order, thread_pool
from icecomb.format.errors import FileAlreadyExistsError, FileIOError, IcecombError, NoSuchFileError
from icecomb.format.storage.creations import Creations
from icecomb.format.storage.file_system import (
    FileStatus,
    FileSystem,
    FolderEntries,
    check_levels,
    draft_name,
    exists_already,
    is_missing,
)
from icecomb.format.storage.hdfs.address import (
    HdfsAddress,
    hadoop_properties,
    known_clusters,
    resolve_location,
)
from icecomb.format.storage.hdfs.failure import HdfsDataLostError
from icecomb.format.storage.hdfs.native import NativeHdfs, works_here
from icecomb.format.storage.hdfs.web_hdfs import HdfsStatus, WebHdfs
from icecomb.format.storage.output_stream import Begin, HeldOutput, Upload
from icecomb.format.storage.range_input import RangeInput, input_file
from icecomb.format.storage.storage_property import HDFS_ENGINE, HDFS_TRASH

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_IDENTITY: Final = (
    "HADOOP_USER_NAME",
    "HADOOP_PROXY_USER",
    "HADOOP_TOKEN_FILE_LOCATION",
    "KRB5CCNAME",
)
"""Environment variables that define the user where properties do not."""
_TRIES: Final = 5
_LEVELS_AT_ONCE: Final = 16


class HdfsFileSystem(FileSystem):
    """All clusters that the settings describe; threads share the connections to each.

    For properties see `address`, `HdfsSession`, `HDFS_ENGINE` and `HDFS_TRASH`.
    """

    at_once = 8
    refusal_is_proof = True

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = hadoop_properties(properties or {})
        self._clusters: dict[Hashable, WebHdfs] = {}
        self._creations = Creations(self.at_once)
        # folders of data files, and whether they were made for them
        self._folders: dict[tuple[WebHdfs, str], bool] = {}
        self._engine = HDFS_ENGINE.of(self._properties)
        self._trash = HDFS_TRASH.of(self._properties)

    def close(self) -> None:
        """Implement `FileIO.close`."""
        for web in [*self._clusters.values()]:
            web.close()

    def cluster(self, location: str) -> tuple[WebHdfs, HdfsAddress]:
        """Return the client for a location's cluster, and the location's address."""
        self._creations.wait_for(location)
        address = resolve_location(location, self._properties)
        kind = NativeHdfs if self._wants_native(address) else WebHdfs
        # a forked process must not share its parent's connections
        who = tuple(os.environ.get(name) for name in _IDENTITY)
        cluster = (address.name_nodes, address.secure, address.cluster)
        key = (os.getpid(), cluster, kind, who)
        web = self._clusters.get(key)
        if web is None:
            made = kind(address, self._properties)
            web = self._clusters.setdefault(key, made)
            if web is not made:  # another thread was first
                made.close()
        return web, address

    def _wants_native(self, address: HdfsAddress) -> bool:
        wanted = self._engine == "native" and works_here() and bool(address.cluster)
        # what others answer to hdfs-native may end the process
        return wanted and not self._configured.isdisjoint(map(str.lower, address.name_nodes))

    @cached_property
    def _configured(self) -> frozenset[str]:
        """`host:port` of the web interfaces of name nodes that the settings name."""
        return frozenset().union(*(each.web for each in known_clusters(self._properties)))

    def read(self, location: str) -> bytes:
        """Implement `FileIO.read`."""
        web, address = self.cluster(location)
        return web.read(address.path, location)

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Implement `FileIO.open_input`."""
        web, address = self.cluster(location)
        source = None
        if size is None:
            size = _file(web.status(address.path, location), location).size
            source = "the name node"
        stream = RangeInput(
            lambda start, length: web.read(address.path, location, start, length),
            location,
            size,
            source=source,
            reads_ahead=web.reads_ahead,
        )
        return input_file(stream)

    def create(self, location: str, data: bytes) -> None:
        """Implement `FileIO.create`; data lost by a data node is sent again."""
        self._send(location, data)

    @contextmanager
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> Iterator[Callable[[], None]]:
        """Implement `FileIO.prepare`."""
        hidden: list[_HiddenFile] = []
        with thread_pool(1) as pool:
            stored = pool.submit(send_whole, lambda: self._new_file(location, hidden.append), data)

            def publish() -> None:
                stored.result()
                hidden[0].publish(replace=replace)
                hidden.clear()

            try:
                yield publish
            finally:
                wait([stored])
                for file in hidden:
                    file.drop()

    def side_by_side(self) -> AbstractContextManager[None]:
        """Implement `FileIO.side_by_side`."""
        return self._creations.block()

    @contextmanager
    def create_stream(self, location: str) -> Iterator[BinaryIO]:
        """Implement `FileIO.create_stream`."""
        self._look_for_folders(location)
        with ExitStack() as stack:
            output = HeldOutput(lambda: self._new_file(location), stack)
            yield cast("BinaryIO", output)
            held = output.held()
            if held is not None:
                self._send(location, held)

    def _send(self, location: str, data: bytes | bytearray) -> None:
        self._creations.submit(location, lambda: send_whole(lambda: self._new_file(location), data))

    @contextmanager
    def _new_file(
        self, location: str, then: Callable[[_HiddenFile], None] | None = None
    ) -> Iterator[Upload]:
        """Upload under a hidden name; publish the file when the block ends without an error.

        With `then`, call it with the hidden file instead of publishing it.
        """
        web, address = self.cluster(location)
        temporary = _temporary(address.path)
        is_sent = False
        try:
            try:
                with web.upload(temporary, location) as upload:
                    yield upload
                    is_sent = True
            except FileAlreadyExistsError as error:
                # nobody else uses the name: the request was sent twice, and the first may have
                # succeeded
                if not is_sent:
                    raise _sent_twice(error, location) from error
            stored = _stored(web, temporary, upload.written, location)
            hidden = _HiddenFile(web, address.path, location, temporary, stored.file_id)
            (then or _HiddenFile.publish)(hidden)
        except BaseException:
            with suppress(IcecombError):
                web.delete(temporary, location)
                self._drop_folders(web, posixpath.dirname(temporary), location)
            raise

    def discard(self, locations: Iterable[str]) -> None:
        """Implement `FileIO.discard`."""
        files = [*locations]
        self.delete(files)
        for folder in dict.fromkeys(map(posixpath.dirname, files)):
            web, address = self.cluster(folder)
            with suppress(IcecombError):
                self._drop_folders(web, address.path, folder)

    def _look_for_folders(self, location: str) -> None:
        """Note which folders of a new data file have to be made; each is looked for once."""
        web, address = self.cluster(location)
        folder, missing = posixpath.dirname(address.path), []
        while (
            folder != "/"
            and (web, folder) not in self._folders
            and _is_missing(web, folder, location)
        ):
            missing.append(folder)
            folder = posixpath.dirname(folder)
        self._folders.setdefault((web, folder), False)
        self._folders.update({(web, each): True for each in missing})

    def _drop_folders(self, web: WebHdfs, folder: str, location: str) -> None:
        """Delete a folder, and those above it, that were made here and are empty again."""
        while self._folders.get((web, folder)):
            web.delete(folder, location)  # fails where anybody has something in it
            self._folders.pop((web, folder), None)
            folder = posixpath.dirname(folder)

    def delete(self, locations: Iterable[str]) -> None:
        """Implement `FileIO.delete`; several files are deleted concurrently."""
        self._creations.wait()
        failed: list[tuple[str, IcecombError]] = []
        roots: dict[str, str] = {}

        def one(location: str) -> None:
            try:
                self._delete(location, roots)
            except IcecombError as error:
                failed.append((location, error))

        with thread_pool(self.at_once) as pool:
            # not `pooled`: a canceled statement still takes away what it wrote
            for _ in pool.map(one, locations):
                pass
        if failed:
            location, cause = failed[0]
            more = f" (and {len(failed) - 1} more failed)" if len(failed) > 1 else ""
            raise FileIOError(
                f"{cause.message}{more}",
                hint=cause.hint,
                path=location,
                failed=tuple(name for name, _ in failed),
            ) from cause

    def exists(self, location: str) -> bool:
        """Implement `FileIO.exists`."""
        found = self._find(location)
        return found is not None and not found.is_folder

    def size(self, location: str) -> int:
        """Implement `FileIO.size`."""
        web, address = self.cluster(location)
        return _file(web.status(address.path, location), location).size

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """Implement `FileIO.list` with one call per folder, concurrently for siblings."""
        self._creations.wait()
        web, address = self.cluster(prefix)
        shown = prefix.rstrip("/")

        def look(inner: str) -> tuple[str, Sequence[HdfsStatus]]:
            path = posixpath.join(address.path, inner).rstrip("/") or "/"
            with suppress(NoSuchFileError):
                return inner, web.entries(path, prefix)
            return inner, ()

        levels = [iter((look(""),))]
        while levels:
            found = next(levels[-1], None)
            if found is None:
                levels.pop()
                continue
            inner, entries = found
            check_levels(prefix, f"{shown}/{inner}")
            for entry in entries:
                if not entry.is_folder:
                    name = f"{shown}/{inner}{entry.name}" if entry.name else prefix
                    yield FileStatus(name, entry.size, entry.mtime_ms, entry.file_id)
            below = [f"{inner}{entry.name}/" for entry in entries if entry.is_folder]
            # each level has threads of its own
            at_once = self.at_once if len(levels) <= _LEVELS_AT_ONCE else 1
            levels.append(in_order(look, below, min(len(below), at_once)))

    def rename(self, source: str, target: str) -> None:
        """Implement `FileIO.rename`."""
        web, address = self.cluster(source)
        other, target_address = self.cluster(target)
        if other is not web:
            raise FileIOError(
                f"Cannot rename {source} to {target}: they are on different clusters",
                hint="Copy the file, then delete the old one.",
                path=source,
            )
        file_id = _file(web.status(address.path, source), source).file_id
        web.make_folder(posixpath.dirname(target_address.path), target)
        try:
            web.rename(address.path, target_address.path, file_id, target)
        except NoSuchFileError as error:
            raise is_missing(source) from error

    def is_folder(self, location: str) -> bool:
        """Implement `FileIO.is_folder`."""
        found = self._find(location)
        return found is not None and found.is_folder

    def check_writable(self, location: str) -> None:
        """Implement `FileIO.check_writable`."""
        web, address = self.cluster(location)
        try:
            web.check_access(address.path, location, "-wx")
        except NoSuchFileError:
            raise
        except FileIOError as error:
            # Not every gateway (HttpFS) has this call.
            if "AccessControlException" in error.message:
                raise

    def folders(self, location: str) -> Sequence[str]:
        """Implement `FileIO.folders`."""
        web, address = self.cluster(location)
        found = web.entries(address.path, location)
        if len(found) == 1 and not found[0].name:
            raise FileIOError(
                f"Cannot list {location}: it is a file",
                hint="Name the folder that contains it.",
                path=location,
            )
        return [entry.name for entry in found if entry.is_folder]

    def entries(self, location: str) -> FolderEntries:
        """Implement `FileIO.entries` with one call."""
        self._creations.wait()
        web, address = self.cluster(location)
        try:
            found = web.entries(address.path.rstrip("/") or "/", location)
        except NoSuchFileError:
            return FolderEntries((), ())
        shown = location.rstrip("/")
        return FolderEntries(
            [
                FileStatus(f"{shown}/{entry.name}", entry.size, entry.mtime_ms, entry.file_id)
                for entry in found
                if entry.name and not entry.is_folder
            ],
            [entry.name for entry in found if entry.is_folder],
        )

    def create_folder(self, location: str) -> None:
        """Implement `FileIO.create_folder`; exactly one of several creators succeeds."""
        web, address = self.cluster(location)
        folder, _ = posixpath.split(address.path)
        if self._find(location) is not None:
            raise exists_already(location)
        web.make_folder(folder, location)
        temporary = posixpath.join(folder, draft_name())
        web.make_folder(temporary, location)
        try:
            status = web.status(temporary, location)
            web.publish(temporary, address.path, status.file_id, location)
        except BaseException:
            with suppress(IcecombError):
                web.delete(temporary, location)
            raise

    def delete_folder(self, location: str) -> bool:
        """Implement `FileIO.delete_folder`."""
        web, address = self.cluster(location)
        found = web.entries(address.path, location)
        if found:
            return False
        try:
            return web.delete(address.path, location)
        except FileIOError as error:
            if "PathIsNotEmptyDirectoryException" in str(error):
                return False
            raise

    def undeletable_folder(self, location: str) -> str | None:
        """Implement `FileIO.undeletable_folder`: HDFS keeps folders that have snapshots."""
        web, address = self.cluster(location)
        found = web.snapshotted_folder(address.path, location)
        return None if found is None else location.rstrip("/") + found[len(address.path) :]

    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """Implement `FileIO.filesystem`; paths there are whole locations."""
        import pyarrow.fs

        from icecomb.format.storage.hdfs.arrow_handler import HdfsArrowHandler

        return pyarrow.fs.PyFileSystem(HdfsArrowHandler(self)), location

    def _delete(self, location: str, roots: dict[str, str]) -> None:
        """Delete a file, or move it to the trash.

        The dict `roots` has the trash of each folder found so far.
        """
        web, address = self.cluster(location)
        found = self._find(location)
        if found is None:
            return
        # the name node would delete an empty folder, too
        if found.is_folder:
            raise FileIOError(
                f"Cannot delete {location}: it is a folder",
                hint="Only files are deleted: name those in it.",
                path=location,
            )
        if not self._trash:
            web.delete(address.path, location)
            return
        folder = posixpath.dirname(location)
        if folder not in roots:
            roots[folder] = web.trash_root(address.path, location)
        trash = f"{roots[folder]}/Current{address.path}"
        web.make_folder(posixpath.dirname(trash), location, private=True)
        try:
            web.rename(address.path, trash, found.file_id, location)
        except FileAlreadyExistsError:
            web.rename(address.path, f"{trash}{uuid.uuid4().hex}", found.file_id, location)

    def _find(self, location: str) -> HdfsStatus | None:
        web, address = self.cluster(location)
        try:
            return web.status(address.path, location)
        except NoSuchFileError:
            return None


@dataclass(frozen=True, slots=True)
class _HiddenFile:
    """A complete file under a hidden name in its folder."""

    web: WebHdfs
    path: str
    location: str
    name: str
    file_id: int

    def publish(self, *, replace: bool = False) -> None:
        """Rename the file to its final name; see `WebHdfs.publish`."""
        self.web.publish(self.name, self.path, self.file_id, self.location, replace=replace)

    def drop(self) -> None:
        """Delete the hidden file."""
        with suppress(IcecombError):
            self.web.delete(self.name, self.location)


def _temporary(path: str) -> str:
    """Return a hidden name in the same folder, within the length limit of file systems."""
    folder, name = posixpath.split(path)
    start = name.encode()[:100].decode(errors="ignore")
    return posixpath.join(folder, draft_name(start))


def _is_missing(web: WebHdfs, path: str, location: str) -> bool:
    try:
        web.status(path, location)
    except NoSuchFileError:
        return True
    except FileIOError:
        pass  # the creation that follows says what is wrong
    return False


def _sent_twice(error: FileAlreadyExistsError, location: str) -> IcecombError:
    if error.context.get("path") != location:  # raised by the caller's block
        return error
    return HdfsDataLostError(
        f"Cannot create {location}: it was sent twice on the way",
        hint="Check the proxies between this machine and the cluster, and try again.",
        path=location,
    )


def _stored(web: WebHdfs, temporary: str, written: int, location: str) -> HdfsStatus:
    """Return the status of an uploaded file.

    HdfsDataLostError is raised if it is incomplete or missing.
    """
    arrived = "none"
    with suppress(NoSuchFileError):
        stored = web.status(temporary, location)
        if stored.size == written:
            return stored
        arrived = str(stored.size)
    raise HdfsDataLostError(
        f"Cannot create {location}: {written} bytes were sent, {arrived} arrived",
        hint="Check the data nodes' logs, and try again.",
        path=location,
    )


def _file(status: HdfsStatus, location: str) -> HdfsStatus:
    if status.is_folder:
        raise FileIOError(
            f"Cannot open {location}: it is a folder", hint="Name a file in it.", path=location
        )
    return status


def send_whole(begin: Begin, data: bytes | bytearray) -> None:
    """Create a file of these bytes; retry if a data node loses them.

    HdfsDataLostError is raised if every attempt failed.
    """

    def send() -> None:
        with begin() as upload:
            upload.write(data)

    for attempt in range(1, _TRIES):
        with suppress(HdfsDataLostError):
            return send()
        time.sleep(0.2 * attempt)
    return send()
