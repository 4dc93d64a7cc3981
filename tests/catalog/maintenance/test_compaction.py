"""Data files are rewritten: the same rows, whoever writes to the table meanwhile."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from agreed_rows import rows
from maintained_table import (
    ALL,
    SCHEMA,
    RandomTable,
    assert_numbers,
    data_on_disk,
    delete_by_value,
    files,
    frame,
    in_order,
    new_table,
    tasks,
)

from icecomb.format.errors import (
    CommitFailedError,
    ConfigurationError,
    CorruptFileError,
    IcecombError,
    NoSuchSnapshotError,
    ValidationError,
)
from icecomb.format.maintenance import file_rewriter
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.rows.write import data_writer


def test_small_files_become_one_with_their_rows_in_order(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)))
    before = in_order(table)
    result = table.maintenance.rewrite_data_files()
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 1)
    assert in_order(table) == before
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in before)
    snapshot = table.current_snapshot()
    assert snapshot.summary["operation"] == "replace"
    assert snapshot.summary["total-records"] == "12"
    assert result.rewritten_bytes_count == int(snapshot.summary["removed-files-size"])


def test_fewer_files_than_min_input_files_are_left_alone(lake):
    table = new_table(lake, *(frame(n) for n in range(4)))
    state = table.metadata_location
    assert table.maintenance.rewrite_data_files().rewritten_data_files_count == 0
    assert table.refresh().metadata_location == state
    options = {"min-input-files": "4"}
    assert table.maintenance.rewrite_data_files(options=options).added_data_files_count == 1


def test_a_table_without_a_snapshot_is_left_alone(lake):
    table = new_table(lake)
    assert table.maintenance.rewrite_data_files(options=ALL).rewritten_data_files_count == 0
    assert table.current_snapshot() is None


def test_a_dry_run_tells_the_groups_and_changes_nothing(lake):
    table = new_table(lake, frame(1, 2), frame(1, 3), frame(2), by="identity")
    state, disk = table.metadata_location, data_on_disk(table)
    result = table.maintenance.rewrite_data_files(options={"min-input-files": "2"}, dry_run=True)
    told = {(g.partition, g.files, g.rows, g.expected_files) for g in result.plan}
    assert told == {("p=1", 2, 2, 1), ("p=2", 2, 2, 1)}
    assert result.rewritten_data_files_count == 0
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)


def test_deleted_rows_are_gone_and_so_are_their_delete_files(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6))
    table.delete("id = 2")
    delete_by_value(table, 5)
    assert [len(task.delete_files) for task in tasks(table)] == [1, 1]
    options = {**ALL, "remove-dangling-deletes": "true"}
    result = table.maintenance.rewrite_data_files(options=options)
    assert sorted(in_order(table)) == [1, 3, 4, 6]
    assert sum(file.record_count for file in files(table)) == 4
    left = [m for m in manifests(table) if m.has_live_files() and m.content.name == "DELETES"]
    assert left == []
    assert result.removed_delete_files_count in {0, 2}  # the commit itself drops what it can


def manifests(table):
    return read_manifests(table.io, table.refresh().current_snapshot())


def test_files_with_many_deletes_are_rewritten_whatever_their_size(lake):
    table = new_table(lake, frame(*range(10)), **{"write.target-file-size-bytes": "100"})
    size = files(table)[0].file_size_in_bytes
    sizes = {"target-file-size-bytes": str(size), "min-file-size-bytes": "1"}
    table.delete("id < 2")
    assert table.maintenance.rewrite_data_files(options=sizes).rewritten_data_files_count == 0
    threshold = {**sizes, "delete-file-threshold": "1"}
    plan = table.maintenance.rewrite_data_files(options=threshold, dry_run=True).plan
    assert [(group.files, group.delete_files) for group in plan] == [(1, 1)]
    table.delete("id < 3")  # three of ten rows
    assert table.maintenance.rewrite_data_files(options=sizes).rewritten_data_files_count == 1
    assert in_order(table) == [3, 4, 5, 6, 7, 8, 9]


def test_a_filter_says_which_files_and_never_which_rows(lake):
    table = new_table(lake, frame(1, 2), frame(2, 3), frame(8, 9))
    result = table.maintenance.rewrite_data_files(where="id = 2", options={"min-input-files": "2"})
    assert result.rewritten_data_files_count == 2
    assert sorted(in_order(table)) == [1, 2, 2, 3, 8, 9]


def test_files_of_an_older_spec_come_into_the_partitions_of_now(lake):
    table = new_table(lake, frame(1, 2), frame(2, 3))
    with table.update_spec() as update:
        update.add_field("id", "identity", "p")
    table.append(frame(1, 3))
    result = table.maintenance.rewrite_data_files(options={"min-input-files": "2"})
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (2, 3)
    assert {file.spec_id for file in files(table)} == {1}
    assert {file.partition for file in files(table)} == {(1,), (2,), (3,)}
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in (1, 2, 2, 3, 1, 3))


def test_an_output_spec_may_be_an_older_one(lake):
    table = new_table(lake, frame(1, 2))
    with table.update_spec() as update:
        update.add_field("id", "identity", "p")
    table.append(frame(1, 3))
    table.maintenance.rewrite_data_files(options={**ALL, "output-spec-id": "0"})
    assert {file.spec_id for file in files(table)} == {0}
    assert sorted(in_order(table)) == [1, 1, 2, 3]
    with pytest.raises(ValidationError, match="no partition spec 7"):
        table.maintenance.rewrite_data_files(options={**ALL, "output-spec-id": "7"})


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_of_any_format_come_into_the_table_s_own(lake, file_format):
    table = new_table(lake, frame(1), frame(2), **{"write.format.default": file_format})
    with table.update_properties() as update:
        update.set("write.format.default", "parquet")
    table.maintenance.rewrite_data_files(options=ALL)
    assert {file.file_format.name for file in files(table)} == {"PARQUET"}
    assert sorted(rows(table)) == [(1, "s1"), (2, "s2")]


def test_rows_are_sorted_by_the_order_that_is_given(lake):
    table = new_table(lake, frame(3, 1), frame(5, 2), frame(4))
    table.maintenance.rewrite_data_files(sort_order="id DESC", options=ALL)
    assert in_order(table) == [5, 4, 3, 2, 1]
    assert {file.sort_order_id for file in files(table)} == {0}
    with pytest.raises(ValidationError, match="no sort order that can be followed"):
        table.maintenance.rewrite_data_files(strategy="sort", options=ALL)
    with table.update_sort_order() as update:
        update.asc("s")
    table.maintenance.rewrite_data_files(strategy="sort", options=ALL)
    assert in_order(table) == [1, 2, 3, 4, 5]
    assert {file.sort_order_id for file in files(table)} == {1}


def test_a_z_order_keeps_all_rows_and_near_ones_together(lake):
    schema = pa.schema([("x", pa.int32()), ("y", pa.float64()), ("t", pa.string())])
    values = [(x, float(y), str(x)) for x in range(-8, 8) for y in range(-8, 8)]
    Random(1).shuffle(values)
    columns = [pa.array(c, f.type) for c, f in zip(zip(*values, strict=True), schema, strict=True)]
    table = lake.create_table("db.z", schema)
    table.append(pa.table(columns, schema))
    table.maintenance.rewrite_data_files(sort_order="zorder(x, y)", options=ALL)
    found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(found) == sorted(values)
    quarters = [{(x < 0, y < 0) for x, y, _ in found[at : at + 64]} for at in range(0, 256, 64)]
    assert all(len(quarter) == 1 for quarter in quarters)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"options": {"min-input-file": "1"}}, "no option min-input-file"),
        ({"options": {"min-file-size-bytes": "600000000"}}, "not less than"),
        ({"options": {"max-file-size-bytes": "5"}}, "not more than"),
        ({"options": {"compression-factor": "2"}}, "no option compression-factor"),
        ({"strategy": "best"}, "no strategy 'best'"),
        ({"strategy": "binpack", "sort_order": "id"}, "does not take a sort_order"),
        ({"sort_order": "nothing"}, "nothing"),
        ({"sort_order": "id DESC,"}, "a column's name is missing"),
        ({"sort_order": "id NULLS"}, "FIRST or LAST"),
        ({"sort_order": "bucket(s)"}, "bucket"),
        ({"sort_order": "zorder(id), s"}, "unexpected"),
        ({"sort_order": "zorder()"}, "a column's name is missing"),
        ({"branch": "gone"}, "no branch or tag 'gone'"),
        ({"branch": "old"}, "is a tag"),
        ({"where": "z = 1"}, "z"),
    ],
)
def test_what_is_of_no_use_is_refused_before_any_work(lake, given, problem):
    table = new_table(lake, frame(1), frame(2))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "old").commit()
    state, disk = table.metadata_location, data_on_disk(table)
    with pytest.raises((ValidationError, NoSuchSnapshotError, IcecombError), match=problem):
        table.maintenance.rewrite_data_files(**{"options": ALL, **given})
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rewrite-all", "yes"),
        ("delete-ratio-threshold", "0"),
        ("delete-ratio-threshold", "1.5"),
        ("rewrite-job-order", "best"),
        ("max-concurrent-file-group-rewrites", "0"),
        ("partial-progress.max-commits", "0"),
    ],
)
def test_options_that_make_no_sense_are_refused(lake, option, value):
    table = new_table(lake, frame(1))
    with pytest.raises(ConfigurationError, match=option):
        table.maintenance.rewrite_data_files(options={option: value})


def test_rows_that_others_delete_meanwhile_stay_deleted(lake, meanwhile):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6))
    table.delete("id = 1")
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id = 3 or id = 6"))
    result = table.maintenance.rewrite_data_files(options=ALL)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (2, 0)
    assert sorted(in_order(table)) == [2, 4, 5]
    assert sorted(rows(table)) == [(2, "s2"), (4, "s4"), (5, "s5")]
    (task,) = tasks(table)
    assert [d.content for d in task.delete_files] == [DataFileContent.POSITION_DELETES]
    assert [s.summary["operation"] for s in table.snapshots()][-1] == "replace"


@pytest.mark.parametrize("order", [None, "id DESC", "zorder(id, s)"])
def test_they_are_found_wherever_sorting_has_put_them(lake, meanwhile, order):
    values = list(range(400))
    Random(7).shuffle(values)
    parts = [frame(*values[at : at + 100]) for at in range(0, 400, 100)]
    table = new_table(lake, *parts)
    table.delete("id >= 10 and id < 30")
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id >= 20 and id < 70 or id = 399"))
    table.maintenance.rewrite_data_files(sort_order=order, options=ALL)
    kept = [n for n in range(399) if not 10 <= n < 70]
    assert sorted(in_order(table)) == kept
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in kept)


@pytest.mark.parametrize("run_rows", [1, 30, 100, 1 << 17])
def test_files_are_read_many_at_a_time_and_their_rows_stay_what_they_are(
    lake, meanwhile, monkeypatch, run_rows
):
    monkeypatch.setattr(file_rewriter, "RUN_ROWS", run_rows)
    monkeypatch.setattr(data_writer, "PIECE_ROWS", 17)
    starts = [0, 1, 3, 10, 40, 41, 90, 91, 92, 93, 200]
    table = new_table(lake, *(frame(*range(a, b)) for a, b in pairwise(starts)))
    table.delete("id >= 30 and id < 45 or id = 150")
    before = [n for n in in_order(table) if n not in {1, 60, 92, 199}]
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id in (1, 60, 92, 199)"))
    result = table.maintenance.rewrite_data_files(options=ALL)
    assert (result.added_data_files_count, result.failed_data_files_count) == (1, 0)
    assert in_order(table) == before
    assert sorted(rows(table)) == [(n, f"s{n}") for n in sorted(before)]


def test_values_that_others_delete_meanwhile_stay_deleted_and_later_rows_are_kept(lake, meanwhile):
    table = new_table(lake, frame(1, 2), frame(3, 4))
    other = lake.load_table("db.t")

    def change() -> None:
        delete_by_value(other, 3)
        other.append(frame(3))

    meanwhile(change)
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [1, 2, 3, 4]
    assert len(tasks(table)) == 2


def test_without_the_starting_sequence_number_such_a_group_is_rewritten_again(lake, meanwhile):
    table = new_table(lake, frame(1, 2), frame(3, 4))
    other = lake.load_table("db.t")
    meanwhile(lambda: delete_by_value(other, 3))
    options = {**ALL, "use-starting-sequence-number": "false"}
    result = table.maintenance.rewrite_data_files(options=options)
    assert result.rewritten_data_files_count == 2
    assert sorted(in_order(table)) == [1, 2, 4]
    assert sum(file.record_count for file in files(table)) == 3


def test_rows_of_a_file_that_others_rewrote_are_there_once(lake, meanwhile):
    table = new_table(lake, *(frame(*range(n, n + 10)) for n in range(0, 100, 10)))
    other = lake.load_table("db.t")

    def copy_on_write() -> None:
        with other.refresh().transaction() as transaction:
            transaction.set_properties({"write.delete.mode": "copy-on-write"})
            transaction.delete("id = 15 or id >= 90")

    meanwhile(copy_on_write)
    result = table.maintenance.rewrite_data_files(options=ALL)
    kept = [n for n in range(90) if n != 15]
    assert sorted(in_order(table)) == kept
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in kept)
    assert result.failed_data_files_count == 0


def test_a_group_most_of_which_others_removed_is_rewritten_again(lake, meanwhile):
    table = new_table(lake, frame(1), frame(2), frame(3))
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id = 2"))
    result = table.maintenance.rewrite_data_files(options=ALL)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (2, 1)
    assert sorted(in_order(table)) == [1, 3]
    assert {str(file.file_path).removeprefix("file:") for file in files(table)} < data_on_disk(
        table
    )


def test_a_group_all_of_which_others_removed_is_done(lake, meanwhile):
    table = new_table(lake, frame(1), frame(2))
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id > 0"))
    result = table.maintenance.rewrite_data_files(options=ALL)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (0, 0)
    assert in_order(table) == []


def test_who_compacts_at_the_same_time_doubles_nothing(lake, meanwhile):
    table = new_table(lake, *(frame(n) for n in range(5)))
    other = lake.load_table("db.t")
    second = other.maintenance.rewrite_data_files
    meanwhile(lambda: second(options=ALL))
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [0, 1, 2, 3, 4]


def test_files_that_change_each_time_fail_in_the_end_with_nothing_left_behind(lake, meanwhile):
    table = new_table(lake, frame(1), frame(2))
    other = lake.load_table("db.t")

    meanwhile(*[lambda: delete_by_value(other, 7)] * 3)
    options = {**ALL, "use-starting-sequence-number": "false"}
    disk = data_on_disk(table)
    with pytest.raises(CommitFailedError, match="others changed the files each time"):
        table.maintenance.rewrite_data_files(options=options)
    assert sorted(in_order(table)) == [1, 2]
    assert {path for path in data_on_disk(table) - disk if "deletes" not in path} == set()


def test_a_rollback_meanwhile_brings_no_rows_back_and_takes_none(lake, meanwhile):
    table = new_table(lake, frame(1, 2), frame(3))
    before = table.current_snapshot().snapshot_id
    table.delete("id = 1")
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().manage_snapshots().rollback_to_snapshot(before).commit())
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [1, 2, 3]


def test_partial_progress_commits_what_succeeds_and_counts_what_does_not(lake):
    table = new_table(lake, *(frame(1, 2, 3) for _ in range(2)), by="identity")
    broken = next(f for f in files(table) if f.partition == (2,))
    Path(broken.file_path.removeprefix("file:")).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptFileError):
        table.maintenance.rewrite_data_files(options=ALL)
    options = {**ALL, "partial-progress.enabled": "true", "partial-progress.max-commits": "3"}
    state = len(table.refresh().snapshots())
    result = table.maintenance.rewrite_data_files(options=options)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (4, 2)
    assert result.failed_data_files_count == 2
    assert len(table.refresh().snapshots()) == state + 2


def test_a_damaged_file_is_named_and_nothing_is_left_behind(lake):
    table = new_table(lake, frame(1), frame(2), frame(3), by="identity")
    broken = files(table)[1].file_path
    Path(broken.removeprefix("file:")).write_bytes(b"PAR1 nothing PAR1")
    state, disk = table.metadata_location, data_on_disk(table)
    with pytest.raises(CorruptFileError, match=Path(broken).name):
        table.maintenance.rewrite_data_files(options={**ALL})
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)


def test_a_file_with_fewer_rows_than_its_manifest_says_is_not_replaced(lake):
    table = new_table(lake, frame(1, 2), frame(3))
    other = lake.create_table("db.other", SCHEMA)
    other.append(frame(1))
    short = Path(files(other)[0].file_path.removeprefix("file:")).read_bytes()
    victim = next(f for f in files(table) if f.record_count == 2).file_path
    Path(victim.removeprefix("file:")).write_bytes(short)
    with pytest.raises(IcecombError):
        table.maintenance.rewrite_data_files(options=ALL)
    assert len(table.refresh().snapshots()) == 2


def test_branches_are_rewritten_by_themselves(lake):
    table = new_table(lake, frame(1), frame(2))
    table.append(frame(3), branch="b")
    result = table.maintenance.rewrite_data_files(branch="b", options=ALL)
    assert result.rewritten_data_files_count == 3
    assert len(files(table)) == 2
    assert sorted(table.scan(ref="b").to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_the_most_files_and_the_order_of_groups_are_kept_to(lake):
    table = new_table(lake, frame(1, 2), frame(1), frame(1), by="identity")
    plan = table.maintenance.rewrite_data_files(
        options={**ALL, "rewrite-job-order": "files-asc"}, dry_run=True
    ).plan
    assert [group.files for group in plan] == [1, 3]
    options = {**ALL, "rewrite-job-order": "files-desc", "max-files-to-rewrite": "2"}
    plan = table.maintenance.rewrite_data_files(options=options, dry_run=True).plan
    assert [(group.partition, group.files) for group in plan] == [("p=1", 2)]
    options = {**ALL, "max-file-group-input-files": "2"}
    plan = table.maintenance.rewrite_data_files(options=options, dry_run=True).plan
    assert [group.files for group in plan] == [2, 1, 1]


def test_large_files_become_files_of_about_the_target_size(lake):
    random = Random(3)
    parts = [[random.getrandbits(62) for _ in range(400_000)] for _ in range(3)]
    table = lake.create_table("db.large", pa.schema([("id", pa.int64())]))
    for part in parts:
        table.append(pa.table({"id": part}))
    before, size = in_order(table), sum(file.file_size_in_bytes for file in files(table))
    options = {"target-file-size-bytes": str(size // 5), **ALL}
    table.maintenance.rewrite_data_files(options=options)
    found = [file.file_size_in_bytes for file in files(table)]
    assert in_order(table) == before
    assert 5 <= len(found) <= 6
    assert max(found) <= size / 5 * 1.4


def test_required_columns_stay_so(lake):
    inner = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", inner)])
    table = lake.create_table("db.required", schema)
    for n in range(3):
        table.append(pa.table([[n], [{"a": n}]], schema))
    table.maintenance.rewrite_data_files(options=ALL)
    assert (sorted(in_order(table)), len(files(table))) == ([0, 1, 2], 1)
    assert rows(table) == [(n, {"a": n}) for n in range(3)]


def test_a_table_of_version_1_is_rewritten_too(lake):
    table = lake.create_table("db.one", SCHEMA, properties={"format-version": "1"})
    for n in range(3):
        table.append(frame(n))
    table.maintenance.rewrite_data_files(options=ALL)
    assert (sorted(in_order(table)), len(files(table))) == ([0, 1, 2], 1)


@pytest.mark.seeds(50, gate=10)
def test_whatever_others_do_meanwhile_rows_stay_as_they_make_them(lake, seed, meanwhile):
    random = Random(seed)
    changed = RandomTable(lake, random)
    changed.change(random.randint(1, 4))
    meanwhile(*[lambda: changed.change(random.randint(0, 2))] * 4)
    for _ in range(2):
        options = {
            **ALL,
            "partial-progress.enabled": random.choice(["true", "false"]),
            "max-file-group-input-files": random.choice(["1", "2", "100"]),
            "use-starting-sequence-number": random.choice(["true", "true", "false"]),
            "remove-dangling-deletes": random.choice(["true", "false"]),
        }
        order = random.choice([None, "k DESC, s", "zorder(k, u)"])
        changed.told.append(f"compaction {order} {options}")
        try:
            changed.load().maintenance.rewrite_data_files(sort_order=order, options=options)
        except CommitFailedError as error:
            changed.told.append(f"refused: {error}")
        changed.check()
        changed.change(1)
    assert_numbers(changed.load())
