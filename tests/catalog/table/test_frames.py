"""What people hold in their hands: tables and scans as text, as frames and as Arrow streams."""

from __future__ import annotations

import sys

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.errors import MissingDependencyError, ValidationError
from icecomb.format.expressions.forms.polars_form import implied_by
from icecomb.format.rows.read import arrow_scan
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform

NAN = float("nan")
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int32(), metadata={"doc": "<b>the key</b>"}),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("t", pa.timestamp("us", "UTC")),
        ("p", pa.struct([("a", pa.int64())])),
    ]
)
BY_S = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("truncate[1]"), "first"),))
ROWS = {
    "k": [0, 1, 2, 3, None, 5],
    "s": ["a", "ab", "b", None, "b", ""],
    "x": [0.5, NAN, None, -1.0, 2.0, 3.0],
    "t": [None, *(i * 3_600_000_000 for i in range(5))],
    "p": [{"a": i} if i % 2 else None for i in range(6)],
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path_factory.mktemp("lake")))
    lake.create_namespace("db")
    yield lake
    lake.close()


@pytest.fixture(scope="module")
def table(lake):
    """Six rows in two files; of six more, all are deleted by positions."""
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", SCHEMA, properties=properties)
    rows = pa.table(ROWS, SCHEMA)
    table.append(rows.slice(3))
    table.append(rows.slice(0, 3))  # the last file comes first
    table.append(pa.table({"k": pa.array([70, 71], pa.int32())}))
    table.append(pa.table({"k": pa.array([70, 72], pa.int32())}))
    table.delete("k = 70")
    table.delete("k = 71")
    table.delete("k = 72")
    return table


@pytest.fixture
def opened(monkeypatch):
    """The data files that are opened."""
    found = []
    really = arrow_scan.open_data_file

    def note(io, file, *more, **settings):
        found.append(file.file_path)
        return really(io, file, *more, **settings)

    monkeypatch.setattr(arrow_scan, "open_data_file", note)
    return found


def test_a_table_shows_where_it_is_and_what_it_holds(lake):
    table = lake.create_table("db.shown", SCHEMA, partition_spec=BY_S)
    assert "snapshot        none: the table is empty" in repr(table)
    table.append(pa.table(ROWS, SCHEMA))
    shown = repr(table).splitlines()
    assert shown[0] == "db.shown"
    assert f"  location        {table.location()}" in shown
    assert "  format          version 2" in shown
    assert "  partitioned by  truncate[1](s) as first" in shown
    assert "  sorted by       nothing" in shown
    assert "  rows            6" in shown
    assert any(line.startswith("  files           4, and ") for line in shown)
    snapshot = table.current_snapshot()
    assert any(str(snapshot.snapshot_id) in line and "(append)" in line for line in shown)
    assert [line.split() for line in shown[-5:-1]] == [
        ["k", "int"],
        ["s", "string"],
        ["x", "double"],
        ["t", "timestamptz"],
    ]


def test_deletes_are_told_beside_the_rows_they_may_delete(table):
    assert "  rows            10, less up to 4 position deletes" in repr(table)


def test_a_notebook_is_given_no_markup_of_the_tables(table):
    html = table._repr_html_()
    assert "&lt;b&gt;the key&lt;/b&gt;" in html
    assert "<b>the key" not in html
    assert "&#x27;&lt;i&gt;&#x27;" in table.scan("s = '<i>'")._repr_html_()


def test_showing_reads_no_file(table, monkeypatch):
    def refuse(*_):
        raise AssertionError("a file was opened")

    monkeypatch.setattr(type(table.io), "open_input", refuse)
    monkeypatch.setattr(type(table.io), "read", refuse)
    for shown in (table, table.scan("k > 1", limit=3), table.incremental_append_scan()):
        assert "columns" in repr(shown)
        assert "<table>" in shown._repr_html_()


def test_a_scan_shows_its_question(table):
    first = table.snapshots()[0]  # of the last three rows
    scan = table.scan("k > 1 and s = 'b'", ("k", "_pos"), snapshot_id=first.snapshot_id, limit=7)
    shown = repr(scan)
    assert f"{first.snapshot_id} of " in shown
    assert "  rows            3\n" in shown
    assert f"  filter          {scan.row_filter}" in shown
    assert "  limit           7 rows" in shown
    assert [line.split() for line in shown.splitlines()[-2:]] == [
        ["k", "int"],
        ["_pos", "long", "not", "null"],
    ]


def test_a_scan_that_cannot_be_read_is_shown_all_the_same(table):
    scan = table.scan("nothing > 1", ("nowhere",))
    assert "nothing > 1" in repr(scan)
    with pytest.raises(ValidationError, match="nowhere"):
        scan.to_polars()


