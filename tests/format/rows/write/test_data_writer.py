"""Files of a table written from Arrow data, read back by PyIceberg's reader and by pyarrow."""

from __future__ import annotations

import datetime as dt
import gc
import math
import random
import re
import resource
import uuid
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import AlwaysTrue as PeerAlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan as PeerScan, PyArrowFileIO
from pyiceberg.manifest import (
    DataFile as PeerDataFile,
    DataFileContent as PeerContent,
    FileFormat as PeerFormat,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC as PEER_UNPARTITIONED
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.table import FileScanTask as PeerTask
from pyiceberg.table.metadata import new_table_metadata as peer_new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER as PEER_UNSORTED
from pyiceberg.typedef import Record

from icecomb.format.errors import (
    ConfigurationError,
    FileIOError,
    IcecombError,
    SchemaError,
    ValidationError,
)
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec import single_value
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
NAN = float("nan")
UTC = dt.timezone.utc


def table(folder, *fields, partition=(), **properties):
    schema = Schema(fields)
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(schema.find_field(n).field_id, 1000 + i, parse_transform(t), f"{n}_{t}")
            for i, (n, t) in enumerate(partition)
        ),
    )
    names = {key.replace("__", "-").replace("_", "."): str(v) for key, v in properties.items()}
    made = new_table_metadata(
        schema,
        spec if partition else UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER,
        str(folder),
        names,
    )
    assert made.schema().fields == schema.fields
    return made


def read(metadata, files):
    tasks = [FileScanTask(f, spec=metadata.spec()) for f in files]
    return ArrowScan(metadata, IO, metadata.schema()).to_table(tasks)


def files_below(folder):
    return sorted(str(p) for p in folder.rglob("*") if p.is_file())


ALL_FIELDS = (
    NestedField(1, "i", IntegerType(), required=True),
    NestedField(2, "l", LongType()),
    NestedField(3, "f", FloatType()),
    NestedField(4, "d", DoubleType()),
    NestedField(5, "dec", DecimalType(12, 3)),
    NestedField(6, "day", DateType()),
    NestedField(7, "clock", TimeType()),
    NestedField(8, "ts", TimestampType()),
    NestedField(9, "tz", TimestamptzType()),
    NestedField(10, "s", StringType()),
    NestedField(11, "u", UUIDType()),
    NestedField(12, "fx", FixedType(2)),
    NestedField(13, "bin", BinaryType()),
    NestedField(14, "st", StructType((NestedField(17, "x", IntegerType(), required=True),))),
    NestedField(15, "ls", ListType(18, StructType((NestedField(19, "y", StringType()),)))),
    NestedField(16, "m", MapType(20, StringType(), 21, ListType(22, LongType()))),
)


def all_types():
    schema = schema_to_pyarrow(Schema(ALL_FIELDS), include_field_ids=False)
    rows = [
        [1, 2, 0.5, NAN, Decimal("1.250"), dt.date(2024, 1, 1), dt.time(1, 2, 3, 4),
         dt.datetime(1960, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 1, 1, tzinfo=UTC), "é",  # noqa: DTZ001
         None, b"ab", b"", {"x": 1}, [{"y": "a"}, None], [("k", [1, None])]],
        [2, *[None] * 15],
    ]  # fmt: skip
    columns = []
    for i, f in enumerate(schema):
        values = [r[i] for r in rows]
        if f.type == pa.uuid():
            raw = pa.array([uuid.UUID(int=7).bytes, None], pa.binary(16))
            columns.append(pa.ExtensionArray.from_storage(pa.uuid(), raw))
        else:
            columns.append(pa.array(values, f.type))
    return pa.table(columns, schema=schema)


def test_every_type_is_read_back_as_written(tmp_path):
    metadata = table(tmp_path, *ALL_FIELDS)
    data = all_types()
    (file,) = write_data(IO, metadata, data)
    back = read(metadata, [file])
    assert back.schema == data.schema
    assert str(back.to_pylist()) == str(data.to_pylist())


