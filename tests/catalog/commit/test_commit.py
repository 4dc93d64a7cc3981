"""Commits under contention, lost replies, dead lock holders and killed writers."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive import entry_pointer
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.pointer import HivePointer
from icecomb.catalog.hive.thrift import server
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import LockState
from icecomb.catalog.hive.thrift.failure import RefusedError, UnreachableError
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    FileIOError,
    LockTimeoutError,
    MetastoreError,
    ValidationError,
)
from icecomb.format.holding import Holding
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.storage.local import LocalFileSystem
from tests.peers.child_process import ended
from tests.rings import sampled

ALTER = "alter_table_with_environment_context"
WRITER = """
import sys, pyarrow as pa
from icecomb.catalog import load_catalog
uri, name, times, row = sys.argv[1:5]
table = load_catalog("w", uri=uri).load_table(name)
for n in range(int(times)):
    table.append(pa.table({"id": pa.array([int(row) * 1000 + n], pa.int64()), "s": ["x"]}))
"""
KILLED = """
import os, signal, sys, pyarrow as pa
from icecomb.catalog import load_catalog
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.format.holding import Holding
from icecomb.format.storage.local import LocalFileSystem
uri, name, fatal = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = load_catalog("w", uri=uri).load_table(name)
steps = []
def step(what):
    steps.append(what)
    if len(steps) - 1 == fatal:
        print(what, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
call = Calls.send
def watched_call(self, method, send):
    step("before " + method)
    answer = call(self, method, send)
    step("after " + method)
    return answer
Calls.send = watched_call
create = LocalFileSystem._created
def watched_create(self, location, *, sync):
    step("before creating")
    return create(self, location, sync=sync)
LocalFileSystem._created = watched_create
table.append(pa.table({"id": pa.array([1], pa.int64()), "s": ["x"]}))
print("lived", flush=True)
"""


def _metadata_files(table):
    return set(Path(table.location().removeprefix("file:")).glob("metadata/*.metadata.json"))


def _reachable(table):
    return {table.metadata_location, *(e.metadata_file for e in table.metadata.metadata_log)}


def _spawn(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("lock_enabled", sampled(["false", "true"], keep=1))
def test_two_processes_appending_twenty_times_each_lose_nothing(
    catalog, metastore, namespace, rows, lock_enabled
):
    properties = {"engine.hive.lock-enabled": lock_enabled}
    table = catalog.create_table(f"{namespace}.t", rows.schema, properties=properties)
    name = ".".join(table.identifier)
    writers = [_spawn(WRITER, metastore.uri, name, 20, n) for n in (1, 2)]
    with ended(*writers):
        assert [writer.communicate(timeout=500)[1] for writer in writers] == ["", ""]
    found = catalog.load_table(name).scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == [n * 1000 + i for n in (1, 2) for i in range(20)]
    table.refresh()
    assert len(table.snapshots()) == 40
    assert {str(p) for p in _metadata_files(table)} == {
        x.removeprefix("file:") for x in _reachable(table)
    }


def test_an_overtaken_commit_is_made_again_under_the_same_lock(catalog, table, rows):
    catalog.load_table(table.identifier).append(rows)
    catalog.client.calls.clear()
    table.append(rows)
    # the third reading is left out unless the machine is so busy that a tenth of a second passed
    readings = catalog.client.calls.pop("get_table_req")
    assert readings in {2, 3}
    assert catalog.client.calls == {"lock": 1, ALTER: 1, "unlock": 1}


def test_a_commit_made_again_reads_the_entry_it_loaded_no_second_time(
    catalog, table, rows, monkeypatch
):
    monkeypatch.setattr(entry_pointer, "RECENT_S", 600)
    catalog.load_table(table.identifier).append(rows)
    catalog.client.calls.clear()
    table.append(rows)
    assert catalog.client.calls == {"lock": 1, "get_table_req": 2, ALTER: 1, "unlock": 1}
    # but what was loaded before the lock is read again under it
    fresh = catalog.load_table(table.identifier)
    catalog.client.calls.clear()
    fresh.append(rows)
    assert catalog.client.calls == {"lock": 1, "get_table_req": 1, ALTER: 1, "unlock": 1}
    assert table.refresh().scan().to_arrow().num_rows == 9


def test_a_writer_without_locks_between_a_retry_and_its_alter_is_not_overwritten(
    catalog, proxied, proxy, table, rows, monkeypatch
):
    monkeypatch.setattr(entry_pointer, "RECENT_S", 600)
    mine = proxied.load_table(table.identifier)
    mine.append(rows)  # also finds out what the metastore checks, which alters a view
    catalog.load_table(table.identifier).append(rows)
    free = load_catalog(
        "free", uri=catalog.client.uri, **{"iceberg.engine.hive.lock-enabled": "false"}
    )
    proxy.before(ALTER, lambda: free.load_table(table.identifier).append(rows))
    mine.append(rows)
    free.close()
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 12
    assert catalog.client.locks(*table.identifier) == []


def test_retries_used_up_say_so_and_leave_no_file(catalog, namespace, rows):
    table = catalog.create_table(
        f"{namespace}.t", rows.schema, properties={"commit.retry.num-retries": "0"}
    )
    catalog.load_table(table.identifier).append(rows)
    before = {p for p in Path(table.location().removeprefix("file:")).rglob("*") if p.is_file()}
    with pytest.raises(CommitFailedError, match="another writer was first"):
        table.append(rows)
    assert {
        p for p in Path(table.location().removeprefix("file:")).rglob("*") if p.is_file()
    } == before


def _lock_of_somebody(catalog, table, agent="icecomb-00000000-0000-0000-0000-000000000000-pid4711"):
    answer = catalog.client.lock(*table.identifier, user="ann", host="etl-07", agent=agent)
    assert answer.state is LockState.ACQUIRED
    return answer.lock_id


@pytest.mark.parametrize("way", ["append", "transaction"])
def test_a_failed_commit_says_why_also_when_its_files_cannot_be_deleted(
    catalog, namespace, rows, monkeypatch, way
):
    table = catalog.create_table(
        f"{namespace}.t", rows.schema, properties={"commit.retry.num-retries": "0"}
    )
    catalog.load_table(table.identifier).append(rows)

    def full(self, locations):
        raise FileIOError("the storage is gone")

    def transact():
        with table.transaction() as transaction:
            transaction.append(rows)

    monkeypatch.setattr(LocalFileSystem, "delete", full)
    with pytest.raises(CommitFailedError, match="another writer was first"):
        table.append(rows) if way == "append" else transact()
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3
    assert catalog.client.locks(*table.identifier) == []


def test_a_lock_time_out_names_the_holder(catalog, metastore, table, rows):
    holder = _lock_of_somebody(catalog, table)
    impatient = load_catalog("i", uri=metastore.uri, **{"iceberg.hive.lock-timeout-ms": "400"})
    mine = impatient.load_table(table.identifier)
    started = time.monotonic()
    with pytest.raises(LockTimeoutError) as caught:
        mine.append(rows)
    assert time.monotonic() - started < 60
    text = str(caught.value)
    for part in (
        ".".join(table.identifier),
        "ann@etl-07",
        "pid 4711",
        f"lock {holder}",
        "held for",
        "last heartbeat",
        f"icecomb locks break {holder}",
    ):
        assert part in text
    assert [row.lock_id for row in catalog.client.locks(*table.identifier)] == [holder]
    assert _metadata_files(mine) == {Path(table.metadata_location.removeprefix("file:"))}
    catalog.client.unlock(holder)
    mine.append(rows)
    impatient.close()


def test_heartbeats_keep_the_lock_of_a_slow_commit(catalog, proxied, proxy, table, rows):
    with Holding() as held:
        key = proxied.client.pin(held)
        known = proxied.client.servers[key]
    known.lock_expiry_s, known.lock_expiry_asked = 0.3, True
    mine = proxied.load_table(table.identifier)
    mine.append(rows)
    proxy.calls.clear()
    proxy.delay(ALTER, 1.0)
    mine.append(rows)
    assert proxy.calls["heartbeat"] >= 3
    assert catalog.client.locks(*table.identifier) == []
    assert proxied.client._calls.pool.open_connections <= 2


@pytest.mark.parametrize("how", ["reply", "mistaken"])
def test_a_lost_answer_to_the_alter_is_found_to_be_a_success(proxied, proxy, table, rows, how):
    mine = proxied.load_table(table.identifier)
    mine.append(rows)
    proxy.fail(ALTER, how)
    mine.append(rows)
    assert mine.refresh().scan().to_arrow().num_rows == 6
    assert len(mine.snapshots()) == 2


def test_a_lost_answer_is_a_success_also_when_others_went_on(
    catalog, proxied, proxy, namespace, rows
):
    free = {"engine.hive.lock-enabled": "false"}
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=free)
    table.append(rows)
    other = catalog.load_table(table.identifier)
    # after the lost answer, and before the first look at what became of it
    proxy.before(ALTER, lambda: proxy.before("get_table_req", lambda: other.append(rows)))
    proxy.fail(ALTER, "reply")
    table.append(rows)
    assert len(table.snapshots()) == 2
    assert len(other.snapshots()) == 3
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 9


@pytest.mark.parametrize("how", ["request", "forged"])
def test_a_request_that_never_arrived_stays_unknown_and_keeps_its_file(
    catalog, proxied, proxy, namespace, rows, how
):
    quick = {"commit.status-check.min-wait-ms": "10", "commit.status-check.num-retries": "2"}
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=quick)
    table.append(rows)
    current = table.metadata_location
    proxy.fail(ALTER, how)
    with pytest.raises(CommitStateUnknownError) as caught:
        table.append(rows)
    new = caught.value.context["new"]
    assert new in str(caught.value)
    assert current in str(caught.value)
    assert Path(new.removeprefix("file:")).is_file()
    assert catalog.client.locks(*table.identifier) == []
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3
    # what was written for the unknown commit is all there: it could still land
    registered = catalog.register_table((namespace, "landed"), new)
    assert registered.scan().to_arrow().num_rows == 6


def test_a_request_that_never_arrived_is_a_conflict_once_others_went_on(
    catalog, proxied, proxy, namespace, rows
):
    free = {"engine.hive.lock-enabled": "false", "commit.status-check.min-wait-ms": "10"}
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=free)
    table.append(rows)
    other = catalog.load_table(table.identifier)
    proxy.before(ALTER, lambda: other.append(rows))
    proxy.fail(ALTER, "request")
    table.append(rows)
    assert table.refresh().scan().to_arrow().num_rows == 9
    assert len(table.snapshots()) == 3
    assert {str(p) for p in _metadata_files(table)} == {
        x.removeprefix("file:") for x in _reachable(table)
    }


def test_a_writer_overtaken_between_look_and_alter_never_overwrites(
    catalog, proxied, proxy, namespace, rows
):
    free = {"engine.hive.lock-enabled": "false"}
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=free)
    table.append(rows)
    other = catalog.load_table(table.identifier)
    proxy.before(ALTER, lambda: other.append(rows))
    table.append(rows)
    assert proxy.calls[ALTER] >= 3
    assert table.refresh().scan().to_arrow().num_rows == 9


def test_an_expired_lock_never_loses_an_update(catalog, proxied, proxy, table, rows):
    """The stalled writer's lock is broken, another writer commits, the stalled one goes on."""
    mine = proxied.load_table(table.identifier)
    mine.append(rows)
    other = catalog.load_table(table.identifier)

    def break_and_commit():
        (row,) = catalog.client.locks(*table.identifier)
        catalog.client.unlock(row.lock_id)
        other.append(rows)

    proxy.before(ALTER, break_and_commit)
    mine.append(rows)
    assert mine.refresh().scan().to_arrow().num_rows == 9


def test_a_writer_whose_heartbeats_stopped_asks_before_it_alters(
    catalog, metastore, proxy, table, rows, monkeypatch
):
    mine = load_catalog("m", uri=proxy.uri, **{"iceberg.hive.lock-heartbeat-interval-ms": "100"})
    mine = mine.load_table(table.identifier)
    mine.append(rows)
    held = []

    def stall_and_lose_the_lock():
        (row,) = catalog.client.locks(*table.identifier)
        catalog.client.unlock(row.lock_id)
        time.sleep(0.3)

    beat = HiveClient.heartbeat

    def asked_for(self, lock_id):
        if threading.current_thread().name.startswith("heartbeat of"):
            raise UnreachableError("The process was stopped")
        beat(self, lock_id)

    monkeypatch.setattr(HiveClient, "heartbeat", asked_for)
    proxy.before("get_table_req", stall_and_lose_the_lock)
    proxy.before(ALTER, lambda: held.extend(catalog.client.locks(*table.identifier)))
    mine.append(rows)
    assert len(held) == 1
    assert mine.refresh().scan().to_arrow().num_rows == 6


def test_a_success_that_the_server_refuses_is_found_though_the_log_was_cut(
    catalog, namespace, rows, monkeypatch
):
    short = {
        "write.metadata.previous-versions-max": "1",
        "engine.hive.lock-enabled": "false",
    }
    table = catalog.create_table(f"{namespace}.t", rows.schema, properties=short)
    other = catalog.load_table(table.identifier)
    alter = HiveClient.alter_table

    def repeated_by_the_server(self, *arguments, **named):
        monkeypatch.setattr(HiveClient, "alter_table", alter)
        alter(self, *arguments, **named)
        for _ in range(2):
            other.refresh().append(rows)
        answer = "The table has been modified. The parameter value for key 'metadata_location' is"
        raise RefusedError(answer, kind="MetaException", answer=answer)

    monkeypatch.setattr(HiveClient, "alter_table", repeated_by_the_server)
    # the others are in other processes, where our queue is not
    monkeypatch.setattr(HivePointer, "queue", lambda *_: False)
    table.append(rows)
    assert table.refresh().scan().to_arrow().num_rows == 9
    assert len(table.snapshots()) == 3


def test_a_lost_answer_to_the_lock_is_found_by_its_stamp(catalog, proxied, proxy, table, rows):
    mine = proxied.load_table(table.identifier)
    for how in ("reply", "request"):
        proxy.fail("lock", how)
        mine.append(rows)
        assert catalog.client.locks(*table.identifier) == []
    assert mine.refresh().scan().to_arrow().num_rows == 6


def test_a_lost_unlock_does_not_harm_the_commit(catalog, proxied, proxy, table, rows):
    mine = proxied.load_table(table.identifier)
    proxy.fail("unlock", "reply")
    mine.append(rows)
    assert mine.refresh().scan().to_arrow().num_rows == 3
    assert catalog.client.locks(*table.identifier) == []


def test_locks_carry_who_holds_them(catalog, proxied, proxy, table, rows):
    mine = proxied.load_table(table.identifier)
    mine.append(rows)
    seen = []
    proxy.before(ALTER, lambda: seen.extend(catalog.client.locks(*table.identifier)))
    mine.append(rows)
    (row,) = seen
    import os

    assert row.agent.startswith("icecomb-")
    assert row.agent.endswith(f"-pid{os.getpid()}")
    assert row.host == socket.gethostname()
    assert row.exclusive
    assert row.state is LockState.ACQUIRED


def test_lock_free_mode_is_refused_where_the_server_does_not_check(
    catalog, metastore, namespace, rows, monkeypatch
):
    with Holding() as held:
        key = catalog.client.pin(held)
        known = catalog.client.servers[key]
    monkeypatch.setattr(known, "check", ValueCheck.IGNORED)  # as Hive 3.1.3
    free = {"engine.hive.lock-enabled": "false"}
    with pytest.raises(ConfigurationError, match="does not check"):
        catalog.create_table(f"{namespace}.t", rows.schema, properties=free)
    assert not catalog.table_exists(f"{namespace}.t")


def test_without_a_checking_server_the_lock_is_asked_for_before_and_after(
    catalog, metastore, table, rows, monkeypatch
):
    with Holding() as held:
        key = catalog.client.pin(held)
        known = catalog.client.servers[key]
    monkeypatch.setattr(known, "check", ValueCheck.IGNORED)  # as Hive 3.1.3
    catalog.client.calls.clear()
    table.append(rows)
    assert catalog.client.calls == {
        "lock": 1,
        "get_table_req": 1,
        "heartbeat": 2,
        ALTER: 1,
        "unlock": 1,
    }


def test_the_probe_finds_a_checking_server_and_leaves_nothing_behind(
    catalog, namespace, monkeypatch
):
    with Holding() as held:
        key = catalog.client.pin(held)
        known = catalog.client.servers[key]
    monkeypatch.setattr(known, "check", None)
    assert server.value_check(catalog.client, namespace) is ValueCheck.ATOMIC
    assert catalog.client.table_names(namespace) == []


def test_an_encrypted_table_is_refused_before_anything_is_written(catalog, namespace, rows):
    from icecomb.format.errors import UnsupportedError

    with pytest.raises(UnsupportedError, match="encrypted"):
        catalog.create_table(f"{namespace}.e", rows.schema, properties={"encryption.key-id": "k"})
    assert not catalog.table_exists(f"{namespace}.e")


def test_an_unreachable_metastore_costs_nothing(table, proxied, proxy, rows):
    mine = proxied.load_table(table.identifier)
    mine.append(rows)
    before = {p for p in Path(table.location().removeprefix("file:")).rglob("*") if p.is_file()}
    proxied.close()
    proxy.close()
    with pytest.raises(MetastoreError, match="cannot be reached"):
        mine.append(rows)
    assert {
        p for p in Path(table.location().removeprefix("file:")).rglob("*") if p.is_file()
    } == before


@pytest.mark.full("starts a process for every step; test_faults forks writers of appends, too")
def test_a_writer_killed_at_any_step_leaves_a_readable_table_and_no_lost_row(
    catalog, metastore, table, rows
):
    table.append(rows)
    name = ".".join(table.identifier)
    expected = 3
    died: list[str] = []
    # a fresh process probes the server first: one alter of its own view is carried out
    for fatal in range(100):
        writer = _spawn(KILLED, metastore.uri, name, fatal)
        with ended(writer):
            out, err = writer.communicate(timeout=300)
        last = out.strip()
        landed = last == "lived" or [*died, last].count(f"after {ALTER}") == 2
        expected += landed
        current = catalog.load_table(name)
        assert current.scan().to_arrow().num_rows == expected, (last, err)
        for row in catalog.client.locks(*table.identifier):
            assert f"pid{writer.pid}" in row.agent
            catalog.client.unlock(row.lock_id)
        if last == "lived":
            break
        assert writer.returncode == -9, err
        died.append(last)
    assert "before creating" in died
    for step in ("lock", "get_table_req", ALTER, "unlock"):
        assert f"before {step}" in died
        assert f"after {step}" in died
    table.refresh().append(rows)
    assert catalog.load_table(name).scan().to_arrow().num_rows == expected + 3


def test_repeating_a_committed_append_is_refused_and_destroys_nothing(catalog, table, rows):
    append = table.new_fast_append()
    for file in write_data(table.io, table.metadata, rows):
        append.append_data_file(file)
    table.commit(append)
    with pytest.raises(ValidationError, match="committed already"):
        table.commit(append)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


def test_repeating_an_append_of_unknown_outcome_destroys_nothing(proxied, proxy, namespace, rows):
    once = {"commit.status-check.num-retries": "0", "commit.status-check.min-wait-ms": "0"}
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=once)
    table.append(rows)
    append = table.new_fast_append()
    for file in write_data(table.io, table.metadata, rows):
        append.append_data_file(file)
    proxy.fail(ALTER, "reply")
    # who looks asks twice
    proxy.before(ALTER, lambda: proxy.fail("get_table_req", "request", times=2))
    with pytest.raises(CommitStateUnknownError):
        table.commit(append)
    # it was made: that is found, and it is not made again
    table.commit(append)
    with pytest.raises(ValidationError, match="committed already"):
        table.commit(append)
    assert table.refresh().scan().to_arrow().num_rows == 6


