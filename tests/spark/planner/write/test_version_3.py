"""Changes of rows in tables of format version 3: vectors made by the commit, and ids that rows keep."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    ConflictError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.spec.metadata import TableMetadata
from icecomb.spark.planner.files import encode_positions
from tests.spark.planner.protocol import NAMESPACE, Planner

COMMANDS = ("delete", "update", "merge")
BY_POSITION = {f"write.{c}.mode": "merge-on-read" for c in COMMANDS}
LINEAGE = ["_row_id", "_last_updated_sequence_number"]
SCHEMA = pa.schema([("id", pa.int64())])


def rows(first):
    return pa.table({"id": list(range(first, first + 10))}, SCHEMA)


@pytest.fixture
def table(folders):
    """Two files of ten rows."""
    properties = {"format-version": "3", **BY_POSITION}
    made = folders.create_table((*NAMESPACE, "t"), SCHEMA, properties=properties)
    made.append(rows(0))
    made.append(rows(10))
    return made


@pytest.fixture
def planner(folders):
    return Planner.in_folders(folders)


def ids(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def vectors(table):
    return table.refresh().inspect.delete_files().to_pylist()


def puffins(table):
    return {path.name for path in Path(table.location()).rglob("*.puffin")}


class Deletion:
    """A DELETE that has read the table."""

    def __init__(self, planner, table, command="delete"):
        self.planner = planner
        loaded = planner.load(table.identifier[-1])
        self.reference = loaded["reference"]
        self.files = planner.plan(loaded, changes="rows")["files"]
        self.begun = planner.ask(
            "begin_write", reference=self.reference, operation="change_rows", command=command
        )

    def commit(self, *reports, deleted=None):
        """Commit the positions that tasks report: a number of the file, and positions of rows."""
        entries = [json.loads(json.dumps(file["entry"])) for file in self.files]
        deletes = [
            {
                "file": None,
                "files": [entries[number]["path"]],
                "deleted": len(positions) if deleted is None else deleted,
                "replaces": False,
                "positions": encode_positions(np.array(positions, np.int64)),
            }
            for number, positions in reports
        ]
        delta = {
            "reference": self.reference,
            "filters": [],
            "files": entries,
            "deletes": deletes,
        }
        self.planner.ask("commit_write", write=self.begun["write"], files=[], delta=delta)


def test_positions_that_several_tasks_report_become_vectors_of_one_file(table, planner):
    statement = Deletion(planner, table)
    assert statement.begun["deletes"]["as_vectors"] is True
    first = statement.files[0]["entry"]["path"]
    begin = int(table.scan().to_arrow()["id"][0].as_py())
    statement.commit((0, [1, 2]), (1, [7]), (0, [2, 5]))
    found = {one["referenced_data_file"]: one for one in vectors(table)}
    assert sorted(one["record_count"] for one in found.values()) == [1, 3]
    assert found[first]["record_count"] == 3
    assert len({one["file_path"] for one in found.values()}) == 1
    assert len(ids(table)) == 16
    assert begin in {0, 10}


def test_a_vector_takes_the_place_of_the_one_before(table, planner):
    table.delete("id in (1, 2, 12)")
    statement = Deletion(planner, table)
    assert all(file["delete_place"]["has_own"] is False for file in statement.files)
    number = next(
        at for at, file in enumerate(statement.files) if file["entry"]["path"] in _of(table, 0)
    )
    statement.commit((number, [4]))
    assert ids(table) == [0, 3, *range(5, 12), *range(13, 20)]
    assert sorted(one["record_count"] for one in vectors(table)) == [1, 3]


def _of(table, first):
    """The path of the file whose rows begin with an id."""
    found = table.scan(row_filter=f"id = {first}", selected_fields="_file").to_arrow()
    return found["_file"].to_pylist()


@pytest.mark.parametrize("planned", [2, 1], ids=["both planned", "one planned, by its row ids"])
@pytest.mark.parametrize("deleted", [[], [1]])
def test_a_data_file_that_was_added_again_gets_no_vector(folders, planner, deleted, planned):
    """It would be that of both entries, whose rows have other ids and other deletes."""
    properties = {"format-version": "2", **BY_POSITION}
    table = folders.create_table((*NAMESPACE, "again"), SCHEMA, properties=properties)
    table.append(rows(0))
    (task,) = table.scan().plan_files()
    if deleted:
        table.delete("id = 1")
    table.add_files([task.file_path], check_duplicate_files=False)
    table.transaction().upgrade_table_version(3).commit_transaction()
    statement = Deletion(planner, table)
    del statement.files[planned:]
    with pytest.raises(ValidationError, match="more than once"):
        statement.commit((0, [4]))
    assert ids(table) == sorted([*range(10), *({*range(10)} - {*deleted})])
    assert not puffins(table)


def test_position_deletes_of_version_2_are_joined_with_new_ones(folders, planner):
    properties = {"format-version": "2", **BY_POSITION}
    table = folders.create_table((*NAMESPACE, "older"), SCHEMA, properties=properties)
    table.append(rows(0))
    table.delete("id in (1, 2)")
    with table.update_properties() as update:
        update.set("format-version", "3")
    Deletion(planner, table).commit((0, [9]))
    assert ids(table) == [0, *range(3, 9)]
    [vector] = vectors(table)
    assert (vector["file_format"], vector["record_count"]) == ("PUFFIN", 3)


def test_a_vector_that_another_writer_adds_meanwhile_is_a_conflict_and_nothing_is_left(
    table, planner
):
    statement = Deletion(planner, table)
    table.refresh().delete("id in (3, 13)")
    before = ids(table), puffins(table)
    with pytest.raises(ValidationError, match="concurrently added DV"):
        statement.commit((0, [7]))
    assert (ids(table), puffins(table)) == before


def test_an_upgrade_after_position_delete_files_were_prepared_is_noticed(folders, planner):
    properties = {"format-version": "2", **BY_POSITION}
    table = folders.create_table((*NAMESPACE, "upgraded"), SCHEMA, properties=properties)
    table.append(rows(0))
    statement = Deletion(planner, table)
    assert statement.begun["deletes"]["as_vectors"] is False
    with table.update_properties() as update:
        update.set("format-version", "3")
    entry = statement.files[0]["entry"]
    file = {"path": f"{table.location()}/data/d.parquet", "size": 1, "rows": 1, "partition": []}
    deletes = {
        "file": {**file, "split_offsets": [4], "columns": "[]"},
        "files": [entry["path"]],
        "deleted": 1,
        "replaces": False,
        "positions": None,
    }
    delta = {
        "reference": statement.reference,
        "filters": [],
        "files": [entry],
        "deletes": [deletes],
    }
    with pytest.raises(ValidationError, match="rows are deleted by deletion vectors"):
        planner.ask("commit_write", write=statement.begun["write"], files=[], delta=delta)
    assert ids(table) == list(range(10))


def test_rows_of_files_that_the_statement_has_not_planned_are_not_deleted(table, planner):
    statement = Deletion(planner, table)
    statement.files[0]["entry"]["path"] += ".other"
    with pytest.raises(CommitFailedError, match=r"which it has not read"):
        statement.commit((0, [1]))
    assert len(ids(table)) == 20
    assert not puffins(table)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("command", COMMANDS)
def test_rows_that_move_keep_their_lineage_or_do_not_move(table, planner, command, mode):
    with table.update_properties() as update:
        update.set(f"write.{command}.mode", mode)
    reference = planner.load("t")["reference"]
    moves = (command, mode) != ("delete", "merge-on-read")

    def plan(*, keeps_metadata):
        return planner.ask(
            "plan_change", reference=reference, command=command, keeps_metadata=keeps_metadata
        )

    kept = plan(keeps_metadata=True)
    assert [name for name in kept["metadata_columns"] if name in LINEAGE] == LINEAGE * moves
    assert kept["refusal"] is None
    if moves and command == "delete":  # the planner may yet delete the rows
        assert (
            "rows that move to other files would lose their ids"
            in plan(keeps_metadata=False)["refusal"]
        )
    elif moves:
        with pytest.raises(
            UnsupportedError, match=r"rows that move to other files would lose their ids"
        ):
            plan(keeps_metadata=False)
    else:
        assert plan(keeps_metadata=False)["refusal"] is None
    operation = "change_rows" if mode == "merge-on-read" else "replace_files"
    begun = planner.ask("begin_write", reference=reference, operation=operation, command=command)
    names = [field["name"] for field in begun["files"]["schema"]["fields"]]
    assert names == ["id", *LINEAGE * moves]
    assert begun["lineage"] is moves


def test_appended_files_leave_lineage_out(table, planner):
    begun = planner.ask("begin_write", reference=planner.load("t")["reference"], operation="append")
    assert [field["name"] for field in begun["files"]["schema"]["fields"]] == ["id"]
    assert begun["lineage"] is False


def test_a_column_with_the_name_of_one_of_lineage_is_named_before_rows_are_changed(table, planner):
    with table.update_schema() as update:
        update.add_column("_row_id", "long")
    reference = planner.load("t")["reference"]
    with pytest.raises((SchemaError, UnsupportedError), match="_row_id"):
        planner.ask("plan_change", reference=reference, command="update", keeps_metadata=True)


def test_what_rows_inherit_comes_with_the_plan_if_it_is_asked_for(table, planner):
    loaded = planner.load("t")
    assert loaded["has_lineage"] is True
    loaded["schema"]["fields"] += [
        {"name": name, "metadata": {"parquet.field.id": number}}
        for name, number in zip(LINEAGE, (2147483540, 2147483539), strict=True)
    ]
    plan = planner.plan(loaded)
    assert sorted((file["constants"] for file in plan["files"]), key=str) == [
        {"2147483540": first, "2147483539": number} for first, number in ((0, 1), (10, 2))
    ]
    assert all(not file["constants"] for file in planner.plan(loaded, columns=["id"])["files"])


def test_rows_without_ids_are_not_moved_over_ids_that_another_commit_gave_them(folders, planner):
    table = folders.create_table((*NAMESPACE, "given"), SCHEMA, properties={"format-version": "2"})
    table.append(rows(0))
    with table.update_properties() as update:
        update.set("format-version", "3")
    loaded = planner.load("given")
    assert _first_ids(table.metadata) == [None]
    entries = [file["entry"] for file in planner.plan(loaded, changes="files")["files"]]
    begun = planner.ask(
        "begin_write",
        reference=loaded["reference"],
        operation="replace_files",
        command="merge",
        options={"isolation-level": "snapshot"},
    )
    table.refresh().append(rows(10))
    replaced = {"reference": loaded["reference"], "filters": [], "files": entries}
    with pytest.raises(ConflictError, match="may have given ids"):
        planner.ask("commit_write", write=begun["write"], files=[], replaced=replaced)
    assert ids(table) == list(range(20))


def _first_ids(metadata: TableMetadata):
    return [snapshot.first_row_id for snapshot in metadata.snapshots]
