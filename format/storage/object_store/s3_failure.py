"""Conversion of S3's error responses and boto3's exceptions to icecomb's errors.

Only S3's own responses in XML prove that a request was not executed, or that a key is missing. A
proxy responds on its own: its 503 or 404 in plain text does not tell what S3 has done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ConfigurationError, FileIOError, IcecombError
from icecomb.format.printable_text import printable
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    StoreBusyError,
    is_untrusted,
    told,
    too_busy,
)

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_MISSING: Final = {"NoSuchKey", "NoSuchUpload"}
_EXISTS: Final = {"PreconditionFailed"}
_BUSY: Final = {
    "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests",
    "ConditionalRequestConflict", "OperationAborted", "BandwidthLimitExceeded",
}  # fmt: skip
"""Errors of requests that were not executed and may be repeated later."""
_LOST: Final = {"InternalError", "RequestTimeout", "ServiceUnavailable"}
_REQUEST_IDS: Final = ("x-amz-request-id", "x-amzn-requestid", "x-amz-id-2")
"""Headers that identify a response without a body as a store's."""
_SEE_KEYS: Final = "check which keys are used: icecomb doctor shows their source"
_ADVICE: Final = {
    "NoSuchBucket": "There is no such bucket there: check its name, s3.endpoint and s3.region.",
    "AccessDenied": "Allow it to this key or role by a policy of the bucket or of IAM.",
    "AllAccessDisabled": "The bucket's owner has disabled all access.",
    "InvalidAccessKeyId": f"The store does not know this access key; {_SEE_KEYS}.",
    "SignatureDoesNotMatch": f"The secret does not belong to the access key; {_SEE_KEYS}.",
    "ExpiredToken": "The session token has expired: get a new one, or use a profile or role, which "
    "is renewed automatically.",
    "InvalidToken": f"The session token does not belong to the access key; {_SEE_KEYS}.",
    "RequestTimeTooSkewed": "This machine's clock is wrong by more than 15 minutes: set it.",
    "AuthorizationHeaderMalformed": "The bucket is in another region: set s3.region.",
    "PermanentRedirect": "The bucket is in another region: set s3.region, or s3.endpoint.",
    "InvalidBucketName": "A bucket's name has 3 to 63 lower-case letters, digits, dots "
    "and hyphens.",
    "KeyTooLongError": "A key has at most 1,024 bytes.",
    "EntityTooLarge": "The store accepts no object of this size.",
    "KMS.DisabledException": "The key of s3.sse.key is disabled.",
    "InvalidObjectState": "The object is archived: restore it first.",
    "MethodNotAllowed": "The store does not support this request, or the bucket forbids it.",
    "NotImplemented": "The store does not support this request.",
    "InvalidRequest": "The bucket or the store does not allow this request.",
    "BadDigest": "The bytes were damaged in transit: try again.",
    "IncompleteBody": "The bytes did not all arrive: try again.",
    "301": "The bucket is in another region: set s3.region.",
    "400": "The session token may have expired, s3.region may be wrong, or the key too long.",
    "403": "Allow it to this key or role by a policy of the bucket or of IAM; check the keys, "
    "their session token and this machine's clock.",
}
_SAME: Final = {
    "ExpiredTokenException": "ExpiredToken",
    "TokenRefreshRequired": "ExpiredToken",
    "IllegalLocationConstraintException": "AuthorizationHeaderMalformed",
    "Forbidden": "403",
    "Moved Permanently": "301",
    "Bad Request": "400",
}


def is_passing(code: str) -> bool:
    """Return whether a request refused with this code may succeed later."""
    return code in _BUSY or code in _LOST


def refused(verb: str, location: str, error: ClientError) -> IcecombError:
    """Return the error for an error response of S3; `verb` is the operation, such as `read`."""
    said = error.response.get("Error", {})
    metadata = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", 0)
    code = said.get("Code") or str(status)
    # botocore uses the status as the code if the body is not XML
    in_xml = not code.isdecimal()
    is_own = in_xml or is_of_store(error)
    if code in _MISSING or (status == 404 and not in_xml and is_own):
        return is_missing(location)
    if code in _EXISTS or (status == 412 and is_own):
        return exists_already(location)
    message = f"Cannot {verb} {location}: {printable(code[:80])}: {told(said.get('Message') or '')}"
    if code in _BUSY or (in_xml and status in {409, 429}):
        return too_busy(message, location)
    # a proxy that answers itself may still pass the request on
    is_of_others = not is_own or (not in_xml and status in {404, 409, 429})
    if code in _LOST or status >= 500 or is_of_others:
        return AnswerLostError(message, hint="The store failed: try again later.", path=location)
    advice = _ADVICE.get(_SAME.get(code, code), "Look up the code in the store's documentation.")
    return FileIOError(message, hint=advice, path=location)


def is_of_store(error: ClientError) -> bool:
    """Return whether a response without a body comes from a store: it has a request id."""
    return has_request_id(error.response.get("ResponseMetadata", {}))


def has_request_id(metadata: Mapping[str, Any]) -> bool:
    """Return whether a response, given as botocore's `ResponseMetadata`, has a request id."""
    headers = metadata.get("HTTPHeaders", {})
    return any(name in headers for name in _REQUEST_IDS)


def no_bucket(verb: str, location: str) -> FileIOError:
    """Return the error for a missing bucket, for responses without a text."""
    return FileIOError(
        f"Cannot {verb} {location}: NoSuchBucket: there is no such bucket",
        hint=_ADVICE["NoSuchBucket"],
        path=location,
    )


def failed(verb: str, location: str, error: Exception) -> IcecombError:
    """Return the error for a request that was not sent, or got no response.

    The exception is botocore's, or that of reading a body; `verb` is the operation, such as `read`.
    """
    from botocore import exceptions as boto

    # the address of the store or of a proxy may hold a password
    message = f"Cannot {verb} {location}: {told(str(error)).rstrip('.')}"
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return ConfigurationError(
            f"Cannot {verb} {location}: no S3 keys were found",
            hint="Set s3.profile-name, s3.access-key-id and s3.secret-access-key, AWS_* variables "
            "or a role of the machine; s3.anonymous=true reads public buckets.",
            path=location,
        )
    if isinstance(error, boto.ProfileNotFound):
        return ConfigurationError(
            message, hint="Check s3.profile-name and ~/.aws/config", path=location
        )
    if isinstance(
        error,
        boto.CredentialRetrievalError | boto.TokenRetrievalError | boto.SSOError
        | boto.MetadataRetrievalError,
    ):  # fmt: skip
        return FileIOError(
            message, hint="Keys could not be renewed: log in again (aws sso login).", path=location
        )
    if isinstance(error, boto.ParamValidationError | boto.UnsupportedS3ConfigurationError):
        return FileIOError(message, hint="The name of the bucket or key is invalid.", path=location)
    if is_untrusted(error):
        return FileIOError(
            message, hint="Set s3.ca-path to a file with the authorities to trust.", path=location
        )
    if isinstance(error, boto.EndpointConnectionError | boto.ConnectTimeoutError):
        return StoreBusyError(
            message,
            hint="Check s3.endpoint and s3.region, the network and s3.proxy-uri.",
            path=location,
        )
    hint = "The connection broke: try again."
    if isinstance(error, boto.SSLError):
        hint = "The connection broke: try again. Does s3.endpoint speak TLS?"
    return AnswerLostError(message, hint=hint, path=location)
