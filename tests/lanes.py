"""Two lanes of tests, side by side, each a pytest with services of its own.

Both know the same order of files, in which those that share a server stand together. One lane works from its front, the other from its
back; each claims a file before it runs it, so that they meet wherever the time is half over, and no record of times is needed.

Every run also notes what each test took, for its list of the slowest and for the parts of `full`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
LANES = ("front", "back")
SLOW_S = 8.0
"""A test that takes longer says why: ``pytest.mark.slow(reason)``."""
# What is slow to start and large: at the front Spark, at the back the others; what is quick stands between.
_AT_FRONT = ("iceberg_java", "other_spark", "spark")
_AT_BACK = ("pypaimon", "paimon_java", "azurite", "google_store", "other_s3")
_AT_VERY_BACK = ("secured_hdfs", "kdc", "metastores", "hdfs")

_TAKEN = pytest.StashKey[dict[str, list[Any]]]()
_STARTING = pytest.StashKey[list[float]]()


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort whole files so that those that share a server stand together."""
    used: dict[Path, set[str]] = {}
    for item in items:
        used.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))

    def rank(path: Path) -> tuple[Any, ...]:
        names = used[path]
        front = tuple(name not in names for name in _AT_FRONT)
        back = tuple(name in names for name in (*_AT_VERY_BACK, *_AT_BACK))
        return (*front, *back, path)

    ranks = {path: rank(path) for path in used}
    return sorted(items, key=lambda item: ranks[item.path])


def add_options(parser: pytest.Parser) -> None:
    """Add what a run says to each of its lanes."""
    group = parser.getgroup("icecomb")
    group.addoption("--lane", choices=LANES, help="run files from this end of their order")
    group.addoption("--claims", type=Path, help="the folder where lanes claim files")
    group.addoption("--record-seconds", type=Path, help="write here how long each test took")


class _Services:
    """Measures what fixtures take that the whole run shares: that is no test's time.

    A plugin of its own, because pytest does not ask the conftest of a folder about such fixtures.
    """

    def __init__(self, starting: list[float]) -> None:
        self._starting = starting

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        begun, before = time.monotonic(), self._starting[0]
        try:
            return (yield)
        finally:
            if fixturedef.scope == "session":  # with those below it, which are counted already
                self._starting[0] = before + time.monotonic() - begun


def configure(config: pytest.Config) -> None:
    """Begin to measure."""
    config.stash[_TAKEN] = {}
    config.stash[_STARTING] = [0.0]
    config.pluginmanager.register(_Services(config.stash[_STARTING]))


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring the files into the order of this lane."""
    lane = config.getoption("--lane")
    if lane is not None:
        files = [list(group) for _, group in groupby(in_order(items), lambda item: item.path)]
        if lane == "back":
            files.reverse()
        items[:] = [item for file in files for item in file]


def run(session: pytest.Session) -> bool | None:
    """Run the files that the other lane has not claimed; without a lane leave it to pytest."""
    claims = session.config.getoption("--claims")
    if claims is None or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors while collecting")
    ahead = _claimed(session.items, claims)
    item = next(ahead, None)
    while item is not None:
        # pytest keeps what the next test needs, too: its file is claimed before this one ends
        following = next(ahead, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _claimed(items: Sequence[pytest.Item], claims: Path) -> Iterator[pytest.Item]:
    for path, file in groupby(items, lambda item: item.path):
        claim = claims / path.relative_to(ROOT).as_posix().replace("/", "+")
        try:
            claim.touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from file


def measure(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test and note what it took."""
    starting = item.config.stash[_STARTING]
    begun, before = time.monotonic(), starting[0]
    try:
        return (yield)
    finally:
        taken = time.monotonic() - begun - (starting[0] - before)
        slow = item.get_closest_marker("slow")
        reason = None if slow is None else slow.args[0]
        item.config.stash[_TAKEN][item.nodeid] = [round(taken, 3), reason]


def write(config: pytest.Config) -> None:
    """Write what was measured, where it is asked for."""
    path = config.getoption("--record-seconds")
    if path is not None:
        path.write_text(json.dumps(config.stash[_TAKEN]))
