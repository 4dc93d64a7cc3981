"""Branches, tags, snapshots and metadata tables by name in Spark SQL, and read options, beside Iceberg Java."""

from __future__ import annotations

import itertools
import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import col

from icecomb.format.inspect.inspection import NAMES
from tests.interop.test_inspect import STORIES
from tests.peers.spark_worker import plain
from tests.rings import sampled
from tests.spark.second_reader import READERS, reader

pytestmark = pytest.mark.jvm

NAMESPACE = "states"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def namespace(catalog):
    catalog.create_namespace(NAMESPACE)
    return NAMESPACE


@pytest.fixture(scope="module")
def stories(catalog, iceberg_java, namespace):
    """Tables that both have written, loaded by our catalog."""
    for name, steps in STORIES.items():
        for step in steps:
            if isinstance(step, str):
                iceberg_java.sql(step.replace("{t}", f"ice.{NAMESPACE}.{name}"))
            else:
                catalog.load_table((NAMESPACE, name)).append(step)
    yield {name: catalog.load_table((NAMESPACE, name)) for name in STORIES}
    for name in STORIES:
        catalog.drop_table((NAMESPACE, name))


@pytest.fixture
def table(spark, namespace, catalog):
    """A partitioned table with a branch and a tag; its column was renamed after that."""
    name = f"t{next(NUMBERS)}"
    spark.sql(
        f"CREATE TABLE lake.{NAMESPACE}.{name} (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s)"
    )
    spark.sql(f"INSERT INTO lake.{NAMESPACE}.{name} VALUES (1, 'a'), (2, 'b')")
    loaded = catalog.load_table((NAMESPACE, name))
    first = loaded.current_snapshot().snapshot_id
    with loaded.manage_snapshots() as manage:
        manage.create_branch(first, "side").create_tag(first, "kept")
    spark.sql(f"INSERT INTO lake.{NAMESPACE}.{name} VALUES (3, 'c')")
    spark.sql(f"ALTER TABLE lake.{NAMESPACE}.{name} RENAME COLUMN s TO z")
    yield f"{NAMESPACE}.{name}"
    catalog.drop_table((NAMESPACE, name))


TOLD_ALIKE = {
    *("snapshot_id", "parent_id", "operation", "file_path", "record_count", "content", "status"),
    *("path", "length", "name", "type", "pos", "partition_spec_id", "spec_id"),
    *("file_size_in_bytes", "file", "latest_snapshot_id", "is_current_ancestor"),
}
"""Columns of metadata tables whose values both Spark and Python give as numbers and texts."""


def ordered(rows):
    return sorted(json.dumps(plain(list(row)), sort_keys=True) for row in rows)


def both(spark, iceberg_java, text):
    """The rows of a query in our Spark and in Iceberg's."""
    ours = spark.sql(text.replace("{c}", "lake")).collect()
    return ordered(ours), ordered(iceberg_java.sql(text.replace("{c}", "ice")))


@pytest.mark.parametrize("story", STORIES)
def test_metadata_tables_have_columns_and_rows_of_iceberg_java(spark, iceberg_java, stories, story):
    for name in NAMES:
        table = f"{NAMESPACE}.{story}.{name}"
        ours = spark.table(f"lake.{table}")
        columns, rows = iceberg_java.table(f"SELECT * FROM ice.{table}")
        assert ours.dtypes == columns, name
        assert ordered(ours.collect()) == ordered(rows), name
        counted = spark.sql(f"SELECT count(*) FROM lake.{table}").collect()
        assert counted == [(len(rows),)], name


def test_metadata_tables_have_the_columns_and_rows_that_python_has(spark, catalog, table):
    spark.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    spark.sql(f"INSERT INTO lake.{table} VALUES (4, 'd'), (5, 'd')")
    spark.sql(f"DELETE FROM lake.{table} WHERE id = 4")
    for name in NAMES:
        ours = spark.table(f"lake.{table}.{name}")
        theirs = getattr(catalog.load_table(table).inspect, name)()
        assert ours.columns == theirs.column_names, name
        columns = [each for each in ours.columns if each in TOLD_ALIKE]
        assert columns, name
        found = ordered(ours.select(columns).collect())
        assert found == ordered(zip(*(theirs[each].to_pylist() for each in columns), strict=True))
        assert ours.count() == theirs.num_rows > 0, name


