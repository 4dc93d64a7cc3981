"""The rows that are read and appended: eight columns, made with Arrow alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = (
    (1, "id", "long"), (2, "ts", "timestamptz"), (3, "i", "int"), (4, "l", "long"),
    (5, "d", "double"), (6, "f", "float"), (7, "s", "string"), (8, "u", "string"),
)  # fmt: skip
"""Id, name and type of each column."""


def arrow_rows(count: int, start: int = 0) -> pa.Table:
    """So many rows; ids count up from `start`."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    ids = pc.add(pc.cumulative_sum(ones), start - 1)

    def some(salt: int, below: int, kind: Any) -> Any:
        random = pc.random(count, initializer=start + salt)
        return pc.cast(pc.floor(pc.multiply(random, float(below))), kind)

    words = pa.array([f"category-{number:04d}" for number in range(1000)])
    micros = pc.add(pc.multiply(ids, 1000), 1_735_689_600_000_000)
    return pa.table(
        {
            "id": ids,
            "ts": micros.cast(pa.timestamp("us", "UTC")),
            "i": some(1, 10**6, pa.int32()),
            "l": some(2, 2**40, pa.int64()),
            "d": pc.random(count, initializer=start + 3),
            "f": pc.random(count, initializer=start + 4).cast(pa.float32()),
            "s": words.take(some(5, 1000, pa.int64())),
            "u": some(6, 10**12, pa.int64()).cast(pa.string()),
        }
    )
