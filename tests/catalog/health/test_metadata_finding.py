"""Findings about manifests, snapshots and the metadata file, and tables just beyond a threshold."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest

from icecomb.catalog import Table, open_table
from icecomb.catalog.report.finding import Severity
from tests.catalog.health.made_table import (
    GB,
    MB,
    append,
    codes,
    data,
    finding,
    new_table,
    repeated_snapshots,
)

DAY_MS = 86_400_000


def changed(table: Table, **members: Any) -> Table:
    """The table with other members in its metadata file."""
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(json.dumps(json.loads(path.read_text()) | members))
    return open_table(table.location())


def with_snapshots(folder: Path, ages_ms: list[int], **properties: str) -> Table:
    """A table whose main branch has snapshots of these ages, the oldest first."""
    table = append(new_table(folder, **properties), data(GB))
    now = int(time.time() * 1000)
    made = repeated_snapshots(table, [now - age for age in ages_ms])
    return changed(
        table,
        snapshots=made,
        **{
            "current-snapshot-id": len(made),
            "last-sequence-number": len(made),
            "refs": {"main": {"type": "branch", "snapshot-id": len(made)}},
            "snapshot-log": [],
        },
    )


def test_a_hundred_manifests_where_one_would_do_are_many(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for _ in range(99):
        append(table, data(GB))
    assert "many-manifests" not in codes(table)
    append(table, data(GB))
    found = finding(table, "many-manifests")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    with Path(snapshot.manifest_list.removeprefix("file://")).open("rb") as file:
        lengths = [row["manifest_length"] for row in fastavro.reader(file)]
    assert found.evidence == {
        "manifests": 100,
        "needed": 1,
        "bytes": sum(lengths),
        "spec_id": 0,
    }
    assert len(lengths) == 100
    assert found.severity is Severity.WARNING


def test_how_many_manifests_are_many_is_said_by_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "3"})
    for _ in range(2):
        append(table, data(GB))
    assert "many-manifests" not in codes(table)
    append(table, data(GB))
    assert finding(table, "many-manifests").severity is Severity.WARNING
    for _ in range(27):
        append(table, data(GB))
    assert finding(table, "many-manifests").severity is Severity.PROBLEM


def test_manifests_that_are_as_long_as_they_should_be_are_not_many(tmp_path: Path) -> None:
    properties = {
        "commit.manifest.min-count-to-merge": "3",
        "commit.manifest.target-size-bytes": "1000",
    }
    table = new_table(tmp_path, **properties)
    for _ in range(9):
        append(table, data(GB))
    assert "many-manifests" not in codes(table), "each of them is longer than 1000 bytes"


def test_manifests_of_an_older_spec_are_rewritten_by_its_number(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "3"})
    for _ in range(3):
        append(table, data(GB))
    with table.update_spec() as spec:
        spec.add_identity("day")
    assert finding(table, "many-manifests").words == (
        *("maintain", "rewrite-manifests", "--spec-id", "0"),
        *("db.t",),
    )


@pytest.mark.parametrize(("old", "told"), [(99, False), (100, True)])
def test_a_hundred_snapshots_that_may_expire_are_a_finding(
    tmp_path: Path, old: int, *, told: bool
) -> None:
    ages = [6 * DAY_MS + 1000 * (old - n) for n in range(old)] + [DAY_MS, 0]
    table = with_snapshots(tmp_path, ages)
    assert ("snapshot-bloat" in codes(table)) is told
    if told:
        found = finding(table, "snapshot-bloat")
        assert (found.evidence["snapshots"], found.evidence["expired_by_age"]) == (102, 100)
        assert found.words == ("maintain", "expire-snapshots", table.location())


def test_the_table_says_how_long_snapshots_live(tmp_path: Path) -> None:
    table = with_snapshots(
        tmp_path,
        [6 * DAY_MS + 1000 * (150 - n) for n in range(150)] + [0],
        **{"history.expire.min-snapshots-to-keep": "52"},
    )
    assert "snapshot-bloat" not in codes(table)


def test_a_thousand_snapshots_are_a_finding_however_young_they_are(tmp_path: Path) -> None:
    table = with_snapshots(tmp_path, [1000 * (999 - n) for n in range(999)])
    assert "snapshot-bloat" not in codes(table)
    table = with_snapshots(tmp_path / "more", [1000 * (1000 - n) for n in range(1000)])
    found = finding(table, "snapshot-bloat")
    assert (found.severity, found.evidence["expired_by_age"]) == (Severity.WARNING, 0)
    assert "--older-than" in found.words


def test_a_thousand_that_may_expire_are_a_problem(tmp_path: Path) -> None:
    table = with_snapshots(tmp_path, [6 * DAY_MS + 1000 * (999 - n) for n in range(999)] + [0])
    assert finding(table, "snapshot-bloat").severity is Severity.WARNING
    many = with_snapshots(
        tmp_path / "more", [6 * DAY_MS + 1000 * (1000 - n) for n in range(1000)] + [0]
    )
    assert finding(many, "snapshot-bloat").severity is Severity.PROBLEM


def test_a_table_whose_files_others_use_is_not_told_to_expire(tmp_path: Path) -> None:
    ages = [6 * DAY_MS + 1000 * (200 - n) for n in range(200)] + [0]
    table = with_snapshots(tmp_path, ages, **{"gc.enabled": "false"})
    found = finding(table, "snapshot-bloat")
    assert found.command is None
    assert "gc.enabled is false, so nothing may expire until no other table" in found.message
    kept = {"gc.enabled": "false", "migrated": "true"}
    found = finding(with_snapshots(tmp_path / "migrated", ages, **kept), "snapshot-bloat")
    assert found.command is None
    assert "before `icecomb migrate finalize TABLE` gives up the way back" in found.message


def test_a_metadata_file_of_8_mib_is_a_finding(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(GB))
    path = Path(table.metadata_location.removeprefix("file://"))
    size = path.stat().st_size
    text = path.read_text()
    path.write_text(text + " " * (8 * MB - 1 - size))
    table = open_table(table.location())
    assert "metadata-bloat" not in codes(table)
    path.write_text(text + " " * (8 * MB - size))
    found = finding(table, "metadata-bloat")
    assert (found.evidence["bytes"], found.severity) == (8 * MB, Severity.WARNING)
    assert found.evidence["snapshots"] == 1
    path.write_text(text + " " * (80 * MB - size))
    assert finding(table, "metadata-bloat").severity is Severity.PROBLEM


def test_growth_is_by_the_oldest_file_of_the_log_that_is_there(tmp_path: Path) -> None:
    table = append(append(new_table(tmp_path), data(GB)), data(GB))
    path = Path(table.metadata_location.removeprefix("file://"))
    raw = json.loads(path.read_text())
    oldest = raw["metadata-log"][0]
    raw["metadata-log"][0]["timestamp-ms"] = raw["last-updated-ms"] - 4 * DAY_MS
    raw["snapshot-log"] = []
    path.write_text(json.dumps(raw))
    before = Path(oldest["metadata-file"].removeprefix("file://"))
    facts = open_table(table.location()).maintenance.health().facts
    assert facts is not None
    assert facts.metadata_growth == round((path.stat().st_size - before.stat().st_size) / 4)
    before.unlink()
    facts = open_table(table.location()).maintenance.health().facts
    assert facts is not None
    assert facts.metadata_growth is None
    raw["metadata-log"][0]["metadata-file"] = "hdfs://gone:1/t/v1.metadata.json"
    path.write_text(json.dumps(raw))
    facts = open_table(table.location()).maintenance.health().facts
    assert facts is not None
    assert facts.metadata_growth is None, "the table was moved from there"


def test_an_empty_table_is_well(tmp_path: Path) -> None:
    found = new_table(tmp_path).maintenance.health()
    assert found.findings == ()


@pytest.mark.parametrize(
    ("version", "engines", "told"),
    [
        ("3", "hive,spark,impala", "hive before 4.2 and impala before 5 cannot read it"),
        ("3", "spark,trino", None),
        ("3", None, None),
        ("2", "hive,spark,impala", None),
    ],
)
def test_engines_that_are_too_old_for_the_format_version_are_a_warning(
    tmp_path: Path, version: str, engines: str | None, told: str | None
) -> None:
    interop = {} if engines is None else {"icecomb.interop": engines}
    table = new_table(tmp_path, **{"format-version": version, **interop})
    if told is None:
        assert "old-engines" not in codes(table)
        return
    found = finding(table, "old-engines")
    assert found.severity is Severity.WARNING
    assert found.message.startswith(f"{told}, of format version 3")
    assert found.command is None
    assert found.evidence == {"format_version": 3, "engines": ["hive", "spark", "impala"]}


def test_a_list_of_engines_that_names_none_does_not_hide_the_other_findings(
    tmp_path: Path,
) -> None:
    table = append(new_table(tmp_path, **{"format-version": "3"}), data(GB))
    named = changed(table, properties={"icecomb.interop": "hive,flink"})
    found = finding(named, "old-engines")
    assert found.severity is Severity.NOTE
    assert "cannot be 'hive,flink'" in found.message
