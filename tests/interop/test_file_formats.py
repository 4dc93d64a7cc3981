"""Files of every format that we write, read by Iceberg Java."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import parse_transform
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
    UUIDType,
)
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

UTC = dt.timezone.utc
FORMATS = ["parquet", "orc", "avro"]
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "b", BooleanType()),
        NestedField(3, "i", IntegerType()),
        NestedField(4, "f", FloatType()),
        NestedField(5, "d", DoubleType()),
        NestedField(6, "dec9", DecimalType(9, 2)),
        NestedField(7, "dec18", DecimalType(18, 0)),
        NestedField(8, "dec38", DecimalType(38, 10)),
        NestedField(9, "day", DateType()),
        NestedField(10, "ts", TimestampType()),
        NestedField(11, "tz", TimestamptzType()),
        NestedField(12, "s", StringType()),
        NestedField(13, "fx", FixedType(3)),
        NestedField(14, "bi", BinaryType()),
        NestedField(15, "st", StructType((NestedField(20, "x y", IntegerType()), NestedField(21, "st", StructType((NestedField(22, "d", DateType()),)))))),
        NestedField(16, "li", ListType(23, ListType(24, DecimalType(5, 1)))),
        NestedField(17, "ma", MapType(25, StringType(), 26, TimestamptzType())),
        NestedField(18, "mk", MapType(27, IntegerType(), 28, ListType(29, StringType()))),
        NestedField(19, "u", UUIDType()),
    )
)  # fmt: skip
EARLY = dt.datetime(1, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001
OLD = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
ROWS = [
    {
        "id": 1, "b": True, "i": -(2**31), "f": 0.5, "d": float("nan"), "dec9": Decimal("-1.25"),
        "dec18": Decimal(10**18 - 1), "dec38": Decimal("-12345678901234567890.0123456789"),
        "day": dt.date(1, 1, 1), "ts": EARLY, "tz": EARLY.replace(year=1000, tzinfo=UTC), "s": "é\U0001f9ca\x00",
        "fx": b"\x00\xff\x80", "bi": b"", "st": {"x y": 7, "st": {"d": dt.date(1969, 12, 31)}},
        "li": [[Decimal("-1.5"), None], None, []], "ma": [("k", OLD.replace(tzinfo=UTC)), ("", None)],
        "mk": [(-1, ["x", None]), (2, None)],
    },
    {
        "id": 2, "b": False, "i": 2**31 - 1, "f": -0.0, "d": float("-inf"), "dec9": Decimal("9999999.99"),
        "dec18": Decimal(-1), "dec38": Decimal(0), "day": dt.date(9999, 12, 31), "ts": OLD,
        "tz": OLD.replace(tzinfo=UTC), "s": "", "fx": b"abc", "bi": b"\x00" * 100,
        "st": {"x y": None, "st": None}, "li": [], "ma": [], "mk": [],
    },
    {"id": 3},
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _namespace(catalog):
    catalog.create_namespace_if_not_exists("formats")


@pytest.fixture
def make(catalog):
    made = []

    def create(name, schema, *, sort_order=None, **properties):
        made.append(("formats", name))
        more = {} if sort_order is None else {"sort_order": sort_order}
        return catalog.create_table(("formats", name), schema, properties=properties, **more)

    yield create
    for name in made:
        catalog.drop_table(name)


def frame(schema, file_format):
    rows = [dict(row) for row in ROWS]
    if file_format == "orc":
        # Before 1970, pyarrow writes whole seconds only.
        for row in rows[:2]:
            row.update({n: row[n].replace(microsecond=0) for n in ("ts", "tz")})
        rows[0]["ma"] = [("k", OLD.replace(microsecond=0, tzinfo=UTC)), ("", None)]
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    data = pa.Table.from_pylist(rows, pa.schema([f for f in arrow if f.name != "u"]))
    raw = pa.array([uuid.UUID(int=2**126 + 5).bytes, uuid.UUID(int=0).bytes, None], pa.binary(16))
    return data.append_column("u", pa.ExtensionArray.from_storage(pa.uuid(), raw))


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_type_in_every_format(make, iceberg_java, file_format):
    table = make(f"types_{file_format}", SCHEMA, **{"write.format.default": file_format})
    table.append(frame(table.schema(), file_format))
    micro, last = ("", "") if file_format == "orc" else (".000001", ".999999")
    found = iceberg_java.sql(f"SELECT * FROM ice.formats.types_{file_format} ORDER BY id")
    expected = [
        [1, True, -(2**31), 0.5, found[0][4], "-1.25", "999999999999999999",
         "-12345678901234567890.0123456789", "0001-01-01", f"0001-01-01 00:00:00{micro}",
         found[0][10], "é\U0001f9ca\x00", "00ff80", "", [7, ["1969-12-31"]],
         [["-1.5", None], None, []], {"k": found[0][16]["k"], "": None},
         {"-1": ["x", None], "2": None}, str(uuid.UUID(int=2**126 + 5))],
        [2, False, 2**31 - 1, 0.0, float("-inf"), "9999999.99", "-1", found[1][7], "9999-12-31",
         f"1969-12-31 23:59:59{last}", found[1][10], "", "616263", "00" * 100, [None, None], [], {}, {},
         str(uuid.UUID(int=0))],
        [3, *[None] * 18],
    ]  # fmt: skip
    assert found == expected
    assert found[0][4] != found[0][4]
    assert Decimal(found[1][7]) == 0
    name = f"ice.formats.types_{file_format}"
    moments = iceberg_java.sql(
        f"SELECT unix_micros(tz), unix_micros(ma['k']) FROM {name} WHERE id < 3 ORDER BY id"
    )
    early, old = (0, -1_000_000) if file_format == "orc" else (1, -1)
    assert moments == [[-30610224000_000000 + early, old], [old, None]]
    # The bounds of the manifests let no row be missed.
    for where in ("i = -2147483648", "dec18 = 999999999999999999", "day = DATE '9999-12-31'",
                  f"ts = TIMESTAMP_NTZ '1969-12-31 23:59:59{last}'", "fx = X'616263'", "f = 0.5",
                  f"u = '{uuid.UUID(int=2**126 + 5)}'", "st.st.d = DATE '1969-12-31'"):  # fmt: skip
        assert iceberg_java.sql(f"SELECT count(*) FROM {name} WHERE {where}") == [[1]], where
    assert iceberg_java.sql(f"SELECT count(*) FROM {name} WHERE isnan(d)") == [[1]]


SMALL = Schema(
    (
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "s", StringType()),
        NestedField(3, "st", StructType((NestedField(4, "x", IntegerType()),))),
    )
)


def small(ids):
    rows = [{"id": i, "s": None if i % 5 == 0 else f"s{i % 7}", "st": {"x": i}} for i in ids]
    return pa.Table.from_pylist(
        rows, pa.schema([("id", pa.int64()), ("s", pa.string()), ("st", pa.struct([("x", pa.int32())]))])
    )  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
def test_both_kinds_of_deletes_in_every_format(make, iceberg_java, file_format):
    properties = {
        "write.format.default": file_format,
        "write.delete.mode": "merge-on-read",
        "write.delete.granularity": "partition",
    }
    table = make(f"deletes_{file_format}", SMALL, **properties)
    table.append(small(range(20)))
    table.append(small(range(20, 40)))
    table.delete("id IN (3, 23)")
    metadata, io = table.metadata, table.io
    # Rows that are stored beside their positions.
    (task,) = table.scan("id = 1").plan_files()
    arrow = schema_to_pyarrow(table.schema(), include_field_ids=False)
    positions = PositionDeleteWriter(io, metadata, "with-rows", rows=True)
    positions.add(task.file, np.array([1]), small([1]).cast(arrow))
    equal = EqualityDeleteWriter(io, metadata, "by-value", ["s", "id"])
    (batch,) = small([10, 11, 31, 99]).to_batches()
    equal.write(batch)
    delta = RowDelta(io)
    for file in (*positions.close(), *equal.close()):
        assert file.file_path.endswith(f"-deletes.{file_format}")
        delta.add_deletes(file)
    table.commit(delta)
    table.refresh()
    gone = {3, 23, 1, 10, 11, 31}
    expected = [i for i in range(40) if i not in gone]
    rows = iceberg_java.sql(f"SELECT id FROM ice.formats.deletes_{file_format} ORDER BY id")
    assert [r[0] for r in rows] == expected
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    stored = iceberg_java.sql(
        f"SELECT pos, row.id, row.s FROM ice.formats.deletes_{file_format}.position_deletes "
        "WHERE row IS NOT NULL"
    )
    assert stored == [[1, 1, "s1"]]


@pytest.mark.parametrize("file_format", FORMATS)
def test_sorted_files_say_so(make, iceberg_java, file_format):
    order = SortOrder(
        1,
        (
            SortField(2, parse_transform("truncate[1]"), SortDirection.DESC, NullOrder.NULLS_LAST),
            SortField(1, parse_transform("identity"), SortDirection.DESC, NullOrder.NULLS_FIRST),
        ),
    )
    table = make(
        f"sorted_{file_format}", SMALL, sort_order=order, **{"write.format.default": file_format}
    )
    table.append(small(range(50)))
    name = f"ice.formats.sorted_{file_format}"
    assert iceberg_java.sql(f"SELECT sort_order_id FROM {name}.files") == [[1]]
    found = [r[0] for r in iceberg_java.sql(f"SELECT id FROM {name} ORDER BY _pos")]
    expected = [i for i in range(49, -1, -1) if i % 5] + list(range(45, -1, -5))
    assert found == expected


@pytest.mark.parametrize(
    ("file_format", "codec"),
    [
        *(("orc", codec) for codec in ("zlib", "zstd", "snappy", "lz4", "none")),
        *(("avro", codec) for codec in ("gzip", "zstd", "snappy", "uncompressed")),
    ],
)
def test_what_iceberg_java_writes_is_read_with_every_codec_and_far_times(
    catalog, iceberg_java, file_format, codec
):
    name = f"java_{file_format}_{codec}"
    iceberg_java.sql(
        f"CREATE TABLE ice.formats.{name} (id BIGINT, ts TIMESTAMP_NTZ, tz TIMESTAMP, "
        "st STRUCT<d: DATE, t: TIMESTAMP_NTZ>, li ARRAY<TIMESTAMP>) USING iceberg TBLPROPERTIES "
        f"('write.format.default'='{file_format}', "
        f"'write.{file_format}.compression-codec'='{codec}')"
    )
    moments = ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2024-02-29 12:00:00.000001"]
    values = ", ".join(
        f"({n}, TIMESTAMP_NTZ '{m}', TIMESTAMP '{m}', named_struct('d', DATE '0001-01-01', 't', "
        f"TIMESTAMP_NTZ '{m}'), array(TIMESTAMP '{m}', NULL))"
        for n, m in enumerate(moments)
    )
    iceberg_java.sql(f"INSERT INTO ice.formats.{name} VALUES {values}, (3, NULL, NULL, NULL, NULL)")
    found = catalog.load_table(("formats", name)).scan().to_arrow().sort_by("id").to_pylist()
    expected = []
    for n, moment in enumerate(map(dt.datetime.fromisoformat, moments)):
        point = moment.replace(tzinfo=UTC)
        struct = {"d": dt.date(1, 1, 1), "t": moment}
        expected.append({"id": n, "ts": moment, "tz": point, "st": struct, "li": [point, None]})
    expected.append({"id": 3, "ts": None, "tz": None, "st": None, "li": None})
    assert found == expected
    catalog.drop_table(("formats", name))
