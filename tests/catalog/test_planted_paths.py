"""Files that somebody who may write to a table's folder names: nobody else's files go for it."""

from __future__ import annotations

import gzip
import json
import os
import time
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.repair import apply_repair, plan_repair
from icecomb.catalog.maintenance.backup import plan_relocation
from icecomb.catalog.maintenance.expiry import expire_at_once
from icecomb.catalog.migrate.source.footer import FooterReader
from icecomb.catalog.table.earlier_metadata import metadata_as_of, metadata_of
from icecomb.format.errors import CommitFailedError, FileIOError, ValidationError
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.manifest_union import distinct_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.expiry.expire import write_list
from icecomb.format.operation.expiry.reachability import UnreachableFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.metadata_file import read_metadata, write_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.snapshot import MetadataLogEntry
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.peers.other_user import give_away

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
    planned = table.maintenance.expire_snapshots().retain_last(1).plan()
    done = table.maintenance.expire_snapshots().retain_last(1).commit()
    assert planned.left_outside == done.left_outside
    assert planned.left_outside[f"file:{thesis.parent}"] == 1
    assert sum(planned.left_outside.values()) == 2
    assert thesis.exists()
    assert not own.exists()


def test_a_planted_log_of_metadata(
    table: Any, thesis: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
    assert f"2 files outside of the table's folders: {thesis.parent} (2), which" in caplog.text
    assert len(table.metadata.metadata_log) == 1


@pytest.mark.parametrize("later", [False, True])
def test_a_planted_file_of_partition_statistics(
    table: Any, thesis: Path, caplog: pytest.LogCaptureFixture, *, later: bool
) -> None:
    with table.update_spec() as update:
        update.add_identity("id")
    table.overwrite(ROWS)
    own = table.maintenance.compute_partition_stats().partition_statistics_file
    stated = pq.read_table(own)
    at = stated.schema.get_field_index("total_data_file_size_in_bytes")
    forged = thesis.with_name("stats.parquet")
    lie = pa.array([4711], pa.int64())
    pq.write_table(stated.set_column(at, stated.schema.field(at), lie), forged)
    current = Path(table.metadata_location.removeprefix("file:"))
    current.write_text(current.read_text().replace(own, str(forged)))
    table.refresh()
    assert table.inspect.partitions()["total_data_file_size_in_bytes"].to_pylist() == [4711]
    if later:
        table.append(ROWS)
    made = table.maintenance.compute_partition_stats().partition_statistics_file
    assert made.startswith(table.location())
    assert later or "stats.parquet are outside of the table's folders" in caplog.text
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert pq.read_table(made)["total_data_file_size_in_bytes"].to_pylist() == [sum(sizes)]


def test_planted_local_files_of_a_table_elsewhere(
    s3: Any, table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its folder's writers may not have private files read, not even older metadata or counts."""
    with table.update_spec() as update:
        update.add_identity("id")
    table.overwrite(ROWS)
    stats = table.maintenance.compute_partition_stats().partition_statistics_file
    older = table.metadata.metadata_log[-1]
    properties = {**s3.settings, "type": "hadoop", "warehouse": f"s3://{s3.bucket()}/lake"}
    lake = load_catalog("files", **properties)
    lake.create_namespace("db")
    remote = lake.create_table("db.t", ROWS.schema, partition_spec=table.spec())
    remote.append(ROWS)
    with remote.transaction() as change:
        change.set_properties({"a": "b"})
    snapshot = remote.current_snapshot()
    size = Path(stats.removeprefix("file:")).stat().st_size
    file = {"snapshot-id": snapshot.snapshot_id, "statistics-path": stats}
    planted = replace(
        remote.metadata,
        partition_statistics=({**file, "file-size-in-bytes": size},),
        metadata_log=(MetadataLogEntry(older.metadata_file, snapshot.timestamp_ms),),
    )
    remote.io.delete([remote.metadata_location])
    write_metadata(remote.io, planted, remote.metadata_location)
    remote.refresh()
    assert remote.inspect.partitions()["record_count"].to_pylist() == [1]
    assert f"names a file of this machine: {stats}" in caplog.text
    refused = pytest.raises(ValidationError, match="names a file of this machine")
    with refused:
        metadata_as_of(remote, snapshot.timestamp_ms)
    with refused:
        metadata_of(remote, snapshot)
    properties["local.allowed-prefixes"] = table.location()
    trusting = load_catalog("files", **properties).load_table("db.t")
    found = metadata_as_of(trusting, snapshot.timestamp_ms)
    assert found.table_uuid == table.metadata.table_uuid


def test_planted_local_files_are_refused_in_each_file_of_metadata(s3: Any, table: Any) -> None:
    """A copy of local metadata on a store names local files: metadata, lists and manifests alike."""
    table.append(ROWS)
    names = [snapshot.manifest_list for snapshot in table.snapshots()]
    manifests = [m for one in table.snapshots() for m in read_manifests(table.io, one)]
    io = FileIO(s3.settings)
    root = f"s3://{s3.bucket()}/lake/t/metadata"

    def copied(location: str) -> str:
        copy = f"{root}/{location.rpartition('/')[2]}"
        io.create(copy, table.io.read(location))
        return copy

    snapshots = [
        replace(one, manifest_list=copied(name))
        for one, name in zip(table.snapshots(), names, strict=True)
    ]
    distinct = {one.manifest_path: one for one in manifests}
    remote = [replace(one, manifest_path=copied(name)) for name, one in distinct.items()]
    with pytest.raises(ValidationError, match=f"names a file of this machine: {names[0]}"):
        read_metadata(io, copied(table.metadata_location))
    with pytest.raises(ValidationError, match="names a file of this machine"):
        read_manifests(io, snapshots[0])
    # the first is decoded alone, and those after it together
    refused: list[Any] = []
    assert distinct_manifests(io, snapshots, lambda *told: refused.append(told)) == {}
    specs = table.metadata.spec_by_id
    told = read_each_columns(io, remote, specs, unreadable=lambda *told: refused.append(told))
    assert [*told] == []
    assert [one for one, _ in refused] == [*snapshots, *remote]
    assert all("names a file of this machine" in str(error) for _, error in refused)


def test_a_planted_hint_of_the_newest_version_is_not_read_whole(table: Any) -> None:
    hint = Path(table.location().removeprefix("file:")) / "metadata" / "version-hint.text"
    os.truncate(hint, 64 << 20)
    tracemalloc.start()
    try:
        table.refresh()
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    table.append(ROWS)
    assert hint.read_text() == "4"


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


ENGINES = {
    "spark.sql.sources.provider": "orc",
    "transactional": "true",
    "transactional_properties": "insert_only",
    "TRANSLATED_TO_EXTERNAL": "TRUE",
    "view_expanded_text": "select 1",
    "owner": "me",
    "external.table.purge": "true",
    "auto.purge": "true",
    "discover.partitions": "true",
    "partition.retention.period": "1s",
}


def test_planted_parameters(catalog: Any, namespace: str) -> None:
    """What Hive or Spark would obey comes into the entry by who sets it, not by who commits next."""
    name = f"{namespace}.t"
    table = catalog.create_table(name, ROWS.schema, properties={"owner": "ann"})
    edited(table, **{**ENGINES, "gc.enabled": "true", "mine": "yes"})

    def of_engines() -> dict[str, str]:
        entry = catalog.client.table(namespace, "t").parameters
        return {key: entry[key] for key in ENGINES.keys() & entry.keys()}

    table.refresh().append(ROWS)
    assert of_engines() == {"owner": "ann"}
    assert catalog.client.table(namespace, "t").parameters["mine"] == "yes"
    apply_repair(catalog, plan_repair(catalog, name))
    assert of_engines() == {"owner": "ann"}
    with table.update_properties() as update:
        update.set("owner", "eve").set("auto.purge", "false").set("gc.enabled", "TRUE")
    set_now = {"owner": "eve", "auto.purge": "false", "external.table.purge": "TRUE"}
    assert of_engines() == set_now
    # that files are kept is carried on, whoever says it
    edited(table, **{"gc.enabled": "false"})
    table.refresh().append(ROWS)
    assert of_engines() == {**set_now, "external.table.purge": "false"}
    with table.update_properties() as update:
        update.remove("auto.purge").remove("owner")
    assert of_engines() == {"external.table.purge": "false"}


def test_planted_parameters_of_a_view(catalog: Any, namespace: str) -> None:
    schema = catalog.create_table(f"{namespace}.t", ROWS.schema).schema()
    view = catalog.create_view(f"{namespace}.v", schema, {"spark": f"select * from {namespace}.t"})
    current = Path(view.metadata_location.removeprefix("file:"))
    body = json.loads(gzip.decompress(current.read_bytes()))
    body["properties"] = {**body.get("properties", {}), **ENGINES}
    current.write_bytes(gzip.compress(json.dumps(body).encode()))
    catalog.load_view(f"{namespace}.v").update_properties({"mine": "yes"})
    parameters = catalog.client.table(namespace, "v").parameters
    assert parameters["mine"] == "yes"
    assert ENGINES.keys().isdisjoint(parameters)


@pytest.mark.parametrize("plant", [Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_a_planted_name_of_the_next_version(table: Any, plant: Any) -> None:
    current = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(current.read_text())
    body["properties"] |= {
        "commit.retry.num-retries": str((1 << 31) - 1),
        "commit.retry.total-timeout-ms": str((1 << 63) - 1),
        "commit.retry.min-wait-ms": "1",
        "commit.retry.max-wait-ms": "1",
    }
    current.write_text(json.dumps(body))
    following = current.with_name(f"v{len(table.snapshots()) + 2}.metadata.json")
    plant(following)
    with pytest.raises(CommitFailedError, match=f"{following.name} is said to be first") as told:
        table.refresh().append(ROWS)
    assert "a dangling link" in (told.value.hint or "")
    (following.rmdir if following.is_dir() else following.unlink)()
    table.refresh().append(ROWS)


def named_in(table: Any, path: str) -> None:
    """Commit a data file as an implementation does that asks for nothing."""
    append = table.new_fast_append()
    task, *_ = table.scan().plan_files()
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
    table.refresh().delete()
    table.append(ROWS)
    plan = table.maintenance.expire_snapshots().older_than(1 << 42).retain_last(1).plan()
    assert plan.left_outside == {f"file:{thesis.parent}": 1}
    for folder in ("/", "file:///", "home", table.catalog.properties["warehouse"]):
        with pytest.raises(ValidationError, match="it is relative, a root, holds the warehouse"):
            expire_at_once(table, outside=[folder])
    named = expire_at_once(table, older_than=1 << 42, outside=[f"{thesis.parent}/"])
    assert (named.left_outside, named.deleted_data_files_count) == (
        {},
        plan.deleted_data_files_count + 1,
    )
    table.catalog.drop_table("db.t", purge_requested=True)
    assert thesis.exists()
    assert not own.exists()
    assert f"1 files outside of the table's folders: file:{thesis.parent} (1)" in caplog.text
    (purged,) = [one for one in caplog.messages if "stay when the table is purged" in one]
    assert "icecomb.former-folders, and in the catalog's own-folders.allowed-prefixes" in purged


def test_an_expiration_deletes_elsewhere_what_it_is_told_to(table: Any, thesis: Path) -> None:
    table.delete()
    table.append(ROWS)
    named_in(table, f"file:{thesis}")
    table.refresh().delete()
    table.append(ROWS)
    beside = thesis.with_name("beside")
    beside.touch()
    done = expire_at_once(
        table, older_than=1 << 42, retain_last=1, outside=[f"file://{thesis.parent}"], dry_run=False
    )
    assert done.left_outside == {}
    assert not thesis.exists()
    assert beside.exists()
    assert table.refresh().scan().to_arrow() == ROWS


@pytest.mark.parametrize("kind", ["files", pytest.param("hive", marks=pytest.mark.jvm)])
def test_a_purge_tells_what_it_leaves_elsewhere_and_deletes_there_what_it_is_told_to(
    kind: str, thesis: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "hive":
        lake, namespace = request.getfixturevalue("catalog"), request.getfixturevalue("namespace")
    else:
        lake, namespace = load_catalog("f", type="hadoop", warehouse=str(tmp_path / "lake")), "db"
        lake.create_namespace(namespace)
    table = lake.create_table(name := f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    named_in(table, f"file:{thesis}")
    # a second manifest names the file, too
    named_in(table.refresh(), f"file:{thesis.with_name('gone')}")
    table.refresh().maintenance.rewrite_manifests()
    home, beside = f"file:{thesis.parent}", thesis.with_name("beside")
    beside.touch()
    own = Path(table.location().removeprefix("file:"))
    files = {path for path in own.rglob("*") if path.is_file()}
    for folder in ("/", "file:///", "home", lake.properties.get("warehouse", "/")):
        for dry_run in (True, False):
            with pytest.raises(
                ValidationError, match="it is relative, a root, holds the warehouse"
            ):
                lake.purge_table(name, delete_outside=[folder], dry_run=dry_run)
    assert lake.purge_table(name, dry_run=True).left_outside == {home: 2}
    assert lake.purge_table(name, delete_outside=[home], dry_run=True).left_outside == {}
    assert {path for path in own.rglob("*") if path.is_file()} == files
    assert lake.table_exists(name)
    assert thesis.exists()
    assert lake.purge_table(name, delete_outside=[home]).left_outside == {}
    assert not lake.table_exists(name)
    assert not thesis.exists()
    assert beside.exists()
    assert [path for path in own.rglob("*") if path.suffix in {".parquet", ".avro", ".json"}] == []


def test_what_a_purge_left_elsewhere_is_in_its_result(table: Any, thesis: Path) -> None:
    named_in(table, f"file:{thesis}")
    assert table.catalog.purge_table("db.t").left_outside == {f"file:{thesis.parent}": 1}
    assert thesis.exists()


def test_a_table_of_another_folder_gives_a_purge_nothing_elsewhere(
    table: Any, thesis: Path
) -> None:
    named_in(table, f"file:{thesis}")
    copy = table.catalog.register_table("db.copy", table.refresh().metadata_location)
    with pytest.raises(ValidationError, match="registered from elsewhere"):
        table.catalog.purge_table("db.copy", delete_outside=[str(thesis.parent)])
    assert copy.refresh().metadata is not None
    assert table.catalog.purge_table("db.copy").left_outside == {}
    assert thesis.exists()


def test_folders_that_no_entry_can_hold_are_told_by_a_dry_run(
    catalog: Any, namespace: str, thesis: Path
) -> None:
    """A list of former folders that is longer than metastores keep is not noted."""
    many = json.dumps([f"/a/{n:03}/{'y' * 200}" for n in range(17)])
    properties = {"icecomb.former-folders": many, "write.data.path": f"file:{thesis.parent}"}
    table = catalog.create_table(f"{namespace}.t", ROWS.schema, properties=properties)
    table.append(ROWS)
    with table.update_properties() as change:
        change.remove("write.data.path")
    assert table.properties["icecomb.former-folders"] == many
    table.delete()
    table.append(ROWS)
    plan = expire_at_once(table, older_than=1 << 42, retain_last=1)
    assert plan.left_outside == {f"file:{thesis.parent}": 1}
    assert table.catalog.purge_table(table.name(), dry_run=True).left_outside == plan.left_outside
    given = {"older_than": 1 << 42, "retain_last": 1, "outside": [*plan.left_outside]}
    assert expire_at_once(table, **given, dry_run=False).left_outside == {}
    assert [*thesis.parent.iterdir()] == [thesis]


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


def test_a_table_that_would_name_local_files_is_not_registered_elsewhere(
    s3: Any, tmp_path: Path
) -> None:
    source = load_catalog("here", type="hadoop", warehouse=tmp_path.as_uri()).create_table(
        "source", ROWS.schema
    )
    source.append(ROWS)
    properties = {**s3.settings, "type": "hadoop", "warehouse": f"s3://{s3.bucket()}/lake"}
    lake = load_catalog("files", **properties)
    lake.create_namespace("db")
    with pytest.raises(ValidationError, match="names a file of this machine"):
        lake.register_table("db.taken", source.metadata_location)
    assert lake.list_tables("db") == []
    properties["local.allowed-prefixes"] = tmp_path.as_uri()
    taken = load_catalog("files", **properties).register_table("db.taken", source.metadata_location)
    assert taken.scan().to_arrow().num_rows == ROWS.num_rows


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_rewrite_tells_which_rows_of_other_folders_it_copies(
    table: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, dry_run: bool
) -> None:
    private = tmp_path / "private.parquet"
    pq.write_table(pa.table({"id": [4711]}), private)
    rewrite = table.maintenance.rewrite_data_files
    rewrite(options={"rewrite-all": "true"}, dry_run=True)
    assert "a rewrite copies" not in caplog.text
    table.add_files([f"file:{private}"])
    rewrite(options={"rewrite-all": "true"}, dry_run=dry_run)
    said = f"copies the rows of 1 files outside of the table's folders: file:{tmp_path} (1) into"
    assert f"db.t: a rewrite {said}" in caplog.text


UPDATED = pa.table({"id": [4711, 1], "text": ["new", "new"]})
COPIES = {
    "rewrite": lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
    "copied row groups": lambda t: t.maintenance.rewrite_data_files(
        options={"rewrite-all": "true", "copy": "require"}
    ),
    "delete": lambda t: t.delete("id = 4711"),
    "upsert": lambda t: t.upsert(UPDATED, ["id"]),
    "merge": lambda t: (
        t.merge(UPDATED, on=["id"]).when_matched_update({"text": "s.text"}).execute()
    ),
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("copies", COPIES)
def test_rows_behind_a_link_of_another_user_are_not_copied(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: str, mode: str
) -> None:
    if (copies, mode) == ("delete", "merge-on-read"):
        pytest.skip("copies no rows")
    rows = pa.table({"id": [4711, 4712, 1], "text": ["own", "own", "own"]})
    modes = {f"write.{name}.mode": mode for name in ("delete", "update", "merge")}
    modes["icecomb.maintenance.copy-min-row-group-bytes"] = "1"
    linked = table.catalog.create_table("db.linked", rows.schema, properties=modes)
    linked.append(rows)
    [path] = linked.inspect.files()["file_path"].to_pylist()
    file, private = Path(path.removeprefix("file:")), tmp_path / "private.parquet"
    file.rename(private)
    file.symlink_to(private)
    give_away(file, monkeypatch)
    before = linked.metadata_location
    assert linked.scan().to_arrow().num_rows == 3
    with pytest.raises(FileIOError, match=r"a link of another user|Cannot copy"):
        COPIES[copies](linked)
    assert linked.refresh().metadata_location == before
    file.unlink()
    file.symlink_to(private)
    monkeypatch.undo()
    COPIES[copies](linked)
    assert linked.metadata_location != before


def behind_link(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a file where only its owner may read it, and another user's link to it in its place."""
    file, private = Path(path.removeprefix("file:")), tmp_path / f"private{Path(path).suffix}"
    file.rename(private)
    file.symlink_to(private)
    give_away(file, monkeypatch)
    return private


RECORDS = {
    "append": lambda t: t.append(ROWS),
    "delete": lambda t: t.delete("id = 1"),
    "manifests": lambda t: t.maintenance.rewrite_manifests(),
}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("column", ["path", "manifest_list"])
def test_entries_behind_a_link_of_another_user_are_not_copied(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str, column: str
) -> None:
    with table.transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "2"})
    found = table.inspect.manifests() if column == "path" else table.inspect.snapshots()
    behind_link(found[column].to_pylist()[-1], tmp_path, monkeypatch)
    opened = load_catalog("other", type="hadoop", warehouse=f"{tmp_path}/lake").load_table("db.t")
    assert opened.scan().to_arrow().num_rows == 2
    with pytest.raises(FileIOError, match=r"Cannot copy .* a link of user"):
        RECORDS[record](opened)
    assert opened.refresh().metadata_location == table.metadata_location


TAKEN = {
    "sketches of values": ("file_path", lambda t: t.maintenance.compute_table_stats()),
    "partition values": ("path", lambda t: t.maintenance.compute_partition_stats()),
    "equality deletes": (2, lambda t: t.maintenance.convert_equality_deletes()),
    "position deletes": (
        1,
        lambda t: t.maintenance.rewrite_position_delete_files(options={"rewrite-all": "true"}),
    ),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_what_maintenance_takes_of_files_is_not_taken_behind_a_link_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    lake = load_catalog("files", type="hadoop", warehouse=f"{tmp_path}/lake")
    lake.create_namespace("db")
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    rows = pa.table({"id": [7, 7, 7], "n": pa.array([1, 2, 3], pa.int64())})
    table = lake.create_table(
        "db.t", rows.schema, partition_spec=spec, properties={"write.delete.mode": "merge-on-read"}
    )
    table.append(rows)
    table.delete("n = 1")
    writer = EqualityDeleteWriter(table.io, table.metadata, "equality", ["n"])
    writer.write(rows.slice(1, 1).to_batches()[0])
    change = RowDelta(table.io)
    for file in writer.close():
        change.add_deletes(file)
    table.commit(change)
    column, take = TAKEN[taken]
    if column == "path":
        path = table.inspect.manifests()["path"].to_pylist()[0]
    elif column == "file_path":
        [path] = table.inspect.data_files()["file_path"].to_pylist()
    else:
        found = table.inspect.delete_files().to_pylist()
        [path] = [file["file_path"] for file in found if file["content"] == column]
    behind_link(path, tmp_path, monkeypatch)
    opened = lake.load_table("db.t")
    assert opened.scan().to_arrow()["n"].to_pylist() == [3]
    with pytest.raises(FileIOError, match="Cannot copy"):
        take(opened)
    assert opened.refresh().metadata_location == table.metadata_location


def test_bounds_behind_a_link_of_another_user_are_not_written(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "given.parquet"
    pq.write_table(ROWS, file)
    behind_link(str(file), tmp_path, monkeypatch)
    with pytest.raises(FileIOError, match="Cannot copy"):
        table.add_files([f"file:{file}"])
    reader = FooterReader(table.io, table.schema(), {})
    [problem] = reader.read(FileStatus(f"file:{file}", 0, 0), table.spec(), ()).problems
    assert problem.code == "unreadable-file"
    assert "Cannot copy" in problem.message


def test_a_rewrite_tells_which_rows_it_copies_by_links(
    table: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = table.inspect.files()["file_path"].to_pylist()[0]
    file = Path(path.removeprefix("file:"))
    file.rename(tmp_path / "private.parquet")
    file.symlink_to(tmp_path / "private.parquet")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}, dry_run=True)
    assert "copies the rows of 1 files outside of the table's folders" in caplog.text


class Neighbor:
    """Another user's folder beside a table, and files in it that metadata can name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "data" / "thesis.parquet"
        self.file.parent.mkdir(parents=True)
        self.file.write_text("years")

    def claims(self) -> dict[str, dict[str, str]]:
        """What makes this folder the table's, by the members of a metadata file."""
        own = f"file:{self.folder}"
        named = ("write.data.path", "write.metadata.path", "write.object-storage.path")
        former = {"icecomb.former-folders": json.dumps([own])}
        return {
            "location": {},
            **{name: {name: own} for name in (*named, "write.folder-storage.path")},
            "former": former,
        }


def edited(table: Any, folder: str | None = None, **properties: str) -> None:
    """Change the table's current metadata file in place, without a commit."""
    current = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(current.read_text())
    body["location"] = folder or body["location"]
    body["properties"] = {**body["properties"], **properties}
    current.write_text(json.dumps(body))


@pytest.fixture
def neighbor(tmp_path: Path) -> Neighbor:
    return Neighbor(tmp_path / "neighbor")


def made(catalog: Any, name: str, neighbor: Neighbor, **properties: str) -> Any:
    """A table of two snapshots, whose first one alone needs the neighbor's file."""
    table = catalog.create_table(name, ROWS.schema, properties=properties)
    table.append(ROWS)
    named_in(table, f"file:{neighbor.file}")
    table.delete()
    table.append(ROWS)
    return table


CLAIMS = ("location", "write.data.path", "write.metadata.path", "write.object-storage.path")


@pytest.mark.parametrize("claim", [*CLAIMS, "write.folder-storage.path", "former"])
def test_a_folder_that_only_the_metadata_claims_is_not_the_tables(
    catalog: Any, namespace: str, neighbor: Neighbor, claim: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not at once, nor after others' commits have carried the claim on, nor as a former folder."""
    name = f"{namespace}.t"
    table = made(catalog, name, neighbor)
    edited(
        table,
        f"file:{neighbor.folder}" if claim == "location" else None,
        **neighbor.claims()[claim],
    )
    table = catalog.load_table(name)
    with table.expire_snapshots(dry_run=True) as plan:
        plan.retain_last(1).older_than(int(time.time() * 1000) + 1)
    assert plan.result.outside == (f"file:{neighbor.file}",)
    with suppress(ValidationError):  # it would be written there
        table.append(ROWS)
    with table.transaction() as change:
        change.update_location(f"{table.location()}2").remove_properties(*CLAIMS)
    table = catalog.load_table(name)
    caplog.clear()
    with table.expire_snapshots() as expire:
        expire.retain_last(1).older_than(int(time.time() * 1000) + 1)
    assert f"file:{neighbor.file}" in expire.result.outside
    assert f"file:{neighbor.file.parent} (1)" in caplog.text
    assert neighbor.file.exists()


@pytest.mark.parametrize("way", ["expire", "purge", "moved"])
def test_files_in_a_folder_of_several_tables_are_those_of_the_one_in_their_path(
    catalog: Any, namespace: str, tmp_path: Path, way: str
) -> None:
    """As Iceberg names it there, for instance ``.../0101/0010/1100/10101010/db.db/t/x.parquet``."""
    common = {
        "write.object-storage.enabled": "true",
        "write.object-storage.path": f"file:{tmp_path}/common",
    }
    theirs = catalog.create_table(f"{namespace}.theirs", ROWS.schema, properties=common)
    theirs.append(ROWS)
    (file,) = theirs.inspect.files()["file_path"].to_pylist()
    name = f"{namespace}.t"
    table = catalog.create_table(name, ROWS.schema, properties=common)
    table.append(ROWS)
    (own,) = table.inspect.files()["file_path"].to_pylist()
    named_in(table, file)
    table.delete()
    if way == "moved":
        with table.transaction() as change:
            change.update_location(f"{table.location()}-moved")
    table.append(ROWS)
    table = catalog.load_table(name)
    if way == "purge":
        catalog.drop_table(name, purge_requested=True)
    else:
        with table.expire_snapshots() as expire:
            expire.retain_last(1).older_than(int(time.time() * 1000) + 1)
        assert expire.result.outside == (file,)
    assert theirs.refresh().scan().to_arrow() == ROWS
    assert not Path(own.removeprefix("file:")).exists()


def test_a_purge_believes_no_folder_of_the_metadata(
    catalog: Any, namespace: str, neighbor: Neighbor, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"{namespace}.t"
    table = made(catalog, name, neighbor)
    own = Path(table.location().removeprefix("file:"))
    edited(table, "file:///")
    catalog.drop_table(name, purge_requested=True)
    assert neighbor.file.exists()
    assert "outside of the table's folders" in caplog.text
    assert not [*own.rglob("*.parquet")]
    assert not [*own.rglob("*.avro")]


def test_metadata_files_elsewhere_stay_after_a_commit(
    catalog: Any, namespace: str, neighbor: Neighbor
) -> None:
    name = f"{namespace}.t"
    table = catalog.create_table(name, ROWS.schema)
    theirs = neighbor.folder / "v1.metadata.json"
    theirs.write_text("{}")
    current = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(current.read_text())
    body["properties"] = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
        **neighbor.claims()["former"],
    }
    body["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": str(theirs)}]
    current.write_text(json.dumps(body))
    catalog.load_table(name).append(ROWS)
    catalog.load_table(name).append(ROWS)
    assert theirs.exists()


def test_a_folder_in_the_table_s_that_becomes_a_link_leads_nowhere(
    catalog: Any, namespace: str, neighbor: Neighbor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither after a commit that found its name in the metadata, nor after one that named it."""
    name = f"{namespace}.t"
    table = made(catalog, name, neighbor)
    planted, inner = (Path(table.location().removeprefix("file:")) / one for one in "xy")
    for folder in (planted, inner):
        folder.mkdir()
    edited(table, **{"write.data.path": str(planted)})
    catalog.load_table(name).append(ROWS)
    with catalog.load_table(name).transaction() as change:
        change.set_properties({"write.data.path": str(inner)})
    parameters = str(catalog.client.table(namespace, "t").parameters)
    assert (str(planted) in parameters, str(inner) in parameters) == (False, True)
    inner.rmdir()
    inner.symlink_to(neighbor.folder)
    give_away(inner, monkeypatch)
    theirs = neighbor.folder / "v1.metadata.json"
    theirs.write_text("{}")
    os.utime(neighbor.file, (0, 0))
    with catalog.load_table(name).expire_snapshots() as expire:
        expire.retain_last(1).older_than(int(time.time() * 1000) + 1)
    assert f"file:{neighbor.file}" in expire.result.outside
    table = catalog.load_table(name)
    own = table.location()
    edited(table, str(neighbor.folder))
    for quarantine in (False, True):
        with pytest.raises(ValidationError, match="cannot be told"):
            catalog.load_table(name).maintenance.remove_orphan_files(
                dry_run=False, quarantine=quarantine
            )
    edited(table, own)
    metadata_log(table, theirs)
    with catalog.load_table(name).transaction() as change:
        change.remove_properties("write.data.path")
    named_in(catalog.load_table(name), f"file:{neighbor.file}")
    catalog.drop_table(name, purge_requested=True)
    assert neighbor.file.exists()
    assert theirs.exists()


def metadata_log(table: Any, *files: Path) -> None:
    """Have the metadata name files as older metadata of the table, due at the next commit."""
    current = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(current.read_text())
    body["properties"] |= {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    body["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": str(one)} for one in files]
    current.write_text(json.dumps(body))


@pytest.mark.parametrize("claim", ["location", "write.data.path", "write.metadata.path", "store"])
def test_no_file_is_written_to_a_folder_that_only_the_metadata_names(
    catalog: Any, namespace: str, neighbor: Neighbor, claim: str
) -> None:
    """Readers of a folder of Parquet would see the rows."""
    name, theirs = f"{namespace}.t", f"file:{neighbor.folder}"
    table = catalog.create_table(name, ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    own = table.location()
    store = {"write.object-storage.enabled": "true", "write.object-storage.path": theirs}
    given = {"location": {}, "store": store}.get(claim, {claim: theirs})
    edited(table, theirs if claim == "location" else None, **given)
    table = catalog.load_table(name)
    before = sorted(neighbor.folder.rglob("*"))
    append = table.new_fast_append()
    for attempt in (
        lambda: table.append(ROWS),
        lambda: table.delete("id = 1"),
        lambda: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        table.maintenance.compute_table_stats,
        lambda: table.commit(append),
        lambda: table.transaction().append(ROWS),
        lambda: table.transaction().commit(append),
    ):
        with pytest.raises(ValidationError, match="which only its metadata file says") as said:
            attempt()
    assert "own-folders.allowed-prefixes" in said.value.hint
    assert sorted(neighbor.folder.rglob("*")) == before
    trusting = load_catalog(
        "lake", **{**catalog.properties, "own-folders.allowed-prefixes": str(neighbor.folder)}
    )
    trusting.load_table(name).append(ROWS)
    with catalog.load_table(name).transaction() as change:
        if claim == "location":
            change.update_location(own)
        change.remove_properties(*given)
    catalog.load_table(name).append(ROWS)


def test_no_manifest_is_written_to_a_folder_that_a_newer_metadata_file_names(
    table: Any, thesis: Path
) -> None:
    """Nothing can be written below a file: who tries fails otherwise than who asks before."""
    with table.update_properties() as update:
        update.set("write.wap.enabled", "true").set("write.delete.mode", "merge-on-read")
    table.append(ROWS, {"wap.id": "load"})
    staged = table.snapshots()[-1].snapshot_id
    name, late = "db.t", []
    for _ in range(8):
        one = table.catalog.load_table(name)
        _ = one.metadata
        late.append(one)
    picked = late[5].manage_snapshots().create_tag(staged, "staged").cherry_pick(staged)
    current = Path(table.metadata_location.removeprefix("file:"))
    number = int(current.name.split(".")[0].removeprefix("v"))
    body = json.loads(current.read_text())
    body["properties"]["write.metadata.path"] = f"file:{thesis}/below"
    body["last-updated-ms"] += 1
    current.with_name(f"v{number + 1}.metadata.json").write_text(json.dumps(body))
    started = late[4].transaction()
    started.manage_snapshots().cherry_pick(staged).commit()
    for attempt in (
        lambda: late[0].append(ROWS),
        lambda: late[1].delete("id = 1"),
        lambda: late[2].maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        lambda: late[3].publish_changes("load"),
        started.commit_transaction,
        picked.commit,
        lambda: table.catalog.load_table(name).manage_snapshots().cherry_pick(staged),
        lambda: table.catalog.load_table(name).transaction().publish_changes("load"),
    ):
        with pytest.raises(ValidationError, match="which only its metadata file says"):
            attempt()


def test_a_table_whose_entry_names_another_path_is_changed_as_it_is_written(
    catalog: Any, namespace: str, tmp_path: Path
) -> None:
    """By a mount point or a router: what is made in one folder is seen in the other."""
    name = f"{namespace}.t"
    table = catalog.create_table(name, ROWS.schema)
    (tmp_path / "mounted").symlink_to(table.location().removeprefix("file:"))
    entry = catalog.client.table(namespace, "t")
    elsewhere = replace(entry.storage, location=f"{tmp_path}/mounted")
    catalog.client.alter_table(namespace, "t", replace(entry, storage=elsewhere))
    table = catalog.load_table(name)
    table.append(ROWS)
    with catalog.load_table(name).transaction() as change:
        change.set_properties({"a": "1"})
    assert catalog.load_table(name).properties["a"] == "1"


def test_another_table_s_uuid_opens_no_folder_of_it(table: Any, tmp_path: Path) -> None:
    """Its metadata, too, is there for anybody to copy: rows would go with the next clean-up."""
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "lake"))
    planted = lake.create_table("db.planted", ROWS.schema)
    planted.append(ROWS)
    current = Path(planted.metadata_location.removeprefix("file:"))
    theirs = Path(table.metadata_location.removeprefix("file:")).read_text()
    for body in (
        {**json.loads(current.read_text()), "location": table.location(), **_uuid(theirs)},
        json.loads(theirs),
    ):
        current.write_text(json.dumps(body))
        planted = lake.load_table("db.planted")
        for change in (lambda: planted.append(ROWS), lambda: planted.delete("id = 1")):  # noqa: B023 - called at once
            with pytest.raises(ValidationError, match="only its metadata file says"):
                change()
    folder = Path(table.location().removeprefix("file:"))
    assert len([*folder.rglob("*.parquet")]) == 2
    assert not [*folder.rglob(".same*"), *current.parent.rglob(".same*")]


def _uuid(text: str) -> dict[str, str]:
    return {"table-uuid": json.loads(text)["table-uuid"]}


def test_the_list_of_an_expiry_is_written_to_no_folder_that_only_the_metadata_names(
    table: Any, neighbor: Neighbor
) -> None:
    before = sorted(neighbor.folder.rglob("*"))
    table.delete()
    edited(table, **{"write.metadata.path": f"file:{neighbor.folder}/new"})
    table.refresh()
    expiry = table.maintenance.expire_snapshots().older_than(2**62).retain_last(1)
    assert expiry.plan().deleted_data_files_count == 2
    with pytest.raises(ValidationError, match="only its metadata file says"):
        expiry.commit()
    assert sorted(neighbor.folder.rglob("*")) == before


def test_no_metadata_file_goes_to_a_location_that_stays_the_planted_one(
    catalog: Any, namespace: str, neighbor: Neighbor
) -> None:
    """Whoever removes one planted property does not confirm the planted location by that."""
    name = f"{namespace}.t"
    table = catalog.create_table(name, ROWS.schema)
    edited(table, f"file:{neighbor.folder}", **{"write.metadata.path": table.location()})
    before = sorted(neighbor.folder.rglob("*"))
    change = catalog.load_table(name).transaction().remove_properties("write.metadata.path")
    with pytest.raises(ValidationError, match="which only its metadata file says"):
        change.commit_transaction()
    assert sorted(neighbor.folder.rglob("*")) == before


@pytest.mark.parametrize("claim", ["location", "write.metadata.path"])
def test_no_metadata_of_a_view_goes_to_a_folder_that_only_the_file_before_names(
    catalog: Any, namespace: str, neighbor: Neighbor, claim: str
) -> None:
    name, theirs = f"{namespace}.v", f"file:{neighbor.folder}"
    view = catalog.create_view(name, ROWS.schema, {"spark": "SELECT 1 AS id"})
    own = view.location()
    edited_view(view, {claim: theirs})
    before = sorted(neighbor.folder.rglob("*"))
    view = catalog.load_view(name)
    with pytest.raises(ValidationError, match="which only its metadata file says"):
        view.update_properties({"a": "1"})
    assert sorted(neighbor.folder.rglob("*")) == before
    entry = catalog.client.table(namespace, "v")
    assert theirs not in str((entry.storage.location, entry.parameters))
    if claim != "location":
        view.update_properties(removals=[claim])
        view.update_properties({claim: f"{own}/other"}).update_properties({"a": "1"})
        parameters = catalog.client.table(namespace, "v").parameters
        assert parameters["metadata_location"].startswith(f"{own}/other/")


def test_the_next_change_of_a_view_makes_no_planted_location_its_entry_s(
    catalog: Any, namespace: str, neighbor: Neighbor
) -> None:
    view = catalog.create_view(f"{namespace}.v", ROWS.schema, {"spark": "SELECT 1 AS id"})
    own = view.location()
    edited_view(view, {"location": f"file:{neighbor.folder}"})
    catalog.load_view(f"{namespace}.v").update_properties({"write.metadata.path": f"{own}/new"})
    assert catalog.client.table(namespace, "v").storage.location == own


def edited_view(view: Any, claims: dict[str, str]) -> None:
    """Change the view's current metadata file in place, without a commit."""
    current = Path(view.metadata_location.removeprefix("file:"))
    body = json.loads(gzip.decompress(current.read_bytes()))
    body["location"] = claims.get("location", body["location"])
    body["properties"] |= {key: one for key, one in claims.items() if key != "location"}
    current.write_bytes(gzip.compress(json.dumps(body).encode()))


FOLDERS = ("write.data.path", "write.folder-storage.path")


@pytest.mark.parametrize("key", FOLDERS)
def test_a_table_of_a_folder_is_given_no_other_folder_that_nothing_vouches_for(
    table: Any, tmp_path: Path, key: str
) -> None:
    """Neither by who creates it nor later: the next append would be refused."""
    lake, elsewhere = table.catalog, {key: str(tmp_path / "elsewhere")}
    for attempt in (
        lambda: lake.create_table("db.u", ROWS.schema, properties=elsewhere),
        lambda: lake.create_table_transaction("db.u", ROWS.schema, properties=elsewhere),
        lambda: lake.create_or_replace_table("db.t", ROWS.schema, properties=elsewhere),
        lambda: table.transaction().set_properties(elsewhere).commit_transaction(),
    ):
        with pytest.raises(ValidationError, match="which only its metadata file says") as said:
            attempt()
        assert "own-folders.allowed-prefixes" in said.value.hint
    assert not lake.table_exists("db.u")
    own = {"own-folders.allowed-prefixes": str(tmp_path / "elsewhere")}
    trusting = load_catalog("files", **{**lake.properties, **own})
    trusting.create_table("db.u", ROWS.schema, properties=elsewhere).append(ROWS)
    within = {key: f"{table.location()}/rows"}
    lake.create_table(
        "db.v", ROWS.schema, properties={key: f"{lake.properties['warehouse']}/db/v/rows"}
    ).append(ROWS)
    table.transaction().set_properties(within).commit_transaction()
    table.append(ROWS)


def test_a_table_of_a_folder_that_names_another_may_still_be_changed(
    tmp_path: Path,
) -> None:
    settings = {"type": "hadoop", "warehouse": str(tmp_path / "lake")}
    elsewhere = str(tmp_path / "elsewhere")
    trusting = load_catalog("files", **settings, **{"own-folders.allowed-prefixes": elsewhere})
    trusting.create_namespace("db")
    path = {"write.data.path": elsewhere}
    trusting.create_table("db.t", ROWS.schema, properties=path)
    table = load_catalog("files", **settings).load_table("db.t")
    table.transaction().set_properties({"a": "1"}).commit_transaction()
    table.transaction().remove_properties("write.data.path").commit_transaction()
    table.append(ROWS)


@pytest.mark.parametrize("above", ["..", "../..", "/", "file:///"])
def test_a_location_above_the_table_has_no_orphans(
    catalog: Any, namespace: str, above: str
) -> None:
    name = f"{namespace}.t"
    table = catalog.create_table(name, ROWS.schema)
    table.append(ROWS)
    folder = table.location()
    edited(table, f"{folder}/{above}" if above[0] == "." else above)
    refused = pytest.raises(ValidationError, match="cannot be told")
    with refused:
        catalog.load_table(name).maintenance.remove_orphan_files()
    edited(table, above, **{"write.metadata.path": f"{folder}/metadata"})
    with refused:
        catalog.load_table(name).maintenance.remove_orphan_files()
    catalog.load_table(name).maintenance.remove_orphan_files(location=folder)


@pytest.mark.parametrize("above", ["", "db", "db/t/data"])
def test_a_location_above_the_table_has_nothing_copied(
    table: Any, thesis: Path, tmp_path: Path, above: str
) -> None:
    location = f"{tmp_path / 'lake' / above}"
    edited(table, location)
    file, target = table.metadata_location, str(tmp_path / "copy")
    with pytest.raises(ValidationError, match=r"location|not where"):
        plan_relocation(table.io, file, None, target)
    if above != "db/t/data":
        assert not plan_relocation(table.io, file, location, target).is_blocked


def test_folders_that_a_commit_names_are_the_tables(
    catalog: Any, namespace: str, neighbor: Neighbor
) -> None:
    """They are in the entry, where other engines put them, too."""
    name, folder = f"{namespace}.t", f"file:{neighbor.folder}"
    made(catalog, name, neighbor, **{"write.data.path": folder})
    with catalog.load_table(name).transaction() as change:
        change.remove_properties("write.data.path")
    assert folder in catalog.client.table(namespace, "t").parameters["icecomb.former-folders"]
    table = catalog.load_table(name)
    with table.expire_snapshots() as expire:
        expire.retain_last(1).older_than(int(time.time() * 1000) + 1)
    assert not expire.result.outside
    assert not neighbor.file.exists()


def test_a_table_of_a_folder_has_others_only_where_the_catalog_allows_it(
    tmp_path: Path, neighbor: Neighbor
) -> None:
    settings = {"type": "hadoop", "warehouse": str(tmp_path / "lake")}
    own = {"own-folders.allowed-prefixes": str(tmp_path / "neighbor")}
    lake = load_catalog("files", **settings, **own)
    lake.create_namespace("db")
    made(lake, "db.t", neighbor, **{"write.data.path": f"file:{neighbor.folder}"})
    for more in ({}, own):
        table = load_catalog("files", **settings, **more).load_table("db.t")
        with table.expire_snapshots(dry_run=True) as plan:
            plan.retain_last(1).older_than(int(time.time() * 1000) + 1)
        assert (f"file:{neighbor.file}" in plan.result.outside) is not more


def test_a_repair_takes_over_no_folder_that_it_does_not_show(
    catalog: Any, namespace: str, neighbor: Neighbor
) -> None:
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    before = table.metadata_location
    table.append(ROWS)
    older = Path(before.removeprefix("file:"))
    body = json.loads(older.read_text())
    body["location"] = str(neighbor.folder)
    body["properties"] |= neighbor.claims()["write.data.path"]
    older.write_text(json.dumps(body))
    apply_repair(catalog, plan_repair(catalog, f"{namespace}.t", before))
    entry = catalog.client.table(namespace, "t")
    assert entry.metadata_location == before
    assert str(neighbor.folder) not in str((entry.storage.location, entry.parameters))
    plan = plan_repair(catalog, f"{namespace}.t")
    assert plan.names_folders
    assert plan.parameters["(location)"] == (table.location(), str(neighbor.folder))


def test_a_repair_writes_no_folder_that_the_file_names_since_it_was_planned(
    catalog: Any, namespace: str, neighbor: Neighbor
) -> None:
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    file = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(file.read_text())
    body["properties"]["comment"] = "harmless"
    file.write_text(json.dumps(body))
    plan = plan_repair(catalog, f"{namespace}.t")
    assert plan.parameters.keys() == {"comment"}
    body["properties"] |= neighbor.claims()["write.data.path"]
    file.write_text(json.dumps(body))
    with pytest.raises(CommitFailedError, match=r"since it was planned: write\.data\.path") as said:
        apply_repair(catalog, plan)
    assert "Plan" in said.value.hint
    parameters = catalog.client.table(namespace, "t").parameters
    assert "comment" not in parameters
    assert str(neighbor.folder) not in str(parameters)


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_the_command_says_that_a_repair_names_other_folders_as_the_table_s(
    icecomb: Any, catalog: Any, namespace: str, neighbor: Neighbor, options: tuple[str, ...]
) -> None:
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    file = Path(table.metadata_location.removeprefix("file:"))
    body = json.loads(file.read_text())
    body["properties"] |= neighbor.claims()["write.data.path"]
    file.write_text(json.dumps(body))
    code, facts, said = icecomb("repair", f"{namespace}.t", *options, form="json")
    assert (code, json.loads(facts)["repaired"]) == (0, bool(options))
    assert "names other folders than the metastore" in said
