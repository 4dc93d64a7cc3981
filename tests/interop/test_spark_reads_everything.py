"""Spark, through icecomb, reads files of every format as Iceberg Java and our Python read them."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.spark.planner.files import MOST_POSITIONS
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.format.rows.parquet_file import data_file_from_parquet
from tests.interop.test_file_formats import FORMATS, SCHEMA, frame

pytestmark = pytest.mark.full("a second Spark reads and writes, too")


@pytest.fixture(scope="module", params=FORMATS)
def file_format(request):
    return request.param


KINDS = (
    "id BIGINT, b BOOLEAN, i INT, f FLOAT, d DOUBLE, dec9 DECIMAL(9,2), dec18 DECIMAL(18,0), "
    "dec38 DECIMAL(38,10), day DATE, ts TIMESTAMP_NTZ, tz TIMESTAMP, s STRING, bi BINARY, "
    "st STRUCT<x: INT, `y z`: STRING, deep: STRUCT<d: DATE, l: ARRAY<INT>>>, li ARRAY<ARRAY<DECIMAL(5,1)>>, "
    "ls ARRAY<STRUCT<a: INT, b: STRING>>, ma MAP<STRING, TIMESTAMP>, mk MAP<INT, ARRAY<STRING>>"
)
VALUES = (
    "CAST(id AS BIGINT), id % 2 = 0, CAST(id AS INT) - 5, CAST(id AS FLOAT) / 3, "
    "IF(id % 7 = 0, double('NaN'), id / 3), CAST(id * 1.25 AS DECIMAL(9,2)), CAST(-id AS DECIMAL(18,0)), "
    "CAST(id * 12345678901.0123456789 AS DECIMAL(38,10)), date_add(DATE '0001-01-01', CAST(id * 1000 AS INT)), "
    "CAST(timestamp_micros(-62135596800000000 + id * 1000000000001) AS TIMESTAMP_NTZ), "
    "timestamp_micros(id * 999999999999 - 30000000000000001), IF(id % 5 = 0, NULL, concat('é', id)), "
    "IF(id % 6 = 0, NULL, CAST(concat('b', id) AS BINARY)), "
    "IF(id % 4 = 0, NULL, named_struct('x', CAST(id AS INT), 'y z', 's', 'deep', "
    "  IF(id % 3 = 0, NULL, named_struct('d', DATE '1969-12-31', 'l', array(1, NULL, CAST(id AS INT)))))), "
    "IF(id % 5 = 1, NULL, array(array(CAST(1.5 AS DECIMAL(5,1)), NULL), NULL, array())), "
    "array(named_struct('a', CAST(id AS INT), 'b', 'z'), NULL), "
    "IF(id % 5 = 2, NULL, map('k', timestamp_micros(id), '', NULL)), map(CAST(id AS INT), array('x', NULL))"
)
SMALL_PARTS = (
    "'write.orc.stripe-size-bytes'='65536', 'write.parquet.row-group-size-bytes'='65536', "
    "'read.split.target-size'='20000', 'read.split.open-file-cost'='1000'"
)
MERGE_ON_READ = ", ".join(
    f"'write.{mode}.mode'='merge-on-read'" for mode in ("delete", "update", "merge")
)


def create(readers, name, columns, file_format, version=2, more="", clause=""):
    readers.own(name)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} ({columns}) USING iceberg {clause} TBLPROPERTIES ("
        f"'format-version'='{version}', 'write.format.default'='{file_format}'{more})"
    )


def evolve(sql, name):
    """Change the schema and the spec of a table of all kinds, and add two rows."""
    for change in (
        "ALTER COLUMN i TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN dec9 TYPE DECIMAL(20,2)",
        "RENAME COLUMN s TO i2",
        "RENAME COLUMN st.x TO was_x",
        "ALTER COLUMN st.was_x TYPE BIGINT",
        "ADD COLUMN st.deep.more STRUCT<n: INT>",
        "ADD COLUMN ls.element.c DOUBLE FIRST",
        "DROP COLUMN bi",
        "ADD COLUMN bi STRING",
        "ADD COLUMN extra STRUCT<x: INT, y: STRING> FIRST",
        "ALTER COLUMN dec18 FIRST",
    ):
        sql(f"ALTER TABLE {{ns}}.{name} {change}")
    sql(f"ALTER TABLE {{ns}}.{name} REPLACE PARTITION FIELD b WITH bucket(2, id)")
    sql(
        f"INSERT INTO {{ns}}.{name} (id, i2, extra, st) VALUES (99, 'new', named_struct('x', 1, 'y', NULL), "
        "named_struct('was_x', 5, 'y z', NULL, 'deep', NULL)), (100, NULL, NULL, NULL)"
    )


@pytest.fixture(scope="module")
def kinds(file_format, readers):
    """Every type, v1, some rows before and some after the schema and the spec changed."""
    name = f"kinds_{file_format}"
    create(readers, name, KINDS, file_format, version=1, clause="PARTITIONED BY (b)")
    readers.java_sql(f"INSERT INTO {{ns}}.{name} SELECT {VALUES} FROM range(0, 40)")
    evolve(readers.java_sql, name)
    return name


def test_all_types_and_an_evolved_schema_are_read_alike(kinds, readers):
    rows = readers.agree(kinds, but=["peer"])
    assert len(rows) == 42
    for columns in ("id", "i2, bi", "dec18, extra, ls", "st", "b, dec9, mk"):
        readers.agree(kinds, columns=columns, but=["peer"])
    nested = "SELECT id, st.deep.d, st.was_x, extra.y, st.deep.more.n FROM {ns}." + kinds
    assert readers.spark_sql(f"{nested} ORDER BY id") == readers.java_sql(f"{nested} ORDER BY id")
    assert readers.spark_sql(f"SELECT count(*) FROM {{ns}}.{kinds}") == [[42]]
    # Iceberg Java makes empty lists of these where the files are Parquet.
    lists = readers.spark_sql(f"SELECT DISTINCT ls.c FROM {{ns}}.{kinds} WHERE id < 90")
    assert lists == [[[None, None]]]


FILTERS = (
    "id = 7", "i > 20", "b", "f < 4", "dec9 = 12.50", "i2 = 'é7'", "i2 IS NULL", "bi IS NULL",
    "st.was_x = 5", "ts < TIMESTAMP_NTZ '0500-01-01 00:00:00'", "d > 3", "st IS NULL AND id > 3",
    "tz < TIMESTAMP '1019-05-10 00:00:00'", "dec18 = -7", "extra.x = 1", "day < DATE '0050-01-01'",
)  # fmt: skip


def test_filters_leave_out_no_row_that_matches(kinds, readers):
    flags = ", ".join(f"(id IS NOT NULL AND {where}) AS f{n}" for n, where in enumerate(FILTERS))
    expected = readers.java_sql(f"SELECT id, {flags} FROM {{ns}}.{kinds} ORDER BY id")
    union = " UNION ALL ".join(
        f"SELECT {n} AS f, id FROM {{ns}}.{kinds} WHERE {where}" for n, where in enumerate(FILTERS)
    )
    found = sorted(readers.spark_sql(union))
    assert found == sorted(
        [n, row[0]] for row in expected for n, flag in enumerate(row[1:]) if flag
    )
    assert {n for n, _ in found} == set(range(len(FILTERS)))


@pytest.fixture(scope="module")
def parts(file_format, readers):
    """Files of several stripes, row groups or blocks that are read in parts, with deleted rows."""
    name = f"parts_{file_format}"
    more = f", {SMALL_PARTS}, {MERGE_ON_READ}"
    create(readers, name, "id BIGINT, s STRING, st STRUCT<n: BIGINT>", file_format, more=more)
    readers.java_sql(
        f"INSERT INTO {{ns}}.{name} SELECT /*+ COALESCE(1) */ id, sha2(CAST(id AS STRING), 256), "
        "named_struct('n', id) FROM range(30000)"
    )
    readers.java_sql(f"DELETE FROM {{ns}}.{name} WHERE id % 100 = 7 OR id BETWEEN 9000 AND 15000")
    readers.java_sql(f"UPDATE {{ns}}.{name} SET s = 'new' WHERE id % 1000 = 1")
    return name


def test_parts_of_files_and_deleted_positions_give_every_row_once(parts, readers):
    kept = [i for i in range(30000) if i % 100 != 7 and not 9000 <= i <= 15000]
    select = (
        "SELECT count(*), count(DISTINCT id), sum(id), sum(st.n), count_if(s = 'new'), "
        "count(DISTINCT _file, _pos), sum(CAST(xxhash64(id, s, _file, _pos, _spec_id) AS DECIMAL(38, 0))) "
        f"FROM {{ns}}.{parts} WHERE "
    )
    found = readers.spark_sql(f"{select} true")
    assert found[0][:4] == [len(kept), len(kept), sum(kept), sum(kept)]
    for where in ("true", "id > 20000 AND id < 20100", "s = 'new'", "id = 29999", "st.n < 5"):
        assert readers.spark_sql(select + where) == readers.java_sql(select + where), where
    tasks = readers._spark.table(f"lake.{readers.namespace}.{parts}").rdd.getNumPartitions()
    assert tasks > 5


def test_a_part_that_begins_in_the_last_bytes_of_a_file_has_no_rows(file_format, readers):
    """The last block of an Avro file ends in 16 bytes in which none begins."""
    name = f"tail_{file_format}"
    properties = {"write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    table = readers.catalog.create_table(
        readers.own(name), pa.schema([("id", pa.int64())]), properties=properties
    )
    table.append(pa.table({"id": pa.array(range(5000), pa.int64())}))
    table.delete("id IN (1, 2500, 4999)")
    ((file,),) = readers.java_sql(
        f"SELECT file_size_in_bytes FROM {{ns}}.{name}.files WHERE content = 0"
    )
    counts = ("count(*)", "count(DISTINCT id)", "sum(id)")
    expected = readers.java_sql(f"SELECT {', '.join(counts)}, sum(id) FROM {{ns}}.{name}")
    for bytes_left in (1, 8, 15, 16, 17):
        options = {"split-size": file - bytes_left, "file-open-cost": 1}
        rows = readers._spark.read.options(**options).table(f"lake.{readers.namespace}.{name}")
        found = rows.selectExpr(*counts, "sum(_pos)").collect()
        assert [list(row) for row in found] == expected, bytes_left


def test_what_python_writes_is_read(file_format, readers):
    name = f"python_{file_format}"
    properties = {"write.format.default": file_format}
    table = readers.catalog.create_table(readers.own(name), SCHEMA, properties=properties)
    table.append(frame(table.schema(), file_format))
    # -0.0 and 0E-10 are shown otherwise by Iceberg Java's Spark
    columns = ", ".join(f.name for f in SCHEMA.fields if f.name not in ("dec38", "f"))
    readers.agree(name, columns=columns, but=["peer"])
    expected = table.scan(selected_fields=("id", "f", "dec38")).to_arrow().to_pylist()
    found = readers._spark.table(f"lake.{readers.namespace}.{name}").select("id", "f", "dec38")
    assert sorted(map(repr, (r.asDict() for r in found.collect()))) == sorted(map(repr, expected))


COMPARED = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("k", pa.int32()),
        pa.field("i", pa.int32()),
        pa.field("f", pa.float32()),
        pa.field("s", pa.string()),
        pa.field("bi", pa.binary()),
        pa.field("m", pa.decimal128(9, 2)),
        pa.field("big", pa.decimal128(30, 3)),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us")),
        pa.field("tz", pa.timestamp("us", "UTC")),
        pa.field("b", pa.bool_()),
        pa.field("u", pa.uuid()),
        pa.field("st", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)


def compared(numbers):
    """Rows whose values tell their number; in each column some are null, or NaN, or zero."""
    columns = []
    for place, field in enumerate(COMPARED):
        null = [place > 1 and (n + place) % 13 == 0 for n in numbers]
        values = [
            None if none else _value(field.name, n) for n, none in zip(numbers, null, strict=True)
        ]
        if field.name == "u":
            storage = pa.array([v and v.bytes for v in values], pa.binary(16))
            columns.append(pa.ExtensionArray.from_storage(pa.uuid(), storage))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=COMPARED)


def _value(name, n):
    zero = {5: float("nan"), 6: -0.0, 7: 0.0}.get(n % 20, n / 4)
    return {
        "id": n, "k": n % 2, "i": -n, "f": zero, "s": f"é{n}", "bi": b"\x00" * (n % 3) + bytes([n]),
        "m": Decimal(n) / 4, "big": Decimal(n) * 10**24 / 8, "day": n * 1000 - 30000, "ts": n * 10**12 + n,
        "tz": -n * 10**12, "b": n % 3 == 0, "u": uuid.UUID(int=n << 64 | n),
        "st": {"x": n % 9, "y": None if n % 4 else f"y{n}"},
    }[name]  # fmt: skip


KEYS = {
    ("id",): [0, 1], ("i",): [2, 3], ("f",): [5, 6], ("s", "b"): [10, 11, 16], ("bi", "day"): [12, 13],
    ("m",): [14, 15], ("big",): [17, 18], ("ts",): [20, 21], ("tz", "i"): [22, 23], ("u",): [24, 25],
    ("s",): [9, 26], ("b", "k", "id"): [28, 29],
}  # fmt: skip


def delete_by_values(table, keys):
    delta = RowDelta(table.io)
    for columns, rows in keys.items():
        writer = EqualityDeleteWriter(table.io, table.metadata, str(uuid.uuid4()), columns)
        writer.write(compared(rows).to_batches()[0])
        for file in writer.close():
            delta.add_deletes(file)
    table.commit(delta)


@pytest.fixture(scope="module")
def by_values(file_format, readers):
    """Equality deletes by columns of all kinds between appends; types and names changed after them."""
    name = f"by_values_{file_format}"
    properties = {"write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    table = readers.catalog.create_table(readers.own(name), COMPARED, properties=properties)
    table.append(compared(range(40)))
    delete_by_values(table, KEYS)
    table.append(compared(range(30, 60)))
    table.delete("id IN (4, 33)")
    with table.update_spec() as update:
        update.add_field("k", "identity")
    table.append(compared(range(60, 80)))
    delete_by_values(table, {("id", "s"): [60, 61, 62], ("i",): [64, 9]})
    with table.update_schema() as update:
        update.update_column("i", "long").update_column("f", "double")
        update.update_column("m", "decimal(20, 2)").rename_column("s", "text")
    with table.update_schema() as update:
        update.add_column("s", "int")
    with table.transaction() as change:
        change.set_properties({"write.format.default": "parquet"})
    return name


def test_rows_deleted_by_values_of_all_types_are_gone(by_values, readers):
    rows = readers.agree(by_values, but=["peer"])
    assert 40 < len(rows) < 85
    for columns in ("id", "bi, tz", "f", "st", "k, u", "s"):
        readers.agree(by_values, columns=columns, but=["peer"])
    for where in ("id < 10", "k = 1", "b", "text IS NULL", "f < 3", "i = -30"):
        readers.agree(by_values, where, columns="id, m", but=["peer"])
    for columns in ("id, _deleted", "_deleted, _pos, id, k, _partition"):
        found = readers.spark(by_values, columns=columns)
        assert found == readers.java(by_values, columns=columns)
    assert len(found) == 90
    count = f"SELECT count(*), count(DISTINCT id), sum(id) FROM {{ns}}.{by_values}"
    assert readers.spark_sql(count) == readers.java_sql(count)


def test_files_that_statements_write_anew_keep_deleted_rows_deleted(by_values, readers):
    before = readers.agree(by_values, columns="id, k, i", but=["peer"])
    table = f"{{ns}}.{by_values}"
    readers.spark_sql(f"UPDATE {table} SET i = i - 1000 WHERE pmod(id, 5) = 0")
    readers.spark_sql(
        f"DELETE FROM {table} WHERE id IN (SELECT id + 1 FROM {table} WHERE pmod(id, 10) = 6)"
    )
    readers.spark_sql(
        f"MERGE INTO {table} t USING (SELECT id FROM range(0, 90, 3)) m ON t.id = m.id AND pmod(t.id, 5) <> 0 "
        "WHEN MATCHED THEN UPDATE SET i = 7 WHEN NOT MATCHED THEN INSERT (id, k, i) VALUES (m.id, 5, NULL)"
    )
    ids = {row[0] for row in before}
    gone = {n + 1 for n in ids if n % 10 == 6}
    after = []
    for n, k, i in before:
        if n not in gone:
            after.append(
                [n, k, (i if i is None else i - 1000) if n % 5 == 0 else 7 if n % 3 == 0 else i]
            )
    matched = {n for n, *_ in after if n % 5}
    after += [[n, 5, None] for n in range(0, 90, 3) if n not in matched]
    assert readers.agree(by_values, columns="id, k, i", but=["peer"]) == sorted(after, key=repr)


def test_deletes_compare_fields_in_structs_and_columns_that_are_gone(file_format, readers):
    """Iceberg Java passes over the former and refuses the latter, so Python is compared with."""
    name = f"inside_{file_format}"
    table = readers.catalog.create_table(
        readers.own(name), COMPARED, properties={"write.format.default": file_format}
    )
    table.append(compared(range(40)))
    delete_by_values(table, {("s", "bi"): [1, 2], ("day",): [3, 11]})
    ids = {f.name: f.field_id for f in table.schema().find_type("st").fields}
    inner = pa.struct(
        [
            pa.field(n, t, metadata={"PARQUET:field_id": str(ids[n])})
            for n, t in (("x", pa.int32()), ("y", pa.string()))
        ]
    )
    st = table.schema().find_field("st").field_id
    struct = pa.field("st", inner, metadata={"PARQUET:field_id": str(st)})
    keys = pa.table(
        [pa.array([{"x": 4, "y": "y4"}, {"x": 5, "y": None}, None], inner)], pa.schema([struct])
    )
    path = f"{table.location()}/data/inside.parquet"
    pq.write_table(keys, path.removeprefix("file:"))
    file = data_file_from_parquet(table.io, path, table.schema(), table.spec(), ())
    deletes = replace(
        file, content=DataFileContent.EQUALITY_DELETES, equality_ids=tuple(ids.values())
    )
    table.commit(RowDelta(table.io).add_deletes(deletes))
    with table.update_schema() as update:
        update.delete_column("bi").delete_column("day").rename_column("s", "day")
        update.add_column(("st", "z"), "int")
    found = sorted(readers.python(name, columns="id"))
    assert sorted(readers.spark(name, columns="id")) == found
    for columns in ("*", "st", "day, b"):
        assert readers.spark(name, columns=columns) == readers.python(name, columns=columns)
    nested = f"SELECT id, st.z, st.y FROM {{ns}}.{name} ORDER BY id"
    assert [row[0] for row in readers.spark_sql(nested)] == [row[0] for row in found]


def test_many_deleted_positions_are_read_where_the_rows_are(file_format, readers):
    """More than a plan takes: one delete file of two data files, and one of its own."""
    name = f"many_{file_format}"
    properties = {
        "write.delete.format.default": file_format,
        "write.delete.granularity": "partition",
    }
    table = readers.catalog.create_table(
        readers.own(name), pa.schema([("id", pa.int64())]), properties=properties
    )
    half = 380_000
    for start in (0, half):
        table.append(pa.table({"id": pa.array(range(start, start + half), pa.int64())}))
    tasks = sorted(table.scan().plan_files(), key=lambda task: task.file.file_path)
    for number, rows in enumerate((np.flatnonzero(np.arange(half) % 10), np.arange(half))):
        writer = PositionDeleteWriter(table.io, table.metadata, f"many-{number}")
        for task in tasks[number:] if number else tasks:
            writer.add(task.file, rows)
        delta = RowDelta(table.io)
        for file in writer.close():
            delta.add_deletes(file)
        table.commit(delta)
    files = {d.file_path: d for t in table.scan().plan_files() for d in t.delete_files}
    deleted = sum(file.record_count for file in files.values())
    assert deleted == 2 * half * 9 // 10 + half > MOST_POSITIONS
    table.append(pa.table({"id": pa.array([-1], pa.int64())}))
    select = f"SELECT count(*), sum(id), sum(_pos) FROM {{ns}}.{name}"
    found = readers.spark_sql(select)
    assert found[0][0] == half // 10 + 1
    assert found == readers.java_sql(select)
    marked = f"SELECT _deleted, count(*), sum(id) FROM {{ns}}.{name} GROUP BY 1 ORDER BY 1"
    assert readers.spark_sql(marked) == readers.java_sql(marked)


@pytest.mark.seeds(3)
def test_random_tables_of_mixed_formats_are_read_as_python_reads_them(seed, readers):
    """Appends in any format, deletes of both kinds in any format, and columns that change between them."""
    choose = random.Random(seed)
    name = f"mixed_{seed}"
    table = readers.catalog.create_table(readers.own(name), COMPARED)
    named = [f.name for f in COMPARED if f.name not in ("st", "k", "f")]
    changes = [
        lambda schema: schema.rename_column("b", "was_b"),
        lambda schema: schema.update_column("i", "long"),
        lambda schema: schema.update_column("m", "decimal(12, 2)"),
        lambda schema: schema.add_column(("st", "z"), "int"),
        lambda schema: schema.delete_column("bi"),
    ]
    choose.shuffle(changes)
    buckets = choose.sample(range(2, 9), 4)
    given = [choose.sample(range(120), 60) for _ in range(4)]
    for numbers in given:
        with table.transaction() as change:
            change.set_properties(
                {
                    "write.format.default": choose.choice(FORMATS),
                    "write.delete.format.default": choose.choice(FORMATS),
                    "write.delete.mode": "merge-on-read",
                }
            )
        present = {f.name for f in table.schema().fields}
        table.append(compared(numbers).select([f.name for f in COMPARED if f.name in present]))
        keys = [n for n in named if n in present]
        for _ in range(2):
            columns = tuple(choose.sample(keys, choose.randint(1, 3)))
            delete_by_values(table, {columns: choose.sample(range(120), 6)})
        table.delete(f"id IN ({', '.join(map(str, choose.sample(range(120), 5)))})")
        with table.update_schema() as update:
            changes.pop()(update)
        if choose.random() < 0.5:
            with table.update_spec() as update:
                update.add_field("id", f"bucket[{buckets.pop()}]")
    rows = readers.python(name)
    assert readers.spark(name) == rows
    assert 10 < len(rows) < 240
