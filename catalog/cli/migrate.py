"""Commands that convert Hive tables to Iceberg tables, compare them, and revert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icecomb.catalog import migrate as migration
from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.cli.argument.value import pairs
from icecomb.catalog.cli.report.migration_report import (
    show_comparison,
    show_outcomes,
    show_plan,
    show_plans,
    verdict_of,
)
from icecomb.catalog.identifier import database_and_table
from icecomb.catalog.migrate.batch import Result, StepStatus, Work, run_batch
from icecomb.catalog.migrate.choices import ACCEPTABLE, TIMESTAMP_CHOICES
from icecomb.catalog.migrate.journal.folder_journals import was_migrated
from icecomb.catalog.migrate.planning.obstacle import IN_FOLDER
from icecomb.catalog.migrate.selection import (
    ALL,
    SelectedTables,
    has_way_back,
    is_hive_table,
    select,
)
from icecomb.catalog.report.progress import threads_each
from icecomb.format.property.table_property import PARTITION_OVERWRITE_MODE

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.catalog.migrate.applying.snapshotting import Snapshotted
    from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan

_T = TypeVar("_T")

_OVERWRITES = (
    "INSERT OVERWRITE in Spark goes on as before in icecomb's catalogs, by the property "
    f"{PARTITION_OVERWRITE_MODE} of a migrated table; in Iceberg's own it replaces the whole table "
    "unless spark.sql.sources.partitionOverwriteMode is dynamic"
)
"""What is said of partitioned tables when they are migrated and finalized."""

_choices = (
    click.option(
        "--timestamp",
        type=click.Choice(TIMESTAMP_CHOICES),
        default=TIMESTAMP_CHOICES[0],
        show_default=True,
        help="The type for Hive's timestamp: an instant, or a local time without zone.",
    ),
    click.option(
        "--time-zone",
        default="UTC",
        show_default=True,
        help="The time zone of timestamps that are partition values.",
    ),
    click.option(
        "--accept",
        type=click.Choice(sorted(ACCEPTABLE)),
        multiple=True,
        help="Convert in spite of this: " + "; ".join(f"{k}: {v}" for k, v in ACCEPTABLE.items()),
    ),
    click.option(
        "--interop",
        metavar="ENGINES",
        help="The engines that will use the table, with commas between: hive, spark, trino, "
        "impala; all by default.",
    ),
    click.option(
        "--property",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A property of the Iceberg table, such as format-version=3; may be repeated.",
    ),
)


def _with_names(command: Any) -> Any:
    everything = click.option(
        "--all", "everything", is_flag=True, help="All tables of all databases."
    )
    return click.argument("tables", nargs=-1, metavar="[DB.TABLE|DB.PATTERN*|DB]...")(
        everything(command)
    )


@dataclass(frozen=True, slots=True)
class _Many:
    """The tables that a command is given, and the way it runs on several of them."""

    tables: tuple[str, ...]
    everything: bool
    jobs: int
    stop_on_error: bool

    def select(
        self,
        application: Application,
        wanted: Callable[[HiveTable], bool],
        *,
        changing: bool = False,
    ) -> SelectedTables:
        """Select the named tables that exist, and those matching a pattern that are wanted."""
        names = _names(self.tables, everything=self.everything, changing=changing)
        return select(application.metastore().client, names, wanted)

    def run(self, application: Application, chosen: SelectedTables, work: Work, what: str) -> int:
        """Run the work on all tables, print the outcome of each, and return the exit code."""
        outcomes = run_batch(
            application.progress,
            what,
            chosen.tables,
            work,
            self.jobs,
            stop_on_error=self.stop_on_error,
        )
        return show_outcomes(application, outcomes)


def _with_many(command: Any) -> Any:
    @wraps(command)
    def given(
        *others: Any,
        tables: tuple[str, ...],
        everything: bool,
        jobs: int,
        stop_on_error: bool,
        **more: Any,
    ) -> Any:
        return command(*others, many=_Many(tables, everything, jobs, stop_on_error), **more)

    stop = click.option(
        "--stop-on-error", is_flag=True, help="Stop after the first table that fails."
    )
    return _with_names(_with_jobs(4)(stop(given)))


def _with_jobs(count: int) -> Callable[[Any], Any]:
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=count,
        show_default=True,
        help="Tables processed at once.",
    )


_with_trust = click.option(
    "--trust-journal",
    is_flag=True,
    help="Believe a journal for which nothing in the metastore vouches; look into it first.",
)


def _with_choices(command: Any) -> Any:
    @wraps(command)
    def chosen(
        *others: Any,
        timestamp: str,
        time_zone: str,
        accept: tuple[str, ...],
        properties: tuple[str, ...],
        **more: Any,
    ) -> Any:
        choices = migration.Choices(timestamp, time_zone, accept)
        given = pairs("--property", properties)
        return command(*others, choices=choices, properties=given, **more)

    for option in reversed(_choices):
        chosen = option(chosen)
    return chosen


@click.group()
def migrate() -> None:
    """Convert a Hive table to an Iceberg table in place, compare, and revert.

    No data file is moved, rewritten or renamed. A journal beside the table lets every
    command continue after a crash, and holds the exact old table.

    All commands take several tables, patterns and databases; --jobs tables are processed at once,
    and one that fails does not stop the others. The exit code is then that of the worst: 4 if the
    outcome of a table is unknown, 1 if one failed, 3 if one is blocked or differs, 0 if all are
    done.
    """


@migrate.command()
@_with_names
@_with_choices
@click.option("--quick", is_flag=True, help="Do not read the footers of files.")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Read at most N footers per table, evenly spaced; 200 suffice to estimate apply's time.",
)
@_with_jobs(8)
@click.pass_obj
def plan(
    application: Application,
    tables: tuple[str, ...],
    *,
    choices: migration.Choices,
    interop: str | None,
    properties: dict[str, str],
    everything: bool,
    quick: bool,
    sample: int | None,
    jobs: int,
) -> int:
    """Plan the conversion and list every blocker at once; nothing is changed.

    Several tables and patterns mean Hive tables: neither views nor tables that are Iceberg
    already. A table that cannot be examined is listed with the verdict "failed".

    Exit code 3 if a table is blocked or failed.
    """
    if quick and sample is not None:
        raise click.UsageError("--quick reads no footers, --sample reads some: give one of them")
    catalog = application.metastore()
    chosen = select(catalog.client, _names(tables, everything=everything), is_hive_table)
    options: dict[str, Any] = {
        "footers": not quick,
        "sample": sample,
        "interop": interop,
        "properties": properties,
    }
    if not chosen.many and (application.text or application.json):
        found = migration.plan(
            catalog, chosen.tables[0], choices, progress=application.progress, **options
        )
        if application.json:
            application.output.facts(found.to_json())
        else:
            show_plan(application.output, found)
        return BLOCKED if found.blockers else OK
    if chosen.left_out:
        application.warn(f"{len(chosen.left_out)} views and Iceberg tables are skipped")
    plans = migration.plan_many(
        catalog, chosen.tables, choices, jobs=jobs, progress=application.progress, **options
    )
    return show_plans(application, plans)


@migrate.command()
@_with_many
@_with_choices
@click.option("--dry-run", is_flag=True, help="Only plan, as `icecomb migrate plan` does.")
@click.option(
    "--as",
    "target",
    metavar="DB.NEW",
    help="Create a second table of the files under this name; the Hive table stays.",
)
@click.option("--location", help="The folder of the second table; default below its namespace's.")
@click.option(
    "--wait",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="How long to wait for active writers of Hive and Spark; 600 by default.",
)
@_with_trust
@click.pass_obj
def apply(
    application: Application,
    *,
    many: _Many,
    choices: migration.Choices,
    interop: str | None,
    properties: dict[str, str],
    dry_run: bool,
    target: str | None,
    location: str | None,
    wait: int | None,
    trust_journal: bool,
) -> int:
    """Convert tables, or continue where a crash interrupted it. Exit code 3 if it is blocked.

    Patterns mean Hive tables, and tables that are converted already: what a crash left is
    finished. Each table has a journal of its own.

    With --as the Hive table stays, and a second table shares its present files. Neither deletes
    a file of the other, as long as the Hive table is external.
    """
    from icecomb.catalog.migrate.applying.migration import AlreadyIcebergError

    if location is not None and target is None:
        raise click.UsageError("--location is the folder of the table that --as creates")
    catalog, progress = application.metastore(), application.progress
    wanted: dict[str, Any] = {"interop": interop, "properties": properties}
    if dry_run:
        chosen = many.select(application, is_hive_table, changing=True)
        if target is not None:
            catalog.entries.check_free(_free_name(chosen, target))
        plans = migration.plan_many(
            catalog, chosen.tables, choices, jobs=many.jobs, progress=progress, **wanted
        )
        code = show_plans(application, plans if target is None else map(_beside, plans))
        application.warn("dry run: leave --dry-run out to do it")
        return code
    chosen = many.select(
        application, lambda one: is_hive_table(one) or was_migrated(one), changing=True
    )
    if target is not None:
        _free_name(chosen, target)
        make = partial(migration.snapshot, catalog, chosen.tables[0], target, choices)
        made = _unless_blocked(
            application, partial(make, location=location, progress=progress, **wanted)
        )
        return BLOCKED if made is None else _show_second(application, chosen.tables[0], made)
    wanted |= {"wait": wait, "trust_journal": trust_journal}
    if chosen.many:
        threads = threads_each(many.jobs)
        partitions: list[int] = []

        def work(name: tuple[str, str]) -> Result:
            try:
                done = migration.apply(catalog, name, choices, parallelism=threads, **wanted)
            except AlreadyIcebergError as error:
                return Result({"table": ".".join(name), "already": True}, error.message)
            partitions.append(0 if done.already else done.partitions)
            detail = f"{done.rows:,} rows in {done.files:,} files"
            return Result(done.to_json(), f"{'already: ' if done.already else ''}{detail}")

        code = many.run(application, chosen, work, "applying")
        if any(partitions):
            application.warn(_OVERWRITES)
        return code
    convert = partial(migration.apply, catalog, chosen.tables[0], choices)
    try:
        done = _unless_blocked(application, partial(convert, progress=progress, **wanted))
    except AlreadyIcebergError as error:
        # a job that runs again must succeed
        application.output.facts({"table": ".".join(chosen.tables[0]), "already": True})
        application.warn(f"{error.message}: nothing to do")
        return OK
    if done is None:
        return BLOCKED
    application.output.facts(done.to_json())
    if done.already:
        application.warn(f"{done.table} was migrated before: nothing was done")
    elif done.partitions:
        application.warn(_OVERWRITES)
    return OK


def _beside(plan: MigrationPlan) -> MigrationPlan:
    """Return the plan of a second table, which writes nothing to the Hive table's folder."""
    findings = tuple(one for one in plan.findings if one.code not in IN_FOLDER)
    return replace(plan, findings=findings)


