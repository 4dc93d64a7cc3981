"""Tables of format version 3 in Spark SQL: deletion vectors, row lineage, defaults."""

from __future__ import annotations

import itertools
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from icecomb.catalog.hive.catalog import HiveCatalog
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "version_3_tests"
NUMBERS = itertools.count(1)
BY_POSITION = {f"write.{c}.mode": "merge-on-read" for c in ("delete", "update", "merge")}
U = "00000000-0000-0000-0000-000000000001"
MOST_IN_A_PLAN = 1 << 20
"""Of more deleted rows, tasks read the positions themselves."""


@pytest.fixture
def name():
    return f"{NAMESPACE}.t{next(NUMBERS)}"


def created(catalog: HiveCatalog, name, schema, **properties):
    """A table of version 3 that is merged on read."""
    properties = {"format-version": "3", **BY_POSITION} | {
        key.replace("_", "."): value for key, value in properties.items()
    }
    return catalog.create_table(name, schema, properties=properties)


@pytest.mark.sparks("4.3", "3.5", "4.1")
@pytest.mark.parametrize("file_format", sampled(["parquet", "orc", "avro"], keep=1))
def test_rows_in_deletion_vectors_are_left_out_and_defaults_filled_in(
    sql_on, catalog, name, minor, file_format
):
    sql = sql_on(minor)
    inner = pa.struct([("a", pa.int32())])
    schema = pa.schema([("id", pa.int64()), ("s", inner), ("l", pa.list_(inner))])
    table = created(catalog, name, schema, write_format_default=file_format)
    rows = [{"id": i, "s": None if i == 3 else {"a": i}, "l": [{"a": i}, None]} for i in range(8)]
    table.append(pa.Table.from_pylist(rows, schema))
    table.delete("id in (2, 4, 5)")
    table.upsert(pa.Table.from_pylist([rows[6]], schema), ["id"])
    with table.update_schema() as update:
        update.add_column("c", "int", default_value=5)
        update.add_column("s.n", "decimal(20, 2)", default_value="1.50")
        update.add_column("l.element.n", "date", default_value="2020-01-02")
        update.add_column("u", "uuid", default_value=U)
    there = f"lake.{name}"
    columns = "id, c, s.a, string(s.n), string(l[0].n), string(l[1].n), u"
    assert sql(f"SELECT {columns} FROM {there} ORDER BY id") == [
        [i, 5, *((None, None) if i == 3 else (i, "1.50")), "2020-01-02", None, U]
        for i in (0, 1, 3, 6, 7)
    ]
    assert sql(f"SELECT count(*), count(c), max(c) FROM {there}") == [[5, 5, 5]]
    filled = f"SELECT id FROM {there} WHERE c = 5 AND s.a >= 0 AND s.n > 1 ORDER BY id"
    assert sql(filled) == [[0], [1], [6], [7]]
    assert sql(f"SELECT string(s.n), s IS NULL FROM {there} ORDER BY id") == [
        [None if i == 3 else "1.50", i == 3] for i in (0, 1, 3, 6, 7)
    ]
    assert sql(f"SELECT id FROM {there} WHERE c IS NULL OR c < 5") == []
    assert sql(f"SELECT id FROM {there} WHERE _deleted ORDER BY id")[:3] == [[2], [4], [5]]


