"""Commands that move branches and tags and set properties; PyIceberg reads what they made."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from pyiceberg.table.refs import SnapshotRef

from icecomb.catalog import Table, cli, load_catalog
from tests.catalog.numbered_rows import numbers

DAY = 86_400_000


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
    ]
)
def table(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Table, str]:
    """A table with three snapshots, and what commands call it."""
    if request.param == "in a folder":
        catalog: Any = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
        catalog.create_namespace("db")
        name, called = "db.t", str(tmp_path / "db" / "t")
    else:
        monkeypatch.setenv("ICECOMB_CATALOG__HMS__URI", request.getfixturevalue("metastore").uri)
        catalog = request.getfixturevalue("catalog")
        name = called = f"{request.getfixturevalue('namespace')}.t"
    made = catalog.create_table(name, numbers().schema)
    for number in range(3):
        made.append(numbers(number))
    return made, called


@pytest.fixture
def ids(table: tuple[Table, str]) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table[0].snapshots()]


@pytest.fixture
def run(table: tuple[Table, str], capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the table: exit code, facts, stderr. TABLE stands for its name."""

    def command(*arguments: str) -> tuple[int, Any, str]:
        where = [] if "/" in table[1] else ["--catalog", "hms"]
        words = [table[1] if word == "TABLE" else word for word in arguments]
        capfd.readouterr()
        code = cli.main([*where, "--output", "json", *words])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else None, err

    return command


@pytest.fixture
def refs(table: tuple[Table, str]) -> Any:
    """The branches and tags but main, as PyIceberg reads them."""

    def found() -> dict[str, SnapshotRef]:
        known = StaticTable.from_metadata(table[0].refresh().metadata_location).refs()
        return {name: ref for name, ref in known.items() if name != "main"}

    return found


