"""Tables partitioned by fields inside structs: rows, nulls of every level, and all operations."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog

INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
OUTER = pa.struct([("in", INNER), ("z", pa.int64())])
SCHEMA = pa.schema([("id", pa.int64()), ("st", INNER), ("deep", OUTER)])
ROWS = [
    {"id": 1, "st": {"x": 1, "y": "a"}, "deep": {"in": {"x": 7, "y": "b"}, "z": 1}},
    {"id": 2, "st": {"x": None, "y": "a"}, "deep": {"in": {"x": None, "y": "b"}, "z": 2}},
    {"id": 3, "st": None, "deep": {"in": None, "z": 3}},
    {"id": 4, "st": {"x": None, "y": None}, "deep": None},
    {"id": 5, "st": {"x": 1, "y": None}, "deep": {"in": {"x": 7, "y": None}, "z": None}},
    {"id": 6, "st": None, "deep": {"in": {"x": None, "y": None}, "z": None}},
]
FILTERS = {
    "st is null": [3, 6],
    "st is not null": [1, 2, 4, 5],
    "st.x is null": [2, 3, 4, 6],
    "st.x = 1": [1, 5],
    "st.x != 1": [],
    "not st.y = 'a'": [],
    "deep.in is null": [3, 4],
    "deep.in.x is null": [2, 3, 4, 6],
    "deep.in.x = 7 and st.y is null": [5],
    "deep.in.x is null and deep.z > 1": [2, 3],
}


@pytest.fixture(params=["parquet", "orc", "avro"])
def table(request, tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    properties = {
        "write.format.default": request.param,
        "write.delete.mode": "copy-on-write",
        "write.merge.mode": "copy-on-write",
    }
    made = lake.create_table("db.t", SCHEMA, properties=properties)
    with made.update_spec() as update:
        update.add_field("st.x", "identity", "st_x")
        update.add_field("deep.in.x", "identity", "deep_x")
    made.append(frame(ROWS))
    yield made
    lake.close()


def frame(rows) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def rows(table, *filters, **options):
    return sorted(table.scan(*filters, **options).to_arrow().to_pylist(), key=lambda row: row["id"])


def test_every_row_is_read_as_it_was_written(table):
    assert rows(table) == ROWS
    assert rows(table, selected_fields=("id", "deep.in.x", "_partition", "_file")) == [
        {
            "id": row["id"],
            "deep": row["deep"] and {"in": row["deep"]["in"] and {"x": row["deep"]["in"]["x"]}},
            "_partition": {
                "st_x": row["st"] and row["st"]["x"],
                "deep_x": row["deep"] and row["deep"]["in"] and row["deep"]["in"]["x"],
            },
            "_file": found["_file"],
        }
        for row, found in zip(ROWS, rows(table, selected_fields=("id", "_file")), strict=True)
    ]


@pytest.mark.parametrize("text", FILTERS)
def test_filters_see_the_nulls_of_every_level(table, text):
    assert [row["id"] for row in rows(table, text)] == FILTERS[text]
    assert table.scan(text).count() == len(FILTERS[text])
    table.delete(text)
    assert rows(table) == [row for row in ROWS if row["id"] not in FILTERS[text]]


def test_half_of_a_file_is_deleted_by_writing_the_rest_anew(table):
    table.delete("id in (1, 3)")
    assert rows(table) == [row for row in ROWS if row["id"] not in (1, 3)]


def test_an_upsert_moves_rows_between_partitions(table):
    changed = [
        {"id": 3, "st": {"x": 1, "y": "new"}, "deep": None},
        {"id": 1, "st": None, "deep": {"in": {"x": 8, "y": None}, "z": 0}},
        {"id": 7, "st": {"x": None, "y": "new"}, "deep": {"in": None, "z": None}},
    ]
    done = table.upsert(frame(changed), ["id"])
    assert (done.rows_updated, done.rows_inserted) == (2, 1)
    expected = {row["id"]: row for row in (*ROWS, *changed)}
    assert rows(table) == [expected[number] for number in sorted(expected)]


def test_a_dynamic_overwrite_replaces_the_partitions_of_its_rows(table):
    new = {"id": 9, "st": {"x": 1, "y": "n"}, "deep": {"in": {"x": 7, "y": "n"}, "z": 9}}
    table.dynamic_partition_overwrite(frame([new]))
    assert rows(table) == [*(row for row in ROWS if row["id"] not in (1, 5)), new]


def test_a_table_partitioned_by_one_field_only_of_a_struct_is_read_alone(table):
    """Only the partition field is asked for: where its structs are null must be known, too."""
    found = rows(table, selected_fields=("id", "st.x"))
    assert [row["st"] for row in found] == [r["st"] and {"x": r["st"]["x"]} for r in ROWS]


def test_what_stands_behind_a_null_struct_is_no_partition(table):
    hidden = pa.StructArray.from_arrays(
        [pa.array([5, 5], pa.int32()), pa.array(["h", "h"])],
        fields=list(INNER),
        mask=pa.array([True, False]),
    )
    deep = pa.nulls(2, OUTER)
    table.append(pa.table([pa.array([10, 11], pa.int64()), hidden, deep], schema=SCHEMA))
    assert [row["id"] for row in rows(table, "st.x = 5")] == [11]
    assert rows(table, "id = 10") == [{"id": 10, "st": None, "deep": None}]


def test_pyiceberg_reads_the_same_rows(table):
    if table.properties["write.format.default"] != "parquet":
        return
    peer = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert sorted(peer.to_pylist(), key=lambda row: row["id"]) == ROWS
