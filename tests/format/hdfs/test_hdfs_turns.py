"""Processes take turns at a file-system table on HDFS, whatever happens to one or to its calls."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hadoop.process_lock import WAITING
from tests.peers.child_process import ended

pytestmark = pytest.mark.full("turns on HDFS; the gate has them on a local folder")

ROWS = pa.table({"id": pa.array(range(40), pa.int64())})
APPENDER = """
import json, sys, pyarrow as pa
from icecomb.catalog import open_table
table, first = open_table(sys.argv[1], **json.loads(sys.argv[2])), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + 12):
    table.append(pa.table({"id": pa.array([number], pa.int64())}))
print("done", flush=True)
"""
HOLDER = """
import json, sys
from icecomb.catalog import open_table
from icecomb.format.holding import Holding
pointer = open_table(sys.argv[1], **json.loads(sys.argv[2]))._pointer
with Holding() as held:
    pointer.queue(held)
    print(pointer.wait_in_queue(pointer.load()), flush=True)
    sys.stdin.readline()
"""


def start(text, table, settings, *arguments):
    given = [table.location(), json.dumps(settings), *map(str, arguments)]
    command = [sys.executable, "-c", text, *given]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def settings(proxied):
    return {**proxied, "lock.heartbeat-timeout-ms": "300"}


@pytest.fixture
def lake(settings, place):
    return load_catalog("lake", type="hadoop", warehouse=place, **settings)


@pytest.fixture
def table(lake):
    """It has rows, and what a commit needs is imported."""
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def metadata_folders(table):
    return table.io.folders(f"{table.location()}/metadata")


def test_nobody_loses_race_after_race(table, settings):
    """Who lost one is overtaken at most by those who were committing already, and then it goes first."""
    with table.update_properties() as update:
        update.set("commit.retry.num-retries", "4")
    settings = {**settings, "lock.heartbeat-timeout-ms": "60000"}
    appenders = [start(APPENDER, table, settings, 1000 * number) for number in (1, 2)]
    with ended(*appenders):
        for each in appenders:
            assert each.stdout.readline() == "ready\n"
        for each in appenders:
            each.stdin.write("go\n")
            each.stdin.flush()
        for first in range(0, 40, 4):
            table.delete(f"id in ({first}, {first + 1})")
        assert [each.stdout.readline() for each in appenders] == ["done\n", "done\n"]
    found = sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
    old = [number for number in range(40) if number % 4 > 1]
    assert found == [*old, *range(1000, 1012), *range(2000, 2012)]
    assert metadata_folders(table) == []


def test_a_killed_holder_delays_one_commit_and_its_ticket_is_deleted(table, settings):
    holder = start(HOLDER, table, settings)
    with ended(holder):
        assert holder.stdout.readline() == "True\n"
        holder.kill()
        holder.wait()
    assert metadata_folders(table) == [WAITING]
    table.append(ROWS)
    assert metadata_folders(table) == []
    assert table.scan().count() == 80


def test_a_holder_that_lives_goes_first_and_its_ticket_ends_with_it(table, settings):
    holder = start(HOLDER, table, settings)
    with ended(holder):
        assert holder.stdout.readline() == "True\n"
        (ticket,) = table.io.folders(f"{table.location()}/metadata/{WAITING}")
        assert f".{holder.pid}." in ticket
        holder.communicate("end\n", timeout=60)
    assert metadata_folders(table) == []


@pytest.mark.parametrize("fault", ["refuse", "lose", "html"])
@pytest.mark.parametrize("call", ["LISTSTATUS", "MKDIRS", "DELETE"])
def test_a_call_for_a_ticket_that_fails_fails_no_commit(lake, table, proxy, call, fault):
    """A ticket that is left over is one of nobody's, and the next one deletes it."""
    stale = lake.load_table("db.t")
    table.append(ROWS)
    proxy.faults[call] = [fault] * 3
    stale.append(ROWS)
    proxy.faults.clear()
    table.append(ROWS)
    assert table.refresh().scan().count() == 160
    assert [name for name in metadata_folders(table) if name != WAITING] == []


def test_a_folder_of_tickets_that_others_may_not_write_to_costs_no_commit(
    hdfs, lake, table, settings
):
    path = f"{table.location().removeprefix(hdfs.uri)}/metadata/{WAITING}"
    hdfs.request("PUT", f"{path}/1.other.1.x?op=MKDIRS&permission=755", user="hdfs")
    hdfs.request("PUT", f"{path}?op=SETPERMISSION&permission=755")
    stale = lake.load_table("db.t")
    table.append(ROWS)
    stale.append(ROWS)
    assert table.refresh().scan().count() == 120
    assert table.io.folders(f"{table.location()}/metadata/{WAITING}") == ["1.other.1.x"]
