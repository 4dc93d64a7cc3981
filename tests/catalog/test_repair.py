"""Commits of unknown outcome, lost metadata files and pointers that went back: said, and set right."""

from __future__ import annotations

import gzip
import json
import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.catalog.commit.commit_status import CommitState
from icecomb.catalog.hive import lock as lock_module
from icecomb.catalog.hive.repair import apply_repair, plan_repair
from icecomb.catalog.lost_commits import Outcome, plan_reapplication, reapply
from icecomb.catalog.unknown_commit import commit_status, remove_leftovers
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata_file import read_metadata, write_metadata

ALTER = "alter_table_with_environment_context"
IMPATIENT = {"commit.status-check.num-retries": "0"}


def path(location: str) -> Path:
    return Path(location.removeprefix("file:"))


def name(table: Any) -> str:
    return ".".join(table.name())


def count(catalog: Any, table: Any) -> int:
    return int(catalog.load_table(table.name()).scan().count())


@pytest.fixture
def icecomb(metastore: Any, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command on the shared metastore: exit code, what it printed as JSON, stderr."""

    def run(*arguments: str) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = cli.main(["--uri", metastore.uri, "--output", "json", *arguments])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else None, err

    return run


@pytest.fixture
def lost(catalog: Any, proxied: Any, proxy: Any, namespace: str, rows: pa.Table) -> Any:
    """A table with one commit, and the error of another one whose request never arrived."""
    table = proxied.create_table(f"{namespace}.t", rows.schema, properties=IMPATIENT)
    table.append(rows)
    proxy.fail(ALTER, "request")
    with pytest.raises(CommitStateUnknownError) as error:
        table.append(rows)
    return catalog.load_table(table.name()), error.value


def test_the_error_names_both_files_and_the_command_that_settles_it(icecomb, catalog, lost):
    table, error = lost
    new, current = error.context["new"], error.context["current"]
    assert new in error.message
    assert current in error.message
    _, _, command = error.hint.partition(": icecomb ")
    code, said, err = icecomb(*shlex.split(command))
    assert (code, said["outcome"], said["current metadata"]) == (4, "pending", current)
    assert "--yes" in err
    assert path(new).is_file()
    assert catalog.load_table(table.name()).metadata_location == current, "asking changes nothing"

    files = set(path(table.location()).rglob("*.parquet"))
    code, said, _ = icecomb(*shlex.split(command), "--yes")
    assert (code, said["outcome"]) == (0, "not committed")
    assert new in said["removed"]
    assert not any(path(one).exists() for one in said["removed"])
    assert set(path(table.location()).rglob("*.parquet")) == files
    assert count(catalog, table) == 3
    assert catalog.load_table(table.name()).metadata_location != current
    assert catalog.load_table(table.name()).metadata.snapshots == table.metadata.snapshots


def test_files_elsewhere_that_somebody_planted_in_a_lost_commit_stay(icecomb, lost, tmp_path):
    """Whoever may write to the table's folder can name any file in the lost metadata file."""
    table, error = lost
    new, planted = error.context["new"], tmp_path / "snap-7-1-x.avro"
    planted.write_text("of another table")
    is_packed = path(new).name.endswith((".gz", ".gz.metadata.json"))
    text = gzip.decompress(path(new).read_bytes()) if is_packed else path(new).read_bytes()
    body = json.loads(text)
    snapshot = {**body["snapshots"][-1], "snapshot-id": 7, "manifest-list": f"file:{planted}"}
    body["snapshots"].append(snapshot)
    text = json.dumps(body).encode()
    path(new).write_bytes(gzip.compress(text) if is_packed else text)
    code, said, _ = icecomb("commit", "settle", "--checked", name(table), new, "--yes")
    assert (code, said["outcome"]) == (0, "not committed")
    assert planted.read_text() == "of another table"
    assert said["left outside"] == {f"file:{tmp_path}": 1}
    assert new in said["removed"]
    assert {one.rpartition(".")[2] for one in said["removed"]} == {"avro", "json"}


def test_a_file_elsewhere_that_calls_itself_a_lost_change_of_a_view_stays(
    icecomb, catalog, namespace, rows, tmp_path
):
    view = catalog.create_view(f"{namespace}.v", rows.schema, {"spark": "SELECT 1"})
    current = path(view.metadata_location)
    said = current.read_bytes()
    text = gzip.decompress(said) if said.startswith(b"\x1f\x8b") else said
    lost = text.replace(b"SELECT 1", b"SELECT 2")
    own, planted = current.with_name("00000-lost.metadata.json"), tmp_path / "0-x.metadata.json"
    for file in (own, planted):
        file.write_bytes(lost)
    found = {}
    for file in (planted, own):
        code, found[file], _ = icecomb(
            "commit", "settle", f"{namespace}.v", f"file:{file}", "--checked", "--yes"
        )
        assert (code, found[file]["outcome"]) == (0, "not committed")
    assert (found[planted]["removed"], found[planted]["left outside"]) == (
        [],
        {f"file:{tmp_path}": 1},
    )
    assert (found[own]["removed"], found[own]["left outside"]) == ([f"file:{own}"], {})
    assert planted.exists()
    assert not own.exists()


def test_a_late_request_fails_once_the_commit_is_settled(icecomb, catalog, lost, rows):
    """What the lost request would have done is done by hand, as it was sent."""
    table, error = lost
    new, current = error.context["new"], error.context["current"]
    icecomb("commit", "settle", "--checked", name(table), new, "--yes")
    entry = catalog.client.table(*table.name())
    late = replace(entry, parameters={**entry.parameters, "metadata_location": new})
    expected = {"expected_parameter_key": "metadata_location", "expected_parameter_value": current}
    with pytest.raises(Exception, match="The table has been modified"):
        catalog.client.alter_table(*table.name(), late, expected)


def test_a_commit_that_others_overtook_was_not_made_and_can_be_removed(
    icecomb, catalog, lost, rows
):
    table, error = lost
    new = error.context["new"]
    table.append(rows)
    before = {one for one in path(table.location()).rglob("*") if one.is_file()}
    code, said, err = icecomb("commit", "settle", name(table), new, "--yes")
    assert (code, said["outcome"]) == (4, "pending"), "a request without a check may still come"
    code, said, err = icecomb("commit", "settle", "--checked", name(table), new)
    assert (code, said["outcome"]) == (0, "not committed")
    assert {one for one in path(table.location()).rglob("*") if one.is_file()} == before
    assert "dry run" in err
    _, said, _ = icecomb("commit", "settle", "--checked", name(table), new, "--yes")
    after = {one for one in path(table.location()).rglob("*") if one.is_file()}
    gone = {one.name for one in before - after if not one.name.endswith(".crc")}
    assert gone == {path(one).name for one in said["removed"]}
    assert len(said["removed"]) == 3, "the metadata file, its manifest list and its manifest"
    assert count(catalog, table) == 6


def test_a_commit_that_happened_is_known_also_when_others_have_gone_on(
    icecomb, catalog, table, rows
):
    table.append(rows)
    file = table.metadata_location
    assert icecomb("commit", "settle", name(table), file)[1]["outcome"] == "committed"
    table.append(rows)
    code, said, _ = icecomb("commit", "settle", name(table), file, "--yes")
    assert (code, said["outcome"], said["because"]) == (
        0,
        "superseded",
        "1 later commits went on from it",
    )
    with table.update_properties() as change:
        change.set("write.metadata.previous-versions-max", "1")
    table.append(rows)
    found = commit_status(catalog, table.name(), file)
    assert (found.state, found.leftovers) == (CommitState.SUPERSEDED, ())
    assert "snapshots that it added" in found.reason
    with pytest.raises(ValidationError, match="Nothing is removed"):
        remove_leftovers(catalog, found)
    assert count(catalog, table) == 9


def test_a_file_by_another_spelling_is_the_table_still(icecomb, catalog, table, tmp_path):
    for number in (1, 2):
        with table.update_properties() as change:
            change.set("number", str(number))
    (tmp_path / "link").symlink_to(path(table.location()))
    current = path(table.metadata_location)
    for spelled, outcome in [
        (f"file://{current}", "committed"),
        (str(current).replace("/metadata/", "//metadata/"), "committed"),
        (f"{tmp_path}/link/metadata/{current.name}", "committed"),
        (f"file://{path(table.metadata.metadata_log[-1].metadata_file)}", "superseded"),
    ]:
        said = icecomb("commit", "settle", name(table), spelled, "--checked", "--yes")[1]
        assert said["outcome"] == outcome
    assert catalog.load_table(table.name()).properties["number"] == "2"


def test_the_leftovers_of_a_commit_are_not_those_of_a_second_name(
    icecomb, catalog, namespace, table, rows
):
    other = catalog.register_table(f"{namespace}.second", table.metadata_location)
    other.append(rows)
    table.append(rows)
    said = icecomb("commit", "settle", name(table), other.metadata_location, "--checked", "--yes")
    assert (said[1]["outcome"], said[1]["removed"]) == ("not committed", [])
    assert catalog.load_table(other.name()).scan().count() == rows.num_rows


def test_what_cannot_be_told_is_said_to_be_unknown(icecomb, catalog, namespace, table, rows):
    code, said, _ = icecomb(
        "commit", "settle", name(table), table.location() + "/metadata/no.metadata.json", "--yes"
    )
    assert (code, said["outcome"], said["leftovers"]) == (4, "unknown", [])
    other = catalog.create_table(f"{namespace}.other", rows.schema)
    code, said, err = icecomb("commit", "settle", name(table), other.metadata_location, "--yes")
    assert (code, said) == (1, None)
    assert "a file of another table" in err
    assert path(other.metadata_location).is_file()


def test_a_lost_metadata_file_is_found_out_and_repaired(icecomb, catalog, table, rows):
    table.append(rows)
    older = table.metadata_location
    table.append(rows)
    path(table.metadata_location).unlink()
    with pytest.raises(NoSuchFileError):
        catalog.load_table(table.name())

    code, said, _ = icecomb("doctor", name(table))
    assert code == 3
    (problem,) = [one for one in said["findings"] if one["level"] == "problem"]
    assert problem["subject"] == "metadata file"
    assert problem["remedy"] == f"icecomb repair {name(table)} --to {older}"
    code, _, err = icecomb("repair", name(table))
    assert code == 1
    assert problem["remedy"] in err

    command = shlex.split(problem["remedy"])[1:]
    code, said, err = icecomb(*command)
    assert (code, said["repaired"]) == (0, False)
    newest = table.current_snapshot().snapshot_id
    assert (
        said["snapshots lost"]
        == f"it lacks at least 1 snapshots, {newest}; others cannot be counted"
    )
    assert said["snapshots lost"] in problem["message"]
    assert catalog.client.table(*table.name()).metadata_location == table.metadata_location
    assert icecomb(*command, "--yes")[0] == 0
    assert count(catalog, table) == 3
    table.refresh().append(rows)
    assert count(catalog, table) == 6
    assert path(older).is_file()


def spoil(location: str, **members: Any) -> None:
    """Makes a metadata file one that cannot be read: no JSON, or JSON with wrong members."""
    file = path(location)
    file.chmod(0o644)
    text = file.read_text()
    file.write_text(json.dumps({**json.loads(text), **members}) if members else text[:-9])


BRICKED = {"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": "x"}]}]}
"""What a writer that checks nothing leaves: JSON, but no metadata."""


