"""Objects of S3 are read by boto3's connections and keys, without what it does around each request.

A plan is a thousand small reads, and boto3 takes 3 ms of a processor for one: it looks up where the
bucket is, and writes and parses what nobody asked for. So the first object is read by boto3, and
its request is the pattern of the others: the address of the bucket, the region it was signed for.
Whatever is not answered plainly is asked again by boto3, which knows what it means.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from icecomb.format.storage.file_system import is_missing

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client as BotoClient

_SIGNED: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/(?P<region>[^/]+)/s3/aws4_request,.*"
)
_SAFE: Final = "/~"
_GONE: Final = b"<Code>NoSuchKey</Code>"


class S3Reader:
    """One bucket's.

    Args:
        boto: A client; its requests for objects are looked at.
        credentials: Of its session; None if nobody asks.
    """

    def __init__(self, boto: BotoClient, credentials: Any) -> None:
        self._credentials = credentials
        self._session = boto._endpoint.http_session  # type: ignore[attr-defined]  # noqa: SLF001 - as its own requests go
        self._of_thread = threading.local()
        self._pattern: tuple[str, str] | None = None
        boto.meta.events.register("before-send.s3.GetObject", self._look)

    def read(self, key: str, location: str, asked: str | None) -> bytes | None:
        """Bytes of an object; None if boto3 is to be asked.

        Args:
            key: Its name.
            location: For messages.
            asked: The range, as HTTP says it; None is all.

        Raises:
            FileMissingError: there is none.
            BotoCoreError: the connection broke.
        """
        if self._pattern is None or self._credentials is None:
            return None
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest

        start, region = self._pattern
        request = AWSRequest("GET", f"{start}{quote(key, safe=_SAFE)}")
        if asked is not None:
            request.headers["Range"] = asked
        S3SigV4Auth(self._credentials.get_frozen_credentials(), "s3", region).add_auth(request)
        answer = self._session.send(request.prepare())
        if answer.status_code == (200 if asked is None else 206):
            found: bytes = answer.content
            return found
        if answer.status_code == 404 and _GONE in answer.content:
            raise is_missing(location)
        return None

    def learn(self, key: str) -> None:
        """Take the request by which this thread has just read an object for the pattern."""
        url, signature = getattr(self._of_thread, "seen", None) or ("", "")
        self._of_thread.seen = None
        name = quote(key, safe=_SAFE)
        match = _SIGNED.fullmatch(signature)
        if match is not None and url.endswith(f"/{name}"):
            self._pattern = url.removesuffix(name), match["region"]

    def _look(self, request: Any, **_: Any) -> None:
        signature = request.headers.get("Authorization", "")
        if isinstance(signature, bytes):
            signature = signature.decode()
        self._of_thread.seen = request.url, signature
