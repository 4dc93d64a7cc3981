"""Rows that Spark leaves to the table: what is taken, added and refused, beside Iceberg's runtime."""

from __future__ import annotations

import itertools

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

from tests.peers.spark_worker import plain
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "given_rows_tests"
NUMBERS = itertools.count(1)
PREFIX = "spark.sql.iceberg."
COLUMNS = (
    "id BIGINT NOT NULL, s STRUCT<a: INT, b: STRING>, v INT, f FLOAT, d DECIMAL(9,2), "
    "l ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRING, STRUCT<z: INT>>"
)
MERGE = {"merge-schema": "true"}
NO_ORDER = {"check-ordering": "false"}
CASES = {
    "some columns": ({}, "1L AS id, 2 AS v"),
    "all columns": (
        {},
        """1L AS id, named_struct('a', 1, 'b', 'x') AS s, 2 AS v, 3.5F AS f, 1.25BD AS d,
        array(named_struct('x', 1, 'y', 2)) AS l, map('k', named_struct('z', 1)) AS m""",
    ),
    "narrower numbers": ({}, "1 AS id, CAST(-2 AS TINYINT) AS v, CAST(-1.5 AS DECIMAL(4,2)) AS d"),
    "small numbers": ({}, "CAST(-1 AS SMALLINT) AS id, CAST(-300 AS SMALLINT) AS v"),
    "another scale": ({}, "1L AS id, CAST(1.5 AS DECIMAL(9,1)) AS d"),
    "a wider number": ({}, "1L AS id, 2L AS v"),
    "a text for a number": ({}, "1L AS id, '2' AS v"),
    "an unknown column": ({}, "1L AS id, 2 AS w"),
    "an unknown field": ({}, "1L AS id, named_struct('a', 1, 'c', 2) AS s"),
    "other letters": ({}, "1L AS ID, 2 AS V"),
    "another order": ({}, "2 AS v, 1L AS id"),
    "any order": (NO_ORDER, "2 AS v, 1L AS id"),
    "another order inside": ({}, "1L AS id, named_struct('b', 'x', 'a', 1) AS s"),
    "any order inside": (
        NO_ORDER,
        "array(named_struct('y', 2, 'x', 1)) AS l, 1L AS id, named_struct('b', 'x', 'a', 1) AS s",
    ),
    "no required column": ({}, "2 AS v"),
    "what may be null": ({}, "nullif(1L, 2L) AS id"),
    "what may be null, unchecked": ({"check-nullability": "false"}, "nullif(1L, 2L) AS id"),
    "fewer fields inside": (
        {},
        "1L AS id, array(named_struct('y', 2)) AS l, named_struct('b', 'x') AS s",
    ),
    "new columns": (MERGE, "1L AS id, 'x' AS n, named_struct('p', 1, 'q', array(2)) AS o"),
    "new fields": (
        MERGE,
        """1L AS id, named_struct('a', 1, 'b', 'x', 'c', DATE'2020-01-01') AS s,
        array(named_struct('x', 1, 'y', 2, 'w', 3)) AS l,
        map('k', named_struct('z', 1, 'u', 2.5D)) AS m""",
    ),
    "wider types": (MERGE, "1L AS id, 2L AS v, 1.5D AS f, CAST(1.5 AS DECIMAL(12,2)) AS d"),
    "narrower types": (MERGE, "1 AS id, CAST(2 AS SMALLINT) AS v"),
    "another type": (MERGE, "1L AS id, 'x' AS v"),
    "another kind": (MERGE, "1L AS id, 'x' AS s"),
    "nulls at last": (MERGE, "nullif(1L, 2L) AS id"),
    "new columns in any order": (MERGE | NO_ORDER, "'x' AS n, 2 AS v, 1L AS id"),
    "new columns first": (MERGE, "'x' AS n, 1L AS id"),
    "a new column in other letters": (MERGE, "1L AS id, 2L AS V"),
}


@pytest.fixture
def name(spark):
    table = f"{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS lake.{table}")
    spark.sql(f"DROP TABLE IF EXISTS lake.{table}_of_iceberg")


def make(sql, table, columns=COLUMNS, takes_any="true", more=""):
    sql(
        f"CREATE TABLE {table} ({columns}) USING iceberg {more} "
        f"TBLPROPERTIES ('write.spark.accept-any-schema'='{takes_any}')"
    )


def outcome(sql, table, settings, select):
    """The columns and rows that come of an INSERT, or that it was refused."""
    for key, value in settings.items():
        sql(f"SET `{PREFIX}{key}` = {value}")
    try:
        sql(f"INSERT INTO {table} SELECT {select}")
    except (AssertionError, AnalysisException, IllegalArgumentException):
        return "refused"
    finally:
        for key in settings:
            sql(f"RESET `{PREFIX}{key}`")
    return [row[:2] for row in sql(f"DESCRIBE {table}")], sql(f"SELECT * FROM {table}")