@pytest.fixture
def grown(catalog, table, rows):
    """A table of four metadata files, and these: without rows, with three, six and nine."""
    files = [table.metadata_location]
    for _ in range(3):
        table.append(rows)
        files.append(table.metadata_location)
    return table, files


def _problem(icecomb: Any, table: Any) -> dict[str, Any]:
    code, said, _ = icecomb("doctor", name(table))
    (problem,) = [one for one in said["findings"] if one["level"] == "problem"]
    assert (code, problem["subject"]) == (3, "metadata file")
    return dict(problem)


@pytest.mark.parametrize("damage", [BRICKED, {}], ids=["no metadata", "no JSON"])
def test_the_newest_file_is_proposed_when_the_last_two_cannot_be_read(
    icecomb, catalog, grown, damage
):
    table, files = grown
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    spoil(files[3], **damage)
    spoil(files[2], **damage)
    problem = _problem(icecomb, table)
    assert problem["remedy"] == f"icecomb repair {name(table)} --to {files[1]}"
    _, said, _ = icecomb("repair", name(table), "--to", files[1])
    if damage:
        assert problem["message"].endswith(f": it lacks 2 snapshots: {ids[1]}, {ids[2]}")
        assert said["snapshots lost"] == 2
    else:
        assert (
            f"no file that is left says that it was ever committed (or is it {files[0]}?)"
            in (problem["message"])
        )
        assert (
            f"it lacks at least 1 snapshots, {ids[2]}; others cannot be counted"
            in problem["message"]
        )
        assert str(ids[2]) in said["snapshots lost"]
    code, _, err = icecomb("repair", name(table))
    assert (code, problem["message"].rpartition(": ")[2] in err) == (1, True)
    assert problem["remedy"] in err
    assert icecomb(*shlex.split(problem["remedy"])[1:], "--yes")[0] == 0
    assert count(catalog, table) == 3