def test_a_tag_is_made_moved_and_deleted(run: Any, refs: Any, ids: list[int]) -> None:
    code, facts, err = run("tag", "create", "TABLE", "t", "--retain", "7d")
    assert (code, err, facts["done"]) == (0, "", True)
    assert refs() == {"t": SnapshotRef(snapshot_id=ids[2], type="tag", max_ref_age_ms=7 * DAY)}
    first = ("--snapshot-id", str(ids[0]))
    code, facts, err = run("tag", "replace", "TABLE", "t", *first)
    assert (code, err, facts["done"]) == (0, "dry run: add --yes to do it\n", False)
    assert facts["after"] == {"snapshot_id": ids[0], "max_reference_age_in_ms": 7 * DAY}
    assert refs()["t"].snapshot_id == ids[2]
    assert run("tag", "replace", "TABLE", "t", *first, "--yes", "--retain", "12 h")[0] == 0
    assert refs() == {"t": SnapshotRef(snapshot_id=ids[0], type="tag", max_ref_age_ms=DAY // 2)}
    assert [row["name"] for row in run("tag", "list", "TABLE")[1]] == ["t"]
    assert [row["name"] for row in run("branch", "list", "TABLE")[1]] == ["main"]
    code, facts, err = run("tag", "delete", "TABLE", "t")
    assert (code, facts["after"], err) == (0, None, "dry run: add --yes to do it\n")
    assert set(refs()) == {"t"}
    assert run("tag", "delete", "TABLE", "t", "--yes")[:2] == (
        0,
        {**facts, "done": True},
    )
    assert refs() == {}


def test_a_tag_of_a_table_of_a_metastore_is_made_by_its_name(
    catalog: Any, namespace: str, metastore: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    made = catalog.create_table(f"{namespace}.t", numbers().schema)
    made.append(numbers(1))
    assert cli.main(["--uri", metastore.uri, "tag", "create", f"{namespace}.t", "t"]) == 0
    assert capfd.readouterr().err == ""
    known = StaticTable.from_metadata(made.refresh().metadata_location).refs()
    assert known["t"].snapshot_id == made.current_snapshot().snapshot_id


def test_a_branch_takes_the_limits_of_iceberg_s_ddl_and_keeps_those_not_given(
    run: Any, refs: Any, ids: list[int]
) -> None:
    limits = ("--retain", "4w", "--min-snapshots", "2", "--max-snapshot-age", "90m")
    assert run("branch", "create", "TABLE", "b", *limits, "--snapshot-id", str(ids[1]))[0] == 0
    made = SnapshotRef(
        snapshot_id=ids[1],
        type="branch",
        max_ref_age_ms=28 * DAY,
        min_snapshots_to_keep=2,
        max_snapshot_age_ms=90 * 60_000,
    )
    assert refs() == {"b": made}
    to = ("--snapshot-id", str(ids[0]), "--yes")
    assert run("branch", "replace", "TABLE", "b", *to, "--min-snapshots", "5")[0] == 0
    changed = {"snapshot_id": ids[0], "min_snapshots_to_keep": 5}
    assert refs() == {"b": made.model_copy(update=changed)}
    assert run("branch", "delete", "TABLE", "b")[1]["done"] is False
    assert set(refs()) == {"b"}
    assert run("branch", "delete", "TABLE", "b", "--yes")[0] == 0
    assert refs() == {}


def test_a_branch_or_tag_is_made_of_any_state(
    run: Any, refs: Any, ids: list[int], table: tuple[Table, str]
) -> None:
    at = table[0].history()[1].timestamp_ms
    assert run("tag", "create", "TABLE", "by-time", "--at", str(at))[0] == 0
    assert run("branch", "create", "TABLE", "by-tag", "--tag", "by-time")[0] == 0
    assert run("tag", "create", "TABLE", "by-branch", "--branch", "by-tag")[0] == 0
    assert {ref.snapshot_id for ref in refs().values()} == {ids[1]}
    assert len(refs()) == 3


def test_a_branch_is_forwarded_to_what_came_from_it(run: Any, refs: Any, ids: list[int]) -> None:
    assert run("branch", "create", "TABLE", "b", "--snapshot-id", str(ids[0]))[0] == 0
    code, facts, err = run("branch", "fast-forward", "TABLE", "b", "--to", "main")
    assert (code, err, facts["before"], facts["after"]) == (
        0,
        "",
        {"snapshot_id": ids[0]},
        {"snapshot_id": ids[2]},
    )
    assert refs()["b"].snapshot_id == ids[2]
    assert run("tag", "create", "TABLE", "old", "--snapshot-id", str(ids[0]))[0] == 0
    code, facts, err = run("branch", "fast-forward", "TABLE", "b", "--to", "old")
    assert (code, facts) == (1, None)
    assert "is not an ancestor of" in err
    assert run("branch", "fast-forward", "TABLE", "new", "--to", "old")[0] == 0
    assert refs()["new"].snapshot_id == ids[0]
    assert run("branch", "fast-forward", "TABLE", "b")[0] == 2


def test_what_is_there_already_is_left_or_refused_and_what_is_not_too(
    run: Any, refs: Any, ids: list[int], table: tuple[Table, str]
) -> None:
    first = ("--snapshot-id", str(ids[0]))
    for kind in ("branch", "tag"):
        assert run(kind, "create", "TABLE", kind)[0] == 0
        version = table[0].refresh().metadata_location
        code, facts, err = run(kind, "create", "TABLE", kind, *first)
        assert (code, facts, "already" in err) == (1, None, True)
        assert run(kind, "create", "TABLE", kind, *first, "--if-not-exists")[0] == 0
        assert refs()[kind].snapshot_id == ids[2]
        code, facts, err = run(kind, "delete", "TABLE", "nope", "--yes")
        assert (code, facts, f"no {kind} 'nope'" in err) == (1, None, True)
        assert run(kind, "delete", "TABLE", "nope", "--yes", "--if-exists")[0] == 0
        assert run(kind, "replace", "TABLE", "nope", "--yes")[0] == 1
        assert table[0].refresh().metadata_location == version
        assert run(kind, "replace", "TABLE", f"new-{kind}", *first, "--create", "--yes")[0] == 0
        assert refs()[f"new-{kind}"].snapshot_id == ids[0]
    for words in (
        ("branch", "delete", "TABLE", "main", "--yes"),
        ("branch", "delete", "TABLE", "tag", "--yes"),
        ("tag", "replace", "TABLE", "branch", "--yes"),
        ("tag", "create", "TABLE", "x", "--snapshot-id", "1"),
        ("tag", "create", "TABLE", "x", "--retain", "0d"),
        ("branch", "create", "TABLE", "x", "--min-snapshots", "0"),
        ("branch", "create", "TABLE", "x", "--min-snapshots", "99999999999"),
        ("tag", "create", "TABLE", ""),
    ):
        code, facts, err = run(*words)
        assert (code, facts, err.startswith("error: ")) == (1, None, True), words
    for words in (
        ("tag", "create", "TABLE", "x", "--retain", "soon"),
        ("tag", "create", "TABLE", "x", "--min-snapshots", "2"),
        ("tag", "create", "TABLE"),
        ("branch", "move", "TABLE", "b"),
    ):
        assert run(*words)[0] == 2, words
    assert "x" not in refs()


def test_a_table_without_rows_takes_a_branch_and_no_tag(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    empty = lake.create_table("db.empty", numbers().schema)
    folder = str(tmp_path / "w" / "db" / "empty")
    assert cli.main(["tag", "create", folder, "t"]) == 1
    assert cli.main(["branch", "create", folder, "b"]) == 0
    other = StaticTable.from_metadata(empty.refresh().metadata_location)
    assert set(other.refs()) == {"b"}
    assert other.scan(snapshot_id=other.refs()["b"].snapshot_id).to_arrow().num_rows == 0


def test_a_rollback_is_a_dry_run_that_says_what_is_undone(
    run: Any, ids: list[int], table: tuple[Table, str]
) -> None:
    loaded = table[0]
    at = loaded.snapshots()[1].timestamp_ms
    for option in (("--to-snapshot", str(ids[0])), ("--to-time", str(at))):
        code, facts, err = run("rollback", "TABLE", *option)
        assert (code, err) == (0, "dry run: add --yes to do it\n")
        assert (facts["from"], facts["to"], facts["rolled back"]) == (ids[2], ids[0], False)
        assert [line.split()[0] for line in facts["undone"]] == [str(ids[2]), str(ids[1])]
        assert all("append: 1 rows added" in line for line in facts["undone"])
        assert loaded.refresh().current_snapshot().snapshot_id == ids[2]
    assert run("rollback", "TABLE", "--to-time", str(at), "--yes")[1] == {
        **facts,
        "rolled back": True,
    }
    other = StaticTable.from_metadata(loaded.refresh().metadata_location)
    assert other.current_snapshot().snapshot_id == ids[0]
    assert [entry.snapshot_id for entry in other.history()] == [*ids, ids[0]]
    assert len(other.snapshots()) == 3
    # and forward again, as the help says
    back = ("--snapshot-id", str(ids[2]), "--yes")
    assert run("branch", "replace", "TABLE", "main", *back)[0] == 0
    assert loaded.refresh().current_snapshot().snapshot_id == ids[2]


def test_a_branch_is_rolled_back_like_main(
    run: Any, ids: list[int], refs: Any, table: tuple[Table, str]
) -> None:
    loaded = table[0]
    assert run("branch", "create", "TABLE", "b", "--snapshot-id", str(ids[0]))[0] == 0
    loaded.refresh().append(numbers(9), branch="b")
    head = loaded.refs()["b"].snapshot_id
    at = loaded.snapshot_by_id(head).timestamp_ms
    for option in (("--to-snapshot", str(ids[0])), ("--to-time", str(at))):
        code, facts, _ = run("rollback", "TABLE", *option, "--branch", "b", "--yes")
        assert (code, facts["branch"], facts["from"], facts["to"]) == (0, "b", head, ids[0])
        assert refs()["b"].snapshot_id == ids[0]
        again = ("--snapshot-id", str(head), "--yes")
        assert run("branch", "replace", "TABLE", "b", *again)[0] == 0
    assert loaded.refresh().current_snapshot().snapshot_id == ids[2]
    # what main has is no ancestor of the branch
    code, facts, err = run("rollback", "TABLE", "--to-snapshot", str(ids[1]), "--branch", "b")
    assert (code, facts, "not an ancestor of the head of 'b'" in err) == (1, None, True)


def test_a_rollback_that_cannot_be_is_refused_by_its_dry_run_too(
    run: Any, ids: list[int], table: tuple[Table, str]
) -> None:
    assert run("rollback", "TABLE", "--to-snapshot", str(ids[0]), "--yes")[0] == 0
    version = table[0].refresh().metadata_location
    for code, *options in (
        (1, "--to-snapshot", str(ids[2])),
        (1, "--to-snapshot", "1"),
        (1, "--to-time", "2001-01-01"),
        (1, "--to-snapshot", str(ids[0]), "--branch", "nope"),
        (2,),
        (2, "--to-time", "1d", "--to-snapshot", str(ids[0])),
        (2, "--to-time", "noon"),
    ):
        for more in ((), ("--yes",)):
            found, facts, err = run("rollback", "TABLE", *map(str, options), *more)
            assert (found, facts, err.startswith("error: ")) == (code, None, True), options
    assert table[0].refresh().metadata_location == version


def test_properties_are_listed_set_and_removed_in_one_commit(
    run: Any, table: tuple[Table, str]
) -> None:
    loaded = table[0]
    change = ("--set", "owner=a=b", "--set", "write.format.default=orc", "--unset", "nothing")
    code, rows, err = run("properties", "TABLE", *change)
    assert (code, err) == (0, "")
    assert rows == [
        {"property": "nothing", "before": None, "after": None},
        {"property": "owner", "before": loaded.properties.get("owner"), "after": "a=b"},
        {"property": "write.format.default", "before": None, "after": "orc"},
    ]
    other = StaticTable.from_metadata(loaded.refresh().metadata_location)
    listed = {row["property"]: row["value"] for row in run("properties", "TABLE")[1]}
    assert listed == other.properties
    assert listed["owner"] == "a=b"
    assert run("properties", "TABLE", "--unset", "write.format.default")[1] == [
        {"property": "write.format.default", "before": "orc", "after": None}
    ]
    assert "write.format.default" not in loaded.refresh().properties


def test_properties_are_refused_as_by_the_api_and_nothing_is_changed(
    run: Any, table: tuple[Table, str]
) -> None:
    version = table[0].refresh().metadata_location
    for code, *options in (
        (1, "--set", "write.foramt.default=orc"),
        (1, "--set", "commit.retry.num-retries=many"),
        (1, "--set", "uuid=1"),
        (1, "--unset", "format-version"),
        (1, "--set", "format-version=1"),
        (1, "--set", "a=1", "--unset", "a"),
        (2, "--set", "a"),
        (2, "--set", "=1"),
        (2, "--unset", ""),
        (2, "--set", "a=1", "--set", "a=2"),
    ):
        found, rows, err = run("properties", "TABLE", "--set", "fine=1", *map(str, options))
        assert (found, rows, err.startswith("error: ")) == (code, None, True), options
    assert table[0].refresh().metadata_location == version


def test_an_upgrade_of_the_format_is_a_property(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    old = lake.create_table("db.old", numbers().schema, properties={"format-version": "1"})
    folder = str(tmp_path / "w" / "db" / "old")
    assert cli.main(["properties", folder, "--set", "format-version=2"]) == 0
    raw = json.loads(Path(old.refresh().metadata_location).read_text())
    assert raw["format-version"] == 2


def test_a_metadata_file_is_only_read(
    table: tuple[Table, str], capfd: pytest.CaptureFixture[str]
) -> None:
    file = table[0].metadata_location
    first = str(table[0].snapshots()[0].snapshot_id)
    for words in (
        ("tag", "create", file, "t"),
        ("rollback", file, "--to-snapshot", first, "--yes"),
        ("properties", file, "--set", "a=1"),
    ):
        assert cli.main(list(words)) == 1
        assert capfd.readouterr().err.startswith("error: ")
    assert table[0].refresh().metadata_location == file


def test_csv_of_what_was_done_has_a_header_and_a_line(
    table: tuple[Table, str], ids: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    where = [] if "/" in table[1] else ["--catalog", "hms"]
    capfd.readouterr()
    options = ["--to-snapshot", str(ids[0]), "--output", "csv"]
    assert cli.main([*where, "rollback", table[1], *options]) == 0
    (line,) = csv.DictReader(io.StringIO(capfd.readouterr().out))
    assert (line["from"], line["to"], line["rolled back"]) == (str(ids[2]), str(ids[0]), "false")
    assert len(json.loads(line["undone"])) == 2
