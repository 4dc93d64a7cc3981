from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.migrate.applying import migration, snapshotting
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.folder_journals import FolderJournals
from icecomb.catalog.migrate.journal.journal import FOLDER, Step
from icecomb.catalog.migrate.reverting import reversal
from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError
from icecomb.format.errors import CommitFailedError, MigrationError
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

NULL = "__HIVE_DEFAULT_PARTITION__"


def numbers(*values: int | None) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def codes(plan: Any) -> set[str]:
    return {finding.code for finding in plan.blockers}


def test_hostile_partition_values_come_from_the_metastore_and_never_from_paths(
    make_hive_table: Any, tmp_path: Path
) -> None:
    values = ["a b", "50%", "x/y", "k=v", "ü漢", "%2F", "null", "", "2024-01-01T00:00:00Z", NULL]
    table = make_hive_table(
        {"id": "bigint"},
        {"key": "string", "n": "int"},
        {(value, str(at)): numbers(at) for at, value in enumerate(values)},
        folders=[str(tmp_path / "else where" / f"key=wrong%2F{at} =") for at in range(len(values))],
    )
    before = table.state
    done = migrate.apply(table.catalog, table.name)
    assert (done.partitions, done.files, done.rows) == (10, 10, 10)
    assert {row["id"]: row["key"] for row in table.rows()} == {
        at: None if value == NULL else value for at, value in enumerate(values)
    }
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    assert migrate.revert(table.catalog, table.name, dry_run=False).done
    assert table.state == before


def test_partition_values_get_the_type_of_their_column(make_hive_table: Any) -> None:
    keys = {
        "i": "int",
        "s": "smallint",
        "b": "bigint",
        "d": "date",
        "n": "decimal(5,2)",
        "f": "boolean",
        "t": "timestamp",
    }
    texts = ("07", "-3", "9007199254740993", "2024-02-29", "1.5", "true", "2024-05-06 07:08:09.12")
    table = make_hive_table({"id": "bigint"}, keys, {texts: numbers(1), (NULL,) * 7: numbers(2)})
    migrate.apply(table.catalog, table.name)
    rows = {row.pop("id"): row for row in table.rows()}
    assert rows[1] == {
        "i": 7,
        "s": -3,
        "b": 9007199254740993,
        "d": dt.date(2024, 2, 29),
        "n": Decimal("1.50"),
        "f": True,
        "t": dt.datetime(2024, 5, 6, 7, 8, 9, 120000, dt.timezone.utc),
    }
    assert set(rows[2].values()) == {None}


def test_partitions_of_nan_and_of_both_zeros_verify_as_equal(make_hive_table: Any) -> None:
    texts = [("NaN", "NaN"), ("-0.0", "0.0"), ("0.0", "-0.0"), ("NaN", "Infinity")]
    table = make_hive_table(
        {"id": "bigint"},
        {"f": "float", "d": "double"},
        {pair: numbers(at) for at, pair in enumerate(texts)},
    )
    migrate.apply(table.catalog, table.name)
    found = migrate.verify(table.catalog, table.name)
    assert (found.differences, found.iceberg.rows) == ([], 4)
    migrate.finalize(table.catalog, table.name, dry_run=True)


def test_values_that_do_not_convert_exactly_block_and_are_all_named(make_hive_table: Any) -> None:
    keys = {"i": "int"}
    table = make_hive_table(
        {"id": "bigint"},
        keys,
        {("1",): numbers(1), ("one",): numbers(2), ("3000000000",): numbers(3)},
    )
    before = table.state
    plan = migrate.plan(table.catalog, table.name)
    (found,) = plan.blockers
    assert found.code == "partition-value"
    assert [place.partition(":")[0] for place in found.places] == ["i=3000000000", "i=one"]
    with pytest.raises(MigrationBlockedError, match="2 partition values"):
        migrate.apply(table.catalog, table.name)
    assert table.state == before
    assert not (table.folder / FOLDER).exists()


