from __future__ import annotations

import pytest

from icecomb.format.errors import ExpressionError
from icecomb.format.row_changes.merge_clause import merge_condition


@pytest.mark.parametrize(
    ("on", "keys", "rest"),
    [
        (["id", "day", "id"], [("id", "id"), ("day", "day")], None),
        ("t.id = s.id", [("id", "id")], None),
        ("s.code = t.id and t.d == s.day", [("id", "code"), ("d", "day")], None),
        ('t."a b" = s.`c.d`', [("a b", "c.d")], None),
        ("t.id = s.id AND t.day >= '2024-01-01'", [("id", "id")], "(t.day >= '2024-01-01')"),
        (
            "t.x BETWEEN s.a AND s.b AND t.id = s.id AND (t.p = 1 AND s.p = 2)",
            [("id", "id")],
            "(t.x BETWEEN s.a AND s.b) AND ((t.p = 1 AND s.p = 2))",
        ),
        (
            "t.id = s.id and case when s.a and s.b then t.c = 1 else false end",
            [("id", "id")],
            "(case when s.a and s.b then t.c = 1 else false end)",
        ),
        (
            "t.id = s.id AND t.a = t.b AND s.a = 'and'",
            [("id", "id")],
            "(t.a = t.b) AND (s.a = 'and')",
        ),
    ],
)
def test_equalities_of_both_sides_are_told_from_other_conditions(on, keys, rest):
    found = merge_condition(on)
    assert found.keys == tuple(keys)
    assert found.rest == rest


@pytest.mark.parametrize(
    "on",
    [
        [],
        "true",
        "t.id > s.id",
        "t.id = s.id OR t.a = s.a",
        "id = id",
        "t.id = s.id AND",
        "t.a = t.b",
    ],
)
def test_a_condition_that_gives_no_key_is_refused(on):
    with pytest.raises(ExpressionError, match="find rows by"):
        merge_condition(on)


def test_the_sides_may_have_other_names():
    found = merge_condition("old.id = new.id", "old", "new")
    assert found.keys == (("id", "id"),)
