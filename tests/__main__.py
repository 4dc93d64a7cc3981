"""The tests: ``python3 -m tests`` sets up what it needs, then lint, types, layers, tests, one verdict.

Needs Python 3.10+ and, but for `fast`, a JDK 17. Makes ``.venv`` (icecomb, editable, with its test extra; ``.venv-tests`` where
there is a ``.venv`` that was not made here) beside this folder and reuses it while its recipe is unchanged; `full` also makes those
of the peers that cannot live in it. Tests run in two lanes side by side, each a pytest with services of its own; what failed stands
at the end of the output. `tests/README.md` says more.

    python3 -m tests                       the gate, on the same cases each time
    python3 -m tests fast                  what of the gate is quick and needs no Java
    python3 -m tests full                  everything there is
    python3 -m tests full --part 2/4       a part of it that stands alone
    python3 -m tests full catalog/migrate  a folder or file of it
    python3 -m tests lint                  ruff
    python3 -m tests types                 mypy and the order of the layers
    python3 -m tests drill                 mutations of the product, each of which the gate must catch; --rooms, --help
    python3 -m tests one PATH...           these tests, whatever their ring, with pytest's arguments
    python3 -m tests random --minutes N    the random tests on fresh seeds, again and again; --seed S repeats a round
    python3 -m tests random --fuzz         hostile input to each parser, 20 minutes of processors each; --fuzz 5: five
    python3 -m tests spark VERSION         tests/spark/sql on this Spark: 3.5, 3.5_2.13 (Scala), 4.0, 4.1, 4.2 or 4.3
    python3 -m tests -k migrate -x         the gate as one pytest, with these arguments
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests import drill, parts, rounds
from tests.environments import ROOT, has_jdk, made, prepare, script, spark_venv
from tests.lanes import LANES, SLOW_S
from tests.step import Step

_OF_EVERY_SPARK = ("sql_files", "sql_of_iceberg_tables", "session_catalog")
_WITHOUT_ARGUMENTS = {"gate", "fast", "lint", "types"}
_WITHOUT_JAVA = {"fast", "lint", "types"}
_SPARK_START = "tests.peers.class_archive"
_SLOWEST = 10
_HANGING_S = 50
_MEMORY_BYTES = 4 << 30


def main(arguments: list[str]) -> int:
    """Run the gate or one of the commands, and return its exit code."""
    if sys.version_info < (3, 10):  # noqa: UP036 - the message is for those who start it with an older Python
        print("icecomb needs Python 3.10 or newer", file=sys.stderr)
        return 2
    command, *others = arguments or ["gate"]
    if command in {"help", "-h", "--help"}:
        print(__doc__)
        return 0
    if command in _WITHOUT_ARGUMENTS and others:
        print(f"{command} takes no arguments; pytest's go after: one", file=sys.stderr)
        return 2
    chosen = _of_full(others) if command == "full" else []
    if command not in _WITHOUT_JAVA and not has_jdk():
        return 2
    begun = time.monotonic()
    python = prepare(peers=command == "full")
    prepared_s = time.monotonic() - begun
    pytest = [str(python), "-m", "pytest"]
    if command in {"gate", "fast", "full"}:
        return _verdict(_ring(pytest, command, chosen), prepared_s)
    if command == "lint":
        return _verdict(_lint(), prepared_s)
    if command == "types":
        return _verdict(_shown(_types()), prepared_s)
    if command == "random":
        return rounds.run(pytest, others)
    if command == "drill":
        return drill.run(pytest, others)
    if command == "spark":
        return _sql_files(pytest, *others)
    given = others if command == "one" else ["--ring", "gate", *arguments]
    return subprocess.run([*pytest, *given], check=False).returncode


def _of_full(arguments: Sequence[str]) -> list[str]:
    """Return pytest's arguments of ``full [--part K/N] [PATH...]``."""
    parser = argparse.ArgumentParser(prog="python3 -m tests full", allow_abbrev=False)
    parser.add_argument("--part", help="K/N: part K of N that take about the same time")
    parser.add_argument("paths", nargs="*", help="folders or files, such as catalog/migrate")
    options = parser.parse_args(arguments)
    found = []
    if options.part is not None:
        try:
            parts.parsed(options.part)
        except ValueError as error:
            parser.error(str(error))
        found += ["--part", options.part]
    for path in options.paths:
        places = [(folder / path).resolve() for folder in (ROOT / "tests", ROOT)]
        tests = [each for each in places if each.exists() and (ROOT / "tests") in each.parents]
        if not tests:
            parser.error(f"there is no {path} in tests/")
        found.append(str(tests[0]))
    return found


