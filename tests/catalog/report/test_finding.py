"""Findings of many places."""

from __future__ import annotations

from icecomb.catalog.report.finding import Mentions, warning


def test_all_places_count_and_a_handful_is_kept() -> None:
    mentions = Mentions()
    for number in range(7):
        mentions.add(f"p={number}")
    found = warning("unread", "Some partitions are unread", "read them", mentions)
    assert found.count == 7
    assert found.places == tuple(f"p={number}" for number in range(5))
