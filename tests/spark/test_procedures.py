"""CALL on our Spark, and on 3.5 by our parser: what Iceberg Java cannot be asked, and how it is shown."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from icecomb.catalog import migrate, open_table
from tests.rings import sampled
from tests.test_docs import blocks

ON_THE_PAGE = pytest.mark.full("the page of procedures calls each of them in the gate")

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "procedure_tests"
NUMBERS = itertools.count(1)
REFUSED = (PySparkException, AssertionError)  # the second is that of a Spark in another process


@pytest.fixture(params=sampled(["4.3", "3.5"], keep=1))
def run(request, sql_on):
    """Answers a statement: where Spark itself has CALL, and where our extension brings it."""
    return sql_on(request.param)


@pytest.fixture
def table(run):
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    run(f"CREATE TABLE lake.{name} (id bigint, k string)")
    run(f"INSERT INTO lake.{name} VALUES (1, 'a')")
    run(f"INSERT INTO lake.{name} VALUES (2, 'b')")
    return name


@pytest.fixture
def hive(run):
    """A partitioned Hive table of Spark's own, with a value that is null and one that is escaped."""
    name = f"{NAMESPACE}.h{next(NUMBERS)}"
    run(
        f"CREATE TABLE spark_catalog.{name} (id bigint) PARTITIONED BY (k string) STORED AS PARQUET"
    )
    for value in ("'a'", "'b/c'", "NULL"):
        run(f"INSERT INTO spark_catalog.{name} PARTITION (k = {value}) SELECT 1L + {len(value)}")
    return name


def test_an_argument_may_be_computed(run, table):
    """What Spark resolves only later, as a time that is some days ago, beside what is left out."""
    for time in (
        "now() - INTERVAL 2 DAYS",
        "date_sub(current_date(), 2)",
        "TIMESTAMP '2026-01-01'",
    ):
        named = f"CALL lake.system.expire_snapshots(table => '{table}', older_than => {time})"
        in_order = f"CALL lake.system.expire_snapshots('{table}', {time}, 1 + 1)"
        for statement in (named, in_order):
            assert [list(row) for row in run(statement)] == [[0] * 6]
    soon = "now() + INTERVAL 1 HOUR"
    run(f"CALL lake.system.expire_snapshots('{table}', {soon})")
    assert [list(row) for row in run(f"SELECT count(*) FROM lake.{table}.snapshots")] == [[1]]


SHOWN_BY_ICEBERG = {
    "rewrite_data_files": (
        "'db.sample'",
        (
            "table => 'db.sample', strategy => 'sort', "
            "sort_order => 'id DESC NULLS LAST,name ASC NULLS FIRST'"
        ),
        "table => 'db.sample', strategy => 'sort', sort_order => 'zorder(c1,c2)'",
        (
            "table => 'db.sample', "
            "options => map('min-input-files', '2', 'remove-dangling-deletes', 'true')"
        ),
        "table => 'db.sample', where => 'id = 3 and name = \"foo\"'",
    ),
    "rewrite_position_delete_files": (
        "'db.sample'",
        "table => 'db.sample', options => map('rewrite-all', 'true')",
        "table => 'db.sample', options => map('min-input-files', '2')",
    ),
    "rewrite_manifests": (
        "'db.sample'",
        "table => 'db.sample', spec_id => 1",
        "table => 'db.sample', sort_by => array('category')",
    ),
    "remove_orphan_files": (
        "table => 'db.sample', dry_run => true",
        "table => 'db.sample', location => 'tablelocation/data'",
        "table => 'db.sample', file_list_view => 'files_view'",
        "table => 'db.sample', prefix_mismatch_mode => 'IGNORE'",
        "table => 'db.sample', prefix_mismatch_mode => 'DELETE'",
        "table => 'db.sample', equal_schemes => map('file', 'file1')",
        "table => 'db.sample', equal_authorities => map('ns1', 'ns2')",
        "table => 'db.sample', prefix_listing => true",
    ),
    "expire_snapshots": (
        "table => 'db.sample', snapshot_ids => ARRAY(123)",
        "'db.sample', TIMESTAMP '2021-06-30 00:00:00.000', 100",
    ),
}
"""How the documentation of Iceberg 1.12 calls the procedures of maintenance."""

HIVE_ROWS = [[4, "a"], [5, None], [6, "b/c"]]


