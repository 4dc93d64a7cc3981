"""Each parser of what others wrote or answered is in the suite, and only icecomb's errors come out of it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from icecomb.format.errors import IcecombError
from icecomb.format.input_limit import UNPACKED
from tests.hostile.coverage import MODULES
from tests.hostile.parser import Sound, changed
from tests.hostile.registry import PARSERS

ROOT = Path(__file__).parents[2]
_SLOWEST = 20
"""How many times longer than its time of processors a parser may take."""


@pytest.mark.full("starts a process for each parser")
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.seeds(1)
def test_only_errors_of_icecomb_come_out(
    parser: str, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    command = [sys.executable, "-m", "tests.hostile", parser, str(tmp_path), "--seed", str(seed)]
    minutes = request.config.getoption("--fuzz-minutes")
    budget = ["--cases", "250"] if minutes is None else ["--cpu-seconds", str(60 * minutes)]
    # threads reserve stacks: less of them leave the 2 GiB to what is read
    few = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", UNPACKED.name: "256"}
    done = subprocess.run(
        [*command, *budget],
        cwd=ROOT,
        env={**os.environ, **few},
        capture_output=True,
        text=True,
        timeout=900 + 60 * _SLOWEST * (minutes or 0),
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr[-3000:]}; the input is {tmp_path}/last"
    told: dict[str, Any] = json.loads(done.stdout)
    assert [one[2:] for one in told["found"]] == []
    assert told["refused"] >= 25


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    return Sound(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.seeds(2, gate=1)
def test_a_few_changes_bring_out_only_errors_of_icecomb(name: str, seed: int, sound: Sound) -> None:
    parser = PARSERS[name](sound)
    parser.check()
    for data in changed(parser, seed, range(8)):
        with suppress(IcecombError):
            parser.parse(data)


DECODES = re.compile(
    r"bounded_json\(|check_json\(|json\.loads?\(|\.json\(\)|struct\.(?:iter_)?unpack|\bStruct\(|int\.from_bytes\("
    r"|frombuffer\(|ET\.fromstring|ParserCreate|yaml\.compose|TBinaryProtocol|b64decode\("
    r"|fastavro\.(?:schemaless_)?reader\(|pq\.read_metadata\(|ParquetFile\(|ORCFile\(|ipc\.open_|decompress\("
)
"""What takes bytes apart, in code."""


def decoding() -> set[str]:
    """The modules in whose code, comments and texts aside, something takes bytes apart."""
    found = set()
    for room in ("format", "catalog", "spark"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text()
            if DECODES.search(text) and DECODES.search(ast.unparse(ast.parse(text))):
                found.add(str(path.relative_to(ROOT)))
    return found


def test_each_module_that_takes_bytes_apart_is_fed_by_a_parser_or_says_why_not() -> None:
    assert decoding() == set(MODULES)


def test_each_parser_that_feeds_a_module_is_there() -> None:
    named = {name for said in MODULES.values() if isinstance(said, tuple) for name in said}
    assert named <= set(PARSERS)


def test_the_suite_ends_when_the_time_is_over(tmp_path: Path) -> None:
    begun = time.monotonic()
    command = [sys.executable, "-m", "tests.hostile", "token_text", str(tmp_path), "--seed", "7"]
    done = subprocess.run(
        [*command, "--cpu-seconds", "0.01"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert told["found"] == []
    assert 0.01 <= told["seconds"] <= time.monotonic() - begun
