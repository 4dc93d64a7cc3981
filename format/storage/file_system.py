"""What each kind of storage does for `FileIO`."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from icecomb.format.errors import (
    FileExistsAlreadyError,
    FileMissingError,
    FileStateUnknownError,
    IcecombError,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

DRAFT_PATTERN: Final = r"\.(?:.+\.)?[0-9a-f]{32}\.tmp"
"""What `draft_name` makes; Java reads it likewise."""
_DRAFT: Final = re.compile(DRAFT_PATTERN, re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One file of a listing.

    Attributes:
        location: Spelled like the prefix that was listed.
        size: Bytes.
        mtime_ms: Time of the last change, milliseconds since the epoch.
        file_id: What tells the file from others that had or get its name: on HDFS it stays with the
            file, on local disks it also changes with the file; 0 where the storage says nothing.
    """

    location: str
    size: int
    mtime_ms: int
    file_id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FolderEntries:
    """What lies in one folder, not below it.

    Attributes:
        files: Its files, in order of their names.
        folders: The names of the folders in it, sorted; links are none.
    """

    files: Sequence[FileStatus]
    folders: Sequence[str]


class FolderLock(ABC):
    """A lock that processes of one machine may agree on; it ends with the process that holds it."""

    @abstractmethod
    def acquire(self) -> bool:
        """Take the lock unless another process has it; say whether it is held now.

        Raises:
            FileIOError: the storage of this folder locks none, as many network file systems.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the lock back, if it is held; it cannot be taken again."""


class FileSystem(ABC):
    """One kind of storage; `FileIO` documents what each method promises."""

    at_once: int = 1
    """See `FileIO.at_once`."""
    is_local: bool = False
    """Whether reading waits for nothing but disks of this machine."""

    def close(self) -> None:  # noqa: B027 - most hold none
        """See `FileIO.close`."""

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

    def entries(self, location: str) -> FolderEntries:
        """See `FileIO.entries`."""
        folder = location.rstrip("/")
        try:
            below = self.folders(location)
        except FileMissingError:
            below = ()
        files = [s for s in self.list(location) if s.location.rpartition("/")[0] == folder]
        return FolderEntries(files, below)

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

    def replaces_nothing(self, location: str) -> bool:  # noqa: ARG002
        """See `FileIO.replaces_nothing`."""
        return True

    def folder_lock(self, location: str) -> FolderLock | None:  # noqa: ARG002
        """See `FileIO.folder_lock`."""
        return None

    @abstractmethod
    def exists(self, location: str) -> bool:
        """See `FileIO.exists`."""


def draft_name(start: str = "") -> str:
    """A hidden name that nobody else has, for a file that is not whole yet.

    Args:
        start: What it begins with, after a dot.
    """
    return f".{start}{'.' if start else ''}{uuid.uuid4().hex}.tmp"


def is_draft(name: str) -> bool:
    """Whether `draft_name` made a name: of a killed writer the file stays."""
    return _DRAFT.fullmatch(name) is not None


def exists_already(location: str) -> FileExistsAlreadyError:
    """The error of a name that is taken."""
    return FileExistsAlreadyError(
        f"{location} exists already",
        hint="choose another name, or delete it first",
        path=location,
    )


def is_missing(location: str) -> FileMissingError:
    """The error of a file or folder that is not there."""
    return FileMissingError(
        f"{location} does not exist",
        hint="check the location; somebody may have renamed or deleted it",
        path=location,
    )


def state_unknown(location: str, lost: IcecombError) -> FileStateUnknownError:
    """The error of a file of which nobody can say whether it is there, or comes yet.

    Args:
        location: The file.
        lost: How the answer was lost.
    """
    return FileStateUnknownError(
        f"It is not known whether {location} was created: {lost.message}",
        hint="look whether it is there before you repeat what you did; it may appear late",
        path=location,
    )
