"""`icecomb maintain` and `Table.maintenance`: the same actions, the same numbers."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog import Table, cli, load_catalog
from icecomb.catalog.maintenance import RewrittenManifests
from icecomb.catalog.maintenance.expiry import ExpiredFiles
from icecomb.catalog.maintenance.orphans import OrphanFiles
from icecomb.format.errors import ValidationError
from tests.catalog.numbered_rows import numbers


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table in a folder whose first file is overwritten; two snapshots are of no use."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    made = lake.create_table("db.t", numbers().schema)
    made.append(numbers(1))
    made.overwrite(numbers(2))
    made.append(numbers(3))
    return made


@pytest.fixture
def maintain(table: Table, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs `icecomb maintain ACTION` on the table: exit code, facts, stderr."""

    def run(action: str, *options: str) -> tuple[int, dict[str, Any], str]:
        capfd.readouterr()
        code = cli.main(["--output", "json", "maintain", action, table.location(), *options])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else {}, err

    return run


def test_results_have_the_columns_of_iceberg_s_procedures() -> None:
    assert [field.name for field in dataclasses.fields(ExpiredFiles)] == [
        "deleted_data_files_count",
        "deleted_position_delete_files_count",
        "deleted_equality_delete_files_count",
        "deleted_manifest_files_count",
        "deleted_manifest_lists_count",
        "deleted_statistics_files_count",
        "left_outside",  # CALL does not show it
    ]
    assert "orphan_file_location" in {field.name for field in dataclasses.fields(OrphanFiles)}
    assert [field.name for field in dataclasses.fields(RewrittenManifests)] == [
        "rewritten_manifests_count",
        "added_manifests_count",
    ]


def test_expiring_is_a_dry_run_until_it_is_told_to(table: Table, maintain: Any) -> None:
    code, dry, said = maintain("expire-snapshots", "--older-than", "0s")
    assert (code, dry["dry_run"], dry["deleted_data_files_count"]) == (0, True, 1)
    assert dry["left_outside"] == {}
    assert "add --yes" in said
    before = len(table.refresh().snapshots())
    code, done, _ = maintain("expire-snapshots", "--older-than", "0s", "--yes")
    assert (code, done) == (0, {**dry, "dry_run": False})
    assert before > len(table.refresh().snapshots()) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3]


def test_times_are_moments_or_ages(table: Table, maintain: Any) -> None:
    for text in ("1d", "2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+02:00"):
        assert (
            maintain("expire-snapshots", "--older-than", text)[1]["deleted_data_files_count"] == 0
        )
    code, _, said = maintain("expire-snapshots", "--older-than", "yesterday")
    assert code == 2
    assert "neither a time" in said


def test_python_and_the_command_answer_alike(table: Table, maintain: Any) -> None:
    now = int(time.time() * 1000) + 1
    planned = table.maintenance.expire_snapshots().older_than(now).plan()
    assert planned.deleted_data_files_count == 1
    shown = maintain("expire-snapshots", "--older-than", "0s")[1]
    assert dataclasses.asdict(planned).items() <= shown.items()
    assert table.maintenance.expire_snapshots().older_than(now).commit() == planned


def test_manifests_are_rewritten_on_a_branch(table: Table, maintain: Any) -> None:
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "side")
    main = table.current_snapshot().snapshot_id
    code, done, _ = maintain("rewrite-manifests", "--branch", "side")
    assert (code, done["added_manifests_count"]) == (0, 1)
    assert done["rewritten_manifests_count"] > 1
    table.refresh()
    assert table.current_snapshot().snapshot_id == main
    assert table.refs()["side"].snapshot_id != main
    assert sorted(table.scan(ref="side").to_arrow()["id"].to_pylist()) == [2, 3]


def test_a_spec_field_or_branch_that_is_not_there_is_refused(table: Table) -> None:
    with pytest.raises(ValidationError, match="no partition spec 7"):
        table.maintenance.rewrite_manifests(spec_id=7)
    with pytest.raises(ValidationError, match="no branch 'typo'"):
        table.maintenance.rewrite_manifests(branch="typo")
    with pytest.raises(ValidationError, match="no field day"):
        table.maintenance.rewrite_manifests(sort_by=["day"])
    with pytest.raises(ValidationError, match="sequence of str"):
        table.maintenance.rewrite_manifests(sort_by="day")
    assert set(table.refresh().refs()) == {"main"}


def left(table: Table, name: str) -> Path:
    """A file of a week ago that nothing refers to."""
    path = Path(table.location().removeprefix("file:")) / "data" / name
    path.write_bytes(b"left")
    then = time.time() - 7 * 86_400
    os.utime(path, (then, then))
    return path