def test_spark_shows_and_describes_procedures(spark):
    def run(text):
        return [list(row) for row in spark.sql(text).collect()]

    listed = {row[-1] for row in run("SHOW PROCEDURES IN lake.system")}
    assert {"rollback_to_snapshot", "expire_snapshots", "create_changelog_view"} <= listed
    assert {row[-1] for row in run("SHOW PROCEDURES IN lake")} == listed
    text = "\n".join(str(row) for row in run("DESCRIBE PROCEDURE lake.system.rewrite_manifests"))
    assert "rewrite_manifests" in text
    assert "sort_by" in text


def test_a_cached_table_is_read_anew_after_a_call(run, catalog, table):
    first = catalog.load_table(table).snapshots()[0].snapshot_id
    run(f"CACHE TABLE lake.{table}")
    try:
        assert run(f"SELECT count(*) FROM lake.{table}") == [[2]]
        run(f"CALL lake.system.rollback_to_snapshot('{table}', {first})")
        assert run(f"SELECT count(*) FROM lake.{table}") == [[1]]
    finally:
        run(f"UNCACHE TABLE lake.{table}")


def test_a_bare_name_is_in_the_session_s_namespace(run, table):
    short = table.split(".")[1]
    run(f"USE lake.{NAMESPACE}")
    try:
        assert len(run(f"CALL system.ancestors_of('{short}')")) == 2
    finally:
        run("USE spark_catalog.default")
    with pytest.raises(REFUSED, match=r"TABLE_OR_VIEW_NOT_FOUND|There is no table"):
        run(f"CALL lake.system.ancestors_of('{short}')")


def test_a_refusal_says_what_to_do_and_changes_nothing(run, catalog, table):
    before = catalog.load_table(table).metadata_location
    for call, message in {
        f"rollback_to_snapshot('{table}', NULL)": "argument snapshot_id is null",
        f"rollback_to_snapshot('{table}', 1)": "no snapshot 1",
        f"set_current_snapshot('{table}')": "either snapshot_id or ref",
        f"ancestors_of('other.{table}')": "is not a table of catalog lake",
        "ancestors_of('a b')": "is not a table name",
        f"expire_snapshots(table => '{table}', retain_last => 0)": "Number of snapshots to retain",
        f"rewrite_manifests(table => '{table}', spec_id => 4)": "no partition spec 4",
        f"create_changelog_view(table => '{table}', options => map('x', '1'))": "no option x",
        f"create_changelog_view(table => '{table}', changelog_view => 'a.b')": "temporary view",
        f"roll_back('{table}')": "no procedure system.roll_back",
    }.items():
        with pytest.raises(REFUSED, match=message):
            run(f"CALL lake.system.{call}")
    assert catalog.load_table(table).metadata_location == before


def test_arguments_are_expressions_and_explaining_calls_nothing(run, catalog, table):
    first, second = (each.snapshot_id for each in catalog.load_table(table).snapshots())
    db, name = table.split(".")
    moved = f"CALL lake.system.rollback_to_snapshot(snapshot_id => '{first}', table => "
    explained = run(f"EXPLAIN {moved}'{table}')") + run(f"explain extended {moved}'{table}')")
    assert all("Call" in row[0] or "CALL" in row[0] for row in explained)
    assert catalog.load_table(table).current_snapshot().snapshot_id == second
    assert run(f"-- back\n  {moved}concat('{db}', '.', /* its name */ lower('{name}')));") == [
        [second, first]
    ]
    for wrong in (
        "older_than => 'yesterday noon'",
        "retain_last => 'many'",
        "older_than => array(1)",
        "snapshot_ids => map('a', 1)",
        "older_than => no_such_column",
        "older_than => ",
    ):
        with pytest.raises(REFUSED):
            run(f"CALL lake.system.expire_snapshots(table => '{table}', {wrong})")
    assert len(catalog.load_table(table).snapshots()) == 2


def test_a_call_of_another_catalog_is_left_to_others(run):
    with pytest.raises(REFUSED) as refused:
        run("CALL nobodys.system.ancestors_of('t')")
    assert "icecomb" not in str(refused.value)


