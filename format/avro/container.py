"""Avro object container files in memory: header, blocks, codecs.

The records of a file are decompressed, and then decoded under the schema of `avro.plain_schema`,
the same for all writers, whatever names, logical types and codec they chose; see `avro.records`.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from icecomb.format.avro.encoder import Encoder, encode_bytes, encode_long, encode_string, encoder
from icecomb.format.avro.schema import plain_schema
from icecomb.format.avro.schema_size import SchemaSize, check_items, schema_size
from icecomb.format.avro.varint import read_long
from icecomb.format.errors import (
    ConfigurationError,
    CorruptFileError,
    UnsupportedError,
    reason_of,
)
from icecomb.format.input_limit import (
    TOO_DEEP,
    UNPACKED,
    bounded_json,
    decompressed,
    too_large,
    unpacked_bytes,
)
from icecomb.format.property.table_property import MANIFEST_LEVEL

MAGIC: Final = b"Obj\x01"
SYNC_SIZE: Final = 16
_ENCRYPTED: Final = b"AGS1"
"""The first bytes of a file in an AES GCM stream (GCM stream specification)."""
_BLOCK_BYTES: Final = 64_000
_USUAL_RATIO: Final = 4
"""The usual compression ratio of a block, to allocate its buffer in one step."""

_ISAL_LEVEL: Final = 2
_HIGHEST_DEFLATE_RATIO: Final = 1032
_STEP, _LARGE_STEP = 1 << 16, 1 << 24
"""The least and the most bytes to decompress at once."""

_HIGHEST_SNAPPY_RATIO: Final = 64
"""Above what snappy's format can reach: a copy of 64 bytes takes at least two."""
_LONGEST_SNAPPY: Final = 28
"""Bits of a length before its last byte."""
Decompress: TypeAlias = Callable[[bytes, int], bytes]
"""A function of packed bytes, and of the most bytes that they may become."""


@dataclass(frozen=True, slots=True)
class AvroContainer:
    """The content of a container file, whose blocks are encoded and uncompressed."""

    location: str
    metadata: Mapping[str, bytes]
    schema: Any
    record_count: int
    blocks: tuple[bytes, ...]
    counts: tuple[int, ...]
    """The number of records of each block."""

    def most_memory(self) -> int:
        """Return about the most memory that the records take as columns, whatever they hold."""
        _, size = parsed_schema(self.metadata["avro.schema"])
        return size.most_memory(self.record_count, sum(map(len, self.blocks)))

    def text(self, key: str) -> str | None:
        """Return a metadata value as text, or None."""
        value = self.metadata.get(key)
        return None if value is None else value.decode("utf-8", "replace")


