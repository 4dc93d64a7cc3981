"""Application of a migration: record, write metadata, convert the entry, remove Hive's parts.

Running apply again resumes after a crash at any moment: before the conversion it starts over
(nothing but metadata files was written, and they are removed),
after it only the rest is done. It never starts over after the conversion: only the journal lists
the partitions that were dropped.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from icecomb.catalog.commit.commit import check_format_version
from icecomb.catalog.hive.engine import engine_names, engine_properties
from icecomb.catalog.hive.parameters import pointed
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.applying.hive_parts import HiveParts
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import (
    MigrationContext,
    being_reverted,
    remove_empty_folder,
)
from icecomb.catalog.migrate.journal.file_history import MIGRATED_FROM
from icecomb.catalog.migrate.journal.journal import (
    Journal,
    PartitionPages,
    Step,
    keep_files,
    start_journal,
)
from icecomb.catalog.migrate.journal.overwritten_entry import (
    DROPPED,
    dropped_commits,
    find_overwritten,
)
from icecomb.catalog.migrate.journal.vouching import check_vouched
from icecomb.catalog.migrate.journal.writer_in_flight import WAIT_S, WritersInFlight
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
from icecomb.catalog.migrate.planning.neighbor import RECENT
from icecomb.catalog.migrate.planning.obstacle import constraint_findings
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.migrate.source.source import iceberg_properties, mapping_of
from icecomb.catalog.migrate.source.source_files import folder_listings
from icecomb.catalog.report.finding import Finding
from icecomb.catalog.report.progress import THREADS
from icecomb.catalog.table.takeover import BlockedError
from icecomb.format.argument import property_texts
from icecomb.format.arrow.batch_stream import thread_pool
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    LockTimeoutError,
    MetastoreError,
    MigrationError,
    ValidationError,
)
from icecomb.format.holding import Holding
from icecomb.format.property.table_property import (
    GC_ENABLED,
    INTEROP,
    MIGRATION_DIGEST,
    NAME_MAPPING,
    check_no_entry_properties,
)
from icecomb.format.property.way_back import MIGRATED
from icecomb.format.rows.values.unread_field import with_unread
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata import TableMetadata, new_format_version
from icecomb.format.spec.name_mapping import NameMapping


class AlreadyIcebergError(MigrationError):
    """The table was created as an Iceberg table, or migrated by another tool."""


class MigrationBlockedError(BlockedError, MigrationError):
    """A migration's plan has blockers; nothing was changed. ``plan`` holds all of them."""

    _REFUSED, _LISTING = "migrated", ("migrate", "plan")


@dataclass(frozen=True, slots=True)
class Migrated:
    """The result of apply.

    Attributes:
        metadata_location: The first metadata file of the Iceberg table.
        journal: The folder from which it can be reverted.
        already: Whether everything was done before, and nothing was left to do.
    """

    table: str
    metadata_location: str
    snapshot_id: int | None
    partitions: int
    files: int
    rows: int
    journal: str
    already: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {name.replace("_", "-"): value for name, value in asdict(self).items()}


