"""The metastore's entry of a table, converted from a Hive table to an Iceberg table and back.

The conversion is one alter: before it every reader sees the Hive table, after it every reader sees
the Iceberg table. What an Iceberg table should not have (partitions, partition keys) is removed
afterwards, and restored before the conversion back, so that no reader ever sees a Hive table
without its partitions.

A metastore refuses to change partition keys, and to change columns into types it calls
incompatible, except when the old entry is a view (HiveAlterHandler.alterTable) or has no columns to
compare. So the entry passes through a form that Hive calls a view without columns; Iceberg readers
look only at the parameter ``table_type`` and never notice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from icecomb.catalog.commit.pointer import Committed, Conflict, Outcome
from icecomb.catalog.hive.entry_change import EntryChange, Expectation
from icecomb.catalog.hive.lock import TableLock
from icecomb.catalog.hive.parameters import METADATA_LOCATION
from icecomb.catalog.hive.settlement import ChangeState, Observation, Poll
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.failure import RefusedError, ReplyLostError
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    MigrationError,
)
from icecomb.format.input_limit import whole_number
from icecomb.format.property.table_property import (
    MIGRATION_DIGEST,
    MIGRATION_TAKEN,
    MIGRATION_VERIFIED,
)
from icecomb.format.shell_command import shell_command

EXTERNAL: Final = "EXTERNAL_TABLE"
_VIEW: Final = "VIRTUAL_VIEW"
_CHANGED: Final = "transient_lastDdlTime"
"""Every Hive table has this parameter, in seconds; a metastore accepts any value."""
_ROUNDS: Final = 10
"""How often a note is written again when commits without locks come between."""
_NO_TIME: Final = 10**12
"""Greater values are not from a clock: they are set for a moment during a revert."""


class DropUnansweredError(CommitStateUnknownError):
    """A request to drop a partition may arrive late, and no metastore would refuse it."""


class TableEntry:
    """One table's entry in the metastore.

    Every alter names the value it expects to replace, and a metastore that checks refuses late
    requests: the conversion and the way back change the parameter that they expect; the alters
    between them expect the pointer, which they keep, so a run that resumes after an interruption
    moves the pointer first.
    """

    def __init__(
        self, client: HiveClient, database: str, name: str, settings: Mapping[str, str]
    ) -> None:
        self.client = client
        self.database = database
        self.name = name
        self.change = EntryChange(client, database, name, settings)

    def load(self) -> HiveTable:
        """Load the current entry."""
        return self.client.table(self.database, self.name)

    def convert_to_iceberg(
        self, old: HiveTable, parameters: Mapping[str, str], lock: TableLock | None
    ) -> None:
        """Convert the Hive table to an Iceberg table, in one alter, if `old` is unchanged.

        `CommitFailedError` proves that it was not converted; after `CommitStateUnknownError`, it
        may still happen.
        """
        before = _time_of_change(old)
        wanted = {**parameters, _CHANGED: _later(before)}
        new = replace(old, table_type=EXTERNAL, parameters=wanted)

        def judge(now: HiveTable) -> ChangeState:
            if now.is_iceberg and now.parameters.get("uuid") == wanted["uuid"]:
                return ChangeState.HAPPENED
            unchanged = now.parameters.get(_CHANGED) == before
            return ChangeState.NOT_YET if unchanged else ChangeState.OVERTAKEN

        outcome = self._alter(new, Expectation(_CHANGED, before), judge, lock)
        _require_done(
            outcome, old, "it is unknown whether it became an Iceberg table", verb="apply"
        )

    def fence(self, table: HiveTable, lock: TableLock | None) -> Outcome:
        """Make impossible any conversion requested for the Hive table's current state.

        Only the time of its last change is modified.
        """
        before = _time_of_change(table)
        after = _later(before)
        new = replace(table, parameters={**table.parameters, _CHANGED: after})

        def judge(now: HiveTable) -> ChangeState:
            found = now.parameters.get(_CHANGED)
            if found == after and not now.is_iceberg:
                return ChangeState.HAPPENED
            return ChangeState.NOT_YET if found == before else ChangeState.OVERTAKEN

        return self._alter(new, Expectation(_CHANGED, before), judge, lock)

    def drop_partitions(self, names: Sequence[str]) -> None:
        """Drop partitions of a converted table, but no file; safe to repeat.

        `DropUnansweredError` means that the request may still be under way.
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
                    f"{self.database}.{self.name} is an Iceberg table, but still has partitions' "
                    f"entries: {error.message}",
                    hint="Apply again.",
                    table=f"{self.database}.{self.name}",
                ) from error

    def take_keys_away(
        self, storage: StorageDescriptor, taken: Mapping[str, str], lock: TableLock | None
    ) -> None:
        """Give the entry an Iceberg table's columns, no keys, once all partitions are dropped.

        Safe to repeat at any point.

        Args:
            taken: The parameter by which the entry confirms which partitions those were.
        """
        location = self.load().storage.location
        self._reshape(replace(storage, location=location), (), lock, "apply", taken)

    def give_keys_back(self, old: HiveTable, lock: TableLock | None) -> None:
        """Restore old columns and partition keys of an Iceberg table, which stays one.

        Safe to repeat at any point.
        """
        self._reshape(old.storage, old.partition_keys, lock, "revert")

    def give_partitions_back(self, partitions: Sequence[HivePartition]) -> None:
        """Restore old partitions of an Iceberg table with restored keys; safe to repeat."""
        self.client.partitions.add(partitions)
        # A server stamps new partitions with its own time and statistics.
        self.client.partitions.alter(self.database, self.name, partitions)

    def note_verified(self, table: HiveTable, migration: str, lock: TableLock | None) -> None:
        """Note that a migration was verified; the pointer stays as it is.

        Args:
            table: The Iceberg table that was verified.
            migration: The id of its migration.
            lock: The lock on it.
        """
        for _ in range(_ROUNDS):
            now = self.load()
            if not now.is_iceberg or now.parameters.get("uuid") != table.parameters.get("uuid"):
                break
            pointer = now.metadata_location or ""
            wanted = replace(now, parameters={**now.parameters, MIGRATION_VERIFIED: migration})

            def judge(found: HiveTable, pointer: str = pointer) -> ChangeState:
                if found.parameters.get(MIGRATION_VERIFIED) == migration:
                    return ChangeState.HAPPENED
                same = found.metadata_location == pointer
                return ChangeState.NOT_YET if same else ChangeState.OVERTAKEN

            outcome = self._alter(wanted, Expectation(METADATA_LOCATION, pointer), judge, lock)
            if not isinstance(outcome, Conflict):
                unknown = "it is unknown whether its entry says that it was verified"
                return _require_done(outcome, now, unknown, verb="verify")
        raise _changed(table)

    def expect(self, pointer: str) -> HiveTable:
        """Check that the entry points at a metadata file."""
        now = self.load()
        if now.metadata_location != pointer:
            raise _changed(now)
        return now

    def convert_to_hive(
        self, old: HiveTable, pointer: str, marker: str, lock: TableLock | None
    ) -> None:
        """Convert the Iceberg table back to the old Hive table, in one alter; `tidy` follows.

        After `CommitStateUnknownError`, it may still happen.

        Args:
            pointer: The metadata file the entry must still point at.
            marker: Replaces the pointer in the same alter, so that a commit under way finds its
                base gone.
        """
        # A time that no clock gives: only the `tidy` after this conversion expects it.
        parameters = {METADATA_LOCATION: marker, _CHANGED: str(time.time_ns())}
        # Not every server checks the expected parameter.
        now = self.expect(pointer)
        # `tidy` may be left to a later run, for which the entry has to vouch for the journal.
        for name in (MIGRATION_DIGEST, MIGRATION_TAKEN):
            if digest := now.parameters.get(name):
                parameters[name] = digest
        new = replace(old, parameters={**old.parameters, **parameters})

        def judge(now: HiveTable) -> ChangeState:
            if now.metadata_location == marker:
                return ChangeState.HAPPENED
            return (
                ChangeState.NOT_YET if now.metadata_location == pointer else ChangeState.OVERTAKEN
            )

        outcome = self._alter(new, Expectation(METADATA_LOCATION, pointer), judge, lock)
        _require_done(outcome, old, "it is unknown whether it is a Hive table again", verb="revert")

    def tidy(self, old: HiveTable, marker: str, lock: TableLock | None) -> None:
        """Make the entry exactly the old one, after the conversion back, unless it is already."""
        restored = self.load()
        if restored.metadata_location != marker:
            return
        before = _time_of_change(restored)
        # A server that checks requires the parameter to be set.
        wanted = {_CHANGED: _later(before), **old.parameters}

        def judge(now: HiveTable) -> ChangeState:
            if now.metadata_location != marker:
                return ChangeState.HAPPENED
            unchanged = now.parameters.get(_CHANGED) == before
            return ChangeState.NOT_YET if unchanged else ChangeState.OVERTAKEN

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
        parameters: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        table = self.load()
        if not table.is_iceberg:
            raise _changed(table)  # an old copy came back: its keys are Hive's
        wanted = replace(
            table,
            storage=storage,
            partition_keys=keys,
            table_type=EXTERNAL,
            parameters={**table.parameters, **parameters},
        )
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
        """Give an Iceberg table other columns and keys, with the same pointer."""
        pointer = wanted.metadata_location or ""

        def judge(now: HiveTable) -> ChangeState:
            if now.metadata_location != pointer:
                return ChangeState.OVERTAKEN
            return (
                ChangeState.HAPPENED if _shape_of(now) == _shape_of(wanted) else ChangeState.NOT_YET
            )

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
        judge: Callable[[HiveTable], ChangeState],
        lock: TableLock | None,
    ) -> Outcome:
        return self.change.alter(new, expectation, self._poll(judge), new.parameters, lock)

    def _poll(self, judge: Callable[[HiveTable], ChangeState]) -> Poll:
        def poll() -> Observation:
            now = self.change.read()
            return Observation(ChangeState.ELSEWHERE if now is None else judge(now), now)

        return poll


