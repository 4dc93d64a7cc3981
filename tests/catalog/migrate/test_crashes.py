"""A migration killed (SIGKILL) before and after everything it does to the metastore and to files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from killed_process import some_steps
from pyarrow import orc

from icecomb.catalog import migrate
from icecomb.catalog.migrate.journal.journal import FOLDER
from tests.catalog.migrate.conftest import AVRO, ORC

MADE = "crashed"
CHANGED = "transient_lastDdlTime"
MORTAL = """
import json, os, re, signal, sys, traceback
from pathlib import Path
import pyarrow.orc, pyarrow.parquet
from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.catalog.migrate.applying import migration as applying, snapshotting
from icecomb.catalog.migrate.reverting import reversal as reverting
from icecomb.format.operation import append
from icecomb.format.storage.file_io import FileIO
LOCKS = {"lock", "unlock", "heartbeat", "check_lock"}
DRAWN = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9]{10,}")
def watched(kind, name, step):
    original = getattr(kind, name)
    def call(self, *arguments, **named):
        step()
        answer = original(self, *arguments, **named)
        step(arguments[0] if kind is Calls else None)
        return answer
    setattr(kind, name, call)
def shape(folders):
    return sorted(DRAWN.sub("*", str(path)) for each in folders for path in Path(each).rglob("*"))
