"""Rows in every layout of Arrow, through every operation and into every format of files."""

from __future__ import annotations

from itertools import chain

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.expressions.expression import IsNull
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform

FORMATS = ("parquet", "orc", "avro")


def views(values: pa.Array, *rows: tuple[int, int] | None) -> pa.Array:
    """List views of values by start and size, wherever these are; None is null."""
    starts, sizes = zip(*(row or (len(values), 0) for row in rows), strict=True)
    mask = pa.array([row is None for row in rows])
    return pa.ListViewArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(sizes, pa.int32()), values, mask=mask
    )


def runs(values: pa.Array, *ends: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values)


NUMBERS = views(pa.array([5, 6, 7, None]), (2, 2), (0, 3), None, (1, 0), (1, 2))
TEXTS = pa.array(["a", "größe", None, "longer than twelve bytes", ""], pa.string_view())
WORDS = views(TEXTS.dictionary_encode(), (3, 2), (0, 5), None, (2, 1), (4, 0))
LAYOUTS = {
    "list view": NUMBERS,
    "large list view": pa.LargeListViewArray.from_arrays(
        pa.array([3, 0, 0, 1, 2]), pa.array([1, 4, 0, 1, 2]), pa.array([1, 2, 3, 4])
    ),
    "large list": pa.array([[1], [], None, [2, None], [3]], pa.large_list(pa.int64())),
    "list of fixed size": pa.array([[1, 2], None, [3, None], [4, 5], None], pa.list_(pa.int64(), 2)),
    "text view": TEXTS,
    "large text": TEXTS.cast(pa.large_string()),
    "binary view": pa.array([b"a", None, b"longer than twelve bytes", b"", b"\xff"], pa.binary_view()),
    "large binary": pa.array([b"a", None, b"x", b"", b"\xff"], pa.large_binary()),
    "dictionary": TEXTS.cast(pa.string()).dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 4, 2], pa.uint8()), TEXTS),
    "dictionary of lists": pa.DictionaryArray.from_arrays(pa.array([4, 0, None, 1, 2]), NUMBERS),
    "dictionary of structs": pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1, 0]), pa.array([{"a": 1}, {"a": None}])),
    "run ends": runs(pa.array([7, None, 8]), 2, 3, 5),
    "run ends of views": runs(TEXTS.slice(1, 3), 1, 4, 5),
    "run ends of lists": runs(NUMBERS.slice(0, 3), 2, 3, 5),
    "run ends of UUIDs": runs(pa.array([b"0123456789abcdef", None], pa.uuid()), 3, 5),
    "views of views": views(NUMBERS, (3, 2), (0, 4), None, (1, 0), (2, 3)),
    "views of structs": views(pa.StructArray.from_arrays([NUMBERS, TEXTS], ["n", "t"]), (4, 1), (0, 2), None, (0, 0), (1, 4)),
    "structs of views": pa.StructArray.from_arrays([NUMBERS, WORDS], ["n", "w"], mask=pa.array([False, True, False, False, True])),
    "lists of run ends": pa.ListArray.from_arrays(pa.array([0, 1, 2, 2, 4, 5], pa.int32()), runs(pa.array([7, None]), 3, 5)),
    "maps of views": pa.MapArray.from_arrays(pa.array([0, 1, 1, 3, 4, 5], pa.int32()), pa.array(list("abcde"), pa.string_view()), NUMBERS),
    "maps of dictionaries": pa.MapArray.from_arrays(pa.array([0, 1, 1, 3, 4, 5], pa.int32()), pa.array(list("abcde")).dictionary_encode(), runs(pa.array([1, None]), 2, 5)),
}  # fmt: skip


def batch_of(names) -> pa.RecordBatch:
    """Five rows with a column of each of these layouts."""
    arrays = [pa.array(range(5)), *(LAYOUTS[name] for name in names)]
    return pa.record_batch(arrays, ["id", *names])


def rows_of(table, **scan) -> list[dict]:
    return table.scan(**scan).to_arrow().sort_by("id").to_pylist()


def in_(file_format: str, **more: str) -> dict[str, str]:
    return {"write.format.default": file_format, **more}


