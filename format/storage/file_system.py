"""Interface of a kind of storage behind `FileIO`."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    FileStateUnknownError,
    IcecombError,
    NoSuchFileError,
)
from icecomb.format.input_limit import FOLDERS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

    from icecomb.format.storage.file_io import FileIO

DRAFT_PATTERN: Final = r"\.(?:.+\.)?[0-9a-f]{32}\.tmp"
"""Pattern of the names that `draft_name` makes; the Java code uses it, too."""
_DRAFT: Final = re.compile(DRAFT_PATTERN, re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One file of a listing.

    Attributes:
        location: Location, spelled like the listed prefix.
        size: Length in bytes.
        mtime_ms: Time of the last change, milliseconds since the epoch.
        file_id: Distinguishes the file from earlier and later ones of its name: on HDFS it stays
            with the file, on local disks it also changes with it; 0 if the storage has none.
    """

    location: str
    size: int
    mtime_ms: int
    file_id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FolderEntries:
    """The files and folders directly in one folder, by name; links are not folders."""

    files: Sequence[FileStatus]
    folders: Sequence[str]


class FolderLock(ABC):
    """An advisory lock between processes of one machine, released when its process ends."""

    @abstractmethod
    def acquire(self) -> bool:
        """Take the lock unless another process has it; return whether it is held now.

        Raises:
            FileIOError: If the folder's storage has no locks, like many network file systems.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the lock, if it is held; it cannot be acquired again."""


def check_levels(location: str, folder: str) -> None:
    """Refuse to list a folder that is too many levels below the one that is listed.

    Storage has fewer; a server can make folders up without end.
    """
    levels = folder.rstrip("/").count("/") - location.rstrip("/").count("/")
    if levels > FOLDERS.value:
        raise FileIOError(
            f"Cannot list {location}: it has more levels of folders than {FOLDERS}",
            hint="Check the configured address: no storage answers so.",
            path=location,
        )


