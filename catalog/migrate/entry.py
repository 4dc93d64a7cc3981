"""The metastore's entry of a table, turned from a Hive table into an Iceberg table and back.

The turn is one alter: before it every reader sees the Hive table, after it every reader sees the
Iceberg table. What an Iceberg table should not have any more (partitions, partition keys) is taken
away afterwards, and given back before the turn back, so that no reader ever sees a Hive table
without its partitions.

A metastore refuses to change partition keys, and to change columns into types it calls
incompatible, except when the old entry is a view (HiveAlterHandler.alterTable) or has no columns to
compare. So the entry passes through a form that Hive calls a view without columns; Iceberg readers
look at the parameter ``table_type`` only and never notice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from icecomb.catalog.hive.entry_change import EntryChange, Expectation
from icecomb.catalog.hive.lock import TableLock
from icecomb.catalog.hive.parameters import METADATA_LOCATION
from icecomb.catalog.hive.settlement import Look, Seen, Sight
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.failure import RefusedError, ReplyLostError
from icecomb.catalog.pointer import Committed, Conflict, Outcome
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    MigrationError,
)

EXTERNAL: Final = "EXTERNAL_TABLE"
_VIEW: Final = "VIRTUAL_VIEW"
_CHANGED: Final = "transient_lastDdlTime"
"""Every Hive table has this parameter, in seconds; a metastore takes what it is given."""
_NO_TIME: Final = 10**12
"""From here on a value of it is no clock's: it stood for a moment while a table went back."""


class DropUnansweredError(CommitStateUnknownError):
    """A request to drop a partition may arrive late, and no metastore would refuse it."""


