"""Two texts with one XXH64 hash.

The hash reads 32 bytes at a time, 8 bytes of them for each of four sums. What one stripe adds to a
sum is undone by what the next one adds: `second` is solved for, and drawn until it is readable.
"""

from __future__ import annotations

import random
import re
from typing import Final

_MASK: Final = (1 << 64) - 1
_PRIME_1: Final = 0x9E3779B185EBCA87
_PRIME_2: Final = 0xC2B2AE3D27D4EB4F
_STRIPE: Final = 32
_READABLE: Final = re.compile(rb"[A-Za-z0-9]{8}")


def colliding(before: str, after: str, seed: int) -> tuple[str, str]:
    """Two texts that begin and end so.

    Args:
        before: ASCII.
        after: ASCII.
        seed: Of the hash.
    """
    head = before.encode() + b"-" * (-len(before) % _STRIPE)
    sum_before = (seed + _PRIME_1 + _PRIME_2) & _MASK
    for start in range(0, len(head), _STRIPE):
        sum_before = _round(sum_before, head[start : start + 8])
    between = b"-" * (_STRIPE - 8)
    first, second = b"firstone", b"secondon"
    goal = _round(_round(sum_before, first), second)
    draw = random.Random(1)
    while True:
        other = f"{draw.getrandbits(32):08x}".encode()
        needed = _undone(goal, _round(sum_before, other))
        if other != first and _READABLE.fullmatch(needed):
            texts = (head + a + between + b + between + after.encode() for a, b in
                     ((first, second), (other, needed)))  # fmt: skip
            return next(texts).decode(), next(texts).decode()


def _round(value: int, lane: bytes) -> int:
    value = (value + int.from_bytes(lane, "little") * _PRIME_2) & _MASK
    return ((value << 31 | value >> 33) & _MASK) * _PRIME_1 & _MASK


def _undone(goal: int, value: int) -> bytes:
    """The lane that takes `value` to `goal`."""
    rotated = goal * pow(_PRIME_1, -1, 1 << 64) & _MASK
    added = (rotated >> 31 | rotated << 33) & _MASK
    return ((added - value) * pow(_PRIME_2, -1, 1 << 64) & _MASK).to_bytes(8, "little")
