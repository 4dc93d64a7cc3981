"""Going back when the migration's snapshot was expired, by an engine that looks at no gc.enabled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.format.errors import MigrationError
from tests.catalog.numbered_rows import numbers


def read_by_hive(table: Any) -> list[int]:
    """What a reader sees that looks into all folders, as Hive does with recursive input."""
    found = []
    for path in table.folder.rglob("*"):
        below = path.relative_to(table.folder).parts
        if path.is_file() and not any(part[0] in "._" for part in below):
            found += pq.read_table(path)["id"].to_pylist()
    return sorted(found)


def expire(pyiceberg: Any, table: Any, *positions: int) -> None:
    found = pyiceberg.load_table(table.name)
    snapshots = sorted(found.snapshots(), key=lambda one: one.sequence_number)
    ids = [snapshots[at].snapshot_id for at in positions]
    found.maintenance.expire_snapshots().by_ids(ids).commit()


def migrated(make_hive_table: Any, *, partitioned: bool = False) -> tuple[Any, Any, Any]:
    table = (
        make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
        if partitioned
        else make_hive_table({"id": "bigint"}, rows=numbers(1))
    )
    before = table.state, table.files()
    migrate.apply(table.catalog, table.name)
    return table, *before


def go_back(table: Any) -> bool:
    return migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True).done


def test_files_written_since_are_set_aside_when_the_migrations_snapshot_was_expired(
    make_hive_table: Any, pyiceberg: Any
) -> None:
    table, before, files = migrated(make_hive_table)
    loaded = table.catalog.load_table(table.name)
    loaded.append(numbers(2))
    loaded.append(numbers(7))
    expire(pyiceberg, table, 0)
    assert go_back(table)
    assert table.state == before
    assert table.files() == files
    assert read_by_hive(table) == [1]


def test_files_of_snapshots_that_came_and_went_are_set_aside_too(
    make_hive_table: Any, pyiceberg: Any
) -> None:
    table, before, files = migrated(make_hive_table)
    loaded = table.catalog.load_table(table.name)
    loaded.append(numbers(2))
    loaded.overwrite(numbers(3))
    loaded.overwrite(numbers(4))
    expire(pyiceberg, table, 1, 2)
    assert go_back(table)
    assert table.state == before
    assert table.files() == files


def test_a_table_that_was_empty_goes_back_without_the_rows_of_later(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"})
    before = table.state
    migrate.apply(table.catalog, table.name)
    table.catalog.load_table(table.name).append(numbers(1))
    assert go_back(table)
    assert table.state == before
    assert read_by_hive(table) == []


def test_nothing_goes_back_when_nothing_tells_which_files_are_old(
    make_hive_table: Any, pyiceberg: Any
) -> None:
    table, _, _ = migrated(make_hive_table)
    first = table.catalog.load_table(table.name).metadata_location
    table.catalog.load_table(table.name).append(numbers(2))
    expire(pyiceberg, table, 0)
    Path(first.removeprefix("file://").removeprefix("file:")).unlink()
    for dry_run in (True, False):
        with pytest.raises(MigrationError, match="it is unknown which files are the Hive table"):
            migrate.revert(table.catalog, table.name, dry_run=dry_run, allow_data_loss=True)
    assert sorted(row["id"] for row in table.rows()) == [1, 2]


def test_files_of_which_nothing_tells_when_they_came_block_and_are_named(
    make_hive_table: Any, pyiceberg: Any
) -> None:
    table, before, files = migrated(make_hive_table)
    loaded = table.catalog.load_table(table.name)
    loaded.append(numbers(2))
    (stranger,) = table.files().keys() - files.keys()
    for value in (3, 4, 5):
        loaded.overwrite(numbers(value))
    snapshots = sorted(loaded.snapshots(), key=lambda one: one.sequence_number)
    expire(pyiceberg, table, *range(1, len(snapshots) - 1))
    for one in snapshots[1:-1]:
        Path(one.manifest_list.removeprefix("file://").removeprefix("file:")).unlink()
    with pytest.raises(MigrationError, match=rf"files are where Hive reads them.*{stranger}"):
        go_back(table)
    assert table.entry.is_iceberg
    for path in table.files().keys() - files.keys():
        Path(path).rename(table.folder / f"_{Path(path).name}")
    assert go_back(table)
    assert table.state == before
    assert read_by_hive(table) == [1]


def test_a_file_that_hive_wrote_since_stays_where_snapshots_tell_everything(
    make_hive_table: Any,
) -> None:
    table, before, files = migrated(make_hive_table, partitioned=True)
    late = table.folder / "p0" / "late.parquet"
    pq.write_table(numbers(5), late)
    loaded = table.catalog.load_table(table.name)
    row = pa.table({"id": pa.array([2], pa.int64()), "k": pa.array([1], pa.int32())})
    loaded.append(row)
    assert go_back(table)
    assert table.state == before
    assert {*files, str(late)} <= table.files().keys()


def test_metadata_in_parquet_is_set_aside_too(make_hive_table: Any) -> None:
    table, before, files = migrated(make_hive_table)
    folder = table.folder / "metadata"
    for name in ("icecomb-gc-5a0f5bd2-0000-4000-8000-000000000000", "partition-stats-77-1"):
        pq.write_table(pa.table({"location": ["x"]}), folder / f"{name}.parquet")
    assert go_back(table)
    assert read_by_hive(table) == [1]
    assert (table.state, table.files()) == (before, files)
