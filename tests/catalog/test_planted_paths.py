"""Files that somebody who may write to a table's folder names: nobody else's files go for it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog, unknown_commit
from icecomb.catalog.commit import commit_status
from icecomb.catalog.commit.commit_status import CommitState
from icecomb.format.errors import ValidationError
from icecomb.format.operation.expiry.garbage_list import write_list
from icecomb.format.operation.expiry.reachability import UnreachableFiles
from icecomb.format.spec.metadata_file import write_metadata
from icecomb.format.spec.snapshot import MetadataLogEntry

ROWS = pa.table({"id": [1]})


@pytest.fixture
def table(tmp_path: Path) -> Any:
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return table


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    file = tmp_path / "home" / "thesis.odt"
    file.parent.mkdir()
    file.write_text("years")
    return file


def test_a_planted_list_of_garbage(table: Any, thesis: Path) -> None:
    own = Path(table.location()) / "data" / "left.parquet"
    own.touch()
    files = UnreachableFiles(data_files=(f"file:{thesis}", str(own), f"{own}/../../../../{thesis}"))
    path = Path(write_list(table.io, table.metadata, files).removeprefix("file:"))
    os.utime(path, (time.time() - 3600,) * 2)
    with table.expire_snapshots() as expire:
        expire.retain_last(1)
    assert thesis.exists()
    assert not own.exists()


def test_a_planted_log_of_metadata(table: Any, thesis: Path) -> None:
    with table.transaction() as change:
        change.set_properties(
            {
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": "1",
            }
        )
    current = Path(table.metadata_location.removeprefix("file:"))
    other = thesis.with_name("v1.metadata.json")
    other.write_text("{}")
    within = Path(table.location().removeprefix("file:")) / "data" / "kept.parquet"
    within.touch()
    body = json.loads(current.read_text())
    planted = [{"timestamp-ms": 1, "metadata-file": str(p)} for p in (thesis, other, within)]
    body["metadata-log"] = planted + body["metadata-log"]
    current.write_text(json.dumps(body))
    table.refresh().append(ROWS)
    assert all(path.exists() for path in (thesis, other, within))
    assert len(table.metadata.metadata_log) == 1


def test_a_planted_file_of_a_commit(
    table: Any, thesis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_status, "OLD_MS", -1)
    base = table.metadata
    snapshot = replace(
        base.current_snapshot(), snapshot_id=7, parent_snapshot_id=None, manifest_list=str(thesis)
    )
    log = (*base.metadata_log, MetadataLogEntry(table.metadata_location, base.last_updated_ms))
    lost = replace(base, snapshots=(*base.snapshots, snapshot), metadata_log=log)
    folder = f"{table.location()}/metadata"
    location = f"{folder}/00009-5a0f5bd2-0000-4000-8000-000000000000.metadata.json"
    write_metadata(table.io, lost, location)
    table.append(ROWS)
    found = unknown_commit.commit_status(
        table.catalog, table.identifier, location, expectation_sent=True
    )
    assert found.state is CommitState.NOT_COMMITTED
    assert str(thesis) not in found.leftovers


def test_a_planted_location(catalog: Any, namespace: str, thesis: Path) -> None:
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    current = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(current.read_text())
    own = body["location"]
    os.utime(thesis, (0, 0))
    for location in (thesis.parent, f"{own}/../../../home", f"{own}2"):
        current.write_text(json.dumps({**body, "location": str(location)}))
        with pytest.raises(ValidationError, match="and its metadata file is not there"):
            catalog.load_table(f"{namespace}.t").maintenance.remove_orphan_files()
    found = table.maintenance.remove_orphan_files(location=str(thesis.parent))
    assert [Path(one).name for one in found.orphan_file_location] == [thesis.name]


def named_in(table: Any, path: str) -> None:
    """Commit a data file as an implementation does that asks for nothing."""
    append = table.new_fast_append()
    [task] = table.scan().plan_files()
    append.append_data_file(replace(task.file, file_path=path))
    table.commit(append)


def test_a_dropped_table_takes_nothing_elsewhere_along(
    table: Any, thesis: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table.delete()
    table.append(ROWS)
    named_in(table, f"file:{thesis}")
    own = Path(table.location().removeprefix("file:"))
    with table.expire_snapshots(dry_run=True) as expire:
        expire.retain_last(1)
    table.catalog.drop_table("db.t", purge_requested=True)
    assert thesis.exists()
    assert not own.exists()
    assert f"1 files outside of the table's folders: file:{thesis.parent} (1)" in caplog.text


def test_a_local_file_in_a_table_elsewhere(s3: Any, tmp_path: Path) -> None:
    """Else a rewrite would show rows of a private file to all who read the table."""
    properties = {**s3.settings, "type": "hadoop", "warehouse": f"s3://{s3.bucket()}/lake"}
    lake = load_catalog("files", **properties)
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    private = tmp_path / "private.parquet"
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.table({"id": [4711]}, schema), private)
    with pytest.raises(ValidationError, match="names a file of this machine"):
        table.add_files([f"file:{private}"])
    named_in(table, f"file:{private}")
    refused = pytest.raises(ValidationError, match=f"names a file of this machine: file:{private}")
    for attempt in (
        lambda: table.scan().to_arrow(),
        lambda: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        lambda: table.delete("id = 1"),
    ):
        with refused:
            attempt()
    properties["local.allowed-prefixes"] = str(tmp_path)
    trusting = load_catalog("files", **properties).load_table("db.t")
    assert sorted(trusting.scan().to_arrow()["id"].to_pylist()) == [1, 4711]
    lake.drop_table("db.t", purge_requested=True)
    assert private.exists()
