"""Stripes of ORC files: where they lie, and which a filter may skip."""

from __future__ import annotations

import zlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import orc

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.filter_argument import as_expression
from icecomb.format.input_limit import UNPACKED
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.rows.orc.reader import OrcReader
from icecomb.format.rows.orc.tail import OrcTail
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from icecomb.format.storage.file_io import FileIO

NAN = float("nan")
COMPARE = {
    "=": pc.equal,
    "<": pc.less,
    ">": pc.greater,
    "!=": pc.not_equal,
    ">=": pc.greater_equal,
}
CODECS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]
SCHEMA = Schema(
    (
        NestedField(1, "a", LongType()),
        NestedField(2, "d", DoubleType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "m", DecimalType(9, 2)),
        NestedField(5, "day", DateType()),
        NestedField(6, "t", TimestampType()),
        NestedField(7, "p", StructType((NestedField(8, "x", LongType()),))),
    )
)


def with_id(name, kind, number):
    return pa.field(name, kind, metadata={"iceberg.id": str(number)})


ARROW = pa.schema(
    [
        with_id("a", pa.int64(), 1),
        with_id("d", pa.float64(), 2),
        with_id("s", pa.string(), 3),
        with_id("m", pa.decimal128(9, 2), 4),
        with_id("day", pa.date32(), 5),
        with_id("t", pa.timestamp("us"), 6),
        with_id("p", pa.struct([with_id("x", pa.int64(), 8)]), 7),
    ]
)


N = 150_000


def ascending():
    """Rows with larger and larger values; there are stripes also of what compresses well."""
    numbers = np.arange(N)
    texts = pc.binary_join_element_wise("v", pa.array(numbers + 10**6).cast(pa.string()), "")
    hours = pa.array(numbers * 3_600_000_000 - 10**14).cast(pa.timestamp("us"))
    days = pa.array((numbers - 7).astype(np.int32)).cast(pa.date32())
    cents = pa.array(numbers - 5).cast(pa.decimal128(19, 0))
    money = pc.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(9, 2))
    inner = pa.StructArray.from_arrays([pa.array(-numbers)], fields=[ARROW.field("p").type[0]])
    arrays = [pa.array(numbers), pa.array(numbers / 4), texts, money, days, hours, inner]
    return pa.table(arrays, schema=ARROW)


def write(path, table, batch_rows=1024, compression="zlib"):
    # The writer looks at the size of a stripe after each batch only.
    orc.write_table(
        table, path, batch_size=batch_rows, stripe_size=32 * 1024, compression=compression
    )
    return DataFile(
        file_path=str(path),
        file_format=FileFormat.ORC,
        record_count=len(table),
        file_size_in_bytes=path.stat().st_size,
    )


@pytest.fixture(scope="module", params=CODECS)
def ascending_file(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("orc") / "f.orc", ascending(), compression=request.param)


def selected(folder, file, text):
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), {}
    )
    scan = ArrowScan(metadata, FileIO(), Schema((ROW_POSITION,)))
    residual = bind(metadata.schema(), as_expression(text))
    return scan.to_table([FileScanTask(file, residual=residual)])["_pos"].to_pylist()


def test_stripes_lie_where_the_file_says(ascending_file):
    opened = orc.ORCFile(ascending_file.file_path)
    tail = OrcTail(opened.reader.serialized_file_tail())
    assert len(tail.stripes) == opened.nstripes > 2
    assert [s.rows for s in tail.stripes] == [
        opened.read_stripe(i, columns=["a"]).num_rows for i in range(opened.nstripes)
    ]
    assert tail.stripes[0].offset == len(b"ORC")
    start, end = tail.metadata_range
    assert end - start == opened.stripe_statistics_length
    rest = opened.file_footer_length + opened.file_postscript_length + 1
    assert end + rest == ascending_file.file_size_in_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 2500", [2500]),
        ("d >= 37499.5", [149_998, 149_999]),
        ("s < 'v1000002'", [0, 1]),
        ("m = 0.05", [10]),
        ("day = '1970-01-01'", [7]),
        ("t = '1966-10-31T15:13:20'", [1]),
        ("p.x in (-4000, 3)", [4000]),
        ("a is null", []),
    ],
)
def test_stripes_that_cannot_match_are_not_read(ascending_file, monkeypatch, text, expected):
    taken = []
    really = OrcReader.batches

    def note(self, columns, row_groups, *more, **options):
        taken.extend(row_groups)
        return really(self, columns, row_groups, *more, **options)

    monkeypatch.setattr(OrcReader, "batches", note)
    assert selected("/nowhere", ascending_file, text) == expected
    assert len(taken) <= (0 if "null" in text else 1)


def test_rows_after_a_nan_that_begins_a_row_group_are_found(tmp_path):
    # 10,000 rows have statistics of their own, which are put together to those of the stripe
    numbers = np.ones(20_000)
    numbers[10_000:10_002] = NAN, 100
    table = pa.table({"d": numbers}, pa.schema([ARROW.field("d")]))
    file = write(tmp_path / "n.orc", table)
    assert selected(tmp_path, file, "d = 100") == [10_001]


