"""The pointer in a metastore entry, a table's or a view's: ``metadata_location``."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from icecomb.catalog.commit.pointer import Conflict, Described, Outcome, Version
from icecomb.catalog.hive.entry_change import EntryChange, Expectation
from icecomb.catalog.hive.parameters import METADATA_LOCATION, naming, own_folders
from icecomb.catalog.hive.settlement import ChangeState, Observation, Poll
from icecomb.format.errors import IcecombError, UnsupportedError
from icecomb.format.holding import Holding

if TYPE_CHECKING:
    from icecomb.catalog.hive.lock import TableLock
    from icecomb.catalog.hive.thrift.client import HiveClient
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.storage.file_io import FileIO

MADE_BY_OTHERS: Final = ""
"""In a history: the entry was created by another client."""
RECENT_S: Final = 0.1
"""Seconds during which a retry does not read an entry again."""


V = TypeVar("V", bound=Version)


class EntryPointer(ABC, Generic[V]):
    """The base of table and view pointers; see `MetadataPointer`."""

    _named: HiveTable | None = None
    """What names the folders in the entry that was last read or written."""

    def __init__(
        self,
        client: HiveClient,
        database: str,
        table: str,
        io: FileIO,
        properties: Mapping[str, str],
    ) -> None:
        self.change = EntryChange(client, database, table, properties)
        self._client = client
        self._database = database
        self._table = table
        self._io = io
        self.properties = properties
        self._read: tuple[V, HiveTable, float] | None = None

    def __getstate__(self) -> dict[str, object]:
        # The entry that was read belongs to this commit.
        return {**self.__dict__, "_read": None}

    @property
    def name(self) -> str:
        """The name as ``db.table``."""
        return self.change.name

    @abstractmethod
    def load(self) -> V:
        """Implement `MetadataPointer.load`."""

    def own_folders(self) -> Sequence[str]:
        """Implement `Owner.own_folders`: those that the entry names, as it was last seen."""
        if self._named is None:
            self._named = naming(self._client.table(self._database, self._table))
        return own_folders(self._named)

    def known(self) -> V | None:
        """Return `load`, or None if the file is lost or of an unknown version."""
        with suppress(OSError, ValueError, UnsupportedError):
            return self.load()
        return None

    @abstractmethod
    def new_entry(self, new: V) -> HiveTable:
        """Return the entry to create, pointing at ``new``."""

    @abstractmethod
    def altered(self, entry: HiveTable, expected: V, new: V) -> HiveTable:
        """Return the entry pointing at ``new`` instead of ``expected``."""

    @abstractmethod
    def history_reader(
        self, expected: V | None, new: V
    ) -> Callable[[HiveTable], Collection[str] | None]:
        """Return a function that reads the history of an entry found later.

        The function returns the known metadata files before the one that an entry points at, with
        ``new`` if its change is in that one, or ``expected`` if that is impossible
        (`MADE_BY_OTHERS` where there is none); None if the history cannot be read.
        """

    def discard(self, new: V) -> None:
        with suppress(IcecombError, OSError):
            self._io.delete([new.location])

    def swap(self, expected: V | None, new: V) -> Outcome:
        with Holding() as held, held:
            lock = self.guard(held, (expected or new).metadata)
            if expected is None:
                return self._create(new, lock)
            return self._replace(expected, new, lock)

    def queue(self, held: Holding, base: Version | None = None) -> bool:  # noqa: ARG002
        waited = self.change.queue(held)
        self._read = None
        return waited

    def wait_in_queue(self, base: V) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.wait_in_queue`: there is nothing but the lock."""
        return False

    def exclusive(self, held: Holding, metadata: Described) -> bool:
        """Implement `MetadataPointer.exclusive`: the table's lock."""
        lock = self.change.exclusive(held, self._chooses_mode(metadata))
        if lock is not None:
            # An entry read before the lock may be outdated.
            self._read = None
        return lock is not None

    def guard(self, held: Holding, metadata: Described | None) -> TableLock | None:
        """Implement `EntryChange.guard`; the metadata is that before the change, if known."""
        return self.change.guard(held, self._chooses_mode(metadata))

    def remember(self, version: V, entry: HiveTable, since: float) -> None:
        """Keep the entry that a version was loaded from, for a swap of the same commit.

        The time of the request, ``since``, is by `time.monotonic`.
        """
        self._read = (version, entry, since)

    def _chooses_mode(self, metadata: Described | None) -> Mapping[str, str]:
        """Return the properties that decide whether the table is locked."""
        return metadata.properties if metadata is not None else {}

    def _create(self, new: V, lock: TableLock | None) -> Outcome:
        found = self.change.read()
        if found is not None:
            return Conflict("the name is taken", found.metadata_location)
        poll = self._poll(None, new)
        return self.change.create(self.new_entry(new), poll, new.metadata.properties, lock)

    def _replace(self, expected: V, new: V, lock: TableLock | None) -> Outcome:
        entry = self._recent(expected) or self.change.read()
        if entry is None:
            return Conflict("it was dropped", None)
        if entry.metadata_location != expected.location:
            return Conflict("another writer was first", entry.metadata_location)
        return self.change.alter(
            self.altered(entry, expected, new),
            Expectation(METADATA_LOCATION, expected.location),
            self._poll(expected, new),
            new.metadata.properties,
            lock,
        )

    def _recent(self, expected: V) -> HiveTable | None:
        """Return the entry of ``expected`` if this commit just read it, under its lock if any.

        The server checks whether the pointer has moved; without that check the entry is always read
        again. Changes of other parameters since are overwritten, as between any read and the alter,
        so the time is short.
        """
        if self._read is None:
            return None
        version, entry, since = self._read
        is_recent = version is expected and time.monotonic() - since < RECENT_S
        return entry if is_recent and self.change.sends_expectation() else None

    def _poll(self, expected: V | None, new: V) -> Poll:
        history = self.history_reader(expected, new)
        before = expected.location if expected else None

        def poll() -> Observation:
            entry = self.change.read()
            current = entry.metadata_location if entry else None
            if current == new.location:
                return Observation(ChangeState.HAPPENED, entry)
            if current == before:
                return Observation(ChangeState.NOT_YET, entry)
            if entry is None or current is None:
                return Observation(ChangeState.ELSEWHERE, entry)
            log = history(entry)
            if log is None:
                return Observation(ChangeState.UNREADABLE, entry)
            if new.location in log:
                return Observation(ChangeState.HAPPENED, entry)
            overtaken = (MADE_BY_OTHERS if before is None else before) in log
            return Observation(ChangeState.OVERTAKEN if overtaken else ChangeState.ELSEWHERE, entry)

        return poll
