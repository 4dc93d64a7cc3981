"""`icecomb spark-conf`: the lines that put a catalog into any Spark."""

from __future__ import annotations

from pathlib import Path

import click

from icecomb.catalog.cli.application import Application


@click.command("spark-conf")
@click.argument("name", default="lake")
@click.option("--hive", is_flag=True, help="Give Spark's own Hive support the same metastore.")
@click.option(
    "--session-catalog",
    is_flag=True,
    help="Serve spark_catalog, too: Hive and Iceberg tables under their old names; with --hive.",
)
@click.option(
    "--python", help="The interpreter that runs the planner beside the driver; this one by default."
)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    show_default=True,
    help="As for spark-submit: with cluster no path of this host's Python is written.",
)
@click.option(
    "--spark-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The Spark to serve; by default SPARK_HOME, pyspark, or where spark-submit leads.",
)
@click.pass_obj
def spark_conf(
    application: Application,
    *,
    name: str,
    hive: bool,
    session_catalog: bool,
    python: str | None,
    deploy_mode: str,
    spark_home: Path | None,
) -> None:
    """Print --conf lines for spark-sql, spark-shell and spark-submit.

    NAME is what the catalog is called in SQL. --uri and --warehouse, given before the command, say
    where it lies; without them it is what is configured, or else the embedded metastore.

    Use it as: spark-sql $(icecomb spark-conf lake)
    """
    from icecomb.spark import conf, jar

    found = conf.spark_conf(
        name,
        uri=application.uri,
        warehouse=application.warehouse,
        hive=hive,
        session_catalog=session_catalog,
        python=python,
        jar=jar.bridge_jar(jar.spark_home(spark_home)) if spark_home else None,
        deploy_mode=deploy_mode,
    )
    if application.text:
        application.output.lines(conf.command_lines(found))
    elif application.json:
        application.output.facts(found)
    else:
        application.output.table(["key", "value"], found.items())
