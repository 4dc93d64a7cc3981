"""The present state of a migrated table, from its entry, folders and journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.journal.late_write import LateWrites, find_late_writes
from icecomb.catalog.migrate.reverting.reversal import Reversal
from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import IcecombError, MigrationError, NoSuchFileError
from icecomb.format.property.table_property import GC_ENABLED
from icecomb.format.property.way_back import MIGRATED, has_way_back
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import read_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.catalog.migrate.journal.context import MigrationContext
    from icecomb.format.spec.metadata import TableMetadata

_SHOWN: Final = 20
GONE: Final = "a revert is not possible any more"


@dataclass(frozen=True, slots=True)
class PresentState:
    """The present state of a migration that was not reverted.

    Attributes:
        pointer: The metadata file that its entry points at.
        finished: Whether apply has finished.
        metadata_gone: Whether the metadata file is gone: its folder was emptied.
        late: Changes of its files by Hive's writers; None if unknown.
        unknown: Why they are unknown.
        lost_way: Why a revert is not possible any more, or would not bring all rows back; empty if
            it would, and if the migration was finalized.
    """

    table: str
    pointer: str
    finished: bool
    metadata_gone: bool = False
    late: LateWrites | None = None
    unknown: str = ""
    lost_way: str = ""

    @property
    def state(self) -> str | None:
        """The state in a few words; None if nothing is wrong."""
        if self.metadata_gone:
            return "an Iceberg table whose metadata is gone: run revert"
        if self.late and self.late.finalized:
            return f"finalized, {len(self.late)} files differ since"
        if self.late:
            lost = self.late.replaced or self.late.gone
            then = "run revert" if lost else "run apply again"
            return f"an Iceberg table, {len(self.late)} files differ since: {then}"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the problems as JSON values."""
        facts: dict[str, Any] = {}
        if self.metadata_gone:
            facts["missing-metadata"] = self.pointer
        if self.late:
            facts["late-writes"] = list(islice(self.late.descriptions(), _SHOWN))
            facts["late-write-count"] = len(self.late)
        if self.unknown:
            facts["late-writes-unknown"] = self.unknown
        if self.lost_way:
            facts["way-back"] = self.lost_way
        return facts

    def findings(self) -> Iterator[Finding]:
        """Yield the problems as findings, each with its remedy."""
        revert = f"{shell_command('migrate', 'revert', self.table)} tells what reverting loses"
        if self.metadata_gone:
            yield Finding(
                Severity.PROBLEM,
                "migration",
                f"{self.pointer} is gone, as after an overwrite of Hive that was under way when "
                "the table was migrated; the journal has the Hive table",
                revert,
            )
            return
        if self.late:
            yield Finding(
                Severity.PROBLEM,
                "migration",
                f"{self.late.error.message}",
                self.late.error.hint,
            )
        elif self.unknown:
            yield Finding(
                Severity.WARNING,
                "migration",
                f"whether Hive wrote to its files since is unknown: {self.unknown}",
                "make its folders readable",
            )
        if self.lost_way:
            yield Finding(
                Severity.WARNING,
                "migration",
                self.lost_way,
                f"{shell_command('migrate', 'finalize', self.table)} makes it a table of its own, "
                "without a way back",
            )
        if not self.finished:
            yield Finding(
                Severity.PROBLEM,
                "migration",
                "it is not finished",
                f"{shell_command('migrate', 'apply', self.table)} resumes; {revert}",
            )


def present_state(context: MigrationContext, table: HiveTable, journal: Journal) -> PresentState:
    """Examine a migrated table: its metadata file, and all folders of the Hive table."""
    pointer = table.metadata_location or ""
    name, finished = table.full_name, journal.step(Step.CLEANED) is not None
    try:
        metadata = read_metadata(context.io, pointer)
        late = find_late_writes(context, journal, table, metadata)
    except NoSuchFileError as error:
        # What is to be done where nothing goes back any more does not depend on the migration.
        gone = not journal.finalized and not context.has_metadata(table)
        unknown = "" if gone else error.message
        return PresentState(name, pointer, finished, metadata_gone=gone, unknown=unknown)
    except IcecombError as error:
        return PresentState(name, pointer, finished, unknown=error.message)
    lost = "" if journal.finalized else _lost_way(context, table, journal, metadata, late)
    return PresentState(name, pointer, finished, late=late, lost_way=lost)


def _lost_way(
    context: MigrationContext,
    table: HiveTable,
    journal: Journal,
    metadata: TableMetadata,
    late: LateWrites,
) -> str:
    """Return why the way back is gone, or in danger; empty if it is whole."""
    snapshot_id = (journal.step(Step.PREPARED) or {}).get("snapshot-id")
    if snapshot_id is not None and not metadata.has_snapshot(snapshot_id):
        # Not every engine looks at gc.enabled, and this snapshot lists the Hive table's files.
        try:
            Reversal(context).plan(table, journal)
        except MigrationError as error:
            return f"{GONE}: {error.message}"
    if late.lost:
        return (
            f"a revert would not bring all rows back: {len(late.lost)} files of the Hive table are "
            f"gone, such as {late.lost[0]}"
        )
    if not has_way_back({MIGRATED: "true", **metadata.properties}):
        return (
            f"a revert may soon be impossible: {GC_ENABLED.key} is true, and an expiration deletes "
            "files of the Hive table; set it to false to keep the way back"
        )
    return ""


def examine_migration(catalog: HiveCatalog, entry: HiveTable) -> Iterator[Finding]:
    """Yield the problems of a table's migration, each with its remedy."""
    from icecomb.catalog.migrate.journal.context import MigrationContext
    from icecomb.catalog.report.progress import SILENT

    if entry.parameters.get(MIGRATED) != "true" or not entry.storage.location:
        return
    context = MigrationContext(catalog, entry.database, entry.name, SILENT)
    try:
        found = context.migrated(entry)
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "migration", error.message, error.hint)
        return
    if found is not None:
        yield from present_state(context, entry, found[0]).findings()