def test_spellings_of_the_files_go_into_the_name_mapping_at_every_depth(
    make_hive_table: Any,
) -> None:
    kind = pa.struct([("A", pa.int32()), ("tags", pa.list_(pa.struct([("Name", pa.string())])))])
    odd = pa.table(
        {
            "ID": pa.array([1], pa.int64()),
            "Info": pa.array([{"A": 5, "tags": [{"Name": "x"}]}], kind),
        }
    )
    plain = pa.struct([("a", pa.int32()), ("tags", pa.list_(pa.struct([("name", pa.string())])))])
    even = pa.table(
        {"id": pa.array([2], pa.int64()), "info": pa.array([{"a": 6, "tags": []}], plain)}
    )
    columns = {"id": "bigint", "info": "struct<a:int,tags:array<struct<name:string>>>"}
    table = make_hive_table(columns, {"k": "int"}, {("1",): odd, ("2",): even})
    migrate.apply(table.catalog, table.name)
    rows = sorted(table.rows(), key=lambda row: row["id"])
    assert rows == [
        {"id": 1, "info": {"a": 5, "tags": [{"name": "x"}]}, "k": 1},
        {"id": 2, "info": {"a": 6, "tags": []}, "k": 2},
    ]
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_columns_that_the_table_has_not_do_not_fill_later_ones(
    make_hive_table: Any, pyiceberg: Any
) -> None:
    inner = pa.struct([("a", pa.int32()), ("gone", pa.string())])
    lists = pa.list_(pa.struct([("deep", pa.int32())]))
    extra = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "gone": ["old"],
            "s": pa.array([{"a": 1, "gone": "old"}], inner),
            "more": pa.array([[{"deep": 1}]], lists),
        }
    )
    numbered = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("gone", pa.string(), metadata={"PARQUET:field_id": "5"}),
        ]
    )
    with_ids = pa.Table.from_pylist([{"id": 2, "gone": "old"}], numbered)
    table = make_hive_table(
        {"id": "bigint", "s": "struct<a:int>"},
        {"k": "int"},
        {("1",): extra, ("2",): with_ids},
    )
    migrate.apply(table.catalog, table.name)
    made = table.catalog.load_table(table.name)
    assert made.schema().highest_field_id < 5 <= made.metadata.last_column_id
    with made.update_schema() as update:
        update.add_column("gone", "string").add_column("more", "string")
        update.add_column(("s", "gone"), "string").add_column("new", "string")
        update.rename_column("id", "other")
    expected = [
        {"other": 1, "s": {"a": 1, "gone": None}, "k": 1},
        {"other": 2, "s": None, "k": 2},
    ]
    added = {"gone": None, "more": None, "new": None}
    for rows in (table.rows(), pyiceberg.load_table(table.name).scan().to_arrow().to_pylist()):
        assert sorted(rows, key=lambda row: row["other"]) == [row | added for row in expected]


def test_pyiceberg_reads_what_was_taken_over(make_hive_table: Any, pyiceberg: Any) -> None:
    data = pa.table({"ID": pa.array([1, None], pa.int64()), "s": ["a", None]})
    table = make_hive_table(
        {"id": "bigint", "s": "varchar(9)"}, {"day": "date"}, {("2024-01-02",): data, (NULL,): data}
    )
    migrate.apply(table.catalog, table.name)
    rows = pyiceberg.load_table(table.name).scan().to_arrow().to_pylist()
    key = lambda row: (str(row["day"]), str(row["id"]))  # noqa: E731
    assert sorted(rows, key=key) == sorted(table.rows(), key=key)
    assert len(rows) == 4


def test_int96_timestamps_become_instants_and_the_choice_is_recorded(make_hive_table: Any) -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - local time
    table = make_hive_table({"ts": "timestamp"})
    data = pa.table({"ts": pa.array([moment, None], pa.timestamp("us"))})
    pq.write_table(data, table.folder / "f.parquet", use_deprecated_int96_timestamps=True)
    migrate.apply(table.catalog, table.name)
    assert str(table.catalog.load_table(table.name).schema().find_type("ts")) == "timestamptz"
    assert [row["ts"] for row in table.rows()] == [moment.replace(tzinfo=dt.timezone.utc), None]
    assert migrate.status(table.catalog, table.name)["choices"]["timestamp"] == "timestamptz"
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_int96_timestamps_of_any_time_are_no_difference(make_hive_table: Any) -> None:
    far = [dt.datetime(9999, 12, 31), dt.datetime(1600, 1, 2), dt.datetime(1, 1, 1)]  # noqa: DTZ001
    table = make_hive_table({"ts": "timestamp"})
    for name, moments in {
        "far": pa.array(far, pa.timestamp("us")),
        "nanoseconds": pa.array([-1, -1_000_000_001, 1_999], pa.timestamp("ns")),
    }.items():
        place = table.folder / f"{name}.parquet"
        pq.write_table(pa.table({"ts": moments}), place, use_deprecated_int96_timestamps=True)
    migrate.apply(table.catalog, table.name)
    found = migrate.verify(table.catalog, table.name)
    assert (found.difference_count, found.hive.rows) == (0, 6)


