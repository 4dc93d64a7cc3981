"""Two writers at one table: what others commit meanwhile is never lost, doubled or brought back."""

from __future__ import annotations

import datetime as dt
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import CommitFailedError, ExpressionError, ValidationError
from icecomb.format.operation.overwrite import OverwriteFiles
from icecomb.format.operation.row_delta import RowDelta
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

NUMBERS = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def frame(*rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table([pa.array(c, pa.int64()) for c in columns], NUMBERS)


def pairs(table) -> list[tuple[int, int]]:
    return sorted((r["k"], r["v"]) for r in table.refresh().scan().to_arrow().to_pylist())


def delete_by_value(table, rows: pa.Table) -> None:
    """As streaming engines delete: by values, without looking at the table."""
    deletes = EqualityDeleteWriter(
        table.io, table.metadata, uuid.uuid4().hex, rows.schema.names, spec_id=0
    )
    for batch in rows.to_batches():
        deletes.write(batch)
    change = RowDelta(table.io)
    for file in deletes.close():
        change.add_deletes(file)
    table.commit(change)


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_that_others_delete_by_value_are_not_written_anew(lake, isolation):
    properties = {"format-version": "2", "write.delete.isolation-level": isolation}
    table = lake.create_table("db.t", NUMBERS, properties=properties)
    table.append(frame((1, 1), (2, 2), (3, 3)))
    late = lake.load_table("db.t")
    delete_by_value(table, pa.table({"k": [2]}))
    with pytest.raises(ValidationError, match="new delete for replaced data file"):
        late.delete("k = 1")
    assert pairs(table) == [(1, 1), (3, 3)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("others", ["delete", "delete by value"])
@pytest.mark.parametrize("command", ["upsert", "merge"])
def test_a_row_that_was_there_for_an_upsert_is_not_gone_when_it_inserts(
    lake, mode, others, command
):
    properties = {"format-version": "2", "write.merge.mode": mode}
    table = lake.create_table("db.t", NUMBERS, properties=properties)
    table.append(frame((1, 1), (5, 5)))
    late = lake.load_table("db.t")
    if others == "delete":
        table.delete("k <= 2")
    else:
        delete_by_value(table, pa.table({"k": [1, 2]}))
    # in any order of the two there are both rows or none
    change = frame((1, 1), (2, 2))
    merge = late.merge(change, on=["k"]).when_not_matched_insert_all()
    with pytest.raises(ValidationError):
        late.upsert(change, ["k"]) if command == "upsert" else merge.execute()
    assert pairs(table) == [(5, 5)]
    late = lake.load_table("db.t")
    table.append(frame((7, 7)))
    late.upsert(change, ["k"])
    assert pairs(table) == [(1, 1), (2, 2), (5, 5), (7, 7)]


def test_a_row_that_was_there_for_an_upsert_may_go_under_snapshot_isolation(lake):
    properties = {"format-version": "2", "write.merge.isolation-level": "snapshot"}
    table = lake.create_table("db.t", NUMBERS, properties=properties)
    table.append(frame((1, 1), (5, 5)))
    late = lake.load_table("db.t")
    table.delete("k <= 2")
    late.upsert(frame((1, 1), (2, 2)), ["k"])
    assert pairs(table) == [(2, 2), (5, 5)]


def test_a_table_that_was_replaced_meanwhile_is_refused(lake):
    table = lake.create_table("db.t", NUMBERS, properties={"format-version": "2"})
    table.append(frame((1, 1), (5, 5)))
    late = [lake.load_table("db.t") for _ in range(4)]
    lake.replace_table("db.t", NUMBERS)
    with pytest.raises(ValidationError, match="history"):
        late[0].upsert(frame((1, 1), (2, 2)), ["k"])
    with pytest.raises(ValidationError):
        late[1].delete("k = 1")
    assert pairs(table) == []
    # what depends on no row is added to the table as it is
    late[2].append(frame((3, 3)))
    assert pairs(table) == [(3, 3)]
    lake.replace_table("db.t", pa.schema([("k", pa.string())]))
    with pytest.raises(ValidationError, match="column 'k'"):
        late[3].append(frame((4, 4)))
    assert table.refresh().scan().to_arrow().to_pylist() == []


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("existed", [False, True])
def test_rows_that_others_delete_stay_away_from_a_branch_that_a_transaction_creates(
    lake, mode, existed
):
    """The branch begins where `main` is at the commit: changes of rows were not made on that."""
    table = lake.create_table("db.t", NUMBERS, properties={"format-version": "2"})
    table.append(frame((1, 1), (2, 2), (3, 3)))
    if existed:
        table.append(frame((8, 8)), branch="work")
    late = lake.load_table("db.t").transaction()
    if existed:
        late.manage_snapshots().remove_branch("work").commit()
    late.set_properties({"write.delete.mode": mode})
    late.append(frame((5, 5)), branch="work")
    late.delete("k = 1 or k = 9", branch="work")
    table.append(frame((9, 9)))
    with table.transaction() as other:
        other.set_properties({"write.delete.mode": "merge-on-read"})
        other.delete("k = 2")
    with pytest.raises(CommitFailedError, match="changed its rows twice"):
        late.commit_transaction()
    assert pairs(table) == [(1, 1), (3, 3), (9, 9)]
    assert ("work" in table.refs()) is existed


def test_what_a_transaction_does_to_a_branch_that_it_creates_is_repeated(lake):
    table = lake.create_table("db.t", NUMBERS, properties={"format-version": "2"})
    table.append(frame((1, 1), (2, 2), (3, 3)))
    late = lake.load_table("db.t").transaction()
    late.append(frame((5, 5)), branch="work")
    late.delete("k = 1", branch="work")
    table.append(frame((9, 9)), branch="other")
    late.commit_transaction()
    found = table.refresh().scan(ref="work").to_arrow().to_pylist()
    assert sorted(row["k"] for row in found) == [2, 3, 5]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_nulls_in_a_column_that_others_made_required_are_refused(lake, tmp_path, file_format):
    table = lake.create_table("db.t", NUMBERS, properties={"write.format.default": file_format})
    table.append(frame((1, 1), (2, 2), (3, 3)))
    late = [lake.load_table("db.t") for _ in range(6)]
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.update_column("v", required=True)
    for write in (
        lambda: late[0].append(frame((4, None))),
        lambda: late[1].upsert(frame((1, None)), ["k"]),
        lambda: late[2].overwrite(frame((4, None)), "k = 1"),
    ):
        with pytest.raises(ValidationError, match="column 'v' is required now"):
            write()
    pq.write_table(frame((4, None)), tmp_path / "x.parquet")
    with pytest.raises(ValidationError, match="column 'v' is required"):
        late[3].add_files([str(tmp_path / "x.parquet")])
    late[4].append(frame((4, 4)))
    late[5].delete("k = 2")
    assert pairs(table) == [(1, 1), (3, 3), (4, 4)]


def swap_names(table) -> None:
    """What was called ``k`` is ``v``, and the other way round."""
    for old, new in ("k", "was_k"), ("v", "k"), ("was_k", "v"):
        with table.update_schema() as change:
            change.rename_column(old, new)


def test_a_row_filter_stays_with_its_columns_when_others_swap_their_names(lake):
    table = lake.create_table("db.swapped", NUMBERS)
    for row in (1, 2), (2, 1):
        table.append(frame(row))
    change = OverwriteFiles(table.io).overwrite_by_row_filter("k = 1")
    swap_names(lake.load_table("db.swapped"))
    table.commit(change)
    [left] = table.refresh().scan().to_arrow().to_pylist()
    assert left == {"v": 2, "k": 1}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("added", [(1, 9), (9, 1)])
def test_conflicts_are_looked_for_in_the_columns_that_a_delete_named(lake, mode, added):
    properties = {"format-version": "2", "write.delete.mode": mode}
    table = lake.create_table(f"db.named_{mode[0]}{added[0]}", NUMBERS, properties=properties)
    table.append(frame((1, 2), (2, 1)))
    other = lake.load_table(table.identifier)
    swap_names(other)
    other.append(frame(added).rename_columns(["v", "k"]))
    if added[0] == 1:
        with pytest.raises(ValidationError, match="can contain records matching v = 1"):
            table.delete("k = 1")
    else:
        table.delete("k = 1")
    left = table.refresh().scan(selected_fields=("v", "k")).to_arrow()
    # the row that is asked for goes where nothing contradicts that
    rows = {(1, 2), (2, 1), added} if added[0] == 1 else {(2, 1), added}
    assert set(zip(left["v"].to_pylist(), left["k"].to_pylist(), strict=True)) == rows


def test_a_row_filter_whose_column_is_gone_is_refused(lake):
    table = lake.create_table("db.gone", NUMBERS)
    table.append(frame((1, 2)))
    change = OverwriteFiles(table.io).overwrite_by_row_filter("K = 1")
    other = lake.load_table("db.gone")
    with other.update_schema() as update:
        update.delete_column("k")
    with other.update_schema() as update:
        update.add_column("K", "long")
    with pytest.raises(ExpressionError, match="Cannot find column 'K'"):
        table.commit(change)
    change = OverwriteFiles(table.io, case_sensitive=False).overwrite_by_row_filter("K = 1")
    with pytest.raises(ExpressionError, match=r"Column K, .* was dropped meanwhile"):
        table.commit(change)
    assert other.refresh().scan().count() == 1


def test_a_refusal_names_the_commits_that_were_first_and_their_files(lake):
    table = lake.create_table("db.first", NUMBERS)
    table.append(frame((1, 1)))
    others = lake.load_table("db.first")
    made = {"engine-name": "spark", "engine-version": "4.3.0", "app-id": "nightly-7"}
    with others.transaction() as several:
        for value in range(5):
            several.append(frame((1, value)), made)
    others.append(frame((7, 7)))
    with pytest.raises(ValidationError) as refused:
        table.delete("k = 1")
    snapshots = others.snapshots()[1:6]
    first = snapshots[0]
    paths = {task.file.file_path for task in others.scan("k = 1").plan_files()} - {
        task.file.file_path for task in table.scan().plan_files()
    }
    message, context = refused.value.message, refused.value.context
    assert message.startswith("Found conflicting files that can contain records matching k = 1: ")
    assert f"snapshot {first.snapshot_id} (append, " in message
    when = dt.datetime.fromtimestamp(first.timestamp_ms // 1000, dt.timezone.utc)
    assert f"{when:%Y-%m-%d %H:%M:%S} UTC, spark 4.3.0, application nightly-7), 1 file: " in message
    assert message.endswith("; 2 more commits: 2 files")
    assert context["snapshot_ids"] == tuple(each.snapshot_id for each in snapshots)
    assert context["file_count"] == 5
    assert context["path"] in paths
    assert "repeat the change" in str(refused.value.hint)


def test_a_refusal_says_who_removed_the_files_that_a_change_replaces(lake):
    table = lake.create_table("db.removed", NUMBERS)
    for value in range(5):
        table.append(frame((1, value)))
    others = lake.load_table("db.removed")
    stale = lake.load_table("db.removed")
    others.delete("v < 4")
    remover = others.current_snapshot()
    with pytest.raises(ValidationError) as refused:
        stale.overwrite(frame((2, 2)))
    removed = sorted(t.file.file_path for t in stale.scan("v < 4").plan_files())
    assert refused.value.context["snapshot_ids"] == (remover.snapshot_id,)
    assert f"snapshot {remover.snapshot_id} (delete, " in refused.value.message
    assert f"4 files: {', '.join(removed[:3])} and 1 more" in refused.value.message
    assert pairs(table) == [(1, 4)]


def test_a_row_that_was_not_there_is_not_in_a_branch_that_a_transaction_begins_again(lake):
    table = lake.create_table("db.t", NUMBERS, properties={"format-version": "2"})
    table.append(frame((1, 1)))
    table.append(frame((8, 8)), branch="work")
    late = lake.load_table("db.t").transaction()
    late.manage_snapshots().remove_branch("work").commit()
    late.append(frame((5, 5)), branch="work")
    late.delete("k = 9", branch="work")
    table.append(frame((9, 9)))
    with pytest.raises(ValidationError, match="can contain records matching k = 9"):
        late.commit_transaction()
