"""Sorted runs merged: in one order, equal rows in the order of the runs, each row looked at few times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.cancellation import Cancellation, cancellable
from icecomb.format.errors import CorruptFileError, OperationCanceledError
from icecomb.format.rows.write import row_sort as sorted_run
from icecomb.format.rows.write.row_key import KeyComparison, SortKey
from icecomb.format.rows.write.row_sort import SortedRun, merged, write_run
from icecomb.format.spec.transform import IdentityTransform

KEYS = [
    SortKey((0,), IdentityTransform(), nulls_first=True),
    SortKey((1,), IdentityTransform(), descending=True, nulls_first=False),
]
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("run", pa.int64()), ("at", pa.int64())])
ROW = st.tuples(st.none() | st.integers(0, 5), st.none() | st.sampled_from(["", "x", "y"]))


class Counted(KeyComparison):
    """Counts the rows that are sorted."""

    rows = 0

    def order(self, values: pa.RecordBatch) -> Any:
        self.rows += len(values)
        return super().order(values)


def before(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Nulls first, then `a`; `b` backwards, its nulls last."""
    a, b = row[:2]
    return (a is not None, a or 0, b is None, -ord(b[0]) if b else 0)


def runs_of(folder: Path, many: list[list[tuple[Any, ...]]]) -> tuple[list[SortedRun], list[Any]]:
    """The runs, and all rows in the order that is expected."""
    runs, everything = [], []
    for number, rows in enumerate(many):
        ordered = sorted(rows, key=before)
        whole = [(a, b, number, at) for at, (a, b) in enumerate(ordered)]
        everything += whole
        columns = [list(column) for column in zip(*whole, strict=True)]
        batch = pa.record_batch(columns, schema=SCHEMA)
        runs.append(write_run(folder / f"{number}.arrow", iter([batch])))
    return runs, sorted(everything, key=before)


@given(
    many=st.lists(st.lists(ROW, min_size=1, max_size=60), min_size=1, max_size=6),
    batch=st.integers(1, 20),
    block=st.integers(1, 8),
    held=st.integers(1, 12),
    output=st.integers(1, 9),
)
def test_rows_of_all_runs_come_in_one_order_and_equal_ones_in_that_of_the_runs(
    tmp_path_factory: pytest.TempPathFactory,
    many: list[list[tuple[Any, ...]]],
    batch: int,
    block: int,
    held: int,
    output: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_run, "BATCH_ROWS", batch)
        patch.setattr(sorted_run, "BLOCK_ROWS", block)
        patch.setattr(sorted_run, "HELD_BATCHES", held)
        patch.setattr(sorted_run, "OUTPUT_ROWS", output)
        runs, expected = runs_of(tmp_path_factory.mktemp("runs"), many)
        assert [run.batches for run in runs] == [-(-len(rows) // batch) for rows in many]
        found = list(merged(runs, KeyComparison(KEYS)))
    assert [tuple(row.values()) for part in found for row in part.to_pylist()] == expected


def numbers(folder: Path, many: list[np.ndarray[Any, Any]]) -> list[SortedRun]:
    runs = []
    for number, values in enumerate(many):
        columns = [pa.array(values), pa.nulls(len(values), pa.string()), *[pa.array(values)] * 2]
        batch = pa.record_batch(columns, schema=SCHEMA)
        runs.append(write_run(folder / f"{number}.arrow", iter([batch])))
    return runs


@pytest.mark.parametrize(
    ("spread", "most"),
    [("one after the other", 0.3), ("mixed", 1.7), ("one of them long", 1.7)],
)
def test_rows_are_sorted_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: str, most: float
) -> None:
    monkeypatch.setattr(sorted_run, "BATCH_ROWS", 1000)
    monkeypatch.setattr(sorted_run, "BLOCK_ROWS", 50)
    total, random = 160_000, np.random.default_rng(5)
    where = random.permutation(total)
    if spread == "one after the other":
        many = np.split(np.arange(total), 16)
    elif spread == "mixed":
        many = [np.sort(part) for part in np.split(where, 16)]
    else:
        many = [np.sort(part) for part in np.split(where, [100_000 + 4_000 * n for n in range(15)])]
    comparison = Counted(KEYS)
    found = list(merged(numbers(tmp_path, many), comparison))
    assert np.array_equal(
        np.concatenate([part["a"].to_numpy() for part in found]), np.arange(total)
    )
    assert comparison.rows < most * total, comparison.rows / total


def test_a_run_that_was_cut_short_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_run, "BATCH_ROWS", 10)
    runs = numbers(tmp_path, [np.arange(30), np.arange(30)])
    with pa.OSFile(str(runs[1].path), "rb") as file, pa.ipc.open_stream(file) as stream:
        batches = list(stream)[:-1]
    with pa.ipc.new_stream(str(runs[1].path), SCHEMA) as shorter:
        for batch in batches:
            shorter.write_batch(batch)
    with pytest.raises(CorruptFileError, match="2 batches of rows, 3 were written"):
        list(merged(runs, KeyComparison(KEYS)))


def test_batches_of_a_run_are_as_long_as_their_own_rows_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_run, "BATCH_BYTES", 4000)
    wide, narrow = pa.array(["x" * 2000] * 10), pa.array([""] * 1000)
    schema = pa.schema([("s", pa.string())])
    parts = [pa.record_batch([column], schema=schema) for column in (wide, narrow)]
    assert write_run(tmp_path / "wide first", iter(parts)).batches == 10 + 1
    assert write_run(tmp_path / "narrow first", iter(parts[::-1])).batches == 1 + 10


def test_a_merge_that_nobody_wants_any_more_ends(tmp_path: Path) -> None:
    runs = numbers(tmp_path, [np.arange(10), np.arange(10)])
    wanted = Cancellation()
    wanted.cancel()
    with cancellable(wanted), pytest.raises(OperationCanceledError):
        list(merged(runs, KeyComparison(KEYS)))
