"""Bitmaps have the bytes that other libraries write and read; damaged ones are an error."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap64

from icecomb.format.rows.deletes.roaring_bitmap import (
    GREATEST,
    DamagedBitmapError,
    decode_bitmap,
    encode_bitmap,
)
from tests.format.rows.deletes.mutation import mutated

ONE = "0100000000000000 00000000 3a300000 01000000 00000000 10000000 0100"
"""The bitmap of {1}, byte by byte."""
EMPTY = "3a300000 00000000"


def positions_of(*values):
    return np.array(values, np.int64)


def by_another(positions):
    """The bytes of the reference implementation in C, which does not write empty bitmaps."""
    bitmap = BitMap64(positions.astype(np.uint64))
    bitmap.run_optimize()
    return bitmap.serialize()


def decoded(content, count):
    return decode_bitmap(memoryview(content), count).tolist()


def some_positions(seed):
    """Values, runs and dense parts, in up to a hundred containers."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, rng.choice([300, 70_000, 1 << 22, 1 << 31]), rng.integers(1, 3000))]
    starts = rng.integers(0, 1 << 22, rng.integers(0, 40))
    parts += [np.arange(at, at + rng.choice([2, 3, 5, 400, 70_000])) for at in starts]
    if rng.random() < 0.5:
        parts.append(rng.integers(1 << 20, 1 << 21, 60_000))
    return np.unique(np.concatenate(parts)).astype(np.int64)


def test_one_position_has_the_bytes_of_the_format():
    assert encode_bitmap(positions_of(1)) == bytes.fromhex(ONE)
    assert decoded(bytes.fromhex(ONE), 1) == [1]


def test_values_bits_and_runs_are_chosen_where_they_are_shortest():
    values, run = np.arange(0, 8192, 2), np.arange(70_000, 70_300)
    bits, all_of_one = np.arange(131_073, 140_000, 2), np.arange(196_608, 262_144)
    positions = np.concatenate([values, run, bits, all_of_one])
    content = encode_bitmap(positions)
    assert content == by_another(positions)
    # flags of four containers: the second and the fourth have runs
    assert content[12:17].hex() == "3b3003000a"
    assert decoded(content, len(positions)) == positions.tolist()


def test_three_in_a_row_are_values_and_four_a_run():
    assert encode_bitmap(np.arange(5, 8))[12:14] == b"\x3a\x30"
    assert encode_bitmap(np.arange(5, 9))[12:14] == b"\x3b\x30"


def test_upper_halves_without_positions_have_empty_bitmaps_as_in_iceberg_java():
    content = encode_bitmap(positions_of(3 << 32))
    halves = "".join(f"0{half}000000" + EMPTY for half in range(3))
    one = "03000000 3a300000 01000000 00000000 10000000 0000"
    assert content == bytes.fromhex("0400000000000000" + halves + one)
    assert decoded(content, 1) == [3 << 32]
    without = bytes.fromhex("0100000000000000" + one)
    assert decoded(without, 1) == [3 << 32]
    assert decoded(bytes.fromhex("0100000000000000 05000000" + EMPTY), 0) == []


def test_the_greatest_position_is_that_of_iceberg_java():
    key = "feffff7f"
    last = f"0100000000000000 {key} 3a300000 01000000 ffff0000 10000000 ffff"
    assert decoded(bytes.fromhex(last), 1) == [GREATEST]
    with pytest.raises(DamagedBitmapError, match="has key 2147483647 after key -1"):
        decoded(bytes.fromhex(last.replace(key, "ffffff7f")), 1)


@pytest.mark.seeds(400, gate=8)
def test_bytes_are_those_of_another_library(seed):
    positions = some_positions(seed)
    content = encode_bitmap(positions)
    assert content == by_another(positions)
    assert decoded(content, len(positions)) == positions.tolist()


@given(st.sets(st.integers(0, 1 << 18) | st.integers(0, 1 << 34), min_size=1, max_size=300))
def test_positions_come_back(found):
    positions = np.array(sorted(found), np.int64)
    assert decoded(encode_bitmap(positions), len(positions)) == positions.tolist()
    assert decoded(by_another(positions), len(positions)) == positions.tolist()


SEVERAL = encode_bitmap(np.concatenate([np.arange(0, 40, 3), np.arange(70_000, 70_300)]))


DAMAGED = {
    "fewer": (ONE, 2, "has 1 positions, not 2"),
    "more": (ONE, 0, "has at least 1 positions, not 0"),
    "cut": (ONE[:-2], 1, "extends beyond its end"),
    "longer": (ONE + "00", 1, "has 1 bytes behind its bitmaps"),
    "nothing": ("", 0, "extends beyond its end"),
    "too many bitmaps": ("ff" * 8, 0, "states 18446744073709551615 bitmaps, more than its bytes can hold"),
    "a key twice": ("0200000000000000" + f"07000000 {EMPTY}" * 2, 0, "has key 7 after key 7"),
    "no cookie": ("0100000000000000 00000000 39300000 00000000", 0, "begins with 12345"),
    "too many containers": ("0100000000000000 00000000 3a300000 01000100", 0, "states 65537 containers"),
    "another offset": (ONE.replace(" 10000000 ", " 12000000 "), 1, "offsets that do not lead to its containers"),
    "values that descend": ("0100000000000000 00000000 3a300000 01000000 00000100 10000000 0100 0000", 2, "do not ascend"),
    "a container twice": (
        "0100000000000000 00000000 3a300000 02000000 01000000 01000000 18000000 1a000000 0000 0000", 2, "keys do not ascend",
    ),
    "a run over the end": ("0100000000000000 00000000 3b300000 01 00000100 0100 ffff 0100", 2, "a run beyond its container"),
    "a run twice": ("0100000000000000 00000000 3b300000 01 00000300 0200 0500 0100 0500 0100", 4, "do not ascend"),
    "a short run": ("0100000000000000 00000000 3b300000 01 00000200 0100 0500 0100", 3, "other counts than they state"),
    "no bits": (
        "0100000000000000 00000000 3a300000 01000000 00000010 10000000" + "00" * 8192, 4097, "other counts than they state",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "count", "problem"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_bytes_are_told_apart(content, count, problem):
    with pytest.raises(DamagedBitmapError, match=problem):
        decoded(bytes.fromhex(content), count)


def test_a_bitmap_cut_anywhere_is_damaged():
    for end in range(len(SEVERAL)):
        with pytest.raises(DamagedBitmapError):
            decoded(SEVERAL[:end], 314)


BASES = [
    positions_of(1),
    positions_of(0, 1 << 32, (2 << 32) + 7),
    np.concatenate([np.arange(0, 40, 3), np.arange(70_000, 70_300)]),
    np.concatenate([np.arange(9), np.arange(65_536, 74_000, 1), np.arange(1 << 18, (1 << 18) + 9000, 2)]),
    np.arange(0, 1 << 20, 30_000),
    np.concatenate([np.arange(at << 16, (at << 16) + 10 + at) for at in range(12)]),
]  # fmt: skip


@pytest.mark.seeds(110, gate=2)
def test_mutations_are_an_error_or_what_another_library_reads(seed):
    """Two thousand a seed: none crashes, hangs or takes memory."""
    draw = random.Random(seed)
    originals = [(encode_bitmap(positions), len(positions)) for positions in BASES]
    tracemalloc.start()
    try:
        for _ in range(2000):
            content, count = draw.choice(originals)
            content = mutated(content, draw)
            try:
                found = decoded(content, count)
            except DamagedBitmapError:
                continue
            # whatever is accepted, is valid: so that the library may be given it
            assert found == list(BitMap64.deserialize(content))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
