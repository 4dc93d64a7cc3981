"""Bytes that are damaged at random."""

from __future__ import annotations

from random import Random


def mutated(content: bytes, draw: Random) -> bytes:
    """Some bytes changed, cut, added or repeated."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        at = draw.randrange(len(changed) + 1)
        how = draw.randrange(6)
        if how == 0 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif how == 1 and at < len(changed):
            changed[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif how == 2:
            width = draw.choice([2, 4, 8])
            changed[at : at + width] = draw.choice([b"\xff", b"\0", b"\x7f"]) * width
        elif how == 3:
            del changed[at:]
        elif how == 4:
            changed[at:at] = draw.randbytes(draw.choice([1, 2, 4, 100]))
        else:
            length = draw.randrange(64)
            other = draw.randrange(len(changed) + 1)
            changed[at : at + length] = changed[other : other + length]
    return bytes(changed)
