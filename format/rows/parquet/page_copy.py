"""Copying of a column chunk's pages unchanged, with their checksums and value counts verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from isal import isal_zlib

from icecomb.format.rows.parquet.compact_protocol import (
    I64,
    CompactError,
    Struct,
    TruncatedError,
    read_struct,
)
from icecomb.format.rows.parquet.raw_footer import NUM_VALUES, Chunk, NotCopyableError, RawFooter

_WINDOW: Final = 16 << 20
_LONGEST_HEADER: Final = 16 << 20
"""The maximum length of a header in bytes: it holds at most two bounds."""

_PAGE_TYPE: Final = 1
_PAGE_SIZE: Final = 3
_CRC: Final = 4
_HEADER: Final = 5
_HEADER_V2: Final = 8
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_V2_ROWS: Final = 3
_LOCATIONS: Final = 1
_LOCATION_OFFSET, _LOCATION_SIZE, _LOCATION_ROW = range(1, 4)
_LAST_OF_INDEX: Final = 2


@dataclass(slots=True)
class CopiedPages:
    """The pages found in a chunk.

    Attributes:
        data_pages: Offset and length of each data page in bytes, header included.
        values: The number of values, nulls included.
        rows: The number of rows; None where pages do not record it.
    """

    data_pages: list[tuple[int, int]] = field(default_factory=list)
    values: int = 0
    rows: int | None = None


class PageBuffer:
    """Reusable memory for pages: allocating new memory costs as much as reading them."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def of(self, length: int) -> memoryview:
        """Return a view of `length` bytes, and allocate more memory if needed."""
        if len(self._bytes) < length:
            self._bytes = bytearray(length)
        return memoryview(self._bytes)[:length]


def copy_pages(
    footer: RawFooter,
    chunk: Chunk,
    where: str,
    buffer: PageBuffer,
    write: Callable[[Any], object],
) -> CopiedPages:
    """Copy the pages of a chunk; `write` gets bytes that are overwritten after each call.

    It raises NotCopyableError if there are pages of an unknown kind.
    """
    copied = CopiedPages()
    at, end, window = chunk.start, chunk.start + chunk.length, _WINDOW
    while at < end:
        data = buffer.of(min(window, end - at))
        footer.read_into(data, at, where)
        used = _whole_pages(footer, data, at, where, copied)
        if not used:
            if len(data) == end - at:
                raise footer.wrong(f"{where} ends within a page")
            window *= 2
            continue
        write(data[:used])
        at += used
    if copied.values != chunk.metadata[NUM_VALUES]:
        raise footer.wrong(
            f"{where} has {copied.values} values, its footer says {chunk.metadata[NUM_VALUES]}"
        )
    return copied


def _whole_pages(
    footer: RawFooter, data: memoryview, start: int, where: str, copied: CopiedPages
) -> int:
    """Check the complete pages in the data; return their total length in bytes."""
    at = 0
    while at < len(data):
        try:
            header, body = read_struct(data, at)
            size = header[_PAGE_SIZE]
        except TruncatedError:
            if len(data) - at > _LONGEST_HEADER:
                raise footer.wrong(f"{where} has no page at {start + at}") from None
            break
        except CompactError as problem:
            raise footer.wrong(f"{where} has no page at {start + at}: {problem}") from None
        if not isinstance(size, int) or size < 0:
            raise footer.wrong(f"{where} has a page of {size} bytes at {start + at}")
        if body + size > len(data):
            break
        try:
            _check(header, data[body : body + size])
            _count(header, (start + at, body + size - at), copied)
        except (CompactError, TypeError) as problem:
            raise footer.wrong(f"{where} has a wrong page at {start + at}: {problem}") from None
        at = body + size
    return at


def _check(header: Struct, body: memoryview) -> None:
    crc = header.get(_CRC)
    if crc is not None and isal_zlib.crc32(body) != crc & 0xFFFFFFFF:
        raise CompactError("its checksum is not that of its bytes")


def _count(header: Struct, place: tuple[int, int], copied: CopiedPages) -> None:
    kind = header[_PAGE_TYPE]
    if kind in {_DATA, _DATA_V2}:
        inside = header[_HEADER if kind == _DATA else _HEADER_V2]
        copied.data_pages.append(place)
        copied.values += inside[1]
        if kind == _DATA_V2:
            copied.rows = (copied.rows or 0) + inside[_V2_ROWS]
    elif kind != _DICTIONARY:
        raise NotCopyableError(f"it has a page of kind {kind}, which is not known here")


def moved_offset_index(index: bytes, pages: CopiedPages, by: int) -> bytes:
    """Return the offset index of a chunk that was copied, moved `by` bytes.

    It raises NotCopyableError if the index is not that of these pages.
    """
    try:
        found, _ = read_struct(index)
        locations = found[_LOCATIONS].values
        places = [(one[_LOCATION_OFFSET], one[_LOCATION_SIZE]) for one in locations]
        unknown = any(number > _LAST_OF_INDEX for number in found) or any(
            number > _LOCATION_ROW for one in locations for number in one
        )
    except (CompactError, AttributeError, TypeError):
        raise NotCopyableError("its page index cannot be read") from None
    if unknown or places != pages.data_pages:
        raise NotCopyableError("its page index is not that of its pages")
    for one in locations:
        one.put(_LOCATION_OFFSET, I64, one[_LOCATION_OFFSET] + by)
    return found.encoded()
