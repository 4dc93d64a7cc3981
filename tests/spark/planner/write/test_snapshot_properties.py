"""What the summary of a MERGE's snapshot says of rows is what its files hold, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icecomb.spark.planner.protocol.writes import MergedRows
from icecomb.spark.planner.write.write import merged_rows

KEY = "spark.merge-into.num-target-rows-"
COUNTED = MergedRows(
    copied=5,
    deleted=2,
    updated=3,
    inserted=4,
    matched_updated=3,
    matched_deleted=1,
    unmatched_updated=0,
    unmatched_deleted=1,
)


def test_counts_that_agree_with_the_files_are_told():
    told = merged_rows(COUNTED, written=12, removed=10)
    assert told[f"{KEY}updated"] == "3"
    assert told[f"{KEY}not-matched-by-source-deleted"] == "1"
    assert len(told) == 8
    assert merged_rows(COUNTED, written=12) == told


def test_what_was_not_counted_is_not_told():
    only_inserts = MergedRows(-1, -1, -1, 4, -1, -1, -1, -1)
    assert merged_rows(only_inserts, written=4, removed=0) == {f"{KEY}inserted": "4"}
    assert merged_rows(None, written=4, removed=0) == {}


@pytest.mark.parametrize(
    ("counted", "written", "removed"),
    [
        (replace(COUNTED, updated=6, matched_updated=6), 12, 10),
        (replace(COUNTED, inserted=8), 12, 10),
        (replace(COUNTED, copied=6), 12, None),
        (replace(COUNTED, deleted=3, matched_deleted=2), 12, 10),
        (replace(COUNTED, unmatched_deleted=2), 12, 10),
        (replace(COUNTED, matched_updated=4), 12, 10),
    ],
)
def test_counts_of_tasks_that_ran_twice_are_left_out(counted, written, removed):
    assert merged_rows(counted, written, removed) == {}
