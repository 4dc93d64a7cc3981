"""Client of one bucket of S3, or of a compatible store, on top of boto3.

Whole objects are written and uploads completed with `If-None-Match: *`. boto3's own retries are
off: `creation` repeats requests.
Source: Amazon S3 API reference, PutObject, CompleteMultipartUpload, ListObjectsV2, DeleteObjects.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icecomb.format.errors import FileAlreadyExistsError, IcecombError, NoSuchFileError
from icecomb.format.optional_library import optional_library
from icecomb.format.secret import remember_setting, without_secrets
from icecomb.format.storage.object_store.client import (
    MarkedCompletion,
    ObjectClient,
    ObjectPage,
    ObjectStatus,
    PageTokens,
    PartUpload,
    StoreFacts,
    check_listed,
    content_md5,
    in_range,
    parsed,
    told,
    torn,
)
from icecomb.format.storage.object_store.creation import answered, copy_once, wait_before
from icecomb.format.storage.object_store.file_system import ObjectFileSystem
from icecomb.format.storage.object_store.s3_failure import (
    failed,
    has_request_id,
    is_of_store,
    is_passing,
    no_bucket,
    refused,
)
from icecomb.format.storage.object_store.s3_session import boto_session
from icecomb.format.storage.object_store.s3_settings import S3Settings

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from types_boto3_s3.client import S3Client as BotoClient

T = TypeVar("T")

SCHEMES: Final = ("s3", "s3a", "s3n")
_OURS: Final = "icecomb-made-by"
"""Metadata by which the creator of an object recognizes it."""
_COPIED: Final = 5 << 30
"""Maximum number of bytes that one request copies."""
_SHOWN: Final = 4
_SOURCES: Final = {
    "env": "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "shared-credentials-file": "~/.aws/credentials",
    "config-file": "~/.aws/config",
    "assume-role": "a role, renewed automatically",
    "assume-role-with-web-identity": "a web identity, renewed automatically",
    "iam-role": "the role of this machine, renewed automatically",
    "container-role": "the role of this container, renewed automatically",
    "custom-process": "a program that ~/.aws/config names",
    "sso": "aws sso login",
}
"""Descriptions of boto3's sources of keys, by its own names."""


class S3FileSystem(ObjectFileSystem):
    """S3 buckets, under `s3://`, `s3a://` and `s3n://`."""

    scheme = "s3"
    schemes = SCHEMES
    store = "S3"
    example = "s3://bucket/key, or s3a://bucket/key"

    def connect(self, start: str) -> ObjectClient:
        """Implement `ObjectFileSystem.connect`."""
        # Hadoop once took keys from there: boto3 quotes the bucket
        remember_setting("location", start)
        bucket = start.partition("://")[2].rstrip("/")
        settings = S3Settings.of(self._properties, bucket)
        return S3Client(bucket, settings, at_once=self.at_once, attempts=self._attempts)


