"""Google's and Azure's stores in memory, with the faults of their proxies: as much as icecomb asks of them.

What the servers themselves make of the same requests, only the tests with the real ones say.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, ClassVar, NamedTuple
from xml.sax.saxutils import escape

from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store.azure_settings import EMULATOR_ACCOUNT
from tests.peers.s3_proxy import REPEATED, Request, S3Proxy
from tests.peers.store_proxies import Addresses, Answer, AzureProxy, GoogleProxy

_PAGE = 5
"""Entries of a listing."""
_GENERATIONS = itertools.count(1000)


@dataclass
class Stored:
    """An object."""

    data: bytes
    marks: dict[str, str] = field(default_factory=dict)
    generation: int = field(default_factory=lambda: next(_GENERATIONS))


@dataclass
class Upload:
    """A resumable upload; `made` is what its last part was answered."""

    name: str
    marks: dict[str, str]
    data: bytearray = field(default_factory=bytearray)
    made: Answer | None = None


@dataclass
class Memory:
    """What a store holds; several addresses may lead to one."""

    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    blocks: dict[tuple[str, str], bytes] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def listed(self, asked: Mapping[str, str], after: str) -> tuple[list[tuple[str, bool]], str]:
        """A page of names, each with whether it is a prefix, and where the next one begins."""
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter")
        found: dict[str, bool] = {}
        for name in sorted(self.objects):
            rest = name.removeprefix(prefix)
            if name.startswith(prefix):
                above = delimiter is not None and delimiter in rest
                found[prefix + rest.split("/")[0] + "/" if above else name] = above
        left = [each for each in found.items() if each[0] > after]
        return left[:_PAGE], left[_PAGE - 1][0] if len(left) > _PAGE else ""


def _part(data: bytes, headers: Mapping[str, str]) -> Answer:
    place = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", ""))
    if place is None:
        return 200, [], data
    start = int(place[1])
    if start >= len(data):
        return 416, [], b""
    found = data[start : int(place[2]) + 1 if place[2] else None]
    said = f"bytes {start}-{start + len(found) - 1}/{len(data)}"
    return 206, [("Content-Range", said)], found


def _checked(data: bytes, said: str | None) -> None:
    if said is not None:
        assert base64.b64encode(hashlib.md5(data).digest()).decode() == said  # noqa: S324


class _InMemory:
    """Answers by itself: half of a request does nothing."""

    memory: Memory
    always: ClassVar[Mapping[str, str]] = {}
    """Headers of every answer."""
    said_again: ClassVar[tuple[str, ...]] = ()
    """Headers of requests that are in the answers, too."""
    _do: Callable[..., Answer]

    def forward(
        self, request: Request, _: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        place = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(place.query, keep_blank_values=True))
        lower = {name.lower(): value for name, value in headers.items()}
        with self.memory.lock:
            answer: Answer = getattr(self, f"_{request.name.lower()}")(
                place.path, asked, lower, body
            )
        status, said, found = answer
        again = [(name, lower[name]) for name in self.said_again if name in lower]
        return status, [*said, *self.always.items(), *again], found

    def _tear(self, *_: Any) -> None:
        pass


class MemoryGoogle(_InMemory, GoogleProxy):
    """One bucket."""

    def __init__(self, memory: Memory) -> None:
        super().__init__("")
        self.memory = memory

    def _name(self, path: str) -> str:
        return urllib.parse.unquote(path.rpartition("/o/")[2])

    def _resource(self, name: str) -> dict[str, Any]:
        found = self.memory.objects[name]
        known = {"name": name, "size": str(len(found.data)), "metadata": found.marks}
        return {**known, "generation": str(found.generation), "updated": "2026-01-02T03:04:05.678Z"}

    def _said(self, found: Any, status: int = 200) -> Answer:
        return status, [("Content-Type", "application/json")], json.dumps(found).encode()

    def _refused(self, status: int, message: str) -> Answer:
        return self._said({"error": {"code": status, "message": message}}, status)

    def _make(self, name: str, made: Stored, asked: Mapping[str, str]) -> Answer:
        if asked.get("ifGenerationMatch") == "0" and name in self.memory.objects:
            return self._refused(412, "At least one of the pre-conditions did not hold.")
        self.memory.objects[name] = made
        return self._said(self._resource(name))

    def _insert(self, _: str, asked: Any, headers: Any, body: bytes) -> Answer:
        boundary = headers["content-type"].partition("boundary=")[2].encode()
        _, about, media, _ = body.split(b"--" + boundary)
        resource = json.loads(about.partition(b"\r\n\r\n")[2])
        data = media.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        _checked(data, resource["md5Hash"])
        return self._make(resource["name"], Stored(data), asked)

    def _begin(self, _: str, asked: Any, __: Any, body: bytes) -> Answer:
        assert asked["ifGenerationMatch"] == "0"
        upload = f"u{next(_GENERATIONS)}"
        self.memory.uploads[upload] = Upload(asked["name"], json.loads(body).get("metadata", {}))
        return 200, [("Location", f"http://elsewhere/?upload_id={upload}")], b""

    def _chunk(self, _: str, asked: Any, headers: Any, body: bytes) -> Answer:
        upload = self.memory.uploads.get(asked["upload_id"])
        if upload is None:
            return self._refused(404, "No such upload")
        if upload.made is None:
            place = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", headers["content-range"])
            assert place is not None
            # bytes that are there are passed over
            if place[1] is not None and REPEATED not in headers:
                assert int(place[1]) == len(upload.data), "a part was sent again that is there"
                upload.data += body
            if place[2] == str(len(upload.data)):
                made = Stored(bytes(upload.data), upload.marks)
                upload.made = self._make(upload.name, made, {"ifGenerationMatch": "0"})
        there = [("Range", f"bytes=0-{len(upload.data) - 1}")] if upload.data else []
        return upload.made or (308, there, b"")

    _look = _chunk

    def _abandon(self, _: str, asked: Any, __: Any, ___: bytes) -> Answer:
        self.memory.uploads.pop(asked["upload_id"], None)
        return self._refused(499, "Client Closed Request")

    def _rewrite(self, path: str, asked: Any, _: Any, body: bytes) -> Answer:
        source, _, target = path.partition("/rewriteTo/")
        found = self.memory.objects.get(self._name(source))
        if found is None:
            return self._refused(404, "No such object")
        if asked["ifSourceGenerationMatch"] != str(found.generation):
            return self._refused(412, "At least one of the pre-conditions did not hold.")
        copied = Stored(found.data, json.loads(body)["metadata"])
        status, headers, said = self._make(self._name(target), copied, asked)
        if status != 200:
            return status, headers, said
        return self._said({"done": True, "resource": json.loads(said)})

    def _get(self, path: str, asked: Any, headers: Any, _: bytes) -> Answer:
        name = self._name(path)
        if name not in self.memory.objects:
            missing = f"No such object: bucket/{name}"
            if asked.get("alt") == "media":  # not in JSON
                return 404, [("Content-Type", "text/html; charset=UTF-8")], missing.encode()
            return self._refused(404, missing)
        if asked.get("alt") != "media":
            return self._said(self._resource(name))
        return _part(self.memory.objects[name].data, headers)

    def _list(self, _: str, asked: Any, __: Any, ___: bytes) -> Answer:
        found, following = self.memory.listed(asked, asked.get("pageToken", ""))
        answer: dict[str, Any] = {
            "kind": "storage#objects",
            "items": [self._resource(name) for name, above in found if not above],
            "prefixes": [name for name, above in found if above],
        }
        return self._said({**answer, "nextPageToken": following} if following else answer)

    def _delete(self, path: str, _: Any, __: Any, ___: bytes) -> Answer:
        if self.memory.objects.pop(self._name(path), None) is None:
            return self._refused(404, f"No such object: bucket/{self._name(path)}")
        return 204, [], b""


class MemoryAzure(_InMemory, AzureProxy):
    """One container of the emulator's account."""

    always: ClassVar[Mapping[str, str]] = {"x-ms-request-id": "of-memory"}
    said_again = ("x-ms-client-request-id",)

    def __init__(self, memory: Memory) -> None:
        super().__init__("")
        self.memory = memory

    def _name(self, path: str) -> str:
        return urllib.parse.unquote(path).split("/", 3)[3]

    def _refused(self, status: int, code: str) -> Answer:
        text = f"<Error><Code>{code}</Code><Message>as Azure says</Message></Error>"
        return status, [("x-ms-error-code", code)], text.encode()

    def _make(
        self, name: str, data: bytes, headers: Mapping[str, str], status: int = 201
    ) -> Answer:
        if headers.get("if-none-match") == "*" and name in self.memory.objects:
            return self._refused(409, "BlobAlreadyExists")
        marks = {key: value for key, value in headers.items() if key.startswith("x-ms-meta-")}
        made = self.memory.objects[name] = Stored(data, marks)
        said = [("ETag", f'"{made.generation}"')]
        return status, [*said, ("x-ms-copy-status", "success")] if status == 202 else said, b""

    def _putblob(self, path: str, _: Any, headers: Any, body: bytes) -> Answer:
        _checked(body, headers["content-md5"])
        return self._make(self._name(path), body, headers)

    def _putblock(self, path: str, asked: Any, headers: Any, body: bytes) -> Answer:
        _checked(body, headers["content-md5"])
        self.memory.blocks[self._name(path), asked["blockid"]] = body
        return 201, [], b""

    def _putblocklist(self, path: str, _: Any, headers: Any, body: bytes) -> Answer:
        name = self._name(path)
        wanted = re.findall(r"<Uncommitted>([^<]+)</Uncommitted>", body.decode())
        if any((name, block) not in self.memory.blocks for block in wanted):
            return self._refused(400, "InvalidBlockList")
        data = b"".join(self.memory.blocks[name, block] for block in wanted)
        answer = self._make(name, data, headers)
        if answer[0] == 201:
            self.memory.blocks = {k: v for k, v in self.memory.blocks.items() if k[0] != name}
        return answer

    def _copyblob(self, path: str, _: Any, headers: Any, __: bytes) -> Answer:
        source = self._name(urllib.parse.urlsplit(headers["x-ms-copy-source"]).path)
        found = self.memory.objects.get(source)
        if found is None:
            return self._refused(404, "CannotVerifyCopySource")
        if headers["x-ms-source-if-match"] != f'"{found.generation}"':
            return self._refused(412, "SourceConditionNotMet")
        return self._make(self._name(path), found.data, headers, 202)

    def _getblob(self, path: str, _: Any, headers: Any, __: bytes) -> Answer:
        found = self.memory.objects.get(self._name(path))
        if found is None:
            return self._refused(404, "BlobNotFound")
        status, said, data = _part(found.data, headers)
        known = {"ETag": f'"{found.generation}"', "Last-Modified": formatdate(1.7e9, usegmt=True)}
        length = {"Content-Length": str(len(data))}
        return status, [*said, *{**known, **length, **found.marks}.items()], data

    _headblob = _getblob

    def _deleteblob(self, path: str, _: Any, __: Any, ___: bytes) -> Answer:
        if self.memory.objects.pop(self._name(path), None) is None:
            return self._refused(404, "BlobNotFound")
        return 202, [], b""

    def _listblobs(self, _: str, asked: Any, __: Any, ___: bytes) -> Answer:
        found, following = self.memory.listed(asked, asked.get("marker", ""))
        text = "".join(self._entry(name, above=above) for name, above in found)
        text = f"<Blobs>{text}</Blobs><NextMarker>{escape(following)}</NextMarker>"
        return 200, [], f"<EnumerationResults>{text}</EnumerationResults>".encode()

    def _entry(self, name: str, *, above: bool) -> str:
        if above:
            return f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>"
        found = self.memory.objects[name]
        changed = formatdate(1.7e9, usegmt=True)
        known = f"<Last-Modified>{changed}</Last-Modified><Etag>{found.generation}</Etag>"
        known += f"<Content-Length>{len(found.data)}</Content-Length>"
        return f"<Blob><Name>{escape(name)}</Name><Properties>{known}</Properties></Blob>"


def _in_memory(
    kind: type[MemoryGoogle | MemoryAzure], direct: Mapping[str, str], place: str
) -> Addresses:
    memory = Memory()
    proxy, other = kind(memory), kind(memory)
    return Addresses(proxy, other, proxy.settings(direct), other.settings(direct), place)


def google_in_memory() -> Addresses:
    """Of a bucket of Google's."""
    return _in_memory(MemoryGoogle, {"gcs.no-auth": "true"}, "gs://bucket")


def azure_in_memory() -> Addresses:
    """Of a container of Azure's."""
    return _in_memory(MemoryAzure, {}, f"abfss://box@{EMULATOR_ACCOUNT}.dfs.core.windows.net")


class Faulty(NamedTuple):
    """A store behind a proxy, and the same without."""

    io: FileIO
    direct: FileIO
    place: str
    proxy: S3Proxy


@contextmanager
def opened(made: Addresses) -> Iterator[Faulty]:
    """What reads and writes files of a store, with four attempts a request."""
    io, direct = (
        FileIO({**each, "io.object-store.max-attempts": "4"})
        for each in (made.faulty, made.healthy)
    )
    yield Faulty(io, direct, made.place, made.proxy)
    for each in (made, io, direct):
        each.close()
