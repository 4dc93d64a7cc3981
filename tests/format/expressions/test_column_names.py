"""Names in an expression stand for columns, which keep their ids under other names."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import ColumnNames, bind
from icecomb.format.expressions.expression import And, EqualTo, In, IsNull, Not, Or
from icecomb.format.expressions.term import bucket
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StringType, StructType

PLACE = StructType((NestedField(4, "city", StringType()), NestedField(5, "zip", StringType())))
BEFORE = Schema(
    (
        NestedField(1, "id", IntegerType()),
        NestedField(2, "number", IntegerType()),
        NestedField(3, "place", PLACE),
    )
)
MOVED = StructType((NestedField(4, "zip", StringType()), NestedField(5, "city", StringType())))
SWAPPED = Schema(
    (
        NestedField(1, "number", LongType()),
        NestedField(2, "id", IntegerType()),
        NestedField(3, "home", MOVED),
    )
)


@pytest.mark.parametrize(
    ("asked", "now"),
    [
        (EqualTo("id", 1), EqualTo("number", 1)),
        (And(EqualTo("id", 1), EqualTo("number", 2)), And(EqualTo("number", 1), EqualTo("id", 2))),
        (Or(IsNull("place.zip"), In("id", [1, 2])), Or(IsNull("home.city"), In("number", [1, 2]))),
        (Not(EqualTo(bucket("id", 4), 3)), Not(EqualTo(bucket("number", 4), 3))),
        (Not(In("place.city", ["a", "b"])), Not(In("home.zip", ["a", "b"]))),
    ],
    ids=str,
)
def test_columns_are_found_under_the_names_that_they_have_now(asked, now):
    names = ColumnNames(BEFORE)
    assert bind(SWAPPED, names.now(asked, SWAPPED)) == bind(SWAPPED, now)
    assert bind(BEFORE, names.now(asked, BEFORE)) == bind(BEFORE, asked)
    assert names.now(bind(BEFORE, asked), SWAPPED) == bind(BEFORE, asked)


def test_a_literal_that_the_old_type_had_not_is_compared_with_the_new_one():
    [found] = {bind(SWAPPED, ColumnNames(BEFORE).now(EqualTo("id", 2**40), SWAPPED))}
    assert found == bind(SWAPPED, EqualTo("number", 2**40))


def test_names_whose_case_does_not_matter_are_looked_up_once():
    both = Schema((*SWAPPED.fields, NestedField(6, "NUMBER", LongType())))
    names = ColumnNames(BEFORE, case_sensitive=False)
    assert names.now(EqualTo("Id", 1), both) == EqualTo("number", 1)
    assert names.now(EqualTo("ID", 1), BEFORE) == EqualTo("id", 1)


def test_unknown_names_and_dropped_columns_are_told_apart():
    names = ColumnNames(BEFORE)
    without = Schema((NestedField(6, "id", IntegerType()), *SWAPPED.fields[2:]))
    with pytest.raises(ExpressionError, match="Cannot find column 'ids'") as refused:
        names.now(EqualTo("ids", 1), SWAPPED)
    assert refused.value.hint == "Did you mean id?"
    for asked in EqualTo("id", 1), bind(BEFORE, EqualTo("id", 1)):
        with pytest.raises(ExpressionError, match=r"Column id, .* was dropped meanwhile"):
            names.now(asked, without)