def test_metadata_tables_are_filtered_and_read_as_of_a_snapshot(spark, catalog, table):
    first, second = catalog.load_table(table).metadata.snapshot_log
    files = f"SELECT record_count, partition.s FROM lake.{table}.files"
    assert ordered(spark.sql(f"{files} WHERE partition.s = 'b'").collect()) == ['[1, "b"]']
    kept = ['[1, "a"]', '[1, "b"]']
    for version in (f"VERSION AS OF {first.snapshot_id}", "VERSION AS OF 'kept'"):
        assert ordered(spark.sql(f"{files} {version}").collect()) == kept, version
    now = [*kept, '[1, "c"]']
    assert ordered(spark.sql(f"{files} VERSION AS OF {second.snapshot_id}").collect()) == now
    assert ordered(spark.sql(f"{files} TIMESTAMP AS OF now()").collect()) == now
    with pytest.raises(PySparkException, match="Cannot select a snapshot"):
        spark.sql(f"SELECT * FROM lake.{table}.all_files VERSION AS OF 'kept'")
    narrow = spark.table(f"lake.{table}.files").select("readable_metrics.id.lower_bound")
    assert ordered(narrow.collect()) == ["[1]", "[2]", "[3]"]
    assert "upper_bound" not in narrow._jdf.queryExecution().executedPlan().toString()


def test_metadata_tables_are_described_as_iceberg_java_describes_them(spark, iceberg_java, stories):
    """What it says of columns besides their names and types is the same of every table."""
    for name in NAMES:
        described = [
            [list(row) for row in sql(f"DESCRIBE {catalog}.{NAMESPACE}.evolved.{name}")]
            for sql, catalog in (
                (lambda text: spark.sql(text).collect(), "lake"),
                (iceberg_java.sql, "ice"),
            )
        ]
        columns = [
            list(itertools.takewhile(lambda row: row[0] and row[0][0] != "#", rows))
            for rows in described
        ]
        assert columns[0] == columns[1], name


def test_fields_inside_columns_of_metadata_tables_are_read_alone(spark, iceberg_java, stories):
    files = f"{{c}}.{NAMESPACE}.evolved.files"
    for query in (
        f"SELECT readable_metrics.y.upper_bound, file_path FROM {files}",
        f"SELECT readable_metrics.`st.b.c`.value_count, partition.id_bucket FROM {files} WHERE content = 0",
        f"SELECT max(readable_metrics.id.upper_bound), sum(record_count) FROM {files}",
        (
            f"SELECT data_file.file_path, status FROM {{c}}.{NAMESPACE}.evolved.entries "
            "WHERE data_file.partition.d = DATE '2024-01-01'"
        ),
        f"SELECT summary['added-records'], committed_at FROM {{c}}.{NAMESPACE}.evolved.snapshots",
        (
            f"SELECT s.operation, h.is_current_ancestor FROM {{c}}.{NAMESPACE}.evolved.history h "
            f"JOIN {{c}}.{NAMESPACE}.evolved.snapshots s ON h.snapshot_id = s.snapshot_id"
        ),
    ):
        ours, theirs = both(spark, iceberg_java, query)
        assert ours == theirs, query
    # Iceberg Java cannot read some fields of structs in a list alone
    manifests = f"{NAMESPACE}.evolved.manifests"
    ours = spark.sql(f"SELECT partition_summaries.lower_bound, length FROM lake.{manifests}")
    whole = (
        f"SELECT transform(partition_summaries, s -> s.lower_bound), length FROM ice.{manifests}"
    )
    assert ordered(ours.collect()) == ordered(iceberg_java.sql(whole))
    plan = spark.sql(
        f"EXPLAIN SELECT file_path FROM lake.{NAMESPACE}.evolved.files LIMIT 1"
    ).collect()[0][0]
    assert "limit: 1" in plan
    narrow = spark.table(f"lake.{NAMESPACE}.evolved.files").select(
        "readable_metrics.id.lower_bound"
    )
    scan = narrow._jdf.queryExecution().optimizedPlan().toString()
    assert "upper_bound" not in narrow._jdf.queryExecution().executedPlan().toString(), scan


