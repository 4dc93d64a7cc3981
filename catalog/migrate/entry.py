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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.failure import RefusedError, ReplyLostError
from icecomb.catalog.migrate.progress import Progress
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    NoSuchTableError,
)

EXTERNAL: Final = "EXTERNAL_TABLE"
_VIEW: Final = "VIRTUAL_VIEW"
_POINTER: Final = "metadata_location"
_CHANGED: Final = "transient_lastDdlTime"
_MODIFIED: Final = "The table has been modified"


class Entry:
    """One table's entry in the metastore.

    Args:
        client: the metastore.
        database: the table's database.
        name: the table's name.
    """

    def __init__(self, client: HiveClient, database: str, name: str) -> None:
        self.client = client
        self.database = database
        self.name = name

    def load(self) -> HiveTable:
        """The entry as it is now."""
        return self.client.table(self.database, self.name)

    def turn_to_iceberg(self, old: HiveTable, parameters: Mapping[str, str]) -> None:
        """Make the Hive table an Iceberg table, in one alter.

        Args:
            old: the entry as it was looked at; the turn happens only if it is still so.
            parameters: all parameters of the new entry.

        Raises:
            CommitFailedError: proven that the entry is not turned.
            CommitStateUnknownError: the answer was lost, and the turn may still happen.
        """
        wanted = dict(parameters)
        # Servers that check an expected parameter want it set anew: every Hive entry has this one.
        if _CHANGED in old.parameters:
            wanted[_CHANGED] = old.parameters[_CHANGED]
        new = replace(old, table_type=EXTERNAL, parameters=wanted)
        try:
            self._alter(new, _CHANGED, old.parameters.get(_CHANGED))
        except ReplyLostError as error:
            now = self.load()
            if now.metadata_location == new.metadata_location:
                return
            raise CommitStateUnknownError(
                f"the metastore did not answer, and {old.full_name} is no Iceberg table yet",
                hint=f"wait a minute, see `icecomb migrate status {old.full_name}`, apply again",
                table=old.full_name,
            ) from error

    def take_hive_parts_away(self, storage: StorageDescriptor, progress: Progress) -> None:
        """Drop the partitions' entries and the partition keys of what is an Iceberg table now.

        Safe to repeat at any point. No file is touched.

        Args:
            storage: columns, formats and serde to show.
            progress: told of partitions dropped.
        """
        table = self.load()
        if table.partition_keys:
            names = self.client.partitions.names(self.database, self.name)
            with progress.task(
                "dropping metastore partitions", len(names), "partitions"
            ) as advance:
                for page in self.client.partitions.pages(self.database, self.name):
                    for partition in page:
                        self._drop(partition)
                        advance(1)
        self._reshape(replace(storage, location=table.storage.location), ())

    def give_hive_parts_back(
        self, old: HiveTable, pages: Iterable[list[HivePartition]], total: int, progress: Progress
    ) -> None:
        """Give an Iceberg table its old columns, partition keys and partitions.

        It stays an Iceberg table. Safe to repeat at any point.

        Args:
            old: the Hive table of the journal.
            pages: its partitions.
            total: how many they are.
            progress: told of partitions added.
        """
        self._reshape(old.storage, old.partition_keys)
        if not old.partition_keys:
            return
        there = {
            partition.values
            for page in self.client.partitions.pages(self.database, self.name)
            for partition in page
        }
        with progress.task("restoring metastore partitions", total, "partitions") as advance:
            for page in pages:
                missing = [partition for partition in page if partition.values not in there]
                if missing:
                    self.client.partitions.add(missing)
                # A server stamps new partitions with the time and statistics of its own.
                self.client.partitions.alter(self.database, self.name, page)
                advance(len(page))

    def expect(self, pointer: str) -> None:
        """Refuse to go on when the entry points at another metadata file.

        Raises:
            CommitFailedError: somebody committed meanwhile.
        """
        now = self.load()
        if now.metadata_location != pointer:
            raise _changed(now)

    def turn_to_hive(self, old: HiveTable, pointer: str, marker: str) -> None:
        """Make the Iceberg table the old Hive table again, in one alter.

        Args:
            old: the Hive table of the journal.
            pointer: the metadata file the entry must still point at.
            marker: put where the pointer was in the same alter, so that a commit under way finds
                its base gone.

        Raises:
            CommitFailedError: somebody committed meanwhile; nothing was turned.
        """
        new = replace(old, parameters={**old.parameters, _POINTER: marker})
        # Not every server looks at the expected parameter.
        self.expect(pointer)
        try:
            self._alter(new, _POINTER, pointer)
        except ReplyLostError:
            if self.load().metadata_location != marker:
                raise
        self.tidy(old)

    def tidy(self, old: HiveTable) -> None:
        """Make the entry exactly the old one, after the turn."""
        self._alter(old, None, None)

    def _reshape(self, storage: StorageDescriptor, keys: tuple[FieldSchema, ...]) -> None:
        table = self.load()
        wanted = replace(table, storage=storage, partition_keys=keys, table_type=EXTERNAL)
        if wanted == table:
            return
        if table.partition_keys == keys and table.table_type == EXTERNAL:
            try:
                self._alter(wanted, _POINTER, table.metadata_location)
            except RefusedError as error:
                if "incompatible" not in error.answer:
                    raise
            else:
                return
        bare = replace(table.storage, columns=())
        self._alter(
            replace(table, storage=bare, table_type=_VIEW), _POINTER, table.metadata_location
        )
        self._alter(wanted, _POINTER, table.metadata_location)

    def _alter(self, table: HiveTable, key: str | None, expected: str | None) -> None:
        context = {"DO_NOT_UPDATE_STATS": "true"}
        if key is not None and expected is not None:
            context |= {"expected_parameter_key": key, "expected_parameter_value": expected}
        try:
            self.client.alter_table(self.database, self.name, table, context)
        except RefusedError as error:
            if _MODIFIED in error.answer:
                raise _changed(table) from error
            raise

    def _drop(self, partition: HivePartition) -> None:
        try:
            self.client.partitions.drop(self.database, self.name, partition.values)
        except NoSuchTableError:
            # Somebody else was faster; that the table is there was seen just before.
            return


def _changed(table: HiveTable) -> CommitFailedError:
    return CommitFailedError(
        f"{table.full_name} was changed by somebody else meanwhile",
        hint="run the same command again",
        table=table.full_name,
    )
