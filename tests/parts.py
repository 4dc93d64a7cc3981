"""Parts of `full` that stand alone: they take about the same time, and each test is in exactly one of them.

They are cut from the order of `lanes`, so that files that share a slow server are together. How long the files take stands in
`seconds.json`, which every run of `full` brings up to date.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from tests.lanes import ROOT, in_order

RECORD = Path(__file__).with_name("seconds.json")
# What a test takes whose file was never measured.
_PLAIN_S, _JVM_S = 0.05, 1.0


def part(
    items: Sequence[pytest.Item], number: int, count: int, seconds: Mapping[str, float]
) -> list[pytest.Item]:
    """Return part 1, 2, ... of `count`, whole files.

    Args:
        items: All tests.
        number: Which part.
        count: How many parts there are.
        seconds: What each file takes, by its path from the top of the checkout.
    """
    files = [list(group) for _, group in groupby(in_order(items), lambda item: item.path)]
    lengths = [seconds.get(_name(file[0].path), _guess(file)) for file in files]
    total = sum(lengths) or 1.0
    found, begun = [], 0.0
    for file, length in zip(files, lengths, strict=True):
        if min(int((begun + length / 2) / total * count), count - 1) == number - 1:
            found += file
        begun += length
    return found


def _guess(file: Sequence[pytest.Item]) -> float:
    return sum(_PLAIN_S if each.get_closest_marker("jvm") is None else _JVM_S for each in file)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def recorded_seconds() -> dict[str, float]:
    """Return what `seconds.json` holds."""
    found: dict[str, float] = json.loads(RECORD.read_text())
    return found


def record(tests: Mapping[str, Sequence[object]]) -> None:
    """Bring `seconds.json` up to date for the files of these tests.

    Args:
        tests: Node identifiers, and the seconds each test took with the reason why, as `lanes` writes them.
    """
    taken: dict[str, float] = defaultdict(float)
    for node, (seconds, _) in tests.items():
        taken[node.partition("::")[0]] += float(str(seconds))
    known = {name: s for name, s in recorded_seconds().items() if (ROOT / name).exists()}
    found = known | {name: round(seconds, 1) for name, seconds in taken.items()}
    RECORD.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


def parsed(text: str) -> tuple[int, int]:
    """Return number and count of ``k/n``."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"a part is k/n with 1 <= k <= n, such as 2/4, not {text!r}")
    return int(number), int(count)


def add_options(parser: pytest.Parser) -> None:
    """Add the choice of a part."""
    group = parser.getgroup("icecomb")
    group.addoption(
        "--part", metavar="K/N", help="run only part K of N parts of about the same time"
    )


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the part that is asked for."""
    asked = config.getoption("--part")
    if asked is not None:
        inside = set(part(items, *parsed(asked), recorded_seconds()))
        config.hook.pytest_deselected(items=[item for item in items if item not in inside])
        items[:] = [item for item in items if item in inside]
