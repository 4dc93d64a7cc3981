"""Rows that a mask selects."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.arrow.batch_stream import filtered

ROWS = 600
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "long": (pa.int64(), lambda n: n),
    "flag": (pa.bool_(), lambda n: n % 5 < 2),
    "text": (pa.string(), lambda n: "x" * (n % 7) + str(n)),
    "bytes": (pa.large_binary(), lambda n: b"%d" % n),
    "fixed": (pa.binary(4), lambda n: b"%04d" % n),
    "amount": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
    "identity": (pa.uuid(), lambda n: uuid.UUID(int=n).bytes),
    "nothing": (pa.null(), lambda _: None),
    "words": (pa.list_(pa.string()), lambda n: [str(n)] * (n % 4)),
    "both": (pa.struct([("a", pa.int32()), ("b", pa.string())]), lambda n: {"a": n, "b": str(n)}),
    "counts": (pa.map_(pa.string(), pa.int64()), lambda n: [(str(n), n)] * (n % 3)),
}
MASKS = {
    "all": lambda _: True,
    "none": lambda _: False,
    "all but few": lambda n: n % 97 != 3,
    "every other": lambda n: n % 2 == 0,
    "few": lambda n: n % 97 == 3,
    "half in runs": lambda n: n // 100 % 2 == 0,
}


def rows(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {name: None if n % 11 == 0 else value(n) for name, (_, value) in KINDS.items()}
        for n in range(start, start + count)
    ]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("start", [0, 5, 64])
def test_the_selected_rows_of_all_types_are_left_in_their_order(name: str, start: int) -> None:
    schema = pa.schema([(column, kind) for column, (kind, _) in KINDS.items()])
    batch = pa.RecordBatch.from_pylist(rows(0, ROWS), schema).slice(start, ROWS - 2 * start)
    chosen = [MASKS[name](n) for n in range(ROWS)]
    mask = pa.array(chosen).slice(start, ROWS - 2 * start)
    wanted = [row for row, keep in zip(rows(0, ROWS), chosen, strict=True) if keep]
    first = sum(chosen[:start])
    wanted = wanted[first : first + sum(chosen[start : ROWS - start])]
    found = filtered(batch, mask)
    assert found.schema == schema
    found.validate(full=True)
    assert found == pa.RecordBatch.from_pylist(wanted, schema)


def test_a_batch_without_columns_keeps_as_many_rows() -> None:
    batch = pa.record_batch([pa.nulls(9)], ["_"]).select([])
    assert filtered(batch, pa.array([True, False, True] * 3)).num_rows == 6


def test_a_batch_without_rows_stays_empty() -> None:
    batch = pa.record_batch([pa.array([], pa.int64())], ["n"])
    assert filtered(batch, pa.array([], pa.bool_())) == batch
