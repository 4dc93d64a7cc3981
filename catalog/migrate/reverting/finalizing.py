"""Status of a migration, and its finalization, which gives up the way back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from icecomb.catalog.commit.commit import commit
from icecomb.catalog.hive.parameters import keeps_files
from icecomb.catalog.migrate.journal.context import (
    MigrationContext,
    being_reverted,
    is_noted_verified,
    moment,
)
from icecomb.catalog.migrate.journal.file_history import MIGRATED_FROM
from icecomb.catalog.migrate.journal.folder_journals import was_migrated
from icecomb.catalog.migrate.journal.journal import Step
from icecomb.catalog.migrate.journal.late_write import find_late_writes
from icecomb.catalog.migrate.journal.overwritten_entry import find_overwritten
from icecomb.catalog.migrate.journal.vouching import check_not_exchanged, check_vouched
from icecomb.catalog.migrate.reverting.present_state import GONE, present_state
from icecomb.format.errors import IcecombError, MigrationError
from icecomb.format.holding import Holding
from icecomb.format.property.table_property import GC_ENABLED
from icecomb.format.property.way_back import has_way_back
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import read_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.catalog.migrate.journal.folder_journals import FolderJournals
    from icecomb.catalog.migrate.journal.journal import Journal
    from icecomb.format.spec.change.update import Changes, TableUpdate
    from icecomb.format.spec.metadata import TableMetadata

_ENDED = {Step.REVERTED, Step.REVERTING}
BLOCKED: Final = "blocked"
"""The outcome of tables with which something is wrong."""
UNFINISHED: Final = "unfinished"


def status(context: MigrationContext) -> dict[str, Any]:
    """Return the state and every recorded step of the newest migration.

    The outcome is ``none``, ``unfinished``, ``migrated``, ``verified``, ``finalized`` or
    ``reverted``; or ``blocked`` if something is wrong, and the state says what.
    """
    table = context.entry.load()
    journals = context.journals(table)
    facts: dict[str, Any] = {"table": table.full_name, "iceberg": table.is_iceberg}
    if not journals.own:
        outcome, state = _without_journal(context, table, journals)
        return {**facts, "outcome": outcome, "state": state}
    journal = journals.live or journals.own[-1]
    try:
        check_not_exchanged(table, journal)
    except MigrationError as error:
        return {**facts, "outcome": BLOCKED, "state": error.message, "journal": journal.location}
    prepared = journal.step(Step.PREPARED) or {}
    done = journal.steps()
    if not is_noted_verified(journal, table):
        done.pop(Step.VERIFIED, None)
    overwritten = find_overwritten(context.io, table, journal)
    if overwritten is not None:
        facts["overwritten-pointer"] = overwritten.pointer
    outcome, state = _state(done, iceberg=table.is_iceberg, overwritten=overwritten is not None)
    if journal.is_open and journal.says_finalized and done.keys().isdisjoint(_ENDED):
        state += "; its journal says that it was finalized, its entry does not (gc.enabled)"
    if done.keys().isdisjoint(_ENDED) and table.is_iceberg and prepared:
        present = present_state(context, table, journal)
        facts |= present.to_json()
        if said := present.state:
            outcome, state = BLOCKED, said
        elif present.lost_way:
            outcome, state = BLOCKED, f"{state}; {present.lost_way}"
    return {
        **facts,
        "outcome": outcome,
        "state": state,
        "journal": journal.location,
        "partitions": journal.partition_count,
        "files": prepared.get("files", 0),
        "rows": prepared.get("rows", 0),
        "choices": journal.choices.to_json(),
        "steps": {step.value: moment(one["at-ms"]) for step, one in done.items()},
    }


def _without_journal(
    context: MigrationContext, table: HiveTable, journals: FolderJournals
) -> tuple[str, str]:
    """Return outcome and state of a table without a journal."""
    if was_migrated(table) and table.metadata_location:
        with suppress(IcecombError):  # what is wrong with the file is not of the migration
            metadata = read_metadata(context.io, table.metadata_location)
            ours = any(MIGRATED_FROM in (one.summary or {}) for one in metadata.snapshots)
            if ours and has_way_back(metadata.properties):
                then = shell_command("migrate", "finalize", table.full_name, "--unverified")
                return BLOCKED, f"migrated; {GONE}: its journal is gone: {then}"
    other = journals.other
    whose = f", unlike {other.full_name}, which has its folder" if other else ""
    return "none", f"never migrated by icecomb{whose}"


def finalize(context: MigrationContext, *, dry_run: bool = False, unverified: bool = False) -> None:
    """Allow maintenance to remove old files, and record that the way back is closed.

    Args:
        dry_run: Whether to only check that it can be done.
        unverified: Whether to finalize even if the two tables were not compared.
    """
    table = context.entry.load()
    found = context.migrated(table)
    if found is None and was_migrated_without_journal(context, table):
        if not dry_run:
            _check_verified(table, verified=unverified)
            _allow_deletion(context)
        return
    if found is None or found[0].step(Step.CLEANED) is None:
        raise MigrationError(
            f"{table.full_name} has no finished migration",
            hint=shell_command("migrate", "status", table.full_name),
            table=table.full_name,
        )
    journal, _ = found
    check_vouched(context, table, journal)
    context.require_metadata(table)
    if journal.step(Step.REVERTING) is not None:
        raise being_reverted(table)
    metadata = read_metadata(context.io, table.metadata_location or "")
    # Whoever may write to the table's folder could write that step.
    finalized = journal.finalized and GC_ENABLED.of(metadata.properties)
    # Maintenance would take files added by Hive's writers for orphans.
    if not finalized and (late := find_late_writes(context, journal, table, metadata)):
        raise late.error
    if dry_run:
        return
    if not (finalized or unverified):
        _check_verified(table, verified=is_noted_verified(journal, table))
    with context.noting_unanswered(journal, table):
        _allow_deletion(context, journal)
    if not finalized:
        # A concurrent revert checks under the lock, too, so one of both comes first.
        with Holding() as held, held:
            context.locked(held, table)
            if journal.step(Step.REVERTING) is not None:
                raise being_reverted(table)
            journal.record(Step.FINALIZED)
        journal.discard_copy()


class UnverifiedError(MigrationError):
    """The two tables were not compared, which needs confirmation; nothing was changed."""


def was_migrated_without_journal(context: MigrationContext, table: HiveTable) -> bool:
    """Return whether an Iceberg table is still kept for a way back that no journal knows.

    Its journal was removed, or is that of another metastore; or Iceberg Java migrated it.
    """
    return was_migrated(table) and not context.journals(table).own


def _check_verified(table: HiveTable, *, verified: bool) -> None:
    if not verified:
        raise UnverifiedError(
            f"The migration of {table.full_name} was not verified, by what the metastore shows, "
            "and there is no way back when it is finalized",
            hint=f"`{shell_command('migrate', 'verify', table.full_name)}` compares them; "
            "`--unverified` of `finalize` (unverified=True) goes without.",
            table=table.full_name,
        )


def _allow_deletion(context: MigrationContext, journal: Journal | None = None) -> None:
    """Allow maintenance to delete the files that were Hive's, if it is not yet allowed."""
    pointer = context.catalog.pointer((context.database, context.name))
    pointer.ends_migration = True
    version = pointer.load()
    # PyIceberg changes the property, and not what the entry says of it
    properties = version.metadata.properties
    is_said = GC_ENABLED.key in properties and keeps_files(context.entry.load())
    if not GC_ENABLED.of(properties) or is_said:
        partitions = () if journal is None else journal.partitions()
        folders = (one.storage.location for one in partitions)
        change = _AllowPurge(folder for folder in folders if folder)
        commit(pointer, context.io, version, change)


