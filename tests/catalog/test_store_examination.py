"""`icecomb doctor` on a warehouse in an S3: each trouble is made, seen and named with its remedy."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest

from icecomb.catalog import cli
from icecomb.catalog.hadoop.store_examination import examine_store
from icecomb.format.storage.file_io import FileIO
from tests.peers.s3 import KEY, SECRET
from tests.peers.s3_proxy import S3Proxy

pytestmark = pytest.mark.gate("examines a bucket of moto fifteen times")


@pytest.fixture(scope="module")
def bucket(s3):
    return s3.bucket()


@pytest.fixture
def proxy(s3):
    made = S3Proxy(s3.endpoint)
    yield made
    made.close()


@pytest.fixture
def doctor(proxy, s3, bucket, monkeypatch, tmp_path, capfd):
    """Runs the command: the exit code, the findings by subject, and all that was printed."""
    monkeypatch.setenv("ICECOMB_HOME", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)

    def run(choose=lambda _: "", **others):
        settings = {
            "type": "hadoop",
            "warehouse": f"s3a://{bucket}/lake",
            **proxy.settings(s3.settings),
            "io.object-store.max-attempts": "2",
            **others,
        }
        lines = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in settings.items())
        (tmp_path / "icecomb.yaml").write_text(f"catalog:\n  lake:\n{lines}")
        capfd.readouterr()
        proxy.choose = choose
        code = cli.main(["--catalog", "lake", "--output", "json", "doctor"])
        out, err = capfd.readouterr()
        assert SECRET not in out + err
        assert KEY not in out + err
        findings = {
            one["subject"]: (one["level"], f"{one['message']} -> {one['remedy']}")
            for one in json.loads(out)["findings"]
        }
        return code, findings

    return run


def test_a_healthy_store_has_no_problem_and_its_facts_are_shown(doctor, proxy, s3, bucket):
    code, found = doctor()
    assert code == 0
    assert {level for level, _ in found.values()} == {"ok"}
    assert f"at {proxy.endpoint}, region us-east-1" in found["object store"][1]
    assert f"key ...{KEY[-4:]}, from s3.access-key-id" in found["identity"][1]
    assert "does not replace objects" in found["conditional write"][1]
    assert "can be deleted" in found["delete"][1]
    client = s3.client()
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    client.close()


def test_keys_of_the_environment_are_said_to_be_so(doctor, s3, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    _, found = doctor(**{"s3.access-key-id": "", "s3.secret-access-key": ""})
    assert f"key ...{KEY[-4:]}, from the variables AWS_ACCESS_KEY_ID" in found["identity"][1]


@pytest.mark.parametrize(
    ("request_name", "answer", "subject", "words"),
    [
        ("HeadObject", "403 x", "object store", "session token"),
        ("HeadObject", "404 x", "object store", "s3.endpoint"),
        ("ListObjectsV2", "403 AccessDenied", "read", "Allow it"),
        ("PutObject", "403 AccessDenied", "write", "Allow it"),
        ("PutObject", "403 RequestTimeTooSkewed", "write", "clock"),
        ("GetObject", "403 AccessDenied", "write", "Allow it"),
        ("DeleteObject", "403 AccessDenied", "delete", "Allow it"),
    ],
)
def test_what_is_not_allowed_is_a_problem_with_its_remedy(
    doctor, request_name, answer, subject, words
):
    code, found = doctor(lambda each: answer if each.name == request_name else "")
    level, text = found[subject]
    assert (code, level) == (3, "problem")
    assert words in text


def test_a_store_that_replaces_objects_may_hold_no_tables_in_folders(s3, bucket, proxy):
    class Replacing(S3Proxy):
        """An older store: it does not know the condition."""

        def serve(self, handler):
            del handler.headers["If-None-Match"]
            super().serve(handler)

    old = Replacing(s3.endpoint)
    io = FileIO(old.settings(s3.settings))
    for in_folders, level in ((True, "problem"), (False, "warning")):
        found = {
            one.code: one for one in examine_store(io, f"s3://{bucket}/x", in_folders=in_folders)
        }
        assert found["conditional write"].severity.value == level
        assert "metastore" in f"{found['conditional write']}"
        assert found["delete"].severity.value == "ok"
    old.close()


@pytest.mark.parametrize(("ahead_s", "level"), [(10, "ok"), (-300, "warning"), (3600, "problem")])
def test_a_clock_that_is_wrong_is_said(s3, bucket, monkeypatch, ahead_s, level):
    class Elsewhen(S3Proxy):
        def forward(self, *asked):
            status, headers, found = super().forward(*asked)
            kept = [(name, value) for name, value in headers if name.lower() != "date"]
            return status, [*kept, ("Date", formatdate(time.time() - ahead_s, usegmt=True))], found

    other = Elsewhen(s3.endpoint)
    io = FileIO(other.settings(s3.settings))
    found = {one.code: one for one in examine_store(io, f"s3://{bucket}/x", in_folders=True)}
    assert found["clock"].severity.value == level
    assert ("ahead of" if ahead_s > 0 else "behind") in found["clock"].message
    other.close()


def test_a_region_that_is_not_the_buckets_is_said(s3, bucket):
    io = FileIO({**s3.settings, "s3.region": "eu-west-1"})
    found = examine_store(io, f"s3://{bucket}/x", in_folders=True)
    (said,) = [one for one in found if one.severity.value == "warning"]
    assert "s3.region is eu-west-1" in said.message
    assert said.remedy == "set s3.region=us-east-1"