def test_what_metadata_tables_cannot_do_is_refused(spark, table):
    for statement in (
        f"INSERT INTO lake.{table}.refs SELECT * FROM lake.{table}.refs",
        f"DELETE FROM lake.{table}.files WHERE content = 0",
        f"DROP TABLE lake.{table}.snapshots",
        f"ALTER TABLE lake.{table}.snapshots SET TBLPROPERTIES ('a' = 'b')",
        f"CREATE TABLE lake.{table}.snapshots (id INT) USING iceberg",
        f"SELECT _file FROM lake.{table}.files",
    ):
        with pytest.raises(PySparkException):
            spark.sql(statement)
    shown = {
        row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES lake.{table}.files").collect()
    }
    assert shown.keys() >= {"current-snapshot-id", "format"}
    assert spark.table(f"lake.{table}").count() == 3


def test_states_named_below_a_table_are_read(spark, catalog, table):
    first, second = catalog.load_table(table).metadata.snapshot_log
    was, now = ['[1, "a"]', '[2, "b"]'], ['[1, "a"]', '[2, "b"]', '[3, "c"]']
    for selector, rows in {
        "branch_side": was,
        "branch_main": now,
        "tag_kept": was,
        f"snapshot_id_{first.snapshot_id}": was,
        f"at_timestamp_{first.timestamp_ms}": was,
        f"at_timestamp_{second.timestamp_ms}": now,
    }.items():
        assert ordered(spark.table(f"lake.{table}.{selector}").collect()) == rows, selector
    for refused in ("branch_none", "tag_none", "snapshot_id_77", "at_timestamp_77", "none"):
        with pytest.raises(PySparkException):
            spark.table(f"lake.{table}.{refused}")
    with pytest.raises(PySparkException, match=r"no snapshot, branch or tag 'none'[^$]*main, side"):
        spark.sql(f"SELECT * FROM lake.{table}.branch_none")


def test_states_named_below_a_table_are_read_as_iceberg_java_reads_them(
    spark, iceberg_java, catalog, table
):
    loaded = catalog.load_table(table)
    first, second = loaded.metadata.snapshot_log
    for selector in (
        "branch_side",
        "branch_main",
        "branch_kept",
        "tag_kept",
        "tag_side",
        f"snapshot_id_{first.snapshot_id}",
        f"at_timestamp_{first.timestamp_ms}",
        f"at_timestamp_{second.timestamp_ms}",
    ):
        ours, theirs = both(spark, iceberg_java, f"SELECT * FROM {{c}}.{table}.{selector}")
        assert ours == theirs, selector
    for refused in (
        f"{table}.branch_none",
        f"{table}.tag_none",
        f"{table}.snapshot_id_77",
        f"{table}.at_timestamp_77",
        f"{table}.none",
        f"{table}.branch_side.files",
        f"{table}.branch_side VERSION AS OF {first.snapshot_id}",
        f"{table}.tag_kept TIMESTAMP AS OF now()",
    ):
        for sql, name in (
            (lambda text: spark.sql(text).collect(), "lake"),
            (iceberg_java.sql, "ice"),
        ):
            with pytest.raises((PySparkException, AssertionError)):
                sql(f"SELECT * FROM {name}.{refused}")
    with pytest.raises(PySparkException, match=r"no snapshot, branch or tag 'none'[^$]*main, side"):
        spark.sql(f"SELECT * FROM lake.{table}.branch_none")


CHANGES = (
    "INSERT INTO {t} VALUES (5, 'e'), (6, 'e')",
    "DELETE FROM {t} WHERE id = 1",
    "DELETE FROM {t} WHERE id IN (SELECT explode(array(6)))",
    "UPDATE {t} SET id = id + 10 WHERE z = 'b'",
    (
        "MERGE INTO {t} t USING (SELECT explode(array(5L, 9L)) AS n) s ON t.id = s.n "
        "WHEN MATCHED THEN UPDATE SET id = 50 WHEN NOT MATCHED THEN INSERT (id, z) VALUES (s.n, 'm')"
    ),
    "INSERT OVERWRITE {t} PARTITION (z = 'm') VALUES (7)",
    "TRUNCATE TABLE {t}",
)
LEFT = (
    ["a1", "b2", "e5", "e6"],
    ["b2", "e5", "e6"],
    ["b2", "e5"],
    ["b12", "e5"],
    ["b12", "e50", "m9"],
    ["b12", "e50", "m7"],
    [],
)
"""The rows after each of them, where there are (1, a) and (2, b) at first."""


