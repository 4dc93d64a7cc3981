"""Parsers of what stores answer over HTTP: S3, Google, Azure, HDFS."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs.file_system import HdfsFileSystem
from icecomb.format.storage.hdfs.name_node import name_nodes
from icecomb.format.storage.object_store.azure import AzureClient
from icecomb.format.storage.object_store.azure_settings import EMULATOR_ACCOUNT, AzureSettings
from icecomb.format.storage.object_store.client import ObjectClient, ObjectStatus
from icecomb.format.storage.object_store.google import GoogleClient
from icecomb.format.storage.object_store.google_settings import GoogleSettings
from icecomb.format.storage.object_store.s3 import S3Client
from icecomb.format.storage.object_store.s3_settings import S3Settings
from tests.hostile.journals import tried
from tests.hostile.mutation import (
    DEEP,
    JSON,
    changed_bytes,
    changed_json,
    changed_text,
    changed_xml,
)
from tests.hostile.parser import Parser, Sound

DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
Change = Callable[[random.Random, bytes], bytes]


class Store:
    """A server of one answer, head and body: to each request, until the connection is closed."""

    def __init__(self) -> None:
        self.answer = b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            one, _ = self.socket.accept()
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    def _talk(self, one: socket.socket) -> None:
        with one, suppress(OSError, ValueError), one.makefile("rb") as source:
            while line := source.readline():
                size = 0
                while (header := source.readline().lower()) not in {b"\r\n", b""}:
                    if header.startswith(b"content-length:"):
                        size = int(header.partition(b":")[2])
                source.read(size)
                head, _, body = self.answer.partition(b"\r\n\r\n")
                if line.startswith(b"HEAD"):
                    body = b""
                if b"content-length" not in head.lower():
                    head += b"\r\nContent-Length: %d" % len(body)
                one.sendall(head + b"\r\n\r\n" + body)


def said(status: int, body: bytes, **headers: str) -> bytes:
    """An answer, without its length."""
    lines = [f"HTTP/1.1 {status} X", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def body_changed(change: Change) -> Change:
    def changed(draw: random.Random, data: bytes) -> bytes:
        head, between, body = data.partition(b"\r\n\r\n")
        return head + between + (change(draw, body) if body else changed_bytes(draw, body))

    return changed


def head_changed(draw: random.Random, data: bytes) -> bytes:
    """The same with another head: statuses, lengths, dates, tags."""
    head, between, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    at = draw.randrange(len(lines))
    if at == 0:
        status = draw.choice([200, 204, 206, 301, 308, 404, 409, 412, 416, 429, 500, 503, 999, 100])
        lines[0] = b"HTTP/1.1 %d X" % status
    elif draw.random() < 0.3:
        del lines[at]
    else:
        name, _, value = lines[at].partition(b": ")
        changed = changed_text(draw, value).replace(b"\r", b"").replace(b"\n", b"")
        lines[at] = name + b": " + changed[:60_000]
    if draw.random() < 0.2:
        lines.append(draw.choice([
            b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Range: bytes 0-1/\xff",
            b"Content-Encoding: gzip", b"Range: bytes=0-99999999999999999999999", b"Location: \xff://[",
            b"x-ms-copy-status: failed", b"Content-Length: x",
        ]))  # fmt: skip
    return b"\r\n".join(lines) + between + body


def asked(client: ObjectClient) -> object:
    """All that icecomb asks of a bucket."""
    at, of = "store://b/a/x", ObjectStatus("a/x", 4, 1_704_067_200_000, "e")

    def uploaded() -> None:
        upload = client.begin_upload("a/x", at)
        try:
            upload.send(1, b"data")
            upload.complete()
            upload.found_mark()
        finally:
            upload.abort()

    return tried(
        lambda: list(client.pages("a/", at, below=True)),
        lambda: list(client.pages("a/", at, below=False)),
        lambda: client.has_any("a/", at),
        lambda: client.status("a/x", at),
        lambda: client.read("a/x", at),
        lambda: client.read("a/x", at, 1, 3),
        lambda: client.put("a/x", at, b"data", replace=False),
        lambda: client.delete(["a/x"], at),
        lambda: client.delete(["a/x", "a/y"], at),
        lambda: client.copy(of, "a/y", at),
        uploaded,
        lambda: client.facts(at),
    )


def of_store(client: Callable[[str], ObjectClient], seeds: list[bytes], *changes: Change) -> Parser:
    server = Store()

    def read(data: bytes) -> object:
        server.answer = data
        asking = client(server.address)
        try:
            return asked(asking)
        finally:
            asking.close()

    return Parser(seeds, read, (*map(body_changed, changes), head_changed), refuses=True)


def google_answers(made: Sound) -> Parser:
    del made
    marks = {"Date": DATE, "x_guploader_uploadid": "1", "Location": "http://h/u?upload_id=7"}
    one = {"name": "a/x", "size": "4", "updated": "2024-01-01T00:00:00.000Z", "generation": "1"}
    page = {
        "kind": "storage#objects",
        "prefixes": ["a/b/"],
        "items": [one, one],
        "nextPageToken": "t",
    }
    copied = {"done": True, "resource": one, "objectSize": "4", "totalBytesRewritten": "4"}
    refused = {"error": {"code": 404, "message": "No such object: b/a"}}
    seeds = [
        said(200, json.dumps({**one, **page, **copied, "metadata": {}}).encode(), **marks),
        said(200, json.dumps(one).encode(), **marks),
        said(404, json.dumps(refused).encode(), **marks),
        said(308, b"", Range="bytes=0-1", **marks),
        said(206, b"ata", Content_Range="bytes 1-3/4", **marks),
    ]

    def client(address: str) -> GoogleClient:
        told = {"gcs.service.host": f"http://{address}", "gcs.no-auth": "true"}
        return GoogleClient("b", GoogleSettings.of(told, "b"), at_once=1, attempts=1)

    def changed(draw: random.Random, body: bytes) -> bytes:
        return changed_json(draw, body) if body.startswith(b"{") else changed_bytes(draw, body)

    return of_store(client, seeds, changed, changed_bytes)


def azure_answers(made: Sound) -> Parser:
    del made
    marks = {"Date": DATE, "x_ms_request_id": "1", "ETag": '"e"', "Last_Modified": DATE}
    marks |= {"x_ms_version": "2021-08-06", "x_ms_copy_status": "success", "x_ms_copy_id": "1"}
    blob = (
        "<Blob><Name>a/x</Name><Properties><Content-Length>4</Content-Length><Last-Modified>"
        f"{DATE}</Last-Modified><Etag>e</Etag></Properties><Metadata><m>1</m></Metadata></Blob>"
    )
    page = (
        f"<EnumerationResults><Blobs>{blob}{blob}<BlobPrefix><Name>a/b/</Name></BlobPrefix>"
        '<Blob><Name Encoded="true">a/%20</Name></Blob></Blobs><NextMarker>t</NextMarker>'
        "</EnumerationResults>"
    )
    error = b"<Error><Code>BlobNotFound</Code><Message>none\nx</Message></Error>"
    seeds = [
        said(200, page.encode(), **marks),
        said(404, error, **marks, x_ms_error_code="BlobNotFound"),
        said(206, b"ata", Content_Range="bytes 1-3/4", **marks),
    ]

    def client(address: str) -> AzureClient:
        where = f"UseDevelopmentStorage=true;BlobEndpoint=http://{address}/{EMULATOR_ACCOUNT}"
        settings = AzureSettings.of({"adls.connection-string": where}, "b", "")
        return AzureClient("b", settings, at_once=1, attempts=1)

    def changed(draw: random.Random, body: bytes) -> bytes:
        return changed_xml(draw, body) if body.startswith(b"<") else changed_bytes(draw, body)

    return of_store(client, seeds, changed, changed_bytes)


def s3_answers(made: Sound) -> Parser:
    del made
    marks = {"Date": DATE, "x_amz_request_id": "1", "ETag": '"e"', "Last_Modified": DATE}
    one = "<Key>a/x</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>e</ETag><Size>4</Size>"
    page = (
        "<ListBucketResult><Name>b</Name><Prefix>a/</Prefix><KeyCount>2</KeyCount>"
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        f"<Contents>{one}</Contents><Contents>{one}</Contents>"
        "<CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes></ListBucketResult>"
    )
    begun = (
        "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>a/x</Key><UploadId>7</UploadId>"
        "<ETag>e</ETag></InitiateMultipartUploadResult>"
    )
    deleted = (
        "<DeleteResult><Deleted><Key>a/x</Key></Deleted><Error><Key>a/y</Key><Code>AccessDenied</Code>"
        "<Message>no</Message></Error></DeleteResult>"
    )
    error = "<Error><Code>NoSuchKey</Code><Message>none</Message><Key>a/x</Key></Error>"
    seeds = [said(200, text.encode(), **marks) for text in (page, begun, deleted)]
    seeds.append(said(404, error.encode(), **marks))
    seeds.append(said(206, b"ata", Content_Range="bytes 1-3/4", **marks))

    def client(address: str) -> S3Client:
        told = {"s3.endpoint": f"http://{address}", "s3.access-key-id": "k"}
        told |= {
            "s3.secret-access-key": "s",
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
        }
        return S3Client("b", S3Settings.of(told, "b"), at_once=1, attempts=1)

    def changed(draw: random.Random, body: bytes) -> bytes:
        return changed_xml(draw, body) if body.startswith(b"<") else changed_bytes(draw, body)

    return of_store(client, seeds, changed, changed_bytes)


QUICK = {
    "dfs.client.failover.max.attempts": "1",
    "dfs.webhdfs.socket.read-timeout": "500ms",
    "hdfs.user": "u",
}


def web_hdfs(made: Sound) -> Parser:
    """Statuses, lists, summaries, snapshots, metrics and refusals of name nodes."""
    del made
    server = Store()
    told = {"Content_Type": "application/json"}
    status = {
        "accessTime": 1, "blockSize": 1, "childrenNum": 0, "fileId": 7, "group": "g", "length": 3,
        "modificationTime": 1, "owner": "o", "pathSuffix": "x", "permission": "644",
        "replication": 1, "storagePolicy": 0, "type": "FILE",
    }  # fmt: skip
    summary = {"directoryCount": 1, "fileCount": 2, "length": 3, "quota": -1, "spaceConsumed": 4}
    kept = {"dirStatus": status, "parentFullPath": "/", "snapshotNumber": 1, "snapshotQuota": 9}
    bean = {"State": "active", "LiveNodes": '{"h:1": {"infoAddr": "h:2", "lastContact": 1}}',
            "CapacityTotal": 9, "Safemode": ""}  # fmt: skip
    refused = {"exception": "FileNotFoundException", "javaClassName": "x", "message": "m"}
    found: list[Any] = [
        {"FileStatus": status},
        {"FileStatuses": {"FileStatus": [status, status]}},
        {"ContentSummary": summary},
        {"SnapshottableDirectoryList": [kept, kept]},
        {"beans": [bean]},
        {"Path": "/user/u/.Trash"},
        {"boolean": True},
    ]
    seeds = [said(200, json.dumps(one).encode(), **told) for one in found]
    seeds.append(said(404, json.dumps({"RemoteException": refused}).encode(), **told))
    deep = [said(200, text, **told) for text in DEEP]

    def read(data: bytes) -> object:
        server.answer = data
        io = FileIO(QUICK)
        at = f"webhdfs://{server.address}/x"
        system = io.served_by(at)
        assert isinstance(system, HdfsFileSystem)
        web, _ = system.cluster(at)
        try:
            return tried(
                lambda: io.size(at),
                lambda: io.exists(at),
                lambda: list(io.entries(at).files),
                lambda: web.content_summary("/x", at),
                lambda: web.trash_root("/x", at),
                lambda: web.snapshotted_folder("/x", at),
                lambda: name_nodes(web),
                lambda: web.delete("/x", at),
                lambda: web.make_folder("/x", at),
            )
        finally:
            io.close()

    changes = (body_changed(JSON[0]), body_changed(JSON[1]), head_changed)
    return Parser(seeds, read, changes, lambda: deep, refuses=True)
