"""A commit that was made although its swap passed for lost: it is found, told as done, and nothing is deleted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.commit.pointer import Conflict
from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.errors import TableAlreadyExistsError, ValidationError
from icecomb.format.operation.append import FastAppend

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def table(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return table


@pytest.fixture
def swapped_in_vain(table, monkeypatch):
    """The first swap is made and passes for one that another writer came before."""
    swap, outcomes = HadoopPointer.swap, []

    def passes_for_lost(self, expected, new):
        outcome = swap(self, expected, new)
        outcomes.append(outcome)
        return Conflict("somebody was first", new.location) if len(outcomes) == 1 else outcome

    monkeypatch.setattr(HadoopPointer, "swap", passes_for_lost)
    return outcomes


def in_one(table):
    with table.transaction() as transaction:
        transaction.append(ROWS.slice(0, 1))
        transaction.delete("id = 3")
        transaction.append(ROWS.slice(1, 1))


def replaced_by_own_rows(table):
    catalog = table.catalog
    with catalog.replace_table_transaction("db.t", ROWS.schema) as new:
        new.rely_on(table.current_snapshot().snapshot_id)
        new.append(table.scan().to_arrow().slice(0, 4))


CHANGES = {
    "append": (lambda t: t.append(ROWS), [1, 1, 1, 2, 2, 2, 3, 3, 3]),
    "delete": (lambda t: t.delete("id = 2"), [1, 1, 3, 3]),
    "upsert": (lambda t: t.overwrite(ROWS, "id = 1"), [1, 2, 2, 2, 3, 3, 3]),
    "compaction": (
        lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        [1, 1, 2, 2, 3, 3],
    ),
    "manifests": (lambda t: t.maintenance.rewrite_manifests(), [1, 1, 2, 2, 3, 3]),
    "replacement": (replaced_by_own_rows, [1, 1, 2, 3]),
    "transaction": (in_one, [1, 1, 1, 2, 2, 2]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_told_as_done_and_its_files_stay(table, swapped_in_vain, change):
    make, expected = CHANGES[change]
    make(table)
    assert len(swapped_in_vain) == 1
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    # and the table can be written to
    table.append(ROWS)
    assert table.scan().count() == len(expected) + 3


def test_a_commit_that_may_not_be_tried_again_is_looked_for_before_its_files_go(
    table, swapped_in_vain
):
    swapped_in_vain.append("none is to fail yet")
    with table.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "0"})
    swapped_in_vain.clear()
    table.append(ROWS)
    assert len(swapped_in_vain) == 1
    assert table.scan().count() == 9


def test_a_table_whose_creation_passes_for_lost_is_made_with_its_rows(table, swapped_in_vain):
    with table.catalog.create_table_transaction("db.new", ROWS.schema) as new:
        new.append(ROWS)
    assert len(swapped_in_vain) == 1
    assert table.catalog.load_table("db.new").scan().count() == 3


def test_a_table_of_others_that_took_the_name_first_stays_theirs(table):
    new = table.catalog.create_table_transaction("db.new", ROWS.schema)
    new.append(ROWS)
    table.catalog.create_table("db.new", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        new.commit_transaction()
    assert table.catalog.load_table("db.new").scan().count() == 0


def test_an_operation_that_was_committed_is_refused_the_next_time_and_stays(table):
    append = FastAppend(table.io)
    table.commit(append)
    count = len(table.metadata.snapshots)
    with pytest.raises(ValidationError, match="committed already"):
        table.commit(append)
    assert len(table.refresh().metadata.snapshots) == count
    assert table.scan().count() == 6
