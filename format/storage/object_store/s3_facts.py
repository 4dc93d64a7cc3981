"""Diagnostic facts about an S3 bucket: credentials, region and clock."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.storage.object_store.client import StoreFacts
from icecomb.format.storage.object_store.s3_settings import S3Settings

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client as BotoClient

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
        where=boto.meta.endpoint_url,
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
