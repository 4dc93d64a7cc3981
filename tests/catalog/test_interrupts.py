"""Operations interrupted anywhere: rows as before or after, the next commit at once, nothing held.

Interrupts are a Ctrl-C whose traceback is kept or not, a full memory, an exit, and a signal handler that commits itself.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hadoop.process_lock import WAITING
from icecomb.format.storage.file_io import FileIO
from tests.interruption import interrupted, points

LOCKS = (
    *("commit/commit.py", "commit_queue.py", "holding.py", "hive/lock.py", "thrift/pool.py"),
    *(
        "hive/entry_change.py",
        "entry_pointer.py",
        "process_lock.py",
        "hadoop/pointer.py",
        "calls.py",
    ),
    *("hadoop/ticket.py", "storage/local.py", "contextlib.py"),
)
"""Most points are in the reading and writing of files; half of the interrupts fall into these."""
# a lock whose answer was lost is released in the background, which takes seconds on a busy machine
PATIENT = {"iceberg.hive.lock-timeout-ms": "10000", "lock.acquire-timeout-ms": "10000"}
ENDS = (KeyboardInterrupt, MemoryError, SystemExit)

pytestmark = [
    pytest.mark.full(
        "a trace function that raises may leave an exception as handled in the thread for later tests"
    ),
    # between the opening of a file and the block that closes it
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    # a generator that was left half-way is closed, where Python lets no exception out
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <generator:pytest.PytestUnraisableExceptionWarning"
    ),
]


def frame(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(lake, name):
    return sorted(lake.load_table(name).scan().to_arrow()["id"].to_pylist())


def _transaction(table, number):
    with table.transaction() as both:
        both.append(frame(number))
        both.delete("id = 1")


def _tag(table, number):
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, f"t{number}").commit()


def _property(table, number):
    with table.transaction() as change:
        change.set_properties({"some": str(number)})


def _more(rows, number):
    return [*rows, number]


def _with_first(rows, number):
    return [*rows, number, *({1} - set(rows))]


OPERATIONS = {
    "append": (lambda table, number: table.append(frame(number)), _more),
    "delete": (lambda table, _: table.delete("id = 2"), lambda rows, _: [*{*rows} - {2}]),
    "upsert": (
        lambda table, number: table.upsert(frame(1, number), join_cols=["id"]),
        _with_first,
    ),
    "transaction": (_transaction, lambda rows, number: [*{*rows, number} - {1}]),
    "tag": (_tag, lambda rows, _: rows),
    "property": (_property, lambda rows, _: rows),
}


class Story:
    """A table whose operations are interrupted, by the catalog it is in."""

    def __init__(self, lake, name, random):
        self.lake, self.name, self.random = lake, name, random
        self.table = lake.create_table(name, frame().schema)
        self.table.append(frame(1, 2, 3))
        self.number = 100
        self.kept = []
        self.flushed = []

    def round(self, do=None):
        self.table.refresh()  # an interrupted commit may have been done
        kind = self.random.choice(sorted(OPERATIONS))
        run, outcome = OPERATIONS[kind]
        within = LOCKS if self.random.random() < 0.7 else ()
        self.number += 1
        before = ids(self.lake, self.name)
        counted = self.number
        count = points(lambda: run(self.table, counted), within)
        middle = ids(self.lake, self.name)
        assert middle == sorted(outcome(before, counted)), kind
        if kind in {"delete", "transaction"}:
            self.table.append(frame(*({1, 2} - set(middle))))
        before = ids(self.lake, self.name)
        self.number += 1
        number = self.number
        at = self.random.randrange(count)
        end, where = interrupted(lambda: run(self.table, number), at, within, do or self.interrupt)
        told = f"{kind} at {where}: {end!r}"
        after = ids(self.lake, self.name)
        rest = sorted(after)
        for each in self.flushed:
            assert each in rest, told
            rest.remove(each)
        self.flushed.clear()
        allowed = [sorted(before), sorted(outcome(before, number))]
        assert rest in (allowed if end is not None else allowed[1:]), told
        keeps = self.random.random() < 0.5
        if keeps:
            self.kept.append(end)
        del end
        begun = time.monotonic()
        self.number += 1
        table = self.table if self.random.random() < 0.5 else self.lake.load_table(self.name)
        table.append(frame(self.number))
        assert ids(self.lake, self.name) == sorted([*after, self.number]), told
        assert time.monotonic() - begun < 60, told
        return told

    def interrupt(self):
        raise self.random.choice(ENDS)


def _free_locally(warehouse, name, told):
    folder = Path(warehouse, *name.split("."))
    assert not (folder / "metadata" / WAITING).exists(), told
    for each in (folder, folder / "metadata"):
        lock = FileIO().folder_lock(str(each))
        assert lock is not None
        assert lock.acquire(), told
        lock.close()


def _free_at(client, namespace, told):
    deadline = time.monotonic() + 30
    # a request whose answer was lost is released in the background, on a connection of the pool
    while found := client.locks(namespace, "t") or client._calls.pool._lent:
        assert time.monotonic() < deadline, f"{told}: {found}"
        time.sleep(0.1)


@pytest.mark.seeds(60)
def test_interrupted_changes_of_a_folder_are_done_or_not(tmp_path, seed):
    random = Random(f"interrupts {seed}")
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path), **PATIENT)
    lake.create_namespace("db")
    story = Story(lake, "db.t", random)
    for _ in range(3):
        told = story.round()
        _free_locally(tmp_path, "db.t", told)


@pytest.mark.jvm
@pytest.mark.seeds(60)
def test_interrupted_changes_of_a_metastores_table_are_done_or_not(metastore, namespace, seed):
    random = Random(f"interrupts {seed}")
    settings = {**metastore.client_settings, **PATIENT, "uri": metastore.uri}
    settings["engine.hive.lock-enabled"] = random.choice(["true", "true", "false"])
    with load_catalog("hive", type="hive", **settings) as lake:
        story = Story(lake, f"{namespace}.t", random)
        for _ in range(3):
            told = story.round()
            _free_at(lake.client, namespace, told)


@pytest.fixture
def signaled():
    """A signal whose handler is set by the test."""
    found = SimpleNamespace(handler=lambda: None)
    before = signal.signal(signal.SIGUSR1, lambda *_: found.handler())
    yield found
    signal.signal(signal.SIGUSR1, before)


def _flushing(story, other, signaled):
    """A handler that commits the rows it has, to this table or another one, and lets errors go."""

    def flush():
        story.number += 1
        name = story.random.choice([story.name, story.name, other])
        story.lake.load_table(name).append(frame(story.number))
        if name == story.name:
            story.flushed.append(story.number)

    signaled.handler = flush
    return lambda: signal.raise_signal(signal.SIGUSR1)


@pytest.mark.seeds(60)
def test_a_handler_that_commits_to_a_folder_meanwhile_is_done_or_refused(tmp_path, seed, signaled):
    random = Random(f"handlers {seed}")
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path), **PATIENT)
    lake.create_namespace("db")
    lake.create_table("db.other", frame().schema)
    story = Story(lake, "db.t", random)
    for _ in range(3):
        told = story.round(_flushing(story, "db.other", signaled))
        _free_locally(tmp_path, "db.t", told)


@pytest.mark.jvm
@pytest.mark.seeds(40)
def test_a_handler_that_commits_to_a_metastore_meanwhile_is_done_or_refused(
    metastore, namespace, seed, signaled
):
    random = Random(f"handlers {seed}")
    settings = {**metastore.client_settings, **PATIENT, "uri": metastore.uri}
    with load_catalog("hive", type="hive", **settings) as lake:
        lake.create_table(f"{namespace}.other", frame().schema)
        story = Story(lake, f"{namespace}.t", random)
        for _ in range(3):
            told = story.round(_flushing(story, f"{namespace}.other", signaled))
            _free_at(lake.client, namespace, told)
