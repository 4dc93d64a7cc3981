"""Commands that show a table's state: what they print is what PyIceberg finds in the same metadata."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import Table, cli, load_catalog
from icecomb.format import IdentityTransform
from icecomb.format.storage.file_io import FileIO

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        pa.field("tags", pa.list_(pa.struct([("k", pa.string())]))),
    ]
)


def rows(day: int, *ids: int) -> pa.Table:
    days = [dt.date(2024, 1, day)] * len(ids)
    return pa.table({"id": ids, "day": days, "tags": [[{"k": "v"}]] * len(ids)}, schema=SCHEMA)


@pytest.fixture(
    params=[
        "in a folder",
        pytest.param(
            "in a metastore",
            marks=[
                pytest.mark.jvm,
                pytest.mark.full("the same commands on a table of a metastore"),
            ],
        ),
    ],
)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, str]:
    """A catalog, and what its table is to be called in commands."""
    if request.param == "in a folder":
        lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
        lake.create_namespace("db")
        return lake, str(tmp_path / "db" / "t")
    monkeypatch.setenv("ICECOMB_CATALOG__HMS__URI", request.getfixturevalue("metastore").uri)
    catalog = request.getfixturevalue("catalog")
    return catalog, f"{request.getfixturevalue('namespace')}.t"


@pytest.fixture
def table(place: tuple[Any, str]) -> Table:
    """Three snapshots of main, one rolled back, a branch and a tag; deletes and two specs."""
    catalog, called = place
    name = "db.t" if "/" in called else called
    made = catalog.create_table(name, SCHEMA)
    made.append(rows(1, 1, 2, 3))
    with made.update_spec() as update:
        update.add_field("day", IdentityTransform())
    made.append(rows(2, 4))
    lost = made.current_snapshot().snapshot_id
    with made.manage_snapshots() as manage:
        manage.rollback_to_snapshot(made.snapshots()[0].snapshot_id)
        manage.create_tag(lost, "a tag", 86_400_000)
    made.append(rows(3, 5, 6))
    with made.manage_snapshots() as manage:
        manage.create_branch(made.current_snapshot().snapshot_id, "dev", 1000, 2000, 3)
    made.append(rows(4, 7), branch="dev")
    return made.refresh()


@pytest.fixture
def other(table: Table) -> StaticTable:
    """The same table, as PyIceberg reads its metadata file."""
    return StaticTable.from_metadata(table.metadata_location)


@pytest.fixture
def run(place: tuple[Any, str], table: Table, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the table: exit code, stdout, stderr."""
    where = [] if "/" in place[1] else ["--catalog", "hms"]

    def command(name: str, *options: str, table: str = place[1]) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.main([*where, name, table, *options])
        return code, *capfd.readouterr()

    return command


