"""Object stores as a `FileSystem` of `icecomb.format.storage.file_io`.

An object appears complete when its last byte has arrived, so there are no hidden names: a small
file is one conditional write, a large one an upload in parts with a conditional completion.

A store has no folders. A folder exists if there is an object below its name; an empty one is
created as an object whose key ends with a slash, as in Hadoop's S3A. Such markers are not files.
"""

from __future__ import annotations

import os
import uuid
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from icecomb.format.arrow.batch_stream import thread_pool
from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.storage.creations import Creations
from icecomb.format.storage.file_system import (
    FileStatus,
    FileSystem,
    FolderEntries,
    exists_already,
    is_missing,
)
from icecomb.format.storage.hdfs.address import hadoop_properties
from icecomb.format.storage.object_store.client import PART, ObjectClient, ObjectStatus, PartUpload
from icecomb.format.storage.object_store.creation import complete_once, not_copied, put_once
from icecomb.format.storage.output_stream import HeldOutput, Upload
from icecomb.format.storage.range_input import RangeInput, input_file
from icecomb.format.storage.storage_property import OBJECT_STORE_ATTEMPTS, OBJECT_STORE_CONCURRENCY

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_A_DELETE: Final = 1000
_MAY_DELETE: Final = "check that your key or role may delete objects there"
_AT_ONCE: Final = 4
"""Parts in flight: with the one being filled 40 MiB, enough for more than one connection."""
PROBE: str = "_icecomb_probe-"
"""Prefix of the probe's objects: engines ignore names that begin with an underscore."""


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """A resolved location; `start` is its part before the key."""

    client: ObjectClient
    key: str
    start: str