class S3Client(ObjectClient):
    """A client of one bucket; `attempts` limits those of requests that are safe to repeat."""

    def __init__(self, bucket: str, settings: S3Settings, *, at_once: int, attempts: int) -> None:
        optional_library("boto3", "S3 needs boto3", "icecomb[s3]")
        self.bucket = bucket
        self.settings = settings
        self._written: Mapping[str, Any] = settings.written
        with _failures("open", f"s3://{bucket}"):
            self._session = boto_session(settings)
            self._boto = _boto_client(self._session, settings, at_once)
        self._attempts = attempts

    def close(self) -> None:
        """Implement `ObjectClient.close`."""
        self._boto.close()

    def _ask(self, verb: str, location: str, ask: Callable[[], T]) -> T:
        """Return the response to a request that is safe to repeat."""
        return _asked(verb, location, ask, self._attempts)

    def facts(self, location: str) -> StoreFacts:
        """Implement `ObjectClient.facts` by a request for the bucket's region."""
        try:
            with _failures("access", location):
                keys = self._session.get_credentials()
                return s3_facts(self._boto, keys, self.settings, self.bucket)
        except NoSuchFileError as error:
            raise no_bucket("access", location) from error

    def status(self, key: str, location: str) -> ObjectStatus:
        """Implement `ObjectClient.status`."""
        of = {"Bucket": self.bucket, "Key": key}

        def found() -> ObjectStatus:
            head = _head(self._boto, of, location)
            changed = int(head["LastModified"].timestamp() * 1000)
            return ObjectStatus(key, head["ContentLength"], changed, head["ETag"].strip('"'))

        return self._ask("access", location, found)

    def read(self, key: str, location: str, start: int = 0, length: int | None = None) -> bytes:
        """Implement `ObjectClient.read`; a truncated body is fetched again."""
        from botocore.exceptions import ClientError

        if length == 0:
            return b""
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Key": key}
        if start or length is not None:
            end = "" if length is None else str(start + length - 1)
            wanted["Range"] = f"bytes={start}-{end}"

        def fetch() -> bytes:
            try:
                found = self._boto.get_object(**wanted)
            except ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                if status == 416 and "Range" in wanted:
                    return b""
                _check_missing(self._boto, {"Bucket": self.bucket, "Key": key}, error)
                raise
            headers = found["ResponseMetadata"]["HTTPHeaders"]
            with closing(found["Body"]) as body:
                if not {"content-length", "transfer-encoding"} & set(headers):
                    raise torn("read", location, "length")
                whole = found["ResponseMetadata"]["HTTPStatusCode"] == 200
                said = found.get("ContentRange")
                return in_range(body.read, said, location, start, length, whole=whole)

        return self._ask("read", location, fetch)

    def put(self, key: str, location: str, data: bytes | bytearray, *, replace: bool) -> None:
        """Implement `ObjectClient.put`."""
        condition: dict[str, Any] = {} if replace else {"IfNoneMatch": "*"}
        md5 = content_md5(data)
        with _failures("create", location):
            done = self._boto.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=bytes(data),
                ContentMD5=md5,
                **condition,
                **self._written,
            )
        etag = done.get("ETag", "").removeprefix("W/").strip('"')
        if etag != base64.b64decode(md5).hex():
            self._check_made(ObjectStatus(key, len(data), 0, etag), location)

    def _check_made(self, made: ObjectStatus, location: str) -> None:
        """Check that the report of a created object came from S3, else raise AnswerLostError.

        A login page has an ETag, too, and a proxy may mix up responses. S3's ETag is the MD5, or
        another one that the stored object has, if it is encrypted, for example.
        """
        with suppress(NoSuchFileError):
            found = self.status(made.key, location)
            if made.etag and (found.etag, found.size) == (made.etag, made.size):
                return
        raise torn("create", location, "ETag")

    def begin_upload(self, key: str, location: str) -> PartUpload:
        """Implement `ObjectClient.begin_upload`."""
        return self._upload(key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """Implement `ObjectClient.copy` by an upload of copied parts, completed conditionally."""
        if not source.size and self.read(source.key, location):
            # an empty part is sent, not copied, so `CopySourceIfMatch` cannot check the source
            raise _replaced(source)
        upload = self._upload(key, location)
        try:
            for number, start in enumerate(range(0, max(source.size, 1), _COPIED), 1):
                upload.copy(number, source, start, min(_COPIED, source.size - start))
            copy_once(upload, location, self._attempts)
        except BaseException:
            upload.abort()
            raise

    def _upload(self, key: str, location: str) -> _S3Upload:
        of = {"Bucket": self.bucket, "Key": key}
        return _S3Upload(self._boto, of, location, written=self._written, attempts=self._attempts)

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """Implement `ObjectClient.pages`."""
        asked: dict[str, Any] = {"Bucket": self.bucket, "Prefix": prefix}
        if not below:
            asked["Delimiter"] = "/"
        tokens = PageTokens(location)

        def listed() -> tuple[ObjectPage, str | None]:
            found = self._list(asked, location)
            following = found["NextContinuationToken"] if found.get("IsTruncated") else None
            tokens.check(following)
            objects = [
                ObjectStatus(
                    each["Key"],
                    each["Size"],
                    int(each["LastModified"].timestamp() * 1000),
                    each.get("ETag", "").strip('"'),
                )
                for each in found.get("Contents", [])
            ]
            prefixes = [each["Prefix"] for each in found.get("CommonPrefixes", [])]
            return ObjectPage(objects, prefixes), following

        while True:
            page, following = self._ask("list", location, listed)
            yield page
            if following is None:
                return
            tokens.add(following, page)
            asked["ContinuationToken"] = following

    def has_any(self, prefix: str, location: str) -> bool:
        """Implement `ObjectClient.has_any` by listing a single key."""
        asked = {"Bucket": self.bucket, "Prefix": prefix, "MaxKeys": 1}
        found = self._ask("list", location, partial(self._list, asked, location))
        return bool(found.get("Contents"))

    def _list(self, asked: Mapping[str, Any], location: str) -> Any:
        found = self._boto.list_objects_v2(**asked)
        if "Name" not in found:
            raise torn("list", location, "name of the bucket")
        # an empty list fits any request, so compare the prefix and token that it echoes
        page = asked.get("ContinuationToken")
        if found.get("Prefix", asked["Prefix"]) != asked["Prefix"] or (
            found.get("ContinuationToken", page) != page
        ):
            raise torn("list", location, "requested prefix or page")
        names = [
            *(each["Key"] for each in found.get("Contents", [])),
            *(each["Prefix"] for each in found.get("CommonPrefixes", [])),
        ]
        check_listed(names, asked["Prefix"], location)
        return found

    def delete(self, keys: Sequence[str], location: str) -> dict[str, str]:
        """Implement `ObjectClient.delete`."""
        if len(keys) == 1:
            self._ask("delete", location, partial(self._delete_one, keys[0], location))
            return {}
        refused: dict[str, str] = {}
        waiting: Sequence[str] = keys
        for attempt in range(1, self._attempts + 1):
            errors = self._ask("delete", location, partial(self._delete_many, waiting, location))
            for key, (code, text) in errors.items():
                refused[key] = told(f"{code}: {text}")
            waiting = [key for key, (code, _) in errors.items() if is_passing(code)]
            if not waiting or attempt == self._attempts:
                break
            # these failed only because the store was busy
            for key in waiting:
                del refused[key]
            wait_before(attempt)
        return refused

    def _delete_one(self, key: str, location: str) -> None:
        found: Any = self._boto.delete_object(Bucket=self.bucket, Key=key)
        said = found["ResponseMetadata"]
        if said["HTTPStatusCode"] != 204 and not has_request_id(said):
            raise torn("delete", location, "request id")

    def _delete_many(self, keys: Sequence[str], location: str) -> dict[str, tuple[str, str]]:
        """Request deletions; return codes and messages of those refused, by key.

        Every key must be named as deleted or refused, which a response that is empty, or belongs
        to another request, does not do. Nothing is ever deleted because a response names it.
        """
        found: Any = self._boto.delete_objects(
            Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys]}
        )
        errors = {
            each["Key"]: (each.get("Code", ""), each.get("Message", ""))
            for each in found.get("Errors", [])
        }
        if {*errors, *(each["Key"] for each in found.get("Deleted", []))} != {*keys}:
            raise torn("delete", location, "requested keys")
        return {key: why for key, why in errors.items() if why[0] != "NoSuchKey"}


