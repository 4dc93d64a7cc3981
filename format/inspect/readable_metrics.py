"""The column `readable_metrics`: statistics of each table column, with decoded bounds."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    LongType,
    NestedField,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    import pyarrow as pa

METRICS: Final = {
    "column_size": ("column_sizes", "Total size on disk"),
    "value_count": ("value_counts", "Total count, including null and NaN"),
    "null_value_count": ("null_value_counts", "Null value count"),
    "nan_value_count": ("nan_value_counts", "NaN value count"),
    "lower_bound": ("lower_bounds", "Lower bound"),
    "upper_bound": ("upper_bounds", "Upper bound"),
}
"""The metrics of a column by name, with the statistic of the files and its description."""


def readable_metrics_field(schema: Schema, highest_field_id: int) -> NestedField:
    """Return the field `readable_metrics`, whose new ids follow after `highest_field_id`.

    Each primitive field of the schema, of any depth, gets a struct under its full name, but those
    whose bounds cannot be read.
    """
    numbers = count(highest_field_id + 1)
    fields = [
        NestedField(
            next(numbers),
            name,
            StructType(
                tuple(
                    NestedField(next(numbers), metric, _metric_type(metric, kind), doc=doc)
                    for metric, (_, doc) in METRICS.items()
                )
            ),
            doc=f"Metrics for column {name}",
        )
        for name, kind in sorted(_primitives(schema).items())
    ]
    return NestedField(
        next(numbers),
        "readable_metrics",
        StructType(tuple(fields)),
        doc="Column metrics in readable form",
    )


class StatisticColumns:
    """One statistic of some files, split by column id; null if a file does not state it."""

    def __init__(self, lists: pa.Array) -> None:
        import numpy as np

        from icecomb.format.rows.values.value_array import int_view

        self._files = len(lists)
        keys, self._values = key_values(lists)
        ids = int_view(keys)
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]
        self._offsets: Any = int_view(lists.offsets) if self._files else np.zeros(1, np.int64)

    def column(self, column_id: int) -> pa.Array:
        """Return the values of one column, null if a file has none."""
        import numpy as np
        import pyarrow as pa

        first, last = np.searchsorted(self._ids, [column_id, column_id + 1])
        hits = self._order[first:last]
        rows = np.searchsorted(self._offsets, hits, side="right") - 1
        # Values outside of the offsets belong to files that were sliced off.
        inside = (rows >= 0) & (rows < self._files)
        picked = np.full(self._files, -1, np.int64)
        picked[rows[inside]] = hits[inside]
        return self._values.take(pa.array(picked, mask=picked < 0))


def key_values(lists: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of all pairs of a statistic, as its offsets count them."""
    pairs = lists.values
    key = 1 if pairs.type[1].name == "key" else 0
    return pairs.field(key), pairs.field(1 - key)


def _metric_type(metric: str, column: PrimitiveType) -> PrimitiveType:
    return column if metric.endswith("bound") else LongType()


def _primitives(schema: Schema) -> dict[str, PrimitiveType]:
    return {
        schema.find_column_name(field.field_id) or field.name: field.field_type
        for field in walk(schema.as_struct())
        if isinstance(field.field_type, PrimitiveType)
        and not isinstance(field.field_type, OPAQUE_TYPES)
    }
