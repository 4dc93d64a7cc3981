"""Predicates of SQL on rows with nulls, however negated and nested, select what DuckDB selects."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import EqualTo, NotStartsWith, StartsWith
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BooleanType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

SCHEMA = Schema(
    (
        NestedField(1, "n", LongType(), required=True),
        NestedField(2, "k", LongType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "d", DoubleType()),
        NestedField(5, "b", BooleanType()),
        NestedField(6, "p", StructType((NestedField(7, "x", LongType()),))),
    )
)
KEYS = [None, -3, 0, 1, 2, 7]
TEXTS = [None, "", "a", "ab", "a%", "a_c", "é", "b\\"]
DOUBLES = [None, -2.5, 0.0, 1e300]
STRUCTS = [None, {"x": None}, {"x": 1}, {"x": 7}]
ROWS = pa.table(
    {
        "n": list(range(96)),
        "k": [KEYS[i % 6] for i in range(96)],
        "s": [TEXTS[i // 2 % 8] for i in range(96)],
        "d": [DOUBLES[i // 3 % 4] for i in range(96)],
        "b": [(None, True, False)[i // 5 % 3] for i in range(96)],
        "p": pa.array([STRUCTS[i // 7 % 4] for i in range(96)], pa.struct([("x", pa.int64())])),
    }
)
SPECS = {
    "none": (),
    "text": ((3, "truncate[1]"), (5, "identity")),
    "numbers": ((2, "bucket[2]"), (7, "identity")),
}

_numbers = st.sampled_from(["-3", "0", "1", "7", "1.5", "10000000000", "-9.75"])
_texts = st.sampled_from(["''", "'a'", "'ab'", "'a%'", "'a_c'", "'é'", "'zz'"])
_patterns = st.sampled_from(
    ["'%'", "'a%'", "'ab'", "''", r"'a\%'", r"'a\%%'", r"'a\_c'", r"'a\_%'", "'é%'", "'%%'"]
)
_not = st.sampled_from(["", "not "])


@st.composite
def leaves(draw):
    """A predicate as we spell it, and as DuckDB does where it spells it otherwise."""
    column, values = draw(
        st.sampled_from([("k", _numbers), ("d", _numbers), ("p.x", _numbers), ("s", _texts)])
    )
    kind = draw(st.sampled_from(["compare", "safe", "in", "between", "null", "like", "bool"]))
    one, other, no = draw(values), draw(values), draw(_not)
    if kind == "compare":
        sign = draw(st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="]))
        return (f"{column} {sign} {one}",) * 2
    if kind == "safe":
        value = draw(st.sampled_from([one, "null"]))
        return f"{column} <=> {value}", f"{column} is not distinct from {value}"
    if kind == "in":
        return (f"{column} {no}in ({one}, {other}, {draw(values)})",) * 2
    if kind == "between":
        return (f"{column} {no}between {one} and {other}",) * 2
    if kind == "null":
        return (f"{draw(st.sampled_from(['n', 'b', 'p', column]))} is {no}null",) * 2
    if kind == "like":
        pattern = draw(_patterns)
        text = f"s {no}like {pattern}"
        other = f"s {no}like 'a!%%' escape '!'"
        return draw(
            st.sampled_from(
                [
                    (text, text + r" escape '\'"),
                    (other, other),
                    (f"starts_with(s, {one if column == 's' else chr(39) * 2})",) * 2,
                ]
            )
        )
    return (
        draw(st.sampled_from(["b", "b = true", "b is true", "b is not false", "b != true"])),
    ) * 2


def negated(inner):
    return st.tuples(inner).map(lambda p: (f"not ({p[0][0]})", f"not ({p[0][1]})"))


def joined(inner):
    words = st.sampled_from(["and", "or"])
    return st.tuples(inner, words, inner).map(
        lambda p: tuple(f"({p[0][i]}) {p[1]} ({p[2][i]})" for i in (0, 1))
    )


PREDICATES = st.recursive(
    leaves(), lambda inner: negated(inner) | negated(inner) | joined(inner), max_leaves=5
)
NOT_LIKE_ALL = ("s not like '%'",) * 2
NESTED = ("not (s like '%' and k > 0)",) * 2


@pytest.fixture(scope="module")
def selected_by_duckdb():
    connection = duckdb.connect()
    connection.register("arrow", ROWS)
    # a table of its own: not all filters can be pushed down into Arrow
    connection.sql("create table rows as select * from arrow")

    def selected(text):
        return [
            n for (n,) in connection.sql(f"select n from rows where {text} order by n").fetchall()
        ]

    yield selected
    connection.close()


@pytest.fixture(scope="module", params=list(SPECS))
def table(request, tmp_path_factory):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path_factory.mktemp("lake")))
    lake.create_namespace("db")
    fields = enumerate(SPECS[request.param])
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(source, 1000 + i, parse_transform(t), f"p{i}")
            for i, (source, t) in fields
        ),
    )
    made = lake.create_table("db.t", SCHEMA, partition_spec=spec)
    for start in range(0, ROWS.num_rows, 16):
        made.append(ROWS.slice(start, 16).cast(made.schema().as_arrow()))
    yield made
    lake.close()


@given(PREDICATES)
@example(NOT_LIKE_ALL)
@example(NESTED)
@settings(max_examples=300)
def test_a_predicate_selects_the_rows_that_duckdb_selects(selected_by_duckdb, predicate):
    ours, theirs = predicate
    columns = {i + 1: ROWS.column(i).combine_chunks() for i in range(6)}
    columns[7] = pa.array([p and p["x"] for p in ROWS["p"].to_pylist()], pa.int64())
    mask = row_mask(bind(SCHEMA, parse(ours)), columns, ROWS.num_rows)
    assert ROWS.filter(mask)["n"].to_pylist() == selected_by_duckdb(theirs)


@given(PREDICATES)
@example(NOT_LIKE_ALL)
@example(NESTED)
@settings(max_examples=25)
def test_a_scan_finds_the_rows_that_duckdb_selects(selected_by_duckdb, table, predicate):
    ours, theirs = predicate
    scan = table.scan(ours, selected_fields=("n",))
    assert sorted(scan.to_arrow()["n"].to_pylist()) == selected_by_duckdb(theirs)
    assert scan.count() == len(selected_by_duckdb(theirs))


def test_a_delete_of_what_is_not_like_anything_deletes_nothing(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("s", pa.string())]))
    table.append(pa.table({"s": ["a", None, ""]}))
    table.delete("s not like '%'")
    assert table.scan().to_arrow()["s"].to_pylist() == ["a", None, ""]
    lake.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a like 'x\%%'", StartsWith("a", "x%")),
        (r"a like 'x\_y%'", StartsWith("a", "x_y")),
        (r"a like 'x\%'", EqualTo("a", "x%")),
        (r"a not like 'x\%%'", NotStartsWith("a", "x%")),
        (r"a like 'C:\dir%'", StartsWith("a", "C:\\dir")),
        (r"a like 'x\\%' escape '\'", StartsWith("a", "x\\")),
        (r"a like 'x\%' escape '!'", StartsWith("a", "x\\")),
    ],
)
def test_a_backslash_takes_the_meaning_from_a_wildcard(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("text", [r"a like 'x\\%'", r"a like 'x!' escape '!'"])
def test_a_pattern_that_engines_understand_differently_is_refused(text):
    with pytest.raises(ExpressionError, match="escape") as failure:
        parse(text)
    assert "ESCAPE" in str(failure.value.hint)