@pytest.mark.sparks("4.3", "3.5", "4.1")
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("file_format", sampled(["orc", "parquet", "avro"], keep=1))
def test_rows_keep_their_ids_in_statements_that_change_them(
    sql_on, catalog, name, minor, mode, file_format
):
    sql = sql_on(minor)
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    modes = {f"write.{c}.mode": mode for c in ("delete", "update", "merge")}
    table = created(catalog, name, schema, write_format_default=file_format, **modes)
    for first, count in ((0, 6), (6, 4)):
        table.append(pa.table({"id": range(first, first + count), "k": ["a"] * count}, schema))
    there = f"lake.{name}"
    sql(f"DELETE FROM {there} WHERE id % 4 = 1")
    sql(f"UPDATE {there} SET k = 'u' WHERE id IN (SELECT explode(array(2, 7)))")
    sql(
        f"MERGE INTO {there} t "
        "USING (SELECT * FROM VALUES (2, 'm'), (3, 'm'), (8, 'd'), (20, 'i') AS v (id, k)) s ON t.id = s.id WHEN MATCHED AND s.k = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT *"
    )
    sql(f"DELETE FROM {there} WHERE abs(id) = 0")
    columns = "id, k, _row_id, _last_updated_sequence_number"
    *moved, [_, _, new_id, new_number] = sql(f"SELECT {columns} FROM {there} ORDER BY id")
    assert moved == [
        [2, "m", 2, 5],
        [3, "m", 3, 5],
        [4, "a", 4, 1],
        [6, "a", 6, 2],
        [7, "u", 7, 4],
    ]
    assert (new_id > 9, new_number) == (True, 5)
    assert sql(f"SELECT id FROM {there} WHERE _row_id BETWEEN 3 AND 6 ORDER BY id") == [
        [3],
        [4],
        [6],
    ]
    of_files = ("id", "k", "_row_id", "_last_updated_sequence_number")
    rows = table.refresh().scan(selected_fields=of_files).to_arrow().sort_by("id").to_pylist()
    assert [list(row.values()) for row in rows] == [*moved, [20, "i", new_id, new_number]]
    deletes = table.inspect.delete_files()
    assert set(deletes["file_format"].to_pylist()) == ({"PUFFIN"} if "read" in mode else set())
    targets = deletes["referenced_data_file"].to_pylist()
    assert len(targets) == len(set(targets))


@pytest.mark.sparks("4.3", "3.5")
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_iceberg_java_goes_on_with_what_our_statements_left_and_ours_with_its(
    sql_on, iceberg_java, catalog, name, minor, mode
):
    sql = sql_on(minor)
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    table = created(
        catalog, name, schema, **{f"write.{c}.mode": mode for c in ("delete", "update", "merge")}
    )
    table.append(pa.table({"id": range(8), "k": ["a"] * 8}, schema))
    table.append(pa.table({"id": range(8, 12), "k": ["a"] * 4}, schema))
    for number, statement in enumerate(
        [
            "DELETE FROM {t} WHERE abs(id) IN (1, 9)",
            "UPDATE {t} SET k = 'u' WHERE abs(id) = 2",
            "DELETE FROM {t} WHERE abs(id) = 3",
            (
                "MERGE INTO {t} t USING (SELECT explode(sequence(4, 5)) AS id) s ON t.id = s.id "
                "WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 'm'"
            ),
            "DELETE FROM {t} WHERE abs(id) = 10",
            "UPDATE {t} SET k = 'v' WHERE abs(id) = 2",
        ]
    ):
        if number % 2:
            iceberg_java.sql(statement.format(t=f"ice.{name}"))
        else:
            sql(statement.format(t=f"lake.{name}"))
        columns = "id, k, _row_id, _last_updated_sequence_number"
        theirs = iceberg_java.sql(f"SELECT {columns} FROM ice.{name} ORDER BY id")
        assert sql(f"SELECT {columns} FROM lake.{name} ORDER BY id") == theirs
        assert all(row_id == id_ for id_, _, row_id, _ in theirs)
    assert theirs == [
        [0, "a", 0, 1],
        [2, "v", 2, 8],
        [5, "m", 5, 6],
        [6, "a", 6, 1],
        [7, "a", 7, 1],
        [8, "a", 8, 2],
        [11, "a", 11, 2],
    ]