longs = st.none() | st.integers(-3, 3) | st.sampled_from([-(1 << 63), (1 << 63) - 1])
doubles = st.none() | st.sampled_from([NAN, -0.0, 0.0, -1.5, 2.5, float("inf")])
texts = st.none() | st.sampled_from(["", "a", "é", "\U0001f600", "￿", "a" * 3000])
decimals = st.none() | st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")])
TESTS = """
    a = 0|a < 0|a > 9223372036854775806|a in (2, -3)|a != 1|a is null
    d = 0|d < 0|d > 2|d is nan|d is null|d != 2.5|d >= -0.0
    s = 'é'|s < 'a'|s > 'a'|s like 'a%'|s is null|s = ''
    m = 0|m < 0|m > 9999999|p.x = 0|p.x is null|p.x < -2
"""
tests_of = st.sampled_from(
    [t.strip() for line in TESTS.split("\n") for t in line.split("|") if t.strip()]
)


@given(
    rows=st.lists(st.tuples(longs, doubles, texts, decimals, longs), min_size=1, max_size=12),
    text=tests_of,
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_row_is_lost_by_statistics(tmp_path, rows, text):
    records = [
        {"a": a, "d": d, "s": s, "m": m, "p": None if x == 1 else {"x": x}}
        for a, d, s, m, x in rows
    ]
    table = pa.Table.from_pylist(records * 700, ARROW).sort_by("d")
    file = write(tmp_path / "m.orc", table, compression="uncompressed")
    assert selected(tmp_path, file, text) == pc.indices_nonzero(model(table, text)).to_pylist()


def model(table, text):
    """Evaluated by Arrow on the rows in memory."""
    column, operator, value = (*text.split(" ", 2), "")[:3]
    array = pc.struct_field(table["p"], "x") if column == "p.x" else table[column]
    array = array.combine_chunks()
    if text.endswith("is null"):
        return pc.is_null(array)
    if text.endswith("is nan"):
        return pc.is_nan(array).fill_null(False)
    if operator == "like":
        return pc.starts_with(array, value[1:-2]).fill_null(False)
    if operator == "in":
        return pc.is_in(array, pa.array([2, -3], array.type))
    literal = pa.scalar(value.strip("'")).cast(array.type)
    return COMPARE[operator](array, literal).fill_null(False)


@given(st.binary(max_size=60))
def test_a_damaged_tail_is_a_value_error(data):
    try:
        OrcTail(data)
    except ValueError:
        return


def message(**fields):
    """A protocol buffer message, of the names of fields f1, f2 ...: numbers, or bytes."""
    out = b""
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            number = int(name[1:]) << 3
            out += bytes([number]) + number_of(value) if isinstance(value, int) else (
                bytes([number | 2]) + number_of(len(value)) + value
            )  # fmt: skip
    return out


def number_of(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tail_of(kind, statistics, codec=0):
    """The tail of a file of one column and one stripe."""
    script = message(f2=codec, f6=6)
    types = [message(f1=12), message(f1=kind)]
    totals = [message(f1=9), statistics]
    footer = message(f3=[message(f1=3, f5=9)], f4=types, f6=9, f7=totals)
    return OrcTail(message(f1=script, f2=footer, f3=99, f4=9))


@pytest.mark.parametrize(
    ("stored", "kind", "field", "wrong"),
    [
        (4, LongType(), 2, message(f1=b"x", f2=b"y")),
        (4, LongType(), 2, 7),
        (6, DoubleType(), 3, message(f1=1, f2=2)),
        (7, StringType(), 4, message(f1=1, f2=2)),
        (14, DecimalType(9, 2), 6, message(f1=1, f2=2)),
        (15, DateType(), 7, message(f1=b"x", f2=b"y")),
        (9, TimestampType(), 9, message(f3=b"x", f4=b"y")),
    ],
)
def test_statistics_of_another_kind_are_not_used(stored, kind, field, wrong):
    statistics = message(f1=9, **{f"f{field}": wrong})
    tail = tail_of(stored, statistics)
    assert tail.total(1, kind) == (None, None)
    tail.load_statistics(message(f1=[message(f1=[message(f1=9), statistics])]))
    assert tail.chunk(0, 1, kind) is None
    with pytest.raises(ValueError, match="not a message"):
        tail.load_statistics(message(f1=7))


def test_all_statistics_of_a_file_have_one_limit(monkeypatch):
    monkeypatch.setenv(UNPACKED.name, "1")
    packer = zlib.compressobj(9, wbits=-15)
    chunk = packer.compress(bytes(600_000)) + packer.flush()
    part = (len(chunk) << 1).to_bytes(3, "little") + chunk
    with pytest.raises(ValueError, match=UNPACKED.name):
        tail_of(4, b"", codec=1).load_statistics(part * 3)
