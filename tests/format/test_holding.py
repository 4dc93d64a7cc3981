"""What a block holds is released whatever interrupts it and wherever, and though the traceback is kept."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.catalog.commit.commit_queue import FairLock
from icecomb.catalog.hadoop.process_lock import Patience, ProcessLock
from icecomb.catalog.hive import lock as lock_module
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.catalog.hive.thrift.entity import LockAnswer, LockRow, LockState
from icecomb.catalog.hive.thrift.pool import ConnectionPool
from icecomb.format.errors import CommitFailedError, LockTimeoutError
from icecomb.format.holding import Holding, is_interrupt, note_handlers
from icecomb.format.storage.file_io import FileIO
from tests.interruption import interrupted, points


def _is_left(guard: Any) -> bool:
    """Return whether another thread gets a reentrant lock."""

    def take() -> bool:
        return bool(guard.acquire(timeout=1)) and guard.release() is None

    with ThreadPoolExecutor(1) as other:
        return other.submit(take).result()


class Queue:
    """A queue of threads."""

    def __init__(self, _: Any) -> None:
        self.lock = FairLock()

    def use(self) -> None:
        with Holding() as held, held:
            self.lock.take(held, "t", 60, "a setting")

    def is_free(self) -> bool:
        return not self.lock._waiting and _is_left(self.lock._guard)


class Processes:
    """A queue of processes."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        (folder / "metadata").mkdir(exist_ok=True)
        self.lock = ProcessLock(FileIO(), str(folder), Patience(lambda: 0, 0, 60))

    def use(self) -> None:
        with Holding() as held, held:
            self.lock.take(held)

    def is_free(self) -> bool:
        locks = [FileIO().folder_lock(f"{self.folder}{each}") for each in ("", "/metadata")]
        found = [lock.acquire() for lock in locks if lock]
        for lock in locks:
            if lock:
                lock.close()
        return found == [True, True]


class Connected:
    """A pool of connections."""

    def __init__(self, _: Any) -> None:
        def connect() -> Any:
            return SimpleNamespace(
                server="s",
                is_open=True,
                made=0,
                in_call=False,
                close=int,
                is_stale=lambda: False,
            )

        self.calls: Any = Calls(lambda: (), SimpleNamespace(pool_size=1, pool_wait_s=0, idle_s=60, lifetime_s=0))  # type: ignore[arg-type]  # fmt: skip
        self.calls.pool = ConnectionPool(connect, size=1, wait_s=0, idle_s=60, lifetime_s=0)

    def use(self) -> None:
        with Holding() as held, held:
            self.calls.pin(held)

    def is_free(self) -> bool:
        pool = self.calls.pool
        return not pool._lent and self.calls._pin is None and _is_left(pool._guard)


class Metastore:
    """A lock of a server."""

    def __init__(self, _: Any) -> None:
        self.held: set[int] = set()
        self.rows: dict[int, str] = {}

    def use(self) -> None:
        one: Any = self
        lock = TableLock(one, "db", "t", LockSettings.of({"iceberg.hive.lock-timeout-ms": "0"}))
        with Holding() as held, held:
            lock.acquire(held)

    def is_free(self) -> bool:
        for thread in threading.enumerate():
            if thread.name == "release of db.t":
                thread.join()
        return not self.rows and not lock_module._OWN

    def lock(self, *_: object, agent: str, **__: object) -> LockAnswer:
        number = len(self.rows) + 1
        self.rows[number] = agent
        return LockAnswer(number, LockState.ACQUIRED if number == 1 else LockState.WAITING)

    def check_lock(self, number: int) -> LockAnswer:
        return LockAnswer(number, LockState.ACQUIRED if number == min(self.rows) else LockState.WAITING)  # fmt: skip

    def heartbeat(self, _: int) -> None:
        pass

    def unlock(self, number: int) -> None:
        self.rows.pop(number, None)

    def locks(self, *_: object) -> list[LockRow]:
        return [
            LockRow(number, "db", "t", LockState.ACQUIRED, True, "me", "here", agent, None, None)
            for number, agent in self.rows.items()
        ]


@pytest.mark.parametrize("kind", [Queue, Processes, Connected, Metastore])
def test_nothing_is_held_after_an_interrupt_at_any_point(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(lock_module, "SWEEPS_S", (0.0, 0.0, 0.0))

    def interrupt_everywhere() -> None:
        thing = kind(tmp_path)
        thing.use()
        ends, bad = [], []
        for at in range(points(thing.use)):
            end, where = interrupted(thing.use, at)
            ends.append(end)
            if not thing.is_free():
                bad.append(where)
        assert len(ends) > 20
        assert bad == []
        thing.use()

    # a trace function that raises may leave an exception as handled in its thread
    with ThreadPoolExecutor(1) as thread:
        thread.submit(interrupt_everywhere).result()


def test_what_was_abandoned_all_the_same_keeps_nobody_out():
    """Interrupted again and again: the thread that left it asks once more, or it has ended."""
    queue, left = FairLock(), []

    def leave() -> None:
        held = Holding()
        with held:
            queue.take(held, "t", 60, "a setting")
            left.append(held.release)
            held._releases, kept = [], held._releases
        held._releases = kept

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    for _ in range(2):
        assert queue._waiting
        leave()
    assert len(queue._waiting) == 1


def test_who_holds_it_is_told_at_once_and_another_thread_waits():
    queue, said = FairLock(), []

    def take(timeout_s: float = 60) -> None:
        with Holding() as held, held:
            queue.take(held, "db.t", timeout_s, "lock-timeout")
            if not said:
                said.append("")
                with pytest.raises(CommitFailedError, match=r"db\.t: this thread is committing"):
                    take()
                other = threading.Thread(target=second)
                other.start()
                other.join()

    def second() -> None:
        with pytest.raises(LockTimeoutError, match="of this process has been committing"):
            take(0)
        said.append("waited")

    take()
    take()
    assert said == ["", "waited"]


class Handler:
    def __call__(self, *_: object) -> None:
        raise CommitFailedError("inside")


def _raise(*_: object) -> None:
    raise CommitFailedError("inside")


def _leave_first(*_: object) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    raise CommitFailedError("inside")


@pytest.mark.parametrize("handler", [_raise, partial(_raise, 1), Handler(), Handler().__call__, _leave_first])  # fmt: skip
def test_an_error_of_a_signal_handler_says_nothing_of_what_it_interrupted(handler):
    before = signal.signal(signal.SIGUSR1, handler)
    note_handlers()
    try:
        with pytest.raises(CommitFailedError) as caught:
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert is_interrupt(caught.value)
    with pytest.raises(CommitFailedError) as own:
        raise CommitFailedError("its own")
    assert not is_interrupt(own.value)