def _free_name(chosen: SelectedTables, target: str) -> tuple[str, str]:
    if chosen.many:
        raise click.UsageError("--as creates one table: name one Hive table")
    return database_and_table(target)


def _unless_blocked(application: Application, work: Callable[[], _T]) -> _T | None:
    """Return the result of the work; if it is blocked, print the error and return None."""
    from icecomb.catalog.migrate.applying.migration import MigrationBlockedError

    try:
        return work()
    except MigrationBlockedError as error:
        application.complain(error)
        return None


def _show_second(application: Application, source: tuple[str, str], made: Snapshotted) -> int:
    facts = {"source": ".".join(source), **made.to_json()}
    if application.text:
        del facts["findings"]
    application.output.facts(facts)
    for finding in made.findings:
        application.warn(f"{finding.severity}: {finding.message}")
        application.warn(f"  {finding.remedy}")
    return OK


@migrate.command()
@_with_many
@click.pass_obj
def verify(application: Application, *, many: _Many) -> int:
    """Compare tables with what Hive would read, value by value. Exit code 3 if one differs.

    Patterns mean tables created by a migration.
    """
    catalog = application.metastore()
    chosen = many.select(application, was_migrated)
    if chosen.many:

        def work(name: tuple[str, str]) -> Result:
            found = migration.verify(catalog, name)
            return Result(found.to_json(), verdict_of(found), found.difference_count == 0)

        return many.run(application, chosen, work, "comparing")
    found = migration.verify(catalog, chosen.tables[0], progress=application.progress)
    show_comparison(application, found)
    return BLOCKED if found.difference_count else OK