class Entry:
    """One table's entry in the metastore.

    Every alter says what it expects to replace, and a request that arrives late is refused by a
    metastore that checks: the turn and the way back give the parameter that they expect another
    value; the alters between them expect the pointer, which they keep, so that a run that goes on
    after an interruption moves the pointer first.

    Args:
        client: the metastore.
        database: the table's database.
        name: the table's name.
        settings: the catalog's properties.

    Attributes:
        change: how the entry is changed.
    """

    def __init__(
        self, client: HiveClient, database: str, name: str, settings: Mapping[str, str]
    ) -> None:
        self.client = client
        self.database = database
        self.name = name
        self.change = EntryChange(client, database, name, settings)

    def load(self) -> HiveTable:
        """The entry as it is now."""
        return self.client.table(self.database, self.name)

    def turn_to_iceberg(
        self, old: HiveTable, parameters: Mapping[str, str], lock: TableLock | None
    ) -> None:
        """Make the Hive table an Iceberg table, in one alter.

        Args:
            old: the entry as it was looked at; the turn happens only if it is still so.
            parameters: all parameters of the new entry.
            lock: the table's lock.

        Raises:
            CommitFailedError: proven that the entry is not turned.
            CommitStateUnknownError: the answer was lost, and the turn may still happen.
        """
        before = _time_of_change(old)
        wanted = {**parameters, _CHANGED: _later(before)}
        new = replace(old, table_type=EXTERNAL, parameters=wanted)

        def judge(now: HiveTable) -> Sight:
            if now.is_iceberg and now.parameters.get("uuid") == wanted["uuid"]:
                return Sight.HAPPENED
            unchanged = now.parameters.get(_CHANGED) == before
            return Sight.NOT_YET if unchanged else Sight.OVERTAKEN

        outcome = self._alter(new, Expectation(_CHANGED, before), judge, lock)
        _require_done(
            outcome, old, "it is unknown whether it became an Iceberg table", verb="apply"
        )

    def fence(self, table: HiveTable, lock: TableLock | None) -> Outcome:
        """Make a turn impossible that was asked for when the Hive table was as it is.

        Nothing is changed but the time of its last change.
        """
        before = _time_of_change(table)
        after = _later(before)
        new = replace(table, parameters={**table.parameters, _CHANGED: after})

        def judge(now: HiveTable) -> Sight:
            found = now.parameters.get(_CHANGED)
            if found == after and not now.is_iceberg:
                return Sight.HAPPENED
            return Sight.NOT_YET if found == before else Sight.OVERTAKEN

        return self._alter(new, Expectation(_CHANGED, before), judge, lock)

    def drop_partitions(self, names: Sequence[str]) -> None:
        """Drop partitions' entries from what is an Iceberg table now; no file is touched.

        Safe to repeat.

        Raises:
            DropUnansweredError: the request may be under way still.
        """
        try:
            self.client.partitions.drop(self.database, self.name, names)
        except ReplyLostError as error:
            try:
                there = self.client.partitions.named(self.database, self.name, names)
            except IcecombError:
                there = None
            if there != []:
                raise DropUnansweredError(
                    f"{self.database}.{self.name} is an Iceberg table, but partitions' entries are "
                    f"there still: {error.message}",
                    hint="apply again",
                    table=f"{self.database}.{self.name}",
                ) from error

    def take_keys_away(self, storage: StorageDescriptor, lock: TableLock | None) -> None:
        """Show an Iceberg table's columns, and no partition keys; all partitions are dropped.

        Safe to repeat at any point.

        Args:
            storage: columns, formats and serde to show.
            lock: the table's lock.

        Raises:
            CommitFailedError: somebody committed meanwhile.
            CommitStateUnknownError: the answer to an alter was lost.
        """
        location = self.load().storage.location
        self._reshape(replace(storage, location=location), (), lock, "apply")

    def give_keys_back(self, old: HiveTable, lock: TableLock | None) -> None:
        """Give an Iceberg table its old columns and partition keys; it stays an Iceberg table.

        Safe to repeat at any point.

        Args:
            old: the Hive table of the journal.
            lock: the table's lock.

        Raises:
            CommitFailedError: somebody committed meanwhile.
            CommitStateUnknownError: the answer to an alter was lost.
        """
        self._reshape(old.storage, old.partition_keys, lock, "revert")

    def give_partitions_back(self, partitions: Sequence[HivePartition]) -> None:
        """Give an Iceberg table, which has its old keys again, old partitions; safe to repeat."""
        self.client.partitions.add(partitions)
        # A server stamps new partitions with the time and statistics of its own.
        self.client.partitions.alter(self.database, self.name, partitions)

    def expect(self, pointer: str) -> None:
        """Refuse to go on when the entry points at another metadata file.

        Raises:
            CommitFailedError: somebody committed meanwhile.
        """
        now = self.load()
        if now.metadata_location != pointer:
            raise _changed(now)

    def turn_to_hive(
        self, old: HiveTable, pointer: str, marker: str, lock: TableLock | None
    ) -> None:
        """Make the Iceberg table the old Hive table again, in one alter; `tidy` comes after it.

        Args:
            old: the Hive table of the journal.
            pointer: the metadata file the entry must still point at.
            marker: put where the pointer was in the same alter, so that a commit under way finds
                its base gone.
            lock: the table's lock.

        Raises:
            CommitFailedError: somebody committed meanwhile; nothing was turned.
            CommitStateUnknownError: an answer was lost, and the turn may still happen.
        """
        # A time that no clock gives, which `tidy` expects: only the one after this very turn does.
        parameters = {METADATA_LOCATION: marker, _CHANGED: str(time.time_ns())}
        new = replace(old, parameters={**old.parameters, **parameters})
        # Not every server looks at the expected parameter.
        self.expect(pointer)

        def judge(now: HiveTable) -> Sight:
            if now.metadata_location == marker:
                return Sight.HAPPENED
            return Sight.NOT_YET if now.metadata_location == pointer else Sight.OVERTAKEN

        outcome = self._alter(new, Expectation(METADATA_LOCATION, pointer), judge, lock)
        _require_done(outcome, old, "it is unknown whether it is a Hive table again", verb="revert")

    def tidy(self, old: HiveTable, marker: str, lock: TableLock | None) -> None:
        """Make the entry exactly the old one, after the turn; nothing if it is so already.

        Raises:
            CommitFailedError: somebody changed it meanwhile.
            CommitStateUnknownError: the answer was lost.
        """
        turned = self.load()
        if turned.metadata_location != marker:
            return
        before = _time_of_change(turned)
        # A server that checks wants the parameter to be set.
        wanted = {_CHANGED: _later(before), **old.parameters}

        def judge(now: HiveTable) -> Sight:
            if now.metadata_location != marker:
                return Sight.HAPPENED
            unchanged = now.parameters.get(_CHANGED) == before
            return Sight.NOT_YET if unchanged else Sight.OVERTAKEN

        new = replace(old, parameters=wanted)
        outcome = self._alter(new, Expectation(_CHANGED, before), judge, lock)
        _require_done(
            outcome, old, "it is a Hive table again, but still has a marker", verb="revert"
        )

    def _reshape(
        self,
        storage: StorageDescriptor,
        keys: tuple[FieldSchema, ...],
        lock: TableLock | None,
        verb: str,
    ) -> None:
        table = self.load()
        if not table.is_iceberg:
            raise _changed(table)  # an old copy came back: its keys are Hive's
        wanted = replace(table, storage=storage, partition_keys=keys, table_type=EXTERNAL)
        if wanted == table:
            return
        if table.partition_keys == keys and table.table_type == EXTERNAL:
            try:
                self._shape(wanted, lock, verb)
            except RefusedError as error:
                if "incompatible" not in error.answer:
                    raise
            else:
                return
        bare = replace(table.storage, columns=())
        self._shape(replace(table, storage=bare, table_type=_VIEW), lock, verb)
        self._shape(wanted, lock, verb)

    def _shape(self, wanted: HiveTable, lock: TableLock | None, verb: str) -> None:
        """Give an Iceberg table other columns and keys; where it points stays."""
        pointer = wanted.metadata_location or ""

        def judge(now: HiveTable) -> Sight:
            if now.metadata_location != pointer:
                return Sight.OVERTAKEN
            return Sight.HAPPENED if _shape_of(now) == _shape_of(wanted) else Sight.NOT_YET

        outcome = self._alter(wanted, Expectation(METADATA_LOCATION, pointer), judge, lock)
        _require_done(
            outcome,
            wanted,
            "it is an Iceberg table, and it is unknown whether its columns and keys were changed",
            verb=verb,
        )

    def _alter(
        self,
        new: HiveTable,
        expectation: Expectation,
        judge: Callable[[HiveTable], Sight],
        lock: TableLock | None,
    ) -> Outcome:
        return self.change.alter(new, expectation, self._look(judge), new.parameters, lock)

    def _look(self, judge: Callable[[HiveTable], Sight]) -> Look:
        def look() -> Seen:
            now = self.change.read()
            return Seen(Sight.ELSEWHERE if now is None else judge(now), now)

        return look


