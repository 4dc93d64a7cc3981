"""Every call and every file of `apply --as` fails in every way: the Hive table stays, the second one is whole or not there."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from migration_faults import World
from thrift_proxy import AWAY

from icecomb.catalog import migrate
from icecomb.catalog.hive import lock
from icecomb.format.errors import CommitStateUnknownError, IcecombError

MADE = "faulty_seconds"
_NAMES = itertools.count()
CREATE = "create_table"


class Second:
    """A Hive table, and the name of the second one."""

    def __init__(self, world: World, make: Any) -> None:
        rows = pa.table({"id": pa.array([1, 2], pa.int64())})
        self.world = world
        self.hive = make({"id": "bigint"}, rows=rows)
        self.before = self.hive.state, self.hive.files()
        self.name = f"{MADE}.second_of_faults{next(_NAMES)}"

    def make(self, catalog: Any) -> str:
        """ "done", "failed" or "unknown"."""
        try:
            migrate.snapshot(catalog, self.hive.name, self.name)
        except CommitStateUnknownError:
            return "unknown"
        except IcecombError:
            return "failed"
        return "done"

    def judge(self) -> None:
        assert (self.hive.state, self.hive.files()) == self.before
        people = self.world.people
        if people.table_exists(self.name):
            found = people.load_table(self.name).scan().to_arrow()["id"].to_pylist()
            assert sorted(found) == [1, 2]

    def finish(self) -> None:
        """Made at last, and dropped: no file of the Hive table goes along."""
        people = self.world.people
        if not people.table_exists(self.name):
            assert self.make(people) == "done"
        self.judge()
        people.drop_table(self.name)
        self.judge()


EVERY = pytest.mark.full("every fault of every call and file")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("late_first", "all_of_them"),
    [
        pytest.param(
            True,
            False,
            id="by turns",
            marks=pytest.mark.full("a second table killed at any step is in the gate"),
        ),
        pytest.param(True, True, id="late first", marks=EVERY),
        pytest.param(False, True, id="late last", marks=EVERY),
    ],
)
def test_whatever_fails_the_second_table_is_whole_or_not_there(
    metastore: Any,
    make_hive_table: Any,
    monkeypatch: pytest.MonkeyPatch,
    late_first: Any,
    all_of_them: Any,
) -> None:
    """What arrives late does so before it is made again, or after.

    By turns, each call and each file fails once; what arrives late does so in each way.
    """
    monkeypatch.setattr(lock, "SWEEPS_S", (0.02, 0.1, 0.4, 0.4, 0.4))
    world = World(metastore, make_hive_table, "checks")
    said = set()
    try:
        Second(world, make_hive_table).make(world.catalog)  # what is asked once of a server
        plain = Second(world, make_hive_table)
        world.proxy.begin()
        world.files.begin()
        assert plain.make(world.catalog) == "done"
        calls, files = list(world.proxy.sequence), list(world.files.sequence)
        plain.finish()
        assert CREATE in calls
        faults = [
            ("call", at, how) for at in range(len(calls)) for how in ("refused", "reply", AWAY)
        ]
        faults += [
            ("file", at, how) for at in range(len(files)) for how in ("lost", "done", "late")
        ]
        # three of each place: another one from place to place, none is the same at all
        faults = (
            faults if all_of_them else [faults[at + at // 3 % 3] for at in range(0, len(faults), 3)]
        )
        faults += [("call", calls.index(CREATE), "late")]
        # of the others nothing arrives late
        late = [fault for fault in faults if fault[2] in {"late", AWAY}]
        for kind, at, how in faults if late_first else late:
            case = Second(world, make_hive_table)
            world.proxy.begin()
            world.files.begin()
            if kind == "call":
                world.proxy.fail_at(at, how)
            else:
                world.files.begin((at, how))
            said.add(outcome := case.make(world.catalog))
            world.proxy.begin()
            world.files.begin()
            where = f"{kind} {at} {(calls if kind == 'call' else files)[at]} {how}: {outcome}"
            case.judge()
            assert outcome != "done" or world.people.table_exists(case.name), where
            if late_first:
                world.deliver()
            again = case.make(world.people)
            assert again == "done" or world.people.table_exists(case.name), where
            world.deliver()
            case.finish()
    finally:
        world.close()
    assert {"failed"} <= said
