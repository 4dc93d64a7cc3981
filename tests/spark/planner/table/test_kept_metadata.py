"""How much metadata the planner keeps, and what goes first."""

from __future__ import annotations

import dataclasses
import gc
import json
import tracemalloc

import pytest

from icecomb.format.spec.metadata import TableMetadata
from icecomb.spark.planner.table.states import KEPT_BYTES, KeptMetadata, estimated_bytes
from tests.bench.table_metadata import long_history

IO = object()


def metadata(table, snapshots):
    text = json.dumps(long_history(f"file:///{table}", snapshots, snapshots // 10)).encode()
    return TableMetadata.from_json(text, f"{table}.json")


@pytest.mark.parametrize(
    "snapshots",
    [100, pytest.param(3000, marks=pytest.mark.gate("traces the memory of a long history"))],
)
def test_the_estimate_is_near_what_metadata_takes(snapshots):
    metadata("warm", 10)
    gc.collect()
    tracemalloc.start()
    try:
        found = metadata("t", snapshots)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2 < estimated_bytes(found) < taken * 2


def test_versions_of_10_000_snapshots_are_kept_within_the_bound_and_the_newest_stays():
    version = metadata("hot", 10_000)
    kept = KeptMetadata()
    small = metadata("other", 1)
    kept.keep("lake", "other/1.json", small, IO)
    for n in range(10):
        newer = dataclasses.replace(version, last_updated_ms=version.last_updated_ms + n)
        kept.keep("lake", f"hot/{n}.json", newer, IO)
    there = [n for n in range(10) if kept.find("lake", f"hot/{n}.json")]
    assert there == list(range(10 - len(there), 10))
    assert len(there) == KEPT_BYTES // estimated_bytes(version) < 10
    # it was used longest ago, but it is no older version of anything
    assert kept.find("lake", "other/1.json") == (small, IO)


def test_an_older_version_that_is_read_again_does_not_push_out_the_newest():
    old, new = metadata("t", 100), metadata("t", 100)
    new = dataclasses.replace(new, last_updated_ms=old.last_updated_ms + 1)
    bound = estimated_bytes(old) * 2
    kept = KeptMetadata(bound)
    kept.keep("lake", "2.json", new, IO)
    kept.keep("lake", "1.json", old, IO)
    kept.keep("lake", "u/1.json", metadata("u", 100), IO)
    assert kept.find("lake", "1.json") is None
    assert kept.find("lake", "2.json") == (new, IO)


def test_the_only_version_is_kept_whatever_its_size_and_is_that_of_its_catalog():
    kept = KeptMetadata(1)
    version = metadata("t", 10)
    kept.keep("lake", "1.json", version, IO)
    assert kept.find("lake", "1.json") == (version, IO)
    assert kept.find("lake-of-another-user", "1.json") is None
