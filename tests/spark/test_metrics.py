"""What Spark's tasks say of the files they wrote, against the files' own footers."""

from __future__ import annotations

import itertools

import pyarrow.parquet as pq
import pytest

from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.rows.values.data_metrics import MetricsConfig
from tests.format.rows.parquet_file import data_file_from_parquet
from tests.rings import sampled

NUMBERS = itertools.count(1)
COLUMNS = {
    "id": "id",
    "i": "CAST(id % 100 - 50 AS INT)",
    "flag": "id % 3 = 0",
    "f": "CASE id % 4 WHEN 0 THEN CAST('NaN' AS FLOAT) WHEN 1 THEN CAST(-0.0 AS FLOAT) ELSE CAST(id AS FLOAT) END",
    "zero": "IF(id % 2 = 0, -0.0D, 0.0D)",
    "nan": "CAST('NaN' AS DOUBLE)",
    "small": "CAST(id - 500 AS DECIMAL(9, 2))",
    "middle": "CAST(id - 500 AS DECIMAL(18, 3))",
    "large": "CAST(id - 500 AS DECIMAL(38, 5))",
    "day": "date_add(DATE'1969-12-01', CAST(id % 60 AS INT))",
    "at": "timestamp_micros(id * 1000001 - 300000000)",
    "local": "CAST(timestamp_micros(id * 1000001) AS TIMESTAMP_NTZ)",
    "short": "concat('ä', id % 10)",
    "long": "concat(repeat('😀', 20), id)",
    "last": "repeat(decode(unhex('F48FBFBF'), 'utf-8'), 20)",
    "high": "unhex(repeat('FF', 20))",
    "bytes": "CAST(concat(repeat('x', 15), id) AS BINARY)",
    "none": "CAST(NULL AS STRING)",
    "some": "IF(id % 2 = 0, id, NULL)",
    "s": "IF(id % 5 = 0, NULL, named_struct('a', id, 'b', IF(id % 2 = 0, 'x', NULL)))",
    "l": "array(id, NULL)",
    "m": "map('k', id)",
}
BOUNDS = ("lower_bounds", "upper_bounds")
MODES = [
    {},
    {"write.metadata.metrics.default": "full"},
    {"write.metadata.metrics.default": "counts"},
    {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.s.b": "truncate(1)"},
    {"write.metadata.metrics.default": "truncate(3)", "write.metadata.metrics.column.id": "none"},
    {"write.metadata.metrics.max-inferred-column-defaults": "4"},
]


@pytest.fixture(scope="module", autouse=True)
def namespace(spark):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.metrics_tests")


@pytest.fixture
def name(spark):
    table = f"metrics_tests.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS lake.{table}")


def written(table):
    return [
        entry.data_file
        for manifest in read_manifests(table.io, table.current_snapshot())
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


@pytest.mark.parametrize("modes", sampled(MODES, keep=2), ids=str)
def test_the_metrics_of_a_file_are_those_of_its_footer(spark, catalog, name, modes):
    properties = {"write.parquet.row-group-size-bytes": "20000", **modes}
    given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = ", ".join(f"{text} AS {column}" for column, text in COLUMNS.items())
    spark.sql(
        f"CREATE TABLE lake.{name} USING iceberg TBLPROPERTIES ({given}) AS "
        f"SELECT {columns} FROM range(0, 1000, 1, 1)"
    )
    spark.sql(f"INSERT INTO lake.{name} SELECT * FROM lake.{name} WHERE id = 7")
    table = catalog.load_table(name)
    config = MetricsConfig.from_properties(table.properties, table.schema())
    files = written(table)
    assert [file.record_count for file in files] == [1, 1000]
    assert [len(file.split_offsets) > 1 for file in files] == [False, True]
    floating = {table.schema().find_field(column).field_id for column in ("f", "zero", "nan")}
    for file in files:
        expected = data_file_from_parquet(
            table.io, file.file_path, table.schema(), table.spec(), (), None, config
        )
        for what in ("record_count", "file_size_in_bytes", "column_sizes", "split_offsets"):
            assert (what, getattr(file, what)) == (what, getattr(expected, what))
        for what in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            found, known = getattr(file, what), getattr(expected, what)
            assert (what, without(found, floating)) == (what, without(known, floating))


def without(statistic, field_ids):
    return {each: value for each, value in statistic.items() if each not in field_ids}


@pytest.mark.parametrize(
    ("file_format", "modes"),
    sampled(
        [*(("orc", each) for each in MODES), *(("parquet", each) for each in MODES[::-1])], keep=2
    ),
    ids=str,
)
def test_nan_is_counted_and_left_out_of_bounds_as_in_files_of_python(
    spark, catalog, name, modes, file_format
):
    properties = {"write.format.default": file_format, **modes}
    given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = ", ".join(
        f"{COLUMNS[column]} AS {column}" for column in ("id", "f", "zero", "nan", "none")
    )
    spark.sql(
        f"CREATE TABLE lake.{name} USING iceberg TBLPROPERTIES ({given}) AS SELECT {columns}, "
        "IF(id % 5 = 0, NULL, named_struct('x', IF(id % 7 = 0, 'NaN', id - 500.5D), 'y', CAST(NULL AS FLOAT))) AS s, "
        "array(DOUBLE('NaN')) AS l FROM range(0, 1000, 1, 1)"
    )
    table = catalog.load_table(name)
    [file] = written(table)
    copy = catalog.create_table(f"{name}_copy", table.schema(), properties=properties)
    try:
        copy.append(table.scan().to_arrow())
        [expected] = written(copy)
        ids = [
            table.schema().find_field(column).field_id
            for column in ("f", "zero", "nan", "s.x", "s.y")
        ]
        for what in ("value_counts", "null_value_counts", "nan_value_counts", *BOUNDS):
            found, known = getattr(file, what) or {}, getattr(expected, what) or {}
            assert (what, [found.get(i) for i in ids]) == (what, [known.get(i) for i in ids])
    finally:
        spark.sql(f"DROP TABLE lake.{name}_copy PURGE")


def test_a_file_of_many_columns_and_row_groups_tells_little_to_the_driver(spark, catalog, name):
    columns = ", ".join(f"id + {n} AS c{n}" for n in range(300))
    spark.sparkContext.setJobGroup(name, "writes")
    spark.sql(
        f"CREATE TABLE lake.{name} USING iceberg TBLPROPERTIES ("
        "'write.parquet.row-group-size-bytes' = '500000', 'write.parquet.dict-size-bytes' = '1') "
        f"AS SELECT {columns} FROM range(0, 10000, 1, 1)"
    )
    [file] = written(catalog.load_table(name))
    footer = _footer_bytes(file)
    sizes = _result_sizes(spark, name)
    assert len(file.split_offsets) > 10
    assert footer > 1_000_000
    assert 1_000 < max(sizes) < 50_000


def _footer_bytes(file):
    return pq.read_metadata(file.file_path.removeprefix("file:")).serialized_size


def _result_sizes(spark, group):
    """The bytes of the task results of each stage of a group of jobs."""
    tracker, store = spark.sparkContext.statusTracker(), spark._jsc.sc().statusStore()
    stages = {
        n for job in tracker.getJobIdsForGroup(group) for n in tracker.getJobInfo(job).stageIds
    }
    return [store.lastStageAttempt(stage).resultSize() for stage in stages]