class Takeover:
    """The conversion of one Hive table to an Iceberg table.

    Args:
        properties: Properties of the Iceberg table, added to those of the Hive table.
        interop: The engines that will use the table; see `engine_properties`.
        wait_s: Seconds to wait for active writers of Hive and Spark.
    """

    def __init__(
        self,
        context: MigrationContext,
        properties: Mapping[str, str] | None = None,
        threads: int = THREADS,
        interop: str | Iterable[str] | None = None,
        wait_s: float = WAIT_S,
    ) -> None:
        self._context = context
        self._properties = given_properties(properties)
        self._threads = threads
        self._wait_s = wait_s
        self._interop = engine_names(interop)

    def run(self, choices: Choices) -> Migrated:
        """Convert the table, or resume after a crash.

        `CommitStateUnknownError` means that it is unknown whether the entry was converted, or
        converted and cleaned up; nothing was deleted.
        """
        for attempt in range(1, ROUNDS + 1):
            begun = time.monotonic()
            table = self._context.entry.load()
            journals = self._context.journals(table)
            journal = journals.live
            if journal is not None and journal.step(Step.REVERTING) is not None:
                raise being_reverted(table)
            if table.is_iceberg:
                return self._finish(table)
            choices.check_version(new_format_version(self._properties))
            journals.check_sole_migration()
            if journal is not None and DROPPED not in choices.accept:
                dropped = dropped_commits(self._context.io, table, journal)
                if dropped is not None:
                    raise dropped
            if journal is not None and not self._abandon(journal):
                continue
            with PartitionPages(self._context.client.partitions, table) as partitions:
                plan = self._plan(table, partitions, choices)
                if plan.blockers:
                    raise MigrationBlockedError(plan)
                self._wanted_properties(table)
                # A mode that the metastore does not allow is found before anything is written.
                self._context.entry.change.is_locked(table.parameters)
                writers = WritersInFlight(
                    self._context, table, partitions.kept, self._wait_s, self._threads
                )
                writers.wait("nothing was changed", locks=False)
                try:
                    return self._take_over(table, plan, partitions, choices)
                except LockTimeoutError:
                    raise
                except CommitFailedError:
                    self._context.progress.say(
                        f"{table.full_name} was changed meanwhile: starting over"
                    )
            # Two concurrent runs would each take the other for a crashed one, in every round.
            if attempt < ROUNDS:
                time.sleep(random.uniform(0, time.monotonic() - begun))  # noqa: S311 - tells two apart
        raise keeps_changing(self._context)

    def _plan(
        self, table: HiveTable, partitions: PartitionPages, choices: Choices
    ) -> MigrationPlan:
        plan = plan_source(
            self._context.io,
            table,
            partitions.read(),
            choices,
            self._context.progress,
            threads=self._threads,
            properties=self._properties,
        )
        constraints = constraint_findings(table, self._context.client.constraints)
        same = self._same_folder(table, choices)
        return replace(plan, findings=(*plan.findings, *constraints, *same))

    def _same_folder(self, table: HiveTable, choices: Choices) -> list[Finding]:
        try:
            return RECENT.of_same_folder(self._context.catalog, table, choices.accept)
        except UnreachableError:
            raise
        except MetastoreError as error:
            self._context.progress.say(
                f"{table.full_name}: whether other tables have its folder is unknown: "
                f"{error.message}"
            )
            return []

    def _take_over(
        self,
        table: HiveTable,
        plan: MigrationPlan,
        partitions: PartitionPages,
        choices: Choices,
    ) -> Migrated:
        journal = start_journal(self._context.io, plan.location, table, partitions.kept(), choices)
        self._check_sole_migration(table, journal)
        keep_files(journal, plan.files.statuses())
        try:
            self._write_and_convert(table, plan, partitions, journal)
        except CommitStateUnknownError:
            raise
        except IcecombError:
            # Left behind, metadata files would disturb readers of an unpartitioned table.
            with suppress(IcecombError):
                self._abandon(journal, refused=True)
            raise
        return _migrated(plan.table, journal)

    def _check_sole_migration(self, table: HiveTable, journal: Journal) -> None:
        """Check that no other entry with this folder is being migrated.

        Of two that begin at once, at least one finds the other's journal: both check after
        writing their own, and before anything else is written.
        """
        try:
            self._context.journals(table).check_sole_migration()
        except IcecombError:
            with suppress(IcecombError):
                journal.record(Step.REVERTED, abandoned=True)
            journal.discard_copy()
            raise

    def _write_and_convert(
        self,
        table: HiveTable,
        plan: MigrationPlan,
        partitions: PartitionPages,
        journal: Journal,
    ) -> None:
        folder = f"{plan.location.rstrip('/')}/metadata"
        existing = [status.location for status in self._context.io.list(folder)]
        unique = str(uuid.uuid4())
        journal.record(Step.WRITING, folder=folder, existing=existing, unique=unique)
        metadata, location = self._write_metadata(table, plan, unique)
        written = set(journal.metadata_files())
        facts = {**_facts(metadata, plan), "files-kept": True}
        journal.record(Step.PREPARED, **{"metadata-location": location}, **facts)
        self._parts(journal).note_grants()
        digest = journal.seal()
        with Holding() as held, held:
            lock = self._context.locked(held, table)
            self._check_unchanged(table, plan, partitions)
            self._check_not_abandoned(table, journal, written)
            self._check_no_writer(table, partitions)
            self._context.require_lock(lock)
            kept = replace(table, parameters=_kept_parameters(table.parameters))
            converted = pointed(kept, None, metadata, location, self._context.settings)
            journal.record(Step.SWAPPING)
            parameters = {**converted.parameters, "EXTERNAL": "TRUE", MIGRATION_DIGEST: digest}
            self._context.entry.convert_to_iceberg(table, parameters, lock)
            journal.record(Step.SWAPPED)
        self._parts(journal).take_away()

    def _parts(self, journal: Journal) -> HiveParts:
        return HiveParts(self._context, journal, self._threads, self._wait_s)

    def _wanted_properties(self, table: HiveTable) -> dict[str, str]:
        given = {**iceberg_properties(table), **self._properties}
        return {**given, **engine_properties(self._interop, given, self._context.settings)}

    def _write_metadata(
        self, table: HiveTable, plan: MigrationPlan, unique: str
    ) -> tuple[TableMetadata, str]:
        from icecomb.format.operation.append import FastAppend
        from icecomb.format.spec.change.update import update_table_metadata
        from icecomb.format.spec.metadata_file import new_metadata_location, write_metadata

        mapping, last_column_id = file_mapping(plan)
        # The way back needs the old files: they must not be deleted before `migrate finalize`.
        properties = {**self._wanted_properties(table), MIGRATED: "true"}
        base = plan.definition(properties, mapping, last_column_id).metadata(plan.location)
        check_format_version(plan.table, base, self._context.settings)
        append = FastAppend(self._context.io, {MIGRATED_FROM: f"hive:{plan.table}"})
        append.commit_uuid = unique
        append.append_encoded_files(plan.encoded)
        metadata = update_table_metadata(base, append.apply(base).updates)
        location = new_metadata_location(metadata, None, unique)
        write_metadata(self._context.io, metadata, location)
        return metadata, location

    def _check_unchanged(
        self, table: HiveTable, plan: MigrationPlan, partitions: PartitionPages
    ) -> None:
        """Check again, under the lock, that table, partitions and files are unchanged."""
        if not is_unchanged(self._context, table, plan, partitions, self._threads):
            raise CommitFailedError(
                f"{table.full_name} was changed while it was read",
                hint="Stop its writers, then apply again.",
                table=table.full_name,
            )

    def _check_no_writer(self, table: HiveTable, partitions: PartitionPages) -> None:
        """Check that no overwrite is active, which would empty the table's folder."""
        writers = WritersInFlight(self._context, table, partitions.kept)
        if folder := writers.in_table_folder():
            raise CommitFailedError(
                f"{table.full_name} is being written to: {folder}",
                hint="Stop its writers, then apply again.",
                table=table.full_name,
            )

    def _check_not_abandoned(self, table: HiveTable, journal: Journal, written: set[str]) -> None:
        """Check that no other apply took this one for a crashed one, and removed its files."""
        if journal.reverted or not written.issubset(journal.metadata_files()):
            raise CommitFailedError(
                f"{table.full_name} is being migrated by somebody else, too",
                hint=f"{shell_command('migrate', 'status', table.full_name)} shows how far it is.",
                table=table.full_name,
            )

    def _abandon(self, journal: Journal, *, refused: bool = False) -> bool:
        """Remove the metadata files of an attempt; return False if it must be examined again.

        Args:
            refused: Whether no request of the attempt can convert the entry any more.
        """
        # Under the lock: a run about to point the entry at these files has checked for them.
        with Holding() as held, held:
            lock = self._context.locked(held, self._context.entry.load())
            now = self._context.entry.load()
            if overwritten := find_overwritten(self._context.io, now, journal):
                raise overwritten.error
            prepared = journal.step(Step.PREPARED)
            if now.is_iceberg and prepared and now.parameters.get("uuid") == prepared["uuid"]:
                return False
            writing = journal.step(Step.WRITING)
            # If a table was dropped, the metadata it once pointed at is all that is left of it.
            unused = not now.is_iceberg and journal.step(Step.SWAPPED) is None
            # Another run that gave this attempt up may have looked before its files were written.
            if writing is not None and unused and (refused or not journal.reverted):
                if not refused and not self._context.fence_conversion(journal, now, lock):
                    return False
                self._context.io.delete(journal.metadata_files())
                remove_empty_folder(self._context.io, writing["folder"])
            if not journal.reverted:
                journal.record(Step.REVERTED, abandoned=True)
                journal.discard_copy()
        return True

    def _finish(self, table: HiveTable) -> Migrated:
        found = self._context.migrated(table)
        if found is None:
            raise AlreadyIcebergError(
                f"{table.full_name} is an Iceberg table already, and not by icecomb's migration",
                hint="Nothing to do.",
                table=table.full_name,
            )
        journal, _ = found
        check_vouched(self._context, table, journal)
        self._context.require_metadata(table)
        if journal.step(Step.SWAPPED) is None:
            journal.record(Step.SWAPPED)
        already = journal.step(Step.CLEANED) is not None
        if not already:
            # An unanswered request of the previous run could undo what is done now.
            self._context.fence(journal, table)
            self._parts(journal).take_away()
        elif not journal.finalized:
            already = not self._parts(journal).take_in()
        return replace(_migrated(table.full_name, journal), already=already)


