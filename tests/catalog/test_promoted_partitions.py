"""Partitions that got their values while their column had a narrower type."""

from __future__ import annotations

import operator

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.expressions.expression import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
)
from icecomb.format.expressions.term import truncate

LEAST = -(1 << 31)
INTS = [
    LEAST,
    LEAST + 1,
    LEAST + 7,
    LEAST + 8,
    LEAST + 9,
    -1,
    0,
    2147483639,
    2147483646,
    2147483647,
]
LONGS = [LEAST - 3, LEAST, 2147483645, 2147483650, 1 << 40]
LITERALS = [LEAST, LEAST + 5, 0, 2147483640, 2147483646, 2147483650]
COMPARISONS = {
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    EqualTo: operator.eq,
    NotEqualTo: operator.ne,
    GreaterThanOrEqual: operator.ge,
    GreaterThan: operator.gt,
}


@pytest.fixture
def table(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    made = lake.create_table("db.t", pa.schema([("x", pa.int32())]))
    with made.update_spec() as update:
        update.add_field("x", "truncate[10]", "tens")
    made.append(pa.table({"x": pa.array(INTS, pa.int32())}))
    with made.update_schema() as update:
        update.update_column("x", "long")
    made.append(pa.table({"x": pa.array(LONGS, pa.int64())}))
    yield made
    lake.close()


@pytest.mark.parametrize("truncated", [False, True])
def test_the_least_ints_are_found_after_their_column_became_long(table, truncated):
    for compare, holds in COMPARISONS.items():
        for literal in LITERALS:
            bound = literal - literal % 10 if truncated else literal
            expression = compare(truncate("x", 10) if truncated else "x", bound)
            expected = [x for x in INTS + LONGS if holds(x - x % 10 if truncated else x, bound)]
            found = table.scan(expression).to_arrow()["x"].to_pylist()
            assert sorted(found) == sorted(expected), str(expression)


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("compare", [LessThan, GreaterThanOrEqual])
def test_a_delete_takes_no_least_int_for_a_great_one(table, compare, literal):
    table.delete(compare("x", literal))
    kept = [x for x in INTS + LONGS if not COMPARISONS[compare](x, literal)]
    assert sorted(table.scan().to_arrow()["x"].to_pylist()) == sorted(kept)
