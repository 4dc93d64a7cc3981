"""Files without field ids in tables whose schema changed: all readers go by the ids of the name mapping."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.catalog import migrate

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

INNER = pa.struct([("x", pa.string()), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("w", pa.string()),
        ("s", INNER),
        ("l", pa.list_(INNER)),
    ]
)
INSIDE = {"x": "x", "y": "y"}
ROWS = [
    {"id": 0, "v": "v0", "w": "w0", "s": INSIDE, "l": [INSIDE]},
    {"id": 1, "v": None, "w": "w1", "s": INSIDE, "l": []},
]
CHANGES = {
    "again": (["DROP COLUMN v", "ADD COLUMN v STRING"], "v is not null", 0),
    "retyped": (["DROP COLUMN v", "ADD COLUMN v BIGINT"], "v is not null", 0),
    "renamed": (["RENAME COLUMN v TO b", "ADD COLUMN v STRING"], "b is not null", 1),
    "swapped": (
        ["RENAME COLUMN v TO t", "RENAME COLUMN w TO v", "RENAME COLUMN t TO w"],
        "v = 'w0'",
        1,
    ),
    "inside": (
        [
            *("DROP COLUMN s.x", "ADD COLUMN s.x BIGINT", "RENAME COLUMN s.y TO z"),
            *("DROP COLUMN l.element.x", "RENAME COLUMN l.element.y TO x"),
        ],
        "id = 0",
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_all_read_and_delete_the_same_rows_after_names_changed_hands(
    readers: Any, tmp_path: Any, name: str, kind: str
) -> None:
    changes, where, count = CHANGES[name]
    table = f"idless_{name}_{kind}"
    made = readers.catalog.create_table(
        readers.own(table), SCHEMA, properties={"format-version": "2"}
    )
    data = pa.Table.from_pylist(ROWS, SCHEMA)
    writer = pq.write_table if kind == "parquet" else orc.write_table
    writer(data, tmp_path / "f")
    made.add_files([str(tmp_path / "f")])
    for change in changes:
        readers.spark_sql(f"ALTER TABLE {{ns}}.{table} {change}")
    # PyIceberg takes empty lists of ORC for null
    readers.agree(table)
    rows = {row[0]: row for row in readers.python(table, columns="id, s, l")}
    if name == "inside":
        assert rows[0][1:] == [["y", None], [["y"]]]
    assert len(readers.agree(table, where, columns="id")) == count
    readers.spark_sql(f"DELETE FROM {{ns}}.{table} WHERE {where}")
    assert len(readers.agree(table)) == 2 - count


def test_columns_that_hive_dropped_stay_dropped_for_all_after_a_migration(
    readers: Any, spark: Any, catalog: Any, iceberg_java: Any, pyiceberg: Any, tmp_path: Any
) -> None:
    more = pa.list_(pa.struct([("deep", pa.int32())]))
    old = {
        "id": pa.array([1, 2], pa.int64()),
        "gone": ["old", None],
        "s": pa.array([{"a": 1, "gone": "old"}, None], pa.struct([("a", pa.int32()), ("gone", pa.string())])),
        "more": pa.array([[{"deep": 1}], []], more),
    }  # fmt: skip
    pq.write_table(pa.table(old), tmp_path / "part-0.parquet")
    spark.sql("CREATE DATABASE IF NOT EXISTS spark_catalog.dropped")
    spark.sql(
        "CREATE TABLE spark_catalog.dropped.t (id BIGINT, s STRUCT<a: INT>) STORED AS PARQUET "
        f"LOCATION '{tmp_path.as_uri()}'"
    )
    migrate.apply(catalog, "dropped.t")
    with catalog.load_table("dropped.t").update_schema() as update:
        update.add_column("gone", "int").add_column("more", "string").rename_column("s", "t")
        update.add_column(("s", "gone"), "string")
    expected = [[1, [1, None], None, None], [2, None, None, None]]
    assert iceberg_java.sql("SELECT * FROM ice.dropped.t ORDER BY id") == expected
    assert readers.spark_sql("SELECT * FROM lake.dropped.t ORDER BY id") == expected
    for table in (catalog.load_table("dropped.t"), pyiceberg.load_table("dropped.t")):
        assert readers.arrow_rows(table.scan().to_arrow()) == expected
    catalog.drop_table("dropped.t")
    spark.sql("DROP DATABASE spark_catalog.dropped")
