"""Compression of the blocks of Avro files (Avro specification: Required and Optional Codecs)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

from icecomb.format.errors import UnsupportedError
from icecomb.format.input_limit import decompressed, too_large

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

        def deflate(block: bytes) -> bytes:
            packer = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
            return packer.compress(block) + packer.flush()

        return "deflate", deflate
    if kind == "zstd":
        import pyarrow as pa

        zstd = pa.Codec("zstd", compression_level=1 if level is None else level)
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
