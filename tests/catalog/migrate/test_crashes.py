"""A migration killed (SIGKILL) before and after everything it does to the metastore and to files."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.journal import FOLDER

CHANGED = "transient_lastDdlTime"
STEPS = """
import os, signal, sys
from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.format.storage.file_io import FileIO
uri, warehouse, table, verb, fatal = *sys.argv[1:5], int(sys.argv[5])
count = 0
def step():
    global count
    if count == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
def watched(kind, name):
    original = getattr(kind, name)
    def call(self, *arguments, **named):
        step()
        answer = original(self, *arguments, **named)
        step()
        return answer
    setattr(kind, name, call)
for name in ("write", "write_bytes"):
    watched(Calls, name)
for name in ("create", "delete", "rename"):
    watched(FileIO, name)
catalog = load_catalog("killed", uri=uri, warehouse=warehouse)
if verb == "apply":
    migrate.apply(catalog, table)
else:
    migrate.revert(catalog, table, dry_run=False, allow_data_loss=True)
print(count)
"""


def killed_at(metastore: Any, table: Any, verb: str, fatal: int) -> bool:
    """Runs the verb in a process that kills itself at a step; False when it lived to the end."""
    arguments = [metastore.uri, str(metastore.warehouse), table.name, verb, str(fatal)]
    done = subprocess.run(
        [sys.executable, "-c", STEPS, *arguments],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode in {0, -9}, done.stderr
    table.break_locks()
    return done.returncode == -9


def but_time(state: Any) -> Any:
    entry, partitions = state
    parameters = {key: text for key, text in entry.parameters.items() if key != CHANGED}
    return replace(entry, parameters=parameters), partitions


def numbers(*values: int) -> pa.Table:
    return pa.table({"ID": pa.array(values, pa.int64())})


def test_apply_killed_at_any_step_goes_on_and_goes_back(
    make_hive_table: Any, metastore: Any
) -> None:
    fatal, turned, fenced = 0, set(), set()
    while True:
        table = make_hive_table(
            {"id": "bigint"},
            {"k": "int"},
            {("1",): numbers(1, 2), ("__HIVE_DEFAULT_PARTITION__",): numbers(3)},
        )
        before, files = table.state, table.files()
        died = killed_at(metastore, table, "apply", fatal)
        turned.add(table.entry.is_iceberg)
        if table.entry.is_iceberg:
            assert len(table.rows()) == 3
        else:
            assert table.state == before
        # A turn that was asked for is ruled out by another time of change before anything goes back.
        steps = migrate.status(table.catalog, table.name).get("steps", {})
        asked = "swapping" in steps and not table.entry.is_iceberg
        if fatal % 2:
            migrate.apply(table.catalog, table.name)
            rows = sorted((row["id"], row["k"]) for row in table.rows() if row["k"])
            assert rows == [(1, 1), (2, 1)]
            assert len(table.rows()) == 3
            assert migrate.verify(table.catalog, table.name).difference_count == 0
            assert table.entry.partition_keys == ()
        if (table.folder / FOLDER).exists() and list((table.folder / FOLDER).rglob("journal.json")):
            migrate.revert(table.catalog, table.name, dry_run=False)
        if asked:
            fenced.add(fatal)
            assert table.entry.parameters[CHANGED] > before[0].parameters[CHANGED]
            assert but_time(table.state) == but_time(before)
        else:
            assert table.state == before
        assert table.files() == files
        assert not (table.folder / "metadata").exists()
        if not died:
            break
        fatal += 5
    assert fatal > 20
    assert len(fenced) <= 2
    assert turned == {True, False}


@pytest.mark.parametrize("partitioned", [True, False])
def test_revert_killed_at_any_step_goes_on(
    make_hive_table: Any, metastore: Any, partitioned: Any
) -> None:
    fatal, turned = 0, set()
    while True:
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
        died = killed_at(metastore, table, "revert", fatal)
        turned.add(table.entry.is_iceberg)
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
        if not died:
            break
        fatal += 5
    assert fatal > 20
    assert turned == {True, False}
