"""Iceberg Java and PyIceberg read a manifest list that many commits put together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

APPENDS = 130
"""So many that the list has more than one block, and that Iceberg Java merges its manifests."""


@pytest.fixture
def table(catalog: Any) -> Any:
    catalog.create_namespace_if_not_exists("lists")
    yield catalog.create_table(("lists", "long"), pa.schema([("id", pa.int64())]))
    catalog.drop_table(("lists", "long"))


def test_all_plan_the_files_of_many_appends(table: Any, iceberg_java: Any, pyiceberg: Any) -> None:
    name, expected = "ice.lists.long", []
    with table.transaction() as transaction:
        for number in range(APPENDS):
            path = f"{table.location()}/data/{number}.parquet"
            file = DataFile(file_path=path, record_count=1, file_size_in_bytes=number + 1)
            transaction.commit(FastAppend(table.io).append_data_file(file))
            expected.append(path)
    assert sorted(iceberg_java.plan(name)) == sorted(expected)
    tasks = pyiceberg.load_table(("lists", "long")).scan().plan_files()
    assert sorted(task.file.file_path for task in tasks) == sorted(expected)
    iceberg_java.sql(f"INSERT INTO {name} VALUES (1)")
    assert len(read_manifests(table.io, table.refresh().current_snapshot())) == 1
    table.append(pa.table({"id": [2]}))
    ours = [task.file.file_path for task in table.scan().plan_files()]
    assert len(ours) == APPENDS + 2
    assert sorted(iceberg_java.plan(name)) == sorted(ours)
