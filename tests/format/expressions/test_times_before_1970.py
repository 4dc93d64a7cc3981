"""Partitions of times before 1970, which early writers named one too high: lists of times look there, too."""

from __future__ import annotations

import pytest

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.bound import BoundSetPredicate
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    In,
    NotIn,
    PredicateOperation,
)
from icecomb.format.expressions.projection import project_inclusive, project_strict
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import NestedField, TimestampType

SCHEMA = Schema(NestedField(1, "ts", TimestampType()))
LATE = ["1970-01-01T05:00:00", "1970-01-01T07:00:00"]
EARLY = ["1969-12-31T23:00:00", "1969-12-31T20:00:00"]


@pytest.mark.parametrize(
    ("times", "hours"), [(LATE, {5, 7}), (EARLY, {-1, 0, -4, -3}), (EARLY + LATE, {-1, 0, -4, -3, 5, 7})]
)  # fmt: skip
def test_a_list_of_times_is_looked_for_where_early_writers_put_them_as_well(times, hours):
    spec = PartitionSpec(PartitionField(1, 1000, parse_transform("hour"), "h"))
    wanted, unwanted = bind(SCHEMA, In("ts", times)), bind(SCHEMA, NotIn("ts", times))
    found, surely = project_inclusive(wanted, spec), project_strict(unwanted, spec)
    assert isinstance(found, BoundSetPredicate)
    assert isinstance(surely, BoundSetPredicate)
    assert (found.operation, found.literals) == (PredicateOperation.IN, hours)
    assert (surely.operation, surely.literals) == (PredicateOperation.NOT_IN, hours)
    assert project_strict(wanted, spec) == AlwaysFalse()
    assert project_inclusive(unwanted, spec) == AlwaysTrue()