@pytest.mark.sparks("4.3", "3.5", "4.1")
def test_columns_have_defaults_that_statements_give_and_fill_in(sql_on, catalog, name, minor):
    sql = sql_on(minor)
    there = f"lake.{name}"
    sql(f"CREATE TABLE {there} (id INT) USING iceberg")
    sql(f"INSERT INTO {there} VALUES (1)")
    with pytest.raises(Exception, match=r"belongs to format version 3 \(v3\)"):
        sql(f"ALTER TABLE {there} ADD COLUMN c INT DEFAULT 5")
    sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('format-version' = '3')")
    sql(f"ALTER TABLE {there} ADD COLUMNS (c INT DEFAULT 5, d DATE DEFAULT DATE '2020-01-02')")
    with pytest.raises(Exception, match=r"Column e cannot have the default current_date\(\)"):
        sql(f"ALTER TABLE {there} ADD COLUMN e DATE DEFAULT current_date()")
    if minor in {"3.5", "4.0"}:
        with pytest.raises(Exception, match="Cannot find data for the output column `c`"):
            sql(f"INSERT INTO {there} (id) VALUES (2)")
        sql(f"INSERT INTO {there} VALUES (2, DEFAULT, DEFAULT)")
    else:
        sql(f"INSERT INTO {there} (id) VALUES (2)")
    sql(f"ALTER TABLE {there} ALTER COLUMN c SET DEFAULT 9")
    sql(f"INSERT INTO {there} (id, d, c) VALUES (3, DEFAULT, DEFAULT)")
    sql(f"ALTER TABLE {there} ALTER COLUMN c DROP DEFAULT")
    sql(f"INSERT INTO {there} VALUES (4, DEFAULT, DEFAULT)")
    rows = [[1, 5], [2, 5], [3, 9], [4, None]]
    day = date(2020, 1, 2)
    assert sql(f"SELECT id, c, string(d) FROM {there} ORDER BY id") == [
        [*row, str(day)] for row in rows
    ]
    found = catalog.load_table(name).scan().to_arrow().sort_by("id").to_pylist()
    assert [list(row.values()) for row in found] == [[*row, day] for row in rows]
    told = sql(f"DESCRIBE TABLE EXTENDED {there}")
    assert "format-version=3" in next(row[1] for row in told if row[0] == "Table Properties")
    sql(f"CREATE TABLE {there}_copy USING iceberg AS SELECT * FROM {there}")
    assert catalog.load_table(f"{name}_copy").schema().find_field("d").write_default is None
    sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    with pytest.raises(Exception, match="have no column d, whose default Spark does not fill in"):
        sql(f"INSERT INTO {there} BY NAME SELECT 5 AS id, 6 AS c")


@pytest.mark.sparks("4.3", "3.5", "4.1")
def test_statements_give_all_fields_of_structs_whatever_their_defaults(
    sql_on, catalog, name, minor
):
    sql, there = sql_on(minor), f"lake.{name}"
    table = created(catalog, name, pa.schema([("id", pa.int64()), ("s", pa.struct([]))]))
    with table.update_schema() as update:
        update.add_column("s.a", "int")
    sql(f"INSERT INTO {there} VALUES (0, named_struct('a', 0))")
    sql(f"ALTER TABLE {there} ADD COLUMN s.n INT DEFAULT 5")
    with pytest.raises(Exception, match=r"Column l cannot have the default array\(1\)"):
        sql(f"ALTER TABLE {there} ADD COLUMN l ARRAY<INT> DEFAULT array(1)")
    sql(f"INSERT INTO {there} VALUES (1, named_struct('a', 1, 'n', 9)), (2, NULL)")
    sql(f"INSERT INTO {there} SELECT 3, named_struct('a', 3, 'n', NULL)")
    with pytest.raises(Exception, match=r"(?i)missing fields|cannot find data|not enough data"):
        sql(f"INSERT INTO {there} SELECT 4, named_struct('a', 4)")
    assert sql(f"SELECT id, s.a, s.n FROM {there} ORDER BY id") == [
        [0, 0, 5],
        [1, 1, 9],
        [2, None, None],
        [3, 3, None],
    ]


@pytest.mark.sparks("4.3", "4.1")
def test_rows_are_deleted_and_found_by_their_ids(sql_on, catalog, name, minor):
    sql, there = sql_on(minor), f"lake.{name}"
    table = created(catalog, name, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(8)}))
    sql(f"DELETE FROM {there} WHERE _row_id IN (1, 3) AND id < 5")
    sql(f"UPDATE {there} SET id = 9 WHERE id IN (SELECT id FROM {there} WHERE _row_id = 4)")
    sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')")
    sql(
        f"MERGE INTO {there} t USING (SELECT explode(array(2, 5)) AS n) s ON t._row_id = s.n "
        "WHEN MATCHED AND t._row_id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET id = id + 10"
    )
    left = [[0, 0], [6, 6], [7, 7], [9, 4], [15, 5]]
    assert sql(f"SELECT id, _row_id FROM {there} ORDER BY id") == left


