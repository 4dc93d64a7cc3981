"""What once gave wrong rows, or an error, when Spark's own Parquet reader and writer met Iceberg."""

from __future__ import annotations

import itertools
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as peer

from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.snapshot_producer import parent_manifests
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DecimalType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from tests.format.rows.parquet_file import data_file_from_parquet
from tests.rings import sampled

ROWS = 10_000
DELETE_FILE = pa.schema(
    [
        pa.field(
            "file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}
        ),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


class RowDeletion(FastAppend):
    """Commits position delete files."""

    def __init__(self, table, files):
        super().__init__(table.io)
        self._delete_files = files

    @property
    def operation(self):
        return "delete"

    def manifests(self, base, parent):
        written = self.write_manifests(base, 0, self._delete_files, ManifestContent.DELETES)
        return [*written, *parent_manifests(self.io, base, parent)]

    def summary(self, base):
        counts = self.new_summary(base)
        for file in self._delete_files:
            counts.add_file(file, base.spec())
        return counts.to_map()


@pytest.fixture(scope="module")
def namespace(catalog) -> Iterator[str]:
    catalog.create_namespace("traps")
    yield "traps"
    for identifier in catalog.list_tables("traps"):
        catalog.drop_table(identifier)
    catalog.drop_namespace("traps")


@pytest.fixture(scope="module")
def create(catalog, namespace) -> Callable:
    numbers = itertools.count()

    def make(*fields, properties=None):
        return catalog.create_table(
            (namespace, f"t{next(numbers)}"), Schema(fields=fields), properties=properties
        )

    return make


@pytest.fixture
def rename(pyiceberg) -> Callable:
    """Renames columns one after the other, with PyIceberg."""

    def run(table, *pairs):
        for old, new in pairs:
            with pyiceberg.load_table(".".join(table.identifier)).update_schema() as update:
                update.rename_column(old, new)

    return run


def name(table):
    return f"lake.{'.'.join(table.identifier)}"


def local(location):
    return Path(re.sub(r"^file:(//)?", "", location))


def field(label, arrow_type, field_id):
    return pa.field(label, arrow_type, metadata={"PARQUET:field_id": str(field_id)})


def add_file(table, data, label="data", **writer):
    """Adds a Parquet file written by pyarrow; returns its path as in the manifest."""
    location = f"{table.location()}/data/{label}.parquet"
    local(location).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, local(location), **writer)
    table.refresh()
    append = table.new_fast_append()
    append.append_data_file(
        data_file_from_parquet(
            table.io,
            location,
            table.schema(),
            table.spec(),
            (),
            table.metadata.name_mapping(),
        )
    )
    table.commit(append)
    return location


def delete_rows(table, path, positions):
    """Commits one position delete file."""
    location = f"{table.location()}/data/deletes-{uuid.uuid4()}.parquet"
    rows = pa.table([[path] * len(positions), sorted(positions)], schema=DELETE_FILE)
    pq.write_table(rows, local(location))
    table.commit(
        RowDeletion(
            table,
            [
                DataFile(
                    content=DataFileContent.POSITION_DELETES,
                    file_path=location,
                    file_format=FileFormat.PARQUET,
                    partition=(),
                    record_count=len(positions),
                    file_size_in_bytes=local(location).stat().st_size,
                    spec_id=0,
                )
            ],
        )
    )


def rows(spark, sql):
    return [tuple(row) for row in spark.sql(sql).collect()]


def parquet_files(table):
    return sorted(local(table.location()).rglob("*.parquet"))


# Filters and columns are found by field id, never by name


def test_a_filter_on_two_columns_that_swapped_names_finds_the_right_rows(spark, create, rename):
    table = create(NestedField(1, "a", StringType()), NestedField(2, "b", StringType()))
    data = pa.table(
        {"a": [f"a{i}" for i in range(ROWS)], "b": [f"b{i}" for i in range(ROWS)]},
        schema=pa.schema([field("a", pa.string(), 1), field("b", pa.string(), 2)]),
    )
    add_file(table, data, row_group_size=1000)
    rename(table, ("a", "c"), ("b", "a"), ("c", "b"))
    assert rows(spark, f"SELECT a, b FROM {name(table)} WHERE b = 'a77'") == [("b77", "a77")]


def test_columns_of_other_types_that_swapped_names_are_read_together(spark, create, rename):
    table = create(NestedField(1, "a", IntegerType()), NestedField(2, "b", StringType()))
    data = pa.table(
        {"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]},
        schema=pa.schema([field("a", pa.int32(), 1), field("b", pa.string(), 2)]),
    )
    add_file(table, data)
    rename(table, ("a", "c"), ("b", "a"), ("c", "b"))
    assert rows(spark, f"SELECT a, b FROM {name(table)} WHERE b > 1") == [("y", 2)]


def test_nested_fields_follow_their_ids_through_structs_lists_and_maps(spark, create, rename):
    def pair(first_id):
        fields = (
            NestedField(first_id, "x", IntegerType()),
            NestedField(first_id + 1, "y", StringType()),
        )
        return StructType(fields)

    table = create(
        NestedField(1, "s", pair(20)),
        NestedField(2, "l", ListType(10, pair(30), element_required=False)),
        NestedField(3, "m", MapType(11, StringType(), 12, pair(40), value_required=False)),
    )
    schema = table.schema()

    def struct(path):
        ids = [schema.find_field(f"{path}.{part}").field_id for part in "xy"]
        return pa.struct([field("x", pa.int32(), ids[0]), field("y", pa.string(), ids[1])])

    data = pa.table(
        {
            "s": [{"x": 1, "y": "one"}],
            "l": [[{"x": 2, "y": "two"}]],
            "m": [[("k", {"x": 3, "y": "three"})]],
        },
        schema=pa.schema(
            [
                field("s", struct("s"), schema.find_field("s").field_id),
                field(
                    "l",
                    pa.list_(
                        field(
                            "element", struct("l.element"), schema.find_field("l.element").field_id
                        )
                    ),
                    schema.find_field("l").field_id,
                ),
                field(
                    "m", pa.map_(pa.string(), struct("m.value")), schema.find_field("m").field_id
                ),
            ]
        ),
    )
    add_file(table, data)
    for path in ("s", "l.element", "m.value"):
        for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
            rename(table, (f"{path}.{old}", new))
    selected = "s.x, s.y, l[0].x, l[0].y, m['k'].x, m['k'].y"
    assert rows(spark, f"SELECT {selected} FROM {name(table)} WHERE s.x = 'one'") == [
        ("one", 1, "two", 2, "three", 3)
    ]


def test_a_column_that_a_file_lacks_is_null_also_under_the_name_of_an_old_one(
    spark, create, pyiceberg
):
    table = create(NestedField(1, "a", IntegerType()), NestedField(2, "b", IntegerType()))
    data = pa.table(
        {"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())},
        schema=pa.schema([field("a", pa.int32(), 1), field("b", pa.int32(), 2)]),
    )
    add_file(table, data)
    with pyiceberg.load_table(".".join(table.identifier)).update_schema() as update:
        update.delete_column("b")
    with pyiceberg.load_table(".".join(table.identifier)).update_schema() as update:
        update.add_column("b", peer.IntegerType())
    assert rows(spark, f"SELECT a, b FROM {name(table)}") == [(1, None)]
    assert rows(spark, f"SELECT a FROM {name(table)} WHERE b IS NULL") == [(1,)]
    assert rows(spark, f"SELECT a FROM {name(table)} WHERE b = 2") == []


def test_files_without_ids_are_read_by_the_name_mapping(spark, create, rename):
    inner = StructType((NestedField(3, "x", LongType()), NestedField(4, "y", StringType())))
    mapping = (
        '[{"field-id": 1, "names": ["id", "ID"]},'
        ' {"field-id": 2, "names": ["s"], "fields": ['
        '{"field-id": 3, "names": ["x"]}, {"field-id": 4, "names": ["y"]}]}]'
    )
    table = create(
        NestedField(1, "id", LongType()),
        NestedField(2, "s", inner),
        properties={"schema.name-mapping.default": mapping},
    )
    add_file(table, pa.table({"ID": [1, 2, 3], "s": [{"x": i, "y": f"y{i}"} for i in (1, 2, 3)]}))
    rename(table, ("id", "key"), ("s.x", "number"))
    sql = f"SELECT key, s.number, s.y FROM {name(table)} WHERE key = 2 AND s.number = 2"
    assert rows(spark, sql) == [(2, 2, "y2")]


# Only what is understood whole is pushed


def test_an_or_with_a_branch_that_cannot_be_pushed_loses_no_rows(spark, create):
    table = create(NestedField(1, "i", LongType()))
    schema = pa.schema([field("i", pa.int64(), 1)])
    add_file(table, pa.table({"i": range(ROWS)}, schema=schema), row_group_size=1000)
    sql = f"SELECT count(*) FROM {name(table)} WHERE i % 1000 = 3 OR i > 9990"
    assert rows(spark, sql) == [(19,)]
    sql = f"SELECT count(*) FROM {name(table)} WHERE NOT (i < 9990 AND i % 10 < 10)"
    assert rows(spark, sql) == [(10,)]


def test_a_filter_of_a_promoted_type_is_not_compared_with_narrower_statistics(
    spark, create, pyiceberg
):
    table = create(
        NestedField(1, "i", IntegerType()),
        NestedField(2, "f", FloatType()),
        NestedField(3, "d", DecimalType(9, 2)),
    )
    columns = {
        "i": pa.array(range(100), pa.int32()),
        "f": pa.array([float(i) for i in range(100)], pa.float32()),
        "d": pa.array([Decimal(i) for i in range(100)], pa.decimal128(9, 2)),
    }
    schema = pa.schema(
        [
            field("i", pa.int32(), 1),
            field("f", pa.float32(), 2),
            field("d", pa.decimal128(9, 2), 3),
        ]
    )
    add_file(
        table, pa.table(columns, schema=schema), row_group_size=10, store_decimal_as_integer=True
    )
    with pyiceberg.load_table(".".join(table.identifier)).update_schema() as update:
        update.update_column("i", peer.LongType())
        update.update_column("f", peer.DoubleType())
        update.update_column("d", peer.DecimalType(18, 2))
    count = f"SELECT count(*), sum(i), max(f), max(d) FROM {name(table)} WHERE "
    everything = [(100, 4950, 99.0, Decimal("99.00"))]
    # each literal wraps round to a small number when it is squeezed into the file's type
    assert rows(spark, count + "i < 4294967297") == everything
    assert rows(spark, count + "f < 1e300") == everything
    assert rows(spark, count + "d < 42949672.97BD") == everything
    assert rows(spark, count + "d > -42949672.97BD") == everything


# Files in parts, row positions, metadata columns


def test_a_file_read_in_several_parts_gives_every_row_once_with_its_position(spark, create):
    table = create(NestedField(1, "i", LongType()))
    schema = pa.schema([field("i", pa.int64(), 1)])
    path = add_file(table, pa.table({"i": range(ROWS)}, schema=schema), row_group_size=500)
    frame = spark.read.option("split-size", "20000").table(name(table))
    assert frame.rdd.getNumPartitions() > 1
    frame.selectExpr("i", "_pos", "_file", "_spec_id").createOrReplaceTempView("parts")
    sql = "SELECT count(*), sum(i), count_if(i = _pos), count(DISTINCT _pos), max(_file) FROM parts"
    assert rows(spark, sql) == [(ROWS, sum(range(ROWS)), ROWS, ROWS, path)]
    assert rows(spark, "SELECT _pos, _spec_id FROM parts WHERE i = 7777") == [(7777, 0)]


@pytest.mark.parametrize("page_index", sampled([True, False], keep=1))
def test_deleted_rows_are_skipped_with_and_without_a_page_index(spark, create, page_index):
    table = create(
        NestedField(1, "i", LongType()),
        NestedField(2, "s", StructType((NestedField(3, "t", StringType()),))),
        NestedField(4, "l", ListType(5, LongType(), element_required=False)),
    )
    ids = {
        path: table.schema().find_field(path).field_id
        for path in ("i", "s", "s.t", "l", "l.element")
    }
    data = pa.table(
        {
            "i": range(ROWS),
            "s": [{"t": f"v{i}"} if i % 10 else None for i in range(ROWS)],
            "l": [[i] * (i % 3) for i in range(ROWS)],
        },
        schema=pa.schema(
            [
                field("i", pa.int64(), ids["i"]),
                field("s", pa.struct([field("t", pa.string(), ids["s.t"])]), ids["s"]),
                field("l", pa.list_(field("element", pa.int64(), ids["l.element"])), ids["l"]),
            ]
        ),
    )
    path = add_file(
        table, data, row_group_size=4000, write_page_index=page_index, data_page_size=2000
    )
    add_file(table, data.slice(0, 10), "untouched")
    # of the second row group all rows; a row is alone between two long runs
    runs = {*range(500, 2000), *range(2001, 3500), *range(3990, 8000), *range(8001, 9500)}
    single = {0, ROWS - 1, *random.Random(7).sample(range(ROWS), ROWS // 7)}
    deleted = runs | single - {2000, 8000}
    delete_rows(table, path, deleted)
    live = [i for i in range(ROWS) if i not in deleted]
    sql = (
        "SELECT count(*), sum(i), sum(_pos), count(s), max(s.t), sum(size(l)) "
        f"FROM {name(table)} WHERE _file = '{path}'"
    )
    expected = (
        len(live),
        sum(live),
        sum(live),
        sum(1 for i in live if i % 10),
        max(f"v{i}" for i in live if i % 10),
        sum(i % 3 for i in live),
    )
    assert rows(spark, sql) == [expected]
    found = [i for i in live if 1990 < i < 4100]
    sql = f"SELECT i, _pos FROM {name(table)} WHERE i > 1990 AND i < 4100 ORDER BY i"
    assert rows(spark, sql) == [(i, i) for i in found]
    assert rows(spark, f"SELECT count(*) FROM {name(table)}") == [(len(live) + 10,)]


@pytest.mark.parametrize("page_index", sampled([True, False], keep=1))
def test_a_file_with_no_row_left_gives_none(spark, create, page_index):
    table = create(NestedField(1, "i", LongType()))
    data = pa.table({"i": range(1000)}, schema=pa.schema([field("i", pa.int64(), 1)]))
    path = add_file(table, data, row_group_size=100, write_page_index=page_index)
    delete_rows(table, path, range(1000))
    assert rows(spark, f"SELECT count(*), sum(i) FROM {name(table)}") == [(0, None)]


def test_uuids_are_shown_as_text_and_stored_as_sixteen_bytes(spark, create, pyiceberg):
    table = create(
        NestedField(1, "u", UUIDType()),
        NestedField(2, "s", StructType((NestedField(3, "u", UUIDType()),))),
        NestedField(4, "f", FixedType(3)),
    )
    text = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    spark.sql(
        f"INSERT INTO {name(table)} VALUES ('{text}', named_struct('u', '{text}'), X'010203'), "
        "(NULL, NULL, NULL)"
    )
    sql = f"SELECT u, s.u, f FROM {name(table)} WHERE u = '{text}'"
    assert rows(spark, sql) == [(text, text, b"\x01\x02\x03")]
    for file in parquet_files(table):
        columns = map(pq.ParquetFile(file).schema.column, range(3))
        assert {c.path: (c.physical_type, c.length) for c in columns} == {
            "u": ("FIXED_LEN_BYTE_ARRAY", 16),
            "s.u": ("FIXED_LEN_BYTE_ARRAY", 16),
            "f": ("FIXED_LEN_BYTE_ARRAY", 3),
        }
    seen = pyiceberg.load_table(".".join(table.identifier)).scan().to_arrow().to_pylist()
    assert {"u": uuid.UUID(text), "s": {"u": uuid.UUID(text)}, "f": b"\x01\x02\x03"} in seen


# What Spark's writer leaves out or does otherwise


def test_every_field_of_a_written_file_has_its_id_and_no_timestamp_is_int96(spark, create):
    def lists(first_id):
        struct = StructType((NestedField(first_id + 1, "x", IntegerType()),))
        return ListType(first_id, struct, element_required=False)

    table = create(
        NestedField(1, "ts", TimestamptzType()),
        NestedField(2, "l", ListType(10, lists(20), element_required=False)),
        NestedField(3, "m", MapType(11, StringType(), 12, lists(30), value_required=False)),
    )
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        spark.sql(
            f"INSERT INTO {name(table)} SELECT timestamp'2024-01-01', "
            "array(array(named_struct('x', 1))), map('k', array(named_struct('x', 2)))"
        )
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    (file,) = parquet_files(table)
    text = str(pq.ParquetFile(file).schema)
    written = {
        int(found[1]): found[2]
        for found in re.finditer(r"field_id=(\d+) (\w+)", text)
        if found[2] not in {"list", "key_value"}
    }
    schema = table.schema()
    assert written == {field_id: schema.find_field(field_id).name for field_id in schema.field_ids}
    assert "int64 field_id=1 ts" in text
    assert rows(spark, f"SELECT l[0][0].x, m['k'][0].x FROM {name(table)}") == [(1, 2)]


def test_names_and_comments_bring_no_setting_into_a_written_file(spark, create):
    """Spark keeps columns in Hadoop's settings, where `${...}` is another one or a variable."""
    text = "${user.home} ${env.PATH} ${fs.defaultFS}"
    table = create(
        NestedField(1, "i", LongType()),
        NestedField(2, "${user.home}", StringType(), doc=text),
    )
    spark.sql(f"INSERT INTO {name(table)} VALUES (1, 'x')")
    (file,) = parquet_files(table)
    told = pq.read_metadata(file).metadata[b"org.apache.spark.sql.parquet.row.metadata"]
    _, column = json.loads(told)["fields"]
    assert (column["name"], column["metadata"]["comment"]) == ("${user.home}", text)
    assert rows(spark, f"SELECT * FROM {name(table)}") == [(1, "x")]


def test_ids_of_the_queried_table_do_not_travel_into_the_written_files(spark, create):
    source = create(NestedField(1, "pad", LongType()), NestedField(2, "b", StringType()))
    spark.sql(f"INSERT INTO {name(source)} VALUES (1, 'x')")
    target = create(NestedField(1, "b", StringType()))
    spark.sql(f"INSERT INTO {name(target)} SELECT b FROM {name(source)}")
    (file,) = parquet_files(target)
    assert "field_id=1 b" in str(pq.ParquetFile(file).schema)
    spark.sql(f"CREATE TABLE {name(target)}_ctas USING iceberg AS SELECT b FROM {name(source)}")
    assert rows(spark, f"SELECT b FROM {name(target)}_ctas") == [("x",)]


def test_written_files_have_a_page_index_and_no_checksum_file_beside_them(spark, create):
    table = create(NestedField(1, "i", LongType()))
    spark.sql(f"INSERT INTO {name(table)} SELECT id FROM range(1000)")
    files = parquet_files(table)
    assert all(
        pq.ParquetFile(file).metadata.row_group(0).column(0).has_offset_index for file in files
    )
    assert list(local(table.location()).rglob("*.crc")) == []
    path = rows(spark, f"SELECT max(_file) FROM {name(table)}")[0][0]
    delete_rows(table.refresh(), path, [0])
    assert rows(spark, f"SELECT count(*) FROM {name(table)}") == [(999,)]


@pytest.mark.full("all transforms; those of Python are in the gate")
def test_rows_go_into_the_partitions_that_another_implementation_expects(
    spark, pyiceberg, namespace
):
    table = f"{namespace}.partitions"
    spark.sql(
        f"CREATE TABLE lake.{table} (id BIGINT, i INT, s STRING, d DECIMAL(9,2), b BINARY, "
        "dt DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, e DATE) USING iceberg PARTITIONED BY (bucket(16, id), "
        "bucket(7, s), bucket(5, d), bucket(5, b), bucket(5, dt), truncate(10, i), truncate(3, s), "
        "days(ts), months(dt), hours(n), years(e), i)"
    )
    spark.sql(
        f"INSERT INTO lake.{table} SELECT id - 20, int(id - 20), concat('wörd', id), "
        "cast(id - 20 as decimal(9,2)) / 3, cast(concat('b', id) as binary), "
        "date_add(date'1969-12-20', int(id)), timestamp'1969-12-31 12:00:00' + "
        "make_interval(0, 0, 0, 0, int(id)), timestamp_ntz'1969-12-31 20:00:00' + "
        "make_interval(0, 0, 0, 0, int(id)), date_add(date'1965-12-20', 90 * int(id)) FROM range(40)"
    )
    spark.sql(
        f"INSERT INTO lake.{table} VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    other = pyiceberg.load_table(table)
    schema, spec = other.schema(), other.spec()
    columns = {
        partition: (
            schema.find_field(partition.source_id).name,
            partition.transform.transform(schema.find_type(partition.source_id)),
        )
        for partition in spec.fields
    }
    checked = 0
    for task in other.scan().plan_files():
        data = pq.read_table(local(task.file.file_path), partitioning=None)
        for position, partition in enumerate(spec.fields):
            column, transform = columns[partition]
            internal = _internal(data.column(column))
            assert {transform(value) for value in internal} == {task.file.partition[position]}
            checked += len(internal)
    assert checked == 41 * len(spec.fields)


def _internal(column):
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).to_pylist()
    return column.to_pylist()


def test_a_write_that_fails_leaves_no_file_and_no_snapshot(spark, create):
    table = create(NestedField(1, "i", LongType()))
    # the first task is long done when the second fails: of one that ends just then, Spark may drop
    # the answer, and with it the name of its file
    with pytest.raises(Exception, match="no luck"):
        spark.sql(
            f"INSERT INTO {name(table)} SELECT id FROM range(0, 10, 1, 1) UNION ALL "
            "SELECT IF(id = 299999, bigint(raise_error('no luck')), id) FROM range(0, 300000, 1, 1)"
        )
    assert parquet_files(table) == []
    assert table.refresh().current_snapshot() is None


def test_null_in_a_required_column_is_refused(spark, create):
    table = create(NestedField(1, "i", LongType(), required=True))
    with pytest.raises(Exception, match="NOT_NULL_ASSERT_VIOLATION"):
        spark.sql(f"INSERT INTO {name(table)} SELECT CASE WHEN id > 1 THEN id END FROM range(3)")
    assert table.refresh().current_snapshot() is None


# Names


def test_a_new_name_may_be_given_with_the_catalog_in_front(spark, create, namespace):
    table = create(NestedField(1, "i", LongType()))
    spark.sql(f"ALTER TABLE {name(table)} RENAME TO lake.{namespace}.renamed")
    assert rows(spark, f"SELECT count(*) FROM lake.{namespace}.renamed") == [(0,)]


def test_the_bridge_has_no_class_in_sparks_packages():
    sources = sorted((Path(__file__).parents[2] / "spark" / "bridge").rglob("*.java"))
    packages = {re.search(r"^package ([\w.]+);", s.read_text(), re.MULTILINE)[1] for s in sources}
    # Spark looks for format("iceberg") in the package of that name where nobody registered one
    sources_by_name = {"iceberg", "icecomb"}
    assert sources_by_name < packages
    assert all(name.startswith("org.icecomb.") for name in packages - sources_by_name)