class _S3Upload(MarkedCompletion, PartUpload):
    """A multipart upload.

    Args:
        of: Bucket and key, as arguments of boto3.
        written: Further arguments of boto3 for the object: encryption, class, ACL, tags.
        attempts: Maximum number of attempts of requests that are safe to repeat.
    """

    def __init__(
        self,
        boto: BotoClient,
        of: Mapping[str, Any],
        location: str,
        *,
        written: Mapping[str, Any],
        attempts: int,
    ) -> None:
        super().__init__()
        self._boto = boto
        self._of = dict(of)
        self._location = location
        self._attempts = attempts
        self._etags: dict[int, str] = {}
        self._begun = 0
        begun = self._ask("create", partial(self._begin, written))
        self._id: dict[str, Any] = {"UploadId": begun["UploadId"]}

    def _ask(self, verb: str, ask: Callable[[], T]) -> T:
        return _asked(verb, self._location, ask, self._attempts)

    def _begin(self, written: Mapping[str, Any]) -> Any:
        self._begun += 1
        found = self._boto.create_multipart_upload(
            **self._of, Metadata={_OURS: self.mark}, **written
        )
        return self._checked("create", found, "UploadId")

    def _checked(self, verb: str, found: Any, name: str) -> Any:
        """Return a response after checking that it is complete and about this object.

        AnswerLostError is raised if it is not.
        """
        if name not in found or found.get("Key", self._of["Key"]) != self._of["Key"]:
            raise torn(verb, self._location, name)
        return found

    def send(self, number: int, data: bytes | bytearray) -> None:
        digest, body = content_md5(data), bytes(data)

        def sent() -> Any:
            found = self._boto.upload_part(
                **self._of, **self._id, PartNumber=number, Body=body, ContentMD5=digest
            )
            return self._checked("write", found, "ETag")

        self._etags[number] = self._ask("write", sent)["ETag"]

    def copy(self, number: int, source: ObjectStatus, start: int, length: int) -> None:
        """Create a part from bytes of another object."""
        if not length:
            self.send(number, b"")
            return

        def copied() -> Any:
            try:
                found = self._boto.upload_part_copy(
                    **self._of,
                    **self._id,
                    PartNumber=number,
                    CopySource={"Bucket": self._of["Bucket"], "Key": source.key},
                    CopySourceIfMatch=source.etag,
                    CopySourceRange=f"bytes={start}-{start + length - 1}",
                )
            except self._boto.exceptions.ClientError as error:
                if isinstance(refused("copy to", self._location, error), FileAlreadyExistsError):
                    raise _replaced(source) from error
                raise
            return self._checked("copy to", found.get("CopyPartResult", {}), "ETag")

        self._etags[number] = self._ask("copy to", copied)["ETag"]

    def complete(self) -> None:
        parts = [{"PartNumber": n, "ETag": etag} for n, etag in sorted(self._etags.items())]
        with _failures("create", self._location):
            found = self._boto.complete_multipart_upload(
                **self._of,
                **self._id,
                IfNoneMatch="*",
                MultipartUpload={"Parts": parts},  # type: ignore[typeddict-item]
            )
        # S3 responds before it is done: without a body nothing was created
        self._checked("create", found, "ETag")
        self._abort_earlier_uploads()

    def found_mark(self) -> str | None:
        def found() -> str | None:
            mark: str | None = _head(self._boto, self._of, self._location)["Metadata"].get(_OURS)
            return mark

        return self._ask("access", found)

    def abort(self) -> None:
        with suppress(IcecombError):
            self._ask("abandon", partial(self._abort, self._id["UploadId"]))
        self._abort_earlier_uploads()

    def _abort(self, number: str) -> None:
        with suppress(self._boto.exceptions.NoSuchUpload):
            self._boto.abort_multipart_upload(**self._of, UploadId=number)

    def _abort_earlier_uploads(self) -> None:
        """Abort earlier uploads of this object whose id was in a lost response."""
        if self._begun == 1:
            return
        with suppress(IcecombError), parsed("abandon", self._location):
            found: Any = self._ask(
                "abandon",
                lambda: self._boto.list_multipart_uploads(
                    Bucket=self._of["Bucket"], Prefix=self._of["Key"]
                ),
            )
            for each in found.get("Uploads", []):
                if each["Key"] == self._of["Key"] and each["UploadId"] != self._id["UploadId"]:
                    self._ask("abandon", partial(self._abort, each["UploadId"]))


