"""How many requests an S3 is sent, and which of them at the same time: each takes a network's time."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections import Counter
from contextlib import contextmanager

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.manifests.manifest_list import read_manifests
from tests.peers.s3_proxy import S3Proxy
from tests.rings import sampled

pytestmark = pytest.mark.gate("each commit to moto takes a while")

SCHEMA = pa.schema([("id", pa.int64())])


def row(number):
    return pa.table({"id": pa.array([number], pa.int64())}, schema=SCHEMA)


@pytest.fixture
def proxy(s3):
    proxy = S3Proxy(s3.endpoint)
    yield proxy
    proxy.close()


@pytest.fixture
def catalog(s3, proxy):
    warehouse = f"s3://{s3.bucket()}/wh"
    catalog = load_catalog(
        "lake", type="hadoop", warehouse=warehouse, **proxy.settings(s3.settings)
    )
    catalog.create_namespace("db")
    return catalog


@contextmanager
def together(proxy, count, wanted):
    """Holds back the first of those that are wanted until so many are under way."""
    barrier, seen, lock = threading.Barrier(count), itertools.count(), threading.Lock()

    def choose(request):
        if wanted(request):
            with lock:
                is_first = next(seen) < count
            if is_first:
                barrier.wait(60)
        return ""

    with proxy.fresh():
        proxy.choose = choose
        yield
    assert not barrier.broken
    assert next(seen) >= count


def test_a_commit_of_one_row_is_fifteen_requests(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(row(1))
    # the manifest and the list of manifests go at the same time
    with together(
        proxy, 2, lambda asked: asked.name == "PutObject" and asked.path.endswith(".avro")
    ):
        table.append(row(2))
        assert proxy.counts == Counter(ListObjectsV2=2, PutObject=5, GetObject=3, HeadObject=5)
        names = [each.name for each in proxy.requests]
    # what may be answered in any order stands in groups: this is how long a commit takes
    groups = [
        ["ListObjectsV2"], ["PutObject"], ["ListObjectsV2"], ["PutObject"] * 2,
        ["GetObject"] * 2 + ["HeadObject"] * 4, ["PutObject"],
        ["GetObject", "HeadObject"], ["PutObject"],
    ]  # fmt: skip
    assert len(groups) == 8
    assert [sorted(names[sum(map(len, groups[:n])) :][: len(group)]) for n, group in
            enumerate(groups)] == groups  # fmt: skip


def test_before_a_commit_is_published_all_its_checks_are_asked_at_once(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(row(1))
    with together(
        proxy,
        4,
        lambda asked: (
            asked.path.endswith(
                ("v2.metadata.json", "v3.gz.metadata.json", "v3.metadata.json.gz", "hint.text")
            )
            and asked.name in {"GetObject", "HeadObject"}
            and not any(each.path.endswith("v3.metadata.json") for each in proxy.requests)
        ),
    ):
        table.append(row(2))


def test_the_manifests_of_a_plan_are_read_at_the_same_time_and_once(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(6):
        table.append(row(number))
    with together(proxy, 6, lambda asked: asked.path.endswith("-m0.avro")):
        assert len(list(table.scan().plan_files())) == 6
        assert proxy.counts == Counter(GetObject=7)


def test_data_files_whose_size_is_known_are_one_request_each_at_the_same_time(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(6):
        table.append(row(number))
    table.scan().to_arrow()
    with together(proxy, 6, lambda asked: asked.path.endswith(".parquet")):
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(6))
        data = Counter(each.name for each in proxy.requests if each.path.endswith(".parquet"))
        assert data == Counter(GetObject=6)


def test_files_are_deleted_a_thousand_a_request_at_the_same_time(catalog, proxy, s3):
    place = f"s3://{s3.bucket()}"
    with together(proxy, 3, lambda asked: asked.name == "DeleteObjects"):
        catalog.io.delete(f"{place}/{number}" for number in range(2500))
        assert proxy.counts == Counter(DeleteObjects=3)


def reads(name, others=()):
    return lambda asked: (
        asked.name == "GetObject" and name in asked.path and not asked.path.endswith(others)
    )


@pytest.mark.parametrize("name", sampled(["snap-", "-m0.avro"], keep=1))
def test_expiry_reads_what_goes_and_what_stays_at_the_same_time(catalog, proxy, name):
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(6):
        table.append(row(number))
    table.delete()
    table.append(row(7))
    with together(proxy, 6, reads(name)):
        done = (
            catalog.load_table("db.t")
            .maintenance.expire_snapshots()
            .older_than(dt.datetime.now(dt.timezone.utc))
            .retain_last(1)
            .commit()
        )
    assert done.deleted_data_files_count == 6
    assert catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [7]


@pytest.mark.parametrize("name", sampled(["-m0.avro", "snap-"], keep=1))
def test_a_commit_looks_through_what_others_did_meanwhile_at_the_same_time(catalog, proxy, name):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(row(0))
    stale = catalog.load_table("db.t")
    head = stale.current_snapshot()
    own = (head.manifest_list[-20:], read_manifests(table.io, head)[0].manifest_path[-20:])
    for number in range(1, 7):
        table.append(row(number))
    with (
        together(proxy, 6, reads(name, own)),
        stale.transaction() as change,
    ):
        change.delete("id = 0")
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 6]