def test_a_file_that_only_lacks_a_change_of_properties_loses_no_snapshot(icecomb, grown):
    table, files = grown
    with table.update_properties() as change:
        change.set("mine", "x")
    spoil(table.metadata_location, **BRICKED)
    problem = _problem(icecomb, table)
    assert problem["message"].endswith(f"{files[3]}: it lacks no snapshot")
    path(table.metadata_location).write_text("")
    assert _problem(icecomb, table)["message"].endswith(
        f"{files[3]}: it has the snapshots that the table is known to have had; "
        "others cannot be counted"
    )


@pytest.mark.parametrize("damage", [BRICKED, {}], ids=["no metadata", "no JSON"])
def test_what_was_written_and_not_committed_is_not_taken_for_the_table(
    icecomb, catalog, grown, damage
):
    table, files = grown
    folder = files[0].rpartition("/")[0]
    leftover = f"{folder}/00002-ffffffff-0000-0000-0000-000000000000.metadata.json"
    base = read_metadata(catalog.io, files[1])
    log = (*base.metadata_log, replace(base.metadata_log[-1], metadata_file=files[1]))
    write_metadata(catalog.io, replace(base, metadata_log=log), leftover)
    other = leftover.replace("ffffffff-0000", "eeeeeeee-0000")
    write_metadata(catalog.io, replace(base, metadata_log=log), other)
    spoil(files[3], **damage)
    spoil(files[2], **damage)
    problem = _problem(icecomb, table)
    if damage:
        assert problem["remedy"].endswith(f" --to {files[1]}")
    else:
        proposed = problem["remedy"].rpartition(" ")[2]
        (rival,) = {leftover, other} - {proposed}
        assert f"(or is it {rival}, or {files[1]}?)" in problem["message"]


