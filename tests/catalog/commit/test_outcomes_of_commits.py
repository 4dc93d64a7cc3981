"""What a commit deletes and says for each outcome of a swap, with a pointer that answers as it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from icecomb.catalog.commit.commit import commit
from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion, Outcome, Unknown
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    MetastoreError,
)
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SILENCE = MetastoreError("no answer")
QUICK = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "1", "commit.retry.num-retries": "3"}  # fmt: skip


class Pointer:
    """Holds a table in memory; its first swaps have these outcomes, the others succeed."""

    name = "db.t"
    properties: Mapping[str, str] = {}

    def __init__(self, folder: str, *outcomes: Outcome | Exception) -> None:
        schema = Schema(NestedField(1, "id", LongType()))
        first = new_table_metadata(schema, PartitionSpec(), UNSORTED_SORT_ORDER, folder, QUICK)
        self.current = MetadataVersion("v0", first)
        self.staged: list[MetadataVersion] = []
        self.discarded: list[str] = []
        self.outcomes = list(outcomes)

    def check_writable(self, _: object) -> None:
        """Everything is."""

    check_deletable = check_writable

    def own_folders(self) -> list[str]:
        return [self.current.metadata.location]

    def load(self) -> MetadataVersion:
        return self.current

    def stage(self, _: object, metadata: Any) -> MetadataVersion:
        self.staged.append(MetadataVersion(f"v{len(self.staged) + 1}", metadata))
        return self.staged[-1]

    def swap(self, expected: MetadataVersion, new: MetadataVersion) -> Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else Committed()
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, Conflict):
            self.overtake()
        elif isinstance(outcome, Committed):
            assert expected is self.current
            self.current = new
        return outcome

    def discard(self, new: MetadataVersion) -> None:
        self.discarded.append(new.location)

    def queue(self, _: object, __: object = None) -> bool:
        return False

    def wait_in_queue(self, _: object) -> bool:
        return True

    def exclusive(self, _: object, __: object) -> bool:
        return False

    def overtake(self) -> None:
        """Another writer commits a file."""
        changes = append("theirs").apply(self.current.metadata)
        metadata = update_table_metadata(self.current.metadata, changes.updates)
        self.current = MetadataVersion(f"theirs-{len(self.staged)}", metadata)


def append(name: str) -> FastAppend:
    file = DataFile(
        file_path=f"/lake/{name}", partition=(), record_count=1, file_size_in_bytes=1, spec_id=0
    )
    return FastAppend(IO).append_data_file(file)


def files(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.avro"))


def tried(pointer: Pointer, change: FastAppend) -> Any:
    start: Any = pointer
    return commit(start, IO, pointer.current, change)


def test_a_commit_that_succeeds_keeps_its_files(tmp_path):
    pointer = Pointer(str(tmp_path))
    done = tried(pointer, append("ours"))
    assert done is pointer.current
    assert pointer.discarded == []
    assert len(files(tmp_path)) == 2


def test_a_commit_that_lost_a_race_is_made_again_on_what_won(tmp_path):
    pointer = Pointer(str(tmp_path), Conflict("another was first", "v"))
    done = tried(pointer, append("ours"))
    ours, theirs = done.metadata.snapshots[-1], done.metadata.snapshots[-2]
    assert ours.parent_snapshot_id == theirs.snapshot_id
    assert ours.sequence_number == theirs.sequence_number + 1
    assert pointer.discarded == ["v1"]


@pytest.mark.parametrize("cause", [SILENCE, OSError("gone")])
def test_a_commit_of_unknown_outcome_deletes_nothing_and_is_not_tried_again(tmp_path, cause):
    pointer = Pointer(str(tmp_path), Unknown("no answer", None, cause))
    with pytest.raises(CommitStateUnknownError, match="unknown whether the commit happened"):
        tried(pointer, append("ours"))
    assert [each.location for each in pointer.staged] == ["v1"]
    assert pointer.discarded == []
    assert len(files(tmp_path)) == 2


def test_a_swap_that_ends_in_a_bug_is_of_unknown_outcome(tmp_path):
    """Of ours or of a library, which met an answer that nobody thought of, after the request."""
    pointer = Pointer(str(tmp_path), IndexError("list index out of range"))
    with pytest.raises(CommitStateUnknownError, match=r"IndexError: list index out of range"):
        tried(pointer, append("ours"))
    assert [each.location for each in pointer.staged] == ["v1"]
    assert pointer.discarded == []
    assert len(files(tmp_path)) == 2


def test_a_commit_that_was_made_is_no_failure_for_what_fails_after_it(tmp_path):
    pointer = Pointer(str(tmp_path))
    change = append("ours")
    change.clean_up = lambda _: {}["odd"]
    assert tried(pointer, change) is pointer.current


def test_a_commit_that_is_refused_leaves_no_file(tmp_path):
    pointer = Pointer(str(tmp_path), MetastoreError("refused"))
    with pytest.raises(MetastoreError, match="refused"):
        tried(pointer, append("ours"))
    assert pointer.discarded == ["v1"]
    assert files(tmp_path) == []


def test_a_commit_that_loses_every_race_leaves_no_file(tmp_path):
    lost = [Conflict("another was first", "v")] * 4
    pointer = Pointer(str(tmp_path), *lost)
    with pytest.raises(CommitFailedError, match="not committed after 4 attempts"):
        tried(pointer, append("ours"))
    assert pointer.discarded == ["v1", "v2", "v3", "v4"]
    assert len(files(tmp_path)) == 8  # of the other writer


def test_a_commit_does_not_go_to_another_table_that_has_the_name_by_now(tmp_path):
    pointer = Pointer(str(tmp_path))
    known = pointer.current
    pointer.current = MetadataVersion("new", replace(known.metadata, table_uuid=uuid4()))
    pointer.outcomes = [Conflict("another was first", "new")]
    pointer.overtake = lambda: None
    start: Any = pointer
    with pytest.raises(CommitFailedError, match="was dropped, and a new table has its name"):
        commit(start, IO, known, append("ours"))
    assert files(tmp_path) == []


def test_metadata_files_are_deleted_that_the_log_has_forgotten_and_no_others(tmp_path):
    """Where the table asks for it."""
    told = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "2",
    }
    pointer = Pointer(str(tmp_path))
    metadata = replace(
        pointer.current.metadata, properties={**pointer.current.metadata.properties, **told}
    )
    places = [tmp_path / f"v{number}.metadata.json" for number in range(6)]
    pointer.current = MetadataVersion(str(places[0]), metadata)

    def stage(_: object, changed: Any) -> MetadataVersion:
        place = places[len(pointer.staged) + 1]
        place.touch()
        pointer.staged.append(MetadataVersion(str(place), changed))
        return pointer.staged[-1]

    pointer.stage = stage
    places[0].touch()
    for number in range(5):
        tried(pointer, append(str(number)))
    there = [place.name for place in places if place.exists()]
    assert there == [f"v{number}.metadata.json" for number in (3, 4, 5)]
    assert [entry.metadata_file for entry in pointer.current.metadata.metadata_log] == [
        str(places[3]),
        str(places[4]),
    ]