def _replaced(source: ObjectStatus) -> NoSuchFileError:
    return NoSuchFileError(
        f"Cannot copy {source.key}: it was replaced in the meantime",
        hint="Check who else writes there, and try again.",
        path=source.key,
    )


def _check_missing(boto: BotoClient, of: Mapping[str, Any], error: ClientError) -> None:
    """Check with the store whether an object is missing if a proxy may have reported it.

    A listing is a response in XML, even from stores whose router rejects some keys. ClientError
    (`NoSuchKey`) is raised if the store has no such object.
    """
    said = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if status != 404 or not said.isdecimal():
        return
    found = boto.list_objects_v2(Bucket=of["Bucket"], Prefix=of["Key"], MaxKeys=1)
    if "Name" in found and of["Key"] not in {each["Key"] for each in found.get("Contents", [])}:
        unnamed: Any = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
        raise type(error)(unnamed, error.operation_name) from error


def _head(boto: BotoClient, of: Mapping[str, Any], location: str) -> Any:
    """Request the status of an object; AnswerLostError if the response is incomplete."""
    from botocore.exceptions import ClientError

    try:
        found = boto.head_object(**of)
    except ClientError as error:
        if not is_of_store(error):
            _check_missing(boto, of, error)
        raise
    for name in ("ContentLength", "LastModified", "ETag"):
        if name not in found:
            raise torn("access", location, name)
    return found


