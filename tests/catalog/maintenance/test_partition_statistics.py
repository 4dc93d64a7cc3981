"""Partition statistics: full and incremental counts agree, and `partitions` shows the same rows."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import Table, cli, load_catalog
from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.inspect.inspection import Inspect
from icecomb.format.inspect.partition_statistics import PartitionCounter
from icecomb.format.inspect.partition_statistics_file import stated_counts
from icecomb.format.manifests.manifest_list import read_manifests
from tests.catalog.random_table import RandomTable

DAYS = pa.schema([("id", pa.int64()), ("day", pa.string())])


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table([[i for i, _ in pairs], [d for _, d in pairs]], schema=DAYS)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of three days, one of them null, in a folder."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    made = lake.create_table("db.t", DAYS)
    with made.update_spec() as update:
        update.add_identity("day")
    made.append(rows((1, "mon"), (2, "tue"), (3, None), (4, "mon")))
    return made


def full(table: Table, snapshot_id: int) -> list[dict[str, Any]]:
    counter = PartitionCounter(table.metadata, table.io)
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    return listed(counter.of_manifests(read_manifests(table.io, snapshot)))


def listed(counts: pa.Table) -> list[dict[str, Any]]:
    return sorted(counts.to_pylist(), key=repr)


def later(table: Table, base_id: int) -> list[dict[str, Any]] | None:
    """What is counted from the statistics of an ancestor, if they suffice."""
    counter = PartitionCounter(table.metadata, table.io)
    base = stated_counts(counter, table.io, table.metadata, table.metadata.snapshot_by_id(base_id))
    assert base is not None
    counts = counter.after(base, base_id, table.metadata.current_snapshot())
    return None if counts is None else listed(counts)


def shown(table: Table, *, statistics: bool, snapshot_id: int | None = None) -> list[Any]:
    metadata = table.metadata
    if not statistics:
        metadata = replace(metadata, partition_statistics=())
    return sorted(Inspect(metadata, table.io).partitions(snapshot_id).to_pylist(), key=repr)


def test_the_file_has_the_columns_and_ids_of_the_specification(table: Table) -> None:
    done = table.maintenance.compute_partition_stats()
    snapshot = table.current_snapshot()
    [known] = table.metadata.partition_statistics
    location = done.partition_statistics_file
    assert known["snapshot-id"] == snapshot.snapshot_id
    assert known["statistics-path"] == location
    assert location.startswith(
        f"{table.location()}/metadata/partition-stats-{snapshot.snapshot_id}-"
    )
    path = Path(location.removeprefix("file:"))
    assert known["file-size-in-bytes"] == path.stat().st_size
    stored = pq.read_table(path)
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in stored.schema}
    assert ids == {
        "partition": 1,
        "spec_id": 2,
        "data_record_count": 3,
        "data_file_count": 4,
        "total_data_file_size_in_bytes": 5,
        "position_delete_record_count": 6,
        "position_delete_file_count": 7,
        "equality_delete_record_count": 8,
        "equality_delete_file_count": 9,
        "total_record_count": 10,
        "last_updated_at": 11,
        "last_updated_snapshot_id": 12,
    }
    [field] = stored.schema.field("partition").type
    assert (field.name, field.metadata[b"PARQUET:field_id"]) == ("day", b"1000")
    found = stored.to_pylist()
    assert [row["partition"]["day"] for row in found] == [None, "mon", "tue"]
    assert [row["data_record_count"] for row in found] == [1, 2, 1]
    assert {row["last_updated_snapshot_id"] for row in found} == {snapshot.snapshot_id}
    assert {row["last_updated_at"] for row in found} == {snapshot.timestamp_ms}
    assert {row["total_record_count"] for row in found} == {None}


def test_rows_are_sorted_by_partition_with_nulls_first_and_nan_last(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("x", pa.float64()), ("s", pa.string())]))
    with table.update_spec() as update:
        update.add_identity("x")
        update.add_identity("s")
    table.append(
        pa.table({"x": [float("nan"), 1.0, None, -1.0, 1.0], "s": ["a", "b", "c", "d", None]})
    )
    done = table.maintenance.compute_partition_stats()
    stored = pq.read_table(done.partition_statistics_file.removeprefix("file:"))
    found = [row["partition"]["s"] for row in stored.to_pylist()]
    assert found == ["c", "d", None, "b", "a"]


def test_a_snapshot_keeps_the_file_that_it_has_unless_that_cannot_be_read(table: Table) -> None:
    first = table.maintenance.compute_partition_stats()
    version = table.metadata_location
    assert table.maintenance.compute_partition_stats() == first
    assert table.metadata_location == version
    Path(first.partition_statistics_file.removeprefix("file:")).write_bytes(b"PAR1 no more PAR1")
    assert shown(table, statistics=True) == shown(table, statistics=False)
    second = table.maintenance.compute_partition_stats()
    assert second != first
    [known] = table.metadata.partition_statistics
    assert known["statistics-path"] == second.partition_statistics_file


def test_a_file_of_many_equal_rows_counts_as_one_that_cannot_be_read(
    table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done = table.maintenance.compute_partition_stats()
    path = done.partition_statistics_file.removeprefix("file:")
    rows = pq.read_table(path)
    pq.write_table(rows.take([0] * 100_000), path)
    [known] = table.metadata.partition_statistics
    stated = [{**known, "file-size-in-bytes": Path(path).stat().st_size}]
    metadata = replace(table.metadata, partition_statistics=stated)
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "16")
    found = Inspect(metadata, table.io).partitions()
    assert sorted(found.to_pylist(), key=repr) == shown(table, statistics=False)
    assert "take more memory than the limit" in caplog.text


@pytest.mark.parametrize("location", ["{path}.parquet", "s3://nobody/x.parquet"])
def test_statistics_that_cannot_be_reached_keep_nobody_from_reading(
    table: Table, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """A folder where the file was, or a store for which there are no keys."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    done = table.maintenance.compute_partition_stats()
    path = Path(done.partition_statistics_file.removeprefix("file:"))
    path.with_suffix(".parquet.parquet").mkdir()
    [known] = table.metadata.partition_statistics
    lost = [{**known, "statistics-path": location.format(path=path)}]
    metadata = replace(table.metadata, partition_statistics=lost)
    found = Inspect(metadata, table.io).partitions()
    assert sorted(found.to_pylist(), key=repr) == shown(table, statistics=False)


