"""ORC files made byte by byte, which say what no writer would."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

PRESENT, DATA, LENGTH, DICTIONARY = range(4)
DIRECT, DICTIONARY_V2, DIRECT_V2 = 0, 3, 2
_BLOCK = 1 << 18


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def number_field(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number)


def bytes_field(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


LONG, TEXT = number_field(1, 4), number_field(1, 7)


def row_of(*names: bytes) -> bytes:
    """The type of a row, whose columns are the next types."""
    inner = b"".join(number_field(2, n) for n in range(1, len(names) + 1))
    return number_field(1, 12) + inner + b"".join(bytes_field(3, name) for name in names)


def list_of(number: int) -> bytes:
    """The type of a list of another type."""
    return number_field(1, 10) + number_field(2, number)


def zeros(count: int) -> bytes:
    """So many zeros, a multiple of 512, in run-length encoding 2."""
    return b"\xc1\xff\0\0" * (count // 512)


def packed(data: bytes) -> bytes:
    out = []
    for at in range(0, len(data), _BLOCK):
        packer = zlib.compressobj(9, wbits=-15)
        part = packer.compress(data[at : at + _BLOCK]) + packer.flush()
        out.append((len(part) << 1).to_bytes(3, "little") + part)
    return b"".join(out)


def orc_file(
    types: Sequence[bytes],
    streams: Sequence[tuple[int, int, bytes]] = (),
    *,
    rows: int,
    encodings: Sequence[int] = (),
    stripes: int = 1,
) -> bytes:
    """A file; each of its streams has a kind, a column and its bytes."""
    parts = [(kind, column, packed(data)) for kind, column, data in streams]
    body = b"".join(data for *_, data in parts)
    inner = b"".join(
        bytes_field(1, number_field(1, kind) + number_field(2, column) + number_field(3, len(data)))
        for kind, column, data in parts
    )
    found = encodings or [DIRECT] + [DIRECT_V2] * (len(types) - 1)
    end = packed(inner + b"".join(bytes_field(2, number_field(1, one)) for one in found))
    sizes = ((1, 3), (2, 0), (3, len(body)), (4, len(end)), (5, rows))
    stripe = bytes_field(3, b"".join(number_field(*size) for size in sizes))
    footer = packed(
        number_field(1, 3)
        + number_field(2, 3 + len(body) + len(end))
        + stripe * stripes
        + b"".join(bytes_field(4, one) for one in types)
        + number_field(6, rows * stripes)
    )
    script = (
        number_field(1, len(footer))
        + number_field(2, 1)
        + number_field(3, _BLOCK)
        + bytes_field(4, b"\0\x0c")
        + number_field(5, 0)
        + number_field(6, 6)
        + bytes_field(8000, b"ORC")
    )
    return b"ORC" + body + end + footer + script + bytes([len(script)])


def numbers(rows: int, *, stripes: int = 1) -> bytes:
    """A file of one column of zeros."""
    streams = [(DATA, 1, zeros(rows))]
    return orc_file([row_of(b"id"), LONG], streams, rows=rows, stripes=stripes)


def nested(levels: int) -> bytes:
    """A file without rows of a column of lists in lists."""
    inner = [list_of(n + 2) for n in range(levels)]
    return orc_file([row_of(b"id"), *inner, LONG], rows=0)