class _AllowPurge:
    """The change that removes the property that the migration set.

    Args:
        folders: The folders of the Hive table's partitions, whose files are now the table's own.
    """

    starting_point: None = None
    writes_files: ClassVar[bool] = False

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = [*folders]

    def apply(self, base: TableMetadata) -> Changes:
        from icecomb.format.spec.change.requirement import AssertTableUUID
        from icecomb.format.spec.change.update import (
            Changes,
            RemovePropertiesUpdate,
            SetPropertiesUpdate,
        )
        from icecomb.format.spec.own_folders import former_folders

        updates: list[TableUpdate] = [RemovePropertiesUpdate((GC_ENABLED.key,))]
        if noted := former_folders(base, self._folders):
            updates.append(SetPropertiesUpdate(noted))
        return Changes((AssertTableUUID(base.table_uuid),), tuple(updates))

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Do nothing: no file was written."""


def _state(steps: Collection[Step], *, iceberg: bool, overwritten: bool) -> tuple[str, str]:
    if Step.REVERTED in steps:
        if Step.SWAPPED in steps:
            return "reverted", "reverted"
        return "none", "given up before anything was changed"
    if Step.REVERTING in steps:
        return UNFINISHED, "reverting: run revert again"
    if overwritten:
        then = "finalized" if Step.FINALIZED in steps else "run revert"
        said = "an Iceberg table, overwritten with an old copy of the Hive table's entry"
        return BLOCKED, f"{said}: {then}"
    if Step.FINALIZED in steps:
        return "finalized", "finalized"
    if Step.CLEANED in steps:
        verified = Step.VERIFIED in steps
        return ("verified", "verified") if verified else ("migrated", "migrated, not verified")
    if iceberg:
        return UNFINISHED, "an Iceberg table, not finished: run apply again"
    return UNFINISHED, "interrupted before the table was changed: run apply again"
