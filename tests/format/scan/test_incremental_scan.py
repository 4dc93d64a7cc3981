"""Incremental append scans, beside PyIceberg's."""

import dataclasses

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog
from icecomb.format.errors import ExpressionError, NoSuchSnapshotError, ValidationError
from icecomb.format.scan.incremental_scan import IncrementalAppendScan

ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"row {i}" for i in ids]}, ROWS)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Snapshots: append 1-2, append 3, overwrite of 1 by 10, append 4-5, delete of 4, append 6."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    catalog = load_catalog("files", type="hadoop", warehouse=warehouse.as_uri())
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", ROWS)
    made.append(rows(1, 2))
    made.append(rows(3))
    made.overwrite(rows(10), "id = 1")
    made.append(rows(4, 5))
    made.delete("id = 4")
    made.append(rows(6))
    return made


def appends(table):
    return [one for one in reversed_line(table) if one.operation == "append"]


def reversed_line(table):
    return sorted(table.metadata.snapshots, key=lambda one: one.sequence_number)


def scan(table, *args, **kwargs):
    return IncrementalAppendScan(table.metadata, table.io, *args, **kwargs)


def ids(found):
    return sorted(found.to_arrow()["id"].to_pylist())


def test_all_appends_are_read_but_nothing_that_was_written_anew(table):
    assert ids(scan(table)) == [1, 2, 3, 4, 5, 6]
    assert ids(table.scan()) == [2, 3, 5, 6, 10]


def test_the_first_snapshot_is_left_out_and_the_last_one_read(table):
    first, second, third, last = (one.snapshot_id for one in appends(table))
    assert ids(scan(table, from_snapshot_id=first)) == [3, 4, 5, 6]
    assert ids(scan(table, from_snapshot_id=first, to_snapshot_id=third)) == [3, 4, 5]
    assert ids(scan(table, from_snapshot_id=third)) == [6]
    assert ids(scan(table, to_snapshot_id=second)) == [1, 2, 3]
    assert ids(scan(table, from_snapshot_id=last)) == []
    assert ids(scan(table, from_snapshot_id=second, to_snapshot_id=second)) == []


def test_every_range_plans_the_files_that_pyiceberg_plans(table):
    peer = StaticTable.from_metadata(table.metadata_location)
    line = [one.snapshot_id for one in reversed_line(table)]
    for at, start in enumerate([None, *line]):
        for end in line[at:]:
            expected = peer.incremental_append_scan(
                from_snapshot_id_exclusive=start, to_snapshot_id_inclusive=end
            ).plan_files()
            found = scan(table, from_snapshot_id=start, to_snapshot_id=end).plan_files()
            assert sorted(task.file.file_path for task in found) == sorted(
                task.file.file_path for task in expected
            )


def test_a_table_offers_it_by_the_names_of_pyiceberg(table):
    first, second, *_ = (one.snapshot_id for one in appends(table))
    found = table.incremental_append_scan(
        from_snapshot_id_exclusive=first, to_snapshot_id_inclusive=second, row_filter="id > 0"
    )
    assert found == scan(table, "id > 0", from_snapshot_id=first, to_snapshot_id=second)


def test_filters_columns_and_limits_work_as_in_any_scan(table):
    first = appends(table)[0].snapshot_id
    assert ids(scan(table, "id >= 5", from_snapshot_id=first)) == [5, 6]
    found = scan(table, "id = 3", selected_fields=("s",), from_snapshot_id=first)
    assert found.to_arrow().to_pydict() == {"s": ["row 3"]}
    assert len(list(scan(table, "id > 100").plan_files())) == 0
    assert scan(table, limit=2).to_arrow().num_rows == 2
    assert len(list(scan(table, limit=2).plan_files())) == 1
    assert scan(table, from_snapshot_id=first).count() == 4
    assert ids(scan(table).filter("id < 3")) == [1, 2]
    with pytest.raises(ExpressionError, match="nothing"):
        list(scan(table, "nothing = 1").plan_files())


def test_the_start_may_have_expired(table):
    kept = reversed_line(table)[2:]
    metadata = dataclasses.replace(table.metadata, snapshots=tuple(kept))
    expired = kept[0].parent_snapshot_id
    found = IncrementalAppendScan(metadata, table.io, from_snapshot_id=expired)
    assert ids(found) == [4, 5, 6]
    with pytest.raises(ValidationError, match="is not an ancestor of"):
        IncrementalAppendScan(metadata, table.io, from_snapshot_id=appends(table)[0].snapshot_id)


def test_snapshots_that_make_no_range_are_refused(table):
    first, second, *_ = (one.snapshot_id for one in appends(table))
    with pytest.raises(ValidationError, match="is not an ancestor of"):
        scan(table, from_snapshot_id=second, to_snapshot_id=first)
    with pytest.raises(ValidationError, match="is not an ancestor of"):
        scan(table, from_snapshot_id=5)
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 5"):
        scan(table, to_snapshot_id=5)
    with pytest.raises(ValidationError, match="range of snapshots"):
        scan(table, snapshot_id=first)
    with pytest.raises(ValidationError, match="branch or tag 'main'"):
        scan(table).use_ref("main")
    with pytest.raises(ValidationError, match="go back"):
        scan(table).as_of(0)


def test_an_empty_table_has_no_appends(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    empty = catalog.create_table("db.t", ROWS)
    assert scan(empty).to_arrow().num_rows == 0
    with pytest.raises(ValidationError, match="is not an ancestor of"):
        scan(empty, from_snapshot_id=1)
