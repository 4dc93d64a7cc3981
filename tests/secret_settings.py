"""Settings, variables and addresses that hold secrets, as the documentation of others has them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import quote

STEM = "icemark"
_AROUND = 70


def marker(name: str) -> str:
    """Return the secret of a name: Base64, with what URLs and HTML encode."""
    number = sum(index * ord(letter) for index, letter in enumerate(name, 1)) % 1000
    return f"{STEM}{number:03d}+/"


def spellings() -> dict[str, str]:
    """What the markers of all names have in common: as they are, in Base64 and in hex."""

    def coded(shift: int) -> str:
        text = base64.b64encode(b" " * shift + STEM.encode()).decode()
        return text[(0, 2, 3)[shift] : (len(STEM) + shift) // 3 * 4]

    in_base64 = {f"Base64, byte {shift}": coded(shift) for shift in range(3)}
    hexed = STEM.encode().hex()
    return {"plain": STEM, **in_base64, "hex": hexed, "HEX": hexed.upper()}


def leaks(text: str) -> Iterator[str]:
    """Yield where markers are in a text, however they are spelled, with what stands around."""
    for how, spelling in spellings().items():
        at = text.find(spelling)
        while at >= 0:
            yield f"{how}: {text[max(at - _AROUND, 0) : at + _AROUND]!r}"
            at = text.find(spelling, at + 1)


HADOOP = (
    # core-default.xml, hadoop.security.sensitive-config-keys and what they stand for
    "hadoop.security.group.mapping.ldap.bind.password",
    "hadoop.security.group.mapping.ldap.ssl.keystore.password",
    "hadoop.security.group.mapping.ldap.ssl.truststore.password",
    "hadoop.registry.jaas.password",
    "hadoop.zk.ssl.keystore.password",
    "hadoop.zk.ssl.truststore.password",
    "dfs.web.ssl.keystore.pass",
    "ssl.server.keystore.keypassword",
    "ssl.client.truststore.password",
    "fs.ftp.password.host",
    "fs.sftp.password.host.user",
    # hadoop-aws: index.html, encryption.html; the older s3 and s3n
    "fs.s3.awsAccessKeyId",
    "fs.s3.awsSecretAccessKey",
    "fs.s3n.awsAccessKeyId",
    "fs.s3n.awsSecretAccessKey",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.proxy.password",
    "fs.s3a.encryption.key",
    "fs.s3a.server-side-encryption.key",
    "fs.s3a.bucket.lake.access.key",
    "fs.s3a.bucket.lake.secret.key",
    "fs.s3a.bucket.lake.session.token",
    # hadoop-azure: abfs.html, wasb.html; hadoop-azure-datalake
    "fs.azure.account.key.account.dfs.core.windows.net",
    "fs.azure.account.oauth2.client.secret",
    "fs.azure.account.oauth2.client.secret.account.dfs.core.windows.net",
    "fs.azure.account.oauth2.user.password",
    "fs.azure.account.oauth2.refresh.token",
    "fs.azure.sas.box.account.blob.core.windows.net",
    "fs.azure.sas.fixed.token.account.dfs.core.windows.net",
    "fs.azure.encryption.encoded.client-provided-key",
    "fs.adl.oauth2.credential",
    "fs.adl.oauth2.refresh.token",
    "dfs.adls.oauth2.credential",
    # the connector of Google Cloud Storage: CONFIGURATION.md
    "fs.gs.auth.client.secret",
    "fs.gs.auth.refresh.token",
    "fs.gs.auth.service.account.private.key",
    "fs.gs.auth.service.account.private.key.id",
    "fs.gs.proxy.password",
    "fs.gs.encryption.key",
    "fs.gs.encryption.key.hash",
    # hadoop-aliyun, hadoop-cos, hadoop-huaweicloud, hadoop-openstack
    "fs.oss.accessKeySecret",
    "fs.oss.securityToken",
    "fs.cosn.userinfo.secretKey",
    "fs.obs.secret.key",
    "fs.obs.session.token",
    "fs.swift.service.rackspace.apikey",
    "fs.swift.service.rackspace.password",
)
HIVE = (
    # hive.conf.hidden.list of HiveConf and MetastoreConf
    "javax.jdo.option.ConnectionPassword",
    "hive.server2.keystore.password",
    "hive.server2.webui.keystore.password",
    "hive.metastore.dbaccess.ssl.truststore.password",
    "hive.metastore.keystore.password",
    "hive.metastore.truststore.password",
    "metastore.keystore.password",
    "metastore.truststore.password",
    "metastore.dbaccess.ssl.truststore.password",
    "hive.metastore.client.plain.password",
    "hive.druid.metadata.password",
    "hive.zookeeper.ssl.keystore.password",
    "hive.zookeeper.ssl.truststore.password",
    "hive.server2.ldap.bindpw",
    "hive.server2.ldap.groupBindPassword",
)
ICEBERG = (
    # Iceberg's AwsClientProperties, S3FileIOProperties, AzureProperties, GCPProperties, OAuth2
    "client.access-key-id",
    "client.secret-access-key",
    "client.session-token",
    "s3.access-key-id",
    "s3.secret-access-key",
    "s3.session-token",
    "s3.sse.key",
    "glue.secret-access-key",
    "adls.auth.shared-key.account.key",
    "adls.connection-string.account",
    "adls.sas-token.account.dfs.core.windows.net",
    "adls.token",
    "adls.client-secret",
    "gcs.oauth2.token",
    "gcs.encryption-key",
    "gcs.decryption-key",
    "jdbc.password",
    "credential",
    "token",
    "header.Authorization",
    "rest.auth.basic.password",
)
SETTINGS = (*HADOOP, *HIVE, *ICEBERG)
"""Names in configuration files; the values are the secrets."""
VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_PASSWORD",
    "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "IDENTITY_HEADER",
    "MSI_SECRET",
    "HADOOP_CREDSTORE_PASSWORD",
    "HADOOP_KEYSTORE_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PWD",
    "SPARK_AUTHENTICATE_SECRET",
    "_SPARK_AUTH_SECRET",
    "PYPI_TOKEN",
    "GITHUB_TOKEN",
)
"""Environment variables whose values are secrets."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def with_login(address: str, name: str) -> str:
    """Return the address with a user and the marker of a name as its password."""
    scheme, _, rest = address.rpartition("://")
    return f"{scheme or 'http'}://me:{quote(marker(name), safe='')}@{rest}"
