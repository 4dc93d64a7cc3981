"""64-bit Roaring bitmaps in their portable form, as arrays of positions.

A bitmap is a 32-bit bitmap for each upper half of a position; one of these has a container for each
2^16 positions: values, a bit for each possible value, or runs. Source: "Roaring Bitmap Format
Specification" with its extension to 64 bits; what the writer may choose, as Iceberg Java does it.

NumPy decodes as fast as a Roaring library, yields an array, and is safe for damaged bytes: nothing
is allocated that the expected number of positions does not justify.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from icecomb.format.arrow.number_view import Longs

GREATEST: Final = (1 << 63) - (1 << 32) - 1
"""The greatest position of a bitmap, as in Iceberg Java."""

_COUNT: Final = struct.Struct("<Q")
_WORD: Final = struct.Struct("<I")
_HALF_WORD: Final = struct.Struct("<H")
_PLAIN: Final = 12346
_WITH_RUNS: Final = 12347
_LEAST_BYTES: Final = 3 * _WORD.size
"""The length of an empty 32-bit bitmap with its key."""
_OFFSETS_FROM: Final = 4
"""Bitmaps with runs and fewer containers do not state the offsets of these."""
_SPAN: Final = 1 << 16
"""The number of possible values in a container."""
_MOST_VALUES: Final = 4096
"""A container with more values has a bit for each possible one, or runs."""
_BITS_BYTES: Final = _SPAN // 8
_VALUE_BYTES: Final = 2
_RUN_BYTES: Final = 4
_AT_ONCE: Final = 4 * _SPAN
"""About the number of positions that are encoded at once, by the memory that it takes."""


class DamagedBitmapError(ValueError):
    """Bytes are not a valid bitmap; the message says why."""


def least_length(greatest: int) -> int:
    """Return the least length of a bitmap by its greatest position, in bytes."""
    return _COUNT.size + ((greatest >> 32) + 1) * _LEAST_BYTES


def encode_bitmap(positions: Longs) -> bytes:
    """Return the bytes of a bitmap, in which runs stand where they are shorter.

    The positions, at least one, must be ascending and distinct, from 0 to `GREATEST`.
    """
    # Java has a bitmap for every upper half up to the greatest one
    uppers = np.arange((int(positions[-1]) >> 32) + 2, dtype=np.int64)
    ends = np.searchsorted(positions, uppers << 32).tolist()
    pieces = [_COUNT.pack(len(ends) - 1)]
    for upper, (start, end) in enumerate(pairwise(ends)):
        pieces += (_WORD.pack(upper), *_encoded(positions[start:end]))
    return b"".join(pieces)


def decode_bitmap(content: memoryview, expected: int) -> Longs:
    """Return the positions of a bitmap, ascending.

    It raises DamagedBitmapError if the bytes are damaged, or have another number of positions.
    """
    groups, count = [], 0
    for group in _Directory(content).groups():
        count += group.count
        if count > expected:
            raise DamagedBitmapError(f"has at least {count} positions, not {expected}")
        groups.append(group)
    if count != expected:
        raise DamagedBitmapError(f"has {count} positions, not {expected}")
    positions = np.empty(count, np.int64)
    at, last = 0, -1
    for group in groups:
        found = group.decoded(content[group.start : group.end], group)
        if found[0] <= last or not (found[1:] > found[:-1]).all():
            raise DamagedBitmapError("has positions that do not ascend")
        positions[at : at + len(found)] = found
        at, last = at + len(found), int(found[-1])
    return positions


@dataclass(frozen=True, slots=True)
class _Group:
    """Containers of one kind that follow each other without a gap, decoded together."""

    decoded: Callable[[memoryview, _Group], Longs]
    bases: Longs
    counts: Longs
    start: int
    end: int

    @property
    def count(self) -> int:
        return int(self.counts.sum())


class _Directory:
    """The containers in the bytes of a bitmap, found without looking at what they hold."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def groups(self) -> Iterator[_Group]:
        bitmaps = self._number(_COUNT)
        if bitmaps * _LEAST_BYTES > len(self._content) - self._at:
            raise DamagedBitmapError(f"states {bitmaps} bitmaps, more than its bytes can hold")
        before = -1
        for _ in range(bitmaps):
            upper = self._number(_WORD)
            if upper <= before or upper > GREATEST >> 32:
                raise DamagedBitmapError(f"has key {upper} after key {before}")
            before = upper
            yield from self._of_half(upper << 32)
        if self._at != len(self._content):
            raise DamagedBitmapError(
                f"has {len(self._content) - self._at} bytes behind its bitmaps"
            )

    def _of_half(self, base: int) -> Iterator[_Group]:
        start, cookie = self._at, self._number(_WORD)
        if cookie & 0xFFFF == _WITH_RUNS:
            size = (cookie >> 16) + 1
            packed = self._array((size + 7) // 8, "u1")
            in_runs = np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)
        elif cookie == _PLAIN:
            size = self._number(_WORD)
            if size > _SPAN:
                raise DamagedBitmapError(f"states {size} containers in one bitmap")
            in_runs = np.zeros(size, np.bool_)
        else:
            raise DamagedBitmapError(f"has a bitmap that begins with {cookie}")
        header = self._array(2 * size, "<u2").astype(np.int64)
        keys, counts = header[::2], header[1::2] + 1
        if not (keys[1:] > keys[:-1]).all():
            raise DamagedBitmapError("has containers whose keys do not ascend")
        stated = cookie == _PLAIN or size >= _OFFSETS_FROM
        offsets = self._array(size, "<u4") if stated else None
        lengths = np.where(counts > _MOST_VALUES, _BITS_BYTES, counts * _VALUE_BYTES)
        first = self._at
        if in_runs.any():
            for place, runs in enumerate(in_runs.tolist()):
                if runs:
                    lengths[place] = _HALF_WORD.size + self._number(_HALF_WORD) * _RUN_BYTES
                    self._at -= _HALF_WORD.size
                self._advance(int(lengths[place]))
        else:
            self._advance(int(lengths.sum()))
        ends = first + np.cumsum(lengths)
        starts = ends - lengths
        if offsets is not None and (offsets != starts - start).any():
            raise DamagedBitmapError("has offsets that do not lead to its containers")
        kinds = np.where(in_runs, _RUNS, np.where(counts > _MOST_VALUES, _BITS, _VALUES))
        bases = base + keys * _SPAN
        for begin, end in pairwise(_boundaries(kinds)):
            group = slice(begin, end)
            decoded = _DECODED[kinds[begin]]
            yield _Group(
                decoded, bases[group], counts[group], int(starts[begin]), int(ends[end - 1])
            )

    def _number(self, kind: struct.Struct) -> int:
        start = self._at
        self._advance(kind.size)
        found: int = kind.unpack_from(self._content, start)[0]
        return found

    def _array(self, count: int, kind: str) -> npt.NDArray[Any]:
        start = self._at
        self._advance(count * np.dtype(kind).itemsize)
        return np.frombuffer(self._content[start : self._at], kind)

    def _advance(self, length: int) -> None:
        self._at += length
        if self._at > len(self._content):
            raise DamagedBitmapError("extends beyond its end")


