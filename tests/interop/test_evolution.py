"""Schemas and partition specs that changed: old files and new ones are one table for everybody."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DoubleType, IntegerType, LongType, NestedField, StringType

pytestmark = pytest.mark.full("a second Spark reads and writes, too")


def quick(table: str) -> list[str]:
    """Who need not be asked again about a table of format v1: its filters are those of v2."""
    return ["spark", "peer"] if table.endswith("v1") else []


@pytest.fixture(scope="module", params=["1", "2"])
def evolved(request, readers):
    """Files of seven schemas; most columns of the first are gone, renamed, promoted or taken anew."""
    name = f"evolved_v{request.param}"
    readers.own(name)
    table = f"{{ns}}.{name}"
    readers.java_sql(
        f"CREATE TABLE {table} (id INT, a INT, b STRING, f FLOAT, d DECIMAL(5,2), "
        "st STRUCT<x: INT, y: STRING>, li ARRAY<STRUCT<p: INT>>, ma MAP<STRING, STRUCT<q: FLOAT>>) "
        f"USING iceberg TBLPROPERTIES ('format-version'='{request.param}')"
    )
    readers.java_sql(
        f"INSERT INTO {table} SELECT CAST(id AS INT), CAST(id * 10 AS INT), concat('b', id), CAST(id / 4 AS FLOAT), "
        "CAST(id AS DECIMAL(5,2)), named_struct('x', CAST(id AS INT), 'y', 'old'), "
        "array(named_struct('p', CAST(id AS INT))), map('k', named_struct('q', CAST(id AS FLOAT))) FROM range(10)"
    )
    for change in (
        "ADD COLUMN added INT AFTER id",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(12,2)",
        "DROP COLUMN a",
        "ADD COLUMN a INT",
        "RENAME COLUMN b TO c",
        "ADD COLUMN b STRING FIRST",
        "ALTER COLUMN st.x TYPE BIGINT",
        "ADD COLUMN st.z INT FIRST",
        "RENAME COLUMN st.y TO w",
        "DROP COLUMN st.w",
        "ADD COLUMN st.y STRING",
        "ALTER COLUMN li.element.p TYPE BIGINT",
        "ADD COLUMN ma.value.r INT",
    ):
        readers.java_sql(f"ALTER TABLE {table} {change}")
    readers.java_sql(
        f"INSERT INTO {table} (id, added, a, b, c, f, d, st, li, ma) SELECT 3000000000 + id, CAST(id AS INT), "
        "CAST(id AS INT), 'new', concat('c', id), 0.1, 1234567.89, named_struct('z', 1, 'x', 3000000000, 'y', 'y'), "
        "array(named_struct('p', 3000000000)), map('k', named_struct('q', CAST(1 AS FLOAT), 'r', 2)) FROM range(5)"
    )
    current = readers.load(name)
    current.append(current.scan("id > 3000000003").to_arrow())
    return name


def test_all_read_old_and_new_files_alike(evolved, readers):
    rows = readers.agree(evolved)
    assert len(rows) == 16
    assert sum(row[0] is None for row in rows) == 10


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("a is null", 10),
        ("a = 3", 1),
        ("a = 30", 0),
        ("b is null", 10),
        ("b = 'b3'", 0),
        ("b = 'new'", 6),
        ("c = 'b3'", 1),
        ("c = 'c4'", 2),
        ("added is null", 10),
        ("added >= 4", 2),
        ("id = 3", 1),
        ("id >= 3000000000", 6),
        ("id < 3000000000", 10),
        ("f = 0.25", 1),
        ("f < 0.2", 7),
        ("d = 3", 1),
        ("d > 1000000", 6),
        ("not (c = 'b3')", 15),
        ("a != 3 or b is null", 15),
    ],
)
def test_metrics_of_old_files_do_not_hide_rows(evolved, readers, where, count):
    rows = readers.agree(evolved, where, "id", but=quick(evolved))
    assert len(rows) == count
    assert readers.plan(evolved, where) == readers.java_plan(evolved, where)


@pytest.mark.parametrize(
    ("where", "count"),
    [("st.y = 'old'", 0), ("st.y is null", 10), ("st.x = 3", 1), ("st.z is null", 10)],
)
def test_nested_fields_that_changed_are_found_by_id(evolved, readers, where, count):
    rows = readers.agree(evolved, where, "id", but=["peer", *quick(evolved)])
    assert len(rows) == count


def test_an_older_snapshot_is_read_with_its_own_schema(evolved, readers):
    first = readers.load(evolved).snapshots()[0].snapshot_id
    expected = readers.java(f"{evolved} VERSION AS OF {first}")
    assert readers.spark(f"{evolved} VERSION AS OF {first}") == expected
    scan = readers.load(evolved).scan(snapshot_id=first)
    assert readers.arrow_rows(scan.to_arrow()) == expected
    assert len(readers.arrow_rows(scan.filter("a = 30 and b = 'b3'").to_arrow())) == 1


@pytest.fixture(scope="module", params=["1", "2"])
def respecified(request, readers):
    """Rows under five partition specs of Iceberg Java, each appended to by it and by us."""
    name = f"respecified_v{request.param}"
    readers.own(name)
    table = f"{{ns}}.{name}"
    readers.java_sql(
        f"CREATE TABLE {table} (id BIGINT, k INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ('format-version'='{request.param}')"
    )
    changes = (
        "ADD PARTITION FIELD bucket(3, id)",
        "DROP PARTITION FIELD k",
        "REPLACE PARTITION FIELD bucket(3, id) WITH truncate(5, id) AS five",
        "ADD PARTITION FIELD months(ts)",
        "ADD PARTITION FIELD k",
    )
    first = 0
    for change in ("", *changes):
        if change:
            readers.java_sql(f"ALTER TABLE {table} {change}")
        readers.java_sql(
            f"INSERT INTO {table} SELECT id, CAST(id % 2 AS INT), timestamp_seconds(id * 864000 - 50000000) "
            f"FROM range({first}, {first + 6})"
        )
        batch = readers.load(name).scan(f"id >= {first + 4}").to_arrow()
        ids = pa.array(range(first + 6, first + 6 + batch.num_rows), pa.int64())
        readers.load(name).append(batch.set_column(0, "id", ids))
        first += 10
    return name


@pytest.mark.parametrize(
    "where",
    [
        None,
        "id = 23",
        "id in (6, 7, 46, 57)",
        "k = 1",
        "k = 1 and id > 35",
        "ts < '1969-01-01T00:00:00+00:00'",
        "ts >= '1969-06-01T00:00:00+00:00' and k = 0",
        "not (id < 50)",
    ],
)
def test_all_specs_are_one_table(respecified, readers, where):
    assert readers.agree(respecified, where, but=quick(respecified) if where else [])
    assert readers.plan(respecified, where) == readers.java_plan(respecified, where)


def test_what_we_evolve_is_read_and_written_by_all(readers):
    name = "evolved_here"
    schema = Schema((NestedField(1, "id", IntegerType()), NestedField(2, "s", StringType())))
    table = readers.catalog.create_table(readers.own(name), schema)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}))
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("s", "t")
    with table.update_schema() as update:
        update.add_column("s", DoubleType())
    with table.update_spec() as update:
        update.add_field("id", "bucket[4]", "by_id")
        update.add_field("t", "truncate[1]", "by_t")
    readers.load(name).append(pa.table({"id": [2**40], "t": ["c"], "s": [0.5]}))
    readers.java_sql(f"INSERT INTO {{ns}}.{name} (id, t, s) VALUES (4, 'd', -1)")
    readers.spark_sql(f"INSERT INTO {{ns}}.{name} (id, t, s) VALUES (5, 'e', -2)")
    found = readers.agree(name)
    assert [row[0] for row in found] == [1, 2**40, 2, 4, 5]
    assert readers.agree(name, "s is null", "id") == [[1], [2]]
    assert readers.agree(name, "t = 'a' or s < 0", "id") == [[1], [4], [5]]
    assert readers.plan(name, "id = 4") == readers.java_plan(name, "id = 4")
    with readers.load(name).update_spec() as update:
        update.remove_field("by_t")
    readers.java_sql(f"INSERT INTO {{ns}}.{name} (id, t, s) VALUES (6, 'f', 0)")
    readers.load(name).append(pa.table({"id": [7], "t": ["g"], "s": [None]}))
    assert len(readers.agree(name, "t >= 'd'")) == 4
