"""Arguments of the wrong kind are refused by name, by whichever method takes them."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb import load_catalog
from icecomb.catalog import Table
from icecomb.format import ConfigurationError, IcecombError, ValidationError

NAIVE = dt.datetime(2026, 1, 1)  # noqa: DTZ001


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    catalog = load_catalog("c", type="hadoop", warehouse=str(tmp_path_factory.mktemp("lake")))
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))]))
    made.append(pa.table({"id": [1], "ts": [NAIVE]}))
    return made


@pytest.mark.filterwarnings("ignore:An expiration")
@pytest.mark.parametrize(
    "call",
    [
        lambda table, when: table.scan().as_of(when),
        lambda table, when: table.snapshot_as_of_timestamp(when),
        lambda table, when: table.manage_snapshots().rollback_to_timestamp(when),
        lambda table, when: table.maintenance.expire_snapshots().older_than(when),
        lambda table, when: table.maintenance.remove_orphan_files(older_than=when),
        lambda table, when: table.maintenance.remove_orphan_files(files=[("/x", when)]),
        lambda table, when: table.maintenance.empty_quarantine(older_than=when),
    ],
)
def test_a_time_without_a_zone_is_refused_by_all(table: Table, call: Any) -> None:
    with pytest.raises(ValidationError, match="needs a zone"):
        call(table, NAIVE)


def test_a_time_with_a_zone_serves_all_that_take_milliseconds(table: Table) -> None:
    now = dt.datetime.now(dt.timezone.utc)
    assert table.snapshot_as_of_timestamp(now) == table.current_snapshot()
    with pytest.raises(IcecombError, match="no ancestor"):
        table.manage_snapshots().rollback_to_timestamp(now - dt.timedelta(days=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda table, number: table.scan(snapshot_id=number),
        lambda table, number: table.snapshot_by_id(number),
        lambda table, number: table.incremental_append_scan(to_snapshot_id_inclusive=number),
        lambda table, number: table.incremental_append_scan(from_snapshot_id_exclusive=number),
        lambda table, number: table.inspect.files(snapshot_id=number),
    ],
)
def test_the_id_of_a_snapshot_as_text_is_refused_by_all(table: Table, call: Any) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    with pytest.raises(ValidationError, match="must be a whole number, not '"):
        call(table, str(snapshot.snapshot_id))


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        (lambda merge: merge.when_matched_update({"id": 1.0}), "column 'id' must be SQL text"),
        (lambda merge: merge.when_not_matched_insert({"id": None}), "must be SQL text, not None"),
        (lambda merge: merge.when_matched_update("id = 1"), "sets columns by name, not 'id = 1'"),
        (lambda merge: merge.when_matched_update({1: "1"}), "must be text, not 1"),
        (lambda merge: merge.when_matched_delete(condition=True), "must be text, not True"),
    ],
)
def test_clauses_of_a_merge_take_texts(table: Table, clause: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        clause(table.merge(pa.table({"id": [1]}), "t.id = s.id"))


def test_a_merge_is_by_columns_or_a_text(table: Table) -> None:
    with pytest.raises(ValidationError, match="must be a sequence of str"):
        table.merge(pa.table({"id": [1]}), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("transform", "meant"),
    [
        ("days", r"Did you mean day\?"),
        ("HOURS", r"Did you mean hour\?"),
        ("bucket(4)", r"Did you mean bucket\[4\]\?"),
        ("truncate( 3 )", r"Did you mean truncate\[3\]\?"),
        ("daily", "There are identity, year, month, day, hour, void, bucket"),
    ],
)
def test_the_transform_that_is_meant_is_named(table: Table, transform: str, meant: str) -> None:
    with pytest.raises(ValidationError) as refused:
        table.update_spec().add_field("ts", transform).commit()
    assert refused.match("cannot apply transform")
    assert re.search(meant, str(refused.value.hint))


@pytest.mark.parametrize(
    "name",
    ["format_version", "format-verison", "formatversion", "Format-Version", "format.version"],
)
def test_a_misspelt_format_version_is_refused(tmp_path: Path, name: str) -> None:
    catalog = load_catalog("c", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    with pytest.raises(ConfigurationError, match=name) as refused:
        catalog.create_table("n.t", pa.schema([("id", pa.int64())]), properties={name: "3"})
    assert refused.value.hint == "Did you mean format-version?"


def test_files_to_add_are_no_folders(table: Table, tmp_path: Path) -> None:
    with pytest.raises(IcecombError, match="it is a folder, not a file"):
        table.add_files([str(tmp_path)])


def test_frames_of_pandas_hear_what_pandas_did_to_them(table: Table) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, None], "ts": [None, None]})
    with pytest.raises(IcecombError, match="id: long in the table, double in the data") as refused:
        table.append(frame)
    assert "df.astype({'id': 'Int64'})" in str(refused.value.hint)
    assert "index" not in str(refused.value.hint)
    named = frame.astype({"id": "Int64"}).set_index(pandas.Index([1, 2], name="row"))
    with pytest.raises(IcecombError, match="row: int64 in the data") as refused:
        table.append(named)
    assert "reset_index(drop=True)" in str(refused.value.hint)
