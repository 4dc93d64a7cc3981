"""Manifests of which the list states another length: shorter ones are refused, longer ones read to their end."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError
from tests.rings import sampled

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
NO_CACHE = {"io.manifest.cache-enabled": "false"}


@pytest.fixture(params=["1", "2"])
def stating(request, tmp_path):
    """Makes a table of four manifests whose list states what a function makes of their lengths."""
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path), **NO_CACHE)
    catalog.create_namespace("db")

    def make(change):
        properties = {"format-version": request.param, "write.delete.mode": "copy-on-write"}
        table = catalog.create_table("db.t", ROWS.schema, properties=properties)
        for _ in range(4):
            table.append(ROWS)
        path = Path(table.current_snapshot().manifest_list.removeprefix("file:"))
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            schema, metadata, entries = reader.writer_schema, reader.metadata, list(reader)
        assert len(entries) == 4
        for entry in entries:
            entry["manifest_length"] = change(entry["manifest_length"])
        kept = {key: value for key, value in metadata.items() if not key.startswith("avro.")}
        with path.open("wb") as file:
            fastavro.writer(file, schema, entries, metadata=kept)
        fresh = load_catalog("fresh", type="hadoop", warehouse=str(tmp_path), **NO_CACHE)
        return fresh.load_table("db.t")

    yield make
    catalog.close()


SHORTER = {"half": lambda length: length // 2, "0": lambda _: 0, "-1": lambda _: -1}


def merged(table):
    with table.transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "2"})
    table.append(ROWS)


CHANGES = {
    "scan": (lambda t: t.scan().to_arrow(), [1, 2, 3] * 4),
    "delete": (lambda t: t.delete("id = 2"), [1, 3] * 4),
    "append": (lambda t: t.append(ROWS), [1, 2, 3] * 5),
    "merged manifests": (
        merged,
        [1, 2, 3] * 5,
    ),
    "rewritten manifests": (lambda t: t.maintenance.rewrite_manifests(), [1, 2, 3] * 4),
    "compaction": (
        lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        [1, 2, 3] * 4,
    ),
}


@pytest.mark.parametrize(
    ("change", "length"),
    sampled([(c, n) for n in SHORTER for c in CHANGES], keep=6),
)
def test_a_longer_manifest_loses_no_entry(stating, change, length):
    table = stating(SHORTER[length])
    make, expected = CHANGES[change]
    make(table)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == sorted(expected)
    assert table.scan().count() == len(expected)


@pytest.mark.parametrize("change", ["scan", "delete", "compaction"])
def test_a_shorter_manifest_is_refused_by_name(stating, change):
    table = stating(lambda n: n + 1)
    make, _ = CHANGES[change]
    before = table.metadata_location
    with pytest.raises(CorruptFileError, match=r"\.avro is truncated"):
        make(table)
    assert table.refresh().metadata_location == before