def _time_of_change(table: HiveTable) -> str:
    if found := table.parameters.get(_CHANGED):
        return found
    raise MigrationError(
        f"The metastore does not say when {table.full_name} was changed last ({_CHANGED})",
        hint="change a property of it in Hive or Spark, and try again",
        table=table.full_name,
    )


def _later(time_of_change: str) -> str:
    """A time of change after another one."""
    now = int(time.time())
    before = int(time_of_change) if time_of_change.isdecimal() else 0
    return str(max(now, before + 1) if before < _NO_TIME else now)


def _shape_of(table: HiveTable) -> tuple[StorageDescriptor, tuple[FieldSchema, ...], str | None]:
    return table.storage, table.partition_keys, table.table_type


def _require_done(outcome: Outcome, table: HiveTable, unknown: str, *, verb: str) -> None:
    if isinstance(outcome, Committed):
        return
    if isinstance(outcome, Conflict):
        raise _changed(table) from None
    name = table.full_name
    raise CommitStateUnknownError(
        f"{name}: {unknown}: {outcome.reason}",
        hint=f"nothing was deleted; see `icecomb migrate status {name}`, then {verb} again",
        table=name,
        current=outcome.current,
    ) from outcome.cause


def _changed(table: HiveTable) -> CommitFailedError:
    return CommitFailedError(
        f"{table.full_name} was changed by somebody else meanwhile",
        hint="run the same command again",
        table=table.full_name,
    )
