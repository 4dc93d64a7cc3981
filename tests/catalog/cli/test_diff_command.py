"""`icecomb diff`: files by PyIceberg's lists of both states, and the layout by what was changed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import Table, cli
from icecomb.format import IdentityTransform, LongType, StringType
from icecomb.format.inspect import inspection as file_tables
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.operation.row_delta import RowDelta

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("spot", pa.struct([pa.field("x", pa.float32())])),
    ]
)


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": ids, "city": ["c"] * len(ids), "spot": [{"x": 1.0}] * len(ids)}, schema=SCHEMA
    )


@pytest.fixture
def table(lake: Any) -> Table:
    made: Table = lake.create_table(
        "db.t", SCHEMA, properties={"commit.manifest-merge.enabled": "false", "gone": "1"}
    )
    made.append(rows(1, 2))
    made.append(rows(3))
    return made


@pytest.fixture
def diff(table: Table, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs it on the table's folder: exit code, facts, stderr."""

    def run(*words: str) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = cli.main(["--output", "json", "diff", table.location(), *words])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else None, err

    return run


def ids_of(table: Table) -> list[str]:
    return [str(snapshot.snapshot_id) for snapshot in table.refresh().snapshots()]


def expected_counts(table: Table, old: str, new: str) -> dict[str, dict[str, int]]:
    """What PyIceberg's lists of files make of it."""
    other = StaticTable.from_metadata(table.metadata_location)
    names = ("data", "position_delete", "equality_delete")
    lists = [
        {row["file_path"]: row for row in other.inspect.files(int(one)).to_pylist()}
        for one in (old, new)
    ]
    found = {}
    for change, mine, others in (("added", lists[1], lists[0]), ("removed", *lists)):
        counts = {f"{n}_{what}": 0 for n in names for what in ("files", "rows", "bytes")}
        for path in mine.keys() - others.keys():
            row = mine[path]
            name = names[row["content"]]
            counts[f"{name}_files"] += 1
            counts[f"{name}_rows"] += row["record_count"]
            counts[f"{name}_bytes"] += row["file_size_in_bytes"]
        found[change] = counts
    return found


def test_files_and_rows_are_those_that_pyiceberg_finds_in_one_state_only(
    diff: Any, table: Table
) -> None:
    table.delete("id = 1")
    with table.update_properties() as change:
        change.set("write.delete.mode", "merge-on-read")
    with table.manage_snapshots() as manage:
        manage.create_branch(table.snapshots()[0].snapshot_id, "dev")
    table.append(rows(7, 8), branch="dev")
    table.rewrite_manifests()
    ids = ids_of(table)
    assert len(ids) == 5
    for old in ids:
        for new in ids:
            code, facts, _ = diff(old, new)
            expected = expected_counts(table, old, new)
            assert {name: facts[name] for name in expected} == expected, (old, new)
            changed = any(sum(counts.values()) for counts in expected.values())
            assert code == (3 if changed or facts["changes"] else 0)


def test_files_are_listed_one_by_one(diff: Any, table: Table) -> None:
    table.delete("id = 1")
    old, *_, new = ids_of(table)
    other = StaticTable.from_metadata(table.metadata_location)
    before, after = (set(other.inspect.files(int(i))["file_path"].to_pylist()) for i in (old, new))
    code, files, _ = diff(old, new, "--files")
    assert code == 3
    for change, paths in (("added", after - before), ("removed", before - after)):
        assert {row["file_path"] for row in files if row["change"] == change} == paths
    assert {row["content"] for row in files} == {"data"}
    assert diff(old, old, "--files") == (0, [], "")


def test_commits_are_those_behind_the_last_snapshot_that_both_have(diff: Any, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "dev").create_tag(first, "start")
    table.append(rows(7), branch="dev")
    table.delete("id = 1")
    operations = table.snapshots()[-1].operation
    assert operations == "overwrite"
    for words, commits, undone in (
        (("start", "main"), {"append": 1, "overwrite": 1}, {}),
        (("main", "start"), {}, {"append": 1, "overwrite": 1}),
        (("dev", "main"), {"append": 1, "overwrite": 1}, {"append": 1}),
        (("start", "start"), {}, {}),
    ):
        facts = diff(*words)[1]
        assert (facts["commits"], facts["undone"]) == (commits, undone), words


