from __future__ import annotations

import math
import random
import struct
import tempfile
from functools import cmp_to_key
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.format.cancellation import Cancellation, cancellable
from icecomb.format.errors import OperationCanceledError
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.rows.write.row_key import SortKey
from icecomb.format.rows.write.row_sort import RowSorter
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

IO = FileIO()
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "d", DoubleType()),
        NestedField(4, "st", StructType((NestedField(5, "x", IntegerType()),))),
    )
)
ASC, DESC = SortDirection
FIRST, LAST = NullOrder


def new_table(folder, *keys, partition=(), schema=SCHEMA, **properties):
    order = SortOrder(
        1,
        tuple(
            SortField(schema.find_field(name).field_id, parse_transform(t), direction, nulls)
            for name, t, direction, nulls in keys
        ),
    )
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(schema.find_field(n).field_id, 1000 + i, parse_transform(t), f"{n}_{t}")
            for i, (n, t) in enumerate(partition)
        ),
    )
    return new_table_metadata(
        schema, spec if partition else UNPARTITIONED_PARTITION_SPEC, order, str(folder), properties
    )


def read(metadata, file):
    scan = ArrowScan(metadata, IO, metadata.schema())
    return scan.to_table([FileScanTask(file, spec=metadata.spec())])


def frame(rows):
    return pa.table(
        {
            "id": pa.array([r[0] for r in rows], pa.int64()),
            "s": pa.array([r[1] for r in rows], pa.string()),
            "d": pa.array([r[2] for r in rows], pa.float64()),
            "st": pa.array(
                [None if r[3] is None else {"x": r[3]} for r in rows],
                pa.struct([("x", pa.int32())]),
            ),
        }
    )


def total(value):
    """Floating numbers by the specification: -NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN."""
    if isinstance(value, float):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF) - 1
    return value.encode() if isinstance(value, str) else value


def precedes(metadata, keys):
    """Compares rows one by one, with the transforms of single values."""
    schema = metadata.schema()
    paths = {"id": lambda r: r["id"], "s": lambda r: r["s"], "d": lambda r: r["d"],
             "st.x": lambda r: None if r["st"] is None else r["st"]["x"]}  # fmt: skip

    def compare(left, right):
        for name, transform, direction, nulls in keys:
            kind = schema.find_type(schema.find_field(name).field_id)
            one, other = (
                parse_transform(transform).apply(paths[name](r), kind) for r in (left, right)
            )
            if (one is None) != (other is None):
                return -1 if (one is None) == (nulls is FIRST) else 1
            if one is None or total(one) == total(other):
                continue
            return -1 if (total(one) < total(other)) == (direction is ASC) else 1
        return 0

    return compare


ROW = st.tuples(
    st.none() | st.integers(-20, 20),
    st.none() | st.text("aAzé\U0001f9ca", max_size=3),
    st.none() | st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, math.nan]),
    st.none() | st.integers(-2, 2),
)
KEY = st.tuples(
    st.sampled_from(
        [("id", "identity"), ("id", "bucket[3]"), ("id", "truncate[7]"), ("s", "identity"),
         ("s", "truncate[1]"), ("s", "bucket[2]"), ("d", "identity"), ("st.x", "identity")]
    ),
    st.sampled_from(SortDirection),
    st.sampled_from(NullOrder),
).map(lambda k: (*k[0], k[1], k[2]))  # fmt: skip


@given(
    rows=st.lists(ROW, max_size=40),
    keys=st.lists(KEY, min_size=1, max_size=3),
    partition=st.sampled_from([(), (("id", "bucket[2]"),), (("d", "identity"),)]),
    run_bytes=st.sampled_from([1, 200, 1 << 20]),
    merged=st.sampled_from([2, 3, 16]),
    piece=st.integers(1, 50),
)
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
def test_files_hold_their_rows_in_the_order_of_the_table(
    tmp_path_factory, rows, keys, partition, run_bytes, merged, piece
):
    metadata = new_table(tmp_path_factory.mktemp("t"), *keys, partition=partition)
    data = frame(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", run_bytes)
        patch.setattr("icecomb.format.rows.write.row_sort.BATCH_ROWS", 3)
        patch.setattr("icecomb.format.rows.write.row_sort.BLOCK_ROWS", 2)
        patch.setattr("icecomb.format.rows.write.row_sort.MERGED_RUNS", merged)
        patch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", piece)
        files = write_data(IO, metadata, data)
    compare = precedes(metadata, keys)
    found = []
    assert len({repr(f.partition) for f in files}) == len(files)
    for file in files:
        assert file.sort_order_id == 1
        inside = read(metadata, file).to_pylist()
        assert repr(inside) == repr(sorted(inside, key=cmp_to_key(compare)))
        found += inside
    assert sorted(map(repr, found)) == sorted(map(repr, data.to_pylist()))


@pytest.mark.parametrize("merged", sampled([7, 2, 16], keep=1))
def test_rows_that_are_equal_keep_their_order_over_spilled_runs(tmp_path, monkeypatch, merged):
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.MERGED_RUNS", merged)
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 20_000)
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.BATCH_ROWS", 100)
    monkeypatch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", 500)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    metadata = new_table(tmp_path / "t", ("s", "identity", ASC, FIRST))
    source = random.Random(3)
    rows = [(i, f"s{source.randrange(5)}", None, None) for i in range(20_000)]
    (file,) = write_data(IO, metadata, frame(rows))
    found = read(metadata, file)
    expected = sorted(range(len(rows)), key=lambda i: rows[i][1])
    assert found["id"].to_pylist() == expected
    assert list((tmp_path / "spill").iterdir()) == []


