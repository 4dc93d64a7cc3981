"""Migrations behind a faulty network and storage, what people do next, and what must be true then."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from thrift_proxy import ThriftProxy

from icecomb.catalog import migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.catalog.migrate.journal.journal import FOLDER
from icecomb.catalog.migrate.planning.neighbor import RECENT
from icecomb.format.errors import (
    CommitStateUnknownError,
    FileIOError,
    IcecombError,
    MigrationError,
)
from icecomb.format.holding import Holding
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import Changes, RemoveSnapshotsUpdate
from icecomb.format.storage.file_io import FileIO

ALTER: Final = "alter_table_with_environment_context"
WRITES: Final = (
    ALTER,
    "drop_partitions_req",
    "add_partitions_req",
    "alter_partitions_with_environment_context",
)
QUICK: Final = {"commit.status-check.min-wait-ms": "5", "commit.status-check.num-retries": "1"}
SETTINGS: Final = {"iceberg.hive.lock-creation-min-wait-ms": "5"}
MODES: Final = {
    "checks": {},
    "lock-free": {"engine.hive.lock-enabled": "false"},
    # With a lock and without being told what is expected, a metastore is as Hive 3.1.3 is.
    "does not check": {"hive.check-and-put": "false"},
}
CHANGED: Final = "transient_lastDdlTime"


class FaultyFiles(FileIO):
    """Files of which one change fails: ``lost`` before, ``done`` after, ``late`` at `deliver`."""

    def __init__(self, properties: Any) -> None:
        super().__init__(properties)
        self.sequence: list[str] = []
        self._at: tuple[int, str] | None = None
        self._late: list[Callable[[], object]] = []

    def begin(self, at: tuple[int, str] | None = None) -> None:
        self.sequence, self._at = [], at

    def deliver(self) -> None:
        late, self._late = self._late, []
        for work in late:
            with suppress(IcecombError):
                work()

    def create(self, location: str, data: bytes) -> None:
        self._do("create", lambda: super(FaultyFiles, self).create(location, data))

    def delete(self, locations: str | Iterable[str]) -> None:
        named = [locations] if isinstance(locations, str) else list(locations)
        self._do("delete", lambda: super(FaultyFiles, self).delete(named))

    def rename(self, source: str, target: str) -> None:
        self._do("rename", lambda: super(FaultyFiles, self).rename(source, target))

    def _do(self, what: str, work: Callable[[], object]) -> None:
        position = len(self.sequence)
        self.sequence.append(what)
        if self._at is None or self._at[0] != position:
            work()
            return
        how = self._at[1]
        if how == "late":
            self._late.append(work)
        elif how == "done":
            work()
        raise FileIOError(f"{what} failed")


class _Expire:
    """What an engine does that expires snapshots and looks at no ``gc.enabled``."""

    writes_files = False

    def apply(self, base: Any) -> Changes:
        old = [one.snapshot_id for one in base.snapshots if one is not base.current_snapshot()]
        current = base.current_snapshot()
        ids = tuple(one for one in old if current is None or one != current.snapshot_id)
        return Changes((AssertTableUUID(base.table_uuid),), (RemoveSnapshotsUpdate(ids),))

    def clean_up(self, committed: Any) -> None:
        """Nothing was written."""


@dataclass
class Case:
    """One migrated table, and the rows that it must have."""

    table: Any
    before: Any
    files: dict[str, tuple[int, int]]
    rows: list[int]
    wanted_back: bool = False


class World:
    """Hive tables, our catalog behind a proxy, and one of people who come later.

    Args:
        metastore: The real one.
        make: See `make_hive_table`.
        mode: One of `MODES`.
    """

    def __init__(self, metastore: Any, make: Any, mode: str) -> None:
        self.proxy = ThriftProxy(metastore.port)
        self.mode, self.make = mode, make
        place = {"warehouse": str(metastore.warehouse), **SETTINGS, **MODES[mode]}
        self.catalog = HiveCatalog("faulty", {"uri": self.proxy.uri, **place})
        self.files = FaultyFiles(self.catalog.properties)
        self.catalog.io = self.files
        self.people = HiveCatalog("people", {"uri": metastore.uri, **place})
        self.numbers = itertools.count(100)

    def close(self) -> None:
        RECENT.least = 500
        self.catalog.close()
        self.people.close()
        self.proxy.close()

    def _know_server(self) -> None:
        """What is asked once of each server is known before a case, so that all have the same calls."""
        with Holding() as held:
            key = self.catalog.client.pin(held)
            known = self.catalog.client.servers[key]
            known.check = ValueCheck.ATOMIC
            known.lock_expiry_s, known.lock_expiry_asked = 300.0, True
            # which kinds of constraints it has is known of each connection
            self.catalog.client.constraints.of("made", "t")

    def prepare(self, verb: str) -> Case:
        data = [pa.table({"ID": pa.array([n], pa.int64())}) for n in (1, 2)]
        parts = {("1",): data[0], ("2",): data[1]}
        made = self.make({"id": "bigint"}, {"k": "int"}, parts, parameters=QUICK)
        table = replace(made, catalog=self.people)
        case = Case(table, table.state, table.files(), [1, 2])
        if verb != "apply":
            migrate.apply(self.people, table.name)
        self._know_server()
        # Tables beside it are looked up once, before the case.
        RECENT.least = 0
        RECENT.of_same_folder(self.catalog, made.entry, ())
        return case

    def act(self, case: Case, verb: str, catalog: HiveCatalog | None = None) -> str:
        """ "done", "failed" or "unknown"."""
        catalog = catalog or self.catalog
        try:
            if verb == "apply":
                migrate.apply(catalog, case.table.name)
            elif verb == "revert":
                case.wanted_back = True
                migrate.revert(catalog, case.table.name, dry_run=False, allow_data_loss=True)
            elif verb == "finalize":
                migrate.finalize(catalog, case.table.name, unverified=True)
            else:
                self._write(case, verb)
        except CommitStateUnknownError:
            return "unknown"
        except IcecombError:
            return "failed"
        return "done"

    def _write(self, case: Case, verb: str) -> None:
        row = next(self.numbers)
        table = self.people.load_table(case.table.name)
        added = {"id": pa.array([row], pa.int64()), "k": pa.array([1], pa.int32())}
        table.append(pa.table(added))
        case.rows.append(row)
        case.wanted_back = False
        if verb == "expire":
            table.commit(_Expire())

    def deliver(self) -> None:
        self.files.begin()
        self.proxy.begin()
        self.proxy.deliver()
        self.files.deliver()

    def judge(self, case: Case) -> None:
        """The table is whole: all rows as an Iceberg table, or exactly the Hive table it was."""
        entry = case.table.entry
        if entry.is_iceberg:
            found = sorted(row["id"] for row in case.table.rows())
            assert found == sorted(case.rows), f"rows {found}, not {case.rows}"
            return
        assert len(case.rows) == 2 or case.wanted_back, "rows went out of sight"
        assert case.table.partitions == case.before[1], "another Hive table"
        missing = case.files.keys() - case.table.files().keys()
        assert not missing, f"gone: {missing}"

    def judge_readable(self, case: Case) -> None:
        """What can be promised of a metastore that does not check: nothing needed was deleted."""
        if case.table.entry.is_iceberg:
            assert {1, 2} <= {row["id"] for row in case.table.rows()}
        assert not case.files.keys() - case.table.files().keys()

    def finish(self, case: Case) -> None:
        """Going back at last leaves the Hive table, and no file of later for Hive to read."""
        state = str(migrate.status(self.people, case.table.name)["state"])
        if state not in {"finalized", "never migrated by icecomb"} and not state.startswith(
            ("reverted", "given up")
        ):
            try:
                migrate.revert(self.people, case.table.name, dry_run=False, allow_data_loss=True)
            except MigrationError as error:
                if "cannot be reverted yet" not in error.message:
                    raise
                return
        if case.table.entry.is_iceberg:
            return
        entry, partitions = case.table.state
        assert _but_time(entry) == _but_time(case.before[0])
        assert partitions == case.before[1]
        visible = {name for name in case.table.files() if Path(name).parent.name in {"p0", "p1"}}
        assert visible == set(case.files)
        assert not (case.table.folder / "metadata").exists()
        assert (case.table.folder / FOLDER).is_dir()


def _but_time(entry: Any) -> Any:
    parameters = {key: text for key, text in entry.parameters.items() if key != CHANGED}
    return replace(entry, parameters=parameters)


def calls_of(world: World, verb: str) -> tuple[list[str], list[str]]:
    """The calls and the changes of files of one command without faults."""
    case = world.prepare(verb)
    world.proxy.begin()
    world.files.begin()
    assert world.act(case, verb) == "done"
    found = list(world.proxy.sequence), list(world.files.sequence)
    world.deliver()
    world.judge(case)
    return found


def run_case(
    world: World, verb: str, calls: list[str], fault: tuple[str, int, str], following: str
) -> str:
    """One command with one fault, what people do next, the late request, and the judgement.

    Args:
        world: Where.
        verb: The command.
        calls: Its calls without faults.
        fault: "call" or "file", its position, and how it fails.
        following: What people do next.

    Returns:
        What the command said.
    """
    kind, position, how = fault
    case = world.prepare(verb)
    world.proxy.begin()
    world.files.begin()
    if kind == "call":
        world.proxy.fail_at(position, how)
    else:
        world.files.begin((position, how))
    injected = world.proxy.injected.copy()
    said = world.act(case, verb)
    hit = world.proxy.injected - injected
    assert kind == "file" or [method for method, _ in hit] == [calls[position]]
    world.proxy.begin()
    world.files.begin()
    if following == "again":
        world.act(case, verb, world.people)
    else:
        world.act(case, following, world.people)
        if following == "revert":
            world.act(case, "apply", world.people)
            if case.table.entry.is_iceberg:
                case.wanted_back = False
                world.act(case, "append", world.people)
    world.deliver()
    if world.mode == "does not check":
        world.judge_readable(case)
        return said
    world.judge(case)
    world.finish(case)
    return said
