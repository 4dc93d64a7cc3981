"""What a statement that deletes by position is told of the deletes that a file has already; on a table in a folder."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.spark.planner.protocol import NAMESPACE, Planner

BY_POSITION = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


@pytest.fixture
def table(folders):
    schema = pa.schema([("id", pa.int64())])
    made = folders.create_table((*NAMESPACE, "t"), schema, properties=BY_POSITION)
    made.append(pa.table({"id": list(range(10))}, schema))
    made.delete("id in (2, 3, 5)")
    return made


def entries(table, folders, changes):
    planner = Planner.in_folders(folders)
    plan = planner.plan(planner.load("t"), changes=changes)
    return [file["entry"] for file in plan["files"]]


def test_own_deletes_come_with_their_rows_and_their_bytes(table, folders):
    [file] = table.inspect.delete_files().to_pylist()
    [entry] = entries(table, folders, "rows")
    assert (file["record_count"], file["file_size_in_bytes"] > 3) == (3, True)
    assert entry["own_deletes"] == [
        {"path": file["file_path"], "rows": 3, "size": file["file_size_in_bytes"]}
    ]


def test_a_file_comes_with_all_its_rows_and_whether_some_are_deleted(table, folders):
    [file] = table.inspect.data_files().to_pylist()
    [entry] = entries(table, folders, "files")
    assert (entry["path"], entry["rows"]) == (file["file_path"], 10)
    assert entry["size"] == file["file_size_in_bytes"]
    assert entry["has_deletes"] is True
    assert entry["own_deletes"] == []
