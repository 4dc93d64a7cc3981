"""Azure's Blob Storage, and Data Lake Storage over it: one container.

Creations are conditional by `If-None-Match: *`, of whole blobs and of committed lists of blocks.
A folder that is made is what Hadoop makes there and a hierarchical namespace has by itself: a blob
with the folder's name and the metadata `hdi_isfolder`. To `ObjectFileSystem` it is a key that ends
with a slash. Blocks of an upload that was given up are seen by nobody, and thrown away by Azure
after a week.
Source: Azure Storage REST API, Put Blob, Put Block List, Copy Blob, List Blobs.
"""

from __future__ import annotations

import base64
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET

from icecomb.format.errors import FileIOError, FileMissingError, IcecombError, ValidationError
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.object_store.azure_credentials import azure_signer
from icecomb.format.storage.object_store.azure_settings import AzureSettings
from icecomb.format.storage.object_store.client import (
    MarkedCompletion,
    ObjectClient,
    ObjectPage,
    ObjectStatus,
    PartUpload,
    check_listed,
    content_md5,
    not_answered,
    too_busy,
    torn,
)
from icecomb.format.storage.object_store.creation import answered, complete_once, wait_before
from icecomb.format.storage.object_store.file_system import ObjectFileSystem
from icecomb.format.storage.object_store.rest_client import RestClient, http_time_ms

if TYPE_CHECKING:
    from requests import Response

SCHEMES: Final = ("abfs", "abfss", "wasb", "wasbs")
_FOLDER: Final = "x-ms-meta-hdi_isfolder"
_OURS: Final = "x-ms-meta-icecombmadeby"
"""Metadata of a blob by which whoever made it knows it."""
_COPIED: Final = "x-ms-copy-status"
_MISSING: Final = {"BlobNotFound", "ResourceNotFound", "PathNotFound", "CannotVerifyCopySource"}
_EXISTS: Final = {
    "BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet", "UnauthorizedBlobOverwrite",
    "PathAlreadyExists", "BlobImmutableDueToPolicy",
}  # fmt: skip
_GONE: Final = {"InvalidBlockList", "SourceConditionNotMet"}
_OF_AZURE: Final = ("x-ms-error-code", "x-ms-request-id")
"""Headers by which an answer is known for one of Azure's."""
_NUMBER: Final = "x-ms-client-request-id"
_SEE_KEYS: Final = "see which keys are used: icecomb doctor says whence they are"
_HINTS: Final = {
    "ContainerNotFound": "there is no such container in the account: check its name",
    "ContainerBeingDeleted": "the container is being deleted",
    "AuthenticationFailed": f"the key, signature or token is wrong or over, or this machine's "
    f"clock is; {_SEE_KEYS}",
    "AuthorizationFailure": f"the account's firewall or its settings forbid it; {_SEE_KEYS}",
    "AuthorizationPermissionMismatch": "let who asks have the role Storage Blob Data Contributor, "
    "or the signature all permissions",
    "InsufficientAccountPermissions": "the account or signature may not do this",
    "KeyBasedAuthenticationNotPermitted": "the account takes no keys: set adls.tenant-id, "
    "adls.client-id and adls.client-secret, or log in",
    "NoAuthenticationInformation": f"nobody is said to ask; {_SEE_KEYS}",
    "PublicAccessNotPermitted": f"nobody is said to ask; {_SEE_KEYS}",
    "LeaseIdMissing": "somebody holds a lease of it: end that first",
    "SnapshotsPresent": "delete its snapshots first",
    "DirectoryIsNotEmpty": "it is a folder with something in it",
    "AccountIsDisabled": "the account is disabled",
    "Md5Mismatch": "the bytes were damaged on their way: try again",
}


class AzureFileSystem(ObjectFileSystem):
    """Containers of Azure's, by `abfs://`, `abfss://`, `wasb://` and `wasbs://`.

    Args:
        properties: See `AzureSettings`.
    """

    scheme = "abfs"
    schemes = SCHEMES
    store = "Azure's store"
    example = "abfss://container@account.dfs.core.windows.net/path"

    def connect(self, start: str) -> ObjectClient:
        """See `ObjectFileSystem.connect`."""
        container, _, host = start.partition("://")[2].rstrip("/").partition("@")
        settings = AzureSettings.of(self._properties, container, host)
        return AzureClient(container, settings, at_once=self.at_once, attempts=self._attempts)


