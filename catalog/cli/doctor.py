"""The command that examines versions, configuration, the metastore and a table."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import IcecombError, UnsupportedError
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.configuration.configuration import Configuration

_DOWN: Final = ("hdfs", "name node", "object store", "read", "warehouse")
_COLUMNS: Final = ("level", "subject", "message", "remedy")
_LIBRARIES: Final = ("icecomb", "pyarrow", "fastavro", "polars", "thrift", "pyspark")


@click.command()
@click.argument("table", required=False)
@click.option("--json", "as_json", is_flag=True, help="Same as icecomb --output json doctor.")
@click.pass_obj
def doctor(application: Application, table: str | None, *, as_json: bool) -> int:
    """Examine the catalog, or one TABLE of it: each problem comes with its remedy.

    Shows the installed versions, the source of each setting, whether the metastore answers and what
    it checks, the active name node of HDFS or the identity at the object store, what the warehouse
    allows, and what is wrong with the table. Nothing is changed, except that a test view and a test
    object are created and deleted to find out what metastore and store check.

    Exit code 0 if all is well (warnings included), 3 if there is a problem.
    """
    from icecomb.catalog.configuration.configuration import load_configuration

    if as_json:
        application.form = "json"
    configuration = load_configuration(application.catalog_name, application.arguments)
    findings = list(_findings(application, table))
    if application.json:
        application.output.facts(
            {
                "catalog": application.catalog_name,
                "type": configuration.type,
                "versions": dict(_versions()),
                "configuration": [
                    {"key": key, "value": value, "source": source}
                    for key, value, source in configuration.sources
                ],
                "findings": [dict(zip(_COLUMNS, _row(one), strict=True)) for one in findings],
            }
        )
    elif application.text:
        _show(application, configuration, findings)
    else:
        application.output.table(_COLUMNS, map(_row, findings))
    return BLOCKED if any(one.severity is Severity.PROBLEM for one in findings) else OK


def _row(one: Finding) -> list[str | None]:
    return [str(one.severity), one.code, one.message, one.remedy]


def _show(application: Application, configuration: Configuration, found: list[Finding]) -> None:
    output = application.output
    output.facts(
        {"catalog": f"{application.catalog_name} ({configuration.type})", **dict(_versions())}
    )
    output.lines([""])
    output.table(["setting", "value", "from"], configuration.sources)
    output.lines([""])
    for one in found:
        output.lines([f"{one.severity:<8} {one.code}: {one.message}"])
        if one.remedy:
            output.lines([f"{'':<8} -> {one.remedy}"])


def _versions() -> Iterator[tuple[str, str | None]]:
    from importlib.metadata import distributions

    from icecomb.catalog.java import find_java, java_version

    yield "python", platform.python_version()
    installed = {found.name.lower(): found.version for found in distributions()}
    yield from ((name, installed.get(name)) for name in _LIBRARIES)
    try:
        java = find_java()
        yield "java", f"{java_version(java)} ({java})"
    except IcecombError as error:
        yield "java", f"none: {error.message}"


def _findings(application: Application, table: str | None) -> Iterator[Finding]:
    try:
        catalog = application.catalog()
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "catalog", error.message, error.hint)
        return
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.server_examination import examine_server
    from icecomb.catalog.hive.table_examination import examine_table
    from icecomb.catalog.identifier import database_and_table

    if not isinstance(catalog, HiveCatalog):
        if table is not None:
            raise UnsupportedError(
                f"Catalog {application.catalog_name} has no metastore whose entry of {table} could "
                "be examined",
                hint=f"{shell_command('describe', table)} shows whether its files can be read.",
            )
        cluster = list(_cluster(catalog))
        yield from cluster
        if any(one.severity is Severity.PROBLEM and one.code in _DOWN for one in cluster):
            return
        try:
            spaces = catalog.list_namespaces()
        except IcecombError as error:
            yield Finding(Severity.PROBLEM, "warehouse", error.message, error.hint)
            return
        yield Finding(Severity.OK, "warehouse", f"it can be read: {len(spaces)} namespaces")
        return
    place = database_and_table(table) if table is not None else None
    found = list(examine_server(catalog, place))
    yield from found
    yield from _cluster(catalog)
    if place is not None and found[-1].code != "metastore":
        from icecomb.catalog.migrate.reverting.present_state import examine_migration

        yield from examine_table(catalog, place)
        yield from examine_migration(catalog, catalog.client.table(*place))


def _cluster(catalog: Catalog) -> Iterator[Finding]:
    """Yield findings on the HDFS or object store that holds the warehouse; none for others."""
    from icecomb.catalog.hadoop.catalog import HadoopCatalog
    from icecomb.catalog.hadoop.cluster_examination import examine_cluster
    from icecomb.catalog.hadoop.store_examination import examine_store
    from icecomb.format.storage.hdfs.address import SCHEMES

    warehouse = catalog.properties.get("warehouse", "")
    if warehouse.partition(":")[0].lower() in SCHEMES:
        yield from examine_cluster(catalog.properties, warehouse)
    elif ":" in warehouse:
        in_folders = isinstance(catalog, HadoopCatalog)
        yield from examine_store(catalog.io, warehouse, in_folders=in_folders)
