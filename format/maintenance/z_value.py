"""Z-order: several columns as one value, so that rows close in all of them are close together.

Each value becomes bytes with the same order as the values; a z-value interleaves their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import ValidationError
from icecomb.format.rows.write.partition_split import field_path
from icecomb.format.rows.write.row_key import total_order
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
    UUIDType,
)

Bytes: TypeAlias = npt.NDArray[np.uint8]
"""An array with one row of bytes per value."""

_WHOLE: Final = (IntegerType, LongType, DateType, TimeType, *TIMESTAMP_TYPES)
_WIDTH: Final = 8
_ROWS: Final = 1 << 16
_SIGN: Final = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class _Column:
    path: tuple[int, ...]
    bytes_of: Callable[[pa.Array, int], Bytes]
    width: int

    def bytes(self, batch: pa.RecordBatch) -> Bytes:
        array = batch.column(self.path[0])
        if len(self.path) > 1:
            array = pc.struct_field(array, list(self.path[1:]))
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        found = self.bytes_of(array, self.width)
        if array.null_count:
            found[np.asarray(array.is_null())] = 0
        return found


class ZValue:
    """A sort key of rows, at most `width` bytes long; see `row_key.RowKey`."""

    descending = False
    nulls_first = True

    def __init__(self, columns: list[_Column], width: int) -> None:
        self._columns = columns
        bits = [column.width * 8 for column in columns]
        starts = np.cumsum([0, *bits[:-1]])
        turns = [
            starts[at] + bit
            for bit in range(max(bits))
            for at in range(len(columns))
            if bit < bits[at]
        ]
        self._turns = np.array(turns[: width * 8])

    @classmethod
    def of(
        cls,
        schema: Schema,
        spec: PartitionSpec,
        names: Iterable[str],
        *,
        most_bytes: int,
        text_bytes: int,
    ) -> ZValue:
        """Return the key for a z-order of columns.

        Args:
            spec: The partition spec of the new files: its identity columns are constant in a
                file.
            most_bytes: The maximum number of bytes in a z-value.
            text_bytes: The number of bytes of a string or binary value that count.
        """
        same = {f.source_id for f in spec.fields if isinstance(f.transform, IdentityTransform)}
        columns = []
        for name in names:
            field = schema.find_field(name)
            if field.field_id in same:
                continue
            found = _bytes_of(field.field_type)
            if found is None:
                raise ValidationError(
                    f"Cannot z-order by column {name}: {field.field_type} has no order",
                    hint="name columns of numbers, times, strings or bytes",
                )
            kind, width = found
            path = field_path(schema, field.field_id)
            columns.append(_Column(path, kind, width or text_bytes))
        if not columns:
            raise ValidationError(
                "Cannot z-order only by columns that the table is partitioned by: they are "
                "constant in a file",
                hint="name other columns",
            )
        return cls(columns, most_bytes)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the z-value of each row."""
        parts = [self._of(batch.slice(at, _ROWS)) for at in range(0, batch.num_rows, _ROWS)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())

    def _of(self, batch: pa.RecordBatch) -> pa.Array:
        joined = np.concatenate([column.bytes(batch) for column in self._columns], axis=1)
        bits = np.unpackbits(joined, axis=1)[:, self._turns]
        packed = np.packbits(bits, axis=1)
        width = packed.shape[1]
        offsets = np.arange(0, (len(packed) + 1) * width, width, dtype=np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(packed))]
        return pa.Array.from_buffers(pa.binary(), len(packed), buffers)


def _bytes_of(kind: IcebergType) -> tuple[Callable[[pa.Array, int], Bytes], int] | None:
    """Return a function that converts values to bytes, and their number (0 if configurable)."""
    if isinstance(kind, BooleanType):
        return _of_booleans, 1
    if isinstance(kind, _WHOLE):
        return _of_whole, _WIDTH
    if isinstance(kind, FloatType | DoubleType):
        return _of_floating, _WIDTH
    if isinstance(kind, DecimalType):
        return _of_decimals, _WIDTH
    if isinstance(kind, StringType | BinaryType | FixedType | UUIDType):
        return _of_text, 0
    return None


def _of_booleans(array: pa.Array, width: int) -> Bytes:  # noqa: ARG001 - always one byte
    values = np.asarray(pc.fill_null(array, False)).astype(np.uint8)
    scaled: Bytes = (values * np.uint8(255)).reshape(-1, 1)
    return scaled


def _of_whole(array: pa.Array, width: int) -> Bytes:  # noqa: ARG001 - always eight bytes
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return _ordered(array.view(whole).cast(pa.int64()))


def _of_floating(array: pa.Array, width: int) -> Bytes:  # noqa: ARG001 - always eight bytes
    return _ordered(total_order(array.cast(pa.float64())))


def _of_decimals(array: pa.Array, width: int) -> Bytes:
    # precise enough: only the closeness of rows matters
    return _of_floating(array.cast(pa.float64()), width)


def _ordered(array: pa.Array) -> Bytes:
    values = np.asarray(pc.fill_null(array, 0)).astype(np.int64).view(np.uint64) ^ _SIGN
    big_endian: Bytes = values.astype(">u8").view(np.uint8).reshape(-1, _WIDTH)
    return big_endian


def _of_text(array: pa.Array, width: int) -> Bytes:
    plain = pc.fill_null(array.cast(pa.binary()), b"")
    first = pc.binary_slice(plain, 0, width)
    _, places, content = first.buffers()
    offsets = np.frombuffer(places, np.int32)[first.offset : first.offset + len(first) + 1]
    lengths = np.diff(offsets)
    found = np.zeros((len(first), width), np.uint8)
    if content is not None and len(first):
        rows = np.repeat(np.arange(len(first)), lengths)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found[rows, columns] = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    return found
