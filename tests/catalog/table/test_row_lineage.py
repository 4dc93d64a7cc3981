"""Rows keep their ids through every operation on a table of format version 3 (spec: Row Lineage)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    ConflictError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.maintenance.file_rewriter import FileRewriter
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.transform import parse_transform
from tests.rings import sampled

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
LINEAGE = ("_row_id", "_last_updated_sequence_number")
BY_S = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("truncate[1]"), "s1"),))
ALL = {"rewrite-all": "true"}
N = None


def frame(*rows) -> pa.Table:
    numbers, texts = zip(*rows, strict=True) if rows else ((), ())
    return pa.table([pa.array(numbers, pa.int64()), pa.array(texts, pa.string())], schema=SCHEMA)


def new_table(lake, *parts, spec=None, version="3", **properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    given["format-version"] = version
    table = lake.create_table("db.t", SCHEMA, partition_spec=spec, properties=given)
    for part in parts:
        table.append(frame(*part))
    return table


def lineage(table, **more) -> dict:
    """The row id and the number of the last update, by the row."""
    found = table.scan(selected_fields=("id", "s", *LINEAGE), **more).to_arrow().to_pydict()
    rows = list(zip(*found.values(), strict=True))
    assert len({row[:2] for row in rows}) == len(rows)
    return {f"{number}{text}": (own, updated) for number, text, own, updated in rows}


def physical(table) -> list[list[str]]:
    """The columns of each data file."""
    return sorted(pq.read_schema(task.file.file_path).names for task in table.scan().plan_files())


STORIES = [
    ("parquet", "copy-on-write"),
    ("avro", "copy-on-write"),
    ("avro", "merge-on-read"),
    ("orc", "copy-on-write"),
    ("parquet", "merge-on-read"),
    ("orc", "merge-on-read"),
]


@pytest.mark.parametrize(("file_format", "mode"), sampled(STORIES, keep=4))
def test_rows_keep_their_ids_and_updates_are_numbered(lake, file_format, mode):
    table = new_table(lake, [(0, "a"), (1, "b"), (2, "c")], [(3, "d"), (4, "e")])
    with table.update_properties() as update:
        for command in ("delete", "merge"):
            update.set(f"write.{command}.mode", mode)
        update.set("write.format.default", file_format)
    kept = {"0a": (0, 1), "1b": (1, 1), "2c": (2, 1), "3d": (3, 2), "4e": (4, 2)}
    assert lineage(table) == kept
    table.delete("id = 1")
    del kept["1b"]
    assert lineage(table) == kept
    table.upsert(frame((0, "a"), (2, "C"), (5, "f")), ["id"])
    new, _ = lineage(table)["5f"]
    del kept["2c"]
    kept |= {"2C": (2, 4), "5f": (new, 4)}
    assert lineage(table) == kept
    assert new >= 5
    (
        table.merge(frame((3, "D"), (4, "gone"), (6, "g")), ["id"])
        .when_matched_delete("s.s = 'gone'")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    newer, _ = lineage(table)["6g"]
    del kept["3d"], kept["4e"]
    kept |= {"3D": (3, 5), "6g": (newer, 5)}
    assert lineage(table) == kept
    assert newer > new
    (
        table.merge(frame((0, "a")), ["id"])
        .when_not_matched_by_source_update({"s": "t.s || '!'"}, "t.id = 2")
        .execute()
    )
    del kept["2C"]
    kept |= {"2C!": (2, 6)}
    assert lineage(table) == kept
    table.overwrite(frame((7, "h")), "id in (0, 6)")
    newest, _ = lineage(table)["7h"]
    del kept["0a"], kept["6g"]
    kept |= {"7h": (newest, 7)}
    assert lineage(table) == kept
    assert newest > newer
    table.maintenance.rewrite_data_files(options=ALL)
    assert lineage(table.refresh()) == kept
    table.append(frame((8, "i")))
    last, _ = lineage(table).pop("8i")
    assert last >= max(own for own, _ in kept.values())


REWRITES = {
    "binpack": {},
    "binpack of small groups": {"max-file-group-input-files": "2"},
    "sort": {"strategy": "sort", "sort_order": "s desc"},
    "z-order": {"strategy": "sort", "sort_order": "zorder(id, s)"},
}


REWRITTEN = [
    ("binpack", BY_S),
    ("binpack", UNPARTITIONED_PARTITION_SPEC),
    ("binpack of small groups", UNPARTITIONED_PARTITION_SPEC),
    ("binpack of small groups", BY_S),
    ("sort", BY_S),
    ("sort", UNPARTITIONED_PARTITION_SPEC),
    ("z-order", UNPARTITIONED_PARTITION_SPEC),
    ("z-order", BY_S),
]


@pytest.mark.parametrize(("rewrite", "spec"), sampled(REWRITTEN, keep=4))
def test_rewrites_keep_ids_and_ages(lake, rewrite, spec):
    parts = [[(n, "abc"[n % 3]) for n in range(first, first + 5)] for first in range(0, 30, 5)]
    table = new_table(lake, *parts, spec=spec)
    before = lineage(table)
    assert {own for own, _ in before.values()} == set(range(30))
    table.delete("id in (3, 17)")
    del before["3a"], before["17c"]
    assert lineage(table) == before
    given = dict(REWRITES[rewrite])
    more = {key: given.pop(key) for key in ("strategy", "sort_order") if key in given}
    table.maintenance.rewrite_data_files(options={**ALL, **given}, **more)
    table = table.refresh()
    assert lineage(table) == before
    assert {name for names in physical(table) for name in names} == {"id", "s", *LINEAGE}


def test_files_of_new_rows_have_no_lineage_and_others_have_it_behind_the_columns(lake):
    table = new_table(lake, [(0, "a"), (1, "b")], [(2, "c")])
    assert physical(table) == [["id", "s"], ["id", "s"]]
    table.upsert(frame((3, "d")), ["id"])
    assert physical(table) == [["id", "s"]] * 3
    table.delete("id = 0")
    assert physical(table) == [["id", "s"], ["id", "s"], ["id", "s", *LINEAGE]]
    (moved,) = (
        entry.data_file
        for manifest in read_manifests(table.io, table.current_snapshot())
        for entry in read_manifest(table.io, manifest)
        if entry.is_live and 2147483540 in entry.data_file.value_counts
    )
    schema = pq.read_schema(moved.file_path)
    ids = [int(schema.field(i).metadata[b"PARQUET:field_id"]) for i in range(4)]
    assert ids == [1, 2, 2147483540, 2147483539]
    assert pq.read_table(moved.file_path).select(LINEAGE).to_pylist() == [
        {"_row_id": 1, "_last_updated_sequence_number": 1}
    ]
    # as Iceberg Java's writers
    assert moved.lower_bounds[2147483540] == moved.upper_bounds[2147483540] == b"\1" + b"\0" * 7
    assert moved.value_counts[2147483539] == 1


def test_scans_find_rows_by_their_ids(lake):
    table = new_table(lake, [(n, "a") for n in range(10)], [(n, "b") for n in range(10, 20)])
    table.upsert(frame((3, "A"), (15, "B"), (30, "new")), ["id"])
    assert table.scan("_row_id in (3, 4, 15)", ("id", "s")).to_arrow().to_pydict() == {
        "id": [4, 3, 15],
        "s": ["a", "A", "B"],
    }
    assert table.scan("_last_updated_sequence_number = 3").count() == 3
    assert table.scan("_row_id is null").count() == 0
    assert table.scan("_row_id < 5 and s = 'a'").count() == 4


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_deleted_and_replaced_by_their_lineage(lake, mode):
    parts = [(0, "a"), (1, "b"), (2, "c")], [(3, "d"), (4, "e")]
    table = new_table(lake, *parts, write_delete_mode=mode)
    # a file in which some rows state their ids and others inherit them
    table.upsert(frame((1, "B"), (4, "E"), (5, "f")), ["id"])
    kept = lineage(table)
    new, _ = kept["5f"]
    table.delete(f"_row_id = 1 or _row_id = {new}")
    del kept["1B"], kept["5f"]
    assert lineage(table) == kept == {"0a": (0, 1), "2c": (2, 1), "3d": (3, 2), "4E": (4, 3)}
    table.delete("_row_id > 90 or _row_id is null or _last_updated_sequence_number > 3")
    assert lineage(table) == kept
    table.delete("_last_updated_sequence_number = 2")
    table.overwrite(frame((9, "z")), "_row_id in (0, 3)")
    del kept["0a"], kept["3d"]
    assert lineage(table) == {**kept, "9z": (lineage(table)["9z"][0], 6)}
    table.delete("_row_id is not null")
    assert table.scan().count() == 0


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_without_ids_are_deleted_by_that(lake, mode):
    table = new_table(lake, [(0, "a"), (1, "b")], [(2, "c")], version="2", write_delete_mode=mode)
    with pytest.raises(UnsupportedError, match="no column _row_id: its format version is 2"):
        table.delete("_row_id = 0")
    with pytest.raises(UnsupportedError, match="no column _row_id: its format version is 2"):
        table.overwrite(frame((9, "z")), "_row_id = 0")
    upgrade(table)
    table.delete("_row_id = 0 or _last_updated_sequence_number > 0")
    table.delete("_row_id is null and id = 1")
    found = lineage(table)
    assert sorted(found) == ["0a", "2c"]
    table.delete("_row_id is null")
    assert lineage(table) == found
    table.delete(f"_row_id = {found['0a'][0]}")
    assert lineage(table) == {"2c": found["2c"]}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_delete_by_ids_loses_no_row_beside_other_writers(lake, mode):
    table = new_table(lake, [(0, "a"), (1, "b"), (2, "c")], write_delete_mode=mode)
    with table.update_properties() as update:
        update.set("write.merge.mode", mode)
    stale, pending = lake.load_table("db.t"), lake.load_table("db.t").transaction()
    pending.delete("_row_id = 2")
    table.upsert(frame((2, "C")), ["id"])
    # the row moved: whoever found it where it was is refused
    with pytest.raises(ConflictError):
        pending.commit_transaction()
    if mode == "copy-on-write":
        with pytest.raises(ConflictError):
            stale.delete("_row_id = 2")
        assert lineage(table.refresh()) == {"0a": (0, 1), "1b": (1, 1), "2C": (2, 2)}
        stale.refresh()
    stale.delete("_row_id = 2")
    assert lineage(table.refresh()) == {"0a": (0, 1), "1b": (1, 1)}
    with table.transaction() as both:
        both.append(frame((7, "x"), (8, "y")))
        given = both.metadata.snapshot_by_name("main").first_row_id
        both.delete(f"_row_id = {given + 1}", branch="main")
    assert sorted(lineage(table)) == ["0a", "1b", "7x"]


def test_a_delete_by_ids_on_a_branch_finds_the_ids_of_the_branch(lake):
    table = new_table(lake, [(0, "a"), (1, "b")])
    with table.manage_snapshots() as manage:
        manage.create_branch(table.metadata.current_snapshot_id, "old")
    table.append(frame((2, "c"), (3, "d")))
    table.append(frame((4, "x"), (5, "y")), branch="old")
    there = {row: own for row, (own, _) in lineage(table, ref="old").items()}
    table.delete(f"_row_id = {there['5y']}")
    assert sorted(lineage(table)) == ["0a", "1b", "2c", "3d"]
    table.delete(f"_row_id in ({there['5y']}, 0)", branch="old")
    assert sorted(lineage(table, ref="old")) == ["1b", "4x"]
    assert sorted(lineage(table)) == ["0a", "1b", "2c", "3d"]


def test_conflicts_of_a_delete_by_lineage_are_those_of_rows_that_may_match(lake):
    table = new_table(lake, [(0, "a"), (1, "b")])
    stale = lake.load_table("db.t")
    table.append(frame((2, "c")))
    with pytest.raises(ConflictError, match="can contain records matching _row_id = 1:"):
        stale.delete("_row_id = 1")
    with table.update_properties() as update:
        update.set("write.delete.isolation-level", "snapshot")
    stale = lake.load_table("db.t")
    table.append(frame((3, "d")))
    stale.delete("_row_id = 1")
    assert sorted(lineage(table.refresh())) == ["0a", "2c", "3d"]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_merge_finds_rows_by_their_lineage(lake, mode):
    table = new_table(lake, [(0, "a"), (1, "b"), (2, "c")], [(3, "d")], write_merge_mode=mode)
    rows = pa.table({"_row_id": [0, 2, 3, None, 99], "s": ["A", "gone", "D", "x", "x"]})
    (
        table.merge(rows, on="t._row_id = s._row_id")
        .when_matched_delete("s.s = 'gone'")
        .when_matched_update({"s": "s.s"}, "t._last_updated_sequence_number < 2")
        .execute()
    )
    assert lineage(table) == {"0A": (0, 3), "1b": (1, 1), "3d": (3, 2)}
    (
        table.merge(rows, on="t._row_id = s._row_id and t._last_updated_sequence_number = 2")
        .when_matched_update({"s": "s.s || t._row_id || t.s"})
        .when_not_matched_by_source_delete("t._row_id = 1")
        .execute()
    )
    assert lineage(table) == {"0A": (0, 3), "3D3d": (3, 4)}
    with pytest.raises(ValidationError, match="finds rows by columns of the table, not by _row_id"):
        table.upsert(rows, ["_row_id"])


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_of_one_entry_of_a_file_are_not_found_by_their_lineage(lake, tmp_path, mode):
    table = new_table(lake, write_delete_mode=mode, write_merge_mode=mode)
    file = str(tmp_path / "file.parquet")
    pq.write_table(frame((0, "a"), (1, "b"), (2, "c")), file)
    for _ in range(2):
        table.refresh().add_files([file], check_duplicate_files=False)
    rows = pa.table({"id": [1], "own": [4], "s": ["new"]})
    by_id = table.refresh().merge(rows, on="t._row_id = s.own")
    by_clause = table.merge(rows, ["id"])
    for change in (
        lambda: table.delete("_row_id = 4"),
        lambda: table.delete("id = 1 and _last_updated_sequence_number = 2"),
        lambda: by_id.when_matched_update({"s": "s.s"}).execute(),
        lambda: by_clause.when_matched_delete("t._row_id = 4").execute(),
    ):
        # a vector is about the rows of both entries, and a rewritten file is gone from both
        with pytest.raises(
            ValidationError, match=r"has it (more than once, and each entry|2 times)"
        ):
            change()
    assert table.refresh().scan().count() == 6
    table.delete("id = 1")
    assert table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist() == [0, 2, 0, 2]


def test_files_older_than_a_last_update_are_not_read(lake):
    table = new_table(lake, [(0, "a")], [(1, "b")], [(2, "c")])
    table.upsert(frame((0, "A")), ["id"])
    table.maintenance.rewrite_data_files(options=ALL)
    table.refresh().append(frame((3, "d"), (4, "e")))
    for number, files, rows in ((0, 2, 5), (4, 2, 3), (5, 2, 2), (6, 1, 2), (7, 0, 0)):
        scan = table.scan(f"_last_updated_sequence_number >= {number}")
        assert len(list(scan.plan_files())) == files
        assert scan.count() == rows
    assert table.scan("_last_updated_sequence_number in (2, 3)").count() == 2
    assert table.scan("_last_updated_sequence_number != 6").count() == 3
    assert table.scan("_last_updated_sequence_number is null").count() == 0


def test_ids_of_an_upgraded_table_begin_with_its_first_commit(lake):
    table = new_table(lake, [(0, "a"), (1, "b")], [(2, "c")], version="2")
    with pytest.raises(UnsupportedError, match="no column _row_id: its format version is 2"):
        table.scan(selected_fields=("_row_id",)).to_arrow()
    older = table.metadata.current_snapshot_id
    upgrade(table)
    assert lineage(table) == {"0a": (N, N), "1b": (N, N), "2c": (N, N)}
    table.delete("id = 0")
    found = lineage(table)
    assert sorted(found) == ["1b", "2c"]
    assert None not in {value for values in found.values() for value in values}
    assert found["1b"][1] == table.current_snapshot().sequence_number
    assert found["2c"][1] == 2
    table.maintenance.rewrite_data_files(options=ALL)
    assert lineage(table.refresh()) == found
    assert lineage(table, snapshot_id=older) == {"0a": (N, N), "1b": (N, N), "2c": (N, N)}


def upgrade(table) -> None:
    with table.update_properties() as update:
        update.set("format-version", "3")


@pytest.mark.parametrize("upgraded", ["before", "after"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_that_got_ids_meanwhile_are_not_moved_without(lake, upgraded, mode):
    table = new_table(lake, [(0, "a"), (1, "b")], version="2")
    with table.update_properties() as update:
        update.set("write.merge.mode", mode)
    if upgraded == "before":
        upgrade(table)
    stale = lake.load_table("db.t")
    if upgraded == "after":
        upgrade(table)
    table.append(frame((9, "z")))
    given = lineage(table)
    with pytest.raises(
        ConflictError, match=r"may have given ids to rows|upgraded to format version 3"
    ):
        stale.upsert(frame((1, "B")), ["id"])
    assert lineage(table.refresh()) == given
    stale.refresh().upsert(frame((1, "B")), ["id"])
    assert lineage(table.refresh())["1B"][0] == given["1b"][0]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_that_a_transaction_adds_and_moves_take_no_ids_of_other_branches(lake, mode):
    modes = {f"write_{command}_mode": mode for command in ("delete", "merge")}
    table = new_table(lake, [(0, "a"), (1, "b")], **modes)
    table.transaction().set_properties({"write.wap.enabled": "true"}).commit_transaction()
    transaction, twice = table.transaction(), table.transaction()
    transaction.append(frame((2, "c"), (3, "d")))
    transaction.upsert(frame((2, "C")), ["id"])
    for row in ((4, "e"), (5, "f")):
        twice.append(frame(row))
    # main stays as it is
    other = lake.load_table("db.t")
    other.append(frame((6, "g"), (7, "h")), {"wap.id": "later"})
    with pytest.raises(
        CommitFailedError, match="rows that it added and moved: other rows have them"
    ):
        transaction.commit_transaction()
    # what moves no rows is repeated
    twice.commit_transaction()
    table.refresh().publish_changes("later")
    found = lineage(table.refresh())
    assert found.keys() == {"0a", "1b", "4e", "5f", "6g", "7h"}
    assert len({own for own, _ in found.values()}) == len(found)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_delete_begins_again_where_rows_got_ids_meanwhile(lake, mode):
    table = new_table(lake, [(0, "a"), (1, "b")], version="2")
    with table.update_properties() as update:
        update.set("write.delete.mode", mode)
    stale = lake.load_table("db.t")
    upgrade(table)
    table.append(frame((9, "z")))
    given = lineage(table)
    stale.delete("id = 0")
    del given["0a"]
    assert lineage(table.refresh()) == given


def test_a_rewrite_begins_again_where_rows_got_ids_meanwhile(lake, monkeypatch):
    table = new_table(lake, [(0, "a")], [(1, "b")], version="2")
    given, rewrite = {}, FileRewriter.rewrite

    def overtaken(self, *arguments):
        done = rewrite(self, *arguments)
        if not given:
            others = lake.load_table("db.t")
            upgrade(others)
            others.append(frame((2, "c")))
            given.update(lineage(others))
        return done

    monkeypatch.setattr(FileRewriter, "rewrite", overtaken)
    result = table.maintenance.rewrite_data_files(options=ALL)
    assert result.rewritten_data_files_count == 2
    assert lineage(table.refresh()) == given


def test_copied_row_groups_state_the_ids_that_their_rows_inherited(lake):
    table = new_table(lake, [(0, "a"), (1, "b")], [(2, "c")], [(3, "d")])
    with table.update_properties() as update:
        update.set("icecomb.maintenance.copy-min-row-group-bytes", "0")
    copied = {**ALL, "copy": "require"}
    before = lineage(table)
    table.maintenance.rewrite_data_files(options=copied)
    assert lineage(table.refresh()) == before
    assert physical(table) == [["id", "s", *LINEAGE]]
    # now of several row groups
    table.append(frame((9, "z")))
    before = lineage(table)
    table.maintenance.rewrite_data_files(options=copied)
    assert lineage(table.refresh()) == before
    table.upsert(frame((1, "B"), (4, "e")), ["id"])
    table.append(frame((5, "f"), (6, "g")))
    # of files that state all ids, some or none
    after = lineage(table)
    table.maintenance.rewrite_data_files(options=copied)
    assert lineage(table.refresh()) == after
    (task,) = table.scan().plan_files()
    groups = pq.read_metadata(task.file.file_path)
    assert groups.num_row_groups == 2
    stated = pq.read_table(task.file.file_path)
    assert stated.num_rows == 8
    assert stated["_row_id"].null_count == stated[LINEAGE[1]].null_count == 0
    rows = zip(*(stated[name].to_pylist() for name in ("id", "s", *LINEAGE)), strict=True)
    assert {f"{number}{text}": own for number, text, *own in rows} == {
        row: list(own) for row, own in after.items()
    }
    total = sum(groups.row_group(0).column(i).total_uncompressed_size for i in range(4))
    assert groups.row_group(0).total_byte_size == total


def test_copied_row_groups_of_an_upgraded_table_get_new_ids(lake):
    table = new_table(lake, [(0, "a"), (1, "b")], [(2, "c")], version="2")
    with table.update_properties() as update:
        update.set("icecomb.maintenance.copy-min-row-group-bytes", "0")
    upgrade(table)
    table.maintenance.rewrite_data_files(options={**ALL, "copy": "require"})
    found = lineage(table.refresh())
    assert sorted(own for own, _ in found.values()) == [0, 1, 2]
    assert {updated for _, updated in found.values()} == {2}


def test_added_files_cannot_state_ids(lake):
    table = new_table(lake, [(0, "a"), (1, "b")])
    table.delete("id = 0")
    (moved,) = (task.file.file_path for task in table.scan().plan_files())
    other = lake.create_table("db.other", SCHEMA)
    with pytest.raises(ValidationError, match="it has column _row_id"):
        other.add_files([moved])


MOVES = {
    "delete": lambda table: table.delete("id = 1"),
    "upsert": lambda table: table.upsert(pa.table({"id": [1], "_row_id": ["c"]}), ["id"]),
    "rewrite": lambda table: table.maintenance.rewrite_data_files(options=ALL),
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("move", MOVES)
def test_rows_are_not_moved_where_a_column_has_the_name_of_an_id(lake, move, mode):
    frame = pa.table({"id": [1, 2], "_row_id": ["a", "b"]})
    given = {"format-version": "3", "write.delete.mode": "copy-on-write", "write.merge.mode": mode}
    table = lake.create_table("db.t", frame.schema, properties=given)
    table.append(frame)
    with pytest.raises(SchemaError, match="'_row_id' has the name of a column of row lineage"):
        MOVES[move](table)
    assert table.refresh().scan().to_arrow().sort_by("id").equals(frame)