@pytest.mark.sparks("3.5")
def test_rows_are_deleted_by_their_ids_where_none_moves(sql_on, catalog, name, minor):
    sql, there = sql_on(minor), f"lake.{name}"
    table = created(catalog, name, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(8)}))
    sql(f"DELETE FROM {there} WHERE _row_id IN (1, 3) AND id < 5")
    with pytest.raises(Exception, match=r"cannot name metadata columns such as _row_id"):
        sql(f"UPDATE {there} SET id = 9 WHERE _row_id = 4")
    sql(f"UPDATE {there} SET id = 9 WHERE id IN (SELECT id FROM {there} WHERE _row_id = 4)")
    left = [[0, 0], [2, 2], [5, 5], [6, 6], [7, 7], [9, 4]]
    assert sql(f"SELECT id, _row_id FROM {there} ORDER BY id") == left


@pytest.mark.sparks("3.5")
def test_statements_that_name_metadata_columns_move_no_rows(sql_on, catalog, name, minor):
    sql, there = sql_on(minor), f"lake.{name}"
    table = created(catalog, name, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
    for statement in (
        f"MERGE INTO {there} t USING (SELECT 1 AS i) ON _pos = i WHEN MATCHED THEN DELETE",
        f"DELETE FROM {there} WHERE _pos = 1 AND abs(id) < 5",
    ):
        with pytest.raises(Exception, match=r"cannot name metadata columns such as _row_id"):
            sql(statement)
    rows = table.refresh().scan(selected_fields=("id", "_row_id")).to_arrow().to_pylist()
    assert [list(row.values()) for row in rows] == [[i, i] for i in range(10)]


@pytest.mark.sparks("3.5")
def test_statements_about_version_2_that_move_rows_name_no_metadata_columns(
    sql_on, catalog, name, minor
):
    sql, there = sql_on(minor), f"lake.{name}"
    sql(f"CREATE TABLE {there} (id BIGINT) USING iceberg")
    catalog.load_table(name).append(pa.table({"id": range(4)}))
    for statement in (
        f"DELETE FROM {there} WHERE _pos = 1",
        f"UPDATE {there} SET id = 9 WHERE _pos = 1",
        f"MERGE INTO {there} t USING (SELECT 1 AS i) ON t._pos = i WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(Exception, match=r"cannot name metadata columns such as _row_id"):
            sql(statement)
    sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    sql(f"DELETE FROM {there} WHERE _pos = 1")
    assert sql(f"SELECT id FROM {there} ORDER BY id") == [[0], [2], [3]]


@pytest.mark.sparks("3.5", "4.1")
def test_a_column_that_hides_the_ids_of_rows_is_a_column_and_rows_are_not_moved(
    sql_on, catalog, name, minor
):
    sql, there = sql_on(minor), f"lake.{name}"
    schema = pa.schema([("id", pa.int64()), ("_row_id", pa.int64())])
    created(catalog, name, schema).append(pa.table({"id": [1, 2, 3], "_row_id": [7, 8, 9]}, schema))
    sql(f"DELETE FROM {there} WHERE abs(_row_id) = 8")
    with pytest.raises(Exception, match="its column _row_id hides Spark's metadata column"):
        sql(f"UPDATE {there} SET id = 5 WHERE id = 1")
    assert sql(f"SELECT id, _row_id FROM {there} ORDER BY id") == [[1, 7], [3, 9]]


@pytest.mark.sparks("3.5", "4.1")
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_keep_their_ids_between_partitions_on_branches_and_in_cached_tables(
    sql_on, catalog, name, minor, mode
):
    sql, there = sql_on(minor), f"lake.{name}"
    modes = ", ".join(f"'write.{c}.mode' = '{mode}'" for c in ("delete", "update", "merge"))
    sql(
        f"CREATE TABLE {there} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    sql(f"ALTER TABLE {there} WRITE ORDERED BY id DESC")
    catalog.load_table(name).append(
        pa.table({"id": range(8), "k": ["a", "b"] * 4}),
    )
    of_rows = f"SELECT id, k, _row_id, _last_updated_sequence_number FROM {there}"
    ids = {id_: row_id for id_, _, row_id, _ in sql(of_rows)}
    assert sorted(ids.values()) == list(range(8))
    sql(f"CACHE TABLE {there}")
    sql(f"UPDATE {there} SET k = 'c' WHERE id = (SELECT max(id) FROM {there}) OR id = 0")
    assert sql(f"SELECT id FROM {there} WHERE k = 'c' ORDER BY id") == [[0], [7]]
    sql(f"DELETE FROM {there} WHERE id IN (SELECT id + 1 FROM {there} WHERE id = 4)")
    sql(
        f"WITH s AS (SELECT id FROM {there} WHERE id > 3 UNION ALL SELECT 9L) "
        f"MERGE INTO {there} AS x USING s ON x.id = s.id "
        "WHEN MATCHED AND x.id = 4 THEN UPDATE SET k = concat(x.k, x.k) "
        "WHEN NOT MATCHED AND s.id = 9 THEN INSERT (k, id) VALUES ('n', s.id) "
        "WHEN NOT MATCHED BY SOURCE AND x.id = 1 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND x.id = 2 THEN UPDATE SET id = 20"
    )
    *moved, [_, _, new_id, new_number] = sql(f"{of_rows} WHERE id <> 20 ORDER BY id")
    assert moved == [
        [0, "c", ids[0], 2],
        [3, "b", ids[3], 1],
        [4, "aa", ids[4], 4],
        [6, "a", ids[6], 1],
        [7, "c", ids[7], 2],
    ]
    assert new_id > 7
    assert new_number == 4
    assert sql(f"{of_rows} WHERE id = 20") == [[20, "a", ids[2], 4]]
    assert sql(f"SELECT id FROM {there} ORDER BY id") == [[0], [3], [4], [6], [7], [9], [20]]
    sql(f"ALTER TABLE {there} CREATE BRANCH b")
    sql(f"UPDATE {there}.branch_b SET k = 'z' WHERE abs(id) = 3")
    of_branch = of_rows.replace(there, f"{there}.branch_b")
    assert sql(f"{of_branch} WHERE id IN (3, 6) ORDER BY id") == [
        [3, "z", ids[3], 5],
        [6, "a", ids[6], 1],
    ]
    assert sql(f"{of_rows} WHERE id = 3") == [[3, "b", ids[3], 1]]
    sql(f"UPDATE spark_catalog.{name} SET k = 's' WHERE abs(id) = 6")
    of_session = of_rows.replace(there, f"spark_catalog.{name}")
    assert sql(f"{of_session} WHERE id = 6") == [[6, "s", ids[6], 6]]
    sql(f"UNCACHE TABLE {there}")


@pytest.mark.sparks("4.3", "3.5", "4.1")
def test_tasks_read_the_vectors_that_are_too_large_for_a_plan(sql_on, catalog, name, minor):
    sql = sql_on(minor)
    schema = pa.schema([("id", pa.int64()), ("part", pa.int8())])
    table = created(catalog, name, schema)
    ids = np.arange(1_350_000)
    # in short lists, in bitmaps, and in runs
    part = np.select(
        [ids < 100_000, ids < 700_000], [ids % 100 == 0, ids % 10 != 0], ids % 7_000 > 0
    )
    table.append(pa.table({"id": ids, "part": pa.array(part, pa.int8())}))
    table.delete("part = 1")
    live = ids[part == 0]
    assert len(ids) - len(live) > MOST_IN_A_PLAN
    assert sql(f"SELECT count(id), sum(id), max(id), min(id) FROM lake.{name}") == [
        [len(live), int(live.sum()), int(live.max()), int(live.min())]
    ]