def test_pyiceberg_reads_every_type_we_write(tmp_path):
    metadata = table(tmp_path, *ALL_FIELDS)
    data = all_types()
    (file,) = write_data(IO, metadata, data)
    schema = PeerSchema.model_validate(metadata.schema().to_json())
    peer = peer_new_table_metadata(schema, PEER_UNPARTITIONED, PEER_UNSORTED, str(tmp_path))
    peer_file = PeerDataFile.from_args(
        content=PeerContent.DATA,
        file_path=file.file_path,
        file_format=PeerFormat.PARQUET,
        partition=Record(),
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    peer_file.spec_id = 0
    scan = PeerScan(peer, PyArrowFileIO(), schema, PeerAlwaysTrue())
    found = scan.to_table([PeerTask(peer_file)])
    # PyIceberg 0.12 reads a null list of structs as an empty list.
    assert found["ls"].to_pylist() == [[{"y": "a"}, None], []]
    expected = data.drop_columns("ls").to_pylist()
    assert str(found.drop_columns("ls").to_pylist()) == str(expected)


def test_files_have_ids_at_every_depth_a_page_index_and_no_int96(tmp_path):
    metadata = table(tmp_path, *ALL_FIELDS)
    (file,) = write_data(IO, metadata, all_types())
    footer = pq.read_metadata(file.file_path)
    for i in range(footer.num_columns):
        chunk = footer.row_group(0).column(i)
        assert chunk.has_offset_index
        assert chunk.compression == "ZSTD"
        assert chunk.physical_type != "INT96"
    text = str(footer.schema)
    assert {int(n) for n in re.findall(r"field_id=(\d+)", text)} == set(range(1, 23))
    assert b"iceberg.schema" in footer.metadata
    assert re.search(r"\d{5}-0-[0-9a-f-]{36}-00001\.parquet$", file.file_path)


def test_metrics_hold_nan_counts_and_bounds(tmp_path):
    metadata = table(
        tmp_path,
        NestedField(1, "d", DoubleType()),
        NestedField(2, "st", StructType((NestedField(3, "f", FloatType()),))),
    )
    data = pa.table(
        {
            "d": [NAN, 1.0, None, NAN],
            "st": pa.array([{"f": NAN}, None, {"f": 2.0}, {"f": None}],
                           pa.struct([("f", pa.float32())])),
        }
    )  # fmt: skip
    (file,) = write_data(IO, metadata, data)
    assert file.record_count == 4
    assert file.nan_value_counts == {1: 2, 3: 1}
    assert file.null_value_counts == {1: 1, 3: 2}
    assert single_value.from_bytes(DoubleType(), file.upper_bounds[1]) == 1.0
    assert (
        file.file_size_in_bytes
        == (tmp_path / "data" / file.file_path.split("/")[-1]).stat().st_size
    )


def partition_data():
    return pa.table(
        {
            "id": pa.array([1, 2, 3, None, 5, 6], pa.int64()),
            "s": ["a", "b/c", None, "a", "=é", "a"],
            "ts": pa.array([0, 86400_000000, -1, None, 5, 6], pa.timestamp("us", "UTC")),
            "d": [0.5, NAN, NAN, 1.0, None, 0.5],
        }
    )


PARTITIONED = (
    NestedField(1, "id", LongType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "ts", TimestamptzType()),
    NestedField(4, "d", DoubleType()),
)


@pytest.mark.parametrize(
    "partition",
    [
        [("s", "identity")],
        [("ts", "day")],
        [("ts", "hour"), ("id", "bucket[4]")],
        [("ts", "month")],
        [("ts", "year"), ("s", "truncate[1]")],
        [("id", "identity"), ("s", "void")],
        [("d", "identity")],
        [("ts", "identity")],
    ],
)
def test_rows_go_to_the_partition_that_the_transforms_say(tmp_path, partition):
    metadata = table(tmp_path, *PARTITIONED, partition=partition)
    files = write_data(IO, metadata, partition_data())
    spec, schema = metadata.spec(), metadata.schema()
    rows = 0
    for file in files:
        for row in pq.read_table(file.file_path, partitioning=None).cast(
            schema_to_pyarrow(schema, include_field_ids=False)
        ).to_pylist():  # fmt: skip
            rows += 1
            if row["ts"] is not None:
                row["ts"] = (row["ts"] - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(
                    microseconds=1
                )
            expected = tuple(
                f.transform.apply(row[schema.find_field(f.source_id).name],
                                  schema.find_type(f.source_id))
                for f in spec.fields
            )  # fmt: skip
            assert [str(v) for v in expected] == [str(v) for v in file.partition]
        path = spec.partition_to_path(file.partition, schema)
        assert file.file_path.startswith(f"{tmp_path}/data/{path}/")
    assert rows == 6
    assert len({str(f.partition) for f in files}) == len(files)
    found = read(metadata, files).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, partition_data().to_pylist()))


