"""Every request of every operation to an object store fails in every way, and no commit is lost or doubled."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from faulty_operations import OPERATIONS, World, run_case

from icecomb.catalog.hive.catalog import HiveCatalog
from tests.peers.s3_proxy import FAULTS, S3Proxy

ANSWERED = ("refuse", "lose", "late")
"""What every request of every operation meets: lost before it was done, lost after, done late."""
SEVERAL = (
    "transact",
    "set-property-and-discard",
    "expire",
    "replace-with-rows",
    "create-with-rows",
)
CASES = [
    ("append", (*ANSWERED, "busy")),
    ("append", tuple({*FAULTS} - {*ANSWERED, "busy"})),
    ("append", ("gone", "silent")),
    *((name, ANSWERED) for name in (*SEVERAL, "purge")),
]
SOME = [
    *((name, FAULTS) for name in ("append", "purge")),
    ("append", ("gone", "silent")),
]
"""Those of which the gate fails each request in one way."""
FOR_GOOD = {"gone": "refuse", "silent": "lose"}
"""From one request on all meet the same."""
LEAST = 150
"""Faults a run."""


class FaultyStore:
    """An S3 behind a proxy as `World` knows proxies: a request by its position goes wrong."""

    def __init__(self, endpoint):
        self._proxy = S3Proxy(endpoint)
        self.endpoint = self._proxy.endpoint
        self.injected = Counter()
        self._lock = threading.Lock()

    @property
    def sequence(self):
        return [each.name for each in self._proxy.requests]

    def begin(self):
        self._proxy.requests = []
        self._proxy.choose = lambda _: ""

    def fail_at(self, position, how):
        passed = 0

        def choose(request):
            nonlocal passed
            with self._lock:
                passed += 1
                if passed - 1 == position or (passed > position and how in FOR_GOOD):
                    self.injected[request.name, how] += 1
                    return FOR_GOOD.get(how, how)
                return ""

        self._proxy.choose = choose

    def deliver(self):
        self._proxy.release()

    def close(self):
        self._proxy.close()


class StoreWorld(World):
    """A namespace in a bucket; the metastore answers, and the store does not always."""

    def __init__(self, metastore, s3, direct):
        store = FaultyStore(s3.endpoint)
        place = {"s3.endpoint": store.endpoint, "warehouse": direct.properties["warehouse"]}
        quick = {"io.object-store.max-attempts": "3", "s3.request-timeout": "5"}
        settings = {**s3.settings, **place, **quick}
        super().__init__(metastore, direct, lock_enabled=False, **settings)
        self._thrift, self.proxy = self.proxy, store
        self._s3 = s3.client()

    def read(self, location):
        bucket, _, key = location.removeprefix("s3://").partition("/")
        return self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def missing(self, locations):
        bucket, _, key = next(iter(locations)).removeprefix("s3://").partition("/")
        table = key.rpartition("/metadata/")[0] or key.rpartition("/data/")[0]
        found = self._s3.list_objects_v2(Bucket=bucket, Prefix=f"{table}/")
        assert not found["IsTruncated"]
        return locations - {f"s3://{bucket}/{each['Key']}" for each in found.get("Contents", [])}

    def close(self):
        self._thrift.close()
        super().close()
        self._s3.close()


@pytest.fixture
def direct(metastore, s3):
    place = {"uri": metastore.uri, "warehouse": f"s3://{s3.bucket()}/wh"}
    with HiveCatalog("direct", {**place, **s3.settings}) as catalog:
        yield catalog


def _every_fault(metastore, s3, direct, name, faults, *, turn=None):
    """Every fault at every request of one operation: what it said, what was injected, what is wrong.

    With a `turn` each request meets one of them: the first that of this turn, the next the following.
    """
    world = StoreWorld(metastore, s3, direct)
    said, problems = Counter(), []
    try:
        operation = OPERATIONS[name](world)
        operation.length = min(3, getattr(operation, "length", 3))
        outcome, calls = run_case(operation, None, "")
        assert outcome == "done"
        for position, request in enumerate(calls):
            at = (position + (turn or 0)) % len(faults)
            for how in faults if turn is None else faults[at : at + 1]:
                before = world.proxy.injected.total()
                try:
                    said[run_case(operation, position, how)[0]] += 1
                    assert world.proxy.injected.total() > before
                except Exception as error:  # noqa: BLE001 - all are shown
                    problems.append(f"{name}, request {position} ({request}), {how}: {error!r}")
        return said, world.proxy.injected, problems
    finally:
        world.close()


@pytest.mark.slow("commits once for each request of each operation")
def test_one_fault_a_request_leaves_every_commit_that_is_reported_there_once(
    metastore, s3, direct, capsys
):
    def some(case):
        return _every_fault(metastore, s3, direct, *case, turn=SOME.index(case) * 4)

    with ThreadPoolExecutor(len(SOME)) as pool:
        said, injected = _judged(pool.map(some, SOME), capsys)
    assert {how for _, how in injected} == {*FAULTS, *FOR_GOOD}
    assert said["done"]
    assert said["failed"]


@pytest.mark.full("every fault at every request of seven operations")
@pytest.mark.timeout(900)
def test_whatever_the_store_does_every_commit_that_is_reported_is_there_once(
    metastore, s3, direct, capsys
):
    with ThreadPoolExecutor(len(CASES)) as pool:
        found = pool.map(lambda case: _every_fault(metastore, s3, direct, *case), CASES)
        said, injected = _judged(found, capsys)
    assert injected.total() >= LEAST
    assert said["done"]
    assert said["failed"]


def _judged(found, capsys):
    """What was said and injected; no problem passes."""
    said, injected, problems = Counter(), Counter(), []
    for one in found:
        said += one[0]
        injected += one[1]
        problems += one[2]
    kinds = Counter()
    for (_, how), count in injected.items():
        kinds[how] += count
    with capsys.disabled():
        print(f"\n{injected.total()} faults injected: {dict(kinds)}; outcomes: {dict(said)}")
    assert problems == []
    return said, injected