@pytest.mark.parametrize("file_format", FORMATS)
def test_values_of_every_layout_are_written_as_they_are(lake, file_format):
    """Cut out of longer arrays, in several chunks, and from a stream of batches."""
    whole = batch_of(LAYOUTS)
    table = lake.create_table("db.t", whole.schema, properties=in_(file_format))
    pieces = [whole.slice(0, 2), whole.slice(2, 0), whole.slice(2)]
    table.append(pa.Table.from_batches(pieces, whole.schema))
    assert rows_of(table) == whole.to_pylist()
    table.overwrite(batch for batch in pieces)
    table.append(pa.RecordBatchReader.from_batches(whole.schema, pieces[2:]))
    assert rows_of(table, row_filter="id < 2") == whole.to_pylist()[:2]
    assert table.scan().count() == 8


def frame(first: int, *, reverse: bool = False) -> pa.Table:
    """Five rows, keys from `first` on, in all kinds of layouts."""
    names = ("list view", "text view", "structs of views", "maps of views", "run ends")
    columns = [LAYOUTS[name] for name in names]
    ids = pa.DictionaryArray.from_arrays(pa.array(range(5)), pa.array(range(first, first + 5)))
    day = runs(pa.array(["mon", "tue"]), 3, 5)
    made = pa.record_batch([ids, day, *columns], ["id", "day", "l", "t", "s", "m", "r"])
    pieces = [made.slice(0, 3), made.slice(3)]
    return pa.Table.from_batches(pieces[::-1] if reverse else pieces)


BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_every_operation_takes_every_layout(lake, file_format, mode):
    properties = in_(
        file_format, **{f"write.{v}.mode": mode for v in ("delete", "update", "merge")}
    )
    first, second = frame(0), frame(3)
    table = lake.create_table("db.t", first.schema, partition_spec=BY_DAY, properties=properties)
    table.append(first)
    expected = {row["id"]: row for row in first.to_pylist()}
    result = table.upsert(second, ["id"])
    assert (result.rows_updated, result.rows_inserted) == (2, 3)
    expected |= {row["id"]: row for row in second.to_pylist()}
    assert rows_of(table) == [expected[key] for key in sorted(expected)]
    assert table.upsert(second, ["id"]).rows_updated == 0

    third = frame(6, reverse=True)
    merge = table.merge(third, on=["id"]).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().rows_updated == 2
    expected |= {row["id"]: row for row in third.to_pylist()}
    assert rows_of(table) == [expected[key] for key in sorted(expected)]
    merge = table.merge(third.to_reader(), on="t.id = s.id and s.r is not null")
    assert merge.when_matched_delete("s.t = 'a' and s.l[1] = 7").execute().rows_deleted == 1
    del expected[6]

    table.overwrite(frame(20), "id = 8")
    del expected[8]
    expected |= {row["id"]: row for row in frame(20).to_pylist()}
    assert rows_of(table) == [expected[key] for key in sorted(expected)]
    with table.transaction() as transaction:
        transaction.append(frame(30))
        transaction.delete("day = 'mon' or id = 30")
    expected |= {row["id"]: row for row in frame(30).to_pylist()}
    expected = {k: row for k, row in expected.items() if row["day"] == "tue"}
    assert rows_of(table) == [expected[key] for key in sorted(expected)]
    table.dynamic_partition_overwrite(frame(40).slice(2))
    assert rows_of(table) == frame(40).slice(2).to_pylist()


def test_what_was_written_of_list_views_others_read(lake):
    table = lake.create_table("db.t", frame(0).schema)
    table.append(frame(0))
    peer = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert peer.sort_by("id").to_pylist() == frame(0).to_pylist()
    paths = [task.file.file_path.removeprefix("file:") for task in table.scan().plan_files()]
    found = duckdb.connect().read_parquet(paths).order("id").to_arrow_table()
    assert (
        found.select(["id", "l", "t", "s", "r"]).to_pylist()
        == frame(0).select(["id", "l", "t", "s", "r"]).to_pylist()
    )