def test_commits_that_expired_are_said_to_be_unknown(diff: Any, table: Table) -> None:
    table.append(rows(4))
    first, second, third = ids_of(table)
    with table.manage_snapshots() as manage:
        manage.create_tag(int(first), "start")
    with table.expire_snapshots() as expire:
        expire.by_id(int(second))
    _, facts, _ = diff("start", third)
    assert (facts["commits"], facts["undone"]) == (None, None)
    assert any("have expired" in sentence for sentence in facts["unknown"])
    assert facts["added"] == expected_counts(table.refresh(), first, third)["added"]


def test_columns_are_compared_by_id_at_all_depths(diff: Any, table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("city", "town").add_column("note", StringType(), doc="new")
        update.update_column("id", LongType(), doc="the key").set_identifier_fields("id")
        update.delete_column("spot.x").add_column(("spot", "y"), StringType())
        update.move_first("note")
    code, facts, _ = diff("main")
    assert (code, facts["changes"]) == (0, [])
    code, facts, _ = diff(ids_of(table)[-1])
    changes = [tuple(change.values()) for change in facts["changes"]]
    assert code == 3
    assert set(changes) == {
        ("column", "dropped", "spot.x", "float", None),
        ("column", "added", "note", None, "string"),
        ("column", "added", "spot.y", None, "string"),
        ("column", "renamed", "town", "city", "town"),
        ("column", "type", "id", "int", "long"),
        ("column", "doc", "id", None, "the key"),
        ("column", "identifier", "id", False, True),
    }
    backwards = [tuple(c.values()) for c in diff("main", ids_of(table)[-1])[1]["changes"]]
    assert ("column", "added", "spot.x", None, "float") in backwards
    assert ("column", "renamed", "city", "town", "city") in backwards


def test_defaults_are_compared(diff: Any, table: Table) -> None:
    with table.transaction() as change:
        change.set_properties({"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("old", LongType(), default_value=7)
    table.append(rows(4))
    with table.update_schema() as update:
        update.set_default_value("old", 8).add_column("new", LongType(), default_value=9)
    code, facts, _ = diff(ids_of(table)[-1])
    assert code == 3
    assert {tuple(change.values()) for change in facts["changes"]} == {
        ("column", "default", "old", 7, 8),
        ("column", "added", "new", None, "long default 9"),
    }


def test_moved_columns_are_told(diff: Any, table: Table) -> None:
    with table.update_schema() as update:
        update.move_after("city", "spot")
    (change,) = diff(ids_of(table)[-1])[1]["changes"]
    assert change["change"] == "moved"


def test_partitions_order_and_properties_are_those_of_the_metadata_files_of_then(
    diff: Any, table: Table
) -> None:
    old = ids_of(table)[-1]
    with table.update_spec() as spec:
        spec.add_field("city", IdentityTransform())
    with table.update_sort_order() as order:
        order.desc("id")
    with table.update_properties() as change:
        change.set("write.format.default", "orc").set("new", "a\nb").remove("gone")
    expected = [
        ("partition field", "added", "city", None, "identity(city)"),
        ("sort order", "changed", "sorted by", "", "id desc nulls last"),
        ("property", "dropped", "gone", "1", None),
        ("property", "added", "new", None, "a\nb"),
        ("property", "added", "write.format.default", None, "orc"),
    ]
    _, facts, _ = diff(old)
    assert [tuple(change.values()) for change in facts["changes"]] == expected
    # a commit has what was changed before it, and not what was changed later
    table.append(rows(9))
    with table.update_properties() as change:
        change.set("later", "1")
    _, facts, _ = diff(old, ids_of(table)[-1])
    assert [tuple(change.values()) for change in facts["changes"]] == expected
    assert not [s for s in facts["unknown"] if "properties" in s]
    at = str(table.snapshot_by_id(int(old)).timestamp_ms)  # type: ignore[union-attr]
    assert [tuple(c.values()) for c in diff(at, ids_of(table)[-1])[1]["changes"]] == expected
    with table.update_spec() as spec:
        spec.rename_field("city", "town")
    (renamed,) = [c for c in diff(ids_of(table)[-1])[1]["changes"] if c["what"] != "property"]
    assert tuple(renamed.values())[:5] == ("partition field", "renamed", "town", "city", "town")


def test_where_the_metadata_files_are_gone_it_says_what_it_does_not_know(
    diff: Any, table: Table
) -> None:
    old = ids_of(table)[0]
    with table.update_schema() as update:
        update.add_column("note", StringType())
    with table.update_properties() as change:
        change.set("write.metadata.previous-versions-max", "1")
    with table.update_properties() as change:
        change.remove("gone")
    _, facts, _ = diff(old)
    # the schema of a snapshot stands in the metadata of now
    assert [change["what"] for change in facts["changes"]] == ["column"]
    (sentence,) = (s for s in facts["unknown"] if "properties" in s)
    assert sentence.startswith("properties, partition spec and sort order of the first: ")
    kept = table.refresh().metadata.metadata_log[-1].metadata_file
    Path(kept).unlink()
    assert any(
        "properties" in s
        for s in diff(str(table.metadata.metadata_log[-1].timestamp_ms))[1]["unknown"]
    )


def test_deletes_are_counted_and_what_they_delete_is_said_to_be_unknown(
    diff: Any, table: Table
) -> None:
    old = ids_of(table)[-1]
    with table.update_properties() as change:
        change.set("write.delete.mode", "merge-on-read")
    table.delete("id = 2")
    equal = DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=f"{table.location()}/data/equal.parquet",
        record_count=7,
        file_size_in_bytes=10,
        equality_ids=(1,),
    )
    table.commit(RowDelta(table.io).add_deletes(equal))
    new = ids_of(table)[-1]
    _, facts, _ = diff(old, new)
    expected = expected_counts(table, old, new)
    assert {name: facts[name] for name in expected} == expected
    assert facts["added"]["position_delete_rows"] == 1
    assert (facts["added"]["equality_delete_files"], facts["added"]["data_files"]) == (1, 0)
    said = "how many rows 1 {} delete files {}: "
    assert [s.partition(": ")[0] + ": " for s in facts["unknown"]] == [
        said.format(kind, "delete") for kind in ("position", "equality")
    ]
    _, back, _ = diff(new, old)
    assert [s.partition(": ")[0] + ": " for s in back["unknown"]] == [
        said.format(kind, "no longer delete") for kind in ("position", "equality")
    ]
    contents = [row["content"] for row in diff(old, new, "--files")[1]]
    assert sorted(contents) == ["equality_deletes", "position_deletes"]


def test_vectors_of_one_puffin_file_are_told_apart(diff: Any, table: Table) -> None:
    with table.update_properties() as change:
        change.set("write.delete.mode", "merge-on-read")
        change.set("format-version", "3")
    table.append(rows(4, 5))
    table.delete("id in (2, 4)")
    first, second = (one for task in table.scan().plan_files() for one in task.delete_files)
    assert first.file_path == second.file_path
    *_, before, after = ids_of(table)
    added = diff(before, after)[1]["added"]
    assert (added["position_delete_files"], added["position_delete_rows"]) == (2, 2)
    assert added["position_delete_bytes"] == first.content_length + second.content_length
    table.delete("id = 5")  # the last row of its file, which goes with its vector
    facts = diff(after, ids_of(table)[-1])[1]
    removed = facts["removed"]
    assert (removed["data_files"], removed["position_delete_files"]) == (1, 1)
    assert not any(facts["added"].values())


def test_rewritten_files_are_said_to_hold_rows_that_were_copied(diff: Any, table: Table) -> None:
    table.delete("id = 1")
    *_, before, after = ids_of(table)
    assert any("were rewritten" in s for s in diff(before, after)[1]["unknown"])
    first, second, *_ = ids_of(table)
    assert diff(first, second)[1]["unknown"] == []


@pytest.mark.parametrize("form", ["text", "csv"])
def test_text_and_csv_have_what_json_has(
    form: str, diff: Any, table: Table, capfd: pytest.CaptureFixture[str]
) -> None:
    old = ids_of(table)[0]
    with table.update_properties() as change:
        change.set("a", "=1\n")
    facts = diff(old)[1]
    assert cli.main(["diff", table.location(), old, "--output", form]) == 3
    out = capfd.readouterr().out
    if form == "csv":
        header, *lines = csv.reader(io.StringIO(out))
        assert header == ["what", "change", "name", "before", "after"]
        counts = {line[2]: int(line[4]) for line in lines if line[:2] == ["files", "added"]}
        assert counts == {name: n for name, n in facts["added"].items() if n}
        assert ["property", "added", "a", "", "\\x3d1\\n"] in lines
        return
    assert f"  data_rows: {facts['added']['data_rows']}" in out.splitlines()
    assert "property  added   a     null    =1\\n" in out.splitlines()
    assert "removed:  nothing" in out


def test_a_word_is_an_id_a_name_or_a_time(diff: Any, table: Table) -> None:
    first, second = table.snapshots()
    with table.manage_snapshots() as manage:
        manage.create_tag(first.snapshot_id, "2031-01-01")
        manage.create_tag(first.snapshot_id, "7d")
        manage.create_tag(first.snapshot_id, str(first.snapshot_id))
        manage.create_tag(first.snapshot_id, str(second.snapshot_id))

    def begins(word: str) -> int:
        found = diff(word)[1]["from"]["snapshot_id"]
        assert isinstance(found, int)
        return found

    for word in ("2031-01-01", "7d", str(first.snapshot_id), str(first.timestamp_ms)):
        assert begins(word) == first.snapshot_id, word
    assert begins("0s") == begins("2031-01-02") == begins("main") == second.snapshot_id
    code, facts, err = diff(str(second.snapshot_id))
    assert (code, facts) == (1, None)
    assert "is a snapshot, and a tag of another one" in err


def test_what_is_no_state_is_one_line(diff: Any) -> None:
    for words, code, said in (
        (("nope",), 1, "'nope' is not a snapshot, branch or tag"),
        (("1",), 1, "'1' is not a snapshot"),
        (("main", "nope"), 1, "'nope'"),
        (("2001-01-01",), 1, "2001-01-01"),
        ((), 2, "FROM"),
        (("a", "b", "c"), 2, "c"),
    ):
        found, facts, err = diff(*words)
        assert (found, facts) == (code, None), words
        assert said in err
        assert err.startswith("error: ")


def test_a_table_without_rows_differs_from_nothing(
    lake: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = lake.create_table("db.empty", SCHEMA)
    assert cli.main(["--output", "json", "diff", empty.location(), "main"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert (facts["from"], facts["to"], facts["commits"]) == (None, None, {})


def test_only_manifests_that_one_state_has_are_read(
    diff: Any, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        table.append(rows(number))
    *_, before, after = ids_of(table)
    read: list[str] = []
    real = file_tables.read_batch

    def reading(io: Any, batch: Any, *more: Any) -> Any:
        read.extend(manifest.manifest_path for manifest, _ in batch)
        return real(io, batch, *more)

    monkeypatch.setattr(file_tables, "read_batch", reading)
    assert diff(before, after)[1]["added"]["data_files"] == 1
    known = StaticTable.from_metadata(table.metadata_location).inspect.manifests().to_pylist()
    assert read == [row["path"] for row in known if row["added_snapshot_id"] == int(after)]


def test_a_table_of_the_metastore_is_compared_by_its_name(
    metastore: Any, catalog: Any, namespace: str, capfd: pytest.CaptureFixture[str]
) -> None:
    made = catalog.create_table(f"{namespace}.t", SCHEMA)
    made.append(rows(1))
    first = str(made.current_snapshot().snapshot_id)
    made.append(rows(2, 3))
    with made.update_properties() as change:
        change.set("a", "b")
    capfd.readouterr()
    arguments = ["--uri", metastore.uri, "--output", "json", "diff", f"{namespace}.t", first]
    assert cli.main(arguments) == 3
    facts = json.loads(capfd.readouterr().out)
    assert facts["added"]["data_rows"] == 2
    assert [tuple(change.values()) for change in facts["changes"]] == [
        ("property", "added", "a", None, "b")
    ]
