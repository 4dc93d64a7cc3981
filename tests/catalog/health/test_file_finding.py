"""Findings about files: each with a table that has it, and one just beyond the threshold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from icecomb.catalog.report.finding import Severity
from icecomb.format.operation.overwrite import DeleteFiles
from tests.catalog.health.made_table import (
    GB,
    KB,
    MB,
    append,
    codes,
    data,
    delete,
    equality,
    finding,
    new_table,
    positions,
)

SMALL = 384 * MB - 1
"""One byte less than 3/4 of the target size of 512 MiB."""


def test_five_small_files_in_a_partition_are_worth_rewriting_four_are_not(tmp_path: Path) -> None:
    table = new_table(tmp_path, by_day=True)
    append(table, *(data(MB, day="mon") for _ in range(4)), data(MB, day="tue"))
    assert "small-files" not in codes(table)
    append(table, data(MB, day="mon"), data(384 * MB, day="mon"))
    found = finding(table, "small-files")
    assert found.evidence == {
        "small_files": 5,
        "small_bytes": 5 * MB,
        "groups": 1,
        "most_in_a_group": 5,
        "target_bytes": 512 * MB,
    }
    assert found.severity is Severity.WARNING


def test_two_small_files_with_more_than_the_target_size_are_worth_it(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(256 * MB), data(256 * MB))
    assert "small-files" not in codes(table)
    table = append(new_table(tmp_path, "other"), data(256 * MB), data(256 * MB + 1))
    assert "small-files" in codes(table)


def test_a_file_of_three_quarters_of_the_target_size_is_not_small(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), *(data(384 * MB) for _ in range(9)))
    assert "small-files" not in codes(table)
    table = append(new_table(tmp_path, "other"), *(data(SMALL) for _ in range(9)))
    assert "small-files" in codes(table)


def test_the_target_size_is_that_of_the_table(tmp_path: Path) -> None:
    properties = {"write.target-file-size-bytes": str(4 * MB)}
    table = append(new_table(tmp_path, **properties), *(data(3 * MB) for _ in range(9)))
    assert "small-files" not in codes(table)
    append(table, *(data(3 * MB - 1) for _ in range(5)))
    assert finding(table, "small-files").evidence["small_files"] == 5


def test_files_of_older_specs_are_one_group(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), *(data(MB) for _ in range(3)))
    with table.update_spec() as spec:
        spec.add_identity("day")
    append(table, *(data(MB, day=day) for day in "abcd"))
    assert "small-files" not in codes(table)
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    found = finding(table, "small-files")
    assert (found.evidence["small_files"], found.evidence["groups"]) == (7, 1)


@pytest.mark.seeds(6)
def test_small_files_are_those_that_a_rewrite_takes_for_their_size(
    tmp_path: Path, seed: int
) -> None:
    pick = random.Random(seed)
    table = append(new_table(tmp_path), *(data(MB) for _ in range(pick.randint(0, 6))))
    with table.update_spec() as spec:
        spec.add_identity("day")
    sizes = (MB, 200 * MB, SMALL, 384 * MB, 900 * MB)
    for day in "abcdef":
        count = pick.randint(0, 7)
        append(
            table,
            data(GB >> 1, day=day),
            *(data(pick.choice(sizes), day=day) for _ in range(count)),
        )
    plan = table.maintenance.rewrite_data_files(dry_run=True).plan
    found = [f for f in table.maintenance.health().findings if f.code == "small-files"]
    told = [(f.evidence["small_files"], f.evidence["small_bytes"]) for f in found]
    groups = [f.evidence["groups"] for f in found]
    assert sum(groups) == len(plan)
    assert told == [(sum(g.files for g in plan), sum(g.size for g in plan))][: len(plan)]


def test_ten_times_as_many_small_files_in_a_partition_are_a_problem(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, by_day=True), *(data(MB, day="mon") for _ in range(49)))
    append(table, data(MB, day="tue"))
    assert finding(table, "small-files").severity is Severity.WARNING
    append(table, data(MB, day="mon"))
    assert finding(table, "small-files").severity is Severity.PROBLEM


def test_a_tenth_of_the_rows_of_a_partition_deleted_is_heavy(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, by_day=True), data(GB, 1000, "mon"), data(GB, 1000, "tue"))
    delete(table, positions(99, day="mon"), positions(99, day="tue"))
    assert "delete-heavy" not in codes(table)
    delete(table, positions(1, day="tue"))
    assert finding(table, "delete-heavy").evidence == {
        "partitions": 1,
        "position_deletes": 100,
        "rows": 1000,
        "position_delete_files": 2,
        "data_files": 1,
        "greatest_share": 0.1,
    }


def test_five_delete_files_are_heavy_where_they_are_more_than_the_data_files(
    tmp_path: Path,
) -> None:
    files = [data(GB, 10_000) for _ in range(5)]
    table = append(new_table(tmp_path), *files)
    delete(table, *(positions(1, file) for file in files))
    assert "delete-heavy" not in codes(table)
    delete(table, positions(1, files[0]))
    assert finding(table, "delete-heavy").evidence["position_delete_files"] == 6
    few = append(new_table(tmp_path, "few"), data(GB, 10_000))
    delete(few, *(positions(1) for _ in range(4)))
    assert "delete-heavy" not in codes(few)
    delete(few, positions(1))
    assert "delete-heavy" in codes(few)


def test_half_of_the_rows_deleted_or_ten_times_as_many_delete_files_are_a_problem(
    tmp_path: Path,
) -> None:
    table = append(new_table(tmp_path), data(GB, 1000))
    delete(table, positions(499))
    assert finding(table, "delete-heavy").severity is Severity.WARNING
    delete(table, positions(1))
    assert finding(table, "delete-heavy").severity is Severity.PROBLEM
    many = append(new_table(tmp_path, "many"), data(GB, 10_000))
    delete(many, *(positions(1) for _ in range(49)))
    assert finding(many, "delete-heavy").severity is Severity.WARNING
    delete(many, positions(1))
    assert finding(many, "delete-heavy").severity is Severity.PROBLEM


def test_one_file_of_equality_deletes_is_a_finding(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(GB, 1000))
    delete(table, positions(1))
    assert codes(table) == []
    delete(table, equality(7))
    found = finding(table, "equality-deletes")
    assert found.evidence == {"equality_delete_files": 1, "equality_deletes": 7}
    assert found.severity is Severity.WARNING


def test_ten_files_of_equality_deletes_are_a_problem(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(GB, 1000))
    delete(table, *(equality(1) for _ in range(9)))
    assert finding(table, "equality-deletes").severity is Severity.WARNING
    delete(table, equality(1))
    assert finding(table, "equality-deletes").severity is Severity.PROBLEM


def test_deletes_that_apply_to_nothing_are_dangling(tmp_path: Path) -> None:
    kept, gone = data(GB, 1000), data(GB, 1000)
    table = append(new_table(tmp_path), kept, gone)
    delete(table, positions(1, kept), positions(1, gone))
    assert "dangling-deletes" not in codes(table)
    table.commit(DeleteFiles(table.io).delete_data_file(gone.file_path))
    found = finding(table, "dangling-deletes")
    assert found.evidence == {"delete_files": 1, "bytes": 10 * KB}


def test_a_partition_five_times_the_median_and_above_256_mib_is_skewed(tmp_path: Path) -> None:
    def with_largest(name: str, size: int, other: int) -> list[str]:
        table = new_table(tmp_path, name, by_day=True)
        return codes(append(table, *(data(other, day=d) for d in "abc"), data(size, day="d")))

    assert "skewed-partitions" not in with_largest("one", 500 * MB, 100 * MB)
    assert "skewed-partitions" in with_largest("two", 500 * MB + 1, 100 * MB)
    assert "skewed-partitions" not in with_largest("three", 256 * MB, MB)
    assert "skewed-partitions" in with_largest("four", 256 * MB + 1, MB)
    table = append(new_table(tmp_path, "five"), data(GB), data(MB))
    assert "skewed-partitions" not in codes(table)


def test_skew_has_no_command(tmp_path: Path) -> None:
    table = new_table(tmp_path, by_day=True)
    append(table, *(data(MB, day=day) for day in "abc"), data(GB, day="d"))
    found = finding(table, "skewed-partitions")
    assert (found.command, found.to_json()["command"]) == (None, None)
    assert found.evidence == {"partitions": 4, "largest_bytes": GB, "median_bytes": MB}


@pytest.mark.parametrize("order", [None, 0])
def test_five_files_out_of_the_table_s_order_are_a_finding(
    tmp_path: Path, order: int | None
) -> None:
    table = new_table(tmp_path)
    append(table, *(data(GB, sort_order_id=order) for _ in range(4)))
    with table.update_sort_order() as update:
        update.asc("id")
    append(table, *(data(GB, sort_order_id=1) for _ in range(20)))
    assert "unsorted" not in codes(table)
    append(table, data(2 * GB, sort_order_id=order))
    found = finding(table, "unsorted")
    assert found.evidence == {"files": 5, "bytes": 6 * GB, "sort_order_id": 1}
    assert found.severity is Severity.NOTE, "less than half of the bytes"
    append(table, data(14 * GB, sort_order_id=order))
    assert finding(table, "unsorted").severity is Severity.WARNING


def test_files_of_a_table_without_an_order_need_none(tmp_path: Path) -> None:
    assert "unsorted" not in codes(append(new_table(tmp_path), *(data(GB) for _ in range(9))))


def test_a_file_of_an_older_spec_is_a_finding(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(GB))
    assert "old-spec" not in codes(table)
    with table.update_spec() as spec:
        spec.add_identity("day")
    append(table, data(GB + 1, day="mon"))
    found = finding(table, "old-spec")
    assert found.evidence == {"files": 1, "bytes": GB, "spec_id": 1, "old_spec_ids": [0]}
    assert found.severity is Severity.NOTE
    with table.update_spec() as spec:
        spec.remove_field("day")
    assert finding(table, "old-spec").severity is Severity.WARNING


def test_deletes_of_an_older_spec_are_not_data_of_it(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, by_day=True), data(GB, 1000, "mon"))
    everywhere = equality(1)
    delete(table, everywhere)
    assert codes(table) == ["equality-deletes"]