@pytest.mark.parametrize(
    ("zone", "legacy", "found"),
    [
        ("Asia/Shanghai", None, {"writer-zone"}),
        ("Asia/Shanghai", "true", {"writer-zone"}),
        ("UTC", None, set()),
        ("UTC", "true", set()),
        ("Etc/GMT", None, set()),
        (None, None, set()),
    ],
)
def test_local_times_that_hive_shows_in_another_zone_are_not_taken_for_local_ones(
    make_hive_table: Any, zone: str | None, legacy: str | None, found: set[str]
) -> None:
    """In UTC both of Hive's conversions (HIVE-24074, HIVE-25104) leave a time as it is."""
    moment = dt.datetime(2024, 1, 2, 12, 34)  # noqa: DTZ001 - of the writer
    table = make_hive_table({"ts": "timestamp"})
    data = pa.table({"ts": pa.array([moment], pa.timestamp("us"))})
    noted = {"writer.time.zone": zone, "writer.zone.conversion.legacy": legacy}
    data = data.replace_schema_metadata({key: text for key, text in noted.items() if text})
    pq.write_table(data, table.folder / "f.parquet", use_deprecated_int96_timestamps=True)
    local = migrate.plan(table.catalog, table.name, migrate.Choices(timestamp="timestamp"))
    assert codes(local) == found
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == set()
    [said] = [each.message for each in plan.findings if each.code == "timestamps"]
    assert "Hive shows a timestamp as local time" in said
    shown = [each.message for each in plan.findings if each.code == "writer-zones"]
    assert len(shown) == len(found)
    if found:
        assert f"1 files hold timestamps that Hive wrote and shows in {zone}" in shown[0]
        assert ("as old Java counts" in shown[0]) == (legacy == "true")


@pytest.mark.parametrize("unit", sampled(["ns", "ms"], keep=1))
def test_timestamps_that_are_no_microseconds_stay_hives(make_hive_table: Any, unit: str) -> None:
    data = pa.table({"ts": pa.array([0], pa.timestamp(unit, "UTC"))})
    table = make_hive_table({"ts": "timestamp"}, rows=data)
    assert codes(migrate.plan(table.catalog, table.name)) == {"timestamp-unit"}


def test_local_timestamps_need_the_other_choice(make_hive_table: Any) -> None:
    moment = dt.datetime(2024, 1, 2)  # noqa: DTZ001 - local time
    data = pa.table({"ts": pa.array([moment], pa.timestamp("us"))})
    table = make_hive_table({"ts": "timestamp"}, rows=data)
    assert codes(migrate.plan(table.catalog, table.name)) == {"timestamp-zone"}
    migrate.apply(table.catalog, table.name, migrate.Choices(timestamp="timestamp"))
    assert table.rows() == [{"ts": moment}]


def test_hidden_empty_and_unregistered_files_are_no_rows(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): numbers(2)}
    )
    place = table.folder / "p0"
    (place / "_SUCCESS").touch()
    (place / ".part-0.parquet.crc").write_bytes(b"crc")
    (place / "_old").mkdir()
    pq.write_table(numbers(9), place / "_old" / "x.parquet")
    (place / "empty").touch()
    (table.folder / "p1" / "part-0.parquet").unlink()
    (table.folder / "k=3").mkdir()
    pq.write_table(numbers(3), table.folder / "k=3" / "x.parquet")
    done = migrate.apply(table.catalog, table.name)
    assert (done.partitions, done.files) == (2, 1)
    assert table.rows() == [{"id": 1, "k": 1}]
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_a_plan_names_every_blocker_at_once_and_changes_nothing(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {
            ("1",): numbers(1),
            ("2",): None,
            ("3",): numbers(3),
            ("4",): numbers(4),
            ("5",): numbers(5),
        },
    )
    (table.folder / "p0" / "text").write_text("not parquet at all")
    (table.folder / "p0" / "cut").write_bytes(b"PAR1" + bytes(50))
    (table.folder / "p0" / "secret").write_bytes(b"PARE" + bytes(50) + b"PARE")
    pq.write_table(pa.table({"id": ["text"]}), table.folder / "p2" / "b.parquet")
    ids = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    pq.write_table(numbers(1).cast(ids), table.folder / "p3" / "c.parquet")
    (table.folder / "p4" / "deep").mkdir()
    pq.write_table(numbers(1), table.folder / "p4" / "deep" / "d.parquet")
    pq.write_table(pa.table({"id": [1], "ID": [2]}), table.folder / "p4" / "e.parquet")
    pq.write_table(pa.table({"id": [1], "k": [99]}), table.folder / "p4" / "f.parquet")
    unsigned = pa.table({"id": pa.array([1], pa.uint64())})
    pq.write_table(unsigned, table.folder / "p4" / "g.parquet")
    before = table.state, table.files()
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {
        "foreign-type",
        "missing-folder",
        "unknown-format",
        "encrypted-file",
        "type-differs",
        "foreign-field-ids",
        "subdirectories",
        "ambiguous-column",
        "partition-column-in-file",
    }
    assert all(finding.remedy and finding.places for finding in plan.blockers)
    assert json.loads(json.dumps(plan.to_json()))["blocked"] is True
    assert (table.state, table.files()) == before
    assert not (table.folder / FOLDER).exists()


