"""What the commit of a write does to a table, asked over the planner's methods."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pyarrow as pa
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    ConflictError,
    ExpressionError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.row_changes import row_level_change
from icecomb.format.row_changes.row_level_change import delete_rows
from icecomb.format.spec.types import DecimalType
from icecomb.spark.planner.write import write
from tests.spark.planner.protocol import NAMESPACE

NUMBERS = itertools.count(1)
ROWS = pa.table({"id": [1, 2, 3], "k": ["a", "a", "b"]})
ONE = {"op": "eq", "column": ["id"], "type": "long", "value": 1}


@pytest.fixture
def table(catalog):
    """Two files of three rows."""
    table = catalog.create_table((*NAMESPACE, f"change{next(NUMBERS)}"), ROWS.schema)
    with table.update_spec() as spec:
        spec.add_identity("k")
    table.append(ROWS)
    return table


IN_A = {"op": "eq", "column": ["k"], "type": "string", "value": "a"}


def begin(planner, table, operation, **more):
    """The table as a statement sees it, the files it reads, and its write."""
    loaded = planner.load(table.identifier[-1])
    entries = [file["entry"] for file in planner.plan(loaded, changes="files")["files"]]
    begun = planner.ask(
        "begin_write",
        reference=loaded["reference"],
        operation=operation,
        **more,
    )
    replaced = {"reference": loaded["reference"], "filters": [], "files": entries}
    return {"write": begun["write"], "files": [], "replaced": replaced}


def ids(table):
    return sorted(table.refresh().scan(selected_fields="id").to_arrow()["id"].to_pylist())


def test_replaced_files_are_gone_and_no_others(planner, table):
    request = begin(planner, table, "replace_files", command="delete")
    kept = request["replaced"]["files"].pop()
    planner.ask("commit_write", **request)
    [left] = table.refresh().inspect.files()["file_path"].to_pylist()
    assert left == kept["path"]
    assert table.current_snapshot().operation == "delete"


@pytest.mark.parametrize("command", ["delete", "merge"])
def test_files_are_not_replaced_when_others_added_rows_meanwhile(planner, table, command):
    request = begin(planner, table, "replace_files", command=command)
    table.append(ROWS)
    with pytest.raises(ValidationError, match="Found conflicting files"):
        planner.ask("commit_write", **request)
    assert ids(table) == [1, 1, 2, 2, 3, 3]


def test_files_of_a_partitioning_whose_column_was_dropped_are_replaced(planner, table):
    with table.update_schema() as change:
        change.add_column("price", DecimalType(9, 2))
    with table.update_spec() as spec:
        spec.add_identity("price")
    table.append(pa.table({"id": [4], "k": ["c"], "price": [Decimal("1.50")]}))
    with table.update_spec() as spec:
        spec.remove_field("price")
    with table.update_schema() as change:
        change.delete_column("price")
    request = begin(planner, table, "replace_files", command="delete")
    assert sorted(str(entry["partition"]) for entry in request["replaced"]["files"]) == [
        "['a']",
        "['b']",
        "['c', '1.50']",
    ]
    planner.ask("commit_write", **request)
    assert ids(table) == []


def test_under_snapshot_isolation_rows_that_others_add_stay(planner, table):
    with table.update_properties() as update:
        update.set("write.merge.isolation-level", "snapshot")
    request = begin(planner, table, "replace_files", command="merge")
    table.append(ROWS)
    planner.ask("commit_write", **request)
    assert ids(table) == [1, 2, 3]


def test_an_update_that_would_lose_rows_is_refused(planner, table):
    request = begin(planner, table, "replace_files", command="update")
    with pytest.raises(CommitFailedError, match="UPDATE read 3 rows and wrote 0"):
        planner.ask("commit_write", **request)
    assert ids(table) == [1, 2, 3]


def test_files_that_the_table_has_not_are_not_replaced(planner, table):
    request = begin(planner, table, "replace_files", command="delete")
    files = request["replaced"]["files"]
    files.append({**files[0], "path": "/no/such/file.parquet"})
    with pytest.raises(ValidationError, match="/no/such/file"):
        planner.ask("commit_write", **request)
    assert ids(table) == [1, 2, 3]


def swap(table):
    """The columns of numbers change their names."""
    with table.update_schema() as change:
        change.rename_column("id", "was_id")
    with table.update_schema() as change:
        change.rename_column("n", "id")
    with table.update_schema() as change:
        change.rename_column("was_id", "n")


@pytest.fixture
def numbers(catalog):
    """Three files of a row, found by ``id`` and by ``n``, which goes the other way."""
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = catalog.create_table((*NAMESPACE, f"change{next(NUMBERS)}"), schema)
    for id_, n in (1, 3), (2, 2), (3, 1):
        table.append(pa.table({"id": [id_], "n": [n]}, schema))
    return table


def test_an_overwrite_replaces_the_rows_of_the_columns_that_its_statement_saw(planner, numbers):
    request = begin(planner, numbers, "overwrite", filters=[ONE])
    swap(numbers)
    planner.ask("commit_write", **request)
    rows = numbers.refresh().scan(selected_fields=("n", "id")).to_arrow()
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(2, 2), (3, 1)]


def test_a_delete_removes_the_rows_of_the_columns_that_its_statement_saw(planner, numbers):
    loaded = planner.load(numbers.identifier[-1])
    swap(numbers)
    planner.ask("delete_where", reference=loaded["reference"], filters=[ONE])
    rows = numbers.refresh().scan(selected_fields=("n", "id")).to_arrow()
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(2, 2), (3, 1)]


def test_a_delete_is_made_anew_where_others_add_rows_meanwhile(planner, table, monkeypatch):
    loaded = planner.load(table.identifier[-1])
    begun = []

    def delete(target, rows):
        change = delete_rows(target, rows)
        begun.append(change)
        if len(begun) < 3:
            table.refresh().append(ROWS.slice(0, 1))
        return change

    monkeypatch.setattr(row_level_change, "delete_rows", delete)
    planner.ask("delete_where", reference=loaded["reference"], filters=[ONE])
    assert len(begun) == 3
    assert ids(table) == [2, 3]
    files = {task.file.file_path for task in table.scan().plan_files()}
    made = {file.file_path for change in begun for file in change.data_files}
    assert made & files == {file.file_path for file in begun[-1].data_files}
    assert not any(table.io.exists(path) for path in made - files)


def test_a_delete_that_others_contradict_each_time_is_refused(planner, table, monkeypatch):
    with table.update_properties() as update:
        update.set("commit.retry.num-retries", "1")
        update.set("commit.retry.min-wait-ms", "0")
    loaded = planner.load(table.identifier[-1])

    def delete(target, rows):
        change = delete_rows(target, rows)
        table.refresh().append(ROWS.slice(0, 1))
        return change

    monkeypatch.setattr(row_level_change, "delete_rows", delete)
    with pytest.raises(ConflictError, match="can contain records matching id = 1") as refused:
        planner.ask("delete_where", reference=loaded["reference"], filters=[ONE])
    assert refused.value.retryable
    assert ids(table) == [1, 1, 1, 2, 3]


@pytest.mark.parametrize("others", [{"id": 1, "n": 9}, {"id": 9, "n": 1}])
def test_conflicts_are_looked_for_in_the_columns_that_the_statement_saw(planner, numbers, others):
    request = begin(planner, numbers, "replace_files", command="delete")
    request["replaced"]["filters"] = [ONE]
    added = pa.table({key: [value] for key, value in others.items()})
    swap(numbers)
    numbers.refresh().append(added.rename_columns(["n", "id"]))
    if others["id"] == 1:
        with pytest.raises(ValidationError, match="can contain records matching n = 1"):
            planner.ask("commit_write", **request)
        assert numbers.refresh().scan().count() == 4
    else:
        planner.ask("commit_write", **request)
        assert numbers.refresh().scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("operation", ["overwrite", "replace_files"])
def test_a_statement_whose_column_was_dropped_meanwhile_is_refused(planner, table, operation):
    request = begin(planner, table, operation, filters=[ONE], command="delete")
    request["replaced"]["filters"] = [ONE]
    with table.update_schema() as change:
        change.delete_column("id")
    with table.update_schema() as change:
        change.add_column("id", "long")
    with pytest.raises(
        ValidationError, match=r"column 'id' is long \(id 3\), the rows have long \(id 1\)"
    ):
        planner.ask("commit_write", **request)
    assert table.refresh().scan().count() == 3


def test_other_columns_may_come_while_a_statement_runs(planner, table):
    request = begin(planner, table, "replace_files", command="delete")
    request["replaced"]["filters"] = [ONE]
    with table.update_schema() as change:
        change.add_column("more", "string")
    planner.ask("commit_write", **request)
    assert table.refresh().scan().count() == 0


@pytest.mark.parametrize("operation", ["append", "overwrite_partitions"])
def test_rows_for_a_table_that_was_replaced_meanwhile_by_other_columns_are_refused(
    planner, table, catalog, operation
):
    request = begin(planner, table, operation)
    file = next(table.scan("k = 'b'").plan_files()).file
    written = {"path": f"{file.file_path}.new", "size": file.file_size_in_bytes, "rows": 1}
    request["files"] = [{**written, "partition": ["b"], "split_offsets": [4], "columns": "[]"}]
    catalog.replace_table(table.identifier, pa.schema([("id", pa.string()), ("k", pa.string())]))
    with pytest.raises(
        ValidationError, match=r"column 'id' is string \(id 3\), the rows have long"
    ):
        planner.ask("commit_write", **request)
    assert table.refresh().scan().count() == 0


def test_a_delete_whose_column_was_dropped_meanwhile_is_refused(planner, table):
    loaded = planner.load(table.identifier[-1])
    with table.update_schema() as change:
        change.delete_column("id")
    with table.update_schema() as change:
        change.add_column("id", "long")
    with pytest.raises(ExpressionError, match=r"Column id, .* was dropped meanwhile"):
        planner.ask("delete_where", reference=loaded["reference"], filters=[ONE])
    assert table.refresh().scan().count() == 3


def test_what_cannot_be_evaluated_exactly_deletes_and_overwrites_nothing(planner, table):
    loaded = planner.load(table.identifier[-1])
    other = {"op": "eq", "column": ["id"], "type": "string", "value": "1"}
    assert planner.ask("can_delete_where", reference=loaded["reference"], filters=[ONE]) == {
        "possible": True
    }
    filters = [ONE, {"op": "not", "child": other}]
    assert planner.ask("can_delete_where", reference=loaded["reference"], filters=filters) == {
        "possible": False
    }
    with pytest.raises(UnsupportedError, match="cannot be evaluated exactly"):
        planner.ask("delete_where", reference=loaded["reference"], filters=filters)
    with pytest.raises(UnsupportedError, match="cannot be evaluated exactly"):
        begin(planner, table, "overwrite", filters=filters)


def test_rows_of_an_overwritten_partition_that_others_add_are_not_lost(planner, table):
    in_a = {"op": "eq", "column": ["k"], "type": "string", "value": "a"}
    request = begin(planner, table, "overwrite", filters=[in_a])
    table.append(ROWS.slice(0, 1))
    with pytest.raises(ValidationError, match="Found conflicting files"):
        planner.ask("commit_write", **request)
    assert ids(table) == [1, 1, 2, 3]
    request = begin(planner, table, "overwrite", filters=[in_a])
    table.refresh().append(ROWS.slice(2, 1))
    planner.ask("commit_write", **request)
    assert ids(table) == [3, 3]


def test_nothing_is_committed_where_nothing_changes(planner, table):
    before = table.metadata_location
    for operation in ("append", "overwrite_partitions", "replace_files"):
        request = begin(planner, table, operation, command="merge")
        request["replaced"]["files"] = []
        assert planner.ask("commit_write", **request) == {"metrics": {}}
    assert table.refresh().metadata_location == before


def test_a_surprise_after_a_commit_does_not_say_that_it_failed(planner, table, monkeypatch):
    def surprised(summary):
        raise KeyError(summary)

    request = begin(planner, table, "replace_files", command="delete")
    monkeypatch.setattr(write, "commit_metrics", surprised)
    # the bridge would delete the files of a commit that failed
    with pytest.raises(CommitStateUnknownError, match="no file was deleted"):
        planner.ask("commit_write", **request)
    assert ids(table) == []


def test_an_overwrite_of_everything_may_be_meant_of_partitions(planner, table):
    everything, dynamic = [{"op": "always_true"}], {"Overwrite-Mode": "Dynamic"}
    request = begin(planner, table, "overwrite", filters=everything, options=dynamic)
    assert request["write"]["operation"] == "overwrite_partitions"
    planner.ask("commit_write", **request)
    assert ids(table) == [1, 2, 3]
    request = begin(planner, table, "overwrite", filters=[IN_A], options=dynamic)
    assert request["write"]["operation"] == "overwrite"
    planner.ask("commit_write", **request)
    assert ids(table) == [3]


@pytest.mark.parametrize("operation", ["overwrite", "overwrite_partitions"])
def test_an_overwrite_is_as_isolated_as_its_option_says(planner, table, operation):
    start = str(table.current_snapshot().snapshot_id)
    since = {"validate-from-snapshot-id": start}
    more = {"filters": [IN_A], "options": {"Isolation-Level": "SNAPSHOT"} | since}
    request = begin(planner, table, operation, **more)
    assert request["write"]["serializable"] is False
    table.append(ROWS.slice(0, 1))
    planner.ask("commit_write", **request)
    more["options"] = {"isolation-level": "serializable"}
    with table.update_properties() as update:
        update.set("write.delete.isolation-level", "snapshot")
    request = begin(planner, table, operation, **more)
    assert request["write"]["serializable"] is True
    with pytest.raises(ConfigurationError, match="isolation-level cannot be 'none'"):
        begin(planner, table, operation, filters=[IN_A], options={"isolation-level": "none"})


def test_an_isolation_level_without_a_snapshot_looks_at_the_whole_history(planner, table):
    """As Iceberg does: the rows that are there were added some time."""
    more = {"filters": [IN_A], "options": {"isolation-level": "serializable"}}
    request = begin(planner, table, "overwrite", **more)
    with pytest.raises(ValidationError, match="Found conflicting files"):
        planner.ask("commit_write", **request)
    head = str(table.current_snapshot().snapshot_id)
    more["options"] |= {"validate-from-snapshot-id": head}
    planner.ask("commit_write", **begin(planner, table, "overwrite", **more))
    more["options"] = {"isolation-level": "snapshot"}
    request = begin(planner, table, "overwrite", **more)
    with pytest.raises(ValidationError, match="Found conflicting deleted files"):
        planner.ask("commit_write", **request)


def test_an_overwrite_looks_at_what_happened_since_the_snapshot_that_it_names(planner, table):
    first = table.current_snapshot().snapshot_id
    table.append(ROWS.slice(0, 1))
    options = {"Validate-From-Snapshot-Id": str(first)}
    request = begin(planner, table, "overwrite", filters=[IN_A], options=options)
    with pytest.raises(ValidationError, match="Found conflicting files"):
        planner.ask("commit_write", **request)
    options["isolation-level"] = "snapshot"
    request = begin(planner, table, "overwrite", filters=[IN_A], options=options)
    planner.ask("commit_write", **request)
    assert ids(table) == [3]
    options = {"validate-from-snapshot-id": "1"}
    with pytest.raises(ValidationError, match="no snapshot 1 to validate from"):
        begin(planner, table, "overwrite", filters=[IN_A], options=options)


def test_files_are_partitioned_and_summed_up_as_options_and_settings_say(planner, table):
    old = table.spec().spec_id
    with table.update_spec() as spec:
        spec.remove_field("k")
        spec.add_field("id", "bucket[4]", "b")
    for option, number in ({}, table.refresh().spec().spec_id), ({"output-spec-id": str(old)}, old):
        assert begin(planner, table, "append", options=option)["write"]["spec_id"] == number
    with pytest.raises(ValidationError, match="Output spec id 9 is not a valid spec id") as refused:
        begin(planner, table, "append", options={"output-spec-id": "9"})
    assert f"{old}, " in refused.value.hint
    with pytest.raises(ValidationError, match="Cannot use output sort order id 7"):
        begin(planner, table, "append", options={"output-sort-order-id": "7"})
    prefix = "spark.sql.iceberg.snapshot-property."
    settings = {f"{prefix}By": "session", f"{prefix}Team": "a"}
    more = {"settings": settings, "options": {"snapshot-property.By": "option"}}
    assert begin(planner, table, "append", **more)["write"]["summary"] == {
        "By": "option",
        "Team": "a",
    }


@pytest.mark.parametrize("operation", ["append", "overwrite_partitions", "replace_files"])
def test_a_write_that_would_name_its_own_operation_is_refused_before_it_writes(
    planner, table, operation
):
    before = table.refresh().metadata_location
    options = {"snapshot-property.operation": "INSERT"}
    with pytest.raises(ValidationError, match="Cannot set snapshot properties: operation"):
        begin(planner, table, operation, command="merge", options=options)
    assert table.refresh().metadata_location == before
