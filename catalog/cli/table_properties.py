"""The command that lists, sets and removes properties of a table."""

from __future__ import annotations

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.value import pairs


@click.command()
@click.argument("table")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set this property; may be repeated.",
)
@click.option(
    "--unset", multiple=True, metavar="KEY", help="Remove this property; may be repeated."
)
@click.pass_obj
def properties(
    application: Application, table: str, *, settings: tuple[str, ...], unset: tuple[str, ...]
) -> None:
    """List the properties of a table, or change some in one commit.

    Values that Iceberg or icecomb could not read are refused, and so are names that are nearly a
    known one. --set format-version=2 upgrades the table, which cannot be undone. Properties that
    are not set may be removed, too.
    """
    given = pairs("--set", settings)
    if "" in unset:
        raise click.UsageError("--unset needs the name of a property")
    loaded = application.table(table)
    if not given and not unset:
        application.output.table(["property", "value"], sorted(loaded.properties.items()))
        return
    before = {**loaded.properties, "format-version": str(loaded.metadata.format_version)}
    with loaded.update_properties() as update:
        for key, value in given.items():
            update.set(key, value)
        for key in unset:
            update.remove(key)
    after = {**loaded.properties, "format-version": str(loaded.metadata.format_version)}
    changed = sorted(dict.fromkeys([*given, *unset]))
    rows = [[key, before.get(key), after.get(key)] for key in changed]
    application.output.table(["property", "before", "after"], rows)