def test_columns_that_a_table_lacks_are_added_from_any_layout(lake):
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(frame(0), merge_schema=True)
    assert rows_of(table) == frame(0).to_pylist()
    assert str(table.schema().find_field("l").field_type) == "list<long>"
    wider = pa.table({"id": [9], "s": views(pa.array([1]), (0, 1))})
    with pytest.raises(ValidationError, match="type of column 's'"):
        table.append(wider, merge_schema=True)


def test_a_required_value_is_missed_in_any_layout(lake):
    element = pa.field("element", pa.int64(), nullable=False)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("l", pa.list_(element))])
    table = lake.create_table("db.t", schema)
    for array in (runs(pa.array([None]), 1), pa.array([None], pa.int64()).dictionary_encode()):
        with pytest.raises(ValidationError, match="'id' is required, and 1 of 1"):
            table.append(pa.table({"id": array}))
    with pytest.raises(ValidationError, match=r"'l.element' is required"):
        table.append(pa.table({"id": [1], "l": views(pa.array([1, None]), (0, 2))}))
    # the null is in no row
    table.append(pa.table({"id": [1], "l": views(pa.array([1, None]), (0, 1))}))
    assert rows_of(table) == [{"id": 1, "l": [1]}]


def test_views_that_point_outside_are_refused_and_leave_no_file(lake, tmp_path):
    buffers = [None, *(pa.py_buffer(np.array(n, np.int32)) for n in ([0, 900], [1, 2]))]
    broken = pa.Array.from_buffers(pa.list_view(pa.int64()), 2, buffers, children=[pa.array([1])])
    table = lake.create_table("db.t", pa.schema([("l", pa.list_(pa.int64()))]))
    for operation in (table.append, table.overwrite):
        with pytest.raises(ValidationError, match="points outside"):
            operation(pa.table({"l": broken}))
    assert not list(tmp_path.rglob("*.parquet"))


def test_duckdb_gives_list_views(lake):
    connection = duckdb.connect()
    for setting in ("output_list_view = true", "output_version = '1.4'"):
        connection.execute(f"SET arrow_{setting}")
    connection.execute("SET produce_arrow_string_view = true")
    query = (
        "SELECT i AS id, CASE WHEN i % 7 > 0 THEN list_sort([i, i + 1, NULL], 'desc') END AS l, "
        "{'a': [[i], [], NULL]} AS s, map {'k': ['v' || i]} AS m, "
        "(CASE WHEN i < 9 THEN 'low' ELSE 'high' END)::ENUM ('low', 'high') AS e "
        "FROM range(600) t(i) WHERE i % 3 > 0"
    )
    relation = connection.sql(query)
    assert "list_view" in str(pa.RecordBatchReader.from_stream(relation).schema)
    expected = pa.RecordBatchReader.from_stream(connection.sql(query)).read_all().to_pylist()
    for file_format in FORMATS:
        schema = pa.RecordBatchReader.from_stream(relation).schema
        table = lake.create_table(f"db.{file_format}", schema, properties=in_(file_format))
        table.append(connection.sql(query))
        assert rows_of(table) == expected
        assert table.upsert(connection.sql(query), ["id"]).rows_updated == 0
        merge = table.merge(connection.sql(query), on=["id"]).when_matched_update_all()
        assert merge.execute().rows_updated == len(expected)
        assert rows_of(table) == expected


def test_polars_gives_views_of_categories_and_arrays(lake):
    frame = pl.DataFrame(
        {
            "id": [1, 2],
            "c": pl.Series(["x", None], dtype=pl.Categorical),
            "l": [["a", None], []],
            "a": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int64, 2)),
        }
    )

    class Stream:
        """The frame as its own Arrow stream, with views."""

        def __arrow_c_stream__(self, requested_schema=None):
            return frame.__arrow_c_stream__(requested_schema)

    table = lake.create_table("db.t", pa.RecordBatchReader.from_stream(frame).schema)
    for given in (frame, frame.lazy(), Stream()):
        table.overwrite(given)
        assert rows_of(table) == frame.to_dicts()


