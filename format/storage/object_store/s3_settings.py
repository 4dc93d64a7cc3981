"""Address and credentials of an S3 bucket.

Each setting is taken from the first of these sources, the credentials together from a single one:

1. properties of Iceberg and PyIceberg: `s3.endpoint`, `s3.access-key-id`, ... and `client.region`;
2. Hadoop's S3A for the bucket, `fs.s3a.bucket.<bucket>.access.key`, then for all buckets,
   `fs.s3a.access.key`, as properties or in core-site.xml;
3. boto3's defaults: variables `AWS_*`, profiles, roles of web identities, containers and machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import Property, seconds
from icecomb.format.storage.object_store.setting_search import SettingSearch
from icecomb.format.storage.storage_property import (
    S3_ACCESS_KEY,
    S3_ACL,
    S3_ANONYMOUS,
    S3_CA_PATH,
    S3_CONNECT_TIMEOUT,
    S3_DELETE_ENABLED,
    S3_ENDPOINT,
    S3_PATH_STYLE,
    S3_PROFILE,
    S3_PROXY,
    S3_REGION,
    S3_REQUEST_TIMEOUT,
    S3_ROLE_ARN,
    S3_ROLE_EXTERNAL_ID,
    S3_ROLE_REGION,
    S3_ROLE_SECONDS,
    S3_ROLE_SESSION,
    S3_ROLE_TAG,
    S3_SECRET_KEY,
    S3_SESSION_TOKEN,
    S3_SSE_KEY,
    S3_SSE_KMS_KEY,
    S3_SSE_NAME,
    S3_SSE_TYPE,
    S3_STORAGE_CLASS,
    S3_TAG,
    S3_VIRTUAL,
)

_CENTRAL: Final = re.compile(r"s3[.-](?:(?P<region>[a-z]{2}(?:-[a-z]+)+-\d)\.)?amazonaws\.com")
_WRITTEN: Final = {
    "": None, "none": None,
    "s3": "AES256", "aes256": "AES256", "sse-s3": "AES256",
    "kms": "aws:kms", "aws:kms": "aws:kms", "sse-kms": "aws:kms",
    "dsse-kms": "aws:kms:dsse", "aws:kms:dsse": "aws:kms:dsse",
}  # fmt: skip
"""S3's names of Iceberg's, PyIceberg's and Hadoop's encryptions; None = the bucket's default."""
_KEYS: Final = {
    "access_key": (S3_ACCESS_KEY, "access.key"),
    "secret_key": (S3_SECRET_KEY, "secret.key"),
    "session_token": (S3_SESSION_TOKEN, "session.token"),
}
_OF_SETTINGS: Final = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_ANONYMOUS: Final = "AnonymousAWSCredentialsProvider"
_ROLE: Final = "AssumedRoleCredentialProvider"
_FOUND_BY_BOTO: Final = "boto3"
_BY_BOTO: Final = {
    "EnvironmentVariableCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "ProfileCredentialsProvider",
    "ProfileAWSCredentialsProvider",
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
}
_OF_SETTINGS_ONLY: Final = "settings"
_KEYSTORES: Final = "hadoop.security.credential.provider.path"
_REFUSED: Final = {
    "s3.signer": "requests are signed by icecomb, not by a REST catalog",
    "s3.remote-signing-enabled": "requests are signed by icecomb, not by a REST catalog",
    "s3.access-grants.enabled": "keys come from profiles, roles or settings",
    "s3.write.table-tag-enabled": "only tags of s3.write.tags.<name> are written",
    "s3.write.namespace-tag-enabled": "only tags of s3.write.tags.<name> are written",
    "s3.client-factory-impl": "it names a Java class",
    "client.factory": "it names a Java class",
    "client.credentials-provider": "it names a Java class",
}
_REFUSED_FAMILIES: Final = {
    "s3.access-points.": "write the alias of the access point in place of the bucket's name",
    "s3.delete.tags.": "objects are not tagged before deletion",
}


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The settings of one bucket.

    Attributes:
        endpoint: URL of the store; None = Amazon's.
        region: Region of the bucket; None = boto3's default.
        path_style: Whether the bucket is in the path; None = boto3's default.
        access_key: Id of an access key; None = the keys that boto3 finds.
        profile: Profile of `~/.aws/config`.
        role_arn: Role to assume with the other credentials; renewed automatically.
        role: Further arguments of boto3 to assume it: a session name, a policy, ...
        sts_endpoint: URL of STS; None = Amazon's.
        sts_region: Region of STS; None = that of the bucket.
        ca_path: File with the TLS authorities to trust; None = the system's.
        written: Further arguments of boto3 for each new object: encryption, class, ACL, tags.
        sources: Property that each setting comes from, by attribute.
    """

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    profile: str | None = None
    role_arn: str | None = None
    role: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sts_endpoint: str | None = None
    sts_region: str | None = None
    anonymous: bool = False
    proxy: str | None = field(default=None, repr=False)
    ca_path: str | None = None
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 60.0
    written: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str], bucket: str) -> S3Settings:
        """Return the settings of a bucket."""
        return _Found(properties, bucket).settings()


class _Found:
    """The search for one bucket's settings and their sources."""

    def __init__(self, properties: Mapping[str, str], bucket: str) -> None:
        self._properties = properties
        self._bucket = bucket
        self._search = SettingSearch(properties)
        self._hadoop = self._search.hadoop
        self.sources = self._search.sources

    def settings(self) -> S3Settings:
        """Return all settings of the bucket."""
        self._refuse()
        endpoint = self._text("endpoint", [S3_ENDPOINT], "endpoint")
        region = self._text("region", [S3_REGION], "endpoint.region")
        central = _CENTRAL.fullmatch(re.sub(r"^https?://|/+$", "", endpoint or ""))
        if central is not None:
            # Amazon's own endpoint, as Hadoop's users set it: boto3 knows the hosts of regions
            region, endpoint = region or central["region"], None
        return S3Settings(
            endpoint=self._url(endpoint),
            region=region or ("us-east-1" if endpoint else None),
            path_style=self._path_style(endpoint),
            **self._identity(),
            role=self._role(),
            sts_endpoint=self._url(self._text("", [], "assumed.role.sts.endpoint")),
            sts_region=self._text("", [S3_ROLE_REGION], "assumed.role.sts.endpoint.region"),
            proxy=self._text("proxy", [S3_PROXY]) or self._proxy(),
            ca_path=self._text("ca_path", [S3_CA_PATH]),
            connect_timeout_s=self._seconds(S3_CONNECT_TIMEOUT, "connection.establish.timeout"),
            request_timeout_s=self._seconds(S3_REQUEST_TIMEOUT, "connection.timeout"),
            written=self._written(),
            sources=self.sources,
        )

    def _url(self, endpoint: str | None) -> str | None:
        if endpoint is None or "://" in endpoint:
            return endpoint
        plain = self._text("", [], "connection.ssl.enabled") == "false"
        return f"{'http' if plain else 'https'}://{endpoint}"

    def _text(
        self, name: str, known: list[Property[str | None]], hadoop: str | None = None
    ) -> str | None:
        each = [] if hadoop is None else [f"bucket.{self._bucket}.{hadoop}", hadoop]
        return self._search.text(name, known, [f"fs.s3a.{one}" for one in each])

    def _seconds(self, known: Property[float], hadoop: str) -> float:
        """Return a timeout in seconds; Hadoop's are in milliseconds, and its 0 means no timeout."""
        said = self._text("", [], hadoop)
        if said is None or known.key in self._properties:
            return known.of(self._properties)
        try:
            return seconds(f"fs.s3a.{hadoop}", 0, "", unit="ms").read(said) or known.default
        except ConfigurationError:
            return known.default

    def _identity(self) -> dict[str, Any]:
        """Return the credentials of the first source that has any."""
        role_arn = self._text("role_arn", [S3_ROLE_ARN])
        if S3_ANONYMOUS.of(self._properties):
            self.sources["anonymous"] = S3_ANONYMOUS.key
            return {"anonymous": True}
        if found := self._keys(_KEYS):
            return {**found, "role_arn": role_arn}
        if profile := self._text("profile", [S3_PROFILE]):
            return {"profile": profile, "role_arn": role_arn}
        provider = self._provider()
        if provider == _ANONYMOUS and role_arn is None:
            self.sources["anonymous"] = self.sources["provider"]
            return {"anonymous": True}
        if provider == _ROLE and role_arn is None:
            role_arn = self._text("role_arn", [], "assumed.role.arn")
        if provider == _FOUND_BY_BOTO:
            return {"role_arn": role_arn}
        found = self._keys({name: (None, key) for name, (_, key) in _KEYS.items()})
        keystore = None if found else self._keystore(of_settings=provider == _OF_SETTINGS_ONLY)
        if keystore is not None:
            raise ConfigurationError(
                f"The keys of bucket {self._bucket} are in a Java keystore: {keystore}",
                hint="icecomb does not read it: set s3.profile-name, or s3.access-key-id and "
                "s3.secret-access-key.",
            )
        return {**found, "role_arn": role_arn}

    def _keystore(self, *, of_settings: bool) -> str | None:
        """Return the property that names a keystore with the keys, if any.

        Hadoop's global keystore may hold other secrets, so it counts only if no other source than
        the settings can have the keys.
        """
        if self._text("", [], "security.credential.provider.path"):
            return "fs.s3a.security.credential.provider.path"
        return _KEYSTORES if of_settings and self._properties.get(_KEYSTORES) else None

    def _role(self) -> dict[str, Any]:
        """Return the arguments of `S3Settings.role`."""
        name = self._text("role_session", [S3_ROLE_SESSION], "assumed.role.session.name")
        found: dict[str, Any] = {"RoleSessionName": name or "icecomb"}
        external = self._text("role_external_id", [S3_ROLE_EXTERNAL_ID], "assumed.role.external.id")
        if external:
            found["ExternalId"] = external
        if policy := self._text("", [], "assumed.role.policy"):
            found["Policy"] = policy
        hadoop = self._text("", [], "assumed.role.session.duration")
        if (lasts := S3_ROLE_SECONDS.of(self._properties)) is not None:
            self.sources["role_seconds"] = S3_ROLE_SECONDS.key
            found["DurationSeconds"] = lasts
        elif hadoop is not None:
            said = seconds("fs.s3a.assumed.role.session.duration", 3600, "").read(hadoop)
            found["DurationSeconds"] = int(said)
        if tags := S3_ROLE_TAG.of_each(self._properties):
            found["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
        return found

    def _keys(
        self, named: Mapping[str, tuple[Property[str | None] | None, str]]
    ) -> dict[str, str | None]:
        """Return the keys from a single source: halves of two keys are useless."""
        found = {
            name: self._text(name, [ours]) if ours else self._text(name, [], key)
            for name, (ours, key) in named.items()
        }
        if found["access_key"] is None and found["secret_key"] is None:
            for name in found:
                self.sources.pop(name, None)
            return {}
        for name, (ours, key) in named.items():
            if found[name] is None and name != "session_token":
                raise ConfigurationError(
                    f"The S3 key is incomplete: there is no {ours or f'fs.s3a.{key}'}",
                    hint="Set s3.access-key-id and s3.secret-access-key (fs.s3a.access.key and "
                    "fs.s3a.secret.key), or neither.",
                )
        return found

    def _provider(self) -> str:
        """Return the kind of provider that `fs.s3a.aws.credentials.provider` names."""
        said = self._text("provider", [], "aws.credentials.provider") or ""
        names = [one.strip().rpartition(".")[2] for one in said.split(",") if one.strip()]
        for name in names:
            if name in {_ANONYMOUS, _ROLE}:
                return name
            if name in _OF_SETTINGS:
                return _OF_SETTINGS_ONLY if _OF_SETTINGS.issuperset(names) else ""
            if name in _BY_BOTO:
                return _FOUND_BY_BOTO
        if names:
            raise ConfigurationError(
                f"{self.sources['provider']} names {said}, a Java class without an equivalent in "
                "icecomb",
                hint="Set s3.profile-name, or s3.access-key-id and s3.secret-access-key.",
            )
        return ""

    def _path_style(self, endpoint: str | None) -> bool | None:
        said = self._text("path_style", [S3_PATH_STYLE], "path.style.access")
        if said is not None:
            return said.lower() == "true"
        if (said := self._text("path_style", [S3_VIRTUAL])) is not None:
            return said.lower() != "true"
        return True if endpoint else None

    def _proxy(self) -> str | None:
        host = self._text("proxy", [], "proxy.host")
        if host is None:
            return None
        port = self._text("", [], "proxy.port")
        user, password = (self._text("", [], f"proxy.{name}") for name in ("username", "password"))
        login = f"{quote(user, safe='')}:{quote(password or '', safe='')}@" if user else ""
        return f"http://{login}{host}:{port}" if port else f"http://{login}{host}"

    def _written_by_hadoop(self) -> str | None:
        return self._text("sse", [], "encryption.algorithm") or self._text(
            "sse", [], "server-side-encryption-algorithm"
        )

    def _written(self) -> dict[str, str]:
        found: dict[str, str] = {}
        said = self._text("sse", [S3_SSE_NAME], None)
        if said is None:
            is_set = S3_SSE_TYPE.key in self._properties
            said = S3_SSE_TYPE.of(self._properties) if is_set else self._written_by_hadoop() or ""
        if said.lower() not in _WRITTEN:
            raise ConfigurationError(
                f"Encryption {said} of S3 is not served: it needs the keys on this machine",
                hint="Use s3 or kms (s3.sse.type), or the bucket's own default encryption.",
            )
        name = _WRITTEN[said.lower()]
        if name is not None:
            found["ServerSideEncryption"] = name
            key = self._text("", [S3_SSE_KEY, S3_SSE_KMS_KEY], "encryption.key") or self._text(
                "", [], "server-side-encryption.key"
            )
            if key and name != "AES256":
                found["SSEKMSKeyId"] = key
        if acl := self._text("", [S3_ACL], "acl.default"):
            # Hadoop writes PublicRead for what S3 calls public-read
            found["ACL"] = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", acl).lower()
        if storage_class := self._text("", [S3_STORAGE_CLASS], "create.storage.class"):
            found["StorageClass"] = storage_class.upper()
        if tags := S3_TAG.of_each(self._properties):
            found["Tagging"] = urlencode(tags)
        return found

    def _refuse(self) -> None:
        self._search.refuse(_REFUSED)
        for key in self._properties:
            for start, reason in _REFUSED_FAMILIES.items():
                if key.startswith(start):
                    self._search.refuse({key: reason})
        if arn := self._text("", [], "accesspoint.arn"):
            raise ConfigurationError(
                f"Bucket {self._bucket} uses the access point {arn}, which is not served",
                hint="Write the alias of the access point in place of the bucket's name, or leave "
                f"fs.s3a.bucket.{self._bucket}.accesspoint.arn out for icecomb.",
            )
        if S3_DELETE_ENABLED.of(self._properties) is False:
            raise ConfigurationError(
                f"Property {S3_DELETE_ENABLED} is not served: icecomb really deletes files",
                hint=f"Leave {S3_DELETE_ENABLED} out for icecomb, and let the bucket keep "
                "versions.",
                property=S3_DELETE_ENABLED.key,
            )
