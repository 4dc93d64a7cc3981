"""Object stores as a `FileSystem` of `icecomb.format.storage.file_io`.

An object appears whole when its last byte has arrived, so there are no hidden names: what is small
is one conditional write, what is large an upload of parts with a conditional completion.

A store has no folders. One is there when something lies under its name; one that is made empty is
an object whose key ends with a slash, as Hadoop's S3A makes it too. Such markers are no files.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from icecomb.format.errors import FileIOError, FileMissingError, ValidationError
from icecomb.format.storage.creations import Creations
from icecomb.format.storage.file_system import (
    FileStatus,
    FileSystem,
    FolderEntries,
    exists_already,
    is_missing,
)
from icecomb.format.storage.hdfs.address import hadoop_properties
from icecomb.format.storage.object_store.client import ObjectClient, ObjectStatus
from icecomb.format.storage.object_store.creation import put_once
from icecomb.format.storage.object_store.part_stream import PartStream
from icecomb.format.storage.object_store.probe import probe_object, replaces_nothing
from icecomb.format.storage.output_stream import HeldOutput, Upload
from icecomb.format.storage.range_input import RangeInput
from icecomb.format.storage.storage_property import OBJECT_STORE_ATTEMPTS, OBJECT_STORE_CONCURRENCY

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_A_DELETE: Final = 1000
_MAY_DELETE: Final = "see that your key or role may delete objects there"


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """Where a location is.

    Attributes:
        client: Of its bucket.
        key: There.
        start: What stands before the key in the location.
    """

    client: ObjectClient
    key: str
    start: str


class ObjectFileSystem(FileSystem):
    """All buckets of one kind of store; connections are shared by all threads.

    Args:
        properties: See `OBJECT_STORE_CONCURRENCY`, `OBJECT_STORE_ATTEMPTS` and the settings of the
            store.
    """

    scheme: str
    """What Arrow shows as its kind."""
    schemes: Collection[str] = ()
    """What its locations begin with, in lower case; `split` goes by them, as by the next two."""
    store: str = "an object store"
    """For messages: what the locations are of."""
    example: str = "scheme://bucket/key"
    """For messages: how a location is written."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = properties or {}
        self.at_once = OBJECT_STORE_CONCURRENCY.of(self._properties)
        self._attempts = OBJECT_STORE_ATTEMPTS.of(self._properties)
        self._creations = Creations(self.at_once)
        self._clients: dict[tuple[int, str], ObjectClient] = {}
        self._connecting = Lock()
        self._probed: dict[str, bool] = {}

    def split(self, location: str) -> tuple[str, str]:
        """What names the bucket of a location, up to the slash after it, and the key.

        Raises:
            ValidationError: it is no location of this kind of store.
        """
        start, slashes, rest = location.partition("://")
        bucket, slash, key = rest.partition("/")
        if start.lower() not in self.schemes or not slashes or not bucket.partition("@")[0]:
            raise ValidationError(
                f"Not a location of {self.store}: {location!r}",
                hint=f"write {self.example}",
                path=location,
            )
        return f"{start}://{bucket}{slash or '/'}", key

    @abstractmethod
    def connect(self, start: str) -> ObjectClient:
        """The client of a bucket.

        Args:
            start: See `split`.
        """

    def place(self, location: str) -> ObjectPlace:
        """Who serves a location, and its key there; a file that is on its way is waited for."""
        self._creations.wait_for(location)
        if location.startswith("/"):
            start, key = "/", location[1:]
        else:
            start, key = self.split(location)
        # a forked process must not share its parent's connections
        bucket = self._named(start)
        known = (os.getpid(), bucket.partition(":")[2])
        client = self._clients.get(known)
        if client is None:
            with self._connecting:
                client = self._clients.get(known) or self.connect(bucket)
                self._clients[known] = client
        return ObjectPlace(client, key, start)

    def _named(self, start: str) -> str:
        """What names the bucket; that of a path without a scheme is in `fs.defaultFS`."""
        if start != "/":
            return start
        default = hadoop_properties(self._properties).get("fs.defaultFS", "")
        return self.split(f"{default.rstrip('/')}/")[0]

    def close(self) -> None:
        """See `FileIO.close`."""
        for client in [*self._clients.values()]:
            client.close()

    def read(self, location: str) -> bytes:
        """See `FileIO.read`."""
        place = self.place(location)
        return place.client.read(place.key, location)

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """See `FileIO.open_input`."""
        import pyarrow as pa

        place = self.place(location)
        source = None
        if size is None:
            size = place.client.status(place.key, location).size
            source = "the store"
        stream = RangeInput(
            lambda start, length: place.client.read(place.key, location, start, length),
            location,
            size,
            source=source,
        )
        return pa.PythonFile(stream, mode="r")

    def create(self, location: str, data: bytes) -> None:
        """See `FileIO.create`: one conditional write."""
        self._create(location, data)

    def _create(self, location: str, data: bytes | bytearray, *, replace: bool = False) -> None:
        place = self.place(location)
        self._creations.submit(
            location,
            lambda: put_once(
                place.client, place.key, location, data, self._attempts, replace=replace
            ),
        )

    @contextmanager
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> Iterator[Callable[[], None]]:
        """See `FileIO.prepare`: all is done when it is published."""
        yield lambda: self._create(location, data, replace=replace)

    def side_by_side(self) -> AbstractContextManager[None]:
        """See `FileIO.side_by_side`."""
        return self._creations.block()

    @contextmanager
    def create_stream(self, location: str) -> Iterator[BinaryIO]:
        """See `FileIO.create_stream`: what is small is one write, at the end."""
        with ExitStack() as stack:
            output = HeldOutput(lambda: self._upload(location), stack)
            yield cast("BinaryIO", output)
            held = output.held()
            if held is not None:
                self._create(location, held)

    @contextmanager
    def _upload(self, location: str) -> Iterator[Upload]:
        place = self.place(location)
        if self._find(location) is not None:
            # else the answer would come only when all is sent
            raise exists_already(location)
        stream = PartStream(place.client.begin_upload(place.key, location), location)
        try:
            yield stream
            stream.finish(self._attempts)
        except BaseException:
            stream.abandon()
            raise

    def replaces_nothing(self, location: str) -> bool:
        """See `FileIO.replaces_nothing`: each bucket is tried once."""
        place = self.place(location.rstrip("/"))
        found = self._probed.get(place.start)
        if found is None:
            folder = f"{place.start}{place.key}".rstrip("/")
            with probe_object(place.client, place.key, folder, self._attempts) as (key, name):
                found = replaces_nothing(place.client, key, name, self._attempts)
            self._probed[place.start] = found
        return found

    def delete(self, locations: Iterable[str]) -> None:
        """See `FileIO.delete`: up to 1,000 a request; a folder is not noticed."""
        self._creations.wait()
        failed: dict[str, str | FileIOError] = {}
        with ThreadPoolExecutor(self.at_once, "icecomb-delete") as pool:
            for refused in pool.map(self._delete, self._batches(locations)):
                failed.update(refused)
        if failed:
            location, reason = next(iter(failed.items()))
            more = f" (and {len(failed) - 1} more failed)" if len(failed) > 1 else ""
            message, hint = f"Cannot delete {location}: {reason}", _MAY_DELETE
            if isinstance(reason, FileIOError):
                message, hint = reason.message, reason.hint or hint
            raise FileIOError(message + more, hint=hint, path=location, failed=tuple(failed))

    def _batches(self, locations: Iterable[str]) -> Iterator[dict[str, ObjectPlace]]:
        """Locations of one bucket each, as many as one request deletes."""
        by_bucket: dict[str, dict[str, ObjectPlace]] = {}
        for location in locations:
            place = self.place(location)
            batch = by_bucket.setdefault(place.start, {})
            batch[location] = place
            if len(batch) == _A_DELETE:
                yield by_bucket.pop(place.start)
        yield from by_bucket.values()

    @staticmethod
    def _delete(batch: dict[str, ObjectPlace]) -> dict[str, str | FileIOError]:
        """Why some could not be deleted."""
        first, place = next(iter(batch.items()))
        try:
            refused = place.client.delete([each.key for each in batch.values()], first)
        except FileIOError as error:
            return dict.fromkeys(batch, error)
        return {name: refused[each.key] for name, each in batch.items() if each.key in refused}

    def exists(self, location: str) -> bool:
        """See `FileIO.exists`."""
        return self._find(location) is not None

    def size(self, location: str) -> int:
        """See `FileIO.size`."""
        place = self.place(location)
        return place.client.status(place.key, location).size

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """See `FileIO.list`: 1,000 a request, whatever folders they are in, in order of keys."""
        self._creations.wait()
        folder = prefix.rstrip("/")
        place = self.place(folder)
        begin = f"{place.key}/" if place.key else ""
        found = False
        for page in place.client.pages(begin, prefix, below=True):
            for each in page.objects:
                found = True
                if not each.key.endswith("/"):
                    yield _status(f"{place.start}{each.key}", each)
        if not found and place.key and (status := self._find(prefix)) is not None:
            yield _status(prefix, status)

    def entries(self, location: str) -> FolderEntries:
        """See `FileIO.entries`: 1,000 a request."""
        self._creations.wait()
        found = self._in_folder(location)
        start = self.place(location).start
        files = [
            _status(f"{start}{each.key}", each)
            for each in found.objects
            if not each.key.endswith("/")
        ]
        return FolderEntries(files, found.named)

    def _in_folder(self, location: str) -> _Folder:
        place = self.place(location.rstrip("/"))
        begin = f"{place.key}/" if place.key else ""
        objects: list[ObjectStatus] = []
        folders: list[str] = []
        for page in place.client.pages(begin, location, below=False):
            objects += page.objects
            folders += [each[len(begin) : -1] for each in page.prefixes]
        return _Folder(objects, sorted(folders), bool(objects or folders or not begin))

    def rename(self, source: str, target: str) -> None:
        """See `FileIO.rename`: a copy within the bucket, then the source is deleted.

        Both are there in between: whoever is killed then leaves both.
        """
        place, other = self.place(source), self.place(target)
        if other.client is not place.client:
            raise FileIOError(
                f"Cannot rename {source} to {target}: they are in different buckets",
                hint="copy the file, then delete the old one",
                path=source,
            )
        status = place.client.status(place.key, source)
        place.client.copy(status, other.key, target)
        self.delete([source])

    def is_folder(self, location: str) -> bool:
        """See `FileIO.is_folder`."""
        self._creations.wait()
        place = self.place(location.rstrip("/"))
        if not place.key:
            return True
        return place.client.has_any(f"{place.key}/", location)

    def folders(self, location: str) -> Sequence[str]:
        """See `FileIO.folders`."""
        self._creations.wait()
        found = self._in_folder(location)
        if not found.is_there:
            raise is_missing(location)
        return found.named

    def create_folder(self, location: str) -> None:
        """See `FileIO.create_folder`: makes a marker; exactly one of several creators succeeds."""
        folder = location.rstrip("/")
        if self.exists(folder) or self.is_folder(folder):
            raise exists_already(location)
        place = self.place(folder)
        put_once(place.client, f"{place.key}/", location, b"", self._attempts)

    def delete_folder(self, location: str) -> bool:
        """See `FileIO.delete_folder`: its marker."""
        place = self.place(location.rstrip("/"))
        marker = f"{place.key}/"
        found = self._in_folder(location)
        if not found.is_there:
            raise is_missing(location)
        if found.folders or any(each.key != marker for each in found.objects):
            return False
        self.delete([f"{place.start}{marker}"])
        return True

    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """See `FileIO.filesystem`; paths there are whole locations."""
        import pyarrow.fs

        from icecomb.format.storage.arrow_handler import ArrowHandler

        return pyarrow.fs.PyFileSystem(ArrowHandler(self, self.scheme)), location

    def _find(self, location: str) -> ObjectStatus | None:
        place = self.place(location)
        try:
            return place.client.status(place.key, location)
        except FileMissingError:
            return None


@dataclass(frozen=True, slots=True)
class _Folder:
    """The objects and folders in a folder, and whether there is such a folder."""

    objects: Sequence[ObjectStatus]
    folders: Sequence[str]
    is_there: bool

    @property
    def named(self) -> list[str]:
        """Those that a location can name: of `a//x` that between the slashes has no name."""
        return [name for name in self.folders if name]


def _status(location: str, found: ObjectStatus) -> FileStatus:
    digits = found.etag.partition("-")[0][:15]
    try:
        file_id = int(digits, 16)
    except ValueError:
        file_id = 0
    return FileStatus(location, found.size, found.mtime_ms, file_id)