@pytest.mark.parametrize(
    ("precision", "scale", "least", "most"),
    [(4, 2, "-99.98", "-99.99"), (38, 0, f"-{'9' * 37}8", f"-{'9' * 38}")],
)
def test_a_decimal_whose_partition_value_has_no_room_is_refused(
    tmp_path, precision, scale, least, most
):
    """-99.99 in steps of 0.02 is -100.00, which Iceberg Java does not write either."""
    kind = DecimalType(precision, scale)
    metadata = table(tmp_path, NestedField(1, "d", kind), partition=((1, "truncate[2]"),))
    schema = schema_to_pyarrow(metadata.schema(), include_field_ids=False)
    good = pa.table([[Decimal(least), None]], schema=schema)
    files = write_data(FileIO(), metadata, good)
    assert {f.partition for f in files} == {(Decimal(least),), (None,)}
    assert sorted(read(metadata, files)["d"].to_pylist(), key=str) == [Decimal(least), None]
    before = files_below(tmp_path)
    bad = pa.table([[Decimal(1), Decimal(most)]], schema=schema)
    with pytest.raises(ValidationError, match="column 'd' has") as refused:
        write_data(FileIO(), metadata, bad)
    assert most in refused.value.message
    assert str(tmp_path) in refused.value.message
    assert "update_spec" in refused.value.hint
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType()], ids=str)
def test_a_timestamp_whose_hours_no_int_holds_is_refused(tmp_path, kind):
    hour, ends = 3_600_000_000, (-(1 << 31), (1 << 31) - 1)
    metadata = table(tmp_path, NestedField(1, "at", kind), partition=((1, "hour"),))
    schema = schema_to_pyarrow(metadata.schema(), include_field_ids=False)
    least, most = ends[0] * hour, ends[1] * hour + hour - 1

    def frame(*values):
        return pa.table([pa.array(values, pa.int64()).cast(schema.field(0).type)], schema=schema)

    files = write_data(FileIO(), metadata, frame(least, most, None))
    assert {f.partition for f in files} == {(ends[0],), (ends[1],), (None,)}
    before = files_below(tmp_path)
    for far, hours, text in (
        (most + 1, 1 << 31, "+246953-10-09T08:00"),
        (least - 1, -(1 << 31) - 1, "-243014-03-24T15:59:59.999999"),
        ((1 << 63) - 1, 2562047788, "+294247-01-10T04:00:54.775807"),
        (-(1 << 63), -2562047789, "-290308-12-21T19:59:05.224192"),
    ):
        with pytest.raises(ValidationError, match=f"column 'at' has .*{hours} hours") as refused:
            write_data(FileIO(), metadata, frame(0, far))
        assert text in refused.value.message
        assert str(tmp_path) in refused.value.message
        assert "days" in refused.value.hint
        assert files_below(tmp_path) == before


def test_order_within_a_partition_is_the_order_of_the_data(tmp_path):
    metadata = table(tmp_path, *PARTITIONED[:2], partition=[("s", "identity")])
    data = pa.table({"id": range(600_000), "s": [f"p{i % 7}" for i in range(600_000)]})
    files = write_data(IO, metadata, data)
    assert len(files) == 7
    for file in files:
        ids = pq.read_table(file.file_path, columns=["id"], partitioning=None)["id"].to_pylist()
        assert ids == list(range(int(file.partition[0][1]), 600_000, 7))


