"""Only a store's own answer says that an object is there, which are there, and what is in it.

A page to log in has a status of 200 and an ETag, a proxy may give one request the answer to another, and what ends
too early may be an answer without a body: of all stores with requests of their own, S3's is that of the tests.
"""

from __future__ import annotations

import pytest

from icecomb.format.errors import IcecombError, NoSuchFileError
from icecomb.format.storage.object_store import creation
from icecomb.format.storage.object_store.client import PART
from tests.format.storage.object_store.memory_stores import (
    azure_in_memory,
    google_in_memory,
    opened,
)
from tests.peers.s3_proxy import S3Proxy
from tests.peers.store_proxies import behind
from tests.rings import sampled

pytestmark = pytest.mark.gate("asks the S3 of the tests some hundred times")

INVENTED = ("login", "done_login", "blank", "another")
PUTS = {"PutObject", "Insert", "PutBlob"}
LISTS = {"ListObjectsV2", "List", "ListBlobs"}
READS = {"GetObject", "GetBlob", "Get"}
UPLOADS = {
    "s3": ("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"),
    "google": ("Begin", "Chunk"),
    "azure": ("PutBlock", "PutBlockList"),
}
COPIES = {
    "s3": ("CreateMultipartUpload", "UploadPartCopy", "CompleteMultipartUpload", "HeadObject"),
    "google": ("Rewrite", "Get"),
    "azure": ("CopyBlob", "HeadBlob"),
}
LARGE = bytes(range(256)) * (PART // 256) + b"and a second part"


def each_fault(names):
    return [(store, name, fault) for store in names for name in names[store] for fault in INVENTED]


@pytest.fixture(params=[*UPLOADS])
def store(request, monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)
    if request.param == "s3":
        made = behind(S3Proxy, request.getfixturevalue("s3"))
    else:
        made = {"google": google_in_memory, "azure": azure_in_memory}[request.param]()
    with opened(made) as store:
        yield store


def once(names, fault):
    """The first request of these names has this fault."""
    met = []

    def choose(asked):
        if asked.name not in names or met:
            return ""
        met.append(asked)
        return fault

    return choose


@pytest.mark.parametrize("fault", sampled(INVENTED, keep=2))
def test_what_is_told_as_created_is_there(store, fault):
    store.io.create(f"{store.place}/before", b"another's")
    store.proxy.choose = once(PUTS, fault)
    store.io.create(f"{store.place}/x", b"ours")
    assert store.direct.read(f"{store.place}/x") == b"ours"


@pytest.mark.parametrize(
    ("store", "name", "fault"), sampled(each_fault(UPLOADS), keep=5), indirect=["store"]
)
def test_what_is_told_as_uploaded_is_there(store, name, fault):
    for location in (f"{store.place}/before", f"{store.place}/x"):
        if location.endswith("x"):
            store.proxy.choose = once({name}, fault)
        told = True
        try:
            with store.io.create_stream(location) as out:
                out.write(LARGE)
        except IcecombError:
            told = False
    assert not told or store.direct.read(location) == LARGE


@pytest.mark.parametrize(
    ("store", "name", "fault"), sampled(each_fault(COPIES), keep=4), indirect=["store"]
)
def test_whatever_answers_a_rename_the_bytes_are_there(store, name, fault):
    for file in ("before", "x"):
        store.direct.create(f"{store.place}/{file}", f"of {file}".encode())
    store.io.rename(f"{store.place}/before", f"{store.place}/after")
    store.proxy.choose = once({name}, fault)
    places = [f"{store.place}/y", f"{store.place}/x"]
    try:
        store.io.rename(*reversed(places))
    except IcecombError:
        places.reverse()
    assert store.direct.read(places[0]) == b"of x"


def test_a_list_of_another_folder_is_not_believed(store):
    """Whoever looks for what nobody needs deletes by it."""
    for name in ("ours/a", "theirs/b"):
        store.direct.create(f"{store.place}/{name}", b"1")
    assert [each.location for each in store.io.list(f"{store.place}/theirs")] == [
        f"{store.place}/theirs/b"
    ]
    store.proxy.choose = once(LISTS, "another")
    assert [each.location for each in store.io.list(f"{store.place}/ours")] == [
        f"{store.place}/ours/a"
    ]
    assert [each.location for each in store.io.entries(f"{store.place}/theirs").files] == [
        f"{store.place}/theirs/b"
    ]
    store.proxy.choose = once(LISTS, "another")
    assert [each.location for each in store.io.entries(f"{store.place}/ours").files] == [
        f"{store.place}/ours/a"
    ]


def test_an_empty_list_of_another_folder_is_not_believed(store):
    """It has no name by which it would be known for another's."""
    store.direct.create(f"{store.place}/ours/a", b"1")
    assert list(store.io.list(f"{store.place}/empty/nothing")) == []
    store.proxy.choose = once(LISTS, "another")
    assert [each.location for each in store.io.list(f"{store.place}/ours")] == [
        f"{store.place}/ours/a"
    ]
    assert store.io.folders(store.place) == ["ours"]
    assert not store.io.is_folder(f"{store.place}/empty")
    store.proxy.choose = once(LISTS, "another")
    assert store.io.folders(store.place) == ["ours"]


def test_bytes_of_another_range_are_not_believed(store):
    store.direct.create(f"{store.place}/x", LARGE)
    with store.io.open_input(f"{store.place}/x", len(LARGE)) as file:
        file.seek(0)
        file.read(10)
        store.proxy.choose = once(READS, "another")
        file.seek(PART // 2 + 7)
        assert file.read(10) == LARGE[PART // 2 + 7 :][:10]


def test_all_bytes_in_place_of_a_range_are_cut_to_it(store):
    store.direct.create(f"{store.place}/x", LARGE)
    store.io.read(f"{store.place}/x")
    store.proxy.choose = once(READS, "another")
    with store.io.open_input(f"{store.place}/x", len(LARGE)) as file:
        file.seek(PART // 2 + 7)
        assert file.read(10) == LARGE[PART // 2 + 7 :][:10]


def test_a_file_that_never_was_is_missing_still(store):
    store.proxy.choose = once(READS, "login")
    with pytest.raises(NoSuchFileError):
        store.io.size(f"{store.place}/nowhere")
