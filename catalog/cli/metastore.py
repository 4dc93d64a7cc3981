"""Commands about the embedded metastore: one real Hive metastore per warehouse folder."""

from __future__ import annotations

import click

from icecomb.catalog.cli.application import Application


@click.group()
def metastore() -> None:
    """Run an embedded Hive metastore over a warehouse folder (--warehouse)."""


@metastore.command()
@click.pass_obj
def start(application: Application) -> None:
    """Start the metastore, or find it running."""
    from icecomb.catalog import metastore as embedded

    application.output.facts({"running": True, **embedded.start(application.warehouse).to_json()})


@metastore.command()
@click.pass_obj
def status(application: Application) -> None:
    """Show whether the metastore runs, and its address."""
    from icecomb.catalog import metastore as embedded

    running = embedded.status(application.warehouse)
    facts = running.to_json() if running else {"warehouse": _warehouse(application)}
    application.output.facts({"running": running is not None, **facts})


@metastore.command()
@click.pass_obj
def stop(application: Application) -> None:
    """Stop the metastore. Tables and files stay."""
    from icecomb.catalog import metastore as embedded

    stopped = embedded.stop(application.warehouse)
    application.output.facts({"stopped": stopped, "warehouse": _warehouse(application)})


def _warehouse(application: Application) -> str:
    from icecomb.catalog import metastore as embedded

    return application.warehouse or str(embedded.default_warehouse())
