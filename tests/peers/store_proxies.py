"""The proxy of `s3_proxy` in front of Google's and Azure's stores."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.peers.azurite import Azurite
from tests.peers.s3_proxy import REPEATED, Request, S3Proxy

Answer = tuple[int, list[tuple[str, str]], bytes]


class Addresses(NamedTuple):
    """Two ways to one place in a store."""

    proxy: S3Proxy
    other: S3Proxy | None
    faulty: Mapping[str, str]
    healthy: Mapping[str, str]
    place: str

    def close(self) -> None:
        """Answer no more."""
        for each in (self.proxy, self.other):
            if each is not None:
                each.close()


class AzureProxy(S3Proxy):
    """In front of an Azurite: `PutBlob`, `PutBlock`, `PutBlockList`, `CopyBlob`, ..."""

    def settings(self, direct: Mapping[str, str]) -> dict[str, str]:
        return {**direct, **Azurite.settings_by(self.endpoint)}

    def named(self, method: str, path: str, headers: Any, body: bytes) -> Request:  # noqa: ARG002
        found = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(found.query))
        name = {"block": "PutBlock", "blocklist": "PutBlockList", "list": "ListBlobs"}.get(
            asked.get("comp", ""),
            "CopyBlob" if "x-ms-copy-source" in headers else f"{method.title()}Blob",
        )
        return Request(name, urllib.parse.unquote(found.path), "If-None-Match" in headers)


class GoogleProxy(S3Proxy):
    """In front of a fake-gcs-server: `Insert`, `Begin`, `Chunk`, `Look`, `Rewrite`, `Get`, ...

    How much of an upload is there it answers for the server, which takes that question for its end.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self._there: dict[str, int] = {}
        self._made: dict[str, Answer] = {}

    def settings(self, direct: Mapping[str, str]) -> dict[str, str]:
        return {**direct, "gcs.service.host": self.endpoint}

    def named(self, method: str, path: str, headers: Any, body: bytes) -> Request:
        found = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(found.query))
        place = urllib.parse.unquote(found.path)
        if found.path.startswith("/upload/"):
            name = {"POST": "Begin" if asked["uploadType"] == "resumable" else "Insert"}.get(
                method, "Abandon" if method == "DELETE" else "Chunk"
            )
            if headers.get("Content-Range", "").startswith("bytes */"):
                name = "Look"
            if name == "Insert" and (said := re.search(rb'\{"name": "[^"]*"', body)):
                place += f"/{json.loads(said[0] + b'}')['name']}"
        elif "/rewriteTo/" in found.path:
            name = "Rewrite"
        else:
            name = "List" if found.path.endswith("/o") else method.title()
        return Request(name, place, asked.get("ifGenerationMatch") == "0")

    def forward(
        self, request: Request, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        upload = asked.get("upload_id", "")
        if upload in self._made:
            return self._made[upload]
        there = self._there.get(upload, 0)
        # bytes that are there are passed over
        if request.name == "Look" or (request.name == "Chunk" and REPEATED in headers):
            said = [("Range", f"bytes=0-{there - 1}")] if there else []
            return 308, said, b""
        answer = super().forward(request, method, path, headers, body)
        if request.name == "Chunk":
            if answer[0] == 308:
                place = re.fullmatch(r"bytes (\d+)-(\d+)/\*", headers["Content-Range"])
                assert place is not None
                assert int(place[1]) == there, "a part was sent again that is there"
                self._there[upload] = int(place[2]) + 1
            elif answer[0] < 300:
                self._made[upload] = answer
        return answer


def behind(kind: type[S3Proxy], server: Any) -> Addresses:
    """A new place in a server, and the way to it by a proxy."""
    proxy = kind(server.endpoint)
    return Addresses(proxy, None, proxy.settings(server.settings), server.settings, server.place())
