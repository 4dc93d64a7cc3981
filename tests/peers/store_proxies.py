"""The proxy of `s3_proxy` in front of Google's and Azure's stores."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from tests.peers.azurite import Azurite
from tests.peers.s3_proxy import Request, S3Proxy

Answer = tuple[int, list[tuple[str, str]], bytes]


class AzureProxy(S3Proxy):
    """In front of an Azurite: `PutBlob`, `PutBlock`, `PutBlockList`, `CopyBlob`, ..."""

    def settings(self, direct: Mapping[str, str]) -> dict[str, str]:
        return {**direct, **Azurite.settings_by(self.endpoint)}

    def named(self, method: str, path: str, headers: Any) -> Request:
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

    def named(self, method: str, path: str, headers: Any) -> Request:
        found = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(found.query))
        if found.path.startswith("/upload/"):
            name = {"POST": "Begin" if asked["uploadType"] == "resumable" else "Insert"}.get(
                method, "Abandon" if method == "DELETE" else "Chunk"
            )
            if headers.get("Content-Range", "").startswith("bytes */"):
                name = "Look"
        elif "/rewriteTo/" in found.path:
            name = "Rewrite"
        else:
            name = "List" if found.path.endswith("/o") else method.title()
        return Request(name, found.path, asked.get("ifGenerationMatch") == "0")

    def forward(
        self, request: Request, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        upload = asked.get("upload_id", "")
        if upload in self._made:
            return self._made[upload]
        there = self._there.get(upload, 0)
        if request.name == "Look":
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
