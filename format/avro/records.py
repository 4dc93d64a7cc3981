"""Decoding of the records of container files to dictionaries or Arrow columns.

They are decoded under the plain schema of `avro.plain_schema`.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from icecomb.format.avro.container import (
    SYNC_SIZE,
    AvroContainer,
    compact_schema,
    header_bytes,
    parsed_schema,
)
from icecomb.format.avro.encoder import encode_bytes, encode_long, encode_string
from icecomb.format.avro.schema_size import OBJECT_CELLS, check_items
from icecomb.format.errors import CorruptFileError, reason_of
from icecomb.format.input_limit import UNPACKED, unpacked_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_MARK: Final = uuid4().hex
_NUMBER: Final = random.randrange(10_000, 80_000)  # noqa: S311 - of days, milliseconds, whatever
_ENDS: Final[Mapping[str, tuple[bytes, Any]]] = {
    "null": (b"", None),
    "boolean": (b"\x01", True),
    "int": (encode_long(_NUMBER), _NUMBER),
    "long": (encode_long(_NUMBER), _NUMBER),
    "float": (struct.pack("<f", _NUMBER), float(_NUMBER)),
    "double": (struct.pack("<d", _NUMBER), float(_NUMBER)),
    "bytes": (encode_bytes(b"\x01\x02"), b"\x01\x02"),
    "string": (encode_string(_MARK), _MARK),
}
_ARROW_ALIASES: Final = {
    "boolean": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "large_binary",
    "string": "large_string",
}


_RECORD_BYTES: Final = 1 << 10
"""About the memory of a record as a dictionary, which may take twenty bytes in the file."""
_ITEM_BYTES: Final = 1 << 8
"""The same of an item of an array, or of a row of columns."""
_SMALL: Final = 4 << 20
"""Bytes of records that are decoded without counting."""


def read_records(container: AvroContainer, schema: Any) -> list[dict[str, Any]]:
    """Decode all records to dictionaries; see `read_tables` for the check of their end."""
    import fastavro

    _check_room(container, schema)
    marked = _text_field(schema) if is_simple(schema) else None
    mark = b"" if marked is None else end_record(schema)[0]
    try:
        records: list[Any] = list(
            fastavro.reader(BytesIO(_uncompressed([container], schema, mark)))
        )
    except Exception as error:  # damaged bytes surface as errors of many kinds
        raise damaged([container], error) from error
    if marked is not None and records.pop()[marked] != _MARK:
        raise damaged([container], None)
    return records


def fits_exactly(container: AvroContainer, schema: Any) -> bool:
    """Return whether the records, read under this plain schema, end where the content ends."""
    import fastavro

    check_objects(container, schema)
    content = b"".join(container.blocks)
    body = BytesIO(content)
    try:
        parsed = fastavro.parse_schema(schema)
        for _ in range(container.record_count):
            fastavro.schemaless_reader(body, parsed, None)
    except Exception:  # noqa: BLE001 - bytes of another layout surface as errors of many kinds
        return False
    return body.tell() == len(content)


def check_objects(container: AvroContainer, schema: Any) -> None:
    """Check what any of the records takes as objects of Python, however few bytes it has."""
    _, size = parsed_schema(container.metadata["avro.schema"])
    room = unpacked_bytes()
    for count, block in zip(container.counts, container.blocks, strict=True):
        if size.most_memory(count, len(block)) * OBJECT_CELLS > room:
            _check_items(container, schema, block, count)


def read_table(
    container: AvroContainer, schema: Any, columns: Container[str] | None = None
) -> pa.Table:
    """Decode all records, or only some of their fields, to Arrow columns of one chunk each."""
    if is_simple(schema):
        return _decoded([container], schema, _chosen(schema, columns), b"")
    return _of_records(container, schema, _chosen(schema, columns))


def read_tables(
    containers: Sequence[AvroContainer],
    schema: Any,
    marked: str,
    columns: Container[str] | None = None,
) -> tuple[pa.Table, list[int]]:
    """Decode files of one schema; return the rows, and the index of the first row of each file.

    A marker record, identified by the string field `marked`, is inserted after the records of each
    file and must be found there; it may follow a file's rows in the result.
    """
    import pyarrow as pa

    fields = _chosen(schema, columns)
    counts = [container.record_count for container in containers]
    for container in containers:
        _check_memory(container, container.record_count * _ITEM_BYTES)
    if not is_simple(schema) or marked not in {field["name"] for field in fields}:
        tables = [_of_records(container, schema, fields) for container in containers]
        table = pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]
        return table, list(accumulate(counts[:-1], initial=0))
    if sum(container.most_memory() for container in containers) > unpacked_bytes():
        return _read_pieces(containers, schema, marked, fields)
    table = _decoded(containers, schema, fields, end_record(schema)[0])
    starts = list(accumulate((count + 1 for count in counts), initial=0))
    texts = table.column(marked)
    if any(texts[start - 1].as_py() != _MARK for start in starts[1:]):
        raise damaged(containers, None)
    return table, starts[:-1]


def _read_pieces(
    containers: Sequence[AvroContainer], schema: Any, marked: str, fields: Sequence[Any]
) -> tuple[pa.Table, list[int]]:
    """Implement `read_tables` block by block, until the rows take more memory than the limit."""
    import pyarrow as pa

    mark = end_record(schema)[0]
    tables, size = [], 0
    for container in containers:
        for piece in _pieces(container):
            table = _decoded([piece], schema, fields, mark)
            if table.column(marked)[piece.record_count].as_py() != _MARK:
                raise damaged([container], None)
            tables.append(table.slice(0, piece.record_count))
            size += table.nbytes
            _check_memory(container, size)
    counts = [container.record_count for container in containers]
    return pa.concat_tables(tables).combine_chunks(), list(accumulate(counts[:-1], initial=0))


def _pieces(container: AvroContainer) -> Iterator[AvroContainer]:
    """Yield runs of blocks, which take at most the limit of memory as columns."""
    _, size = parsed_schema(container.metadata["avro.schema"])
    blocks = zip(container.counts, container.blocks, strict=True)
    for run in size.runs(blocks, unpacked_bytes()):
        counts, parts = zip(*run, strict=True)
        yield replace(container, record_count=sum(counts), blocks=parts, counts=counts)


def _check_room(container: AvroContainer, schema: Any) -> None:
    """Refuse records that would take far more memory than their bytes: equal ones pack well."""
    size = sum(map(len, container.blocks))
    if size <= _SMALL:
        return
    # as columns, the items of arrays take little more than their bytes
    wanted = container.record_count * _RECORD_BYTES + size * (1 if is_simple(schema) else 16)
    _check_memory(container, max(wanted, size * 8))
    if not is_simple(schema):
        if container.most_memory() * OBJECT_CELLS > unpacked_bytes():
            content = b"".join(container.blocks)
            _check_items(container, schema, content, container.record_count)
        return
    for piece in _pieces(container):
        columns = _decoded([piece], schema, schema["fields"], b"").columns
        items = sum(_items(chunk) for column in columns for chunk in column.chunks)
        wanted += items * _ITEM_BYTES
        _check_memory(container, wanted)


def _check_items(container: AvroContainer, schema: Any, data: bytes, count: int) -> None:
    try:
        check_items(schema, data, count, unpacked_bytes(), OBJECT_CELLS)
    except (ValueError, IndexError) as error:
        raise damaged([container], error) from error


def _items(array: pa.Array) -> int:
    """Return how many items the arrays in an array have, at every depth."""
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        return sum(map(_items, array.flatten()))
    if pa.types.is_large_list(array.type) or pa.types.is_list(array.type):
        return len(items := array.flatten()) + _items(items)
    return 0


def _check_memory(container: AvroContainer, wanted: int) -> None:
    if wanted > unpacked_bytes():
        raise CorruptFileError(
            f"{container.location} has {container.record_count} records, which take more memory "
            f"than the limit ({UNPACKED})",
            hint="Set that variable to more MiB if the file is sound; else read an older snapshot.",
            path=container.location,
        )


def _chosen(schema: Any, columns: Container[str] | None) -> list[Any]:
    return [f for f in schema["fields"] if columns is None or f["name"] in columns]


def _decoded(
    containers: Sequence[AvroContainer], schema: Any, fields: Sequence[Any], mark: bytes
) -> pa.Table:
    import polars as pl
    import pyarrow as pa
    from polars.exceptions import PanicException

    try:
        frame = pl.read_avro(
            BytesIO(_uncompressed(containers, schema, mark)), columns=[f["name"] for f in fields]
        )
    except (Exception, PanicException) as error:
        raise damaged(containers, error) from error
    marks = len(containers) if mark else 0
    if frame.height != sum(container.record_count for container in containers) + marks:
        raise damaged(containers, None)
    # rechunking the whole frame would use threads, which a forked process does not have
    pieces = ((one, one.n_chunks() == 1) for one in frame.iter_columns())
    return pa.table(
        {one.name: (one if whole else one.rechunk()).to_arrow() for one, whole in pieces}
    )


def _of_records(container: AvroContainer, schema: Any, fields: Sequence[Any]) -> pa.Table:
    import pyarrow as pa

    records = read_records(container, schema)
    chosen = {**schema, "fields": fields}
    try:
        rows = [_row(chosen, record) for record in records]
        return pa.Table.from_pylist(rows, pa.schema(_arrow_fields(chosen))).combine_chunks()
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise damaged([container], error) from error


def damaged(containers: Sequence[AvroContainer], error: BaseException | None) -> CorruptFileError:
    """Return the error for records that do not decode, in one of some files."""
    reason = f" ({type(error).__name__}: {reason_of(error)[:200]})" if error is not None else ""
    first = containers[0].location
    others = f" or one of the {len(containers) - 1} files read with it" if containers[1:] else ""
    return CorruptFileError(
        f"{first}{others} holds records that do not decode{reason}",
        hint="Read an older snapshot, or restore the file from a backup.",
        path=first,
    )


def _uncompressed(containers: Sequence[AvroContainer], schema: Any, mark: bytes) -> bytes:
    """Join the files to an uncompressed one of one block: polars joins blocks with threads.

    The encoded record `mark` is inserted after those of each file; empty for none.
    """
    sync = bytes(SYNC_SIZE)
    header = header_bytes({"avro.schema": compact_schema(schema), "avro.codec": "null"}, sync)
    count = sum(container.record_count for container in containers)
    count += len(containers) if mark else 0
    if not count:
        return header
    parts = [part for container in containers for part in (*container.blocks, mark)]
    return b"".join((header, encode_long(count), encode_long(sum(map(len, parts))), *parts, sync))


def _text_field(schema: Any) -> str | None:
    """Return the first field of a record that accepts a string."""
    fields = ((field["name"], field["type"]) for field in schema["fields"])
    return next((name for name, kind in fields if kind == "string" or "string" in kind), None)


def end_record(schema: Any) -> tuple[bytes, Any]:
    """Return a value that no file has, to mark where records end: encoded, and as decoded."""
    if isinstance(schema, str):
        return _ENDS[schema]
    if isinstance(schema, list):
        plain = [isinstance(branch, str) and branch != "null" for branch in schema]
        # of `null` and a `fixed`, the one that takes no bytes
        place = plain.index(True) if any(plain) else schema.index("null") if "null" in schema else 0
        encoded, value = end_record(schema[place])
        return encode_long(place) + encoded, value
    if schema["type"] == "record":
        parts = {field["name"]: end_record(field["type"]) for field in schema["fields"]}
        values = {name: value for name, (_, value) in parts.items()}
        return b"".join(encoded for encoded, _ in parts.values()), values
    if schema["type"] == "fixed":
        return bytes(schema["size"]), bytes(schema["size"])
    if schema["type"] == "enum":
        return b"\x00", schema["symbols"][0]
    return b"\x00", {} if schema["type"] == "map" else []


def is_simple(schema: Any) -> bool:
    """Return whether the fast reader supports this layout; it aborts on others."""
    if isinstance(schema, str):
        return schema in _ARROW_ALIASES
    if isinstance(schema, list):
        return len(schema) == 2 and "null" in schema and all(map(is_simple, _branches(schema)))
    if schema["type"] == "record":
        return all(is_simple(field["type"]) for field in schema["fields"])
    if schema["type"] == "array":
        return is_simple(schema["items"])
    return bool(schema["type"] == "fixed")


def _branches(schema: Any) -> list[Any]:
    union = schema if isinstance(schema, list) else [schema]
    return [branch for branch in union if branch != "null"]


def _row(schema: Any, value: Any) -> Any:
    """Convert a record for Arrow: a map with string keys becomes key-value records."""
    branches = _branches(schema)
    if value is None or not branches or not isinstance(branches[0], dict):
        return value
    kind = branches[0]
    if kind["type"] == "record":
        return {f["name"]: _row(f["type"], value[f["name"]]) for f in kind["fields"]}
    if kind["type"] == "array":
        return [_row(kind["items"], item) for item in value]
    if kind["type"] == "map":
        return [{"key": int(k), "value": _row(kind["values"], v)} for k, v in value.items()]
    return value


def _arrow_fields(schema: Any) -> list[Any]:
    import pyarrow as pa

    return [pa.field(f["name"], _arrow_type(f["type"])) for f in schema["fields"]]


def _arrow_type(schema: Any) -> pa.DataType:
    import pyarrow as pa

    branches = _branches(schema)
    if not branches:
        return pa.null()
    kind = branches[0]
    if len(branches) > 1:
        raise ValueError(f"a field has one of several types: {schema}")
    if isinstance(kind, str):
        return pa.type_for_alias(_ARROW_ALIASES[kind])
    if kind["type"] == "record":
        return pa.struct(_arrow_fields(kind))
    if kind["type"] == "array":
        return pa.large_list(_arrow_type(kind["items"]))
    if kind["type"] == "map":
        values = pa.field("value", _arrow_type(kind["values"]))
        return pa.large_list(pa.struct([pa.field("key", pa.int32()), values]))
    return pa.large_binary() if kind["type"] == "fixed" else pa.large_string()
