"""What two readers, ours and PyIceberg's, agree that a table holds."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from pyiceberg.table import StaticTable


def rows(table: Any) -> list[tuple[Any, ...]]:
    """The rows as our scan and PyIceberg's agree on them, in an order of their own."""
    ours = ordered(table.scan().to_arrow())
    assert ours == ordered(StaticTable.from_metadata(table.metadata_location).scan().to_arrow())
    return ours


def ordered(arrow: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order that depends on them only; NaN equals itself."""
    return sorted((tuple(map(plain, row.values())) for row in arrow.to_pylist()), key=repr)


def plain(value: Any) -> Any:
    """A value that equals itself."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
