"""Every property of storage that has a meaning: what a `FileIO` is told of disks and clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from icecomb.format.property import (
    Property,
    choice,
    flag,
    number,
    optional_number,
    registered,
    seconds,
    text,
)

SYNC_DATA_FILES: Final = flag(
    "local.sync-data-files",
    "Whether local files of rows are on the disk when they are visible.",
    default=True,
)
CACHE_ENABLED: Final = flag(
    "io.manifest.cache-enabled", "Whether decoded manifests are kept.", default=True
)
CACHE_BYTES: Final = number(
    "io.manifest.cache.max-total-bytes", 256 << 20, "How much memory they may take.", least=0
)
CACHE_FOLDER: Final = text(
    "io.manifest.cache.folder", "A local folder that later processes find them in.", "a folder"
)
STORE_BYTES: Final = number(
    "io.manifest.cache.folder-max-total-bytes", 4 << 30, "How much it may hold.", least=0
)

HDFS_ENGINE: Final = choice(
    "hdfs.engine", ("webhdfs", "native"), "By which protocols HDFS is served."
)
HDFS_TRASH: Final = flag(
    "hdfs.trash",
    "Whether what is deleted goes to the user's `.Trash`, which the cluster clears away.",
    default=False,
)
HDFS_USER: Final = text(
    "hdfs.user", "Who asks; `HADOOP_USER_NAME`, else you, by default.", "a user's name"
)
HDFS_PROXY_USER: Final = text(
    "hdfs.proxy-user", "On whose behalf; `HADOOP_PROXY_USER` by default.", "a user's name"
)
HDFS_CA_PATH: Final = text(
    "hdfs.ca-path", "The authorities for TLS; the system's by default.", "a file in PEM"
)
HDFS_PRINCIPAL: Final = text(
    "hdfs.kerberos.principal", "Whose key is in the keytab.", "a principal of Kerberos"
)
HDFS_KEYTAB: Final = text(
    "hdfs.kerberos.keytab", "Where the key is, instead of a ticket.", "a keytab file"
)
HDFS_TOKEN: Final = text(
    "hdfs.delegation-token",
    "Instead of a ticket; `HADOOP_TOKEN_FILE_LOCATION` names a file of them, too.",
    "a token as WebHDFS writes it",
)
TOKEN_FILES: Final = text(
    "hadoop.token.files",
    "Where a token is looked for, before `HADOOP_TOKEN_FILE_LOCATION`.",
    "files with commas between",
)
HADOOP_AUTHENTICATION: Final = choice(
    "hadoop.security.authentication",
    ("simple", "kerberos"),
    "How a cluster is told who asks.",
)
HDFS_CONNECT_TIMEOUT: Final = seconds(
    "dfs.webhdfs.socket.connect-timeout",
    60.0,
    "How long a node may take to accept a connection.",
    unit="ms",
)
HDFS_READ_TIMEOUT: Final = seconds(
    "dfs.webhdfs.socket.read-timeout",
    60.0,
    "How long one may take to answer.",
    unit="ms",
)
HDFS_FAILOVER_ATTEMPTS: Final = number(
    "dfs.client.failover.max.attempts",
    30,
    "How often the name nodes of a nameservice are tried.",
    least=1,
)

OBJECT_STORE_CONCURRENCY: Final = number(
    "io.object-store.concurrency",
    32,
    "How many requests are on their way at once: manifests of a plan, files of a commit.",
    least=1,
)
OBJECT_STORE_ATTEMPTS: Final = number(
    "io.object-store.max-attempts",
    10,
    "How often an object store is asked that is too busy, fails, or whose answer is lost.",
    least=1,
)

S3_ENDPOINT: Final = text("s3.endpoint", "Where S3 is, if not at Amazon.", "a URL")
S3_REGION: Final = replace(
    text("s3.region", "The region of the buckets.", "as eu-central-1"), also=("client.region",)
)
S3_ACCESS_KEY: Final = replace(
    text("s3.access-key-id", "Who asks.", "the id of an access key"), also=("client.access-key-id",)
)
S3_SECRET_KEY: Final = replace(
    text("s3.secret-access-key", "Proves it.", "its secret"), also=("client.secret-access-key",)
)
S3_SESSION_TOKEN: Final = replace(
    text("s3.session-token", "Comes with a key that holds for some hours.", "a token"),
    also=("client.session-token",),
)
S3_PROFILE: Final = replace(
    text("s3.profile-name", "A profile of `~/.aws/config`.", "a name"),
    also=("client.profile-name",),
)
S3_ROLE_ARN: Final = replace(
    text("s3.role-arn", "A role that is assumed.", "an ARN"),
    also=("client.role-arn", "client.assume-role.arn"),
)
S3_ROLE_SESSION: Final = replace(
    text("s3.role-session-name", "Whose session that is.", "a name"),
    also=("client.role-session-name", "client.assume-role.session-name"),
)
S3_ROLE_EXTERNAL_ID: Final = replace(
    text("s3.role-external-id", "What the role's owner asks for.", "a text"),
    also=("client.assume-role.external-id",),
)
S3_ROLE_REGION: Final = text(
    "client.assume-role.region", "The region of who gives roles; that of the buckets.", "a region"
)
S3_ROLE_SECONDS: Final = optional_number(
    "client.assume-role.timeout-sec", "How long a role holds until it is renewed.", least=900
)
S3_ROLE_TAG: Final = Property(
    "client.assume-role.tags.", "", "A tag of the role's session, by its name.", "a text", str
)
S3_ANONYMOUS: Final = flag("s3.anonymous", "Whether nobody asks: public buckets.", default=False)
S3_PATH_STYLE: Final = text(
    "s3.path-style-access",
    "Whether the bucket stands in the path, not in the host; with `s3.endpoint` it does.",
    "true or false",
    lambda said: said.lower() in {"true", "false"},
)
S3_VIRTUAL: Final = text(
    "s3.force-virtual-addressing",
    "The contrary of `s3.path-style-access`, as PyIceberg says it.",
    "true or false",
    lambda said: said.lower() in {"true", "false"},
)
S3_PROXY: Final = text("s3.proxy-uri", "A proxy on the way.", "a URL")
S3_CONNECT_TIMEOUT: Final = seconds(
    "s3.connect-timeout", 10.0, "How long S3 may take to accept a connection."
)
S3_REQUEST_TIMEOUT: Final = seconds("s3.request-timeout", 60.0, "How long it may take to answer.")
S3_CA_PATH: Final = text(
    "s3.ca-path", "The authorities for TLS; the system's by default.", "a file in PEM"
)
S3_SSE_TYPE: Final = choice(
    "s3.sse.type",
    ("none", "s3", "kms", "dsse-kms", "custom"),
    "How S3 encrypts what is written: as the bucket says, with its own keys, with KMS.",
)
S3_SSE_KEY: Final = text("s3.sse.key", "Which key of KMS.", "an id or ARN")
S3_SSE_NAME: Final = text(
    "s3.server-side-encryption", "`s3.sse.type` as PyIceberg says it.", "as aws:kms"
)
S3_SSE_KMS_KEY: Final = text(
    "s3.sse-kms-key-id", "`s3.sse.key` as PyIceberg says it.", "an id or ARN"
)
S3_ACL: Final = text("s3.acl", "Who else may use what is written.", "a canned ACL")
S3_STORAGE_CLASS: Final = text(
    "s3.write.storage-class", "In which class it is kept.", "as INTELLIGENT_TIERING"
)
S3_DELETE_ENABLED: Final = flag(
    "s3.delete-enabled", "Always true here: what is deleted is deleted.", default=True
)
S3_TAG: Final = Property(
    "s3.write.tags.", "", "A tag of what is written, by its name.", "a text", str
)

GCS_TOKEN: Final = text("gcs.oauth2.token", "Proves to Google who asks, for some hours.", "a token")
GCS_TOKEN_EXPIRY: Final = optional_number(
    "gcs.oauth2.token-expires-at", "When that token ends, in milliseconds of the epoch.", least=0
)
GCS_ENDPOINT: Final = text("gcs.service.host", "Where the store is, if not at Google.", "a URL")
GCS_USER_PROJECT: Final = text(
    "gcs.user-project", "Which project pays for requests, if not the bucket's.", "its id"
)
GCS_NO_AUTH: Final = flag("gcs.no-auth", "Whether nobody asks: public buckets.", default=False)

ADLS_CONNECTION: Final = text(
    "adls.connection-string",
    "Account, key and addresses in one; `adls.connection-string.<account>` is one account's.",
    "as AccountName=a;AccountKey=...;EndpointSuffix=core.windows.net",
)
ADLS_ACCOUNT: Final = replace(
    text("adls.account-name", "The storage account, where a location names none.", "its name"),
    also=("adls.auth.shared-key.account.name",),
)
ADLS_KEY: Final = replace(
    text("adls.account-key", "The account's key.", "its key in Base64"),
    also=("adls.auth.shared-key.account.key",),
)
ADLS_SAS: Final = text(
    "adls.sas-token",
    "A shared access signature; `adls.sas-token.<account>` is one account's.",
    "a query without the question mark",
)
ADLS_TOKEN: Final = text("adls.token", "Proves to Azure who asks, for some hours.", "a token")
ADLS_TENANT: Final = text("adls.tenant-id", "Whose directory knows the client.", "its id")
ADLS_CLIENT: Final = text("adls.client-id", "Who asks.", "an application's id")
ADLS_SECRET: Final = text("adls.client-secret", "Proves it.", "its secret")
ADLS_HOST: Final = text(
    "adls.account-host", "The account's host.", "as account.blob.core.windows.net"
)
ADLS_AUTHORITY: Final = text(
    "adls.blob-storage-authority",
    "The hosts of all accounts end so, or it is the host and port of an emulator.",
    "as .blob.core.windows.net",
)
ADLS_SCHEME: Final = choice("adls.blob-storage-scheme", ("https", "http"), "How Azure is asked.")
ADLS_ANONYMOUS: Final = flag("adls.anon", "Whether nobody asks: public containers.", default=False)

STORAGE_PROPERTIES: Final[Mapping[str, Property[Any]]] = registered(list(globals().values()))
"""All of them by key."""
