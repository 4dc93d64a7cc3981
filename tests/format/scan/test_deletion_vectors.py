"""Which deletion vectors apply to which data files, and which tables are refused (spec: Scan Planning)."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.operation.conflict import index_key
from icecomb.format.scan.delete_index import DELETE_STATISTICS, DeleteFileIndex
from icecomb.format.scan.scan_planner import PlanningMetrics
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import DoubleType, LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", LongType()))
WEIGHED = Schema(*SCHEMA.fields, NestedField(3, "weight", DoubleType()))
DAY = PartitionField(2, 1000, IdentityTransform(), "day")
WEIGHT = PartitionField(3, 1001, IdentityTransform(), "weight")
SPECS = {
    3: PartitionSpec(WEIGHT, spec_id=3),
    0: PartitionSpec(),
    1: PartitionSpec(DAY, spec_id=1),
    2: PartitionSpec(DAY, spec_id=2),
}
NUMBERS = itertools.count()


def file(path, day=3, spec_id=1, **more):
    facts = {"record_count": 1, "file_size_in_bytes": 10, "spec_id": spec_id}
    return DataFile(file_path=path, partition=(day,) if spec_id else (), **facts | more)


def vector(target, offset=4, **more):
    made = {
        "content": DataFileContent.POSITION_DELETES,
        "file_format": FileFormat.PUFFIN,
        "referenced_data_file": target,
        "content_offset": offset,
        "content_size_in_bytes": 42,
    }
    return file("/t/v.puffin", **made | more)


def positions(path="/t/p", **more):
    return file(path, content=DataFileContent.POSITION_DELETES, **more)


def equality(**more):
    return file("/t/e", content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,), **more)


def columns(folder, content, *numbered):
    """The entries of a manifest: each a data sequence number and a file, of one spec."""
    spec = SPECS[numbered[0][1].spec_id]
    entries = [
        ManifestEntry(
            status=ManifestEntryStatus.EXISTING,
            snapshot_id=5,
            sequence_number=number,
            file_sequence_number=number,
            data_file=one,
        )
        for number, one in numbered
    ]
    # version 3, but written so that any file is accepted: what is read is under test
    written = write_manifest(
        IO,
        f"{folder}/{next(NUMBERS)}.avro",
        entries,
        format_version=3,
        spec=spec,
        schema=WEIGHED,
        snapshot_id=5,
        content=content,
    )
    manifest = assign_sequence_number(written, 5, 50)
    statistics = DELETE_STATISTICS if content is ManifestContent.DELETES else ()
    [found] = read_each_columns(IO, [manifest], lambda _: spec, statistics, cache=None)
    return found


def index(folder, *groups):
    found = DeleteFileIndex()
    for group in groups:
        found.add(
            columns(folder, ManifestContent.DELETES, *group), unpartitioned=not group[0][1].spec_id
        )
    found.settle()
    return found


def planned(folder, deletes, number, data):
    """The deletes of a data file, as plans find them."""
    [found] = deletes.files_for(columns(folder, ManifestContent.DATA, (number, data)))
    return found


def checked(folder, deletes, number, data):
    """The same as the checks of commits find them."""
    return deletes.files_for_data_file(number, index_key(data), data.file_path)


def applied(folder, deletes, number, data):
    """The deletes of a data file, the same for both."""
    found = planned(folder, deletes, number, data)
    assert found == checked(folder, deletes, number, data)
    return [(one.file_path, one.content_offset) for one in found]


def test_a_vector_applies_to_the_file_it_names_and_to_no_other(tmp_path):
    deletes = index(tmp_path, [(7, vector("/t/a")), (7, vector("/t/b", 46))])
    assert applied(tmp_path, deletes, 7, file("/t/a")) == [("/t/v.puffin", 4)]
    assert applied(tmp_path, deletes, 6, file("/t/b")) == [("/t/v.puffin", 46)]
    assert applied(tmp_path, deletes, 6, file("/t/c")) == []


def test_a_vector_takes_the_place_of_position_deletes_and_equality_deletes_stay(tmp_path):
    of_one = positions("/t/one", referenced_data_file="/t/a")
    deletes = index(
        tmp_path,
        [(7, positions()), (7, of_one), (8, vector("/t/a")), (9, positions("/t/later")), (9, equality())],
        [(9, equality(spec_id=0))],
    )  # fmt: skip
    assert applied(tmp_path, deletes, 7, file("/t/a")) == [
        ("/t/e", None),
        ("/t/e", None),
        ("/t/v.puffin", 4),
    ]
    others = [("/t/e", None), ("/t/e", None), ("/t/p", None), ("/t/later", None)]
    assert applied(tmp_path, deletes, 7, file("/t/b")) == others


def test_an_index_of_vectors_alone_is_true(tmp_path):
    deletes = index(tmp_path, [(7, vector("/t/a"))])
    assert deletes
    assert [one.referenced_data_file for one in deletes.files] == ["/t/a"]
    assert not DeleteFileIndex()


@pytest.mark.parametrize("together", [True, False])
def test_two_vectors_for_one_file_are_refused_like_by_iceberg_java(tmp_path, together):
    entries = [(7, vector("/t/a")), (8, vector("/t/a", 46))]
    groups = [entries] if together else [entries[:1], entries[1:]]
    with pytest.raises(CorruptFileError, match=r"Data file /t/a has several deletion vectors: /t/v\.puffin \(offset 4\) and /t/v\.puffin \(offset 46\)"):  # fmt: skip
        index(tmp_path, *groups)


def test_a_vector_that_names_no_data_file_is_refused(tmp_path):
    with pytest.raises(
        CorruptFileError, match=r"/t/v\.puffin \(offset 4\) does not name its data file"
    ):
        index(tmp_path, [(7, vector(None))])


@pytest.mark.parametrize("found", [planned, checked])
def test_a_vector_older_than_its_data_file_is_refused_like_by_iceberg_java(tmp_path, found):
    deletes = index(tmp_path, [(7, vector("/t/a"))])
    with pytest.raises(
        CorruptFileError,
        match=r"of data file /t/a .* has sequence number 7, less than 8 of its data file",
    ):
        found(tmp_path, deletes, 8, file("/t/a"))
    assert applied(tmp_path, deletes, 8, file("/t/b")) == []


@pytest.mark.parametrize("found", [planned, checked])
@pytest.mark.parametrize("other", [{"day": 4}, {"spec_id": 2}, {"spec_id": 0}])
def test_a_vector_of_another_partition_than_its_data_file_is_refused_like_by_iceberg_java(
    tmp_path, other, found
):
    deletes = index(tmp_path, [(7, vector("/t/a"))])
    with pytest.raises(
        CorruptFileError,
        match=r"of data file /t/a .* has spec and partition \(1, 3\), and its data file has",
    ):
        found(tmp_path, deletes, 7, file("/t/a", **other))


def test_partitions_of_floats_are_compared_as_they_are_stored(tmp_path):
    values = (float("nan"), 0.0, -0.0, None)
    files = [file(f"/t/{at}", value, 3) for at, value in enumerate(values)]
    deletes = index(
        tmp_path,
        [(7, vector(one.file_path, at, day=one.partition[0], spec_id=3)) for at, one in enumerate(files)],
    )  # fmt: skip
    for at, one in enumerate(files):
        assert applied(tmp_path, deletes, 7, one) == [("/t/v.puffin", at)]
    with pytest.raises(CorruptFileError, match="has spec and partition"):
        applied(tmp_path, deletes, 7, file("/t/1", -0.0, 3))


def test_objects_of_vectors_are_made_when_they_are_asked_for_and_once(tmp_path, monkeypatch):
    deletes = index(tmp_path, [(7, vector(f"/t/{at}", at)) for at in range(3000)])
    data = columns(tmp_path, ManifestContent.DATA, *[(7, file(f"/t/{at}")) for at in range(3000)])
    with monkeypatch.context() as patched:
        patched.setattr("icecomb.format.manifests.columns.DataFile", None)
        others, vectors = deletes.lazy_files_for(data)
        assert (others, vectors) == ([()] * 3000, list(range(3000)))
    found = deletes.files_for(data, [2999, 5])
    assert [[one.content_offset for one in each] for each in found] == [[2999], [5]]
    assert found[0][0] is deletes.vector(2999) is deletes.files[2999]


@pytest.fixture
def table(tmp_path):
    """Two files of ten rows; a position delete file of version 2 for one, a vector for the other."""
    catalog = load_catalog("lake", type="hadoop", warehouse=f"file:{tmp_path}")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    table = catalog.create_table("db.t", schema, properties={"write.delete.mode": "merge-on-read"})
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}, schema))
    table.delete("id = 1")
    table.transaction().upgrade_table_version(3).commit_transaction()
    table.delete("id = 11")
    return table


def test_planning_counts_vectors_apart_as_iceberg_java_does(table):
    metrics = PlanningMetrics()
    assert len(list(table.scan().plan_files(metrics))) == 2
    counted = (
        metrics.positional_delete_files,
        metrics.deletion_vectors,
        metrics.equality_delete_files,
    )
    assert counted == (1, 1, 0)


def test_tasks_are_carried_to_other_processes_with_their_vectors(table):
    tasks = list(table.scan().plan_files())
    assert pickle.loads(pickle.dumps(tasks)) == tasks  # noqa: S301 - our own
    assert sum(len(task.delete_files) for task in tasks) == 2


def test_rows_are_counted_from_vectors_without_their_data_files(table):
    for task in table.scan().plan_files():
        Path(task.file_path.removeprefix("file:")).unlink()
    assert table.scan().count() == 18


def test_appended_rows_are_read_without_the_deletes_of_later_snapshots(table):
    found = table.incremental_append_scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == list(range(20))
