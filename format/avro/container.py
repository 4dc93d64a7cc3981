"""Avro object container files in memory: header, blocks, codecs.

The records of a file are unpacked, and are then decoded under the schema of `avro.plain_schema`:
the same for all writers, whatever names, logical types and codec they chose.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from icecomb.format.avro.codec import compressor, decompressor
from icecomb.format.avro.encoder import Encoder, encode_bytes, encode_long, encode_string, encoder
from icecomb.format.avro.schema import plain_schema
from icecomb.format.errors import CorruptFileError, reason_of

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC: Final = b"Obj\x01"
SYNC_SIZE: Final = 16
_BLOCK_BYTES: Final = 64_000
_ZEROS: Final = {
    "null": b"",
    "boolean": bytes(1),
    "int": bytes(1),
    "long": bytes(1),
    "float": bytes(4),
    "double": bytes(8),
    "bytes": bytes(1),
}
_MARK: Final = uuid4().hex
"""A text that no file has: records of it tell whether those before them end where they should."""
_ARROW_ALIASES: Final = {
    "boolean": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "large_binary",
    "string": "large_string",
}


@dataclass(frozen=True, slots=True)
class AvroContainer:
    """The content of a container file.

    Attributes:
        location: Where it was read.
        metadata: The file's key-value metadata.
        schema: The writer's schema as JSON values.
        record_count: How many records there are.
        blocks: All records, encoded and uncompressed.
    """

    location: str
    metadata: Mapping[str, bytes]
    schema: Any
    record_count: int
    blocks: tuple[bytes, ...]

    def text(self, key: str) -> str | None:
        """A metadata value as text, or None."""
        value = self.metadata.get(key)
        return None if value is None else value.decode("utf-8", "replace")


def parse_container(data: bytes, location: str) -> AvroContainer:
    """Take a container file apart.

    Raises:
        CorruptFileError: It is empty, no Avro file, cut short, or damaged.
        UnsupportedError: The codec is unknown.
    """
    if not data:
        raise CorruptFileError(
            f"{location} is empty, expected an Avro file",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        )
    if not data.startswith(MAGIC):
        raise CorruptFileError(
            f"{location} is not an Avro file",
            hint="Check that the location is right; if so, restore the file from a backup.",
            path=location,
        )
    try:
        metadata, at = read_header(data)
        schema = _parsed(metadata["avro.schema"])
        codec = metadata.get("avro.codec", b"null").decode()
        count, blocks = _blocks(data, at, decompressor(codec, location))
    except (IndexError, KeyError, ValueError, OSError, zlib.error) as error:
        raise CorruptFileError(
            f"{location} is a truncated or damaged Avro file ({error or type(error).__name__})",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise CorruptFileError(
            f"{location} holds no records",
            hint="Check that the location is that of a file of an Iceberg table.",
            path=location,
        )
    return AvroContainer(location, metadata, schema, count, blocks)


@lru_cache(maxsize=64)
def _parsed(text: bytes) -> Any:
    """The files of a table have the same few schemas; nobody changes what this gives."""
    return json.loads(text)


def plain_form(
    container: AvroContainer, names: Mapping[int, str], *, fixed_as_bytes: bool = False
) -> Any:
    """The plain form of a file's schema; see `avro.plain_schema`.

    Raises:
        CorruptFileError: The schema is no Avro schema.
    """
    try:
        text = container.metadata["avro.schema"]
        return _plain_of(text, tuple(names.items()), fixed_as_bytes=fixed_as_bytes)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            f"{container.location} has a schema that is no Avro schema "
            f"({type(error).__name__}: {reason_of(error)})",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=container.location,
        ) from error


@lru_cache(maxsize=64)
def _plain_of(text: bytes, names: tuple[tuple[int, str], ...], *, fixed_as_bytes: bool) -> Any:
    return plain_schema(_parsed(text), dict(names), fixed_as_bytes=fixed_as_bytes)


def read_records(container: AvroContainer, schema: Any) -> list[dict[str, Any]]:
    """Decode all records as dictionaries; see `read_tables` of where they must end.

    Args:
        container: The file.
        schema: The plain form of its schema.

    Raises:
        CorruptFileError: The records do not decode.
    """
    import fastavro

    marked = _text_field(schema) if is_simple(schema) else None
    mark = b"" if marked is None else _filler(schema)
    try:
        records: list[Any] = list(
            fastavro.reader(BytesIO(_uncompressed([container], schema, mark)))
        )
    except Exception as error:  # damaged bytes surface as errors of many kinds
        raise _damaged([container], error) from error
    if marked is not None and records.pop()[marked] != _MARK:
        raise _damaged([container], None)
    return records


def fits_exactly(container: AvroContainer, schema: Any) -> bool:
    """Whether the records end where the file's content does, read under this plain schema."""
    import fastavro

    content = b"".join(container.blocks)
    body, parsed = BytesIO(content), fastavro.parse_schema(schema)
    try:
        for _ in range(container.record_count):
            fastavro.schemaless_reader(body, parsed, None)
    except Exception:  # noqa: BLE001 - bytes of another layout surface as errors of many kinds
        return False
    return body.tell() == len(content)


