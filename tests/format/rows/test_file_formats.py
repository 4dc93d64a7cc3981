"""Data files in ORC and Avro, read back by PyIceberg, fastavro and pyarrow."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import random
import uuid
from dataclasses import replace
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import orc
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

from icecomb.format.errors import ConfigurationError, UnsupportedError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.arrow_schema import pyarrow_to_schema, schema_to_pyarrow
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
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
FORMATS = ["orc", "avro"]

PRIMITIVES = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(9, 2),
    DecimalType(18, 0),
    DecimalType(38, 10),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    FixedType(3),
    BinaryType(),
)
KEYED = StructType((NestedField(52, "a b", IntegerType(), required=True), NestedField(53, "1st", StringType())))  # fmt: skip
SCHEMA = assign_fresh_schema_ids(Schema(
    (
        *(NestedField(i, f"c{i}", kind) for i, kind in enumerate(PRIMITIVES, 1)),
        NestedField(20, "needed", LongType(), required=True),
        NestedField(21, "st", StructType((
            NestedField(30, "p", DecimalType(5, 1)),
            NestedField(31, "inner", StructType((NestedField(32, "u", UUIDType()), NestedField(33, "t", TimeType())))),
        ))),
        NestedField(22, "li", ListType(40, ListType(41, FixedType(2), element_required=True))),
        NestedField(23, "ma", MapType(42, StringType(), 43, TimestamptzType())),
        NestedField(24, "mk", MapType(44, IntegerType(), 45, ListType(46, UUIDType()), value_required=True)),
        NestedField(25, "deep", ListType(50, MapType(51, DateType(), 54, KEYED))),
    )
))  # fmt: skip


def new_table(folder, schema, **properties):
    return new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), properties
    )


def read(metadata, files):
    scan = ArrowScan(metadata, IO, metadata.schema())
    return scan.to_table([FileScanTask(f, spec=metadata.spec()) for f in files])


def values(kind, *, whole):
    """Values of an Iceberg type as Arrow takes them; in ORC, years beyond 2261 cannot be read."""
    if isinstance(kind, StructType):
        return st.fixed_dictionaries({f.name: field_values(f, whole=whole) for f in kind.fields})
    if isinstance(kind, ListType):
        return st.lists(field_values(kind.element_field, whole=whole), max_size=4)
    if isinstance(kind, MapType):
        keys = st.lists(values(kind.key_type, whole=whole), max_size=3, unique=True)
        return keys.flatmap(
            lambda found: st.tuples(*(
                st.tuples(st.just(k), field_values(kind.value_field, whole=whole)) for k in found
            )).map(list)
        )  # fmt: skip
    if isinstance(kind, DecimalType):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -kind.scale)))  # fmt: skip
    if isinstance(kind, FixedType):
        return st.binary(min_size=len(kind), max_size=len(kind))
    early, late = dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)  # noqa: DTZ001
    moments = st.datetimes(early, late).map(
        lambda m: m.replace(microsecond=0) if whole and m.year < 1970 else m
    )
    return {
        BooleanType: st.booleans(),
        IntegerType: st.integers(-(2**31), 2**31 - 1),
        LongType: st.integers(-(2**63), 2**63 - 1),
        FloatType: st.floats(width=32),
        DoubleType: st.floats(),
        DateType: st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        TimeType: st.times(),
        TimestampType: moments,
        TimestamptzType: moments.map(lambda m: m.replace(tzinfo=UTC)),
        StringType: st.text(max_size=200),
        UUIDType: st.uuids().map(lambda u: u.bytes),
        BinaryType: st.binary(max_size=200),
    }[type(kind)]


def field_values(field, *, whole):
    inside = values(field.field_type, whole=whole)
    return inside if field.required else st.none() | inside


def storage(kind):
    """The Arrow type with UUIDs as their bytes, which `pa.array` can make at any depth."""
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(storage(kind.value_type)))
    if isinstance(kind, pa.MapType):
        return pa.map_(kind.key_field.with_type(storage(kind.key_type)),
                       kind.item_field.with_type(storage(kind.item_type)))  # fmt: skip
    if isinstance(kind, pa.StructType):
        return pa.struct([f.with_type(storage(f.type)) for f in kind])
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def frame(rows, schema=SCHEMA):
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    plain = pa.schema([f.with_type(storage(f.type)) for f in arrow])
    return pa.Table.from_pylist(rows, plain).cast(arrow)


def rows_of(file_format):
    """In ORC, timestamps before 1970 must be whole seconds."""
    whole = file_format == "orc"
    fields = {f.name: field_values(f, whole=whole) for f in SCHEMA.fields}
    return st.lists(st.fixed_dictionaries(fields), max_size=6)


@pytest.mark.parametrize("file_format", FORMATS)
@given(drawn=st.data(), cut=st.integers(0, 3))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_any_rows_of_any_types_are_read_back_as_written(tmp_path_factory, file_format, drawn, cut):
    data = frame(drawn.draw(rows_of(file_format))).slice(cut)
    metadata = new_table(
        tmp_path_factory.mktemp("t"), SCHEMA, **{"write.format.default": file_format}
    )
    files = write_data(IO, metadata, data)
    found = read(metadata, files)
    assert found.schema == data.schema
    assert repr(found.to_pylist()) == repr(data.to_pylist())


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", PRIMITIVES, ids=str)
def test_what_stands_behind_a_null_struct_is_no_value(tmp_path, file_format, kind):
    """Arrow's null structs may hold anything; pyarrow's ORC writer moves it to other rows."""
    inner = StructType((NestedField(3, "v", kind),))
    outer = StructType((NestedField(2, "inner", inner),))
    again = StructType((NestedField(7, "v", kind),))
    listed = ListType(5, StructType((NestedField(6, "inner", again),)))
    fields = (NestedField(1, "st", outer), NestedField(4, "li", listed))
    schema = assign_fresh_schema_ids(Schema(fields))
    (value,) = {
        BooleanType: [True],
        DecimalType: [Decimal((0, (1,), -getattr(kind, "scale", 0)))],
        DateType: [dt.date(2024, 1, 2)],
        TimeType: [dt.time(3)],
        TimestampType: [dt.datetime(2024, 1, 2)],  # noqa: DTZ001 - a type without a zone
        TimestamptzType: [dt.datetime(2024, 1, 2, tzinfo=UTC)],
        StringType: ["text"],
        UUIDType: [b"0123456789abcdef"],
        FixedType: [b"abc"],
        BinaryType: [b"bytes"],
    }.get(type(kind), [7])
    rows = [
        {"st": {"inner": found}, "li": [{"inner": found}, {"inner": None}, {"inner": found}]}
        for found in ({"v": value}, None, {"v": None}, {"v": value}, None, {"v": value})
    ]
    data = frame(rows, schema)
    metadata = new_table(tmp_path, schema, **{"write.format.default": file_format})
    for cut in range(4):
        found = read(metadata, write_data(IO, metadata, data.slice(cut)))
        assert repr(found.to_pylist()) == repr(data.slice(cut).to_pylist())


@pytest.mark.parametrize(
    ("array", "path"),
    [
        (pa.array([-1_000_000, -1], pa.timestamp("us")), "'c'"),
        (
            pa.array([None, [{"t": -1_000_001}]], pa.list_(pa.struct([("t", pa.timestamp("us"))]))),
            "'c.element.t'",
        ),
    ],
)
def test_timestamps_that_orc_would_change_are_refused(tmp_path, array, path):
    """pyarrow would write negative nanoseconds, which Java's ORC reads as other times."""
    schema = assign_fresh_schema_ids(pyarrow_to_schema(pa.schema([("c", array.type)])))
    metadata = new_table(tmp_path, schema, **{"write.format.default": "orc"})
    with pytest.raises(UnsupportedError, match=path):
        write_data(IO, metadata, pa.table({"c": array}))
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def one_of_each(**changes):
    return {
        "c1": True, "c2": -5, "c3": 2**62, "c4": 0.5, "c5": NAN, "c6": Decimal("-1.25"),
        "c7": Decimal(10**17), "c8": Decimal("1.0000000001"), "c9": dt.date(1960, 2, 29),
        "c10": dt.time(23, 59, 59, 999999), "c11": dt.datetime(1960, 1, 1, 0, 0, 1),  # noqa: DTZ001
        "c12": dt.datetime(2024, 1, 1, tzinfo=UTC), "c13": "é\U0001f9ca", "c14": uuid.UUID(int=7).bytes,
        "c15": b"abc", "c16": b"\x00\xff", "needed": 1,
        "st": {"p": Decimal("1.5"), "inner": {"u": uuid.UUID(int=1).bytes, "t": dt.time(1)}},
        "li": [[b"ab"], None, []], "ma": [("k", None), ("l", dt.datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC))],
        "mk": [(1, [uuid.UUID(int=2).bytes, None])], "deep": [None, [(dt.date(2000, 1, 1), {"a b": 1, "1st": "x"})]],
        **changes,
    }  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