class AzureClient(RestClient):
    """One container.

    Args:
        container: Its name.
        settings: How it is reached.
        at_once: How many requests may be on their way.
        attempts: How often what does no harm is asked.
    """

    always = ("x-ms-request-id",)

    def __init__(
        self, container: str, settings: AzureSettings, *, at_once: int, attempts: int
    ) -> None:
        base = settings.endpoint or f"https://{settings.account}.blob.core.windows.net"
        base = base.rstrip("/")
        super().__init__(azure_signer(settings), base, at_once=at_once, attempts=attempts)
        self._container = f"{base}/{quote(container, safe='$')}"

    def ask_once(self, method: str, url: str, location: str, verb: str, **others: Any) -> Response:
        """See `RestClient.ask_once`: with a number of its own, which Azure says again."""
        number = uuid.uuid4().hex
        headers = {**(others.pop("headers", None) or {}), _NUMBER: number}
        found = super().ask_once(method, url, location, verb, headers=headers, **others)
        if found.headers.get(_NUMBER, number) != number:
            raise torn(verb, location, "number of this request")
        return found

    def url(self, key: str, location: str) -> str:
        """Of a blob, a folder's too.

        Raises:
            FileMissingError: it can have no such name.
        """
        name = key.removesuffix("/")
        if not _can_be(name):
            raise is_missing(location)
        return f"{self._container}/{quote(name, safe='/')}"

    def head(self, key: str, location: str) -> Mapping[str, str]:
        """What is known of a blob, a folder's too.

        Raises:
            FileMissingError: there is none.
        """
        url = self.url(key, location)
        headers: Mapping[str, str] = self.ask(
            "HEAD", url, location, "look at", needs=("Content-Length", "Last-Modified", "ETag")
        ).headers
        return headers

    def look(self, location: str) -> Response:
        """See `RestClient.look`."""
        asked = {"restype": "container", "comp": "list", "maxresults": "1"}
        return self.ask("GET", self._container, location, "look at", params=asked)

    def status(self, key: str, location: str) -> ObjectStatus:
        """See `ObjectClient.status`."""
        found = self.head(key, location)
        if _is_folder(found):
            raise is_missing(location)
        return ObjectStatus(
            key,
            int(found["Content-Length"]),
            http_time_ms(found["Last-Modified"]),
            found["ETag"].strip('"'),
        )

    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """See `ObjectClient.read`; a body that breaks off is fetched again."""
        found, headers = self.read_range(self.url(key, location), location, start, length)
        if _is_folder(headers):
            raise is_missing(location)
        return found

    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """See `ObjectClient.put`: with its MD5, which Azure compares."""
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
        """See `ObjectClient.begin_upload`."""
        _check(key, location)
        return _AzureUpload(self, key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """See `ObjectClient.copy`."""
        _check(key, location)
        complete_once(_Copying(self, source, key, location), location, self.attempts)

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """See `ObjectClient.pages`: a folder's blob is shown as Hadoop's S3A would name it."""
        asked = {
            "restype": "container",
            "comp": "list",
            "include": "metadata",
            "prefix": prefix,
            **({} if below else {"delimiter": "/"}),
        }
        empty = True
        seen: set[str] = set()

        def listed() -> ET.Element:
            found = self.ask_once("GET", self._container, location, "list", params=asked)
            root = None
            with suppress(ET.ParseError):
                root = ET.fromstring(found.content)  # noqa: S314 - the store is trusted with rows
            if root is None or root.tag != "EnumerationResults":
                raise torn("list", location, "EnumerationResults")
            if "marker" in asked and root.findtext("NextMarker") == asked["marker"]:
                raise torn("list", location, "place where the next page begins")
            check_listed((_name(each) for each in root.iterfind("Blobs/*")), prefix, location)
            return root

        while True:
            root = answered(listed, self.attempts)
            page = _page(root, below=below, seen=seen)
            empty = empty and not page.objects and not page.prefixes
            yield page
            marker = root.findtext("NextMarker")
            if not marker:
                break
            asked["marker"] = marker
        if empty and prefix.endswith("/"):
            # an empty folder's blob has the name without the slash, which is not listed with it
            with suppress(FileMissingError):
                headers = self.head(prefix, location)
                if _is_folder(headers):
                    changed = http_time_ms(headers["Last-Modified"])
                    yield ObjectPage([ObjectStatus(prefix, 0, changed)])

    def delete_one(self, key: str, location: str) -> None:
        """See `RestClient.delete_one`: an empty folder of this name, too, as its blob has it."""
        self.ask("DELETE", self.url(key, location), location, "delete")

    def refused(self, verb: str, location: str, response: Response) -> IcecombError:
        """See `RestClient.refused`."""
        status = response.status_code
        code, text = _reason(response)
        is_of_azure = any(name in response.headers for name in _OF_AZURE)
        if code in _MISSING or (status == 404 and code in {"", "404"} and is_of_azure):
            return is_missing(location)
        if code in _EXISTS or (status in {409, 412} and code == str(status) and is_of_azure):
            return exists_already(location)
        if code in _GONE:
            return FileMissingError(
                f"Cannot {verb} {location}: {code}: {text}",
                hint="look who else writes there, and try again",
                path=location,
            )
        message = f"Cannot {verb} {location}: {code}: {text}"
        if code in {"ServerBusy", "PendingCopyOperation"} or (status == 429 and is_of_azure):
            return too_busy(message, location)
        if status == 408 or status >= 500 or (status in {404, 409, 412, 429} and not is_of_azure):
            return not_answered(message, location, status)
        hint = _HINTS.get(code, "look the code up in the documentation of Azure Storage")
        return FileIOError(message, hint=hint, path=location)


class _AzureUpload(MarkedCompletion, PartUpload):
    """Blocks, and the list of them that makes the blob."""

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
        # the blocks of all who write to one name lie together: ours have names of their own
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
        """See `PartUpload.abort`: blocks cannot be deleted, and vanish by themselves."""


class _Copying(MarkedCompletion):
    """A copy within the account, which may go on after the answer."""

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
        """See the copy to its end; one that fails leaves an empty blob, which is deleted."""
        looked = 0
        while (state := headers.get(_COPIED, "success")) == "pending":
            wait_before(looked)
            looked += 1
            headers = self._client.head(self._key, self._location)
        if state != "success":
            self._client.delete_one(self._key, self._location)
            raise FileIOError(
                f"Cannot copy {self._source.key} to {self._location}: {state}",
                hint="try again",
                path=self._location,
            )

    def found_mark(self) -> str | None:
        headers = self._client.head(self._key, self._location)
        found = headers.get(_OURS)
        if found == self.mark:
            self._wait_for(headers)
        return found


def _can_be(name: str) -> bool:
    """Whether Azure would not change it: a dot at the end it leaves out, a backslash is a slash."""
    return bool(name) and "\\" not in name and not any(p.endswith(".") for p in name.split("/"))


def _check(key: str, location: str) -> None:
    if not _can_be(key.removesuffix("/")):
        raise ValidationError(
            f"Azure's store would change the name of {location!r}",
            hint="choose a path without backslashes and names that end with a dot",
            path=location,
        )


def _is_folder(headers: Mapping[str, str]) -> bool:
    return headers.get(_FOLDER, "") == "true" or headers.get("x-ms-resource-type") == "directory"


def _page(root: ET.Element, *, below: bool, seen: set[str]) -> ObjectPage:
    """What a page says, without the folders that were seen: a blob and files may both show one."""
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
                int(each.findtext("Properties/Content-Length") or 0),
                http_time_ms(each.findtext("Properties/Last-Modified") or ""),
                (each.findtext("Properties/Etag") or "").strip('"'),
            )
        )
    new = [each for each in dict.fromkeys(prefixes) if each not in seen]
    seen.update(new)
    return ObjectPage(objects, new)


def _name(each: ET.Element) -> str:
    text = each.findtext("Name") or ""
    # what XML cannot hold is written as in a URL
    return text if each.find("Name[@Encoded='true']") is None else unquote(text)


def _reason(response: Response) -> tuple[str, str]:
    """The code and, in one line, what Azure says."""
    code = response.headers.get("x-ms-error-code", str(response.status_code))
    text = ""
    with suppress(ET.ParseError):
        text = ET.fromstring(response.content).findtext("Message") or ""  # noqa: S314 - as above
    lines = text.strip().splitlines()
    return code, lines[0][:500] if lines else "no reason given"
