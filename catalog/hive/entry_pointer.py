"""The pointer of an entry of a Hive metastore, a table's or a view's: ``metadata_location``.

A swap takes the table's lock (unless the table is in lock-free mode), reads the entry again,
compares, and alters it, telling the server which value it expects to replace wherever the server
enforces that. The server's check makes a lock that was lost meanwhile harmless; the lock keeps out
writers that send no such check.

Where the server does not check (Hive 3.1.3) the lock is asked for right before the alter and right
after it. A lock that expired or was broken before that last look costs nothing. What no client can
rule out there: one that is lost between the look and the alter's arrival, a round trip, or longer
if the process or the network stands still just then; another's commit of that moment is
overwritten. Locks must live longer than such a standstill, or the server must be one that checks.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from icecomb.catalog.configuration import flag
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.parameters import (
    DO_NOT_UPDATE_STATS,
    METADATA_LOCATION,
)
from icecomb.catalog.hive.settlement import Settlement
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import MovedError, RefusedError, ReplyLostError
from icecomb.catalog.hive.thrift.server import (
    EXPECTED_KEY,
    EXPECTED_VALUE,
    enforces_expected_value,
    lock_expiry_s,
)
from icecomb.catalog.pointer import Committed, Conflict, Described, Outcome, Version
from icecomb.catalog.turn import turns_of
from icecomb.format.errors import (
    CommitFailedError,
    ConfigurationError,
    IcecombError,
    MetastoreError,
    NoSuchIcebergTableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO

LOCK_ENABLED: Final = "engine.hive.lock-enabled"
CHECK_AND_PUT: Final = "hive.check-and-put"
"""Catalog property: whether the server checks which pointer it replaces.

