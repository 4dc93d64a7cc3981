"""Hadoop settings with which Spark's tasks access object stores, by Hadoop's S3A.

Catalog options may describe S3 under Iceberg's names (`s3.endpoint`, ...), but tasks know only
`fs.s3a.*`. Locations with `s3:` are opened by S3A unless another class is configured for them.
Source: Hadoop, "Integration with Amazon Web Services".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ConfigurationError

if TYPE_CHECKING:
    from icecomb.format.storage.object_store.s3_settings import S3Settings

_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_AUTH: Final = "org.apache.hadoop.fs.s3a.auth"
_OURS: Final = (
    "s3.", "client.region", "client.access-key-id", "client.secret-access-key",
    "client.session-token", "client.profile-name", "client.role-", "client.assume-role.",
)  # fmt: skip
_PROVIDER: Final = "fs.s3a.aws.credentials.provider"
_ENCRYPTIONS: Final = {"AES256": "AES256", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS"}


def task_settings(properties: Mapping[str, str], hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop settings of tasks, which override Spark's own."""
    found = {
        f"fs.{scheme}.impl": _S3A for scheme in ("s3", "s3n") if f"fs.{scheme}.impl" not in hadoop
    }
    if any(key.startswith(_OURS) for key in properties):
        from icecomb.format.storage.object_store.s3_settings import S3Settings

        found |= dict(_of_s3(S3Settings.of(properties, ""), hadoop))
    return found


def _of_s3(settings: S3Settings, hadoop: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    role = settings.role
    named = {
        "endpoint": ("fs.s3a.endpoint", settings.endpoint),
        "region": ("fs.s3a.endpoint.region", settings.region),
        "access_key": ("fs.s3a.access.key", settings.access_key),
        "secret_key": ("fs.s3a.secret.key", settings.secret_key),
        "session_token": ("fs.s3a.session.token", settings.session_token),
        "role_arn": ("fs.s3a.assumed.role.arn", settings.role_arn),
        "role_session": ("fs.s3a.assumed.role.session.name", role.get("RoleSessionName")),
        "role_external_id": ("fs.s3a.assumed.role.external.id", role.get("ExternalId")),
        "role_seconds": ("fs.s3a.assumed.role.session.duration", role.get("DurationSeconds")),
        "profile": ("fs.s3a.auth.profile.name", settings.profile),
    }
    for name, (key, value) in named.items():
        if value is not None and settings.sources.get(name, "").startswith(_OURS):
            yield key, str(value)
    if "Tags" in role:
        raise ConfigurationError(
            "Property client.assume-role.tags.* is not supported: Hadoop's S3A, with which Spark's "
            "tasks read and write, cannot tag the session of a role",
            hint="leave the tags out for Spark",
        )
    if settings.sources.get("endpoint", "").startswith(_OURS):
        # icecomb derives these from the endpoint, S3A does not
        yield "fs.s3a.endpoint.region", str(settings.region)
        yield "fs.s3a.path.style.access", str(settings.path_style).lower()
    if provider := _provider(settings, hadoop):
        yield _PROVIDER, provider
    yield from _written(settings)


def _provider(settings: S3Settings, hadoop: Mapping[str, str]) -> str | None:
    """Return the credentials provider of tasks; None for S3A's default."""
    if settings.anonymous:
        return "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    if _PROVIDER in hadoop:
        return None
    if settings.role_arn:
        return f"{_AUTH}.AssumedRoleCredentialProvider"
    if settings.profile:
        return f"{_AUTH}.ProfileAWSCredentialsProvider"
    return None


def _written(settings: S3Settings) -> Iterator[tuple[str, str]]:
    written = settings.written
    if encryption := written.get("ServerSideEncryption"):
        yield "fs.s3a.encryption.algorithm", _ENCRYPTIONS[encryption]
    if key := written.get("SSEKMSKeyId"):
        yield "fs.s3a.encryption.key", key
    if acl := written.get("ACL"):
        yield "fs.s3a.acl.default", "".join(word.capitalize() for word in acl.split("-"))
    if storage_class := written.get("StorageClass"):
        yield "fs.s3a.create.storage.class", storage_class.lower()
    if "Tagging" in written:
        raise ConfigurationError(
            "Property s3.write.tags.* is not supported: Hadoop's S3A, with which Spark's tasks "
            "write, cannot tag objects",
            hint="leave the tags out for Spark, or let a rule of the bucket set them",
        )