@pytest.mark.gate("waits for the next second")
def test_orphans_are_shown_deleted_or_set_aside(table: Table, maintain: Any) -> None:
    first = left(table, "first.parquet")
    code, dry, said = maintain("remove-orphan-files")
    assert (code, dry["orphan_file_location"], dry["dry_run"]) == (0, [str(first)], True)
    assert "add --yes" in said
    assert first.exists()
    code, done, _ = maintain("remove-orphan-files", "--yes")
    assert (code, done["deleted_files_count"]) == (0, 1)
    assert not first.exists()
    second = left(table, "second.parquet")
    code, done, _ = maintain("remove-orphan-files", "--yes", "--quarantine")
    assert (code, second.exists()) == (0, False)
    assert (Path(done["quarantine"]) / "data" / "second.parquet").exists()
    code, _, said = maintain("empty-quarantine")
    assert (code, "--older-than is missing: Limit to what is older" in said) == (2, True)
    assert maintain("empty-quarantine", "--older-than", "1d")[1]["kept_files_count"] == 1
    time.sleep(1.1)  # the name of the folder has seconds
    assert maintain("empty-quarantine", "--older-than", "0s")[1]["deleted_files_count"] == 1
    code, done, _ = maintain("empty-quarantine", "--older-than", "0s", "--yes")
    assert (code, done["deleted_files_count"], done["kept_files_count"]) == (0, 1, 0)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3]


def test_files_come_from_a_list_with_or_without_times(
    table: Table, maintain: Any, tmp_path: Path
) -> None:
    paths = [left(table, name) for name in ("a.parquet", "b,c.parquet", "d.parquet", "e.parquet")]
    times = ("", "", ",2020-01-01T00:00:00Z", f",{int(time.time() * 1000)}")
    listed = tmp_path / "list.csv"
    lines = [f"{path}{when}\n" for path, when in zip(paths, times, strict=True)]
    listed.write_text("".join(lines) + "\n")
    code, found, _ = maintain("remove-orphan-files", "--list", str(listed))
    assert code == 0
    assert set(found["orphan_file_location"]) == {str(path) for path in paths[:3]}


def test_a_young_age_and_a_bad_map_are_refused(table: Table, maintain: Any) -> None:
    code, _, said = maintain("remove-orphan-files", "--older-than", "1h")
    assert (code, "24 hours" in said, "--any-age" in said) == (1, True, True)
    assert maintain("remove-orphan-files", "--older-than", "1h", "--any-age")[0] == 0
    assert maintain("remove-orphan-files", "--equal-schemes", "s3a")[0] == 2
    assert maintain("remove-orphan-files", "--equal-schemes", "s3a,s3n=s3")[0] == 0


def test_a_file_that_stays_is_told_by_the_exit_code(
    table: Table, maintain: Any, monkeypatch: Any
) -> None:
    stuck = left(table, "stuck.parquet")
    monkeypatch.setattr(
        "icecomb.catalog.maintenance.orphans.delete_files", lambda _, files, __: list(files)
    )
    code, done, said = maintain("remove-orphan-files", "--yes")
    assert (code, done["failed_files"]) == (1, [str(stuck)])
    assert "1 files could not be deleted" in said


def test_data_files_are_rewritten_after_a_look(table: Table, maintain: Any) -> None:
    before = table.current_snapshot().snapshot_id
    options = ("--option", "min-input-files=2", "--strategy", "BINPACK")
    code, plan, said = maintain("rewrite-data-files", *options, "--dry-run")
    [group] = plan
    assert (code, group["files"], group["rows"], group["expected_files"]) == (0, 2, 2, 1)
    assert "leave --dry-run out" in said
    assert table.refresh().current_snapshot().snapshot_id == before
    code, done, said = maintain("rewrite-data-files", *options)
    assert (code, said) == (0, "")
    assert done == {
        "table": table.location(),
        "rewritten_data_files_count": 2,
        "added_data_files_count": 1,
        "rewritten_bytes_count": group["size"],
        "failed_data_files_count": 0,
        "removed_delete_files_count": 0,
    }
    assert table.refresh().current_snapshot().operation == "replace"
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3]


def test_files_are_sorted_where_and_on_the_branch_that_is_said(table: Table, maintain: Any) -> None:
    main = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(main, "side")
    code, done, _ = maintain(
        *("rewrite-data-files", "--sort-order", "id DESC", "--branch", "side"),
        *("--where", "id >= 3", "--option", "rewrite-all=true"),
    )
    assert (code, done["rewritten_data_files_count"]) == (0, 1)
    code, done, _ = maintain(
        *("rewrite-data-files", "--sort-order", "zorder(id)", "--branch", "side"),
        *("--option", "rewrite-all=true"),
    )
    assert (code, done["rewritten_data_files_count"]) == (0, 2)
    assert table.refresh().current_snapshot().snapshot_id == main
    assert table.scan(ref="side").to_arrow()["id"].to_pylist() == [2, 3]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--option", "rewrite-all"), 2, "NAME=VALUE"),
        (("--option", "rewrite-all=true", "--option", "rewrite-all=false"), 2, "twice"),
        (("--option", "rewrite-al=true"), 1, "rewrite-all"),
        (("--strategy", "shuffle"), 2, "binpack"),
        (("--strategy", "binpack", "--sort-order", "id"), 1, "leave sort_order out"),
        (("--where", "typo = 1"), 1, "typo"),
        (("--branch", "typo"), 1, "typo"),
    ],
)
def test_what_is_wrong_about_a_rewriting_is_said_before_it_begins(
    table: Table, maintain: Any, options: tuple[str, ...], code: int, said: str
) -> None:
    before = table.metadata_location
    found, done, told = maintain("rewrite-data-files", *options)
    assert (found, done) == (code, {})
    assert said in told
    assert "Traceback" not in told
    assert table.refresh().metadata_location == before
