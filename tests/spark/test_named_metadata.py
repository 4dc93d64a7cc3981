"""UPDATE, DELETE and MERGE whose conditions name metadata columns: ids of rows, and where rows are."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

pytestmark = [
    pytest.mark.usefixtures("own_namespace"),
    pytest.mark.full("one story of it is in test_version_3.py"),
]

NAMESPACE = "named_metadata"
NUMBERS = itertools.count(1)
MODES = ["copy-on-write", "merge-on-read"]
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
LINEAGE = "_row_id, _last_updated_sequence_number"


@pytest.fixture
def name():
    return f"{NAMESPACE}.t{next(NUMBERS)}"


def made(catalog, name, mode, version="3"):
    """Rows 0 to 5 and 6 to 9 in two files; the ids of rows are theirs."""
    modes = {f"write.{c}.mode": mode for c in ("delete", "update", "merge")}
    table = catalog.create_table(name, SCHEMA, properties={"format-version": version, **modes})
    for first, last in ((0, 6), (6, 10)):
        ids = range(first, last)
        table.append(pa.table({"id": ids, "k": [f"k{i}" for i in ids]}, SCHEMA))
    return table


def start():
    """The rows of such a table: what each id has as `k`, and the number of its last change."""
    return {i: (f"k{i}", 1 if i < 6 else 2) for i in range(10)}


def seen(sql, name):
    return {
        row_id: (k, number) if id_ == row_id else (id_, k, number)
        for id_, k, row_id, number in sql(f"SELECT id, k, {LINEAGE} FROM lake.{name}")
    }


@pytest.mark.sparks("4.3", "4.1")
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_changed_by_their_ids(sql_on, catalog, name, minor, mode):
    sql, there = sql_on(minor), f"lake.{name}"
    made(catalog, name, mode)
    rows = start()

    sql(f"UPDATE {there} SET k = concat(k, '!') WHERE _row_id = 1 OR _ROW_ID > 8")
    rows |= {1: ("k1!", 3), 9: ("k9!", 3)}
    assert seen(sql, name) == rows

    sql(f"UPDATE {there} AS t SET t.k = string(t._row_id) WHERE t.id = 2")
    rows[2] = ("2", 4)
    assert seen(sql, name) == rows

    sql(f"DELETE FROM {there} WHERE _row_id IN (3, 8) AND k LIKE 'k%'")
    del rows[3], rows[8]
    assert seen(sql, name) == rows

    sql(f"DELETE FROM {there} WHERE _last_updated_sequence_number = 3")
    del rows[1], rows[9]
    assert seen(sql, name) == rows

    sql(
        f"MERGE INTO {there} t USING (SELECT * FROM VALUES (0, 'm'), (6, 'd'), (77, 'n') AS v (id, k)) s "
        "ON t._row_id = s.id WHEN MATCHED AND s.k = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, s.k)"
    )
    del rows[6]
    rows[0] = ("m", 7)
    found = seen(sql, name)
    ((added, new),) = ((i, row) for i, row in found.items() if i not in rows)
    assert (added > 9, new) == (True, (77, "n", 7))
    del found[added]
    assert found == rows

    sql(
        f"MERGE INTO {there} t USING (SELECT 4 AS id) s ON t.id = s.id "
        "WHEN MATCHED AND t._row_id = 4 THEN UPDATE SET k = 'four' "
        "WHEN NOT MATCHED BY SOURCE AND t._row_id = 7 THEN DELETE"
    )
    del rows[7]
    rows[4] = ("four", 8)
    found = seen(sql, name)
    del found[added]
    assert found == rows


@pytest.mark.sparks("4.3", "4.1")
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_changed_by_ids_that_queries_find(sql_on, catalog, name, minor, mode):
    sql, there = sql_on(minor), f"lake.{name}"
    made(catalog, name, mode)
    rows = start()
    sql(f"CREATE TABLE {there}_s (n BIGINT) USING iceberg")
    sql(f"INSERT INTO {there}_s VALUES (2), (7)")
    sql(f"UPDATE {there} SET k = 'q' WHERE _row_id IN (SELECT n FROM {there}_s WHERE rand() < 2)")
    rows |= {2: ("q", 3), 7: ("q", 3)}
    assert seen(sql, name) == rows
    sql(f"DELETE FROM {there} t WHERE EXISTS (SELECT 1 FROM {there}_s s WHERE s.n = t._row_id + 1)")
    del rows[1], rows[6]
    assert seen(sql, name) == rows
    sql(f"DELETE FROM {there} WHERE _row_id = (SELECT max(_row_id) FROM {there})")
    del rows[9]
    assert seen(sql, name) == rows
    sql(
        f"MERGE INTO {there} t USING (SELECT * FROM {there} WHERE k = 'q') s ON t._row_id = s.id - 2 "
        "WHEN MATCHED THEN UPDATE SET k = 'p'"
    )
    rows |= {0: ("p", 6), 5: ("p", 6)}
    assert seen(sql, name) == rows
    # inserts only
    sql(
        f"MERGE INTO {there} t USING (SELECT explode(array(5, 30)) AS id) s ON t._row_id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'i')"
    )
    found = sql(f"SELECT id, k FROM {there} ORDER BY id")
    assert found == [*([i, rows[i][0]] for i in sorted(rows)), [30, "i"]]


@pytest.mark.sparks("4.3", "4.1")
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_changed_by_where_they_are(sql_on, catalog, name, minor, mode):
    sql, there = sql_on(minor), f"lake.{name}"
    made(catalog, name, mode, version="2")
    sql(f"UPDATE {there} SET k = 'first' WHERE _pos = 0 AND _spec_id = 0 AND id < 6")
    rows = {i: "first" if i == 0 else f"k{i}" for i in range(10)}
    assert dict(sql(f"SELECT id, k FROM {there}")) == rows
    files = dict(sql(f"SELECT id, _file FROM {there}"))
    here = {i for i, file in files.items() if file == files[8]}
    sql(
        f"DELETE FROM {there} WHERE _file IN (SELECT _file FROM {there} WHERE id = 8) AND _pos >= 1"
    )
    left = dict(sql(f"SELECT id, k FROM {there}"))
    assert left == {i: k for i, k in rows.items() if i not in here or i in left}
    assert len(here & left.keys()) == 1
    with pytest.raises(Exception, match=r"cannot name _deleted"):
        sql(f"UPDATE {there} SET k = 'x' WHERE _deleted")


@pytest.mark.sparks("4.3", "4.1")
def test_only_files_with_such_rows_are_rewritten(sql_on, catalog, name, minor):
    sql, there = sql_on(minor), f"lake.{name}"
    table = made(catalog, name, "copy-on-write")
    merge = f"MERGE INTO {there} t USING (SELECT 1 AS n) s ON t._row_id = s.n"
    for step, statement in enumerate(
        (
            f"UPDATE {there} SET k = 'a' WHERE _row_id = 1",
            f"UPDATE {there} SET k = 'b' WHERE _row_id IN (SELECT 1 WHERE rand() < 2)",
            f"{merge} WHEN MATCHED THEN UPDATE SET k = 'c'",
            f"{merge} WHEN MATCHED THEN UPDATE SET k = 'd' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.n)",
            f"DELETE FROM {there} WHERE _row_id = 1",
        )
    ):
        sql(statement)
        summary = table.refresh().current_snapshot().summary
        assert (summary["deleted-data-files"], summary["total-data-files"]) == ("1", "2"), step
    assert table.scan().count() == 9


@pytest.mark.sparks("4.3", "4.1")
@pytest.mark.parametrize("mode", MODES)
def test_a_merge_with_schema_evolution_names_them_too(sql_on, catalog, name, minor, mode):
    sql, there = sql_on(minor), f"lake.{name}"
    table = made(catalog, name, mode)
    with table.update_schema() as update:
        update.add_column("n", "int")
    sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {there} t USING (SELECT 1L AS id, 'a' AS k, 5000000000 AS n, "
        "'x' AS fresh UNION ALL SELECT 50, 'b', 2, 'y') s ON t._row_id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    expected = [[i, f"k{i}", None, None, i] for i in range(10)]
    expected[1] = [1, "a", 5_000_000_000, "x", 1]
    *found, added = sql(f"SELECT id, k, n, fresh, _row_id FROM {there} ORDER BY id")
    assert found == expected
    assert added[:4] == [50, "b", 2, "y"]


@pytest.mark.sparks("4.3", "4.1")
@pytest.mark.parametrize("mode", MODES)
def test_a_merge_names_metadata_columns_of_both_of_its_tables(sql_on, catalog, name, minor, mode):
    sql, there = sql_on(minor), f"lake.{name}"
    made(catalog, name, mode)
    rows = start()
    sql(
        f"MERGE INTO {there} t USING {there} s "
        "ON t._row_id = s._row_id + 1 AND s._row_id = 3 AND s._pos = t._pos - 1 "
        "WHEN MATCHED THEN UPDATE SET k = string(s._row_id)"
    )
    rows[4] = ("3", 3)
    assert seen(sql, name) == rows
    sql(
        f"MERGE INTO {there} t USING {there} s ON t._row_id = s._row_id AND s.id = 8 "
        "WHEN MATCHED THEN DELETE"
    )
    del rows[8]
    assert seen(sql, name) == rows


@pytest.mark.sparks("4.3", "4.1")
def test_metadata_columns_are_given_no_values(sql_on, catalog, name, minor):
    sql, there = sql_on(minor), f"lake.{name}"
    made(catalog, name, "copy-on-write")
    merge = f"MERGE INTO {there} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN"
    for statement in (
        f"UPDATE {there} SET k = 'x', _row_id = 5 WHERE id = 1",
        f"{merge} MATCHED THEN UPDATE SET t._row_id = 5",
        f"{merge} NOT MATCHED THEN INSERT (id, _row_id) VALUES (s.id, 5)",
    ):
        with pytest.raises(Exception, match=r"Cannot assign a value to _row_id of table lake\."):
            sql(statement)
    assert seen(sql, name) == start()


@pytest.mark.sparks("4.3", "4.1")
def test_columns_that_are_not_there_are_told_as_ever(sql_on, catalog, name, minor):
    sql, there = sql_on(minor), f"lake.{name}"
    made(catalog, name, "merge-on-read", version="2")
    with pytest.raises(Exception, match=r"(?s)cannot be resolved.*nothing"):
        sql(f"UPDATE {there} SET k = 'x' WHERE _pos = 1 AND nothing = 2")
    with pytest.raises(Exception, match=r"(?s)cannot be resolved.*_row_id"):
        sql(f"DELETE FROM {there} WHERE _row_id = 1")
    sql(f"CREATE TABLE {there}_own (_spec_id BIGINT, k STRING) USING iceberg")
    sql(f"INSERT INTO {there}_own VALUES (1, 'a'), (2, 'b')")
    sql(f"UPDATE {there}_own SET k = 'c' WHERE _spec_id = 2")
    assert sql(f"SELECT * FROM {there}_own ORDER BY k") == [[1, "a"], [2, "c"]]
