"""Maintenance of a table on HDFS, killed before and after calls of the storage."""

from __future__ import annotations

import getpass
import itertools
import uuid

import pytest
from killed_process import killed, steps_on_hdfs
from maintained_table import ALL, frame, new_table
from needed_files import needed_files

from icecomb.catalog import load_catalog

pytestmark = pytest.mark.full("the actions that the gate kills on folders, on HDFS")
LATER = 4_102_444_800_000
NUMBERS = itertools.count(1)
KILLS = 5
"""So many of each action, evenly spread over its steps."""

ACTIONS = {
    "rewrite": lambda table: table.maintenance.rewrite_data_files(options=ALL),
    "expire": lambda table: (
        table.maintenance.expire_snapshots().older_than(LATER).retain_last(1).commit()
    ),
    "orphans": lambda table: remove(table, dry_run=False),
}


def remove(table, **given):
    return table.maintenance.remove_orphan_files(older_than=LATER, any_age=True, **given)


@pytest.fixture(scope="module")
def place(hdfs):
    settings = {**hdfs.client_settings, "hdfs.user": getpass.getuser()}
    return f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}", settings


@pytest.fixture
def made(place):
    """Makes a table with deletes, old snapshots and two orphans; gives what opens it."""
    warehouse, settings = place

    def make():
        own = f"{warehouse}/{next(NUMBERS)}"

        def opened():
            # connections are not shared with a fork
            return load_catalog("files", type="hadoop", warehouse=own, **settings)

        lake = opened()
        lake.create_namespace("db")
        table = new_table(lake, *(frame(n, n + 10) for n in range(3)))
        table.delete("id = 11")
        for name in ("left", "more"):
            table.io.create(f"{table.location()}/data/{name}.parquet", b"PAR1")
        return lambda: opened().load_table("db.t")

    return make


def there(table):
    return {file.location for file in table.io.list(table.location())}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_killed_on_hdfs_keeps_all_rows_and_can_be_repeated(made, name):
    act = ACTIONS[name]
    load = made()
    steps = steps_on_hdfs(lambda: act(load()))
    assert steps >= 4
    fatal_steps = {steps * at // KILLS for at in range(KILLS)} | {steps - 1}
    for fatal in sorted(fatal_steps):
        load = made()
        assert killed(lambda load=load: act(load()), fatal), fatal
        table = load()
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 12], fatal
        assert set(needed_files(table)) <= there(table), fatal
        act(load())
        remove(load(), dry_run=False)
        table = load()
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 12], fatal
        left = there(table) - set(needed_files(table))
        # what an expiry was about to delete is looked at again ten minutes later
        kept = {path for path in left if name == "expire" and "/icecomb-gc-" in path}
        assert len(kept) <= 1, fatal
        assert {path.rpartition("/")[2] for path in left - kept} == {"version-hint.text"}, fatal
