"""Tables examined one by one and many at a time: what is asked for, and what cannot be read."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import Table, cli, open_table
from icecomb.catalog.health import check_health
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import NoSuchTableError, ValidationError
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.storage.file_io import FileIO
from tests.catalog.health.made_table import (
    GB,
    MB,
    SCHEMA,
    append,
    codes,
    data,
    delete,
    equality,
    finding,
    lake_in,
    new_table,
    positions,
)
from tests.catalog.health.test_metadata_finding import changed


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often files are asked for, by what was asked."""
    found: Counter[str] = Counter()
    for name in ("read", "open_input", "size", "exists", "list", "entries", "folders", "create"):
        real = getattr(FileIO, name)

        def counted(self: Any, *given: Any, _name: str = name, _real: Any = real) -> Any:
            found[_name] += 1
            return _real(self, *given)

        monkeypatch.setattr(FileIO, name, counted)
    return found


def test_a_table_costs_its_list_its_manifests_and_two_sizes(
    tmp_path: Path, calls: Counter[str]
) -> None:
    table = new_table(tmp_path)
    for _ in range(7):
        append(table, data(GB))
    table = lake_in(tmp_path).load_table("db.t")
    calls.clear()
    table.maintenance.health()
    # the manifest list and seven manifests; the metadata file and the oldest one of its log
    assert calls == Counter(read=8, size=2)


def test_many_tables_cost_each_its_own(tmp_path: Path, calls: Counter[str]) -> None:
    for number in range(5):
        append(append(new_table(tmp_path, f"t{number}"), data(GB)), data(GB))
    lake = lake_in(tmp_path)
    assert [one.table for one in check_health(lake, "db.*")] == [f"db.t{n}" for n in range(5)]
    calls.clear()
    lake.load_table("db.t0")
    loading = Counter({name: 5 * count for name, count in calls.items()})
    calls.clear()
    lake.list_tables("db")
    listing = Counter(calls)
    calls.clear()
    assert len(list(check_health(lake, "db.*"))) == 5
    assert calls == loading + listing + Counter(read=5 * 3, size=5 * 2)


def test_python_s_two_doors_say_the_same(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), *(data(MB) for _ in range(9)))
    assert [table.maintenance.health()] == list(check_health(lake_in(tmp_path), "db.t"))
    assert [table.maintenance.health()] == list(check_health(lake_in(tmp_path), [("db", "t")]))


def test_a_table_that_cannot_be_read_is_told_with_the_others(tmp_path: Path) -> None:
    for name in ("gone", "good", "torn", "unlisted"):
        append(new_table(tmp_path, name), data(GB))
    lake = lake_in(tmp_path)
    for path in (tmp_path / "db/gone/metadata").glob("*-m0.avro"):
        path.unlink()
    for path in (tmp_path / "db/torn/metadata").glob("v2.metadata.json"):
        path.write_text("{")
    for path in (tmp_path / "db/unlisted/metadata").glob("snap-*.avro"):
        path.write_bytes(b"no avro")
    found = {one.table: one for one in check_health(lake, ["db.*", "db.nope"])}
    assert list(found) == ["db.gone", "db.good", "db.torn", "db.unlisted", "db.nope"]
    bad = {name for name, one in found.items() if one.error}
    assert bad == {"db.gone", "db.torn", "db.unlisted", "db.nope"}
    for name in bad:
        assert found[name].facts is None
        assert found[name].has_problem
    ranked = sorted(found.values(), key=lambda one: one.rank)
    assert ranked[-1].table == "db.good"
    with pytest.raises(NoSuchTableError):
        check_health(lake, "db.z*")


def test_an_error_that_nobody_foresaw_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        append(new_table(tmp_path, name), data(GB))
    lake = lake_in(tmp_path)
    real = lake.load_table

    def load(name: Any) -> Table:
        if name == ("db", "a"):
            raise ZeroDivisionError("of no meaning")
        return real(name)

    monkeypatch.setattr(lake, "load_table", load)
    first, second = check_health(lake, "db.*")
    assert (first.error, second.error) == ("ZeroDivisionError: of no meaning", None)


def test_jobs_are_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="Jobs is 0"):
        check_health(lake_in(tmp_path), jobs=0)


def test_orphans_are_looked_for_when_asked_and_old_enough(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(GB))
    left = tmp_path / "db/t/data/left.parquet"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"x")
    assert table.maintenance.health(orphans=True).findings == (), "it is younger than three days"
    os.utime(left, (time.time() - 4 * 86_400,) * 2)
    assert "orphans" not in codes(table)
    (found,) = table.maintenance.health(orphans=True).findings
    assert (found.code, found.severity, found.evidence["files"]) == ("orphans", "warning", 1)
    assert found.evidence["examples"][0].endswith("/data/left.parquet")
    assert found.command == "icecomb maintain remove-orphan-files db.t"
    assert left.exists()


def test_orphans_that_cannot_be_told_are_a_note(tmp_path: Path) -> None:
    table = append(new_table(tmp_path, **{"gc.enabled": "false"}), data(GB))
    (found,) = table.maintenance.health(orphans=True).findings
    assert (found.code, found.severity, found.command) == ("orphans", Severity.NOTE, None)
    assert "gc.enabled is false). Set gc.enabled to true when no other" in found.message
    table = new_table(tmp_path / "migrated", **{"gc.enabled": "false", "migrated": "true"})
    (found,) = table.maintenance.health(orphans=True).findings
    assert "`icecomb migrate finalize db.t` gives that up" in found.message