def test_a_stream_is_written_without_holding_it(tmp_path):
    metadata = table(tmp_path, *PARTITIONED[:2])
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    batches = (
        pa.record_batch([pa.array(range(i, i + 10), pa.int64()), ["x"] * 10], schema=schema)
        for i in range(0, 100, 10)
    )
    files = write_data(IO, metadata, pa.RecordBatchReader.from_batches(schema, batches))
    assert [f.record_count for f in files] == [100]
    assert read(metadata, files)["id"].to_pylist() == list(range(100))


def test_files_are_about_the_target_size(tmp_path):
    target = 2 << 20
    metadata = table(
        tmp_path, NestedField(1, "u", StringType()), write_target__file__size__bytes=target
    )
    source = random.Random(7)
    data = pa.table({"u": [source.randbytes(20).hex() for _ in range(400_000)]})
    files = write_data(IO, metadata, data)
    assert len(files) > 2
    assert sum(f.record_count for f in files) == 400_000
    assert max(f.file_size_in_bytes for f in files) < target * 1.3
    assert min(f.file_size_in_bytes for f in files[:-1]) > target * 0.7


def test_row_groups_obey_their_limit(tmp_path):
    metadata = table(
        tmp_path, NestedField(1, "l", LongType()), write_parquet_row__group__limit=1000
    )
    (file,) = write_data(IO, metadata, pa.table({"l": range(2500)}))
    footer = pq.read_metadata(file.file_path)
    assert [footer.row_group(i).num_rows for i in range(3)] == [1000, 1000, 500]
    assert len(file.split_offsets) == 3


def test_more_partitions_than_files_may_be_open_are_still_written(tmp_path, monkeypatch):
    monkeypatch.setattr("icecomb.format.rows.write.partition_writer.BUFFERED_BYTES", 2000)
    monkeypatch.setattr("icecomb.format.rows.write.partition_writer.OPEN_FILES", 3)
    monkeypatch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", 50)
    metadata = table(tmp_path, *PARTITIONED[:2], partition=[("id", "bucket[20]")])
    data = pa.table({"id": range(1000), "s": ["x" * (i % 50) for i in range(1000)]})
    files = write_data(IO, metadata, data)
    assert len(files) > 20
    assert sorted(read(metadata, files)["id"].to_pylist()) == list(range(1000))
    assert len(files_below(tmp_path)) == len(files)


def test_no_rows_make_no_files(tmp_path):
    metadata = table(tmp_path, *PARTITIONED)
    assert write_data(IO, metadata, partition_data().slice(0, 0)) == []
    assert files_below(tmp_path) == []


