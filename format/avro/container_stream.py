"""Block-wise reader of Avro container files that may be too large for memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, runtime_checkable

from icecomb.format.avro.container import (
    MAGIC,
    SYNC_SIZE,
    damage_of,
    decompressor,
    parsed_schema,
    read_header,
)
from icecomb.format.avro.varint import read_long
from icecomb.format.errors import CorruptFileError
from icecomb.format.input_limit import unpacked_bytes

_CHUNK: Final = 1 << 18
_LONGEST_LONG: Final = 10
_PIECE: Final = 16 << 20


class ByteSource(Protocol):
    """A sequential source of bytes."""

    def read(self, nbytes: int, /) -> bytes:
        """Read at most `nbytes` bytes; none at the end."""


@runtime_checkable
class SeekableSource(ByteSource, Protocol):
    """A source of bytes that can skip some."""

    def seek(self, position: int, /) -> int | None:
        """Move to a position from the beginning."""

    def tell(self) -> int:
        """Return the position."""


class ContainerStream:
    """A sequential reader of the blocks of a container file, from its beginning."""

    def __init__(self, source: ByteSource, location: str, chunk: int = _CHUNK) -> None:
        self._source = source
        self._chunk = chunk
        self._location = location
        self._data = b""
        self._at = 0
        self._ended = False
        metadata = self._header()
        try:
            self.schema: Any
            self.schema, self.size = parsed_schema(metadata["avro.schema"])
            codec = metadata.get("avro.codec", b"null").decode()
        except (KeyError, ValueError, RecursionError) as problem:
            raise self._damaged(problem) from problem
        if not isinstance(self.schema, dict) or self.schema.get("type") != "record":
            raise CorruptFileError(
                f"Avro file {location} holds no records",
                hint="Check that the location is that of a file of an Iceberg table.",
                path=location,
            )
        self._decompress = decompressor(codec, location)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number of records of each block and their bytes, uncompressed."""
        self._fill(SYNC_SIZE)
        sync, room = self._take(SYNC_SIZE), unpacked_bytes()
        while True:
            self._fill(2 * _LONGEST_LONG)
            if self._at == len(self._data):
                return
            count, size = self._long(), self._long()
            if count < 0 or size < 0:
                raise self._damaged(ValueError("a length is negative"))
            self._fill(size + SYNC_SIZE)
            block = self._take(size)
            if self._take(SYNC_SIZE) != sync:
                raise self._damaged(ValueError("a block does not end where it should"))
            try:
                unpacked = self._decompress(block, room)
                self.size.check_count(count, len(unpacked))
            except (ValueError, IndexError, OSError, MemoryError) as problem:
                raise self._damaged(problem) from problem
            yield count, unpacked

    def count_records(self) -> int:
        """Return the number of records, by the blocks' headers; the source must be seekable."""
        source = self._source
        assert isinstance(source, SeekableSource)  # noqa: S101 - the caller's promise
        self._fill(SYNC_SIZE)
        sync, total = self._take(SYNC_SIZE), 0
        while True:
            self._fill(2 * _LONGEST_LONG)
            if self._at == len(self._data):
                return total
            count, size = self._long(), self._long()
            if count < 0 or size < 0:
                raise self._damaged(ValueError("a length is negative"))
            beyond = size - (len(self._data) - self._at)
            if beyond > 0:
                source.seek(source.tell() + beyond)
                self._data, self._at = b"", 0
            else:
                self._at += size
            self._fill(SYNC_SIZE)
            if self._take(SYNC_SIZE) != sync:
                raise self._damaged(ValueError("a block does not end where it should"))
            total += count

    def _header(self) -> dict[str, bytes]:
        self._fill(len(MAGIC))
        if not self._data.startswith(MAGIC):
            raise CorruptFileError(
                f"{self._location} is not an Avro file",
                hint="Check that the location is right; if so, restore the file from a backup.",
                path=self._location,
            )
        while (metadata := self._whole_header()) is None:
            self._fill(2 * len(self._data))
        return metadata

    def _whole_header(self) -> dict[str, bytes] | None:
        """Parse the header; return None if more of the file must be read."""
        try:
            metadata, self._at = read_header(self._data)
        except (IndexError, ValueError) as problem:
            if self._ended:
                raise self._damaged(problem) from problem
            return None
        return metadata

    def _fill(self, size: int) -> None:
        """Read until `size` bytes are buffered, unless the file ends before."""
        if len(self._data) - self._at < size and not self._ended:
            pieces = [self._data[self._at :]]
            missing = size - len(pieces[0])
            # in pieces, as memory is allocated for what a damaged file states
            while missing > 0 and not self._ended:
                found = bytes(self._source.read(min(max(missing, self._chunk), _PIECE)))
                self._ended = not found
                pieces.append(found)
                missing -= len(found)
            self._data, self._at = b"".join(pieces), 0

    def _take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise self._damaged(ValueError("it ends too early"))
        self._at += size
        return found

    def _long(self) -> int:
        try:
            value, self._at = read_long(self._data, self._at)
        except (IndexError, ValueError) as problem:
            raise self._damaged(problem) from problem
        return value

    def _damaged(self, problem: Exception) -> CorruptFileError:
        return CorruptFileError(
            f"{self._location} is a truncated or damaged Avro file ({damage_of(problem)})",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=self._location,
        )
