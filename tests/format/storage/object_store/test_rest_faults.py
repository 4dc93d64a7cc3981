"""Google's and Azure's stores behind a network that loses, delays and tears: each file is there once, whole.

The gate has the stores in memory, full the servers, too.
"""

from __future__ import annotations

import contextlib
import random

import pytest

from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    FileStateUnknownError,
    IcecombError,
    NoSuchFileError,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store.client import PART
from tests.format.storage.object_store.memory_stores import (
    azure_in_memory,
    google_in_memory,
    opened,
)
from tests.peers.s3_proxy import FAULTS, MIDDLE_FAULTS
from tests.peers.store_proxies import AzureProxy, GoogleProxy, behind
from tests.rings import sampled

LARGE = random.Random(7).randbytes(2 * PART + 12_345)
CREATES = {"Insert", "PutBlob"}
UPLOADS = {"Begin", "Chunk", "PutBlock", "PutBlockList"}
COPIES = {"Rewrite", "CopyBlob"}


with_server = pytest.mark.full("a server of another vendor")


@pytest.fixture(
    params=[
        "google",
        "azure",
        pytest.param("google_store", marks=with_server),
        pytest.param("azurite", marks=with_server),
    ]
)
def store(request, monkeypatch):
    monkeypatch.setattr("icecomb.format.storage.object_store.creation.FIRST_S", 0.001)
    if request.param == "google":
        made = google_in_memory()
    elif request.param == "azure":
        made = azure_in_memory()
    else:
        kind = {"google_store": GoogleProxy, "azurite": AzureProxy}[request.param]
        made = behind(kind, request.getfixturevalue(request.param))
    with opened(made) as store:
        yield store


def once(names, fault, after=0):
    """The first of these requests, or a later one, has this fault."""
    seen = []

    def choose(request):
        if request.name not in names:
            return ""
        seen.append(request)
        return fault if len(seen) == after + 1 else ""

    return choose


CREATED = [each for each in (*FAULTS, *MIDDLE_FAULTS) if each not in {"replace", "twice"}]
WHOLE = [each for each in (*FAULTS, *MIDDLE_FAULTS) if each != "replace"]
"""Also of a request that was sent twice it is known whose object is there."""
INVENTED = ["text_503", "text_404", "no_headers"]


def files(store):
    return [
        each.location.removeprefix(f"{store.place}/") for each in store.direct.list(store.place)
    ]


@pytest.mark.parametrize("fault", sampled(CREATED, keep=5))
def test_a_file_is_created_once_whatever_becomes_of_the_request(store, fault):
    store.proxy.choose = once(CREATES, fault)
    store.io.create(f"{store.place}/x", b"ours")
    store.proxy.release()
    assert store.direct.read(f"{store.place}/x") == b"ours"
    with pytest.raises(FileAlreadyExistsError):
        store.io.create(f"{store.place}/x", b"others")
    assert files(store) == ["x"]


@pytest.mark.parametrize(
    "fault", sampled(["lose", "done_error", "busy", "torn", "late", *MIDDLE_FAULTS], keep=5)
)
def test_what_others_created_is_a_conflict_also_after_a_lost_answer(store, fault):
    store.direct.create(f"{store.place}/x", b"others")
    store.proxy.choose = once(CREATES, fault)
    with pytest.raises(FileAlreadyExistsError):
        store.io.create(f"{store.place}/x", b"ours")
    store.proxy.release()
    assert store.direct.read(f"{store.place}/x") == b"others"


@pytest.mark.gate("writes 64 MiB a case")
@pytest.mark.parametrize("fault", sampled(WHOLE, keep=2))
def test_a_large_file_is_whole_whichever_request_fails(store, fault):
    for after in range(4):
        location = f"{store.place}/{after}"
        store.proxy.choose = once(UPLOADS, fault, after)
        with store.io.create_stream(location) as out:
            out.write(LARGE)
        store.proxy.release()
        assert store.direct.read(location) == LARGE
    assert files(store) == [*"0123"]


@pytest.mark.parametrize("fault", ["lose", "done_error"])
def test_the_end_of_an_upload_that_is_never_answered_is_looked_for(store, fault):
    """Done at the first attempt, each answer lost: it is there, and that is said."""
    last = {"PutBlockList"} if isinstance(store.proxy, AzureProxy) else {"Chunk", "Look"}
    chunks = []

    def choose(request):
        if request.name in last:
            chunks.append(request)
            # the first two chunks of Google's are not the end
            return fault if request.name != "Chunk" or len(chunks) > 2 else ""
        return ""

    store.proxy.choose = choose
    with store.io.create_stream(f"{store.place}/x") as out:
        out.write(LARGE)
    assert store.direct.read(f"{store.place}/x") == LARGE


def test_an_upload_replaces_nothing_that_appeared_meanwhile(store):
    with pytest.raises(FileAlreadyExistsError), store.io.create_stream(f"{store.place}/x") as out:  # noqa: PT012
        out.write(LARGE)
        store.direct.create(f"{store.place}/x", b"theirs")
    assert store.direct.read(f"{store.place}/x") == b"theirs"


