"""The pointer of a table in a Hive metastore: the parameter ``metadata_location`` of its entry.

A swap takes the table's lock (unless the table is in lock-free mode), reads the entry again,
compares, and alters it, telling the server which value it expects to replace wherever the server
enforces that. The server's check makes a lock that was lost meanwhile harmless; the lock keeps out
writers that send no such check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit import check_commit_allowed
from icecomb.catalog.configuration import flag
from icecomb.catalog.hive.client import HiveClient, current_user
from icecomb.catalog.hive.entity import HiveTable
from icecomb.catalog.hive.failure import RefusedError, ReplyLostError
from icecomb.catalog.hive.lock import LockSettings, TableLock
from icecomb.catalog.hive.parameters import (
    DO_NOT_UPDATE_STATS,
    METADATA_LOCATION,
    check_writable,
    new_table,
    pointed,
)
from icecomb.catalog.hive.server import (
    EXPECTED_KEY,
    EXPECTED_VALUE,
    enforces_expected_value,
    lock_expiry_s,
)
from icecomb.catalog.hive.settlement import Settlement
from icecomb.catalog.pointer import Committed, Conflict, MetadataVersion, Outcome
from icecomb.catalog.turn import turns_of
from icecomb.format.errors import (
    ConfigurationError,
    IcecombError,
    MetastoreError,
    NoSuchIcebergTableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.metadata import TableMetadata

LOCK_ENABLED: Final = "engine.hive.lock-enabled"
CHECK_AND_PUT: Final = "hive.check-and-put"
"""Catalog property: ``false`` never sends the expected value together with a lock."""


class HivePointer:
    """See `icecomb.catalog.pointer.MetadataPointer`.

    Args:
        client: The metastore.
        database: The table's database.
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

    @property
    def name(self) -> str:
        """As ``db.table``."""
        return f"{self._database}.{self._table}"

    def check_writable(self, metadata: TableMetadata) -> None:
        """See `MetadataPointer.check_writable`."""
        check_commit_allowed(self.name, metadata)

    def load(self) -> MetadataVersion:
        """What the entry points at: one call to the metastore, one file.

        Raises:
            NoSuchTableError: there is no such table.
            NoSuchIcebergTableError: it is no Iceberg table.
        """
        from icecomb.format.metadata_file import read_metadata

        location = pointed_at(self._client.table(self._database, self._table))
        return MetadataVersion(location, read_metadata(self._io, location))

    def stage(self, base: MetadataVersion | None, metadata: TableMetadata) -> MetadataVersion:
        """See `MetadataPointer.stage`: writes a file of a name that nobody else has."""
        from icecomb.format.metadata_file import new_metadata_location, write_metadata

        location = new_metadata_location(metadata, base.location if base else None)
        write_metadata(self._io, metadata, location)
        return MetadataVersion(location, metadata)

    def discard(self, new: MetadataVersion) -> None:
        """See `MetadataPointer.discard`."""
        with suppress(IcecombError, OSError):
            self._io.delete([new.location])

    def swap(self, expected: MetadataVersion | None, new: MetadataVersion) -> Outcome:
        """See `MetadataPointer.swap`."""
        with self.guard((expected or new).metadata) as lock:
            if expected is None:
                return self._create(new, lock)
            return self._replace(expected, new, lock)

    def queue(self) -> AbstractContextManager[bool]:
        """See `MetadataPointer.queue`."""
        key = (self._client.key, self._database, self._table)
        timeout = LockSettings.of(self._properties).timeout
        return turns_of(key).take(self.name, timeout, "iceberg.hive.lock-timeout-ms")

    @contextmanager
    def exclusive(self, metadata: TableMetadata) -> Iterator[bool]:
        """See `MetadataPointer.exclusive`: the table's lock."""
        # The server is found out about before the lock is taken, not while others wait for it.
        self._sends_expectation()
        with self.guard(metadata) as lock:
            self._held = lock
            try:
                yield lock is not None
            finally:
                self._held = None

    @contextmanager
    def guard(self, metadata: TableMetadata | None) -> Iterator[TableLock | None]:
        """The lock for one change; None in lock-free mode.

        Args:
            metadata: What the table is like before the change: its properties choose the mode.

        Raises:
            ConfigurationError: lock-free mode where the server does not enforce expected values.
            LockTimeoutError: the lock was not granted in time.
        """
        properties = metadata.properties if metadata is not None else {}
        if flag(properties, LOCK_ENABLED, default=self._locks_by_default()):
            if self._held is not None:
                yield self._held
            else:
                with self._lock() as lock:
                    yield lock
            return
        if not self.enforces():
            raise ConfigurationError(
                f"{self.name} asks for commits without locks ({LOCK_ENABLED}=false), but the "
                f"metastore {self._client.uri} does not check what it replaces",
                hint=f"set {LOCK_ENABLED}=true, or use a metastore with HIVE-26882",
                table=self.name,
            )
        yield None

    def enforces(self) -> bool:
        """Whether the server checks expected values, found out once per process."""
        return enforces_expected_value(self._client, self._database)

    def expectation(self, location: str) -> dict[str, str]:
        """The environment of an alter that must replace exactly ``location``."""
        context = {DO_NOT_UPDATE_STATS: "true"}
        if self._sends_expectation():
            context |= {EXPECTED_KEY: METADATA_LOCATION, EXPECTED_VALUE: location}
        return context

    def _create(self, new: MetadataVersion, lock: TableLock | None) -> Outcome:
        found = self._entry()
        if found is not None:
            return Conflict("the name is taken", found.metadata_location)
        entry = new_table(
            self._database,
            self._table,
            new.metadata,
            new.location,
            self._properties,
            owner=current_user(),
        )
        settlement = Settlement(self._entry, self._io, None, new, checked=False)
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

    def _replace(
        self, expected: MetadataVersion, new: MetadataVersion, lock: TableLock | None
    ) -> Outcome:
        entry = self._entry()
        if entry is None:
            return Conflict("the table was dropped", None)
        if entry.metadata_location != expected.location:
            return Conflict("another writer was first", entry.metadata_location)
        check_writable(entry)
        altered = pointed(entry, expected.metadata, new.metadata, new.location, self._properties)
        context = self.expectation(expected.location)
        checked = EXPECTED_KEY in context
        settlement = Settlement(self._entry, self._io, expected, new, checked=checked)
        if lock is not None and not lock.is_alive(ask=not checked):
            return Conflict("the lock was lost before the pointer was changed", expected.location)
        try:
            self._client.alter_table(self._database, self._table, altered, context)
        except NoSuchTableError as error:
            return settlement.after_answer(error)
        except ReplyLostError as error:
            return settlement.after_silence(error)
        except RefusedError as error:
            return settlement.after_refusal(error)
        if lock is not None and not lock.is_alive(ask=not checked):
            # Somebody else may have had the lock while the alter ran, and may have overwritten it.
            lost = MetastoreError("the lock was lost while the pointer was changed")
            return settlement.after_silence(lost)
        return Committed()

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

    def _locks_by_default(self) -> bool:
        general = flag(self._properties, f"iceberg.{LOCK_ENABLED}", default=True)
        return flag(self._properties, LOCK_ENABLED, default=general)

    def _sends_expectation(self) -> bool:
        return flag(self._properties, CHECK_AND_PUT, default=True) and self.enforces()


@contextmanager
def _held(lock: TableLock) -> Iterator[TableLock]:
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()


def pointed_at(entry: HiveTable) -> str:
    """The metadata file an entry points at.

    Raises:
        NoSuchIcebergTableError: the entry is no Iceberg table, or points nowhere.
    """
    if not entry.is_iceberg or entry.metadata_location is None:
        kind = "a Hive view" if entry.is_view else "a Hive table"
        if entry.is_iceberg:
            kind = "an Iceberg table without a metadata_location"
        raise NoSuchIcebergTableError(
            f"{entry.full_name} is not an Iceberg table: it is {kind}",
            hint=f"`icecomb migrate apply {entry.full_name}` turns a Hive table into one",
            table=entry.full_name,
        )
    return entry.metadata_location
