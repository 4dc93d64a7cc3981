"""In-place migration of Hive tables to Iceberg tables, comparison, and the way back.

    from icecomb.catalog import load_catalog, migrate

    lake = load_catalog("prod", uri="thrift://metastore:9083")
    migrate.plan(lake, "sales.orders")        # every blocker at once; nothing changes
    migrate.plan_many(lake, ["sales.*"])      # the same for many tables
    migrate.apply(lake, "sales.orders")       # no data file is moved, rewritten or renamed
    migrate.verify(lake, "sales.orders")      # value by value
    migrate.revert(lake, "sales.orders")      # what reverting would lose; dry_run=False reverts
    migrate.finalize(lake, "sales.orders")    # gives up the way back: old files may be removed

A journal beside the table (see `icecomb.catalog.migrate.journal.journal`) lets every step resume
after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.report.progress import SILENT, THREADS, Progress
from icecomb.format.argument import check_flags, checked_int

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.migrate.applying.migration import Migrated
    from icecomb.catalog.migrate.applying.snapshotting import Snapshotted
    from icecomb.catalog.migrate.journal.context import MigrationContext
    from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
    from icecomb.catalog.migrate.reverting.reversal import RevertPlan
    from icecomb.catalog.migrate.verifying.comparison import Comparison

__all__ = [
    "Choices",
    "apply",
    "finalize",
    "plan",
    "plan_many",
    "revert",
    "snapshot",
    "status",
    "verify",
]

_DEFAULTS = Choices()


def plan(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    choices: Choices = _DEFAULTS,
    *,
    footers: bool = True,
    sample: int | None = None,
    interop: str | Iterable[str] | None = None,
    properties: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
) -> MigrationPlan:
    """Return what migrating a table would do, and everything that prevents it; change nothing.

    Args:
        catalog: The catalog that holds the table.
        identifier: The table, "db.table".
        choices: Options of the conversion, and the blockers to accept.
        footers: Whether to read file footers, not only the metastore and the folders.
        sample: Maximum number of files to read, evenly spaced; default all.
        interop: See `apply`; the finding ``readers`` tells the consequences.
        properties: See `apply`; the finding ``format-version`` tells the consequences of one.
        progress: Reporter of examined partitions and files.

    Raises:
        NoSuchTableError: If there is no such table.
        ConfigurationError, ValidationError: If ``interop`` or a property is invalid; see `apply`.
        UnsupportedError: If the properties ask for an unsupported format version.
    """
    from icecomb.catalog.hive.catalog import on_metastore
    from icecomb.catalog.hive.engine import engine_names
    from icecomb.catalog.identifier import database_and_table
    from icecomb.catalog.migrate.applying.migration import given_properties
    from icecomb.catalog.migrate.planning.planner import Planner, PlanOptions
    from icecomb.format.spec.metadata import new_format_version

    name = database_and_table(identifier)
    given = given_properties(properties)
    version = new_format_version(given)
    choices.check_version(version)
    engines = engine_names(interop)
    options = PlanOptions(choices, footers, _sample(sample), engines, version, given)
    return Planner(on_metastore(catalog), options).plan(name, progress)


def plan_many(
    catalog: Catalog,
    names: Iterable[str | tuple[str, ...]],
    choices: Choices = _DEFAULTS,
    *,
    footers: bool = True,
    sample: int | None = None,
    jobs: int = 8,
    interop: str | Iterable[str] | None = None,
    properties: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
) -> Iterator[MigrationPlan]:
    """Yield the plans of many tables, several planned at a time, in the order of the names.

    A table that cannot be examined (it is gone, or broken, or may not be read) does not end the
    run: its plan has the verdict ``failed``, and one blocker that says why.

    Args:
        catalog: The catalog that holds the tables.
        names: Each "db.table"; or "db.pattern", where * stands for any characters, "db" or "*",
            which select Hive tables: neither views nor Iceberg tables.
        choices: Options of the conversion, and the blockers to accept.
        footers: Whether to read file footers, not only the metastore and the folders.
        sample: Maximum number of files to read of each table, evenly spaced; default all.
        jobs: Number of tables examined at once; default 8.
        interop: See `apply`; the finding ``readers`` tells the consequences.
        properties: See `apply`; the finding ``format-version`` tells the consequences of one.
        progress: Reporter of each table.

    Raises:
        ConfigurationError: If there is no such engine.
        ValidationError: If a property is invalid; see `apply`.
        UnsupportedError: If the properties ask for an unsupported format version.
        NoSuchNamespaceError, NoSuchTableError: If a pattern matches nothing; before the first plan.
    """
    from icecomb.catalog.hive.catalog import on_metastore
    from icecomb.catalog.hive.engine import engine_names
    from icecomb.catalog.migrate.applying.migration import given_properties
    from icecomb.catalog.migrate.planning.planner import Planner, PlanOptions
    from icecomb.catalog.migrate.selection import is_hive_table, select
    from icecomb.format.spec.metadata import new_format_version

    metastore, jobs = on_metastore(catalog), checked_int("jobs", jobs, 1)
    tables = select(metastore.client, names, is_hive_table).tables
    given = given_properties(properties)
    version = new_format_version(given)
    choices.check_version(version)
    engines = engine_names(interop)
    options = PlanOptions(choices, footers, _sample(sample), engines, version, given)
    return Planner(metastore, options).plans(tables, jobs, progress)


def apply(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    choices: Choices = _DEFAULTS,
    *,
    properties: Mapping[str, str] | None = None,
    interop: str | Iterable[str] | None = None,
    parallelism: int = THREADS,
    wait: int | None = None,
    trust_journal: bool = False,
    progress: Progress = SILENT,
) -> Migrated:
    """Convert a Hive table to an Iceberg table in place, or resume after a crash.

    Args:
        catalog: The catalog that holds the table.
        identifier: The table, "db.table".
        choices: Options of the conversion, and the blockers to accept.
        properties: Properties of the Iceberg table, added to those of the Hive table.
        interop: The engines that will use the table by its name: "hive", "spark", "trino" or
            "impala"; default all, but not "hive" and "impala" where table or catalog say
            ``engine.hive.enabled=false``. The table gets what they need, and their names are kept
            in its property ``icecomb.interop``.
        parallelism: Number of folders or footers read at once.
        wait: Seconds to wait for active writers of Hive and Spark, before the conversion and after
            it; default 600.
        trust_journal: See `revert`.
        progress: Reporter of partitions and files, and of such writers.

    Raises:
        MigrationBlockedError: If the plan has blockers; nothing was changed.
        MigrationError: If it is an Iceberg table of other origin, or it kept changing, or writers
            did not end in time, or replaced files after they were planned.
        ConfigurationError: If ``interop`` names an unknown engine.
        ValidationError: If ``interop`` names an engine that the table's properties exclude.
        CommitStateUnknownError: If the metastore's answer was lost; see `status`.
    """
    from icecomb.catalog.migrate.applying.migration import Takeover
    from icecomb.catalog.migrate.journal.writer_in_flight import WAIT_S

    check_flags(trust_journal=trust_journal)
    threads = checked_int("parallelism", parallelism, 1)
    context = _context(catalog, identifier, progress, trust_journal=trust_journal)
    wait_s = WAIT_S if wait is None else checked_int("wait", wait, 0)
    return Takeover(context, properties, threads, interop, wait_s).run(choices)


def snapshot(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    target: str | tuple[str, ...],
    choices: Choices = _DEFAULTS,
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    interop: str | Iterable[str] | None = None,
    parallelism: int = THREADS,
    progress: Progress = SILENT,
) -> Snapshotted:
    """Create an Iceberg table of a Hive table's current files; the Hive table stays.

    Both share these files, so the new table never deletes one: its property ``gc.enabled`` is
    false. New files are written to a folder of its own.

    Args:
        catalog: The catalog that holds the table.
        identifier: The Hive table, "db.table".
        target: The new table, "db.new".
        choices: Options of the conversion, and the blockers to accept.
        location: The new table's folder; default a folder in its namespace's.
        properties: Properties of the new table, added to those of the Hive table.
        interop: See `apply`.
        parallelism: Number of folders or footers read at once.
        progress: Reporter of partitions and files.

    Raises:
        MigrationBlockedError: If the plan has blockers; nothing was created.
        MigrationError: If it is an Iceberg table, or was one and its entry is an old copy, or it
            changed during each of three attempts.
        TableAlreadyExistsError: If the name is taken.
        ValidationError: If the folder is that of the Hive table, or inside it, or contains it.
    """
    from icecomb.catalog.migrate.applying.snapshotting import make_snapshot

    context = _context(catalog, identifier, progress)
    threads = checked_int("parallelism", parallelism, 1)
    return make_snapshot(context, target, choices, location, properties, threads, interop)


def verify(
    catalog: Catalog, identifier: str | tuple[str, ...], *, progress: Progress = SILENT
) -> Comparison:
    """Compare the migrated table with what Hive would read, value by value.

    If they are equal, a parameter of the table's entry says so.

    Raises:
        MigrationError: If it was not migrated by icecomb.
        NoSuchSnapshotError: If the migration's snapshot was expired.
    """
    from icecomb.catalog.migrate.verifying import verification as verification

    return verification.verify(_context(catalog, identifier, progress))


def revert(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    *,
    dry_run: bool = True,
    allow_data_loss: bool = False,
    trust_journal: bool = False,
    progress: Progress = SILENT,
) -> RevertPlan:
    """Return what reverting would lose and, with ``dry_run=False``, restore the old Hive table.

    Args:
        catalog: The catalog that holds the table.
        identifier: The table, "db.table".
        dry_run: Whether to only report; default True.
        allow_data_loss: Whether to revert even if snapshots were made since the migration.
        trust_journal: Whether to believe a journal that the table's entry does not confirm, and
            whose folders and owner the metastore does not show either. Look into it first: whoever
            may write to the table's folder may have written it.
        progress: Reporter of restored partitions.

    Raises:
        RevertBlockedError: If data would be lost and that was not allowed; nothing was changed.
        MigrationError: If there is nothing to revert to, or the migration was finalized, or nothing
            vouches for its journal.
    """
    from icecomb.catalog.migrate.reverting.reversal import Reversal

    check_flags(dry_run=dry_run, allow_data_loss=allow_data_loss, trust_journal=trust_journal)
    context = _context(catalog, identifier, progress, trust_journal=trust_journal)
    reversal = Reversal(context)
    return reversal.run(dry_run=dry_run, allow_data_loss=allow_data_loss)


def finalize(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    *,
    dry_run: bool = False,
    unverified: bool = False,
    trust_journal: bool = False,
) -> None:
    """Give up the way back: from then on maintenance may remove the old files.

    Args:
        catalog: The catalog that holds the table.
        identifier: The table, "db.table".
        dry_run: Whether to only check that it can be done.
        unverified: Whether to finalize even if `verify` has not compared the two tables.
        trust_journal: See `revert`.

    Raises:
        UnverifiedError: If `verify` has not compared them, and ``unverified`` is False.
        MigrationError: If there is no finished migration, or Hive's writers changed files since, or
            nothing vouches for its journal.
    """
    from icecomb.catalog.migrate.reverting.finalizing import finalize as end

    check_flags(dry_run=dry_run, unverified=unverified, trust_journal=trust_journal)
    context = _context(catalog, identifier, SILENT, trust_journal=trust_journal)
    end(context, dry_run=dry_run, unverified=unverified)


def status(catalog: Catalog, identifier: str | tuple[str, ...]) -> dict[str, Any]:
    """Return what is known about a table's migrations.

    Raises:
        NoSuchTableError: If there is no such table.
    """
    from icecomb.catalog.migrate.reverting.finalizing import status as find_status

    return find_status(_context(catalog, identifier, SILENT))


def _sample(sample: int | None) -> int | None:
    return None if sample is None else checked_int("sample", sample, 1)


def _context(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    progress: Progress,
    *,
    trust_journal: bool = False,
) -> MigrationContext:
    from icecomb.catalog.hive.catalog import on_metastore
    from icecomb.catalog.identifier import database_and_table
    from icecomb.catalog.migrate.journal.context import MigrationContext

    database, name = database_and_table(identifier)
    return MigrationContext(on_metastore(catalog), database, name, progress, trust_journal)