def test_files_whose_own_arrow_schema_has_other_layouts_are_read(lake, tmp_path):
    """pyarrow gives a column of a Parquet file back in the layout it was written from."""
    unwritten = ("run ends", "dictionary of", "dictionaries", "structs")  # pyarrow cannot
    names = [name for name in LAYOUTS if not any(text in name for text in unwritten)]
    data = pa.Table.from_batches([batch_of(names)])
    pq.write_table(data, tmp_path / "given.parquet")
    assert pq.read_schema(tmp_path / "given.parquet") == data.schema
    table = lake.create_table("db.t", data.schema)
    table.add_files([str(tmp_path / "given.parquet")])
    assert rows_of(table) == data.to_pylist()
    table.delete("id = 1")
    kept = [row for row in data.to_pylist() if row["id"] != 1]
    for name in names:
        nulls = [row for row in kept if row[name] is None]
        assert rows_of(table, row_filter=IsNull(name)) == nulls
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert rows_of(table) == kept


def test_batches_of_a_stream_have_each_its_own_layouts_types_and_order(lake):
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))])
    table = lake.create_table("db.t", schema)
    batches = [
        pa.record_batch([[1], pa.nulls(1), pa.nulls(1)], ["id", "s", "l"]),
        pa.record_batch([["b"], [[2]], pa.array([2], pa.int32())], ["s", "l", "id"]),
        pa.record_batch([pa.array(["c"], pa.large_string()), pa.array([3]), NUMBERS.slice(0, 1)], ["s", "id", "l"]),
        pa.record_batch([pa.array([4]), pa.array(["d"]).dictionary_encode(), NUMBERS.slice(2, 1)], ["id", "s", "l"]),
    ]  # fmt: skip
    expected = list(chain.from_iterable(batch.to_pylist() for batch in batches))
    for given in (batches, tuple(batches), (b for b in batches), batches[::-1]):
        table.overwrite(given)
        assert rows_of(table) == expected
        assert (
            table.upsert(given if isinstance(given, list) else iter(batches), ["id"]).rows_updated
            == 0
        )
    merge = table.merge((b for b in batches), "t.id = s.id and s.id > 0").when_matched_update_all()
    assert merge.execute().rows_updated == 4
    merge = table.merge(batches, on=["id"]).when_matched_delete("s.s = 'c'")
    assert merge.execute().rows_deleted == 1
    assert rows_of(table) == [row for row in expected if row["id"] != 3]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_column_of_nulls_alone_is_null_whatever_its_type_and_depth(lake, file_format):
    structs, maps = pa.struct([("x", pa.map_(pa.string(), pa.int64()))]), pa.map_(pa.string(), pa.list_(pa.int64()))  # fmt: skip
    schema = pa.schema([("id", pa.int64()), ("l", pa.list_(structs)), ("m", maps), ("s", structs)])
    table = lake.create_table("db.t", schema, properties=in_(file_format))
    inside = {
        "l": pa.array([[None], []], pa.list_(pa.null())),
        "m": pa.array([[("k", None)], None], pa.map_(pa.string(), pa.null())),
        "s": pa.array([{"x": None}, None], pa.struct([("x", pa.null())])),
    }
    whole = {name: pa.nulls(2) for name in inside}
    for columns in (inside, whole):
        data = pa.table({"id": [1, 2], **columns})
        table.overwrite(data)
        assert rows_of(table) == data.to_pylist()
        assert table.upsert(data, ["id"]).rows_updated == 0


def test_text_that_is_no_utf8_is_refused_in_any_layout(lake):
    views, plain = (
        pa.Array.from_buffers(text, 1, pa.array([b"\xff"], data).buffers())
        for text, data in ((pa.string_view(), pa.binary_view()), (pa.string(), pa.binary()))
    )
    table = lake.create_table("db.t", pa.schema([("s", pa.string())]))
    places = pa.array([0], pa.int32())
    for text in (views, plain, pa.DictionaryArray.from_arrays(places, plain)):
        with pytest.raises(SchemaError, match="UTF8"):
            table.append(pa.table({"s": text}))
    assert table.scan().count() == 0