def test_trouble_with_old_metadata_files_is_no_failure_of_the_commit(catalog, namespace, rows):
    key = "write.metadata.delete-after-commit.enabled"
    made = catalog.create_table(f"{namespace}.t", rows.schema, properties={key: "true"})
    file = Path(made.metadata_location.removeprefix("file:"))
    file.write_text(file.read_text().replace(f'"{key}":"true"', f'"{key}":"perhaps"'))
    table = catalog.load_table(made.identifier)
    assert table.properties[key] == "perhaps"
    table.append(rows)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


def test_rows_never_go_to_a_new_table_of_the_same_name(catalog, table, rows):
    catalog.drop_table(table.identifier)
    catalog.create_table(table.identifier, rows.select(["s", "id"]).schema)
    with pytest.raises(CommitFailedError, match="new table"):
        table.append(rows)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 0


def test_a_metastore_that_cannot_be_found_again_leaves_the_outcome_unknown(
    metastore, proxy, catalog, namespace, rows
):
    quick = {"commit.status-check.num-retries": "0"}
    table = catalog.create_table(f"{namespace}.t", rows.schema, properties=quick)
    found = [proxy.uri]

    def locate():
        if not found:
            raise ConfigurationError("the metastore's address is gone")
        return found[0]

    lost = HiveCatalog("lost", {"warehouse": str(metastore.warehouse)}, locate=locate)
    mine = lost.load_table(table.identifier)
    mine.append(rows)
    proxy.before(ALTER, found.clear)
    proxy.fail(ALTER, "reply")
    with pytest.raises(CommitStateUnknownError):
        mine.append(rows)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 6


def test_threads_queue_for_one_table_whichever_address_they_are_connected_to(
    metastore, namespace, rows
):
    uri = f"{metastore.uri},{metastore.uri.replace('127.0.0.1', 'localhost')}"
    quick = {"iceberg.hive.lock-timeout-ms": "200"}
    several = load_catalog("several", uri=uri, warehouse=str(metastore.warehouse), **quick)
    table = several.create_table(f"{namespace}.t", rows.schema)
    outcome = []

    def take():
        try:
            with Holding() as held:
                table._pointer.queue(held)
                outcome.append("had its turn at once")
        except LockTimeoutError:
            outcome.append("waited")

    with Holding() as held:
        table._pointer.queue(held)
        second = threading.Thread(target=take)
        second.start()
        second.join()
    several.close()
    assert outcome == ["waited"]
