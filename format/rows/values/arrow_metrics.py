"""Metrics counted from the rows, for formats whose files do not keep enough of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import internal_array
from icecomb.format.rows.values.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    bounds,
)
from icecomb.format.rows.values.file_tail import ColumnSummary
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
    UUIDType,
    VariantType,
)


class ArrowMetrics:
    """Counts and bounds of the rows of one file, except for columns in lists and maps.

    Variants have counts only.
    """

    def __init__(self, schema: Schema, config: MetricsConfig) -> None:
        self._rows = 0
        self._columns = [
            _Column(f.field_id, kind, path, config.mode(f.field_id))
            for f, kind, path in _leaves(schema.fields, ())
            if config.mode(f.field_id).kind is not MetricsKind.NONE
        ]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count rows; the batch has the schema's columns and types."""
        self._rows += batch.num_rows
        for column in self._columns:
            column.add(batch)

    def summaries(self) -> dict[int, ColumnSummary]:
        """Return the counts and bounds by field id; bounds are not truncated."""
        return {
            c.field_id: ColumnSummary(
                c.kind,
                None,
                ChunkStatistics(
                    self._rows, c.nulls, _internal(c.kind, c.lower), _internal(c.kind, c.upper)
                ),
            )
            for c in self._columns
        }

    def result(self) -> Metrics:
        """Return the metrics in the form that manifests keep."""
        metrics = Metrics(self._rows, {}, {}, {}, {}, {}, {}, ())
        for column in self._columns:
            number = column.field_id
            metrics.value_counts[number] = self._rows
            metrics.null_value_counts[number] = column.nulls
            if column.nans is not None:
                metrics.nan_value_counts[number] = column.nans
            low, high = _internal(column.kind, column.lower), _internal(column.kind, column.upper)
            lower, upper = bounds(column.kind, low, high, column.mode)
            if lower is not None:
                metrics.lower_bounds[number] = lower
            if upper is not None:
                metrics.upper_bounds[number] = upper
        return metrics


@dataclass(slots=True)
class _Column:
    field_id: int
    kind: PrimitiveType
    path: tuple[int, ...]
    mode: MetricsMode
    nulls: int = 0
    nans: int | None = None
    lower: Any = None
    upper: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        array = batch.column(self.path[0])
        if len(self.path) > 1:
            array = pc.struct_field(array, list(self.path[1:]))
        self.nulls += array.null_count
        if pa.types.is_floating(array.type):
            nan = pc.is_nan(array)
            self.nans = (self.nans or 0) + nan.true_count
            array = array.filter(pc.invert(nan)) if nan.true_count else array
        if self.mode.kind is MetricsKind.COUNTS or array.null_count == len(array):
            return
        if isinstance(self.kind, UnknownType):
            return
        self._widen(internal_array(array))

    def _widen(self, array: pa.Array) -> None:
        ends = pc.min_max(array).as_py()
        low, high = ends["min"], ends["max"]
        if isinstance(low, float):
            # Arrow takes the two zeros for equal, but a bound must hold for either.
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        self.lower = low if self.lower is None else min(self.lower, low)
        self.upper = high if self.upper is None else max(self.upper, high)


def _internal(kind: PrimitiveType, value: Any) -> Any:
    return uuid.UUID(bytes=value) if isinstance(kind, UUIDType) and value is not None else value


def _leaves(
    fields: Sequence[NestedField], path: tuple[int, ...]
) -> Iterator[tuple[NestedField, PrimitiveType, tuple[int, ...]]]:
    """Yield the columns outside lists and maps, with the path of indices to each.

    A variant comes as unknown: its values have no order.
    """
    for index, f in enumerate(fields):
        if isinstance(f.field_type, StructType):
            yield from _leaves(f.field_type.fields, (*path, index))
        elif isinstance(f.field_type, PrimitiveType):
            yield f, f.field_type, (*path, index)
        elif isinstance(f.field_type, VariantType):
            yield f, UnknownType(), (*path, index)
