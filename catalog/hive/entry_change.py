"""The one way to change an entry of a Hive metastore, a table's or a view's, Iceberg's or Hive's.

A change takes the entry's lock (unless the table is in lock-free mode), reads the entry again,
compares, and alters it. Where the server enforces it, the request names a parameter and the value
that it expects to replace. The server's check makes a lost lock harmless, and a late request, too,
if the change gives that parameter another value; the lock keeps out writers that send no such
check.

Where the server does not check (Hive 3.1.3), the lock is verified right before and right after the
alter. A lock that expired or was broken before the first check costs nothing. No client can rule
out a lock lost between that check and the alter's arrival: a round trip, or longer if the process
or the network stalls just then; a commit made in that window is overwritten. Locks must live longer
than such a stall, or the server must be one that checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from icecomb.catalog.commit.commit_queue import fair_lock
from icecomb.catalog.commit.pointer import Committed, Conflict, Outcome
from icecomb.catalog.configuration.catalog_property import CHECK_AND_PUT, LOCK_ENABLED, LOCK_TIMEOUT
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.parameters import DO_NOT_UPDATE_STATS
from icecomb.catalog.hive.settlement import Poll, Settlement
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import (
    UNEXPLAINED,
    MovedError,
    RefusedError,
    ReplyLostError,
    UnreachableError,
)
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.catalog.hive.thrift.server import (
    EXPECTED_KEY,
    EXPECTED_VALUE,
    lock_expiry_s,
    value_check,
)
from icecomb.format.errors import (
    ConfigurationError,
    IcecombError,
    MetastoreError,
    NoSuchIcebergTableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icecomb.format.holding import Holding, is_interrupt
from icecomb.format.property.table_property import HIVE_LOCK

NO_LOCKS_HINT: Final = (
    "where it has no locks at all (HIVE-29520: no transactions) its check of the pointer is "
    f"enough: set {LOCK_ENABLED}=false for every catalog that writes there"
)
_CHECKING: Final = "Hive 2.3.10, 4.0.1"
_MOVES: Final = 3
"""How often one alter moves to another metastore before it is sent."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The parameter value that an alter may replace.

    A server that checks refuses a late request if the parameter has another value by then. So the
    altered entry must give it a new value, or a late request must be harmless while the old value
    stands. The entry has the parameter before and after the alter.
    """

    parameter: str
    value: str


class EntryChange:
    """A change of one entry: guard it, send one request, and determine the outcome."""

    def __init__(
        self, client: HiveClient, database: str, table: str, settings: Mapping[str, str]
    ) -> None:
        self._client = client
        self._database = database
        self._table = table
        self._settings = settings
        self._held: TableLock | None = None

    def __getstate__(self) -> dict[str, object]:
        # A lock belongs to this process.
        return {**self.__dict__, "_held": None}

    @property
    def name(self) -> str:
        """The name as ``db.table``."""
        return f"{self._database}.{self._table}"

    def read(self) -> HiveTable | None:
        """Return the entry, or None if it does not exist."""
        try:
            return self._client.table(self._database, self._table)
        except NoSuchIcebergTableError:
            raise
        except NoSuchTableError:
            return None

    def queue(self, held: Holding) -> bool:
        key = (self._client.key, self._database, self._table)
        timeout = LockSettings.of(self._settings).timeout
        return fair_lock(key).take(held, self.name, timeout, LOCK_TIMEOUT.key)

    def exclusive(self, held: Holding, properties: Mapping[str, str]) -> TableLock | None:
        """Hold the lock of `guard` for every guard before the end of ``held``, too."""
        # The server is probed before the lock is taken, not while others wait for it.
        self.sends_expectation()
        lock = self.guard(held, properties)
        # released first: no guard may go by a lock that is being released
        held.add(self._stop_sharing)
        self._held = lock
        return lock

    def _stop_sharing(self) -> None:
        self._held = None

    def guard(self, held: Holding, properties: Mapping[str, str]) -> TableLock | None:
        """Hold the lock for one change until `held` ends; return None in lock-free mode.

        The table's properties before the change choose the mode.
        """
        if not self.is_locked(properties):
            return None
        if self._held is not None:
            return self._held
        lock = self._lock()
        try:
            lock.acquire(held)
        except RefusedError as error:
            if error.hint == UNEXPLAINED and self.lock_free_obstacle() is None:
                error.hint = NO_LOCKS_HINT
            raise
        return lock

    def is_locked(self, properties: Mapping[str, str]) -> bool:
        """Return whether a change is made under a lock.

        The properties are those of the table before the change. In lock-free mode UnreachableError
        is raised if the server went away while it was tried whether it checks expected values.
        """
        locked = HIVE_LOCK.of(properties, default=LOCK_ENABLED.of(self._settings))
        if not locked:
            self._require_check()
        return locked

    def enforces(self) -> bool:
        """Return whether the server checks expected values, probed once per server."""
        if CHECK_AND_PUT.of(self._settings) == "trusted":
            return True
        return value_check(self._client, self._database).holds

    def lock_free_obstacle(self) -> tuple[str, str] | None:
        """Return why the server forbids lock-free commits, and a hint; None if it allows them."""
        if CHECK_AND_PUT.of(self._settings) == "trusted":
            return None
        return _WITHOUT_LOCKS.get(value_check(self._client, self._database))

    def sends_expectation(self) -> bool:
        """Return whether expectations are sent even under a lock, and the server checks them."""
        return CHECK_AND_PUT.of(self._settings) != "false" and self.enforces()

    def create(
        self, entry: HiveTable, poll: Poll, properties: Mapping[str, str], lock: TableLock | None
    ) -> Outcome:
        """Create the entry, under the lock from `guard`; an error proves that nothing was.

        Args:
            poll: Determines the outcome when the answer does not tell.
        """
        settlement = Settlement(poll, properties, checked=False)
        if lock is not None and not lock.is_alive(ask=True):
            return Conflict("the lock was lost before the table was created", None)
        failure = _failure(lambda: self._client.create_table(entry))
        return Committed() if failure is None else _settled(settlement, failure)

    def alter(
        self,
        altered: HiveTable,
        expectation: Expectation,
        poll: Poll,
        properties: Mapping[str, str],
        lock: TableLock | None,
    ) -> Outcome:
        """Replace the entry, its name included; an error proves that nothing changed.

        Args:
            expectation: The value it may replace.
            poll: Determines the outcome when the answer does not tell.
            lock: The lock from `guard`.
        """
        for _ in range(_MOVES):
            # Another server may check less than the one that went away: it is probed again.
            with suppress(MovedError):
                return self._alter(altered, expectation, poll, properties, lock)
        return self._alter(altered, expectation, poll, properties, lock)

    def drop(self, poll: Poll, properties: Mapping[str, str]) -> Outcome:
        """Drop the entry; no server checks an expected value here.

        An error proves that it still exists; `poll` determines the outcome when the answer does not
        tell.
        """
        settlement = Settlement(poll, properties, checked=False)
        failure = _failure(lambda: self._client.drop_table(self._database, self._table))
        return Committed() if failure is None else _settled(settlement, failure)

    def _alter(
        self,
        altered: HiveTable,
        expectation: Expectation,
        poll: Poll,
        properties: Mapping[str, str],
        lock: TableLock | None,
    ) -> Outcome:
        # The request must go to the server that was probed.
        with Holding() as held, held:
            self._client.pin(held)
            context = self.context(expectation, lock)
            checked = EXPECTED_KEY in context
            settlement = Settlement(poll, properties, checked=checked)
            if lock is not None and not lock.is_alive(ask=not checked):
                return Conflict("the lock was lost before anything was changed", expectation.value)
            failure = _failure(
                lambda: self._client.alter_table(self._database, self._table, altered, context)
            )
        # Any server can report the outcome.
        if failure is not None:
            return _settled(settlement, failure)
        if lock is not None and not lock.is_alive(ask=not checked):
            # Another writer may have held the lock during the alter, and may have overwritten it.
            lost = MetastoreError(
                "The lock was lost while the entry was changed",
                hint="Load the table again and check whether the change is there.",
            )
            return settlement.after_silence(lost)
        return Committed()

    def context(self, expectation: Expectation, lock: TableLock | None) -> dict[str, str]:
        """Return the environment context of an alter; send it to the same `HiveClient.pin`."""
        context = {DO_NOT_UPDATE_STATS: "true"}
        if lock is None:
            self._require_check()
        if lock is None or self.sends_expectation():
            context |= {EXPECTED_KEY: expectation.parameter, EXPECTED_VALUE: expectation.value}
        return context

    def _lock(self) -> TableLock:
        return TableLock(
            self._client,
            self._database,
            self._table,
            LockSettings.of(self._settings),
            lock_expiry_s(self._client),
            is_fenced=self.sends_expectation,
        )

    def _require_check(self) -> None:
        if obstacle := self.lock_free_obstacle():
            what, hint = obstacle
            if obstacle is _WITHOUT_LOCKS[ValueCheck.AWAY]:
                raise UnreachableError(
                    f"{self.name} was not changed: the metastore {self._client.uri} {what}",
                    hint=hint,
                    table=self.name,
                )
            raise ConfigurationError(
                f"{self.name} asks for commits without locks ({LOCK_ENABLED}=false), but the "
                f"metastore {self._client.uri} {what}",
                hint=f"Set {LOCK_ENABLED}=true, or {hint}.",
                table=self.name,
            )


_WITHOUT_LOCKS: Final = {
    ValueCheck.IGNORED: (
        "does not check what it replaces",
        (
            f"use a metastore with HIVE-26882 and HIVE-28121 ({_CHECKING}); where it has them and "
            f"does not let it be tried, {CHECK_AND_PUT}=trusted"
        ),
    ),
    ValueCheck.COMPARED: (
        "has HIVE-26882 without HIVE-28121: on MySQL and MariaDB two commits at once could succeed",
        (
            f"use a metastore with both ({_CHECKING}); where its own database is neither MySQL nor "
            f"MariaDB, {CHECK_AND_PUT}=trusted"
        ),
    ),
    ValueCheck.REFUSED: (
        "refuses to check what it replaces: it runs with hive.metastore.try.direct.sql=false",
        "set hive.metastore.try.direct.sql=true on the metastore",
    ),
    ValueCheck.UNTRIED: (
        "did not let it be tried whether it checks what it replaces",
        (
            "try again; where it forbids to create and drop a view, and is known to check, "
            f"{CHECK_AND_PUT}=trusted"
        ),
    ),
    ValueCheck.AWAY: (
        "went away while it was tried whether it checks what it replaces",
        "Try again when it is back.",
    ),
}


def _failure(send: Callable[[], None]) -> IcecombError | None:
    """Return why a request may have failed; any other error proves that it did."""
    try:
        send()
    except (NoSuchTableError, TableAlreadyExistsError, ReplyLostError, RefusedError) as error:
        if is_interrupt(error):
            raise
        return error
    return None


def _settled(settlement: Settlement, failure: IcecombError) -> Outcome:
    if isinstance(failure, ReplyLostError):
        return settlement.after_silence(failure)
    if isinstance(failure, RefusedError):
        return settlement.after_refusal(failure)
    return settlement.after_answer(failure)