def test_bytes_that_are_no_text_block(make_hive_table: Any) -> None:
    texts = pa.table({"s": pa.array([b"a", b"\xff"])})
    table = make_hive_table({"s": "string"}, rows=texts)
    (found,) = migrate.plan(table.catalog, table.name).blockers
    assert found.code == "type-differs"
    assert "does not fit string" in found.places[0]
    table = make_hive_table({"s": "string"}, rows=texts.slice(0, 1))
    migrate.apply(table.catalog, table.name)
    assert table.rows() == [{"s": "a"}]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"parameters": {"storage_handler": "org.x.HBase"}}, "storage-handler"),
        ({"parameters": {"spark.sql.sources.provider": "CSV"}}, "format"),
        ({"parameters": {"parquet.column.index.access": "true"}}, "by-position"),
        ({"columns": {"id": "bigint", "u": "uniontype<int,string>"}}, "unsupported-column"),
        ({"table_type": "VIRTUAL_VIEW"}, "view"),
    ],
)
def test_tables_that_cannot_be_taken_over_say_why(
    make_hive_table: Any, changes: dict[str, Any], code: str
) -> None:
    table = make_hive_table(**{"columns": {"id": "bigint"}, "rows": numbers(1), **changes})
    before = table.state
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {code}
    with pytest.raises(MigrationBlockedError):
        migrate.apply(table.catalog, table.name)
    assert table.state == before


def test_a_table_kept_by_a_handler_is_copied_by_hive_which_has_it(make_hive_table: Any) -> None:
    handler = {"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}
    table = make_hive_table({"id": "bigint", "t": "timestamp"}, parameters=handler)
    bare = replace(table.entry.storage, input_format=None, output_format=None, serde="org.x.HBase")
    table.catalog.client.alter_table(*table.name.split("."), replace(table.entry, storage=bare))
    (found,) = migrate.plan(table.catalog, table.name).blockers
    assert found.code == "storage-handler"
    name = table.name.partition(".")[2]
    copy = f"CREATE EXTERNAL TABLE `made`.`{name}_external` (`id` bigint, `t` timestamp)"
    assert f"copy it in Hive: {copy} STORED AS PARQUET; INSERT INTO" in found.remedy


def test_a_table_whose_folder_is_gone_is_told_what_makes_it_an_empty_one(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"})
    table.folder.rmdir()
    accept = migrate.Choices(accept=("missing-partitions",))
    (found,) = migrate.plan(table.catalog, table.name, accept).blockers
    assert found.code == "missing-folder"
    assert f"-mkdir -p file:{table.folder})" in found.remedy
    assert "missing-partitions" not in found.remedy
    table.folder.mkdir()
    assert migrate.apply(table.catalog, table.name).rows == 0


@pytest.mark.parametrize(
    "kind",
    sampled(["TextInputFormat", "RCFileInputFormat", "MyOrc", "SequenceFileInputFormat"], keep=2),
)
def test_other_file_formats_block_for_tables_and_for_single_partitions(
    make_hive_table: Any, kind: str
) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): numbers(2)}
    )
    first = table.partitions[0]
    other = replace(
        first, storage=replace(first.storage, input_format=f"org.apache.hadoop.hive.ql.io.{kind}")
    )
    table.catalog.client.partitions.alter(*table.name.split("."), [other])
    assert codes(migrate.plan(table.catalog, table.name)) == {"partition-format"}
    whole = replace(table.entry, storage=other.storage)
    table.catalog.client.alter_table(*table.name.split("."), whole)
    assert codes(migrate.plan(table.catalog, table.name)) == {"format"}


def test_lossy_steps_are_taken_only_when_accepted_by_name(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): None})
    bucketed = replace(
        table.entry, storage=replace(table.entry.storage, num_buckets=4, bucket_columns=("id",))
    )
    table.catalog.client.alter_table(*table.name.split("."), bucketed)
    (table.folder / "p0" / "HIVE_UNION_SUBDIR_1").mkdir()
    pq.write_table(numbers(2), table.folder / "p0" / "HIVE_UNION_SUBDIR_1" / "x.parquet")
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"bucketed", "missing-folder", "subdirectories"}
    accept = ("bucketing", "missing-partitions", "subdirectories")
    before = table.state
    migrate.apply(table.catalog, table.name, migrate.Choices(accept=accept))
    assert sorted(row["id"] for row in table.rows()) == [1, 2]
    assert (table.entry.storage.num_buckets, table.entry.storage.bucket_columns) == (0, ())
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == before


