"""Filters that select whole partitions: rows of the files they keep are not looked at again."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.comparison import evaluate
from icecomb.format.expressions.projection import project_inclusive
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.expressions.whole_partitions import selects_partitions
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from tests.format.expressions.test_projection import (
    IDS,
    SCHEMA,
    cases,
    columns_of,
    listed,
    matches,
    partition_of,
)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_every_row_of_every_kept_partition_matches_and_no_other(case):
    _, spec, rows, unbound = case
    expression = bind(SCHEMA, unbound)
    if not selects_partitions(expression, [spec]):
        return
    column = columns_of(spec, [partition_of(spec, row) for row in rows])
    kept = listed(evaluate(project_inclusive(expression, spec), column), len(rows))
    assert kept == [matches(expression, row) is True for row in rows]


def spec(**transforms):
    fields = [
        PartitionField(IDS[name], 1000 + n, parse_transform(transform), f"p{n}")
        for n, (name, transform) in enumerate(transforms.items())
    ]
    return PartitionSpec(*fields)


@pytest.mark.parametrize(
    ("transforms", "filter_", "whole"),
    [
        ({"s": "identity"}, "s = 'a'", True),
        ({"s": "identity"}, "s != 'a' or s is null", True),
        ({"s": "identity"}, "s in ('a', 'b') and not s like 'a%'", True),
        ({"s": "identity"}, "s = 'a' and i = 1", False),
        ({"s": "identity"}, "s = 'a' or i = 1", False),
        ({"f": "identity"}, "f > 1.5 or isnan(f)", True),
        ({"i": "bucket[4]"}, "i = 1", False),
        ({"i": "bucket[4]"}, "i is null", True),
        ({"i": "bucket[4]"}, "bucket(4, i) = 1", True),
        ({"i": "bucket[4]"}, "bucket(8, i) = 1", False),
        ({"s": "truncate[2]"}, "s like 'ab%'", True),
        ({"s": "truncate[2]"}, "s like 'abc%'", False),
        ({"s": "truncate[2]"}, "truncate(2, s) = 'ab'", True),
        ({"ts": "day"}, "ts >= '2024-01-01T00:00:00'", True),
        ({"ts": "day"}, "ts > '2024-01-01T00:00:00'", False),
        ({"ts": "day"}, "ts < '2024-01-02T00:00:00'", True),
        ({"ts": "day"}, "ts <= '2024-01-02T00:00:00'", False),
        ({"ts": "day"}, "ts >= '2024-01-01T01:00:00'", False),
        # hours of far timestamps may have wrapped around to any of these
        ({"ts": "hour"}, "ts >= '2024-01-01T01:00:00' and ts < '2024-01-03T02:00:00'", False),
        ({"ts": "hour"}, "hours(ts) = 473376", False),
        ({"ts": "month"}, "days(ts) = '2024-01-01'", False),
        ({"ts": "month"}, "month(ts) = '2024-01'", True),
        ({"ts": "day"}, "year(ts) = 2024", True),
        # early writers named partitions before 1970 one too high
        ({"ts": "day"}, "ts >= '1969-01-01T00:00:00'", False),
        ({"i": "void"}, "i is null", False),
        ({}, "i = 1", False),
    ],
)
def test_what_partitions_decide(transforms, filter_, whole):
    bound = bind(SCHEMA, parse(filter_))
    assert selects_partitions(bound, [spec(**transforms)]) is whole
    # files of a spec that was given up may hold any rows
    assert not selects_partitions(bound, [spec(**transforms), spec()])
