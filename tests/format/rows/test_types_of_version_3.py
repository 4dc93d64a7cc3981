"""Rows with nanoseconds and unknown values in all formats; columns that cannot be read or written."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    IcecombError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.property.table_property import NAME_MAPPING
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.spec.name_mapping import create_name_mapping
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import SortField, SortOrder
from icecomb.format.spec.transform import IdentityTransform, parse_transform
from icecomb.format.spec.types import (
    DateType,
    GeographyType,
    GeometryType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UnknownType,
    VariantType,
)

FORMATS = ("parquet", "orc", "avro")
MOMENTS = [1510871468123456789, 0, 1_700_000_000_000_000_001, None]
INSIDE = StructType(
    NestedField(6, "x", LongType()),
    NestedField(7, "nothing", UnknownType()),
    NestedField(8, "times", ListType(9, TimestampNanoType())),
)
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "t", TimestampNanoType()),
    NestedField(3, "z", TimestamptzNanoType()),
    NestedField(4, "u", UnknownType()),
    NestedField(5, "s", INSIDE),
)
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "t": pa.array(MOMENTS, pa.timestamp("ns")),
        "z": pa.array(MOMENTS, pa.timestamp("ns", "UTC")),
        "s": pa.array(
            [{"x": 1, "times": [1, None]}, None, {"x": 3, "times": None}, {"x": 4, "times": []}],
            pa.struct([("x", pa.int64()), ("times", pa.list_(pa.timestamp("ns")))]),
        ),
    }
)
OPAQUE = [VariantType(), GeometryType("EPSG:3857"), GeographyType("OGC:CRS84", "karney")]


@pytest.fixture
def create(tmp_path):
    """Makes tables of version 3 in a folder."""
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")

    def make(schema, spec=None, order=None, **properties):
        known = {"format-version": "3", **{k.replace("_", "."): v for k, v in properties.items()}}
        more = {"partition_spec": spec, "sort_order": order}
        given = {name: value for name, value in more.items() if value is not None}
        return catalog.create_table("db.t", schema, properties=known, **given)

    return make


def counts(column):
    return column.cast(pa.int64()).to_pylist()


def ids(table, row_filter):
    return sorted(table.scan(row_filter).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("file_format", FORMATS)
def test_nanoseconds_and_what_is_unknown_come_back(create, file_format):
    table = create(SCHEMA, write_format_default=file_format)
    table.append(ROWS)
    found = table.scan().to_arrow().sort_by("id")
    assert found.schema.equals(SCHEMA.as_arrow(), check_metadata=False)
    assert counts(found["t"]) == counts(found["z"]) == MOMENTS
    assert found["u"].null_count == 4
    inside = found["s"].combine_chunks()
    assert inside.is_valid().to_pylist() == [True, False, True, True]
    assert inside.field("x").to_pylist() == [1, None, 3, 4]
    lists = inside.field("times").cast(pa.list_(pa.int64())).to_pylist()
    assert lists == [[1, None], None, None, []]
    assert ids(table, "t = '2017-11-16T22:31:08.123456789'") == [1]
    assert ids(table, "z > '1970-01-01T00:00:00Z' and z < '2023-11-14T22:13:20.000000002Z'") == [
        1,
        3,
    ]
    assert ids(table, "u is null and day(t) = '2023-11-14'") == [3]
    assert ids(table, "u is not null") == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_have_nanoseconds_as_the_specification_says_and_nothing_unknown(create, file_format):
    table = create(SCHEMA, write_format_default=file_format)
    table.append(ROWS)
    (path,) = table.inspect.files()["file_path"].to_pylist()
    if file_format == "parquet":
        schema = pq.ParquetFile(path).schema
        kinds = {schema.column(i).path: schema.column(i) for i in range(len(schema))}
        assert list(kinds) == ["id", "t", "z", "s.x", "s.times.list.element"]
        for name, utc in (("t", "false"), ("z", "true"), ("s.times.list.element", "false")):
            assert kinds[name].physical_type == "INT64"
            logical = str(kinds[name].logical_type)
            assert f"isAdjustedToUTC={utc}, timeUnit=nanoseconds" in logical
        assert counts(pq.read_table(path)["t"]) == MOMENTS
    elif file_format == "orc":
        found = orc.ORCFile(path).schema
        assert found.names == ["id", "t", "z", "s"]
        assert [f.name for f in found.field("s").type] == ["x", "times"]
        units = {f.name: (f.metadata or {}).get(b"iceberg.timestamp-unit") for f in found}
        assert units == {"id": None, "t": b"NANOS", "z": b"NANOS", "s": None}
        assert (found.field("t").type.tz, found.field("z").type.tz) == (None, "UTC")
    else:
        with Path(path.removeprefix("file://")).open("rb") as file:
            reader = fastavro.reader(file)
            fields = {f["name"]: f["type"] for f in reader.writer_schema["fields"]}
            rows = list(reader)
        assert list(fields) == ["id", "t", "z", "s"]
        nanos = {"type": "long", "logicalType": "timestamp-nanos"}
        assert fields["t"] == ["null", {**nanos, "adjust-to-utc": False}]
        assert fields["z"] == ["null", {**nanos, "adjust-to-utc": True}]
        assert [row["t"] for row in rows] == MOMENTS


@pytest.mark.parametrize("file_format", FORMATS)
def test_nanoseconds_and_what_is_unknown_partition_a_table(create, file_format):
    spec = PartitionSpec(
        PartitionField(4, 1000, IdentityTransform(), "u"),
        PartitionField(2, 1001, IdentityTransform(), "t"),
        PartitionField(3, 1002, parse_transform("bucket[4]"), "z_bucket"),
        PartitionField(3, 1003, parse_transform("hour"), "z_hour"),
    )
    table = create(SCHEMA, spec, write_format_default=file_format)
    table.append(ROWS)
    table.append(ROWS.slice(3))
    paths = table.inspect.files()["file_path"].to_pylist()
    name = "u=null/t=2017-11-16T22%3A31%3A08.123456789/z_bucket=3/z_hour=2017-11-16-22/"
    assert len([path for path in paths if name in path]) == 1
    assert ids(table, "t = '2017-11-16T22:31:08.123456789'") == [1]
    assert len(list(table.scan("t = '2017-11-16T22:31:08.123456789'").plan_files())) == 1
    assert len(list(table.scan("z < '1970-01-01T01:00:00Z'").plan_files())) == 1
    assert ids(table, "t is null") == [4, 4]
    partitions = table.inspect.partitions()["partition"].combine_chunks()
    assert sorted(counts(partitions.field("t")), key=str) == sorted(MOMENTS, key=str)
    table.delete("t = '2017-11-16T22:31:08.123456789'")
    assert ids(table, "u is null") == [2, 3, 4, 4]


def test_files_keep_bounds_of_nanoseconds_and_are_sorted_by_them(create):
    order = SortOrder(1, [SortField(2, IdentityTransform())])
    table = create(SCHEMA, order=order)
    table.append(ROWS)
    (file,) = table.inspect.files().to_pylist()
    bounds = [dict(file[name]) for name in ("lower_bounds", "upper_bounds")]
    assert [int.from_bytes(each[2], "little") for each in bounds] == [0, 1_700_000_000_000_000_001]
    assert 4 not in {**dict(file["value_counts"]), **bounds[0]}
    found = table.scan().to_arrow()
    assert counts(found["t"]) == [None, 0, 1510871468123456789, 1_700_000_000_000_000_001]
    shown = table.inspect.files()["readable_metrics"].combine_chunks()
    assert counts(shown.field("t").field("upper_bound")) == [1_700_000_000_000_000_001]
    assert shown.field("u").field("upper_bound").null_count == 1


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_column_that_was_unknown_has_its_new_type_in_new_files(create, file_format):
    table = create(SCHEMA, write_format_default=file_format)
    table.append(ROWS)
    with table.update_schema() as update:
        update.update_column("u", "timestamptz_ns")
        update.update_column("s.nothing", "string")
    more = pa.table({"id": [5], "u": pa.array([7], pa.timestamp("ns", "UTC"))})
    table.append(more)
    found = table.scan().to_arrow().sort_by("id")
    assert counts(found["u"]) == [None] * 4 + [7]
    assert found["s"].combine_chunks().field("nothing").null_count == 5
    assert ids(table, "u is null") == [1, 2, 3, 4]
    assert ids(table, "u > '1970-01-01T00:00:00.000000006Z'") == [5]


def test_an_unknown_column_in_a_file_does_not_count(create):
    table = create(Schema(NestedField(1, "id", LongType()), NestedField(2, "u", LongType())))
    table.append(pa.table({"id": [1, 2], "u": [3, 4]}))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    table.delete("true")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("u", "unknown")
    table.add_files([path])
    assert table.scan().to_arrow()["u"].type == pa.null()
    assert ids(table, "u is null") == [1, 2]


@pytest.mark.parametrize(
    "kind",
    [
        ListType(3, UnknownType()),
        MapType(3, StringType(), 4, UnknownType()),
        StructType(NestedField(3, "x", UnknownType())),
        ListType(3, StructType(NestedField(4, "x", UnknownType()))),
    ],
)
def test_what_is_unknown_inside_a_value_cannot_be_written(create, kind):
    table = create(Schema(NestedField(1, "id", LongType()), NestedField(2, "c", kind)))
    with pytest.raises(UnsupportedError, match=r"'c.*' of type .*unknown"):
        table.append(pa.table({"id": [1]}))
    assert table.scan().to_arrow().num_rows == 0


def test_a_table_of_unknown_columns_only_cannot_be_written(create):
    table = create(Schema(NestedField(1, "u", UnknownType())))
    with pytest.raises(UnsupportedError, match="All columns are of type unknown"):
        table.append(pa.table({"u": pa.nulls(3)}))


def test_values_are_not_written_to_an_unknown_column(create):
    table = create(SCHEMA)
    with pytest.raises(SchemaError, match="u: unknown in the table, int64 in the data"):
        table.append(pa.table({"id": [1], "u": [2]}))


def test_a_moment_out_of_the_range_of_nanoseconds_is_refused(create):
    table = create(SCHEMA)
    far = pa.array([1 << 62], pa.timestamp("us"))
    with pytest.raises(SchemaError, match=r"'t': a value does not fit timestamp\[ns\]"):
        table.append(pa.table({"id": [1], "t": far}))
    assert table.scan().to_arrow().num_rows == 0


def test_other_units_are_written_as_nanoseconds(create):
    table = create(SCHEMA)
    table.append(pa.table({"id": [1], "t": pa.array([5], pa.timestamp("us"))}))
    table.append(pa.table({"id": [2], "t": pa.array([5], pa.timestamp("s"))}))
    found = table.scan().to_arrow().sort_by("id")
    assert counts(found["t"]) == [5_000, 5_000_000_000]


def test_nanoseconds_before_1970_that_orc_would_change_are_refused(create):
    table = create(SCHEMA, write_format_default="orc")
    whole = pa.table({"id": [1], "t": pa.array([-3_000_000_000], pa.timestamp("ns"))})
    table.append(whole)
    assert counts(table.scan().to_arrow()["t"]) == [-3_000_000_000]
    broken = pa.table({"id": [1], "t": pa.array([-3_000_000_001], pa.timestamp("ns"))})
    with pytest.raises(UnsupportedError, match="-3000000001 nanoseconds"):
        table.append(broken)


def test_orc_keeps_nanoseconds_beside_moments_that_do_not_fit_them(create):
    schema = Schema(
        NestedField(1, "t", TimestampNanoType()), NestedField(2, "far", TimestamptzType())
    )
    table = create(schema, write_format_default="orc")
    far = pa.array([253402300799000000], pa.timestamp("us", "UTC"))
    table.append(pa.table({"t": pa.array([1510871468123456789], pa.timestamp("ns")), "far": far}))
    found = table.scan().to_arrow()
    assert counts(found["t"]) == [1510871468123456789]
    assert counts(found["far"]) == [253402300799000000]


def test_orc_refuses_nanoseconds_in_a_struct_with_moments_that_do_not_fit_them(create):
    inside = StructType(
        NestedField(2, "t", TimestampNanoType()), NestedField(3, "far", TimestamptzType())
    )
    table = create(Schema(NestedField(1, "s", inside)), write_format_default="orc")
    kind = pa.struct([("t", pa.timestamp("ns")), ("far", pa.timestamp("us", "UTC"))])
    table.append(pa.table({"s": pa.array([{"t": 1, "far": 253402300799000000}], kind)}))
    with pytest.raises(UnsupportedError, match=r"'s.t' cannot be read in nanoseconds"):
        table.scan().to_arrow()


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_upserted_and_merged_by_nanoseconds(create, mode):
    columns = Schema(
        NestedField(1, "t", TimestampNanoType(), required=True),
        NestedField(2, "z", TimestamptzNanoType()),
        NestedField(3, "u", UnknownType()),
        identifier_field_ids=(1,),
    )
    table = create(columns, write_merge_mode=mode, write_update_mode=mode)

    def rows(moments, number):
        fields = [
            pa.field("t", pa.timestamp("ns"), nullable=False),
            ("z", pa.timestamp("ns", "UTC")),
        ]
        return pa.table([pa.array(moments, pa.timestamp("ns")), pa.array([number] * len(moments), pa.timestamp("ns", "UTC"))], schema=pa.schema(fields))  # fmt: skip

    def found():
        read = table.scan().to_arrow()
        return dict(zip(counts(read["t"]), counts(read["z"]), strict=True))

    table.append(rows([1, 2, 1001], 1))
    table.upsert(rows([2, 3], 2))
    assert found() == {1: 1, 2: 2, 3: 2, 1001: 1}
    merge = table.merge(rows([1, 2, 1002], 1003), on=["t"])
    above = "t.t > TIMESTAMP_NS '1970-01-01 00:00:00.000000001'"
    merge.when_matched_update_all(above, except_cols=["u"])
    merge.when_not_matched_insert_all(except_cols=["u"]).execute()
    assert found() == {1: 1, 2: 1003, 3: 2, 1001: 1, 1002: 1003}
    merge = table.merge(rows([1], 5), on=["t"]).when_matched_update({"z": "s.z + INTERVAL 1 DAY"})
    with pytest.raises(UnsupportedError, match="DuckDB would cut column 'z'"):
        merge.execute()
    table.merge(rows([1], 5), on=["t"]).when_matched_update({"z": "s.z"}).execute()
    assert found()[1] == 5
    with pytest.raises(ValidationError, match=r"t='1970-01-01T00:00:00\.000000001'"):
        table.upsert(rows([1, 1], 6))
    with pytest.raises(ValidationError, match=r"'u' \(unknown\) cannot be a key"):
        table.upsert(rows([1], 6), join_cols=["u"])


@pytest.mark.parametrize("file_format", FORMATS)
def test_rewritten_files_keep_nanoseconds_and_leave_out_what_is_unknown(create, file_format):
    least = {"icecomb_maintenance_copy-min-row-group-bytes": "1"}
    table = create(SCHEMA, write_format_default=file_format, **least)
    table.append(ROWS.slice(0, 2))
    table.append(ROWS.slice(2))
    before = table.scan().to_arrow().sort_by("id")
    for order in (None, "z DESC", "zorder(t, id)"):
        plan = {} if order is None else {"strategy": "sort", "sort_order": order}
        copy = "require" if file_format == "parquet" and order is None else "auto"
        options = {"rewrite-all": "true", "copy": copy}
        done = table.maintenance.rewrite_data_files(options=options, **plan)
        assert done.added_data_files_count == 1
        found = table.scan().to_arrow()
        assert found.sort_by("id").equals(before)
        if order == "z DESC":
            assert counts(found["z"])[:2] == [1_700_000_000_000_000_001, 1510871468123456789]


def test_filters_of_polars_and_arrow_keep_nanoseconds(create):
    table = create(SCHEMA)
    for row in range(4):
        table.append(ROWS.slice(row, 1))
    moment = pl.lit(MOMENTS[0]).cast(pl.Datetime("ns"))
    t, z = pl.col("t"), pl.col("z")
    whole = table.scan().to_polars().collect()
    for chosen in (
        t == moment,
        t <= moment,
        t < moment,
        t.is_in(pl.Series([MOMENTS[2]]).cast(pl.Datetime("ns")).implode()),
        z >= moment.dt.replace_time_zone("UTC"),
        t.is_between(moment, moment),
    ):
        found = table.scan().to_polars().filter(chosen).collect()
        assert sorted(found["id"]) == sorted(whole.filter(chosen)["id"]), chosen
    scalar = pa.scalar(MOMENTS[0], pa.timestamp("ns"))
    assert ids(table, pc.field("t") == scalar) == [1]
    assert ids(table, pc.field("t") < scalar) == [2]
    assert ids(table, pc.field("t").isin([scalar])) == [1]


@pytest.mark.parametrize(
    ("units", "problem"),
    [
        ({"coerce_timestamps": None}, None),
        ({"coerce_timestamps": "us"}, "it holds microseconds, the column has nanoseconds"),
        ({"use_deprecated_int96_timestamps": True}, r"INT96, which Iceberg Java .* miss rows"),
    ],
)
def test_files_are_added_whose_times_are_in_nanoseconds(create, tmp_path, units, problem):
    table = create(Schema(NestedField(1, "t", TimestampNanoType())))
    path = str(tmp_path / "given.parquet")
    pq.write_table(pa.table({"t": pa.array([1_001, 2_002], pa.timestamp("ns"))}), path, **units,
                   allow_truncated_timestamps="coerce_timestamps" in units)  # fmt: skip
    if problem is not None:
        with pytest.raises(IcecombError, match=problem):
            table.add_files([path])
        return
    table.add_files([path])
    assert counts(table.scan("t > '1970-01-01T00:00:00.000001001'").to_arrow()["t"]) == [2_002]
    (file,) = table.inspect.files().to_pylist()
    bounds = [dict(file[name])[1] for name in ("lower_bounds", "upper_bounds")]
    assert [int.from_bytes(each, "little") for each in bounds] == [1_001, 2_002]


def test_int96_in_batches_keeps_its_nanoseconds_and_that_of_other_columns_its_range(
    create, tmp_path
):
    fields = ((1, "id", LongType()), (2, "t", TimestampNanoType()), (3, "u", TimestampType()))
    table = create(Schema(*(NestedField(*each) for each in fields)))
    path, moments = str(tmp_path / "given.parquet"), [n * 7_001 - 10**9 for n in range(3_000)]
    moments[5] = None
    old = pa.array([-(15 * 10**15)] * 3_000, pa.timestamp("us"))  # in 1494
    given = pa.table(
        {"id": range(3_000), "t": pa.array(moments, pa.int64()).cast(pa.timestamp("ns")), "u": old}
    )
    pq.write_table(given, path, use_deprecated_int96_timestamps=True, row_group_size=700)
    with table.update_properties() as update:
        update.set(NAME_MAPPING.key, create_name_mapping(table.schema()).to_json())
    size = Path(path).stat().st_size
    file = DataFile(file_path=path, record_count=3_000, file_size_in_bytes=size)
    table.commit(table.new_fast_append().append_data_file(file))
    read = table.scan().to_arrow()
    assert counts(read["t"]) == moments
    assert read["u"].combine_chunks().equals(old)
    assert table.scan("t is null").to_arrow()["id"].to_pylist() == [5]
    assert table.scan(selected_fields=("u",)).to_arrow()["u"].combine_chunks().equals(old)
    reader = ParquetReader(table.io, path, table.metadata.name_mapping(), nanoseconds=[2])
    pieces = [batch for _, batch in reader.batches([2, 1], [0, 2, 3, 4], 100)]
    reader.close()
    assert max(batch.num_rows for batch in pieces) == 100
    left = [*moments[:700], *moments[1400:]]
    assert counts(pa.Table.from_batches(pieces)["t"]) == left


def test_int96_inside_other_columns_is_not_added_as_nanoseconds(create, tmp_path):
    inner = StructType(NestedField(2, "t", TimestampNanoType()))
    table = create(Schema(NestedField(1, "s", inner)))
    path = str(tmp_path / "given.parquet")
    kind = pa.struct({"t": pa.timestamp("ns")})
    given = pa.table({"s": pa.array([{"t": 1}], kind)})
    pq.write_table(given, path, use_deprecated_int96_timestamps=True)
    with pytest.raises(SchemaError, match="INT96, which is read as microseconds inside"):
        table.add_files([path])


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("wider", [TimestamptzNanoType(), TimestamptzType()])
def test_dates_do_not_become_instants(create, file_format, wider):
    table = create(Schema(NestedField(1, "d", DateType())), write_format_default=file_format)
    table.append(pa.table({"d": pa.array([1], pa.date32())}))
    with pytest.raises(SchemaError, match="type of column 'd' from date to timestamp"):
        table.update_schema().update_column("d", wider)
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("d", wider)
    with pytest.raises(ValidationError, match=r"'d' is timestamp.* cannot be read as"):
        table.scan().to_arrow()


def test_duckdb_gets_no_column_that_it_would_cut(create):
    table = create(SCHEMA)
    table.append(ROWS)
    with pytest.raises(
        UnsupportedError, match="DuckDB would cut column 'z' of type timestamptz_ns"
    ):
        table.scan().to_duckdb(duckdb.connect())
    found = table.scan(selected_fields=("id", "t", "u")).to_duckdb(duckdb.connect())
    read = found.select("id, epoch_ns(t), u").order("id").fetchall()
    assert read == [(n + 1, moment, None) for n, moment in enumerate(MOMENTS)]


@pytest.fixture(params=OPAQUE, ids=str)
def mixed(request, create):
    """A table with rows, to which another engine added a column that cannot be read."""
    table = create(Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType())))
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
    with table.update_schema() as update:
        update.add_column("v", request.param)
    return table


def test_other_columns_of_a_table_are_read_by_plan(mixed):
    kind = str(mixed.schema().find_type("v"))
    assert mixed.scan(selected_fields=("id", "name")).to_arrow().num_rows == 3
    assert mixed.scan("id > 1", selected_fields=("name",)).to_arrow()["name"].to_pylist() == [
        "b",
        "c",
    ]
    assert mixed.scan().count() == 3
    assert mixed.inspect.files().num_rows == 1
    assert mixed.inspect.position_deletes().num_rows == 0
    assert kind in str(mixed.schema())
    mixed.delete("id >= 1")
    assert mixed.scan().count() == 0


@pytest.mark.parametrize("mixed", OPAQUE[1:], indirect=True, ids=str)
def test_columns_that_cannot_be_written_are_refused_by_name(mixed):
    kind = re.escape(str(mixed.schema().find_type("v")))
    for attempt in (
        lambda: mixed.append(pa.table({"id": [4]})),
        lambda: mixed.overwrite(pa.table({"id": [4]}), "id = 1"),
        lambda: mixed.delete("id = 1"),
    ):
        with pytest.raises(UnsupportedError, match=rf"'v' is of type {kind}: .* be .*written"):
            attempt()
    for row_filter in ("v is null", "v = 'x'"):
        with pytest.raises(UnsupportedError, match=rf"Cannot filter by v: values of type {kind}"):
            mixed.scan(row_filter, selected_fields=("id",)).to_arrow()
    assert mixed.scan(selected_fields=("id",)).to_arrow().num_rows == 3


def test_shapes_are_not_read_and_variants_are(mixed):
    kind = mixed.schema().find_type("v")
    attempts = (
        lambda: mixed.scan().to_arrow()["v"].type,
        lambda: mixed.scan(selected_fields=("id", "v")).to_arrow()["v"].type,
        lambda: mixed.schema().as_arrow().field("v").type,
    )
    for attempt in attempts:
        if isinstance(kind, VariantType):
            assert str(attempt()) == "struct<metadata: binary not null, value: binary not null>"
        else:
            with pytest.raises(UnsupportedError, match=rf"'v' is of type {re.escape(str(kind))}"):
                attempt()


def test_columns_that_cannot_be_read_partition_sort_and_identify_nothing(mixed):
    def partitioned():
        with mixed.update_spec() as update:
            update.add_field("v", IdentityTransform(), "p")

    def sorted_by():
        with mixed.update_sort_order() as update:
            update.asc("v", IdentityTransform())

    def identified():
        with mixed.update_schema(allow_incompatible_changes=True) as update:
            update.set_identifier_fields("v")

    def keyed():
        mixed.upsert(pa.table({"id": [1]}), join_cols=["v"])

    for attempt, what in (
        (partitioned, "partition or sort by 'v'"),
        (sorted_by, "partition or sort by 'v'"),
        (identified, "'v' .* cannot identify rows"),
        (keyed, "'v' .* cannot be a key"),
    ):
        with pytest.raises(UnsupportedError, match=rf"{what}.*such values cannot be compared"):
            attempt()


def test_a_new_table_is_not_partitioned_by_what_cannot_be_read(create):
    schema = Schema(NestedField(1, "v", VariantType()), NestedField(2, "id", LongType()))
    with pytest.raises(UnsupportedError, match="partition or sort by 'v' of type variant"):
        create(schema, PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "v")))
