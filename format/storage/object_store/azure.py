"""Client of a container of Azure Blob Storage, and of Data Lake Storage on top of it.

Blobs are created with `If-None-Match: *`, whole or as committed block lists. A created folder is
the same as Hadoop's and that of a hierarchical namespace: a blob with the folder's name and the
metadata `hdi_isfolder`. `ObjectFileSystem` sees it as a key that ends with a slash. The blocks of
an aborted upload are invisible, and deleted by Azure after a week.
Source: Azure Storage REST API, Put Blob, Put Block List, Copy Blob, List Blobs.
"""

from __future__ import annotations

import base64
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET

from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.input_limit import whole_number
from icecomb.format.printable_text import printable
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.object_store.azure_settings import AzureSettings, azure_signer
from icecomb.format.storage.object_store.client import (
    MarkedCompletion,
    ObjectClient,
    ObjectPage,
    ObjectStatus,
    PageTokens,
    PartUpload,
    check_listed,
    content_md5,
    not_answered,
    parsed,
    told,
    too_busy,
    torn,
)
from icecomb.format.storage.object_store.creation import copy_once, not_copied, wait_before
from icecomb.format.storage.object_store.file_system import ObjectFileSystem
from icecomb.format.storage.object_store.rest_client import RestClient, http_time_ms

if TYPE_CHECKING:
    from requests import Response

SCHEMES: Final = ("abfs", "abfss", "wasb", "wasbs")
_FOLDER: Final = "x-ms-meta-hdi_isfolder"
_OURS: Final = "x-ms-meta-icecombmadeby"
"""Metadata by which the creator of a blob recognizes it."""
_COPIED: Final = "x-ms-copy-status"
_PROGRESS: Final = "x-ms-copy-progress"
PENDING_S: Final = 120.0
"""Seconds that a copy may be pending without progress."""
_MISSING: Final = {"BlobNotFound", "ResourceNotFound", "PathNotFound", "CannotVerifyCopySource"}
_EXISTS: Final = {
    "BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet", "UnauthorizedBlobOverwrite",
    "PathAlreadyExists", "BlobImmutableDueToPolicy",
}  # fmt: skip
_GONE: Final = {"InvalidBlockList", "SourceConditionNotMet"}
_OF_AZURE: Final = ("x-ms-error-code", "x-ms-request-id")
"""Headers that identify a response as Azure's."""
_NUMBER: Final = "x-ms-client-request-id"
_SEE_KEYS: Final = "check which keys are used: icecomb doctor shows their source"
_HINTS: Final = {
    "ContainerNotFound": "There is no such container in the account: check its name.",
    "ContainerBeingDeleted": "The container is being deleted.",
    "AuthenticationFailed": f"The key, signature or token is wrong or expired, or this machine's "
    f"clock is wrong; {_SEE_KEYS}.",
    "AuthorizationFailure": f"The account's firewall or its settings forbid it; {_SEE_KEYS}.",
    "AuthorizationPermissionMismatch": "Give the user the role Storage Blob Data Contributor, or "
    "the signature all permissions.",
    "InsufficientAccountPermissions": "The account or signature may not do this.",
    "KeyBasedAuthenticationNotPermitted": "The account accepts no keys: set adls.tenant-id, "
    "adls.client-id and adls.client-secret, or log in.",
    "NoAuthenticationInformation": f"No credentials are set; {_SEE_KEYS}.",
    "PublicAccessNotPermitted": f"No credentials are set; {_SEE_KEYS}.",
    "LeaseIdMissing": "Somebody holds a lease of it: end that first.",
    "SnapshotsPresent": "Delete its snapshots first.",
    "DirectoryIsNotEmpty": "It is a folder that is not empty.",
    "AccountIsDisabled": "The account is disabled.",
    "Md5Mismatch": "The bytes were damaged in transit: try again.",
}


class AzureFileSystem(ObjectFileSystem):
    """Azure's containers, under `abfs://`, `abfss://`, `wasb://` and `wasbs://`."""

    scheme = "abfs"
    schemes = SCHEMES
    store = "Azure's store"
    example = "abfss://container@account.dfs.core.windows.net/path"

    def connect(self, start: str) -> ObjectClient:
        """Implement `ObjectFileSystem.connect`."""
        container, _, host = start.partition("://")[2].rstrip("/").partition("@")
        settings = AzureSettings.of(self._properties, container, host)
        return AzureClient(container, settings, at_once=self.at_once, attempts=self._attempts)


