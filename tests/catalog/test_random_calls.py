"""Old, shared and own objects of one table, used by turns and by threads at once.

Whatever was told done must have an order that nobody can tell from what happened.
"""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from random import Random

import pytest
from random_calls import (
    BRANCHES,
    SCHEMA,
    Done,
    RandomCalls,
    frame,
    has_order,
    joined,
    look,
    rows_of,
)

from icecomb.format.errors import CommitStateUnknownError, IcecombError
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import IdentityTransform

STEPS = 14
THREADS = 3


def properties(random):
    chosen = {
        "format-version": random.choice("123"),
        "write.format.default": random.choice(["parquet", "avro"]),
        "write.metadata.previous-versions-max": random.choice(["1", "100"]),
        "commit.retry.min-wait-ms": "1",
        "commit.retry.max-wait-ms": "20",
        "commit.manifest.min-count-to-merge": random.choice(["2", "100"]),
    }
    for command in ("delete", "merge"):
        modes = ["copy-on-write", "merge-on-read"][: 1 + (chosen["format-version"] > "1")]
        chosen[f"write.{command}.mode"] = random.choice(modes)
    return chosen


class Round:
    """One table, its objects, and what was told of it."""

    def __init__(self, catalog, random):
        self.random = random
        self.calls = RandomCalls(random)
        self.catalog = catalog
        self.settings = properties(random)
        spec = PartitionSpec(0, (PartitionField(2, 1000, IdentityTransform(), "s"),))
        kept = PartitionSpec() if random.random() < 0.2 else spec
        table = catalog.create_table("db.t", SCHEMA, partition_spec=kept, properties=self.settings)
        self.partitioned = not kept.is_unpartitioned
        table.append(frame(self.calls.rows(3, least=1)))
        with table.manage_snapshots() as manage:
            manage.create_branch(table.current_snapshot().snapshot_id, "side")
        self.before = {branch: rows_of(table, branch) for branch in BRANCHES}
        self.shared = self.load()
        self.clock = itertools.count()
        self.done = []
        self.told = []

    def load(self):
        return self.catalog.load_table("db.t")

    def next_call(self):
        while True:
            call = look() if self.random.random() < 0.1 else self.calls.any()
            if self.partitioned or "dynamic" not in call.text:
                return call

    def make(self, call, table):
        begun = next(self.clock)
        try:
            answer = call.do(table)
        except IcecombError as error:
            self.refused(call.text, error)
        else:
            self.done.append(Done(call, answer, begun, next(self.clock)))
            self.told.append(f"{begun}: {call.text}: {answer}")

    def refused(self, text, error):
        assert not isinstance(error, CommitStateUnknownError), error
        self.told.append(f"{text}: refused: {str(error)[:150]}")

    def judge(self):
        self.make(look(), self.load())
        told = "\n".join([f"{self.settings} {self.before}", *self.told])
        assert has_order(self.before, self.done), told
        for branch in BRANCHES:
            assert self.load().scan(ref=branch).count() == len(rows_of(self.load(), branch))


class Open:
    """A transaction that others commit beside."""

    def __init__(self, made, table):
        self._made = made
        self._begun = next(made.clock)
        self._transaction = table.transaction()
        self._calls, self._answers = made.calls.several(), []
        self.is_over = False

    def go_on(self):
        at = len(self._answers)
        try:
            if at < len(self._calls):
                self._answers.append(self._calls[at].do(self._transaction))
                return
            self.is_over = True
            self._transaction.commit_transaction()
        except IcecombError as error:
            self.is_over = True
            self._transaction.abandon()
            self._made.refused(f"transaction {joined(self._calls).text}", error)
        else:
            whole = joined(self._calls)
            ended = next(self._made.clock)
            self._made.done.append(Done(whole, tuple(self._answers), self._begun, ended))
            self._made.told.append(f"{self._begun}-{ended}: transaction {whole.text}")


@pytest.mark.gate("fourteen calls of a table, again and again")
@pytest.mark.seeds(40, gate=1)
def test_calls_by_old_objects_have_an_order(lake, seed):
    by_turns(Round(lake, Random(f"turns {seed}")))


@pytest.mark.gate("starts threads that share an object")
@pytest.mark.seeds(25, gate=1)
def test_calls_by_threads_have_an_order(lake, seed):
    by_threads(Round(lake, Random(f"threads {seed}")))


def by_turns(made):
    random = made.random
    objects = [made.shared, made.load(), made.load()]
    transactions = []
    for _ in range(STEPS):
        if random.random() < 0.15:
            transactions.append(Open(made, random.choice(objects)))
        elif transactions and random.random() < 0.4:
            chosen = random.choice(transactions)
            chosen.go_on()
            if chosen.is_over:
                transactions.remove(chosen)
        else:
            made.make(made.next_call(), random.choice(objects))
    for each in transactions:
        while not each.is_over:
            each.go_on()
    made.judge()


def by_threads(made):
    load = made.shared._pointer.load

    def slow_load():
        found = load()
        time.sleep(made.random.choice([0, 0.05, 0.3]))
        return found

    made.shared._pointer.load = slow_load
    plans = [
        [(made.next_call(), made.random.random() < 0.6) for _ in range(4)] for _ in range(THREADS)
    ]

    def work(plan):
        own = made.load()
        for call, shared in plan:
            made.make(call, made.shared if shared else own)

    over = threading.Event()

    def watch():
        last = 0
        while not over.wait(0.001):
            now = made.shared.metadata.last_updated_ms
            assert now >= last, "the shared object was set back"
            last = now

    with ThreadPoolExecutor(THREADS + 1) as pool:
        watched = pool.submit(watch)
        working = [pool.submit(work, plan) for plan in plans]
        wait(working)
        over.set()
        for each in (*working, watched):
            each.result()
    made.judge()