REFUSED = (
    *("another scale", "a wider number", "a text for a number", "an unknown column"),
    *("an unknown field", "another order", "another order inside", "no required column"),
    *("fewer fields inside", "another type", "another kind", "new columns first"),
)
# what is added to the columns, and the row
TAKEN = {
    "all columns": ([], [1, [1, "x"], 2, 3.5, "1.25", [[1, 2]], {"k": [1]}]),
    "any order inside": ([], [1, [1, "x"], None, None, None, [[1, 2]], None]),
    "new fields": (
        [
            ["s", "struct<a:int,b:string,c:date>"],
            ["l", "array<struct<x:int,y:int,w:int>>"],
            ["m", "map<string,struct<z:int,u:double>>"],
        ],
        [1, [1, "x", "2020-01-01"], None, None, None, [[1, 2, 3]], {"k": [1, 2.5]}],
    ),
    "wider types": (
        [["v", "bigint"], ["f", "double"], ["d", "decimal(12,2)"]],
        [1, None, 2, 1.5, "1.50", None, None],
    ),
}


def test_rows_that_do_not_fit_are_refused_and_change_nothing(spark, sql_on, name):
    sql = sql_on("4.3")
    make(sql, f"lake.{name}")
    before = spark.table(f"lake.{name}").schema
    for case in REFUSED:
        assert outcome(sql, f"lake.{name}", *CASES[case]) == "refused", case
    assert spark.table(f"lake.{name}").schema == before
    assert spark.table(f"lake.{name}").collect() == []


@pytest.mark.parametrize("case", sampled(TAKEN, keep=2))
def test_rows_that_fit_are_taken_as_they_are(sql_on, name, case):
    sql = sql_on("4.3")
    make(sql, f"lake.{name}")
    before = sql(f"DESCRIBE lake.{name}")
    columns, rows = outcome(sql, f"lake.{name}", *CASES[case])
    known = [row[:2] for row in before]
    assert ([each for each in columns if each not in known], plain(rows)) == (
        TAKEN[case][0],
        [TAKEN[case][1]],
    )


@pytest.mark.parametrize("case", CASES)
def test_rows_are_taken_as_by_icebergs_runtime(peers, name, case):
    found = {}
    for catalog, table in (("ice", f"ice.{name}_of_iceberg"), ("lake", f"lake.{name}")):
        make(peers[catalog], table)
        found[catalog] = outcome(peers[catalog], table, *CASES[case])
    assert found["lake"] == found["ice"]
    if found["lake"] != "refused":
        assert peers["ice"](f"SELECT * FROM ice.{name}") == found["ice"][1]


def test_a_null_where_none_may_be_is_refused_by_its_row(spark, name):
    make(spark.sql, f"lake.{name}", "id BIGINT NOT NULL, s STRUCT<a: INT NOT NULL>")
    rows = spark.range(0, 10, 1, 1).selectExpr(
        "IF(id < 5, id, NULL) AS id", "named_struct('a', IF(id <> 2, 1, NULL)) AS s"
    )
    with pytest.raises(
        IllegalArgumentException, match=r"id should be required, but is optional; s\.a"
    ):
        rows.writeTo(f"lake.{name}").append()
    unchecked = rows.writeTo(f"lake.{name}").option("check-nullability", "false")
    with pytest.raises(Exception, match=r"has null for column s\.a, which must have a value"):
        unchecked.append()
    assert spark.table(f"lake.{name}").count() == 0
    some = rows.where("id IN (0, 1, 3)").writeTo(f"lake.{name}")
    some.option("check-nullability", "false").append()
    assert [row.id for row in spark.table(f"lake.{name}").sort("id").collect()] == [0, 1, 3]


@pytest.mark.parametrize("file_format", sampled(["parquet", "orc", "avro"], keep=1))
def test_values_are_made_to_fit_at_every_depth_in_every_format(spark, catalog, name, file_format):
    columns = (
        "id BIGINT, s STRUCT<a: BIGINT, b: STRUCT<c: DECIMAL(20, 2), d: DOUBLE>>, "
        "l ARRAY<STRUCT<x: BIGINT, y: STRING>>, m MAP<STRING, STRUCT<z: DOUBLE, w: INT>>"
    )
    make(spark.sql, f"lake.{name}", columns)
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "map(concat('k', id), named_struct('w', CAST(-id AS TINYINT), 'z', CAST(id AS FLOAT))) AS m",
        "IF(id % 7 = 0, NULL, array(named_struct('y', 'n', 'x', CAST(-id AS INT)), NULL)) AS l",
        "CAST(-id AS SMALLINT) AS id",
        "IF(id % 5 = 0, NULL, named_struct('b', named_struct('d', CAST(id AS FLOAT), "
        "'c', CAST(-id AS DECIMAL(5, 2))), 'a', CAST(-id AS INT))) AS s",
    )
    write = rows.writeTo(f"lake.{name}").option("check-ordering", "false")
    write.option("write-format", file_format).append()
    expected = [
        {
            "id": -i,
            "s": None if i % 5 == 0 else {"a": -i, "b": {"c": -i, "d": float(i)}},
            "l": None if i % 7 == 0 else [{"x": -i, "y": "n"}, None],
            "m": [(f"k{i}", {"z": float(i), "w": -i})],
        }
        for i in range(100)
    ]
    found = catalog.load_table(name).scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: -row["id"]) == expected
    assert spark.table(f"lake.{name}").where("s.b.c < -90 AND l[0].x < -95").count() == 3


