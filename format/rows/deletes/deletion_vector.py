"""The bytes of deletion vectors: Puffin blobs of type `deletion-vector-v1` (spec: Puffin).

A blob is the length of what follows but the checksum, a magic, the deleted positions of one data
file as a Roaring bitmap, and the CRC-32 of magic and bitmap.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from icecomb.format.arrow.number_view import Longs
from icecomb.format.errors import ValidationError
from icecomb.format.rows.deletes.roaring_bitmap import (
    GREATEST,
    DamagedBitmapError,
    decode_bitmap,
    encode_bitmap,
    least_length,
)

BLOB_TYPE: Final = "deletion-vector-v1"
"""The type of such blobs in the footer of their Puffin file."""
REFERENCED_DATA_FILE: Final = "referenced-data-file"
"""The property of such a blob that names its data file."""

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_HEAD: Final = struct.Struct(">I4s")
_CHECKSUM: Final = struct.Struct(">I")
_MOST_BYTES: Final = (1 << 31) - 1


class DamagedVectorError(ValueError):
    """Bytes are not a valid deletion vector; the message says why, without a subject."""


def decode_vector(blob: bytes, cardinality: int) -> Longs:
    """Return the positions of a deletion vector, ascending; its manifest states their number.

    It raises DamagedVectorError if the blob is damaged, or has another number of positions.
    """
    content = memoryview(blob)
    covered = len(content) - _CHECKSUM.size
    if covered < _HEAD.size:
        raise DamagedVectorError(f"has {len(content)} bytes, too few for a vector")
    length, magic = _HEAD.unpack_from(content)
    if length != covered - _CHECKSUM.size:
        raise DamagedVectorError(f"states a length of {length}, not {covered - _CHECKSUM.size}")
    if magic != _MAGIC:
        raise DamagedVectorError(f"has the magic {magic.hex()}, not {_MAGIC.hex()}")
    if _CHECKSUM.unpack_from(content, covered)[0] != zlib.crc32(content[4:covered]):
        raise DamagedVectorError("has another checksum than its bytes")
    try:
        return decode_bitmap(content[_HEAD.size : covered], cardinality)
    except DamagedBitmapError as problem:
        raise DamagedVectorError(str(problem)) from None


def encode_vector(positions: Longs) -> bytes:
    """Return the blob of a deletion vector, with the bytes that Iceberg Java writes.

    The positions must be ascending and distinct; at least one.
    """
    if not len(positions) or positions[0] < 0 or not (positions[1:] > positions[:-1]).all():
        raise ValidationError(
            "The positions of a deletion vector must be distinct, ascending and not negative",
            hint="Sort them, and name each position once.",
        )
    greatest = int(positions[-1])
    if greatest > GREATEST or least_length(greatest) > _MOST_BYTES:
        raise ValidationError(
            f"No deletion vector can hold position {greatest}",
            hint="No data file has that position: check where it comes from.",
        )
    covered = _MAGIC + encode_bitmap(positions)
    if len(covered) + 8 > _MOST_BYTES:
        raise ValidationError(
            f"A deletion vector of {len(positions)} positions would have more than 2 GiB",
            hint="Rewrite the data file without these rows.",
        )
    checksum = _CHECKSUM.pack(zlib.crc32(covered))
    return struct.pack(">I", len(covered)) + covered + checksum