class AzureClient(RestClient):
    """A client of one container; `attempts` limits those of requests that are safe to repeat."""

    always = ("x-ms-request-id",)

    def __init__(
        self, container: str, settings: AzureSettings, *, at_once: int, attempts: int
    ) -> None:
        base = settings.endpoint or f"https://{settings.account}.blob.core.windows.net"
        base = base.rstrip("/")
        super().__init__(azure_signer(settings), base, at_once=at_once, attempts=attempts)
        self._container = f"{base}/{quote(container, safe='$')}"

    def ask_once(self, method: str, url: str, location: str, verb: str, **others: Any) -> Response:
        """Extend `RestClient.ask_once` by a unique request id, which Azure echoes."""
        number = uuid.uuid4().hex
        headers = {**(others.pop("headers", None) or {}), _NUMBER: number}
        found = super().ask_once(method, url, location, verb, headers=headers, **others)
        if found.headers.get(_NUMBER, number) != number:
            raise torn(verb, location, "id of this request")
        return found

    def url(self, key: str, location: str) -> str:
        """Return the URL of a blob, also of a folder's; NoSuchFileError for impossible names."""
        name = key.removesuffix("/")
        if not _can_be(name):
            raise is_missing(location)
        return f"{self._container}/{quote(name, safe='/')}"

    def head(self, key: str, location: str) -> Mapping[str, str]:
        """Return the headers of a blob, also of a folder's."""
        return self.answered("access", location, lambda: self._head(key, location))

    def _head(self, key: str, location: str) -> Mapping[str, str]:
        needs = ("Content-Length", "Last-Modified", "ETag")
        url = self.url(key, location)
        headers: Mapping[str, str] = self.ask_once(
            "HEAD", url, location, "access", needs=needs
        ).headers
        return headers

    def look(self, location: str) -> Response:
        """Implement `RestClient.look`."""
        asked = {"restype": "container", "comp": "list", "maxresults": "1"}
        return self.ask("GET", self._container, location, "access", params=asked)

    def status(self, key: str, location: str) -> ObjectStatus:
        """Implement `ObjectClient.status`."""

        def found() -> ObjectStatus:
            headers = self._head(key, location)
            if _is_folder(headers):
                raise is_missing(location)
            return ObjectStatus(
                key,
                _size(headers["Content-Length"]),
                http_time_ms(headers["Last-Modified"]),
                headers["ETag"].strip('"'),
            )

        return self.answered("access", location, found)

    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """Implement `ObjectClient.read`; a truncated body is fetched again."""
        found, headers = self.read_range(self.url(key, location), location, start, length)
        if _is_folder(headers):
            raise is_missing(location)
        return found

    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """Implement `ObjectClient.put` with an MD5, which Azure compares."""
        _check(key, location)
        self.ask_once(
            "PUT",
            self.url(key, location),
            location,
            "create",
            headers={
                "x-ms-blob-type": "BlockBlob",
                "Content-MD5": content_md5(data),
                **({_FOLDER: "true"} if key.endswith("/") else {}),
                **({} if replace else {"If-None-Match": "*"}),
            },
            data=bytes(data),
            needs=("ETag",),
        )

    def begin_upload(self, key: str, location: str) -> PartUpload:
        """Implement `ObjectClient.begin_upload`."""
        _check(key, location)
        return _AzureUpload(self, key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """Implement `ObjectClient.copy`."""
        _check(key, location)
        copy_once(_Copying(self, source, key, location), location, self.attempts)

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """Implement `ObjectClient.pages`; a folder's blob is named as Hadoop's S3A would."""
        asked = {
            "restype": "container",
            "comp": "list",
            "include": "metadata",
            "prefix": prefix,
            **({} if below else {"delimiter": "/"}),
        }
        empty = True
        seen: set[str] = set()
        markers = PageTokens(location)

        def listed() -> tuple[ObjectPage, str | None]:
            found = self.ask_once("GET", self._container, location, "list", params=asked)
            root = None
            with suppress(ET.ParseError):
                root = _document(found.content)
            if root is None or root.tag != "EnumerationResults":
                raise torn("list", location, "EnumerationResults")
            marker = root.findtext("NextMarker")
            markers.check(marker)
            check_listed((_name(each) for each in root.iterfind("Blobs/*")), prefix, location)
            return _page(root, below=below, seen=seen), marker

        while True:
            page, marker = self.answered("list", location, listed)
            seen.update(page.prefixes)
            empty = empty and not page.objects and not page.prefixes
            yield page
            if not marker:
                break
            markers.add(marker, page)
            asked["marker"] = marker
        if empty and prefix.endswith("/"):
            # an empty folder's blob has no slash in its name, so the prefix does not match it
            with suppress(NoSuchFileError):
                headers = self.head(prefix, location)
                with parsed("list", location):
                    changed = http_time_ms(headers["Last-Modified"])
                if _is_folder(headers):
                    yield ObjectPage([ObjectStatus(prefix, 0, changed)])

    def delete_one(self, key: str, location: str, *, etag: str | None = None) -> None:
        """Implement `RestClient.delete_one`; an empty folder's blob is deleted, too.

        FileAlreadyExistsError is raised if it has another ETag than the given one.
        """
        headers = {} if etag is None else {"If-Match": etag}
        self.ask("DELETE", self.url(key, location), location, "delete", headers=headers)

    def refused(self, verb: str, location: str, response: Response) -> IcecombError:
        """Implement `RestClient.refused`."""
        status = response.status_code
        code, text = _reason(response)
        is_of_azure = any(name in response.headers for name in _OF_AZURE)
        if code in _MISSING or (status == 404 and code in {"", "404"} and is_of_azure):
            return is_missing(location)
        if code in _EXISTS or (status in {409, 412} and code == str(status) and is_of_azure):
            return exists_already(location)
        if code in _GONE:
            return NoSuchFileError(
                f"Cannot {verb} {location}: {code}: {text}",
                hint="Check who else writes there, and try again.",
                path=location,
            )
        message = f"Cannot {verb} {location}: {code}: {text}"
        if code in {"ServerBusy", "PendingCopyOperation"} or (status == 429 and is_of_azure):
            return too_busy(message, location)
        # a proxy that answers itself may still pass the request on
        if status == 408 or status >= 500 or not is_of_azure:
            return not_answered(message, location, status)
        hint = _HINTS.get(code, "Look up the code in the documentation of Azure Storage.")
        return FileIOError(message, hint=hint, path=location)


class _AzureUpload(MarkedCompletion, PartUpload):
    """An upload of blocks, completed by committing their list."""

    def __init__(self, client: AzureClient, key: str, location: str) -> None:
        super().__init__()
        self._client = client
        self._key = key
        self._location = location
        self._blocks: dict[int, str] = {}
        self._lock = threading.Lock()

    def send(self, number: int, data: bytes | bytearray) -> None:
        if not data:
            return  # Azure has no empty blocks
        # all writers of a blob share its uncommitted blocks, so their ids must be unique
        block = base64.b64encode(f"{self.mark}-{number:06d}".encode()).decode()
        self._client.ask(
            "PUT",
            self._client.url(self._key, self._location),
            self._location,
            "write",
            params={"comp": "block", "blockid": block},
            headers={"Content-MD5": content_md5(data)},
            data=bytes(data),
        )
        with self._lock:
            self._blocks[number] = block

    def complete(self) -> None:
        blocks = "".join(f"<Uncommitted>{b}</Uncommitted>" for _, b in sorted(self._blocks.items()))
        self._client.ask_once(
            "PUT",
            self._client.url(self._key, self._location),
            self._location,
            "create",
            params={"comp": "blocklist"},
            headers={"If-None-Match": "*", _OURS: self.mark, "Content-Type": "application/xml"},
            data=f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode(),
            needs=("ETag",),
        )

    def found_mark(self) -> str | None:
        return self._client.head(self._key, self._location).get(_OURS)

    def abort(self) -> None:
        """Do nothing: blocks cannot be deleted, and expire."""


class _Copying(MarkedCompletion):
    """A copy within the account, which may continue after the response."""

    def __init__(self, client: AzureClient, source: ObjectStatus, key: str, location: str) -> None:
        super().__init__()
        self._client = client
        self._source = source
        self._key = key
        self._location = location

    def complete(self) -> None:
        response = self._client.ask_once(
            "PUT",
            self._client.url(self._key, self._location),
            self._location,
            "copy to",
            headers={
                "x-ms-copy-source": self._client.url(self._source.key, self._location),
                "x-ms-source-if-match": f'"{self._source.etag}"',
                "If-None-Match": "*",
                _OURS: self.mark,
            },
            needs=(_COPIED,),
        )
        self._wait_for(response.headers)

    def _wait_for(self, headers: Mapping[str, str]) -> None:
        """Wait for the end of the copy; delete the empty blob that a failed one leaves."""
        looked, copied, since = 0, 0, time.monotonic()
        while (state := headers.get(_COPIED, "success")) == "pending":
            now = _size(headers.get(_PROGRESS, "0").partition("/")[0])
            if copied < now <= self._source.size:
                copied, since = now, time.monotonic()
            if time.monotonic() - since > PENDING_S:
                raise FileIOError(
                    f"Cannot copy {self._source.key} to {self._location}: it is pending, and Azure "
                    f"has copied nothing for {PENDING_S:.0f} s",
                    hint="Look at the copy's status there: it may still appear.",
                    path=self._location,
                )
            wait_before(looked)
            looked += 1
            headers = self._client.head(self._key, self._location)
        if state != "success":
            self._discard()
            raise FileIOError(
                f"Cannot copy {self._source.key} to {self._location}: {told(state)}",
                hint="Try again.",
                path=self._location,
            )

    def _discard(self) -> None:
        """Delete the blob of a failed copy; AnswerLostError if that of another writer is there."""
        try:
            headers = self._client.head(self._key, self._location)
        except NoSuchFileError as error:
            raise not_copied(self._location) from error
        if headers.get(_OURS) != self.mark:
            raise not_copied(self._location)
        with suppress(FileAlreadyExistsError):  # replaced in the meantime
            self._client.delete_one(self._key, self._location, etag=headers["ETag"])

    def found_mark(self) -> str | None:
        headers = self._client.head(self._key, self._location)
        found = headers.get(_OURS)
        if found == self.mark:
            self._wait_for(headers)
        return found


def _can_be(name: str) -> bool:
    """Return whether Azure keeps the name: it drops final dots and converts backslashes."""
    return bool(name) and "\\" not in name and not any(p.endswith(".") for p in name.split("/"))


def _check(key: str, location: str) -> None:
    if not _can_be(key.removesuffix("/")):
        raise ValidationError(
            f"Azure's store would change the name of {location!r}",
            hint="Choose a path without backslashes and names that end with a dot.",
            path=location,
        )


def _is_folder(headers: Mapping[str, str]) -> bool:
    return headers.get(_FOLDER, "") == "true" or headers.get("x-ms-resource-type") == "directory"


def _size(text: str) -> int:
    found = whole_number(text)
    if found is None:
        raise ValueError(text)
    return found


def _page(root: ET.Element, *, below: bool, seen: set[str]) -> ObjectPage:
    """Parse a page, leaving out folders already seen: a blob and files may both imply one."""
    objects, prefixes = [], []
    for each in root.iterfind("Blobs/*"):
        name = _name(each)
        if each.tag == "BlobPrefix":
            prefixes.append(name)
            continue
        metadata = {m.tag.lower(): m.text for m in each.iterfind("Metadata/*")}
        if (
            metadata.get("hdi_isfolder") == "true"
            or each.findtext("Properties/ResourceType") == "directory"
        ):
            name = f"{name.removesuffix('/')}/"
            if not below:
                prefixes.append(name)
                continue
        objects.append(
            ObjectStatus(
                name,
                _size(each.findtext("Properties/Content-Length") or "0"),
                http_time_ms(each.findtext("Properties/Last-Modified") or ""),
                (each.findtext("Properties/Etag") or "").strip('"'),
            )
        )
    return ObjectPage(objects, [each for each in dict.fromkeys(prefixes) if each not in seen])


def _name(each: ET.Element) -> str:
    text = each.findtext("Name") or ""
    # characters not allowed in XML are URL-encoded
    return text if each.find("Name[@Encoded='true']") is None else unquote(text)


def _document(text: bytes) -> ET.Element:
    # `whole_answer` returned no entities
    return ET.fromstring(text, ET.XMLParser(encoding="utf-8"))  # noqa: S314


def _reason(response: Response) -> tuple[str, str]:
    """Return the error code and Azure's message in one line."""
    code = printable(response.headers.get("x-ms-error-code", str(response.status_code))[:80])
    text = ""
    with suppress(ET.ParseError):
        text = _document(response.content).findtext("Message") or ""
    return code, told(text)