def test_a_file_of_a_later_format_or_out_of_reach_needs_no_repair(icecomb, catalog, grown):
    table, files = grown
    entry = catalog.client.table(*table.name())
    whole = path(files[3]).read_text()
    spoil(files[3], **{"format-version": 4})
    problem = _problem(icecomb, table)
    assert "a repair cannot mend that" in problem["message"]
    assert files[2] not in str(problem)
    code, _, err = icecomb("repair", name(table))
    assert (code, "--to" in err, "version 4" in err) == (1, False, True)

    path(files[3]).unlink()
    path(files[3]).mkdir()  # as a file that may not be read: the file system refuses
    problem = _problem(icecomb, table)
    assert (files[2] in str(problem), "repair " in problem["remedy"]) == (False, False)
    code, _, err = icecomb("repair", name(table))
    assert (code, "--to" in err) == (1, False)
    path(files[3]).rmdir()
    path(files[3]).write_text(whole)
    assert catalog.client.table(*table.name()) == entry
    assert count(catalog, table) == 9


def test_a_table_without_any_readable_metadata_says_so(icecomb, table):
    path(table.metadata_location).unlink()
    code, said, _ = icecomb("doctor", name(table))
    (problem,) = [one for one in said["findings"] if one["level"] == "problem"]
    assert (code, "no other metadata file" in problem["message"]) == (3, True)
    code, _, err = icecomb("repair", name(table))
    assert (code, "Its folder has no older metadata file" in err) == (1, True)
    assert icecomb("drop", name(table), "--yes")[1]["dropped"] is True


def _point(catalog: Any, table: Any, location: str) -> None:
    """What a late request of a writer without a check does."""
    entry = catalog.client.table(*table.name())
    past = read_metadata(catalog.io, location)
    changed = {
        **entry.parameters,
        "metadata_location": location,
        "current-snapshot-id": str(past.current_snapshot_id),
    }
    changed.pop("previous_metadata_location")
    catalog.client.alter_table(*table.name(), replace(entry, parameters=changed))


def test_a_pointer_that_went_backwards_is_found_out_and_repaired(icecomb, catalog, table, rows):
    table.append(rows)
    older = table.metadata_location
    table.append(rows)
    middle = table.metadata_location
    table.append(rows)
    newest = table.metadata_location
    assert icecomb("doctor", name(table))[0] == 0
    _point(catalog, table, older)
    code, said, _ = icecomb("doctor", name(table))
    (problem,) = [one for one in said["findings"] if one["level"] == "problem"]
    assert (code, problem["subject"]) == (3, "pointer")
    assert f"--to {middle}" in problem["remedy"], (
        "the newest that others are known to have gone on from"
    )
    assert newest in problem["remedy"]
    code, said, _ = icecomb("repair", name(table), "--to", newest, "--yes")
    assert (code, said["snapshots lost"]) == (0, 0)
    assert count(catalog, table) == 9
    assert icecomb("doctor", name(table))[0] == 0

    _point(catalog, table, older)
    catalog.load_table(table.name()).append(rows)
    code, said, _ = icecomb("doctor", name(table))
    (problem,) = [one for one in said["findings"] if one["level"] == "problem"]
    assert "others went on from there" in problem["message"]
    register = shlex.split(problem["remedy"].rpartition(": icecomb ")[2])
    assert icecomb(*register)[0] == 0
    assert count(catalog, catalog.load_table(name(table) + "_lost")) >= 6


def test_a_pointer_set_back_by_hand_is_known_by_what_the_entry_still_says(
    icecomb, catalog, table, rows
):
    table.append(rows)
    older = table.metadata_location
    table.append(rows)
    entry = catalog.client.table(*table.name())
    changed = {**entry.parameters, "metadata_location": older}
    catalog.client.alter_table(*table.name(), replace(entry, parameters=changed))
    code, said, _ = icecomb("doctor", name(table))
    (problem,) = [one for one in said["findings"] if one["level"] == "problem"]
    assert (code, problem["subject"]) == (3, "pointer")
    assert problem["remedy"] == f"icecomb repair {name(table)} --to {table.metadata_location}"
    assert not [one for one in said["findings"] if one["subject"] == "leftover"]


