"""Interface of the client of one bucket (or container) behind `ObjectFileSystem`.

A client is passed the location, as the caller spelled it, only for messages. It repeats requests
that are safe to repeat; requests that create an object are sent once and repeated by `creation`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from icecomb.format.errors import FileIOError, IcecombError, NoSuchFileError
from icecomb.format.input_limit import UNPACKED, has_too_many_values, unpacked_bytes
from icecomb.format.secret import is_secret, one_line, remember_secret, remember_told

PART: int = 8 << 20
"""Bytes of a part of an upload, and of the buffer of a small file."""

ReadPiece = Callable[[int], bytes]
"""Read up to N bytes of a response's body; none at its end."""

_LOGINS: Final = {"authorization", "x-identity-header"}
ANSWER: Final = 64 << 20
"""The most bytes of a response that is not a file: a page of a list has some MiB."""
_ELEMENTS: Final = 2_000_000
"""The most tags of XML in one: the 5,000 names of a page have 300,000, and each takes 200 bytes."""
IDLE_PAGES: int = 10_000
"""The most pages of a list one after another without new names; stores send some, of what was
deleted."""
_TOKEN: Final = 1 << 16
_PIECE: Final = 1 << 20
_RANGE: Final = re.compile(r"bytes (\d{1,20})-(\d{1,20})/(\d{1,20}|\*)")
UNREADABLE: Final = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""Exceptions of parsers and conversions; also of libraries that parse what a server says."""


class StoreBusyError(FileIOError):
    """A request that was not executed but may be repeated: the store is busy or unreachable."""


class AnswerLostError(FileIOError):
    """A lost response: the store may have executed the request or may still do so."""


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """The status of one object.

    Attributes:
        key: Name in the bucket.
        size: Length in bytes.
        mtime_ms: Time of its creation, milliseconds since the epoch.
        etag: Identifier of the content, without quotes; empty if the store has none.
    """

    key: str
    size: int
    mtime_ms: int
    etag: str = ""


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """A part of a listing: objects in order of their keys, and folders with a final slash."""

    objects: Sequence[ObjectStatus]
    prefixes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """Diagnostic facts about a bucket and its credentials, without secrets.

    Attributes:
        who: The user, such as `key ...MPLE`.
        source: Source of the credentials.
        region: Region of the bucket; None if there is none or it is unknown.
        clock_ahead_s: Seconds by which this machine's clock is ahead of the store's.
        remarks: Problems to correct.
    """

    where: str
    who: str
    source: str
    region: str | None = None
    clock_ahead_s: float | None = None
    remarks: Sequence[str] = ()


class Completion(ABC):
    """The last step of creating an object, which can recognize its own object afterwards."""

    @abstractmethod
    def complete(self) -> None:
        """Create the object without overwriting.

        AnswerLostError means that the request may have been executed, which `is_done` checks;
        StoreBusyError that it was not.
        """

    @abstractmethod
    def is_done(self) -> bool:
        """Return whether the object under the key was created by this completion."""


class MarkedCompletion(Completion):
    """A completion whose object's metadata has a unique mark, independent of its bytes."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex

    @abstractmethod
    def found_mark(self) -> str | None:
        """Return the mark of the object under the key; None if it has none."""

    def is_done(self) -> bool:
        """Implement `Completion.is_done`."""
        try:
            return self.found_mark() == self.mark
        except NoSuchFileError:
            return False


class PartUpload(Completion):
    """An object that is uploaded in parts and becomes visible when completed."""

    @abstractmethod
    def send(self, number: int, data: bytes | bytearray) -> None:
        """Send a part, counted from 1, from any thread; all but the last have `PART` bytes."""

    @abstractmethod
    def abort(self) -> None:
        """Delete the parts; never raises."""


