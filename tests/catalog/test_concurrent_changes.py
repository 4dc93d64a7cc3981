"""Two writers at one table: what others commit meanwhile is never lost, doubled or brought back."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.equality_delete_writer import EqualityDeleteWriter

NUMBERS = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def frame(*rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table([pa.array(c, pa.int64()) for c in columns], NUMBERS)


def pairs(table) -> list[tuple[int, int]]:
    return sorted((r["k"], r["v"]) for r in table.refresh().scan().to_arrow().to_pylist())


def delete_by_value(table, rows: pa.Table) -> None:
    """As streaming engines delete: by values, without looking at the table."""
    deletes = EqualityDeleteWriter(
        table.io, table.metadata, uuid.uuid4().hex, rows.schema.names, spec_id=0
    )
    for batch in rows.to_batches():
        deletes.write(batch)
    change = RowDelta(table.io)
    for file in deletes.close():
        change.add_deletes(file)
    table.commit(change)


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_that_others_delete_by_value_are_not_written_anew(lake, isolation):
    properties = {"format-version": "2", "write.delete.isolation-level": isolation}
    table = lake.create_table("db.t", NUMBERS, properties=properties)
    table.append(frame((1, 1), (2, 2), (3, 3)))
    late = lake.load_table("db.t")
    delete_by_value(table, pa.table({"k": [2]}))
    with pytest.raises(ValidationError, match="new delete file for the replaced data file"):
        late.delete("k = 1")
    assert pairs(table) == [(1, 1), (3, 3)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("others", ["delete", "delete by value"])
@pytest.mark.parametrize("command", ["upsert", "merge"])
def test_a_row_that_was_there_for_an_upsert_is_not_gone_when_it_inserts(
    lake, mode, others, command
):
    properties = {"format-version": "2", "write.merge.mode": mode}
    table = lake.create_table("db.t", NUMBERS, properties=properties)
    table.append(frame((1, 1), (5, 5)))
    late = lake.load_table("db.t")
    if others == "delete":
        table.delete("k <= 2")
    else:
        delete_by_value(table, pa.table({"k": [1, 2]}))
    # in any order of the two there are both rows or none
    change = frame((1, 1), (2, 2))
    merge = late.merge(change, on=["k"]).when_not_matched_insert_all()
    with pytest.raises(ValidationError):
        late.upsert(change, ["k"]) if command == "upsert" else merge.execute()
    assert pairs(table) == [(5, 5)]
    late = lake.load_table("db.t")
    table.append(frame((7, 7)))
    late.upsert(change, ["k"])
    assert pairs(table) == [(1, 1), (2, 2), (5, 5), (7, 7)]


def test_a_row_that_was_there_for_an_upsert_may_go_under_snapshot_isolation(lake):
    properties = {"format-version": "2", "write.merge.isolation-level": "snapshot"}
    table = lake.create_table("db.t", NUMBERS, properties=properties)
    table.append(frame((1, 1), (5, 5)))
    late = lake.load_table("db.t")
    table.delete("k <= 2")
    late.upsert(frame((1, 1), (2, 2)), ["k"])
    assert pairs(table) == [(2, 2), (5, 5)]


def test_a_table_that_was_replaced_meanwhile_is_refused(lake):
    table = lake.create_table("db.t", NUMBERS, properties={"format-version": "2"})
    table.append(frame((1, 1), (5, 5)))
    late = [lake.load_table("db.t") for _ in range(4)]
    lake.replace_table("db.t", NUMBERS)
    with pytest.raises(ValidationError, match="history"):
        late[0].upsert(frame((1, 1), (2, 2)), ["k"])
    with pytest.raises(ValidationError):
        late[1].delete("k = 1")
    assert pairs(table) == []
    # what depends on no row is added to the table as it is
    late[2].append(frame((3, 3)))
    assert pairs(table) == [(3, 3)]
    lake.replace_table("db.t", pa.schema([("k", pa.string())]))
    with pytest.raises(ValidationError, match="column 'k'"):
        late[3].append(frame((4, 4)))
    assert table.refresh().scan().to_arrow().to_pylist() == []
