from __future__ import annotations

import datetime as dt
import json
import zoneinfo
from decimal import Decimal

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import AlwaysTrue, GreaterThan, LessThan
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.orc.file_tail import OrcFileTail
from icecomb.format.rows.orc.reader import OrcReader
from icecomb.format.rows.orc.tail import OrcTail
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    DateType,
    DecimalType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.rows.orc import made_files


def with_id(name, kind, number):
    return pa.field(name, kind, metadata={"iceberg.id": str(number)})


def write(path, data, **options):
    orc.write_table(data, path, **options)
    return DataFile(
        file_path=str(path),
        file_format=FileFormat.ORC,
        record_count=data.num_rows,
        file_size_in_bytes=path.stat().st_size,
    )


def read(folder, schema, *tasks, mapping=None, select=None):
    properties = {} if mapping is None else {"schema.name-mapping.default": json.dumps(mapping)}
    metadata = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), properties
    )
    return ArrowScan(metadata, FileIO(), select or metadata.schema()).to_table(tasks)


def test_columns_are_found_by_id_at_every_depth(tmp_path):
    point = pa.struct([with_id("old", pa.int32(), 4), with_id("gone", pa.int32(), 9)])
    data = pa.table(
        [
            pa.array([[{"old": 1, "gone": 2}], None], pa.list_(with_id("element", point, 3))),
            pa.array(["x", "y"]),
        ],
        schema=pa.schema(
            [with_id("b", pa.list_(with_id("element", point, 3)), 1), with_id("a", pa.string(), 2)]
        ),
    )
    inside = StructType((NestedField(4, "x", LongType()), NestedField(5, "new", StringType())))
    schema = Schema((NestedField(1, "a", ListType(3, inside)), NestedField(2, "b", StringType())))
    task = FileScanTask(write(tmp_path / "f.orc", data))
    assert read(tmp_path, schema, task).to_pydict() == {
        "a": [[{"x": 1, "new": None}], None],
        "b": ["x", "y"],
    }


def test_files_of_hive_are_read_through_the_name_mapping(tmp_path):
    data = pa.table(
        {
            "TS": pa.array([-1, 0], pa.timestamp("us")),
            "dec": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        }
    )
    schema = Schema(
        (NestedField(1, "ts", TimestampType()), NestedField(2, "dec", DecimalType(18, 2)))
    )
    mapping = [{"field-id": 1, "names": ["ts", "TS"]}, {"field-id": 2, "names": ["dec"]}]
    task = FileScanTask(write(tmp_path / "f.orc", data))
    assert read(tmp_path, schema, task, mapping=mapping).to_pydict() == {
        "ts": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)],  # noqa: DTZ001
        "dec": [Decimal("1.50"), None],
    }