@migrate.command()
@_with_many
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would be lost.")
@click.option(
    "--allow-data-loss", is_flag=True, help="Revert even if rows were written since the migration."
)
@_with_trust
@click.pass_obj
def revert(
    application: Application, *, many: _Many, yes: bool, allow_data_loss: bool, trust_journal: bool
) -> int:
    """Restore the exact old Hive tables: a dry run unless --yes.

    Patterns mean tables created by a migration, and those with remains of one that crashed.
    Exit code 3 if one would lose rows and --allow-data-loss is not given; it is not changed then.
    """
    from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError

    catalog = application.metastore()
    chosen = many.select(application, partial(has_way_back, catalog), changing=True)
    options: dict[str, Any] = {
        "dry_run": not yes,
        "allow_data_loss": allow_data_loss,
        "trust_journal": trust_journal,
    }
    if chosen.many:

        def work(name: tuple[str, str]) -> Result:
            found = migration.revert(catalog, name, **options)
            return Result(found.to_json(), found.summary, allow_data_loss or not found.loses_data)

        code = many.run(application, chosen, work, "reverting")
        if not yes:
            application.warn("dry run: add --yes to do it")
        return code
    try:
        found = migration.revert(
            catalog, chosen.tables[0], progress=application.progress, **options
        )
    except RevertBlockedError as error:
        application.output.facts(error.plan.to_json())
        application.complain(error)
        return BLOCKED
    application.output.facts(found.to_json())
    if found.already:
        application.warn(f"{found.table}: {found.summary}")
        return OK
    if yes:
        return OK
    more = " --allow-data-loss" if found.loses_data else ""
    application.warn(f"dry run: add --yes{more} to do it")
    return BLOCKED if found.loses_data and not allow_data_loss else OK