def test_nothing_is_seen_of_an_upload_that_was_given_up(store):
    with pytest.raises(ZeroDivisionError), store.io.create_stream(f"{store.place}/x") as out:  # noqa: PT012
        out.write(LARGE)
        _ = 1 // 0
    assert files(store) == []
    assert not store.direct.is_folder(f"{store.place}/x")
    with store.io.create_stream(f"{store.place}/x") as out:
        out.write(LARGE[::-1])
    assert store.direct.read(f"{store.place}/x") == LARGE[::-1]


def test_a_part_that_never_arrives_ends_the_upload(store):
    store.proxy.choose = lambda request: "refuse" if request.name in {"PutBlock", "Chunk"} else ""
    with pytest.raises(FileIOError), store.io.create_stream(f"{store.place}/x") as out:
        out.write(LARGE)
    store.proxy.choose = lambda _: ""
    assert files(store) == []


def test_a_request_that_may_arrive_late_is_said_to(store):
    store.proxy.choose = lambda request: "late" if request.name in CREATES else ""
    with pytest.raises(FileStateUnknownError, match="not known whether"):
        store.io.create(f"{store.place}/x", b"ours")
    assert files(store) == []
    store.proxy.release()
    assert store.direct.read(f"{store.place}/x") == b"ours"


@pytest.mark.parametrize("fault", sampled(WHOLE, keep=4))
def test_a_rename_ends_whatever_becomes_of_the_copy(store, fault):
    a, b = f"{store.place}/a", f"{store.place}/b"
    store.direct.create(a, b"bytes")
    store.proxy.choose = once(COPIES, fault)
    store.io.rename(a, b)
    store.proxy.release()
    assert files(store) == ["b"]
    assert store.direct.read(b) == b"bytes"
    store.direct.create(a, b"again")
    with pytest.raises(FileAlreadyExistsError):
        store.io.rename(a, b)
    assert (store.direct.read(a), store.direct.read(b)) == (b"again", b"bytes")


@pytest.mark.parametrize(
    "fault", sampled(["refuse", "lose", "busy", "error", "short", *INVENTED], keep=4)
)
def test_questions_and_deletions_are_asked_again(store, fault):
    names = [f"{store.place}/f/{n}" for n in range(12)]
    for name in names:
        store.direct.create(name, name.encode() * 100)
    asked = []

    def choose(request):
        asked.append(request)
        return fault if len(asked) % 3 == 1 else ""

    store.proxy.choose = choose
    assert store.io.read(names[0]) == names[0].encode() * 100
    assert store.io.size(names[1]) == len(names[1]) * 100
    assert [each.location for each in store.io.list(f"{store.place}/f")] == sorted(names)
    store.proxy.choose = once({"Delete", "DeleteBlob"}, fault, 3)
    store.io.delete(names)
    assert files(store) == []


@pytest.mark.parametrize("fault", INVENTED)
def test_nothing_is_missing_or_deleted_before_the_store_itself_says_so(store, fault):
    location = f"{store.place}/f/x"
    store.direct.create(location, b"bytes")
    store.proxy.choose = lambda _: fault
    questions = {
        "read": store.io.read,
        "exists": store.io.exists,
        "size": store.io.size,
        "list": lambda place: list(store.io.list(place)),
        "entries": lambda place: store.io.entries(place.rpartition("/")[0]),
        "is_folder": lambda place: store.io.is_folder(place.rpartition("/")[0]),
    }
    if fault != "no_headers":
        # of a deletion there is nothing in an answer that could be missing
        questions["delete"] = lambda place: store.io.delete([place])
    for name, ask in questions.items():
        with pytest.raises(FileIOError) as caught:
            ask(location)
        assert not isinstance(caught.value, NoSuchFileError), name
    store.proxy.choose = lambda _: ""
    assert store.io.read(location) == b"bytes"
    for ask in (store.io.read, store.io.size):
        with pytest.raises(NoSuchFileError):
            ask(f"{store.place}/none")
    assert not store.io.exists(f"{store.place}/none")


@pytest.mark.parametrize("fault", MIDDLE_FAULTS)
def test_a_store_is_tried_once_whatever_becomes_of_the_first_object(store, fault):
    store.proxy.choose = once(CREATES, fault)
    assert store.io.replaces_nothing(f"{store.place}/tables")
    assert files(store) == []


def test_an_error_says_the_store_and_no_secret(store):
    with contextlib.closing(
        FileIO({**store.io.properties, "io.object-store.max-attempts": "1"})
    ) as io:
        store.proxy.choose = lambda _: "refuse"
        with pytest.raises(IcecombError) as caught:
            io.read(f"{store.place}/x")
    text = f"{caught.value}{caught.value.hint}"
    assert "127.0.0.1" in text
    assert "sig" not in text
    assert caught.value.__cause__ is None
