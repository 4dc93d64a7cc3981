"""Commands that make Hive tables Iceberg tables, compare them, and go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icecomb.catalog import migrate as migration
from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.cli.output import JsonOutput, TextOutput
from icecomb.catalog.cli.plan_report import FORMS, show_csv, show_plan, show_plans
from icecomb.catalog.migrate.choices import ACCEPTABLE, TIMESTAMP_CHOICES
from icecomb.catalog.migrate.selection import ALL, is_hive_table, select

if TYPE_CHECKING:
    from icecomb.catalog.migrate.comparison import Comparison
    from icecomb.catalog.migrate.reverting import RevertPlan

_choices = (
    click.option(
        "--timestamp",
        type=click.Choice(TIMESTAMP_CHOICES),
        default=TIMESTAMP_CHOICES[0],
        show_default=True,
        help="What Hive's timestamp becomes: an instant, or a local time without zone.",
    ),
    click.option(
        "--time-zone",
        default="UTC",
        show_default=True,
        help="The zone of timestamps that are partition values.",
    ),
    click.option(
        "--accept",
        type=click.Choice(sorted(ACCEPTABLE)),
        multiple=True,
        help="Go on in spite of this: " + "; ".join(f"{k}: {v}" for k, v in ACCEPTABLE.items()),
    ),
)


def _with_names(command: Any) -> Any:
    everything = click.option(
        "--all", "everything", is_flag=True, help="All tables of all databases."
    )
    return click.argument("tables", nargs=-1, metavar="[DB.TABLE|DB.PATTERN*|DB]...")(
        everything(command)
    )


def _with_choices(command: Any) -> Any:
    for option in reversed(_choices):
        command = option(command)
    return command


@click.group()
def migrate() -> None:
    """Make a Hive table an Iceberg table in place, compare, and go back.

    No data file is moved, rewritten or renamed. A journal beside the table lets every
    command go on after a crash, and holds the exact old table.
    """


@migrate.command()
@_with_names
@_with_choices
@click.option("--quick", is_flag=True, help="Read no footer of a file.")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Read so many footers of a table only, evenly spread; 200 say how long apply takes.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--output", "form", type=click.Choice(FORMS), help="As the option of icecomb itself, or csv."
)
@click.pass_obj
def plan(
    application: Application,
    tables: tuple[str, ...],
    timestamp: str,
    time_zone: str,
    accept: tuple[str, ...],
    *,
    everything: bool,
    quick: bool,
    sample: int | None,
    jobs: int,
    form: str | None,
) -> int:
    """Say what would be done and list every blocker at once; nothing is changed.

    Several tables and patterns mean Hive tables: neither views nor what is an Iceberg table
    already. A table that cannot be looked at is a line of the result, its verdict is "failed".

    Exit code 3 if a table is blocked or failed.
    """
    if quick and sample is not None:
        raise click.UsageError("--quick reads no footer, --sample some: give one of them")
    form = form or ("json" if application.json else "text")
    application.output = JsonOutput() if form == "json" else TextOutput()
    catalog = application.metastore()
    choices = migration.Choices(timestamp, time_zone, accept)
    chosen = select(catalog.client, _names(tables, everything=everything), is_hive_table)
    looks: dict[str, Any] = {"footers": not quick, "sample": sample}
    if not chosen.many and form != "csv":
        found = migration.plan(
            catalog, chosen.places[0], choices, progress=application.progress, **looks
        )
        if form == "json":
            application.output.facts(found.to_json())
        else:
            show_plan(application.output, found)
        return BLOCKED if found.blockers else OK
    if chosen.left_out:
        application.warn(f"{len(chosen.left_out)} views and Iceberg tables are left out")
    plans = migration.plan_many(
        catalog, chosen.places, choices, jobs=jobs, progress=application.progress, **looks
    )
    if form == "csv":
        return BLOCKED if show_csv(plans) else OK
    if form == "text":
        return BLOCKED if show_plans(application.output, plans) else OK
    documents = [one.to_json() for one in plans]
    application.output.documents(documents)
    return BLOCKED if any(one["blocked"] for one in documents) else OK


@migrate.command()
@click.argument("table", metavar="DB.TABLE")
@_with_choices
@click.pass_obj
def apply(
    application: Application, table: str, timestamp: str, time_zone: str, accept: tuple[str, ...]
) -> int:
    """Do it, or go on where a crash interrupted it. Exit code 3 if it is blocked."""
    from icecomb.catalog.migrate.applying import MigrationBlockedError

    choices = migration.Choices(timestamp, time_zone, accept)
    try:
        done = migration.apply(application.catalog(), table, choices, progress=application.progress)
    except MigrationBlockedError as error:
        application.complain(error)
        return BLOCKED
    application.output.facts(done.to_json())
    return OK


@migrate.command()
@click.argument("table", metavar="DB.TABLE")
@click.pass_obj
def verify(application: Application, table: str) -> int:
    """Compare the table with what Hive would read, value by value. Exit code 3 if it differs."""
    found = migration.verify(application.catalog(), table, progress=application.progress)
    _show_comparison(application, found)
    return BLOCKED if found.difference_count else OK


@migrate.command()
@click.argument("table", metavar="DB.TABLE")
@click.option("--yes", is_flag=True, help="Do it; without, only what it would lose is shown.")
@click.option(
    "--allow-data-loss", is_flag=True, help="Also when rows were written since the migration."
)
@click.pass_obj
def revert(application: Application, table: str, *, yes: bool, allow_data_loss: bool) -> int:
    """Give the exact old Hive table back: a dry run unless --yes.

    Exit code 3 if it would lose rows and --allow-data-loss is not given; nothing is changed then.
    """
    from icecomb.catalog.migrate.reverting import RevertBlockedError

    try:
        found = migration.revert(
            application.catalog(),
            table,
            dry_run=not yes,
            allow_data_loss=allow_data_loss,
            progress=application.progress,
        )
    except RevertBlockedError as error:
        _show_revert(application, error.plan)
        application.complain(error)
        return BLOCKED
    _show_revert(application, found)
    if yes:
        return OK
    more = " --allow-data-loss" if found.loses_data else ""
    application.warn(f"dry run: add --yes{more} to do it")
    return BLOCKED if found.loses_data and not allow_data_loss else OK


@migrate.command()
@click.argument("table", metavar="DB.TABLE")
@click.option("--yes", is_flag=True, help="Do it; there is no way back then.")
@click.pass_obj
def finalize(application: Application, table: str, *, yes: bool) -> None:
    """Give up the way back, so that maintenance may remove old files."""
    catalog = application.catalog()
    migration.finalize(catalog, table, dry_run=not yes)
    application.output.facts(migration.status(catalog, table))
    if not yes:
        application.warn("dry run: add --yes to do it")


@migrate.command()
@click.argument("table", metavar="DB.TABLE")
@click.pass_obj
def status(application: Application, table: str) -> None:
    """Say where the migration of a table stands."""
    application.output.facts(migration.status(application.catalog(), table))


def _names(tables: tuple[str, ...], *, everything: bool) -> tuple[str, ...]:
    if bool(tables) == everything:
        raise click.UsageError("name tables, patterns (DB.*) or databases, or give --all")
    return (ALL,) if everything else tables


def _show_comparison(application: Application, found: Comparison) -> None:
    if application.json:
        application.output.facts(found.to_json())
        return
    output = application.output
    output.table(
        ["partition", "rows in Hive", "rows in Iceberg"],
        [[name or "(all)", *counts] for name, counts in found.partitions.items()],
    )
    output.lines([""])
    output.table(
        ["column", "nulls in Hive", "nulls in Iceberg", "min", "max"],
        [
            [name, digest.nulls, found.iceberg.columns[name].nulls, digest.least, digest.greatest]
            for name, digest in found.hive.columns.items()
            if name in found.iceberg.columns
        ],
    )
    output.lines(["", *found.differences])
    more = found.difference_count - len(found.differences)
    if more > 0:
        output.lines([f"and {more} more"])
    verdict = (
        f"{found.difference_count} differences"
        if found.difference_count
        else f"equal: {found.values:,} values of {found.hive.rows:,} rows in {found.files:,} files"
    )
    output.lines([verdict])


def _show_revert(application: Application, plan: RevertPlan) -> None:
    application.output.facts(plan.to_json())