class ObjectFileSystem(FileSystem):
    """All buckets of one kind of store; threads share the connections.

    Args:
        properties: Settings: `OBJECT_STORE_CONCURRENCY`, `OBJECT_STORE_ATTEMPTS` and those of the
            store.
    """

    scheme: str
    """The type name that Arrow shows."""
    schemes: Collection[str] = ()
    """The schemes of its locations, in lower case; `split` uses them and the next two."""
    store: str = "an object store"
    """The name of the store, for messages."""
    example: str = "scheme://bucket/key"
    """An example of a location, for messages."""
    has_slow_requests = True

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = properties or {}
        self.at_once = OBJECT_STORE_CONCURRENCY.of(self._properties)
        self._attempts = OBJECT_STORE_ATTEMPTS.of(self._properties)
        self._creations = Creations(self.at_once)
        self._clients: dict[tuple[int, str], ObjectClient] = {}
        self._connecting = Lock()
        self._probed: dict[str, bool] = {}

    def split(self, location: str) -> tuple[str, str]:
        """Split a location into the bucket's part, up to the slash after it, and the key.

        Raises:
            ValidationError: If it is not a location of this kind of store.
        """
        start, slashes, rest = location.partition("://")
        bucket, slash, key = rest.partition("/")
        if start.lower() not in self.schemes or not slashes or not bucket.partition("@")[0]:
            raise ValidationError(
                f"Not a location of {self.store}: {location!r}",
                hint=f"Write {self.example}.",
                path=location,
            )
        return f"{start}://{bucket}{slash or '/'}", key

    @abstractmethod
    def connect(self, start: str) -> ObjectClient:
        """Return a client of a bucket.

        Args:
            start: The bucket's part of a location; see `split`.
        """

    def place(self, location: str) -> ObjectPlace:
        """Resolve a location to a client and a key; wait for a file that is being created."""
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
        """Return the bucket's part of a location; for paths without a scheme `fs.defaultFS`'s."""
        if start != "/":
            return start
        default = hadoop_properties(self._properties).get("fs.defaultFS", "")
        return self.split(f"{default.rstrip('/')}/")[0]

    def close(self) -> None:
        """Implement `FileIO.close`."""
        for client in [*self._clients.values()]:
            client.close()

    def read(self, location: str) -> bytes:
        """Implement `FileIO.read`."""
        place = self.place(location)
        return place.client.read(place.key, location)

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Implement `FileIO.open_input`."""
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
        return input_file(stream)

    def create(self, location: str, data: bytes) -> None:
        """Implement `FileIO.create` with one conditional write."""
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
        """Implement `FileIO.prepare`; the file is written when it is published."""
        yield lambda: self._create(location, data, replace=replace)

    def side_by_side(self) -> AbstractContextManager[None]:
        """Implement `FileIO.side_by_side`."""
        return self._creations.block()

    @contextmanager
    def create_stream(self, location: str) -> Iterator[BinaryIO]:
        """Implement `FileIO.create_stream`; a small file is a single write at the end."""
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
            # otherwise the error would come only after everything was sent
            raise exists_already(location)
        stream = PartStream(place.client.begin_upload(place.key, location), location)
        try:
            yield stream
            stream.finish(self._attempts)
        except BaseException:
            stream.abandon()
            raise

    def replaces_nothing(self, location: str) -> bool:
        """Implement `FileIO.replaces_nothing`; each bucket is probed once."""
        place = self.place(location.rstrip("/"))
        found = self._probed.get(place.start)
        if found is None:
            folder = f"{place.start}{place.key}".rstrip("/")
            with probe_object(place.client, place.key, folder, self._attempts) as (key, name):
                found = replaces_nothing(place.client, key, name, self._attempts)
            self._probed[place.start] = found
        return found

    def delete(self, locations: Iterable[str]) -> None:
        """Implement `FileIO.delete` with up to 1,000 files per request; folders are not noticed."""
        self._creations.wait()
        failed: dict[str, str | FileIOError] = {}
        with thread_pool(self.at_once) as pool:
            # not `pooled`: a canceled statement still takes away what it wrote
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
        """Yield batches of locations in one bucket, at most as many as one request deletes."""
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
        """Delete a batch; return the reasons why some could not be deleted."""
        first, place = next(iter(batch.items()))
        try:
            refused = place.client.delete([each.key for each in batch.values()], first)
        except FileIOError as error:
            return dict.fromkeys(batch, error)
        return {name: refused[each.key] for name, each in batch.items() if each.key in refused}

    def exists(self, location: str) -> bool:
        """Implement `FileIO.exists`."""
        return self._find(location) is not None

    def size(self, location: str) -> int:
        """Implement `FileIO.size`."""
        place = self.place(location)
        return place.client.status(place.key, location).size

    def list(self, prefix: str) -> Iterator[FileStatus]:
        """Implement `FileIO.list` in order of keys, with 1,000 files per request."""
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
        """Implement `FileIO.entries` with 1,000 entries per request."""
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
        """Implement `FileIO.rename` by a copy within the bucket and a deletion of the source.

        Both exist in between: a process killed then leaves both.
        """
        place, other = self.place(source), self.place(target)
        if other.client is not place.client:
            raise FileIOError(
                f"Cannot rename {source} to {target}: they are in different buckets",
                hint="Copy the file, then delete the old one.",
                path=source,
            )
        status = place.client.status(place.key, source)
        place.client.copy(status, other.key, target)
        if place.client.status(other.key, target).size != status.size:
            raise not_copied(target)
        self.delete([source])

    def is_folder(self, location: str) -> bool:
        """Implement `FileIO.is_folder`."""
        self._creations.wait()
        place = self.place(location.rstrip("/"))
        if not place.key:
            return True
        return place.client.has_any(f"{place.key}/", location)

    def folders(self, location: str) -> Sequence[str]:
        """Implement `FileIO.folders`."""
        self._creations.wait()
        found = self._in_folder(location)
        if not found.is_there:
            raise is_missing(location)
        return found.named

    def create_folder(self, location: str) -> None:
        """Implement `FileIO.create_folder` with a marker; exactly one of many creators succeeds."""
        folder = location.rstrip("/")
        if self.exists(folder) or self.is_folder(folder):
            raise exists_already(location)
        place = self.place(folder)
        put_once(place.client, f"{place.key}/", location, b"", self._attempts)

    def delete_folder(self, location: str) -> bool:
        """Implement `FileIO.delete_folder` by deleting the marker."""
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
        """Implement `FileIO.filesystem`; paths there are whole locations."""
        import pyarrow.fs

        from icecomb.format.storage.arrow_handler import ArrowHandler

        return pyarrow.fs.PyFileSystem(ArrowHandler(self, self.scheme)), location

    def _find(self, location: str) -> ObjectStatus | None:
        place = self.place(location)
        try:
            return place.client.status(place.key, location)
        except NoSuchFileError:
            return None


@dataclass(frozen=True, slots=True)
class _Folder:
    """The objects and folders in a folder, and whether there is such a folder."""

    objects: Sequence[ObjectStatus]
    folders: Sequence[str]
    is_there: bool

    @property
    def named(self) -> list[str]:
        """The folders that a location can name: that between the slashes of `a//x` has no name."""
        return [name for name in self.folders if name]


def _status(location: str, found: ObjectStatus) -> FileStatus:
    digits = found.etag.partition("-")[0][:15]
    try:
        file_id = int(digits, 16)
    except ValueError:
        file_id = 0
    return FileStatus(location, found.size, found.mtime_ms, file_id)


class PartStream(Upload):
    """The output stream of a large file."""

    def __init__(self, upload: PartUpload, location: str) -> None:
        super().__init__(location)
        self._upload = upload
        self._filling = bytearray()
        self._number = 0
        self._sending: set[Future[None]] = set()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="icecomb-part")

    def write(self, data: Any, /) -> int:
        """Buffer a chunk, sending full parts; raise the error of a part sent earlier."""
        piece = memoryview(data).cast("B")
        taken = 0
        while taken < len(piece):
            some = piece[taken : taken + PART - len(self._filling)]
            self._filling += some
            taken += len(some)
            if len(self._filling) == PART:
                self._send()
        self.written += len(piece)
        return len(piece)

    def _send(self) -> None:
        if len(self._sending) >= _AT_ONCE:
            self._settle(wait(self._sending, return_when=FIRST_COMPLETED).done)
        self._number += 1
        self._sending.add(self._pool.submit(self._upload.send, self._number, self._filling))
        self._filling = bytearray()

    def _settle(self, done: set[Future[None]]) -> None:
        self._sending -= done
        for each in done:
            each.result()

    def finish(self, attempts: int) -> None:
        """Send the rest, make the object visible; FileAlreadyExistsError if the key is taken."""
        if self._filling or not self._number:
            self._send()
        self._settle(wait(self._sending).done)
        self._pool.shutdown()
        complete_once(self._upload, self._location, attempts)
        self.close()

    def abandon(self) -> None:
        """Delete the parts sent so far."""
        self._pool.shutdown(cancel_futures=True)
        self._upload.abort()
        self.close()


@contextmanager
def probe_object(
    client: ObjectClient, folder: str, location: str, attempts: int
) -> Iterator[tuple[str, str]]:
    """Create a test object, yield its key and location, and delete it if that is allowed.

    The folder has no final slash, and its key is empty for the bucket.
    """
    name = f"{PROBE}{uuid.uuid4().hex}"
    key, place = (f"{folder}/{name}" if folder else name), f"{location}/{name}"
    with suppress(FileAlreadyExistsError):  # sent twice on the way: nobody else has this name
        put_once(client, key, place, b"icecomb", attempts)
    try:
        yield key, place
    finally:
        with suppress(IcecombError):
            client.delete([key], place)


def replaces_nothing(client: ObjectClient, key: str, location: str, attempts: int) -> bool:
    """Return whether the store refuses to create an object whose key is taken.

    Stores that do not support `If-None-Match: *` replace it, or refuse the request.
    """
    try:
        put_once(client, key, location, b"another", attempts)
    except FileAlreadyExistsError:
        return True
    return False