def test_a_branch_is_changed_by_its_name_and_nothing_else(spark, catalog, table):
    refs = catalog.load_table(table).refs()
    main = ordered(spark.table(f"lake.{table}").collect())
    for statement, left in zip(CHANGES, LEFT, strict=True):
        spark.sql(statement.format(t=f"lake.{table}.branch_side"))
        found = spark.table(f"lake.{table}.branch_side").collect()
        assert sorted(f"{row.z}{row.id}" for row in found) == left, statement
    assert catalog.load_table(table).refs()["kept"] == refs["kept"]
    assert ordered(spark.table(f"lake.{table}").collect()) == main


@pytest.mark.full("a branch is changed by its name in the gate")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(CHANGES[1:5:3], id="DELETE and MERGE"),
        pytest.param(
            [*CHANGES[:1], *CHANGES[2:4], *CHANGES[5:]],
            id="all others",
            marks=pytest.mark.full("two kinds of changes are in the gate"),
        ),
    ],
)
def test_only_branches_are_changed_by_their_names(spark, catalog, table, changes):
    refs = catalog.load_table(table).refs()
    main = ordered(spark.table(f"lake.{table}").collect())
    for statement in changes:
        for selector in ("tag_kept", "branch_kept", f"snapshot_id_{refs['main'].snapshot_id}"):
            with pytest.raises(PySparkException, match=r"cannot be|is a tag|resolve z|`z`"):
                spark.sql(statement.format(t=f"lake.{table}.{selector}"))
        with pytest.raises(PySparkException, match="no snapshot, branch or tag"):
            spark.sql(statement.format(t=f"lake.{table}.branch_none"))
    assert catalog.load_table(table).refs() == refs
    assert ordered(spark.table(f"lake.{table}").collect()) == main


def test_a_branch_is_changed_by_its_name_as_iceberg_java_changes_it(
    spark, iceberg_java, catalog, table
):
    loaded = catalog.load_table(table)
    with loaded.manage_snapshots() as manage:
        manage.create_branch(loaded.refs()["side"].snapshot_id, "theirs")
    main = ordered(spark.table(f"lake.{table}").collect())
    for statement in CHANGES:
        spark.sql(statement.format(t=f"lake.{table}.branch_side"))
        iceberg_java.sql(statement.format(t=f"ice.{table}.branch_theirs"))
        ours = spark.table(f"lake.{table}.branch_side").collect()
        assert ordered(ours) == ordered(
            iceberg_java.sql(f"SELECT * FROM ice.{table}.branch_theirs")
        )
        assert ordered(ours) == ordered(iceberg_java.sql(f"SELECT * FROM ice.{table}.branch_side"))
        assert ordered(spark.table(f"lake.{table}").collect()) == main


def test_rows_are_written_to_a_branch_by_an_option_which_may_make_it(spark, catalog, table):
    rows = spark.sql("SELECT 8L AS id, 'h' AS z")
    rows.writeTo(f"lake.{table}").option("branch", "new").append()
    assert spark.table(f"lake.{table}").count() == 3
    assert spark.table(f"lake.{table}.branch_new").count() == 4
    rows.writeTo(f"lake.{table}").option("branch", "new").overwrite(col("id") > 0)
    assert ordered(spark.table(f"lake.{table}.branch_new").collect()) == ['[8, "h"]']
    rows.write.insertInto(f"lake.{table}.branch_new", overwrite=True)
    rows.writeTo(f"lake.{table}.branch_new").option("branch", "new").append()
    with pytest.raises(PySparkException, match="in conflict"):
        rows.writeTo(f"lake.{table}.branch_new").option("branch", "side").append()
    assert spark.table(f"lake.{table}.branch_new").count() == 2
    assert spark.table(f"lake.{table}").count() == 3


def test_read_options_are_those_of_iceberg_java(spark, iceberg_java, catalog, table):
    loaded = catalog.load_table(table)
    first, second = (entry.snapshot_id for entry in loaded.metadata.snapshot_log)
    spark.sql(f"INSERT INTO lake.{table}.branch_side VALUES (4, 'd')")
    theirs = {
        "`branch` = 'side'": None,
        f"`start-snapshot-id` = '{first}'": None,
        f"`start-snapshot-id` = '{first}', `end-snapshot-id` = '{second}'": None,
        "`split-size` = '1', `lookback` = '3', `file-open-cost` = '0'": None,
        "`vectorization-enabled` = 'false'": None,
        "`batch-size` = '1', `locality` = 'true'": None,
        "`streaming-max-files-per-micro-batch` = '1', `stream-from-timestamp` = '9', `no` = 'x'": None,
    }
    for options in theirs:
        query = f"SELECT * FROM {{c}}.{table} WITH ({options}) WHERE id > 0"
        ours, found = both(spark, iceberg_java, query)
        assert ours == found, options


