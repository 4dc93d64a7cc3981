"""The gate: ``python3 -m tests`` sets up what it needs, then lint, types, layers, tests, one verdict.

Needs Python 3.10+ and a JDK 17. Makes ``.venv`` (icecomb, editable, with its test extra), ``.venv-iceberg-java``
(the reference implementation on its own Spark), ``.venv-pypaimon`` (it needs an older Arrow than ours) and
``.venv-spark-3.5`` (the Spark of many clusters) beside this
folder and reuses them while their recipe is unchanged. The tests run in two halves side by side, each a pytest with
services of its own; what failed stands at the end of the output. `tests/README.md` says more.

    python3 -m tests                      everything, on the same cases each time
    python3 -m tests fast                 what needs neither Java nor another environment: under two minutes
    python3 -m tests lint                 ruff
    python3 -m tests types                mypy and the order of the layers
    python3 -m tests one PATH...          these tests, with pytest's arguments
    python3 -m tests random --minutes N   the random tests on fresh seeds, again and again; --seed S repeats a round
    python3 -m tests spark VERSION        tests/spark/sql on this Spark: 3.5, 3.5_2.13 (Scala), 4.0, 4.1, 4.2 or 4.3
    python3 -m tests -k migrate -x        only one pytest, with these arguments
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests import rounds
from tests.environments import ROOT, has_jdk, prepare, prepare_spark, script
from tests.step import Step

_OF_EVERY_SPARK = ("sql_files", "sql_of_iceberg_tables", "session_catalog")
_SECONDS = [ROOT / "build" / f"seconds-{half}.json" for half in (1, 2)]


def main(arguments: list[str]) -> int:
    """Runs the gate or one of the commands, and returns its exit code."""
    if sys.version_info < (3, 10):  # noqa: UP036 - the message is for those who start it with an older Python
        print("icecomb needs Python 3.10 or newer", file=sys.stderr)
        return 2
    command, *others = arguments or ["all"]
    alone = command in {"fast", "lint", "types"}
    if alone and others:
        print(f"{command} takes no arguments; pytest's go after: one", file=sys.stderr)
        return 2
    if not alone and not has_jdk():
        return 2
    started = time.monotonic()
    pytest = [str(prepare(peers=not alone)), "-m", "pytest"]
    if command == "random":
        return rounds.run(pytest, others)
    if command == "spark":
        return _sql_files(pytest, *others)
    if command == "all":
        steps = _all(pytest)
    elif command == "fast":
        steps = _fast(pytest)
    elif command == "lint":
        steps = _lint()
    elif command == "types":
        steps = _types()
    else:
        given = others if command == "one" else arguments
        return subprocess.run([*pytest, *given], check=False).returncode
    return _verdict(steps, started)


def _all(pytest: list[str]) -> list[Step]:
    for path in _SECONDS:
        path.unlink(missing_ok=True)
    halves = [
        [*pytest, "--half", str(half), "--record-seconds", str(path)]
        for half, path in enumerate(_SECONDS, 1)
    ]
    beside = Step("tests with Spark", halves[1])
    steps = [*_lint(), *_types(), Step("all other tests", halves[0]).show(), beside.show()]
    _keep_seconds()
    return steps


def _fast(pytest: list[str]) -> list[Step]:
    # a test that starts Java without the mark fails here
    environment = {"JAVA_HOME": str(ROOT / "tests" / "no-java")}
    tests = [*pytest, "-q", "-m", "not jvm", "--half"]
    beside = Step("half of the tests", [*tests, "2"], environment)
    steps = [*_lint(), *_types(), Step("the other half", [*tests, "1"], environment).show()]
    return [*steps, beside.show()]


def _sql_files(pytest: list[str], minor: str, *others: str) -> int:
    prepare_spark(minor)
    files = [str(ROOT / "tests" / "spark" / f"test_{name}.py") for name in _OF_EVERY_SPARK]
    which = [*files, "-k", "another_spark", "--spark", minor]
    return subprocess.run([*pytest, *which, *others], check=False).returncode


def _lint() -> list[Step]:
    return [
        Step("lint", [script("ruff"), "check"]).show(),
        Step("layout", [script("ruff"), "format", "--check"]).show(),
    ]


def _types() -> list[Step]:
    return [
        Step("types", [script("mypy")]).show(),
        Step("layers", [script("lint-imports")]).show(),
    ]


def _keep_seconds() -> None:
    """Both halves' times in one file, in the form of `tests/seconds.json`."""
    found: dict[str, dict[str, float]] = {}
    for path in _SECONDS:
        if not path.exists():
            return
        for kind, files in json.loads(path.read_text()).items():
            found.setdefault(kind, {}).update(files)
    merged: Path = ROOT / "build" / "seconds.json"
    merged.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


def _verdict(steps: list[Step], started: float) -> int:
    failed = [step for step in steps if step.failed]
    for step in failed:
        print(f"\n== {step.name} failed", *step.failures, sep="\n")
    names = ", ".join(f"{step.name} {step.seconds:.0f} s" for step in failed or steps)
    verdict = f"{'FAILED' if failed else 'PASSED'}: {names}"
    print(f"\nicecomb: {verdict} ({time.monotonic() - started:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
