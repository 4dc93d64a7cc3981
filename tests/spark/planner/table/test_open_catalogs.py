"""Catalogs that nobody uses are let go, and nobody who uses one notices."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from itertools import count

import pytest

from icecomb.catalog import loading
from icecomb.catalog.configuration.catalog_property import IDLE
from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.format.errors import ConfigurationError
from icecomb.spark.planner.table import catalogs as open_catalogs
from icecomb.spark.planner.table.catalogs import OpenCatalogs
from tests.spark.planner.protocol import NAMESPACE, Planner, named

HOUR = str(3_600_000)
NUMBERS = count()


@pytest.fixture
def warehouse(tmp_path):
    """Makes a set of open catalogs with one, `c`, of file-system tables."""

    def made(idle_ms):
        settings = {"type": "hadoop", "warehouse": str(tmp_path), IDLE.key: idle_ms}
        catalogs = OpenCatalogs()
        catalogs.add("c", load_configuration("c", settings))
        return catalogs

    return made


def eventually(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_is_not_used_for_its_time_is_let_go_and_opened_again(warehouse, monkeypatch):
    monkeypatch.setattr(open_catalogs, "LONGEST_S", 0.1)
    catalogs, told = warehouse("0"), []
    catalogs.when_let_go(told.append)
    first = weakref.ref(catalogs["c"])
    eventually(lambda: first() is None)
    assert told[:1] == ["c"]
    catalogs["c"].create_namespace("a")
    assert catalogs["c"].list_namespaces() == [("a",)]


def test_whoever_works_with_a_catalog_keeps_it(warehouse, monkeypatch):
    monkeypatch.setattr(open_catalogs, "LONGEST_S", 0.1)
    catalogs, told = warehouse("0"), []
    catalogs.when_let_go(told.append)
    mine = catalogs["c"]
    eventually(lambda: told)
    mine.create_namespace("a")
    assert catalogs["c"].list_namespaces() == mine.list_namespaces() == [("a",)]


def test_what_was_used_within_its_time_stays(warehouse):
    catalogs = warehouse(HOUR)
    mine = catalogs["c"]
    assert 1 < catalogs.let_idle_go() <= 60
    assert catalogs["c"] is mine


def test_a_handle_of_which_nobody_said_what_it_is_is_refused(warehouse):
    with pytest.raises(ConfigurationError, match="d is not open in this planner"):
        warehouse(HOUR)["d"]


def test_the_thread_that_watches_ends_with_its_catalogs(warehouse, monkeypatch):
    monkeypatch.setattr(open_catalogs, "LONGEST_S", 0.1)
    before = set(threading.enumerate())
    catalogs = warehouse("0")
    catalogs["c"].list_namespaces()
    new = set(threading.enumerate()) - before  # threads of earlier tests may start others
    watching = [thread for thread in new if thread.name == "planner-idle-catalogs"]
    assert len(watching) == 1
    del catalogs
    eventually(lambda: not any(thread.is_alive() for thread in watching))


@pytest.mark.full("waits until catalogs are idle")
def test_statements_go_on_when_their_catalog_was_let_go_between_their_requests(
    metastore, monkeypatch
):
    made, catalog_of = [], loading.catalog_of

    def recorded(configuration):
        found = catalog_of(configuration)
        made.append(weakref.ref(found.client))
        return found

    monkeypatch.setattr(loading, "catalog_of", recorded)
    monkeypatch.setattr(open_catalogs, "LONGEST_S", 0.1)
    idle = Planner(metastore, **{IDLE.key: "0"})
    assert idle.catalog != Planner(metastore).catalog
    idle.ask("create_namespace", catalog=idle.catalog, namespace=NAMESPACE, properties={})

    def gone():
        # what a request that ran meanwhile left behind in cycles is the garbage collector's
        gc.collect()
        return all(client() is None for client in made)

    def let_go():
        eventually(gone)

    table = f"let_go{next(NUMBERS)}"
    schema = {"type": "struct", "fields": [
        {"name": "i", "type": "long", "nullable": True, "metadata": {}}
    ]}  # fmt: skip
    definition = {"table": named(table), "schema": schema, "partitioning": [], "properties": {}}
    created = idle.ask("create_table", catalog=idle.catalog, definition=definition)
    let_go()
    assert idle.plan(created)["files"] == []
    let_go()
    begun = idle.ask("begin_write", reference=created["reference"], operation="append")
    let_go()
    idle.ask("commit_write", write=begun["write"], files=[])
    let_go()
    assert idle.load(table)["uuid"] == created["uuid"]
    let_go()
    dropped = idle.ask("drop_table", catalog=idle.catalog, table=named(table), purge=False)
    assert dropped == {"dropped": True}
    # those of the table that is made, loaded and dropped; what is kept may be read without one
    assert len(made) >= 3
    assert NAMESPACE in idle.ask("list_namespaces", catalog=idle.catalog, parent=[])["namespaces"]
