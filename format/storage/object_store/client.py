"""What one bucket (or container) of an object store does for `ObjectFileSystem`.

A client is told the location, as the caller spelled it, for its messages only. It repeats what can
be repeated without harm; what creates an object is tried once, for `creation` to repeat.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from icecomb.format.errors import FileIOError, FileMissingError

PART: int = 8 << 20
"""Bytes of a part of an upload, and of what is held back of a small file."""


class StoreBusyError(FileIOError):
    """The store did nothing and may do it later: it is asked too much, or was not reached."""


class AnswerLostError(FileIOError):
    """The store was asked and its answer is not known: it may have done it, or do it yet."""


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """One object.

    Attributes:
        key: Its name in the bucket.
        size: Bytes.
        mtime_ms: When it was made, milliseconds since the epoch.
        etag: What tells its content from others, without quotes; empty where the store says none.
    """

    key: str
    size: int
    mtime_ms: int
    etag: str = ""


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """A part of a listing.

    Attributes:
        objects: In order of their keys.
        prefixes: Of a listing of one folder: what lies below it, each with a slash at its end.
    """

    objects: Sequence[ObjectStatus]
    prefixes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What is worth knowing of a bucket and of who asks it; nothing in it is secret.

    Attributes:
        where: The address of the store.
        who: Who asks, as `key ...MPLE`.
        source: Where that is said.
        region: Where the bucket is; None where that means nothing, or is not known.
        clock_ahead_s: How far this machine's clock is ahead of the store's.
        remarks: What to correct.
    """

    where: str
    who: str
    source: str
    region: str | None = None
    clock_ahead_s: float | None = None
    remarks: Sequence[str] = ()


class Completion(ABC):
    """The last step to an object, which is known by it afterwards."""

    @abstractmethod
    def complete(self) -> None:
        """Make the object, replacing nothing.

        Raises:
            FileExistsAlreadyError: the key is taken.
            StoreBusyError: nothing was done.
            AnswerLostError: it may have been done; `is_done` looks.
        """

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the object of this key is what this one makes."""


class MarkedCompletion(Completion):
    """One whose object carries a mark, by which it is known whatever its bytes are.

    Attributes:
        mark: In the metadata of the object.
    """

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex

    @abstractmethod
    def found_mark(self) -> str | None:
        """The mark of the object of this key; None if it has none.

        Raises:
            FileMissingError: there is no such object.
        """

    def is_done(self) -> bool:
        """See `Completion.is_done`."""
        try:
            return self.found_mark() == self.mark
        except FileMissingError:
            return False


class PartUpload(Completion):
    """An object that is sent in parts, and visible when it is completed."""

    @abstractmethod
    def send(self, number: int, data: bytes | bytearray) -> None:
        """Send a part, counted from 1; all but the last are `PART` bytes, several at a time."""

    @abstractmethod
    def abort(self) -> None:
        """Delete the parts; never raises."""


class ObjectClient(ABC):
    """One bucket; safe for threads.

    Every method raises a `FileIOError` that says what the store refused, and why.
    """

    @abstractmethod
    def close(self) -> None:
        """Close connections that are kept open; it stays usable."""

    @abstractmethod
    def facts(self, location: str) -> StoreFacts:
        """What `icecomb doctor` says of the bucket.

        Args:
            location: For messages.
        """

    @abstractmethod
    def status(self, key: str, location: str) -> ObjectStatus:
        """What is known of an object.

        Raises:
            FileMissingError: there is none.
        """

    @abstractmethod
    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object from `start` on, fewer than `length` only at its end.

        Raises:
            FileMissingError: there is none.
        """

    @abstractmethod
    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """Create an object, once.

        Args:
            key: Its name.
            location: For messages.
            data: All of it.
            replace: Take the place of one that is there.

        Raises:
            FileExistsAlreadyError: the key is taken, and nothing was replaced.
            StoreBusyError: nothing was done.
            AnswerLostError: it may have been done.
        """

    @abstractmethod
    def begin_upload(self, key: str, location: str) -> PartUpload:
        """Begin an object that is sent in parts."""

    @abstractmethod
    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """Create an object of another's bytes within the store, replacing nothing.

        Raises:
            FileExistsAlreadyError: the key is taken.
            FileMissingError: `source` is gone, or has other bytes by now.
        """

    @abstractmethod
    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """The objects whose keys begin with a text.

        Args:
            prefix: The text.
            location: For messages.
            below: Whether also those with a slash after it; else they are shown as prefixes.
        """

    def has_any(self, prefix: str, location: str) -> bool:
        """Whether there is an object whose key begins with a text.

        Args:
            prefix: The text.
            location: For messages.
        """
        return any(page.objects for page in self.pages(prefix, location, below=True))

    @abstractmethod
    def delete(self, keys: Sequence[str], location: str) -> dict[str, str]:
        """Delete objects, at most 1,000; those that are not there are passed over.

        Returns:
            Why some could not be deleted, by key.
        """


def too_busy(message: str, location: str) -> StoreBusyError:
    """The error for an answer of the store that it does nothing for now."""
    return StoreBusyError(
        message, hint="the store is asked too much: try again later", path=location
    )


def not_answered(message: str, location: str, status: int) -> AnswerLostError:
    """The error for an answer that does not say what the store did."""
    return AnswerLostError(
        message,
        hint="the store, or something before it, failed: try again later",
        path=location,
        status=status,
    )


def torn(verb: str, location: str, what: str) -> AnswerLostError:
    """The error for an answer that lacks what every answer of a store has."""
    return AnswerLostError(
        f"Cannot {verb} {location}: the answer has no {what}",
        hint="something between this machine and the store cuts answers: try again",
        path=location,
    )


def check_listed(names: Iterable[str], prefix: str, location: str) -> None:
    """Check that what was listed is what was asked for: whoever deletes goes by it.

    Raises:
        AnswerLostError: It is the answer to somebody else.
    """
    if not all(name.startswith(prefix) for name in names):
        raise torn("list", location, "names of what was asked for")


def in_range(
    content: bytes, said: str | None, location: str, start: int, length: int | None, *, whole: bool
) -> bytes:
    """The bytes of a range out of an answer.

    Args:
        content: What was answered.
        said: Which bytes it says they are, if it does.
        location: For messages.
        start: The first byte that was asked for.
        length: How many; None for all that follow.
        whole: Whether the range was passed over, and all bytes were answered.

    Raises:
        AnswerLostError: They are others.
    """
    if whole:
        return content[start : None if length is None else start + length]
    if said is not None and not said.startswith(f"bytes {start}-"):
        raise torn("read", location, "bytes that were asked for")
    return content


def content_md5(data: bytes | bytearray) -> str:
    """The MD5 of some bytes as stores take it along with them, to compare."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
