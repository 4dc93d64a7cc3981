"""Writers that all began on the same state: each is refused, or there is an order of them all.

In any order of those who were not refused, one after the other, the rows must be possible; under
snapshot isolation a writer may besides have seen the first state only.
"""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from maintained_table import assert_vectors
from random_writers import SCHEMA, NotThenError, RandomChanges, frame

from icecomb.catalog import load_catalog
from icecomb.format.errors import IcecombError
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest_columns

ROUNDS = 3


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.gate("several writers, three rounds each")
@pytest.mark.seeds(10, gate=3)
def test_no_row_is_lost_doubled_or_brought_back_by_late_writers(tmp_path, seed, isolation):
    late_writers(tmp_path, Random(f"{seed} {isolation}"), isolation, "2")


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.gate("several writers, three rounds each")
@pytest.mark.seeds(20, gate=1)
def test_deletion_vectors_lose_and_bring_back_no_row_either(tmp_path, seed, isolation):
    """Version 3 from the start, or an upgrade by one of the writers."""
    random = Random(f"vectors {seed} {isolation}")
    late_writers(tmp_path, random, isolation, random.choice(["2", "3"]), "upgrade")


def late_writers(tmp_path, random, isolation, version, *kinds):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    properties = {
        "format-version": version,
        "commit.retry.min-wait-ms": "1",
        "commit.manifest.min-count-to-merge": random.choice(["2", "100"]),
    }
    for command in ("delete", "merge"):
        mode = random.choice(["copy-on-write", "merge-on-read"])
        properties[f"write.{command}.mode"] = mode
        properties[f"write.{command}.isolation-level"] = isolation
    table = lake.create_table("db.t", SCHEMA, properties=properties)
    made = RandomChanges(random)
    model = made.rows(5)
    table.append(frame(model))
    told = [f"{properties} {model}"]
    for _ in range(ROUNDS):
        writers = [lake.load_table("db.t") for _ in range(random.randint(2, 3))]
        committed = []
        for writer in writers:
            kind = random.choice(kinds) if kinds and random.random() < 0.1 else None
            change = made.any(model) if kind is None else made.any(model, kind)
            try:
                change.do(writer)
            except IcecombError as error:
                told.append(f"{change.text}: {error}")
            else:
                committed.append(change)
                told.append(change.text)
        found = rows(lake.load_table("db.t"))
        assert found in possible(model, committed, isolation), "\n".join(told)
        assert_files_exist(lake.load_table("db.t"))
        assert_vectors(lake.load_table("db.t"))
        model = found
    lake.close()


def possible(before, committed, isolation):
    """All that the rows may be after some changes."""
    for order in permutations(committed):
        after = list(before)
        try:
            for change in order:
                after = change.of(after)
        except NotThenError:
            continue
        yield sorted(after)
    if isolation == "snapshot":
        states = [change.of(list(before)) for change in committed]
        gone = {row for state in states for row in set(before).difference(state)}
        added = [row for state in states for row in state if row not in before]
        yield sorted([row for row in before if row not in gone] + added)


def rows(table):
    scan = table.scan(selected_fields=("k", "s", "u"))
    found = sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist())
    assert scan.count() == len(found)
    return found


def assert_files_exist(table):
    for snapshot in table.snapshots():
        for manifest in read_manifests(table.io, snapshot):
            columns = read_manifest_columns(table.io, manifest, ())
            for path in columns.column("file_path").filter(columns.live).to_pylist():
                assert table.io.exists(path), (snapshot, path)