def _time_of_change(table: HiveTable) -> str:
    if found := table.parameters.get(_CHANGED):
        return found
    raise MigrationError(
        f"The metastore does not say when {table.full_name} was changed last ({_CHANGED})",
        hint="Change a property of it in Hive or Spark, and try again.",
        table=table.full_name,
    )


def _later(time_of_change: str) -> str:
    """Return a time of change after another one."""
    now = int(time.time())
    before = whole_number(time_of_change) or 0
    return str(max(now, before + 1) if before < _NO_TIME else now)


def _shape_of(
    table: HiveTable,
) -> tuple[StorageDescriptor, tuple[FieldSchema, ...], str | None, str | None]:
    taken = table.parameters.get(MIGRATION_TAKEN)
    return table.storage, table.partition_keys, table.table_type, taken


def _require_done(outcome: Outcome, table: HiveTable, unknown: str, *, verb: str) -> None:
    if isinstance(outcome, Committed):
        return
    if isinstance(outcome, Conflict):
        raise _changed(table) from None
    name = table.full_name
    raise CommitStateUnknownError(
        f"{name}: {unknown}: {outcome.reason}",
        hint=f"Nothing was deleted; see `{shell_command('migrate', 'status', name)}`, then {verb} "
        "again.",
        table=name,
        current=outcome.current,
    ) from outcome.cause


def _changed(table: HiveTable) -> CommitFailedError:
    return CommitFailedError(
        f"{table.full_name} was changed by somebody else meanwhile",
        hint="Run the same command again.",
        table=table.full_name,
    )
