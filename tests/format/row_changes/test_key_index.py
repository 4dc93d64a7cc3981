from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.row_changes.key_index import KeyIndex

keys = st.tuples(st.integers(0, 5), st.sampled_from(["", "a", "b"]), st.booleans())


def columns(rows, width):
    kinds = (pa.int64(), pa.string(), pa.bool_())[:width]
    return [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]


@pytest.mark.parametrize("width", [1, 2, 3])
@given(known=st.lists(keys, min_size=1, max_size=20), asked=st.lists(keys, max_size=20))
def test_rows_are_found_by_their_key_as_in_a_dictionary(width, known, asked):
    known = list({row[:width]: row for row in known}.values())
    index = KeyIndex(columns(known, width))
    assert index.duplicate is None
    numbers = {row[:width]: i for i, row in enumerate(known)}
    expected = [numbers.get(row[:width], -1) for row in asked]
    assert index.find(columns(asked, width)).tolist() == expected


@pytest.mark.parametrize("width", [1, 2])
def test_a_key_that_occurs_again_is_reported(width):
    rows = [(1, "a"), (2, "b"), (3, "c"), (2, "b"), (1, "a")]
    assert KeyIndex(columns(rows, width)).duplicate in {0, 1, 3, 4}
    assert KeyIndex(columns(rows[:3], width)).duplicate is None


def test_a_key_with_a_null_is_no_row():
    index = KeyIndex(columns([(1, "a"), (2, "b")], 2))
    asked = [pa.array([1, None, 2]), pa.array(["a", "a", None])]
    assert index.find(asked).tolist() == [0, -1, -1]


@pytest.mark.parametrize("width", [1, 2, 3])
@given(known=st.lists(keys, min_size=1, max_size=20), asked=st.lists(keys, max_size=20))
def test_all_rows_of_a_key_are_found(width, known, asked):
    index = KeyIndex(columns(known, width))
    found = index.find(columns(asked, width))
    hits = found[found >= 0]
    places, rows = index.same_key(hits)
    pairs = {(int(hits[p]), int(r)) for p, r in zip(places, rows, strict=True)}
    wanted = {
        (int(h), i) for h in hits for i, row in enumerate(known) if row[:width] == known[h][:width]
    }
    assert pairs == wanted
    assert index.key_counts(hits).sum() == len(places)
