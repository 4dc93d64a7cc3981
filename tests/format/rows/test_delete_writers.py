"""Position and equality delete files as they are written, read by pyarrow and by our scan."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.format.errors import FileIOError, SchemaError, UnsupportedError, ValidationError
from icecomb.format.manifests.manifest import DataFileContent, FileFormat
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import from_bytes
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    FixedType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

IO = FileIO()
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "s", StringType()),
        NestedField(3, "st", StructType((NestedField(5, "x", LongType()),))),
        NestedField(4, "ls", ListType(6, LongType())),
    )
)
FORMATS = ["parquet", "orc", "avro"]


def new_table(folder, partition=None, **properties):
    spec = UNPARTITIONED_PARTITION_SPEC
    if partition is not None:
        name, transform = partition
        source = SCHEMA.find_field(name).field_id
        spec = PartitionSpec(0, (PartitionField(source, 1000, parse_transform(transform), "p"),))
    return new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, str(folder), properties)


def frame(ids):
    return pa.Table.from_pylist(
        [{"id": i, "s": None if i % 5 == 0 else f"s{i % 3}", "st": {"x": i}, "ls": [i]} for i in ids],
        schema_to_pyarrow(SCHEMA, include_field_ids=False),
    )  # fmt: skip


def ids(metadata, *tasks):
    scan = ArrowScan(metadata, IO, metadata.schema())
    return sorted(scan.to_table(tasks)["id"].to_pylist())


def task(metadata, file, *deletes):
    return FileScanTask(file, deletes, spec=metadata.spec())


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("rows", [False, True])
def test_position_deletes_are_sorted_and_say_what_they_are_about(tmp_path, file_format, rows):
    properties = {
        "write.delete.granularity": "partition",
        "write.delete.format.default": file_format,
    }
    metadata = new_table(tmp_path, **properties)
    files = [f for i in (0, 10) for f in write_data(IO, metadata, frame(range(i, i + 10)))]
    writer = PositionDeleteWriter(IO, metadata, "op", rows=rows)
    for file, places in zip(sorted(files, key=lambda f: f.file_path, reverse=True), ([1, 7], [0, 9]), strict=True):  # fmt: skip
        stored = read_rows(metadata, file).take(places) if rows else None
        writer.add(file, np.array(places), stored)
    (written,) = writer.close()
    assert written.content is DataFileContent.POSITION_DELETES
    assert written.file_format is FileFormat(file_format)
    assert written.file_path.endswith(f"-deletes.{file_format}")
    assert written.record_count == 4
    assert written.sort_order_id is written.equality_ids is written.referenced_data_file is None
    first, last = sorted(f.file_path for f in files)
    path, pos = DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id
    assert (written.lower_bounds[path], written.upper_bounds[path]) == (
        first.encode(),
        last.encode(),
    )
    assert [
        from_bytes(LongType(), b[pos]) for b in (written.lower_bounds, written.upper_bounds)
    ] == [0, 9]
    gone = {1, 7, 10, 19} if files[0].file_path == last else {0, 9, 11, 17}
    found = ids(metadata, *(task(metadata, f, written) for f in files))
    assert found == [i for i in range(20) if i not in gone]
    if file_format == "parquet":
        table = pq.read_table(written.file_path)
        assert table.column_names == ["file_path", "pos", "row"][: 3 if rows else 2]
        places = list(zip(*(table[n].to_pylist() for n in ("file_path", "pos")), strict=True))
        assert places == sorted(places)
        if rows:
            assert [r["id"] % 10 for r in table["row"].to_pylist()] == table["pos"].to_pylist()


def read_rows(metadata, file):
    return ArrowScan(metadata, IO, metadata.schema()).to_table([task(metadata, file)])


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_granularity_decides_how_many_data_files_a_delete_file_is_about(tmp_path, granularity):
    metadata = new_table(tmp_path, ("id", "bucket[2]"), **{"write.delete.granularity": granularity})
    files = [f for i in (0, 50) for f in write_data(IO, metadata, frame(range(i, i + 50)))]
    assert len(files) == 4
    writer = PositionDeleteWriter(IO, metadata, "op")
    for file in files:
        writer.add(file, np.array([0]))
    written = writer.close()
    assert len(written) == (4 if granularity == "file" else 2)
    referenced = sorted(f.referenced_data_file or "" for f in written)
    assert referenced == (sorted(f.file_path for f in files) if granularity == "file" else ["", ""])
    assert {f.partition for f in written} == {f.partition for f in files}


def test_delete_files_are_about_their_target_size(tmp_path):
    properties = {
        "write.delete.target-file-size-bytes": "50000",
        "write.delete.parquet.row-group-limit": "20000",
    }
    metadata = new_table(tmp_path, **properties)
    (file,) = write_data(IO, metadata, frame(range(10)))
    writer = PositionDeleteWriter(IO, metadata, "op")
    places = np.unique(np.random.default_rng(1).integers(0, 10_000_000, 200_000))
    writer.add(file, places)
    written = writer.close()
    assert len(written) > 2
    assert {f.referenced_data_file for f in written} == {file.file_path}
    found = np.concatenate([np.asarray(pq.read_table(f.file_path)["pos"]) for f in written])
    assert (found == places).all()


@pytest.mark.parametrize("partition", [None, ("id", "bucket[2]")])
def test_stored_rows_must_be_given_to_a_writer_of_rows_only(tmp_path, partition):
    metadata = new_table(tmp_path, partition)
    file = write_data(IO, metadata, frame(range(10)))[0]
    with pytest.raises(ValidationError, match="needs deleted rows"):
        PositionDeleteWriter(IO, metadata, "op", rows=True).add(file, np.array([1]))
    with pytest.raises(ValidationError, match="takes no deleted rows"):
        PositionDeleteWriter(IO, metadata, "op").add(file, np.array([1]), frame([1]))


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("columns", [["s"], ["id"], ["s", "id"]])
def test_equality_deletes_remove_equal_rows_and_nulls_are_equal(tmp_path, file_format, columns):
    metadata = new_table(tmp_path, **{"write.format.default": file_format})
    (file,) = write_data(IO, metadata, frame(range(20)))
    writer = EqualityDeleteWriter(IO, metadata, "op", columns)
    keys = frame([5, 7, 7])
    for batch in keys.to_batches():
        writer.write(batch)
    (written,) = writer.close()
    assert written.content is DataFileContent.EQUALITY_DELETES
    assert written.file_format is FileFormat(file_format)
    assert written.equality_ids == tuple(SCHEMA.find_field(c).field_id for c in columns)
    assert written.record_count == 3
    values = {(None if i % 5 == 0 else f"s{i % 3}", i) for i in (5, 7)}
    texts = {s for s, _ in values}
    expected = [
        i for i in range(20)
        if not ((None if i % 5 == 0 else f"s{i % 3}") in texts if columns == ["s"] else i in {5, 7})
    ]  # fmt: skip
    assert ids(metadata, task(metadata, file, written)) == expected


def test_equality_deletes_of_a_fixed_column_are_refused_as_iceberg_java_gets_them_wrong(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "key", FixedType(3))))
    made = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(tmp_path)
    )
    with pytest.raises(UnsupportedError, match=r"'key' \(fixed\[3\]\)"):
        EqualityDeleteWriter(IO, made, "op", ["id", "key"])
    assert EqualityDeleteWriter(IO, made, "op", ["id"]).close() == []


def test_equality_deletes_hold_the_columns_that_are_needed_only(tmp_path):
    metadata = new_table(tmp_path, ("id", "bucket[4]"))
    writer = EqualityDeleteWriter(IO, metadata, "op", ["s"])
    assert [f.name for f in writer.schema.fields] == ["id", "s"]
    (batch,) = frame(range(20)).to_batches()
    writer.write(batch)
    written = writer.close()
    assert {f.partition for f in written} == {(0,), (1,), (2,), (3,)}
    assert all("/p=" in f.file_path for f in written)
    assert pq.read_schema(written[0].file_path).names == ["id", "s"]


def test_equality_deletes_of_a_spec_without_fields_are_of_the_whole_table(tmp_path):
    partitioned = new_table(tmp_path, ("id", "bucket[4]"))
    with pytest.raises(ValidationError):
        EqualityDeleteWriter(IO, partitioned, "op", ["s"], spec_id=7)
    writer = EqualityDeleteWriter(IO, new_table(tmp_path), "op", ["s"], spec_id=0)
    (batch,) = frame([1]).to_batches()
    writer.write(batch.select(["s"]))
    (written,) = writer.close()
    assert written.partition == ()


@pytest.mark.parametrize("column", ["ls", "ls.element", "st", "st.x", "nothing"])
def test_columns_that_cannot_be_compared_are_refused(tmp_path, column):
    with pytest.raises(ValidationError, match=column):
        EqualityDeleteWriter(IO, new_table(tmp_path), "op", [column])
    with pytest.raises(ValidationError):
        EqualityDeleteWriter(IO, new_table(tmp_path), "op", [])


def test_a_missing_column_is_not_taken_for_null(tmp_path):
    writer = EqualityDeleteWriter(IO, new_table(tmp_path), "op", ["id", "s"])
    (batch,) = frame([1]).to_batches()
    with pytest.raises(ValidationError, match="'s'"):
        writer.write(batch.select(["id"]))
    with pytest.raises(SchemaError):
        writer.write(pa.record_batch({"id": ["1"], "s": ["a"]}))


def test_properties_of_delete_files_go_before_those_of_data_files(tmp_path):
    properties = {
        "write.format.default": "orc",
        "write.orc.compression-codec": "zlib",
        "write.delete.orc.compression-codec": "zstd",
    }
    metadata = new_table(tmp_path, **properties)
    (file,) = write_data(IO, metadata, frame([1]))
    writer = PositionDeleteWriter(IO, metadata, "op")
    writer.add(file, np.array([0]))
    (written,) = writer.close()
    assert orc.ORCFile(file.file_path).compression == "ZLIB"
    assert orc.ORCFile(written.file_path).compression == "ZSTD"


def test_delete_files_of_a_failed_attempt_are_removed(tmp_path, monkeypatch):
    properties = {
        "write.delete.target-file-size-bytes": "1",
        "write.delete.parquet.row-group-limit": "10",
    }
    metadata = new_table(tmp_path, **properties)
    (file,) = write_data(IO, metadata, frame([1]))
    before = sorted(tmp_path.rglob("*"))
    create, made = IO.create_stream, []

    def failing(location):
        made.append(location)
        if len(made) > 3:
            raise FileIOError("disk full", path=location)
        return create(location)

    monkeypatch.setattr(IO, "create_stream", failing)
    writer = PositionDeleteWriter(IO, metadata, "op")
    with pytest.raises(FileIOError, match="disk full"):
        writer.add(file, np.arange(100))
    writer.abort()
    assert sorted(tmp_path.rglob("*")) == before
