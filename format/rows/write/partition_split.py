"""Splitting of batches by partition: transforms on whole arrays, one gather per partition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import internal_array
from icecomb.format.errors import ValidationError
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import HourTransform, VoidTransform
from icecomb.format.spec.values.temporal import human_timestamp

_DENSE_GROUPS = 1 << 16


class PartitionSplit:
    """A splitter of a table's batches by its partition spec.

    Batches have the schema's columns in its order; `root` is the data folder, for errors.
    """

    def __init__(self, spec: PartitionSpec, schema: Schema, root: str) -> None:
        self._schema = schema
        self._root = root
        self._sources = [
            (None if isinstance(f.transform, VoidTransform) else field_path(schema, f.source_id), f)
            for f in spec.fields
        ]

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
        """Yield each partition tuple of a batch with its rows, in their order.

        ValidationError is raised if a decimal, rounded down, has too many digits for a partition
        value, or a timestamp is more hours from 1970 than an int holds.
        """
        if not self._sources:
            yield (), batch
            return
        keys = [self._key(batch, path, field) for path, field in self._sources]
        codes, groups = _combined(keys, batch.num_rows)
        if len(groups) == 1:
            yield _values(keys, groups[0]), batch
            return
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        for i, group in enumerate(groups):
            rows = pa.array(order[starts[i] : starts[i + 1]])
            yield _values(keys, group), batch.take(rows)

    def _key(
        self, batch: pa.RecordBatch, path: tuple[int, ...] | None, field: PartitionField
    ) -> _Key | None:
        if path is None:
            return None
        array = batch.column(path[0])
        if len(path) > 1:
            array = pc.struct_field(array, list(path[1:]))
        if not pa.types.is_decimal(array.type):
            labels = field.transform.apply_array(array)
            if isinstance(field.transform, HourTransform) and labels.type != pa.int32():
                raise self._too_far(field, array, labels)
            return _Key(labels)
        try:
            results = field.transform.apply_array(array)
        except ValidationError as problem:
            raise self._no_room(field, array) from problem
        if pa.types.is_decimal(results.type) and results.type != array.type:
            try:
                results = results.cast(array.type)
            except pa.ArrowInvalid as problem:
                raise self._no_room(field, array) from problem
        return _Key(results)

    def _too_far(self, field: PartitionField, array: pa.Array, hours: pa.Array) -> ValidationError:
        """Return the error for a timestamp whose hours do not fit an int."""
        column = self._schema.find_column_name(field.source_id)
        row = pc.index(pc.abs(hours), pc.max(pc.abs(hours))).as_py()
        micros = array.view(pa.int64())[row].as_py()
        return ValidationError(
            f"Cannot write rows to {self._root}: column {column!r} has {human_timestamp(micros)}, "
            f"which is {hours[row]} hours from 1970: a partition by {field.transform} is an int, "
            "and cannot have it",
            hint="Partition by days (table.update_spec()), or write a nearer timestamp or null.",
            path=self._root,
            column=column,
        )

    def _no_room(self, field: PartitionField, array: pa.Array) -> ValidationError:
        """Return the error for a column whose least value, rounded down, does not fit its type."""
        column = self._schema.find_column_name(field.source_id)
        return ValidationError(
            f"Cannot write rows to {self._root}: column {column!r} has {pc.min(array)}, whose "
            f"partition value by {field.transform} has more digits than {array.type}",
            hint="Partition by another transform (table.update_spec()), or give the column more "
            "digits: table.update_schema().update_column(...).",
            path=self._root,
            column=column,
        )


class _Key:
    """One partition field of a batch: a code for each row, and the internal value of each code."""

    def __init__(self, array: pa.Array) -> None:
        plain = internal_array(array)
        encoded = plain.dictionary_encode(null_encoding="encode")
        self.codes: npt.NDArray[np.int64] = np.asarray(encoded.indices).astype(np.int64)
        values = encoded.dictionary
        if array.type == pa.uuid():
            values = pa.ExtensionArray.from_storage(pa.uuid(), values)
        self.values = [_one_nan(v) for v in values.to_pylist()]


def _one_nan(value: Any) -> Any:
    # NaN differs from itself, but a single NaN object is still found as a key.
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _combined(keys: list[_Key | None], rows: int) -> tuple[npt.NDArray[Any], list[tuple[int, ...]]]:
    """Return a group number for each row, and the codes of each group."""
    real = [k for k in keys if k is not None]
    total = math.prod(len(k.values) for k in real)
    codes: npt.NDArray[Any] = np.zeros(rows, np.int64)
    if total < 1 << 62:
        for k in real:
            codes = codes * len(k.values) + k.codes
        present, codes = _renumbered(codes, total)
        return codes, [_decomposed(int(c), real) for c in present]
    stacked = np.stack([k.codes for k in real], axis=1)
    rows_present, codes = np.unique(stacked, axis=0, return_inverse=True)
    return codes.reshape(-1), [tuple(int(c) for c in row) for row in rows_present]


def _renumbered(
    codes: npt.NDArray[np.int64], total: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    if total > _DENSE_GROUPS:
        present, inverse = np.unique(codes, return_inverse=True)
        return present, inverse.reshape(-1)
    present = np.flatnonzero(np.bincount(codes, minlength=total))
    # numpy sorts small unsigned numbers by radix.
    numbers = np.zeros(total, np.uint16)
    numbers[present] = np.arange(len(present), dtype=np.uint16)
    return present, numbers[codes]


def _decomposed(code: int, keys: list[_Key]) -> tuple[int, ...]:
    parts: list[int] = []
    for k in reversed(keys):
        code, part = divmod(code, len(k.values))
        parts.append(part)
    return tuple(reversed(parts))


def _values(keys: list[_Key | None], group: tuple[int, ...]) -> tuple[Any, ...]:
    codes = iter(group)
    return tuple(None if k is None else k.values[next(codes)] for k in keys)


def field_path(schema: Schema, field_id: int) -> tuple[int, ...]:
    """Return the path of indices from a batch of the table to a field in structs."""
    chain = [field_id]
    while (parent := schema.find_parent_id(chain[0])) is not None:
        chain.insert(0, parent)
    path = []
    fields = schema.fields
    for number in chain:
        index = next(i for i, f in enumerate(fields) if f.field_id == number)
        path.append(index)
        fields = getattr(fields[index].field_type, "fields", ())
    return tuple(path)
