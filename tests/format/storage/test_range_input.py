"""A file that seems shorter or longer than it is said to be is asked for once more before it is called damaged."""

from __future__ import annotations

import pytest

from icecomb.format.errors import CorruptFileError
from icecomb.format.storage.range_input import RangeInput

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