def test_a_frame_that_does_not_fit_is_refused_with_all_differences(tmp_path):
    metadata = table(
        tmp_path,
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "name", StringType()),
        NestedField(3, "st", StructType((NestedField(5, "x", IntegerType()),))),
        NestedField(4, "ts", TimestampType()),
    )
    data = pa.table(
        {
            "Name": ["a"],
            "st": [{"x": 1, "z": 2}],
            "ts": pa.array([0], pa.timestamp("us", "UTC")),
        }
    )
    with pytest.raises(SchemaError) as caught:
        write_data(IO, metadata, data)
    assert caught.value.message.splitlines()[1:] == [
        "  - id: required long in the table, missing in the data",
        "  ! st.x: int in the table, int64 in the data",
        "  + st.z: int64 in the data, not in the table",
        "  ! ts: timestamp in the table, timestamp[us, tz=UTC] in the data",
        "  + Name: string in the data, not in the table (did you mean name?)",
    ]
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([1], pa.int8()), LongType(), [1]),
        (pa.array([1], pa.uint32()), LongType(), [1]),
        (pa.array([0.5], pa.float32()), DoubleType(), [0.5]),
        (pa.array(["a"], pa.large_string()), StringType(), ["a"]),
        (pa.array(["a"], pa.string_view()), StringType(), ["a"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), StringType(), ["a", "b", "a"]),
        (pa.array([None], pa.null()), StringType(), [None]),
        (pa.array([5000], pa.timestamp("ns")), TimestampType(),
         [dt.datetime(1970, 1, 1, 0, 0, 0, 5)]),  # noqa: DTZ001 - a timestamp without zone
        (pa.array([1], pa.timestamp("s", "Asia/Tokyo")), TimestamptzType(),
         [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
        (pa.array([86400_000], pa.date64()), DateType(), [dt.date(1970, 1, 2)]),
        (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), DecimalType(12, 1), [Decimal("1.5")]),
        (pa.array([[1]], pa.large_list(pa.int64())), ListType(2, LongType()), [[1]]),
        (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), ListType(2, LongType()), [[1, 2]]),
        (pa.array([b"ab"], pa.binary()), FixedType(2), [b"ab"]),
    ],
)  # fmt: skip
def test_types_are_converted_where_nothing_is_lost(tmp_path, array, kind, expected):
    metadata = table(tmp_path, NestedField(1, "c", kind))
    (file,) = write_data(IO, metadata, pa.table({"c": array}))
    assert read(metadata, [file])["c"].to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1], pa.timestamp("ns")), TimestampType()),
        (pa.array([1], pa.date64()), DateType()),
        (pa.array([1], pa.time64("ns")), TimeType()),
        (pa.array([b"abc"]), FixedType(2)),
        (
            pa.Array.from_buffers(
                pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
            ),
            StringType(),
        ),
    ],
)
def test_a_value_that_would_be_changed_is_refused_and_nothing_stays(tmp_path, array, kind):
    metadata = table(tmp_path, NestedField(1, "c", kind))
    with pytest.raises(SchemaError, match="'c'"):
        write_data(IO, metadata, pa.table({"c": array}))
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    ("field", "array", "path"),
    [
        (NestedField(1, "c", LongType(), required=True), pa.array([1, None]), "'c'"),
        (
            NestedField(1, "c", StructType((NestedField(2, "x", LongType(), required=True),))),
            pa.array([{"x": 1}, None, {"x": None}]),
            "'c.x'",
        ),
        (NestedField(1, "c", ListType(2, LongType(), element_required=True)),
         pa.array([[1], None, [None]]), "'c.element'"),
        (NestedField(1, "c", MapType(2, StringType(), 3, LongType(), value_required=True)),
         pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
         "'c.value'"),
    ],
)  # fmt: skip
def test_null_in_a_required_column_is_refused(tmp_path, field, array, path):
    metadata = table(tmp_path, field)
    with pytest.raises(ValidationError, match=path):
        write_data(IO, metadata, pa.table({"c": array}))
    assert files_below(tmp_path) == []


def test_null_structs_may_hide_missing_required_fields(tmp_path):
    kind = StructType((NestedField(2, "x", LongType(), required=True),))
    metadata = table(tmp_path, NestedField(1, "c", kind))
    data = pa.table({"c": pa.array([None, {"x": 1}], pa.struct([("x", pa.int64())]))})
    (file,) = write_data(IO, metadata, data)
    assert read(metadata, [file])["c"].to_pylist() == [None, {"x": 1}]


def test_slices_are_written_as_they_are(tmp_path):
    """Nested arrays with offsets: what is cut off must neither be written nor checked."""
    kind = ListType(3, StructType((NestedField(4, "x", LongType(), required=True),)))
    metadata = table(
        tmp_path,
        NestedField(1, "l", kind),
        NestedField(2, "m", MapType(5, StringType(), 6, LongType())),
    )
    data = pa.table(
        {
            "l": pa.array([[{"x": None}], [{"x": 1}, {"x": 2}], None, []]),
            "m": pa.array([[("z", 0)], None, [("a", 1)], []], pa.map_(pa.string(), pa.int32())),
        }
    ).slice(1, 3)
    (file,) = write_data(IO, metadata, data)
    assert read(metadata, [file]).to_pydict() == {
        "l": [[{"x": 1}, {"x": 2}], None, []],
        "m": [None, [("a", 1)], []],
    }


