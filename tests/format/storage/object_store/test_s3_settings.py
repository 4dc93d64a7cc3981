"""Whence the settings of S3 come: PyIceberg's, Iceberg's and Hadoop's names, in one order."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.secret import HIDDEN, shown
from icecomb.format.storage.object_store.s3_settings import S3Settings

OURS = {"s3.access-key-id": "AK", "s3.secret-access-key": "SK"}
HADOOP = {"fs.s3a.access.key": "HAK", "fs.s3a.secret.key": "HSK"}
PROVIDER = "fs.s3a.aws.credentials.provider"
PACKAGE = "org.apache.hadoop.fs.s3a"


def of(properties, bucket="lake"):
    return S3Settings.of(properties, bucket)


def test_nothing_leaves_all_to_boto3():
    found = of({})
    assert (found.endpoint, found.region, found.path_style, found.access_key) == (None,) * 4
    assert not found.anonymous
    assert found.written == {}


def test_pyiceberg_spells_them_so():
    found = of(
        {
            **OURS,
            "s3.endpoint": "http://127.0.0.1:9000",
            "s3.session-token": "ST",
            "s3.region": "eu-central-1",
            "s3.role-arn": "arn:aws:iam::1:role/r",
            "s3.role-session-name": "me",
            "s3.connect-timeout": "3",
            "s3.request-timeout": "4",
            "s3.proxy-uri": "http://proxy:3128",
        }
    )
    assert (found.endpoint, found.region) == ("http://127.0.0.1:9000", "eu-central-1")
    assert (found.access_key, found.secret_key, found.session_token) == ("AK", "SK", "ST")
    assert (found.role_arn, found.role) == ("arn:aws:iam::1:role/r", {"RoleSessionName": "me"})
    assert (found.connect_timeout_s, found.request_timeout_s) == (3.0, 4.0)
    assert found.proxy == "http://proxy:3128"
    assert found.path_style is True


def test_what_is_said_of_any_client_counts_where_nothing_is_said_of_s3():
    client = {
        "client.access-key-id": "CAK",
        "client.secret-access-key": "CSK",
        "client.session-token": "CST",
        "client.region": "us-west-2",
    }
    found = of(client)
    assert (found.access_key, found.secret_key, found.session_token) == ("CAK", "CSK", "CST")
    assert found.region == "us-west-2"
    assert found.sources["access_key"] == "client.access-key-id"
    assert of({**client, "s3.region": "us-east-2"}).region == "us-east-2"
    assert of({"client.profile-name": "team"}).profile == "team"
    java = of({"client.assume-role.arn": "a:role", "client.assume-role.external-id": "x"})
    assert (java.role_arn, java.role["ExternalId"]) == ("a:role", "x")


def test_hadoop_spells_them_so_and_a_bucket_goes_before_all():
    found = of(
        {
            **HADOOP,
            "fs.s3a.bucket.lake.access.key": "BAK",
            "fs.s3a.bucket.lake.secret.key": "BSK",
            "fs.s3a.bucket.pond.access.key": "another",
            "fs.s3a.endpoint": "store.example:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.endpoint.region": "eu-west-1",
            "fs.s3a.path.style.access": "false",
            "fs.s3a.connection.establish.timeout": "5s",
            "fs.s3a.connection.timeout": "7000",
        }
    )
    assert (found.access_key, found.secret_key) == ("BAK", "BSK")
    assert found.sources["access_key"] == "fs.s3a.bucket.lake.access.key"
    assert (found.endpoint, found.region) == ("http://store.example:9000", "eu-west-1")
    assert found.path_style is False
    assert (found.connect_timeout_s, found.request_timeout_s) == (5.0, 7.0)
    assert of({"fs.s3a.endpoint": "store.example"}).endpoint == "https://store.example"


def test_amazons_own_endpoints_are_left_to_boto3():
    for endpoint in ("s3.amazonaws.com", "https://s3.amazonaws.com/"):
        found = of({"fs.s3a.endpoint": endpoint})
        assert (found.endpoint, found.region, found.path_style) == (None, None, None)
    found = of({"fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com"})
    assert (found.endpoint, found.region) == (None, "eu-central-1")


def test_core_site_xml_says_them(tmp_path, monkeypatch):
    (tmp_path / "core-site.xml").write_text(
        "<configuration>"
        "<property><name>fs.s3a.access.key</name><value>XAK</value></property>"
        "<property><name>fs.s3a.secret.key</name><value>XSK</value></property>"
        "</configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert (of({}).access_key, of({}).secret_key) == ("XAK", "XSK")
    assert (of(OURS).access_key, of(OURS).secret_key) == ("AK", "SK")


@pytest.mark.parametrize(
    ("properties", "key", "profile", "role", "anonymous"),
    [
        ({**OURS, **HADOOP}, "AK", None, None, False),
        ({**OURS, PROVIDER: f"{PACKAGE}.AnonymousAWSCredentialsProvider"}, "AK", None, None, False),
        ({**OURS, PROVIDER: "software.amazon.awssdk.DefaultX"}, "AK", None, None, False),
        ({**HADOOP, "s3.profile-name": "team"}, None, "team", None, False),
        ({**OURS, "s3.anonymous": "true"}, None, None, None, True),
        ({**HADOOP, PROVIDER: f"{PACKAGE}.SimpleAWSCredentialsProvider"}, "HAK", None, None, False),
        ({**HADOOP, PROVIDER: f"{PACKAGE}.AnonymousAWSCredentialsProvider"}, None, None, None, True),
        (
            {**HADOOP, PROVIDER: "com.amazonaws.auth.InstanceProfileCredentialsProvider"},
            None, None, None, False,
        ),
        (
            {
                **HADOOP,
                PROVIDER: f"{PACKAGE}.auth.AssumedRoleCredentialProvider",
                "fs.s3a.assumed.role.arn": "a:role",
            },
            "HAK", None, "a:role", False,
        ),
        ({**HADOOP, "fs.s3a.assumed.role.arn": "a:role"}, "HAK", None, None, False),
    ],
)  # fmt: skip
def test_who_asks_is_said_by_one_place(properties, key, profile, role, anonymous):
    found = of(properties)
    assert (found.access_key, found.profile, found.role_arn) == (key, profile, role)
    assert found.anonymous is anonymous


@pytest.mark.parametrize(
    ("properties", "written"),
    [
        ({"s3.sse.type": "s3"}, {"ServerSideEncryption": "AES256"}),
        (
            {"s3.sse.type": "kms", "s3.sse.key": "k1"},
            {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k1"},
        ),
        ({"s3.sse.type": "dsse-kms"}, {"ServerSideEncryption": "aws:kms:dsse"}),
        (
            {"s3.server-side-encryption": "aws:kms", "s3.sse-kms-key-id": "k2"},
            {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k2"},
        ),
        (
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "k3"},
            {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k3"},
        ),
        (
            {"fs.s3a.server-side-encryption-algorithm": "AES256"},
            {"ServerSideEncryption": "AES256"},
        ),
        ({"fs.s3a.encryption.algorithm": "SSE-S3", "s3.sse.type": "none"}, {}),
        ({"s3.acl": "bucket-owner-full-control"}, {"ACL": "bucket-owner-full-control"}),
        ({"fs.s3a.acl.default": "BucketOwnerRead"}, {"ACL": "bucket-owner-read"}),
        ({"s3.write.storage-class": "STANDARD_IA"}, {"StorageClass": "STANDARD_IA"}),
        ({"fs.s3a.create.storage.class": "intelligent_tiering"}, {"StorageClass": "INTELLIGENT_TIERING"}),
        ({"s3.write.tags.team": "a b", "s3.write.tags.x": "1"}, {"Tagging": "team=a+b&x=1"}),
    ],
)  # fmt: skip
def test_what_is_written_is_encrypted_and_marked_as_they_say(properties, written):
    assert of(properties).written == written


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"s3.access-key-id": "AK"}, "s3.secret-access-key"),
        ({"fs.s3a.secret.key": "SK"}, "fs.s3a.access.key"),
        ({"s3.sse.type": "custom"}, "Encryption custom"),
        ({"fs.s3a.encryption.algorithm": "CSE-KMS"}, "Encryption CSE-KMS"),
        ({"fs.s3a.bucket.lake.encryption.algorithm": "SSE-C"}, "Encryption SSE-C"),
        ({PROVIDER: "com.example.OurProvider"}, "com.example.OurProvider"),
        ({"fs.s3a.security.credential.provider.path": "jceks://file/x"}, "keystore"),
        (
            {
                PROVIDER: "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
                "hadoop.security.credential.provider.path": "jceks://file/x",
            },
            "hadoop.security.credential.provider.path",
        ),
        ({"fs.s3a.bucket.lake.accesspoint.arn": "arn:aws:s3:::x"}, "access point"),
        ({"s3.access-points.lake": "arn:aws:s3:::x"}, "s3.access-points.lake"),
        ({"s3.signer": "S3V4RestSigner"}, "s3.signer"),
        ({"s3.delete-enabled": "false"}, "s3.delete-enabled"),
        ({"s3.write.table-tag-enabled": "true"}, "s3.write.table-tag-enabled"),
        ({"s3.path-style-access": "perhaps"}, "s3.path-style-access"),
        ({"s3.anonymous": "perhaps"}, "s3.anonymous"),
    ],
)
def test_what_makes_no_sense_or_is_not_served_is_refused_with_the_remedy(properties, words):
    with pytest.raises(ConfigurationError) as refused:
        of(properties)
    assert words in refused.value.message
    assert refused.value.hint


def test_a_keystore_of_all_of_hadoop_is_no_reason_where_keys_may_be_elsewhere():
    keystore = {"hadoop.security.credential.provider.path": "jceks://file/of-hive"}
    simple = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    environment = "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
    assert of(keystore).access_key is None
    assert of(keystore | {PROVIDER: f"{simple},{environment}"}).access_key is None
    found = of(keystore | {PROVIDER: simple, "fs.s3a.access.key": "A", "fs.s3a.secret.key": "S"})
    assert found.access_key == "A"


def test_what_asks_for_nothing_is_no_reason_to_refuse():
    of({"s3.remote-signing-enabled": "false", "s3.delete-enabled": "true"})
    of({"s3.multipart.size": "33554432", "fs.s3a.fast.upload": "true", "s3.sse.type": "none"})


def test_secrets_are_in_no_repr_and_shown_to_nobody():
    found = of({**OURS, "s3.session-token": "ST", "s3.proxy-uri": "http://u:pw@proxy"})
    assert not any(secret in repr(found) for secret in ("AK", "SK", "ST", "pw"))
    for key in (
        "s3.secret-access-key", "s3.session-token", "fs.s3a.bucket.lake.secret.key",
        "fs.azure.account.key.a.dfs.core.windows.net", "fs.azure.sas.c.a.blob.core.windows.net",
        "fs.azure.sas.fixed.token", "adls.sas-token.a", "adls.connection-string.a",
        "adls.account-key", "adls.client-secret", "gcs.oauth2.token", "adls.credential",
        "fs.azure.account.oauth2.client.secret", "fs.s3a.proxy.password",
    ):  # fmt: skip
        assert shown(key, "secret") == HIDDEN
    assert shown("s3.proxy-uri", "http://u:pw@proxy") == "http://proxy"


def test_a_role_is_asked_for_as_iceberg_and_hadoop_say():
    java = of(
        {
            "client.assume-role.arn": "a:role",
            "client.assume-role.timeout-sec": "1800",
            "client.assume-role.region": "eu-west-1",
            "client.assume-role.tags.team": "lake",
        }
    )
    assert java.role == {
        "RoleSessionName": "icecomb",
        "DurationSeconds": 1800,
        "Tags": [{"Key": "team", "Value": "lake"}],
    }
    assert java.sts_region == "eu-west-1"
    hadoop = of(
        {
            "fs.s3a.assumed.role.session.name": "me",
            "fs.s3a.assumed.role.session.duration": "30m",
            "fs.s3a.assumed.role.policy": "{}",
            "fs.s3a.assumed.role.sts.endpoint": "sts.example:1",
            "fs.s3a.assumed.role.sts.endpoint.region": "eu-west-2",
        }
    )
    assert hadoop.role == {"RoleSessionName": "me", "DurationSeconds": 1800, "Policy": "{}"}
    assert (hadoop.sts_endpoint, hadoop.sts_region) == ("https://sts.example:1", "eu-west-2")


def test_a_proxy_of_hadoops_is_one_address():
    hadoop = {"fs.s3a.proxy.host": "proxy", "fs.s3a.proxy.port": "3128"}
    assert of(hadoop).proxy == "http://proxy:3128"
    login = {"fs.s3a.proxy.username": "u", "fs.s3a.proxy.password": "p/w"}
    assert of({**hadoop, **login}).proxy == "http://u:p%2Fw@proxy:3128"
