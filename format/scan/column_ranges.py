"""Limits of the values of columns, and numbers of nulls, as manifests tell them: for estimates.

Nothing is exact: deleted rows and those that a filter leaves out count, and bounds may be wider
than the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.spec.single_value import range_from_bytes
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
)

if TYPE_CHECKING:
    from icecomb.format.scan.scan_planner import Selected
    from icecomb.format.spec.schema import Schema

COUNTED: Final = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
"""The statistics of manifests that ranges are made of."""
_BOUNDED: Final = (
    BooleanType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType,
    DateType,
    *TIMESTAMP_TYPES,
)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What is known of the values of a column.

    Attributes:
        nulls: The number of nulls; None if it is unknown.
        lower: A value that is not above the smallest one, as an internal value; None if there is
            none, or it is unknown, as of text and bytes.
        upper: A value that is not below the greatest one, likewise.
        is_empty: Whether it is known that there are only nulls.
    """

    nulls: int | None
    lower: Any
    upper: Any
    is_empty: bool


def column_ranges(
    schema: Schema, field_ids: Sequence[int], selected: Iterable[Selected]
) -> dict[int, ColumnRange]:
    """Return the ranges of primitive columns over manifest entries with `COUNTED` statistics."""
    columns = {field_id: _Column(schema.find_type(field_id)) for field_id in field_ids}
    for chosen in selected:
        for field_id, column in columns.items():
            column.add(chosen, field_id)
    return {field_id: column.range() for field_id, column in columns.items()}


class _Column:
    """The range of a column so far."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._nulls: int | None = 0
        self._values: int | None = 0
        self._is_bounded = isinstance(kind, _BOUNDED)
        self._lower: Any = None
        self._upper: Any = None

    def add(self, chosen: Selected, field_id: int) -> None:
        counts, nulls, lower, upper = (
            chosen.chosen(chosen.columns.statistic(name, field_id)) for name in COUNTED
        )
        self._nulls = _sum(self._nulls, nulls)
        self._values = _sum(self._values, counts)
        if not self._is_bounded:
            return
        # files of nulls only have no bounds, and need none
        valued = pc.not_equal(pc.fill_null(pc.subtract(counts, nulls), 1), 0)
        self._widen(lower.filter(valued), upper.filter(valued))

    def range(self) -> ColumnRange:
        known = self._is_bounded
        return ColumnRange(
            self._nulls,
            self._lower if known else None,
            self._upper if known else None,
            self._nulls is not None and self._nulls == self._values,
        )

    def _widen(self, lower: pa.Array, upper: pa.Array) -> None:
        assert isinstance(self._kind, PrimitiveType)  # noqa: S101 - only such types are bounded
        for pair in set(zip(lower.to_pylist(), upper.to_pylist(), strict=True)):
            found = range_from_bytes(self._kind, *pair)
            if found is None or any(value != value for value in found):  # noqa: PLR0124 - NaN
                self._is_bounded = False
                return
            low, high = found
            self._lower = low if self._lower is None else min(self._lower, low)
            self._upper = high if self._upper is None else max(self._upper, high)


def _sum(so_far: int | None, counts: pa.Array) -> int | None:
    if so_far is None or counts.null_count:
        return None
    return so_far + (pc.sum(counts).as_py() or 0)
