"""Commands about views: list, show, drop."""

from __future__ import annotations

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.output.output import moment
from icecomb.catalog.identifier import parse_identifier


@click.group()
def views() -> None:
    """Iceberg views of a metastore."""


@views.command("list")
@click.argument("namespace", required=False)
@click.pass_obj
def list_views(application: Application, namespace: str | None) -> None:
    """List the Iceberg views of a namespace, or of all."""
    catalog = application.catalog()
    names = [parse_identifier(namespace)] if namespace else catalog.list_namespaces()
    rows = [[".".join(view)] for name in names for view in catalog.list_views(name)]
    application.output.table(["view"], rows)


@views.command()
@click.argument("view")
@click.pass_obj
def show(application: Application, view: str) -> None:
    """Show columns, query and properties of a view."""
    loaded = application.catalog().load_view(view)
    version = loaded.current_version()
    application.output.facts(
        {
            "view": ".".join(loaded.name()),
            "metadata": loaded.metadata_location,
            "uuid": loaded.metadata.view_uuid,
            "columns": [f"{one.name}  {one.field_type}" for one in loaded.schema().fields],
            "version": version.version_id,
            "made": moment(version.timestamp_ms),
            "default catalog": version.default_catalog,
            "default namespace": ".".join(version.default_namespace),
            "queries": version.queries,
            "properties": dict(sorted(loaded.properties.items())),
        }
    )


@views.command()
@click.argument("view")
@click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")
@click.pass_obj
def drop(application: Application, view: str, *, yes: bool) -> None:
    """Drop an Iceberg view. Its metadata files stay."""
    catalog = application.catalog()
    if yes:
        catalog.drop_view(view)
    elif not catalog.view_exists(view):
        catalog.load_view(view)  # raises an error that names what exists instead
    application.output.facts({"view": view, "dropped": yes})
    if not yes:
        application.warn("dry run: add --yes to drop it")