def _boto_client(session: Any, settings: S3Settings, at_once: int) -> BotoClient:
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.handlers import add_expect_header

    style: Any = {None: "auto", True: "path", False: "virtual"}[settings.path_style]
    client: BotoClient = session.client(
        "s3",
        endpoint_url=settings.endpoint,
        region_name=settings.region or session.region_name or "us-east-1",
        verify=settings.ca_path,
        config=Config(
            signature_version=UNSIGNED if settings.anonymous else None,
            s3={"addressing_style": style},
            # `creation` knows which requests are safe to repeat
            retries={"mode": "standard", "total_max_attempts": 1},
            max_pool_connections=at_once + 8,
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.request_timeout_s,
            proxies={"http": settings.proxy, "https": settings.proxy} if settings.proxy else None,
            # compatible stores often support no checksum but MD5, which is sent
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            user_agent_extra="icecomb",
        ),
    )
    # bodies are small and in memory: `Expect: 100-continue` would cost a round trip for each
    client.meta.events.unregister("before-call.s3", add_expect_header)
    _look_for_region_once(client)
    return client


def _look_for_region_once(client: Any) -> None:
    """Keep botocore from requesting the region of a bucket recursively.

    It requests by HEAD the region that a redirect does not name; if that request is redirected
    likewise, it repeats it until the stack overflows.
    """
    from botocore.exceptions import ClientError

    head_bucket, asking = client.head_bucket, threading.local()

    def once(**wanted: Any) -> Any:
        if getattr(asking, "now", False):
            unnamed: Any = {"Error": {"Code": "301"}, "ResponseMetadata": {"HTTPHeaders": {}}}
            raise ClientError(unnamed, "HeadBucket")
        asking.now = True
        try:
            return head_bucket(**wanted)
        finally:
            asking.now = False

    client.head_bucket = once


def _asked(verb: str, location: str, ask: Callable[[], T], attempts: int) -> T:
    def once() -> T:
        with _failures(verb, location):
            return ask()

    return answered(once, attempts)


@contextmanager
def _failures(verb: str, location: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    with parsed(verb, location):
        try:
            yield
        except IcecombError:
            raise
        except ClientError as error:
            _hide(error)
            raise refused(verb, location, error) from error
        except (BotoCoreError, ResponseParserError, HTTPError, OSError) as error:
            _hide(error)
            raise failed(verb, location, error) from error


def _hide(error: BaseException | None) -> None:
    """Hide secrets in the texts of exceptions, which quote what servers say."""
    while error is not None:
        error.args = tuple(
            without_secrets(each) if isinstance(each, str) else each for each in error.args
        )
        error = error.__cause__ or error.__context__


def s3_facts(boto: BotoClient, credentials: Any, settings: S3Settings, bucket: str) -> StoreFacts:
    """Return the facts, after a request for the bucket; `credentials` are None if not found."""
    who, source = _identity(credentials, settings)
    answer: Any = boto.head_bucket(Bucket=bucket)
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    region = answer.get("BucketRegion") or headers.get("x-amz-bucket-region")
    remarks = []
    if region and settings.region and settings.region != region:
        remarks.append(
            f"{settings.sources.get('region', 's3.region')} is {settings.region}, but the bucket "
            f"is in {region}: set s3.region={region}"
        )
    return StoreFacts(
        where=without_secrets(boto.meta.endpoint_url),
        who=who,
        source=source,
        region=region or boto.meta.region_name,
        clock_ahead_s=_clock_ahead(headers.get("date")),
        remarks=remarks,
    )


def _identity(credentials: Any, settings: S3Settings) -> tuple[str, str]:
    if settings.anonymous:
        return "nobody", settings.sources.get("anonymous", "s3.anonymous")
    if credentials is None:
        return "nobody", "no keys were found"
    method = credentials.method
    key = f"key ...{credentials.get_frozen_credentials().access_key[-_SHOWN:]}"
    if settings.role_arn is not None:
        return f"{settings.role_arn}, {key}", settings.sources.get("role_arn", "s3.role-arn")
    if settings.access_key is not None:
        return key, settings.sources.get("access_key", "s3.access-key-id")
    source = _SOURCES.get(method, method)
    return key, f"{source}, profile {settings.profile}" if settings.profile else source


def _clock_ahead(date: str | None) -> float | None:
    return time.time() - parsedate_to_datetime(date).timestamp() if date else None
