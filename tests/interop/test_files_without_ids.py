"""Files without field ids in tables whose schema changed: all readers go by the ids of the name mapping."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

pytestmark = pytest.mark.jvm

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
    # our Spark reads Parquet only; PyIceberg takes empty lists of ORC for null
    but = [] if kind == "parquet" else ["spark"]
    readers.agree(table, but=but)
    rows = {row[0]: row for row in readers.python(table, columns="id, s, l")}
    if name == "inside":
        assert rows[0][1:] == [["y", None], [["y"]]]
    assert len(readers.agree(table, where, columns="id", but=but)) == count
    if kind == "parquet":
        readers.spark_sql(f"DELETE FROM {{ns}}.{table} WHERE {where}")
    else:
        readers.load(table).delete(where)
    assert len(readers.agree(table, but=but)) == 2 - count
