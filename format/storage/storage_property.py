"""The properties of storage that `FileIO` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from icecomb.format.property.property import (
    Property,
    choice,
    flag,
    number,
    optional_number,
    registered,
    seconds,
    text,
)

_OCTAL_UMASK: Final = re.compile(r"0*([0-7]{3})")
_SYMBOLIC_UMASK: Final = re.compile(r"\s*([ugoa]*)[+=-]*([+=-])([rwx]*)([,\s]*)")
ABSOLUTE: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]+|(?=/(?!/$))))?(?:/|$)")
_SIZE: Final = re.compile(r"([0-9]+)([kmgtpe]?)", re.IGNORECASE)


def _umask(said: str) -> int:
    """Return a umask as Hadoop's ``UmaskParser`` reads it.

    A symbolic one names what is granted: a class that it does not name gets nothing, nor does one
    of which it takes something away (`-`); of several about one class the last counts.
    """
    if octal := _OCTAL_UMASK.fullmatch(said):
        return int(octal[1], 8)
    granted, end, is_next = dict.fromkeys("ugo", 0), 0, True
    while end < len(said):
        found = _SYMBOLIC_UMASK.match(said, end)
        if found is None or not is_next:
            raise ValueError(said)
        classes, operator, letters, separator = found.groups()
        bits = sum(bit for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if letter in letters)
        for each in set(classes) - {"a"} or "ugo":
            granted[each] = 0 if operator == "-" else bits
        end, is_next = found.end(), "," in separator
    if not end:
        raise ValueError(said)
    return 0o777 & ~(granted["u"] << 6 | granted["g"] << 3 | granted["o"])


def _binary_size(said: str) -> int:
    found = _SIZE.fullmatch(said)
    if found is None or not int(found[1]):
        raise ValueError(said)
    return int(found[1]) << 10 * (1 + "kmgtpe".index(found[2].lower()) if found[2] else 0)


SYNC_DATA_FILES: Final = flag(
    "local.sync-data-files",
    "Whether local data files are synced to disk before they become visible.",
    default=True,
)


def _folders(said: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in said.split(",") if part.strip())
    if not found or not all(map(ABSOLUTE.match, found)):
        raise ValueError(said)
    return found


OWN_PREFIXES: Final[Property[tuple[str, ...]]] = Property(
    "own-folders.allowed-prefixes",
    (),
    "Folders below which a table's metadata may name folders as the table's own: new files are "
    "written there, and files deleted once nothing needs them. Else they are only so if the "
    "metastore's entry names them; of a table of folders, its own folder is.",
    "absolute folders such as /lake or s3://bucket/lake, separated by commas",
    _folders,
)
LOCAL_PREFIXES: Final[Property[tuple[str, ...]]] = Property(
    "local.allowed-prefixes",
    (),
    "Local folders whose files may be named by tables on other storages, which are refused "
    "otherwise: their writers could have any file of yours read.",
    "absolute folders such as /lake or s3://bucket/lake, separated by commas",
    _folders,
)
CACHE_ENABLED: Final = flag(
    "io.manifest.cache-enabled", "Whether decoded manifests are cached.", default=True
)
CACHE_BYTES: Final = number(
    "io.manifest.cache.max-total-bytes", 256 << 20, "Maximum bytes of that cache.", least=0
)

HDFS_ENGINE: Final = choice("hdfs.engine", ("webhdfs", "native"), "The protocol used for HDFS.")
HDFS_TRASH: Final = flag(
    "hdfs.trash",
    "Whether deleted files are moved to the user's `.Trash`, which the cluster empties.",
    default=False,
)
HDFS_USER: Final = text(
    "hdfs.user", "The user; `HADOOP_USER_NAME`, else the login name, by default.", "a user's name"
)
HDFS_PROXY_USER: Final = text(
    "hdfs.proxy-user", "The user to act for; `HADOOP_PROXY_USER` by default.", "a user's name"
)
HDFS_CA_PATH: Final = text(
    "hdfs.ca-path", "Trusted TLS authorities; the system's by default.", "a PEM file"
)
HDFS_PRINCIPAL: Final = text(
    "hdfs.kerberos.principal", "The principal whose key is in the keytab.", "a Kerberos principal"
)
HDFS_KEYTAB: Final = text(
    "hdfs.kerberos.keytab", "The keytab to use instead of a ticket.", "a keytab file"
)
HDFS_TOKEN: Final = text(
    "hdfs.delegation-token",
    "A token used instead of a ticket; `HADOOP_TOKEN_FILE_LOCATION` can name a file of them.",
    "a token as WebHDFS writes it",
)
TOKEN_FILES: Final = text(
    "hadoop.token.files",
    "Files searched for a token before `HADOOP_TOKEN_FILE_LOCATION`.",
    "files, separated by commas",
)
HDFS_SERVERS: Final = text(
    "mapreduce.job.hdfs-servers",
    "Clusters beside the configured ones to which tickets and `hdfs.delegation-token` may go.",
    "locations such as hdfs://host:8020, separated by commas",
)
HADOOP_AUTHENTICATION: Final = choice(
    "hadoop.security.authentication",
    ("simple", "kerberos"),
    "How a cluster authenticates its users.",
)
HADOOP_FALLBACK: Final = flag(
    "ipc.client.fallback-to-simple-auth-allowed",
    "Whether, with `kerberos`, name nodes are believed that do not ask for a login.",
    default=False,
)
HDFS_HTTP_POLICY: Final = choice(
    "dfs.http.policy",
    ("http_only", "https_only", "http_and_https"),
    "Whether locations with hdfs:// are asked of name nodes over TLS: with `https_only`.",
)
HDFS_CONNECT_TIMEOUT: Final = seconds(
    "dfs.webhdfs.socket.connect-timeout",
    60.0,
    "How long a connection to a node may take.",
    unit="ms",
)
HDFS_READ_TIMEOUT: Final = seconds(
    "dfs.webhdfs.socket.read-timeout",
    60.0,
    "How long a node may take to respond.",
    unit="ms",
)
HDFS_FAILOVER_ATTEMPTS: Final = number(
    "dfs.client.failover.max.attempts",
    30,
    "How often the name nodes of a nameservice are tried.",
    least=1,
)
HDFS_UMASK: Final[Property[int | None]] = Property(
    "fs.permissions.umask-mode",
    None,
    "The permissions that new files and folders do not get; 022 by default.",
    "three octal digits such as 027, or what they do get, such as u=rwx,g=rx,o=",
    _umask,
    also=("dfs.umaskmode",),
)
HDFS_REPLICATION: Final = optional_number(
    "dfs.replication", "The number of copies of new files; the data nodes' own by default.", least=1
)
HDFS_BLOCK_SIZE: Final[Property[int | None]] = Property(
    "dfs.blocksize",
    None,
    "The block size of new files; the data nodes' own by default.",
    "a number of bytes, or one with a suffix such as 256m",
    _binary_size,
    also=("dfs.block.size",),
)

OBJECT_STORE_CONCURRENCY: Final = number(
    "io.object-store.concurrency",
    32,
    "Maximum number of concurrent requests: manifests of a plan, files of a commit.",
    least=1,
)
OBJECT_STORE_ATTEMPTS: Final = number(
    "io.object-store.max-attempts",
    10,
    "How often a request is sent if the store is busy, fails or its response is lost.",
    least=1,
)

S3_ENDPOINT: Final = text("s3.endpoint", "The endpoint of S3, if not Amazon's.", "a URL")
S3_REGION: Final = replace(
    text("s3.region", "The region of the buckets.", "a region such as eu-central-1"),
    also=("client.region",),
)
S3_ACCESS_KEY: Final = replace(
    text("s3.access-key-id", "The access key's id.", "an id"), also=("client.access-key-id",)
)
S3_SECRET_KEY: Final = replace(
    text("s3.secret-access-key", "The access key's secret.", "a secret"),
    also=("client.secret-access-key",),
)
S3_SESSION_TOKEN: Final = replace(
    text("s3.session-token", "The session token of a temporary access key.", "a token"),
    also=("client.session-token",),
)
S3_PROFILE: Final = replace(
    text("s3.profile-name", "A profile of `~/.aws/config`.", "a name"),
    also=("client.profile-name",),
)
S3_ROLE_ARN: Final = replace(
    text("s3.role-arn", "The role to assume.", "an ARN"),
    also=("client.role-arn", "client.assume-role.arn"),
)
S3_ROLE_SESSION: Final = replace(
    text("s3.role-session-name", "The name of the role's session.", "a name"),
    also=("client.role-session-name", "client.assume-role.session-name"),
)
S3_ROLE_EXTERNAL_ID: Final = replace(
    text("s3.role-external-id", "The external id that the role's owner requires.", "a text"),
    also=("client.assume-role.external-id",),
)
S3_ROLE_REGION: Final = text(
    "client.assume-role.region", "The region of STS; that of the buckets by default.", "a region"
)
S3_ROLE_SECONDS: Final = optional_number(
    "client.assume-role.timeout-sec", "Seconds until the role's session is renewed.", least=900
)
S3_ROLE_TAG: Final = Property(
    "client.assume-role.tags.", "", "A tag of the role's session, by name.", "a text", str
)
S3_ANONYMOUS: Final = flag(
    "s3.anonymous", "Whether requests are unsigned, for public buckets.", default=False
)
S3_PATH_STYLE: Final = text(
    "s3.path-style-access",
    "Whether the bucket is in the path, not in the host; true by default with `s3.endpoint`.",
    "true or false",
    lambda said: said.lower() in {"true", "false"},
)
S3_VIRTUAL: Final = text(
    "s3.force-virtual-addressing",
    "The opposite of `s3.path-style-access`, for settings of PyIceberg.",
    "true or false",
    lambda said: said.lower() in {"true", "false"},
)
S3_PROXY: Final = text("s3.proxy-uri", "The proxy to use.", "a URL")
S3_CONNECT_TIMEOUT: Final = seconds(
    "s3.connect-timeout", 10.0, "How long a connection to S3 may take."
)
S3_REQUEST_TIMEOUT: Final = seconds(
    "s3.request-timeout", 60.0, "How long S3 may take to respond, and for each MiB of a file."
)
S3_CA_PATH: Final = text(
    "s3.ca-path", "Trusted TLS authorities; the system's by default.", "a PEM file"
)
S3_SSE_TYPE: Final = choice(
    "s3.sse.type",
    ("none", "s3", "kms", "dsse-kms", "custom"),
    "How S3 encrypts new objects: as the bucket is configured, with S3's keys, or with KMS.",
)
S3_SSE_KEY: Final = text("s3.sse.key", "The KMS key.", "an id or ARN")
S3_SSE_NAME: Final = text(
    "s3.server-side-encryption", "`s3.sse.type` in PyIceberg's words.", "a value such as aws:kms"
)
S3_SSE_KMS_KEY: Final = text(
    "s3.sse-kms-key-id", "`s3.sse.key` under PyIceberg's name.", "an id or ARN"
)
S3_ACL: Final = text("s3.acl", "Who else may access new objects.", "a canned ACL")
S3_STORAGE_CLASS: Final = text(
    "s3.write.storage-class",
    "The storage class of new objects.",
    "a class such as INTELLIGENT_TIERING",
)
S3_DELETE_ENABLED: Final = flag(
    "s3.delete-enabled", "Always true in icecomb: files are really deleted.", default=True
)
S3_TAG: Final = Property("s3.write.tags.", "", "A tag of new objects, by name.", "a text", str)

GCS_TOKEN: Final = text("gcs.oauth2.token", "A temporary access token of Google.", "a token")
GCS_TOKEN_EXPIRY: Final = optional_number(
    "gcs.oauth2.token-expires-at",
    "Expiry of that token, in milliseconds since the epoch.",
    least=0,
)
GCS_ENDPOINT: Final = text(
    "gcs.service.host", "The endpoint of Cloud Storage, if not Google's.", "a URL"
)
GCS_USER_PROJECT: Final = text(
    "gcs.user-project", "The project billed for requests, if not the bucket's.", "a project id"
)
GCS_NO_AUTH: Final = flag(
    "gcs.no-auth", "Whether requests are anonymous, for public buckets.", default=False
)

ADLS_CONNECTION: Final = text(
    "adls.connection-string",
    "Account, key and hosts in one text; `adls.connection-string.<account>` is for one account.",
    "a connection string such as AccountName=a;AccountKey=...;EndpointSuffix=core.windows.net",
)
ADLS_ACCOUNT: Final = replace(
    text("adls.account-name", "The storage account of locations that name none.", "a name"),
    also=("adls.auth.shared-key.account.name",),
)
ADLS_KEY: Final = replace(
    text("adls.account-key", "The account's key.", "a key in Base64"),
    also=("adls.auth.shared-key.account.key",),
)
ADLS_SAS: Final = text(
    "adls.sas-token",
    "A shared access signature; `adls.sas-token.<account>` is for one account.",
    "a query without the question mark",
)
ADLS_TOKEN: Final = text("adls.token", "A temporary access token of Azure.", "a token")
ADLS_TENANT: Final = text("adls.tenant-id", "The directory of the client.", "a tenant's id")
ADLS_CLIENT: Final = text("adls.client-id", "The client to log in as.", "an application's id")
ADLS_SECRET: Final = text("adls.client-secret", "The client's secret.", "a secret")
ADLS_HOST: Final = text(
    "adls.account-host", "The account's host.", "a host such as account.blob.core.windows.net"
)
ADLS_AUTHORITY: Final = text(
    "adls.blob-storage-authority",
    "The suffix of all accounts' hosts, or the host and port of an emulator.",
    "a suffix such as .blob.core.windows.net, or host:port",
)
ADLS_SCHEME: Final = choice(
    "adls.blob-storage-scheme", ("https", "http"), "The protocol used for Azure."
)
ADLS_ANONYMOUS: Final = flag(
    "adls.anon", "Whether requests are anonymous, for public containers.", default=False
)

STORAGE_PROPERTIES: Final[Mapping[str, Property[Any]]] = registered(list(globals().values()))
"""All of these properties, by key."""
