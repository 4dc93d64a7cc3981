"""Deletion vectors in commits: none without its data file, one per data file, in version 3 only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icecomb.format.errors import ConflictError, CorruptFileError, ValidationError
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import MergeAppend
from icecomb.format.operation.cherry_pick import CherryPick
from icecomb.format.operation.overwrite import (
    DeleteFiles,
    OverwriteFiles,
    ReplacePartitions,
    RewriteFiles,
)
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.deletion_vector import VectorReader
from icecomb.format.rows.deletes.deletion_vector_writer import DeletionVectorWriter
from icecomb.format.spec.change.update import (
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import append, commit

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", StringType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))


def new_table(tmp_path, version=3, **properties) -> TableMetadata:
    given = {"format-version": str(version), **properties}
    return new_table_metadata(SCHEMA, BY_DAY, UNSORTED_SORT_ORDER, str(tmp_path / "t"), given)


def data(name, day="mon", low=0) -> DataFile:
    bounds = [{1: to_bytes(LongType(), value)} for value in (low, low + 9)]
    return DataFile(
        file_path=f"/t/data/{name}",
        partition=(day,),
        record_count=10,
        file_size_in_bytes=100,
        value_counts={1: 10},
        null_value_counts={1: 0},
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
    )


def vector(of: DataFile, puffin="v.puffin", offset=4) -> DataFile:
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"/t/data/{puffin}",
        file_format=FileFormat.PUFFIN,
        partition=of.partition,
        record_count=2,
        file_size_in_bytes=900,
        referenced_data_file=of.file_path,
        content_offset=offset,
        content_size_in_bytes=44,
    )


def positions(of: DataFile, name="p.parquet") -> DataFile:
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"/t/data/{name}",
        partition=of.partition,
        record_count=2,
        file_size_in_bytes=7,
        referenced_data_file=of.file_path,
    )


def delta(base: TableMetadata, *added, removed=(), start=None) -> RowDelta:
    operation = RowDelta(IO).validate_from_snapshot(start or base.current_snapshot_id)
    for file in added:
        operation.add_deletes(file)
    for file in removed:
        operation.remove_deletes(file)
    return operation


def upgraded(base: TableMetadata, version=3) -> TableMetadata:
    return update_table_metadata(base, [UpgradeFormatVersionUpdate(version)])


def live(metadata: TableMetadata) -> dict[str, tuple[str, int | None] | None]:
    """The live files by name; of vectors, the file and offset by the name of the data file."""
    found = {}
    for manifest in read_manifests(IO, metadata.current_snapshot()):
        for entry in read_manifest(IO, manifest):
            file = entry.data_file
            if not entry.is_live:
                continue
            if file.is_deletion_vector:
                name = f"vector of {file.referenced_data_file.rpartition('/')[2]}"
                assert name not in found
                found[name] = file.file_path.rpartition("/")[2], file.content_offset
            else:
                found[file.file_path.rpartition("/")[2]] = None
    return found


A, B, C = data("a"), data("b", low=20), data("c", "tue")


def three_with_vectors(tmp_path, **properties) -> TableMetadata:
    """Three data files, whose vectors are in one Puffin file."""
    base = append(new_table(tmp_path, **properties), A, B, C)
    vectors = [vector(of, offset=4 + 44 * at) for at, of in enumerate((A, B, C))]
    return commit(base, delta(base, *vectors))


def removing(name, base):
    """An operation that removes the data file `b`, and nothing else that has a vector."""
    start = base.current_snapshot_id
    match name:
        case "delete by path":
            return DeleteFiles(IO).delete_data_file(B.file_path)
        case "delete by file":
            return DeleteFiles(IO).delete_data_file(B)
        case "delete by predicate":
            return DeleteFiles(IO).delete_by_predicate("day = 'mon' and id >= 20")
        case "overwrite":
            found = OverwriteFiles(IO).validate_from_snapshot(start)
            return found.delete_data_file(B).append_data_file(data("new"))
        case "overwrite by filter":
            found = OverwriteFiles(IO).validate_from_snapshot(start)
            return found.overwrite_by_row_filter("day = 'mon' and id >= 20")
        case "compaction":
            found = RewriteFiles(IO).validate_from_snapshot(start)
            return found.rewrite_files([B], [replace(data("new"), record_count=8)])
        case "row delta":
            return RowDelta(IO).validate_from_snapshot(start).remove_rows(B)
    raise AssertionError(name)


REMOVALS = (
    "delete by path",
    "delete by file",
    "delete by predicate",
    "overwrite",
    "overwrite by filter",
    "compaction",
    "row delta",
)


@pytest.mark.parametrize("name", REMOVALS)
def test_whatever_removes_a_data_file_removes_its_vector(tmp_path, name):
    base = three_with_vectors(tmp_path)
    after = commit(base, removing(name, base))
    found = live(after)
    assert "b" not in found
    assert "vector of b" not in found
    # the same Puffin file still holds these
    assert found["vector of a"] == ("v.puffin", 4)
    assert found["vector of c"] == ("v.puffin", 92)
    summary = after.current_snapshot().summary
    assert summary["removed-dvs"] == summary["removed-delete-files"] == "1"
    assert summary["removed-position-deletes"] == "2"
    assert "removed-position-delete-files" not in summary
    assert summary["total-delete-files"] == "2"
    assert summary["total-position-deletes"] == "4"


def test_replaced_partitions_lose_their_vectors(tmp_path):
    base = three_with_vectors(tmp_path)
    operation = ReplacePartitions(IO).append_data_file(data("new"))
    assert live(commit(base, operation)) == {
        "new": None,
        "c": None,
        "vector of c": ("v.puffin", 92),
    }


def test_a_picked_replacement_removes_vectors_that_came_after_it(tmp_path):
    base = append(new_table(tmp_path), A, B, C)
    staged = ReplacePartitions(IO, stage_only=True).append_data_file(data("new"))
    base = commit(base, staged)
    base = commit(base, delta(base, vector(A), vector(C, offset=48)))
    found = live(commit(base, CherryPick(IO, staged.snapshot_id)))
    assert found == {"new": None, "c": None, "vector of c": ("v.puffin", 48)}


def test_an_append_leaves_vectors_alone(tmp_path):
    merged = {"commit.manifest.min-count-to-merge": "2"}
    base = three_with_vectors(tmp_path, **merged)
    after = commit(base, MergeAppend(IO).append_data_file(data("new")))
    assert live(after) == {**live(base), "new": None}


def test_a_vector_in_another_partition_is_not_that_of_the_removed_file(tmp_path):
    base = append(new_table(tmp_path), A, C)
    base = commit(base, delta(base, vector(C)))
    base = commit(base, OverwriteFiles(IO).delete_data_file(A))
    assert live(base) == {"c": None, "vector of c": ("v.puffin", 4)}


def test_another_attempt_removes_the_vectors_that_there_are_then(tmp_path):
    base = append(new_table(tmp_path), A, B)
    base = commit(base, delta(base, vector(A)))
    operation = DeleteFiles(IO).delete_data_file(A).delete_data_file(B)
    operation.apply(base)
    others = commit(base, delta(base, vector(B, "w.puffin")))
    assert live(commit(others, operation)) == {}


def test_a_vector_that_replaces_another_takes_its_place(tmp_path):
    base = three_with_vectors(tmp_path)
    old, new = vector(B, offset=48), vector(B, "w.puffin")
    after = commit(base, delta(base, new, removed=[old]))
    assert live(after) == {**live(base), "vector of b": ("w.puffin", 4)}
    summary = after.current_snapshot().summary
    assert (summary["added-dvs"], summary["removed-dvs"]) == ("1", "1")
    # the size of a vector, not that of the Puffin file
    assert (summary["added-files-size"], summary["removed-files-size"]) == ("44", "44")


def test_position_deletes_about_one_file_are_replaced_those_about_several_stay(tmp_path):
    base = append(new_table(tmp_path, 2), A, B)
    several = replace(positions(A, "several.parquet"), referenced_data_file=None)
    base = upgraded(commit(base, delta(base, positions(A), positions(B, "q.parquet"), several)))
    after = commit(base, delta(base, vector(A), removed=[positions(A)]))
    assert live(after) == {
        "a": None,
        "b": None,
        "q.parquet": None,
        "several.parquet": None,
        "vector of a": ("v.puffin", 4),
    }


def test_a_second_vector_of_a_data_file_is_refused(tmp_path):
    base = three_with_vectors(tmp_path)
    with pytest.raises(ValidationError, match=r"data file /t/data/a, which has one in .*v\.puffin"):
        delta(base, vector(A, "w.puffin")).apply(base)


def written_vectors(base: TableMetadata, name: str, *rows: tuple[DataFile, list[int]]):
    writer = DeletionVectorWriter(IO, base, name)
    for file, deleted in rows:
        writer.add(file, np.array(deleted))
    return writer.close()


def deleted_rows(metadata: TableMetadata) -> dict[str, list[int]]:
    """The positions that live vectors delete, by the name of the data file."""
    return {
        name.rpartition("/")[2]: VectorReader(IO).positions(file).tolist()
        for manifest in read_manifests(IO, metadata.current_snapshot())
        for entry in read_manifest(IO, manifest)
        if entry.is_live and (file := entry.data_file).is_deletion_vector
        for name in [file.referenced_data_file]
    }


def puffins(metadata: TableMetadata) -> list[str]:
    return sorted(path.name for path in Path(metadata.location, "data").iterdir())


def test_two_vectors_of_a_data_file_in_one_commit_are_joined(tmp_path):
    base = append(new_table(tmp_path), A, B)
    first = written_vectors(base, "first", (A, [1, 5]), (B, [7]))
    second = written_vectors(base, "second", (A, [0, 5, 9]))
    operation = delta(base, *first, *second)
    # of a lost attempt the next one takes what is written
    operation.apply(base)
    other = append(base, data("other"))
    after = commit(other, operation)
    assert deleted_rows(after) == {"a": [0, 1, 5, 9], "b": [7]}
    summary = after.current_snapshot().summary
    assert (summary["added-dvs"], summary["added-position-deletes"]) == ("2", "5")
    operation.clean_up(after)
    assert len(puffins(after)) == 3
    assert deleted_rows(after) == {"a": [0, 1, 5, 9], "b": [7]}


def test_what_joins_two_vectors_is_deleted_if_it_is_not_committed(tmp_path):
    base = append(new_table(tmp_path), A, B)
    given = [written_vectors(base, name, (A, [n]))[0] for n, name in enumerate(("u", "v"))]
    there = puffins(base)
    operation = delta(base, *given)
    operation.apply(base)
    assert len(puffins(base)) == 3
    operation.clean_up(None)
    assert puffins(base) == there
    assert deleted_rows(commit(base, operation)) == {"a": [0, 1]}


def test_two_vectors_that_cannot_be_joined_are_refused_and_nothing_stays(tmp_path):
    base = append(new_table(tmp_path), A, B)
    (sound,) = written_vectors(base, "sound", (A, [1]))
    elsewhere = replace(vector(A, "w.puffin"), partition=("tue",))
    with pytest.raises(ValidationError, match="data file /t/data/a are in different partitions"):
        delta(base, sound, elsewhere).apply(base)
    operation = delta(base, sound, replace(sound, record_count=2, content_offset=5))
    with pytest.raises(CorruptFileError, match="of data file /t/data/a"):
        operation.apply(base)
    operation.clean_up(None)
    assert len(puffins(base)) == 1
    older = RewriteFiles(IO).rewrite_files(
        [], [sound, vector(A, "w.puffin")], delete_sequence_numbers={sound.file_path: 1}
    )
    with pytest.raises(ValidationError, match="one keeps a sequence number of its own"):
        older.new_manifests(base, ManifestContent.DELETES)


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_a_vector_that_others_added_meanwhile_is_a_conflict_that_names_their_commit(
    tmp_path, level
):
    base = append(new_table(tmp_path), A, B)
    mine = delta(base, vector(A))
    if level == "serializable":
        mine.validate_no_conflicting_data_files().validate_no_conflicting_delete_files()
    mine.conflict_detection_filter("id < 3")
    theirs = commit(base, delta(base, vector(A, "theirs.puffin")))
    theirs = commit(
        theirs,
        delta(theirs, vector(A, "more.puffin"), removed=[vector(A, "theirs.puffin")]),
    )
    with pytest.raises(ConflictError, match="Found concurrently added DV for") as refused:
        mine.apply(theirs)
    assert "/t/data/a" in refused.value.message
    assert set(refused.value.context["snapshot_ids"]) == {
        snapshot.snapshot_id for snapshot in theirs.snapshots[1:]
    }


def test_vectors_of_different_data_files_are_no_conflict(tmp_path):
    base = append(new_table(tmp_path), A, B)
    mine = delta(base, vector(A))
    theirs = commit(base, delta(base, vector(B, "theirs.puffin")))
    found = live(commit(theirs, mine))
    assert found["vector of a"] == ("v.puffin", 4)
    assert found["vector of b"] == ("theirs.puffin", 4)


def test_positions_published_from_version_2_are_a_conflict_for_a_vector(tmp_path):
    """They would be ignored beside the vector, and the rows come back."""
    base = append(new_table(tmp_path, 2), A)
    staged = RowDelta(IO, stage_only=True).add_deletes(positions(A))
    base = upgraded(commit(base, staged.validate_from_snapshot(base.current_snapshot_id)))
    mine = delta(base, vector(A))
    base = commit(base, CherryPick(IO, staged.snapshot_id))
    assert "p.parquet" in live(base)
    with pytest.raises(ConflictError, match=r"/t/data/a \(deletes in /t/data/p\.parquet\)"):
        mine.apply(base)


@pytest.mark.parametrize("gone", ["compaction", "delete by path"])
def test_a_vector_of_a_data_file_that_others_removed_is_a_conflict(tmp_path, gone):
    base = append(new_table(tmp_path), A, B)
    mine = delta(base, vector(B))
    with pytest.raises(ConflictError, match="missing data files"):
        mine.apply(commit(base, removing(gone, base)))


@pytest.mark.parametrize("name", ["overwrite", "compaction"])
def test_a_file_that_got_vectors_meanwhile_is_not_replaced(tmp_path, name):
    base = append(new_table(tmp_path), A, B)
    operation = removing(name, base)
    if name == "overwrite":
        operation.validate_no_conflicting_deletes()
    theirs = commit(base, delta(base, vector(B)))
    theirs = commit(theirs, delta(theirs, vector(B, "w.puffin"), removed=[vector(B)]))
    with pytest.raises(ConflictError, match=r"for replaced data file.*/t/data/b"):
        operation.apply(theirs)


def test_position_deletes_prepared_before_an_upgrade_are_refused_after_it(tmp_path):
    base = append(new_table(tmp_path, 2), A)
    operation = delta(base, positions(A))
    operation.apply(base)
    with pytest.raises(ValidationError, match="in format version 3, rows are deleted by") as found:
        operation.apply(upgraded(base))
    assert "upgraded" in found.value.hint


def test_vectors_are_refused_below_version_3(tmp_path):
    base = append(new_table(tmp_path, 2), A)
    with pytest.raises(ValidationError, match="format version 2 has position delete files only"):
        delta(base, vector(A)).apply(base)


@pytest.mark.parametrize(
    "missing", ["referenced_data_file", "content_offset", "content_size_in_bytes"]
)
def test_a_vector_says_whose_it_is_and_where(tmp_path, missing):
    base = append(new_table(tmp_path), A)
    with pytest.raises(ValidationError, match="does not name its data file, or where it is"):
        delta(base, replace(vector(A), **{missing: None})).apply(base)
