"""Delete files are read once by an executor, within the bounds of Iceberg's settings."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.format.operation.row_delta import RowDelta
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.rings import sampled

NAME = "executor_cache_tests.t"
PREFIX = "spark.sql.iceberg.executor-cache."


@pytest.fixture
def table(spark, catalog):
    """Three files of ten rows; each but the last has one delete file more than the next."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.executor_cache_tests")
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = catalog.create_table(NAME, schema)
    for start in (0, 10, 20):
        numbers = list(range(start, start + 10))
        table.append(pa.table({"id": numbers, "s": [f"s{n % 10}" for n in numbers]}, schema))
        column, keys = ("id", ["3", "s"]) if start == 0 else ("s", ["0", f"s{start // 10}"])
        writer = EqualityDeleteWriter(table.io, table.metadata, f"d{start}", (column,))
        row = {"id": [int(keys[0])], "s": [keys[1]]}
        writer.write(pa.table(row, schema).to_batches()[0])
        delta = RowDelta(table.io)
        for file in writer.close():
            delta.add_deletes(file)
        table.commit(delta)
    yield table
    spark.sql(f"DROP TABLE lake.{NAME} PURGE")


def _ids(spark, first):
    found = spark.sql(f"SELECT id FROM lake.{NAME} WHERE id >= {first} AND id < {first + 10}")
    return [row.id for row in found.orderBy("id").collect()]


@pytest.mark.parametrize(
    ("setting", "value", "is_kept"),
    sampled(
        [
            ("timeout", "10min", True),
            ("enabled", "false", False),
            ("timeout", "0s", False),
            ("max-total-size", "1", False),
            ("max-entry-size", "1", False),
        ],
        keep=2,
    ),
)
def test_a_delete_file_is_read_once_whatever_others_apply_to_a_data_file(
    spark, table, setting, value, is_kept
):
    files = {d.file_path for task in table.scan().plan_files() for d in task.delete_files}
    spark.conf.set(PREFIX + setting, value)
    try:
        assert _ids(spark, 0) == [0, 4, 5, 6, 7, 8, 9]
        for file in files:
            path = Path(file.removeprefix("file:"))
            path.rename(f"{path}.away")
        if is_kept:
            assert _ids(spark, 10) == [10, 13, 14, 15, 16, 17, 18, 19]
            assert _ids(spark, 20) == [20, 21, 23, 24, 25, 26, 27, 28, 29]
        else:
            with pytest.raises(Exception, match=r"executor_cache_tests|not exist|No such file"):
                _ids(spark, 10)
    finally:
        spark.conf.unset(PREFIX + setting)
        for file in files:
            Path(f"{file.removeprefix('file:')}.away").rename(file.removeprefix("file:"))


def test_a_file_of_another_store_is_not_taken_for_the_one_that_was_read(spark, table):
    files = {d.file_path for task in table.scan().plan_files() for d in task.delete_files}
    lake, twin = "spark.sql.catalog.lake", "spark.sql.catalog.cache_twin"
    own = [pair for pair in spark.sparkContext.getConf().getAll() if pair[0].startswith(lake)]
    settings = {twin + key.removeprefix(lake): value for key, value in own}
    settings[f"{twin}.hadoop.fs.s3a.endpoint"] = "http://127.0.0.1:9"
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        assert _ids(spark, 0) == [0, 4, 5, 6, 7, 8, 9]
        for file in files:
            path = Path(file.removeprefix("file:"))
            path.rename(f"{path}.away")
        assert _ids(spark, 0) == [0, 4, 5, 6, 7, 8, 9]
        with pytest.raises(Exception, match=r"delete file of the table is missing"):
            spark.sql(f"SELECT id FROM cache_twin.{NAME} WHERE id < 10").collect()
    finally:
        for key in settings:
            spark.conf.unset(key)
        for file in files:
            Path(f"{file.removeprefix('file:')}.away").rename(file.removeprefix("file:"))
