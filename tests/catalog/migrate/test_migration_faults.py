"""Every change that apply, revert and finalize ask for fails in every way, and people go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from migration_faults import MODES, WRITES, World, calls_of, run_case
from pyarrow import orc
from thrift_proxy import AWAY

from icecomb.catalog.hive import lock
from tests.catalog.migrate.conftest import AVRO, ORC
from tests.rings import sampled

MADE = "faulty"
VERBS = ("apply", "revert", "finalize")
LATE = {
    "checks": ("again", "revert", "expire"),
    "lock-free": ("revert", "append"),
    "does not check": ("again", "revert", "expire"),
}
"""What people do before a late request arrives. Who expires snapshots appends first."""


Fault = tuple[tuple[str, int, str], str]
"""What fails, and what people do next."""


def _by_turns(cases: list[Fault], first: int) -> list[Fault]:
    """Return one case of every third call and file, another one of those that there are each time.

    Of a verb that asks for little it is every second.
    """
    places = [list(same) for _, same in groupby(cases, lambda case: case[0][:2])]
    apart = min(3, len(places) // 3)
    return [
        same[turn % len(same)] for turn, same in enumerate(places[first % apart :: apart], first)
    ]


def _cases(mode: str, calls: list[str], files: list[str]) -> list[Fault]:
    found = []
    for position, method in enumerate(calls):
        if method in WRITES:
            found += [(("call", position, "late"), following) for following in LATE[mode]]
            if mode == "checks":
                found.append((("call", position, "reply"), "again"))
                found += [(("call", position, how), "revert") for how in ("refused", "betrayed")]
                found.append((("call", position, AWAY), ("again", "revert")[position % 2]))
    if mode == "checks":
        for position in range(len(files)):
            found += [(("file", position, how), "again") for how in ("late", "done")]
            found.append((("file", position, "lost"), "revert"))
    return found


def _runs() -> Iterator[Any]:
    every = pytest.mark.full("every fault of every call and file")
    for verb, mode in product(VERBS, MODES):
        if mode == "checks" or (verb, mode) == ("apply", "lock-free"):
            yield pytest.param(verb, mode, False, id=f"{verb}-{mode}-by turns")
        yield pytest.param(verb, mode, True, id=f"{verb}-{mode}-all", marks=every)


RUNS = list(_runs())


def _tried(
    world: World, verb: str, calls: list[str], fault: tuple[str, int, str], following: str
) -> str | Exception:
    try:
        return run_case(world, verb, calls, fault, following)
    except Exception as error:  # noqa: BLE001 - all are shown
        return error


def _outcomes(
    metastore: Any, make: Any, mode: str, verb: str, *, all_of_them: bool
) -> tuple[Counter[str], list[str]]:
    world = World(metastore, make, mode)
    said: Counter[str] = Counter()
    problems = []
    try:
        calls, files = calls_of(world, verb)
        assert ("lock" in calls) == (mode != "lock-free")
        cases = _cases(mode, calls, files)
        for fault, following in cases if all_of_them else _by_turns(cases, VERBS.index(verb)):
            outcome = _tried(world, verb, calls, fault, following)
            if isinstance(outcome, str):
                said[outcome] += 1
            else:
                kind, position, how = fault
                what = (calls if kind == "call" else files)[position]
                problems.append(
                    f"{mode}, {verb}, {position} {what} {how}, then {following}: {outcome!r}"
                )
                world.proxy.deliver()
        return said, problems
    finally:
        world.close()


@pytest.mark.parametrize("verb", sampled(VERBS, keep=1))
def test_what_is_asked_for_does_not_depend_on_the_format_of_the_files(
    metastore: Any, make_hive_table: Any, verb: str
) -> None:
    """So the faults of Parquet tables, below, are those of ORC and Avro tables."""

    def write_avro(rows: pa.Table, path: Path) -> None:
        schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
        with path.open("wb") as out:
            fastavro.writer(out, schema, rows.rename_columns(["id"]).to_pylist())

    found = []
    for kind in (
        {},
        {"storage": ORC, "write": orc.write_table},
        {"storage": AVRO, "write": write_avro},
    ):
        world = World(metastore, partial(make_hive_table, **kind), "checks")
        try:
            calls, files = calls_of(world, verb)
            found.append(([one for one in calls if one in WRITES], files))
        finally:
            world.close()
    assert found[0] == found[1] == found[2]
    assert found[0][0]


@pytest.mark.slow("migrates a table for each fault")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("verb", "mode", "all_of_them"), RUNS)
def test_whatever_fails_and_whoever_goes_on_no_row_and_no_pointer_is_lost(
    metastore: Any,
    make_hive_table: Any,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    mode: str,
    all_of_them: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(lock, "SWEEPS_S", (0.02, 0.1, 0.4, 0.4, 0.4))
    said, problems = _outcomes(metastore, make_hive_table, mode, verb, all_of_them=all_of_them)
    with capsys.disabled():
        print(f"\n{said.total()} faults of {verb}; outcomes: {dict(said)}")
    assert problems == [], "\n".join(problems)
    assert said["unknown"] > 0
    assert said.total() >= 2
