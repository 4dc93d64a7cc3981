"""Reading tasks over Parquet files that were written under other schemas, or by other systems."""

from __future__ import annotations

import datetime as dt
import json
import threading
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import CorruptFileError, ExpressionError, NoSuchFileError, SchemaError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import (
    AlwaysTrue,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    NotEqualTo,
    NotIn,
    NotNull,
    StartsWith,
)
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.files.described_file import FileDescriber
from icecomb.format.rows.parquet import footer_reading
from icecomb.format.rows.parquet.raw_footer import RawFooter
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.values.metadata_columns import FILE_PATH, ROW_POSITION, SPEC_ID
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.name_mapping import MappedField
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import BucketTransform, IdentityTransform
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
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
)
from icecomb.format.storage.file_io import FileIO


def naive(*parts):
    """A timestamp without zone."""
    return dt.datetime(*parts)  # noqa: DTZ001


def with_id(name, kind, number, *, nullable=True):
    return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})


class Table:
    """A table's metadata over files that a test writes itself."""

    def __init__(self, folder, *fields, spec=UNPARTITIONED_PARTITION_SPEC, mapping=None):
        self.folder = folder
        self.schema = Schema(fields)
        properties = {}
        if mapping is not None:
            raw = [_mapped_json(f) for f in mapping]
            properties["schema.name-mapping.default"] = json.dumps(raw)
        self.metadata = new_table_metadata(
            self.schema, spec, UNSORTED_SORT_ORDER, str(folder), properties
        )
        assert self.metadata.schema().fields == self.schema.fields
        self.io = FileIO()
        self.files = 0

    def task(self, data, *, filter=AlwaysTrue(), partition=(), deletes=(), **options):  # noqa: A002, B008
        path = self.folder / f"{self.files}.parquet"
        self.files += 1
        pq.write_table(data, path, **options)
        file = DataFile(
            file_path=str(path),
            record_count=data.num_rows,
            file_size_in_bytes=path.stat().st_size,
            partition=partition,
        )
        residual = bind(self.schema, filter)
        return FileScanTask(file, tuple(deletes), residual, self.metadata.spec())

    def read(self, *tasks, select=None, **options):
        schema = self.schema if select is None else Schema(tuple(select))
        return ArrowScan(self.metadata, self.io, schema, **options).to_table(tasks)


def _mapped_json(field):
    out = {"names": list(field.names)}
    if field.field_id is not None:
        out["field-id"] = field.field_id
    if field.fields:
        out["fields"] = [_mapped_json(f) for f in field.fields]
    return out


def test_ids_decide_and_never_names(tmp_path):
    """a and b changed names; the file knows them by the old ones."""
    table = Table(tmp_path, NestedField(1, "b", LongType()), NestedField(2, "a", StringType()))
    data = pa.table(
        [pa.array([1, 2], pa.int64()), pa.array(["x", "y"])],
        schema=pa.schema([with_id("a", pa.int64(), 1), with_id("b", pa.string(), 2)]),
    )
    assert table.read(table.task(data)).to_pydict() == {"b": [1, 2], "a": ["x", "y"]}


def test_a_filter_on_swapped_names_looks_at_the_right_column(tmp_path):
    table = Table(tmp_path, NestedField(1, "b", StringType()), NestedField(2, "a", StringType()))
    data = pa.table(
        [["one", "two"], ["x", "y"]],
        schema=pa.schema([with_id("a", pa.string(), 1), with_id("b", pa.string(), 2)]),
    )
    task = table.task(data, filter=EqualTo("b", "two"), row_group_size=1)
    assert table.read(task).to_pydict() == {"b": ["two"], "a": ["y"]}


