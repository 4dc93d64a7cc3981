"""Arrow values that are built without pandas, beside those that pyarrow makes."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.arrow.array_build import integers, scalar, texts

WHOLE = (
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("ns", "UTC"),
)
VALUES: list[tuple[Any, pa.DataType]] = [
    *((value, kind) for value in (0, -7, 2**31 - 1, -(2**31), 2**40, 2**70) for kind in WHOLE),
    *(
        (value, kind)
        for value in (0.0, -0.0, 1.1, 1e39, -1e300, math.inf, 3.4028234663852886e38, 1e-46)
        for kind in (pa.float32(), pa.float64())
    ),
    (3, pa.float64()),
    (True, pa.bool_()),
    (b"ab", pa.binary()),
    (b"ab", pa.binary(2)),
    (b"ab", pa.large_binary()),
    ("é", pa.string()),
    ("é", pa.large_string()),
    (None, pa.date32()),
    (dt.date(2020, 1, 1), pa.date32()),
]


def outcome(make: Any, value: Any, kind: pa.DataType) -> Any:
    try:
        found = make(value, kind)
    except (pa.ArrowInvalid, OverflowError) as problem:
        return type(problem)
    # 0.0 equals -0.0
    return found.type, pa.repeat(found, 1).buffers()[-1].to_pybytes()[:8], found.is_valid


@pytest.mark.parametrize(("value", "kind"), VALUES, ids=str)
def test_a_scalar_is_that_of_pyarrow(value: Any, kind: pa.DataType) -> None:
    assert outcome(scalar, value, kind) == outcome(pa.scalar, value, kind)


def test_numbers_and_texts_may_be_null() -> None:
    assert integers([1, None, -3]) == pa.array([1, None, -3], pa.int64())
    assert integers(range(3)) == pa.array([0, 1, 2], pa.int64())
    assert integers([]) == pa.array([], pa.int64())
    assert texts(["é", None, ""]) == pa.array(["é", None, ""], pa.large_string())
    assert texts([]) == pa.array([], pa.large_string())