def test_read_options_choose_a_state_and_splits(spark, catalog, table):
    loaded = catalog.load_table(table)
    first, second = (entry.snapshot_id for entry in loaded.metadata.snapshot_log)
    appended = f"SELECT * FROM lake.{table} WITH (`start-snapshot-id` = '{first}')"
    assert ordered(spark.sql(appended).collect()) == ['[3, "c"]']
    spark.sql(f"INSERT INTO lake.{table}.branch_side VALUES (4, 'd')")

    def read(**options):
        reader = spark.read
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader.table(f"lake.{table}")

    kept = ordered(spark.table(f"lake.{table}.tag_kept").collect())
    # Iceberg for Spark 3.5 has these, that for 4.1 has not
    assert ordered(read(**{"snapshot-id": first}).collect()) == kept
    assert ordered(read(tag="kept").collect()) == kept
    at = loaded.metadata.snapshot_log[0].timestamp_ms
    assert ordered(read(**{"as-of-timestamp": at}).where("z = 'a'").collect()) == kept[:1]
    assert read(**{"split-size": 1}).rdd.getNumPartitions() == 3
    for options in (
        {"snapshot-id": first, "tag": "kept"},
        {"end-snapshot-id": second},
        {"branch": "side", "start-snapshot-id": first},
        {"start-timestamp": 1},
        {"versionAsOf": first, "branch": "side"},
        {"branch": "none"},
        {"snapshot-id": 77},
        {"batch-size": "many"},
    ):
        with pytest.raises(PySparkException):
            read(**options).collect()


@pytest.mark.full("four Sparks; what 4.3 does is its own")
@pytest.mark.parametrize("minor", ["4.3", "4.2", "4.1", "4.0"])
def test_a_table_is_read_by_the_options_of_each_of_its_names_or_refused(sql_on, table, minor):
    """Before 4.3 Spark takes the options of one name for all of them in a statement."""
    sql, t = sql_on(minor), f"lake.{table}"
    side = f"{t} WITH (`branch` = 'side')"
    sql(f"INSERT INTO {t}.branch_side VALUES (4, 'd')")
    main = sorted(sql(f"SELECT id FROM {t}"))
    statements = {
        f"SELECT (SELECT count(*) FROM {t}), (SELECT count(*) FROM {side})": [[3, 3]],
        f"SELECT (SELECT max(id) FROM {side}), (SELECT max(id) FROM {t})": [[4, 3]],
        f"WITH s AS (SELECT id FROM {side}) SELECT max(s.id) FROM s LEFT JOIN {t} USING (id)": [
            [4]
        ],
        f"DELETE FROM {t} WHERE id IN (SELECT id FROM {side} WHERE id > 3)": [],
        (
            f"MERGE INTO {t} t USING (SELECT * FROM {side} WHERE id > 3) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE"
        ): [],
    }
    for text, answer in statements.items():
        if minor == "4.3":
            assert sql(text) == answer, text
            continue
        with pytest.raises(
            (PySparkException, AssertionError), match="with different options"
        ) as told:
            sql(text)
        assert f"{t}.branch_" in str(told.value)
    assert sorted(sql(f"SELECT id FROM {t}")) == main
    by_name = f"SELECT (SELECT max(id) FROM {t}), (SELECT max(id) FROM {t}.branch_side)"
    assert sql(by_name) == [[3, 4]]
    assert sql(f"SELECT max(a.id + b.id) FROM {side} a JOIN {side} b USING (id)") == [[8]]
    assert sql(f"SELECT (SELECT max(id) FROM {t} VERSION AS OF 'side'), max(id) FROM {t}") == [
        [4, 3]
    ]


def test_rows_come_one_by_one_where_batches_are_turned_off(spark, table):
    def columnar():
        plan = spark.sql(f"SELECT * FROM lake.{table}")._jdf.queryExecution().executedPlan()
        return "ColumnarToRow" in plan.toString()

    rows = ordered(spark.table(f"lake.{table}").collect())
    assert columnar()
    spark.conf.set("spark.sql.iceberg.vectorization.enabled", "false")
    try:
        assert not columnar()
        assert ordered(spark.table(f"lake.{table}").collect()) == rows
        both_ways = spark.table(f"lake.{table}").join(
            spark.table(f"lake.{table}.branch_side"), "id"
        )
        assert both_ways.count() == 2
    finally:
        spark.conf.unset("spark.sql.iceberg.vectorization.enabled")


