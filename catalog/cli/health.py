"""The command that shows what makes tables slow or large, and the commands that fix it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from icecomb.catalog.cli.application import BLOCKED, ERROR, OK, Application
from icecomb.catalog.cli.output.output import FORMS
from icecomb.catalog.cli.report.health_report import show_prometheus, show_tables

if TYPE_CHECKING:
    from icecomb.catalog.health.table_health import TableHealth

_PROMETHEUS: Final = "prometheus"


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE|DB.PATTERN*|DB]...")
@click.option(
    "--orphans", is_flag=True, help="Find files that nothing refers to; lists the folders."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Tables examined at once.",
)
@click.option(
    "--output",
    "form",
    type=click.Choice([*FORMS, _PROMETHEUS]),
    help="Output format, as of icecomb itself, or the text format of Prometheus.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write an HTML page; it needs neither a network nor scripts.",
)
@click.pass_obj
def health(
    application: Application,
    tables: tuple[str, ...],
    *,
    orphans: bool,
    jobs: int,
    form: str | None,
    page: str | None,
) -> int:
    """Show what makes tables slow or large, the worst first, and the commands that fix it.

    A TABLE is a name, or the folder of a file-system table; without any, all tables of the catalog
    are examined. Nothing is changed. The score is 0 to 100.

    Exit code 1 if a table could not be read, else 3 if a finding is a problem.
    """
    from icecomb.catalog.cli.report import health_page

    if form is not None and form in FORMS:
        application.form = form
    if page is not None:
        health_page.check_page(page)
    found = sorted(_examined(application, tables, jobs, orphans=orphans), key=lambda one: one.rank)
    options = _catalog_options(application)
    if page is not None:
        health_page.write(page, found, options)
        application.warn(f"wrote {page}")
    if form == _PROMETHEUS:
        show_prometheus(found)
    else:
        show_tables(application, found, options)
    if any(one.error is not None for one in found):
        return ERROR
    return BLOCKED if any(one.has_problem for one in found) else OK


def _examined(
    application: Application, tables: Sequence[str], jobs: int, *, orphans: bool
) -> Iterator[TableHealth]:
    from icecomb.catalog.health import check_health

    for table in dict.fromkeys(tables):
        if "/" in table:
            yield _of_folder(table, orphans=orphans)
    names = [name for name in tables if "/" not in name]
    if names or not tables:
        yield from check_health(
            application.catalog(),
            names or "*",
            orphans=orphans,
            jobs=jobs,
            progress=application.progress,
        )


def _of_folder(table: str, *, orphans: bool) -> TableHealth:
    from icecomb.catalog import open_table
    from icecomb.catalog.health.examination import attempted

    return attempted(table, lambda: open_table(table).maintenance.health(orphans=orphans))


def _catalog_options(application: Application) -> list[str]:
    """Return the options that name the catalog; printed commands need them, too."""
    given = (
        ("--catalog", application.named),
        ("--uri", application.uri),
        ("--warehouse", application.warehouse),
    )
    return [word for option, value in given if value is not None for word in (option, value)]
