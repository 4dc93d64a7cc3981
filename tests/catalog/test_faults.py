"""Every call of every operation fails in every way, and the catalog never lies about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_maintenance import MAINTENANCE
from faulty_operations import ALTER, OPERATIONS, World, run_case
from thrift_proxy import FAULTS, ThriftProxy

from icecomb.catalog import load_catalog, metastore as embedded
from icecomb.catalog.hive import lock
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.entity import LockState
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.format.errors import CommitFailedError, LockTimeoutError
from icecomb.format.holding import Holding
from tests.peers.child_process import ended

LEAST = 500
"""Faults a run."""
REWRITES = ("rewrite-data-files", "rewrite-position-deletes", "convert-equality-deletes")
DELETING = (
    "transact",
    "delete-row",
    "set-property-and-discard",
    "expire",
    "rewrite-manifests",
    "compute-table-stats",
    *REWRITES,
)
"""Those that delete files, of their own when they fail or of others when they do not."""
FENCED = {
    *("set-property", "append", "replace", "replace-with-rows", *DELETING),
    *("replace-view", "set-view-property"),
}
"""Those of which a late request can be made impossible from outside."""
CASES = [
    *((name, "locks") for name in ("set-property", "append", "replace", "create-with-rows")),
    *((name, "locks") for name in ("rename", "purge", "replace-view", "set-view-property")),
    *((name, "lock-free") for name in ("set-property", "append", "create", "register", "drop")),
    *(
        (name, "lock-free")
        for name in (*DELETING, "replace-with-rows", "create-view", "rename-view", "drop-view")
    ),
    ("rewrite-in-parts", "lock-free"),
    ("set-property", "unknown server"),
]
OF_VERSION_3 = {"append", "delete-row", "expire", "convert-equality-deletes", "rewrite-in-parts"}
"""Those that the gate does to tables of format version 3; `full` does all to tables of both."""
ALIKE = {
    *("rewrite-manifests", "rewrite-data-files", "rewrite-position-deletes"),
    "compute-table-stats",
}
"""Those that take long, and call what others call that rewrite as well."""
ALONE = "purge"
"""It asks for all tables of the server, in more calls the more there are: others would make some meanwhile."""
LOOKS = ("get_", "show_locks", "check_lock", "heartbeat")
BROKEN = ("request", "reset", "late", "reply", "torn")
ANSWERED = ("refused", "betrayed")
HERE = Path(__file__).parent


def _faults(case, position, method):
    """What can become of a call.

    One that only looks has no effect that could be lost: it is not sent, or is answered with an
    error, or the connection breaks, in another of its ways at the next place.
    """
    if method.startswith(LOOKS):
        turn = position + CASES.index(case)
        return ["unsent", BROKEN[turn % len(BROKEN)], ANSWERED[turn % len(ANSWERED)]]
    return _kinds(case, method)


def _kinds(case, method):
    return [*FAULTS, *(["fenced"] if method == ALTER and case[0] in FENCED else [])]


class _Case:
    """An operation in a world of its own, done once without a fault: `calls` is what it asked for."""

    def __init__(self, metastore, catalog, case, version):
        name, mode = self.case = case
        locks = mode == "locks"
        self.said, self.problems = Counter(), []
        cold = mode == "unknown server"
        self.world = World(metastore, catalog, lock_enabled=locks, cold=cold, version=version)
        try:
            self.operation = {**OPERATIONS, **MAINTENANCE}[name](self.world)
            outcome, self.calls = run_case(self.operation, None, "")
            assert outcome == "done"
            assert ("lock" in self.calls) == locks
        except BaseException:
            self.world.close()
            raise

    def suffer(self, faults):
        """Do it with each fault: (position, how)."""
        for position, how in faults:
            before = self.world.proxy.injected.total()
            try:
                self.said[run_case(self.operation, position, how)[0]] += 1
                assert self.world.proxy.injected.total() == before + 1
            except Exception as error:  # noqa: BLE001 - all are shown
                place = f"call {position} ({self.calls[position]})"
                self.problems.append(f"{', '.join(self.case)}, {place}, {how}: {error!r}")


def _each(pool, do, those, case_of):
    """Do something for each, side by side, and afterwards for those that are to be alone."""
    together = [one for one in those if case_of(one)[0] != ALONE]
    found = list(pool.map(do, together))
    return found + [do(one) for one in those if case_of(one)[0] == ALONE]


def _judge(cases, capsys):
    """Say what was injected, let no problem pass, and return how many faults there were."""
    said, injected, problems = Counter(), Counter(), []
    for one in cases:
        said += one.said
        injected += one.world.proxy.injected
        problems += one.problems
    kinds = Counter()
    for (_, how), count in injected.items():
        kinds[how] += count
    with capsys.disabled():
        print(f"\n{injected.total()} faults injected: {dict(kinds)}; outcomes: {dict(said)}")
    assert problems == []
    assert said.keys() == {"done", "failed", "unknown"}
    return injected.total()


def _by_turns(cases):
    """Each method meets every kind of fault at one place at least; the call that commits does so with locks and without."""
    places = defaultdict(list)
    for one in cases:
        for position, method in enumerate(one.calls):
            mode = one.case[1] == "locks" if method == ALTER else None
            places[method, mode].append((one, position))
    faults = {one: [] for one in cases}
    for (method, _), all_of_it in places.items():
        apart = len(all_of_it) // len(FAULTS)
        found = all_of_it[:: max(apart, 1)]
        for turn in range(max(len(found), len(FAULTS))):
            one, position = found[turn % len(found)]
            faults[one].append((position, [*FAULTS][turn % len(FAULTS)]))
        fenced = [place for place in found if "fenced" in _kinds(place[0].case, method)]
        faults.update({one: [*faults[one], (position, "fenced")] for one, position in fenced[:1]})
    return faults


@pytest.mark.slow("carries out some hundred operations with a fault each")
@pytest.mark.timeout(900)
def test_each_kind_of_fault_at_each_kind_of_call_is_told_truly_and_loses_nothing(
    metastore, catalog, monkeypatch, capsys
):
    monkeypatch.setattr(lock, "SWEEPS_S", (0.02, 0.1, 0.4))
    chosen = [case for case in CASES if case[0] not in ALIKE]
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:

        def begin(case):
            return _Case(metastore, catalog, case, "3" if case[0] in OF_VERSION_3 else "2")

        cases = _each(pool, begin, chosen, lambda case: case)
        for one in cases:
            stack.callback(one.world.close)
        faults = _by_turns(cases)
        _each(pool, lambda one: one.suffer(faults[one]), cases, lambda one: one.case)
        assert _judge(cases, capsys) == sum(map(len, faults.values()))
    met = defaultdict(set)
    for one in cases:
        for position, how in faults[one]:
            met[one.calls[position]].add(how)
    assert all(kinds >= FAULTS.keys() for kinds in met.values())
    assert "fenced" in met[ALTER]
    assert {"lock", "unlock", "create_table", "drop_table", "get_table_req"} <= met.keys()


@pytest.mark.full("every fault at every call of every operation, some five hundred")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["2", "3"])
def test_whatever_fails_the_catalog_says_the_truth_and_loses_nothing(
    metastore, catalog, monkeypatch, capsys, version
):
    monkeypatch.setattr(lock, "SWEEPS_S", (0.02, 0.1, 0.4))

    def every_fault(case):
        one = _Case(metastore, catalog, case, version)
        try:
            for position, method in enumerate(one.calls):
                one.suffer((position, how) for how in _faults(case, position, method))
        finally:
            one.world.close()
        return one

    with ThreadPoolExecutor(4) as pool:
        cases = _each(pool, every_fault, CASES, lambda case: case)
    assert _judge(cases, capsys) >= LEAST


@pytest.mark.slow("kills some twenty writers")
@pytest.mark.parametrize(
    ("every", "version"),
    [
        (6, "3"),
        pytest.param(1, "2", marks=pytest.mark.full("some ninety killed writers")),
        pytest.param(1, "3", marks=pytest.mark.full("some ninety killed writers")),
    ],
)
def test_a_writer_killed_at_any_step_of_any_operation_leaves_one_truth(
    metastore, capsys, every, version
):
    """The gate takes every sixth step, of which the operations begin with another each."""
    names = ["replace-with-rows", "create-with-rows", "register", "rename", "purge", "expire"]
    names += ["create-view", "replace-view", "rename-view", "drop-view", "append", "delete-row"]
    done = subprocess.run(
        [
            sys.executable,
            HERE / "killed_writer.py",
            str(metastore.port),
            metastore.warehouse,
            str(every),
            version,
            *names,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    with capsys.disabled():
        print(f"\n{sum(found['kills'].values())} writers killed: {found['kills']}")
    assert found["problems"] == []
    assert all(found["kills"][name] >= 6 // every for name in names)


@pytest.mark.jvm
@pytest.mark.full("starts a metastore twice, and two writers of 15 commits")
def test_a_metastore_killed_in_a_storm_of_commits_loses_and_repeats_none(tmp_path):
    first = embedded.start(tmp_path)
    proxy = ThriftProxy(first.port)
    script, back, writers = HERE / "storming_writer.py", tmp_path / "back", []
    try:
        with closing(load_catalog("direct", uri=first.uri, warehouse=str(tmp_path))) as direct:
            direct.create_namespace("db")
            quick = {"commit.status-check.min-wait-ms": "2000"}
            schema = pa.schema([("id", pa.int64())])
            table = direct.create_table("db.t", schema, properties=quick)
            writers = [
                subprocess.Popen(
                    [sys.executable, script, proxy.uri, "db.t", str(n), "15", back],
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for n in (1000, 2000)
            ]
            while len(table.refresh().snapshots()) < 6:
                time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
        again = embedded.start(tmp_path)
        proxy.target = again.port
        back.touch()
        said = [json.loads(writer.communicate(timeout=500)[0]) for writer in writers]
        with closing(load_catalog("direct", uri=again.uri, warehouse=str(tmp_path))) as direct:
            found = direct.load_table("db.t").scan().to_arrow()["id"].to_pylist()
            locks = direct.client.locks("db", "t")
    finally:
        with ended(*writers):
            proxy.close()
        embedded.stop(tmp_path)
    done, failed, unknown = (
        {row for one in said for row in one[word]} for word in ("done", "failed", "unknown")
    )
    assert len(found) == len(set(found))
    assert done <= set(found) <= done | unknown
    assert failed | unknown
    assert len(done) + len(failed) + len(unknown) == 30
    assert locks == []


def _breaking(catalog, table, action):
    """What an operator does to whoever holds the table's lock, and what follows."""

    def act():
        (row,) = catalog.client.locks(*table.identifier)
        catalog.client.unlock(row.lock_id)
        action()

    return act


