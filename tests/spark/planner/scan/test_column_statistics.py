"""What the optimizer is told of columns: only those whose number of distinct values is known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.spark.planner.protocol import NAMESPACE, Planner

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("none", pa.int64())])


@pytest.fixture
def table(folders):
    made = folders.create_table((*NAMESPACE, "t"), SCHEMA)
    made.append(rows(0, 10))
    return made


@pytest.fixture
def planner(folders):
    return Planner.in_folders(folders)


def rows(first, end):
    numbers = range(first, end)
    texts = [f"s{n % 3}" if n % 2 else None for n in numbers]
    return pa.table({"id": numbers, "s": texts, "none": [None for _ in numbers]}, SCHEMA)


def columns(planner, **options):
    plan = planner.plan(planner.load("t"), **{"estimates": True, **options})
    return plan["statistics"]["columns"]


def estimate(distinct, nulls, low=None, high=None):
    return {"distinct": distinct, "nulls": nulls, "min": low, "max": high}


def test_columns_without_a_known_number_of_values_are_left_out(table, planner):
    assert columns(planner) == {}
    table.maintenance.compute_table_stats(columns=["id"])
    assert columns(planner) == {"1": estimate(10, 0, 0, 9)}


def test_all_is_of_the_files_read_and_the_number_of_values_of_the_newest_ancestor(table, planner):
    table.maintenance.compute_table_stats()
    assert columns(planner) == {
        "1": estimate(10, 0, 0, 9),
        "2": estimate(3, 5),
        "3": estimate(0, 10),
    }
    table.append(rows(10, 12))
    assert columns(planner, columns=["id", "none"]) == {
        "1": estimate(10, 0, 0, 11),
        "3": estimate(0, 12),
    }


def test_a_filter_leaves_no_more_distinct_values_than_rows(table, planner):
    table.maintenance.compute_table_stats()
    table.append(rows(10, 12))
    before = table.history()[0].snapshot_id
    assert columns(planner, **{"snapshot-id": str(before)})["1"] == estimate(10, 0, 0, 9)
    table.delete("id < 10")
    assert columns(planner) == {
        "1": estimate(2, 0, 10, 11),
        "2": estimate(1, 1),
        "3": estimate(0, 2),
    }


def test_values_younger_than_the_statistics_are_at_least_one(table, planner):
    table.maintenance.compute_table_stats()
    table.append(pa.table({"id": [1], "s": ["s"], "none": [5]}, SCHEMA))
    assert columns(planner)["3"] == estimate(1, 10, 5, 5)


def test_nobody_counts_for_an_optimizer_that_does_not_ask_or_may_not(table, planner):
    table.maintenance.compute_table_stats()
    assert columns(planner, estimates=False) == {}
    assert columns(planner, settings={"spark.sql.iceberg.report-column-stats": "false"}) == {}
