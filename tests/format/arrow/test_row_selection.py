"""Rows of many batches are selected as Arrow does it from one, whatever the size of the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.arrow.row_selection import in_parts, take_rows, whole_column
from icecomb.format.errors import ValidationError

SCHEMA = pa.schema([("a", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.string()))])


@pytest.fixture
def table():
    rows = [{"a": n, "t": f"{n}" * n, "l": [str(n)] * (n % 3)} for n in range(30)]
    ends = [0, 7, 7, 8, 20, 30]
    pieces = [rows[start:end] for start, end in pairwise(ends)]
    return pa.Table.from_batches([pa.RecordBatch.from_pylist(piece, SCHEMA) for piece in pieces])


@pytest.mark.parametrize("rows", [[], [3], [29, 0, 8, 8, 7, 6], list(range(30)), [5, 6, 7, 25]])
def test_rows_come_in_the_order_asked_for(table, rows):
    expected = table.take(pa.array(rows, pa.int64())).to_pylist()
    asked = np.array(rows, np.int64)
    assert take_rows(table, asked).to_pylist() == expected
    assert [row for part in in_parts(table, asked, 2) for row in part.to_pylist()] == expected


@pytest.mark.full("two arrays of a GiB each")
def test_a_table_of_more_than_two_gib_of_text_is_selected_from():
    text = pa.array(["x" * (1 << 20)] * 1100)
    number = pa.chunked_array([pa.array(range(1100)), pa.array(range(1100, 2200))])
    table = pa.table({"a": number, "t": pa.chunked_array([text, text])})
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        table.take(pa.array([0, 2000]))
    assert take_rows(table, np.array([2000, 0])).column(0).to_pylist() == [2000, 0]
    assert sum(part.num_rows for part in in_parts(table, np.arange(2200), 1 << 17)) == 2200
    with pytest.raises(ValidationError, match=r"'t' holds 2,3.* bytes"):
        whole_column(table.column("t"), "t")