def test_what_is_appended_is_added_to_the_latest_statistics(table: Table) -> None:
    table.maintenance.compute_partition_stats()
    base = table.current_snapshot().snapshot_id
    table.append(rows((5, "mon"), (6, "wed")))
    table.append(rows((7, None)))
    snapshot_id = table.current_snapshot().snapshot_id
    assert later(table, base) == full(table, snapshot_id)
    assert {row["key1000"]: row["data_record_count"] for row in later(table, base)} == {
        None: 2,
        "mon": 3,
        "tue": 1,
        "wed": 1,
    }


def test_deletions_are_subtracted_and_partitions_without_files_left_out(table: Table) -> None:
    table.append(rows((5, "mon")))
    table.maintenance.compute_partition_stats()
    base = table.current_snapshot().snapshot_id
    table.delete("day = 'tue'")
    assert later(table, base) == full(table, table.current_snapshot().snapshot_id)
    assert [row["key1000"] for row in later(table, base)] == ["mon", None]


def test_the_newest_file_of_a_partition_that_is_gone_demands_a_full_count(table: Table) -> None:
    first = table.current_snapshot()
    table.append(rows((5, "mon")))
    table.maintenance.compute_partition_stats()
    base = table.current_snapshot().snapshot_id
    table.delete("id = 5")
    assert later(table, base) is None
    table.maintenance.compute_partition_stats()
    assert shown(table, statistics=True) == shown(table, statistics=False)
    [monday] = [row for row in shown(table, statistics=True) if row["partition"]["day"] == "mon"]
    assert monday["last_updated_snapshot_id"] == first.snapshot_id


def test_statistics_of_another_branch_are_not_those_of_an_ancestor(table: Table) -> None:
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "side").commit()
    table.append(rows((5, "mon")), branch="side")
    side = table.refs()["side"].snapshot_id
    table.maintenance.compute_partition_stats(snapshot=side)
    table.append(rows((6, "thu")))
    table.maintenance.compute_partition_stats()
    current = table.current_snapshot().snapshot_id
    for number in (side, current):
        assert shown(table, statistics=True, snapshot_id=number) == shown(
            table, statistics=False, snapshot_id=number
        )
    assert {file["snapshot-id"] for file in table.metadata.partition_statistics} == {side, current}


