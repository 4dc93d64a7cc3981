"""What guards a change of an entry, without a metastore: the lock, the expected pointer, the poll after silence."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.catalog.commit.pointer import Committed, Conflict, Unknown
from icecomb.catalog.hive import entry_change
from icecomb.catalog.hive.entry_change import EntryChange, Expectation
from icecomb.catalog.hive.entry_pointer import EntryPointer
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.settlement import ChangeState, Observation, Settlement
from icecomb.catalog.hive.thrift.entity import HiveTable, LockAnswer, LockState
from icecomb.catalog.hive.thrift.server import EXPECTED_KEY, EXPECTED_VALUE
from icecomb.format.errors import MetastoreError
from icecomb.format.holding import Holding

CHECKS = {"hive.check-and-put": "trusted"}
LOCKS_ONLY = {"hive.check-and-put": "false"}
QUICK = {"commit.status-check.min-wait-ms": "1", "commit.status-check.num-retries": "2"}
SILENCE = MetastoreError("no answer")


class Lock:
    """Stands for the lock of an entry, and counts what is done with it."""

    def __init__(self, *_: object) -> None:
        self.done: list[str] = []

    def acquire(self, held: Holding) -> None:
        held.add(self.release)
        self.done.append("acquire")

    def release(self) -> None:
        self.done.append("release")

    def is_alive(self, *, ask: bool) -> bool:
        raise AssertionError(ask)


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Lock:
    one = Lock()
    monkeypatch.setattr(entry_change, "TableLock", lambda *_, **__: one)
    monkeypatch.setattr(entry_change, "lock_expiry_s", lambda _: None)
    return one


def change(settings: dict[str, str]) -> EntryChange:
    client: Any = SimpleNamespace(key=("a",), uri="thrift://a:1")
    return EntryChange(client, "db", "t", settings)


@pytest.mark.parametrize("locked", [True, False])
def test_a_server_that_checks_is_told_what_it_may_replace_with_and_without_a_lock(locked):
    taken: Any = Lock() if locked else None
    told = change(CHECKS).context(Expectation("metadata_location", "old"), taken)
    assert (told[EXPECTED_KEY], told[EXPECTED_VALUE]) == ("metadata_location", "old")


def test_a_server_is_not_told_where_the_catalog_does_without_its_check():
    taken: Any = Lock()
    told = change(LOCKS_ONLY).context(Expectation("metadata_location", "old"), taken)
    assert {EXPECTED_KEY, EXPECTED_VALUE}.isdisjoint(told)


def test_a_lock_is_given_back_when_the_change_is_done(lock):
    with Holding() as held:
        taken = change(CHECKS).guard(held, {})
        assert taken is lock
        assert lock.done == ["acquire"]
    assert lock.done == ["acquire", "release"]


def test_a_lock_is_given_back_when_the_change_fails(lock):
    with Holding() as held:
        change(CHECKS).guard(held, {})
        with pytest.raises(KeyboardInterrupt), held:
            raise KeyboardInterrupt
    assert lock.done == ["acquire", "release"]


def test_a_lock_around_several_changes_is_taken_once(lock):
    one = change(CHECKS)
    with Holding() as held:
        outer = one.exclusive(held, {})
        for _ in range(2):
            with Holding() as within:
                assert one.guard(within, {}) is outer
    assert lock.done == ["acquire", "release"]


@dataclass
class Server:
    """Grants every lock, and tells when it hears of one again."""

    heard: threading.Event = field(default_factory=threading.Event)
    beats: list[int] = field(default_factory=list)
    unlocked: list[int] = field(default_factory=list)

    def lock(self, *_: object, **__: object) -> LockAnswer:
        return LockAnswer(7, LockState.ACQUIRED)

    def heartbeat(self, lock_id: int) -> None:
        self.beats.append(lock_id)
        self.heard.set()

    def unlock(self, lock_id: int) -> None:
        self.unlocked.append(lock_id)


def test_a_lock_that_is_held_is_heard_of_again():
    server: Any = Server()
    taken = TableLock(
        server, "db", "t", LockSettings.of({"iceberg.hive.lock-heartbeat-interval-ms": "20"})
    )
    with Holding() as held:
        taken.acquire(held)
        assert server.heard.wait(60)
    assert set(server.beats) == {7}
    assert server.unlocked == [7]


def settled(*states: ChangeState, checked: bool) -> tuple[Any, int]:
    """The outcome after silence, and the number of polls; the last state stays."""
    polls = 0

    def poll() -> Observation:
        nonlocal polls
        polls += 1
        return Observation(states[min(polls, len(states)) - 1], None)

    return Settlement(poll, QUICK, checked=checked).after_silence(SILENCE), polls


def test_after_a_lost_answer_the_entry_is_polled_until_the_change_is_there():
    outcome, polls = settled(ChangeState.NOT_YET, ChangeState.HAPPENED, checked=True)
    assert outcome == Committed(found=True)
    assert polls == 2


def test_after_a_lost_answer_what_is_not_there_yet_is_unknown():
    outcome, polls = settled(ChangeState.NOT_YET, checked=True)
    assert isinstance(outcome, Unknown)
    assert polls == 3


def test_after_a_lost_answer_only_a_server_that_checks_has_refused_what_was_overtaken():
    assert isinstance(settled(ChangeState.OVERTAKEN, checked=True)[0], Conflict)
    outcome, polls = settled(ChangeState.OVERTAKEN, checked=False)
    assert isinstance(outcome, Unknown)
    assert polls == 3


class Pointer(EntryPointer[Any]):
    """A pointer whose versions are their locations."""

    def load(self) -> Any:
        raise NotImplementedError

    def new_entry(self, new: Any) -> HiveTable:
        raise NotImplementedError

    def altered(self, entry: HiveTable, expected: Any, new: Any) -> HiveTable:
        raise AssertionError((entry, expected, new))

    def history_reader(self, expected: Any, new: Any) -> Any:
        raise NotImplementedError


def test_a_pointer_that_others_moved_is_a_conflict_before_anything_is_sent(lock, monkeypatch):
    """The server may not check it: the lock keeps others out from here on, not before."""
    client: Any = SimpleNamespace(key=("a",), uri="thrift://a:1")
    pointer = Pointer(client, "db", "t", None, LOCKS_ONLY)  # type: ignore[arg-type]
    theirs = HiveTable("db", "t", parameters={"metadata_location": "theirs"})
    monkeypatch.setattr(pointer.change, "read", lambda: theirs)
    metadata = SimpleNamespace(properties={})
    expected, new = (SimpleNamespace(location=at, metadata=metadata) for at in ("old", "new"))
    outcome = pointer.swap(expected, new)
    assert outcome == Conflict("another writer was first", "theirs")
    assert lock.done == ["acquire", "release"]