def test_a_commit_that_an_old_copy_of_the_entry_took_away_is_told_as_a_fork(
    icecomb, catalog, table, rows, monkeypatch
):
    table.append(rows)
    before = catalog.client.table(*table.name())
    assert not [
        one for one in icecomb("doctor", name(table))[1]["findings"] if one["subject"] == "fork"
    ]
    table.append(rows)
    lost, base = table.metadata_location, before.parameters["metadata_location"]
    catalog.client.alter_table(*table.name(), before)  # as Hive does before an INSERT
    catalog.load_table(table.name()).append(rows)
    code, said, _ = icecomb("doctor", name(table))
    (fork,) = [one for one in said["findings"] if one["subject"] == "fork"]
    assert (code, fork["level"]) == (0, "warning")
    assert f"{lost} was written on {base}" in fork["message"]
    register = shlex.split(fork["remedy"].rpartition(": icecomb ")[2])
    assert icecomb(*register)[0] == 0
    assert count(catalog, catalog.load_table(name(table) + "_lost")) == 6

    monkeypatch.setattr("icecomb.catalog.commit.commit_status.OLD_MS", -1)
    reapply = shlex.split(fork["remedy"].partition(": icecomb ")[2].partition(";")[0])
    assert icecomb(*reapply)[0] == 0
    assert count(catalog, table) == 6
    for _ in range(2):
        assert icecomb(*reapply, "--yes")[0] == 0
        assert count(catalog, table) == 9
    assert not [
        one for one in icecomb("doctor", name(table))[1]["findings"] if one["subject"] == "fork"
    ]


def test_a_fork_is_one_however_its_writers_spelled_the_locations(
    icecomb, catalog, table, rows, monkeypatch
):
    table.append(rows)
    before = catalog.client.table(*table.name())
    here = before.parameters["metadata_location"]
    spelled = here.replace("file:", "file://") if here.startswith("file:") else f"file://{here}"
    table.append(rows)
    lost = table.metadata_location
    parameters = before.parameters | {"metadata_location": spelled}
    catalog.client.alter_table(*table.name(), replace(before, parameters=parameters))

    def found():
        findings = icecomb("doctor", name(table))[1]["findings"]
        return [one["subject"] for one in findings if one["subject"] in {"pointer", "fork"}]

    # at the file that the lost one was written on, whatever it is called
    assert "leftover" in [one["subject"] for one in icecomb("doctor", name(table))[1]["findings"]]
    catalog.load_table(table.name()).append(rows)
    assert found() == ["pointer", "fork"]
    monkeypatch.setattr("icecomb.catalog.commit.commit_status.OLD_MS", -1)
    assert icecomb("repair", name(table), "--reapply", lost, "--yes")[0] == 0
    assert (count(catalog, table), found()) == (9, ["pointer"])


def test_all_commits_are_told_that_an_old_copy_of_the_entry_took_away(
    icecomb, catalog, table, rows, monkeypatch
):
    table.append(rows)
    before = catalog.client.table(*table.name())
    table.append(rows)
    proven = table.metadata_location
    table.append(rows)
    last = table.metadata_location
    catalog.client.alter_table(*table.name(), before)
    catalog.load_table(table.name()).append(rows)
    found = {
        one["subject"]: one["remedy"]
        for one in icecomb("doctor", name(table))[1]["findings"]
        if one["subject"] in {"pointer", "fork"}
    }
    assert f"--reapply {proven}" in found["pointer"]
    assert f"--reapply {last}" in found["fork"]
    monkeypatch.setattr("icecomb.catalog.commit.commit_status.OLD_MS", -1)
    assert icecomb("repair", name(table), "--reapply", last, "--yes")[0] == 0
    assert count(catalog, table) == 12
    code, said, _ = icecomb("doctor", name(table))
    subjects = [one["subject"] for one in said["findings"] if one["level"] != "ok"]
    assert (code, "fork" in subjects, "pointer" in subjects) == (0, False, False)


@pytest.mark.parametrize("fault", ["request", "late", "reply"])
def test_a_lost_commit_comes_back_once_whatever_becomes_of_the_request(
    catalog, proxied, proxy, table, rows, monkeypatch, fault
):
    table.append(rows)
    before = catalog.client.table(*table.name())
    table.append(rows)
    location = table.metadata_location
    catalog.client.alter_table(*table.name(), before)
    found = catalog.load_table(table.name())
    with found.update_properties() as change:
        change.set("commit.status-check.num-retries", "0")
    monkeypatch.setattr("icecomb.catalog.commit.commit_status.OLD_MS", -1)
    behind = proxied.load_table(table.name())
    line = plan_reapplication(behind, location)
    proxy.fail(ALTER, fault)
    with suppress(CommitStateUnknownError):
        reapply(behind, line)
    assert proxy.injected[ALTER, fault] == 1
    reapply(found, plan_reapplication(found, location))
    assert count(catalog, table) == 6
    proxy.deliver()
    assert count(catalog, table) == 6
    done = plan_reapplication(found, location)
    assert [one.outcome for one in done.commits] == [Outcome.NOTHING_TO_DO]