def read_table(
    container: AvroContainer, schema: Any, columns: Container[str] | None = None
) -> pa.Table:
    """Decode all records into Arrow columns, one chunk each.

    Args:
        container: The file.
        schema: The plain form of its schema.
        columns: Which fields of the records to decode, the others are skipped; None is all.

    Raises:
        CorruptFileError: The records do not decode.
    """
    if is_simple(schema):
        return _decoded([container], schema, _chosen(schema, columns), b"")
    return _of_records(container, schema, _chosen(schema, columns))


def read_tables(
    containers: Sequence[AvroContainer],
    schema: Any,
    marked: str,
    columns: Container[str] | None = None,
) -> tuple[pa.Table, list[int]]:
    """Decode all records of some files of one schema, one file after the other; see `read_table`.

    A record follows those of each file and must be found there: it would not if they ended
    elsewhere than the file does, or ran over into the next one.

    Args:
        containers: The files.
        schema: The plain form of their schema.
        marked: A field of text that is decoded.
        columns: As for `read_table`.

    Returns:
        The rows, and where those of each file begin; a row of no file may stand behind them.

    Raises:
        CorruptFileError: The records of a file do not decode.
    """
    import pyarrow as pa

    fields = _chosen(schema, columns)
    counts = [container.record_count for container in containers]
    if not is_simple(schema) or marked not in {field["name"] for field in fields}:
        tables = [_of_records(container, schema, fields) for container in containers]
        table = pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]
        return table, list(accumulate(counts[:-1], initial=0))
    table = _decoded(containers, schema, fields, _filler(schema))
    starts = list(accumulate((count + 1 for count in counts), initial=0))
    texts = table.column(marked)
    if any(texts[start - 1].as_py() != _MARK for start in starts[1:]):
        raise _damaged(containers, None)
    return table, starts[:-1]


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
        raise _damaged(containers, error) from error
    marks = len(containers) if mark else 0
    if frame.height != sum(container.record_count for container in containers) + marks:
        raise _damaged(containers, None)
    # Not of the whole frame: that would use threads, which a forked process does not have.
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
        raise _damaged([container], error) from error


@dataclass(frozen=True, slots=True)
class RecordForm:
    """How the records of a schema are written: made once, it serves any number of files.

    Attributes:
        schema: The schema as files state it.
        encode: Encodes a record.
    """

    schema: str
    encode: Encoder

    @classmethod
    def of(cls, schema: Any, plain: Any) -> RecordForm:
        """The form of a schema.

        Args:
            schema: The schema.
            plain: Its plain form; the records use the names in there, as `avro.encoder` says.
        """
        return cls(_compact(schema), encoder(plain))


class ContainerWriter:
    """A container file in the making.

    Args:
        form: What the records are.
        metadata: Further key-value metadata.
        codec: A value of Iceberg's `write.manifest.compression-codec`.
        level: The compression level; None is the codec's usual one.
    """

    def __init__(
        self,
        form: RecordForm,
        metadata: Mapping[str, str],
        *,
        codec: str = "gzip",
        level: int | None = None,
    ) -> None:
        name, self._compress = compressor(codec, level)
        self._sync = os.urandom(SYNC_SIZE)
        self._encode = form.encode
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._out = BytesIO()
        texts = {"avro.schema": form.schema, "avro.codec": name, **metadata}
        self._out.write(header_bytes(texts, self._sync))

    def add(self, record: Mapping[str, Any]) -> None:
        """Append one record."""
        self.add_encoded(self._encode(record))

    def add_encoded(self, encoded: bytes) -> None:
        """Append one record that is encoded already."""
        self._block.append(encoded)
        self._block_bytes += len(encoded)
        if self._block_bytes >= _BLOCK_BYTES:
            self._flush()

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """One record, for `pack`; nothing is appended."""
        return self._encode(record)

    def pack(self, records: Iterable[bytes]) -> bytes:
        """Encoded records as the content of a block, for `add_block`; nothing is appended."""
        return self._compress(b"".join(records))

    def add_block(self, count: int, packed: bytes) -> None:
        """Append a block of so many records, packed for any file of this schema and codec."""
        self._flush()
        self._out.write(encode_long(count) + encode_bytes(packed))
        self._out.write(self._sync)

    def size(self) -> int:
        """The length of the file so far, not counting what is not compressed yet."""
        return self._out.tell()

    def finish(self) -> bytes:
        """The whole file."""
        self._flush()
        return self._out.getvalue()

    def _flush(self) -> None:
        if self._block:
            block, self._block, self._block_bytes = self._block, [], 0
            self.add_block(len(block), self.pack(block))


