"""Filters of programs: nested deeper than Python calls, and put together one by one."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icecomb.catalog import Table, load_catalog
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import ColumnNames, bind
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.expression import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    LessThan,
    Not,
    NotEqualTo,
    Or,
    rewrite_not,
)
from icecomb.format.expressions.forms.arrow_form import from_arrow
from icecomb.format.expressions.forms.polars_form import implied_by
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from icecomb.spark.planner.scan.predicates import exact_filter, row_filter
from tests.format.expressions.unbound import unbind

DEPTH = 1200
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "n", LongType()))


def deep(depth: int = DEPTH, kinds: Any = (operator.and_, operator.or_)) -> Any:
    """Alternating AND and OR: true for an id of `depth` and of less than a hundred."""
    made: Any = LessThan("id", 100)
    for level in range(depth):
        made = kinds[level % 2](
            made, (GreaterThan("n", -level - 1), EqualTo("id", level))[level % 2]
        )
    return made


def deep_not(depth: int = DEPTH) -> BooleanExpression:
    made: BooleanExpression = EqualTo("id", 0)
    for level in range(depth):
        made = Not(And(made, NotEqualTo("id", level)))
    return made


@pytest.mark.parametrize("make", [deep, deep_not])
def test_an_expression_of_any_depth_is_a_value_like_others(
    make: Callable[[], BooleanExpression],
) -> None:
    one, other = make(), make()
    assert one == other
    assert hash(one) == hash(other)
    assert one != make(DEPTH - 2)  # type: ignore[call-arg]
    assert rewrite_not(~~one) == rewrite_not(one)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own
    assert copy.deepcopy(one) == one
    assert str(one).count("(") == str(one).count(")") >= DEPTH // 2
    assert repr(one).startswith(type(one).__name__)
    bound = bind(SCHEMA, one)
    assert pickle.loads(pickle.dumps(bound)) == bound  # noqa: S301 - our own
    assert unbind(bound) == rewrite_not(one) == rewrite_not(rewrite_not(one))
    assert sorted(bound_references(bound)) == sorted({1, 2} if make is deep else {1})
    renamed = Schema(NestedField(1, "nr", LongType()), NestedField(2, "n", LongType()))
    assert str(ColumnNames(SCHEMA).now(one, renamed)).count("nr") > 100


def test_a_filter_of_any_depth_finds_and_deletes_its_rows(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table: Table = lake.create_table("db.t", pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    with table.update_spec() as spec:
        spec.add_field("id", "truncate[1000]")
    ids = [1, 101, 102, 1101, 5000]
    table.append(pa.table({"id": ids, "n": [0] * 5}))
    # an even id is only found at even levels, which ask for another column
    wanted = [1, 101, 1101]
    assert sorted(table.scan(deep()).to_arrow()["id"].to_pylist()) == wanted
    assert table.scan(deep()).count() == 3
    assert "id < 100" in repr(table.scan(deep()))
    assert sorted(table.scan(str(deep())).to_arrow()["id"].to_pylist()) == wanted
    assert table.inspect.files(row_filter=functools.reduce(And, [Not(deep_files())])).num_rows
    table.delete(deep())
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [102, 5000]


def deep_files() -> BooleanExpression:
    made: BooleanExpression = EqualTo("content", 7)
    for level in range(DEPTH):
        made = (And, Or)[level % 2](made, EqualTo("content", 8 + level))
    return made


def test_a_text_of_any_depth_is_read() -> None:
    assert parse(str(deep())) == deep()
    assert parse("(" * DEPTH + "id = 1" + ")" * DEPTH) == EqualTo("id", 1)
    assert parse("not (" * DEPTH + "id = 1" + ")" * DEPTH) == EqualTo("id", 1)
    assert parse("(" * DEPTH + "id" + ")" * DEPTH + " = 1") == EqualTo("id", 1)
    assert parse("NOT " * DEPTH + "id = 1") == EqualTo("id", 1)
    for wrong in ("(" * DEPTH + "id = 1", "id = 1" + ")" * DEPTH, "(" * DEPTH):
        with pytest.raises(ExpressionError):
            parse(wrong)
    with pytest.raises(ExpressionError, match="nested too deeply"):
        parse("id = " + "-(" * DEPTH + "1" + ")" * DEPTH)


def test_filters_of_arrow_of_any_depth_are_taken_over() -> None:
    kinds = {"id": pc.field("id"), "n": pc.field("n")}
    made = kinds["id"] < 100
    for level in range(DEPTH):
        other = (kinds["n"] > -level - 1, kinds["id"] == level)[level % 2]
        made = (operator.and_, operator.or_)[level % 2](made, other)
    assert from_arrow(made) == deep()
    negated = pc.field("id") == 1
    for _ in range(DEPTH):
        negated = ~negated
    assert from_arrow(negated) == EqualTo("id", 1)
    refused = pc.add(pc.field("id"), 1)
    for _ in range(DEPTH):
        refused = pc.add(refused, 1)
    with pytest.raises(ExpressionError, match="converted exactly") as caught:
        from_arrow(refused == 7)
    assert len(str(caught.value)) < 900


def test_filters_of_polars_of_any_depth_are_widened_at_worst() -> None:
    for depth in (100, DEPTH):
        chain = functools.reduce(operator.or_, [pl.col("id") == level for level in range(depth)])
        assert str(implied_by(chain, SCHEMA)) in {"true", str(from_chain(depth))}


def from_chain(depth: int) -> BooleanExpression:
    return functools.reduce(Or, [EqualTo("id", level) for level in range(depth)])


def spark_predicate(op: str, column: str, value: int) -> dict[str, Any]:
    return {"op": op, "column": [column], "type": "long", "value": value}


def test_predicates_of_spark_of_any_depth_are_taken() -> None:
    made = spark_predicate("lt", "id", 100)
    for level in range(DEPTH):
        other = (
            spark_predicate("gt", "n", -level - 1),
            spark_predicate("eq", "id", level),
        )[level % 2]
        made = {"op": ("and", "or")[level % 2], "children": [made, other]}
    assert exact_filter([made], SCHEMA, case_sensitive=True) == deep()
    assert row_filter([made], SCHEMA, case_sensitive=True) == deep()
    unknown: dict[str, Any] = {"op": "like"}
    for _ in range(DEPTH):
        unknown = {"op": "not", "child": unknown}
    both = {"op": "and", "children": [unknown, spark_predicate("eq", "id", 1)]}
    assert row_filter([both], SCHEMA, case_sensitive=True) == EqualTo("id", 1)


class Counted(int):
    """A value that counts how often it is looked at."""

    seen = 0

    def __hash__(self) -> int:
        Counted.seen += 1
        return int(self)


@pytest.mark.parametrize(
    "join",
    [
        operator.or_,
        Or,
        operator.and_,
        lambda chain, one: Or(one, chain),
    ],
)
def test_a_chain_that_grows_by_one_a_time_is_taken_apart_once(join: Any) -> None:
    Counted.seen = 0
    count = 2000
    chain = functools.reduce(join, [EqualTo("id", Counted(n)) for n in range(count)])
    assert len(chain.operands) == count
    assert Counted.seen < 10 * count


def test_operands_of_a_chain_keep_their_order_and_are_there_once() -> None:
    one, two, three = (EqualTo("id", n) for n in range(3))
    assert (one | two | one | three | two).operands == (one, two, three)
    assert Or(Or(one, two), Or(three, one)).operands == (one, two, three)
    assert (one & (two & three)).operands == (one, two, three)
    assert (one | two).left == one
    assert (one | two | three).right == two | three
    assert (one | two) | (two | one) == one | two
    assert And(one, two) != Or(one, two)
