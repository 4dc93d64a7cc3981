from __future__ import annotations

import time

import pytest

from icecomb.catalog.commit.commit_status import OLD_MS, is_old

MINUTE_MS = 60_000


def test_a_request_may_come_for_an_hour():
    assert OLD_MS == 60 * MINUTE_MS


@pytest.mark.parametrize(
    ("minutes", "late"), [(-5, False), (0, False), (1, False), (59, False), (61, True), (600, True)]
)
def test_a_request_is_too_late_to_come_when_it_is_an_hour_old_and_not_earlier(minutes, late):
    """A clock that is ahead makes none old."""
    assert is_old(int(time.time() * 1000) - minutes * MINUTE_MS) is late