@pytest.mark.parametrize("key", sampled(["mergeSchema", "merge-schema", "MERGE-SCHEMA"], keep=1))
def test_a_data_frame_brings_its_columns_along_by_option(spark, catalog, name, key):
    make(spark.sql, f"lake.{name}", "id BIGINT NOT NULL, v INT")
    spark.sql(f"INSERT INTO lake.{name} SELECT 1L AS id, 2 AS v")
    last = catalog.load_table(name).metadata.last_column_id
    rows = spark.sql("SELECT 2L AS id, 3L AS v, 'x' AS n")
    with pytest.raises(AnalysisException, match=r"column n that it does not have|v is INT"):
        rows.writeTo(f"lake.{name}").append()
    rows.writeTo(f"lake.{name}").option(key, "true").append()
    table = catalog.load_table(name)
    assert [(f.field_id, str(f.field_type), f.required) for f in table.schema().fields] == [
        (1, "long", True),
        (2, "long", False),
        (last + 1, "string", False),
    ]
    before = table.metadata_location
    rows.writeTo(f"lake.{name}").option(key, "true").overwritePartitions()
    assert len(catalog.load_table(name).metadata.schemas) == 2
    assert catalog.load_table(name).metadata_location != before
    assert spark.table(f"lake.{name}").collect() == [(2, 3, "x")]


def test_what_a_table_is_partitioned_or_sorted_by_is_not_left_out(sql, name):
    make(sql, f"lake.{name}", "id BIGINT, k STRING, v INT", more="PARTITIONED BY (k)")
    with pytest.raises((AnalysisException, AssertionError), match="does not give column k"):
        sql(f"INSERT INTO lake.{name} SELECT 1L AS id")
    sql(f"INSERT INTO lake.{name} SELECT 1 AS id, 'a' AS k")
    assert sql(f"SELECT * FROM lake.{name}") == [[1, "a", None]]


def test_an_option_goes_before_a_setting(spark, name):
    make(spark.sql, f"lake.{name}", "id BIGINT, v INT")
    rows = spark.sql("SELECT 3 AS v, 2L AS id, 'x' AS n")
    spark.conf.set(f"{PREFIX}merge-schema", "true")
    spark.conf.set(f"{PREFIX}check-ordering", "false")
    try:
        write = rows.writeTo(f"lake.{name}")
        with pytest.raises(AnalysisException, match="column n that it does not have"):
            write.option("merge-schema", "false").append()
        with pytest.raises(IllegalArgumentException, match=r"(v|id) is out of order"):
            rows.writeTo(f"lake.{name}").option("check-ordering", "true").append()
        rows.writeTo(f"lake.{name}").append()
    finally:
        spark.conf.unset(f"{PREFIX}merge-schema")
        spark.conf.unset(f"{PREFIX}check-ordering")
    assert spark.table(f"lake.{name}").collect() == [(2, 3, "x")]


def test_a_table_that_takes_only_its_own_columns_is_left_to_spark(spark, catalog, name):
    make(spark.sql, f"lake.{name}", "id BIGINT, v INT", takes_any="false")
    rows = spark.sql("SELECT 1L AS id, 2 AS v, 'x' AS n")
    with pytest.raises(AnalysisException, match=r"TOO_MANY_DATA_COLUMNS|EXTRA_COLUMNS"):
        rows.writeTo(f"lake.{name}").option("check-ordering", "false").append()
    # by name, whatever the order, as before
    spark.sql("SELECT 2 AS v, 1L AS id").writeTo(f"lake.{name}").append()
    assert spark.table(f"lake.{name}").collect() == [(1, 2)]
    assert len(catalog.load_table(name).metadata.schemas) == 1


def test_what_is_no_yes_or_no_is_refused(spark, name):
    make(spark.sql, f"lake.{name}", "id BIGINT", takes_any="false")
    for key in ("check-nullability", "check-ordering", "merge-schema"):
        with pytest.raises(IllegalArgumentException, match=f"{key} cannot be 'perhaps'"):
            spark.range(1).writeTo(f"lake.{name}").option(key, "perhaps").append()


@pytest.mark.full("frames and statements are in the gate")
def test_a_streaming_query_brings_its_columns_along(spark, catalog, name, tmp_path):
    spark.sql(f"CREATE TABLE lake.{name} (id BIGINT, v INT) USING iceberg")
    spark.range(5).selectExpr("id", "id + 1L AS v", "'x' AS n").write.parquet(str(tmp_path / "in"))
    source = spark.readStream.schema("id BIGINT, v BIGINT, n STRING").parquet(str(tmp_path / "in"))
    query = source.writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query = query.option("merge-schema", "true").trigger(availableNow=True)
    query.toTable(f"lake.{name}").awaitTermination()
    found = spark.table(f"lake.{name}").sort("id").collect()
    assert found == [(i, i + 1, "x") for i in range(5)]
