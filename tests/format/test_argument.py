"""Arguments that every operation checks in the same way."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from icecomb.format.argument import checked_instant
from icecomb.format.errors import ValidationError

TOKYO = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [
        (0, 0),
        (np.int64(1_700_000_000_000), 1_700_000_000_000),
        (dt.datetime(1970, 1, 1, 9, tzinfo=TOKYO), 0),
        (dt.datetime(1970, 1, 1, 0, 0, 0, 1_999, tzinfo=dt.timezone.utc), 1),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.timezone.utc), -1),
    ],
)
def test_a_point_in_time_is_milliseconds_rounded_down(given: object, milliseconds: int) -> None:
    assert checked_instant("older_than", given) == milliseconds


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (dt.datetime(2026, 1, 1), r"older_than needs a zone: 2026-01-01 00:00:00"),  # noqa: DTZ001
        ("7d", "must be a point in time, not '7d'"),
        (dt.timedelta(days=7), "must be a point in time, not datetime.timedelta"),
        (dt.date(2026, 1, 1), "must be a point in time"),
        (1.5, "must be a point in time"),
        (True, "must be a point in time"),
        (None, "must be a point in time"),
        (-1, "is -1, must be 0 to"),
    ],
)
def test_what_is_no_point_in_time_is_refused(given: object, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        checked_instant("older_than", given, 0)