def test_dropped_columns_vanish_and_added_ones_are_null(tmp_path):
    table = Table(tmp_path, NestedField(1, "new", DateType()), NestedField(2, "kept", LongType()))
    data = pa.table(
        [pa.array([5], pa.int64()), pa.array([6], pa.int64())],
        schema=pa.schema([with_id("new", pa.int64(), 3), with_id("kept", pa.int64(), 2)]),
    )
    result = table.read(table.task(data))
    assert result.to_pydict() == {"new": [None], "kept": [6]}
    assert result.schema == pa.schema([("new", pa.date32()), ("kept", pa.int64())])


def test_a_dropped_and_readded_name_does_not_bring_old_values_back(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()), NestedField(2, "v", LongType()))
    data = pa.table(
        [pa.array([1], pa.int64()), pa.array([99], pa.int64())],
        schema=pa.schema([with_id("id", pa.int64(), 1), with_id("v", pa.int64(), 7)]),
    )
    assert table.read(table.task(data)).to_pydict() == {"id": [1], "v": [None]}


def nested_file():
    point = pa.struct([with_id("x", pa.int32(), 10), with_id("y", pa.float32(), 11)])
    schema = pa.schema(
        [
            with_id("s", point, 1),
            with_id("l", pa.list_(with_id("element", pa.struct(
                [with_id("p", pa.int32(), 20), with_id("q", pa.string(), 21)]), 12)), 2),
            with_id("m", pa.map_(
                pa.field("key", pa.string(), False, {"PARQUET:field_id": "13"}),
                with_id("value", pa.struct([with_id("v", pa.int32(), 22)]), 14)), 3),
        ]
    )  # fmt: skip
    return pa.table(
        [
            pa.array([{"x": 1, "y": 0.5}, None, {"x": None, "y": 2.5}], schema.field(0).type),
            pa.array([[{"p": 1, "q": "a"}, None], None, []], schema.field(1).type),
            pa.array([[("k", {"v": 7})], None, [("n", None)]], schema.field(2).type),
        ],
        schema=schema,
    )


def test_structs_in_lists_and_maps_evolve_by_id(tmp_path):
    """Renamed, reordered, added, dropped and promoted fields, at every depth."""
    table = Table(
        tmp_path,
        NestedField(1, "s", StructType((
            NestedField(4, "z", StringType()), NestedField(5, "yy", DoubleType()),
            NestedField(6, "xx", LongType())))),
        NestedField(2, "ls", ListType(7, StructType((
            NestedField(8, "q2", StringType()), NestedField(9, "gone", LongType()))))),
        NestedField(3, "m", MapType(10, StringType(), 11, StructType((
            NestedField(12, "w", StringType()), NestedField(13, "v", LongType()))))),
    )  # fmt: skip
    ids = {10: 6, 11: 5, 12: 7, 20: 99, 21: 8, 13: 10, 14: 11, 22: 13}
    old = nested_file()
    data = pa.Table.from_arrays(old.columns, schema=_renumbered(old.schema, ids))
    assert table.read(table.task(data)).to_pydict() == {
        "s": [{"z": None, "yy": 0.5, "xx": 1}, None, {"z": None, "yy": 2.5, "xx": None}],
        "ls": [[{"q2": "a", "gone": None}, None], None, []],
        "m": [[("k", {"w": None, "v": 7})], None, [("n", None)]],
    }


def _renumbered(schema, ids):
    def change(field):
        number = int(field.metadata[b"PARQUET:field_id"])
        kind = field.type
        if pa.types.is_struct(kind):
            kind = pa.struct([change(kind.field(i)) for i in range(kind.num_fields)])
        elif pa.types.is_list(kind):
            kind = pa.list_(change(kind.value_field))
        elif pa.types.is_map(kind):
            kind = pa.map_(change(kind.key_field), change(kind.item_field))
        return with_id(field.name, kind, ids.get(number, number), nullable=field.nullable)

    return pa.schema([change(f) for f in schema])


