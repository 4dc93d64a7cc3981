"""`icecomb spark-conf`: the lines that put a catalog into any Spark."""

from __future__ import annotations

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.output import JsonOutput


@click.command("spark-conf")
@click.argument("name", default="lake")
@click.option("--hive", is_flag=True, help="Give Spark's own Hive support the same metastore.")
@click.option(
    "--python", help="The interpreter that runs the planner beside the driver; this one by default."
)
@click.pass_obj
def spark_conf(
    application: Application,
    name: str,
    hive: bool,  # noqa: FBT001 - click hands options over by name
    python: str | None,
) -> None:
    """Print --conf lines for spark-sql, spark-shell and spark-submit.

    NAME is what the catalog is called in SQL. --uri and --warehouse, given before the command, say
    where it lies; without them it is what is configured, or else the embedded metastore.

    Use it as: spark-sql $(icecomb spark-conf lake)
    """
    from icecomb.spark import conf

    found = conf.spark_conf(
        name, uri=application.uri, warehouse=application.warehouse, hive=hive, python=python
    )
    if isinstance(application.output, JsonOutput):
        application.output.facts(found)
    else:
        application.output.lines(conf.command_lines(found))
