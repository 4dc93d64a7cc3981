"""The command `icecomb spark-conf`: settings that add a catalog to any Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from icecomb.catalog.cli.application import Application
from icecomb.format.errors import ConfigurationError
from icecomb.format.property.table_property import PARTITION_OVERWRITE_MODE


@click.command("spark-conf")
@click.argument("name", default="lake")
@click.option("--hive", is_flag=True, help="Give Spark's own Hive support the same metastore.")
@click.option(
    "--session-catalog",
    is_flag=True,
    help="Serve spark_catalog, too: Hive and Iceberg tables under their old names; implies --hive.",
)
@click.option(
    "--python", help="Python that runs the planner beside the driver; by default the current one."
)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    show_default=True,
    help="As for spark-submit; with cluster, this host's Python path is left out.",
)
@click.option(
    "--spark-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The Spark installation; by default SPARK_HOME, pyspark, or that of spark-submit.",
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

    NAME is the catalog's name in SQL. --uri and --warehouse, given before the command, locate its
    metastore and files; without them the configured catalog or the embedded metastore is used.

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
    if session_catalog or name == conf.SESSION_CATALOG:
        application.warn(
            "INSERT OVERWRITE of tables that `icecomb migrate apply` converted goes on as before, "
            f"by their property {PARTITION_OVERWRITE_MODE}; of other Iceberg tables it replaces "
            "all rows unless spark.sql.sources.partitionOverwriteMode is dynamic"
        )
    if application.text:
        _check_words(found)
        application.output.lines(conf.command_lines(found))
    elif application.json:
        application.output.facts(found)
    else:
        application.output.table(["key", "value"], found.items())


def _check_words(found: Mapping[str, str]) -> None:
    """Refuse values with blanks: of `$(icecomb spark-conf)` a shell makes further arguments of it.

    Who named a folder could so give Spark settings, or an application.
    """
    for key, value in found.items():
        if re.search(r"\s", value):
            raise ConfigurationError(
                f"{key} is {value!r}, whose parts a shell would give Spark as arguments",
                hint="Rename the folder, or take the settings from --output json.",
            )
