"""What became of a change is told on proof only, however little is left of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from maintained_table import frame, new_table

from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion, Unknown
from icecomb.catalog.hive.entry_pointer import MADE_BY_OTHERS
from icecomb.catalog.hive.pointer import HivePointer
from icecomb.catalog.hive.settlement import ChangeState, Observation, Settlement
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.format.errors import IcecombError
from icecomb.format.storage.file_io import FileIO

ENTRY: Any = type("Entry", (), {"metadata_location": "elsewhere"})()


def settled(state, entry=ENTRY):
    return Settlement(lambda: Observation(state, entry), {}, checked=True).after_answer(
        IcecombError("no")
    )


def test_an_answer_that_may_refuse_its_own_success_is_believed_on_proof_only():
    assert isinstance(settled(ChangeState.HAPPENED), Committed)
    assert isinstance(settled(ChangeState.NOT_YET), Conflict)
    assert isinstance(settled(ChangeState.OVERTAKEN), Conflict)
    assert isinstance(settled(ChangeState.ELSEWHERE), Unknown)
    assert isinstance(settled(ChangeState.ELSEWHERE, None), Conflict)


def version(table):
    return MetadataVersion(table.metadata_location, table.metadata)


def sees(table, expected, new):
    """What the history of a table that others own by now says of a change."""
    nobody: Any = None
    pointer: Any = HivePointer(nobody, "db", "t", FileIO(), {})
    parameters = {"metadata_location": table.metadata_location}
    entry = HiveTable("db", "t", parameters=parameters)
    found = pointer.history_reader(expected, new)(entry)
    assert found is not None
    before = expected.location if expected else MADE_BY_OTHERS
    return new.location in found, before in found


SHORT = {"write_metadata_previous-versions-max": "1"}


@pytest.fixture
def table(lake):
    return new_table(lake, frame(1), **SHORT)


def expired(table):
    for n in range(2):
        table.refresh().append(frame(100 + n))
    with table.refresh().expire_snapshots() as expire:
        expire.older_than(2**60).retain_last(1)
    for _ in range(2):
        with table.transaction() as change:
            change.set_properties({"a": "1"})
    return table.refresh()


def test_a_commit_that_others_expired_and_forgot_is_not_taken_for_a_failed_one(table):
    base = version(table)
    table.append(frame(2))
    ours = version(table)
    assert sees(expired(table), base, ours) == (False, False)


def test_a_commit_that_others_were_before_is_known_by_its_number(table, lake):
    base = version(table)
    table.append(frame(2))
    theirs = table.current_snapshot()
    ours = MetadataVersion(
        "ours", replace(base.metadata, last_sequence_number=theirs.sequence_number)
    )
    for n in range(2):
        with table.transaction() as change:
            change.set_properties({"a": str(n)})
    assert sees(table, base, ours) == (False, True)


def test_a_commit_is_no_part_of_a_table_of_lower_numbers(table):
    base = version(table)
    number = base.metadata.last_sequence_number + 1
    ours = MetadataVersion("ours", replace(base.metadata, last_sequence_number=number))
    for n in range(3):
        with table.transaction() as change:
            change.set_properties({"a": str(n)})
    assert sees(table, base, ours) == (False, True)


def test_a_change_without_a_snapshot_leaves_no_proof(table):
    base = version(table)
    ours = MetadataVersion("ours", base.metadata)
    assert sees(expired(table), base, ours) == (False, False)


def test_a_new_table_of_another_identity_is_somebody_else_s(table, lake):
    other = lake.create_table("db.other", pa.schema([("id", pa.int64())]))
    assert sees(table, None, version(other)) == (False, True)
    ours = MetadataVersion("ours", table.metadata)
    assert sees(expired(table), None, ours) == (False, False)
