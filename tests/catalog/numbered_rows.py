"""Rows that are only numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def numbers(*values: int) -> pa.Table:
    """Rows of one column, `id`."""
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(table: Any) -> list[int]:
    """The numbers in a table, in order."""
    return sorted(row["id"] for row in table.rows())
