"""Reversal of a migration: the exact old metastore entry and partitions, from the journal.

No file of the Hive table is touched. Metadata files, and data files added since the migration that
Hive's readers would see, are moved to the journal's folder, never deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from icecomb.catalog.commit.commit_status import is_old
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.applying.hive_parts import HiveParts
from icecomb.catalog.migrate.journal.context import (
    MigrationContext,
    moment_after,
    remove_empty_folder,
)
from icecomb.catalog.migrate.journal.dropped_partitions import DroppedPartitions
from icecomb.catalog.migrate.journal.file_history import TAKEN_IN, FileHistory
from icecomb.catalog.migrate.journal.folder_journals import was_migrated
from icecomb.catalog.migrate.journal.journal import FOLDER, Journal, Step, kept_files, lasting_id
from icecomb.catalog.migrate.journal.late_write import find_changes
from icecomb.catalog.migrate.journal.overwritten_entry import (
    RestoredEntries,
    find_overwritten,
    folders_of,
)
from icecomb.catalog.migrate.journal.vouching import (
    check_moved,
    check_vouched,
    is_confirmed,
    unconfirmed,
)
from icecomb.format.errors import (
    CommitFailedError,
    FileAlreadyExistsError,
    MigrationError,
    NoSuchFileError,
)
from icecomb.format.holding import Holding
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.storage.file_io import have_same_bytes
from icecomb.format.storage.location import led_out, plain_paths, plain_texts

_FOLDERS: Final = 100
"""Number of folders whose listings are cached."""
_OF_ICEBERG: Final = re.compile(r"\d{5}-\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}.*")
"""The names of data files by Iceberg's writers (OutputFileFactory) and icecomb."""


@dataclass(frozen=True, slots=True)
class RevertPlan:
    """The effect of reverting a migration.

    Attributes:
        table: The table as "db.table".
        partitions: Number of partitions to restore.
        lost_snapshots: The snapshots made after the migration, oldest first.
        rows_then: Number of rows at the migration.
        rows_now: Current number of rows; None if the table does not say.
        missing_files: Files of the Hive table that are gone.
        dropped_partitions: Partitions that Hive dropped after the conversion: they stay dropped.
        replaced_files: Files in whose place Hive put others since: their rows are gone.
        metadata_gone: Whether the metadata is gone, so that later commits are unknown.
        unconfirmed: What nothing vouches for in the journal; empty if the entry confirms it.
        done: Whether the revert was carried out.
        already: Whether it was carried out before.
    """

    table: str
    partitions: int
    lost_snapshots: tuple[Snapshot, ...] = ()
    rows_then: int | None = None
    rows_now: int | None = None
    missing_files: tuple[str, ...] = ()
    dropped_partitions: tuple[str, ...] = ()
    replaced_files: tuple[str, ...] = ()
    metadata_gone: bool = False
    unconfirmed: str = ""
    done: bool = False
    already: bool = False

    @property
    def loses_data(self) -> bool:
        """Whether data would be lost."""
        return bool(self.lost_snapshots or self.missing_files or self.metadata_gone)

    @property
    def summary(self) -> str:
        """The effect in a few words."""
        if self.already:
            return "nothing to do: the Hive table was back before"
        if self.done:
            dropped = len(self.dropped_partitions)
            without = f", without {dropped:,} that Hive dropped" if dropped else ""
            return (
                f"the Hive table is back, with {self.partitions:,} partitions{without}"
                f"{self._replaced}"
            )
        lost = f"{len(self.lost_snapshots)} snapshots made since, {len(self.missing_files)} files"
        metadata_gone = ", and later commits, as its metadata is gone" if self.metadata_gone else ""
        loss = f"would lose {lost}{metadata_gone}" if self.loses_data else "would lose nothing"
        look = f"; {self.unconfirmed}" if self.unconfirmed else ""
        return f"{loss}, and restore {self.partitions:,} partitions{self._replaced}{look}"

    @property
    def _replaced(self) -> str:
        count = len(self.replaced_files)
        return f"; Hive replaced {count:,} files since, whose rows are gone" if count else ""

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "table": self.table,
            "reverted": self.done,
            "already": self.already,
            "partitions": self.partitions,
            "loses-data": self.loses_data,
            "rows-at-migration": self.rows_then,
            "rows-now": self.rows_now,
            "lost-snapshots": [
                {
                    "snapshot-id": snapshot.snapshot_id,
                    "timestamp-ms": snapshot.timestamp_ms,
                    "operation": (snapshot.summary or {}).get("operation"),
                    "added-rows": (snapshot.summary or {}).get("added-records"),
                    "deleted-rows": (snapshot.summary or {}).get("deleted-records"),
                }
                for snapshot in self.lost_snapshots
            ],
            "metadata-gone": self.metadata_gone,
            "unconfirmed": self.unconfirmed,
            "missing-files": list(self.missing_files),
            "replaced-files": list(self.replaced_files),
            "dropped-partitions": list(self.dropped_partitions),
        }


