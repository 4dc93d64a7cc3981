"""What the journal of a migration says, and when: each step is announced before it may have happened."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.applying import migration as applying
from icecomb.catalog.migrate.applying.migration import Takeover
from icecomb.catalog.migrate.source.source import partition_values
from icecomb.format.errors import CommitStateUnknownError
from icecomb.format.holding import Holding
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import NestedField, StringType

SWAP = ["locked", "checked again", "swapping", "converted", "swapped", "unlocked"]


class Story:
    """Stands for the context and the journal of a migration, and writes down what is done."""

    def __init__(self, convert: Exception | None = None) -> None:
        self.events: list[str] = []
        self.settings: dict[str, str] = {}
        self.io = SimpleNamespace(list=lambda _: [])
        self.entry = SimpleNamespace(convert_to_iceberg=lambda *_: self._convert(convert))
        self.table = SimpleNamespace(storage=SimpleNamespace(location="/lake/t"))

    def _convert(self, problem: Exception | None) -> None:
        self.events.append("converted")
        if problem is not None:
            raise problem

    def locked(self, held: Holding, _: object) -> object:
        held.add(lambda: self.events.append("unlocked"))
        self.events.append("locked")
        return object()

    def require_lock(self, _: object) -> None:
        """It is held."""

    def discard_footers(self, _: object) -> None:
        self.events.append("done")

    def record(self, step: Any, **_: object) -> None:
        self.events.append(step.value)

    def note_grants(self) -> None:
        self.events.append("grants")

    def seal(self) -> str:
        self.events.append("sealed")
        return "digest"

    def metadata_files(self) -> list[str]:
        return []

    def take_away(self) -> None:
        self.events.append("partitions taken away")


@pytest.fixture
def convert(monkeypatch):
    """Carries out a migration whose plan is made and whose metadata are written by nobody."""

    def run(story: Story) -> None:
        context: Any = story
        one = Takeover(context)
        monkeypatch.setattr(one, "_write_metadata", lambda *_: (None, "/lake/t/metadata/1.json"))
        monkeypatch.setattr(
            one, "_check_unchanged", lambda *_: story.events.append("checked again")
        )
        monkeypatch.setattr(one, "_check_not_abandoned", lambda *_: None)
        monkeypatch.setattr(one, "_check_no_writer", lambda *_: None)
        monkeypatch.setattr(applying, "_facts", lambda *_: {})
        monkeypatch.setattr(applying, "pointed", lambda table, *_: table)
        monkeypatch.setattr(applying, "HiveParts", lambda *_: story)
        plan: Any = SimpleNamespace(location="/lake/t")
        one._write_and_convert(HiveTable("db", "t"), plan, plan, context)

    return run


def test_the_journal_says_that_the_entry_is_about_to_be_converted_before_it_is(convert):
    story = Story()
    convert(story)
    assert story.events == [
        "writing",
        "prepared",
        "grants",
        "sealed",
        *SWAP,
        "partitions taken away",
        "done",
    ]


def test_the_journal_does_not_say_that_the_entry_was_converted_where_that_is_unknown(convert):
    """Whoever goes on must make sure that the request does not come late."""
    story = Story(CommitStateUnknownError("no answer"))
    with pytest.raises(CommitStateUnknownError):
        convert(story)
    assert story.events == ["writing", "prepared", "grants", "sealed", *SWAP[:4], "unlocked"]


@pytest.mark.parametrize("null_name", ["__HIVE_DEFAULT_PARTITION__", "N/A", ""])
def test_a_partition_is_null_whose_text_is_the_name_that_the_table_has_for_null(null_name):
    schema = Schema(NestedField(1, "k", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "k"))
    texts = ["__HIVE_DEFAULT_PARTITION__", "N/A", "", "null"]
    found = [partition_values([text], spec, schema, null_name=null_name) for text in texts]
    assert found == [(None if text == null_name else text,) for text in texts]
