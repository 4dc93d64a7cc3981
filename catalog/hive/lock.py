"""The metastore's exclusive lock on a table, as Iceberg's writers take it around a commit.

A lock is stamped with agent (``icecomb-<uuid>-<machine>-<start>-pid<n>``), host and user, so that
others can tell who holds it and the holder finds it again when the answer to its request was lost.
While held, a thread keeps it alive by heartbeats; without them a server's reaper drops it. Locks of
processes of the same machine that have certainly ended are released by those who wait for them.
"""

from __future__ import annotations

import logging
import os
import random
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from icecomb.catalog.configuration.catalog_property import (
    LOCK_CHECK_MAX_WAIT,
    LOCK_CHECK_MIN_WAIT,
    LOCK_CREATION_MAX_WAIT,
    LOCK_CREATION_MIN_WAIT,
    LOCK_CREATION_TIMEOUT,
    LOCK_HEARTBEAT,
    LOCK_TIMEOUT,
)
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import LockAnswer, LockRow, LockState
from icecomb.catalog.hive.thrift.failure import RefusedError, ReplyLostError
from icecomb.catalog.hive.thrift.server import lock_expiry_s
from icecomb.catalog.hive.thrift.settings import current_user
from icecomb.format.cancellation import Signal, pause
from icecomb.format.errors import IcecombError, LockTimeoutError, MetastoreError
from icecomb.format.holding import Holding, is_interrupt
from icecomb.format.process import has_ended, machine, started_at
from icecomb.format.secret import one_line
from icecomb.format.shell_command import shell_command

_LOG: Final = logging.getLogger(__name__)
_GROWTH: Final = 0.1
"""A waiter polls after a tenth of the time waited: late by a tenth at most, ever less often."""
SWEEPS_S: Final = (0.2, *(0.5 * 1.5**n for n in range(16)))
"""Pauses between attempts to release a lock in the background: eleven minutes in all."""
SILENT_S: Final = 600.0
"""Iceberg's writers send a heartbeat at least every four minutes."""
_AGENT: Final = re.compile(
    r"icecomb-(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"-(?P<machine>[0-9a-f]{8})-(?P<started>[0-9a-f]+)|[0-9a-f-]+)-pid(?P<pid>\d+)"
)
_CHECK_S: Final = 1.0
"""How often a waiter checks whether the lock's holder has ended, in seconds."""
_LATE_S: Final = 10.0
"""Seconds for which a request of an ended process may still be on its way to a server that does
not check expected values."""


@dataclass(frozen=True, slots=True)
class LockSettings:
    """Iceberg's properties of the commit lock, in seconds.

    Attributes:
        creation_timeout: ``iceberg.hive.lock-creation-timeout-ms``.
        creation_min_wait, creation_max_wait: ``iceberg.hive.lock-creation-{min,max}-wait-ms``.
        timeout: ``iceberg.hive.lock-timeout-ms``: how long to wait for the lock.
        check_min_wait, check_max_wait: ``iceberg.hive.lock-check-{min,max}-wait-ms``.
        heartbeat: ``iceberg.hive.lock-heartbeat-interval-ms``.
        user: The user that the lock is requested for.
    """

    creation_timeout: float
    creation_min_wait: float
    creation_max_wait: float
    timeout: float
    check_min_wait: float
    check_max_wait: float
    heartbeat: float
    user: str

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LockSettings:
        """Read the settings from properties, with Iceberg's defaults."""
        return cls(
            creation_timeout=LOCK_CREATION_TIMEOUT.of(properties) / 1000,
            creation_min_wait=LOCK_CREATION_MIN_WAIT.of(properties) / 1000,
            creation_max_wait=LOCK_CREATION_MAX_WAIT.of(properties) / 1000,
            timeout=LOCK_TIMEOUT.of(properties) / 1000,
            check_min_wait=LOCK_CHECK_MIN_WAIT.of(properties) / 1000,
            check_max_wait=LOCK_CHECK_MAX_WAIT.of(properties) / 1000,
            heartbeat=LOCK_HEARTBEAT.of(properties) / 1000,
            user=current_user(properties),
        )


