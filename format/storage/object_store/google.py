"""Client of one bucket of Google Cloud Storage, over its JSON API.

Objects are created with `ifGenerationMatch=0`, large ones too: the store checks the condition of a
resumable upload when its last byte arrives.
Source: Cloud Storage JSON API, Objects; Resumable uploads; Request preconditions.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from icecomb.format.errors import FileIOError, IcecombError, NoSuchFileError, ValidationError
from icecomb.format.input_limit import bounded_json
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    MarkedCompletion,
    ObjectClient,
    ObjectPage,
    ObjectStatus,
    PageTokens,
    PartUpload,
    StoreBusyError,
    check_listed,
    content_md5,
    not_answered,
    parsed,
    told,
    too_busy,
    torn,
)
from icecomb.format.storage.object_store.creation import copy_once, wait_before
from icecomb.format.storage.object_store.file_system import ObjectFileSystem
from icecomb.format.storage.object_store.google_settings import GoogleSettings, google_signer
from icecomb.format.storage.object_store.rest_client import RestClient

if TYPE_CHECKING:
    from requests import Response

_AMOUNT: Final = re.compile(r"bytes=0-(\d+)")
_FIELDS: Final = "name,size,updated,generation"
_OF_GOOGLE: Final = "x-guploader-uploadid"
_OURS: Final = "icecomb-made-by"
"""Metadata by which the creator of an object recognizes it."""
_REWRITTEN: Final = 1 << 20
"""The least number of bytes that a request copies, but the last."""
_STORED: Final = 256 << 10
"""The least number of bytes of a part that are stored, but the last."""
_NO_BUCKET: Final = "The specified bucket does not exist"
_HINTS: Final = {
    400: "Look up the reason in the documentation of Cloud Storage.",
    401: "The token has expired or is invalid: log in again, or set a new gcs.oauth2.token.",
    403: "Give this account the role Storage Object User of the bucket.",
    404: "There is no such bucket there: check its name and gcs.service.host.",
    413: "An object has at most 5 TiB.",
}


class GoogleFileSystem(ObjectFileSystem):
    """Google's buckets, under `gs://`."""

    scheme = "gs"
    schemes = ("gs",)
    store = "Google's store"
    example = "gs://bucket/key"

    def connect(self, start: str) -> ObjectClient:
        """Implement `ObjectFileSystem.connect`."""
        bucket = start.partition("://")[2].rstrip("/")
        settings = GoogleSettings.of(self._properties, bucket)
        return GoogleClient(bucket, settings, at_once=self.at_once, attempts=self._attempts)


