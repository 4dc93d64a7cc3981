"""How many requests an S3 is sent, and which of them at the same time: each takes a network's time."""

from __future__ import annotations

import threading
from collections import Counter

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from tests.peers.s3_proxy import S3Proxy

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


def together(count, wanted):
    """Holds back those that are wanted until so many of them are under way."""
    barrier = threading.Barrier(count)

    def choose(request):
        if wanted(request):
            barrier.wait(60)
        return ""

    return choose


def test_a_commit_of_one_row_is_thirteen_requests(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(row(1))
    with proxy.fresh():
        # the manifest and the list of manifests go at the same time
        proxy.choose = together(
            2, lambda asked: asked.name == "PutObject" and asked.path.endswith(".avro")
        )
        table.append(row(2))
        assert proxy.counts == Counter(ListObjectsV2=2, PutObject=5, GetObject=3, HeadObject=3)
        names = [each.name for each in proxy.requests]
    # what may be answered in any order stands in groups: this is how long a commit takes
    groups = [
        ["ListObjectsV2"], ["PutObject"], ["ListObjectsV2"], ["PutObject"] * 2,
        ["GetObject", "GetObject", "HeadObject", "HeadObject"], ["PutObject"],
        ["GetObject", "HeadObject"], ["PutObject"],
    ]  # fmt: skip
    assert len(groups) == 8
    assert [sorted(names[sum(map(len, groups[:n])) :][: len(group)]) for n, group in
            enumerate(groups)] == groups  # fmt: skip


def test_before_a_commit_is_published_all_its_checks_are_asked_at_once(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(row(1))
    with proxy.fresh():
        proxy.choose = together(
            4,
            lambda asked: (
                asked.path.endswith(
                    ("v2.metadata.json", "v3.gz.metadata.json", "v3.metadata.json.gz", "hint.text")
                )
                and asked.name in {"GetObject", "HeadObject"}
                and not any(each.path.endswith("v3.metadata.json") for each in proxy.requests)
            ),
        )
        table.append(row(2))


def test_the_manifests_of_a_plan_are_read_at_the_same_time_and_once(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(6):
        table.append(row(number))
    with proxy.fresh():
        proxy.choose = together(6, lambda asked: asked.path.endswith("-m0.avro"))
        assert len(list(table.scan().plan_files())) == 6
        assert proxy.counts == Counter(GetObject=7)


def test_data_files_whose_size_is_known_are_one_request_each_at_the_same_time(catalog, proxy):
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(6):
        table.append(row(number))
    table.scan().to_arrow()
    with proxy.fresh():
        proxy.choose = together(6, lambda asked: asked.path.endswith(".parquet"))
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(6))
        data = Counter(each.name for each in proxy.requests if each.path.endswith(".parquet"))
        assert data == Counter(GetObject=6)


def test_files_are_deleted_a_thousand_a_request_at_the_same_time(catalog, proxy, s3):
    place = f"s3://{s3.bucket()}"
    with proxy.fresh():
        proxy.choose = together(3, lambda asked: asked.name == "DeleteObjects")
        catalog.io.delete(f"{place}/{number}" for number in range(2500))
        assert proxy.counts == Counter(DeleteObjects=3)
