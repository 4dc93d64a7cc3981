"""Values in memory: bounded, the least recently used go first, and each is read once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st

from icecomb.format.lru import Lru, ReadOnce

STEPS = st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 7)))


def keys(cache: Lru[str, int]) -> set[str]:
    return {key for key in "abcdefgh" if cache.find(key) is not None}


def test_the_least_recently_used_value_goes_first() -> None:
    cache = Lru[str, int](2)
    cache.keep("a", 1)
    cache.keep("b", 2)
    assert cache.find("a") == 1
    cache.keep("c", 3)
    assert keys(cache) == {"a", "c"}


@given(steps=STEPS, keeps_last=st.booleans())
def test_values_are_those_of_a_list_in_the_order_of_use(
    steps: list[tuple[str, int | None]], *, keeps_last: bool
) -> None:
    cache = Lru[str, int](8, lambda size: size, keeps_last=keeps_last)
    model: list[tuple[str, int]] = []
    for key, size in steps:
        if size is None:
            held = dict(model).get(key)
            assert cache.find(key) == held
            if held is not None:
                model = [pair for pair in model if pair[0] != key] + [(key, held)]
            continue
        cache.keep(key, size)
        model = [pair for pair in model if pair[0] != key] + [(key, size)]
        while sum(held for _, held in model) > 8:
            model.pop(0)
    assert len(cache) == len(model)
    assert {key: cache.find(key) for key, _ in model} == dict(model)


@pytest.mark.parametrize(("keeps_last", "kept"), [(False, {"a"}), (True, {"b"})])
def test_a_value_above_the_limit_is_kept_alone_or_not_at_all(
    kept: set[str], *, keeps_last: bool
) -> None:
    cache = Lru[str, int](5, lambda size: size, keeps_last=keeps_last)
    cache.keep("a", 5)
    cache.keep("b", 6)
    assert keys(cache) == kept


def test_a_value_that_replaces_another_counts_once() -> None:
    cache = Lru[str, int](5, lambda size: size)
    for size in (4, 5, 3):
        cache.keep("a", size)
    cache.keep("b", 2)
    assert keys(cache) == {"a", "b"}
    cache.keep("a", 6)
    assert keys(cache) == {"b"}, "what was replaced is not found again"


def test_spared_keys_go_after_all_others() -> None:
    cache = Lru[str, int](2, spares=lambda key: key == "a")
    for key in "abcd":
        cache.keep(key, 1)
    assert keys(cache) == {"a", "d"}


def test_chosen_keys_are_discarded() -> None:
    cache = Lru[str, int](9)
    for key in "abc":
        cache.keep(key, 1)
    cache.discard(lambda key: key < "c")
    assert keys(cache) == {"c"}
    cache.discard()
    assert len(cache) == 0


def test_many_threads_keep_within_the_limit() -> None:
    cache = Lru[int, int](50, lambda size: size)

    def use(first: int) -> None:
        for n in range(2_000):
            cache.keep((first + n) % 97, n % 7)
            cache.find(n % 97)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert sum(cache.find(key) or 0 for key in range(97)) <= 50


def test_a_value_is_read_once_by_many_threads_and_others_are_read_meanwhile() -> None:
    cache = ReadOnce[str, str | None](8)
    began, go_on = threading.Event(), threading.Event()
    read: list[str] = []

    def slow() -> None:
        began.set()
        assert go_on.wait(60)
        read.append("a")

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(cache.of, "a", slow) for _ in range(7)]
        assert began.wait(60)
        assert cache.of("b", lambda: "b") == "b"
        go_on.set()
        assert [one.result() for one in waiting] == [None] * 7
    assert read == ["a"], "None is a value, too"


def test_what_could_not_be_read_is_read_again() -> None:
    cache = ReadOnce[str, int](8)
    with pytest.raises(ZeroDivisionError):
        cache.of("a", lambda: 1 // 0)
    assert cache.of("a", lambda: 7) == 7


def test_a_value_that_does_not_fit_is_read_again() -> None:
    cache = ReadOnce[str, int](8)
    assert cache.of("a", lambda: 1) == 1
    assert cache.of("a", lambda: 2, lambda value: value > 1) == 2
    assert cache.of("a", lambda: 3, lambda value: value > 1) == 2