class GoogleClient(RestClient):
    """A client of one bucket; `attempts` limits those of requests that are safe to repeat."""

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
        """Return the URL of an object; NoSuchFileError if no object can have this name."""
        if not _can_be(key):
            raise is_missing(location)
        return f"{self._objects}/{quote(key, safe='')}"

    def resource(self, key: str, location: str) -> Mapping[str, Any]:
        """Return an object's resource as the store describes it."""
        return self.answered("access", location, lambda: self._resource(key, location))

    def _resource(self, key: str, location: str) -> Mapping[str, Any]:
        fields = {"fields": f"{_FIELDS},metadata", **self.payer}
        found = self.ask_once("GET", self.url(key, location), location, "access", params=fields)
        return _said(found, "access", location, "name", key)

    def mark(self, key: str, location: str) -> str | None:
        """Return the mark of an object; see `MarkedCompletion.found_mark`."""
        found = self.resource(key, location)
        with parsed("access", location):
            mark: str | None = found.get("metadata", {}).get(_OURS)
        return mark

    def look(self, location: str) -> Response:
        """Implement `RestClient.look`."""
        asked = {"maxResults": "1", **self.payer}
        return self.ask("GET", self._objects, location, "access", params=asked)

    def status(self, key: str, location: str) -> ObjectStatus:
        """Implement `ObjectClient.status`."""
        return self.answered("access", location, lambda: _status(self._resource(key, location)))

    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """Implement `ObjectClient.read`; a truncated body is fetched again."""
        media = {"alt": "media", **self.payer}
        url = self.url(key, location)

        def look() -> object:
            # the store's 404 for media is plain text, like that of a proxy
            return self._resource(key, location)

        return self.read_range(url, location, start, length, params=media, look=look)[0]

    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """Implement `ObjectClient.put` with an MD5, which the store compares."""
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
        """Implement `ObjectClient.begin_upload`."""
        _check(key, location)
        return _GoogleUpload(self, key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """Implement `ObjectClient.copy`."""
        _check(key, location)
        with suppress(NoSuchFileError):
            # for long objects the store reports it only at the end
            self.status(key, location)
            raise exists_already(location)
        copy_once(_Rewriting(self, source, key, location), location, self.attempts)

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """Implement `ObjectClient.pages`."""
        asked = {
            "prefix": prefix,
            "fields": f"kind,nextPageToken,prefixes,items({_FIELDS})",
            **({} if below else {"delimiter": "/"}),
            **self.payer,
        }

        tokens = PageTokens(location)

        def page() -> tuple[ObjectPage, str | None]:
            response = self.ask_once("GET", self._objects, location, "list", params=asked)
            found = _said(response, "list", location, "kind")
            following = found.get("nextPageToken")
            tokens.check(following)
            objects = [_status(each) for each in found.get("items", [])]
            prefixes = [*found.get("prefixes", [])]
            check_listed([*(each.key for each in objects), *prefixes], prefix, location)
            return ObjectPage(objects, prefixes), following

        while True:
            found, following = self.answered("list", location, page)
            if not found.objects and not found.prefixes:
                # an empty page names no folder and may belong to another request
                found, following = self.answered("list", location, page)
            yield found
            if not following:
                return
            tokens.add(following, found)
            asked["pageToken"] = following

    def delete_one(self, key: str, location: str) -> None:
        """Implement `RestClient.delete_one`."""
        url = self.url(key, location)

        def once() -> None:
            found = self.ask_once("DELETE", url, location, "delete", params=self.payer)
            if found.status_code != 204:
                bounded_json(found.content)  # emulators answer in JSON, a login page does not

        self.answered("delete", location, once)

    def refused(self, verb: str, location: str, response: Response) -> IcecombError:
        """Implement `RestClient.refused`."""
        status = response.status_code
        reason, in_json = _reason(response)
        is_own = in_json or _OF_GOOGLE in response.headers
        if status == 412 and is_own:
            return exists_already(location)
        # the reason for a missing object contains the bucket's name, which may be any word
        if status in {404, 410} and in_json and not reason.startswith(_NO_BUCKET):
            return is_missing(location)
        message = f"Cannot {verb} {location}: {status}: {reason}"
        if status == 429 and in_json:
            return too_busy(message, location)
        # a proxy that answers itself may still pass the request on
        is_of_others = not is_own or (not in_json and status in {404, 409, 410, 429})
        if status == 408 or status >= 500 or is_of_others:
            return not_answered(message, location, status)
        return FileIOError(message, hint=_HINTS.get(status, _HINTS[400]), path=location)


class _GoogleUpload(MarkedCompletion, PartUpload):
    """A resumable upload: parts are sent in order, the last one with the total length."""

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
        # keep the configured host, as the store may name another one
        with parsed("create", location):
            query = parse_qs(urlsplit(begun.headers["Location"]).query)
            self._session = {"uploadType": "resumable", "upload_id": query["upload_id"][0]}

    def send(self, number: int, data: bytes | bytearray) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._broken or number == self._number)
            if self._broken:
                raise FileIOError(
                    f"Cannot write {self._location}: an earlier part did not arrive",
                    hint="See the error of that part.",
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
        """Send a part that is not the last; send again the bytes that did not arrive."""
        begin, end = self._there, self._there + len(self._held)
        attempt, in_doubt = 0, False
        while self._there < end:
            try:
                there = self._look("*") if in_doubt else self._put(self._there, begin, "*")
                there = end if there is None else there
                has_grown = there - self._there >= min(_STORED, end - self._there)
                if there > end or not (has_grown or in_doubt):
                    raise self._cut()
            except (StoreBusyError, AnswerLostError):
                attempt, in_doubt = attempt + 1, True
                if attempt == self._client.attempts:
                    raise
                wait_before(attempt)
                continue
            in_doubt = False
            self._there = max(self._there, there)
            if has_grown:
                attempt = 0

    def _put(self, start: int, begin: int, total: str) -> int | None:
        """Send the held bytes from `start` on; return the stored length, None if complete.

        Args:
            start: Offset in the object of the first byte to send.
            begin: Offset in the object of the first held byte.
            total: Length of the object, or `*`.
        """
        data = bytes(memoryview(self._held)[start - begin :])
        place = f"{start}-{start + len(data) - 1}" if data else "*"
        return self._ask(f"bytes {place}/{total}", data)

    def _look(self, total: str) -> int | None:
        """Return the number of bytes stored so far, None if the object is complete."""
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
        end = begin + len(self._held)
        start = self._look(str(end)) if self._asked else begin
        self._asked = True
        if start is None:
            return
        if not begin <= start <= end or self._put(start, begin, str(end)) is not None:
            raise self._cut()

    def _cut(self) -> AnswerLostError:
        return AnswerLostError(
            f"Cannot write {self._location}: not all of it arrived",
            hint="The connection broke: try again.",
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
    """A copy within the store, possibly in several requests."""

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
        requests = 2 + self._source.size // _REWRITTEN
        for _ in range(requests):
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
            except NoSuchFileError:
                raise is_missing(self._source.key) from None
            found = _said(response, "copy to", self._location, "done")
            with parsed("copy to", self._location):
                if found["done"]:
                    if found.get("resource", {}).get("name") != self._key:
                        raise torn("copy to", self._location, "name of the object")
                    return
                asked["rewriteToken"] = found["rewriteToken"]
        raise FileIOError(
            f"Cannot copy {self._source.key} to {self._location}: the store has not finished after "
            f"{requests} requests",
            hint="Check the configured endpoint, or try again.",
            path=self._location,
        )

    def found_mark(self) -> str | None:
        return self._client.mark(self._key, self._location)


def _can_be(key: str) -> bool:
    return key not in {"", ".", ".."} and "\r" not in key and "\n" not in key


def _check(key: str, location: str) -> None:
    if not _can_be(key):
        raise ValidationError(
            f"Google's store has no object of this name: {location!r}",
            hint="Choose a name other than . and .., without line breaks.",
            path=location,
        )


def _status(found: Mapping[str, Any]) -> ObjectStatus:
    name, updated = found["name"], found["updated"]
    if not isinstance(name, str):
        raise TypeError(name)
    second, _, fraction = updated.rstrip("Z").partition(".")
    changed = datetime.strptime(second, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return ObjectStatus(
        name,
        int(found.get("size", 0)),
        int(changed.timestamp()) * 1000 + int(f"{fraction}000"[:3]),
        str(found.get("generation", "")),
    )


def _said(
    response: Response, verb: str, location: str, name: str, value: str | None = None
) -> Mapping[str, Any]:
    """Parse a response in JSON; AnswerLostError if it is incomplete, or not the store's.

    Args:
        name: Name of a member that every such response has.
        value: Expected value of it; another value means a response to another request.
    """
    with parsed(verb, location):
        found: Any = bounded_json(response.content)
    if not isinstance(found, dict) or name not in found or (value and found[name] != value):
        raise torn(verb, location, name)
    return found


def _reason(response: Response) -> tuple[str, bool]:
    """Return the reason in one line, and whether it is in JSON, as the store's are."""
    try:
        found: Any = bounded_json(response.content)
        text, in_json = str(found["error"]["message"]), True
    except (ValueError, KeyError, TypeError, RecursionError):
        text, in_json = response.content.decode(errors="replace"), False
    return told(text), in_json
