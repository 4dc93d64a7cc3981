"""Who waits for a lock releases it where its holder has certainly ended, and never a live one's."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from icecomb.catalog.hive import lock as lock_module
from icecomb.catalog.hive.lock import (
    LockSettings,
    TableLock,
    abandoned_locks,
    is_gone,
    pid_of,
)
from icecomb.catalog.hive.thrift.entity import LockAnswer, LockRow, LockState
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.format.errors import LockTimeoutError
from icecomb.format.holding import Holding
from icecomb.format.process import machine, started_at

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
SHORT = LockSettings.of({"iceberg.hive.lock-timeout-ms": "300"})
HOLDER = 5


@dataclass
class Server:
    """Where somebody holds the lock on `db.t`."""

    agent: str
    host: str = field(default_factory=socket.gethostname)
    state: LockState = LockState.ACQUIRED
    is_away: bool = False
    unlocked: list[int] = field(default_factory=list)

    def lock(self, *_: object, **__: object) -> LockAnswer:
        return self.check_lock(7)

    def check_lock(self, lock_id: int) -> LockAnswer:
        free = HOLDER in self.unlocked
        return LockAnswer(lock_id, LockState.ACQUIRED if free else LockState.WAITING)

    def locks(self, *_: object) -> list[LockRow]:
        if self.is_away:
            raise UnreachableError("it is away", hint="wait")
        return [] if HOLDER in self.unlocked else [row(self.agent, self.host, self.state)]

    def heartbeat(self, lock_id: int) -> None:
        pass

    def unlock(self, lock_id: int) -> None:
        self.unlocked.append(lock_id)


def row(agent, host=None, state=LockState.ACQUIRED):
    return LockRow(
        lock_id=HOLDER,
        database="db",
        table="t",
        state=state,
        exclusive=True,
        user="ann",
        host=host or socket.gethostname(),
        agent=agent,
        acquired_ms=None,
        last_heartbeat_ms=None,
    )


@pytest.fixture
def dead():
    """The stamp of a lock of a process that was killed."""
    code = (
        "import os, signal\n"
        "from icecomb.catalog.hive.lock import LockSettings, TableLock\n"
        "print(TableLock(None, 'db', 't', LockSettings.of({})).agent, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)  # noqa: PLW1510
    return found.stdout.strip()


def acquired(server: Any, *, is_fenced=True):
    """Whether the lock is had before a short time has passed."""
    lock = TableLock(server, "db", "t", SHORT, is_fenced=lambda: is_fenced)
    try:
        _held_once(lock)
    except LockTimeoutError:
        return False
    return True


@pytest.mark.parametrize("state", [LockState.ACQUIRED, LockState.WAITING])
def test_the_lock_of_a_killed_process_is_released_whether_it_has_it_or_stands_before(dead, state):
    server = Server(dead, state=state)
    assert acquired(server)
    assert server.unlocked[0] == HOLDER


def test_the_lock_of_a_process_that_lives_stays():
    server = Server(TableLock(None, "db", "t", SHORT).agent)  # type: ignore[arg-type]
    assert pid_of(row(server.agent)) == os.getpid()
    assert not acquired(server)
    assert HOLDER not in server.unlocked


def test_a_number_that_another_process_has_by_now_is_no_sign_of_life():
    agent = TableLock(None, "db", "t", SHORT).agent  # type: ignore[arg-type]
    started = started_at(os.getpid())
    earlier = agent.replace(f"-{machine()}-{started:x}-", f"-{machine()}-{started - 1:x}-")
    assert earlier != agent
    assert acquired(Server(earlier))


def test_nothing_is_taken_for_dead_that_may_run_elsewhere(dead):
    pid = dead.rpartition("pid")[2]
    elsewhere = dead.replace(machine(), "00000000")
    for agent, host, gone in (
        (elsewhere, None, False),  # a container of the same name
        (dead, "etl-07", False),
        (f"icecomb-0000-pid{pid}", None, True),  # an older icecomb does not say which machine
        (f"org.apache.iceberg-pid{pid}", None, False),
        ("", None, False),
    ):
        server = Server(agent, **({} if host is None else {"host": host}))
        assert is_gone(row(agent, host)) is gone
        assert not acquired(server), agent
        assert HOLDER not in server.unlocked


def test_a_server_that_does_not_check_may_still_be_told_something_by_the_dead(dead):
    server = Server(dead)
    assert not acquired(server, is_fenced=False)
    assert HOLDER not in server.unlocked


def test_a_server_that_cannot_be_asked_who_has_the_lock_is_waited_for(dead):
    server = Server(dead, is_away=True)
    assert not acquired(server)
    assert HOLDER not in server.unlocked


class Interrupted(Exception):  # noqa: N818 - as what a scheduler's time limit raises in a handler
    """Somebody had enough of waiting."""


@dataclass
class Interrupting(Server):
    """A free table, whose server has done `at` when the client is interrupted in that call."""

    at: str = ""
    held: set[int] = field(default_factory=set)

    def lock(self, *_: object, **kept: Any) -> LockAnswer:
        self.agent = kept["agent"]
        self.held.add(HOLDER)
        self._interrupt("lock")
        return LockAnswer(HOLDER, LockState.ACQUIRED)

    def locks(self, *_: object) -> list[LockRow]:
        return [row(self.agent)] if self.held else []

    def unlock(self, lock_id: int) -> None:
        self._interrupt("unlock")
        self.held.discard(lock_id)

    def _interrupt(self, call: str) -> None:
        if call == self.at:
            self.at = ""
            raise Interrupted


def released(server: Interrupting) -> bool:
    """Whether nothing is held once the releases in the background are done."""
    for thread in threading.enumerate():
        if thread.name == "release of stopped.t":
            thread.join()
    return not server.held


@pytest.mark.parametrize("at", ["lock", "unlock"])
def test_a_lock_is_released_by_a_living_process_that_was_interrupted_in_a_call(at, monkeypatch):
    """Nobody else releases it: its process lives."""
    monkeypatch.setattr(lock_module, "SWEEPS_S", (0.01, 0.01))
    server = Interrupting("", at=at)
    lock = TableLock(server, "stopped", "t", SHORT)  # type: ignore[arg-type]
    with pytest.raises(Interrupted):
        _held_once(lock)
    assert released(server)


def test_a_lock_is_released_where_no_thread_can_keep_it_alive(monkeypatch):
    server = Interrupting("")
    lock = TableLock(server, "stopped", "t", SHORT)  # type: ignore[arg-type]

    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lock_module.threading, "Thread", NoThread)
    with pytest.raises(RuntimeError, match="new thread"):
        _held_once(lock)
    assert not server.held


HOUR_MS = 3_600_000


@dataclass
class Clocked(Interrupting):
    """A server whose database's clock, which notes heartbeats, is behind that of this machine."""

    behind_ms: int = 0
    is_mute: bool = False

    def locks(self, *place: object) -> list[LockRow]:
        if self.is_mute:
            raise UnreachableError("it is away", hint="wait")
        now = int(time.time() * 1000) - self.behind_ms
        return [replace(one, last_heartbeat_ms=now) for one in super().locks(*place)]


@pytest.mark.parametrize(
    ("behind_ms", "silent_ms", "is_mute", "abandoned"),
    [
        (0, 8 * HOUR_MS, False, True),
        (0, 0, False, False),
        (8 * HOUR_MS, 0, False, False),
        (8 * HOUR_MS, HOUR_MS, False, True),
        (-8 * HOUR_MS, 0, False, False),
        (8 * HOUR_MS, 0, True, False),
    ],
)
def test_a_holder_is_silent_by_the_clock_that_notes_its_heartbeats(
    behind_ms, silent_ms, is_mute, abandoned, monkeypatch
):
    """Hive takes it from its database, whose time zone may be another one."""
    monkeypatch.setattr(lock_module, "lock_expiry_s", lambda _: 300.0)
    server = Clocked("", behind_ms=behind_ms, is_mute=is_mute)
    heard = int(time.time() * 1000) - behind_ms - silent_ms
    hive = replace(row("hive_20261126", "etl-07"), last_heartbeat_ms=heard)
    assert abandoned_locks(server, [hive]) == ([hive] if abandoned else [])  # type: ignore[arg-type]
    assert not server.held


def _held_once(lock: TableLock) -> None:
    with Holding() as held, held:
        lock.acquire(held)
