from __future__ import annotations

import pytest

from icecomb.format.rows.deletes.position_delete import path_range

PATHS = [f"file:/warehouse/db.db/t/data/{name}.parquet" for name in ("a", "b", "c")]
A, B, C = (path.encode() for path in PATHS)


@pytest.mark.parametrize(
    ("lower", "upper", "covered"),
    [
        (A, C, [A, B, C]),
        (B, C, [B, C]),
        (B, None, [B, C]),
        (None, B, [A, B]),
        (None, None, [A, B, C]),
        # upside down, empty, no text, truncated without being raised
        (C, A, [A, B, C]),
        (b"", b"", [A, B, C]),
        (b"\xff", b"\xfe", [A, B, C]),
        (b"\xff", C, [A, B, C]),
        (A[:16], C[:16], [A, B, C]),
        (B, C[:20], [A, B, C]),
        (B, B, [B]),
    ],
)
def test_bounds_leave_out_only_data_files_that_they_can_be_right_about(lower, upper, covered):
    paths = path_range(lower, upper)
    assert [path for path in (A, B, C) if paths.covers(path)] == covered
    assert paths.only == (B.decode() if lower == upper == B else None)
