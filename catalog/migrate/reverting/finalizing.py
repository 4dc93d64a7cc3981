"""Status of a migration, and its finalization, which gives up the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icecomb.catalog.migrate.journal.context import MigrationContext, being_reverted, moment
from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.journal.late_write import find_late_writes
from icecomb.catalog.migrate.journal.overwritten_entry import find_overwritten
from icecomb.catalog.migrate.reverting.present_state import present_state
from icecomb.format.errors import MigrationError
from icecomb.format.property.table_property import GC_ENABLED
from icecomb.format.spec.metadata_file import read_metadata

if TYPE_CHECKING:
    from icecomb.format.spec.change.update import Changes
    from icecomb.format.spec.metadata import TableMetadata

_UNPURGED = GC_ENABLED.key
_ENDED = {Step.REVERTED.value, Step.REVERTING.value}


def status(context: MigrationContext) -> dict[str, Any]:
    """Return the state and every recorded step of the newest migration."""
    table = context.entry.load()
    journals = context.journals(table)
    facts: dict[str, Any] = {"table": table.full_name, "iceberg": table.is_iceberg}
    if not journals.own:
        other = journals.other
        whose = f", unlike {other.full_name}, which has its folder" if other else ""
        return {**facts, "state": f"never migrated by icecomb{whose}"}
    journal = journals.live or journals.own[-1]
    prepared = journal.step(Step.PREPARED) or {}
    steps = {step.value: moment(done["at-ms"]) for step, done in journal.steps().items()}
    overwritten = find_overwritten(context.io, table, journal)
    if overwritten is not None:
        facts["overwritten-pointer"] = overwritten.pointer
    state = _state(journal, iceberg=table.is_iceberg, overwritten=overwritten is not None)
    if steps.keys().isdisjoint(_ENDED) and table.is_iceberg and prepared:
        present = present_state(context, table, journal)
        facts |= present.to_json()
        state = present.state or state
    return {
        **facts,
        "state": state,
        "journal": journal.location,
        "partitions": journal.partition_count,
        "files": prepared.get("files", 0),
        "rows": prepared.get("rows", 0),
        "choices": journal.choices.to_json(),
        "steps": steps,
    }


def finalize(context: MigrationContext, *, dry_run: bool = False, unverified: bool = False) -> None:
    """Allow maintenance to remove old files, and record that there is no way back.

    Args:
        context: The context of the table.
        dry_run: Whether to only check that it can be done.
        unverified: Whether to finalize even if the two tables were not compared.

    Raises:
        UnverifiedError: If they were not compared, and ``unverified`` is False.
        MigrationError: If there is no finished migration, or it is being reverted, or Hive's
            writers changed its files in a way that is not in the Iceberg table.
    """
    table = context.entry.load()
    found = context.migrated(table)
    if found is None or found[0].step(Step.CLEANED) is None:
        raise MigrationError(
            f"{table.full_name} has no finished migration",
            hint=f"icecomb migrate status {table.full_name}",
            table=table.full_name,
        )
    journal, _ = found
    context.require_metadata(table)
    if journal.step(Step.REVERTING) is not None:
        raise being_reverted(table)
    if not journal.finalized:
        # Maintenance would take files added by Hive's writers for orphans.
        metadata = read_metadata(context.io, table.metadata_location or "")
        if late := find_late_writes(context, journal, table, metadata):
            raise late.error
    if dry_run:
        return
    if not (journal.finalized or unverified) and journal.step(Step.VERIFIED) is None:
        raise UnverifiedError(
            f"The migration of {table.full_name} was not verified, and there is no way back when "
            "it is finalized",
            hint=f"`icecomb migrate verify {table.full_name}` compares them; `--unverified` of "
            "`finalize` (unverified=True) goes without",
            table=table.full_name,
        )
    loaded = context.catalog.load_table((context.database, context.name))
    if loaded.metadata.properties.get(_UNPURGED) == "false":
        with context.noting_unanswered(journal, table):
            loaded.commit(_AllowPurge())
    if not journal.finalized:
        # A concurrent revert checks under the lock, too, so one of both comes first.
        with context.locked(table):
            if journal.step(Step.REVERTING) is not None:
                raise being_reverted(table)
            journal.record(Step.FINALIZED)
        journal.discard_copy()
    context.discard_footers(journal.table.storage.location)


class UnverifiedError(MigrationError):
    """The two tables were not compared, which needs confirmation; nothing was changed."""


class _AllowPurge:
    """The change that removes the property that the migration set."""

    starting_point: None = None

    def apply(self, base: TableMetadata) -> Changes:
        from icecomb.format.spec.change.requirement import AssertTableUUID
        from icecomb.format.spec.change.update import Changes, RemovePropertiesUpdate

        return Changes(
            requirements=(AssertTableUUID(uuid=base.table_uuid),),
            updates=(RemovePropertiesUpdate(removals=(_UNPURGED,)),),
        )

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Do nothing: no file was written."""


def _state(journal: Journal, *, iceberg: bool, overwritten: bool) -> str:
    steps = journal.steps()
    if Step.REVERTED in steps:
        return "reverted" if Step.SWAPPED in steps else "given up before anything was changed"
    if Step.REVERTING in steps:
        return "reverting: run revert again"
    if overwritten:
        then = "finalized" if Step.FINALIZED in steps else "run revert"
        return f"an Iceberg table, overwritten with an old copy of the Hive table's entry: {then}"
    if Step.FINALIZED in steps:
        return "finalized"
    if Step.CLEANED in steps:
        return "verified" if Step.VERIFIED in steps else "migrated, not verified"
    if iceberg:
        return "an Iceberg table, not finished: run apply again"
    return "interrupted before the table was changed: run apply again"
