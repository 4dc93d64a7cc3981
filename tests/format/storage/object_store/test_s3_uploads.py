"""Large objects: parts that fail, completions whose answer gets lost, and what is left behind."""

from __future__ import annotations

import itertools

import pytest

from icecomb.format.errors import FileAlreadyExistsError, FileIOError, FileStateUnknownError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store import creation
from icecomb.format.storage.object_store.client import StoreBusyError
from tests.peers.s3_proxy import S3Proxy
from tests.rings import sampled

pytestmark = pytest.mark.gate("uploads of three parts")

PIECE = b"0123456789abcdef" * (1 << 16)
SIZE = 17
"""Pieces of 1 MiB: three parts."""
REQUESTS = ("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")
FAULTS = ("refuse", "lose", "busy", "error", "done_error", "torn", "short")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)


@pytest.fixture
def proxy(s3):
    proxy = S3Proxy(s3.endpoint)
    yield proxy
    proxy.close()


@pytest.fixture
def bucket(s3):
    return s3.bucket()


@pytest.fixture
def io(s3, proxy):
    return FileIO({**proxy.settings(s3.settings), "io.object-store.max-attempts": "4"})


@pytest.fixture
def left(s3, bucket):
    """The uploads that were begun and neither completed nor given up."""
    return lambda: s3.client().list_multipart_uploads(Bucket=bucket).get("Uploads", [])


def write(io, location):
    with io.create_stream(location) as out:
        for _ in range(SIZE):
            out.write(PIECE)


def failing(name, *faults):
    """The first requests of a name fail so, one after the other."""
    waiting = list(faults)
    return lambda asked: waiting.pop(0) if asked.name == name and waiting else ""


@pytest.mark.parametrize(
    ("fault", "name"),
    sampled(itertools.product(FAULTS, REQUESTS), keep=3),
)
def test_whatever_becomes_of_a_request_the_object_is_whole_and_nothing_is_left(
    io, proxy, s3, bucket, left, name, fault
):
    with proxy.fresh():
        proxy.choose = failing(name, fault, fault)
        write(io, f"s3://{bucket}/x")
    assert FileIO(s3.settings).read(f"s3://{bucket}/x") == PIECE * SIZE
    assert left() == []


def test_an_upload_whose_block_fails_leaves_nothing(io, bucket, left):
    with pytest.raises(ZeroDivisionError), io.create_stream(f"s3://{bucket}/x") as out:  # noqa: PT012
        for _ in range(SIZE):
            out.write(PIECE)
        _ = 1 // 0
    assert not io.exists(f"s3://{bucket}/x")
    assert left() == []


def test_an_upload_that_is_refused_for_good_leaves_nothing(io, proxy, bucket, left):
    with proxy.fresh():
        proxy.choose = lambda asked: "403 AccessDenied" if asked.name == "UploadPart" else ""
        with pytest.raises(FileIOError, match="AccessDenied"):
            write(io, f"s3://{bucket}/x")
    assert left() == []


def test_a_large_object_replaces_none_that_appeared_meanwhile(io, bucket, left):
    def meet():
        with io.create_stream(f"s3://{bucket}/x") as out:
            for _ in range(SIZE):
                out.write(PIECE)
            io.create(f"s3://{bucket}/x", b"theirs")

    with pytest.raises(FileAlreadyExistsError):
        meet()
    assert io.read(f"s3://{bucket}/x") == b"theirs"
    assert left() == []


def test_a_completion_that_never_answers_is_unknown_and_cannot_arrive_after_it_is_given_up(
    io, proxy, bucket, left
):
    with proxy.fresh():
        proxy.choose = lambda asked: "late" if asked.name == "CompleteMultipartUpload" else ""
        with pytest.raises(FileStateUnknownError):
            write(io, f"s3://{bucket}/x")
    assert left() == []
    assert proxy.release() == 4
    assert not io.exists(f"s3://{bucket}/x")


def test_a_storm_of_slow_down_is_waited_for_as_often_as_is_set(io, proxy, bucket):
    place = f"s3://{bucket}/x"
    with proxy.fresh():
        proxy.choose = failing("PutObject", *["busy"] * 3)
        io.create(place, b"1")
        proxy.choose = failing("GetObject", "busy", "busy", "short")
        assert io.read(place) == b"1"
        proxy.choose = failing("GetObject", *["busy"] * 4)
        with pytest.raises(StoreBusyError, match="SlowDown"):
            io.read(place)
        assert proxy.counts["GetObject"] == 8
