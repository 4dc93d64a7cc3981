"""Numbers of seven bits a byte, the lowest first: Avro, Protocol Buffers, Thrift's compact form."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 63


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it.

    It raises IndexError if the bytes end too early, and ValueError if there are more than 64 bits.
    """
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > _LONGEST:
            raise ValueError("a number has more than 64 bits")


def read_long(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the signed number, in zigzag form, at an offset, and the offset after it."""
    number, at = read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at
