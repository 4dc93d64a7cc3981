"""The one way to change an entry of a Hive metastore, a table's or a view's, Iceberg's or Hive's.

A change takes the entry's lock (unless the table is in lock-free mode), reads the entry again,
compares, and alters it, telling the server which value of which parameter it expects to replace
wherever the server enforces that. The server's check makes a lock that was lost meanwhile harmless,
and a request that arrives late, if the change gives that parameter another value; the lock keeps
out writers that send no such check.

Where the server does not check (Hive 3.1.3) the lock is asked for right before the alter and right
after it. A lock that expired or was broken before that last look costs nothing. What no client can
rule out there: one that is lost between the look and the alter's arrival, a round trip, or longer
if the process or the network stands still just then; another's commit of that moment is
overwritten. Locks must live longer than such a standstill, or the server must be one that checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from icecomb.catalog.catalog_property import CHECK_AND_PUT, LOCK_ENABLED, LOCK_TIMEOUT
from icecomb.catalog.commit_queue import turns_of
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.parameters import DO_NOT_UPDATE_STATS
from icecomb.catalog.hive.settlement import Look, Settlement
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import (
    UNEXPLAINED,
    MovedError,
    RefusedError,
    ReplyLostError,
)
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.catalog.hive.thrift.server import (
    EXPECTED_KEY,
    EXPECTED_VALUE,
    lock_expiry_s,
    value_check,
)
from icecomb.catalog.pointer import Committed, Conflict, Outcome
from icecomb.format.errors import (
    ConfigurationError,
    IcecombError,
    MetastoreError,
    NoSuchIcebergTableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icecomb.format.spec.table_property import HIVE_LOCK

NO_LOCKS_HINT: Final = (
    "where it has no locks at all (HIVE-29520: no transactions) its check of the pointer is "
    f"enough: set {LOCK_ENABLED}=false for every catalog that writes there"
)
_CHECKING: Final = "Hive 2.3.10, 4.0.1"
_MOVES: Final = 3
"""How often one alter follows metastores that go away before it is sent."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an alter may replace.

    A request that arrives late is refused by a server that checks if the parameter has another
    value by then. So the altered entry must give it one of its own, or a late request must do no
    harm while the value stands.

    Attributes:
        parameter: A parameter that the entry has before and after the alter.
        value: What it must be.
    """

    parameter: str
    value: str


class EntryChange:
    """Changes one entry: guard it, send one request, and tell what became of it.

    Args:
        client: The metastore.
        database: The table's or view's database.
        table: Its name.
        settings: The catalog's properties.
    """

    def __init__(
        self, client: HiveClient, database: str, table: str, settings: Mapping[str, str]
    ) -> None:
        self._client = client
        self._database = database
        self._table = table
        self._settings = settings
        self._held: TableLock | None = None

    def __getstate__(self) -> dict[str, object]:
        # A lock is of this process.
        return {**self.__dict__, "_held": None}

    @property
    def name(self) -> str:
        """As ``db.table``."""
        return f"{self._database}.{self._table}"

    def read(self) -> HiveTable | None:
        """The entry; None if there is none."""
        try:
            return self._client.table(self._database, self._table)
        except NoSuchIcebergTableError:
            raise
        except NoSuchTableError:
            return None

    @contextmanager
    def queue(self) -> Iterator[bool]:
        """See `MetadataPointer.queue`."""
        key = (self._client.key, self._database, self._table)
        timeout = LockSettings.of(self._settings).timeout
        with turns_of(key).take(self.name, timeout, LOCK_TIMEOUT.key) as waited:
            yield waited

    @contextmanager
    def exclusive(self, properties: Mapping[str, str]) -> Iterator[TableLock | None]:
        """As `guard`, for every guard inside it, too."""
        # The server is found out about before the lock is taken, not while others wait for it.
        self.sends_expectation()
        with self.guard(properties) as lock:
            self._held = lock
            try:
                yield lock
            finally:
                self._held = None

    @contextmanager
    def guard(self, properties: Mapping[str, str]) -> Iterator[TableLock | None]:
        """The lock for one change; None in lock-free mode.

        Args:
            properties: Those of the table before the change: they choose the mode.

        Raises:
            ConfigurationError: lock-free mode where the server does not enforce expected values.
            LockTimeoutError: the lock was not granted in time.
        """
        if not self.is_locked(properties):
            yield None
        elif self._held is not None:
            yield self._held
        else:
            lock = self._lock()
            try:
                lock.acquire()
            except RefusedError as error:
                if error.hint == UNEXPLAINED and self.lock_free_obstacle() is None:
                    error.hint = NO_LOCKS_HINT
                raise
            try:
                yield lock
            finally:
                lock.release()

    def is_locked(self, properties: Mapping[str, str]) -> bool:
        """Whether a change is made under a lock.

        Args:
            properties: Those of the table before the change.

        Raises:
            ConfigurationError: lock-free mode where the server does not enforce expected values.
        """
        locked = HIVE_LOCK.of(properties, default=LOCK_ENABLED.of(self._settings))
        if not locked:
            self._require_check()
        return locked

    def enforces(self) -> bool:
        """Whether the server checks expected values, found out once per server."""
        if CHECK_AND_PUT.of(self._settings) == "trusted":
            return True
        return value_check(self._client, self._database).holds

    def lock_free_obstacle(self) -> tuple[str, str] | None:
        """Why the server does not allow commits without locks, and what helps; None if it does."""
        if CHECK_AND_PUT.of(self._settings) == "trusted":
            return None
        return _WITHOUT_LOCKS.get(value_check(self._client, self._database))

    def sends_expectation(self) -> bool:
        """Whether the server is told what is expected although there is a lock, and checks it."""
        return CHECK_AND_PUT.of(self._settings) != "false" and self.enforces()

    def create(
        self, entry: HiveTable, look: Look, properties: Mapping[str, str], lock: TableLock | None
    ) -> Outcome:
        """Make the entry.

        Args:
            entry: What to make.
            look: Tells what became of it.
            properties: Those of the table or view.
            lock: From `guard`.

        Raises:
            RefusedError, UnreachableError: it is proven that nothing was made.
        """
        settlement = Settlement(look, properties, checked=False)
        if lock is not None and not lock.is_alive(ask=True):
            return Conflict("the lock was lost before the table was made", None)
        failure = _failure(lambda: self._client.create_table(entry))
        return Committed() if failure is None else _settled(settlement, failure)

    def alter(
        self,
        altered: HiveTable,
        expectation: Expectation,
        look: Look,
        properties: Mapping[str, str],
        lock: TableLock | None,
    ) -> Outcome:
        """Make the entry another one, its name included.

        Args:
            altered: What it becomes.
            expectation: What it may replace.
            look: Tells what became of it.
            properties: Those of the table or view.
            lock: From `guard`.

        Raises:
            RefusedError, UnreachableError: it is proven that nothing changed.
        """
        for _ in range(_MOVES):
            # Another server may check less than the one that went away: it is asked anew.
            with suppress(MovedError):
                return self._alter(altered, expectation, look, properties, lock)
        return self._alter(altered, expectation, look, properties, lock)

    def drop(self, look: Look, properties: Mapping[str, str]) -> Outcome:
        """Drop the entry; no server checks anything then.

        Args:
            look: Tells what became of it.
            properties: Those of the table or view.

        Raises:
            RefusedError, UnreachableError: it is proven that it is there still.
        """
        settlement = Settlement(look, properties, checked=False)
        failure = _failure(lambda: self._client.drop_table(self._database, self._table))
        return Committed() if failure is None else _settled(settlement, failure)

    def _alter(
        self,
        altered: HiveTable,
        expectation: Expectation,
        look: Look,
        properties: Mapping[str, str],
        lock: TableLock | None,
    ) -> Outcome:
        # What is sent fits the server that was asked about.
        with self._client.pinned():
            context = self.context(expectation, lock)
            checked = EXPECTED_KEY in context
            settlement = Settlement(look, properties, checked=checked)
            if lock is not None and not lock.is_alive(ask=not checked):
                return Conflict("the lock was lost before anything was changed", expectation.value)
            failure = _failure(
                lambda: self._client.alter_table(self._database, self._table, altered, context)
            )
        # Any server may be asked what became of it.
        if failure is not None:
            return _settled(settlement, failure)
        if lock is not None and not lock.is_alive(ask=not checked):
            # Somebody else may have had the lock while the alter ran, and may have overwritten it.
            lost = MetastoreError(
                "The lock was lost while the entry was changed",
                hint="load the table again and look whether the change is there",
            )
            return settlement.after_silence(lost)
        return Committed()

    def context(self, expectation: Expectation, lock: TableLock | None) -> dict[str, str]:
        """The environment of an alter; send it within the same `HiveClient.pinned`.

        Raises:
            ConfigurationError: there is no lock, and the server does not check.
        """
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
            raise ConfigurationError(
                f"{self.name} asks for commits without locks ({LOCK_ENABLED}=false), but the "
                f"metastore {self._client.uri} {what}",
                hint=f"set {LOCK_ENABLED}=true, or {hint}",
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
}


def _failure(send: Callable[[], None]) -> IcecombError | None:
    """Why a request was not simply carried out; others than these prove that it was not."""
    try:
        send()
    except (NoSuchTableError, TableAlreadyExistsError, ReplyLostError, RefusedError) as error:
        return error
    return None


def _settled(settlement: Settlement, failure: IcecombError) -> Outcome:
    if isinstance(failure, ReplyLostError):
        return settlement.after_silence(failure)
    if isinstance(failure, RefusedError):
        return settlement.after_refusal(failure)
    return settlement.after_answer(failure)