def test_files_of_a_failed_attempt_are_removed(tmp_path):
    """The stream breaks after files are finished and others are open."""
    metadata = table(
        tmp_path,
        *PARTITIONED[:2],
        partition=[("id", "bucket[4]")],
        write_parquet_row__group__limit=10,
        write_target__file__size__bytes=1,
    )
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    seen = []

    def batches():
        for i in range(0, 600_000, 300_000):
            yield pa.record_batch(
                [pa.array(range(i, i + 300), pa.int64()), ["x"] * 300], schema=schema
            )
        seen.extend(files_below(tmp_path))
        raise RuntimeError("the source broke")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", 100)
        with pytest.raises(RuntimeError, match="the source broke"):
            write_data(IO, metadata, pa.RecordBatchReader.from_batches(schema, batches()))
    assert len(seen) > 4
    assert files_below(tmp_path) == []


def test_a_file_that_is_given_up_says_nothing_more(tmp_path, monkeypatch):
    """Its writer is collected when its stream is closed; pyarrow's would write a footer then."""
    metadata = table(tmp_path, NestedField(1, "l", LongType()), write_parquet_row__group__limit=10)
    schema, told = pa.schema([("l", pa.int64())]), []
    monkeypatch.setattr("sys.unraisablehook", told.append)

    def batches():
        for _ in range(3):
            yield pa.record_batch([range(10)], schema=schema)
        raise RuntimeError("the source broke")

    monkeypatch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", 10)
    with pytest.raises(RuntimeError, match="the source broke"):
        write_data(IO, metadata, pa.RecordBatchReader.from_batches(schema, batches()))
    gc.collect()
    assert told == []
    assert files_below(tmp_path) == []


def test_a_full_disk_is_an_error_naming_the_file_and_nothing_stays(tmp_path):
    """The system refuses to let a file grow, in the middle of a row group."""
    metadata = table(tmp_path, NestedField(1, "s", StringType()))
    source = random.Random(1)
    data = pa.table({"s": [source.randbytes(50).hex() for _ in range(20_000)]})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(FileIOError, match=r"annot write .*00001\.parquet"):
            write_data(IO, metadata, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    gc.collect()
    assert files_below(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    metadata = table(tmp_path, *PARTITIONED)
    with pytest.raises(IcecombError):
        write_data(IO, metadata, partition_data())


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("write_format_default", "csv", ConfigurationError),
        ("write_parquet_compression__codec", "zip", ConfigurationError),
        ("write_target__file__size__bytes", "0", ConfigurationError),
        ("write_parquet_row__group__limit", "many", ConfigurationError),
        ("write_metadata_metrics_default", "some", ConfigurationError),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, name, value, error):
    key = name.replace("__", "-").replace("_", ".")
    metadata = replace(table(tmp_path, *PARTITIONED), properties={key: value})
    with pytest.raises(error):
        write_data(IO, metadata, partition_data())
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    ("codec", "name"), [("snappy", "SNAPPY"), ("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")]
)
def test_the_codec_is_a_table_property(tmp_path, codec, name):
    metadata = table(tmp_path, *PARTITIONED, write_parquet_compression__codec=codec)
    (file,) = write_data(IO, metadata, partition_data())
    assert pq.read_metadata(file.file_path).row_group(0).column(0).compression == name


def test_a_bloom_filter_is_written_where_a_property_asks(tmp_path):
    metadata = table(
        tmp_path,
        *PARTITIONED[:2],
        write_parquet_bloom__filter__enabled_column_s="true",
    )
    (file,) = write_data(IO, metadata, pa.table({"id": [1], "s": ["a"]}))
    group = pq.read_metadata(file.file_path).row_group(0)
    assert group.column(1).bloom_filter_offset
    assert not group.column(0).bloom_filter_offset


def test_nan_is_one_partition(tmp_path, monkeypatch):
    monkeypatch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", 1)
    metadata = table(tmp_path, NestedField(1, "d", DoubleType()), partition=[("d", "identity")])
    files = write_data(IO, metadata, pa.table({"d": [NAN, 1.0, NAN]}))
    assert len(files) == 2
    assert sum(math.isnan(f.partition[0]) for f in files) == 1