def test_partitions_are_read_from_statistics_without_any_manifest(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.maintenance.compute_partition_stats()
    expected = shown(table, statistics=False)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a manifest was read")

    for name in ("read_manifest_columns", "read_each_columns"):
        monkeypatch.setattr(f"icecomb.format.inspect.partition_statistics.{name}", refuse)
    assert shown(table, statistics=True) == expected
    with pytest.raises(AssertionError, match="a manifest was read"):
        shown(table, statistics=False)


def test_an_update_by_a_snapshot_that_has_expired_meanwhile_is_unknown(table: Table) -> None:
    first = table.current_snapshot()
    table.append(rows((5, "wed")))
    table.maintenance.compute_partition_stats()
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    found = {row["partition"]["day"]: row for row in shown(table, statistics=True)}
    assert found["mon"]["last_updated_at"] is None
    assert found["wed"]["last_updated_snapshot_id"] == table.current_snapshot().snapshot_id
    assert shown(table, statistics=True) == shown(table, statistics=False)


def test_statistics_go_with_their_snapshot_and_are_no_orphans_before(table: Table) -> None:
    done = table.maintenance.compute_partition_stats()
    path = Path(done.partition_statistics_file.removeprefix("file:"))
    first = table.current_snapshot()
    table.append(rows((5, "wed")))
    found = table.maintenance.remove_orphan_files(older_than=1 << 42, any_age=True)
    assert found.orphan_file_location == ()
    expired = table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    assert expired.deleted_statistics_files_count == 1
    assert not path.exists()
    assert table.metadata.partition_statistics == ()


def test_version_3_counts_deletion_vectors_beside_delete_files(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    merge_on_read = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", DAYS, properties=merge_on_read)
    with table.update_spec() as update:
        update.add_identity("day")
    table.append(rows((1, "mon"), (2, "mon"), (3, "tue"), (4, "tue")))
    table.delete("id = 1")
    table.maintenance.compute_partition_stats()
    base = table.current_snapshot().snapshot_id
    with table.update_properties() as update:
        update.set("format-version", "3")
    table.delete("id = 3")
    assert later(table, base) == full(table, table.current_snapshot().snapshot_id)
    done = table.maintenance.compute_partition_stats()
    stored = pq.read_table(done.partition_statistics_file.removeprefix("file:"))
    required = {field.name for field in stored.schema if not field.nullable}
    assert "dv_count" in required
    assert {field.name for field in stored.schema} - required == {
        "total_record_count",
        "last_updated_at",
        "last_updated_snapshot_id",
    }
    counts = {
        row["partition"]["day"]: (
            row["position_delete_record_count"],
            row["position_delete_file_count"],
            row["dv_count"],
        )
        for row in stored.to_pylist()
    }
    assert counts == {"mon": (1, 1, 0), "tue": (1, 0, 1)}
    files = {row["partition"]["day"]: row for row in shown(table, statistics=True)}
    assert [files[day]["position_delete_file_count"] for day in ("mon", "tue")] == [1, 1]
    assert shown(table, statistics=True) == shown(table, statistics=False)


def test_what_has_no_partitions_is_refused_or_has_no_file(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", DAYS)
    with pytest.raises(ValidationError, match=r"db\.t is not partitioned"):
        table.maintenance.compute_partition_stats()
    with table.update_spec() as update:
        update.add_identity("day")
    assert table.maintenance.compute_partition_stats().partition_statistics_file is None
    with pytest.raises(NoSuchSnapshotError, match=r"db\.t has no snapshot 7"):
        table.maintenance.compute_partition_stats(snapshot=7)


@pytest.mark.gate("counts all partitions after every step of random tables")
@settings(max_examples=24, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), steps=st.integers(4, 10))
def test_statistics_of_any_table_equal_a_full_count(random, steps):
    with tempfile.TemporaryDirectory() as folder:
        lake = load_catalog("lake", type="hadoop", warehouse=folder)
        lake.create_namespace("db")
        made = RandomTable(random, lake, "db.t", "parquet")
        table = made.table
        with table.update_spec() as update:
            update.add_field("id", "truncate[7]")
        with table.update_properties() as update:
            update.set("commit.manifest.min-count-to-merge", random.choice([2, 100]))
        made.append()
        compute(table)
        for _ in range(steps):
            if random.random() < 0.5 or table.current_snapshot() is None:
                made.change()
            else:
                random.choice([roll_back, fork, expire, merge_manifests, merge, cut, upgrade])(
                    table, random
                )
            if random.random() < 0.6:
                compute(table)
            for number in {f["snapshot-id"] for f in table.metadata.partition_statistics}:
                assert shown(table, statistics=True, snapshot_id=number) == shown(
                    table, statistics=False, snapshot_id=number
                )
        lake.close()


def compute(table: Table) -> None:
    """Computes statistics that state what a full count does."""
    snapshot = table.current_snapshot()
    counter = PartitionCounter(table.metadata, table.io)
    if snapshot is None or not counter.keys:
        return
    done = table.maintenance.compute_partition_stats(snapshot=snapshot.snapshot_id)
    expected = full(table, snapshot.snapshot_id)
    if done.partition_statistics_file is None:
        assert expected == []
        return
    stated = stated_counts(counter, table.io, table.metadata, snapshot)
    assert stated is None or listed(stated) == expected


def roll_back(table: Table, _: Any) -> None:
    parent = table.current_snapshot().parent_snapshot_id
    if parent is not None and table.metadata.snapshot_by_id(parent) is not None:
        table.manage_snapshots().rollback_to_snapshot(parent).commit()


def fork(table: Table, random: Any) -> None:
    """Goes on on a branch, to which main moves afterwards, or not."""
    name = f"b{len(table.metadata.snapshots)}"
    head = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(head, name)
    arrow = table.scan(limit=1).to_arrow()
    table.append(arrow, branch=name)
    if random.random() < 0.5:
        with table.manage_snapshots() as manage:
            manage.fast_forward("main", name)
    else:
        table.append(arrow)
    with table.manage_snapshots() as manage:
        manage.remove_branch(name)


def expire(table: Table, random: Any) -> None:
    table.maintenance.expire_snapshots().retain_last(random.randint(1, 3)).older_than(
        1 << 42
    ).commit()


def merge_manifests(table: Table, _: Any) -> None:
    table.maintenance.rewrite_manifests()


def cut(table: Table, random: Any) -> None:
    table.delete(f"id = {random.randint(0, 20)}")


def test_the_shell_computes_them_too(table: Table, capfd: pytest.CaptureFixture[str]) -> None:
    snapshot_id = str(table.current_snapshot().snapshot_id)
    command = ["--output", "json", "maintain", "compute-partition-stats", table.location()]
    assert cli.main([*command, "--snapshot", snapshot_id]) == 0
    found = json.loads(capfd.readouterr().out)
    [known] = table.refresh().metadata.partition_statistics
    assert found["partition_statistics_file"] == known["statistics-path"]


def merge(table: Table, random: Any) -> None:
    rows = table.scan(row_filter=f"id >= {random.randint(0, 20)}").to_arrow()
    keys = rows.select(["id"]).group_by("id").aggregate([])
    table.merge(keys, on="t.id = s.id").when_matched_delete("t.id % 2 = 0").execute()


def upgrade(table: Table, _: Any) -> None:
    with table.update_properties() as update:
        update.set("format-version", "3")


def test_a_snapshot_that_expired_meanwhile_gets_no_file(table: Table) -> None:
    first = table.current_snapshot().snapshot_id
    table.append(rows((5, "wed")))
    late = table.catalog.load_table("db.t")
    table.maintenance.expire_snapshots().by_id(first).clean_expired_files(False).commit()
    with pytest.raises(NoSuchSnapshotError, match="it has expired meanwhile"):
        late.maintenance.compute_partition_stats(snapshot=first)
    folder = Path(table.location().removeprefix("file:")) / "metadata"
    assert list(folder.glob("partition-stats-*")) == []


def test_format_version_1_has_no_sequence_numbers_so_that_deletions_demand_a_full_count(
    tmp_path: Path,
) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", DAYS, properties={"format-version": "1"})
    with table.update_spec() as update:
        update.add_identity("day")
    table.append(rows((1, "mon"), (2, "tue")))
    table.maintenance.compute_partition_stats()
    base = table.current_snapshot().snapshot_id
    table.append(rows((3, "mon")))
    assert later(table, base) == full(table, table.current_snapshot().snapshot_id)
    table.delete("id = 1")
    assert later(table, base) is None
    table.maintenance.compute_partition_stats()
    assert shown(table, statistics=True) == shown(table, statistics=False)