class RevertBlockedError(MigrationError):
    """Reverting would lose data, which was not allowed; nothing was changed. See ``plan``."""

    def __init__(self, plan: RevertPlan) -> None:
        losses = []
        if plan.lost_snapshots:
            losses.append(f"{len(plan.lost_snapshots)} snapshots made since the migration")
        if plan.missing_files:
            losses.append(
                f"{len(plan.missing_files)} files of the Hive table that are gone already"
            )
        if plan.metadata_gone:
            losses.append("later commits, which are unknown as its metadata is gone")
        super().__init__(
            f"reverting {plan.table} would lose {' and '.join(losses)}",
            hint="Copy what you need, then add `--allow-data-loss` (allow_data_loss=True)",
            table=plan.table,
        )
        self.plan = plan


class Reversal:
    """The conversion of a migrated table back to the old Hive table."""

    def __init__(self, context: MigrationContext) -> None:
        self._context = context

    def run(self, *, dry_run: bool, allow_data_loss: bool) -> RevertPlan:
        """Revert the migration, or resume after a crash.

        After `CommitFailedError` the Iceberg table stays; after `CommitStateUnknownError` no file
        was moved.
        """
        table = self._context.entry.load()
        if before := self._done_before(table):
            return before
        journal = self._journal(table)
        self._check_unanswered(table, journal)
        if not table.is_iceberg:
            return self._finish(table, journal, dry_run=dry_run, allow_data_loss=allow_data_loss)
        check_vouched(self._context, table, journal)
        plan, facts = self._examined(table, journal, table.metadata_location)
        if dry_run:
            return plan
        if plan.loses_data and not allow_data_loss:
            raise RevertBlockedError(plan)
        if journal.step(Step.CLEANED) is None or journal.step(Step.REVERTING) is not None:
            # An unanswered request of the previous run could undo what is done now.
            if self._context.has_metadata(table):  # without it no commit is possible
                self._context.fence(journal, table)
            table = self._context.entry.load()
            plan, facts = self._examined(table, journal, table.metadata_location)
            if plan.loses_data and not allow_data_loss:
                raise RevertBlockedError(plan)
        pointer = table.metadata_location or ""
        # A concurrent finalize checks under the lock, too, so one of both comes first.
        journal.check_own(facts["added"], partitions=True)
        self._check_within_reach(table, journal, facts["added"])
        parts = HiveParts(self._context, journal)
        with Holding() as held, held:
            self._context.locked(held, table)
            self._check_way_back(table, journal)
            if table.partition_keys:
                parts.check_not_moved()
            journal.record(Step.REVERTING, pointer=pointer, **facts)
        old = RestoredEntries(journal).table
        parts.give_back(pointer)
        with Holding() as held, held, parts.pointing_at(held, pointer) as lock:
            parts.check_given_back()
            self._context.require_lock(lock)
            self._context.entry.convert_to_hive(old, pointer, journal.marker, lock)
            journal.record(Step.RETURNED)
            # Once the marker is gone, the entry does not confirm any more what is moved.
            self._move_added(journal, facts["added"])
            self._context.entry.tidy(old, journal.marker, lock)
        self._set_aside(journal, facts["added"])
        return replace(plan, done=True)

    def plan(self, table: HiveTable, journal: Journal) -> RevertPlan:
        """Return what reverting an Iceberg table would lose; change nothing."""
        return self._examined(table, journal, table.metadata_location)[0]

    def _examined(
        self, table: HiveTable, journal: Journal, pointer: str | None
    ) -> tuple[RevertPlan, dict[str, list[str]]]:
        """Return the effect of reverting, the files to move aside, and the changed folders."""
        other = table.is_iceberg and table.parameters.get("uuid") != _fact(journal, "uuid")
        if pointer is None or other:
            raise MigrationError(
                f"{table.full_name} is another Iceberg table than the one of its journal",
                hint=f"The journal is {journal.location}",
                table=table.full_name,
            )
        from icecomb.format.spec.metadata_file import read_metadata

        try:
            metadata = read_metadata(self._context.io, pointer)
        except NoSuchFileError:
            return self._of_journal(table, journal)
        history = FileHistory(self._context.io, table.full_name, journal, metadata)
        plan = self._plan(table, journal, metadata, history)
        old = journal.table
        folders = (
            {p.storage.location or "" for p in journal.partitions()}
            if old.partition_keys
            else {old.storage.location or ""}
        )
        added = history.since(folders, deep=not old.partition_keys)
        late = find_changes(self._context, journal, table, metadata)
        # Files that are moved aside are Iceberg's.
        hives = {*late.added, *late.elsewhere, *journal.added()}.difference(added)
        changed = folders_of([*hives, *late.replaced, *late.gone])
        plan = replace(
            plan,
            replaced_files=tuple(late.replaced),
            unconfirmed=unconfirmed(self._context, journal),
        )
        return plan, {"added": added, "changed": changed}

    def _of_journal(
        self, table: HiveTable, journal: Journal
    ) -> tuple[RevertPlan, dict[str, list[str]]]:
        """Return the same for a table whose metadata is gone, from the journal and the folders."""
        dropped = DroppedPartitions(self._context, journal, table)
        old, io = journal.table, self._context.io
        folders = [old.storage.location or ""]
        if old.partition_keys:
            homes = (one for one in journal.partitions() if one.values not in dropped)
            folders = [one.storage.location or "" for one in homes]
        there = [status for folder in folders if folder for status in io.list(folder)]
        present = {status.location for status in there if status.size}
        stated = {one.location: one for page in kept_files(journal) for one in page}
        stated |= {name: one for name, one in journal.added().items() if one}
        planned = stated.keys() | journal.added().keys()
        replaced = [
            one.location
            for one in there
            if one.size
            and (before := stated.get(one.location))
            and (before != one or before.file_id != lasting_id(one))
        ]
        missing = sorted(one for one in planned - present if not dropped.had(one))
        # Files of Iceberg's engines, by folder or name; files that Hive wrote stay.
        own = f"{(old.storage.location or '').rstrip('/')}/data/"
        added = sorted(
            one
            for one in present - planned
            if one.startswith(own) or _OF_ICEBERG.fullmatch(one.rpartition("/")[2])
        )
        is_current = table.is_iceberg and str(
            _fact(journal, "snapshot-id")
        ) == table.parameters.get("current-snapshot-id")
        return (
            RevertPlan(
                table.full_name,
                journal.partition_count - len(dropped.names),
                rows_then=_fact(journal, "rows"),
                missing_files=tuple(missing),
                replaced_files=tuple(replaced),
                dropped_partitions=tuple(dropped.names),
                metadata_gone=not is_current,
                unconfirmed=unconfirmed(self._context, journal),
            ),
            {
                "added": added,
                "changed": folders_of({*journal.added(), *missing, *replaced, *present - planned}),
            },
        )

    def _done_before(self, table: HiveTable) -> RevertPlan | None:
        """Return the plan if the old table is restored already; None if not, or never migrated."""
        if table.is_iceberg:
            return None
        journals = self._context.journals(table)
        if journals.live is not None or not journals.own:
            return None
        count = journals.own[-1].partition_count
        return RevertPlan(table.full_name, count, done=True, already=True)

    def _check_within_reach(self, table: HiveTable, journal: Journal, added: list[str]) -> None:
        """Check that new files can be moved aside after the conversion: Hive would read them."""
        storage, *storages = self._storages([journal.location, *added])
        pairs = zip(added, storages, strict=True)
        far = [name for name, one in pairs if one != storage and self._context.io.exists(name)]
        if far:
            raise MigrationError(
                f"{table.full_name} cannot be reverted: {len(far)} files that were added since are "
                f"where Hive reads them, on other storage than the journal: {far[0]}",
                hint="Move them away, then revert again.",
                table=table.full_name,
            )

    def _storages(self, locations: list[str]) -> list[str]:
        settings = self._context.io.properties
        pairs = zip(plain_texts(locations, settings), plain_paths(locations, settings), strict=True)
        return [text.removesuffix(path) for text, path in pairs]

    def _check_unanswered(self, table: HiveTable, journal: Journal) -> None:
        """Check that no request is under way that the metastore would not refuse."""
        asked = journal.step(Step.UNANSWERED)
        if asked is not None and not is_old(asked["at-ms"]):
            raise MigrationError(
                f"{table.full_name} cannot be reverted yet: a request to change its entry was not "
                "answered, and the metastore would still carry it out if it arrived late",
                hint=f"Revert after {moment_after(asked['at-ms'])}",
                table=table.full_name,
            )

    def _journal(self, table: HiveTable) -> Journal:
        journal = self._context.journal(table)
        if journal is None:
            home = self._context.journals(table).home.rstrip("/")
            named = (
                "; `--trust-journal` (trust_journal=True) also looks in the folder that its "
                "metadata names: make sure that it is the table's"
                if was_migrated(table) and not self._context.trust_journal
                else ""
            )
            raise MigrationError(
                f"{table.full_name} has no migration to revert",
                hint=f"There is no journal in {home}/{FOLDER}{named}.",
                table=table.full_name,
            )
        self._check_way_back(table, journal)
        return journal

    def _check_way_back(self, table: HiveTable, journal: Journal) -> None:
        # A revert that began resumes, as every other step demands: without locks, it and a
        # finalize may both have been recorded.
        # where only the journal says so, too: its files may be gone
        if journal.says_finalized and journal.step(Step.REVERTING) is None:
            raise MigrationError(
                f"The migration of {table.full_name} was finalized: there is no way back",
                hint="Copy the rows into a new Hive table.",
                table=table.full_name,
            )

    def _plan(
        self, table: HiveTable, journal: Journal, metadata: TableMetadata, history: FileHistory
    ) -> RevertPlan:
        first = _fact(journal, "snapshot-id")
        ours = journal.migration_id
        lost = [
            one
            for one in metadata.snapshots
            if one.snapshot_id != first and (one.summary or {}).get(TAKEN_IN) != ours
        ]
        current = metadata.current_snapshot()
        total = (current.summary or {}).get("total-records") if current else None
        dropped = DroppedPartitions(self._context, journal, table)
        return RevertPlan(
            table.full_name,
            journal.partition_count - len(dropped.names),
            tuple(sorted(lost, key=lambda snapshot: snapshot.timestamp_ms)),
            _fact(journal, "rows"),
            int(total) if total is not None else None,
            tuple(self._missing(history.old(), dropped)),
            tuple(dropped.names),
        )

    def _missing(self, locations: Iterable[str], dropped: DroppedPartitions) -> Iterator[str]:
        listed: dict[str, set[str]] = {}
        for location in locations:
            if dropped.had(location):
                continue
            folder = location.rpartition("/")[0]
            if folder not in listed:
                if len(listed) >= _FOLDERS:  # files of one folder follow each other
                    listed.clear()
                listed[folder] = {status.location for status in self._context.io.list(folder)}
            if location not in listed[folder]:
                yield location

    def _finish(
        self, table: HiveTable, journal: Journal, *, dry_run: bool, allow_data_loss: bool
    ) -> RevertPlan:
        """Finish where the entry is a Hive table: converted back, not converted, or overwritten."""
        plan = RevertPlan(table.full_name, journal.partition_count)
        facts: dict[str, list[str]] = {"added": []}
        overwritten = find_overwritten(
            self._context.io, table, journal, trusted=self._context.trust_journal
        )
        begun = journal.step(Step.REVERTING) is not None
        # An attempt before the conversion left metadata files of its own, by their names.
        if begun or overwritten is not None:
            check_vouched(self._context, table, journal)
            plan = replace(plan, unconfirmed=unconfirmed(self._context, journal))
        vouched = bool(journal.digests) or self._context.trust_journal
        added = journal.added_files(partitions=vouched) if begun else []
        pointer = overwritten.pointer if overwritten is not None else None
        if overwritten is not None and not begun:
            plan, facts = (
                self._of_journal(table, journal)
                if pointer is None
                else self._examined(table, journal, pointer)
            )
        if dry_run:
            return plan
        if plan.loses_data and not allow_data_loss:
            raise RevertBlockedError(plan)
        confirmed = is_confirmed(self._context, table, journal)
        moved = [] if confirmed else [*added, *facts["added"]]
        left = [name for name in moved if self._context.io.exists(name)]
        check_moved(self._context, table, journal, left)
        if not confirmed:
            added, facts = [], {**facts, "added": []}
        journal.check_own(facts["added"], partitions=True)
        self._check_within_reach(table, journal, facts["added"])
        # Under the lock: a run about to convert the entry checks for the files that are moved.
        with Holding() as held, held:
            lock = self._context.locked(held, table)
            now = self._context.entry.load()
            if now.is_iceberg or journal.reverted:
                raise _changed(table)
            if overwritten is not None:
                if not begun:
                    added = facts["added"]
                    journal.record(Step.REVERTING, pointer=pointer, **facts)
                with self._context.noting_unanswered(journal, table):
                    HiveParts(self._context, journal).give_rest_back()
                journal.record(Step.RETURNED)
            elif begun:
                if now.metadata_location == journal.marker:
                    journal.record(Step.RETURNED)  # before the marker is gone
                    self._move_added(journal, added)
                with self._context.noting_unanswered(journal, table):
                    restored = RestoredEntries(journal).table
                    self._context.entry.tidy(restored, journal.marker, lock)
            elif not self._context.fence_conversion(journal, now, lock):
                raise _changed(table)
            self._set_aside(journal, added, confirmed=confirmed)
        return replace(plan, done=True)

    def _move_added(self, journal: Journal, added: list[str]) -> None:
        location, aside = journal.home, _aside(journal)
        # Not the locations: HDFS allows no colon in names.
        home, *paths = plain_paths([location, *added], self._context.io.properties)
        for name, path in zip(added, paths, strict=True):
            if self._context.io.exists(name):
                inside = path.startswith(f"{home}/")
                inner = f"added/{path[len(home) + 1 :]}" if inside else f"elsewhere{path}"
                self._move(name, f"{aside}/{inner}")
            self._remove_emptied(name, location)

    def _set_aside(self, journal: Journal, added: list[str], *, confirmed: bool = True) -> None:
        self._move_added(journal, added)
        aside = _aside(journal)
        if (writing := journal.step(Step.WRITING)) is not None:
            folder = writing["folder"]
            # Without a requested conversion, files of other writers are not commits to this table.
            converted = journal.step(Step.SWAPPED) or journal.step(Step.REVERTING)
            later = converted is not None
            for location in journal.metadata_files(later=later, confirmed=confirmed):
                name = location[len(folder) + 1 :]
                self._move(location, f"{aside}/metadata/{name}")
            remove_empty_folder(self._context.io, folder)
        journal.record(Step.REVERTED)
        journal.discard_copy()

    def _move(self, source: str, target: str) -> None:
        io = self._context.io
        try:
            io.rename(source, target)
        except FileAlreadyExistsError:
            # An object store copies, then deletes: a process killed in between left both.
            if led_out(target.rpartition("/")[0], [target], io.properties) or not have_same_bytes(
                io, source, target
            ):
                raise
            io.delete(source)

    def _remove_emptied(self, name: str, location: str) -> None:
        folder = name.rpartition("/")[0]
        while f"{folder}/".startswith(f"{location}/data/"):
            remove_empty_folder(self._context.io, folder)
            folder = folder.rpartition("/")[0]


def _aside(journal: Journal) -> str:
    """Return the folder that files are moved to."""
    # Whoever may write to the folder of copies need not be the one who may write to this.
    return f"{journal.home}/{FOLDER}/{journal.migration_id}"


def _fact(journal: Journal, name: str) -> Any:
    prepared = journal.step(Step.PREPARED)
    if prepared is None or name not in prepared:
        raise MigrationError(
            f"The journal {journal.location} does not say how far the migration went",
            hint="Look into it; it holds the old table.",
        )
    return prepared[name]


def _changed(table: HiveTable) -> CommitFailedError:
    return CommitFailedError(
        f"{table.full_name} was changed meanwhile", hint="Revert again.", table=table.full_name
    )
