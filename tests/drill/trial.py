"""One mutation tried: which test fails because of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from tests.drill.mutation import Mutation
from tests.drill.working_copy import WorkingCopy

CAUGHT, MISSED, BROKEN = "caught", "not caught", "broken"
_PASSED, _FAILED, _NONE_CHOSEN = 0, 1, 5
_ABOUT_MUTATIONS = "tests/test_drill.py"
"""It looks at the texts that are replaced: it would notice every mutation, and none of what they do."""
_TEST_S = 300
"""A test that takes longer has failed: it may wait for what does not happen any more."""
_OPTIONS = (
    *("-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"),
    *(f"--timeout={_TEST_S}", f"--ignore={_ABOUT_MUTATIONS}"),
)
_GATE = ("--ring", "gate")
_MARKS = ("not jvm", "jvm")
"""What needs no Java is quick, and comes first."""


@dataclass(frozen=True)
class Result:
    """What became of a mutation.

    Attributes:
        mutation: The mutation.
        outcome: ``caught``: a test failed that passes without it; ``not caught``; ``broken``: the tests cannot tell.
        by: The test, or why there is none.
        seconds: How long it took.
    """

    mutation: Mutation
    outcome: str
    by: str
    seconds: float


class _BrokenError(Exception):
    """The tests cannot tell whether a mutation is noticed."""


class Trial:
    """How mutations are tried.

    Args:
        pytest: How pytest is started.
        limit_s: One mutation may take so long.
        near: Only the tests of its room are asked, and those that it names.
        ring: What of them.
    """

    def __init__(
        self,
        pytest: Sequence[str],
        *,
        limit_s: float,
        near: bool = False,
        ring: Sequence[str] = _GATE,
    ) -> None:
        self._pytest = pytest
        self._limit_s = limit_s
        self._near = near
        self._ring = ring
        self._running: set[int] = set()
        self._lock = Lock()
        self._stopped = False

    def run(self, mutation: Mutation, copy: WorkingCopy) -> Result:
        """Try one mutation in a copy."""
        begun = time.monotonic()
        until = begun + self._limit_s
        try:
            with copy.mutated(mutation):
                found = self._first_failure(mutation, copy, until)
            outcome = MISSED if found is None else CAUGHT
            by = found or f"no test {'near it' if self._near else 'of the gate'}"
        except _BrokenError as problem:
            outcome, by = BROKEN, str(problem)
        return Result(mutation, outcome, by, time.monotonic() - begun)

    def verified(self, results: Sequence[Result], copy: WorkingCopy) -> list[Result]:
        """The results, without those whose tests fail without the mutation as well.

        Args:
            results: What `run` returned.
            copy: A copy without any mutation.
        """
        tests = list(dict.fromkeys(each.by for each in results if each.outcome == CAUGHT))
        if not tests:
            return list(results)
        until = time.monotonic() + self._limit_s
        code, failed = self._tests([*tests, "--maxfail=0"], copy, until, errors=True)
        if code not in {_PASSED, _FAILED}:  # one of them may not be there without the mutation
            failed = [each for each in tests if self._tests([each], copy, until)[0] != _PASSED]
        return [
            replace(each, outcome=BROKEN, by=f"{each.by} fails without the mutation, too")
            if each.outcome == CAUGHT and each.by in failed
            else each
            for each in results
        ]

    def stop(self) -> None:
        """End what runs."""
        with self._lock:
            self._stopped = True
            for pid in self._running:
                _end(pid)

    def _first_failure(self, mutation: Mutation, copy: WorkingCopy, until: float) -> str | None:
        some = False
        for chosen in self._stages(mutation, copy):
            code, failed = self._tests(chosen, copy, until)
            if code == _FAILED and failed:
                return failed[0]
            named = chosen == list(mutation.tests)
            if code != _PASSED and (named or code != _NONE_CHOSEN):
                raise _BrokenError(f"pytest ended with {code} for {' '.join(chosen)}")
            some = some or code == _PASSED
        if not some:
            raise _BrokenError("there are no tests")
        return None

    def _stages(self, mutation: Mutation, copy: WorkingCopy) -> Iterator[list[str]]:
        if mutation.tests:
            yield list(mutation.tests)
        near = mutation.near(copy.root)
        if near:
            for mark in _MARKS:
                yield [*near, "-m", mark]
        if not self._near:
            for mark in _MARKS:
                yield ["tests", *(f"--ignore={path}" for path in near), "-m", mark]

    def _tests(
        self, chosen: Sequence[str], copy: WorkingCopy, until: float, *, errors: bool = False
    ) -> tuple[int, list[str]]:
        """Run tests up to the first that fails: pytest's exit code, and what failed."""
        with tempfile.TemporaryDirectory(prefix="icecomb-drill-") as folder:
            report = Path(folder, "report.xml")
            command = [*self._pytest, *_OPTIONS, f"--junit-xml={report}", *self._ring, *chosen]
            with Path(folder, "said").open("wb") as said:
                process = subprocess.Popen(
                    command,
                    cwd=copy.root,
                    env=copy.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                with self._known(process.pid):
                    code = _code(process, until)
            kinds = ("failure", "error") if errors else ("failure",)
            return code, _failed(report, copy.root, kinds) if report.exists() else []

    @contextlib.contextmanager
    def _known(self, pid: int) -> Iterator[None]:
        with self._lock:
            self._running.add(pid)
            if self._stopped:
                _end(pid)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(pid)


def _code(process: subprocess.Popen[bytes], until: float) -> int:
    try:
        return process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process.pid)
        process.wait()
        raise _BrokenError("it takes too long") from None


def _end(pid: int) -> None:
    """End a pytest and what it has started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _failed(report: Path, root: Path, kinds: Sequence[str]) -> list[str]:
    """The tests that failed, as pytest names them; what stops while it is set up is an error."""
    found = []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest's own
        if any(case.find(kind) is not None for kind in kinds):
            *folders, last = case.get("classname", "").split(".")
            inside: list[str] = []
            while folders and not root.joinpath(*folders, f"{last}.py").is_file():
                inside.insert(0, last)
                last = folders.pop()
            file = "/".join([*folders, f"{last}.py"])
            found.append("::".join([file, *inside, case.get("name", "")]))
    return found
