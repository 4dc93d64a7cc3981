"""Google Cloud Storage by its JSON API: one bucket.

Creations are conditional by `ifGenerationMatch=0`, large ones too: of a resumable upload the store
keeps the condition until its last byte is there.
Source: Cloud Storage JSON API, Objects; Resumable uploads; Request preconditions.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from icecomb.format.errors import FileIOError, FileMissingError, IcecombError, ValidationError
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    MarkedCompletion,
    ObjectClient,
    ObjectPage,
    ObjectStatus,
    PartUpload,
    StoreBusyError,
    check_listed,
    content_md5,
    not_answered,
    too_busy,
    torn,
)
from icecomb.format.storage.object_store.creation import answered, complete_once, wait_before
from icecomb.format.storage.object_store.file_system import ObjectFileSystem
from icecomb.format.storage.object_store.google_credentials import google_signer
from icecomb.format.storage.object_store.google_settings import GoogleSettings
from icecomb.format.storage.object_store.rest_client import RestClient

if TYPE_CHECKING:
    from requests import Response

_AMOUNT: Final = re.compile(r"bytes=0-(\d+)")
_FIELDS: Final = "name,size,updated,generation"
_OURS: Final = "icecomb-made-by"
"""Metadata of an object by which whoever made it knows it."""
_NO_BUCKET: Final = "The specified bucket does not exist"
_HINTS: Final = {
    400: "look the reason up in the documentation of Cloud Storage",
    401: "the token is over, or of somebody else: log in again, or set gcs.oauth2.token anew",
    403: "let this account have the role Storage Object User of the bucket",
    404: "there is no such bucket there: check its name and gcs.service.host",
    413: "an object has at most 5 TiB",
}


class GoogleFileSystem(ObjectFileSystem):
    """Buckets of Google's, by `gs://`.

    Args:
        properties: See `GoogleSettings`.
    """

    scheme = "gs"
    schemes = ("gs",)
    store = "Google's store"
    example = "gs://bucket/key"

    def connect(self, start: str) -> ObjectClient:
        """See `ObjectFileSystem.connect`."""
        bucket = start.partition("://")[2].rstrip("/")
        settings = GoogleSettings.of(self._properties, bucket)
        return GoogleClient(bucket, settings, at_once=self.at_once, attempts=self._attempts)


class GoogleClient(RestClient):
    """One bucket.

    Args:
        bucket: Its name.
        settings: How it is reached.
        at_once: How many requests may be on their way.
        attempts: How often what does no harm is asked.
    """

    def __init__(
        self, bucket: str, settings: GoogleSettings, *, at_once: int, attempts: int
    ) -> None:
        base = (settings.endpoint or "https://storage.googleapis.com").rstrip("/")
        super().__init__(
            google_signer(settings), base, at_once=at_once, attempts=attempts, proxy=settings.proxy
        )
        self.bucket = bucket
        self._objects = f"{base}/storage/v1/b/{quote(bucket, safe='')}/o"
        self.uploads = f"{base}/upload/storage/v1/b/{quote(bucket, safe='')}/o"
        self.payer = {"userProject": settings.user_project} if settings.user_project else {}

    def url(self, key: str, location: str) -> str:
        """Of an object.

        Raises:
            FileMissingError: it can have no such name.
        """
        if not _can_be(key):
            raise is_missing(location)
        return f"{self._objects}/{quote(key, safe='')}"

    def resource(self, key: str, location: str) -> Mapping[str, Any]:
        """What is known of an object, in the store's words.

        Raises:
            FileMissingError: there is none.
        """
        return answered(lambda: self._resource(key, location), self.attempts)

    def _resource(self, key: str, location: str) -> Mapping[str, Any]:
        fields = {"fields": f"{_FIELDS},metadata", **self.payer}
        found = self.ask_once("GET", self.url(key, location), location, "look at", params=fields)
        return _said(found, "look at", location, "name", key)

    def mark(self, key: str, location: str) -> str | None:
        """The mark of an object; see `MarkedCompletion.found_mark`."""
        found: str | None = self.resource(key, location).get("metadata", {}).get(_OURS)
        return found

    def look(self, location: str) -> Response:
        """See `RestClient.look`."""
        asked = {"maxResults": "1", **self.payer}
        return self.ask("GET", self._objects, location, "look at", params=asked)

    def status(self, key: str, location: str) -> ObjectStatus:
        """See `ObjectClient.status`."""
        return _status(self.resource(key, location))

    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """See `ObjectClient.read`; a body that breaks off is fetched again."""
        media = {"alt": "media", **self.payer}
        url = self.url(key, location)

        def look() -> object:
            # it says in plain text that bytes are missing, as whatever stands between would
            return self._resource(key, location)

        return self.read_range(url, location, start, length, params=media, look=look)[0]

    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """See `ObjectClient.put`: with its MD5, which the store compares."""
        _check(key, location)
        boundary = uuid.uuid4().hex
        body = b"".join(
            (
                f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
                json.dumps({"name": key, "md5Hash": content_md5(data)}).encode(),
                f"\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\r\n".encode(),
                data,
                f"\r\n--{boundary}--\r\n".encode(),
            )
        )
        condition = {} if replace else {"ifGenerationMatch": "0"}
        made = self.ask_once(
            "POST",
            self.uploads,
            location,
            "create",
            params={"uploadType": "multipart", **condition, **self.payer},
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
            data=body,
        )
        _said(made, "create", location, "name", key)

    def begin_upload(self, key: str, location: str) -> PartUpload:
        """See `ObjectClient.begin_upload`."""
        _check(key, location)
        return _GoogleUpload(self, key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """See `ObjectClient.copy`."""
        _check(key, location)
        with suppress(FileMissingError):
            # of long objects the store says so only in the end
            self.status(key, location)
            raise exists_already(location)
        complete_once(_Rewriting(self, source, key, location), location, self.attempts)

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """See `ObjectClient.pages`."""
        asked = {
            "prefix": prefix,
            "fields": f"kind,nextPageToken,prefixes,items({_FIELDS})",
            **({} if below else {"delimiter": "/"}),
            **self.payer,
        }

        def page() -> Mapping[str, Any]:
            response = self.ask_once("GET", self._objects, location, "list", params=asked)
            found = _said(response, "list", location, "kind")
            if "pageToken" in asked and found.get("nextPageToken") == asked["pageToken"]:
                raise torn("list", location, "place where the next page begins")
            names = [*(each["name"] for each in found.get("items", [])), *found.get("prefixes", [])]
            check_listed(names, prefix, location)
            return found

        while True:
            found = answered(page, self.attempts)
            if not found.get("items") and not found.get("prefixes"):
                # that is the same of any folder, and may be the answer to somebody else
                found = answered(page, self.attempts)
            yield ObjectPage(
                [_status(each) for each in found.get("items", [])], found.get("prefixes", [])
            )
            if not found.get("nextPageToken"):
                return
            asked["pageToken"] = found["nextPageToken"]

    def delete_one(self, key: str, location: str) -> None:
        """See `RestClient.delete_one`."""
        self.ask("DELETE", self.url(key, location), location, "delete", params=self.payer)

    def refused(self, verb: str, location: str, response: Response) -> IcecombError:
        """See `RestClient.refused`."""
        status = response.status_code
        reason, in_json = _reason(response)
        if status == 412:
            return exists_already(location)
        # of a missing object it says the name of the bucket, which may be any word
        if status in {404, 410} and in_json and not reason.startswith(_NO_BUCKET):
            return is_missing(location)
        message = f"Cannot {verb} {location}: {status}: {reason}"
        if status == 429 and in_json:
            return too_busy(message, location)
        if status == 408 or status >= 500 or (status in {404, 409, 410, 429} and not in_json):
            return not_answered(message, location, status)
        return FileIOError(message, hint=_HINTS.get(status, _HINTS[400]), path=location)


class _GoogleUpload(MarkedCompletion, PartUpload):
    """A resumable upload: its parts go one after another, the last one with the whole length."""

    def __init__(self, client: GoogleClient, key: str, location: str) -> None:
        super().__init__()
        self._client = client
        self._key = key
        self._location = location
        self._turn = threading.Condition()
        self._number = 1
        self._broken = False
        self._there = 0
        self._held: bytes | bytearray = b""
        self._asked = False
        begun = client.ask(
            "POST",
            client.uploads,
            location,
            "create",
            params={
                "uploadType": "resumable",
                "name": key,
                "ifGenerationMatch": "0",
                **client.payer,
            },
            headers={"Content-Type": "application/json; charset=UTF-8"},
            data=json.dumps({"name": key, "metadata": {_OURS: self.mark}}).encode(),
            needs=("Location",),
        )
        # the host is the one that is set, which the store may not know of itself
        query = parse_qs(urlsplit(begun.headers["Location"]).query)
        self._session = {"uploadType": "resumable", "upload_id": query["upload_id"][0]}

    def send(self, number: int, data: bytes | bytearray) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._broken or number == self._number)
            if self._broken:
                raise FileIOError(
                    f"Cannot write {self._location}: a part before did not arrive",
                    hint="see what became of that",
                    path=self._location,
                )
            try:
                self._send_held()
            except BaseException:
                self._broken = True
                raise
            finally:
                self._number += 1
                self._turn.notify_all()
            self._held = data

    def _send_held(self) -> None:
        """Send a part that is not the last, and what of it did not arrive again."""
        begin, end = self._there, self._there + len(self._held)
        attempt, in_doubt = 0, False
        while self._there < end:
            try:
                there = self._look("*") if in_doubt else self._put(self._there, begin, "*")
                there = end if there is None else there
                if there <= self._there and not in_doubt:
                    raise self._cut()
            except (StoreBusyError, AnswerLostError):
                attempt, in_doubt = attempt + 1, True
                if attempt == self._client.attempts:
                    raise
                wait_before(attempt)
                continue
            in_doubt = False
            if there > self._there:
                self._there, attempt = there, 0

    def _put(self, start: int, begin: int, total: str) -> int | None:
        """Send what is held from `start` on; how many bytes there are then, None if it is made.

        Args:
            start: The first byte of the object that is sent.
            begin: Which byte of the object is the first that is held.
            total: Its length, or a star.
        """
        data = bytes(memoryview(self._held)[start - begin :])
        place = f"{start}-{start + len(data) - 1}" if data else "*"
        return self._ask(f"bytes {place}/{total}", data)

    def _look(self, total: str) -> int | None:
        """How many bytes there are, or None if the object was made."""
        return self._ask(f"bytes */{total}", b"")

    def _ask(self, place: str, data: bytes) -> int | None:
        response = self._client.ask_once(
            "PUT",
            self._client.uploads,
            self._location,
            "write",
            params=self._session,
            headers={"Content-Range": place},
            data=data,
            also=(308,),
        )
        if response.status_code != 308:
            _said(response, "write", self._location, "name", self._key)
            return None
        found = _AMOUNT.fullmatch(response.headers.get("Range", ""))
        return int(found[1]) + 1 if found else 0

    def complete(self) -> None:
        begin = self._there
        total = str(begin + len(self._held))
        start = self._look(total) if self._asked else begin
        self._asked = True
        if start is not None and self._put(start, begin, total) is not None:
            raise self._cut()

    def _cut(self) -> AnswerLostError:
        return AnswerLostError(
            f"Cannot write {self._location}: not all of it arrived",
            hint="the connection broke: try again",
            path=self._location,
        )

    def found_mark(self) -> str | None:
        return self._client.mark(self._key, self._location)

    def abort(self) -> None:
        with suppress(IcecombError):
            self._client.ask_once(
                "DELETE",
                self._client.uploads,
                self._location,
                "abandon",
                params=self._session,
                also=(499,),
            )


class _Rewriting(MarkedCompletion):
    """A copy within the store, which may take several requests."""

    def __init__(self, client: GoogleClient, source: ObjectStatus, key: str, location: str) -> None:
        super().__init__()
        self._client = client
        self._source = source
        self._key = key
        self._location = location

    def complete(self) -> None:
        target = f"{self._client.url(self._source.key, self._location)}/rewriteTo/b/"
        target += f"{quote(self._client.bucket, safe='')}/o/{quote(self._key, safe='')}"
        asked = {
            "ifGenerationMatch": "0",
            "ifSourceGenerationMatch": self._source.etag,
            **self._client.payer,
        }
        while True:
            try:
                response = self._client.ask_once(
                    "POST",
                    target,
                    self._location,
                    "copy to",
                    params=asked,
                    headers={"Content-Type": "application/json; charset=UTF-8"},
                    data=json.dumps({"metadata": {_OURS: self.mark}}).encode(),
                )
            except FileMissingError:
                raise is_missing(self._source.key) from None
            found = _said(response, "copy to", self._location, "done")
            if found["done"]:
                if found.get("resource", {}).get("name") != self._key:
                    raise torn("copy to", self._location, "name of the object")
                return
            asked["rewriteToken"] = found["rewriteToken"]

    def found_mark(self) -> str | None:
        return self._client.mark(self._key, self._location)


def _can_be(key: str) -> bool:
    return key not in {"", ".", ".."} and "\r" not in key and "\n" not in key


def _check(key: str, location: str) -> None:
    if not _can_be(key):
        raise ValidationError(
            f"Google's store has no object of this name: {location!r}",
            hint="choose a name without line ends, not . nor ..",
            path=location,
        )


def _status(found: Mapping[str, Any]) -> ObjectStatus:
    second, _, fraction = found["updated"].rstrip("Z").partition(".")
    changed = datetime.strptime(second, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return ObjectStatus(
        found["name"],
        int(found.get("size", 0)),
        int(changed.timestamp()) * 1000 + int(f"{fraction}000"[:3]),
        str(found.get("generation", "")),
    )


def _said(
    response: Response, verb: str, location: str, name: str, value: str | None = None
) -> Mapping[str, Any]:
    """What an answer says in JSON.

    Args:
        response: The answer.
        verb: What was tried, as `read`.
        location: On what.
        name: Of something that every such answer has.
        value: What it is; an answer of something else is one to somebody else.

    Raises:
        AnswerLostError: It is not whole, or not the store's.
    """
    try:
        found: Any = response.json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or name not in found or (value and found[name] != value):
        raise torn(verb, location, name)
    return found


def _reason(response: Response) -> tuple[str, bool]:
    """What an answer says, in one line, and whether it says it in JSON, as the store does."""
    try:
        found: Any = response.json()
        text, in_json = str(found["error"]["message"]), True
    except (ValueError, KeyError, TypeError):
        text, in_json = response.text, False
    lines: Sequence[str] = text.strip().splitlines()
    return lines[0][:500] if lines else "no reason given", in_json