def test_files_of_a_sorted_partition_do_not_overlap(tmp_path, monkeypatch):
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 1 << 20)
    properties = {
        "write.target-file-size-bytes": "300000",
        "write.parquet.row-group-limit": "10000",
        "write.distribution-mode": "range",
    }
    metadata = new_table(tmp_path, ("id", "identity", ASC, FIRST), **properties)
    ids = list(range(200_000))
    random.Random(1).shuffle(ids)
    data = pa.table({"id": pa.array(ids, pa.int64()), "s": [f"{i * 7919:x}" for i in ids]})
    files = write_data(IO, metadata, data)
    assert len(files) > 2
    assert [i for f in files for i in read(metadata, f)["id"].to_pylist()] == list(range(200_000))


def test_many_partitions_are_written_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 10_000)
    monkeypatch.setattr("icecomb.format.rows.write.partition_writer.OPEN_FILES", 2)
    metadata = new_table(tmp_path, ("s", "identity", DESC, LAST), partition=[("id", "identity")])
    rows = [(i % 50, f"{i}", None, None) for i in range(5_000)]
    files = write_data(IO, metadata, frame(rows))
    assert len(files) == 50
    for file in files:
        inside = read(metadata, file)["s"].to_pylist()
        assert inside == sorted(inside, reverse=True)


def test_uuids_are_sorted_by_their_bytes(tmp_path):
    schema = Schema((NestedField(1, "u", UUIDType()),))
    metadata = new_table(tmp_path, ("u", "identity", DESC, LAST), schema=schema)
    raw = pa.array([b"\x7f" * 16, None, b"\xff" * 16, b"\x00" * 16], pa.binary(16))
    data = pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), raw)})
    (file,) = write_data(IO, metadata, data)
    found = [u and u.bytes for u in read(metadata, file)["u"].to_pylist()]
    assert found == [b"\xff" * 16, b"\x7f" * 16, b"\x00" * 16, None]


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ([("id", "identity", ASC, FIRST)], {"use-table-distribution-and-ordering": "false"}),
        ([], {}),
        ([("id", "zorder", ASC, FIRST)], {}),
    ],
    ids=["switched off", "no order", "unknown transform"],
)
def test_files_that_are_not_sorted_do_not_say_so(tmp_path, keys, options):
    metadata = new_table(tmp_path, *keys)
    (file,) = write_data(
        IO, metadata, frame([(2, "a", None, None), (1, "b", None, None)]), options=options
    )
    assert file.sort_order_id is None
    assert read(metadata, file)["id"].to_pylist() == [2, 1]


def test_a_failed_attempt_leaves_no_runs_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    Path(tmp_path / "spill").mkdir()
    metadata = new_table(tmp_path / "t", ("id", "identity", ASC, FIRST))
    schema = frame([]).schema
    seen = []

    def batches():
        yield frame([(1, "a", None, None)] * 300_000).to_batches()[0]
        seen.extend((tmp_path / "spill").rglob("*.arrow"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_data(IO, metadata, pa.RecordBatchReader.from_batches(schema, batches()))
    assert seen
    assert list((tmp_path / "spill").iterdir()) == []
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_sorter_that_nobody_waits_for_makes_no_folder_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sorter = RowSorter([SortKey((0,), parse_transform("identity"))])
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 1)
    batch = pa.record_batch({"id": pa.array([2, 1])})
    sorter.add(batch)
    sorter.discard()
    wanted = Cancellation()
    wanted.cancel()
    with cancellable(wanted), pytest.raises(OperationCanceledError):
        sorter.add(batch)
    assert list(tmp_path.iterdir()) == []