def test_a_struct_without_any_field_in_the_file_keeps_its_nulls(tmp_path):
    table = Table(tmp_path, NestedField(1, "s", StructType((NestedField(2, "new", LongType()),))))
    kind = pa.struct([with_id("old", pa.int64(), 9)])
    data = pa.table([pa.array([{"old": 1}, None], kind)], schema=pa.schema([with_id("s", kind, 1)]))
    assert table.read(table.task(data)).to_pydict() == {"s": [{"new": None}, None]}


def test_a_list_is_found_although_its_elements_have_no_id(tmp_path):
    """Spark gives ids to the fields of structs, not to elements, keys and values."""
    table = Table(tmp_path, NestedField(1, "l", ListType(2, LongType())))
    kind = pa.list_(pa.int32())
    data = pa.table([pa.array([[1, 2]], kind)], schema=pa.schema([with_id("x", kind, 1)]))
    assert table.read(table.task(data)).to_pydict() == {"l": [[1, 2]]}


def test_a_file_without_ids_is_read_through_the_nested_name_mapping(tmp_path):
    table = _mapped_table(tmp_path)
    data = pa.table(
        {
            "ID": pa.array([1], pa.int32()),
            "l": pa.array([[{"old": 3, "other": 4}]]),
            "unmapped": pa.array([5]),
        }
    )
    assert table.read(table.task(data)).to_pydict() == {
        "ident": [1],
        "points": [[{"x": 3}]],
        "unmapped": [None],
    }


def _mapped_table(folder):
    mapping = [
        MappedField(1, ("id", "ID")),
        MappedField(2, ("l",), (MappedField(4, ("element",), (MappedField(5, ("old", "x")),)),)),
    ]
    return Table(
        folder,
        NestedField(1, "ident", LongType()),
        NestedField(2, "points", ListType(4, StructType((NestedField(5, "x", LongType()),)))),
        NestedField(3, "unmapped", LongType()),
        mapping=mapping,
    )


def test_a_file_without_ids_and_a_table_without_mapping_is_an_error(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    with pytest.raises(SchemaError, match="no name mapping"):
        table.read(table.task(pa.table({"id": [1]})))


def test_the_name_mapping_is_not_asked_when_the_file_has_ids(tmp_path):
    table = Table(tmp_path, NestedField(1, "a", LongType()), mapping=[MappedField(1, ("wrong",))])
    data = pa.table(
        [pa.array([1], pa.int64()), pa.array([2], pa.int64())],
        schema=pa.schema([with_id("a", pa.int64(), 1), pa.field("wrong", pa.int64())]),
    )
    assert table.read(table.task(data)).to_pydict() == {"a": [1]}


@pytest.mark.parametrize(
    ("stored", "kind", "expected"),
    [
        (pa.array([1], pa.int32()), LongType(), [1]),
        (pa.array([1], pa.int8()), IntegerType(), [1]),
        (pa.array([7], pa.uint32()), LongType(), [7]),
        (pa.array([0.5], pa.float32()), DoubleType(), [0.5]),
        (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), DecimalType(30, 2), [Decimal("1.50")]),
        (pa.array([b"caf\xc3\xa9"]), StringType(), ["café"]),
        (pa.array(["x"]), BinaryType(), [b"x"]),
        (pa.array(["x", "x"]).dictionary_encode(), StringType(), ["x", "x"]),
        (pa.array(["x"], pa.large_string()), StringType(), ["x"]),
        (pa.array([5], pa.int32()), DateType(), [dt.date(1970, 1, 6)]),
        (pa.array([1500], pa.timestamp("ms")), TimestampType(),
         [naive(1970, 1, 1, 0, 0, 1, 500000)]),
        (pa.array([-1], pa.timestamp("ns")), TimestampType(),
         [naive(1969, 12, 31, 23, 59, 59, 999999)]),
        (pa.array([1], pa.timestamp("us")), TimestamptzType(),
         [dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.timezone.utc)]),
        (pa.array([1], pa.timestamp("us", "Asia/Tokyo")), TimestampType(),
         [naive(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array([1], pa.time32("ms")), TimeType(), [dt.time(0, 0, 0, 1000)]),
    ],
)  # fmt: skip
def test_stored_forms_are_read_as_the_columns_type(tmp_path, stored, kind, expected):
    table = Table(tmp_path, NestedField(1, "c", kind))
    data = pa.table([stored], schema=pa.schema([with_id("c", stored.type, 1)]))
    assert table.read(table.task(data)).to_pydict() == {"c": expected}


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_int96_timestamps_are_read_in_their_whole_range(tmp_path, zone):
    kind = TimestampType() if zone is None else TimestamptzType()
    table = Table(tmp_path, NestedField(1, "ts", kind), mapping=[MappedField(1, ("ts",))])
    values = [-62135596800_000000, 0, 4102444800_123456]
    data = pa.table({"ts": pa.array(values, pa.timestamp("us"))})
    task = table.task(data, use_deprecated_int96_timestamps=True)
    assert pq.ParquetFile(task.file.file_path).schema.column(0).physical_type == "INT96"
    result = table.read(task)
    assert result.schema.field("ts").type == pa.timestamp("us", zone)
    assert result["ts"].cast(pa.int64()).to_pylist() == values


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array([1], pa.int64()), IntegerType()),
        (pa.array(["1"]), LongType()),
        (pa.array([Decimal("1.5")], pa.decimal128(9, 1)), DecimalType(9, 2)),
        (pa.array([[1]]), LongType()),
        (pa.array([1], pa.int64()), ListType(2, LongType())),
        (pa.array([1], pa.int64()), StructType((NestedField(2, "x", LongType()),))),
    ],
)
def test_a_type_no_promotion_leads_from_is_an_error_naming_the_column(tmp_path, stored, kind):
    table = Table(tmp_path, NestedField(1, "c", kind))
    data = pa.table([stored], schema=pa.schema([with_id("c", stored.type, 1)]))
    with pytest.raises(CorruptFileError, match="'c'"):
        table.read(table.task(data))


