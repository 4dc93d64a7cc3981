"""Which cases the random tests draw: the pinned ones, or fresh ones from a seed.

Random are the tests of Hypothesis, and those that take numbers from `Random(seed)`: they are marked
``seeds(n)`` (``seeds(n, gate=k)``: k of them in the gate) and take `seed`, or use the fixture `first_seed`. All of them get the mark ``random``.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Generator
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.rings import sampled

# Time is never a verdict here: the machine may be busy. Whoever runs the tests gets the same cases
# every time, so that what is red was made red by a change.
_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("pinned", derandomize=True, **_SETTINGS)
settings.register_profile("fresh", derandomize=False, database=None, **_SETTINGS)
settings.load_profile("pinned")


class _Count:
    """How many random tests ran, and how many cases they drew."""

    def __init__(self) -> None:
        self.tests = 0
        self.cases = 0


_COUNT = pytest.StashKey[_Count]()


def first_seed(config: pytest.Config) -> int:
    """What is added to the seeds that stand in the tests: 0 for the pinned cases."""
    return int(config.getoption("--random-seed") or 0)


def add_options(parser: pytest.Parser) -> None:
    """The options of `python3 -m tests random`."""
    group = parser.getgroup("icecomb")
    group.addoption("--random-seed", type=int, help="draw fresh cases from this seed")
    group.addoption(
        "--fuzz-minutes",
        type=float,
        help="feed each parser hostile input for so long, of processors",
    )
    group.addoption("--until", type=float, help="skip the tests left at this time (epoch seconds)")


def configure(config: pytest.Config) -> None:
    """Choose pinned or fresh cases; to be called before the tests are imported."""
    config.stash[_COUNT] = _Count()
    seed = config.getoption("--random-seed")
    if seed is not None:
        settings.load_profile("fresh")
        config.option.hypothesis_seed = str(seed)


def generate(metafunc: pytest.Metafunc) -> None:
    """Give tests marked ``seeds(n)`` their seeds."""
    mark = metafunc.definition.get_closest_marker("seeds")
    if mark is not None:
        first, count = first_seed(metafunc.config), mark.args[0]
        seeds = range(first, first + count)
        metafunc.parametrize("seed", sampled(seeds, keep=mark.kwargs.get("gate", count)))


def is_random(item: pytest.Item) -> bool:
    """Whether a test draws its cases."""
    return (
        getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        or item.get_closest_marker("seeds") is not None
        or "first_seed" in getattr(item, "fixturenames", ())
    )


def shuffle(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring fresh cases into a fresh order of files: a round that is cut short cuts others each time."""
    seed = config.getoption("--random-seed")
    if seed is not None:
        files = [list(group) for _, group in groupby(items, lambda item: item.path)]
        random.Random(seed).shuffle(files)
        items[:] = [item for file in files for item in file]


def check_time(item: pytest.Item) -> None:
    """Skip a test for which there is no time left."""
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("the time is over")


def count(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test and count its cases."""
    if not is_random(item):
        return (yield)
    counted = item.config.stash[_COUNT]
    counted.tests += 1
    drawn = getattr(getattr(item, "obj", None), "hypothesis", None)
    if drawn is None:
        counted.cases += 1
        return (yield)
    inner = drawn.inner_test

    @functools.wraps(inner)
    def case(*arguments: Any, **named: Any) -> Any:
        counted.cases += 1
        return inner(*arguments, **named)

    drawn.inner_test = case
    try:
        return (yield)
    finally:
        drawn.inner_test = inner


def summary(config: pytest.Config) -> str | None:
    """What was drawn, where fresh cases were asked for."""
    seed, counted = config.getoption("--random-seed"), config.stash[_COUNT]
    return None if seed is None else f"drew {counted.cases} cases of {counted.tests} random tests"