class ObjectClient(ABC):
    """A thread-safe client of one bucket.

    Every method raises a `FileIOError` that says what the store refused, and why.
    """

    @abstractmethod
    def close(self) -> None:
        """Close the connections that are kept open; the client stays usable."""

    @abstractmethod
    def facts(self, location: str) -> StoreFacts:
        """Return the facts that `icecomb doctor` reports about the bucket.

        Args:
            location: The location, for messages.
        """

    @abstractmethod
    def status(self, key: str, location: str) -> ObjectStatus:
        """Return the status of an object.

        Raises:
            NoSuchFileError: If there is none.
        """

    @abstractmethod
    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """Read an object from byte `start` on, fewer than `length` bytes only at its end.

        Raises:
            NoSuchFileError: If there is none.
        """

    @abstractmethod
    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """Create an object with a single request.

        Args:
            key: Name of the object.
            location: The location, for messages.
            data: The complete content.
            replace: Whether to replace an existing object.

        Raises:
            FileAlreadyExistsError: If the key is taken; nothing was replaced.
            StoreBusyError: If the request was not executed.
            AnswerLostError: If it may have been executed.
        """

    @abstractmethod
    def begin_upload(self, key: str, location: str) -> PartUpload:
        """Begin an upload in parts."""

    @abstractmethod
    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """Copy an object within the store without overwriting.

        Raises:
            FileAlreadyExistsError: If the key is taken.
            NoSuchFileError: If `source` is gone or has changed.
        """

    @abstractmethod
    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """Yield the objects whose keys begin with a prefix, page by page.

        Args:
            prefix: The prefix.
            location: The location, for messages.
            below: Whether to include objects in folders below; else those folders are returned as
                prefixes.
        """

    def has_any(self, prefix: str, location: str) -> bool:
        """Return whether there is an object whose key begins with a prefix.

        Args:
            prefix: The prefix.
            location: The location, for messages.
        """
        return any(page.objects for page in self.pages(prefix, location, below=True))

    @abstractmethod
    def delete(self, keys: Sequence[str], location: str) -> dict[str, str]:
        """Delete at most 1,000 objects; missing ones are ignored.

        Returns:
            The reasons why some could not be deleted, by key.
        """


def too_busy(message: str, location: str) -> StoreBusyError:
    """Return the error for a store that refuses requests at the moment."""
    return StoreBusyError(
        message, hint="The store gets too many requests: try again later.", path=location
    )


def not_answered(message: str, location: str, status: int) -> AnswerLostError:
    """Return the error for a response that does not tell what the store did."""
    return AnswerLostError(
        message,
        hint="The store, or a proxy in front of it, failed: try again later.",
        path=location,
        status=status,
    )


def torn(verb: str, location: str, what: str) -> AnswerLostError:
    """Return the error for a response that lacks what every response of a store has."""
    return AnswerLostError(
        f"Cannot {verb} {location}: the response has no {what}",
        hint="A proxy between this machine and the store truncates responses: try again.",
        path=location,
    )


