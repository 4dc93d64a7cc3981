from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.catalog.hive.thrift.catalog_name import CatalogName
from icecomb.catalog.hive.thrift.entity import FieldSchema, HivePartition, HiveTable
from icecomb.catalog.hive.thrift.partitions import Partitions
from icecomb.catalog.hive.thrift.thrift_codec import partition_to_wire
from icecomb.catalog.migrate.journal.journal import PartitionPages
from icecomb.format.errors import FileIOError

TABLE = HiveTable("db", "t", partition_keys=(FieldSchema("k", "string"),))


class Answers:
    """The answers of a metastore to calls about one table's partitions."""

    def __init__(self, partitions: list[HivePartition]) -> None:
        self.partitions = {f"k={one.values[0]}": one for one in partitions}

    def read(self, call: str, *arguments: Any, **_: Any) -> Any:
        if call == "get_partition_names":
            return list(self.partitions)
        return [partition_to_wire(self.partitions[name]) for name in arguments[-1]]


def pages_of(answers: Answers) -> PartitionPages:
    return PartitionPages(Partitions(cast("Calls", answers), CatalogName()), TABLE)


def partitions(count: int) -> list[HivePartition]:
    """Partitions, of which a thousand take more than is kept in memory."""
    return [
        HivePartition("db", "t", (str(n),), parameters={"long": os.urandom(3000).hex()})
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 3, 1201])
def test_partitions_are_kept_as_they_were_read(count: int) -> None:
    there = partitions(count)
    answers = Answers(there)
    with pages_of(answers) as pages:
        assert list(pages.read()) == there
        # two readers take turns
        both = list(zip(pages.kept(), pages.kept(), strict=True))
        assert both == list(zip(there, there, strict=True))
        assert pages.is_current()
        if there:
            answers.partitions["k=0"] = replace(there[0], parameters={"other": "1"})
            assert not pages.is_current()
            assert list(pages.kept()) == there
        assert list(pages.read()) == list(answers.partitions.values())
        assert pages.is_current()
    with pytest.raises(AttributeError):
        list(pages.kept())


def test_a_disk_without_room_for_partitions_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(FileIOError, match="No such file or directory") as refused,
        pages_of(Answers(partitions(1500))) as pages,
    ):
        list(pages.read())
    assert "set TMPDIR" in str(refused.value)
