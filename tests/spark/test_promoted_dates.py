"""Columns that were dates and are timestamps now: Spark reads the files from before as Python does."""

from __future__ import annotations

import itertools
from uuid import uuid4

import pyarrow as pa
import pytest

from icecomb.format.operation.row_delta import RowDelta
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.rings import sampled

NAMESPACE = "promoted_dates_tests"
NUMBERS = itertools.count(1)
FORMATS = ("parquet", "orc", "avro")
DATES = pa.schema(
    {
        "id": pa.int64(),
        "d": pa.date32(),
        "s": pa.struct({"x": pa.date32()}),
        "l": pa.list_(pa.date32()),
    }
)


@pytest.fixture
def make(catalog):
    """A table with the days 2020-01-01, 1960-01-02 and null in all columns."""
    made = []

    def make(file_format):
        if NAMESPACE not in {name for (name, *_) in catalog.list_namespaces()}:
            catalog.create_namespace(NAMESPACE)
        properties = {"format-version": "3", "write.format.default": file_format}
        name = f"{NAMESPACE}.t{next(NUMBERS)}"
        made.append(name)
        table = catalog.create_table(name, DATES, properties=properties)
        days = pa.array([18_262, -3_652, None], pa.int32()).view(pa.date32())
        inner = pa.StructArray.from_arrays([days], ["x"])
        lists = pa.array([[day] for day in days.to_pylist()], DATES.field("l").type)
        table.append(pa.table([pa.array([0, 1, 2], pa.int64()), days, inner, lists], DATES))
        return table, f"lake.{name}"

    yield make
    for name in made:
        catalog.drop_table(name)


def _read_as_midnights(sql, table, name):
    for column in ("d", "s.x", "l.element"):
        sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE TIMESTAMP_NTZ")
    texts = "CAST(d AS STRING), CAST(s.x AS STRING), CAST(l[0] AS STRING)"
    rows = [tuple(row) for row in sql(f"SELECT id, {texts} FROM {name} ORDER BY id")]
    first, second = "2020-01-01 00:00:00", "1960-01-02 00:00:00"
    assert rows == [(0, *[first] * 3), (1, *[second] * 3), (2, *[None] * 3)]

    def ids(where):
        return [row[0] for row in sql(f"SELECT id FROM {name} WHERE {where} ORDER BY id")]

    assert ids(f"d = TIMESTAMP_NTZ'{first}'") == [0]
    assert ids(f"d < TIMESTAMP_NTZ'{second}'") == []
    assert ids("d > TIMESTAMP_NTZ'1960-01-01 23:59:59' AND d < TIMESTAMP_NTZ'2000-01-01'") == [1]
    assert ids("d IS NULL") == [2]
    sql(f"INSERT INTO {name} SELECT 9, TIMESTAMP_NTZ'2020-01-01 00:00:00.000001', NULL, NULL")
    assert ids(f"d > TIMESTAMP_NTZ'{first}'") == [9]
    writer = EqualityDeleteWriter(table.io, table.refresh().metadata, str(uuid4()), ["d"])
    midnight = pa.array([-3_652 * 86_400 * 10**6], pa.timestamp("us"))
    writer.write(pa.record_batch({"d": midnight}))
    table.commit(RowDelta(table.io).add_deletes(*writer.close()))
    assert ids("true") == [0, 2, 9]
    found = table.refresh().scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [0, 2, 9]


@pytest.mark.parametrize("file_format", sampled(FORMATS, keep=1))
def test_spark_reads_dates_of_older_files_as_midnights(spark, make, file_format):
    _read_as_midnights(lambda text: spark.sql(text).collect(), *make(file_format))


@pytest.mark.full("needs other Sparks")
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("minor", ["3.5", "4.1"])
def test_other_sparks_read_dates_of_older_files_as_midnights(sql_on, make, minor, file_format):
    _read_as_midnights(sql_on(minor), *make(file_format))
