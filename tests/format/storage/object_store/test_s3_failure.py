"""What is wrong with a bucket, a key or whoever asks is said in one line, with the remedy."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from icecomb.format.errors import (
    ConfigurationError,
    FileIOError,
    IcecombError,
    MissingDependencyError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.storage.file_io import FileIO
from tests.peers.ports import free_ports
from tests.peers.s3_proxy import S3Proxy

QUICK = {"io.object-store.max-attempts": "1", "s3.connect-timeout": "1"}


@pytest.fixture(scope="module")
def bucket(s3):
    return s3.bucket()


@pytest.fixture(scope="module")
def proxy(s3):
    made = S3Proxy(s3.endpoint)
    yield made
    made.close()


@pytest.fixture(scope="module")
def refusing(proxy, s3, bucket):
    """Does something to a file of a store that refuses every request so."""
    io = FileIO({**proxy.settings(s3.settings), **QUICK})

    def run(verb, answer):
        location = f"s3://{bucket}/{uuid.uuid4().hex}"
        with proxy.fresh():
            proxy.choose = lambda _: answer
            with pytest.raises(IcecombError) as refused:
                {
                    "read": lambda: io.read(location),
                    "access": lambda: io.size(location),
                    "create": lambda: io.create(location, b"x"),
                    "list": lambda: list(io.list(location)),
                    "delete": lambda: io.delete([location]),
                }[verb]()
        error = refused.value
        assert "\n" not in error.message
        assert location in error.message
        assert error.hint
        assert s3.settings["s3.secret-access-key"] not in f"{error.message} {error.hint}"
        return error

    yield run
    io.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("400 AuthorizationHeaderMalformed", "s3.region"),
        ("400 IllegalLocationConstraintException", "s3.region"),
        ("400 ExpiredToken", "get a new one"),
        ("400 InvalidToken", "doctor"),
        ("403 InvalidAccessKeyId", "doctor"),
        ("403 SignatureDoesNotMatch", "The secret does not belong"),
        ("403 RequestTimeTooSkewed", "clock"),
        ("403 AccessDenied", "Allow it"),
        ("404 NoSuchBucket", "no such bucket"),
        ("400 KeyTooLongError", "1,024 bytes"),
    ],
)
@pytest.mark.parametrize("verb", ["read", "create", "list", "delete"])
def test_what_the_store_refuses_comes_with_its_remedy(refusing, verb, answer, words):
    error = refusing(verb, answer)
    assert isinstance(error, FileIOError)
    assert not isinstance(error, NoSuchFileError)
    assert verb in error.message
    assert answer.partition(" ")[2] in error.message
    assert words in error.hint


def test_a_bucket_that_is_elsewhere_is_said_where_the_store_does_not_say_where(refusing):
    error = refusing("list", "301 PermanentRedirect")
    assert "PermanentRedirect" in error.message
    assert "s3.region" in error.hint


def test_the_region_of_a_bucket_is_looked_for_once(refusing, proxy):
    """Botocore asks by HEAD, whose answer is a redirect again."""
    refusing("list", "301 PermanentRedirect")
    assert [asked.name for asked in proxy.requests] == ["ListObjectsV2", "HeadObject"]  # of no key


@pytest.mark.parametrize("status", [400, 403])
def test_an_answer_without_a_code_names_what_it_may_be(refusing, status):
    """HEAD has no body that could say more."""
    error = refusing("access", f"{status} x")
    assert "token" in error.hint


def test_a_bucket_that_is_not_there_is_said(s3):
    missing = f"s3://b-{uuid.uuid4().hex}"
    io = FileIO({**s3.settings, **QUICK})
    for work in (
        lambda: io.read(f"{missing}/x"),
        lambda: io.create(f"{missing}/x", b""),
        lambda: list(io.list(f"{missing}/x")),
    ):
        with pytest.raises(FileIOError, match="NoSuchBucket") as refused:
            work()
        assert "no such bucket" in (refused.value.hint or "")
        assert not isinstance(refused.value, NoSuchFileError)


def test_a_store_that_does_not_answer_is_said(s3):
    (port,) = free_ports(1)
    io = FileIO({**s3.settings, **QUICK, "s3.endpoint": f"http://127.0.0.1:{port}"})
    with pytest.raises(FileIOError, match=f"127.0.0.1:{port}") as refused:
        io.read("s3://bucket/x")
    assert "s3.endpoint" in (refused.value.hint or "")


def test_without_keys_it_is_said_where_they_may_be_set(s3, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    io = FileIO({"s3.endpoint": s3.endpoint, **QUICK})
    with pytest.raises(ConfigurationError, match="no S3 keys") as refused:
        io.read("s3://bucket/x")
    assert "s3.access-key-id" in (refused.value.hint or "")
    profile = FileIO({"s3.endpoint": s3.endpoint, "s3.profile-name": "nobody"})
    with pytest.raises(ConfigurationError, match="nobody") as refused:
        profile.read("s3://bucket/x")
    assert "~/.aws/config" in (refused.value.hint or "")


def test_a_key_with_every_legal_character_works(s3, bucket):
    io = FileIO(s3.settings)
    plain = "".join(map(chr, range(0x20, 0x7F))).replace("/", "")
    for name in (plain, "ä ü/日本/😀", "a=b/c%20d/e+f/g&h", "~.,;:@$!*'()", "x" * 900):
        location = f"s3://{bucket}/{uuid.uuid4().hex}/{name}"
        io.create(location, name.encode())
        assert io.read(location) == name.encode()
        assert [each.location for each in io.list(location.rpartition("/")[0])] == [location]
        io.delete([location, f"{location}-none"])
        assert not io.exists(location)


@pytest.mark.parametrize("location", ["s3://", "s3:///x", "s3:x"])
def test_a_location_without_a_bucket_is_said(s3, location):
    with pytest.raises(ValidationError, match="Not a location of S3"):
        FileIO(s3.settings).read(location)


_WITHOUT = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"boto3", "botocore"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from icecomb.format.errors import MissingDependencyError
from icecomb.format.storage.file_io import FileIO
try:
    FileIO({"s3.endpoint": "http://127.0.0.1:1"}).read("s3://bucket/x")
except MissingDependencyError as error:
    print(error.message, error.hint)
"""


def test_without_the_extra_the_line_that_installs_it_is_said():
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True
    )
    assert "pip install 'icecomb[s3]'" in run.stdout
    assert issubclass(MissingDependencyError, IcecombError)


@pytest.mark.parametrize("setting", ["s3.endpoint", "s3.proxy-uri"])
def test_a_password_in_an_address_is_in_no_message(setting):
    [port] = free_ports(1)
    settings = {
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "s3.region": "us-east-1",
        setting: f"http://somebody:s3cret@127.0.0.1:{port}",
    }
    io = FileIO({**settings, **QUICK})
    for ask in (
        lambda: io.read("s3://b/x"),
        lambda: list(io.list("s3://b/x")),
        lambda: io.create("s3://b/x", b"1"),
    ):
        with pytest.raises(IcecombError) as caught:
            ask()
        assert "s3cret" not in f"{caught.value} {caught.value.context}"
    io.close()
