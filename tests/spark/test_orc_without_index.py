"""ORC files without row indexes: their Java writer counts no values, so that all columns seem to be null."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import orc

from tests.rings import sampled

NAME = "orc_without_index.t"
SETTING = "orc.create.index"
ROWS = "SELECT id, concat('x', id) AS s, id / 2 AS d FROM range(0, 5, 1, 1)"
FILTERS = {
    "id = 3": 1,
    "id > 0": 4,
    "id IS NULL": 0,
    "id IS NOT NULL": 5,
    "s = 'x1'": 1,
    "d < 1": 2,
}


@pytest.fixture
def session(spark):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.orc_without_index")
    spark.sparkContext._jsc.hadoopConfiguration().set(SETTING, "false")
    yield spark
    spark.sparkContext._jsc.hadoopConfiguration().unset(SETTING)
    spark.sql(f"DROP TABLE IF EXISTS lake.{NAME}")


def made(session, catalog, more=""):
    session.sql(
        f"CREATE TABLE lake.{NAME} (id BIGINT, s STRING, d DOUBLE) USING iceberg "
        f"TBLPROPERTIES ('write.format.default'='orc'{more})"
    )
    return catalog.load_table(NAME)


def check(table, ask):
    for condition, expected in FILTERS.items():
        counted = f"SELECT count(*) FROM {{c}}.{NAME} WHERE {condition}"
        assert table.scan(condition).to_arrow().num_rows == expected, condition
        assert ask(counted) == [[expected]], condition
    table.delete("id IS NULL")
    assert table.refresh().scan().to_arrow().num_rows == 5


@pytest.mark.parametrize(
    "modes", sampled([", 'write.metadata.metrics.default'='none'", ""], keep=1)
)
def test_rows_of_files_that_are_added_are_found(session, catalog, ask, tmp_path, modes):
    session.sql(ROWS).write.orc(str(tmp_path / "files"))
    (file,) = (tmp_path / "files").glob("*.orc")
    assert orc.ORCFile(file).row_index_stride == 0
    table = made(session, catalog, modes)
    table.add_files([file.as_uri()])
    check(table, ask)


def test_rows_that_spark_writes_are_found(session, catalog, ask):
    table = made(session, catalog)
    session.sql(f"INSERT INTO lake.{NAME} {ROWS}")
    file = table.refresh().inspect.data_files()["file_path"].to_pylist()[0]
    assert orc.ORCFile(Path(file.removeprefix("file:"))).row_index_stride == 0
    check(table, ask)