def taken_over(tmp_path: Path, files: int) -> Table:
    """A table of a file of its own and so many that another system wrote, one a commit."""
    table = lake_in(tmp_path).create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1], "day": ["a"]}))
    for number in range(files):
        path = tmp_path / f"foreign-{number}.parquet"
        pq.write_table(pa.table({"id": pa.array([2], pa.int64()), "day": ["b"]}), path)
        table.add_files([str(path)])
    return table


def test_files_without_ids_are_found_by_their_tails(tmp_path: Path) -> None:
    table = taken_over(tmp_path, 2)
    found = finding(table, "hive-files-without-ids")
    assert found.evidence["files"] == 2
    assert found.evidence["snapshots_looked_at"] == 3
    assert found.evidence["files_not_looked_at"] == 0
    assert "foreign" in found.evidence["example"]
    table.append(pa.table({"id": [3], "day": ["c"]}))
    assert finding(table, "hive-files-without-ids").evidence["files"] == 2


def test_a_name_mapping_alone_is_none(tmp_path: Path) -> None:
    table = taken_over(tmp_path, 1)
    assert "hive-files-without-ids" in codes(table)
    table.delete("id = 2")
    assert "schema.name-mapping.default" in table.properties
    assert "hive-files-without-ids" not in codes(table)


def test_tails_of_sixteen_commits_are_read_and_the_rest_is_told(
    tmp_path: Path, calls: Counter[str]
) -> None:
    table = taken_over(tmp_path, 20)
    calls.clear()
    found = finding(table, "hive-files-without-ids")
    assert calls["open_input"] == 16
    assert found.evidence["files_not_looked_at"] == 5
    assert found.evidence["files"] in {15, 16}


def test_a_tail_that_cannot_be_read_is_counted_as_not_looked_at(tmp_path: Path) -> None:
    table = taken_over(tmp_path, 2)
    (tmp_path / "foreign-0.parquet").write_bytes(b"torn")
    found = finding(table, "hive-files-without-ids")
    assert (found.evidence["files"], found.evidence["files_not_looked_at"]) == (1, 1)


def test_a_partition_field_of_a_column_that_was_dropped_is_no_obstacle(tmp_path: Path) -> None:
    table = new_table(tmp_path, by_day=True)
    for _ in range(6):
        append(table, *(data(MB, day=day) for day in "abcd"))
    with table.update_spec() as spec:
        spec.remove_field("day")
    with table.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("day")
    found = table.maintenance.health()
    assert {one.code for one in found.findings} == {"small-files", "old-spec"}


def test_a_transform_that_nobody_knows_is_no_obstacle(tmp_path: Path) -> None:
    table = new_table(tmp_path, by_day=True)
    for _ in range(6):
        append(table, *(data(MB, day=day) for day in "abcd"))
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text().replace('"identity"', '"curve[9]"'))
    found = open_table(table.location()).maintenance.health()
    assert found.facts is not None
    assert (found.facts.partitions, found.facts.files) == (4, 24)


@pytest.mark.parametrize("time_ms", [-(1 << 62), 1 << 62, 0])
def test_times_that_no_calendar_has_are_no_obstacle(
    tmp_path: Path, time_ms: int, capfd: pytest.CaptureFixture[str]
) -> None:
    table = append(append(new_table(tmp_path), data(GB)), data(GB))
    raw = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    first, second = raw["snapshots"]
    changed(table, snapshots=[first | {"timestamp-ms": time_ms}, second], **{"snapshot-log": []})
    page = tmp_path / "page.html"
    assert cli.main(["health", table.location(), "--html", str(page)]) == 0
    assert page.stat().st_size > 1000
    assert "files:" in capfd.readouterr().out


def test_progress_is_told_of_each_table(tmp_path: Path) -> None:
    for number in range(5):
        append(new_table(tmp_path, f"t{number}"), data(GB))
    told: list[Any] = []

    class Watch:
        @contextmanager
        def task(self, what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
            told.append((what, total, unit))
            yield told.append

        def say(self, message: str) -> None:
            told.append(message)

    assert len(list(check_health(lake_in(tmp_path), "db.*", progress=Watch(), jobs=2))) == 5
    assert told == [("examining", 5, "tables"), 1, 1, 1, 1, 1]


def test_no_value_is_made_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = append(new_table(tmp_path, by_day=True), *(data(MB, 10, day) for day in "aabbbbbb"))
    delete(table, positions(1, day="a"), equality(1, day="b"), positions(2, data(MB, day="a")))

    def refuse(*_: object) -> None:
        raise AssertionError("a value a file")

    monkeypatch.setattr(ManifestColumns, "data_files", refuse)
    monkeypatch.setattr(ManifestColumns, "entries", refuse)
    assert {"small-files", "equality-deletes", "dangling-deletes"} <= set(codes(table))


def test_a_catalog_without_tables_is_well(tmp_path: Path) -> None:
    assert list(check_health(lake_in(tmp_path))) == []