def test_summaries_of_any_content_are_shown(table):
    from dataclasses import replace

    from icecomb.format.scan.description import snapshot_facts

    odd = {"total-records": "many", "total-data-files": "-1", "total-files-size": "²"}
    snapshot = replace(table.current_snapshot(), timestamp_ms=1 << 62, summary=odd)
    facts = dict(snapshot_facts(snapshot))
    assert facts["rows"] == "many"
    assert facts["files"] == "-1, and ²"
    assert "+146140482-04-24 15:36:27 UTC (unknown)" in facts["snapshot"]


def test_a_polars_frame_is_lazy_and_reads_only_what_is_asked(table, opened):
    frame = table.scan().to_polars()
    assert frame.collect_schema().names() == ["k", "s", "x", "t", "p"]
    assert not opened
    found = frame.filter(pl.col("k").is_between(3, 9)).select("s", "k").collect()
    assert found.rows() == [(None, 3), ("", 5)]
    assert len(opened) == 1
    assert frame.select(pl.len()).collect().item() == 6


def test_polars_limits_before_or_after_its_filter(table):
    frame = table.scan().to_polars()
    assert frame.head(2).collect()["k"].to_list() == [0, 1]
    assert frame.head(2).filter(pl.col("k") > 0).collect()["k"].to_list() == [1]
    assert frame.filter(pl.col("k") > 0).head(2).collect()["k"].to_list() == [1, 2]
    assert frame.slice(1, 2).collect()["k"].to_list() == [1, 2]
    limited = table.scan(limit=2).to_polars()
    assert limited.filter(pl.col("k") > 0).collect()["k"].to_list() == [1]
    assert limited.head(5).collect().height == 2


