"""Lists on a terminal take its width; elsewhere no cell is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from icecomb.catalog.cli.output import output
from icecomb.catalog.cli.output.output import TextOutput, cut, fitted

ROWS = [
    ["hdfs://cluster/warehouse/shop.db/orders/data/day=2024-01-01/00000-0-abc.parquet", 12, "x"],
    ["short", 3_000_000, "a text that goes on and on and on and on"],
]


@pytest.mark.parametrize("width", [None, 60, 200])
def test_a_list_is_as_wide_as_the_terminal_at_most(monkeypatch, capsys, width):
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    TextOutput().table(["file", "rows", "note"], ROWS)
    lines = capsys.readouterr().out.splitlines()
    if width == 60:
        assert max(map(len, lines)) <= 60
        assert lines[1].startswith("…")
        assert "00000-0-abc.parquet" in lines[1], "the end of a location is kept"
        assert lines[2].endswith("…")
        assert "3000000" in lines[2]
    else:
        assert ROWS[0][0] in lines[1]
        assert lines[2].endswith("on and on and on")


def test_what_is_no_terminal_has_no_width(capsys):
    assert output.terminal_width() is None


@given(st.lists(st.integers(1, 300), min_size=1, max_size=9), st.integers(1, 300))
def test_widths_fit_or_are_narrow_and_none_grows(widths, total):
    found = fitted(widths, total)
    assert all(new <= old for new, old in zip(found, widths, strict=True))
    fits = sum(found) + 2 * (len(found) - 1) <= total
    assert fits or all(new <= 8 or new == old for new, old in zip(found, widths, strict=True))
    assert all(new >= min(old, 8) for new, old in zip(found, widths, strict=True))


@given(st.text(max_size=40), st.integers(1, 50))
def test_a_cut_cell_is_no_wider(cell, width):
    found = cut(cell, width)
    assert len(found) <= width
    assert (found == cell) is (len(cell) <= width)