def parse_container(data: bytes, location: str) -> AvroContainer:
    """Parse a container file."""
    if not data:
        raise CorruptFileError(
            f"{location} is empty, expected an Avro file",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        )
    if data.startswith(_ENCRYPTED):
        raise UnsupportedError(
            f"{location} is encrypted: icecomb cannot read it",
            hint="Read the table by an engine that has its keys, such as Iceberg Java.",
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
        schema, size = parsed_schema(metadata["avro.schema"])
        codec = metadata.get("avro.codec", b"null").decode()
        counts, blocks = _blocks(data, at, decompressor(codec, location), schema, size)
    except (IndexError, KeyError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise CorruptFileError(
            f"{location} is a truncated or damaged Avro file ({damage_of(error)})",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise CorruptFileError(
            f"{location} holds no records",
            hint="Check that the location is that of a file of an Iceberg table.",
            path=location,
        )
    return AvroContainer(location, metadata, schema, sum(counts), blocks, counts)


@lru_cache(maxsize=64)
def parsed_schema(text: bytes) -> tuple[Any, SchemaSize]:
    """Parse a schema, which callers must not modify: a table's files share a few schemas.

    Raises:
        ValueError, RecursionError: If it is not a schema, or one beyond a limit.
    """
    schema = bounded_json(text)
    return schema, schema_size(schema)


def plain_form(
    container: AvroContainer, names: Mapping[int, str], *, fixed_as_bytes: bool = False
) -> Any:
    """Return the plain form of a file's schema; see `avro.plain_schema`."""
    try:
        text = container.metadata["avro.schema"]
        return _plain_of(text, tuple(names.items()), fixed_as_bytes=fixed_as_bytes)
    except (
        KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise CorruptFileError(
            f"{container.location} has a schema that is not an Avro schema "
            f"({type(error).__name__}: {reason_of(error)})",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=container.location,
        ) from error


@lru_cache(maxsize=64)
def _plain_of(text: bytes, names: tuple[tuple[int, str], ...], *, fixed_as_bytes: bool) -> Any:
    return plain_schema(parsed_schema(text)[0], dict(names), fixed_as_bytes=fixed_as_bytes)


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The encoding of the records of a schema, reusable for any number of files."""

    schema: str
    encode: Encoder

    @classmethod
    def of(cls, schema: Any, plain: Any) -> RecordForm:
        """Return the form of a schema; records use the names of `plain`, see `avro.encoder`."""
        return cls(compact_schema(schema), encoder(plain))


class ContainerWriter:
    """A writer of a container file in memory, with a random sync marker by default.

    `codec` is a value of Iceberg's `write.manifest.compression-codec`.
    """

    def __init__(
        self,
        form: RecordForm,
        metadata: Mapping[str, str],
        *,
        codec: str = "gzip",
        level: int | None = None,
        sync: bytes | None = None,
    ) -> None:
        name, self._compress = compressor(codec, level)
        self._sync = os.urandom(SYNC_SIZE) if sync is None else sync
        self._encode = form.encode
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._out = BytesIO()
        self._metadata = {"avro.schema": form.schema, "avro.codec": name, **metadata}
        self._header = self._out.write(header_bytes(self._metadata, self._sync))

    def add(self, record: Mapping[str, Any]) -> None:
        """Append one record."""
        self.add_encoded(self._encode(record))

    def add_encoded(self, encoded: bytes) -> None:
        """Append one encoded record."""
        self._block.append(encoded)
        self._block_bytes += len(encoded)
        if self._block_bytes >= _BLOCK_BYTES:
            self._flush()

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """Encode one record for `pack`, without appending it."""
        return self._encode(record)

    def pack(self, records: Iterable[bytes]) -> bytes:
        """Compress encoded records to a block for `add_block`, without appending it."""
        return self._compress(b"".join(records))

    def add_block(self, count: int, packed: bytes) -> None:
        """Append a block of `count` records, packed for any file of this schema and codec."""
        self._flush()
        self._out.write(encode_long(count) + encode_bytes(packed))
        self._out.write(self._sync)

    def size(self) -> int:
        """Return the length of the file so far, without the records not yet compressed."""
        return self._out.tell()

    def finish(self, metadata: Mapping[str, str] = MappingProxyType({})) -> bytes:
        """Return the whole file, with more metadata, which was not known before."""
        self._flush()
        if not metadata:
            return self._out.getvalue()
        header = header_bytes({**self._metadata, **metadata}, self._sync)
        return b"".join((header, self._out.getbuffer()[self._header :]))

    def _flush(self) -> None:
        if self._block:
            block, self._block, self._block_bytes = self._block, [], 0
            self.add_block(len(block), self.pack(block))


def read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    """Parse the metadata of a file; return it with the offset of the sync marker after it.

    It raises IndexError or ValueError if the bytes end too early, or are not metadata.
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


def damage_of(error: BaseException) -> str:
    """Return in words why a parser failed."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    if isinstance(error, MemoryError):
        return f"there is no memory for it; the limit is {UNPACKED}"
    return str(error) or type(error).__name__


def _blocks(
    data: bytes, at: int, decompress: Decompress, schema: Any, size: SchemaSize
) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
    if size.has_empty_items:  # manifests and lists have none
        raise ValueError("its schema has items that take no bytes")
    sync = _slice(data, at, SYNC_SIZE)
    at += SYNC_SIZE
    counts, parts, most = [], [], unpacked_bytes()
    room = most
    while at < len(data):
        count, at = read_long(data, at)
        block, at = _read_bytes(data, at)
        if count < 0 or _slice(data, at, SYNC_SIZE) != sync:
            raise ValueError("a block does not end where it should")
        at += SYNC_SIZE
        counts.append(count)
        part = decompress(block, room)
        parts.append(part)
        room -= len(part)
        size.check_count(count, len(part))
        if size.most_memory(count, len(part)) > most:
            check_items(plain_schema(schema, {}), part, count, most)
    return tuple(counts), tuple(parts)


def header_bytes(metadata: Mapping[str, str], sync: bytes) -> bytes:
    """Return the start of a container file: magic number, metadata and sync marker."""
    parts = [MAGIC, encode_long(len(metadata))]
    for key, value in metadata.items():
        parts += (encode_string(key), encode_string(value))
    return b"".join((*parts, encode_long(0), sync))


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    return _slice(data, at, size), at + size


def _slice(data: bytes, at: int, size: int) -> bytes:
    if size < 0 or at + size > len(data):
        raise ValueError("it ends too early")
    return data[at : at + size]


def compact_schema(schema: Any) -> str:
    """Return a schema as the text written in a file."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def decompressor(codec: str, location: str) -> Decompress:
    """Return the function that decompresses a block, given its largest size in bytes.

    It raises ValueError if the block is damaged, or larger.
    """
    if codec == "null":
        return _unchanged
    if codec == "deflate":
        return inflated
    if codec == "bzip2":
        import bz2

        return lambda block, room: decompressed(bz2.BZ2Decompressor(), block, room)
    if codec == "xz":
        import lzma

        return lambda block, room: decompressed(lzma.LZMADecompressor(), block, room)
    if codec == "zstandard":
        return lambda block, room: unpacked(block, "zstd", room)
    if codec == "snappy":
        return _snappy
    raise UnsupportedError(
        f"{location} has the unknown Avro codec {codec!r}",
        hint="Write the file again with one of null, deflate, bzip2, xz, zstandard or snappy.",
        path=location,
    )


def compressor(codec: str, level: int | None) -> tuple[str, Callable[[bytes], bytes]]:
    """Return the codec's name in the file's metadata, and the function that compresses a block.

    `codec` is a value of Iceberg's `write.manifest.compression-codec`.
    """
    kind = codec.lower()
    if kind in ("uncompressed", "none"):
        return "null", bytes
    if kind == "gzip":
        if level is None:
            return "deflate", _deflate
        own = _in_range("gzip", level, -1, zlib.Z_BEST_COMPRESSION)

        def deflate(block: bytes) -> bytes:
            packer = zlib.compressobj(own, wbits=-zlib.MAX_WBITS)
            return packer.compress(block) + packer.flush()

        return "deflate", deflate
    if kind == "zstd":
        import pyarrow as pa

        bounds = pa.Codec.minimum_compression_level, pa.Codec.maximum_compression_level
        own = _in_range("zstd", 1 if level is None else level, *(find("zstd") for find in bounds))
        zstd = pa.Codec("zstd", compression_level=own)
        return "zstandard", lambda block: zstd.compress(block, asbytes=True)
    if kind == "snappy":
        import pyarrow as pa

        def snappy(block: bytes) -> bytes:
            packed: bytes = pa.compress(block, codec="snappy", asbytes=True)
            return packed + zlib.crc32(block).to_bytes(4, "big")

        return "snappy", snappy
    raise UnsupportedError(
        f"Unknown compression codec {codec!r}", hint="Use gzip, zstd, snappy or uncompressed."
    )


def _in_range(codec: str, level: int, least: int, most: int) -> int:
    if not least <= level <= most:
        raise ConfigurationError(
            f"The compression level of {codec} cannot be {level}",
            hint=f"{MANIFEST_LEVEL} may be a whole number from {least} to {most} for it.",
            property=MANIFEST_LEVEL.key,
        )
    return level


def _deflate(block: bytes) -> bytes:
    # as good as zlib's level 1 in a quarter of the time
    from isal import isal_zlib

    return isal_zlib.compress(block, _ISAL_LEVEL, -zlib.MAX_WBITS)


def inflated(block: bytes, room: int) -> bytes:
    """Decompress raw deflate data (RFC 1951); ValueError if damaged or beyond `room` bytes."""
    # twice as fast as zlib
    from isal import igzip_lib, isal_zlib

    if len(block) * _HIGHEST_DEFLATE_RATIO > room:
        return decompressed(zlib.decompressobj(-zlib.MAX_WBITS), block, room)
    try:
        return isal_zlib.decompress(block, -zlib.MAX_WBITS, max(len(block) * _USUAL_RATIO, 1))
    except igzip_lib.IsalError as error:  # type: ignore[misc]  # a class, unlike its stub says
        raise ValueError(str(error)) from error


def unpacked(data: bytes, codec: str, room: int) -> bytes:
    """Decompress data of a codec of pyarrow; ValueError if damaged or beyond `room` bytes."""
    import pyarrow as pa

    parts, size = [], 0
    step = min(max(len(data) * _USUAL_RATIO, _STEP), _LARGE_STEP)
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            while part := stream.read(step):
                size += len(part)
                if size > room:
                    raise ValueError(too_large())
                parts.append(part)
    except OSError as error:
        raise ValueError(str(error)) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unchanged(block: bytes, room: int) -> bytes:
    del room  # it is in memory already
    return bytes(block)


def _snappy(block: bytes, room: int) -> bytes:
    content = unsnapped(block[:-4], room)
    if zlib.crc32(content).to_bytes(4, "big") != block[-4:]:
        raise ValueError("a block has a wrong checksum")
    return content


def unsnapped(data: bytes, room: int) -> bytes:
    """Decompress snappy's raw format, which states its length first.

    It raises ValueError if the data is damaged, or becomes more than `room` bytes.
    """
    import pyarrow as pa

    size = shift = at = 0
    while True:
        if at == len(data):
            raise ValueError("a block states no length")
        if shift > _LONGEST_SNAPPY:
            raise ValueError("a block states 4 GiB or more, more than it can hold")
        byte = data[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if size > len(data) * _HIGHEST_SNAPPY_RATIO:
        raise ValueError(f"a block states {size} bytes, more than it can hold")
    if size > room:
        raise ValueError(too_large())
    try:
        return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True))
    except OSError as error:
        raise ValueError(str(error)) from error
