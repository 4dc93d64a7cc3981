"""Partitions as Paimon packs them, byte for byte (Paimon: BinaryRow, BinaryRowWriter)."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest

from icecomb.catalog.paimon.data_type import AtomicType, DataField
from icecomb.catalog.paimon.table_import import read_row
from icecomb.format.errors import CorruptFileError


def fields(*kinds: tuple[str, tuple[int, ...]]) -> list[DataField]:
    return [
        DataField(n, f"k{n}", AtomicType(nullable=True, root=root, parameters=parameters))
        for n, (root, parameters) in enumerate(kinds)
    ]


def packed(*words: bytes, nulls: tuple[int, ...] = (), rest: bytes = b"") -> bytes:
    """A row of words of eight bytes; of its first word a byte is the kind, a bit each a null."""
    marks = sum(1 << (8 + at) for at in nulls)
    head = struct.pack(">i", len(words)) + marks.to_bytes((len(words) + 63 + 8) // 64 * 8, "little")
    return head + b"".join(word.ljust(8, b"\0") for word in words) + rest


def test_numbers_dates_and_texts_are_read():
    kinds = fields(("INT", ()), ("BIGINT", ()), ("DATE", ()), ("VARCHAR", (20,)), ("BOOLEAN", ()))
    text = b"de" + bytes(5) + bytes([0x80 | 2])
    row = packed(
        struct.pack("<i", -7), struct.pack("<q", 1 << 40), struct.pack("<i", 19000), text, b"\1"
    )
    assert read_row(row, kinds) == (-7, 1 << 40, 19000, "de", True)


@pytest.mark.parametrize("nulls", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_a_field_is_null_whose_bit_is_set_behind_the_byte_of_the_kind(nulls):
    words = [struct.pack("<i", n) for n in (10, 11, 12)]
    found = read_row(packed(*words, nulls=nulls), fields(*[("INT", ())] * 3))
    assert found == tuple(None if n in nulls else 10 + n for n in range(3))


def test_the_marks_of_57_fields_take_a_second_word():
    words = [struct.pack("<i", n) for n in range(57)]
    found = read_row(packed(*words, nulls=(0, 56)), fields(*[("INT", ())] * 57))
    assert found == (None, *range(1, 56), None)


def test_what_does_not_fit_stands_behind_the_words():
    """Offsets count from the byte of the kind."""
    long, number = "Köln am Rhein".encode(), (-(10**20)).to_bytes(9, "big", signed=True)
    at = 8 + 2 * 8
    row = packed(
        struct.pack("<II", len(long), at),
        struct.pack("<II", len(number), at + 16),
        rest=long.ljust(16, b"\0") + number,
    )
    kinds = fields(("VARCHAR", (20,)), ("DECIMAL", (30, 2)))
    assert read_row(row, kinds) == ("Köln am Rhein", Decimal(-(10**18)))


def test_times_are_microseconds():
    kinds = fields(("TIME", (3,)), ("TIMESTAMP", (3,)), ("TIMESTAMP", (9,)), ("DECIMAL", (9, 2)))
    row = packed(
        struct.pack("<i", 1_500),
        struct.pack("<q", -1),
        struct.pack("<II", 345_678, 8 + 4 * 8),
        struct.pack("<q", -1234),
        rest=struct.pack("<q", -1),
    )
    assert read_row(row, kinds) == (1_500_000, -1000, -1000 + 345, Decimal("-12.34"))


def test_a_row_that_is_cut_short_or_of_other_fields_is_damaged():
    row = packed(struct.pack("<i", 1))
    with pytest.raises(CorruptFileError, match="cannot be read"):
        read_row(row[:-6], fields(("INT", ())))
    with pytest.raises(CorruptFileError, match="has 1 values, its keys are 2"):
        read_row(row, fields(("INT", ()), ("INT", ())))


def test_a_number_that_no_decimal_has_is_damaged():
    """Python converts no number of more than 4,300 digits, others have 38 at most."""
    row = packed(struct.pack("<II", 3000, 8 + 8), rest=b"\x7f" * 3000)
    with pytest.raises(CorruptFileError, match="cannot be read"):
        read_row(row, fields(("DECIMAL", (38, 2))))