def test_positions_deletes_parts_and_filters_go_over_stripes(tmp_path):
    n = 50_000
    data = pa.table(
        [pa.array(range(n), pa.int64()), pa.array([f"{i * 7919}" for i in range(n)])],
        schema=pa.schema([with_id("id", pa.int64(), 1), with_id("s", pa.string(), 2)]),
    )
    file = write(tmp_path / "f.orc", data, stripe_size=64 * 1024)
    assert orc.ORCFile(file.file_path).nstripes > 2
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
    deletes = pa.table(
        [pa.array([file.file_path] * 2), pa.array([n - 2, 5], pa.int64())],
        schema=pa.schema(
            [with_id("file_path", pa.string(), 2147483546), with_id("pos", pa.int64(), 2147483545)]
        ),
    )
    raw = write(tmp_path / "d.orc", deletes)
    delete = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=raw.file_path,
        file_format=FileFormat.ORC,
        record_count=2,
        file_size_in_bytes=raw.file_size_in_bytes,
    )
    residual = bind(schema, GreaterThan("id", n - 4))
    only_position = Schema((ROW_POSITION,))
    task = FileScanTask(file, (delete,), residual)
    assert read(tmp_path, schema, task, select=only_position)["_pos"].to_pylist() == [n - 3, n - 1]
    parts = list(FileScanTask(file, (delete,), AlwaysTrue()).split(file.file_size_in_bytes // 4))
    assert len(parts) > 3
    found = read(tmp_path, schema, *parts)["id"].to_pylist()
    assert found == [i for i in range(n) if i not in {5, n - 2}]


def test_columns_with_numbers_for_names_are_refused(tmp_path):
    """Mapped by name, they would all read as null."""
    task = FileScanTask(write(tmp_path / "f.orc", pa.table({"_col0": [1], "_col1": [2]})))
    schema = Schema((NestedField(1, "id", LongType()),))
    with pytest.raises(UnsupportedError, match="_col0"):
        read(tmp_path, schema, task, mapping=[{"field-id": 1, "names": ["id"]}])


def test_damage_is_an_error_naming_the_file(tmp_path):
    schema = Schema((NestedField(1, "ts", TimestampType()),))
    data = pa.table(
        [pa.array([-62135596800_000000] * 1000, pa.timestamp("us"))],
        schema=pa.schema([with_id("ts", pa.timestamp("us"), 1)]),
    )
    file = write(tmp_path / "f.orc", data)
    good = (tmp_path / "f.orc").read_bytes()
    tail = OrcTail(orc.ORCFile(file.file_path).reader.serialized_file_tail())
    start, end = tail.stripes[0].offset, tail.metadata_range[0]
    damaged = good[:start] + b"\xff" * (end - start) + good[end:]
    for bad in (b"x" * len(good), damaged):
        (tmp_path / "f.orc").write_bytes(bad)
        with pytest.raises(CorruptFileError, match=r"f\.orc"):
            read(tmp_path, schema, FileScanTask(file))


FAR = [
    dt.datetime(1, 1, 1),  # noqa: DTZ001
    dt.datetime(1677, 9, 21, 0, 12, 43),  # noqa: DTZ001 - just beyond nanoseconds
    dt.datetime(2262, 4, 11, 23, 47, 16, 854776),  # noqa: DTZ001 - the same
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    None,
    dt.datetime(2024, 2, 29, 12, 0, 0, 1),  # noqa: DTZ001
    dt.datetime(1970, 1, 1),  # noqa: DTZ001
]


def test_timestamps_that_nanoseconds_cannot_hold_are_read_at_every_depth(tmp_path):
    zoned = [t and t.replace(tzinfo=dt.timezone.utc) for t in FAR]
    values = {
        "id": list(range(7)),
        "ts": FAR,
        "tz": zoned,
        "st": [{"day": dt.date(1, 1, 1), "t": t} if t else None for t in FAR],
        "li": [[t, None] for t in zoned],
        "ma": [[("k", t)] if t else [] for t in FAR],
        "dec": [Decimal("1.50")] * 7,
    }
    time, point = pa.timestamp("us"), pa.timestamp("us", "UTC")
    inner = pa.struct([with_id("day", pa.date32(), 8), with_id("t", time, 9)])
    kinds = {
        "id": pa.int64(),
        "ts": time,
        "tz": point,
        "st": inner,
        "li": pa.list_(with_id("element", point, 10)),
        "ma": pa.map_(
            with_id("key", pa.string(), 11).with_nullable(False), with_id("value", time, 12)
        ),
        "dec": pa.decimal128(9, 2),
    }
    fields = [with_id(name, kind, n) for n, (name, kind) in enumerate(kinds.items(), 1)]
    data = pa.Table.from_pydict(values, pa.schema(fields))
    schema = Schema(
        (
            NestedField(1, "id", LongType()),
            NestedField(2, "ts", TimestampType()),
            NestedField(3, "tz", TimestamptzType()),
            NestedField(4, "st", StructType((NestedField(8, "day", DateType()), NestedField(9, "t", TimestampType())))),
            NestedField(5, "li", ListType(10, TimestamptzType())),
            NestedField(6, "ma", MapType(11, StringType(), 12, TimestampType())),
            NestedField(7, "dec", DecimalType(9, 2)),
        )
    )  # fmt: skip
    task = FileScanTask(write(tmp_path / "f.orc", data))
    assert read(tmp_path, schema, task).to_pydict() == values
    # columns in another order than the file's, and a filter that looks at them
    some = Schema((schema.find_field("st"), schema.find_field("dec"), schema.find_field("ts")))
    found = read(tmp_path, schema, task, select=some)
    assert found.to_pydict() == {name: values[name] for name in ("st", "dec", "ts")}
    early = FileScanTask(task.file, (), bind(schema, LessThan("ts", "1600-01-01")))
    assert read(tmp_path, schema, early)["id"].to_pylist() == [0]


def test_far_timestamps_of_many_rows_and_stripes_stay_in_their_places(tmp_path):
    rows = 40_000
    far = dt.datetime(1, 1, 1)  # noqa: DTZ001
    times = [None if i % 5 == 0 else far + dt.timedelta(days=50 * i) for i in range(rows)]
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "ts", TimestampType())))
    fields = [with_id("id", pa.int64(), 1), with_id("ts", pa.timestamp("us"), 2)]
    data = pa.Table.from_pydict({"id": list(range(rows)), "ts": times}, pa.schema(fields))
    file = write(tmp_path / "f.orc", data, stripe_size=64 * 1024)
    assert orc.ORCFile(file.file_path).nstripes > 2
    found = read(tmp_path, schema, FileScanTask(file))
    assert found["id"].to_pylist() == list(range(rows))
    assert found["ts"].to_pylist() == times
    late = FileScanTask(file, (), bind(schema, GreaterThan("ts", "5476-12-01")))
    expected = [i for i, t in enumerate(times) if t and t > dt.datetime(5476, 12, 1)]  # noqa: DTZ001
    assert read(tmp_path, schema, late)["id"].to_pylist() == expected


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_same_instant_is_read_beside_far_ones_as_alone(tmp_path, zone):
    """pyarrow is the referee; the writer's zone of old writers must mean the same."""
    schema = Schema((NestedField(1, "ts", TimestampType()),))
    mapping = [{"field-id": 1, "names": ["ts"]}]
    near = [dt.datetime(2024, 7, 1, 12, 0, 0, 7), dt.datetime(1969, 12, 31, 23)]  # noqa: DTZ001
    found = []
    for name, far in (("near", []), ("far", [dt.datetime(1, 1, 2)])):  # noqa: DTZ001
        path = tmp_path / f"{name}.orc"
        with (
            path.open("wb") as out,
            pyorc.Writer(out, "struct<ts:timestamp>", timezone=zoneinfo.ZoneInfo(zone)) as writer,
        ):
            for moment in near + far:
                writer.write((moment.replace(tzinfo=dt.timezone.utc),))
        file = DataFile(
            file_path=str(path),
            file_format=FileFormat.ORC,
            record_count=len(near + far),
            file_size_in_bytes=path.stat().st_size,
        )
        found.append(read(tmp_path, schema, FileScanTask(file), mapping=mapping)["ts"].to_pylist())
    assert found[1][:2] == found[0]
    assert len(found[1]) == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (made_files.nested(150), "ICECOMB_MAX_SCHEMA_LEVELS"),
        (made_files.nested(50_000), "ICECOMB_MAX_SCHEMA_LEVELS"),
        (made_files.numbers(512, stripes=2), "stripes overlap"),
        (made_files.numbers(1 << 30), "ICECOMB_MAX_UNPACKED_MIB"),
        (made_files.orc_file([made_files.row_of(b"\xff"), made_files.LONG], rows=0), "utf-8"),
    ],
    ids=["levels", "many levels", "stripes", "rows", "name"],
)
def test_a_file_that_asks_for_more_than_its_bytes_justify_is_refused(
    tmp_path, data, reason, monkeypatch
):
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "64")
    path = tmp_path / "x.orc"
    path.write_bytes(data)
    mapping = NameMapping.from_json([{"field-id": 1, "names": ["id"]}])

    def read_all():
        reader = OrcReader(FileIO(), str(path), mapping)
        return list(reader.batches([0], reader.row_groups(), 1000))

    with pytest.raises(CorruptFileError, match=reason):
        read_all()


def test_a_file_made_byte_by_byte_is_read(tmp_path):
    path = tmp_path / "x.orc"
    path.write_bytes(made_files.numbers(1024))
    mapping = NameMapping.from_json([{"field-id": 1, "names": ["id"]}])
    reader = OrcReader(FileIO(), str(path), mapping)
    assert [b.num_rows for _, b in reader.batches([0], [0], 1000)] == [1000, 24]


def test_a_file_whose_rows_are_no_struct_is_refused(tmp_path):
    path = tmp_path / "x.orc"
    path.write_bytes(made_files.orc_file([made_files.LONG], rows=0))
    for open_it in (OrcReader, described):
        with pytest.raises(UnsupportedError, match="top-level struct"):
            open_it(FileIO(), str(path))


def described(io, location):
    with io.open_input(location) as source:
        return OrcFileTail(source, location)