def _ring(pytest: Sequence[str], ring: str, chosen: Sequence[str]) -> list[Step]:
    """Run a ring, or what is chosen of it, in two lanes; beside them types and layers."""
    started = [] if ring in _WITHOUT_JAVA else [Step("spark", [pytest[0], "-m", _SPARK_START])]
    steps = _lint()
    with tempfile.TemporaryDirectory(
        prefix="icecomb-", dir=_memory(ring), ignore_cleanup_errors=True
    ) as folder:
        claims, temporary = Path(folder, "claims"), Path(folder, "tmp")
        claims.mkdir()
        temporary.mkdir()
        environment = {"TMPDIR": str(temporary)}
        if ring == "fast":  # a test that starts Java without the mark fails
            environment["JAVA_HOME"] = str(ROOT / "tests" / "no-java")
        records = [Path(folder, f"{lane}.json") for lane in LANES]
        types = _types()
        lanes = []
        for lane, record in zip(LANES, records, strict=True):
            # with "=", so that pytest does not take the folders for those of tests
            place = [f"--lane={lane}", f"--claims={claims}", f"--record-seconds={record}"]
            place.append(f"--basetemp={Path(folder, lane)}")
            # a lane does not know how many tests will be its own: no percentages
            place += ["-o", "console_output_style=classic"]
            if ring != "full":  # where each thread is when a test seems to hang
                place += ["-o", f"faulthandler_timeout={_HANGING_S}"]
            command = [*pytest, "-q", "--ring", ring, *place, *chosen]
            lanes.append(Step(f"tests, {lane} lane", command, environment))
        steps += _shown([*types, *lanes])
        for step in started:  # the tests that need it did it again, and said what failed
            step.wait()
        taken = {}
        for record in records:
            taken.update(json.loads(record.read_text()) if record.exists() else {})
    kept = ROOT / "build" / f"seconds-{ring}.json"
    kept.write_text(json.dumps(taken, indent=0))
    if ring == "full" and not any(step.failed for step in lanes):
        parts.record(taken)
    _show_slowest(taken)
    return steps


def _memory(ring: str) -> str | None:
    """Return a folder in memory where there is room: a third of what many tests take is waiting for a disk."""
    folder = Path("/dev/shm")  # noqa: S108 - what is made there has a name that nobody can guess
    if ring == "full" or not folder.is_dir() or shutil.disk_usage(folder).free < _MEMORY_BYTES:
        return None
    return str(folder)


def _show_slowest(taken: dict[str, tuple[float, str | None]]) -> None:
    """Print the slowest tests, and why those are slow that take long."""
    slowest = sorted(taken.items(), key=lambda each: -each[1][0])[:_SLOWEST]
    print(f"\n== the {len(slowest)} slowest of {len(taken)} tests")
    for name, (seconds, reason) in slowest:
        why = reason or ("no reason is given: pytest.mark.slow" if seconds > SLOW_S else "")
        print(f"{seconds:6.1f} s  {name}{f'  ({why})' if why else ''}")


def _sql_files(pytest: Sequence[str], minor: str, *others: str) -> int:
    made(spark_venv(minor))
    files = [str(ROOT / "tests" / "spark" / f"test_{name}.py") for name in _OF_EVERY_SPARK]
    which = [*files, "-k", "another_spark", "--spark", minor]
    return subprocess.run([*pytest, *which, *others], check=False).returncode


def _lint() -> list[Step]:
    return [
        Step("lint", [script("ruff"), "check"]).show(),
        Step("layout", [script("ruff"), "format", "--check"]).show(),
    ]


def _types() -> list[Step]:
    return [Step("types", [script("mypy")]), Step("layers", [script("lint-imports")])]


def _shown(steps: Sequence[Step]) -> list[Step]:
    return [step.show() for step in steps]


def _verdict(steps: Sequence[Step], prepared_s: float) -> int:
    failed = [step for step in steps if step.failed]
    for step in failed:
        print(f"\n== {step.name} failed", *step.failures, sep="\n")
    names = ", ".join(f"{step.name} {step.seconds:.0f} s" for step in failed or steps)
    verdict = f"{'FAILED' if failed else 'PASSED'}: {names}"
    took_s = time.monotonic() - _BEGUN
    print(f"\nicecomb: {verdict} ({took_s:.0f} s, {prepared_s:.0f} of them preparing)", flush=True)
    return 1 if failed else 0


_BEGUN = time.monotonic()

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
