"""Rows of metadata tables for Spark's tasks, computed by the planner."""

from __future__ import annotations

import base64
import uuid
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from icecomb.format.spec.values.temporal import NANOS_PER_MICRO
from icecomb.spark.planner.protocol.scans import ReadRows, Rows
from icecomb.spark.planner.scan.predicates import row_filter
from icecomb.spark.planner.scan.read_options import ReadOptions
from icecomb.spark.planner.table.states import TableStates

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.spec.schema import Schema

_STREAM_BYTES: Final = 4 << 20


class MetadataRows:
    """The protocol's method that reads metadata tables."""

    def __init__(self, states: TableStates) -> None:
        self._states = states

    def read_rows(self, request: ReadRows) -> Rows:
        state = self._states.find(request.reference)
        scan = state.inspected(
            row_filter(request.filters, state.schema, case_sensitive=request.case_sensitive),
            _names(state.schema, request.field_ids),
            ReadOptions(request.options).scan_of(state),
        )
        batches = map(_for_spark, _first(scan.to_arrow_batches(), request.limit))
        return Rows(tuple(map(_encoded, _gathered(batches))))


def _names(schema: Schema, field_ids: Iterable[int]) -> tuple[str, ...]:
    names = tuple(schema.find_column_name(field_id) or "" for field_id in field_ids)
    # an Arrow batch without columns loses its row count
    return names or (schema.fields[0].name,)


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        yield batch if left is None else batch.slice(0, left)
        if left is not None:
            left -= batch.num_rows
            if left <= 0:
                return


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Gather batches of about one manifest each into task-sized lists."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= _STREAM_BYTES:
            yield gathered
            gathered, size = [], 0
    if gathered:
        yield gathered


def _encoded(batches: list[pa.RecordBatch]) -> str:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return base64.b64encode(zlib.compress(sink.getvalue(), 1)).decode("ascii")


def _for_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert a batch to types that Spark's Arrow columns support, see `spark_schema`."""
    import pyarrow as pa

    types = [_arrow_type(field.type) for field in batch.schema]
    if types == list(batch.schema.types):
        return batch
    columns = [_converted(column, kind) for column, kind in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _arrow_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(_arrow_type(field.type))

    if kind == pa.uuid():
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([inner(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(inner(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field))
    return kind


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert an array to what `_arrow_type` returns, not by way of Python's dates and times."""
    import pyarrow as pa

    if array.type == kind:
        return array
    if array.type == pa.uuid():
        values = array.storage.to_pylist()
        return pa.array([None if v is None else str(uuid.UUID(bytes=v)) for v in values], kind)
    if pa.types.is_timestamp(kind):
        return _micros(array, kind)
    if pa.types.is_struct(kind):
        parts = [_converted(array.field(at), each.type) for at, each in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return array.cast(kind)
    is_list = pa.types.is_list(kind)
    inside = kind.value_type if is_list else pa.struct([kind.key_field, kind.item_field])
    return pa.Array.from_buffers(
        kind,
        len(array),
        array.buffers()[:2],
        offset=array.offset,
        children=[_converted(array.values, inside)],
    )


def _micros(nanos: pa.Array, kind: pa.DataType) -> pa.Array:
    """Round nanoseconds down to microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = nanos.view(pa.int64())
    towards_zero = pc.divide(numbers, NANOS_PER_MICRO)
    too_much = pc.greater(pc.multiply(towards_zero, NANOS_PER_MICRO), numbers)
    return pc.subtract(towards_zero, too_much.cast(pa.int64())).view(kind)
