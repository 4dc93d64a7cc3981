"""The forms in which rows are given, columns that the table lacks, and branches."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog.table.row_operations import arrow_data
from icecomb.format.errors import (
    CommitFailedError,
    NoSuchSnapshotError,
    SchemaError,
    ValidationError,
)
from icecomb.format.row_changes.upsert import UpsertResult
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
ROWS = pa.table({"id": [1, 2], "s": ["a", None], "x": [1.5, None]}, SCHEMA)


@pytest.fixture
def table(lake):
    return lake.create_table("db.t", SCHEMA)


def found(table) -> list[dict]:
    """The rows as our scan and PyIceberg's agree on them, by id."""
    ours = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    peer = StaticTable.from_metadata(table.metadata_location).scan().to_arrow().to_pylist()
    assert ours == sorted(peer, key=lambda row: row["id"])
    return ours


def files(table) -> set[str]:
    folder = Path(table.location().removeprefix("file:"))
    return {str(p) for p in folder.rglob("*.parquet")}


class Stream:
    """Something of another library that can be read as a stream of Arrow data."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ROWS.__arrow_c_stream__(requested_schema)


class Batch:
    """Something of another library that is one batch."""

    def __arrow_c_array__(self, requested_schema=None):
        return ROWS.to_batches()[0].__arrow_c_array__(requested_schema)


def _data_set(folder):
    pq.write_table(ROWS, folder / "x.parquet")
    return ds.dataset(folder / "x.parquet")


FORMS = {
    "table": lambda _: ROWS,
    "batch": lambda _: ROWS.to_batches()[0],
    "batches": lambda _: ROWS.to_batches(max_chunksize=1),
    "generated batches": lambda _: (batch for batch in ROWS.to_batches(max_chunksize=1)),
    "reader": lambda _: ROWS.to_reader(),
    "pandas": lambda _: ROWS.to_pandas(),
    "pandas with an index": lambda _: ROWS.to_pandas().set_index(pd.Index([7, 5])),
    "polars": lambda _: pl.from_arrow(ROWS),
    "polars with categories": lambda _: pl.from_arrow(ROWS).cast({"s": pl.Categorical}),
    "lazy polars": lambda _: pl.from_arrow(ROWS).lazy().filter(pl.col("id") < 9),
    "duckdb": lambda _: duckdb.connect().from_arrow(ROWS).filter("id < 9"),
    "data set": _data_set,
    "stream": lambda _: Stream(),
    "array": lambda _: Batch(),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_taken_in_every_form(table, tmp_path, form):
    make = FORMS[form]
    table.append(make(tmp_path))
    assert found(table) == ROWS.to_pylist()
    table.overwrite(make(tmp_path))
    assert table.upsert(make(tmp_path), ["id"]).rows_updated == 0
    merge = table.merge(make(tmp_path), "t.id = s.id and s.id > 0").when_matched_delete("s.id = 2")
    assert merge.when_matched_update_all().execute().rows_updated == 1
    assert found(table) == ROWS.to_pylist()[:1]


INDEXED = {
    "one level": lambda df: df.set_index("id"),
    "a level that is a column, too": lambda df: df.set_index("id", drop=False),
    "several levels": lambda df: df.set_index(["s", "id"]),
    "a level without a name beside": lambda df: df.set_index([df["id"].rename(None), "id"]),
    "a named range": lambda df: df.drop(columns="id").set_index(
        pd.RangeIndex(1, len(df) + 1, name="id")
    ),
}


@pytest.mark.parametrize("form", INDEXED)
def test_named_levels_of_a_pandas_index_are_columns(table, form):
    frame = INDEXED[form](ROWS.to_pandas())
    table.append(frame)
    assert found(table) == ROWS.to_pylist()
    frame["x"] = [9.5, 8.5]
    assert table.upsert(frame, ["id"]).rows_updated == 2
    table.merge(frame, "t.id = s.id").when_matched_delete("s.x = 8.5").execute()
    table.overwrite(frame, "id = 1")
    assert [row["x"] for row in found(table)] == [9.5, 8.5]


def test_dates_and_categories_of_an_index_are_taken_as_those_of_columns_are(lake):
    days = pd.DatetimeIndex(["2024-01-31", None], name="day")
    kinds = pd.CategoricalIndex(["a", None], name="kind")
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.MultiIndex.from_arrays([days, kinds]))
    table = lake.create_table(
        "db.days",
        pa.schema([("day", pa.timestamp("us")), ("kind", pa.string()), ("x", pa.int64())]),
    )
    table.append(frame)
    assert table.scan().to_arrow().to_pylist() == frame.reset_index().astype(
        {"day": "object", "kind": "object"}
    ).where(lambda df: df.notna(), None).to_dict("records")


UNNAMED = {
    "texts": pd.Index(["x", "y"]),
    "numbers": pd.Index([7, 5]),
    "every second row": pd.RangeIndex(0, 4, 2),
    "rows further on": pd.RangeIndex(10, 12),
    "times": pd.DatetimeIndex(["2024-01-31", None]),
    "categories": pd.CategoricalIndex(["a", None]),
    "levels": pd.MultiIndex.from_arrays([[1, 2], ["a", "b"]]),
    "a named level beside": pd.MultiIndex.from_arrays([[1, 2], ["a", "b"]], names=["n", None]),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_an_index_without_a_name_fills_the_column_that_arrow_makes_of_it(lake, name):
    frame = pd.DataFrame({"id": [1, 2]}, index=UNNAMED[name])
    meant = pa.Table.from_pandas(frame, preserve_index=True)
    assert any(column.startswith("__index_level_") for column in meant.column_names)
    table = lake.create_table("db.i", meant.schema)
    table.append(frame)
    assert found(table) == meant.to_pylist()
    assert table.upsert(frame, ["id"]).rows_updated == 0
    table.merge(frame, on=["id"]).when_matched_update_all().execute()
    table.overwrite(frame, "id = 1 or id = 2")
    assert found(table) == meant.to_pylist()
    # what was read back has the column, and an index of its own
    back = table.scan().to_pandas()
    table.overwrite(back)
    assert found(table) == meant.to_pylist()


def test_a_frame_in_pieces_keeps_the_numbers_of_its_rows(lake):
    frame = pd.DataFrame({"id": [1, 2, 3, 4]})
    chosen = frame[frame.id != 2]
    table = lake.create_table("db.i", pa.Schema.from_pandas(chosen))
    table.append(chosen)
    for start in (0, 2):
        table.overwrite(frame.iloc[start : start + 2], f"id > {start} and id <= {start + 2}")
    assert [row["__index_level_0__"] for row in found(table)] == [0, 1, 2, 3]


def test_the_index_of_a_frame_that_was_given_none_is_left_out(lake):
    frame = pd.DataFrame({"id": [1, 2]}, index=["x", "y"])
    table = lake.create_table("db.i", pa.Schema.from_pandas(frame))
    table.append(frame.reset_index(drop=True))
    assert [row["__index_level_0__"] for row in found(table)] == [None, None]
    with pytest.raises(
        SchemaError, match="__index_level_0__: string in the table, int64"
    ) as refused:
        table.append(frame.set_index(pd.Index([7, 5])))
    assert "reset_index(drop=True)" in refused.value.hint


def test_an_index_whose_name_is_no_column_is_refused_and_not_dropped(table):
    frame = ROWS.to_pandas().set_index(pd.Index([7, 5], name="other"))
    with pytest.raises(SchemaError, match=r"\+ other: int64 in the data") as refused:
        table.append(frame)
    assert "reset_index(drop=True)" in refused.value.hint
    assert files(table) == set()
    table.append(frame, merge_schema=True)
    assert [row["other"] for row in found(table)] == [7, 5]
    table.overwrite(frame.reset_index(drop=True))
    assert [row["other"] for row in found(table)] == [None, None]


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([7, 5], name="id"),
        pd.MultiIndex.from_arrays([[1, 2], [2, 1]], names=["other", "other"]),
    ],
    ids=["column", "level"],
)
def test_an_index_that_says_something_else_than_the_column_of_its_name_is_refused(table, index):
    with pytest.raises(ValidationError, match="both named") as refused:
        table.append(ROWS.to_pandas().set_index(index))
    assert "reset_index" in refused.value.hint
    assert files(table) == set()


@pytest.mark.parametrize(
    "given",
    [
        pd.Series([1], name="id"),
        pd.Index([1], name="id"),
        pl.Series("id", [1]),
        pa.array([1]),
        pa.chunked_array([[1]]),
    ],
    ids=lambda given: f"{type(given).__module__}.{type(given).__name__}",
)
def test_a_single_column_is_no_table_of_rows(table, given):
    with pytest.raises(ValidationError, match=type(given).__name__):
        table.append(given)


@pytest.mark.parametrize("given", [7, "rows", "", {"id": [1]}, {}, [{"id": 1}], None])
def test_what_is_no_table_of_rows_is_refused(table, given):
    with pytest.raises(ValidationError, match=f"{type(given).__name__} is not a table of rows"):
        table.append(given)


@pytest.mark.parametrize("empty", [pd.Series([], name="id"), pa.array([], pa.int64()), pl.Series([])], ids=lambda v: type(v).__name__)  # fmt: skip
def test_a_column_without_values_is_no_table_either(table, empty):
    with pytest.raises(ValidationError, match="is not a table of rows"):
        table.append(empty)


NOTHING = {
    "list": list,
    "tuple": tuple,
    "iterator": lambda: iter(()),
    "generator": lambda: (batch for batch in ()),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_no_batch_at_all_is_no_row(lake, kind):
    make = NOTHING[kind]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    by_s = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "s"),))
    table = lake.create_table("db.e", schema, partition_spec=by_s)
    rows = pa.table({"id": [1], "s": ["a"]}, schema)
    table.append(rows)
    table.append(make())
    table.append(make(), merge_schema=True)
    table.dynamic_partition_overwrite(make())
    assert table.upsert(make(), ["id"]) == UpsertResult(0, 0)
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("kind", NOTHING)
def test_batches_that_may_have_been_read_before_take_no_row_away(table, kind):
    """A generator that was used up cannot be told from one that never had a batch."""
    make = NOTHING[kind]
    table.append(ROWS)
    merge = table.merge(make(), on=["id"]).when_not_matched_by_source_delete()
    for operation in (lambda: table.overwrite(make()), merge.execute):
        with pytest.raises(ValidationError, match="without a batch") as refused:
            operation()
        assert "empty_table()" in refused.value.hint
    assert found(table) == ROWS.to_pylist()
    table.overwrite(table.schema().as_arrow().empty_table())
    assert found(table) == []


def test_something_else_among_batches_is_refused(table):
    for given in ([ROWS.to_batches()[0], ROWS], iter([ROWS.to_batches()[0], {"id": 1}])):
        with pytest.raises(ValidationError, match="among record batches"):
            table.append(given)
    assert files(table) == set()


def test_a_batch_of_a_stream_that_does_not_fit_is_refused_with_all_others(table):
    good = ROWS.to_batches()[0]
    for wrong, message in (
        (pa.record_batch([[3], ["x"]], ["id", "other"]), r"\+ other: string in the data"),
        (pa.record_batch([["x"]], ["id"]), "! id: long in the table, string in the data"),
    ):
        for operation in (table.append, table.overwrite, lambda rows: table.upsert(rows, ["id"])):
            with pytest.raises(SchemaError):
                operation([good, wrong])
        with pytest.raises(SchemaError, match=message):
            table.append(iter([good, wrong]))
    with pytest.raises(SchemaError, match="has no column 'x': replaced rows would lose"):
        table.upsert([good, good.select(["id", "s"])], ["id"])
    assert files(table) == set()
    for source, message in (
        ([good, good.select(["id", "s"])], "have different columns: id, s, x; id, s"),
        ([good, pa.record_batch([[3], [True], [1.0]], ["id", "s", "x"])], "do not go together"),
        ([good, pa.record_batch([[2**53 + 1]] * 2 + [["a"]], ["id", "x", "s"])], "do not go together"),
    ):  # fmt: skip
        with pytest.raises(SchemaError, match=message):
            table.merge(source, on=["id"]).when_not_matched_insert_all().execute()
    assert table.refresh().snapshots() == []


def test_streams_are_read_a_batch_at_a_time():
    taken = []

    def batches():
        for batch in ROWS.to_batches(max_chunksize=1):
            taken.append(batch)
            yield batch

    for given in (pa.RecordBatchReader.from_batches(SCHEMA, batches()), batches()):
        taken.clear()
        next(iter(arrow_data(given, Schema())))
        assert len(taken) == 1


def test_a_stream_that_breaks_leaves_no_file(table):
    def broken():
        yield ROWS.to_batches()[0]
        raise OSError("the line is dead")

    for operation in (table.append, table.overwrite):
        with pytest.raises(OSError, match="the line is dead"):
            operation(pa.RecordBatchReader.from_batches(SCHEMA, broken()))
    assert files(table) == set()
    assert table.refresh().snapshots() == []


def test_columns_that_the_table_lacks_are_added_in_the_same_commit(table):
    table.append(ROWS)
    versions = len(table.metadata.metadata_log)
    wider = pa.table({"id": [3], "x": [2.5], "new": ["n"], "p": [{"q": 1}]})
    with pytest.raises(SchemaError, match=r"\+ new: string in the data"):
        table.append(wider)
    table.append(wider, merge_schema=True)
    assert len(table.metadata.metadata_log) == versions + 1
    assert table.schema().column_names == ["id", "s", "x", "new", "p", "p.q"]
    nested = pa.table({"id": [4], "p": [{"q": 2, "r": True}]})
    table.overwrite(nested, "id = 3", merge_schema=True)
    table.upsert(
        pa.table({"id": [1], "s": ["b"], "x": [0.0], "new": [None], "p": [{"q": 3, "r": None}], "z": [1]}),
        ["id"],
        merge_schema=True,
    )  # fmt: skip
    plain = {"s": None, "x": None, "new": None, "p": None, "z": None}
    assert found(table) == [
        plain | {"id": 1, "s": "b", "x": 0.0, "p": {"q": 3, "r": None}, "z": 1},
        plain | {"id": 2},
        plain | {"id": 4, "p": {"q": 2, "r": True}},
    ]


def test_columns_are_widened_and_what_is_required_stays_so(lake):
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("x", pa.float32())])
    table = lake.create_table("db.w", schema)
    table.append(pa.table({"id": [1], "x": [1.0]}, schema), merge_schema=True)
    assert len(table.metadata.schemas) == 1
    table.append(pa.table({"id": [2**40], "x": pa.nulls(1), "y": pa.array([1], pa.uint8())}), merge_schema=True)  # fmt: skip
    assert [(f.name, str(f.field_type), f.required) for f in table.schema().fields] == [
        ("id", "long", True),
        ("x", "float", False),
        ("y", "int", False),
    ]
    before = files(table), table.metadata_location
    for rows, message in (
        (pa.table({"id": [None, 1], "z": [1, 2]}), "'id' is required"),
        (pa.table({"id": ["a"], "z": [1]}), "id"),
        (pa.table({"z": [1]}), "id: required"),
    ):
        with pytest.raises(ValidationError, match=message):
            table.append(rows, merge_schema=True)
        with pytest.raises(ValidationError, match=message):
            table.overwrite(rows, merge_schema=True)
    assert (files(table), table.metadata_location) == before
    assert [row["id"] for row in found(table)] == [1, 2**40]


def test_in_a_transaction_a_refused_change_takes_its_columns_along(table):
    with table.transaction() as transaction:
        transaction.append(ROWS)
        with pytest.raises(SchemaError):
            transaction.append(pa.table({"new": [1], "s": [1]}), merge_schema=True)
        transaction.append(pa.table({"id": [3], "good": [1]}), merge_schema=True)
    assert table.schema().column_names == ["id", "s", "x", "good"]
    assert len(found(table)) == 3


def test_two_writers_that_add_a_column_do_not_mix_their_ids(lake, table):
    other = lake.load_table("db.t")
    table.append(pa.table({"id": [1], "a": [1]}), merge_schema=True)
    before = files(table)
    with pytest.raises(CommitFailedError):
        other.append(pa.table({"id": [2], "b": ["x"]}), merge_schema=True)
    assert files(table) == before
    other.refresh().append(pa.table({"id": [2], "b": ["x"]}), merge_schema=True)
    assert [(row["a"], row["b"]) for row in found(other)] == [(1, None), (None, "x")]


def test_every_difference_of_a_frame_is_a_line(lake):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string()), ("p", pa.struct([("q", pa.int32())]))])  # fmt: skip
    table = lake.create_table("db.d", schema)
    wrong = pa.table({"s": [1], "p": [{"q": "x", "r": 1}], "S2": [1], "P": [1]})
    with pytest.raises(SchemaError) as caught:
        table.append(wrong)
    lines = [line.strip() for line in str(caught.value).splitlines()]
    for expected in (
        "- id: required long in the table, missing in the data",
        "! s: string in the table, int64 in the data",
        "! p.q: int in the table, string in the data",
        "+ p.r: int64 in the data, not in the table",
        "+ S2: int64 in the data, not in the table",
        "+ P: int64 in the data, not in the table (did you mean p?)",
    ):
        assert expected in lines


def test_every_operation_writes_to_a_branch_alone(lake):
    table = lake.create_table("db.b", SCHEMA)
    table.append(ROWS)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
    job = {"job": "7"}
    table.append(pa.table({"id": [3], "s": ["c"], "x": [3.0]}), job, branch="b")
    table.overwrite(pa.table({"id": [4], "s": ["d"], "x": [4.0]}), "id = 3", job, branch="b")
    table.delete("id = 2", job, branch="b")
    table.upsert(pa.table({"id": [1], "s": ["A"], "x": [1.0]}), ["id"], branch="b")
    with table.transaction() as transaction:
        transaction.append(pa.table({"id": [5], "s": ["e"], "x": [5.0]}), branch="b")
        transaction.delete("id = 4", branch="b")
        transaction.append(pa.table({"id": [9], "s": ["z"], "x": [9.0]}))
    on_branch = table.scan(ref="b").to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["s"]) for row in on_branch] == [(1, "A"), (5, "e")]
    assert [row["id"] for row in found(table)] == [1, 2, 9]
    told = [s.summary.get("job") for s in table.snapshots()]
    assert told == [None, "7", "7", "7", None, None, None, None]


def test_an_append_makes_a_branch_from_where_main_is_as_iceberg_java_does(lake):
    table = lake.create_table("db.n", SCHEMA)
    table.append(ROWS)
    table.append(ROWS.slice(0, 1), branch="new")
    assert (table.scan().count(), table.scan(ref="new").count()) == (2, 3)
    table.delete("id = 1", branch="new")
    assert (table.scan().count(), table.scan(ref="new").count()) == (2, 1)
    with pytest.raises(NoSuchSnapshotError, match="nope"):
        table.delete("id = 1", branch="nope")