def test_only_files_of_the_table_that_are_of_use_are_pointed_at(
    icecomb, catalog, namespace, table, rows
):
    table.append(rows)
    older = table.metadata_location
    table.append(rows)
    other = catalog.create_table(f"{namespace}.other", rows.schema)
    cases = {
        other.metadata_location: "a file of another table",
        table.metadata_location: "already",
        table.location() + "/metadata/no.metadata.json": "no.metadata.json",
    }
    path(catalog.load_table(table.name()).snapshots()[0].manifest_list).unlink()
    cases[older] = "manifest list"
    for file, message in cases.items():
        code, said, err = icecomb("repair", name(table), "--to", file, "--yes")
        assert (code, said, message in err, len(err.splitlines()) <= 2) == (1, None, True, True), (
            err
        )
    assert catalog.client.table(*table.name()).metadata_location == table.metadata_location
    assert path(other.metadata_location).is_file()
    assert path(older).is_file()


def test_a_repair_that_was_overtaken_changes_and_deletes_nothing(catalog, table, rows):
    table.append(rows)
    older = table.metadata_location
    table.append(rows)
    plan = plan_repair(catalog, table.name(), older)
    assert plan.lost_snapshots == (table.current_snapshot().snapshot_id,)
    table.append(rows)
    with pytest.raises(CommitFailedError, match="moved since the repair was planned"):
        apply_repair(catalog, plan)
    assert path(older).is_file()
    assert count(catalog, table) == 9


def test_stale_parameters_are_found_out_and_written_anew(icecomb, catalog, table, rows):
    table.append(rows)
    good = catalog.client.table(*table.name())
    changed = {**good.parameters, "numRows": "77", "current-snapshot-id": "1", "theirs": "kept"}
    changed.pop("current-schema")
    catalog.client.alter_table(*table.name(), replace(good, parameters=changed))
    code, said, _ = icecomb("doctor", name(table))
    assert code == 0, "a warning is no problem"
    (warning,) = [one for one in said["findings"] if one["subject"] == "parameters"]
    assert (warning["level"], warning["remedy"]) == ("warning", f"icecomb repair {name(table)}")
    assert "numRows is '77', not '3'" in warning["message"]
    _, said, _ = icecomb("repair", name(table))
    assert said["parameters"].keys() == {"numRows", "current-snapshot-id", "current-schema"}
    assert catalog.client.table(*table.name()).parameters["numRows"] == "77"
    assert icecomb("repair", name(table), "--yes")[0] == 0
    now = catalog.client.table(*table.name()).parameters
    assert {**now, "transient_lastDdlTime": ""} == {
        **good.parameters,
        "theirs": "kept",
        "transient_lastDdlTime": "",
    }
    assert count(catalog, table) == 3


STALE = {
    "metadata_location": "file:/nowhere/else.metadata.json",
    "previous_metadata_location": "file:/nowhere/before.metadata.json",
    "table_type": "HIVE",
    "EXTERNAL": "FALSE",
}


def _with_properties(catalog: Any, table: Any, properties: dict[str, str]) -> str:
    """What another writer's commit leaves that keeps such names among the properties."""
    metadata = catalog.load_table(table.name()).metadata
    changed = replace(metadata, properties={**metadata.properties, **properties})
    location = table.metadata_location.rpartition("/")[0] + "/00007-theirs.metadata.json"
    write_metadata(catalog.io, changed, location)
    entry = catalog.client.table(*table.name())
    parameters = {**entry.parameters, "metadata_location": location, "numRows": "77"}
    catalog.client.alter_table(*table.name(), replace(entry, parameters=parameters))
    return location


def _still_ours(entry: Any) -> bool:
    return entry.table_type == "EXTERNAL_TABLE" and entry.is_iceberg


def test_properties_of_other_writers_point_an_entry_nowhere(icecomb, catalog, table, rows):
    table.append(rows)
    location = _with_properties(catalog, table, STALE)
    _, said, _ = icecomb("repair", name(table))
    assert set(said["parameters"]) == {"numRows"}
    assert icecomb("repair", name(table), "--yes")[0] == 0
    entry = catalog.client.table(*table.name())
    assert (entry.metadata_location, _still_ours(entry)) == (location, True)

    table.refresh().append(rows)
    entry = catalog.client.table(*table.name())
    assert (entry.metadata_location, _still_ours(entry)) == (table.metadata_location, True)
    assert entry.parameters["previous_metadata_location"] == location
    with table.transaction() as transaction, transaction.update_properties() as change:
        for key in STALE:
            change.remove(key)
    entry = catalog.client.table(*table.name())
    assert (entry.metadata_location, _still_ours(entry)) == (table.metadata_location, True)
    assert not STALE.keys() & table.properties.keys()
    assert count(catalog, table) == 6


