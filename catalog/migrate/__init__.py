"""Hive tables become Iceberg tables in place, are compared, and go back.

    from icecomb.catalog import load_catalog, migrate

    lake = load_catalog("prod", uri="thrift://metastore:9083")
    migrate.plan(lake, "sales.orders")        # every blocker at once; nothing changes
    migrate.plan_many(lake, ["sales.*"])      # the same of many tables
    migrate.apply(lake, "sales.orders")       # no data file is moved, rewritten or renamed
    migrate.verify(lake, "sales.orders")      # value by value
    migrate.revert(lake, "sales.orders")      # what going back would lose; dry_run=False does it
    migrate.finalize(lake, "sales.orders")    # gives up the way back; old files may be removed from
    then on

A journal beside the table (see `icecomb.catalog.migrate.journal`) lets every step go on after a
crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.progress import SILENT, THREADS, Progress
from icecomb.format.argument import checked_int

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.migrate.applying import Migrated
    from icecomb.catalog.migrate.comparison import Comparison
    from icecomb.catalog.migrate.context import Workplace
    from icecomb.catalog.migrate.migration_plan import MigrationPlan
    from icecomb.catalog.migrate.reverting import RevertPlan
    from icecomb.catalog.migrate.snapshotting import Snapshotted

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
    progress: Progress = SILENT,
) -> MigrationPlan:
    """What migrating a table would do, and everything that stands in the way. Nothing is changed.

    Args:
        catalog: holds the table.
        identifier: "db.table".
        choices: how to convert, and what to accept.
        footers: whether to look into files, not only at the metastore and the folders.
        sample: into how many files, evenly spread; default all.
        interop: see `apply`; the finding ``readers`` says what follows from it.
        progress: told of partitions and files looked at.

    Raises:
        NoSuchTableError: there is no such table.
        ConfigurationError, ValidationError: of ``interop``, see `apply`.
    """
    from icecomb.catalog.hive.catalog import on_metastore
    from icecomb.catalog.hive.engine import engine_names
    from icecomb.catalog.identifier import database_and_table
    from icecomb.catalog.migrate.planner import Looks, Planner

    place = database_and_table(identifier)
    looks = Looks(choices, footers, _sample(sample), engine_names(interop))
    return Planner(on_metastore(catalog), looks).plan(place, progress)


def plan_many(
    catalog: Catalog,
    names: Iterable[str | tuple[str, ...]],
    choices: Choices = _DEFAULTS,
    *,
    footers: bool = True,
    sample: int | None = None,
    jobs: int = 8,
    interop: str | Iterable[str] | None = None,
    progress: Progress = SILENT,
) -> Iterator[MigrationPlan]:
    """The plans of many tables, several made at a time, in the order of the names.

    A table that cannot be looked at (it is gone, or broken, or may not be read) ends nothing: its
    plan has the verdict ``failed``, and one blocker that says why.

    Args:
        catalog: holds the tables.
        names: each "db.table"; or "db.pattern", where * stands for any letters, "db" or "*", which
            mean Hive tables: neither views nor what is an Iceberg table already.
        choices: how to convert, and what to accept.
        footers: whether to look into files, not only at the metastore and the folders.
        sample: into how many files of a table, evenly spread; default all.
        jobs: how many tables are looked at at once.
        interop: see `apply`; the finding ``readers`` says what follows from it.
        progress: told of each table.

    Raises:
        ConfigurationError: there is no such engine.
        NoSuchNamespaceError, NoSuchTableError: a pattern matches nothing; before the first plan.
    """
    from icecomb.catalog.hive.catalog import on_metastore
    from icecomb.catalog.hive.engine import engine_names
    from icecomb.catalog.migrate.planner import Looks, Planner
    from icecomb.catalog.migrate.selection import is_hive_table, select

    metastore, jobs = on_metastore(catalog), checked_int("jobs", jobs, 1)
    places = select(metastore.client, names, is_hive_table).places
    looks = Looks(choices, footers, _sample(sample), engine_names(interop))
    return Planner(metastore, looks).plans(places, jobs, progress)


def apply(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    choices: Choices = _DEFAULTS,
    *,
    properties: Mapping[str, str] | None = None,
    interop: str | Iterable[str] | None = None,
    parallelism: int = THREADS,
    wait: int | None = None,
    progress: Progress = SILENT,
) -> Migrated:
    """Make a Hive table an Iceberg table in place, or go on where a crash interrupted that.

    Args:
        catalog: holds the table.
        identifier: "db.table".
        choices: how to convert, and what to accept.
        properties: of the Iceberg table, beside those of the Hive table.
        interop: the engines that are to use the table by its name, of "hive", "spark", "trino" and
            "impala"; default all, but "hive" and "impala" where table or catalog say
            ``engine.hive.enabled=false``. They get what they need, and their names are kept in the
            table's property ``icecomb.interop``.
        parallelism: how many folders or footers are read at once.
        wait: how many seconds writers of Hive and Spark that are at work are waited for, before the
            turn and after it; default 600.
        progress: told of partitions and files, and of such writers.

    Raises:
        MigrationBlockedError: the plan has blockers; nothing was changed.
        MigrationError: it is an Iceberg table of other origin, or it kept changing, or writers
            did not end in time, or replaced files after they were planned.
        ConfigurationError: ``interop`` names what is no engine.
        ValidationError: ``interop`` names one that the table's properties exclude.
        CommitStateUnknownError: the metastore's answer was lost; look with `status`.
    """
    from icecomb.catalog.migrate.applying import Takeover
    from icecomb.catalog.migrate.writer_in_flight import WAIT_S

    threads = checked_int("parallelism", parallelism, 1)
    place = _workplace(catalog, identifier, progress)
    wait_s = WAIT_S if wait is None else checked_int("wait", wait, 0)
    return Takeover(place, properties, threads, interop, wait_s).run(choices)


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
    """Make an Iceberg table of a Hive table's files as they are now; the Hive table stays.

    Both have the same files, so the new table never deletes one: its property ``gc.enabled`` is
    false. What is written to it goes to a folder of its own.

    Args:
        catalog: holds the table.
        identifier: the Hive table, "db.table".
        target: the new table, "db.new".
        choices: how to convert, and what to accept.
        location: the new table's folder; default below its namespace's.
        properties: of the new table, beside those of the Hive table.
        interop: see `apply`.
        parallelism: how many folders or footers are read at once.
        progress: told of partitions and files.

    Raises:
        MigrationBlockedError: the plan has blockers; nothing was made.
        MigrationError: it is an Iceberg table, or was one and its entry is an old copy, or it
            changed during each of three attempts.
        TableAlreadyExistsError: the name is taken.
        ValidationError: the folder is that of the Hive table, or inside of it, or around it.
    """
    from icecomb.catalog.migrate.snapshotting import make_snapshot

    place = _workplace(catalog, identifier, progress)
    threads = checked_int("parallelism", parallelism, 1)
    return make_snapshot(place, target, choices, location, properties, threads, interop)


def verify(
    catalog: Catalog, identifier: str | tuple[str, ...], *, progress: Progress = SILENT
) -> Comparison:
    """Compare the migrated table with what Hive would read, value by value.

    Raises:
        MigrationError: it was not migrated by icecomb.
        NoSuchSnapshotError: the migration's snapshot was expired.
    """
    from icecomb.catalog.migrate import verifying as verification

    return verification.verify(_workplace(catalog, identifier, progress))


def revert(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    *,
    dry_run: bool = True,
    allow_data_loss: bool = False,
    progress: Progress = SILENT,
) -> RevertPlan:
    """Say what going back would lose or, with ``dry_run=False``, give the old Hive table back.

    Args:
        catalog: holds the table.
        identifier: "db.table".
        dry_run: only say it.
        allow_data_loss: go back although snapshots were made since the migration.
        progress: told of partitions restored.

    Raises:
        RevertBlockedError: data would be lost and that was not allowed; nothing was changed.
        MigrationError: there is nothing to go back to, or the way back was given up.
    """
    from icecomb.catalog.migrate.reverting import Reversal

    reversal = Reversal(_workplace(catalog, identifier, progress))
    return reversal.run(dry_run=dry_run, allow_data_loss=allow_data_loss)


def finalize(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    *,
    dry_run: bool = False,
    unverified: bool = False,
) -> None:
    """Give up the way back: from now on maintenance may remove the old files.

    Args:
        catalog: The catalog.
        identifier: The table.
        dry_run: Only find out whether it can be done.
        unverified: Also where `verify` did not compare the two tables.

    Raises:
        UnverifiedError: it did not.
        MigrationError: there is no finished migration, or Hive's writers changed files since.
    """
    from icecomb.catalog.migrate.finalizing import finalize as end

    place = _workplace(catalog, identifier, SILENT)
    end(place, dry_run=dry_run, unverified=unverified)


def status(catalog: Catalog, identifier: str | tuple[str, ...]) -> dict[str, Any]:
    """What is known of a table's migrations.

    Raises:
        NoSuchTableError: there is no such table.
    """
    from icecomb.catalog.migrate.finalizing import status as look

    return look(_workplace(catalog, identifier, SILENT))


def _sample(sample: int | None) -> int | None:
    return None if sample is None else checked_int("sample", sample, 1)


def _workplace(
    catalog: Catalog, identifier: str | tuple[str, ...], progress: Progress
) -> Workplace:
    from icecomb.catalog.hive.catalog import on_metastore
    from icecomb.catalog.identifier import database_and_table
    from icecomb.catalog.migrate.context import Workplace

    database, name = database_and_table(identifier)
    return Workplace(on_metastore(catalog), database, name, progress)
