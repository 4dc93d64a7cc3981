"""What stands between a client and a bucket repeats requests and answers for itself: commits stay true.

The gate has the S3 of the tests, and Google's and Azure's stores in memory; full the servers, too.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CommitStateUnknownError, IcecombError
from icecomb.format.storage.object_store import creation
from tests.format.storage.object_store.memory_stores import azure_in_memory, google_in_memory
from tests.peers.s3_proxy import MIDDLE_FAULTS, S3Proxy
from tests.peers.store_proxies import AzureProxy, GoogleProxy, behind
from tests.rings import sampled

pytestmark = pytest.mark.gate("asks the S3 of the tests some hundred times")

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)


class Lake:
    """A catalog behind a proxy, and one that looks past it."""

    def __init__(self, at):
        self.proxy = at.proxy
        place = {"type": "hadoop", "warehouse": f"{at.place}/wh"}
        self.catalog = load_catalog("faulty", **place, **at.faulty)
        self.direct = load_catalog("direct", **place, **at.healthy)
        self.catalog.create_namespace("db")
        self.made = 0

    def name(self):
        self.made += 1
        return f"db.t{self.made}"

    def table(self):
        table = self.catalog.create_table(self.name(), ROWS.schema)
        table.append(ROWS)
        table.append(ROWS)
        return table

    def rows(self, table):
        found = self.direct.load_table(table.name()[-2:])
        return sorted(found.scan().to_arrow()["id"].to_pylist())


with_server = pytest.mark.full("a server of another vendor")


@pytest.fixture(
    scope="module",
    params=[
        "s3",
        "google",
        "azure",
        pytest.param("google_store", marks=with_server),
        pytest.param("azurite", marks=with_server),
    ],
)
def lake(request):
    in_memory = {"google": google_in_memory, "azure": azure_in_memory}
    kinds = {"s3": S3Proxy, "google_store": GoogleProxy, "azurite": AzureProxy}
    if request.param in in_memory:
        at = in_memory[request.param]()
    else:
        at = behind(kinds[request.param], request.getfixturevalue(request.param))
    lake = Lake(at)
    yield lake
    lake.catalog.close()
    lake.direct.close()
    at.close()


def meeting(names, fault, place=lambda _: True):
    """Each object meets the fault once, at requests of these names."""
    met = set()

    def choose(asked):
        key = (asked.name, asked.path)
        if asked.name not in names or not place(asked) or key in met:
            return ""
        met.add(key)
        return fault

    return met, choose


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
CREATES = {"PutObject", "Insert", "PutBlob"}
QUESTIONS = {
    "status": {"HeadObject", "Get", "HeadBlob"},
    "bytes": {"GetObject", "GetBlob"},
    "list": {"ListObjectsV2", "List", "ListBlobs"},
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
        keep=2,
    ),
)
def test_a_commit_whose_requests_meet_a_proxy_says_what_became_of_it(lake, fault, place, change):
    make, expected = CHANGES[change]
    table = lake.table()
    before = lake.rows(table)
    met, choose = meeting(CREATES, fault, PLACES[place])
    with lake.proxy.fresh():
        lake.proxy.choose = choose
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
def test_a_table_whose_creation_meets_a_proxy_is_there_once_and_told(lake, fault):
    name = lake.name()
    with lake.proxy.fresh():
        met, lake.proxy.choose = meeting(CREATES, fault)
        lake.catalog.create_table(name, ROWS.schema)
    assert met
    assert lake.direct.load_table(name).scan().count() == 0


@pytest.mark.parametrize(
    ("asked", "fault"),
    sampled([(q, f) for q in QUESTIONS for f in ("text_404", "text_503", "no_headers")], keep=2),
)
def test_an_answer_that_is_not_the_stores_proves_nothing_missing(lake, asked, fault):
    """Each request of a kind is answered so once; then the store itself is heard."""
    table = lake.table()
    with lake.proxy.fresh():
        _, lake.proxy.choose = meeting(QUESTIONS[asked], fault)
        again = lake.catalog.load_table(table.name()[-2:])
        again.append(ROWS)
        assert again.scan().count() == 9
    assert lake.rows(table) == sorted([1, 2, 3] * 3)


def test_a_store_that_is_never_heard_is_told_as_that_and_not_as_a_table_that_is_missing(lake):
    table = lake.table()
    with lake.proxy.fresh():
        lake.proxy.choose = lambda _: "text_404"
        with pytest.raises(IcecombError, match="404"):
            lake.catalog.load_table(table.name()[-2:])