def partitioned(folder, mapping=None):
    spec = PartitionSpec(0, (
        PartitionField(2, 1000, IdentityTransform(), "day"),
        PartitionField(1, 1001, BucketTransform(4), "id_bucket"),
    ))  # fmt: skip
    return Table(
        folder,
        NestedField(1, "id", LongType()),
        NestedField(2, "day", DateType()),
        spec=spec,
        mapping=mapping,
    )


def test_partition_columns_of_a_hive_table_come_from_the_manifest(tmp_path):
    table = partitioned(tmp_path, [MappedField(1, ("id",)), MappedField(2, ("day",))])
    data = pa.table({"id": pa.array([1, 2], pa.int64())})
    task = table.task(data, partition=(19000, 3))
    assert table.read(task).to_pydict() == {"id": [1, 2], "day": [dt.date(2022, 1, 8)] * 2}
    null = table.task(data, partition=(None, 3))
    assert table.read(null).to_pydict() == {"id": [1, 2], "day": [None, None]}


def nested_partition(folder, *, required=False):
    inner = StructType((NestedField(3, "x", LongType()), NestedField(4, "y", StringType())))
    spec = PartitionSpec(0, (PartitionField(3, 1000, IdentityTransform(), "x"),))
    fields = (NestedField(1, "id", LongType()), NestedField(2, "st", inner, required))
    return Table(folder, *fields, spec=spec)


@pytest.mark.parametrize("value", [5, None])
def test_a_partition_field_that_a_struct_lacks_comes_from_the_manifest(tmp_path, value):
    table = nested_partition(tmp_path)
    schema = pa.schema(
        [
            with_id("id", pa.int64(), 1),
            with_id("st", pa.struct([with_id("old", pa.string(), 4)]), 2),
        ]
    )
    data = pa.table([[1, 2], [{"old": "a"}, None]], schema=schema)
    task = table.task(data, partition=(value,))
    assert table.read(task)["st"].to_pylist() == [{"x": value, "y": "a"}, None]


