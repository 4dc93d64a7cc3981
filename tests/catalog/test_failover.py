"""Several metastores over one database: who is called, what is repeated, and how many connections it takes."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from thrift_proxy import ThriftProxy

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.entry_change import EntryChange
from icecomb.catalog.hive.pointer import HivePointer
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.failure import MovedError, ReplyLostError, UnreachableError
from icecomb.catalog.hive.thrift.server import PROBE
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.format.errors import ConfigurationError, MetastoreError
from icecomb.format.holding import Holding

ALTER = "alter_table_with_environment_context"
FREE = {"engine.hive.lock-enabled": "false"}
MOMENTS = [(HivePointer, "altered"), (EntryChange, "context")]


@pytest.fixture
def pair(metastore):
    """Two metastores over one database."""
    found = (ThriftProxy(metastore.port), ThriftProxy(metastore.port))
    yield found
    for each in found:
        each.close()


@pytest.fixture
def both(metastore, pair):
    """Our catalog on the two."""
    uri = ",".join(each.uri for each in pair)
    found = load_catalog("both", uri=uri, warehouse=str(metastore.warehouse))
    yield found
    found.close()


def client(*proxies, **properties):
    names = {name.replace("__", "."): value for name, value in properties.items()}
    return HiveClient(",".join(each.uri for each in proxies), ConnectionSettings.of(names))


def test_calls_go_on_at_the_second_when_the_first_is_gone(pair, namespace):
    first, second = pair
    with client(first, second) as both:
        assert namespace in both.databases()
        assert both.uri == first.uri
        first.close()
        database = replace(both.database(namespace), parameters={"written": "at the second"})
        both.alter_database(database)
        assert both.uri == second.uri
        assert second.calls["alter_database"] == 1
        assert both.database(namespace).parameters == {"written": "at the second"}


def test_a_read_whose_answer_is_lost_is_asked_of_the_other_one(pair, namespace):
    first, second = pair
    with client(first, second) as both:
        first.fail("get_database", "reply")
        assert both.database(namespace).name == namespace
        assert (first.calls["get_database"], second.calls["get_database"]) == (1, 1)
        first.fail("alter_database", "reply")
        assert both.uri == second.uri


def test_a_change_whose_answer_is_lost_is_not_sent_again(pair, namespace):
    first, second = pair
    with client(first, second) as both:
        database = both.database(namespace)
        first.fail("alter_database", "reply")
        with pytest.raises(ReplyLostError):
            both.alter_database(database)
        assert (first.calls["alter_database"], second.calls["alter_database"]) == (1, 0)


def test_one_that_failed_lately_is_tried_last(pair, namespace):
    first, second = pair
    with client(first, second) as both, client(first, second) as other:
        both.servers.went_away(first.uri, suspect=True)
        assert namespace in both.databases()
        assert both.uri == second.uri
        assert namespace in other.databases()
        assert other.uri == first.uri, "what one client saw is its own"


@pytest.mark.full("waits for three time-outs of a silent server")
def test_one_that_accepts_and_says_nothing_is_passed_over(pair, namespace):
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        HiveClient(
            f"thrift://127.0.0.1:{silent.getsockname()[1]},{pair[1].uri}",
            ConnectionSettings.of({"hive.metastore.client.connect.timeout-s": "2"}),
        ) as found,
    ):
        assert namespace in found.databases()
        assert found.uri == pair[1].uri


def test_all_of_them_gone_is_told_of_each(pair):
    with client(*pair) as both:
        for each in pair:
            each.close()
        with pytest.raises(UnreachableError, match="none of the metastores") as caught:
            both.databases()
    assert all(each.uri in caught.value.message for each in pair)


def test_a_lock_whose_answer_is_lost_is_found_again_at_the_other_one(both, pair, namespace, rows):
    table = both.create_table(f"{namespace}.t", rows.schema)
    table.append(rows)
    pair[0].fail("lock", "reply")
    table.append(rows)
    assert pair[1].calls["unlock"] >= 1
    assert both.client.locks(*table.identifier) == []
    assert both.load_table(table.identifier).scan().to_arrow().num_rows == 6


@pytest.mark.parametrize("locked", ["true", "false"])
@pytest.mark.parametrize(("place", "moment"), MOMENTS)
def test_a_commit_follows_a_metastore_that_goes_away_before_the_alter(
    both, pair, namespace, rows, monkeypatch, locked, place, moment
):
    properties = {"engine.hive.lock-enabled": locked}
    table = both.create_table(f"{namespace}.t", rows.schema, properties=properties)
    table.append(rows)
    original = getattr(place, moment)

    def dying(self, *arguments):
        answer = original(self, *arguments)
        pair[0].close()
        return answer

    monkeypatch.setattr(place, moment, dying)
    table.append(rows)
    assert pair[1].calls[ALTER] >= 1
    found = both.load_table(table.identifier)
    assert len(found.snapshots()) == 2
    assert found.scan().to_arrow().num_rows == 6
    assert both.client.locks(*table.identifier) == []


@pytest.mark.parametrize(("place", "moment"), MOMENTS)
def test_without_locks_nothing_is_altered_on_one_that_is_found_not_to_check(
    both, pair, namespace, rows, monkeypatch, place, moment
):
    table = both.create_table(f"{namespace}.t", rows.schema, properties=FREE)
    mine = both.load_table(table.identifier)
    pointer, original = table.metadata_location, getattr(place, moment)
    alter, altered = HiveClient.alter_table, []

    def unchecked(self, *arguments, context=None):
        alter(self, *arguments)
        altered.append(arguments[1])

    def dying(self, *arguments):
        answer = original(self, *arguments)
        # the other one looks at no context, as a Hive 3.1.3
        monkeypatch.setattr(HiveClient, "alter_table", unchecked)
        pair[0].close()
        return answer

    monkeypatch.setattr(place, moment, dying)
    with pytest.raises(ConfigurationError, match="does not check"):
        mine.append(rows)
    assert pair[1].calls[ALTER] == len(altered) == 1
    assert altered[0].startswith(PROBE)
    assert both.load_pointer(table.identifier) == pointer


@pytest.mark.full("needs Hive 3")
@pytest.mark.parametrize(("place", "moment"), MOMENTS)
def test_without_locks_nothing_is_altered_on_a_metastore_that_does_not_check(
    hive_catalogs, metastores, namespace, rows, monkeypatch, place, moment
):
    checking, blind = (ThriftProxy(int(hive_catalogs[v].client.uri.rsplit(":", 1)[1])) for v in ("2.3.10", "3.1.3"))  # fmt: skip
    table = hive_catalogs["2.3.10"].create_table(f"{namespace}.t", rows.schema, properties=FREE)
    old = hive_catalogs["3.1.3"]
    old.create_namespace(namespace)
    entry = hive_catalogs["2.3.10"].client.table(namespace, "t")
    old.client.create_table(replace(entry, wire=None))
    mixed = load_catalog("mixed", uri=f"{checking.uri},{blind.uri}", warehouse="/nowhere")
    mine = mixed.load_table(table.identifier)
    original = getattr(place, moment)

    def dying(self, *arguments):
        answer = original(self, *arguments)
        checking.close()
        return answer

    monkeypatch.setattr(place, moment, dying)
    try:
        with pytest.raises(ConfigurationError, match="does not check"):
            mine.append(rows)
        # the probe's own alter is the only one
        assert blind.calls[ALTER] == 1
        for each in (hive_catalogs["2.3.10"], old):
            assert each.load_pointer(table.identifier) == table.metadata_location
    finally:
        mixed.close()
        for each in (checking, blind):
            each.close()
        old.client.drop_table(namespace, "t")
        old.drop_namespace(namespace)


def test_a_pinned_thread_is_told_when_its_metastore_was_replaced(pair, namespace):
    first, second = pair
    with client(first, second) as both, Holding() as held:
        server = both.pin(held)
        assert namespace in both.databases()
        assert both.pin(held) == server
        first.close()
        with pytest.raises(MovedError, match=second.uri):
            both.databases()
    assert sum(second.calls[name] for name in ("get_all_databases",)) == 0


def test_connections_are_shared_bounded_and_waited_for(pair, namespace):
    first = pair[0]
    with client(first, clients="2") as shared:
        threads = [threading.Thread(target=shared.database, args=(namespace,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert first.calls["get_database"] == 12
        assert shared._calls.pool.open_connections <= 2
        assert first.calls["set_ugi"] <= 2


def test_too_few_connections_are_an_error_with_the_way_out(pair, namespace):
    first = pair[0]
    properties = {"clients": "1", "clients.wait-timeout-ms": "100"}
    with HiveClient(first.uri, ConnectionSettings.of(properties)) as one:
        one.databases()
        arrived, go_on = threading.Event(), threading.Event()
        first.before("get_all_databases", lambda: (arrived.set(), go_on.wait(300)))
        slow = threading.Thread(target=one.databases)
        slow.start()
        try:
            assert arrived.wait(300)
            with pytest.raises(
                MetastoreError, match=r"All 1 connections .* within 0\.1 s"
            ) as caught:
                one.database(namespace)
        finally:
            go_on.set()
        assert "clients" in caught.value.hint
        slow.join()
        assert one.database(namespace).name == namespace


@pytest.mark.parametrize(
    "properties",
    [
        {"client.pool.cache.eviction-interval-ms": "0"},
        {"hive.metastore.client.socket.lifetime": "1ms"},
    ],
)
def test_old_and_idle_connections_are_made_anew(pair, properties):
    with HiveClient(pair[0].uri, ConnectionSettings.of(properties)) as found:
        for _ in range(3):
            found.databases()
            threading.Event().wait(0.005)
        assert pair[0].calls["set_ugi"] == 3
        assert found._calls.pool.open_connections <= 1


def test_the_server_is_told_who_acts_unless_that_is_switched_off(pair):
    with client(pair[0]) as told:
        told.databases()
    assert pair[0].calls["set_ugi"] == 1
    with client(pair[0], hive__metastore__execute__setugi="false") as untold:
        untold.databases()
    assert pair[0].calls["set_ugi"] == 1


def test_threads_that_commit_with_few_connections_all_commit(metastore, namespace):
    rows = pa.table({"id": pa.array([1], pa.int64())})
    few = load_catalog("few", uri=metastore.uri, warehouse=str(metastore.warehouse), clients="2")
    table = few.create_table(f"{namespace}.t", rows.schema)
    errors = []

    def write():
        try:
            few.load_table(table.identifier).append(rows)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(table.refresh().snapshots()) == 8
    few.close()
