"""The three rings of the tests: `fast` lies in `gate`, `gate` in `full`.

A test says at its own place which it belongs to, by a mark with a reason; without one it belongs to all three:

    pytestmark = pytest.mark.gate("kills forty processes")      not in `fast`
    pytestmark = pytest.mark.full("needs Spark 3.5")            only in `full`
    @pytest.mark.parametrize("kind", sampled(KINDS, keep=3))    three of them, the others only in `full`
    @pytest.mark.seeds(25, gate=5)                              likewise

Whatever starts Java (mark `jvm`) is not in `fast`. Tests of Hypothesis draw fewer cases outside of `full`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

RINGS = ("fast", "gate", "full")
"""From the innermost to the outermost."""
ALL = pytest.StashKey[list[pytest.Item]]()
"""All tests that were collected, before any were left out."""
_DRAWN = {"fast": 10, "gate": 6, "full": 1}
_FEWEST = 5
_SETTINGS = "_hypothesis_internal_use_settings"


def sampled(cases: Iterable[Any], keep: int) -> list[Any]:
    """Return all cases as parameters of which `gate` has only some, at a fixed stride.

    Args:
        cases: Values, or `pytest.param`; a tuple is the values of several names.
        keep: How many cases belong to `gate`, too.
    """
    values = list(cases)
    count = min(keep, len(values))
    kept = {at * len(values) // count for at in range(count)}
    reason = f"{len(kept)} of these {len(values)} cases are in the gate"
    return [each if at in kept else _only_full(each, reason) for at, each in enumerate(values)]


def _only_full(case: Any, reason: str) -> Any:
    marks: list[Any] = [pytest.mark.full(reason)]
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, *marks])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=marks)


def ring_of(item: pytest.Item) -> str:
    """Return the innermost ring that a test belongs to."""
    if item.get_closest_marker("full") is not None:
        return "full"
    if item.get_closest_marker("gate") is not None or item.get_closest_marker("jvm") is not None:
        return "gate"
    return "fast"


def within(items: Iterable[pytest.Item], ring: str) -> list[pytest.Item]:
    """Return the tests of a ring, with those of the rings inside it."""
    inside = RINGS[: RINGS.index(ring) + 1]
    return [item for item in items if ring_of(item) in inside]


def draw_fewer(items: Iterable[pytest.Item], ring: str) -> None:
    """Let tests of Hypothesis draw as many cases as their ring has time for."""
    done: set[int] = set()
    for item in items:
        test = getattr(item, "obj", None)
        if not getattr(test, "is_hypothesis_test", False):
            continue
        # all parameters of a test are one function
        function: Any = getattr(test, "__func__", test)
        chosen = getattr(function, _SETTINGS, None) or settings()
        fewer = max(_FEWEST, chosen.max_examples // _DRAWN[ring])
        if id(function) not in done and fewer < chosen.max_examples:
            setattr(function, _SETTINGS, settings(chosen, max_examples=fewer))
        done.add(id(function))


def add_options(parser: pytest.Parser) -> None:
    """Add the choice of a ring."""
    group = parser.getgroup("icecomb")
    group.addoption("--ring", choices=RINGS, default="full", help="run only the tests of this ring")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the tests of the chosen ring."""
    ring = config.getoption("--ring")
    kept = within(items, ring)
    if config.getoption("--random-seed") is None:
        draw_fewer(kept, ring)
    inside = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in inside])
    items[:] = kept