def test_a_file_with_such_properties_is_registered_as_a_table_of_its_own(
    icecomb, catalog, namespace, table, rows
):
    table.append(rows)
    location = _with_properties(catalog, table, STALE)
    assert icecomb("register", f"{namespace}.again", location)[0] == 0
    entry = catalog.client.table(namespace, "again")
    assert (entry.metadata_location, _still_ours(entry)) == (location, True)
    assert "previous_metadata_location" not in entry.parameters


@pytest.mark.parametrize("key", [*STALE, "uuid"])
def test_no_operation_sets_such_a_property(catalog, namespace, table, rows, key):
    before = catalog.client.table(*table.name())
    given = {key: STALE.get(key, "x")}
    with pytest.raises(ValidationError, match=key):
        catalog.create_table(f"{namespace}.made", rows.schema, properties=given)
    with pytest.raises(ValidationError, match=key):
        catalog.create_or_replace_table(table.name(), rows.schema, properties=given)
    with pytest.raises(ValidationError, match=key), table.update_properties() as change:
        change.set(key, given[key])
    with pytest.raises(ValidationError, match=key), table.transaction() as transaction:
        transaction.set_properties(given)
    assert catalog.client.table(*table.name()) == before
    assert not catalog.table_exists(f"{namespace}.made")


def test_a_table_whose_files_hive_would_delete_is_told(icecomb, catalog, table):
    entry = catalog.client.table(*table.name())
    managed = replace(entry, parameters={**entry.parameters, "EXTERNAL": "FALSE"})
    catalog.client.alter_table(*table.name(), managed)
    assert catalog.client.table(*table.name()).table_type == "MANAGED_TABLE"
    code, said, _ = icecomb("doctor", name(table))
    (finding,) = [one for one in said["findings"] if one["subject"] == "type"]
    assert (code, finding["level"]) == (0, "warning")
    assert "DROP TABLE in Hive deletes its files" in finding["message"]
    assert "EXTERNAL" in finding["remedy"]
    with table.update_properties() as change:
        change.set("EXTERNAL", "TRUE")
    assert catalog.client.table(*table.name()).table_type == "EXTERNAL_TABLE"
    _, said, _ = icecomb("doctor", name(table))
    assert not [one for one in said["findings"] if one["subject"] == "type"]


def test_mixed_lock_modes_are_told(icecomb, catalog, namespace, table, rows):
    free = {"engine.hive.lock-enabled": "false"}
    mixed = catalog.create_table(f"{namespace}.free", rows.schema, properties=free)
    answer = catalog.client.lock(*mixed.name(), user="ann", host="h", agent="theirs")
    code, said, _ = icecomb("doctor", name(mixed))
    catalog.client.unlock(answer.lock_id)
    messages = [one["message"] for one in said["findings"] if one["subject"] == "lock mode"]
    assert (code, len(messages)) == (0, 2)
    assert "committed to without locks" in messages[0]
    assert "somebody uses one: ann@h" in messages[1]
    _, said, _ = icecomb("doctor", name(table))
    (mode,) = [one for one in said["findings"] if one["subject"] == "lock mode"]
    assert mode["level"] == "ok"


def test_a_lock_whose_holder_is_silent_is_told(icecomb, catalog, table, monkeypatch):
    answer = catalog.client.lock(*table.name(), user="ann", host="h", agent="dead")
    code, said, _ = icecomb("doctor", name(table))
    (held,) = [one for one in said["findings"] if one["subject"] == "lock"]
    assert (code, held["level"]) == (0, "note")
    assert f"ann@h (lock {answer.lock_id}, agent dead" in held["message"]
    monkeypatch.setattr(lock_module, "SILENT_S", 0.0)
    monkeypatch.setattr(lock_module, "lock_expiry_s", lambda _: None)
    code, said, _ = icecomb("doctor", name(table))
    problems = [one for one in said["findings"] if one["level"] == "problem"]
    assert code == 3
    assert any(f"icecomb locks break {answer.lock_id} --yes" == one["remedy"] for one in problems)
    catalog.client.unlock(answer.lock_id)


def test_doctor_says_where_settings_come_from_and_what_the_metastore_checks(
    metastore, catalog, namespace, capfd, monkeypatch
):
    monkeypatch.setenv("ICECOMB_CATALOG__DEFAULT__FS__S3A__SECRET__KEY", "hunter2")
    capfd.readouterr()
    assert cli.main(["--uri", metastore.uri, "doctor", "--json"]) == 0
    out, err = capfd.readouterr()
    said = json.loads(out)
    assert err == ""
    assert {"key": "uri", "value": metastore.uri, "source": "argument"} in said["configuration"]
    assert {
        "key": "fs.s3a.secret.key",
        "value": "********",
        "source": "ICECOMB_CATALOG__DEFAULT__FS__S3A__SECRET__KEY",
    } in said["configuration"]
    assert said["versions"].keys() >= {"icecomb", "python", "java", "pyarrow"}
    found = {one["subject"]: one for one in said["findings"]}
    assert found["pointer check"]["level"] == "ok", "2.3.10 has HIVE-26882"
    assert metastore.uri in found["metastore"]["message"]
    assert "column check" in found
    assert catalog.client.table_names("default") == []

    assert cli.main(["--uri", metastore.uri, "doctor"]) == 0
    out, _ = capfd.readouterr()
    assert "hunter2" not in out
    assert (
        f"uri                  {metastore.uri}" in " ".join(out.split("\n")) or metastore.uri in out
    )


