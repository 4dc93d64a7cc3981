"""Two halves of the tests, to run side by side in about the same time, whole files each.

How long the files take stands in `seconds.json`; each whole run of the gate measures it anew, into `build/seconds.json`.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_name("seconds.json")
# Slow to start, and much memory: the tests that need any of them stay together, so each runs once.
IN_FIRST = frozenset({"metastores"})
IN_SECOND = frozenset({"spark", "other_spark", "iceberg_java"})
# What a test takes whose file was never measured.
_UNKNOWN = {"plain": 0.05, "jvm": 1.0}

Seconds = Mapping[str, Mapping[str, float]]
"""By kind (`jvm` or `plain`), by file, all its tests together; without starting shared services."""

_TAKEN = pytest.StashKey[dict[str, dict[str, float]]]()
_STARTING = pytest.StashKey[list[float]]()


def half(items: Sequence[pytest.Item], number: int, recorded: Seconds) -> set[Path]:
    """The files of half 1 or 2 of some tests: those that share what is slow to start, then the heaviest first."""
    weights: dict[Path, float] = defaultdict(float)
    together: tuple[set[Path], set[Path]] = (set(), set())
    tests: dict[tuple[str, Path], int] = defaultdict(int)
    for item in items:
        tests[kind(item), item.path] += 1
        for files, slow in zip(together, (IN_FIRST, IN_SECOND), strict=True):
            if slow.intersection(getattr(item, "fixturenames", ())):
                files.add(item.path)
    for (what, path), found in tests.items():
        name = path.relative_to(ROOT).as_posix()
        weights[path] += recorded.get(what, {}).get(name, found * _UNKNOWN[what])
    halves = [together[0] - together[1], together[1]]
    loads = [sum(weights[path] for path in files) for files in halves]
    for path in sorted(set(weights) - set.union(*halves), key=lambda path: (-weights[path], path)):
        lighter = loads.index(min(loads))
        halves[lighter].add(path)
        loads[lighter] += weights[path]
    return halves[number - 1]


def kind(item: pytest.Item) -> str:
    """`jvm` or `plain`."""
    return "plain" if item.get_closest_marker("jvm") is None else "jvm"


def recorded_seconds() -> Seconds:
    """What `seconds.json` holds."""
    found: Seconds = json.loads(RECORD.read_text())
    return found


def add_options(parser: pytest.Parser) -> None:
    """What the gate asks of each half."""
    group = parser.getgroup("icecomb")
    group.addoption("--half", type=int, choices=(1, 2), help="run only this half of the files")
    group.addoption("--record-seconds", type=Path, help="write here how long each file took")


def configure(config: pytest.Config) -> None:
    """Begin to measure."""
    config.stash[_TAKEN] = {"jvm": {}, "plain": {}}
    config.stash[_STARTING] = [0.0]


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the half that is asked for."""
    number = config.getoption("--half")
    if number is not None:
        files = half(items, number, recorded_seconds())
        config.hook.pytest_deselected(items=[item for item in items if item.path not in files])
        items[:] = [item for item in items if item.path in files]


def measure_service(
    fixturedef: pytest.FixtureDef[Any], config: pytest.Config
) -> Generator[None, object, object]:
    """Set a fixture up; what one takes that the whole run shares is no test's time."""
    begun = time.monotonic()
    starting = config.stash[_STARTING]
    before = starting[0]
    try:
        return (yield)
    finally:
        if fixturedef.scope == "session":  # with those below it, which are counted already
            starting[0] = before + time.monotonic() - begun


def measure(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test and note what it took."""
    starting = item.config.stash[_STARTING]
    begun, before = time.monotonic(), starting[0]
    try:
        return (yield)
    finally:
        taken = time.monotonic() - begun - (starting[0] - before)
        files = item.config.stash[_TAKEN][kind(item)]
        name = item.path.relative_to(ROOT).as_posix()
        files[name] = round(files.get(name, 0.0) + taken, 2)


def write(config: pytest.Config) -> None:
    """Write what was measured, where it is asked for."""
    path = config.getoption("--record-seconds")
    if path is not None:
        path.write_text(json.dumps(config.stash[_TAKEN]))
