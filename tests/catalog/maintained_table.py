"""Tables for tests of maintenance, and what is looked at in them."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from random import Random

import pyarrow as pa
from random_writers import SCHEMA as CHANGED, RandomChanges, frame as changed_frame

from icecomb.format.errors import IcecombError
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ALL = {"rewrite-all": "true"}


def frame(*values: int) -> pa.Table:
    return pa.table([pa.array(values, pa.int64()), [f"s{value}" for value in values]], SCHEMA)


def new_table(lake, *parts, by=None, **properties):
    fields = () if by is None else (PartitionField(1, 1000, parse_transform(by), "p"),)
    given = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    given |= {key.replace("_", "."): value for key, value in properties.items()}
    table = lake.create_table(
        "db.t", SCHEMA, partition_spec=PartitionSpec(0, fields), properties=given
    )
    for part in parts:
        table.append(part)
    return table


def in_order(table) -> list[int]:
    return table.refresh().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()


def files(table):
    return [task.file for task in table.refresh().scan().plan_files()]


def tasks(table):
    return list(table.refresh().scan().plan_files())


def data_on_disk(table) -> set[str]:
    folder = Path(table.location().removeprefix("file:")) / "data"
    return {str(path) for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc"}


def delete_by_value(table, value: int, column: str = "id") -> None:
    kept = table.refresh().metadata
    writer = EqualityDeleteWriter(table.io, kept, uuid.uuid4().hex, [column], spec_id=0)
    writer.write(pa.record_batch({column: pa.array([value])}))
    change = RowDelta(table.io)
    for file in writer.close():
        change.add_deletes(file)
    table.commit(change)


def assert_numbers(table) -> None:
    """The counts of the last summary are those of its manifests."""
    snapshot = table.current_snapshot()
    if snapshot is None or "total-records" not in snapshot.summary:
        return
    entries = [
        entry
        for manifest in read_manifests(table.io, snapshot)
        for entry in read_manifest(table.io, manifest)
        if entry.status.name != "DELETED"
    ]
    data = [e.data_file for e in entries if e.data_file.content is DataFileContent.DATA]
    assert snapshot.summary["total-data-files"] == str(len(data))
    assert snapshot.summary["total-records"] == str(sum(f.record_count for f in data))
    assert snapshot.summary["total-delete-files"] == str(len(entries) - len(data))


def assert_vectors(table) -> None:
    """A data file has at most one deletion vector, and a vector has its data file."""
    files = live_files(table)
    targets = [f.referenced_data_file for f in files if f.is_deletion_vector]
    assert len(set(targets)) == len(targets)
    data = {f.file_path: f for f in files if f.content is DataFileContent.DATA}
    assert data.keys() >= set(targets)
    for file in files:
        if file.is_deletion_vector:
            target = data[file.referenced_data_file]
            assert (file.spec_id, file.partition) == (target.spec_id, target.partition)
            assert 0 < file.record_count <= target.record_count


def live_files(table):
    """The files of the current snapshot."""
    return [
        entry.data_file
        for manifest in read_manifests(table.io, table.refresh().current_snapshot())
        for entry in read_manifest(table.io, manifest)
        if entry.is_live
    ]


def interrupting(monkeypatch, owner, name="rewrite"):
    """Says what happens after each call of a method: by default, a group is rewritten."""

    def set_to(*steps) -> None:
        left = list(steps)
        original = getattr(owner, name)

        def interrupted(self, *given):
            done = original(self, *given)
            if left:
                left.pop(0)()
            return done

        monkeypatch.setattr(owner, name, interrupted)

    return set_to


class RandomTable:
    """A table that others change at random, beside the rows that it must have.

    Args:
        lake: A catalog with the namespace `db`.
        random: Decides everything.
        version: The format version.
    """

    def __init__(self, lake, random: Random, version: int = 2) -> None:
        self.lake = lake
        properties = {"format-version": str(version), "commit.retry.min-wait-ms": "1"}
        for command in ("delete", "merge"):
            mode = random.choice(["copy-on-write", "merge-on-read", "merge-on-read"])
            properties[f"write.{command}.mode"] = mode
        properties["write.delete.granularity"] = random.choice(["file", "partition"])
        copied = "icecomb.maintenance.copy-min-row-group-bytes"
        properties[copied] = random.choice(["0", "0", "8388608"])
        self.told = [str(properties)]
        table = lake.create_table("db.r", CHANGED, properties=properties)
        self._made = RandomChanges(random)
        self._changing = False
        self._model = self._made.rows(6)
        table.append(changed_frame(self._model))

    def load(self):
        return self.lake.load_table("db.r")

    def change(self, count: int, *kinds: str) -> None:
        """Others do something; of any kind by default. While one does, there are no others."""
        for _ in range(0 if self._changing else count):
            self._changing = True
            change = self._made.any(self._model, *kinds)
            try:
                after = change.of(self._model)
                change.do(self.load())
            except IcecombError as error:
                self.told.append(f"refused: {change.text}: {error}")
            except Exception as error:  # noqa: BLE001 - a change that such rows do not allow
                self.told.append(f"not: {change.text}: {error!r}")
            else:
                self.told.append(change.text)
                self._model = after
            self._changing = False

    def check(self) -> None:
        """The rows are those that others have made."""
        table = self.load()
        found = table.scan(selected_fields=("k", "s", "u")).to_arrow().to_pylist()
        rows = sorted(tuple(row.values()) for row in found)
        assert rows == sorted(self._model), "\n".join(self.told)
        if table.metadata.format_version >= 3:
            assert_vectors(table)


def age(place: Path) -> None:
    """Make files a week old."""
    then = time.time() - 7 * 86_400
    for path in place.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