``true`` (the default) finds it out, ``trusted`` takes it for granted where it may not be tried,
``false`` never tells the server what is expected together with a lock.
"""
_RECENT_S: Final = 0.1
"""A retry does not read an entry again that it read so short a time ago."""
_MOVES: Final = 3
"""How often one alter follows metastores that go away before it is sent."""


V = TypeVar("V", bound=Version)


class EntryPointer(ABC, Generic[V]):
    """What tables and views have in common; see `icecomb.catalog.pointer.MetadataPointer`.

    Args:
        client: The metastore.
        database: The table's or view's database.
        table: Its name.
        io: Reads metadata files.
        properties: The catalog's properties.
    """

    def __init__(
        self,
        client: HiveClient,
        database: str,
        table: str,
        io: FileIO,
        properties: Mapping[str, str],
    ) -> None:
        self._client = client
        self._database = database
        self._table = table
        self._io = io
        self._properties = properties
        self._held: TableLock | None = None
        self._read: tuple[V, HiveTable, float] | None = None

    def __getstate__(self) -> dict[str, object]:
        # A lock is of this process, and what was read is of this commit.
        return {**self.__dict__, "_held": None, "_read": None}

    @property
    def name(self) -> str:
        """As ``db.table``."""
        return f"{self._database}.{self._table}"

    @abstractmethod
    def new_entry(self, new: V) -> HiveTable:
        """The entry to be made, pointing at ``new``."""

    @abstractmethod
    def altered(self, entry: HiveTable, expected: V, new: V) -> HiveTable:
        """The entry pointing at ``new`` instead of ``expected``.

        Raises:
            UnsupportedError: it must not be changed from here.
        """

    @abstractmethod
    def history(self, expected: V | None, new: V) -> Callable[[HiveTable], Collection[str] | None]:
        """How an entry found later tells what it was before; see `Settlement`."""

    def discard(self, new: V) -> None:
        """See `MetadataPointer.discard`."""
        with suppress(IcecombError, OSError):
            self._io.delete([new.location])

    def swap(self, expected: V | None, new: V) -> Outcome:
        """See `MetadataPointer.swap`."""
        with self.guard((expected or new).metadata) as lock:
            if expected is None:
                return self._create(new, lock)
            return self._replace(expected, new, lock)

    @contextmanager
    def queue(self) -> Iterator[bool]:
        """See `MetadataPointer.queue`."""
        key = (self._client.key, self._database, self._table)
        timeout = LockSettings.of(self._properties).timeout
        with turns_of(key).take(self.name, timeout, "iceberg.hive.lock-timeout-ms") as waited:
            self._read = None
            yield waited

    @contextmanager
    def exclusive(self, metadata: Described) -> Iterator[bool]:
        """See `MetadataPointer.exclusive`: the table's lock."""
        # The server is found out about before the lock is taken, not while others wait for it.
        self._sends_expectation()
        with self.guard(metadata) as lock:
            self._held = lock
            if lock is not None:
                # What was read before it may be another's past.
                self._read = None
            try:
                yield lock is not None
            finally:
                self._held = None

    @contextmanager
    def guard(self, metadata: Described | None) -> Iterator[TableLock | None]:
        """The lock for one change; None in lock-free mode.

        Args:
            metadata: What the table is like before the change: its properties choose the mode.

        Raises:
            ConfigurationError: lock-free mode where the server does not enforce expected values.
            LockTimeoutError: the lock was not granted in time.
        """
        if self._locks(metadata):
            if self._held is not None:
                yield self._held
            else:
                with self._lock() as lock:
                    yield lock
            return
        self._require_check()
        yield None

    def enforces(self) -> bool:
        """Whether the server checks expected values, found out once per server."""
        if self._check_and_put() == "trusted":
            return True
        return enforces_expected_value(self._client, self._database)

    def expectation(self, location: str, lock: TableLock | None) -> dict[str, str]:
        """The environment of an alter that must replace exactly ``location``.

        It fits the server it was made for: send the alter within the same `HiveClient.pinned`.

        Raises:
            ConfigurationError: there is no lock, and the server does not check.
        """
        context = {DO_NOT_UPDATE_STATS: "true"}
        if lock is None:
            self._require_check()
        if lock is None or self._sends_expectation():
            context |= {EXPECTED_KEY: METADATA_LOCATION, EXPECTED_VALUE: location}
        return context

    def require_lock(self, lock: TableLock | None, context: Mapping[str, str]) -> None:
        """Refuses an alter whose lock is gone; asks for it where the server does not check.

        Args:
            lock: The lock; None in lock-free mode.
            context: The `expectation` it is sent with.

        Raises:
            CommitFailedError: the lock was lost; nothing happened.
        """
        if lock is not None and not lock.is_alive(ask=EXPECTED_KEY not in context):
            raise CommitFailedError(
                f"{self.name}: the lock was lost before anything was changed",
                hint="try again",
                table=self.name,
            )

    def _create(self, new: V, lock: TableLock | None) -> Outcome:
        found = self._entry()
        if found is not None:
            return Conflict("the name is taken", found.metadata_location)
        entry = self.new_entry(new)
        settlement = self._settlement(None, new, checked=False)
        if lock is not None and not lock.is_alive(ask=True):
            return Conflict("the lock was lost before the table was made", None)
        try:
            self._client.create_table(entry)
        except TableAlreadyExistsError as error:
            return settlement.after_answer(error)
        except ReplyLostError as error:
            return settlement.after_silence(error)
        except RefusedError as error:
            return settlement.after_refusal(error)
        return Committed()

    def _replace(self, expected: V, new: V, lock: TableLock | None) -> Outcome:
        entry = self._recent(expected) or self._entry()
        if entry is None:
            return Conflict("it was dropped", None)
        if entry.metadata_location != expected.location:
            return Conflict("another writer was first", entry.metadata_location)
        altered = self.altered(entry, expected, new)
        for _ in range(_MOVES):
            # Another server may check less than the one that went away: it is asked anew.
            with suppress(MovedError):
                return self._alter(expected, new, altered, lock)
        return self._alter(expected, new, altered, lock)

    def _alter(self, expected: V, new: V, altered: HiveTable, lock: TableLock | None) -> Outcome:
        failure: IcecombError | None = None
        with self._client.pinned():
            context = self.expectation(expected.location, lock)
            checked = EXPECTED_KEY in context
            settlement = self._settlement(expected, new, checked=checked)
            if lock is not None and not lock.is_alive(ask=not checked):
                return Conflict(
                    "the lock was lost before the pointer was changed", expected.location
                )
            try:
                self._client.alter_table(self._database, self._table, altered, context)
            except (NoSuchTableError, ReplyLostError, RefusedError) as error:
                failure = error
        # Any server may be asked what became of it.
        if isinstance(failure, NoSuchTableError):
            return settlement.after_answer(failure)
        if isinstance(failure, ReplyLostError):
            return settlement.after_silence(failure)
        if isinstance(failure, RefusedError):
            return settlement.after_refusal(failure)
        if lock is not None and not lock.is_alive(ask=not checked):
            # Somebody else may have had the lock while the alter ran, and may have overwritten it.
            lost = MetastoreError("the lock was lost while the pointer was changed")
            return settlement.after_silence(lost)
        return Committed()

    def remember(self, version: V, entry: HiveTable, since: float) -> None:
        """Keeps the entry that a version was loaded by, for a swap of the same commit.

        Args:
            version: What was loaded.
            entry: The entry.
            since: When it was asked for, by `time.monotonic`.
        """
        self._read = (version, entry, since)

    def _recent(self, expected: V) -> HiveTable | None:
        """The entry of ``expected``, if this commit read it just now, and under its lock if any.

        Whether the pointer moved since is what the server checks; without that the entry is always
        read again. Other parameters that were changed since are overwritten, as they are between
        any reading and the alter, so the time is short.
        """
        if self._read is None:
            return None
        version, entry, since = self._read
        is_recent = version is expected and time.monotonic() - since < _RECENT_S
        return entry if is_recent and self._sends_expectation() else None

    def _settlement(self, expected: V | None, new: V, *, checked: bool) -> Settlement:
        return Settlement(
            self._entry,
            self.history(expected, new),
            expected.location if expected else None,
            new.location,
            new.metadata.properties,
            checked=checked,
        )

    def _entry(self) -> HiveTable | None:
        try:
            return self._client.table(self._database, self._table)
        except NoSuchIcebergTableError:
            raise
        except NoSuchTableError:
            return None

    def _lock(self) -> AbstractContextManager[TableLock]:
        return _held(
            TableLock(
                self._client,
                self._database,
                self._table,
                LockSettings.of(self._properties),
                lock_expiry_s(self._client),
            )
        )

    def _locks(self, metadata: Described | None) -> bool:
        """Whether changes are made under a lock: as the table says, else the catalog."""
        properties = metadata.properties if metadata is not None else {}
        return flag(properties, LOCK_ENABLED, default=locks_by_default(self._properties))

    def _sends_expectation(self) -> bool:
        return self._check_and_put() != "false" and self.enforces()

    def _check_and_put(self) -> str:
        value = self._properties.get(CHECK_AND_PUT, "true").lower()
        if value not in {"true", "trusted", "false"}:
            raise ConfigurationError(f"{CHECK_AND_PUT} is {value!r}: true, trusted or false")
        return value

    def _require_check(self) -> None:
        if not self.enforces():
            raise ConfigurationError(
                f"{self.name} asks for commits without locks ({LOCK_ENABLED}=false), but the "
                f"metastore {self._client.uri} does not check what it replaces",
                hint=f"set {LOCK_ENABLED}=true, or use a metastore with HIVE-26882 (Hive 2.3.10, "
                f"4.0.1); where it has that and does not let it be tried, {CHECK_AND_PUT}=trusted",
                table=self.name,
            )


def locks_by_default(settings: Mapping[str, str]) -> bool:
    """Whether tables that say nothing about it are changed under a lock."""
    general = flag(settings, f"iceberg.{LOCK_ENABLED}", default=True)
    return flag(settings, LOCK_ENABLED, default=general)


@contextmanager
def _held(lock: TableLock) -> Iterator[TableLock]:
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()
