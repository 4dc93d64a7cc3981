"""Where old versions are deleted, a request that arrives late makes one of them again: it is not the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.storage.object_store import creation
from tests.format.storage.object_store.memory_stores import azure_in_memory, google_in_memory
from tests.rings import sampled

FORGETFUL = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}
CREATES = {"Insert", "PutBlob"}


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize("in_memory", sampled([google_in_memory, azure_in_memory], keep=1))
@pytest.mark.parametrize("commits", [1, 0], ids=["a commit", "the creation"])
def test_a_version_and_its_hint_that_arrive_after_later_commits_hide_none_of_them(
    in_memory, commits, monkeypatch
):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)
    at = in_memory()
    place = {"type": "hadoop", "warehouse": f"{at.place}/wh"}
    with (
        load_catalog("f", **place, **at.faulty) as slow,
        load_catalog("d", **place, **at.healthy) as quick,
    ):
        quick.create_namespace("db")
        if commits:
            quick.create_table("db.t", rows().schema, properties=FORGETFUL)
        held = set()

        def choose(asked):
            if asked.name not in CREATES or "metadata/v" not in asked.path:
                return ""
            first = asked.path not in held
            held.add(asked.path)
            return "late" if first or asked.path.endswith("hint.text") else ""

        at.proxy.choose = choose
        if commits:
            slow.load_table("db.t").append(rows(0))
        else:
            slow.create_table("db.t", rows().schema, properties=FORGETFUL)
        at.proxy.choose = lambda _: ""
        for number in range(1, 6):
            quick.load_table("db.t").append(rows(number))
        assert at.proxy.release() >= 2
        quick.load_table("db.t").append(rows(6))
        found = slow.load_table("db.t").scan().to_arrow()["id"].to_pylist()
        assert sorted(found) == [0, 1, 2, 3, 4, 5, 6][1 - commits :]
    at.close()
