"""Commands that make Hive tables Iceberg tables, compare them, and go back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from icecomb.catalog import migrate as migration
from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.cli.output import finding_lines
from icecomb.catalog.migrate.choices import ACCEPTABLE, TIMESTAMP_CHOICES
from icecomb.format.errors import NoSuchTableError

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.migrate.comparison import Comparison
    from icecomb.catalog.migrate.planning import MigrationPlan
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
@click.argument("tables", nargs=-1, required=True, metavar="DB.TABLE...")
@_with_choices
@click.option("--quick", is_flag=True, help="Do not read the footers of the files.")
@click.pass_obj
def plan(
    application: Application,
    tables: tuple[str, ...],
    timestamp: str,
    time_zone: str,
    accept: tuple[str, ...],
    *,
    quick: bool,
) -> int:
    """Say what would be done and list every blocker at once; nothing is changed.

    DB.TABLE may be given several times, and DB.* means all tables of a database.
    Exit code 3 if a table is blocked.
    """
    catalog = application.metastore()
    choices = migration.Choices(timestamp, time_zone, accept)
    plans = [
        migration.plan(catalog, name, choices, footers=not quick, progress=application.progress)
        for name in _names(catalog, tables)
    ]
    if len(plans) == 1:
        _show_plan(application, plans[0])
    else:
        application.output.table(
            ["table", "verdict", "severity", "code", "finding", "remedy"],
            [row for found in plans for row in _finding_rows(found)],
        )
    return BLOCKED if any(found.blockers for found in plans) else OK


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


def _names(catalog: HiveCatalog, tables: Iterable[str]) -> list[str]:
    names: list[str] = []
    for table in tables:
        database, _, name = table.partition(".")
        if name == "*":
            found = catalog.client.table_names(database)
            if not found:
                catalog.client.database(database)  # says so where there is none
                raise NoSuchTableError(
                    f"No table matches {table}: namespace {database} is empty",
                    hint="DB.* means all tables of the database DB",
                )
            names += [f"{database}.{one}" for one in sorted(found)]
        else:
            names.append(table)
    return names


def _finding_rows(plan: MigrationPlan) -> list[list[Any]]:
    verdict = "blocked" if plan.blockers else "ready"
    rows = [
        [plan.table, verdict, f.severity.value, f.code, f.message, f.remedy] for f in plan.findings
    ]
    return rows or [[plan.table, verdict, "", "", "", ""]]


def _show_plan(application: Application, plan: MigrationPlan) -> None:
    if application.json:
        application.output.facts(plan.to_json())
        return
    application.output.facts(
        {
            "table": plan.table,
            "location": plan.location,
            "verdict": "blocked" if plan.blockers else "ready",
            "partitions": plan.partitions,
            "files": len(plan.files),
            "bytes": plan.size,
            "rows": plan.rows if plan.rows is not None else "unknown",
            "columns": [f"{f.name}  {f.field_type}" for f in plan.schema.columns],
            "partitioned by": [field.name for field in plan.spec.fields],
        }
    )
    application.output.lines(finding_lines(plan.findings))


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
