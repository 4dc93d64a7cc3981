"""Spark SQL on a real metastore: what people type, end to end through bridge and planner."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row

from tests.rings import sampled

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def namespace(spark):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.sql_tests")
    return "sql_tests"


@pytest.fixture
def name(spark):
    """The full name of a table that does not exist yet."""
    table = f"lake.sql_tests.t{next(_NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS {table}")


def _make_events(spark, name):
    spark.sql(
        f"""CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'the key', ts TIMESTAMP, what STRING, price DECIMAL(9,2))
        USING iceberg PARTITIONED BY (days(ts), bucket(16, id)) COMMENT 'what happened'"""
    )
    spark.sql(
        f"""INSERT INTO {name} VALUES
        (1, TIMESTAMP '2026-01-01 10:00:00', 'open', 1.50),
        (2, TIMESTAMP '2026-01-02 11:00:00', 'close', NULL),
        (3, NULL, 'ä/ö=?', 3.25),
        (4, TIMESTAMP '1969-12-31 23:59:59.999999', NULL, -4.00)"""
    )


@pytest.fixture(scope="module")
def kept(spark, namespace):
    """Four rows of three days, which nobody changes."""
    table = f"lake.{namespace}.kept"
    _make_events(spark, table)
    yield table
    spark.sql(f"DROP TABLE {table}")


@pytest.fixture
def events(spark, name):
    """The same for one test, which may change it."""
    _make_events(spark, name)
    return name


def _table(catalog, name):
    return catalog.load_table(tuple(name.split(".")[1:]))


def _parquet_files(table):
    return sorted(Path(table.location().removeprefix("file:")).rglob("*.parquet"))


def test_a_table_is_created_as_iceberg_java_creates_it(catalog, kept):
    table = _table(catalog, kept)
    assert table.properties["write.parquet.compression-codec"] == "zstd"
    assert table.metadata.format_version == 2
    assert str(table.schema().find_type("ts")) == "timestamptz"
    assert table.schema().find_field("id").required
    assert table.schema().find_field("id").doc == "the key"
    assert [(f.name, str(f.transform), f.field_id) for f in table.spec().fields] == [
        ("ts_day", "day", 1000),
        ("id_bucket", "bucket[16]", 1001),
    ]


def test_describe_shows_columns_comments_and_partitioning(spark, kept):
    rows = [(r[0], r[1], r[2]) for r in spark.sql(f"DESCRIBE {kept}").collect()]
    assert rows[:4] == [
        ("id", "bigint", "the key"),
        ("ts", "timestamp", None),
        ("what", "string", None),
        ("price", "decimal(9,2)", None),
    ]
    text = "\n".join(str(row) for row in rows)
    assert "days(ts)" in text
    assert "bucket(16, id)" in text


def test_describe_extended_and_tblproperties_tell_location_and_format(spark, catalog, kept):
    shown = {r[0]: r[1] for r in spark.sql(f"DESCRIBE TABLE EXTENDED {kept}").collect()}
    assert shown["Provider"] == "iceberg"
    assert shown["Comment"] == "what happened"
    assert shown["Location"] == _table(catalog, kept).location()
    properties = {r[0]: r[1] for r in spark.sql(f"SHOW TBLPROPERTIES {kept}").collect()}
    assert properties["format-version"] == "2"


def test_tables_and_namespaces_are_listed(spark, kept):
    tables = {r.tableName for r in spark.sql("SHOW TABLES IN lake.sql_tests").collect()}
    assert kept.split(".")[-1] in tables
    namespaces = {r.namespace for r in spark.sql("SHOW NAMESPACES IN lake").collect()}
    assert {"default", "sql_tests"} <= namespaces


def test_rows_come_back_as_they_were_inserted(spark, kept):
    rows = spark.sql(f"SELECT id, what, price, ts FROM {kept} ORDER BY id").collect()
    assert [tuple(r)[:3] for r in rows] == [
        (1, "open", Decimal("1.50")),
        (2, "close", None),
        (3, "ä/ö=?", Decimal("3.25")),
        (4, None, Decimal("-4.00")),
    ]
    texts = spark.sql(f"SELECT cast(ts AS string) FROM {kept} ORDER BY id").collect()
    assert [r[0] for r in texts] == [
        "2026-01-01 10:00:00", "2026-01-02 11:00:00", None, "1969-12-31 23:59:59.999999",
    ]  # fmt: skip


def test_python_reads_what_spark_wrote(catalog, kept):
    arrow = _table(catalog, kept).scan(row_filter="price > 1").to_arrow()
    assert sorted(arrow.column("id").to_pylist()) == [1, 3]
    assert set(arrow.column("what").to_pylist()) == {"open", "ä/ö=?"}


def test_spark_reads_what_python_wrote(spark, catalog, events):
    import pyarrow as pa

    new = pa.table(
        {
            "id": pa.array([5], pa.int64()),
            "ts": pa.array(
                [dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)], pa.timestamp("us", "UTC")
            ),
            "what": ["python"],
            "price": pa.array([Decimal("9.99")], pa.decimal128(9, 2)),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("ts", pa.timestamp("us", "UTC")),
                pa.field("what", pa.string()),
                pa.field("price", pa.decimal128(9, 2)),
            ]
        ),
    )
    _table(catalog, events).append(new)
    found = spark.sql(f"SELECT what, price FROM {events} WHERE id = 5").collect()
    assert found == [Row(what="python", price=Decimal("9.99"))]


def test_data_files_have_ids_and_partition_folders(catalog, kept):
    table = _table(catalog, kept)
    tasks = list(table.scan().plan_files())
    assert len(tasks) == 4
    assert sum(task.file.record_count for task in tasks) == 4
    for task in tasks:
        path = task.file.file_path
        assert "/data/ts_day=" in path
        assert "/id_bucket=" in path
        schema = pq.read_schema(path.removeprefix("file:"))
        assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [b"1", b"2", b"3", b"4"]
        assert (
            pq.ParquetFile(path.removeprefix("file:")).metadata.row_group(0).column(0).compression
            == "ZSTD"
        )
    assert any("ts_day=2026-01-01" in task.file.file_path for task in tasks)
    assert any("ts_day=1969-12-31" in task.file.file_path for task in tasks)
    assert any("ts_day=null" in task.file.file_path for task in tasks)


def test_another_implementation_finds_the_metrics_of_the_files(pyiceberg, kept):
    for task in pyiceberg.load_table(kept.removeprefix("lake.")).scan().plan_files():
        assert task.file.value_counts == {1: 1, 2: 1, 3: 1, 4: 1}
        assert set(task.file.column_sizes) == {1, 2, 3, 4}
        assert task.file.lower_bounds[1] == task.file.upper_bounds[1]
        nulls = sum(task.file.null_value_counts.values())
        assert len(task.file.lower_bounds) == 4 - nulls


def test_the_partition_tuples_are_those_python_computes(catalog, kept):
    table = _table(catalog, kept)
    bucket = table.spec().fields[1].transform
    day = dt.date(2026, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
    long_type = table.schema().find_type("id")
    by_day = {task.file.partition[0]: task.file.partition[1] for task in table.scan().plan_files()}
    assert by_day == {
        day: bucket.apply(1, long_type),
        day + 1: bucket.apply(2, long_type),
        None: bucket.apply(3, long_type),
        -1: bucket.apply(4, long_type),
    }


def test_snapshots_say_which_engine_made_them(catalog, kept, spark):
    summary = _table(catalog, kept).current_snapshot().summary
    assert summary["operation"] == "append"
    assert summary["engine-name"] == "spark"
    assert summary["engine-version"] == spark.version
    assert summary["app-id"] == spark.sparkContext.applicationId
    assert summary["app-name"] == spark.sparkContext.appName
    assert summary["added-records"] == "4"
    assert summary["added-data-files"] == "4"


CONDITIONS = [
    ("ts >= '2026-01-02'", [2], 1),
    ("id = 3", [3], 1),
    ("ts IS NULL", [3], 1),
    ("ts < '1970-01-01' OR what = 'open'", [1, 4], 2),
    ("NOT (price > 0)", [4], 1),
    ("id IN (1, 4)", [1, 4], 2),
    ("what LIKE 'o%'", [1], 1),
    ("id % 2 = 1 OR id > 100", [1, 3], 4),
    ("ts = '2026-01-01 10:00:00' AND id % 2 = 1", [1], 1),
    ("1 = 0", [], 0),
]


@pytest.mark.parametrize(("condition", "ids", "files"), sampled(CONDITIONS, keep=5))
def test_a_filter_selects_the_right_rows_and_reads_no_other_file(
    spark, catalog, kept, condition, ids, files
):
    query = f"SELECT id FROM {kept} WHERE {condition} ORDER BY id"
    assert [row.id for row in spark.sql(query).collect()] == ids
    if files == len(ids):
        away = []
        tasks = _table(catalog, kept).scan().plan_files()
        for task in tasks:
            path = Path(task.file.file_path.removeprefix("file:"))
            [row_id] = pq.ParquetFile(path).read(["id"]).column("id").to_pylist()
            if row_id not in ids:
                away.append(path.rename(path.with_suffix(".away")))
        try:
            assert [row.id for row in spark.sql(query).collect()] == ids
        finally:
            for path in away:
                path.rename(path.with_suffix(".parquet"))


def test_projection_reads_the_columns_that_are_asked_for(spark, kept):
    plan = spark.sql(f"SELECT what FROM {kept}")._jdf.queryExecution().executedPlan().toString()
    assert "what" in plan
    assert "price" not in plan
    assert spark.sql(f"SELECT count(*) FROM {kept}").collect() == [Row(**{"count(1)": 4})]


def test_an_older_version_is_read_by_id_and_by_time(spark, catalog, events):
    first = _table(catalog, events).current_snapshot()
    spark.sql(f"INSERT INTO {events} VALUES (9, NULL, 'later', NULL)")
    now = spark.sql(f"SELECT count(*) AS n FROM {events}").collect()[0].n
    by_id = spark.sql(f"SELECT count(*) AS n FROM {events} VERSION AS OF {first.snapshot_id}")
    moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.timezone.utc)
    text = moment.strftime("%Y-%m-%d %H:%M:%S.%f")
    by_time = spark.sql(f"SELECT count(*) AS n FROM {events} TIMESTAMP AS OF '{text}'")
    assert (now, by_id.collect()[0].n, by_time.collect()[0].n) == (5, 4, 4)
    with pytest.raises(PySparkException, match="no snapshot"):
        spark.sql(f"SELECT * FROM {events} TIMESTAMP AS OF '2001-01-01'").collect()
    with pytest.raises(PySparkException, match="no snapshot, branch or tag"):
        spark.sql(f"SELECT * FROM {events} VERSION AS OF 12345").collect()


def test_a_version_cannot_be_written_to(spark, catalog, kept):
    snapshot = _table(catalog, kept).current_snapshot().snapshot_id
    with pytest.raises(PySparkException):
        spark.sql(f"INSERT INTO {kept} VERSION AS OF {snapshot} SELECT * FROM {kept}")


def test_drop_takes_the_table_away_and_keeps_its_files(spark, catalog, events):
    table = _table(catalog, events)
    data = _parquet_files(table)
    spark.sql(f"DROP TABLE {events}")
    assert not catalog.table_exists(table.identifier)
    assert len(data) == 4
    assert _parquet_files(table) == data
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"SELECT * FROM {events}")


def test_an_insert_of_nothing_commits_nothing(spark, catalog, kept):
    before = _table(catalog, kept).current_snapshot().snapshot_id
    spark.sql(f"INSERT INTO {kept} SELECT * FROM {kept} WHERE id < 0")
    assert _table(catalog, kept).current_snapshot().snapshot_id == before


def test_nested_and_all_kinds_of_values_come_back(spark, catalog, name):
    spark.sql(
        f"""CREATE TABLE {name} (b BOOLEAN, i INT, f FLOAT, d DOUBLE, dec DECIMAL(38,10), day DATE, t TIMESTAMP,
        n TIMESTAMP_NTZ, s STRING, x BINARY, st STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, STRUCT<y: DATE>>,
        l ARRAY<MAP<INT, DOUBLE>>) USING iceberg"""
    )
    row = (
        "true, 7, float('NaN'), double('-Infinity'), 1234567890123456789012345678.0123456789, date '0001-01-01', "
        "timestamp '2026-01-01 00:00:00.000001', timestamp_ntz '1900-01-01 00:00:00', 'ß', X'00FF', "
        "named_struct('a', 1, 'b', array('p', null)), map('k', named_struct('y', date '2026-02-28')), "
        "array(map(1, 0.5D), null)"
    )
    nulls = ", ".join(["NULL"] * 13)
    spark.sql(f"INSERT INTO {name} SELECT {row} UNION ALL SELECT {nulls}")
    expected = spark.sql(
        f"SELECT to_json(struct(*)) FROM VALUES ({row}) AS t(b,i,f,d,dec,day,t,n,s,x,st,m,l)"
    )
    found = spark.sql(f"SELECT to_json(struct(*)) FROM {name} WHERE b")
    assert found.collect() == expected.collect()
    assert spark.sql(f"SELECT * FROM {name} WHERE b IS NULL").collect() == [
        Row(**dict.fromkeys(["b", "i", "f", "d", "dec", "day", "t", "n", "s", "x", "st", "m", "l"]))
    ]
    arrow = _table(catalog, name).scan(row_filter="i = 7").to_arrow()
    assert arrow.column("l").to_pylist() == [[[(1, 0.5)], None]]
    assert arrow.column("m").to_pylist() == [[("k", {"y": dt.date(2026, 2, 28)})]]


def test_values_of_an_identity_partition_survive_the_folder_names(spark, name):
    hostile = [
        "a/b",
        "a=b",
        "ü %2F",
        "",
        " ",
        "..",
        "null",
        "__HIVE_DEFAULT_PARTITION__",
        None,
        "tab\tend",
    ]
    spark.sql(f"CREATE TABLE {name} (id INT, p STRING) USING iceberg PARTITIONED BY (p)")
    spark.createDataFrame(list(enumerate(hostile)), "id int, p string").writeTo(name).append()
    rows = spark.sql(f"SELECT id, p FROM {name} ORDER BY id").collect()
    assert [row.p for row in rows] == hostile
    assert spark.sql(f"SELECT id FROM {name} WHERE p = 'a/b'").collect() == [Row(id=0)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE {t} (a INT) USING csv", "Iceberg tables, not csv"),
        ("CREATE TABLE {t} (a INT) USING iceberg PARTITIONED BY (days(a))", "day"),
        ("CREATE TABLE {t} (a INT, ts DATE) USING iceberg PARTITIONED BY (hours(ts))", "hour"),
        ("CREATE TABLE lake.no_such_ns.t (a INT) USING iceberg", "no_such_ns|SCHEMA_NOT_FOUND"),
        ("SELECT * FROM lake.sql_tests.no_such_table", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE {t} (a INTERVAL DAY TO SECOND) USING iceberg", "interval"),
    ],
)
def test_bad_statements_give_one_clear_error_and_change_nothing(
    spark, catalog, name, statement, message
):
    before = catalog.list_tables("sql_tests")
    with pytest.raises(PySparkException, match=message) as error:
        spark.sql(statement.format(t=name))
    assert "Traceback" not in str(error.value)
    assert catalog.list_tables("sql_tests") == before


def test_a_hive_table_shows_in_spark_catalog_and_is_not_taken_for_iceberg(spark, namespace):
    spark.sql(f"CREATE TABLE spark_catalog.{namespace}.plain (a INT) STORED AS PARQUET")
    try:
        listed = {r.tableName for r in spark.sql(f"SHOW TABLES IN lake.{namespace}").collect()}
        assert "plain" not in listed
        with pytest.raises(PySparkException, match=r"[Ii]ceberg"):
            spark.sql(f"SELECT * FROM lake.{namespace}.plain").collect()
    finally:
        spark.sql(f"DROP TABLE spark_catalog.{namespace}.plain")


def test_many_files_of_one_table_are_all_committed_and_read_once(spark, name):
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    # more than a hundred: their list travels in pages
    spark.range(0, 1000, 1, 120).writeTo(name).append()
    spark.range(1000, 1500, 1, 3).writeTo(name).append()
    found = spark.sql(f"SELECT count(*) AS n, sum(id) AS s, count(DISTINCT id) AS d FROM {name}")
    assert found.collect() == [Row(n=1500, s=sum(range(1500)), d=1500)]


def test_inserts_merge_manifests_when_there_are_enough(spark, catalog, name):
    spark.sql(
        f"CREATE TABLE {name} (id bigint) "
        "TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '3')"
    )
    found = []
    for number in range(5):
        spark.sql(f"INSERT INTO {name} VALUES ({number})")
        found.append(len(catalog.load_table(name.removeprefix("lake.")).inspect.manifests()))
    assert found == [1, 2, 1, 2, 1]
    assert [row[0] for row in spark.sql(f"SELECT id FROM {name} ORDER BY id").collect()] == [
        *range(5)
    ]


def test_a_frame_and_a_view_of_a_table_that_was_empty_show_the_rows_that_came_later(spark, name):
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    frame = spark.table(name)
    frame.createOrReplaceTempView("was_empty")
    try:
        for rows in (0, 3, 6):
            assert frame.count() == rows
            assert spark.sql("SELECT id FROM was_empty").count() == rows
            spark.sql(f"INSERT INTO {name} SELECT id FROM range(3)")
    finally:
        spark.catalog.dropTempView("was_empty")