@migrate.command()
@_with_many
@click.option("--yes", is_flag=True, help="Do it; this cannot be undone.")
@click.option("--unverified", is_flag=True, help="Also finalize tables that were not verified.")
@_with_trust
@click.pass_obj
def finalize(
    application: Application, *, many: _Many, yes: bool, unverified: bool, trust_journal: bool
) -> int:
    """Give up the way back, so that maintenance may remove old files: a dry run unless --yes.

    Patterns mean tables created by a migration. A table that was not verified, or whose files
    Hive's writers changed since, is not finalized.
    """
    from icecomb.catalog.migrate.reverting.finalizing import UnverifiedError

    catalog = application.metastore()
    chosen = many.select(application, was_migrated, changing=True)

    partitions: list[int] = []

    def work(name: tuple[str, str]) -> Result:
        migration.finalize(
            catalog, name, dry_run=not yes, unverified=unverified, trust_journal=trust_journal
        )
        facts = migration.status(catalog, name)
        partitions.append(facts.get("partitions", 0))
        if yes or facts["outcome"] == "finalized":
            return Result(facts, "finalized")
        if "steps" not in facts:
            return Result(facts, "would be finalized: there is no journal, and no way back")
        verified = () if "verified" in facts["steps"] else ("it was not compared: verify it first",)
        would = (
            *verified,
            f"maintenance may delete the {facts['files']:,} files that were Hive's",
            f"the Hive table and its {facts['partitions']:,} partitions cannot be restored",
        )
        return Result({**facts, "would": would}, f"would be finalized: {'; '.join(would)}")

    if chosen.many:
        code = many.run(application, chosen, work, "finalizing")
    else:
        try:
            application.output.facts(work(chosen.tables[0]).facts)
            code = OK
        except UnverifiedError as error:
            application.complain(error)
            code = BLOCKED
    if any(partitions):
        application.warn(
            f"{_OVERWRITES}; finalize keeps the property: ALTER TABLE ... UNSET TBLPROPERTIES "
            f"('{PARTITION_OVERWRITE_MODE}') leaves it to that setting everywhere"
        )
    if not yes:
        application.warn("dry run: add --yes to do it")
    return code


@migrate.command()
@_with_many
@click.pass_obj
def status(application: Application, *, many: _Many) -> int:
    """Show the state of migrations. Patterns mean all tables but views.

    The outcome of a table is none, unfinished, migrated, verified, finalized or reverted. It is
    blocked, and the exit code 3, if the metadata is gone, Hive's writers changed files since the
    plan, the entry was overwritten, or a revert is not possible any more, or would lose files.
    """
    catalog = application.metastore()
    chosen = many.select(application, lambda one: not one.is_view)
    if chosen.many:

        def work(name: tuple[str, str]) -> Result:
            found = migration.status(catalog, name)
            outcome = found["outcome"]
            return Result(found, found["state"], outcome != StepStatus.BLOCKED, outcome)

        return many.run(application, chosen, work, "looking")
    found = migration.status(catalog, chosen.tables[0])
    application.output.facts(found)
    return BLOCKED if found["outcome"] == StepStatus.BLOCKED else OK


def _names(tables: tuple[str, ...], *, everything: bool, changing: bool = False) -> tuple[str, ...]:
    if bool(tables) == everything:
        raise click.UsageError("name tables, patterns (DB.*) or databases, or give --all")
    # A command that forgot the table's name must not change all of its database.
    if changing and (short := [name for name in tables if "." not in name]):
        raise click.UsageError(
            f"{short[0]} is not a table: {short[0]}.* means all tables of that database"
        )
    return (ALL,) if everything else tables