WITHOUT_COLUMNS = {
    "row numbers": lambda frame: frame.with_row_index().select("index"),
    "groups of them": lambda frame: (
        frame.with_row_index().group_by(pl.col("index") // 2).len().sort("index")
    ),
    "a range": lambda frame: frame.select(pl.int_range(pl.len())),
    "a repeated value": lambda frame: frame.select(pl.repeat("x", pl.len())),
    "some rows' numbers": lambda frame: frame.slice(1, 3).with_row_index().select("index"),
    "a filter of no column": lambda frame: (
        frame.filter(pl.lit(value=True)).with_row_index().select("index")
    ),
    "a filtered range": lambda frame: frame.filter(pl.col("k") > 1).select(pl.int_range(pl.len())),
}


@pytest.mark.parametrize("what", WITHOUT_COLUMNS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_query_of_polars_that_needs_no_column_has_all_rows(table, what, engine):
    query, whole = WITHOUT_COLUMNS[what], pl.DataFrame(pa.table(ROWS, SCHEMA))
    found = query(table.scan().to_polars()).collect(engine=engine)
    assert found.equals(query(whole.lazy()).collect())
    assert found.height


def test_scans_of_no_column_have_all_rows(table):
    scan = table.scan().select()
    assert scan.to_arrow().num_rows == 6
    assert sum(batch.num_rows for batch in scan.to_arrow_batches()) == 6
    assert scan.to_arrow_batch_reader().read_all().num_rows == 6
    assert len(scan.to_pandas()) == 6
    with duckdb.connect() as connection:
        connection.register("rows", table.scan())
        assert connection.sql("SELECT count(*), sum(1) FROM rows").fetchall() == [(6, 6)]
        assert connection.sql("SELECT 'x' FROM rows").fetchall() == [("x",)] * 6


times = st.integers(-1, 5).map(lambda i: pl.lit(i * 3_600_000_000).cast(pl.Datetime("us", "UTC")))
OPERATORS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "eq_missing")
leaves = st.one_of(
    st.builds(lambda op, v: getattr(pl.col("k"), op)(v), st.sampled_from(OPERATORS), st.integers(-1, 6)),
    st.builds(lambda op, v: getattr(pl.col("k"), op)(v), st.sampled_from(OPERATORS), st.sampled_from([0.5, 2.0])),
    st.builds(lambda op, v: getattr(pl.col("s"), op)(v), st.sampled_from(OPERATORS), st.sampled_from(["", "a", "ab", "b"])),
    st.builds(lambda op, v: getattr(pl.col("x"), op)(v), st.sampled_from(OPERATORS), st.sampled_from([-1.0, 0.5, 2.5, NAN])),
    st.builds(lambda op, v: getattr(pl.col("t"), op)(v), st.sampled_from(OPERATORS), times),
    st.builds(lambda v, nulls: pl.col("k").is_in(v, nulls_equal=nulls), st.lists(st.none() | st.integers(0, 5), max_size=3).map(lambda v: pl.Series(v, dtype=pl.Int32)).map(pl.Series.implode), st.booleans()),
    st.builds(pl.col("x").is_in, st.lists(st.sampled_from([0.5, NAN, 3.0]), max_size=2).map(lambda v: pl.Series(v, dtype=pl.Float64)).map(pl.Series.implode)),
    st.builds(pl.col("x").is_between, st.sampled_from([-2.0, 0.5]), st.sampled_from([2.0, NAN])),
    st.builds(pl.col("s").str.starts_with, st.sampled_from(["", "a", "b"])),
    st.sampled_from([pl.col(c).is_null() for c in "ksxt"] + [pl.col("x").is_nan(), pl.col("x").is_not_nan()]),
    st.sampled_from([pl.col("p").struct.field("a") > 2, pl.col("k") + 1 > 3, pl.col("s").str.len_bytes() > 0]),
)  # fmt: skip
filters = st.recursive(
    leaves,
    lambda some: st.one_of(
        st.builds(lambda a, b: a & b, some, some),
        st.builds(lambda a, b: a | b, some, some),
        st.builds(lambda a, b: a ^ b, some, some),
        st.builds(lambda a: ~a, some),
    ),
    max_leaves=4,
)


@given(filters)
def test_any_filter_of_polars_selects_what_polars_selects(table, predicate):
    expected = pl.DataFrame(pa.table(ROWS, SCHEMA)).filter(predicate)
    found = table.scan().to_polars().filter(predicate).collect()
    assert found.equals(expected)


def test_filters_of_polars_are_understood(table):
    """What is not would be right, but read every file."""
    schema = table.schema()
    literal = pl.lit(3, pl.Int32)
    cases = {
        "k": pl.col("k") > literal,
        "s": pl.col("s").str.starts_with("a"),
        "x": pl.col("x").is_in(pl.Series([0.5, 1.0]).implode()),
    }
    understood = {name: str(implied_by(p, schema)) for name, p in cases.items()}
    assert understood == {
        "k": "k > 3",
        "s": "s STARTS WITH 'a'",
        "x": "(x IN (0.5, 1.0) OR x IS NAN)",
    }


def test_a_relation_of_duckdb_reads_anew_each_time(table, opened):
    relation = table.scan("k > 0").to_duckdb(duckdb.connect())
    assert not opened
    assert sorted(relation.project("k").fetchall()) == [(1,), (2,), (3,), (5,)]
    assert relation.aggregate("sum(k)").fetchall() == [(11,)]
    assert relation.aggregate("sum(k)").fetchall() == [(11,)]
    assert relation.filter("p.a = 5").project("s").fetchall() == [("",)]


def test_without_duckdb_the_error_says_how_to_get_it(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"icecomb\[duckdb\]"):
        table.scan().to_duckdb()


def test_whatever_takes_arrow_streams_takes_a_scan(table):
    scan = table.scan("k < 3", ("k",))
    assert pa.table(scan).to_pydict() == {"k": [0, 1, 2]}
    assert pl.DataFrame(scan)["k"].to_list() == [0, 1, 2]
    assert duckdb.connect().sql("select max(k) from scan").fetchall() == [(2,)]


def test_pandas_is_given_the_options_of_arrow(table):
    frame = table.scan(selected_fields=("k",)).to_pandas(integer_object_nulls=True)
    assert frame["k"].tolist() == ROWS["k"]


def test_rows_are_counted_without_opening_files_where_the_filter_is_exact(lake, opened):
    by_k = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "k"),))
    table = lake.create_table("db.counted", SCHEMA, partition_spec=by_k)
    table.append(pa.table({"k": pa.array([1, 1, 2, None], pa.int32()), "s": ["a", "b", "c", "d"]}))
    assert table.scan().count() == 4
    assert table.scan("k = 1").count() == 2
    assert table.scan("k is null or k = 2").count() == 2
    assert table.scan("k = 1", limit=1).count() == 1
    assert not opened
    assert table.scan("k = 1 and s = 'b'").count() == 1
    assert len(opened) == 1


def test_a_limit_opens_no_more_files_than_it_needs(lake, opened):
    table = lake.create_table("db.limited", SCHEMA)
    for i in range(12):
        table.append(pa.table({"k": pa.array([i, i + 100], pa.int32())}))
    assert table.scan(limit=3).to_arrow().num_rows == 3
    assert len(opened) <= 2