@pytest.mark.parametrize(
    "spelling",
    sampled(["{}", "file:{}/", "{}-link", "{}/../links/shared", "file://{}//."], keep=2),
)
def test_two_partitions_in_one_folder_block(
    make_hive_table: Any, tmp_path: Path, spelling: str
) -> None:
    place = str(tmp_path / "shared")
    (tmp_path / "shared-link").symlink_to(place)
    (tmp_path / "links").symlink_to(tmp_path)
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): numbers(1), ("2",): numbers(1)},
        folders=[place, place],
    )
    client, second = table.catalog.client, table.partitions[1]
    storage = replace(second.storage, location=spelling.format(place))
    client.partitions.alter(*table.name.split("."), [replace(second, storage=storage)])
    assert codes(migrate.plan(table.catalog, table.name)) == {"shared-folder"}


def test_files_of_a_partition_below_another_belong_to_it_alone(
    make_hive_table: Any, tmp_path: Path
) -> None:
    place = str(tmp_path / "outer")
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): numbers(1), ("2",): numbers(2)},
        folders=[place, f"{place}/inner"],
    )
    client, second = table.catalog.client, table.partitions[1]
    storage = replace(second.storage, location=f"file:{place}/./inner")
    client.partitions.alter(*table.name.split("."), [replace(second, storage=storage)])
    plan = migrate.plan(table.catalog, table.name, migrate.Choices(accept=("subdirectories",)))
    assert not plan.blockers
    assert [file.partition.values for file in plan.files] == [(1,), (2,)]


def test_old_files_that_were_added_again_by_other_names_stay_when_going_back(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before, files = table.state, table.files()
    migrate.apply(table.catalog, table.name)
    loaded = table.catalog.load_table(table.name)
    (task,) = loaded.scan().plan_files()
    loaded.delete()
    folder, _, name = task.file.file_path.rpartition("/")
    loaded.add_files([f"{folder}//./{name}"])
    assert sorted(row["id"] for row in table.rows()) == [1]
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.state == before
    assert files.items() <= table.files().items()


def test_files_that_were_added_outside_of_the_folder_are_set_aside_by_their_path(
    make_hive_table: Any, tmp_path: Path
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): None})
    beside = Path(f"{table.folder}_x")  # its name begins as the folder's does
    client, (one, two) = table.catalog.client, table.partitions
    moved = replace(two.storage, location=f"file:{beside}")
    client.partitions.alter(*table.name.split("."), [replace(two, storage=moved)])
    beside.mkdir()
    migrate.apply(table.catalog, table.name)
    added = [beside / "f.parquet", table.folder / "p0" / "f.parquet"]
    for key, path in zip((2, 1), added, strict=True):
        pq.write_table(numbers(5), path)
        loaded = table.catalog.load_table(table.name)
        loaded.add_files([f"file://{path}"], partition={"k": key})
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.partitions == [one, replace(two, storage=moved)]
    aside = [path for path in (table.folder / FOLDER).rglob("f.parquet") if path.is_file()]
    places = sorted(str(path).partition("Z-")[2].partition("/")[2] for path in aside)
    assert places == ["added/p0/f.parquet", f"elsewhere{beside}/f.parquet"]
    assert not any(path.exists() for path in added)