@ON_THE_PAGE
def test_files_of_a_hive_table_come_in_by_its_partitions(run, hive):
    target = f"lake.{NAMESPACE}.t{next(NUMBERS)}"
    run(f"CREATE TABLE {target} (id bigint, k string) PARTITIONED BY (k)")
    call = f"CALL lake.system.add_files(table => '{target}', source_table => '{{source}}'{{more}})"
    one = call.format(source=f"spark_catalog.{hive}", more=", partition_filter => map('K', 'b/c')")
    assert run(one) == [[1, 1]]
    assert run(f"SELECT id, k FROM {target}") == [[6, "b/c"]]
    with pytest.raises(REFUSED, match="already"):
        run(call.format(source=hive, more=""))
    run(f"ALTER TABLE spark_catalog.{hive} ADD PARTITION (k = 'empty')")
    nothing = call.format(source=hive, more=", partition_filter => map('k', 'empty')")
    assert run(nothing) == [[0, 0]]
    run(f"ALTER TABLE spark_catalog.{hive} DROP PARTITION (k = 'empty')")
    run(f"DELETE FROM {target}")
    assert run(call.format(source=hive, more=", check_duplicate_files => false")) == [[3, 3]]
    assert run(f"SELECT id, k FROM {target} ORDER BY id") == HIVE_ROWS
    for source, more, message in (
        (target, "", "is an Iceberg table"),
        (hive, ", partition_filter => map('k', 'z')", "no partitions of"),
        (hive, ", partition_filter => map('z', 'z')", "is not partitioned by z"),
        (hive, ", parallelism => 0", "Parallelism"),
    ):
        with pytest.raises(REFUSED, match=message):
            run(call.format(source=source, more=more))


@ON_THE_PAGE
def test_a_snapshot_of_a_hive_table_leaves_it_as_it_is(run, catalog, hive):
    new = f"{NAMESPACE}.s{next(NUMBERS)}"
    call = (
        f"CALL lake.system.snapshot('spark_catalog.{hive}', '{new}', properties => map('a', 'b'))"
    )
    assert run(call) == [[3]]
    assert run(f"SELECT id, k FROM lake.{new} ORDER BY id") == HIVE_ROWS
    made = catalog.load_table(new)
    assert {key: made.properties[key] for key in ("a", "gc.enabled", "snapshot")} == {
        "a": "b",
        "gc.enabled": "false",
        "snapshot": "true",
    }
    run(f"INSERT INTO lake.{new} VALUES (9, 'a')")
    run(f"DELETE FROM lake.{new} WHERE k IS NULL")
    assert run(f"SELECT id, k FROM spark_catalog.{hive} ORDER BY id") == HIVE_ROWS
    with pytest.raises(REFUSED):  # the name is taken
        run(call)
    source = catalog.client.table(*hive.split("."))
    inside = f"{source.storage.location}/inside"
    with pytest.raises(REFUSED, match="the Hive table is in"):
        run(f"CALL lake.system.snapshot('{hive}', '{NAMESPACE}.inside', '{inside}')")
    with pytest.raises(REFUSED, match="set by the migration itself"):
        run(
            f"CALL lake.system.snapshot('{hive}', '{NAMESPACE}.x', NULL, map('gc.enabled', 'true'))"
        )
    run(f"DROP TABLE lake.{new}")
    assert run(f"SELECT id, k FROM spark_catalog.{hive} ORDER BY id") == HIVE_ROWS


@ON_THE_PAGE
def test_a_hive_table_is_migrated_and_can_go_back(run, catalog, hive):
    with pytest.raises(REFUSED, match="Leave backup_table_name out"):
        run(f"CALL lake.system.migrate(table => '{hive}', backup_table_name => 'x')")
    assert run(f"CALL lake.system.migrate('{hive}', map('foo', 'bar'))") == [[3]]
    assert run(f"SELECT id, k FROM lake.{hive} ORDER BY id") == HIVE_ROWS
    assert catalog.load_table(hive).properties["foo"] == "bar"
    migrate.revert(catalog, hive, dry_run=False)
    assert run(f"SELECT id, k FROM spark_catalog.{hive} ORDER BY id") == HIVE_ROWS
    assert run(f"CALL lake.system.migrate(table => '{hive}', drop_backup => true)") == [[3]]
    assert catalog.load_table(hive).properties.get("gc.enabled") != "false"


