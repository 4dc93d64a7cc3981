"""SQL expressions on rows: a value for each row, in the order of the rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import ExpressionError
from icecomb.format.row_changes.row_expression import RowExpressions, may_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_row_id = 5", True),
        ("t._row_id + 1", True),
        ('s.n > t."_ROW_ID"', True),
        ("order_row_id = 5", False),
        ("t._row_ids IS NULL", False),
        ("", False),
    ],
)
def test_a_column_is_named_by_a_whole_word_only(text: str, *, expected: bool) -> None:
    assert may_name(text, "_row_id") is expected


@pytest.mark.parametrize(
    "text",
    [
        "t.n * 2",
        "(SELECT any_value(v.d) FROM (SELECT x, x * 2 AS d FROM range(1000) r(x)) v WHERE v.x = t.n)",
        "CASE WHEN t.n IN (SELECT x FROM range(500) r(x)) THEN t.n + t.n ELSE 2 * t.n END",
    ],
)
def test_each_row_has_its_own_value_also_by_subqueries_that_move_rows(text: str) -> None:
    numbers = [(7919 * row) % 1000 for row in range(5000)]
    expressions = RowExpressions()
    (found,) = expressions.compute([text], {"t": pa.record_batch({"n": numbers})})
    expressions.close()
    assert found.to_pylist() == [2 * number for number in numbers]


def test_rows_are_not_written_to_the_working_directory() -> None:
    expressions = RowExpressions()
    text = "current_setting('temp_directory')"
    (found,) = expressions.compute([text], {"t": pa.record_batch({"n": [1]})})
    expressions.close()
    assert found.to_pylist() == [""]


@pytest.mark.parametrize("text", ["t.n = 1", 't."N" = 10', "t.inside.a = 1", "T.k = 1"])
def test_names_that_differ_in_case_only_are_refused_which_duckdb_takes_for_one(text: str) -> None:
    inside = pa.array([{"a": 1, "A": 10}])
    sides = {
        "t": pa.record_batch({"n": [1], "N": [10], "inside": inside, "k": [5]}),
        "s": pa.record_batch({"n": [1], "k": [6]}),
    }
    expressions = RowExpressions()
    assert expressions.compute(["t.k = 5 and s.k = 6"], sides)[0].to_pylist() == [True]
    if text.startswith("T"):
        sides = {"t": sides["s"], "T": sides["s"]}
    with pytest.raises(ExpressionError, match="differ in case only"):
        expressions.compute([text], sides)
    expressions.close()