def test_slices_of_many_nested_rows_are_written_as_they_are(tmp_path, file_format):
    """pyarrow's own ORC writer writes other rows of a slice of structs."""
    nulls = dict.fromkeys((f.name for f in SCHEMA.fields), None) | {"needed": 5}
    rows = [
        one_of_each(
            needed=i, c2=i, st={"p": None, "inner": None if i % 3 else {"u": None, "t": None}}
        )
        if i % 5
        else nulls
        for i in range(5000)
    ]
    data = frame(rows).slice(1501, 3203)
    metadata = new_table(tmp_path, SCHEMA, **{"write.format.default": file_format})
    (file,) = write_data(IO, metadata, data)
    assert repr(read(metadata, [file]).to_pylist()) == repr(data.to_pylist())


def test_pyiceberg_reads_our_orc_files(tmp_path):
    metadata = new_table(tmp_path, SCHEMA, **{"write.format.default": "orc"})
    nulls = {**dict.fromkeys(SCHEMA.column_names), "needed": 2}
    data = frame([one_of_each(), {f.name: nulls[f.name] for f in SCHEMA.fields}])
    (file,) = write_data(IO, metadata, data)
    wanted = ["c1", "c2", "c3", "c4", "c6", "c8", "c9", "c12", "c13", "c16", "needed", "ma"]
    schema = PeerSchema.model_validate(metadata.schema().to_json())
    peer = peer_new_table_metadata(schema, PEER_UNPARTITIONED, PEER_UNSORTED, str(tmp_path))
    peer_file = PeerDataFile.from_args(
        content=PeerContent.DATA,
        file_path=file.file_path,
        file_format=PeerFormat.ORC,
        partition=Record(),
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    peer_file.spec_id = 0
    scan = PeerScan(peer, PyArrowFileIO(), schema.select(*wanted), PeerAlwaysTrue())
    found = scan.to_table([PeerTask(peer_file)])
    assert found.select(wanted).to_pylist() == data.select(wanted).to_pylist()


def test_orc_types_carry_the_attributes_of_the_specification(tmp_path):
    """Spec, Appendix A: ORC."""
    metadata = new_table(tmp_path, SCHEMA, **{"write.format.default": "orc"})
    (file,) = write_data(IO, metadata, frame([one_of_each()]))
    schema = orc.ORCFile(file.file_path).schema

    def attributes(field):
        return {k.decode(): v.decode() for k, v in field.metadata.items()}

    assert attributes(schema.field("needed")) == {
        "iceberg.id": "17", "iceberg.required": "true", "iceberg.long-type": "LONG",
    }  # fmt: skip
    assert attributes(schema.field("c10"))["iceberg.long-type"] == "TIME"
    assert attributes(schema.field("c14"))["iceberg.binary-type"] == "UUID"
    fixed = attributes(schema.field("c15"))
    assert (fixed["iceberg.binary-type"], fixed["iceberg.length"]) == ("FIXED", "3")
    found = {}

    def walk(field):
        if "iceberg.id" in attributes(field):
            found[int(attributes(field)["iceberg.id"])] = field.name
        kind = field.type
        if pa.types.is_map(kind):
            walk(kind.key_field)
            walk(kind.item_field)
        elif kind.num_fields:
            for i in range(kind.num_fields):
                walk(kind.field(i))

    for f in schema:
        walk(f)
    assert set(found) == set(SCHEMA.field_ids)


def test_avro_files_hold_ids_logical_types_and_escaped_names(tmp_path):
    """Spec, Appendix A: Avro. The records are what fastavro makes of the same schema."""
    metadata = new_table(tmp_path, SCHEMA, **{"write.format.default": "avro"})
    data = frame([one_of_each(), one_of_each(c13=None, li=None, mk=None)])
    (file,) = write_data(IO, metadata, data)
    with open(file.file_path, "rb") as source:  # noqa: PTH123
        reader = fastavro.reader(source)
        rows, schema = list(reader), reader.writer_schema
        assert json.loads(reader.metadata["iceberg.schema"]) == metadata.schema().to_json()
        assert reader.metadata["avro.codec"] == "deflate"
    fields = {f["name"]: f for f in schema["fields"]}
    assert {n: f["field-id"] for n, f in fields.items()} == {
        f.name: f.field_id for f in SCHEMA.fields
    }
    assert fields["mk"]["type"][1]["logicalType"] == "map"
    assert fields["ma"]["type"][1]["key-id"] == SCHEMA.find_field("ma").field_type.key_id
    assert fields["c11"]["type"][1]["adjust-to-utc"] is False
    assert rows[0]["c6"] == Decimal("-1.25")
    assert rows[0]["c8"] == Decimal("1.0000000001")
    assert rows[0]["c12"] == dt.datetime(2024, 1, 1, tzinfo=UTC)
    assert rows[0]["c10"] == dt.time(23, 59, 59, 999999)
    assert rows[0]["deep"][1][0]["value"] == {"a_x20b": 1, "_1st": "x"}
    assert rows[1]["c13"] is rows[1]["li"] is rows[1]["mk"] is None
    assert math.isnan(rows[0]["c5"])
    again = io.BytesIO()
    fastavro.schemaless_writer(again, fastavro.parse_schema(schema), rows[0])
    begin = bytes(again.getvalue())
    with open(file.file_path, "rb") as source:  # noqa: PTH123
        (block,) = fastavro.block_reader(source)
        assert block.bytes_.getvalue().startswith(begin)


@pytest.mark.parametrize("file_format", FORMATS)
def test_metrics_are_those_of_parquet(tmp_path, file_format):
    """What is counted from rows is what a Parquet footer says of the same rows."""
    properties = {
        "write.metadata.metrics.column.c16": "none",
        "write.metadata.metrics.column.c3": "counts",
        "write.metadata.metrics.column.c13": "truncate(2)",
    }
    rows = [
        one_of_each(),
        one_of_each(c13="\U0010ffff\U0010ffffz", c5=None, c4=0.0, c14=None, st=None),
        one_of_each(c13="zzz", c5=-1.5, c4=-0.0, c15=b"\xff\xff\xff", needed=-9),
    ]
    data = frame(rows)
    described = []
    for name in ("parquet", file_format):
        metadata = new_table(tmp_path / name, SCHEMA, **properties)
        (file,) = write_data(IO, metadata, data, options={"write.format.default": name})
        described.append(file)
    parquet, ours = described
    assert ours.file_format is FileFormat(file_format)
    assert ours.file_path.endswith(f".{file_format}")
    for member in ("record_count", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):  # fmt: skip
        assert getattr(ours, member) == getattr(parquet, member), member
    assert 13 not in ours.upper_bounds
    assert ours.lower_bounds[13] == b"zz"
    assert SCHEMA.find_field("ma.value").field_id not in ours.value_counts


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_are_about_the_target_size(tmp_path, file_format):
    target = 1 << 20
    metadata = new_table(
        tmp_path,
        Schema((NestedField(1, "s", StringType()),)),
        **{"write.format.default": file_format, "write.target-file-size-bytes": str(target)},
    )
    source = random.Random(7)
    data = pa.table({"s": [source.randbytes(20).hex() for _ in range(150_000)]})
    files = write_data(IO, metadata, data)
    assert len(files) > 2
    assert sum(f.record_count for f in files) == 150_000
    assert max(f.file_size_in_bytes for f in files) < target * 1.35
    assert min(f.file_size_in_bytes for f in files[:-1]) > target * 0.7
    assert read(metadata, files)["s"].to_pylist() == data["s"].to_pylist()


@pytest.mark.parametrize(
    ("codec", "name"),
    [("zlib", "ZLIB"), ("zstd", "ZSTD"), ("snappy", "SNAPPY"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")],
)  # fmt: skip
def test_orc_files_are_written_as_the_properties_say(tmp_path, codec, name):
    properties = {
        "write.format.default": "orc",
        "write.orc.compression-codec": codec,
        "write.orc.compression-strategy": "compression",
        "write.orc.stripe-size-bytes": "65536",
        "write.orc.vectorized.batch-size": "2147483647",
        "write.orc.bloom.filter.columns": "s,gone",
    }
    schema = Schema((NestedField(1, "n", LongType()), NestedField(2, "s", StringType())))
    source = random.Random(1)
    data = pa.table({"n": range(40_000), "s": [source.randbytes(9).hex() for _ in range(40_000)]})
    metadata = new_table(tmp_path, schema, **properties)
    (file,) = write_data(IO, metadata, data)
    written = orc.ORCFile(file.file_path)
    assert written.compression == name
    assert written.nstripes > 2
    assert read(metadata, [file]).equals(data)


@pytest.mark.parametrize(
    ("codec", "level", "name"),
    [("gzip", "9", "deflate"), ("zstd", "3", "zstandard"), ("snappy", "5", "snappy"), ("uncompressed", "1", "null")],
)  # fmt: skip
def test_avro_files_are_written_as_the_properties_say(tmp_path, codec, level, name):
    properties = {
        "write.format.default": "avro",
        "write.avro.compression-codec": codec,
        "write.avro.compression-level": level,
    }
    metadata = new_table(tmp_path, Schema((NestedField(1, "n", LongType()),)), **properties)
    data = pa.table({"n": range(100_000)})
    (file,) = write_data(IO, metadata, data)
    with open(file.file_path, "rb") as source:  # noqa: PTH123
        assert fastavro.block_reader(source).metadata["avro.codec"] == name
    assert read(metadata, [file]).equals(data)


@pytest.mark.parametrize(
    "properties",
    [
        {"write.format.default": "orc", "write.orc.compression-codec": "lzo"},
        {"write.format.default": "orc", "write.orc.compression-strategy": "best"},
        {"write.format.default": "orc", "write.orc.bloom.filter.fpp": "1"},
        {"write.format.default": "avro", "write.avro.compression-codec": "bzip3"},
        {"write.format.default": "avro", "write.avro.compression-level": "99"},
        {"write.parquet.compression-codec": "zstd", "write.parquet.compression-level": "99"},
        {"write.format.default": "csv"},
        {"write.distribution-mode": "some"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(tmp_path, properties):
    metadata = new_table(tmp_path, Schema((NestedField(1, "n", LongType()),)))
    metadata = replace(metadata, properties=properties)
    with pytest.raises(ConfigurationError):
        write_data(IO, metadata, pa.table({"n": [1]}))
    assert not list(tmp_path.iterdir())