def test_a_revert_that_was_killed_while_a_store_moved_files_goes_on(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store copies a file, then deletes it: who is killed in between leaves both."""
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before, files = table.state, table.files()
    migrate.apply(table.catalog, table.name)
    table.catalog.load_table(table.name).append(numbers(2))
    rename, copied = FileIO.rename, []

    def killed(self: Any, source: str, target: str) -> None:
        if target in copied:
            rename(self, source, target)  # which finds the copy
        self.create(target, self.read(source))
        copied.append(target)
        raise KeyboardInterrupt

    monkeypatch.setattr(FileIO, "rename", killed)
    while migrate.status(table.catalog, table.name)["state"] != "reverted":
        seen = len(copied)
        with suppress(KeyboardInterrupt):
            migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
        assert len(copied) > seen or not (table.folder / "metadata").exists()
    assert len(copied) > 4
    assert table.state == before
    assert table.files() == files


def test_files_on_other_storage_than_the_journal_are_moved_away_before_a_revert(
    make_hive_table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.state
    migrate.apply(table.catalog, table.name)
    path = table.folder / "f.parquet"
    pq.write_table(numbers(5), path)
    table.catalog.load_table(table.name).add_files([f"file:{path}"])
    texts = reversal.plain_texts
    monkeypatch.setattr(
        reversal,
        "plain_texts",
        lambda names, settings: [
            f"hdfs://far{one}" if one.endswith("/f.parquet") else one
            for one in texts(names, settings)
        ],
    )
    with pytest.raises(MigrationError, match="1 files that were added since"):
        migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.entry.is_iceberg
    path.rename(tmp_path / "away")
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.state == before


def test_an_unpartitioned_table_goes_there_and_back(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint", "n": "tinyint"},
        rows=pa.table({"id": [1, 2], "n": pa.array([1, None], pa.int8())}),
    )
    before, files = table.state, table.files()
    migrate.apply(table.catalog, table.name)
    loaded = table.catalog.load_table(table.name)
    loaded.append(pa.table({"id": pa.array([3], pa.int64()), "n": pa.array([4], pa.int32())}))
    assert sorted(row["id"] for row in table.rows()) == [1, 2, 3]
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.state == before
    assert table.files() == files, "the appended file would be a row too many for Hive"
    visible = [path.name for path in table.folder.iterdir() if path.name[0] not in "._"]
    assert visible == ["part-0.parquet"]
    aside = list((table.folder / FOLDER).glob("*/added/**/*.parquet"))
    assert len(aside) == 1, "set aside, not deleted"


def test_an_empty_table_and_one_without_partitions_become_empty_iceberg_tables(
    make_hive_table: Any,
) -> None:
    for table in (
        make_hive_table({"id": "bigint"}),
        make_hive_table({"id": "bigint"}, {"k": "int"}),
    ):
        before = table.state
        assert migrate.apply(table.catalog, table.name).rows == 0
        assert table.rows() == []
        assert migrate.verify(table.catalog, table.name).difference_count == 0
        migrate.revert(table.catalog, table.name, dry_run=False)
        assert table.state == before


def test_no_data_file_is_touched_and_the_metastore_entry_is_one_of_an_iceberg_table(
    make_hive_table: Any,
) -> None:
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): numbers(1)},
        parameters={
            "owner.team": "x",
            "comment": "ours",
            "numRows": "12",
            "spark.sql.create.version": "4.3.0",
        },
    )
    files = table.files()
    migrate.apply(table.catalog, table.name)
    entry = table.entry
    assert table.files() == files
    assert entry.partition_keys == ()
    assert entry.table_type == "EXTERNAL_TABLE"
    assert [column.name for column in entry.storage.columns] == ["id", "k"]
    assert entry.parameters["table_type"] == "ICEBERG"
    assert entry.parameters["EXTERNAL"] == "TRUE"
    assert entry.parameters["external.table.purge"] == "false"
    assert entry.parameters["numRows"] == "1"
    assert entry.parameters["owner.team"] == "x"
    assert "spark.sql.create.version" not in entry.parameters
    properties = table.catalog.load_table(table.name).metadata.properties
    assert properties["owner.team"] == "x"
    assert properties["comment"] == "ours"
    assert "numRows" not in properties
    assert table.catalog.client.partitions.names(*table.name.split(".")) == []


def test_columns_keep_the_spelling_and_types_that_spark_recorded(make_hive_table: Any) -> None:
    recorded = {
        "type": "struct",
        "fields": [
            {"name": "Id", "type": "long", "nullable": True, "metadata": {"comment": "the key"}},
            {"name": "Seen", "type": "timestamp_ntz", "nullable": True, "metadata": {}},
            {
                "name": "Code",
                "type": "string",
                "nullable": True,
                "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
            },
            {"name": "Day", "type": "date", "nullable": True, "metadata": {}},
        ],
    }
    text = json.dumps(recorded)
    parameters = {
        "spark.sql.sources.schema.numParts": "2",
        "spark.sql.sources.schema.part.0": text[:50],
        "spark.sql.sources.schema.part.1": text[50:],
    }
    table = make_hive_table(
        {"id": "bigint", "seen": "timestamp", "code": "string"},
        {"day": "date"},
        parameters=parameters,
    )
    schema = migrate.plan(table.catalog, table.name).schema
    assert [(f.name, str(f.field_type), f.doc) for f in schema.columns] == [
        ("Id", "long", "the key"),
        ("Seen", "timestamp", None),
        ("Code", "string", None),
        ("Day", "date", None),
    ]


def test_verify_finds_a_changed_a_lost_and_an_additional_file(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): numbers(1, 2), ("2",): numbers(3), ("3",): numbers(4)},
    )
    migrate.apply(table.catalog, table.name)
    shutil.copy(table.folder / "p2" / "part-0.parquet", table.folder / "p2" / "late.parquet")
    (table.folder / "p1" / "part-0.parquet").unlink()
    found = migrate.verify(table.catalog, table.name)
    assert found.difference_count == 2
    assert sorted(text.rpartition(": ")[2] for text in found.differences) == [
        "in Hive's folder, not in the Iceberg table",
        "in the Iceberg table, not in Hive's folders",
    ]
    found = migrate.status(table.catalog, table.name)
    assert found["state"] == "an Iceberg table, 2 files differ since: run revert"
    assert "verified" not in found["steps"]


def test_verify_finds_values_that_a_wrong_name_mapping_nulls(make_hive_table: Any) -> None:
    from icecomb.format.spec.change.requirement import AssertTableUUID
    from icecomb.format.spec.change.update import Changes, SetPropertiesUpdate

    table = make_hive_table(
        {"id": "bigint", "v": "int"},
        rows=pa.table({"id": [1, 2], "V": pa.array([7, None], pa.int32())}),
    )
    migrate.apply(table.catalog, table.name)

    class Wrong:
        writes_files = False

        def apply(self, base: Any) -> Changes:
            mapping = base.properties["schema.name-mapping.default"].replace('"V"', '"W"')
            update = SetPropertiesUpdate(updates={"schema.name-mapping.default": mapping})
            return Changes(requirements=(AssertTableUUID(uuid=base.table_uuid),), updates=(update,))

        def clean_up(self, committed: Any) -> None:
            """Nothing was written."""

    table.catalog.load_table(table.name).commit(Wrong())
    found = migrate.verify(table.catalog, table.name)
    assert [text.partition(": ")[2] for text in found.differences] == [
        "column v: 1 of 2 values differ"
    ]
    assert (found.hive.columns["v"].nulls, found.iceberg.columns["v"].nulls) == (1, 2)


def test_revert_is_a_dry_run_and_names_what_it_would_lose(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    before = table.state
    migrate.apply(table.catalog, table.name)
    loaded = table.catalog.load_table(table.name)
    loaded.append(pa.table({"id": pa.array([5, 6], pa.int64()), "k": pa.array([1, 2], pa.int32())}))
    plan = migrate.revert(table.catalog, table.name)
    assert (plan.done, plan.rows_then, plan.rows_now, len(plan.lost_snapshots)) == (False, 1, 3, 1)
    with pytest.raises(RevertBlockedError, match="1 snapshots"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    assert len(table.rows()) == 3
    assert migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True).done
    assert table.state == before
    assert migrate.revert(table.catalog, table.name).already
    migrate.apply(table.catalog, table.name)
    assert table.rows() == [{"id": 1, "k": 1}]


def test_revert_never_loses_a_commit_that_came_in_between(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    migrate.apply(table.catalog, table.name)
    loaded = table.catalog.load_table(table.name)
    row = pa.table({"id": pa.array([5], pa.int64()), "k": pa.array([1], pa.int32())})
    alter = HiveClient.alter_table

    def unchecked(self: Any, database: str, name: str, to: Any, context: Any = None) -> None:
        kept = {k: v for k, v in (context or {}).items() if not k.startswith("expected_")}
        alter(self, database, name, to, kept)

    locked = MigrationContext.locked

    def overtaken(self: Any, held: Any, entry: Any) -> Any:
        monkeypatch.undo()
        loaded.append(row)
        monkeypatch.setattr(HiveClient, "alter_table", unchecked)  # as Hive 3.1.3
        return locked(self, held, entry)

    monkeypatch.setattr(MigrationContext, "locked", overtaken)
    with pytest.raises(CommitFailedError, match="changed by somebody else"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    assert sorted(row["id"] for row in table.rows()) == [1, 5]
    assert table.entry.partition_keys == ()


def test_revert_says_when_files_of_the_hive_table_are_gone(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): numbers(2)}
    )
    migrate.apply(table.catalog, table.name)
    gone = table.folder / "p0" / "part-0.parquet"
    gone.unlink()
    assert migrate.revert(table.catalog, table.name).missing_files == (f"file:{gone}",)
    with pytest.raises(RevertBlockedError, match="1 files of the Hive table that are gone"):
        migrate.revert(table.catalog, table.name, dry_run=False)


def test_finalize_gives_up_the_way_back(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    with pytest.raises(MigrationError, match="no finished migration"):
        migrate.finalize(table.catalog, table.name)
    migrate.apply(table.catalog, table.name)
    assert table.catalog.load_table(table.name).metadata.properties["gc.enabled"] == "false"
    with pytest.raises(MigrationError, match="was not verified"):
        migrate.finalize(table.catalog, table.name)
    migrate.finalize(table.catalog, table.name, unverified=True)
    assert "gc.enabled" not in table.catalog.load_table(table.name).metadata.properties
    assert migrate.status(table.catalog, table.name)["state"] == "finalized"
    with pytest.raises(MigrationError, match="finalized"):
        migrate.revert(table.catalog, table.name, dry_run=False)


def test_apply_a_second_time_changes_nothing(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    first = migrate.apply(table.catalog, table.name)
    entry = table.entry
    assert migrate.apply(table.catalog, table.name) == replace(first, already=True)
    assert table.entry == entry


def test_an_iceberg_table_of_other_origin_is_refused(catalog: Any, make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"})
    made = catalog.create_table(f"{table.name}_own", numbers(1).schema)
    name = ".".join(made.name())
    plan = migrate.plan(catalog, name)
    assert (plan.verdict, plan.blockers) == ("already", ())
    assert [one.code for one in plan.findings] == ["already-iceberg"]
    with pytest.raises(MigrationError, match="Iceberg table already"):
        migrate.apply(catalog, name)


class _Meddler:
    """Progress that does something when the footers are read."""

    def __init__(self, meddle: Any, times: int) -> None:
        self.meddle, self.times = meddle, times

    def task(self, what: str, total: int, unit: str) -> Any:
        from icecomb.catalog.report.progress import Silent

        if what == "reading footers" and self.times:
            self.times -= 1
            self.meddle()
        return Silent().task(what, total, unit)

    def say(self, message: str) -> None:
        """Nobody listens."""


def test_files_that_arrive_while_footers_are_read_are_taken_over_too(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    late = lambda: pq.write_table(numbers(2), table.folder / "p0" / "late.parquet")  # noqa: E731
    migrate.apply(table.catalog, table.name, progress=_Meddler(late, 1))
    assert sorted(row["id"] for row in table.rows()) == [1, 2]


def test_a_second_apply_never_takes_the_files_of_the_first_away(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    locked = MigrationContext.locked

    def killed() -> None:
        raise KeyboardInterrupt

    def meddled_with(self: Any, held: Any, entry: Any) -> Any:
        monkeypatch.undo()
        with pytest.raises(KeyboardInterrupt):
            migrate.apply(table.catalog, table.name, progress=_Meddler(killed, 1))
        return locked(self, held, entry)

    monkeypatch.setattr(MigrationContext, "locked", meddled_with)
    migrate.apply(table.catalog, table.name)
    assert table.rows() == [{"id": 1, "k": 1}]
    assert migrate.revert(table.catalog, table.name, dry_run=False).done


@pytest.mark.parametrize("changed", sampled([True, False], keep=1))
def test_of_two_applies_at_once_one_migrates_and_both_say_so(
    make_hive_table: Any, changed: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    at_once = threading.Barrier(2)

    def meet() -> None:
        at_once.wait(60)
        if changed:
            pq.write_table(numbers(2), table.folder / "p0" / f"{threading.get_ident()}.parquet")

    def apply() -> Any:
        return migrate.apply(table.catalog, table.name, progress=_Meddler(meet, 1))

    with ThreadPoolExecutor(2) as pool:
        results = [one.result() for one in [pool.submit(apply), pool.submit(apply)]]
    # who comes second may find the table converted already
    assert replace(results[0], already=False) == replace(results[1], already=False)
    assert sorted(row["id"] for row in table.rows()) == ([1, 2, 2] if changed else [1])
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    assert migrate.revert(table.catalog, table.name, dry_run=False).done


def test_a_table_that_was_turned_since_it_was_looked_at_is_no_other_one(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    before = table.entry
    migrate.apply(table.catalog, table.name)
    found = FolderJournals(table.catalog, before)
    assert found.other is None
    assert found.live is not None


def test_a_table_that_never_stands_still_is_left_alone(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    count = iter(range(100))
    late = lambda: pq.write_table(numbers(2), table.folder / "p0" / f"l{next(count)}.parquet")  # noqa: E731
    before = table.state
    with pytest.raises(MigrationError, match="changed during each of 3 attempts"):
        migrate.apply(table.catalog, table.name, progress=_Meddler(late, 100))
    assert table.state == before
    assert not (table.folder / "metadata").exists()


def test_the_journal_holds_the_exact_old_table(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), (NULL,): numbers(2)}
    )
    entry, partitions = table.state
    migrate.apply(table.catalog, table.name)
    journal = FolderJournals(table.catalog, table.entry).live
    assert journal is not None
    assert journal.table.wire == entry.wire
    assert [one.wire for one in journal.partitions()] == [p.wire for p in partitions]
    assert journal.step(Step.CLEANED) is not None


@pytest.mark.parametrize("target", ["", "made.of_two_that_change"])
def test_files_that_change_places_between_look_and_turn_are_looked_at_again(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    table = make_hive_table({"id": "bigint"})
    one, two = (table.folder / f"part-{number}.parquet" for number in (1, 2))
    for number, path in enumerate((one, two), 1):
        pq.write_table(numbers(number), path)
        os.utime(path, (0, 0))
    assert one.stat().st_size == two.stat().st_size
    asked = migration.is_unchanged
    rounds: list[bool] = []

    def changing(*arguments: Any) -> bool:
        if not rounds:
            one.rename(table.folder / "_aside")
            two.rename(one)
            (table.folder / "_aside").rename(two)
        rounds.append(asked(*arguments))
        return rounds[-1]

    for module in (migration, snapshotting):
        monkeypatch.setattr(module, "is_unchanged", changing)
    if target:
        migrate.snapshot(table.catalog, table.name, target)
    else:
        migrate.apply(table.catalog, table.name)
    assert rounds == [False, True]
    made = table.catalog.load_table(target or table.name)
    for number in (1, 2):
        assert made.scan(f"id = {number}").to_arrow()["id"].to_pylist() == [number]
    if target:
        table.catalog.drop_table(target)
