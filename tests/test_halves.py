"""The gate's halves: every test is in one of them, and what is slow to start only in one."""

from __future__ import annotations

from types import SimpleNamespace

from tests.halves import ROOT, half


def made(name, count=1, fixtures=(), marks=()):
    def closest(mark):
        return mark if mark in marks else None

    path = ROOT / "tests" / name
    return [
        SimpleNamespace(path=path, fixturenames=fixtures, get_closest_marker=closest)
        for _ in range(count)
    ]


def names(paths):
    return {path.name for path in paths}


def test_files_are_balanced_by_what_they_took():
    items = [each for name in "abcde" for each in made(name)]
    took = {
        "plain": {
            f"tests/{name}": seconds
            for name, seconds in {"a": 9, "b": 5, "c": 4, "d": 3, "e": 3}.items()
        }
    }
    assert names(half(items, 1, took)) == {"a", "d"}
    assert names(half(items, 2, took)) == {"b", "c", "e"}


def test_the_files_that_share_what_is_slow_to_start_stay_together():
    items = made("x", 50, ("spark",), ("jvm",)) + made("y", 50, ("metastores",), ("jvm",))
    items += made("both", 1, ("spark", "metastores"), ("jvm",))
    items += made("z", 30, ("catalog",), ("jvm",)) + made("w", 10, ("catalog",), ("jvm",))
    assert names(half(items, 1, {})) == {"y", "z"}
    assert names(half(items, 2, {})) == {"x", "both", "w"}


def test_only_the_tests_that_run_count():
    """A file may take long for tests that need Java and are left out."""
    items = [each for name in "abc" for each in made(name)]
    took = {"plain": {"tests/a": 1, "tests/b": 1, "tests/c": 2}, "jvm": {"tests/a": 100}}
    assert names(half(items, 1, took)) == {"c"}
