"""What is logged: commits and their troubles at INFO, calls at DEBUG, and nothing to worry about."""

from __future__ import annotations

import logging

import pytest
import requests
from thrift_proxy import ThriftProxy

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.format.holding import Holding
from icecomb.format.storage.hdfs.address import resolve_location
from icecomb.format.storage.hdfs.session import HdfsSession
from tests.peers.ports import closed_port

PACKAGES = ("icecomb.catalog.", "icecomb.format.", "icecomb.spark.")
ALTER = "alter_table_with_environment_context"


def told(caplog, level=logging.INFO):
    ours = [one for one in caplog.records if one.name.startswith(PACKAGES)]
    return [one.getMessage() for one in ours if one.levelno >= level]


@pytest.mark.jvm
@pytest.mark.parametrize("locked", ["true", "false"])
def test_a_healthy_run_tells_its_commits_and_warns_of_nothing(catalog, namespace, rows, caplog, locked):  # fmt: skip
    caplog.set_level(logging.DEBUG)
    properties = {"engine.hive.lock-enabled": locked}
    table = catalog.create_table(f"{namespace}.t", rows.schema, properties=properties)
    table.append(rows)
    table.delete("id = 1")
    assert table.scan().to_arrow().num_rows == 2
    commits = [text for text in told(caplog) if "committed" in text]
    assert len(commits) == 3
    assert commits[-1].startswith(f"{namespace}.t: committed {table.metadata_location} in ")
    assert [text for text in told(caplog, logging.DEBUG) if f" {ALTER}: " in text]
    assert told(caplog, logging.WARNING) == []


@pytest.mark.jvm
def test_an_attempt_that_was_overtaken_is_told(catalog, namespace, proxied, proxy, rows, caplog):
    free = {"engine.hive.lock-enabled": "false"}
    catalog.create_table(f"{namespace}.t", rows.schema, properties=free)
    mine = proxied.load_table(f"{namespace}.t")
    mine.append(rows)
    proxy.before(ALTER, lambda: catalog.load_table(f"{namespace}.t").append(rows))
    caplog.set_level(logging.INFO)
    mine.append(rows)
    (failed,) = (text for text in told(caplog) if "attempt" in text)
    assert f"{namespace}.t" in failed


@pytest.mark.jvm
def test_a_lock_that_is_waited_for_is_told_and_another_one_is_not(catalog, namespace, rows, caplog):
    table = catalog.create_table(f"{namespace}.t", rows.schema)
    holder = TableLock(catalog.client, namespace, "t", LockSettings.of({}))
    caplog.set_level(logging.INFO)
    with Holding() as held:
        holder.acquire(held)
        assert not [text for text in told(caplog) if "lock" in text]
        waiting = TableLock(
            catalog.client, namespace, "t", LockSettings.of({"iceberg.hive.lock-timeout-ms": "100"})
        )
        with pytest.raises(Exception, match="is locked by"):
            waiting.acquire(held)
    assert f"{namespace}.t: waits for lock {waiting.lock_id}" in told(caplog)
    table.append(rows)


@pytest.mark.jvm
def test_a_metastore_that_is_passed_over_and_one_that_is_slow_are_told(
    metastore, namespace, caplog
):
    caplog.set_level(logging.INFO)
    proxy = ThriftProxy(metastore.port)
    try:
        with closed_port() as dead:
            uri = f"thrift://127.0.0.1:{dead},{proxy.uri}"
            with load_catalog("two", uri=uri) as both:
                both.list_tables(namespace)
                assert any("cannot be reached" in text for text in told(caplog))
                assert f"the metastore {proxy.uri} is called instead" in told(caplog)
                proxy.delay("get_database", 1.0)
                both.load_namespace_properties(namespace)
        (slow,) = (text for text in told(caplog) if " get_database: " in text)
        assert int(slow.split()[-2]) >= 1000
        assert told(caplog, logging.WARNING) == []
    finally:
        proxy.close()


def test_calls_of_hdfs_are_told_without_the_token(caplog):
    caplog.set_level(logging.DEBUG)
    with closed_port() as port:
        place = f"127.0.0.1:{port}"
        settings = {"hdfs.delegation-token": "hunter2", "warehouse": f"webhdfs://{place}/"}
        session = HdfsSession(settings, resolve_location(f"webhdfs://{place}/x", settings))
        with session.requests as http, pytest.raises(requests.ConnectionError):
            http.get(f"http://{place}/webhdfs/v1/x", params={"op": "OPEN"})
    assert told(caplog) == [f"{place} does not answer: ConnectionError"]
    assert any(text.startswith(f"GET {place}/webhdfs/v1/x OPEN: ") for text in told(caplog, 10))
    assert "hunter2" not in " ".join(told(caplog, 0))
