"""The entries of one manifest as rows of `entries` or `files`, with columns made on demand."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.inspect.metadata_schema import DATA_FILE, PARTITION, READABLE_METRICS
from icecomb.format.inspect.metadata_table import TableRows, struct_array
from icecomb.format.inspect.readable_metrics import METRICS, StatisticColumns, key_values
from icecomb.format.manifests.columns import (
    ENTRY_COLUMNS,
    FILE_COLUMNS,
    LIST_COLUMNS,
    ManifestColumns,
)
from icecomb.format.manifests.schema import STATISTICS
from icecomb.format.rows.values.partition_union import union_columns
from icecomb.format.rows.values.value_array import bounds_to_arrow, int_view
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField, PrimitiveType, StructType

_DECODED: Final = frozenset((*ENTRY_COLUMNS, *FILE_COLUMNS, *LIST_COLUMNS))


def statistics_for(fields: Schema) -> frozenset[str]:
    """Return the statistics that manifests must be decoded with for some columns of a table."""
    found: set[str] = set()
    for field in fields.fields:
        kind = field.field_type
        if field.name == READABLE_METRICS and isinstance(kind, StructType):
            for column in kind.fields:
                assert isinstance(column.field_type, StructType)  # noqa: S101 - so it is made
                found.update(METRICS[metric.name][0] for metric in column.field_type.fields)
        elif field.name == DATA_FILE and isinstance(kind, StructType):
            found.update(child.name for child in kind.fields if child.name in STATISTICS)
        elif field.name in STATISTICS:
            found.add(field.name)
    return frozenset(found)


class EntryRows:
    """Some entries of a manifest, which has the statistics that will be needed.

    Args:
        doubted: Columns that may have another type in the files (see `ColumnDoubts`), and are
            null.
    """

    def __init__(
        self,
        columns: ManifestColumns,
        spec: PartitionSpec,
        schema: Schema,
        rows: pa.Array | None = None,
        doubted: Collection[int] = (),
    ) -> None:
        self._columns = columns
        self._spec = spec
        self._schema = schema
        self._rows = rows
        self._doubted = doubted
        self._split: dict[str, StatisticColumns] = {}

    def __len__(self) -> int:
        return len(self._columns) if self._rows is None else len(self._rows)

    def filter(self, mask: pa.BooleanArray) -> TableRows:
        """Return the entries that a mask selects."""
        rows = pc.indices_nonzero(mask) if self._rows is None else self._rows.filter(mask)
        return EntryRows(self._columns, self._spec, self._schema, rows, self._doubted)

    def column(self, field: NestedField) -> pa.Array:
        """Return a column of `entries` or `files`, or the part of its struct that `field` has."""
        name, kind = field.name, field.field_type
        if isinstance(kind, StructType):
            if name == PARTITION:
                return self.partition(field)
            if name == READABLE_METRICS:
                return struct_array(field, [self._metrics(column) for column in kind.fields])
            return struct_array(field, [self.column(child) for child in kind.fields])
        target = type_to_pyarrow(kind)
        if name == "spec_id":
            return pa.repeat(pa.scalar(self._spec.spec_id, target), len(self))
        if name in STATISTICS:
            return _map(self._statistic(name), target)
        if name not in _DECODED:
            return pa.nulls(len(self), target)
        values = self._take(self._columns.column(name))
        return (pc.utf8_upper(values) if name == "file_format" else values).cast(target)

    def partition(self, field: NestedField, ids: dict[int, int] | None = None) -> pa.Array:
        """Return the partitions as structs of the table's partition type, or of some fields.

        Args:
            ids: The partition field ids by the ids in `field`, if they differ.
        """
        assert isinstance(field.field_type, StructType)  # noqa: S101 - so it is made
        wanted = [
            NestedField((ids or {}).get(f.field_id, f.field_id), f.name, f.field_type)
            for f in field.field_type.fields
        ]
        arrays = union_columns(self._columns, self._spec, wanted, self._doubted)
        return struct_array(field, [self._take(array) for array in arrays])

    def _metrics(self, column: NestedField) -> pa.Array:
        source = self._schema.find_field(self._source_ids[column.name])
        assert isinstance(column.field_type, StructType)  # noqa: S101 - so it is made
        assert isinstance(source.field_type, PrimitiveType)  # noqa: S101 - so it is chosen
        arrays = []
        for metric in column.field_type.fields:
            values = self._by_column(METRICS[metric.name][0]).column(source.field_id)
            if metric.name.endswith("bound") and source.field_id in self._doubted:
                values = pa.nulls(len(self), type_to_pyarrow(metric.field_type))
            elif metric.name.endswith("bound"):
                values = bounds_to_arrow(values, source.field_type)
            arrays.append(values.cast(type_to_pyarrow(metric.field_type)))
        return struct_array(column, arrays)

    @cached_property
    def _source_ids(self) -> dict[str, int]:
        return {self._schema.find_column_name(i) or "": i for i in self._schema.field_ids}

    def _by_column(self, statistic: str) -> StatisticColumns:
        found = self._split.get(statistic)
        if found is None:
            found = self._split[statistic] = StatisticColumns(self._statistic(statistic))
        return found

    def _statistic(self, name: str) -> pa.Array:
        return self._take(self._columns.column(name))

    def _take(self, array: pa.Array) -> pa.Array:
        return array if self._rows is None else array.take(self._rows)


def _map(lists: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert a statistic to an Arrow map."""
    if not len(lists):
        return pa.nulls(0, target)
    keys, values = key_values(lists)
    offsets = int_view(lists.offsets)
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    mask = lists.is_null() if lists.null_count else None
    return pa.MapArray.from_arrays(
        pa.array((offsets - first).astype(np.int32)),
        keys.slice(first, size),
        values.slice(first, size).cast(target.item_type),
        type=target,
        mask=mask,
    )
