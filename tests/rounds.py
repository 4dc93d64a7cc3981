"""The random tests again and again on fresh seeds, until the time is over."""

from __future__ import annotations

import argparse
import os
import random
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.step import Step

_FUZZ_MINUTES = 20
_FUZZ_FOLDER, _FUZZ_TEST = "tests/hostile", "only_errors_of_icecomb_come_out"
_DREW = re.compile(r"drew (\d+) cases of (\d+) random tests")


def run(pytest: Sequence[str], arguments: Sequence[str]) -> int:
    """`python3 -m tests random`: returns 1 if a round failed, or none drew a case.

    Args:
        pytest: How pytest is started.
        arguments: ``--minutes N``, ``--seed S`` or ``--fuzz [MINUTES]``; further ones are pytest's.
    """
    parser = argparse.ArgumentParser(prog="python3 -m tests random", allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--minutes", type=float, help="draw fresh cases for so long")
    what.add_argument("--seed", type=int, help="repeat the round of this seed")
    what.add_argument(
        "--fuzz",
        type=float,
        nargs="?",
        const=_FUZZ_MINUTES,
        metavar="MINUTES",
        help=f"feed each parser fresh hostile input for {_FUZZ_MINUTES} minutes of processors",
    )
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="rounds at a time (2)"
    )
    options, others = parser.parse_known_args(arguments)
    rounds = _Rounds([*pytest, "-q", "-p", "no:cacheprovider", "-m", "random", *others])
    if options.seed is not None:
        rounds.run(options.seed, None)
    elif options.fuzz is not None:
        fuzz = ["-k", _FUZZ_TEST, f"--fuzz-minutes={options.fuzz}"]
        rounds = _Rounds(
            [*pytest, "-q", "-p", "no:cacheprovider", *fuzz, *(others or [_FUZZ_FOLDER])]
        )
        rounds.run(_fresh_seed(), None)
    else:
        until = time.time() + 60 * options.minutes
        with ThreadPoolExecutor(options.jobs) as pool:
            for lane in [pool.submit(rounds.repeat, until) for _ in range(options.jobs)]:
                lane.result()
    return rounds.verdict()


def _fresh_seed() -> int:
    return random.SystemRandom().randrange(1, 1 << 31)


class _Rounds:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._turn = threading.Lock()
        self._begun = time.monotonic()
        self._rounds = self._tests = self._cases = 0
        self._failed: list[int] = []

    def repeat(self, until: float) -> None:
        """Round after round until that time (epoch seconds)."""
        while time.time() < until:
            self.run(_fresh_seed(), until)

    def run(self, seed: int, until: float | None) -> None:
        """One round; what it said is shown only if it failed."""
        print(f"round of seed {seed} begins", flush=True)
        limit = [] if until is None else ["--until", str(until)]
        round_ = Step(f"seed {seed}", [*self._command, "--random-seed", str(seed), *limit]).wait()
        with self._turn:
            self._rounds += 1
            drew = _DREW.search(round_.said)
            if drew:
                self._cases += int(drew[1])
                self._tests += int(drew[2])
            verdict = "failed" if round_.failed else "passed"
            if round_.failed:
                self._failed.append(seed)
                round_.show()
            told = drew[0] if drew else "drew nothing"
            print(f"round of seed {seed} {verdict}: {told} in {round_.seconds:.0f} s", flush=True)

    def verdict(self) -> int:
        """Says how much was drawn, and which seeds to repeat; the exit code."""
        for seed in self._failed:
            print(f"repeat it: python3 -m tests random --seed {seed}")
        verdict = "FAILED" if self._failed or not self._cases else "PASSED"
        print(
            f"\nicecomb: {verdict}: {self._rounds} rounds, {self._tests} random tests, "
            f"{self._cases} cases, {len(self._failed)} rounds failed "
            f"({time.monotonic() - self._begun:.0f} s)",
            flush=True,
        )
        return 1 if verdict == "FAILED" else 0