def _boundaries(kinds: npt.NDArray[np.int64]) -> list[int]:
    """Return where groups of containers begin, and the number of all."""
    size = len(kinds)
    begins = np.diff(kinds, prepend=-1) != 0
    for kind, most in _TOGETHER.items():
        begins |= (kinds == kind) & (np.arange(size) % most == 0)
    return [*np.flatnonzero(begins).tolist(), size] if size else []


def _values(content: memoryview, group: _Group) -> Longs:
    found: Longs = np.repeat(group.bases, group.counts)
    found += np.frombuffer(content, "<u2")
    return found


def _bits(content: memoryview, group: _Group) -> Longs:
    octets = np.frombuffer(content, np.uint8)
    some = np.flatnonzero(octets != 0)
    # in octets that are not 0, bits are dense: NumPy finds them without branches
    hits = np.flatnonzero(np.unpackbits(octets[some], bitorder="little").view(np.bool_))
    bits = some[hits >> 3] * 8 + (hits & 7)
    counts = np.diff(np.searchsorted(bits, np.arange(len(group.bases) + 1) * _SPAN))
    if (counts != group.counts).any():
        raise DamagedBitmapError("has containers with other counts than they state")
    found: Longs = bits + np.repeat(group.bases - np.arange(len(counts)) * _SPAN, counts)
    return found


