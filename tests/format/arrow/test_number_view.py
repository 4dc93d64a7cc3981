"""Rows put into groups, and Arrow's numbers as numpy sees them, against plain Python."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.arrow.number_view import (
    array_of,
    group_numbers,
    mask_of,
    numbers_of,
    together,
    truths_of,
)

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [0, -1, 7, None]),
    "long": (pa.int64(), [1 << 62, -(1 << 62), 0, None]),
    "text": (pa.large_string(), ["", "a", "ü" * 40, None]),
    "bytes": (pa.large_binary(), [b"", b"\x00", b"\xff" * 30, None]),
    "uuid": (pa.binary(16), [bytes(16), bytes(range(16)), None]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
    "double": (pa.float64(), [0.5, math.nan, -math.inf, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "null": (pa.null(), [None]),
}


def comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.seeds(20)
def test_rows_of_the_same_values_get_the_same_number_and_others_another(seed: int) -> None:
    pick = random.Random(seed)
    kinds = [VALUES[name] for name in pick.sample(list(VALUES), pick.randint(0, 4))]
    length = pick.choice([0, 1, 5, 300])
    columns = [[pick.choice(values) for _ in range(length + 3)] for _, values in kinds]
    arrays = [
        pa.array(column, kind).slice(2, length)
        for column, (kind, _) in zip(columns, kinds, strict=True)
    ]
    rows = [tuple(comparable(column[at + 2]) for column in columns) for at in range(length)]
    numbers, first = group_numbers(arrays, length)
    by_row: dict[Any, set[int]] = {}
    for row, number in zip(rows, numbers.tolist(), strict=True):
        by_row.setdefault(row, set()).add(number)
    assert all(len(found) == 1 for found in by_row.values())
    assert sorted(n for found in by_row.values() for n in found) == list(range(len(by_row)))
    assert [numbers[at] for at in first.tolist()] == list(range(len(by_row)))


def test_many_columns_of_many_values_do_not_overflow() -> None:
    length = 3000
    columns = [pa.array(range(length), pa.int64()) for _ in range(9)]
    numbers, _ = group_numbers(columns, length)
    assert numbers.tolist() == list(range(length))


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_a_slice_is_seen_from_its_begin_on(kind: pa.DataType) -> None:
    array = pa.array(range(50), kind)
    assert numbers_of(array.slice(13, 9)).tolist() == list(range(13, 22))
    assert numbers_of(array.slice(50)).tolist() == []


def test_truths_begin_anywhere_in_a_byte() -> None:
    values = [at % 3 == 0 for at in range(50)]
    for start in range(12):
        found = truths_of(pa.array(values).slice(start, 21))
        assert found.tolist() == values[start : start + 21]
        assert found.dtype == np.bool_


def test_truths_are_a_mask_and_back() -> None:
    for length in range(20):
        values = np.arange(length) % 3 == 0
        assert mask_of(values).to_pylist() == values.tolist()
        assert truths_of(mask_of(values)).tolist() == values.tolist()


def test_arrays_of_several_types_are_put_together_in_one_that_holds_all() -> None:
    found = together([pa.array([1], pa.int32()), pa.nulls(2), pa.array([1 << 40], pa.int64())])
    assert found == pa.array([1, None, None, 1 << 40], pa.int64())


def test_neither_pandas_nor_data_sets_are_loaded() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from icecomb.format.arrow.number_view import group_numbers, together\n"
        "one = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(bytes(16))])\n"
        "group_numbers([together([one, one])], 4)\n"
        "print([m for m in ('pandas', 'pyarrow.dataset') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_numbers_are_a_column_and_back() -> None:
    numbers = np.arange(10, dtype=np.int64)
    assert array_of(numbers[::3]).to_pylist() == [0, 3, 6, 9]
    assert array_of(numbers[:0]).to_pylist() == []
    assert numbers_of(array_of(numbers[2:5])).tolist() == [2, 3, 4]