def test_a_lock_request_that_arrives_late_does_not_lock_its_writer_out(
    catalog, proxied, proxy, table, rows, monkeypatch
):
    monkeypatch.setattr(lock, "SWEEPS_S", (0.05, 0.2))
    mine = proxied.load_table(table.identifier)
    # lost on the way, asked for again, and only then granted: the second one waits for the first
    proxy.fail("lock", "late")
    proxy.before("show_locks", lambda: proxy.before("lock", proxy.deliver))
    mine.append(rows)
    assert proxy.calls["lock"] == 2
    assert proxy.calls["check_lock"] >= 1
    for thread in threading.enumerate():
        if thread.name == f"release of {'.'.join(mine.identifier)}":
            thread.join()
    assert catalog.client.locks(*table.identifier) == []
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


def test_a_writer_slower_than_the_time_out_of_another_still_commits(
    catalog, metastore, proxied, proxy, table, rows
):
    slow = proxied.load_table(table.identifier)
    slow.append(rows)
    impatient = HiveCatalog("i", {"uri": metastore.uri, "iceberg.hive.lock-timeout-ms": "300"})
    refused = []

    def meanwhile():
        with pytest.raises(
            LockTimeoutError, match=rf"(?s)pid {os.getpid()}.*icecomb locks break"
        ) as e:
            impatient.load_table(table.identifier).append(rows)
        refused.append(e)

    proxy.before(ALTER, meanwhile)
    slow.append(rows)
    assert len(refused) == 1
    impatient.close()
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 6
    assert catalog.client.locks(*table.identifier) == []