class TableLock:
    """One lock: acquired once, released once; the table need not exist.

    Args:
        expires_s: Seconds without heartbeat after which the server drops the lock, if known.
        is_fenced: Returns whether the server refuses late requests of ended processes.
    """

    def __init__(
        self,
        client: HiveClient,
        database: str,
        table: str,
        settings: LockSettings,
        expires_s: float | None = None,
        *,
        is_fenced: Callable[[], bool] = lambda: False,
    ) -> None:
        self.agent = _stamp()
        self.lock_id: int | None = None
        self._client = client
        self._database = database
        self._table = table
        self._settings = settings
        # The first beat comes after half the interval: a third of the expiry leaves two more.
        self._interval = min(settings.heartbeat, expires_s / 1.5 if expires_s else float("inf"))
        self._is_fenced = is_fenced
        self._dead: dict[int, float] = {}
        self._next_check = 0.0
        self._reply_lost = False
        self._ended = Signal()
        self._is_released = False
        self._lost: str | None = None
        self._confirmed = 0.0
        self._beats: threading.Thread | None = None

    def acquire(self, held: Holding) -> None:
        """Wait for the lock, and hold it until `held` ends.

        LockTimeoutError is raised if it was not granted in time; the message names the holder.
        """
        held.add(self.release)
        _OWN[self.agent] = held
        self._wait(time.monotonic())
        self._beats = threading.Thread(
            target=self._keep_alive, name=f"heartbeat of {self._name}", daemon=True
        )
        self._beats.start()

    def _wait(self, started: float) -> None:
        self._confirmed = time.monotonic()
        answer = self._request()
        level = logging.DEBUG
        if answer.state is LockState.WAITING:
            level = logging.INFO
            _LOG.info("%s: waits for lock %d", self._name, self.lock_id)
        while answer.state is LockState.WAITING:
            waited = time.monotonic() - started
            if waited >= self._settings.timeout:
                raise self._timed_out(waited)
            self._release_the_deads()
            pause(min(self._pause(waited), self._settings.timeout - waited + 0.001))
            self._confirmed = time.monotonic()
            answer = self._client.check_lock(answer.lock_id)
            if self._reply_lost and answer.state is LockState.WAITING:
                # Perhaps behind its own lock: the request whose answer was lost arrived late.
                answer = self._granted() or answer
                self.lock_id = answer.lock_id
        if answer.state is not LockState.ACQUIRED:
            raise MetastoreError(
                f"The metastore did not grant the lock on {self._name}: {answer.state.name}",
                hint="Try again.",
                table=self._name,
            )
        taken = (time.monotonic() - started) * 1000
        _LOG.log(level, "%s: has lock %d after %.0f ms", self._name, self.lock_id, taken)

    def requested_ms(self) -> int | None:
        """Request the lock and release it; return the server's time of the request."""
        with Holding() as held, held:
            held.add(self.release)
            self._request()
            times = [row.last_heartbeat_ms or row.acquired_ms for row in self._own()]
        return next(filter(None, times), None)

    def is_alive(self, *, ask: bool) -> bool:
        """Return whether the lock is known to be held.

        Another heartbeat is sent first if ``ask``, or when one is overdue: this process may have
        been stopped.
        """
        overdue = time.monotonic() - self._confirmed > self._interval
        if self._lost is None and (ask or overdue) and self.lock_id is not None:
            try:
                self._beat(self.lock_id)
            except RefusedError as error:
                self._lost = one_line(error.answer)
            except IcecombError:
                return False
        return self._lost is None

    def release(self) -> None:
        """Release the lock, whatever happened before; raise nothing but an interrupt.

        Where the metastore cannot be reached, or may still carry out a lock request whose answer
        was lost, a thread keeps trying while this process lives, for up to eleven minutes. After an
        interrupt it is to be called again.
        """
        if self._is_released:
            return
        self._ended.set()
        if not self._unlock() or self._reply_lost:
            threading.Thread(
                target=self._sweep, name=f"release of {self._name}", daemon=True
            ).start()
        _OWN.pop(self.agent, None)
        self._is_released = True

    def _unlock(self) -> bool:
        """Release every lock of this stamp; return whether the metastore was reached."""
        try:
            ids = {self.lock_id} - {None}
            if self._reply_lost:
                ids |= {row.lock_id for row in self._own()}
            for lock_id in ids:
                if lock_id is not None:
                    self._client.unlock(lock_id)
        except IcecombError:
            return False
        return True

    def _sweep(self) -> None:
        for seconds in SWEEPS_S:
            time.sleep(seconds)
            # A late request can leave a lock behind after any attempt, so none is left out.
            if self._unlock() and not self._reply_lost:
                return

    def _release_the_deads(self) -> None:
        """Release locks of this machine's processes and blocks that ended; raise nothing."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_S
        with suppress(IcecombError):
            rows = self._rows()
            for row in rows:
                held = _OWN.get(row.agent or "")
                if held is not None and held.is_abandoned():
                    _LOG.warning("%s: releases %s", self._name, describe_holder(row))
                    held.release()
            for row in filter(has_certainly_ended, rows):
                seen = self._dead.setdefault(row.lock_id, now)
                if now - seen < _LATE_S and not self._is_fenced():
                    continue
                _LOG.warning("%s: releases %s", self._name, describe_holder(row))
                self._client.unlock(row.lock_id)

    @property
    def _name(self) -> str:
        return f"{self._database}.{self._table}"

    def _request(self) -> LockAnswer:
        deadline = time.monotonic() + self._settings.creation_timeout
        wait = self._settings.creation_min_wait
        while True:
            # an interrupt loses the answer, here or before its lock is known
            was_lost, self._reply_lost = self._reply_lost, True
            try:
                answer = self._client.lock(
                    self._database,
                    self._table,
                    user=self._settings.user,
                    host=socket.gethostname(),
                    agent=self.agent,
                )
            except ReplyLostError as error:
                if time.monotonic() >= deadline or is_interrupt(error):
                    raise
            except RefusedError:
                # a server may fail after it has created the lock
                raise
            except IcecombError as error:
                # one that a signal handler raised says nothing about the request
                self._reply_lost = was_lost or is_interrupt(error)
                raise
            else:
                self.lock_id = answer.lock_id
                self._reply_lost = was_lost
                return answer
            for row in self._own():
                self.lock_id = row.lock_id
                return LockAnswer(row.lock_id, row.state)
            pause(wait * random.uniform(0.5, 1))  # noqa: S311 - spreads load
            wait = min(wait * 2, self._settings.creation_max_wait)

    def _pause(self, waited: float) -> float:
        longest = max(waited * _GROWTH, self._settings.check_min_wait)
        return min(longest, self._settings.check_max_wait) * random.uniform(0.5, 1)  # noqa: S311

    def _rows(self) -> list[LockRow]:
        return self._client.locks(self._database, self._table)

    def _own(self) -> list[LockRow]:
        return [row for row in self._rows() if row.agent == self.agent]

    def _granted(self) -> LockAnswer | None:
        for row in self._own():
            if row.state is LockState.ACQUIRED:
                return LockAnswer(row.lock_id, row.state)
        return None

    def _beat(self, lock_id: int) -> None:
        now = time.monotonic()
        self._client.heartbeat(lock_id)
        self._confirmed = now

    def _keep_alive(self) -> None:
        wait = self._interval / 2
        while not self._ended.wait(wait):
            wait = self._interval / 2
            try:
                if self.lock_id is not None:
                    self._beat(self.lock_id)
            except RefusedError as error:
                self._lost = one_line(error.answer)
                _LOG.info("%s: lock %d is lost: %s", self._name, self.lock_id, self._lost)
                break
            except MetastoreError:
                wait = self._interval / 8

    def _timed_out(self, waited: float) -> LockTimeoutError:
        try:
            rows = [row for row in self._rows() if row.lock_id != self.lock_id]
        except MetastoreError:
            rows = []
        holder = next((row for row in rows if row.state is LockState.ACQUIRED), None)
        if holder is None:
            return LockTimeoutError(
                f"{self._name}: no lock within {waited:.1f} s; the metastore names no holder",
                hint=f"Many writers may be waiting: raise {LOCK_TIMEOUT}.",
                table=self._name,
            )
        return LockTimeoutError(
            f"{self._name} is locked by {describe_holder(holder)}; waited {waited:.1f} s",
            hint=f"{'Release' if is_gone(holder) else 'If its process is dead, release'} it: "
            + shell_command("locks", "break", str(holder.lock_id), "--yes"),
            table=self._name,
            lock_id=holder.lock_id,
        )


_OWN: Final[dict[str, Holding]] = {}
"""Locks of this process by agent, from before they are requested until they are released."""

# A forked process must not release what its parent holds.
os.register_at_fork(after_in_child=_OWN.clear)


def _stamp() -> str:
    """Return the agent of a new lock."""
    pid = os.getpid()
    started = started_at(pid)
    place = "" if started is None else f"-{machine()}-{started:x}"
    return f"icecomb-{uuid.uuid4()}{place}-pid{pid}"


def describe_holder(row: LockRow) -> str:
    """Describe a lock's holder for messages: user, host, pid, agent, age, last heartbeat."""
    now_ms = time.time() * 1000
    parts = [f"lock {row.lock_id}"]
    if (pid := pid_of(row)) is not None:
        parts.append(f"pid {pid}{', which does not run here any more' if is_gone(row) else ''}")
    parts.append(f"agent {row.agent or 'unnamed'}")
    if row.acquired_ms:
        parts.append(f"held for {describe_age(now_ms - row.acquired_ms)}")
    if row.last_heartbeat_ms:
        parts.append(f"last heartbeat {describe_age(now_ms - row.last_heartbeat_ms)} ago")
    return one_line(f"{row.user}@{row.host} ({', '.join(parts)})")


