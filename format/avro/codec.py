"""Compression of the blocks of Avro files (Avro specification: Required and Optional Codecs)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from icecomb.format.errors import UnsupportedError

_USUAL_RATIO: Final = 4
"""The usual compression ratio of a block, to allocate its buffer in one step."""

_ISAL_LEVEL: Final = 2

_HIGHEST_SNAPPY_RATIO: Final = 64
"""Above what snappy's format can reach: a copy of 64 bytes takes at least two."""


def decompressor(codec: str, location: str) -> Callable[[bytes], bytes]:
    """Return the function that decompresses a block.

    Args:
        codec: Name of the codec in the file's metadata.
        location: The file, for messages.

    Raises:
        UnsupportedError: If there is no such codec.
    """
    if codec == "null":
        return bytes
    if codec == "deflate":
        return _inflate
    if codec == "bzip2":
        import bz2

        return bz2.decompress
    if codec == "xz":
        import lzma

        return lzma.decompress
    if codec == "zstandard":
        return _zstandard
    if codec == "snappy":
        return _snappy
    raise UnsupportedError(
        f"{location} has the unknown Avro codec {codec!r}",
        hint="Write the file again with one of null, deflate, bzip2, xz, zstandard or snappy.",
        path=location,
    )


def compressor(codec: str, level: int | None) -> tuple[str, Callable[[bytes], bytes]]:
    """Return the codec's name in the file's metadata, and the function that compresses a block.

    Args:
        codec: A value of Iceberg's `write.manifest.compression-codec`.
        level: Compression level; None = the codec's default.

    Raises:
        UnsupportedError: If there is no such codec.
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
        f"Unknown compression codec {codec!r}", hint="use gzip, zstd, snappy or uncompressed"
    )


def _deflate(block: bytes) -> bytes:
    # as good as zlib's level 1 in a quarter of the time
    from isal import isal_zlib

    return isal_zlib.compress(block, _ISAL_LEVEL, -zlib.MAX_WBITS)


def _inflate(block: bytes) -> bytes:
    # twice as fast as zlib
    from isal import igzip_lib, isal_zlib

    room = max(len(block) * _USUAL_RATIO, 1)
    try:
        return isal_zlib.decompress(block, -zlib.MAX_WBITS, room)
    except igzip_lib.IsalError as error:  # type: ignore[misc]  # a class, unlike its stub says
        raise zlib.error(str(error)) from error


def _zstandard(block: bytes) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read())


def _snappy(block: bytes) -> bytes:
    import pyarrow as pa

    # an unsigned length precedes the content, and a checksum follows it
    size = shift = at = 0
    while True:
        byte = block[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if size > len(block) * _HIGHEST_SNAPPY_RATIO:
        raise ValueError(f"a block states {size} bytes, more than it can hold")
    content: bytes = pa.decompress(block[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(content).to_bytes(4, "big") != block[-4:]:
        raise ValueError("a block has a wrong checksum")
    return content
