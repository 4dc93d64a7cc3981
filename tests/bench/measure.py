"""Measuring in fresh processes: a benchmark is its own parent and child.

The parent runs the child again and again (`--child WHAT`), watches its memory, and prints one JSON
line a figure: the peers' medians, and the ratio of icecomb to the other peer in the same run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
MAX_GIB = 6.0
"""A child that needs more memory is ended, and reported."""
TIMEOUT_S = 1200.0
RESULT = "RESULT "
"""Stands before the line in which a child prints its figures."""
_POLL_S = 0.02

_T = TypeVar("_T")
Figures = dict[str, Any]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The arguments that all benchmarks have."""
    found = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument(
        "--peers", default="icecomb,pyiceberg", help="the first is compared with the second"
    )
    found.add_argument("--repeat", type=int, default=3, help="fresh processes a figure and peer")
    found.add_argument("--child", help=argparse.SUPPRESS)
    return found


def load_peer(name: str) -> Any:
    """The functions of `peer_<name>`; the library itself is imported when they are called."""
    return importlib.import_module(f"tests.bench.peer_{name}")


def clocked(work: Callable[[], _T]) -> tuple[_T, float, float]:
    """The result, the wall seconds, and the CPU seconds of all threads and of children that ended."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    result = work()
    return result, time.perf_counter() - wall, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    own = os.times()
    return time.process_time() + own.children_user + own.children_system


def memory_mb(field: str = "VmHWM") -> float:
    """The memory of this process: its peak, or with `VmRSS` what it has now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return round(int(line.split()[1]) / 1024, 1)
    raise LookupError(field)


def report(**figures: Any) -> None:
    """What a child has measured."""
    rounded = {k: round(v, 5) if isinstance(v, float) else v for k, v in figures.items()}
    print(RESULT + json.dumps(rounded), flush=True)


def run_child(what: str) -> Figures:
    """Run this benchmark's child; its figures, or `{"error": ...}`."""
    command = [sys.executable, "-m", _module(), *sys.argv[1:], "--child", what]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
        ) as child,
    ):
        problem = _watch(child)
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(RESULT) and problem is None:
                found: Figures = json.loads(line[len(RESULT) :])
                return found
        errors.seek(0)
        said = errors.read().strip().splitlines()
        return {"error": problem or (said[-1][:300] if said else "no result")}


def compare(measure: str, arguments: argparse.Namespace, what: str, **labels: Any) -> None:
    """Run a figure's children for both peers in turn, and print the line.

    Args:
        measure: The benchmark.
        arguments: Its arguments.
        what: The child; it is given `peer:what`.
        labels: More that the line says.
    """
    peers = arguments.peers.split(",")
    runs = in_turn(peers, lambda peer, _: run_child(f"{peer}:{what}"), arguments.repeat)
    figures = {peer: medians(found) for peer, found in runs.items()}
    print_line(
        measure,
        case=what,
        **labels,
        ratio=ratios(runs[peers[0]], runs[peers[1]]) if len(peers) > 1 else {},
        **figures,
    )


def in_turn(
    names: Sequence[str], run: Callable[[str, int], Figures], repeat: int, warm: int = 0
) -> dict[str, list[Figures]]:
    """The figures of all, who take turns, each time another one first.

    Args:
        names: Who runs; not again after an error.
        run: Given who, and the number of the turn.
        repeat: How many turns count.
        warm: How many come before them.
    """
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    for turn in range(warm + repeat):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            if not any("error" in found for found in runs[name]):
                figures = run(name, turn)
                if turn >= warm:
                    runs[name].append(figures)
    return runs


def print_runs(
    measure: str,
    runs: Mapping[str, Sequence[Figures]],
    against: Iterable[tuple[str, str]],
    **labels: Any,
) -> Figures:
    """Print the line of `in_turn`: the medians of each, and whose figures are over whose.

    Returns:
        Both.
    """
    compared = {f"{a}/{b}": ratios(runs[a], runs[b]) for a, b in against if {a, b} <= runs.keys()}
    found = {name: medians(each) for name, each in runs.items()}
    print_line(measure, **labels, ratio=compared, **found)
    return {**found, "ratio": compared}


def print_line(measure: str, **figures: Any) -> None:
    """One line of results, with how busy the machine is."""
    load = round(os.getloadavg()[0], 2)
    print(json.dumps({"measure": measure, **figures, "load": load}), flush=True)


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of every number; of other values the first run's."""
    for run in runs:
        if "error" in run:
            return run
    return {
        name: round(statistics.median(run[name] for run in runs), 4) if _is_number(value) else value
        for name, value in runs[0].items()
    }


def expect(found: object, expected: object, what: str) -> None:
    """A wrong answer is no benchmark."""
    if found != expected:
        raise SystemExit(f"{what}: {found} where {expected} were expected")


def ratios(ours: Sequence[Figures], theirs: Sequence[Figures]) -> Figures:
    """Figures of one peer over another's: medians, and of seconds also the least."""
    if any("error" in run for run in (*ours, *theirs)):
        return {}
    found: Figures = {}
    for name in ours[0]:
        if not name.endswith(("_s", "_mb")) or name not in theirs[0]:
            continue
        for suffix, choose in (("", statistics.median), ("_least", min)):
            if suffix and name.endswith("_mb"):
                continue
            below = choose(_column(theirs, name))
            if below > 0:
                found[name + suffix] = round(choose(_column(ours, name)) / below, 3)
    return found


def _column(runs: Iterable[Figures], name: str) -> list[float]:
    return [float(run[name]) for run in runs]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _module() -> str:
    return f"tests.bench.{Path(sys.argv[0]).stem}"


def _watch(child: subprocess.Popen[str]) -> str | None:
    """Wait for a child; why it was ended, or None."""
    page, started = os.sysconf("SC_PAGE_SIZE"), time.monotonic()
    statm = Path(f"/proc/{child.pid}/statm")
    while child.poll() is None:
        try:
            held = int(statm.read_text().split()[1]) * page / 2**30
        except (OSError, IndexError):
            held = 0.0
        problem = None
        if held > MAX_GIB:
            problem = f"ended above {MAX_GIB} GiB"
        elif time.monotonic() - started > TIMEOUT_S:
            problem = f"ended after {TIMEOUT_S:.0f} s at {held:.1f} GiB"
        if problem is not None:
            child.kill()
            return problem
        time.sleep(_POLL_S)
    return None
