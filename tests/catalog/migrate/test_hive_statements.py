"""What statements of Hive 3.1 do to Iceberg tables: the table in docs/hive.md says what is seen here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.hive.repair import plan_repair
from icecomb.format.errors import NoSuchFileError
from tests.peers.hive import FailedStatementError, Hive
from tests.peers.hive_metastore import HiveMetastore

pytestmark = [pytest.mark.jvm, pytest.mark.full("needs Hive 3.1")]
PAGE = Path(__file__).parents[3] / "docs" / "hive.md"
HEAD = "| Hive 3.1 |"
STATEMENTS = {
    "`DROP TABLE`": "DROP TABLE {table}",
    "`DROP DATABASE … CASCADE`": "DROP DATABASE {database} CASCADE",
    "`TRUNCATE TABLE`": "TRUNCATE TABLE {table}",
    "`LOAD DATA … INTO TABLE`": "LOAD DATA INPATH '{file}' INTO TABLE {table}",
    "`LOAD DATA … OVERWRITE INTO TABLE`": "LOAD DATA INPATH '{file}' OVERWRITE INTO TABLE {table}",
    "`INSERT INTO`": "INSERT INTO {table} VALUES (7{key})",
    "`INSERT OVERWRITE`": "INSERT OVERWRITE TABLE {table} VALUES (7{key})",
    "`ALTER TABLE … SET LOCATION`": "ALTER TABLE {table} SET LOCATION '{elsewhere}'",
    "`ALTER TABLE … ADD PARTITION`": "ALTER TABLE {table} ADD PARTITION (k=9)",
    "`MSCK REPAIR TABLE`": "MSCK REPAIR TABLE {table}",
}
COLUMNS = ("no handler", "handler", "handler and runtime")


class Tables:
    """Makes tables, lets Hive work on them, and says what became of them.

    Args:
        server: The metastore.
        folder: Of Hive, and of what is loaded.
        runtime: Whether Hive has Iceberg's runtime.
    """

    def __init__(self, server: HiveMetastore, folder: Path, *, runtime: bool) -> None:
        self.hive = Hive(server, folder / "hive", runtime=runtime)
        self.catalog = load_catalog("hive", uri=server.uri, warehouse=str(server.warehouse))
        self.runtime = runtime
        self.folder = folder
        self._made = 0

    def make(self, *, migrated: bool, handler: bool) -> str:
        """Return the name of a new table with the rows 1 and 2, in a database of its own."""
        self._made += 1
        database = f"d{int(self.runtime)}_{self._made}"
        rows = pa.table({"id": pa.array([1, 2], pa.int64())})
        self.hive.run(f"CREATE DATABASE {database}")
        name = f"{database}.t"
        if not migrated:
            properties = {"engine.hive.enabled": "true"} if handler else {}
            self.catalog.create_table(name, rows.schema, properties=properties).append(rows)
            return name
        self.hive.run(f"CREATE TABLE {name} (id BIGINT) PARTITIONED BY (k INT) STORED AS PARQUET")
        self.hive.run(f"ALTER TABLE {name} ADD PARTITION (k=1)")
        pq.write_table(rows, self.place(name) / "k=1" / "000000_0")
        migrate.apply(self.catalog, name, interop=None if handler else "spark,trino")
        return name

    def place(self, name: str) -> Path:
        """Return the folder that a table's entry names."""
        location = self.catalog.client.table(*name.split(".")).storage.location
        return Path(location.partition(":")[2])

    def effect(self, statement: str, *, migrated: bool, handler: bool) -> str:
        """Return what a statement does to a new table, in the words of the page."""
        name = self.make(migrated=migrated, handler=handler)
        place = self.place(name)
        file = self.folder / f"{name}.parquet"
        pq.write_table(pa.table({"id": pa.array([7], pa.int64())}), file)
        before = files_of(place)
        text = statement.format(
            table=name,
            database=name.partition(".")[0],
            file=file,
            key=", 1" if migrated else "",
            elsewhere=(self.folder / "elsewhere").as_uri(),
        )
        try:
            self.hive.run(text)
        except FailedStatementError:
            assert (self.what_became_of(name, place, before), file.exists()) == ("", True)
            return "refused"
        return self.what_became_of(name, place, before) or "nothing"

    def what_became_of(self, name: str, place: Path, before: set[Path]) -> str:
        """Return how a table differs from one that has the rows 1 and 2 in these files."""
        client, (database, table) = self.catalog.client, name.split(".")
        files = files_of(place)
        if database not in client.databases() or table not in client.table_names(database):
            assert before <= files or not files
            return "the entry is gone, the files stay" if files else "entry and **files are gone**"
        if before <= files and self.place(name) != place:
            assert "(location)" in plan_repair(self.catalog, name).parameters
            return "the entry names another folder"
        loaded = self.catalog.load_table
        try:
            rows = sorted(loaded(name).scan().to_arrow()["id"].to_pylist())
        except NoSuchFileError:
            assert not before & files
            return "**files and metadata are gone**"
        assert before <= files
        if rows == [1, 2, 7]:
            return "rows are added"
        assert rows == [1, 2]
        if not files - before:
            return ""
        found = loaded(name)
        parted = found.spec().fields
        found.add_files([*map(str, files - before)], partition={"k": 1} if parted else None)
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 2, 7]
        return "a file that **nobody sees**"


def files_of(folder: Path) -> set[Path]:
    """Return the files of a table that Hive does not hide."""
    found = (one for one in folder.rglob("*") if one.is_file())
    return {
        one
        for one in found
        if not any(part.startswith((".", "_")) for part in one.relative_to(folder).parts)
    }


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "with Iceberg's runtime"])
def tables(
    request: pytest.FixtureRequest,
    hive_server: HiveMetastore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tables]:
    """Hive with or without Iceberg's runtime."""
    folder = tmp_path_factory.mktemp("statements")
    found = Tables(hive_server, folder, runtime=request.param)
    try:
        yield found
    finally:
        found.catalog.close()
        found.hive.close()


def page() -> dict[str, list[str]]:
    """Return the page's table: what each statement does, as `COLUMNS`."""
    lines = PAGE.read_text().splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith(HEAD)]
    found = {}
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        statement, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[statement] = cells
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_hives_statements_do_to_tables_what_the_page_says(tables: Tables, statement: str) -> None:
    lines = page()
    assert list(lines) == list(STATEMENTS)
    said = dict(zip(COLUMNS, lines[statement], strict=True))
    with_handler = "handler and runtime" if tables.runtime else "handler"
    for column, handler in (("no handler", False), (with_handler, True)):
        for migrated in (False, True):
            seen = tables.effect(STATEMENTS[statement], migrated=migrated, handler=handler)
            assert seen == said[column], (column, migrated)
