"""Files of every format that Spark writes through icecomb, as all other readers read them."""

from __future__ import annotations

import itertools
import random
import struct

import pytest

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import from_bytes
from icecomb.format.spec.types import (
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from tests.interop.conftest import ordered
from tests.interop.test_file_formats import SCHEMA, frame
from tests.interop.test_spark_reads_everything import FILTERS, KINDS, VALUES, evolve

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

WRITTEN = ["orc", "avro", "parquet"]
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module", params=WRITTEN)
def file_format(request):
    return request.param


def create(readers, name, columns, file_format, more="", clause=""):
    readers.own(name)
    readers.spark_sql(
        f"CREATE TABLE {{ns}}.{name} ({columns}) USING iceberg {clause} TBLPROPERTIES ("
        f"'write.format.default'='{file_format}'{more})"
    )


def formats(readers, name):
    return {file.file_format.value.lower() for file in readers.files(name)}


@pytest.fixture(scope="module")
def kinds(file_format, readers):
    """Every type, some rows before and some after the schema and the spec changed."""
    name = f"written_kinds_{file_format}"
    create(readers, name, KINDS, file_format, clause="PARTITIONED BY (b)")
    readers.spark_sql(f"INSERT INTO {{ns}}.{name} SELECT {VALUES} FROM range(0, 40)")
    evolve(readers.spark_sql, name)
    return name


def test_all_types_and_an_evolved_schema_are_read_alike(kinds, readers, file_format):
    assert formats(readers, kinds) == {file_format}
    rows = readers.agree(kinds, but=["peer"])
    assert len(rows) == 42
    for columns in ("id", "i2, bi", "dec18, extra, ls", "st", "b, dec9, mk"):
        readers.agree(kinds, columns=columns, but=["peer"])


def test_spark_writes_what_iceberg_java_writes(kinds, readers, file_format):
    """The rows before anything was changed, by both, are the same rows."""
    theirs = f"{kinds}_java"
    readers.own(theirs)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{theirs} ({KINDS}) USING iceberg TBLPROPERTIES ("
        f"'write.format.default'='{file_format}')"
    )
    readers.java_sql(f"INSERT INTO {{ns}}.{theirs} SELECT {VALUES} FROM range(0, 40)")
    columns = "id, b, i, f, d, dec9, dec18, dec38, day, ts, tz, li, ma, mk"
    assert readers.java(kinds, "id < 40", columns) == readers.java(theirs, None, columns)


def test_filters_leave_out_no_row_that_matches(kinds, readers):
    flags = ", ".join(f"(id IS NOT NULL AND {where}) AS f{n}" for n, where in enumerate(FILTERS))
    rows = readers.spark_sql(f"SELECT id, {flags} FROM {{ns}}.{kinds} ORDER BY id")
    expected = sorted([n, row[0]] for row in rows for n, flag in enumerate(row[1:]) if flag)
    union = " UNION ALL ".join(
        f"SELECT {n} AS f, id FROM {{ns}}.{kinds} WHERE {where}" for n, where in enumerate(FILTERS)
    )
    assert sorted(readers.spark_sql(union)) == expected
    assert sorted(readers.java_sql(union)) == expected
    assert {n for n, _ in expected} == set(range(len(FILTERS)))


def test_types_that_only_iceberg_has_and_required_fields(readers, file_format):
    """Copied by Spark from a file of ours: uuids, fixed values, names that are no Avro names."""
    source, name = f"all_source_{file_format}", f"all_written_{file_format}"
    for table, kind in ((source, "parquet"), (name, file_format)):
        readers.catalog.create_table(
            readers.own(table), SCHEMA, properties={"write.format.default": kind}
        )
    table = readers.load(source)
    # what is less than a second before 1970 is refused for ORC
    table.append(frame(table.schema(), "orc"))
    readers.spark_sql(f"INSERT INTO {{ns}}.{name} SELECT * FROM {{ns}}.{source}")
    assert formats(readers, name) == {file_format}
    assert readers.agree(name, but=["peer"]) == readers.java(source)
    if file_format == "orc":
        # PyIceberg reads no Avro, and of ORC no fixed values and moments far from now
        readers.agree(name, columns="id, b, i, f, d, dec9, dec18, dec38, day, s, bi, st, li, mk")


U = "lower(concat(lpad(hex({n}), 8, '0'), '-0000-4000-8000-', lpad(hex({n}), 12, 'f')))"
F = "unhex(lpad(hex({n}), 6, '0'))"
INSIDE = {
    "lu": (ListType(101, UUIDType()), f"transform(given, n -> {U})"),
    "lf": (ListType(102, FixedType(3)), f"transform(given, n -> {F})"),
    "mk": (
        MapType(103, UUIDType(), 104, FixedType(3)),
        f"map_from_entries(transform(array_compact(given), n -> struct({U}, {F})))",
    ),
    "mv": (
        MapType(105, StringType(), 106, UUIDType()),
        f"map_from_entries(transform(given, (n, i) -> struct(string(i), {U})))",
    ),
    "deep": (
        ListType(107, MapType(108, StringType(), 109, ListType(110, UUIDType()))),
        f"array(NULL, map('a', transform(given, n -> {U}), 'b', NULL))",
    ),
    "ls": (
        ListType(
            111,
            StructType(
                (
                    NestedField(112, "u", UUIDType()),
                    NestedField(113, "n", ListType(114, FixedType(3))),
                )
            ),
        ),
        f"transform(given, n -> IF(n % 5 = 0, NULL, struct({U}, array({F}, NULL))))",
    ),
    "st": (
        StructType((NestedField(115, "u", ListType(116, UUIDType())),)),
        f"struct(transform(given, n -> {U}))",
    ),
}
"""Columns with uuids and fixed values inside, and what makes them of a list of numbers."""


def test_uuids_and_fixed_values_directly_in_lists_and_maps(readers, file_format):
    fields = [NestedField(1, "id", LongType())]
    fields += [NestedField(n, name, kind) for n, (name, (kind, _)) in enumerate(INSIDE.items(), 2)]
    ours, theirs = f"inside_{file_format}", f"inside_java_{file_format}"
    properties = {"write.format.default": file_format, "write.parquet.page-row-limit": "100"}
    for name in (ours, theirs):
        readers.catalog.create_table(
            readers.own(name), Schema(tuple(fields)), properties=properties
        )
    given = (
        "CASE WHEN id % 7 = 0 THEN NULL WHEN id % 7 = 1 THEN array() ELSE "
        "transform(sequence(1, id % 9 + 1), i -> IF((id + i) % 11 = 0, NULL, id * 16 + i)) END"
    )
    values = ", ".join(f"{made.format(n='n')} AS {name}" for name, (_, made) in INSIDE.items())
    # each of two files has more rows than ORC encodes at once, and many pages
    query = f"SELECT id, {values} FROM (SELECT id, {given} AS given FROM range(0, 2400, 1, 2))"
    expected = ordered(readers.spark_sql(query))
    for insert, name in ((readers.spark_sql, ours), (readers.java_sql, theirs)):
        insert(f"INSERT INTO {{ns}}.{name} {query}")
        assert formats(readers, name) == {file_format}
        assert readers.java(name) == expected
        assert readers.spark(name) == expected
        assert readers.spark(name, "id = 713") == [row for row in expected if row[0] == 713]
        for place, column in enumerate(INSIDE, 1):
            alone = ordered([row[0], row[place]] for row in expected)
            assert readers.spark(name, None, f"id, {column}") == alone
        assert readers.python(name) == expected
    if file_format == "parquet":
        for column in ("lu", "lf"):
            peer = readers.load_peer(ours).scan(selected_fields=("id", column)).to_arrow()
            own = readers.load(ours).scan(None, ("id", column)).to_arrow()
            assert peer.sort_by("id").to_pylist() == own.sort_by("id").to_pylist()
    # the new rows are those of the old ones, through a change of rows as through a copy
    readers.spark_sql(f"UPDATE {{ns}}.{ours} SET id = -id, lu = array(lu[0]) WHERE id = 713")
    changed = [[-713, row[1][:1], *row[2:]] if row[0] == 713 else row for row in expected]
    assert readers.java(ours) == readers.spark(ours) == ordered(changed)
    for column, value, message in (
        ("lf", "array(X'0102')", "lf.element takes 3 bytes, not 2"),
        ("lu", "array('1-1-1-1-1')", "Not a uuid: '1-1-1-1-1'"),
        ("mk", f"map({U.format(n=1)}, X'01020304')", "mk.value takes 3 bytes, not 4"),
    ):
        with pytest.raises(Exception, match=message):
            readers.spark_sql(f"INSERT INTO {{ns}}.{ours} (id, {column}) SELECT 1, {value}")


def test_moments_before_1970_keep_their_microseconds(readers, file_format):
    name = f"moments_{file_format}"
    create(readers, name, "id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ", file_format)
    drawn = random.Random(5)
    micros = [
        -1,
        -999,
        -1000,
        -999_999,
        -1_000_000,
        -1_000_001,
        -500_000,
        -500,
        0,
        1,
        999,
        1_500_000,
    ]
    micros += [drawn.randrange(-62135596800000000, 253402300800000000) for _ in range(200)]
    micros += [drawn.randrange(-3_000_000, 3_000_000) for _ in range(200)]
    if file_format == "orc":
        lost = [at for at in micros if -999_000 <= at < 0]
        micros = [at for at in micros if at not in lost]
        for column, at in (("at", lost[0]), ("local", lost[-1])):
            kind = "TIMESTAMP" if column == "at" else "TIMESTAMP_NTZ"
            with pytest.raises(
                Exception, match=f"Column {column}: ORC cannot store a time {-at} micro"
            ):
                readers.spark_sql(
                    f"INSERT INTO {{ns}}.{name} (id, {column}) SELECT 0, CAST(timestamp_micros({at}) AS {kind})"
                )
    values = ", ".join(f"({n}, {at}L)" for n, at in enumerate(micros))
    readers.spark_sql(
        f"INSERT INTO {{ns}}.{name} SELECT id, timestamp_micros(at), "
        f"CAST(timestamp_micros(at) AS TIMESTAMP_NTZ) FROM VALUES {values} AS t (id, at)"
    )
    select = (
        "SELECT id, unix_micros(at), unix_micros(CAST(local AS TIMESTAMP)) FROM "
        f"{{ns}}.{name} ORDER BY id"
    )
    expected = [[n, at, at] for n, at in enumerate(micros)]
    assert readers.spark_sql(select) == expected
    assert readers.java_sql(select) == expected
    if file_format != "avro":
        files = readers.files(name)
        for column in (2, 3):
            lows = [struct.unpack("<q", file.lower_bounds[column])[0] for file in files]
            highs = [struct.unpack("<q", file.upper_bounds[column])[0] for file in files]
            assert (min(lows), max(highs)) == (min(micros), max(micros))


COLUMNS = (
    "id BIGINT, i INT, d DOUBLE, f FLOAT, s STRING, day DATE, dec DECIMAL(20,3), b BOOLEAN, "
    "st STRUCT<x: INT, d: DOUBLE>, li ARRAY<INT>"
)
GROUPS = (
    "id, IF(id % 3 = 0, NULL, CAST(id AS INT)), "
    "CASE WHEN id % 10000 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN -0.0D ELSE 20000D - id END, "
    "IF(id % 5 = 0, NULL, CAST(id - 9000 AS FLOAT)), "
    "IF(id % 2 = 0, concat(repeat('\U0001f9ca', 20), id), concat('\uffee', repeat('z', 2000))), "
    "date_add(DATE '1400-01-01', CAST(id AS INT)), CAST(id - 12000.5 AS DECIMAL(20,3)), id >= 0, "
    "IF(id % 4 = 0, NULL, named_struct('x', CAST(id AS INT), 'd', id / 2)), array(1, NULL)"
)


def test_metrics_are_those_of_the_rows(readers, file_format):
    """Several groups of rows, one of which begins with NaN; text that UTF-16 puts in another order."""
    name = f"metrics_{file_format}"
    create(readers, name, COLUMNS, file_format)
    readers.spark_sql(
        f"INSERT INTO {{ns}}.{name} SELECT /*+ COALESCE(1) */ {GROUPS} FROM range(0, 25000, 1, 1)"
    )
    [file] = readers.files(name)
    assert file.record_count == 25000
    if file_format == "avro":
        assert not any((file.value_counts, file.lower_bounds, file.null_value_counts))
        return
    schema = readers.load(name).schema()
    ids = {
        n: schema.find_field(n).field_id for n in ("id", "i", "d", "s", "day", "dec", "b", "st.x")
    }
    nulls = {name: file.null_value_counts[i] for name, i in ids.items()}
    assert nulls == dict.fromkeys(ids, 0) | {"i": 8334, "st.x": 6250}
    assert {file.value_counts[i] for i in ids.values()} == {25000}
    bounds = {
        name: tuple(
            None if i not in side else from_bytes(schema.find_type(i), side[i])
            for side in (file.lower_bounds, file.upper_bounds)
        )
        for name, i in ids.items()
    }
    assert bounds["id"] == (0, 24999)
    assert bounds["i"] == (1, 24998)
    assert bounds["st.x"] == (1, 24999)
    assert bounds["b"] == (True, True)
    assert [str(each) for each in bounds["dec"]] == ["-12000.500", "12998.500"]
    low, high = bounds["s"]
    assert low == "\uffee" + "z" * 15
    assert high == "\U0001f9ca" * 15 + "\U0001f9cb"
    low, high = bounds["d"]
    assert low is None or low <= -4999
    assert high is None or high >= 19999
    assert file.split_offsets
    assert list(file.split_offsets) == sorted(file.split_offsets)
    assert file.column_sizes[ids["s"]] > 0
    for where in (
        "d = 9999",
        "d < -4998",
        "d = 0",
        "i IS NULL AND id > 24990",
        "st.x IS NULL AND id > 24990",
        "s > '\U0001f9ca'",
        "day < DATE '1400-01-03'",
    ):
        counted = readers.spark_sql(f"SELECT count(*) FROM {{ns}}.{name} WHERE {where}")
        assert counted[0][0] == readers.load(name).scan(where).count() > 0
        if not (file_format == "orc" and "st.x" in where):
            # Iceberg Java asks ORC, which sees no null where the whole struct is null
            query = f"SELECT count(*) FROM {{ns}}.{name} WHERE {where}"
            assert counted == readers.java_sql(query), where


def test_files_are_cut_at_the_target_size(readers, file_format):
    name = f"cut_{file_format}"
    more = (
        ", 'write.target-file-size-bytes'='200000', 'write.orc.stripe-size-bytes'='65536', "
        "'write.parquet.row-group-size-bytes'='65536'"
    )
    create(readers, name, "id BIGINT, s STRING", file_format, more)
    readers.spark_sql(
        f"INSERT INTO {{ns}}.{name} SELECT /*+ COALESCE(1) */ id, sha2(CAST(id AS STRING), 512) "
        "FROM range(0, 30000, 1, 1)"
    )
    sizes = [file.file_size_in_bytes for file in readers.files(name)]
    assert len(sizes) > 4
    assert max(sizes) < 600_000
    found = readers.java_sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM {{ns}}.{name}")
    assert found == [[30000, 30000, sum(range(30000))]]


def test_rows_are_changed_in_both_modes(readers, file_format):
    name = f"changed_{file_format}"
    deletes = {"orc": "avro", "avro": "orc", "parquet": "orc"}[file_format]
    more = f", 'write.delete.format.default'='{deletes}', " + ", ".join(
        f"'write.{c}.mode'='{mode}'"
        for c, mode in (
            ("delete", "merge-on-read"),
            ("update", "copy-on-write"),
            ("merge", "merge-on-read"),
        )
    )
    create(readers, name, "id BIGINT, s STRING, p INT", file_format, more, "PARTITIONED BY (p)")
    readers.spark_sql(
        f"INSERT INTO {{ns}}.{name} SELECT id, 'old', CAST(id % 3 AS INT) FROM range(300)"
    )
    readers.spark_sql(
        f"DELETE FROM {{ns}}.{name} WHERE id % 7 = 3 AND s IN (SELECT * FROM VALUES ('old'))"
    )
    readers.spark_sql(f"UPDATE {{ns}}.{name} SET s = 'new' WHERE id % 5 = 1")
    readers.spark_sql(
        f"MERGE INTO {{ns}}.{name} t USING (SELECT id FROM range(290, 310)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (s.id, 'in', 1)"
    )
    readers.spark_sql(
        f"DELETE FROM {{ns}}.{name} WHERE id % 11 = 4 AND s IN (SELECT * FROM VALUES ('old'))"
    )
    model = {i: "old" for i in range(300) if i % 7 != 3}
    model |= {i: "new" for i in model if i % 5 == 1}
    model |= {i: "merged" if i in model else "in" for i in range(290, 310)}
    model = {i: s for i, s in model.items() if not (s == "old" and i % 11 == 4)}
    expected = sorted([i, s] for i, s in model.items())
    assert sorted(readers.agree(name, columns="id, s", but=["peer"])) == expected
    assert formats(readers, name) == {file_format}
    found = readers.java_sql(f"SELECT DISTINCT lower(file_format) FROM {{ns}}.{name}.delete_files")
    assert found == [[deletes]]