def test_commits_go_past_a_dead_lock_where_the_server_checks_and_the_catalog_is_told_to(
    catalog, metastore, table, rows
):
    answer = catalog.client.lock(*table.identifier, user="ann", host="gone", agent="Iceberg-dead")
    assert answer.state is LockState.ACQUIRED
    free = load_catalog("free", uri=metastore.uri, **{"iceberg.engine.hive.lock-enabled": "false"})
    mine = free.load_table(table.identifier)
    free.client.calls.clear()
    mine.append(rows)
    assert "lock" not in free.client.calls
    free.close()
    catalog.client.unlock(answer.lock_id)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


@pytest.fixture
def unchecking(proxied):
    """Our catalog behind the proxy, for which the server is one like Hive 3.1.3."""
    with Holding() as held:
        key = proxied.client.pin(held)
        proxied.client.servers[key].check = ValueCheck.IGNORED
    return proxied


def test_a_lock_broken_before_the_last_look_loses_nothing_even_where_nobody_checks(
    catalog, unchecking, proxy, table, rows
):
    mine = unchecking.load_table(table.identifier)
    other = catalog.load_table(table.identifier)
    proxy.before("heartbeat", _breaking(catalog, table, lambda: other.append(rows)))
    mine.append(rows)
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 6


def test_a_rename_whose_lock_was_broken_reverts_no_commit_even_where_nobody_checks(
    catalog, unchecking, proxy, table, rows
):
    other = catalog.load_table(table.identifier)
    proxy.before("heartbeat", _breaking(catalog, table, lambda: other.append(rows)))
    with pytest.raises(CommitFailedError, match="lock was lost"):
        unchecking.rename_table(table.identifier, (table.identifier[0], "elsewhere"))
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 3


def test_a_rename_overtaken_without_locks_reverts_no_commit(
    catalog, proxied, proxy, namespace, rows
):
    free = {"engine.hive.lock-enabled": "false"}
    table = catalog.create_table(f"{namespace}.t", rows.schema, properties=free)
    other = catalog.load_table(table.identifier)
    proxied.load_table(table.identifier).append(rows)
    proxy.before(ALTER, lambda: other.append(rows))
    with pytest.raises(CommitFailedError, match="another writer"):
        proxied.rename_table(table.identifier, (namespace, "elsewhere"))
    assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == 6
