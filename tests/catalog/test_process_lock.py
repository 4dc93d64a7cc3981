"""Processes of one machine take turns at a file-system table, and nothing depends on it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hadoop import process_lock
from icecomb.catalog.hadoop.process_lock import Patience, ProcessLock
from icecomb.format.errors import FileIOError
from icecomb.format.holding import Holding
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.local import LocalFileSystem
from tests.peers.child_process import ended

ROWS = pa.table({"id": pa.array(range(40), pa.int64())})
APPENDER = """
import sys, pyarrow as pa
from icecomb.catalog import open_table
table, first = open_table(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + 12):
    table.append(pa.table({"id": pa.array([number], pa.int64())}))
print("done", flush=True)
"""
HOLDER = """
import sys
from icecomb.format.storage.file_io import FileIO
locks = [FileIO().folder_lock(each) for each in sys.argv[1:]]
print([lock.acquire() for lock in locks], flush=True)
sys.stdin.readline()
"""
FORKER = """
import os, sys, threading, pyarrow as pa
from icecomb.catalog import open_table
from icecomb.catalog.hadoop import pointer
settings = {"lock.acquire-timeout-ms": "3000", "lock.heartbeat-timeout-ms": "10"}
table, inside, go_on = open_table(sys.argv[1], **settings), threading.Event(), threading.Event()
swap = pointer.HadoopPointer.swap
def slow(*arguments):
    inside.set()
    go_on.wait()
    return swap(*arguments)
pointer.HadoopPointer.swap = slow
thread = threading.Thread(target=table.append, args=(pa.table({"id": pa.array([500], pa.int64())}),))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    go_on.set()
    open_table(sys.argv[1], **settings).append(pa.table({"id": pa.array([501], pa.int64())}))
    os._exit(0)
print("forked", os.waitpid(child, 0)[1], flush=True)
go_on.set()
thread.join()
"""


def start(text, *arguments):
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def table(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    return lake.create_table("t", ROWS.schema, properties={"commit.retry.num-retries": "0"})


@pytest.fixture
def waits(monkeypatch):
    """The pauses of this thread between two polls of a lock."""
    pauses = []
    sleep, own = time.sleep, threading.get_ident()

    def noted(seconds):
        if threading.get_ident() == own:  # servers of other tests sleep, too
            pauses.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(process_lock.time, "sleep", noted)
    return pauses


def folders(table):
    return table.location(), f"{table.location()}/metadata"


@pytest.mark.gate("two processes make twelve commits each beside this one")
def test_nobody_loses_a_race_where_all_take_turns(table):
    """Nothing is tried twice here, so a race that is lost would be an error."""
    table.append(ROWS)
    appenders = [start(APPENDER, table.location(), 1000 * number) for number in (1, 2)]
    with ended(*appenders):
        for each in appenders:
            assert each.stdout.readline() == "ready\n"
        for each in appenders:
            each.stdin.write("go\n")
            each.stdin.flush()
        for first in range(0, 40, 4):
            table.delete(f"id in ({first}, {first + 1})")
        assert [each.stdout.readline() for each in appenders] == ["done\n", "done\n"]
    found = sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
    old = [number for number in range(40) if number % 4 > 1]
    assert found == [*old, *range(1000, 1012), *range(2000, 2012)]


def test_who_waits_inside_the_door_is_next_whatever_others_do(tmp_path):
    (tmp_path / "metadata").mkdir()
    log, stop = [], threading.Event()

    def lock(name):
        class Logging(LocalFileSystem):
            def folder_lock(self, location):
                lock = super().folder_lock(location)
                what = "room" if location.endswith("metadata") else "door"
                acquire = lock.acquire

                def logged():
                    taken = acquire()
                    if taken:
                        log.append((name, what))
                    return taken

                lock.acquire = logged
                return lock

        io = FileIO()
        io._open["file"] = Logging()
        return ProcessLock(io, str(tmp_path), Patience(lambda: len(log), 60, 60))

    def greedy():
        mine = lock("greedy")
        while not stop.is_set():
            with Holding() as held:
                mine.take(held)

    thread = threading.Thread(target=greedy)
    thread.start()
    try:
        mine = lock("slow")
        for _ in range(20):
            with Holding() as held:
                assert mine.take(held)
    finally:
        stop.set()
        thread.join()
    at = [place for place, entry in enumerate(log) if entry == ("slow", "door")]
    assert len(at) == 20
    for place in at:
        # who had the room already left it; nobody else came in
        assert next(entry for entry in log[place + 1 :] if entry[1] == "room") == ("slow", "room")


def test_one_who_holds_its_turn_for_ever_delays_others_once(tmp_path, waits):
    settings = {"warehouse": str(tmp_path), "lock.heartbeat-timeout-ms": "50"}
    table = load_catalog("lake", type="hadoop", **settings).create_table("t", ROWS.schema)
    holder = start(HOLDER, *folders(table))
    with ended(holder):
        assert holder.stdout.readline() == "[True, True]\n"
        table.append(ROWS)
        first = len(waits)
        assert first > 0
        table.append(ROWS)
        assert len(waits) == first
        # one that was killed holds nothing
        holder.kill()
        holder.wait()
        table.append(ROWS)
        assert len(waits) == first
    assert table.scan().count() == 120


def test_as_long_as_others_commit_they_are_waited_for(tmp_path, waits):
    (tmp_path / "metadata").mkdir()
    states = [0, 1, 2, 3]

    def state():
        return states.pop(0) if len(states) > 1 else states[0]

    with Holding() as held:
        other = FileIO().folder_lock(str(tmp_path / "metadata"))
        held.add(other.close)
        assert other.acquire()
        ProcessLock(FileIO(), str(tmp_path), Patience(state, 0, 60)).take(held)
    # before the first wait, after each of three, and once more without a change
    assert (states, len(waits)) == ([3], 3)


@pytest.mark.parametrize("how", ["refuses", "knows none"])
def test_storage_without_locks_serves_as_before(table, monkeypatch, how):
    def lock(self, location):
        if how == "refuses":
            raise FileIOError(f"cannot lock {location}: Bad file descriptor", path=location)

    monkeypatch.setattr(LocalFileSystem, "folder_lock", lock)
    table.append(ROWS)
    assert table.scan().count() == 40


def test_turns_leave_no_file(table, tmp_path):
    table.append(ROWS)
    table.append(ROWS)
    assert {path.name for path in (tmp_path / "t").iterdir()} == {"data", "metadata"}
    kinds = {path.suffix for path in (tmp_path / "t" / "metadata").iterdir()}
    assert kinds == {".json", ".avro", ".text"}


@pytest.mark.gate("starts a process that forks")
def test_a_forked_process_waits_for_no_thread_that_it_does_not_have(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    table = lake.create_table("t", ROWS.schema)
    forker = start(FORKER, table.location())
    with ended(forker):
        assert forker.stdout.readline() == "forked 0\n"
        assert forker.wait(60) == 0
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [500, 501]
