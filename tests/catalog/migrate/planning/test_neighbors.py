"""Other entries of a database in a table's folder, inside of it or around it: plans and dry runs name them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, migrate
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.applying import migration
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.planning import neighbor
from icecomb.catalog.migrate.planning.neighbor import Neighbors
from icecomb.catalog.report.progress import Silent
from icecomb.format.errors import MetastoreError
from tests.catalog.migrate.conftest import PARQUET

_NAMES = itertools.count()


@pytest.fixture
def table(make_hive_table: Any) -> Any:
    return make_hive_table({"id": "bigint"}, rows=pa.table({"id": [1]}))


@pytest.fixture
def put(table: Any) -> Any:
    """Makes an entry without rows whose folder is at a place seen from the table's; its name."""

    def put(place: str, table_type: str = "EXTERNAL_TABLE") -> str:
        name = f"neighbor{next(_NAMES)}"
        storage = replace(PARQUET, location=f"file:{table.folder}{place}")
        entry = HiveTable("made", name, storage=storage, table_type=table_type)
        table.catalog.client.create_table(replace(entry, parameters={"EXTERNAL": "TRUE"}))
        return f"made.{name}"

    return put


def said(table: Any) -> dict[str, tuple[str, ...]]:
    """The places of the findings about neighbors, by code."""
    codes = {"same-folder", "tables-inside", "inside-table"}
    found = migrate.plan(table.catalog, table.name).findings
    return {one.code: one.places for one in found if one.code in codes}


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("", "same-folder"),
        ("/", "same-folder"),
        ("/inner", "tables-inside"),
        ("/a/deep/one", "tables-inside"),
        ("/..", "inside-table"),
        ("2", None),
        ("/../other", None),
    ],
)
def test_who_shares_a_folder_or_lies_in_one_is_named(
    table: Any, put: Any, place: str, code: str | None
) -> None:
    other = put(place)
    found = said(table)
    assert found == ({code: (other,)} if code else {})


def test_a_dry_run_names_them_and_both_sides_are_told(
    table: Any, put: Any, metastore: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = put("/inner")
    capfd.readouterr()
    place = ["--uri", metastore.uri, "--output", "json"]
    code = cli.main([*place, "migrate", "apply", "--dry-run", table.name, inner])
    documents = json.loads(capfd.readouterr().out)
    found = {
        one["table"]: {f["code"]: f["places"] for f in one["findings"] if "inside" in f["code"]}
        for one in documents
    }
    assert code == 0
    assert found == {
        table.name: {"tables-inside": [inner]},
        inner: {"inside-table": [table.name]},
    }


def test_a_link_to_a_folder_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "t" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    places = {"d.a": "t", "d.b": "link", "d.c": "link/inner", "d.e": "t2"}
    entries = [
        HiveTable("d", name[2:], storage=replace(PARQUET, location=f"file:{tmp_path}/{place}"))
        for name, place in places.items()
    ]
    found = {one.code: one.places for one in Neighbors(entries, {}).findings(entries[0])}
    assert found == {"same-folder": ("d.b",), "tables-inside": ("d.c",)}


def test_folders_are_compared_as_folders_and_not_as_texts() -> None:
    def entry(name: str, location: str | None) -> HiveTable:
        return HiveTable("d", name, storage=replace(PARQUET, location=location))

    entries = [
        entry("a", "hdfs://nn/w/t"),
        entry("b", "hdfs://nn/w/t2"),
        entry("c", "hdfs://nn//w/t/"),
        entry("e", "hdfs://nn/w/t/x/y"),
        entry("f", "hdfs://other/w/t"),
        entry("g", None),
        entry("h", "hdfs://nn/w"),
    ]
    found = {one.code: one.places for one in Neighbors(entries, {}).findings(entries[0])}
    assert found == {
        "same-folder": ("d.c",),
        "tables-inside": ("d.e",),
        "inside-table": ("d.h",),
    }
    assert list(Neighbors(entries, {}).findings(entries[5])) == []


def test_a_table_in_the_folder_of_another_blocks_until_that_is_accepted(
    table: Any, put: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hive's readers of the other one fail once the folder of metadata is there."""
    choices = migrate.Choices(accept=("same-folder",))
    before = table.state
    other = put("/")
    (found,) = migrate.plan(table.catalog, table.name).blockers
    assert (found.code, found.places) == ("same-folder", (other,))
    assert "`metadata`" in found.message
    with pytest.raises(MigrationBlockedError, match=other):
        migrate.apply(table.catalog, table.name)
    assert table.state == before
    assert not migrate.plan(table.catalog, table.name, choices).blockers
    migrate.apply(table.catalog, table.name, choices)
    assert migrate.revert(table.catalog, table.name, dry_run=False).done
    # What was read a while ago blocks nothing.
    monkeypatch.setattr(neighbor.RECENT, "least", 0)
    with pytest.raises(MigrationBlockedError, match=other):
        migrate.apply(table.catalog, table.name)
    table.catalog.client.drop_table(*other.split("."))
    assert migrate.apply(table.catalog, table.name).rows == 1


def test_apply_goes_on_where_the_metastore_does_not_tell_of_other_tables(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Any:
        raise MetastoreError("no lists")

    said: list[str] = []
    monkeypatch.setattr(neighbor, "neighbors_of", refused)
    monkeypatch.setattr(migration, "RECENT", neighbor.RecentNeighbors())
    monkeypatch.setattr(Silent, "say", lambda _, message: said.append(message))
    assert migrate.apply(table.catalog, table.name).rows == 1
    assert any("whether other tables have its folder is unknown: no lists" in one for one in said)


def test_an_iceberg_table_in_the_same_folder_is_no_obstacle() -> None:
    storage = replace(PARQUET, location="hdfs://nn/w/t")
    one = HiveTable("d", "a", storage=storage)
    two = replace(one, name="b", parameters={"table_type": "ICEBERG"})
    for entry, severity in ((one, "warning"), (two, "blocker")):
        (found,) = Neighbors([one, two], {}).findings(entry)
        assert (found.code, found.severity) == ("same-folder", severity)