def pid_of(row: LockRow) -> int | None:
    """Return the id of the process that holds a lock, or None if its stamp does not say."""
    found = _AGENT.fullmatch(row.agent or "")
    return int(found["pid"]) if found else None


def is_gone(row: LockRow) -> bool:
    """Return whether the process that holds a lock ran on this host and has ended."""
    stamp = _AGENT.fullmatch(row.agent or "")
    if stamp is None or row.host != socket.gethostname():
        return False
    if stamp["machine"] is None:
        return has_ended(int(stamp["pid"]))
    return stamp["machine"] == machine() and has_ended(int(stamp["pid"]), int(stamp["started"], 16))


def has_certainly_ended(row: LockRow) -> bool:
    """Return whether a lock's process has certainly ended, by its stamp's machine and start."""
    stamp = _AGENT.fullmatch(row.agent or "")
    return stamp is not None and stamp["machine"] is not None and is_gone(row)


def abandoned_locks(client: HiveClient, rows: Iterable[LockRow]) -> list[LockRow]:
    """Return the locks whose holder has ended on this host, or is silent for too long.

    The server notes heartbeats by the clock of its database, which may be hours off, so silence is
    reckoned by that one; where the server does not tell it, nobody counts as silent.
    """
    allowed_ms = max(lock_expiry_s(client) or 0.0, SILENT_S) * 1000
    rows = list(rows)

    def silent(now_ms: float) -> list[LockRow]:
        return [
            row
            for row in rows
            if (row.last_heartbeat_ms or row.acquired_ms or now_ms) < now_ms - allowed_ms
        ]

    found = silent(time.time() * 1000)
    gone = list(filter(is_gone, rows))
    if any(row not in gone for row in found):
        now_ms = _server_time_ms(client, found[0].database)
        found = [] if now_ms is None else silent(now_ms)
    return [row for row in rows if row in gone or row in found]


def _server_time_ms(client: HiveClient, database: str) -> int | None:
    """Return the time by the clock that notes heartbeats; None if the server does not tell."""
    probe = TableLock(client, database, f"icecomb_probe_{uuid.uuid4().hex}", LockSettings.of({}))
    with suppress(IcecombError):
        return probe.requested_ms()
    return None


def describe_age(milliseconds: float) -> str:
    """Format a duration for messages."""
    total = max(0, round(milliseconds / 1000))
    if total < 120:
        return f"{total} s"
    return f"{total // 60} min" if total < 7200 else f"{total // 3600} h"