@pytest.fixture
def listed(run: Any) -> Any:
    """The rows of a list by JSON; text and CSV have to have as many."""

    def rows_of(name: str, *options: str) -> list[dict[str, Any]]:
        code, out, err = run(name, *options, "--output", "json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        lines = run(name, *options, "--output", "csv")[1]
        header, *cells = csv.reader(io.StringIO(lines))
        assert len(cells) == len(found)
        assert {len(row) for row in cells} <= {len(header)}
        text = run(name, *options)[1].splitlines()
        assert len(text) == 1 + len(found)
        assert re.split("  +", text[0].rstrip()) == [column.upper() for column in header]
        return found

    return rows_of


def milliseconds(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


def test_history_is_pyicebergs_with_what_the_summaries_say(
    listed: Any, other: StaticTable, table: Table
) -> None:
    found = listed("history")
    expected = other.inspect.history().to_pylist()
    assert [
        (row["snapshot_id"], row["parent_id"], row["is_current_ancestor"]) for row in found
    ] == [(row["snapshot_id"], row["parent_id"], row["is_current_ancestor"]) for row in expected]
    assert sorted({row["is_current_ancestor"] for row in found}) == [False, True]
    assert [milliseconds(row["made_current_at"]) for row in found] == [
        entry.timestamp_ms for entry in other.history()
    ]
    for row in found:
        snapshot = other.snapshot_by_id(row["snapshot_id"])
        assert snapshot is not None
        assert snapshot.summary is not None
        assert row["operation"] == snapshot.summary.operation.value
        for column in ("added-records", "deleted-records", "total-records", "added-data-files"):
            stated = snapshot.summary[column]
            assert row[column.replace("-", "_")] == (None if stated is None else int(stated))
        names = [n for n, ref in other.refs().items() if ref.snapshot_id == row["snapshot_id"]]
        assert (row["refs"] or []) == names


def test_of_a_snapshot_that_expired_the_history_knows_its_time(
    listed: Any, table: Table, place: tuple[Any, str]
) -> None:
    first = table.history()[0].snapshot_id
    table.append(rows(9, 9))
    with table.expire_snapshots() as expire:
        expire.by_id(first)
    ids = [row["snapshot_id"] for row in listed("history")]
    assert ids == [entry.snapshot_id for entry in table.refresh().history()]


def test_history_schema_refs_and_properties_read_the_metadata_file_alone(
    run: Any, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    for method in ("read", "open_input"):
        real = getattr(FileIO, method)

        def noted(io: FileIO, location: str, *more: Any, real: Any = real) -> Any:
            read.append(location)
            return real(io, location, *more)

        monkeypatch.setattr(FileIO, method, noted)
    for command in ("history", "refs", "snapshots", "schema", "properties"):
        read.clear()
        assert run(command)[0] == 0
        others = {name for name in read if not name.endswith("version-hint.text")}
        assert others == {table.metadata_location}, command


def test_files_are_pyicebergs_of_the_snapshot_that_is_named(
    listed: Any, other: StaticTable, table: Table
) -> None:
    first, lost, *_ = (snapshot.snapshot_id for snapshot in table.snapshots())
    at = next(e for e in table.history() if e.snapshot_id == lost).timestamp_ms
    dev = other.refs()["dev"].snapshot_id
    for options, snapshot_id in (
        ((), None),
        (("--snapshot-id", str(first)), first),
        (("--snapshot", str(first)), first),
        (("--tag", "a tag"), lost),
        (("--branch", "dev"), dev),
        (("--branch", "main"), None),
        (("--at", str(at)), lost),
    ):
        found = listed("files", *options)
        expected = other.inspect.files(snapshot_id=snapshot_id).to_pylist()
        columns = ("file_path", "file_format", "spec_id", "record_count", "file_size_in_bytes")
        assert sorted(tuple(row[c] for c in columns) for row in found) == sorted(
            tuple(row[c] for c in columns) for row in expected
        )
        assert {row["content"] for row in found} == {"data"}
        partitions = {row["file_path"]: row["partition"] for row in expected}
        assert all(
            row["partition"]["day"] == (day and day.isoformat())
            for row in found
            for day in [partitions[row["file_path"]]["day"]]
        )


def test_files_can_be_chosen_by_the_columns_of_the_metadata_table(listed: Any) -> None:
    assert len(listed("files", "--where", "partition.day = '2024-01-03'")) == 1
    assert listed("files", "--where", "record_count > 2", "--columns", "record_count,content") == [
        {"content": "data", "record_count": 3}
    ]
    assert listed("files", "--where", "content = 1") == []


def test_delete_files_are_told_from_data_files(listed: Any, table: Table) -> None:
    with table.update_properties() as change:
        change.set("write.delete.mode", "merge-on-read")
    table.delete("id = 1")
    found = [row["content"] for row in listed("files")]
    expected = [row["content"] for row in table.inspect.files().to_pylist()]
    words = ["data", "position_deletes", "equality_deletes"]
    assert "position_deletes" in found
    assert sorted(found) == sorted(words[number] for number in expected)
    manifests = StaticTable.from_metadata(table.metadata_location).inspect.manifests()
    assert sorted(row["content"] for row in listed("manifests")) == sorted(
        ["data", "deletes"][number] for number in manifests["content"].to_pylist()
    )


def test_partitions_and_manifests_are_pyicebergs(
    listed: Any, other: StaticTable, table: Table
) -> None:
    def known(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        columns = ("spec_id", "record_count", "file_count", "last_updated_snapshot_id")
        days = [row["partition"]["day"] for row in found]
        return sorted(
            (str(day), *(row[column] for column in columns))
            for day, row in zip(days, found, strict=True)
        )

    for options in ((), ("--branch", "dev")):
        snapshot_id = other.refs()["dev"].snapshot_id if options else None
        found = listed("partitions", *options)
        assert known(found) == known(other.inspect.partitions(snapshot_id=snapshot_id).to_pylist())
        updated = {row["last_updated_snapshot_id"]: row["last_updated_at"] for row in found}
        assert {i: milliseconds(at) for i, at in updated.items()} == {
            s.snapshot_id: s.timestamp_ms for s in table.snapshots() if s.snapshot_id in updated
        }
    columns = ("path", "length", "partition_spec_id", "added_snapshot_id", "added_data_files_count")
    expected = other.inspect.manifests().to_pylist()
    assert [[row[c] for c in columns] for row in listed("manifests")] == [
        [row[c] for c in columns] for row in expected
    ]
    assert len(listed("partitions", "--where", "record_count = 2")) == 1
    assert len(listed("manifests", "--where", "added_data_files_count = 9")) == 0


def test_refs_are_pyicebergs(listed: Any, other: StaticTable) -> None:
    expected = {row["name"]: row for row in other.inspect.refs().to_pylist()}
    assert set(expected) == {"main", "dev", "a tag"}
    assert {row["name"]: row for row in listed("refs")} == expected


def test_schema_shows_ids_types_spec_and_order_as_the_metadata_has_them(
    run: Any, table: Table, other: StaticTable
) -> None:
    with table.update_schema() as update:
        update.update_column("day", doc="of the event\n").set_identifier_fields("id")
    with table.update_sort_order() as order:
        order.desc("day")
    raw = json.loads(Path(table.metadata_location.removeprefix("file:")).read_text())
    fields = raw["schemas"][-1]["fields"]
    found = json.loads(run("schema", "--output", "json")[1])
    assert found["schema"] == raw["current-schema-id"]
    by_name = {field["name"]: field for field in found["fields"]}
    for field in fields:
        shown = by_name[field["name"]]
        assert (shown["id"], shown["required"]) == (field["id"], field["required"])
        assert shown["doc"] == field.get("doc")
    element = fields[2]["type"]
    assert by_name["tags"]["type"] == "list"
    assert by_name["tags.element"]["id"] == element["element-id"]
    assert by_name["tags.element.k"]["id"] == element["element"]["fields"][0]["id"]
    assert [name for name, field in by_name.items() if field["identifier"]] == ["id"]
    assert found["partition_spec"]["id"] == raw["default-spec-id"]
    spec = raw["partition-specs"][-1]["fields"][0]
    (part,) = found["partition_spec"]["fields"]
    assert (part["id"], part["name"], part["transform"]) == (
        spec["field-id"],
        spec["name"],
        spec["transform"],
    )
    assert found["sort_order"]["id"] == raw["default-sort-order-id"]
    text = run("schema")[1]
    assert "  day: identity(day)" in text.splitlines()
    assert "  day desc nulls last" in text.splitlines()
    assert "of the event\\n" in text
    header, *lines = csv.reader(io.StringIO(run("schema", "--output", "csv")[1]))
    assert header == ["id", "name", "type", "required", "identifier", "doc"]
    assert [line[1] for line in lines] == [*by_name]


def test_schema_and_describe_show_defaults_as_the_metadata_has_them(run: Any, table: Table) -> None:
    with table.transaction() as change:
        change.set_properties({"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("since", "date", default_value=dt.date(1970, 1, 2))
    with table.update_schema() as update:
        update.set_default_value("since", None)
    fields = json.loads(run("schema", "--output", "json")[1])["fields"]
    assert [(f["initial_default"], f["write_default"]) for f in fields if f["name"] == "since"] == [
        ("1970-01-02", None)
    ]
    header, *_ = csv.reader(io.StringIO(run("schema", "--output", "csv")[1]))
    assert header[-2:] == ["initial_default", "write_default"]
    shown = 'date default null, in older rows "1970-01-02"'
    assert f"since  {shown}" in run("describe")[1]
    assert shown in str(table)


def test_schema_of_an_older_state_is_the_one_of_then(run: Any, table: Table) -> None:
    first = table.snapshots()[0]
    before = first.timestamp_ms
    with table.update_schema() as update:
        update.delete_column("tags")

    def shown(*options: str) -> tuple[list[str], Any]:
        found = json.loads(run("schema", *options, "--output", "json")[1])
        spec = found["partition_spec"]
        return [f["name"] for f in found["fields"]], spec and len(spec["fields"])

    everything = ["id", "day", "tags", "tags.element", "tags.element.k"]
    # the table was not partitioned at its first snapshot, as the metadata file of then says
    assert shown("--snapshot-id", str(first.snapshot_id)) == (everything, 0)
    assert shown("--at", str(before)) == (everything, 0)
    assert shown("--tag", "a tag") == (everything, 1)
    assert shown("--branch", "dev") == shown() == (["id", "day"], 1)


def test_where_the_metadata_file_of_then_is_gone_spec_and_order_are_said_to_be_unknown(
    run: Any, table: Table
) -> None:
    first = str(table.snapshots()[0].snapshot_id)
    with table.update_properties() as change:
        change.set("write.metadata.previous-versions-max", "1")
    with table.update_properties() as change:
        change.set("x", "y")
    code, out, err = run("schema", "--snapshot-id", first, "--output", "json")
    found = json.loads(out)
    assert (code, found["partition_spec"], found["sort_order"]) == (0, None, None)
    assert err.startswith("partition spec and sort order are not known: ")
    assert "partition spec:  null" in run("schema", "--snapshot-id", first)[1]


def test_head_reads_branches_tags_and_times(listed: Any, table: Table) -> None:
    def ids(*options: str) -> list[int]:
        return sorted(row["id"] for row in listed("head", *options))

    first = table.snapshots()[0]
    assert ids() == [1, 2, 3, 5, 6]
    assert ids("--branch", "dev") == [1, 2, 3, 5, 6, 7]
    assert ids("--tag", "a tag") == [1, 2, 3, 4]
    assert ids("--snapshot", str(first.snapshot_id)) == [1, 2, 3]
    assert ids("--at", str(first.timestamp_ms)) == [1, 2, 3]


@pytest.mark.parametrize("command", ["files", "partitions", "manifests", "schema", "head"])
def test_a_state_that_is_not_there_is_one_line(run: Any, command: str) -> None:
    for options, code, said in (
        (("--snapshot-id", "1"), 1, "no snapshot 1"),
        (("--tag", "nope"), 1, "no tag 'nope'"),
        (("--tag", "dev"), 1, "'dev' is a branch"),
        (("--branch", "a tag"), 1, "'a tag' is a tag"),
        (("--at", "2001-01-01"), 1, "2001-01-01"),
        (("--at", "yesterday"), 2, "neither a time"),
        (("--tag", "a tag", "--branch", "dev"), 2, "give one of"),
    ):
        found, out, err = run(command, *options)
        assert (found, out) == (code, ""), options
        assert err.startswith("error: ")
        assert said in err
        assert len(err.splitlines()) <= 2


@pytest.mark.parametrize("command", ["files", "partitions", "manifests"])
def test_a_question_that_does_not_fit_is_one_line(run: Any, command: str) -> None:
    for options in (
        ("--where", "nope = 1"),
        ("--where", "(("),
        ("--columns", "nope"),
        ("--columns", ","),
    ):
        code, out, err = run(command, *options)
        assert (code, out, err.startswith("error: ")) == (1, "", True), options
        assert "Traceback" not in err


def test_a_table_without_rows_has_empty_lists(
    place: tuple[Any, str], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    lake.create_table("db.empty", SCHEMA)
    for command in ("history", "files", "partitions", "manifests", "refs"):
        for more in ((), ("--branch", "main")):
            if more and command in {"history", "refs"}:
                continue
            capfd.readouterr()
            where = str(tmp_path / "w" / "db" / "empty")
            assert cli.main(["--output", "json", command, where, *more]) == 0
            assert json.loads(capfd.readouterr().out) == []


def test_a_metadata_file_can_be_looked_into(listed: Any, run: Any, table: Table) -> None:
    file = table.metadata_location
    code, out, _ = run("files", "--output", "json", table=file)
    assert (code, json.loads(out)) == (0, listed("files"))


def test_files_are_printed_while_manifests_are_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from icecomb.catalog.cli.output import output
    from icecomb.format.inspect import inspection as file_tables

    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    many = lake.create_table(
        "db.many", SCHEMA, properties={"commit.manifest-merge.enabled": "false"}
    )
    count = 40
    for number in range(count):
        many.append(rows(1, number))
    opened: list[str] = []
    opened_before: list[int] = []
    read, write = file_tables.read_batch, output.write_line

    def reading(io: Any, batch: Any, *more: Any) -> Any:
        opened.extend(manifest.manifest_path for manifest, _ in batch)
        return read(io, batch, *more)

    def writing(text: str, *more: Any) -> None:
        opened_before.append(len(opened))
        write(text, *more)

    monkeypatch.setattr(file_tables, "read_batch", reading)
    monkeypatch.setattr(output, "write_line", writing)
    # the first rows say how wide the columns are; lists for programs are kept until they are whole
    monkeypatch.setattr(output, "MEASURED", 5)
    assert cli.main(["files", str(tmp_path / "db" / "many")]) == 0
    assert len(capfd.readouterr().out.splitlines()) == count + 1
    assert len(opened) == count
    assert opened_before[0] < count / 2
    assert opened_before[-1] == count
