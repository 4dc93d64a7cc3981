"""The bytes of deletion vectors: Puffin blobs of type `deletion-vector-v1` (spec: Puffin).

A blob is the length of what follows but the checksum, a magic, the deleted positions of one data
file as a Roaring bitmap, and the CRC-32 of magic and bitmap.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

from icecomb.format.arrow.number_view import Longs
from icecomb.format.errors import (
    CorruptFileError,
    NoSuchFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.input_limit import UNPACKED, unpacked_bytes
from icecomb.format.lru import ReadOnce
from icecomb.format.rows.deletes.roaring_bitmap import (
    GREATEST,
    DamagedBitmapError,
    decode_bitmap,
    encode_bitmap,
    least_length,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icecomb.format.arrow.number_view import Longs
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.storage.file_io import FileIO


_NEAR: Final = 64 << 10
_FAR: Final = 1 << 20
"""What is read at once, in bytes: at least so much where a request takes long."""
_KEPT: Final = 8
_PIECE: Final = 16 << 20
_POSITION_BYTES: Final = 8


class VectorReader:
    """A reader of deletion vectors.

    A Puffin file may hold the vectors of many data files: more than one vector is read at once, and
    kept for the next ones, at most 8 MiB in all.
    """

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._kept = ReadOnce[str, tuple[int, bytes]](_KEPT, _share)

    def of(self, path: str, vectors: Sequence[DataFile]) -> Longs:
        """Return the deleted positions of a data file, ascending; it must have one vector."""
        first, *others = vectors
        if others:
            raise several_vectors(path, first, others[0])
        if first.referenced_data_file != path:
            raise damaged_vector(first, f"is not that of {path}, to which it is applied")
        return self.positions(first)

    def positions(self, vector: DataFile) -> Longs:
        """Return the positions of a deletion vector, as its manifest describes it, ascending."""
        check_stated_rows(vector)
        try:
            return decode_vector(self._blob(vector), vector.record_count)
        except DamagedVectorError as problem:
            if vector.key_metadata is not None:
                raise UnsupportedError(
                    f"The deletion vector of data file {vector.referenced_data_file} in "
                    f"{vector.file_path} is encrypted",
                    hint="Read the table by an engine that has its keys.",
                    path=vector.file_path,
                    data_file=vector.referenced_data_file,
                ) from problem
            raise damaged_vector(vector, str(problem)) from problem

    def _blob(self, vector: DataFile) -> bytes:
        path, offset, length = vector.identity
        if offset is None or length is None or offset < 0 or length < 0:
            raise damaged_vector(vector, f"states offset {offset} and length {length}")
        end = offset + length
        size = vector.file_size_in_bytes
        if end > size:
            raise damaged_vector(vector, f"ends at byte {end} of a file of {size}")

        def read() -> tuple[int, bytes]:
            least = _FAR if self._io.served_by(path).has_slow_requests else _NEAR
            return offset, self._range(vector, offset, max(end, min(offset + least, size)))

        def fits(held: tuple[int, bytes]) -> bool:
            return held[0] <= offset and end <= held[0] + len(held[1])

        start, known = self._kept.of(path, read, fits)
        blob = known[offset - start : end - start]
        if len(blob) < length:
            raise damaged_vector(vector, f"ends at byte {end} of a file of {start + len(known)}")
        return blob

    def _range(self, vector: DataFile, start: int, end: int) -> bytes:
        pieces = []
        try:
            with self._io.open_input(vector.file_path, vector.file_size_in_bytes) as stream:
                # a local file cannot seek to an offset beyond all files
                if start > stream.size():
                    return b""
                stream.seek(start)
                # in pieces, as memory is allocated for what a damaged manifest states
                while start < end and (piece := stream.read(min(end - start, _PIECE))):
                    pieces.append(piece)
                    start += len(piece)
        except (CorruptFileError, NoSuchFileError) as problem:
            raise type(problem)(
                f"The deletion vector of data file {vector.referenced_data_file} cannot be read: "
                f"{problem.message}",
                hint=problem.hint,
                path=vector.file_path,
                data_file=vector.referenced_data_file,
            ) from problem
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _share(held: tuple[int, bytes]) -> int:
    """Return how many entries of the cache a range counts for: too many if it is long."""
    return 1 if len(held[1]) <= _FAR else _KEPT + 1


def check_stated_rows(vector: DataFile, rows: int = -1) -> None:
    """Check how many rows a vector is said to delete: memory is asked for as many.

    Args:
        vector: The vector, as its manifest describes it.
        rows: The number of rows of its data file; negative if unknown.

    Raises:
        CorruptFileError: If there are more than the file's, or than fit into `UNPACKED`.
    """
    stated = vector.record_count
    if 0 <= rows < stated:
        raise damaged_vector(vector, f"states {stated} deleted rows of a file of {rows}")
    if stated * _POSITION_BYTES > unpacked_bytes():
        raise damaged_vector(
            vector, f"states {stated} deleted rows, more than the limit allows ({UNPACKED})"
        )


def damaged_vector(vector: DataFile, problem: str) -> CorruptFileError:
    """Return the error for a deletion vector; `problem` is the end of a sentence about it."""
    return CorruptFileError(
        f"The deletion vector of data file {vector.referenced_data_file} in {vector.file_path} "
        f"(offset {vector.content_offset}) {problem}",
        hint="Read an older snapshot, or restore the file from a backup.",
        path=vector.file_path,
        data_file=vector.referenced_data_file,
    )


def several_vectors(path: str, first: DataFile, second: DataFile) -> CorruptFileError:
    """Return the error for a data file with more than one deletion vector."""
    both = (f"{one.file_path} (offset {one.content_offset})" for one in (first, second))
    return CorruptFileError(
        f"Data file {path} has several deletion vectors: {' and '.join(both)}",
        hint="A writer damaged the table: read an older snapshot, or roll back to it.",
        path=second.file_path,
        data_file=path,
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