@ON_THE_PAGE
def test_a_changelog_knows_rows_that_delete_files_removed(run, spark, catalog):
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    run(
        f"CREATE TABLE lake.{name} (id bigint, k string, s struct<a: int>) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    run(f"INSERT INTO lake.{name} SELECT id, 'a', named_struct('a', 1) FROM range(4)")
    run(f"DELETE FROM lake.{name} WHERE id = 2")
    assert catalog.load_table(name).inspect.delete_files().num_rows == 1
    run(f"ALTER TABLE lake.{name} RENAME COLUMN k TO kind")
    run(f"ALTER TABLE lake.{name} ADD COLUMN later int")
    run(f"INSERT INTO lake.{name} VALUES (7, 'b', named_struct('a', 2), 5)")
    [[view]] = run(f"CALL lake.system.create_changelog_view('{name}', '`the changes`')")
    found = run(
        f"SELECT id, kind, later, _change_type, _change_ordinal FROM {view} ORDER BY _change_ordinal, id"
    )
    assert found == [
        *([i, "a", None, "INSERT", 0] for i in range(4)),
        [2, "a", None, "DELETE", 1],
        [7, "b", 5, "INSERT", 2],
    ]
    run(f"ALTER TABLE lake.{name} ADD COLUMN s.more int")
    with pytest.raises(REFUSED, match="cannot be shown as one column"):
        run(f"CALL lake.system.create_changelog_view('{name}')")


def test_files_with_other_columns_come_in_and_what_the_table_lacks_is_not_read(run, tmp_path):
    folder = tmp_path / "wide"
    folder.mkdir()
    wide = pa.table({"id": pa.array([1], pa.int64()), "more": ["x"]})
    pq.write_table(wide, folder / "a.parquet")
    target = f"{NAMESPACE}.t{next(NUMBERS)}"
    run(f"CREATE TABLE lake.{target} (id bigint, k string)")
    assert run(f"CALL lake.system.add_files('{target}', '`parquet`.`{folder}`')") == [[1, 1]]
    run(f"ALTER TABLE lake.{target} ADD COLUMN more string")
    run(f"INSERT INTO lake.{target} VALUES (2, 'b', 'y')")
    assert run(f"SELECT * FROM lake.{target} ORDER BY id") == [[1, None, None], [2, "b", "y"]]
    assert run(f"SELECT id FROM lake.{target} WHERE more IS NULL") == [[1]]
    strict = f"{NAMESPACE}.t{next(NUMBERS)}"
    run(f"CREATE TABLE lake.{strict} (id bigint, k string NOT NULL)")
    with pytest.raises(REFUSED, match=r"Cannot add .*'?k'?"):
        run(f"CALL lake.system.add_files('{strict}', '`parquet`.`{folder}`')")


def test_a_folder_with_odd_names_comes_in(run, tmp_path):
    folder = tmp_path / "it's 100%"
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int64()), "k": ["a"]}), folder / "a.parquet")
    target = f"{NAMESPACE}.t{next(NUMBERS)}"
    run(f"CREATE TABLE lake.{target} (id bigint, k string)")
    text = str(folder).replace("'", "\\'")
    # the format's name stands for any: a file is taken for what it is
    assert run(f"CALL lake.system.add_files('{target}', '`orc`.`{text}`')") == [[1, 1]]
    assert run(f"SELECT * FROM lake.{target}") == [[1, "a"]]
    [[view]] = run(f"CALL lake.system.create_changelog_view('{target}')")
    assert run(f"SELECT id, _change_type FROM {view}") == [[1, "INSERT"]]


