"""Times that metadata states and no calendar has: told as they are, or refused by name."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import Table, cli, load_catalog, open_table
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import ConflictError, CorruptFileError, ValidationError

LONGEST = 2**63 - 1
IN_MICROSECONDS = 1_700_000_000_000_000
"""What a writer states that counts in microseconds: the year 55,840."""
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return table


def stating(table: Table, change: Callable[[dict[str, Any]], None]) -> Table:
    """The table after somebody wrote other times into its metadata."""
    file = Path(table.metadata_location)
    found = json.loads(file.read_text())
    change(found)
    file.write_text(json.dumps(found))
    return open_table(table.location())


def last_snapshot(time_ms: int) -> Callable[[dict[str, Any]], None]:
    """All that a writer states whose clock says this."""

    def change(found: dict[str, Any]) -> None:
        found["snapshots"][-1]["timestamp-ms"] = time_ms
        found["snapshot-log"][-1]["timestamp-ms"] = time_ms
        found["last-updated-ms"] = time_ms

    return change


@pytest.mark.parametrize("time_ms", [LONGEST, IN_MICROSECONDS])
def test_a_table_with_a_time_that_no_calendar_has_is_read_and_changed(table, time_ms):
    table = stating(table, last_snapshot(time_ms))
    table.append(ROWS)
    table.delete("id = 1")
    table.manage_snapshots().create_tag(table.metadata.snapshots[1].snapshot_id, "x").commit()
    assert table.scan().count() == 3
    assert time_ms <= table.metadata.last_updated_ms <= LONGEST
    repr(table), table.scan()._repr_html_()


@pytest.mark.parametrize(
    ("name", "time_ms"),
    [
        (name, time_ms)
        for name in ("snapshots", "partitions", "metadata_log_entries", "history")
        for time_ms in (LONGEST, -LONGEST, 10**16)
        # a partition tells the time of its newest file alone
        if (name, time_ms) != ("partitions", -LONGEST)
    ],
)
def test_a_metadata_table_that_cannot_hold_a_time_says_which(table, name, time_ms):
    def change(found: dict[str, Any]) -> None:
        at = 0 if time_ms < 0 else -1
        for member in ("snapshots", "snapshot-log", "metadata-log"):
            found[member][at]["timestamp-ms"] = time_ms
        if time_ms > 0:
            found["last-updated-ms"] = time_ms

    table = stating(table, change)
    with pytest.raises(ValidationError, match=str(time_ms * 1000)) as refused:
        getattr(table.inspect, name)()
    assert "table.metadata" in refused.value.hint


@pytest.mark.parametrize("member", ["max-ref-age-ms", "max-snapshot-age-ms"])
def test_an_age_of_a_branch_that_is_no_long_is_said_by_its_metadata_table(table, member):
    branch = table.metadata.refs["main"].to_json() | {member: 2**63}
    table = stating(table, lambda found: found["refs"].update({"main": branch}))
    assert table.scan().count() == 4
    with pytest.raises(ValidationError, match=str(2**63)):
        table.inspect.refs()


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("snapshots", ("snapshots", 0, "timestamp-ms")),
        ("snapshots", ("snapshots", 0, "snapshot-id")),
        ("snapshots", ("snapshots", 1, "sequence-number")),
        ("snapshots", ("snapshots", 1, "parent-snapshot-id")),
        ("snapshot-log", ("snapshot-log", 0, "timestamp-ms")),
        ("metadata-log", ("metadata-log", 0, "timestamp-ms")),
        ("last-updated-ms", ("last-updated-ms",)),
        ("last-sequence-number", ("last-sequence-number",)),
    ],
)
def test_metadata_with_a_number_that_is_no_long_is_refused_by_its_member(
    table, member, path, number
):
    def change(found: dict[str, Any]) -> None:
        inside: Any = found
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = number

    with pytest.raises(CorruptFileError, match=member) as refused:
        stating(table, change)
    assert str(number) in str(refused.value)
    assert table.metadata_location in str(refused.value)


@pytest.mark.parametrize("time_ms", [LONGEST, IN_MICROSECONDS])
def test_a_conflict_names_a_commit_whatever_its_time(table, time_ms):
    table = stating(table, last_snapshot(time_ms))
    late = open_table(table.location())
    with late.transaction() as change:
        change.delete("id = 1")
        table.append(ROWS)
        with pytest.raises(ConflictError, match="UTC"):
            change.commit_transaction()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("snapshots",), "+55840"),
        (("history",), "+55840"),
        (("describe",), f"{IN_MICROSECONDS} ms"),
        (("partitions",), "+55840"),
        (("health",), f"{IN_MICROSECONDS} ms"),
        (("diff",), "+55840"),
    ],
)
def test_commands_print_a_time_that_no_calendar_has(table, command, said, capsys):
    first = table.metadata.snapshots[0].snapshot_id
    table = stating(table, last_snapshot(IN_MICROSECONDS))
    more = [str(first)] if command == ("diff",) else []
    code = cli.main([*command, table.location(), *more])
    out = capsys.readouterr()
    differs = 3 if command == ("diff",) else 0
    assert (code, said in out.out) == (differs, True), out


def test_head_prints_dates_and_times_that_python_has_no_values_for(tmp_path, capsys):
    day, moment, utc = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
    days, micros = pa.array([5_000_000], pa.int32()).cast(day), pa.array([10**18], pa.int64())
    offsets = pa.array([0, 1], pa.int32())
    columns = {
        "day": days,
        "at": micros.cast(moment),
        "utc": micros.cast(utc),
        "days": pa.ListArray.from_arrays(offsets, days),
        "map": pa.MapArray.from_arrays(offsets, days, micros.cast(moment)),
        "both": pa.StructArray.from_arrays([micros.cast(moment), micros], ["at", "n"]),
    }
    far = pa.table(columns)
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.far", far.schema)
    table.append(
        pa.concat_tables([far, pa.table({n: pa.nulls(1, c.type) for n, c in columns.items()})])
    )
    assert cli.main(["--output", "json", "head", table.location()]) == 0
    first, second = json.loads(capsys.readouterr().out)
    date, time = "+15659-07-15", "+33658-09-27T01:46:40"
    assert first == {
        "day": date,
        "at": time,
        "utc": f"{time}+00:00",
        "days": [date],
        "map": [[date, time]],
        "both": {"at": time, "n": 10**18},
    }
    assert set(second.values()) == {None}


def test_a_clock_that_was_ahead_is_told_at_each_commit_and_by_health(
    table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Later commits are of times in the future, too: time travel and expiry by age go by them."""
    real = time.time_ns
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time_ns", lambda: real() + 3 * 86_400 * 10**9)
        table.append(ROWS)
    assert caplog.messages == []
    table.append(ROWS)
    (said,) = caplog.messages
    assert re.search(r"db\.t: its newest version is of .*Z, (2|3) days ahead of this machine", said)
    (found,) = (one for one in table.maintenance.health().findings if one.code == "clock-skew")
    assert found.severity is Severity.WARNING
    assert "days ahead" in found.message