@pytest.fixture(params=READERS)
def other(request):
    """Answers a query as another implementation does."""
    return reader(request)


@pytest.mark.full("sources by name are in the gate's SQL and streams")
@pytest.mark.parametrize("name", sampled(["iceberg", "icecomb"], keep=1))
def test_tables_are_read_and_written_as_a_source_of_that_name(
    spark, other, catalog, table, name, tmp_path, only_lake
):
    def read(where, **options):
        return ordered(spark.read.format(name).options(**options).load(where).collect())

    rows = ordered(spark.table(f"lake.{table}").collect())
    kept = ordered(spark.table(f"lake.{table}.tag_kept").collect())
    # the only catalog of ours that the session configures is meant where none is named
    assert read(f"lake.{table}") == read(table) == rows
    assert read(f"lake.{table}.tag_kept") == read(table, versionAsOf="kept") == kept
    assert read(table, branch="side") == kept
    snapshots = spark.read.format(name).load(f"lake.{table}.snapshots")
    assert snapshots.count() == 2
    four = spark.sql("SELECT 4L AS id, 'd' AS z")
    four.write.format(name).mode("append").save(f"lake.{table}")
    four.write.format(name).mode("append").option("branch", "side").save(table)
    theirs = other(f"SELECT * FROM ice.{table}")
    assert read(table) == ordered(theirs) == sorted([*rows, '[4, "d"]'])
    assert read(f"{table}.branch_side") == sorted([*kept, '[4, "d"]'])
    four.write.format(name).mode("overwrite").save(f"lake.{table}")
    assert read(table) == ['[4, "d"]']
    made = f"lake.{table}_{name}"
    four.write.format(name).partitionBy("z").save(made)
    with pytest.raises(PySparkException, match="already exists"):
        four.write.format(name).save(made)
    four.write.format(name).mode("ignore").save(made)
    four.write.format(name).mode("append").saveAsTable(made)
    assert read(made) == ['[4, "d"]', '[4, "d"]']
    four.write.format(name).mode("overwrite").saveAsTable(made)
    assert ordered(other(f"SELECT * FROM {made.replace('lake', 'ice', 1)}")) == ['[4, "d"]']
    catalog.drop_table(made.removeprefix("lake."))
    spark.sql("USE lake")
    try:
        assert read(table) == ['[4, "d"]']
    finally:
        spark.sql("USE spark_catalog")
    # a table in a folder; and a metadata file, which is a state for ever
    from icecomb.catalog import load_catalog

    files = load_catalog("places", type="hadoop", warehouse=str(tmp_path))
    files.create_namespace("db")
    in_folder = files.create_table("db.t", catalog.load_table(table).schema())
    place = f"{tmp_path}/db/t"
    four.write.format(name).mode("append").save(place)
    four.write.format(name).mode("append").save(f"file:{place}")
    assert read(place) == ['[4, "d"]', '[4, "d"]']
    assert spark.read.format(name).load(f"{place}#files").count() == 2
    assert spark.sql(f"SELECT count(*) FROM lake.`{place}`").collect() == [(2,)]
    assert read(in_folder.metadata_location) == []
    four.write.format(name).save(f"{place}_new")
    four.write.format(name).mode("ignore").save(f"{place}_new")
    assert read(f"{place}_new") == ['[4, "d"]']
    four.write.format(name).mode("overwrite").save(f"{place}_new")
    assert read(f"{place}_new") == ['[4, "d"]']
    for refused in (
        lambda: four.write.format(name).mode("append").save(in_folder.metadata_location),
        lambda: four.write.format(name).save(place),
        lambda: spark.read.format(name).load(f"{place}_none"),
        lambda: spark.read.format(name).load(f"lake.{table}_none"),
        lambda: spark.read.format(name).load(),
    ):
        with pytest.raises(PySparkException):
            refused()
    spark.conf.set("spark.sql.catalog.second", "org.icecomb.spark.IcecombCatalog")
    try:
        with pytest.raises(PySparkException, match="any of the catalogs lake, second"):
            read(table)
    finally:
        spark.conf.unset("spark.sql.catalog.second")