def test_doctor_names_the_one_of_several_metastores_that_is_away(metastore, capfd):
    uris = f"thrift://127.0.0.1:9,{metastore.uri}"
    assert cli.main(["--uri", uris, "doctor", "--json"]) == 0
    found = [
        one
        for one in json.loads(capfd.readouterr().out)["findings"]
        if one["subject"] == "metastore"
    ]
    assert [one["level"] for one in found] == ["warning", "ok"]
    assert "127.0.0.1:9 " in found[0]["message"]
    assert metastore.uri in found[1]["message"]


def test_doctor_reports_a_metastore_that_is_away(capfd):
    assert cli.main(["--uri", "thrift://127.0.0.1:9", "doctor", "--json"]) == 3
    said = json.loads(capfd.readouterr().out)
    (problem,) = said["findings"]
    assert (problem["level"], problem["subject"]) == ("problem", "metastore")


@pytest.mark.parametrize(
    "command",
    [("doctor", "{}"), ("repair", "{}"), ("commit", "settle", "{}", "/x.metadata.json"), ("views", "show", "{}"), ("views", "drop", "{}", "--yes")],
    ids=" ".join,
)  # fmt: skip
def test_bad_names_are_one_line_and_exit_code_1(icecomb, catalog, namespace, rows, command):
    catalog.create_table(f"{namespace}.t", rows.schema)
    catalog.create_view(f"{namespace}.v", rows.schema, {"spark": "SELECT 1"})
    wrong = {"views": [f"{namespace}.t"], "commit": []}.get(command[0], [f"{namespace}.v"])
    for bad in (
        "default.nowhere",
        "nowhere.t",
        "justone",
        "a.b.c",
        "default.tä'\"b",
        "default." + "x" * 200,
        *wrong,
    ):
        code, said, err = icecomb(*(part.format(bad) for part in command))
        assert (code, said) == (1, None), bad
        assert err.startswith("error: ")
        assert len(err.splitlines()) <= 2


def test_views_are_listed_and_shown(icecomb, catalog, namespace, rows):
    catalog.create_view(f"{namespace}.v", rows.schema, {"spark": "SELECT 1"}, properties={"a": "b"})
    assert icecomb("views", "list", namespace)[1] == [{"view": f"{namespace}.v"}]
    _, said, _ = icecomb("views", "show", f"{namespace}.v")
    assert (said["queries"], said["properties"]) == ({"spark": "SELECT 1"}, {"a": "b"})
    assert icecomb("views", "drop", f"{namespace}.v")[1]["dropped"] is False
    assert icecomb("views", "drop", f"{namespace}.v", "--yes")[0] == 0
    assert catalog.list_views(namespace) == []


def test_tables_in_folders_have_fates_too_but_no_entry_to_repair(
    tmp_path, rows, capfd, monkeypatch
):
    monkeypatch.setenv("ICECOMB_CATALOG__FILES__TYPE", "hadoop")
    files = load_catalog("files", warehouse=str(tmp_path))
    files.create_namespace("a")
    table = files.create_table("a.t", rows.schema)
    older = table.metadata_location
    table.append(rows)
    assert commit_status(files, "a.t", older).state is CommitState.SUPERSEDED
    here = ["--catalog", "files", "--warehouse", str(tmp_path)]
    assert cli.main([*here, "doctor"]) == 0
    assert cli.main([*here, "repair", "a.t", "--to", older, "--yes"]) == 1
    assert "has no metastore" in capfd.readouterr().err
    assert files.load_table("a.t").scan().count() == 3


def test_a_transaction_of_which_any_snapshot_is_there_was_committed(tmp_path, rows):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", rows.schema)
    table.append(rows)
    transaction = table.transaction()
    transaction.append(rows)
    transaction.append(rows)
    updates = transaction.apply(table.metadata).updates
    attempt = update_table_metadata(table.metadata, updates, base_location=table.metadata_location)
    file = f"{table.location()}/metadata/attempt.metadata.json"
    write_metadata(table.io, attempt, file)
    first = attempt.snapshots[1].snapshot_id
    transaction.commit_transaction()
    table.expire_snapshots().by_id(first).commit()
    found = commit_status(catalog, "a.t", file, expectation_sent=True)
    assert (found.state, found.leftovers) == (CommitState.SUPERSEDED, ())
    assert table.scan().count() == 9
