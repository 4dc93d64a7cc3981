"""What stands between a client and a bucket repeats requests and answers for itself: commits stay true."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CommitStateUnknownError, IcecombError
from icecomb.format.storage.object_store import creation
from tests.peers.s3_proxy import MIDDLE_FAULTS, S3Proxy
from tests.rings import sampled

pytestmark = pytest.mark.gate("asks the S3 of the tests some hundred times")

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(creation, "_FIRST_S", 0.001)


@pytest.fixture(scope="module")
def proxy(s3):
    proxy = S3Proxy(s3.endpoint)
    yield proxy
    proxy.close()


class Lake:
    """A catalog behind the proxy, and one that looks past it."""

    def __init__(self, s3, proxy):
        place = {"type": "hadoop", "warehouse": f"s3://{s3.bucket()}/wh"}
        self.catalog = load_catalog("faulty", **place, **proxy.settings(s3.settings))
        self.direct = load_catalog("direct", **place, **s3.settings)
        self.catalog.create_namespace("db")
        self.made = 0

    def table(self):
        self.made += 1
        table = self.catalog.create_table(f"db.t{self.made}", ROWS.schema)
        table.append(ROWS)
        table.append(ROWS)
        return table

    def rows(self, table):
        found = self.direct.load_table(table.name()[-2:])
        return sorted(found.scan().to_arrow()["id"].to_pylist())


@pytest.fixture(scope="module")
def lake(s3, proxy):
    return Lake(s3, proxy)


def in_one(table):
    with table.transaction() as transaction:
        transaction.append(ROWS.slice(0, 1))
        transaction.delete("id = 3")


CHANGES = {
    "append": (lambda t: t.append(ROWS), [1, 1, 1, 2, 2, 2, 3, 3, 3]),
    "delete": (lambda t: t.delete("id = 2"), [1, 1, 3, 3]),
    "compaction": (
        lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        [1, 1, 2, 2, 3, 3],
    ),
    "transaction": (in_one, [1, 1, 1, 2, 2]),
}
PLACES = {
    "the metadata file": lambda asked: asked.path.endswith(".metadata.json"),
    "each manifest list": lambda asked: "/snap-" in asked.path,
    "each data file": lambda asked: "/data/" in asked.path,
}


@pytest.mark.parametrize(
    ("fault", "place", "change"),
    sampled(
        [(f, p, c) for f in MIDDLE_FAULTS for p in PLACES for c in CHANGES],
        keep=12,
    ),
)
def test_a_commit_whose_requests_meet_a_proxy_says_what_became_of_it(
    lake, proxy, fault, place, change
):
    make, expected = CHANGES[change]
    table = lake.table()
    before = lake.rows(table)
    met = []

    def choose(asked):
        # each object meets the fault once
        if asked.name != "PutObject" or not PLACES[place](asked) or asked.path in met:
            return ""
        met.append(asked.path)
        return fault

    with proxy.fresh():
        proxy.choose = choose
        outcome = "done"
        try:
            make(table)
        except CommitStateUnknownError:
            outcome = "unknown"
        except IcecombError:
            outcome = "failed"
    found = lake.rows(table)
    assert met, "the fault was not met"
    if place == "the metadata file":
        assert (outcome, found) == ("done", sorted(expected))
    else:
        assert found == (sorted(expected) if outcome == "done" else before)


@pytest.mark.parametrize("fault", MIDDLE_FAULTS)
def test_a_table_whose_creation_meets_a_proxy_is_there_once_and_told(lake, proxy, fault):
    lake.made += 1
    name = f"db.t{lake.made}"
    with proxy.fresh():
        met = set()

        def choose(asked):
            if asked.name != "PutObject" or asked.path in met:
                return ""
            met.add(asked.path)
            return fault

        proxy.choose = choose
        lake.catalog.create_table(name, ROWS.schema)
    assert lake.direct.load_table(name).scan().count() == 0


@pytest.mark.parametrize("fault", ["text_404", "text_503", "no_headers"])
@pytest.mark.parametrize("name", ["HeadObject", "GetObject", "ListObjectsV2"])
def test_an_answer_that_is_not_the_stores_proves_nothing_missing(lake, proxy, name, fault):
    """Each request of a kind is answered so once; then the store itself is heard."""
    table = lake.table()
    met = set()

    def choose(asked):
        if asked.name != name or asked.path in met:
            return ""
        met.add(asked.path)
        return fault

    with proxy.fresh():
        proxy.choose = choose
        again = lake.catalog.load_table(table.name()[-2:])
        again.append(ROWS)
        assert again.scan().count() == 9
    assert lake.rows(table) == sorted([1, 2, 3] * 3)


def test_a_store_that_is_never_heard_is_told_as_that_and_not_as_a_table_that_is_missing(
    lake, proxy
):
    table = lake.table()
    with proxy.fresh():
        proxy.choose = lambda _: "text_404"
        with pytest.raises(IcecombError, match="404"):
            lake.catalog.load_table(table.name()[-2:])
