"""The drill: the product is broken in one line at a time, and the gate must notice each time.

`mutations.txt` holds what is broken. Each mutation is made in a copy of the checkout as it is, uncommitted changes included; first the
tests that stand closest run there, then the others of the gate, until one fails. That test must pass again without the mutation, or it
proves nothing.
"""

from __future__ import annotations

import argparse
import queue
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.drill.mutation import Mutation
from tests.drill.mutations import MUTATIONS
from tests.drill.trial import CAUGHT, Result, Trial
from tests.drill.working_copy import WorkingCopy

ROOT = Path(__file__).resolve().parent.parent.parent


def run(pytest: Sequence[str], arguments: Sequence[str]) -> int:
    """`python3 -m tests drill`: returns 0 if every mutation was caught.

    Args:
        pytest: How pytest is started.
        arguments: See ``--help``.
    """
    parser = argparse.ArgumentParser(prog="python3 -m tests drill", allow_abbrev=False)
    parser.add_argument(
        "--rooms", nargs="+", metavar="ROOM", help="such as format/scan, catalog/commit, or spark"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="mutations whose names have one of these texts"
    )
    parser.add_argument("--list", action="store_true", help="only name the mutations")
    parser.add_argument(
        "--near", action="store_true", help="run the tests of a mutation's room, and no others"
    )
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2, help="at a time (2)")
    parser.add_argument(
        "--limit", type=float, default=3600, metavar="S", help="seconds for one mutation (3600)"
    )
    options = parser.parse_args(arguments)
    chosen = [
        each
        for each in MUTATIONS
        if (not options.rooms or any(map(each.is_in, options.rooms)))
        and (not options.only or any(text in each.name for text in options.only))
    ]
    if not chosen:
        parser.error("there is no such mutation; --list names all")
    if options.list:
        for each in chosen:
            print(f"{each.place}: {each.name}")
        return 0
    trial = Trial(pytest, limit_s=options.limit, near=options.near)
    return drill(ROOT, chosen, trial, jobs=options.jobs)


def drill(root: Path, mutations: Sequence[Mutation], trial: Trial, *, jobs: int) -> int:
    """Try mutations of a checkout, say what became of each, and return the exit code.

    Args:
        root: The checkout, of which copies are made.
        mutations: What to break.
        trial: How a mutation is tried.
        jobs: How many are tried at a time.
    """
    begun = time.monotonic()
    copies: queue.SimpleQueue[WorkingCopy] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="icecomb-drill-") as folder:
        for number in range(jobs):
            copies.put(WorkingCopy.of(root, Path(folder, str(number))))

        def attempt(mutation: Mutation) -> Result:
            copy = copies.get()
            try:
                return trial.run(mutation, copy)
            finally:
                copies.put(copy)

        results = []
        with ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(attempt, mutation) for mutation in mutations]
            try:
                for done in as_completed(running):
                    results.append(done.result())
                    _tell(results, len(mutations), time.monotonic() - begun)
            except BaseException:
                trial.stop()
                pool.shutdown(cancel_futures=True)
                raise
        results = trial.verified(results, copies.get())
    missed = [each for each in results if each.outcome != CAUGHT]
    if missed:
        print("\n== not caught")
        for each in missed:
            print(f"{each.mutation.place}: {each.mutation.name}: {each.outcome}: {each.by}")
    print(f"\ndrill: {len(results) - len(missed)} of {len(results)} caught", flush=True)
    return 1 if missed else 0


def _tell(results: Sequence[Result], total: int, taken_s: float) -> None:
    last, count = results[-1], len(results)
    left_s = taken_s / count * (total - count)
    print(
        f"[{count:3}/{total}] {last.outcome}: {last.mutation.name} ({last.mutation.place}), "
        f"{last.seconds:.0f} s\n          by {last.by}\n"
        f"          {60 * count / taken_s:.1f} a minute, about {left_s / 60:.0f} min left",
        flush=True,
    )
