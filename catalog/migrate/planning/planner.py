"""Planner of migrations of one or many tables, which also examines their surroundings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from icecomb.catalog.hive.thrift.entity import HiveDatabase, HiveTable
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.overwritten_entry import (
    DROPPED,
    dropped_commits,
    find_overwritten,
)
from icecomb.catalog.migrate.planning.entry_finding import replication_findings
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan, failed_plan
from icecomb.catalog.migrate.planning.neighbor import Neighbors, neighbors_of
from icecomb.catalog.migrate.planning.obstacle import NOT_IN_FILES, constraint_findings
from icecomb.catalog.migrate.planning.reader_finding import (
    overwrite_findings,
    reader_finding,
    version_findings,
)
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.migrate.planning.view_reference import ViewReferences
from icecomb.catalog.report.finding import Finding, blocker, note, warning
from icecomb.catalog.report.progress import SILENT, THREADS, Progress, each, threads_each
from icecomb.format.errors import (
    CorruptFileError,
    FileIOError,
    IcecombError,
    MetastoreError,
    MigrationError,
    NoSuchFileError,
)
from icecomb.format.spec.metadata import DEFAULT_FORMAT_VERSION

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog

JOBS: Final = 8
"""Number of tables examined at a time."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of planning.

    Attributes:
        choices: Options of the conversion, and the blockers to accept.
        footers: Whether to read file footers.
        sample: Maximum number of files to read of each table; None for all.
        interop: The engines that will use the tables; see `engine_properties`.
        properties: Properties that the tables will have besides those of the Hive tables.
    """

    choices: Choices
    footers: bool = True
    sample: int | None = None
    interop: tuple[str, ...] | None = None
    format_version: int = DEFAULT_FORMAT_VERSION
    properties: Mapping[str, str] = field(default_factory=dict)


class Planner:
    """A planner of migrations of one metastore's tables, which shares answers among them."""

    def __init__(self, catalog: HiveCatalog, options: PlanOptions) -> None:
        self._catalog = catalog
        self._options = options
        self._databases: dict[str, HiveDatabase | None] = {}
        self._neighbors: dict[str, Neighbors] = {}
        self._looking = Lock()
        self._views: ViewReferences | None = None
        self._unread: tuple[Finding, ...] = ()
        try:
            self._views = ViewReferences(catalog.client)
        except UnreachableError:
            raise
        except MetastoreError as error:
            said = f"whether views name it is unknown: {error.message}"
            self._unread = (note("views-not-read", said, "look for its name in views yourself"),)

    def plan(
        self, name: tuple[str, str], progress: Progress, threads: int = THREADS
    ) -> MigrationPlan:
        """Return the plan of one table."""
        options = self._options
        context = MigrationContext(self._catalog, *name, progress)
        table = context.entry.load()
        found = plan_source(
            context.io,
            table,
            context.partitions(table),
            options.choices,
            progress,
            footers=options.footers,
            sample=options.sample,
            threads=threads,
            kept=context.footers(table, None),
            properties=options.properties,
        )
        found = replace(
            found,
            findings=(*_overwritten(context, table, options.choices.accept), *found.findings),
        )
        if any(finding.code in NOT_IN_FILES for finding in found.findings):
            return found
        constraints = constraint_findings(table, context.client.constraints)
        surroundings = self._surroundings(table)
        return replace(found, findings=(*found.findings, *constraints, *surroundings))

    def plans(
        self, names: Sequence[tuple[str, str]], jobs: int, progress: Progress
    ) -> Iterator[MigrationPlan]:
        """Yield the plans of many tables, in their order; failures are plans, too."""
        threads = threads_each(jobs)
        work = partial(self._attempt, threads)
        yield from each(progress, "planning", "tables", names, work, jobs, ahead=2 * jobs)

    def _attempt(self, threads: int, name: tuple[str, str]) -> MigrationPlan:
        try:
            return self.plan(name, SILENT, threads)
        except UnreachableError:
            raise
        except Exception as error:  # noqa: BLE001 - what is wrong with one is not with the others
            return failed_plan(".".join(name), error)

    def _surroundings(self, table: HiveTable) -> Iterable[Finding]:
        options, settings = self._options, self._catalog.properties
        yield from self._write_findings(table)
        yield reader_finding(table, settings, options.interop)
        yield from overwrite_findings(table)
        yield from version_findings(table, settings, options.interop, options.format_version)
        yield from replication_findings(table, self._database(table.database))
        yield from self._views.findings(table) if self._views else self._unread
        try:
            neighbors = self._neighbors_of(table.database)
        except UnreachableError:
            raise
        except MetastoreError as error:
            said = f"whether other tables share its folder is unknown: {error.message}"
            yield note("folders-not-read", said, "look at the locations of tables yourself")
        else:
            yield from neighbors.findings(table, options.choices.accept)

    def _write_findings(self, table: HiveTable) -> Iterator[Finding]:
        """Yield a blocker if the user cannot write to the table's folder, as apply must."""
        location = table.storage.location or ""
        try:
            self._catalog.io.check_writable(location)
        except NoSuchFileError:
            return  # a finding of its own
        except FileIOError as error:
            remedy = f"{error.hint or 'ask the owner of the folder'}; or migrate as another user"
            yield blocker("no-permission", error.message, remedy, (location,))

    def _neighbors_of(self, database: str) -> Neighbors:
        with self._looking:  # fetches very many entries only once
            if database not in self._neighbors:
                self._neighbors[database] = neighbors_of(self._catalog, database)
            return self._neighbors[database]

    def _database(self, name: str) -> HiveDatabase | None:
        if name not in self._databases:
            try:
                self._databases[name] = self._catalog.client.database(name)
            except UnreachableError:
                raise
            except IcecombError:  # a database that may not be read yields no finding
                self._databases[name] = None
        return self._databases[name]


def _overwritten(
    context: MigrationContext, table: HiveTable, accept: Collection[str]
) -> Iterator[Finding]:
    """Yield a blocker if the entry is an old copy of a migrated table, or in the place of one."""
    try:
        journal = context.journal_beside(table)
        if journal is None:
            return
        overwritten = find_overwritten(context.io, table, journal)
        dropped = dropped_commits(context.io, table, journal)
    except UnreachableError:
        raise
    except (CorruptFileError, MetastoreError, MigrationError) as error:
        yield blocker("journal", error.message, error.hint or "")
    except IcecombError:
        return  # an unreadable folder is a finding of its own
    else:
        if overwritten is not None:
            told = overwritten.error
            yield blocker("overwritten-entry", told.message, told.hint or "")
        if dropped is not None:
            kind = warning if DROPPED in accept else blocker
            yield kind(DROPPED, dropped.message, dropped.hint or "")
