"""Every transform as a partition: all writers put a row into the same one, all readers find it."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

UTC = dt.timezone.utc
HOSTILE = "a/../b=c%20 d\\'\"\u00e9\U0001f9ca"


def naive(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # noqa: DTZ001 - a timestamp without a zone


TYPES = {
    "b": BooleanType(),
    "i": IntegerType(),
    "l": LongType(),
    "dec": DecimalType(9, 2),
    "big": DecimalType(38, 10),
    "day": DateType(),
    "ts": TimestampType(),
    "tz": TimestamptzType(),
    "s": StringType(),
    "u": UUIDType(),
    "fx": FixedType(3),
    "bi": BinaryType(),
}
TRANSFORMS = {
    "identity": tuple(TYPES),
    "bucket[7]": ("i", "l", "dec", "big", "day", "ts", "tz", "s", "u", "fx", "bi"),
    "truncate[3]": ("i", "l", "dec", "big", "s", "bi"),
    "year": ("day", "ts", "tz"),
    "month": ("day", "ts", "tz"),
    "day": ("day", "ts", "tz"),
    "hour": ("ts", "tz"),
    "void": ("i", "s"),
}
VALUES = {
    "b": [True, False, None],
    "i": [0, -1, 2**31 - 1, -(2**31), None],
    "l": [1, -1, 2**63 - 1, -(2**63), None],
    "dec": [Decimal("0.01"), Decimal("-0.01"), Decimal("-9999999.99"), None],
    "big": [Decimal("1E-10"), Decimal("-1.0000000001"), Decimal("9" * 27 + ".5"), None],
    "day": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(2024, 2, 29), None],
    "ts": [naive(1969, 12, 31, 23, 59, 59, 999_999), naive(1970, 1, 1), naive(1900, 2, 28, 23), naive(2024, 2, 29), None],
    "tz": [dt.datetime(1969, 1, 31, 0, 0, 0, 1, UTC), dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2024, 12, 31, 23, tzinfo=UTC), None],
    "s": ["", HOSTILE, "abc", "\U0001f9ca\U0001f9ca\u00e9d", "..", "__HIVE_DEFAULT_PARTITION__", "null", None],
    "u": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), None],
    "fx": [b"\0\0\0", b"\xff\x00/", b"abc", None],
    "bi": [b"", b"\x00", b"/=%\xff", b"abcd", None],
}  # fmt: skip
ROWS = 9
# PyIceberg needs another library to partition, and cannot read Iceberg Java's manifests of fixed.
WRITERS = ("python", "java", "spark")


def source(transform: str, column: str) -> str:
    """A column of its own for every transform: Iceberg Java has one time transform a column."""
    return f"{transform.split('[', maxsplit=1)[0]}_{column}"


def type_of(column: str, kind: str) -> IcebergType:
    """PyIceberg reads no manifest with two partition fields of one decimal type."""
    both = {"truncate_dec": DecimalType(10, 2), "truncate_big": DecimalType(37, 10)}
    return both.get(column, TYPES[kind])


COLUMNS = {source(t, c): c for t, columns in TRANSFORMS.items() for c in columns}
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "writer", StringType()),
        *(
            NestedField(3 + i, name, type_of(name, c))
            for i, (name, c) in enumerate(COLUMNS.items())
        ),
    )
)
SPEC = PartitionSpec(
    0,
    (
        PartitionField(2, 1000, parse_transform("identity"), "writer"),
        *(
            PartitionField(
                SCHEMA.find_field(source(t, c)).field_id,
                1001 + list(COLUMNS).index(source(t, c)),
                parse_transform(t),
                f"p_{source(t, c)}",
            )
            for t, columns in TRANSFORMS.items()
            for c in columns
        ),
    ),
)


def rows_of(writer: str) -> pa.Table:
    from icecomb.format.spec.arrow_schema import schema_to_pyarrow

    arrow = schema_to_pyarrow(SCHEMA)
    columns = [pa.array(range(ROWS), pa.int64()), pa.array([writer] * ROWS)]
    for field, kind in zip(list(arrow)[2:], COLUMNS.values(), strict=True):
        values = [VALUES[kind][i % len(VALUES[kind])] for i in range(ROWS)]
        if field.type == pa.uuid():
            raw = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
            columns.append(pa.ExtensionArray.from_storage(field.type, raw))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=arrow)


@pytest.fixture(scope="module")
def written(readers):
    """A table of each format version, partitioned in every way, one row a partition."""
    return {version: filled(readers, version) for version in ("1", "2")}


def filled(readers, version):
    name = f"transforms_v{version}"
    table = readers.catalog.create_table(
        readers.own(name), SCHEMA, partition_spec=SPEC, properties={"format-version": version}
    )
    table.append(rows_of("python"))
    assert readers.peer(name) == readers.python(name)
    others = ", ".join(COLUMNS)
    copy = f"INSERT INTO {{ns}}.{name} SELECT id, '%s', {others} FROM {{ns}}.{name} WHERE writer = 'python'"
    readers.java_sql(copy % "java")
    readers.spark_sql(copy % "spark")
    return name


@pytest.mark.parametrize("version", ["1", "2"])
def test_all_rows_are_read_by_all(written, readers, version):
    rows = readers.agree(written[version], but=["peer"])
    given = [[r[0], *r[2:]] for r in readers.arrow_rows(rows_of("python"))]
    for writer in WRITERS:
        assert [[r[0], *r[2:]] for r in rows if r[1] == writer] == given


@pytest.mark.parametrize("version", ["1", "2"])
def test_every_writer_gives_a_row_the_same_partition_values(written, readers, version):
    name = written[version]
    rows = readers.python(name, None, "id, writer, _file")
    files = {f.file_path: f for f in readers.files(name)}
    assert len(files) == ROWS * len(WRITERS)
    values = {w: {r[0]: files[r[2]].partition[1:] for r in rows if r[1] == w} for w in WRITERS}
    for writer in WRITERS:
        assert values[writer] == values["java"], writer


@pytest.mark.parametrize("version", ["1", "2"])
def test_partition_values_are_read_as_iceberg_java_reads_them(written, readers, version):
    name = written[version]
    types = SPEC.partition_type(readers.load(name).schema()).fields
    # Iceberg Java's own metadata table fails on uuids.
    shared = [i for i, field in enumerate(types) if not isinstance(field.field_type, UUIDType)]
    columns = ", ".join(["file_path", *(f"partition.{types[i].name}" for i in shared)])
    java = readers.java_sql(f"SELECT {columns} FROM {{ns}}.{name}.files")
    ours = [
        [f.file_path, *(shown(f.partition[i], types[i].field_type) for i in shared)]
        for f in readers.files(name)
    ]
    assert sorted(ours, key=repr) == sorted(java, key=repr)


def shown(value, kind):
    """An internal value as Spark shows it."""
    if value is None:
        return None
    epoch = naive(1970, 1, 1)
    if isinstance(kind, DateType):
        return str((epoch + dt.timedelta(days=value)).date())
    if isinstance(kind, TimestampType | TimestamptzType):
        return str(epoch + dt.timedelta(microseconds=value))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if "E" in str(value) else str(value)
    return value


def conditions(column: str, kind: str) -> list[str]:
    literals = {
        "b": "true",
        "i": "-1",
        "l": "-1",
        "dec": "-0.01",
        "big": "-1.0000000001",
        "day": "'1969-12-31'",
        "ts": "'1969-12-31T23:59:59.999999'",
        "tz": "'1969-01-31T00:00:00.000001+00:00'",
        "s": "'abc'",
        "u": "'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
    }
    literal = literals[kind]
    simple = [f"{column} = {literal}", f"{column} <= {literal}", f"{column} > {literal}"]
    return [*simple, f"{column} != {literal}", f"{column} is null", f"{column} in ({literal})"]


CONDITIONS = {c: conditions(c, kind) for c, kind in COLUMNS.items() if kind not in {"fx", "bi"}}


@pytest.fixture(scope="module")
def matching(written, readers):
    """For every condition the files with such rows: Iceberg Java evaluates them, skipping nothing."""
    asked = [where for group in CONDITIONS.values() for where in group]
    columns = ", ".join(["_file", *asked])
    rows = readers.java_sql(f"SELECT {columns} FROM {{ns}}.{written['2']}")
    return {
        where: {row[0] for row in rows if row[1 + place] is True}
        for place, where in enumerate(asked)
    }


@pytest.mark.parametrize("column", CONDITIONS)
def test_a_filter_on_a_partition_s_source_skips_no_file_of_its_rows(
    written, readers, matching, column
):
    for where in CONDITIONS[column]:
        assert matching[where] <= readers.plan(written["2"], where).keys(), where


@pytest.mark.parametrize(
    "where",
    [group[0] for c, group in CONDITIONS.items() if COLUMNS[c] != "u"]
    + [
        "identity_s > 'abc'",
        "truncate_s like 'ab%'",
        "truncate_s like 'abcd%'",
        "truncate_l > 0",
        "month_tz < '1970-01-01T00:00:00+00:00'",
        "truncate_dec >= -0.01",
        "hour_ts is null",
    ],
)
def test_as_few_files_are_planned_as_iceberg_java_plans(written, readers, where):
    assert readers.plan(written["2"], where) == readers.java_plan(written["2"], where)


@pytest.mark.parametrize(
    "where",
    [
        "bucket_l = -1 or truncate_s = 'abc'",
        "hour_tz >= '2024-12-31T23:00:00+00:00' or identity_s = ''",
        "not (month_day < '1970-01-01') and void_i is not null",
    ],
)
def test_filters_over_several_partitions_agree_everywhere(written, readers, where):
    assert readers.agree(written["2"], where, "id, writer", but=["peer"])