def test_the_statements_of_the_page_of_procedures(run, catalog):
    statements = [
        s for block in blocks("procedures.md", "sql") for s in block.split(";") if s.strip()
    ]
    namespace = f"docs_calls_{next(NUMBERS)}"
    run(f"CREATE NAMESPACE lake.{namespace}")
    orders = f"lake.{namespace}.orders"
    run(f"CREATE TABLE {orders} (id BIGINT, country STRING) PARTITIONED BY (country)")
    for row in ("(1, 'de')", "(2, 'fr')"):
        run(f"INSERT INTO {orders} VALUES {row}")
    table = catalog.load_table((namespace, "orders"))
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "kept").create_branch(second, "audit")
    old = f"spark_catalog.{namespace}.old_orders"
    run(f"CREATE TABLE {old} (id BIGINT) PARTITIONED BY (country STRING) STORED AS PARQUET")
    run(f"INSERT INTO {old} PARTITION (country = 'de') SELECT 7L")
    results = {}
    for statement in statements:
        text = statement.replace("shop.", f"{namespace}.").replace(
            "5053124665745378294", str(first)
        )
        text = text.replace("/path/to/00000.metadata.json", table.refresh().metadata_location)
        text = text.replace("hdfs://nn/warehouse/orders", table.location())
        name = re.search(r"system\.(\w+)", statement) or re.search(r"FROM (\w+)", statement)
        results[statement if name is None else name[1]] = run(text)
    assert results["ancestors_of"] == [
        [s.snapshot_id, s.timestamp_ms] for s in table.snapshots()[1::-1]
    ]
    assert results["orders_changes"] == [[2, "INSERT", 0, second]]
    assert results["add_files"] == [[1, 1]]
    assert results["snapshot"] == results["migrate"] == [[1]]
    assert results["compute_partition_stats"] != []
    assert results["compute_table_stats"][0][0].endswith(".stats")
    [[number, _, wrote, was_identifier]] = results["undelete_column"]
    # no snapshot is newer than the column: that nothing was written without it is not known
    assert (wrote, was_identifier) == (True, False)
    assert catalog.load_table((namespace, "orders")).schema().find_field("note").field_id == number
    ids = [row[0] for row in run(f"SELECT id FROM lake.{namespace}.again")]
    assert sorted(ids) == [1, 2, 7]
    for name in ("orders", "trial", "old_orders", "again"):
        catalog.drop_table((namespace, name))
    catalog.drop_namespace(namespace)


@ON_THE_PAGE
def test_maintenance_is_called_as_the_documentation_of_iceberg_does(run, catalog):
    name = f"{NAMESPACE}.sample{next(NUMBERS)}"
    columns = "id bigint, name string, c1 int, c2 int, category string"
    run(
        f"CREATE TABLE lake.{name} ({columns}) TBLPROPERTIES ('format-version'='2', "
        "'write.delete.mode'='merge-on-read')"
    )
    with catalog.load_table(name).update_spec() as spec:
        spec.add_field("category", "identity")
    run(f"REFRESH TABLE lake.{name}")
    for n in range(3):
        run(f"INSERT INTO lake.{name} VALUES ({n}, 'foo', {n}, 1, 'a'), (3, 'foo', 1, {n}, 'b')")
    run(f"DELETE FROM lake.{name} WHERE id = 1")
    rows = run(f"SELECT * FROM lake.{name} ORDER BY id, c1, c2")
    table = catalog.load_table(name)
    first = table.snapshots()[0].snapshot_id
    run("CREATE OR REPLACE TEMPORARY VIEW files_view (file_path, last_modified) AS "
        f"VALUES ('{table.location()}/data/old.parquet', TIMESTAMP '2021-06-30 00:00:00')")  # fmt: skip
    results = {}
    for procedure, calls in SHOWN_BY_ICEBERG.items():
        for given in calls:
            text = given.replace("db.sample", name).replace("123", str(first))
            text = text.replace("tablelocation", table.location())
            results[given] = run(f"CALL lake.system.{procedure}({text})")
    assert results["table => 'db.sample', file_list_view => 'files_view'"] == [
        [f"{table.location()}/data/old.parquet"]
    ]
    assert run(f"SELECT * FROM lake.{name} ORDER BY id, c1, c2") == rows
    assert table.refresh().metadata.snapshot_by_id(first) is None


def test_a_copy_by_the_file_list_is_the_table_at_another_location(run, catalog, table, tmp_path):
    loaded = catalog.load_table(table)
    call = (
        f"rewrite_table_path(table => '{table}', source_prefix => '{loaded.location()}', "
        f"target_prefix => '{tmp_path}/moved', staging_location => '{tmp_path}/staging')"
    )
    latest = loaded.metadata_location.rpartition("/")[2]
    assert run(f"CALL lake.system.{call}") == [[latest, f"{tmp_path}/staging/file-list", 2, 0]]
    with (tmp_path / "staging" / "file-list").open(newline="") as lines:
        for source, target in csv.reader(lines):
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.removeprefix("file:"), target)
    copy = open_table(tmp_path / "moved" / "metadata" / latest)
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    with pytest.raises(REFUSED, match="cannot be the same as target prefix"):
        run(f"CALL lake.system.rewrite_table_path('{table}', '/a', '/a')")