def _runs(content: memoryview, group: _Group) -> Longs:
    runs = np.frombuffer(content[_HALF_WORD.size :], "<u2").astype(np.int64)
    starts, lengths = runs[::2], runs[1::2] + 1
    count = int(group.counts[0])
    if lengths.sum() != count:
        raise DamagedBitmapError("has containers with other counts than they state")
    if (starts + lengths > _SPAN).any():
        raise DamagedBitmapError("has a run beyond its container")
    # each position is the one before plus 1, but where another run begins
    before = np.cumsum(lengths) - lengths
    found: Longs = np.arange(count) + np.repeat(group.bases[0] + starts - before, lengths)
    return found


_VALUES: Final = 0
_BITS: Final = 1
_RUNS: Final = 2
_DECODED: Final = (_values, _bits, _runs)
_TOGETHER: Final = {_VALUES: 128, _BITS: 16, _RUNS: 1}
"""The most containers of each kind that are decoded at once, by the memory that it takes."""


def _encoded(positions: Longs) -> Iterator[bytes]:
    """Yield the pieces of a 32-bit bitmap, of positions with one upper half."""
    if not len(positions):
        yield _WORD.pack(_PLAIN) + _WORD.pack(0)
        return
    # whole containers, of which none has more than a fourth of these positions
    begins = positions[::_AT_ONCE] >> 16 << 16
    # numpy's set functions import its masked arrays, which takes longer than a small bitmap
    bounds = [*dict.fromkeys(np.searchsorted(positions, begins).tolist()), len(positions)]
    chunks = [_Containers.of(positions[start:end]) for start, end in pairwise(bounds)]
    keys, counts, lengths, flags = (
        np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("keys", "counts", "lengths", "flags")
    )
    size = len(keys)
    if flags.any():
        yield _WORD.pack((size - 1) << 16 | _WITH_RUNS)
        yield np.packbits(flags, bitorder="little").tobytes()
        start = _WORD.size + (size + 7) // 8
    else:
        yield _WORD.pack(_PLAIN) + _WORD.pack(size)
        start = 2 * _WORD.size
    yield np.column_stack([keys, counts - 1]).astype("<u2").tobytes()
    if not flags.any() or size >= _OFFSETS_FROM:
        start += size * 2 * _WORD.size
        yield (start + np.cumsum(lengths) - lengths).astype("<u4").tobytes()
    for chunk in chunks:
        yield from chunk.content


@dataclass(frozen=True, slots=True)
class _Containers:
    """Encoded containers that follow each other: keys, counts, lengths in bytes, which are runs."""

    keys: Longs
    counts: Longs
    lengths: Longs
    flags: npt.NDArray[np.bool_]
    content: list[bytes]

    @classmethod
    def of(cls, positions: Longs) -> _Containers:
        """Encode all positions of some containers; at least one."""
        every = positions >> 16
        first = np.flatnonzero(np.diff(every, prepend=-1))
        ends = np.append(first[1:], len(positions))
        counts = ends - first
        begins = np.diff(positions, prepend=-2) != 1
        begins[first] = True
        run_starts = np.flatnonzero(begins)
        run_ends = np.append(run_starts[1:], len(positions))
        run_bounds = np.searchsorted(run_starts, np.append(first, len(positions)))
        plain = np.where(counts > _MOST_VALUES, _BITS_BYTES, counts * _VALUE_BYTES)
        in_runs = _HALF_WORD.size + np.diff(run_bounds) * _RUN_BYTES
        flags = in_runs < plain
        low = (positions & (_SPAN - 1)).astype("<u2")
        runs = np.column_stack([low[run_starts], run_ends - run_starts - 1]).astype("<u2")
        content = []
        for at, (start, end) in enumerate(zip(first.tolist(), ends.tolist(), strict=True)):
            if flags[at]:
                part = runs[run_bounds[at] : run_bounds[at + 1]]
                content.append(_HALF_WORD.pack(len(part)) + part.tobytes())
            elif end - start > _MOST_VALUES:
                bits = np.zeros(_SPAN, np.bool_)
                bits[low[start:end]] = True
                content.append(np.packbits(bits, bitorder="little").tobytes())
            else:
                content.append(low[start:end].tobytes())
        lengths = np.where(flags, in_runs, plain)
        return cls(every[first] & (_SPAN - 1), counts, lengths, flags, content)
