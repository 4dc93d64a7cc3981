"""What somebody adds to a snapshot's summary: text for every reader, and never what a commit says."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.operation.row_delta import RowDelta

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
SAME = ROWS.slice(0, 1)


@pytest.fixture
def table(lake):
    table = lake.create_table("db.t", ROWS.schema)
    with table.update_spec() as spec:
        spec.add_identity("s")
    table.append(ROWS)
    return table


def in_transaction(operation):
    def act(table, more, path):
        with table.transaction() as transaction:
            operation(transaction, more, path)

    return act


def merge(table, more, path):
    operation = table.merge(SAME, ["id"], snapshot_properties=more)
    operation.when_not_matched_insert_all().execute()


def replace(table, more, path):
    with table.catalog.replace_table_transaction("db.t", ROWS.schema) as new:
        new.append(ROWS, more)


def create(table, more, path):
    with table.catalog.create_table_transaction("db.new", ROWS.schema) as new:
        new.append(ROWS, more)


ROW_OPERATIONS = {
    "append": lambda t, more, _: t.append(ROWS, more),
    "append widening": lambda t, more, _: t.append(
        ROWS.append_column("x", pa.array([1, 2, 3])), more, merge_schema=True
    ),
    "overwrite": lambda t, more, _: t.overwrite(ROWS, snapshot_properties=more),
    "delete": lambda t, more, _: t.delete("s = 'a'", more),
    "delete of nothing": lambda t, more, _: t.delete("id = 77", more),
    "dynamic overwrite": lambda t, more, _: t.dynamic_partition_overwrite(ROWS, more),
    "upsert": lambda t, more, _: t.upsert(SAME, ["id"], snapshot_properties=more),
    "merge": merge,
    "add_files": lambda t, more, path: t.add_files([path], more),
}
OPERATIONS = {
    **ROW_OPERATIONS,
    **{
        f"{name} in a transaction": in_transaction(operation)
        for name, operation in ROW_OPERATIONS.items()
    },
    "rewrite_manifests": lambda t, more, _: t.rewrite_manifests(snapshot_properties=more),
    "a producer": lambda t, more, _: t.commit(RowDelta(t.io, more)),
    "fast append": lambda t, more, _: t.new_fast_append(more),
    "append_data_files": in_transaction(lambda t, more, _: t.append_data_files([], more)),
    "replacement": replace,
    "creation": create,
}


def files(folder):
    return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_takes_the_word_of_somebody_else_for_what_it_did(table, tmp_path, name):
    path = str(tmp_path / "added.parquet")
    pq.write_table(ROWS.slice(0, 1), path)
    before, state = files(tmp_path), table.metadata
    with pytest.raises(ValidationError, match="Cannot set snapshot properties: operation"):
        OPERATIONS[name](table, {"operation": "nightly", "batch": "5"}, path)
    assert files(tmp_path) == before
    assert table.metadata is state
    assert table.refresh().metadata == state


# of the specification (Optional Snapshot Summary Fields), and what Iceberg Java counts besides
KEYS = [
    "operation",
    "added-data-files",
    "deleted-data-files",
    "total-data-files",
    "added-delete-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "removed-delete-files",
    "total-delete-files",
    "added-records",
    "deleted-records",
    "total-records",
    "added-files-size",
    "removed-files-size",
    "total-files-size",
    "added-position-deletes",
    "removed-position-deletes",
    "total-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
    "total-equality-deletes",
    "changed-partition-count",
    "partition-summaries-included",
    "partitions.s=a",
    "manifests-created",
    "manifests-kept",
    "manifests-replaced",
    "entries-processed",
    "replace-partitions",
    "source-snapshot-id",
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_that_a_commit_computes_are_its_own(table, key):
    with pytest.raises(ValidationError, match=key):
        table.append(ROWS, {key: "7"})


def test_other_keys_are_kept(table):
    table.append(ROWS, {"wap.id": "1", "engine-name": "x", "operations": "many", "total": "2"})
    summary = table.current_snapshot().summary
    assert summary["operations"] == "many"
    assert summary["total"] == "2"
    assert summary["operation"] == "append"
    assert summary["total-records"] == "6"


def test_a_staged_append_keeps_its_operation(table):
    table.update_properties().set("write.wap.enabled", "true").commit()
    with pytest.raises(ValidationError, match="operation"):
        table.append(ROWS, {"wap.id": "load", "operation": "overwrite"})
    assert len(table.refresh().snapshots()) == 1


# what PyIceberg makes of the values of properties (transform_dict_value_to_str)
TEXTS = {
    "batch": (5, "5"),
    "share": (0.5, "0.5"),
    "none": (float("nan"), "nan"),
    "late": (True, "true"),
    "late in numpy": (np.bool_(True), "true"),
    "share in numpy": (np.float64(0.5), "0.5"),
    "list": ([1], "[1]"),
    "text": ("5", "5"),
}


def newest_snapshot(table):
    raw = json.loads(Path(table.metadata_location.removeprefix("file:")).read_text())
    return max(raw["snapshots"], key=lambda snapshot: snapshot["sequence-number"])


@pytest.mark.parametrize("name", ["append", "append in a transaction", "overwrite", "add_files"])
def test_numbers_in_a_summary_become_text_as_in_pyiceberg(table, tmp_path, name):
    path = str(tmp_path / "added.parquet")
    pq.write_table(ROWS.slice(0, 1), path)
    more = {key: given for key, (given, _) in TEXTS.items()}
    OPERATIONS[name](table, more, path)
    newest = newest_snapshot(table)
    for key, (_, text) in TEXTS.items():
        assert newest["summary"][key] == text
    assert all(isinstance(value, str) for value in newest["summary"].values())


@pytest.mark.parametrize(
    "more", [{"k": None}, {5: "x"}, {None: "x"}, {"k": b"x"}, {"k": "\ud800"}, ["k"], "k=v"]
)
def test_what_is_no_text_is_refused(table, tmp_path, more):
    before = files(tmp_path)
    with pytest.raises(IcecombError):
        table.append(ROWS, more)
    assert files(tmp_path) == before


def test_a_snapshot_of_an_operation_that_nobody_knows_may_contradict_every_change(lake, table):
    # it was committed when nobody looked; what it did cannot be told from its name
    stale = lake.load_table("db.t")
    table.append(pa.table({"id": pa.array([5], pa.int64()), "s": ["a"]}))
    file = Path(table.metadata_location.removeprefix("file:"))
    raw = json.loads(file.read_text())
    raw["snapshots"][-1]["summary"]["operation"] = "nightly"
    file.write_text(json.dumps(raw))
    with pytest.raises(ValidationError, match="conflict"):
        stale.delete("s = 'a' and id < 10")
    assert lake.load_table("db.t").scan().count() == 4