@pytest.mark.parametrize(
    ("value", "required", "expected"),
    [
        (5, False, {"x": 5, "y": None}),
        (None, False, None),
        (5, True, {"x": 5, "y": None}),
        (None, True, {"x": None, "y": None}),
    ],
)
def test_a_struct_that_is_not_in_the_file_is_null_unless_a_partition_tells_more(
    tmp_path, value, required, expected
):
    table = nested_partition(tmp_path, required=required)
    data = pa.table([[1]], schema=pa.schema([with_id("id", pa.int64(), 1)]))
    task = table.task(data, partition=(value,))
    assert table.read(task).to_pylist() == [{"id": 1, "st": expected}]


def test_a_partition_field_inside_a_struct_is_read_from_a_file_that_has_it(tmp_path):
    """Column Projection: partition values stand for fields that are missing in a file."""
    table = nested_partition(tmp_path)
    inner = pa.struct([with_id("x", pa.int64(), 3)])
    schema = pa.schema([with_id("st", inner, 2)])
    data = pa.table([[{"x": None}, None]], schema=schema)
    task = table.task(data, partition=(None,))
    assert table.read(task)["st"].to_pylist() == [{"x": None, "y": None}, None]


def test_only_partition_columns_can_be_selected(tmp_path):
    table = partitioned(tmp_path, [MappedField(1, ("id",)), MappedField(2, ("day",))])
    data = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    task = table.task(data, partition=(0, 0))
    result = table.read(task, select=[table.schema.find_field("day")])
    assert result.to_pydict() == {"day": [dt.date(1970, 1, 1)] * 3}


def test_metadata_columns_say_where_a_row_lies(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table(
        [pa.array(range(10), pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)])
    )
    task = table.task(data, filter=GreaterThanOrEqual("id", 7), row_group_size=3)
    result = table.read(task, select=[ROW_POSITION, FILE_PATH, SPEC_ID])
    assert result.to_pydict() == {
        "_pos": [7, 8, 9],
        "_file": [task.file.file_path] * 3,
        "_spec_id": [0] * 3,
    }


NUMBERS = [0.5, None, float("nan"), 2.0, -1.0]


@pytest.mark.parametrize(
    ("row_filter", "expected"),
    [
        (EqualTo("d", 2.0), [3]),
        (NotEqualTo("d", 2.0), [0, 2, 4]),
        (GreaterThan("d", 0.0), [0, 3]),
        (LessThan("d", 0.0), [4]),
        (IsNull("d"), [1]),
        (NotNull("d"), [0, 2, 3, 4]),
        (IsNaN("d"), [2]),
        (In("d", [0.5, -1.0]), [0, 4]),
        (NotIn("d", [0.5, -1.0]), [2, 3]),
        (EqualTo("d", 2.0) | IsNull("d"), [1, 3]),
        (GreaterThan("d", 0.0) & LessThan("d", 1.0), [0]),
        (~(GreaterThan("d", 0.0) & LessThan("d", 1.0)), [3, 4]),
        (StartsWith("s", "v"), [0, 1, 2, 3, 4]),
        (StartsWith("s", "v3"), [3]),
        (EqualTo("st.x", 4), [4]),
        (GreaterThan("k", 1) & EqualTo("s", "v2"), [2]),
    ],
)
@pytest.mark.parametrize("row_group_size", [1, 2, 5])
def test_a_filter_selects_exactly_whatever_the_row_groups(
    tmp_path, row_filter, expected, row_group_size
):
    """Also by columns that are not selected, in structs, and with NaN and null."""
    table = Table(
        tmp_path,
        NestedField(1, "k", LongType()),
        NestedField(2, "d", DoubleType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "st", StructType((NestedField(5, "x", LongType()),))),
    )
    struct = pa.struct([with_id("x", pa.int64(), 5)])
    data = pa.table(
        [
            pa.array(range(5), pa.int64()),
            pa.array(NUMBERS),
            pa.array([f"v{i}" for i in range(5)]),
            pa.array([None if i == 1 else {"x": i} for i in range(5)], struct),
        ],
        schema=pa.schema(
            [
                with_id("k", pa.int64(), 1),
                with_id("d", pa.float64(), 2),
                with_id("s", pa.string(), 3),
                with_id("st", struct, 4),
            ]
        ),
    )
    task = table.task(data, filter=row_filter, row_group_size=row_group_size)
    result = table.read(task, select=[table.schema.find_field("k")])
    assert result.to_pydict() == {"k": expected}


