"""Keys by which rows are compared: partitions, and a table's sort order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.rows.write.partition_writer import field_path
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortOrder
from icecomb.format.spec.transform import (
    HourTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)


class RowKey(Protocol):
    """A key by which rows are compared."""

    @property
    def descending(self) -> bool:
        """True if the greatest value comes first."""

    @property
    def nulls_first(self) -> bool:
        """True if nulls come before all values."""

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values to compare, in a type that Arrow sorts in the wanted order."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of a sort order or a partition spec.

    Args:
        path: The path of indices through structs to the column.
        descending: Whether the greatest value comes first.
        groups: Whether values of one partition must compare equal, as all NaNs then do.
    """

    path: tuple[int, ...]
    transform: Transform
    descending: bool = False
    nulls_first: bool = True
    groups: bool = False

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values to compare, in a type that Arrow sorts as the specification does."""
        array = batch.column(self.path[0])
        if len(self.path) > 1:
            array = pc.struct_field(array, list(self.path[1:]))
        array = self.transform.apply_array(array)
        if isinstance(self.transform, HourTransform):
            # one type for all batches, whether or not hours fit an int in each
            array = array.cast(pa.int64())
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        return total_order(array, one_nan=self.groups) if _is_floating(array) else array


def sort_keys(schema: Schema, spec: PartitionSpec, order: SortOrder) -> list[SortKey] | None:
    """Return the keys that cluster rows by partition, and sort them within each.

    None if the order has none, or one that this version does not support.
    """
    unknown = any(
        isinstance(f.transform, UnknownTransform) or not schema.contains(f.source_id)
        for f in order.fields
    )
    if order.is_unsorted or unknown:
        return None
    ordering = [
        SortKey(
            field_path(schema, f.source_id),
            f.transform,
            f.direction is SortDirection.DESC,
            f.null_order is NullOrder.NULLS_FIRST,
        )
        for f in order.fields
    ]
    return partition_sort_keys(schema, spec) + ordering


def partition_sort_keys(schema: Schema, spec: PartitionSpec) -> list[SortKey]:
    """Return the keys that cluster rows by partition."""
    return [
        SortKey(field_path(schema, f.source_id), f.transform, groups=True)
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
    ]


class KeyComparison:
    """A comparison of rows by keys, most significant first."""

    def __init__(self, keys: Sequence[RowKey]) -> None:
        self._keys = keys
        self._how = [
            (
                str(number),
                "descending" if key.descending else "ascending",
                "at_start" if key.nulls_first else "at_end",
            )
            for number, key in enumerate(keys)
        ]

    def values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values to compare, one column for each key."""
        names = [name for name, *_ in self._how]
        return pa.record_batch([key.values(batch) for key in self._keys], names)

    def order(self, values: pa.RecordBatch) -> Any:
        """Return the indices that sort rows with these `values`; equal rows keep their order."""
        return np.asarray(pc.sort_indices(values, sort_keys=self._how))


def _is_floating(array: pa.Array) -> bool:
    return bool(pa.types.is_floating(array.type))


def total_order(array: pa.Array, *, one_nan: bool = False) -> Any:
    """Convert floating-point numbers to integers that sort in the specification's order.

    -NaN < -infinity < -1 < -0 < 0 < 1 < infinity < NaN (spec: Sorting).
    """
    if one_nan:
        array = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
    whole = pa.int32() if array.type == pa.float32() else pa.int64()
    bits = array.view(whole)
    low_bits = pa.scalar((1 << (whole.bit_width - 1)) - 1, whole)
    return pc.if_else(pc.less(bits, pa.scalar(0, whole)), pc.bit_wise_xor(bits, low_bits), bits)
