"""What is found out about a metastore's check of the pointer, and what is done where it is weak."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.server_examination import examine_server
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.catalog.hive.thrift.server import value_check
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import ConfigurationError
from icecomb.format.holding import Holding
from tests.peers.hive_metastore import HiveMetastore2

ROWS = pa.table({"id": [1, 2, 3]})
FREE = {"engine.hive.lock-enabled": "false"}


@pytest.fixture(scope="module")
def without_direct_sql(tmp_path_factory):
    """Hive 2.3.10 with hive.metastore.try.direct.sql=false."""
    folder = tmp_path_factory.mktemp("jdo")
    settings = {"hive.metastore.try.direct.sql": "false"}
    server = HiveMetastore2(folder, settings, {}, ["-Djava.net.preferIPv4Stack=true"]).start()
    yield server.wait()
    server.stop()


@pytest.fixture
def without_locks(tmp_path):
    """Hive 2.3.10 whose database has no tables for transactions and locks."""
    bare = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/bare;create=true"
    }
    server = HiveMetastore2(tmp_path, bare, {}, ["-Djava.net.preferIPv4Stack=true"]).start()
    yield server.wait()
    server.stop()


def finding(catalog, subject):
    return next(one for one in examine_server(catalog) if one.code == subject)


def pointer_finding(catalog):
    return finding(catalog, "pointer check")


@pytest.mark.full("starts a metastore of its own")
@pytest.mark.jvm
def test_where_no_locks_are_served_the_way_without_them_is_named_and_works(without_locks):
    place = {"uri": without_locks.uri, "warehouse": str(without_locks.warehouse)}
    with closing(load_catalog("lockless", **place)) as lake:
        lake.create_namespace("db")
        with pytest.raises(RefusedError, match="refused lock") as caught:
            lake.create_table("db.t", ROWS.schema)
        assert "engine.hive.lock-enabled=false" in str(caught.value)
        assert not lake.table_exists("db.t")
        found = finding(lake, "locks")
        assert found.severity is Severity.PROBLEM
        assert "engine.hive.lock-enabled=false" in found.remedy
    with closing(load_catalog("lockless", **place, **FREE)) as lake:
        lake.create_table("db.t", ROWS.schema).append(ROWS)
        assert lake.load_table("db.t").scan().count() == 3
        assert finding(lake, "locks").severity is Severity.NOTE


@pytest.mark.full("starts a metastore of its own")
@pytest.mark.jvm
def test_a_metastore_without_direct_sql_is_found_out_and_locks_alone_are_relied_on(
    without_direct_sql,
):
    place = {"uri": without_direct_sql.uri, "warehouse": str(without_direct_sql.warehouse)}
    with closing(load_catalog("jdo", **place)) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ROWS.schema)
        table.append(ROWS)
        table.append(ROWS)
        assert lake.load_table("db.t").scan().count() == 6
        assert value_check(lake.client, "db") is ValueCheck.REFUSED
        found = pointer_finding(lake)
        assert found.severity is Severity.WARNING
        assert "try.direct.sql=false" in found.message
        with pytest.raises(ConfigurationError, match=r"try\.direct\.sql=false"):
            lake.create_table("db.free", ROWS.schema, properties=FREE)
    # Who says that the check may be trusted gets a refusal that is one, and what to do.
    with closing(load_catalog("jdo", **place, **{"hive.check-and-put": "trusted"})) as trusting:
        with pytest.raises(RefusedError, match="Cannot update parameter with JDO") as caught:
            trusting.load_table("db.t").append(ROWS)
        assert "try.direct.sql" in str(caught.value)
        assert trusting.load_table("db.t").scan().count() == 6


def test_a_server_that_refuses_to_lock_is_named_with_the_way_without_locks(
    proxied, proxy, namespace
):
    for call in ("lock", "show_locks"):
        proxy.fail(call, "refused")
    with pytest.raises(RefusedError, match="refused lock") as caught:
        proxied.create_table(f"{namespace}.t", ROWS.schema)
    assert "engine.hive.lock-enabled=false" in str(caught.value)
    assert not proxied.table_exists(f"{namespace}.t")
    # some meet the thread that still looks for the lock that was refused
    proxy.fail("show_locks", "refused", times=30)
    found = finding(proxied, "locks")
    assert found.severity is Severity.PROBLEM
    assert "engine.hive.lock-enabled=false" in found.remedy


def test_where_the_check_is_refused_locks_alone_are_relied_on(metastore, namespace, table):
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    with closing(load_catalog("jdo", **place)) as lake:
        with Holding() as held:
            server = lake.client.pin(held)
            lake.client.servers[server].check = ValueCheck.REFUSED  # without direct SQL
        lake.load_table(table.identifier).append(ROWS.append_column("s", [["a", "b", "c"]]))
        found = pointer_finding(lake)
        assert found.severity is Severity.WARNING
        assert "try.direct.sql=false" in found.message
        with pytest.raises(ConfigurationError, match=r"try\.direct\.sql=false"):
            lake.create_table(f"{namespace}.free", ROWS.schema, properties=FREE)


def test_a_check_in_two_steps_needs_locks_or_somebody_who_vouches_for_it(
    metastore, namespace, table
):
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}

    def compared(**settings):
        lake = load_catalog("compared", **place, **settings)
        with Holding() as held:
            server = lake.client.pin(held)
            lake.client.servers[server].check = ValueCheck.COMPARED  # as Hive 4.0.0
        return lake

    with closing(compared()) as lake:
        lake.load_table(table.identifier).append(ROWS.append_column("s", [["a", "b", "c"]]))
        found = pointer_finding(lake)
        assert (found.severity, "HIVE-28121" in found.message) == (Severity.WARNING, True)
        with pytest.raises(ConfigurationError, match="MySQL and MariaDB") as caught:
            lake.create_table(f"{namespace}.free", ROWS.schema, properties=FREE)
        assert "hive.check-and-put=trusted" in str(caught.value)
    with closing(compared(**{"hive.check-and-put": "trusted"})) as lake:
        lake.create_table(f"{namespace}.free", ROWS.schema, properties=FREE).append(ROWS)
    with closing(compared(**FREE)) as lake:
        assert pointer_finding(lake).severity is Severity.PROBLEM


def test_a_metastore_that_hangs_stops_nobody_on_another_one(metastore, proxied, proxy, namespace):
    other = load_catalog("other", uri=metastore.uri, warehouse=str(metastore.warehouse))
    hung = threading.Event()
    free = threading.Event()
    proxy.before("alter_table_with_environment_context", lambda: (hung.set(), free.wait(60)))
    table = other.create_table(f"{namespace}.t", ROWS.schema)
    waiting = threading.Thread(target=lambda: value_check(proxied.client, namespace), daemon=True)
    waiting.start()
    try:
        assert hung.wait(60)
        begun = time.monotonic()
        table.append(ROWS)
        assert waiting.is_alive(), f"the append took {time.monotonic() - begun:.1f} s"
    finally:
        free.set()
        waiting.join(60)
        other.close()
