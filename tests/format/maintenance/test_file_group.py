"""Groups of files cut for several who rewrite them at once."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from icecomb.format.maintenance.file_group import RewriteGroup, cut_group

TARGET = 100
LONGEST = 140


@dataclass(frozen=True)
class File:
    file_size_in_bytes: int
    record_count: int = 1


def group(sizes: list[int], expected: int) -> RewriteGroup[File]:
    return RewriteGroup((7,), tuple(map(File, sizes)), sum(sizes), expected, TARGET)


@given(
    st.lists(st.integers(0, 3 * TARGET), min_size=1, max_size=50),
    st.integers(1, 60),
    st.integers(1, 12),
)
def test_every_file_is_in_one_part_and_in_its_order(
    sizes: list[int], expected: int, wanted: int
) -> None:
    whole = group(sizes, expected)
    parts = cut_group(whole, wanted, LONGEST)
    assert [task for part in parts for task in part.tasks] == list(whole.tasks)
    assert 1 <= len(parts) <= min(wanted, expected)
    for part in parts:
        assert part.tasks
        assert part.partition == whole.partition
        assert part.size == sum(task.file_size_in_bytes for task in part.tasks)
        assert part.expected_files >= 1
        assert 1 <= part.split_size <= LONGEST


@given(st.integers(1, 12), st.integers(1, 12))
def test_parts_of_small_files_become_as_many_files_of_one_size(expected: int, wanted: int) -> None:
    parts = cut_group(group([1] * (TARGET * expected), expected), wanted, LONGEST)
    assert len(parts) == min(wanted, expected)
    assert sum(part.expected_files for part in parts) == expected
    fewest, most = (f(part.expected_files for part in parts) for f in (min, max))
    assert most - fewest <= 1
    for part in parts:
        assert part.size == part.expected_files * TARGET
        assert part.split_size == (LONGEST if part.expected_files == 1 else TARGET)


def test_a_file_that_is_most_of_a_group_is_a_part_of_its_own() -> None:
    parts = cut_group(group([900, 50, 50], 10), 4, LONGEST)
    assert [(len(part.tasks), part.expected_files) for part in parts] == [(1, 9), (2, 1)]
    assert parts[0].split_size == TARGET