class FileSystem(ABC):
    """One kind of storage; `FileIO` documents the guarantees of each method."""

    at_once: int = 1
    """The useful number of concurrent requests; see `FileIO.at_once`."""
    has_slow_requests: bool = False
    """Whether it costs less to ask what may not be needed than to wait for another answer first."""
    refusal_is_proof: bool = False
    """Whether `FileAlreadyExistsError` proves that another writer created the file.

    A conditional request that was sent twice on its way may be refused because of its first copy.
    """
    is_local: bool = False
    """Whether reads only wait for disks of this machine."""

    def close(self) -> None:  # noqa: B027 - most hold none
        """Close the open connections; see `FileIO.close`."""

    @abstractmethod
    def read(self, location: str) -> bytes:
        """Read a whole file; see `FileIO.read`."""

    @abstractmethod
    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Open a seekable file; see `FileIO.open_input`."""

    def open_to_copy(self, location: str, size: int | None = None) -> pa.NativeFile:
        """Open a file to copy it; see `FileIO.open_to_copy`."""
        return self.open_input(location, size)

    def read_to_copy(self, location: str) -> bytes:
        """Read a whole file to copy what is in it; see `FileIO.to_copy`."""
        return self.read(location)

    @abstractmethod
    def create_stream(self, location: str) -> AbstractContextManager[BinaryIO]:
        """Create a file chunk by chunk; see `FileIO.create_stream`."""

    @abstractmethod
    def prepare(
        self, location: str, data: bytes, *, replace: bool = False
    ) -> AbstractContextManager[Callable[[], None]]:
        """Create a file in two steps; see `FileIO.prepare`."""

    @abstractmethod
    def delete(self, locations: Iterable[str]) -> None:
        """Delete files; see `FileIO.delete`."""

    def discard(self, locations: Iterable[str]) -> None:
        """Delete files of a failed attempt, and folders made for them; see `FileIO.discard`."""
        self.delete(locations)

    @abstractmethod
    def size(self, location: str) -> int:
        """Return a file's length in bytes; see `FileIO.size`."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[FileStatus]:
        """Yield all files below a folder; see `FileIO.list`."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Rename a file without overwriting; see `FileIO.rename`."""

    @abstractmethod
    def is_folder(self, location: str) -> bool:
        """Return whether there is such a folder; see `FileIO.is_folder`."""

    def check_writable(self, location: str) -> None:  # noqa: B027 - not every storage tells
        """Check that files can be created in a folder; see `FileIO.check_writable`."""

    @abstractmethod
    def folders(self, location: str) -> Sequence[str]:
        """Return the names of the folders in a folder; see `FileIO.folders`."""

    def entries(self, location: str) -> FolderEntries:
        """Return the files and folders directly in a folder; see `FileIO.entries`."""
        folder = location.rstrip("/")
        try:
            below = self.folders(location)
        except NoSuchFileError:
            below = ()
        files = [s for s in self.list(location) if s.location.rpartition("/")[0] == folder]
        return FolderEntries(files, below)

    @abstractmethod
    def create_folder(self, location: str) -> None:
        """Create a folder; see `FileIO.create_folder`."""

    @abstractmethod
    def delete_folder(self, location: str) -> bool:
        """Delete a folder if it is empty; see `FileIO.delete_folder`."""

    def undeletable_folder(self, location: str) -> str | None:  # noqa: ARG002
        """Return what keeps a folder from deletion; see `FileIO.undeletable_folder`."""
        return None

    @abstractmethod
    def filesystem(self, location: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """Return the storage as an Arrow file system; see `FileIO.filesystem`."""

    def create(self, location: str, data: bytes) -> None:
        """Create a file durably; see `FileIO.create`."""
        with self.create_stream(location) as stream:
            stream.write(data)

    def side_by_side(self) -> AbstractContextManager[None]:
        """Create small files concurrently; see `FileIO.side_by_side`."""
        return nullcontext()

    def replaces_nothing(self, location: str) -> bool:  # noqa: ARG002
        """Return whether creation never overwrites; see `FileIO.replaces_nothing`."""
        return True

    def folder_lock(self, location: str) -> FolderLock | None:  # noqa: ARG002
        """Return a lock on a folder; see `FileIO.folder_lock`."""
        return None

    @abstractmethod
    def exists(self, location: str) -> bool:
        """Return whether there is such a file; see `FileIO.exists`."""


def draft_name(start: str = "") -> str:
    """Return a unique hidden name, `start` after the dot, for a file not complete yet."""
    return f".{start}{'.' if start else ''}{uuid.uuid4().hex}.tmp"


def is_draft(name: str) -> bool:
    """Return whether `draft_name` made a name: a killed writer leaves such a file."""
    return _DRAFT.fullmatch(name) is not None


def exists_already(location: str) -> FileAlreadyExistsError:
    """Return the error for a name that is taken."""
    return FileAlreadyExistsError(
        f"{location} exists already",
        hint="Choose another name, or delete it first.",
        path=location,
    )


def is_missing(location: str) -> NoSuchFileError:
    """Return the error for a file or folder that does not exist."""
    return NoSuchFileError(
        f"{location} does not exist",
        hint="Check the location; somebody may have renamed or deleted it.",
        path=location,
    )


def state_unknown(location: str, lost: IcecombError) -> FileStateUnknownError:
    """Return the error for a file that may or may not exist, or may still appear.

    The error `lost` is that by which the response was lost.
    """
    return FileStateUnknownError(
        f"It is not known whether {location} was created: {lost.message}",
        hint="Check whether it exists before you repeat the operation; it may appear late.",
        path=location,
    )


def create_own(io: FileIO, location: str, data: bytes) -> None:
    """Create a file; treat an existing one with the same bytes as created by this call.

    A proxy in between may send a request twice, and the response to the second says that the file
    exists. If several writers use one name, equal bytes prove nothing: no other writer may use it,
    or equal bytes must be as good.
    """
    try:
        io.create(location, data)
    except FileAlreadyExistsError:
        if io.read(location) != data:
            raise
