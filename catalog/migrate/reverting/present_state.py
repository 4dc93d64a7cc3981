"""The present state of a migrated table, from its entry, folders and journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.journal.late_write import LateWrites, find_late_writes
from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import IcecombError, NoSuchFileError
from icecomb.format.spec.metadata_file import read_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.catalog.migrate.journal.context import MigrationContext

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class PresentState:
    """The present state of a migration that was not reverted.

    Attributes:
        table: The table as "db.table".
        pointer: The metadata file that its entry points at.
        finished: Whether apply has finished.
        metadata_gone: Whether the metadata file is gone: its folder was emptied.
        late: Changes of its files by Hive's writers; None if unknown.
        unknown: Why they are unknown.
    """

    table: str
    pointer: str
    finished: bool
    metadata_gone: bool = False
    late: LateWrites | None = None
    unknown: str = ""

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
        return facts

    def findings(self) -> Iterator[Finding]:
        """Yield the problems as findings, each with its remedy."""
        revert = f"icecomb migrate revert {self.table} tells what reverting loses"
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
        if not self.finished:
            yield Finding(
                Severity.PROBLEM,
                "migration",
                "it is not finished",
                f"icecomb migrate apply {self.table} resumes; {revert}",
            )


def present_state(context: MigrationContext, table: HiveTable, journal: Journal) -> PresentState:
    """Examine a migrated table: its metadata file, and all folders of the Hive table.

    Args:
        context: The context of the table.
        table: The table's entry.
        journal: The migration's journal.
    """
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
    return PresentState(name, pointer, finished, late=late)


def examine_migration(catalog: HiveCatalog, entry: HiveTable) -> Iterator[Finding]:
    """Yield the problems of a table's migration, each with its remedy."""
    from icecomb.catalog.migrate.journal.context import MigrationContext
    from icecomb.catalog.report.progress import SILENT

    if entry.parameters.get("migrated") != "true" or not entry.storage.location:
        return
    context = MigrationContext(catalog, entry.database, entry.name, SILENT)
    try:
        found = context.migrated(entry)
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "migration", error.message, error.hint)
        return
    if found is not None:
        yield from present_state(context, entry, found[0]).findings()
