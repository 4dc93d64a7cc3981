"""What tasks are told of S3, in the words of Hadoop's S3A."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.spark.planner.table.catalogs import task_settings

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
SCHEMES = {"fs.s3.impl": S3A, "fs.s3n.impl": S3A}


def test_an_s3_that_nobody_has_a_class_for_is_s3as():
    assert task_settings({}, {}) == SCHEMES
    emr = {"fs.s3.impl": "com.amazon.ws.emr.hadoop.fs.EmrFileSystem"}
    assert task_settings({}, emr) == {"fs.s3n.impl": S3A}


def test_what_hadoop_says_already_is_not_said_again():
    hadoop = {"fs.s3a.endpoint": "http://h:1", "fs.s3a.access.key": "a", "fs.s3a.secret.key": "b"}
    assert task_settings(hadoop, hadoop) == SCHEMES
    assert task_settings({"client.pool.cache.eviction-interval-ms": "1"}, hadoop) == SCHEMES


def test_options_of_a_catalog_are_said_as_s3a_calls_them():
    said = {
        "s3.endpoint": "http://h:9000",
        "s3.access-key-id": "id",
        "s3.secret-access-key": "secret",
        "s3.session-token": "token",
        "s3.sse.type": "kms",
        "s3.sse.key": "arn",
        "s3.acl": "bucket-owner-full-control",
        "s3.write.storage-class": "INTELLIGENT_TIERING",
    }
    assert task_settings(said, {}) == {
        **SCHEMES,
        "fs.s3a.endpoint": "http://h:9000",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "id",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.session.token": "token",
        "fs.s3a.encryption.algorithm": "SSE-KMS",
        "fs.s3a.encryption.key": "arn",
        "fs.s3a.acl.default": "BucketOwnerFullControl",
        "fs.s3a.create.storage.class": "intelligent_tiering",
    }


@pytest.mark.parametrize(
    ("said", "provider"),
    [
        ({"s3.anonymous": "true"}, "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"),
        (
            {"s3.role-arn": "arn:aws:iam::1:role/r"},
            "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider",
        ),
        (
            {"s3.profile-name": "lake"},
            "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider",
        ),
    ],
)
def test_who_gives_the_keys_is_said_unless_hadoop_says_it(said, provider):
    key = "fs.s3a.aws.credentials.provider"
    assert task_settings(said, {})[key] == provider
    own = {key: "com.example.Ours"}
    if "s3.anonymous" not in said:
        assert key not in task_settings(said, own)


def test_what_tasks_cannot_do_is_refused():
    with pytest.raises(ConfigurationError, match="cannot tag") as caught:
        task_settings({"s3.write.tags.team": "blue"}, {})
    assert caught.value.hint