def live(uri, warehouse, table, folders, verb, fatal):
    count, changes, last = 0, 0, None
    def step(answered=None):
        nonlocal count, changes, last
        if count == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if fatal is None:
            changes += answered not in {None, *LOCKS}
            if (now := (changes, shape(folders))) != last:
                last = now
                print(count, end=" ")
        count += 1
    for name in ("write", "write_bytes"):
        watched(Calls, name, step)
    for name in ("create", "delete", "rename"):
        watched(FileIO, name, step)
    catalog = load_catalog("killed", uri=uri, warehouse=warehouse)
    if verb == "apply":
        migrate.apply(catalog, table)
    elif verb == "snapshot":
        migrate.snapshot(catalog, table, table + "_new")
    else:
        migrate.revert(catalog, table, dry_run=False, allow_data_loss=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            live(*json.loads(line))
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
"""Does each verb in a process of its own, which is there at once: all that is imported is so already."""


class Mortal:
    """Does verbs in processes that kill themselves."""

    def __init__(self, metastore: Any, parent: subprocess.Popen[str]) -> None:
        assert parent.stdin is not None
        assert parent.stdout is not None
        self._place = [metastore.uri, str(metastore.warehouse)]
        self._told, self._answers = parent.stdin, parent.stdout

    def steps(self, table: Any, verb: str) -> list[int]:
        """Lives to the end; the steps at which a kill leaves folder and entry as no step right before does.

        What the lock does is no difference: the lock of a dead process is broken before all else.
        """
        *steps, code = self._do(table, verb, None)
        assert code == 0
        return steps

    def kill(self, table: Any, verb: str, fatal: int) -> None:
        """Dies at a step."""
        assert self._do(table, verb, fatal) == [-9]

    def _do(self, table: Any, verb: str, fatal: int | None) -> list[int]:
        database = table.catalog.load_namespace_properties(MADE)["location"]
        folders = [str(table.folder), f"{database.removeprefix('file:')}/{table.folder.name}_new"]
        arguments = [*self._place, table.name, folders, verb, fatal]
        self._told.write(json.dumps(arguments) + "\n")
        self._told.flush()
        found = [int(word) for word in self._answers.readline().split()]
        table.break_locks()
        return found


@pytest.fixture(scope="module")
def mortal(metastore: Any) -> Iterator[Mortal]:
    parent = subprocess.Popen(
        [sys.executable, "-c", MORTAL],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        yield Mortal(metastore, parent)
        assert parent.stdin is not None
        parent.stdin.close()


def write_avro(rows: pa.Table, path: Path) -> None:
    fields = [{"name": "id", "type": "long"}]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())


def but_time(state: Any) -> Any:
    entry, partitions = state
    parameters = {key: text for key, text in entry.parameters.items() if key != CHANGED}
    return replace(entry, parameters=parameters), partitions


def numbers(*values: int) -> pa.Table:
    return pa.table({"ID": pa.array(values, pa.int64())})


def small(*values: int) -> pa.Table:
    return numbers(*values).rename_columns(["id"])


@pytest.mark.parametrize("which", some_steps(every=14))
def test_apply_killed_at_any_step_goes_on_and_goes_back(
    make_hive_table: Any, mortal: Mortal, which: slice
) -> None:
    """Either way from every second step, and both ways while it is not known whether the entry will be converted."""
    converted, fenced = set(), set()

    def case(act: Callable[[Any], object], *, goes_on: bool) -> bool:
        table = make_hive_table(
            {"id": "bigint"},
            {"k": "int"},
            {("1",): numbers(1, 2), ("__HIVE_DEFAULT_PARTITION__",): numbers(3)},
        )
        before, files = table.state, table.files()
        act(table)
        converted.add(table.entry.is_iceberg)
        if table.entry.is_iceberg:
            assert len(table.rows()) == 3
        else:
            assert table.state == before
        # A conversion that was asked for is ruled out by another time of change before anything goes back.
        steps = migrate.status(table.catalog, table.name).get("steps", {})
        asked = "swapping" in steps and not table.entry.is_iceberg
        if goes_on:
            migrate.apply(table.catalog, table.name)
            rows = sorted((row["id"], row["k"]) for row in table.rows() if row["k"])
            assert rows == [(1, 1), (2, 1)]
            assert len(table.rows()) == 3
            assert migrate.verify(table.catalog, table.name).difference_count == 0
            assert table.entry.partition_keys == ()
        if (table.folder / FOLDER).exists() and list((table.folder / FOLDER).rglob("journal.json")):
            migrate.revert(table.catalog, table.name, dry_run=False)
        if asked:
            fenced.add(goes_on)
            assert table.entry.parameters[CHANGED] > before[0].parameters[CHANGED]
            assert but_time(table.state) == but_time(before)
        else:
            assert table.state == before
        assert table.files() == files
        assert not (table.folder / "metadata").exists()
        return asked

    steps: list[int] = []
    case(lambda table: steps.extend(mortal.steps(table, "apply")), goes_on=True)
    for at, fatal in list(enumerate(steps))[which]:
        kill = partial(mortal.kill, verb="apply", fatal=fatal)
        if case(kill, goes_on=at % 2 == 1):
            case(kill, goes_on=at % 2 == 0)
    assert len(steps) >= 12
    assert fenced == {True, False} or which != slice(None)
    assert converted == {True, False}


@pytest.mark.parametrize(
    ("kind", "which"), some_steps("partitioned", "plain", every=14, keep=1, shared=True)
)
def test_revert_killed_at_any_step_goes_on(
    make_hive_table: Any, mortal: Mortal, kind: str, which: slice
) -> None:
    """Every second step of each table, the others of the other one."""
    converted, partitioned = set(), kind == "partitioned"

    def case(act: Callable[[Any], object], *, died: bool) -> None:
        parts = {("1",): numbers(1), ("2",): numbers(2)}
        table = (
            make_hive_table({"id": "bigint"}, {"k": "int"}, parts)
            if partitioned
            else make_hive_table({"id": "bigint"}, rows=numbers(1))
        )
        before, files = table.state, table.files()
        migrate.apply(table.catalog, table.name)
        loaded = table.catalog.load_table(table.name)
        loaded.append(loaded.scan(limit=1).to_arrow())
        act(table)
        converted.add(table.entry.is_iceberg)
        if table.entry.is_iceberg:
            assert len(table.rows()) == (3 if partitioned else 2)
        else:
            assert table.partitions == before[1], (
                "a Hive table is never seen without its partitions"
            )
        if died and not migrate.status(table.catalog, table.name)["state"].startswith("reverted"):
            migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
        assert table.state == before
        visible = {path for path in table.files() if "/data/" not in path or not partitioned}
        assert visible == set(files)

    steps: list[int] = []
    case(lambda table: steps.extend(mortal.steps(table, "revert")), died=False)
    for fatal in steps[which]:
        case(partial(mortal.kill, verb="revert", fatal=fatal), died=True)
    assert len(steps) >= 12
    # two deaths may both be in what follows the change of the entry
    assert converted == {True, False} or len(steps[which]) == 2


FORMATS = {"orc": (ORC, orc.write_table), "avro": (AVRO, write_avro)}


@pytest.mark.parametrize(("kind", "which"), some_steps(*FORMATS, every=14, keep=0, shared=True))
def test_apply_of_other_formats_killed_at_any_step_goes_on_and_goes_back(
    make_hive_table: Any, mortal: Mortal, kind: str, which: slice
) -> None:
    """The same steps as of Parquet: each second, the others of the other format."""
    storage, write = FORMATS[kind]
    converted = set()

    def case(act: Callable[[Any], object]) -> None:
        table = make_hive_table({"id": "bigint"}, rows=small(1, 2), storage=storage, write=write)
        before, files = table.state, visible(table)
        act(table)
        converted.add(table.entry.is_iceberg)
        assert table.entry.is_iceberg or table.state == before
        migrate.apply(table.catalog, table.name)
        assert sorted(row["id"] for row in table.rows()) == [1, 2]
        assert migrate.verify(table.catalog, table.name).difference_count == 0
        migrate.revert(table.catalog, table.name, dry_run=False)
        assert but_time(table.state) == but_time(before)
        assert visible(table) == files

    steps: list[int] = []
    case(lambda table: steps.extend(mortal.steps(table, "apply")))
    for fatal in steps[which]:
        case(partial(mortal.kill, verb="apply", fatal=fatal))
    assert len(steps) >= 12
    assert converted == {True, False}


def visible(table: Any) -> set[str]:
    """What Hive sees in the table's folder."""
    paths = (path.relative_to(table.folder) for path in table.folder.rglob("*") if path.is_file())
    return {str(path) for path in paths if not path.parts[0].startswith("_")}


def test_a_second_table_killed_at_any_step_is_whole_or_not_there_and_can_be_made(
    make_hive_table: Any, mortal: Mortal
) -> None:
    there = set()

    def case(act: Callable[[Any], object]) -> None:
        table = make_hive_table(
            {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1, 2), ("2",): numbers(3)}
        )
        before, files, catalog = table.state, table.files(), table.catalog
        new = f"{table.name}_new"
        act(table)
        replace(table, name=new).break_locks()
        assert table.state == before
        assert table.files() == files
        made = catalog.table_exists(new)
        there.add(made)
        if not made:
            migrate.snapshot(catalog, table.name, new)
        assert catalog.load_table(new).scan().to_arrow().num_rows == 3
        catalog.drop_table(new)
        assert table.state == before
        assert table.files() == files

    steps: list[int] = []
    case(lambda table: steps.extend(mortal.steps(table, "snapshot")))
    for fatal in steps:
        case(partial(mortal.kill, verb="snapshot", fatal=fatal))
    assert len(steps) >= 4
    assert there == {True, False}
