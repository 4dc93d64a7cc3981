"""Metrics out of Parquet footers, against PyIceberg and against the rows themselves."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.schema import Schema as PeerSchema

from icecomb.format.errors import ConfigurationError
from icecomb.format.rows.parquet.footer import parquet_metrics
from icecomb.format.rows.values.arrow_projection import file_fields
from icecomb.format.rows.values.data_metrics import MetricsConfig, truncated_lower, truncated_upper
from icecomb.format.spec import single_value
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import SortField, SortOrder
from icecomb.format.spec.transform import IdentityTransform
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
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.rows.parquet_file import data_file_from_parquet

SCHEMA = Schema(
    (
        NestedField(1, "b", BooleanType()),
        NestedField(2, "i", IntegerType()),
        NestedField(3, "l", LongType()),
        NestedField(4, "f", FloatType()),
        NestedField(5, "d", DoubleType()),
        NestedField(6, "small", DecimalType(9, 2)),
        NestedField(7, "wide", DecimalType(38, 4)),
        NestedField(8, "day", DateType()),
        NestedField(9, "clock", TimeType()),
        NestedField(10, "ts", TimestampType()),
        NestedField(11, "tz", TimestamptzType()),
        NestedField(12, "s", StringType()),
        NestedField(13, "u", UUIDType()),
        NestedField(14, "fx", FixedType(3)),
        NestedField(15, "bin", BinaryType()),
        NestedField(16, "st", StructType((NestedField(17, "x", LongType()),))),
        NestedField(18, "ls", ListType(19, LongType())),
        NestedField(20, "empty", StringType()),
    )
)


def naive(*parts):
    """A timestamp without zone."""
    return dt.datetime(*parts)  # noqa: DTZ001


ROWS = [
    {
        "b": False, "i": 3, "l": -(2**40), "f": 1.5, "d": -0.0, "small": Decimal("-1.25"),
        "wide": Decimal("123456789012345678901.0001"), "day": dt.date(1969, 12, 31),
        "clock": dt.time(1, 2, 3, 4), "ts": naive(1960, 1, 1, 0, 0, 0, 1),
        "tz": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), "s": "a" * 20,
        "u": uuid.UUID(int=2**127).bytes, "fx": b"\xff\x00\x01", "bin": b"\x7f" * 20,
        "st": {"x": 5}, "ls": [1, 2, 3], "empty": None,
    },
    {
        "b": True, "i": -7, "l": 2**40, "f": -2.5, "d": 0.0, "small": Decimal("9999999.99"),
        "wide": Decimal("-1.0000"), "day": dt.date(2024, 2, 29),
        "clock": dt.time(23, 59, 59, 999999), "ts": naive(2024, 1, 1),
        "tz": dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc), "s": "z" * 20,
        "u": uuid.UUID(int=5).bytes, "fx": b"\x00\x00\x01", "bin": b"\xff" * 20,
        "st": None, "ls": None, "empty": None,
    },
    dict.fromkeys(["b", "i", "l", "f", "d", "small", "wide", "day", "clock", "ts", "tz", "s", "u",
                   "fx", "bin", "st", "ls", "empty"]),
]  # fmt: skip


def write(path, rows=None, schema=SCHEMA, **options):
    arrow = schema_to_pyarrow(schema)
    columns = []
    for f in arrow:
        values = [r[f.name] for r in (rows or ROWS)]
        if f.type == pa.uuid():
            column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))
        else:
            column = pa.array(values, f.type)
        columns.append(column)
    data = pa.table(columns, schema=arrow)
    pq.write_table(data, path, **{"store_schema": False, **options})
    return pq.read_metadata(path)


def metrics(path, schema=SCHEMA, config=None, mapping=None):
    footer = pq.read_metadata(path)
    fields = file_fields(footer.schema.to_arrow_schema(), mapping, str(path))
    return parquet_metrics(footer, fields, schema, config or MetricsConfig())


@pytest.mark.parametrize("decimal_as_integer", [True, False])
@pytest.mark.parametrize("row_group_size", [1, 10])
def test_metrics_are_those_pyiceberg_computes(tmp_path, decimal_as_integer, row_group_size):
    path = tmp_path / "f.parquet"
    footer = write(path, store_decimal_as_integer=decimal_as_integer, row_group_size=row_group_size)
    peer_schema = PeerSchema.model_validate(SCHEMA.to_json())
    peer = data_file_statistics_from_parquet_metadata(
        footer,
        compute_statistics_plan(peer_schema, {}),
        parquet_path_to_id_mapping(peer_schema),
    )
    ours = metrics(path)
    flat = SCHEMA.field_ids - {19}
    assert ours.record_count == peer.record_count == 3
    bounds = peer.to_serialized_dict()
    assert ours.column_sizes == peer.column_sizes
    assert list(ours.split_offsets) == peer.split_offsets
    assert ours.value_counts == {k: v for k, v in peer.value_counts.items() if k in flat}
    assert ours.null_value_counts == {k: v for k, v in peer.null_value_counts.items() if k in flat}
    # PyIceberg has 0.0 and -0.0 as they stand in the footer, where either sign bounds both, and
    # no bounds of fields in structs.
    same = flat - {5, 17}
    for name, found in (("lower_bounds", ours.lower_bounds), ("upper_bounds", ours.upper_bounds)):
        peers = {k: v for k, v in bounds[name].items() if k in same}
        assert {k: v for k, v in found.items() if k in same} == peers


def test_bounds_are_the_least_and_greatest_values(tmp_path):
    path = tmp_path / "f.parquet"
    write(path, row_group_size=1)
    full = metrics(path, config=MetricsConfig.from_properties(
        {"write.metadata.metrics.default": "full"}, SCHEMA))  # fmt: skip

    def value(bounds, number):
        return single_value.from_bytes(SCHEMA.find_type(number), bounds[number])

    found = {n: (value(full.lower_bounds, n), value(full.upper_bounds, n))
             for n in full.lower_bounds}  # fmt: skip
    assert found == {
        1: (False, True),
        2: (-7, 3),
        3: (-(2**40), 2**40),
        4: (-2.5, 1.5),
        5: (0.0, 0.0),
        6: (Decimal("-1.25"), Decimal("9999999.99")),
        7: (Decimal("-1.0000"), Decimal("123456789012345678901.0001")),
        8: (-1, 19782),
        9: (3723000004, 86399999999),
        10: (-315619199999999, 1704067200000000),
        11: (-2208988800000000, 1704067200000000),
        12: ("a" * 20, "z" * 20),
        13: (uuid.UUID(int=5), uuid.UUID(int=2**127)),
        14: (b"\x00\x00\x01", b"\xff\x00\x01"),
        15: (b"\x7f" * 20, b"\xff" * 20),
        17: (5, 5),
    }
    assert str(found[5]) == "(-0.0, 0.0)"
    assert full.null_value_counts[20] == full.value_counts[20] == 3


def test_columns_in_lists_have_a_size_and_no_counts(tmp_path):
    path = tmp_path / "f.parquet"
    write(path)
    found = metrics(path)
    assert found.column_sizes[19] > 0
    for counts in (found.value_counts, found.null_value_counts, found.lower_bounds):
        assert 19 not in counts


def test_truncated_bounds_enclose_the_values(tmp_path):
    path = tmp_path / "f.parquet"
    write(path)
    found = metrics(path)
    assert found.lower_bounds[12] == b"a" * 16
    assert found.upper_bounds[12] == b"z" * 15 + b"{"
    assert found.lower_bounds[15] == b"\x7f" * 16
    assert 15 not in found.upper_bounds
    assert len(found.upper_bounds[14]) == 3


@pytest.mark.parametrize(
    ("text", "length", "upper"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abd"),
        ("ab\U0010ffffd", 3, "ac"),
        ("\U0010ffff\U0010ffff\U0010ffff", 2, None),
        ("a\ud7ffx", 2, "a\ue000"),
        ("\U0001f600\U0001f600\U0001f600", 1, "\U0001f601"),
        (b"ab\xffd", 3, b"ac"),
        (b"\xff\xff\xff", 2, None),
    ],
)
def test_a_truncated_upper_bound_is_the_next_value(text, length, upper):
    assert truncated_upper(text, length) == upper


@given(st.text(), st.integers(1, 5))
def test_truncation_of_text_never_excludes_it(text, length):
    upper = truncated_upper(text, length)
    assert truncated_lower(text, length).encode() <= text.encode()
    assert upper is None or text.encode() <= upper.encode()


@given(st.binary(), st.integers(1, 5))
def test_truncation_of_binary_never_excludes_it(data, length):
    upper = truncated_upper(data, length)
    assert truncated_lower(data, length) <= data
    assert upper is None or data <= upper


def test_modes_come_from_properties(tmp_path):
    path = tmp_path / "f.parquet"
    write(path)
    prefix = "write.metadata.metrics."
    config = MetricsConfig.from_properties(
        {
            f"{prefix}default": "counts",
            f"{prefix}column.s": "truncate(2)",
            f"{prefix}column.st.x": "full",
            f"{prefix}column.l": "none",
            f"{prefix}column.unknown": "full",
        },
        SCHEMA,
    )
    found = metrics(path, config=config)
    assert found.lower_bounds == {12: b"aa", 17: (5).to_bytes(8, "little")}
    assert 3 not in found.value_counts
    assert 3 in found.column_sizes
    assert found.value_counts[2] == 3


def test_columns_of_the_sort_order_keep_bounds():
    order = SortOrder(1, (SortField(12, IdentityTransform()),))
    config = MetricsConfig.from_properties(
        {"write.metadata.metrics.default": "none"}, SCHEMA, order
    )
    assert config.mode(12) == MetricsConfig().default
    assert config.mode(2) != config.mode(12)


def test_only_the_first_hundred_columns_of_a_wide_table_have_metrics():
    wide = Schema(tuple(NestedField(i, f"c{i}", LongType()) for i in range(1, 151)))
    config = MetricsConfig.from_properties({}, wide)
    assert config.mode(100) == MetricsConfig().default
    assert config.mode(101).kind.value == "none"
    explicit = MetricsConfig.from_properties({"write.metadata.metrics.default": "full"}, wide)
    assert explicit.mode(150).kind.value == "full"


@pytest.mark.parametrize("mode", ["truncate(0)", "truncate", "half", ""])
def test_an_unknown_mode_is_refused(mode):
    with pytest.raises(ConfigurationError, match="metrics\\.default cannot be"):
        MetricsConfig.from_properties({"write.metadata.metrics.default": mode}, SCHEMA)


def one(path, array, kind, **options):
    field = pa.field("c", array.type, metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([array], schema=pa.schema([field])), path, **options)
    return metrics(path, Schema((NestedField(1, "c", kind),)))


def test_nan_is_in_no_bound(tmp_path):
    found = one(tmp_path / "f", pa.array([float("nan"), 1.0, 2.0]), DoubleType())
    assert single_value.from_bytes(DoubleType(), found.lower_bounds[1]) == 1.0
    assert single_value.from_bytes(DoubleType(), found.upper_bounds[1]) == 2.0
    assert one(tmp_path / "g", pa.array([float("nan")]), DoubleType()).lower_bounds == {}


def test_int96_has_no_bounds(tmp_path):
    array = pa.array([1, 2], pa.timestamp("us"))
    found = one(tmp_path / "f", array, TimestampType(), use_deprecated_int96_timestamps=True)
    assert found.lower_bounds == {}
    assert found.value_counts == {1: 2}


def test_unsigned_integers_have_no_bounds(tmp_path):
    assert one(tmp_path / "f", pa.array([1, 2**31], pa.uint32()), LongType()).lower_bounds == {}


@pytest.mark.parametrize(
    ("unit", "lower", "upper"), [("ms", -1000, 2000), ("us", -1, 2), ("ns", -1, 0)]
)
def test_bounds_of_timestamps_are_microseconds_whatever_the_files_unit(
    tmp_path, unit, lower, upper
):
    found = one(tmp_path / "f", pa.array([-1, 2], pa.timestamp(unit)), TimestampType())
    assert single_value.from_bytes(TimestampType(), found.lower_bounds[1]) == lower
    assert single_value.from_bytes(TimestampType(), found.upper_bounds[1]) == upper


def test_bounds_have_the_width_of_the_promoted_type(tmp_path):
    found = one(tmp_path / "f", pa.array([-5, 6], pa.int32()), LongType())
    assert found.lower_bounds[1] == (-5).to_bytes(8, "little", signed=True)


def test_without_statistics_there_are_counts_and_no_bounds(tmp_path):
    found = one(tmp_path / "f", pa.array([1, None], pa.int64()), LongType(), write_statistics=False)
    assert found.value_counts == {1: 2}
    assert found.null_value_counts == {}
    assert found.lower_bounds == {}


def test_a_migrated_file_is_described_by_its_footer_alone(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"ID": pa.array([4, 9], pa.int32()), "x": ["a", "b"]}), path)
    schema = Schema((NestedField(3, "id", LongType()),))
    mapping = NameMapping((MappedField(3, ("ID",)),))
    args = (FileIO(), str(path), schema, UNPARTITIONED_PARTITION_SPEC, (), mapping)
    found = data_file_from_parquet(*args)
    assert found.record_count == 2
    assert found.file_size_in_bytes == path.stat().st_size
    assert found.value_counts == {3: 2}
    assert found.upper_bounds == {3: (9).to_bytes(8, "little")}