def file_mapping(plan: MigrationPlan) -> tuple[NameMapping, int]:
    """Return the name mapping for a plan's files, and the highest id of table and files."""
    mapping = mapping_of(plan.schema, plan.spellings)
    return with_unread(mapping, plan.unread, plan.schema.highest_field_id)


def given_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Return the checked properties that a user gives to a migrated table."""
    given = property_texts("property", properties)
    check_no_entry_properties(given)
    if INTEROP.key in given:
        raise ValidationError(
            f"Property {INTEROP} is set by the migration itself",
            hint="Leave it out; interop of Python's apply, or `icecomb migrate apply --interop`, "
            "names the engines.",
        )
    if taken := sorted(given.keys() & {NAME_MAPPING.key, MIGRATED, "snapshot", GC_ENABLED.key}):
        raise ValidationError(
            f"Property {taken[0]} is set by the migration itself",
            hint="Leave it out; set it afterwards if you know that it must differ.",
        )
    return given


def _kept_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in parameters.items()
        if not key.startswith("spark.sql.") and key != "COLUMN_STATS_ACCURATE"
    }


def _facts(metadata: TableMetadata, plan: MigrationPlan) -> dict[str, Any]:
    return {
        "uuid": str(metadata.table_uuid),
        "snapshot-id": metadata.current_snapshot_id,
        "partitions": plan.partitions,
        "files": len(plan.files),
        "rows": plan.rows or 0,
    }


def _migrated(table: str, journal: Journal) -> Migrated:
    facts = journal.step(Step.PREPARED) or {}
    return Migrated(
        table,
        facts["metadata-location"],
        facts.get("snapshot-id"),
        facts["partitions"],
        facts["files"],
        facts["rows"],
        journal.location,
    )


ROUNDS: Final = 3
"""How often a table is planned while writers keep changing it."""


def is_unchanged(
    context: MigrationContext,
    table: HiveTable,
    plan: MigrationPlan,
    partitions: PartitionPages,
    threads: int,
) -> bool:
    """Return whether table, partitions and files are unchanged since they were planned."""
    if context.entry.load() != table:
        return False
    states = plan.folder_states
    if states is None:
        return partitions.is_current()
    # Others wait for the lock, so storage is listed while the metastore answers. The metastore's
    # calls stay in this thread, which is pinned to the server that granted the lock.
    listed = folder_listings(context.io, states.folders, context.progress, threads)
    with thread_pool(1) as other:
        same = other.submit(states.match, listed)
        return partitions.is_current() and same.result()


def keeps_changing(context: MigrationContext) -> MigrationError:
    """Return the error after the last round."""
    name = f"{context.database}.{context.name}"
    return MigrationError(
        f"{name} changed during each of {ROUNDS} attempts",
        hint="Stop its writers, then try again.",
        table=name,
    )