def _damaged(containers: Sequence[AvroContainer], error: BaseException | None) -> CorruptFileError:
    reason = f" ({type(error).__name__}: {reason_of(error)[:200]})" if error is not None else ""
    first = containers[0].location
    others = f" or one of the {len(containers) - 1} files read with it" if containers[1:] else ""
    return CorruptFileError(
        f"{first}{others} holds records that do not decode{reason}",
        hint="Read an older snapshot, or restore the file from a backup.",
        path=first,
    )


def read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    """The metadata at the beginning of a file, and where the marker behind it stands.

    Raises:
        IndexError: The bytes end before it.
        ValueError: They do, or are no metadata.
    """
    metadata: dict[str, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = read_long(data, at)
        if count == 0:
            return metadata, at
        if count < 0:
            count = -count
            _, at = read_long(data, at)
        for _ in range(count):
            key, at = _read_bytes(data, at)
            metadata[key.decode()], at = _read_bytes(data, at)


def _blocks(
    data: bytes, at: int, decompress: Callable[[bytes], bytes]
) -> tuple[int, tuple[bytes, ...]]:
    sync = _slice(data, at, SYNC_SIZE)
    at += SYNC_SIZE
    total, parts = 0, []
    while at < len(data):
        count, at = read_long(data, at)
        block, at = _read_bytes(data, at)
        if count < 0 or _slice(data, at, SYNC_SIZE) != sync:
            raise ValueError("a block does not end where it should")
        at += SYNC_SIZE
        total += count
        parts.append(decompress(block))
    return total, tuple(parts)


def _uncompressed(containers: Sequence[AvroContainer], schema: Any, mark: bytes) -> bytes:
    """The files as one without compression, of one block: polars joins blocks by threads.

    Args:
        containers: The files.
        schema: The plain form of their schema.
        mark: A record that follows those of each file; empty for none.
    """
    sync = bytes(SYNC_SIZE)
    header = header_bytes({"avro.schema": _compact(schema), "avro.codec": "null"}, sync)
    count = sum(container.record_count for container in containers)
    count += len(containers) if mark else 0
    if not count:
        return header
    parts = [part for container in containers for part in (*container.blocks, mark)]
    return b"".join((header, encode_long(count), encode_long(sum(map(len, parts))), *parts, sync))


def _text_field(schema: Any) -> str | None:
    """The first field of a record that takes a text."""
    fields = ((field["name"], field["type"]) for field in schema["fields"])
    return next((name for name, kind in fields if kind == "string" or "string" in kind), None)


def _filler(schema: Any) -> bytes:
    """A value of a simple schema: null, nothing or zero, and `_MARK` where there is text."""
    if isinstance(schema, str):
        return encode_string(_MARK) if schema == "string" else _ZEROS[schema]
    if isinstance(schema, list):
        place = schema.index("string" if "string" in schema else "null")
        return encode_long(place) + _filler(schema[place])
    if schema["type"] == "record":
        return b"".join(_filler(field["type"]) for field in schema["fields"])
    return bytes(schema["size"]) if schema["type"] == "fixed" else b"\x00"


def header_bytes(metadata: Mapping[str, str], sync: bytes) -> bytes:
    """How a container file begins: magic number, metadata and the marker between its blocks."""
    parts = [MAGIC, encode_long(len(metadata))]
    for key, value in metadata.items():
        parts += (encode_string(key), encode_string(value))
    return b"".join((*parts, encode_long(0), sync))


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it.

    Raises:
        IndexError: The bytes end before it does.
        ValueError: It is too long.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    return _slice(data, at, size), at + size


def _slice(data: bytes, at: int, size: int) -> bytes:
    if size < 0 or at + size > len(data):
        raise ValueError("it ends too early")
    return data[at : at + size]


def _compact(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def is_simple(schema: Any) -> bool:
    """Whether the fast reader knows this layout: it aborts on the ones it does not."""
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
    """A record that Arrow takes: a map with text keys becomes key-value records."""
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
