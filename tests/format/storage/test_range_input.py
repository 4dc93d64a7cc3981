"""A file that seems shorter or longer than it is said to be is asked for once more before it is called damaged."""

from __future__ import annotations

import pytest

from icecomb.format.errors import CorruptFileError
from icecomb.format.storage.range_input import RangeInput, input_file

DATA = bytes(range(250)) * 4


class Store:
    """Answers with these bytes; the first answers are changed."""

    def __init__(self, data: bytes, *changes) -> None:
        self._data = data
        self._changes = list(changes)
        self.asked = 0

    def read(self, start: int, length: int) -> bytes:
        self.asked += 1
        found = self._data[start : start + length]
        return self._changes.pop(0)(found) if self._changes else found


CHANGES = {
    "cut": lambda found: found[:-7],
    "empty": lambda _: b"",
    "longer": lambda found: found + b"x",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("source", ["the store", None])
def test_an_answer_of_another_length_is_asked_for_again(change, source):
    store = Store(DATA, CHANGES[change])
    assert RangeInput(store.read, "s3://b/x", len(DATA), source=source).read() == DATA
    assert store.asked == 2


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_stays_so_is_named_with_both_remedies(change):
    store = Store(DATA, *[CHANGES[change]] * 2)
    with pytest.raises(CorruptFileError, match=r"^s3://b/x (ends|goes on)") as caught:
        RangeInput(store.read, "s3://b/x", len(DATA)).read()
    assert "read twice" in caught.value.hint
    assert "try again" in caught.value.hint
    assert store.asked == 2


def test_a_sound_file_is_asked_for_once():
    store = Store(DATA)
    assert RangeInput(store.read, "s3://b/x", len(DATA)).read() == DATA
    assert store.asked == 1


@pytest.mark.parametrize("ask", ["read", "readall", "read_buffer"])
def test_a_stated_size_takes_no_memory(ask):
    asked = []

    def read(start: int, length: int) -> bytes:
        asked.append(length)
        return DATA[start : start + length]

    file = input_file(RangeInput(read, "s3://b/x", 1 << 50, source="the store"))
    with pytest.raises(CorruptFileError, match="the store gave its length as 1125899906842624"):
        getattr(file, ask)()
    assert max(asked) <= 64 << 20


@pytest.mark.parametrize("length", [None, 10, 500, 10_000])
def test_a_file_is_read_as_arrow_reads_it(length, monkeypatch):
    monkeypatch.setattr("icecomb.format.storage.range_input.PIECE", 100)
    file = input_file(RangeInput(Store(DATA).read, "s3://b/x", len(DATA)))
    file.seek(7)
    assert file.read(length) == DATA[7:][:length]
    file.seek(7)
    assert file.read_buffer(length).to_pybytes() == DATA[7:][:length]