def test_row_groups_that_cannot_match_are_not_decoded(tmp_path):
    """Bytes of the first row group are destroyed: only a reader that skips it succeeds."""
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table(
        [pa.array(range(2000), pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)])
    )
    task = table.task(data, filter=GreaterThan("id", 1500), row_group_size=1000, compression="zstd")
    chunk = pq.read_metadata(task.file.file_path).row_group(0).column(0)
    with open(task.file.file_path, "r+b") as file:  # noqa: PTH123
        file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
        file.write(b"\xff" * chunk.total_compressed_size)
    assert table.read(task)["id"].to_pylist() == list(range(1501, 2000))
    with pytest.raises(CorruptFileError, match=r"0\.parquet"):
        table.read(FileScanTask(task.file))


def test_parts_of_a_file_hold_each_row_once(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table(
        [pa.array(range(100), pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)])
    )
    whole = table.task(data, row_group_size=10)
    rows = []
    for target in (1, 37, 200, 10**9):
        rows = [
            r
            for part in whole.split(target)
            for r in table.read(part, select=[ROW_POSITION])["_pos"].to_pylist()
        ]
        assert rows == list(range(100))


def test_tasks_keep_their_order_and_a_limit_stops_early(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))

    def file(start):
        return pa.table(
            [pa.array(range(start, start + 50), pa.int64())],
            schema=pa.schema([with_id("id", pa.int64(), 1)]),
        )

    tasks = [table.task(file(i * 50)) for i in range(6)]
    assert table.read(*tasks, workers=4)["id"].to_pylist() == list(range(300))
    assert table.read(*tasks, workers=4, limit=120)["id"].to_pylist() == list(range(120))
    assert table.read(*tasks, limit=0).num_rows == 0
    assert sorted(table.read(*tasks, workers=3, ordered=False)["id"].to_pylist()) == list(
        range(300)
    )


def test_count_looks_at_rows_only_where_a_filter_must(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table(
        [pa.array(range(50), pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)])
    )
    plain, filtered = table.task(data), table.task(data, filter=LessThan("id", 7))
    scan = ArrowScan(table.metadata, table.io, table.schema)
    assert scan.count([plain, filtered]) == 57
    table.io.delete([plain.file.file_path])
    assert scan.count([plain]) == 50
    with pytest.raises(NoSuchFileError):
        scan.count([FileScanTask(plain.file, residual=filtered.residual)])


def test_a_task_carries_its_filter_bound_and_no_other_is_passed_over(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table(
        [pa.array(range(9), pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)])
    )
    task = table.task(data)
    bound = FileScanTask(task.file, residual=bind(table.schema, LessThan("ID", 2), False))
    assert table.read(bound)["id"].to_pylist() == [0, 1]
    scan = ArrowScan(table.metadata, table.io, table.schema)
    for ask in (scan.to_table, scan.count):
        with pytest.raises(ExpressionError, match="Not a bound expression") as caught:
            ask([FileScanTask(task.file, residual=LessThan("id", 2))])
        assert "bind" in caught.value.hint


def test_a_missing_required_column_is_an_error(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType(), required=True))
    data = pa.table([[1]], schema=pa.schema([with_id("other", pa.int64(), 2)]))
    with pytest.raises(CorruptFileError, match="'id'"):
        table.read(table.task(data))


