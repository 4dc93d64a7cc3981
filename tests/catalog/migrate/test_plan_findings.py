from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.catalog import migrate
from tests.catalog.migrate.conftest import PARQUET


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def codes(plan: Any) -> set[str]:
    return {finding.code for finding in plan.blockers}


def test_entry_columns_partitions_and_files_are_all_looked_at_whatever_was_found_before(
    make_hive_table: Any,
) -> None:
    table = make_hive_table(
        {"id": "bigint", "u": "uniontype<int,string>"},
        {"k": "int"},
        {("1",): numbers(1), ("no number",): numbers(2), ("3",): None, ("4",): numbers(4)},
        parameters={"parquet.column.index.access": "true"},
    )
    client, place = table.catalog.client, table.name.split(".")
    fourth = table.partitions[2]
    assert fourth.values == ("4",)
    other = replace(fourth.storage, input_format="org.apache.hadoop.mapred.TextInputFormat")
    client.partitions.alter(*place, [replace(fourth, storage=other)])
    bucketed = replace(table.entry.storage, num_buckets=4, bucket_columns=("id",))
    client.alter_table(*place, replace(table.entry, storage=bucketed))
    (table.folder / "p0" / "text").write_text("not parquet at all")
    (table.folder / "p1" / "deep").mkdir()
    pq.write_table(numbers(1), table.folder / "p1" / "deep" / "d.parquet")
    pq.write_table(pa.table({"id": ["text"]}), table.folder / "p1" / "b.parquet")
    before = table.state, table.files()
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {
        "by-position",
        "bucketed",
        "unsupported-column",
        "partition-value",
        "partition-format",
        "missing-folder",
        "subdirectories",
        "not-parquet",
        "type-differs",
    }
    assert all(finding.remedy for finding in plan.blockers)
    assert (plan.partitions, len(plan.files)) == (3, 5)
    assert (table.state, table.files()) == before


def test_a_partition_key_without_a_type_of_icebergs_leaves_the_files_to_be_looked_at(
    make_hive_table: Any,
) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "interval_day_time"}, {("1 00:00:00",): pa.table({"id": ["x"]})}
    )
    assert codes(migrate.plan(table.catalog, table.name)) == {"unsupported-column", "type-differs"}


def test_the_deltas_of_a_transactional_table_are_no_findings_of_their_own(
    make_hive_table: Any,
) -> None:
    orc = replace(
        PARQUET,
        input_format="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        num_buckets=1,
        bucket_columns=("id",),
    )
    table = make_hive_table(
        {"id": "bigint"}, rows=numbers(1), parameters={"transactional": "TRUE"}, storage=orc
    )
    (table.folder / "delta_0000001_0000001_0000").mkdir()
    (table.folder / "delta_0000001_0000001_0000" / "bucket_00000").write_text("no Parquet")
    plan = migrate.plan(table.catalog, table.name)
    assert (codes(plan), len(plan.files)) == ({"transactional", "format", "bucketed"}, 1)


def test_a_folder_that_cannot_be_read_hides_nothing_of_the_others(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): None, ("2",): pa.table({"id": ["x"]}), ("3",): numbers(1)},
    )
    (table.folder / "p0").symlink_to(table.folder / "p0")  # leads to itself
    assert codes(migrate.plan(table.catalog, table.name)) == {"unreadable-folder", "type-differs"}
