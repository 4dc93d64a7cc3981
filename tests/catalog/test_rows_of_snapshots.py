"""What the commands say of a table's rows where delete files take some of them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.catalog.cli.tables import _deletes, _live_rows

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def place(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    table.append(ROWS)
    table.delete("id = 2")
    return str(tmp_path / "db" / "t")


def said(capsys, *words):
    assert cli.main([*words]) == 0
    return json.loads(capsys.readouterr().out)


def test_rows_that_position_deletes_take_are_not_counted(place, capsys):
    found = said(capsys, "snapshots", place, "--output", "json")
    assert [(each["total rows"], each["deletes"]) for each in found] == [("3", "0"), ("2", "1")]


def test_describe_names_deletes_where_there_are_some(place, capsys):
    found = said(capsys, "describe", place, "--output", "json")["current snapshot"]
    assert found["total-position-deletes"] == "1"
    assert found["total-delete-files"] == "1"
    assert "total-equality-deletes" not in found


@pytest.mark.parametrize(
    ("summary", "live", "deletes"),
    [
        ({}, None, None),
        ({"total-records": "5"}, "5", None),
        (
            {"total-records": "5", "total-position-deletes": "2", "total-equality-deletes": "0"},
            "3",
            "2",
        ),
        (
            {"total-records": "5", "total-position-deletes": "2", "total-equality-deletes": "1"},
            None,
            "3",
        ),
        ({"total-records": "x"}, None, None),
    ],
)
def test_what_a_summary_does_not_say_is_not_guessed(summary, live, deletes):
    assert (_live_rows(summary), _deletes(summary)) == (live, deletes)