def test_damaged_files_are_named(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table([[1]], schema=pa.schema([with_id("id", pa.int64(), 1)]))
    task = table.task(data)
    path = tmp_path / "0.parquet"
    good = path.read_bytes()
    path.write_bytes(good[:-20])
    with pytest.raises(CorruptFileError, match="its manifest says"):
        table.read(task)
    path.write_bytes(good[:-4] + b"NOPE")
    with pytest.raises(CorruptFileError, match=r"0\.parquet"):
        table.read(task)
    path.unlink()
    with pytest.raises(NoSuchFileError, match=r"0\.parquet"):
        table.read(task)


def test_a_batch_stream_can_be_left_early_and_raises_what_a_task_raises(tmp_path):
    table = Table(tmp_path, NestedField(1, "id", LongType()))
    data = pa.table(
        [pa.array(range(50), pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)])
    )
    tasks = [table.task(data) for _ in range(5)]
    scan = ArrowScan(table.metadata, table.io, table.schema, workers=3)
    batches = scan.to_record_batches(tasks)
    assert next(batches).num_rows == 50
    batches.close()
    table.io.delete([tasks[3].file.file_path])
    seen = []
    with pytest.raises(NoSuchFileError):
        seen.extend(scan.to_record_batches(tasks))
    assert len(seen) == 3


def test_rows_that_pyarrow_does_not_find_are_not_passed_over(tmp_path):
    """pyarrow 26 reads few truth values in lists, in pages of version 2, as no rows."""
    path = tmp_path / "v2.parquet"
    kind = pa.list_(pa.field("element", pa.bool_(), metadata={b"PARQUET:field_id": b"2"}))
    schema = pa.schema([pa.field("l", kind, metadata={b"PARQUET:field_id": b"1"})])
    pq.write_table(pa.table([[[True, True]]], schema=schema), path, data_page_version="2.0")
    reader = ParquetReader(FileIO(), str(path))
    try:
        found = [batch.to_pylist() for _, batch in reader.batches([0], [0], 100)]
    except CorruptFileError as error:
        assert "has 1 rows" in str(error)  # noqa: PT017 - or a pyarrow that reads them
    else:
        assert found == [[{"l": [True, True]}]]
    reader.close()


def test_a_column_name_that_is_no_utf8_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "names.parquet"
    pq.write_table(pa.table({"some_name": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"some_name", b"some_nam\xcd"))
    with pytest.raises(CorruptFileError, match=r"Cannot read data file .*names\.parquet"):
        ParquetReader(FileIO(), str(path))


def sparse(path, length):
    """Make a file of a few blocks that states a footer of this length."""
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.seek(length + 4)
        file.write(length.to_bytes(4, "little") + b"PAR1")


OPENED = {
    "read": lambda io, path, size: ParquetReader(io, path, None, size),
    "copy": lambda io, path, size: RawFooter(io, path, size, 1),
    "add": lambda io, path, _: FileDescriber(
        io, Schema(), MetricsConfig.from_properties({}, Schema())
    ).look(path),
}


@pytest.mark.parametrize("opened", OPENED)
def test_a_footer_is_not_read_that_is_larger_than_any(tmp_path, opened):
    path, peak = tmp_path / "f", pa.total_allocated_bytes()
    sparse(path, 600 << 20)
    with pytest.raises(CorruptFileError, match=r"limit \(ICECOMB_MAX_FOOTER_MIB: 256 MiB\)"):
        OPENED[opened](FileIO({}), str(path), path.stat().st_size)
    assert pa.total_allocated_bytes() - peak < 1 << 20


def test_large_footers_are_read_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(footer_reading, "LARGE_BYTES", 1)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f")
    source = pa.OSFile(str(tmp_path / "f"))
    with footer_reading._LARGE:
        thread = threading.Thread(target=footer_reading.read_footer, args=(source, "f"))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join()
