"""Rows as Python values, also where Python has no such value."""

import datetime as dt

import pyarrow as pa

from icecomb.catalog.cli.output.output import row_values


def test_nanoseconds_are_shown_whole_at_any_depth_and_other_times_as_python_has_them():
    rows = pa.table(
        {
            "t": pa.array([1, None], pa.timestamp("ns")),
            "z": pa.array([1_500_000_000, 0], pa.timestamp("ns", "UTC")),
            "m": pa.array([1, None], pa.timestamp("us")),
            "s": pa.array([{"x": [2]}, None], pa.struct([("x", pa.list_(pa.timestamp("ns")))])),
        }
    )
    assert row_values(rows) == [
        {
            "t": "1970-01-01T00:00:00.000000001",
            "z": "1970-01-01T00:00:01.500000000+00:00",
            "m": dt.datetime(1970, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - it has no zone
            "s": {"x": ["1970-01-01T00:00:00.000000002"]},
        },
        {"t": None, "z": "1970-01-01T00:00:00+00:00", "m": None, "s": None},
    ]
