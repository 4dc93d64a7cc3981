"""The state of a migration as its journal tells it."""

from __future__ import annotations

from pathlib import Path

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.journal import Step, start_journal
from icecomb.catalog.migrate.reverting.finalizing import _state
from icecomb.format.storage.file_io import FileIO


def test_a_revert_that_was_begun_goes_before_all_that_was_done(tmp_path: Path) -> None:
    journal = start_journal(FileIO(), str(tmp_path), HiveTable("db", "t"), [], Choices())
    for step in (Step.SWAPPED, Step.CLEANED, Step.VERIFIED):
        journal.record(step)
    assert _state(journal, iceberg=True, overwritten=False) == "verified"
    journal.record(Step.REVERTING)
    assert _state(journal, iceberg=True, overwritten=False).startswith("reverting")
