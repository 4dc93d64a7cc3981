"""Who asks S3, and whether what holds for a while only is renewed."""

from __future__ import annotations

import json
import re
import stat
import sys

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.file_io import FileIO
from tests.peers.s3 import KEY
from tests.peers.s3_proxy import S3Proxy


@pytest.fixture(scope="module")
def bucket(s3):
    return s3.bucket()


@pytest.fixture
def asked(s3):
    """A proxy that notes who signed each request, and what STS was asked."""

    class Noting(S3Proxy):
        def serve(self, handler):
            found = re.search(r"Credential=(\w+)", handler.headers.get("Authorization", ""))
            self.signers.append(found[1] if found else "")
            super().serve(handler)

        def forward(self, request, method, path, headers, body):
            if b"Action=AssumeRole" in body:
                self.roles.append(body.decode())
            return super().forward(request, method, path, headers, body)

    made = Noting(s3.endpoint)
    made.signers, made.roles = [], []
    yield made
    made.close()


@pytest.fixture
def no_keys(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def test_a_role_is_assumed_and_renewed_before_it_ends(s3, asked, bucket):
    """One of 900 s is to be renewed at once, as boto3 does 15 minutes before the end."""
    io = FileIO(
        {
            **asked.settings(s3.settings),
            "s3.role-arn": "arn:aws:iam::123456789012:role/reader",
            "s3.role-session-name": "tests",
            "client.assume-role.timeout-sec": "900",
            "fs.s3a.assumed.role.sts.endpoint": asked.endpoint,
        }
    )
    io.create(f"s3://{bucket}/role", b"1")
    assert io.read(f"s3://{bucket}/role") == b"1"
    assert len(asked.roles) >= 2
    assert all("RoleSessionName=tests" in each for each in asked.roles)
    of_role = [each for each in asked.signers if each != KEY]
    assert len(of_role) >= 2
    assert len(set(of_role)) >= 2
    assert all(each.startswith("ASIA") for each in of_role)


def test_keys_of_a_program_that_a_profile_names_are_renewed(
    s3, asked, bucket, no_keys, monkeypatch, tmp_path
):
    program, log = tmp_path / "keys", tmp_path / "log"
    program.write_text(
        f"#!{sys.executable}\n"
        "import datetime, json, pathlib\n"
        f"log = pathlib.Path({str(log)!r})\n"
        "number = len(log.read_text()) if log.exists() else 0\n"
        "log.write_text('x' * (number + 1))\n"
        "end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=60)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'ASIAPROGRAM{number}',\n"
        "    'SecretAccessKey': 's', 'SessionToken': 't', 'Expiration': end.isoformat()}))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "config").write_text(f"[profile team]\ncredential_process = {program}\n")
    io = FileIO(
        {"s3.endpoint": asked.endpoint, "s3.region": "us-east-1", "s3.profile-name": "team"}
    )
    io.create(f"s3://{bucket}/program", b"1")
    assert io.read(f"s3://{bucket}/program") == b"1"
    assert len({each for each in asked.signers if each.startswith("ASIAPROGRAM")}) >= 2


def test_keys_of_hadoops_files_sign(s3, asked, bucket, no_keys, monkeypatch, tmp_path):
    (tmp_path / "core-site.xml").write_text(
        "<configuration>"
        + "".join(
            f"<property><name>fs.s3a.{name}</name><value>{value}</value></property>"
            for name, value in {
                "endpoint": asked.endpoint,
                "path.style.access": "true",
                "access.key": "AKIAHADOOP",
                "secret.key": "secret",
                f"bucket.{bucket}.access.key": "AKIABUCKET",
                f"bucket.{bucket}.secret.key": "secret",
            }.items()
        )
        + "</configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    FileIO().create(f"s3a://{bucket}/hadoop", b"1")
    FileIO().create(f"s3a://{s3.bucket()}/hadoop", b"1")
    assert asked.signers == ["AKIABUCKET", "AKIAHADOOP"]


def test_nobody_signs_where_that_is_said(s3, asked, bucket):
    io = FileIO({**asked.settings(s3.settings), "s3.anonymous": "true"})
    io.exists(f"s3://{bucket}/x")
    assert asked.signers == [""]


def test_a_role_without_keys_to_ask_for_it_is_said(s3, no_keys):
    io = FileIO({"s3.endpoint": s3.endpoint, "s3.role-arn": "arn:aws:iam::1:role/r"})
    with pytest.raises(ConfigurationError, match="no S3 keys") as refused:
        io.read("s3://bucket/x")
    assert "s3.profile-name" in (refused.value.hint or "")


def test_what_is_written_is_encrypted_and_marked(s3, bucket):
    io = FileIO(
        {
            **s3.settings,
            "s3.sse.type": "kms",
            "s3.sse.key": "alias/lake",
            "s3.write.tags.team": "lake",
            "s3.write.storage-class": "STANDARD_IA",
        }
    )
    io.create(f"s3://{bucket}/small", b"1")
    with io.create_stream(f"s3://{bucket}/large") as out:
        out.write(b"x" * (9 << 20))
    client = s3.client()
    for key in ("small", "large"):
        found = client.head_object(Bucket=bucket, Key=key)
        assert found["ServerSideEncryption"] == "aws:kms"
        assert found["SSEKMSKeyId"].endswith("alias/lake")
        assert found["StorageClass"] == "STANDARD_IA"
        tags = client.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
        assert tags == [{"Key": "team", "Value": "lake"}]
    client.close()


def test_a_secret_is_in_no_error_repr_or_pickled_message(s3, bucket):
    io = FileIO({**s3.settings, "s3.session-token": "a token of tests"})
    system = io.served_by(f"s3://{bucket}/x")
    for shown in (
        repr(io),
        repr(system),
        repr(system.place(f"s3://{bucket}/x")),
        repr(vars(system)),
    ):
        assert s3.settings["s3.secret-access-key"] not in shown, shown
        assert "a token of tests" not in shown
    assert json.dumps(s3.settings)