class PageTokens:
    """The tokens by which the pages of a list lead to one another, and to its end."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._seen: set[int] = set()
        self._last = ""
        self._idle = 0

    def check(self, token: str | None) -> None:
        """Check that a token leads on; AnswerLostError if it was there before."""
        if token and (hash(token) in self._seen or len(token) > _TOKEN):
            raise torn("list", self._location, "start of the next page")

    def add(self, token: str, page: ObjectPage) -> None:
        """Note the token of a page; FileIOError if too many had no new names."""
        self._seen.add(hash(token))
        last = page.objects[-1].key if page.objects else (page.prefixes or ("",))[-1]
        self._idle = self._idle + 1 if last in {"", self._last} else 0
        self._last = last or self._last
        if self._idle >= IDLE_PAGES:
            raise FileIOError(
                f"Cannot list {self._location}: the store sent {IDLE_PAGES} pages one after "
                "another without new names",
                hint="Check the configured endpoint: no store answers so.",
                path=self._location,
            )


def check_listed(names: Iterable[str], prefix: str, location: str) -> None:
    """Check that listed names begin with the requested prefix: deletions rely on them.

    AnswerLostError is raised if the response belongs to another request.
    """
    if not all(name.startswith(prefix) for name in names):
        raise torn("list", location, "names with the requested prefix")


@contextmanager
def parsed(verb: str, location: str) -> Iterator[None]:
    """Convert what goes wrong while a response is parsed to AnswerLostError."""
    try:
        yield
    except IcecombError:
        raise
    except UNREADABLE as error:
        raise AnswerLostError(
            f"Cannot {verb} {location}: the response cannot be read ({type(error).__name__})",
            hint="Another server, or a proxy between this machine and the store, answers: check "
            "the configured endpoint, or try again.",
            path=location,
        ) from None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those in it: requests, urllib3 and botocore nest them."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        held = (*each.args, *vars(each).values(), *vars(each).get("kwargs", {}).values())
        waiting += [one for one in (*held, each.__cause__) if isinstance(one, BaseException)]


def is_untrusted(error: BaseException) -> bool:
    """Return whether a certificate was not trusted, so that no request was sent.

    Every other error of TLS may follow the request: anyone between can cause one at any time.
    """
    return any(isinstance(each, ssl.SSLCertVerificationError) for each in causes(error))


def told(text: str) -> str:
    """Return the first line of what a server says, printable and without secrets."""
    return one_line(text) or "no reason given"


def remember_sent(headers: Mapping[str, str | bytes], body: object = None) -> None:
    """Let no log and no error tell the secrets of a request for credentials, if a server does."""
    for name, value in headers.items():
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        # that of AWS is a signature
        if (name.lower() in _LOGINS or is_secret(name)) and not text.startswith("AWS"):
            remember_secret(text.rpartition(" ")[2], is_renewed=True)
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    remember_told(body if isinstance(body, str) else "")


def whole_answer(read: ReadPiece, verb: str, location: str) -> bytes:
    """Read a response that is not a file; AnswerLostError if it is longer than any.

    One that may declare entities of XML, by which little text becomes very much, counts as empty;
    one with zero bytes is in UTF-16, which parsers accept even where UTF-8 is stated.
    """
    content = _at_most(read, ANSWER)
    if len(content) > ANSWER:
        raise _too_long(verb, location, ANSWER)
    if content.count(b"<") > _ELEMENTS or has_too_many_values(content):
        raise AnswerLostError(
            f"Cannot {verb} {location}: the response has more elements than any store sends",
            hint="Check the configured endpoint: no store answers so.",
            path=location,
        )
    return b"" if b"<!DOCTYPE" in content or b"\0" in content else content


def in_range(
    read: ReadPiece,
    said: str | None,
    location: str,
    start: int,
    length: int | None,
    *,
    whole: bool,
) -> bytes:
    """Read the requested range of a file's bytes; AnswerLostError if they are another range.

    No more is read than was requested; a whole file must be within the limit `UNPACKED`. Fewer
    bytes than requested must be the last ones of the file by its total length.

    Args:
        said: The `Content-Range` header, if any.
        length: Number of requested bytes; None = all that follow.
        whole: Whether the range was ignored and the body is the whole object.
    """
    if not (whole or start) and length is None:
        raise torn("read", location, "whole file")
    if whole:
        while start and (passed := len(read(min(start, _PIECE)))):
            start -= passed
        if length is not None:
            return _at_most(read, length - 1) if not start else b""
    most = unpacked_bytes() if length is None else length
    content = _at_most(read, most)
    if not whole and len(content) <= most:
        end = start + len(content)
        found = _RANGE.fullmatch((said or "").strip())
        if found is None or (int(found[1]), int(found[2]) + 1) != (start, end):
            raise torn("read", location, "requested bytes")
        if len(content) != length and found[3] != str(end):
            raise torn("read", location, "end of the file")
    if len(content) <= most:
        return content
    if length is not None:
        raise _too_long("read", location, length)
    raise FileIOError(
        f"{location} is not read whole: it has more bytes than the limit ({UNPACKED})",
        hint=f"If the file is really so long, set {UNPACKED.name} to more MiB.",
        path=location,
    )


def _at_most(read: ReadPiece, most: int) -> bytes:
    """Read to the end, or one byte beyond `most`: what is stated takes no memory before it came."""
    found = BytesIO()
    while found.tell() <= most:
        piece = read(min(most + 1 - found.tell(), _PIECE))
        if not piece:
            break
        found.write(piece)
    return found.getvalue()


def _too_long(verb: str, location: str, most: int) -> AnswerLostError:
    return AnswerLostError(
        f"Cannot {verb} {location}: the response has more than the {most} bytes that were due",
        hint="Check the configured endpoint: no store answers so.",
        path=location,
    )


def content_md5(data: bytes | bytearray) -> str:
    """Return the MD5 of bytes in the form that stores accept for verification."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
