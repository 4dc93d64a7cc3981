"""Readers of rows of a Hive table's files by libraries that are independent of icecomb."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.spec.schema import walk
from icecomb.format.spec.types import NANO_TYPES, IcebergType, ListType, MapType, StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.spec.schema import Schema

Rows: TypeAlias = "Callable[[pa.NativeFile, str, Schema], Iterator[pa.RecordBatch]]"
"""A reader of an open file of some name for a schema; columns keep the file's names."""
_BATCH_ROWS: Final = 65_536
_OBJECTS: Final = 1 << 14
"""Number of rows of Python objects at a time."""


def _parquet(stream: pa.NativeFile, _: str, schema: Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    # INT96 counts nanoseconds, which overflow before 1677 and after 2262.
    fine = any(isinstance(f.field_type, NANO_TYPES) for f in walk(schema.as_struct()))
    with pq.ParquetFile(stream, coerce_int96_timestamp_unit="ns" if fine else "us") as file:
        yield from file.iter_batches(_BATCH_ROWS)


def _orc(stream: pa.NativeFile, location: str, _: Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import orc

    from icecomb.format.rows.orc.fallback import read_columns
    from icecomb.format.rows.orc.padding import Padding
    from icecomb.format.rows.orc.tail import OrcTail

    file = orc.ORCFile(stream)
    tail = OrcTail(file.reader.serialized_file_tail())
    padding = Padding(file.schema, tail.padded)
    for number in range(file.nstripes):
        try:
            stripe = file.read_stripe(number)
        except pa.ArrowInvalid:  # times out of the range of nanoseconds
            every = range(len(file.schema))
            arrays = read_columns(stream, location, file.schema, number, every)
            stripe = pa.RecordBatch.from_arrays(arrays, file.schema.names)
        yield padding.removed(stripe)


def _avro(stream: pa.NativeFile, _: str, schema: Schema) -> Iterator[pa.RecordBatch]:
    import fastavro
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import schema_to_pyarrow

    kinds = {f.name.lower(): f.field_type for f in schema.fields}
    arrows = {f.name.lower(): f.type for f in schema_to_pyarrow(schema, include_field_ids=False)}
    reader = fastavro.reader(stream)
    stated: Any = reader.writer_schema
    names = [f["name"] for f in stated["fields"] if f["name"].lower() in kinds]
    records: Iterator[Any] = iter(reader)
    while some := list(islice(records, _OBJECTS)):
        arrays = [
            pa.array(
                [_value(record[name], kinds[name.lower()]) for record in some],
                arrows[name.lower()],
            )
            for name in names
        ]
        # An extra column keeps the rows of a file that has none of the table's columns.
        yield pa.RecordBatch.from_arrays([*arrays, pa.nulls(len(some))], [*names, ""])


READERS: Final[Mapping[FileFormat, Rows]] = {
    FileFormat.PARQUET: _parquet,
    FileFormat.ORC: _orc,
    FileFormat.AVRO: _avro,
}


def _value(value: Any, kind: IcebergType) -> Any:
    """Convert a fastavro value for Arrow by a type; names of fields ignore case."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        by_name = {name.lower(): inner for name, inner in value.items()}
        return {f.name: _value(by_name.get(f.name.lower()), f.field_type) for f in kind.fields}
    if isinstance(kind, ListType):
        return [_value(one, kind.element_type) for one in value]
    if isinstance(kind, MapType):
        pairs = value.items()
        return [(_value(k, kind.key_type), _value(v, kind.value_type)) for k, v in pairs]
    return value
