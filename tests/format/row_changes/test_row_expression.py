"""Names of columns in SQL expressions."""

from __future__ import annotations

import pytest

from icecomb.format.row_changes.row_expression import may_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_row_id = 5", True),
        ("t._row_id + 1", True),
        ('s.n > t."_ROW_ID"', True),
        ("order_row_id = 5", False),
        ("t._row_ids IS NULL", False),
        ("", False),
    ],
)
def test_a_column_is_named_by_a_whole_word_only(text: str, *, expected: bool) -> None:
    assert may_name(text, "_row_id") is expected
