"""Tables that Iceberg Java made are read the same by every Spark, and by Iceberg's own runtime: `sql/of_iceberg/*.sql`."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from icecomb.format.operation.row_delta import RowDelta
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.peers.spark_worker import plain
from tests.spark.sql_file import FOLDER, check_in, statements

FORMATS = ("parquet", "orc", "avro")
FILES = sorted(f"of_iceberg/{path.stem}" for path in (FOLDER / "of_iceberg").glob("*.sql"))

EVOLVED = """
CREATE TABLE {ns}.evolved (id BIGINT, i INT, f FLOAT, m DECIMAL(9, 2), day DATE, ts TIMESTAMP_NTZ, tz TIMESTAMP, s STRING,
  bi BINARY, st STRUCT<x: INT, y: STRING>, li ARRAY<INT>, ma MAP<STRING, DATE>) USING iceberg PARTITIONED BY (truncate(1, s))
  TBLPROPERTIES ('format-version' = '1', 'write.format.default' = '{format}');
INSERT INTO {ns}.evolved SELECT id, IF(id = 1, NULL, id - 5), IF(id = 2, NULL, id / 2), IF(id = 3, NULL, id * 1.25),
  IF(id = 1, NULL, date_add(DATE '1969-12-30', CAST(id AS INT))),
  IF(id = 1, NULL, TIMESTAMP_NTZ '0001-01-01 00:00:00' + make_dt_interval(CAST(id AS INT))),
  IF(id = 2, NULL, timestamp_micros(id * 2000000 - 1000001)), IF(id = 2, NULL, concat(IF(id = 1, 'b', 'a'), id)), CAST('b0' AS BINARY),
  IF(id = 2, NULL, named_struct('x', CAST(id AS INT), 'y', IF(id = 1, NULL, 'y'))), IF(id = 2, NULL, array(1, NULL)),
  IF(id = 2, NULL, map('k', date_add(DATE '1582-10-04', IF(id = 3, 13, CAST(id AS INT))))) FROM range(4);
ALTER TABLE {ns}.evolved CREATE TAG before;
ALTER TABLE {ns}.evolved ALTER COLUMN i TYPE BIGINT;
ALTER TABLE {ns}.evolved ALTER COLUMN f TYPE DOUBLE;
ALTER TABLE {ns}.evolved ALTER COLUMN m TYPE DECIMAL(12, 2);
ALTER TABLE {ns}.evolved RENAME COLUMN s TO name;
ALTER TABLE {ns}.evolved RENAME COLUMN st.x TO n;
ALTER TABLE {ns}.evolved ADD COLUMN st.z INT;
ALTER TABLE {ns}.evolved DROP COLUMN bi;
ALTER TABLE {ns}.evolved ADD COLUMN bi STRING;
ALTER TABLE {ns}.evolved REPLACE PARTITION FIELD s_trunc WITH months(day);
INSERT INTO {ns}.evolved (id, i, f, m, day, name, st, li, ma, bi) VALUES (10, 3000000000, 0.1D, 1234567890.12,
  DATE '2026-11-22', 'c', named_struct('n', 5, 'y', NULL, 'z', 6), array(), map(), 'text');
"""
BY_PLACE = """
CREATE TABLE {ns}.by_place (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('write.format.default' = '{format}',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'read.split.target-size' = '3000',
  'read.split.open-file-cost' = '100', 'write.orc.stripe-size-bytes' = '8192', 'write.parquet.row-group-size-bytes' = '8192');
INSERT INTO {ns}.by_place SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range(2000);
DELETE FROM {ns}.by_place WHERE id % 5 = 0;
DELETE FROM {ns}.by_place WHERE id BETWEEN 899 AND 1100 OR id = 1999;
UPDATE {ns}.by_place SET s = 'new' WHERE id % 100 = 1;
"""
BY_VALUES = """
CREATE TABLE {ns}.by_values (id BIGINT, k INT, s STRING, amount DECIMAL(9, 2), day DATE, ts TIMESTAMP) USING iceberg
  TBLPROPERTIES ('write.format.default' = '{format}');
INSERT INTO {ns}.by_values SELECT id, CAST(id % 2 AS INT), IF(id % 3 = 0 AND id > 0, NULL, concat('s', id)), id * 1.25,
  date_add(DATE '2000-01-01', CAST(-id * IF(id = 0, 0, 1) * 100 - IF(id = 0, 0, 10689) AS INT)), timestamp_micros(-id * 1000001) FROM range(10);
"""
LATER = "INSERT INTO {ns}.by_values (id, k, s) VALUES (2, 0, 'later'), (8, 0, 'later')"
# Columns of each delete file, and the rows whose values it has
KEYS = (
    (["id"], "id IN (1, 2)"),
    (["s", "k"], "s = 's4' OR s = 's5'"),
    (["amount"], "amount = 7.50"),
    (
        ["day", "ts"],
        "day < DATE '1968-08-28' AND ts < TIMESTAMP '1969-12-31 23:59:53' AND day > DATE '1968-02-10'",
    ),
)
MAPPED = """
CREATE TABLE {ns}.mapped (id BIGINT, name STRING, day DATE, st STRUCT<x: INT, gone: INT>, p INT) USING iceberg
  PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '1', 'write.format.default' = '{format}');
CALL ice.system.add_files(table => '{name}.mapped', source_table => '`{format}`.`{folder}`');
ALTER TABLE {ns}.mapped RENAME COLUMN name TO new;
ALTER TABLE {ns}.mapped ADD COLUMN name STRING;
ALTER TABLE {ns}.mapped RENAME COLUMN name TO s;
ALTER TABLE {ns}.mapped DROP COLUMN st.gone;
ALTER TABLE {ns}.mapped ADD COLUMN st.y INT;
INSERT INTO {ns}.mapped (id, new, s, st, p) VALUES (4, 'four', 'text', named_struct('x', 40, 'y', 41), 9);
"""
STRUCT = pa.struct([("x", pa.int32()), ("gone", pa.int32())])
SCHEMA = pa.schema(
    [("name", pa.string()), ("id", pa.int64()), ("day", pa.date32()), ("st", STRUCT)]
)


def write_without_ids(folder: Path, file_format: str) -> None:
    """Files of a table partitioned by `p`, its columns in another order, as Hive's have them."""
    rows = {
        7: [["one", 1, 0, {"x": 10, "gone": 5}], [None, 2, None, {"x": None, "gone": 6}]],
        8: [["three", 3, -30000, None]],
    }
    for p, of_p in rows.items():
        path = folder / f"p={p}" / f"rows.{file_format}"
        path.parent.mkdir(parents=True)
        table = pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in of_p], schema=SCHEMA
        )
        if file_format == "parquet":
            pyarrow.parquet.write_table(table, path)
        elif file_format == "orc":
            pyarrow.orc.write_table(table, path)
        else:
            with path.open("wb") as out:
                fastavro.writer(out, AVRO, table.to_pylist())


def _optional(name, kind):
    return {"name": name, "type": ["null", kind], "default": None}


AVRO = {
    "type": "record",
    "name": "rows",
    "fields": [
        _optional("name", "string"),
        _optional("id", "long"),
        _optional("day", {"type": "int", "logicalType": "date"}),
        _optional(
            "st",
            {
                "type": "record",
                "name": "st",
                "fields": [_optional("x", "int"), _optional("gone", "int")],
            },
        ),
    ],
}


@pytest.fixture(scope="module", params=FORMATS)
def made(request, iceberg_java, catalog, tmp_path_factory):
    """A format, and the namespace of the tables whose files have it."""
    file_format = request.param
    name = f"of_iceberg_{file_format}"
    folder = tmp_path_factory.mktemp(name)
    write_without_ids(folder, file_format)
    ns = f"ice.{name}"
    places = {"ns": ns, "name": name, "format": file_format, "folder": folder}
    iceberg_java.sql(f"CREATE NAMESPACE {ns}")
    for text in (EVOLVED, BY_PLACE, BY_VALUES):
        for statement in filter(str.strip, text.split(";\n")):
            iceberg_java.sql(statement.format(**places))
    for columns, where in KEYS:
        iceberg_java.delete_by_values(f"{ns}.by_values", columns, where, file_format)
    iceberg_java.sql(LATER.format(**places))
    for statement in filter(str.strip, MAPPED.split(";\n")):
        iceberg_java.sql(statement.format(**places))
    yield file_format, name
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    catalog.drop_namespace(name)


OURS = {
    "of_iceberg/reading": ("orc", EVOLVED),
    "of_iceberg/deletes": ("avro", BY_PLACE + BY_VALUES),
}
"""What the gate has no Spark of Iceberg Java to make, in the formats that most other tests do without."""


@pytest.fixture(scope="module")
def made_by_us(spark, catalog):
    """The same tables made by our Spark, each in one format; their namespace."""
    name = "of_ours"
    spark.sql(f"CREATE NAMESPACE lake.{name}")
    for file_format, statements_of in OURS.values():
        places = {"ns": f"lake.{name}", "format": file_format}
        for statement in filter(str.strip, statements_of.split(";\n")):
            spark.sql(statement.format(**places))
    table = catalog.load_table((name, "by_values"))
    for number, (columns, where) in enumerate(KEYS):
        rows = spark.table(f"lake.{name}.by_values").where(where).select(columns).toArrow()
        writer = EqualityDeleteWriter(table.io, table.metadata, f"keys{number}", columns)
        for batch in rows.to_batches():
            writer.write(batch)
        change = RowDelta(table.io)
        for made in writer.close():
            change.add_deletes(made)
        table.commit(change)
    spark.sql(LATER.format(ns=f"lake.{name}"))
    yield name
    for identifier in catalog.list_tables(name):
        catalog.drop_table(identifier)
    catalog.drop_namespace(name)


@pytest.mark.full("the same statements on Parquet are in the gate")
@pytest.mark.parametrize("file", OURS)
def test_our_spark_reads_those_so_that_it_made_itself(spark, made_by_us, file):
    def run(text):
        return [[plain(value) for value in row] for row in spark.sql(text).collect()]

    check_in(run, file, "lake", made_by_us, OURS[file][0])


def test_every_file_says_what_it_expects():
    for file in FILES:
        assert any(each.rows is not None for each in statements(file))
        assert any(each.error for each in statements(file))


@pytest.mark.parametrize("file", FILES)
def test_icebergs_own_runtime_reads_them_so(iceberg_java, made, file):
    file_format, name = made
    check_in(iceberg_java.sql, file, "ice", name, file_format)


@pytest.mark.parametrize("file", FILES)
def test_our_spark_reads_them_so(spark, made, file):
    def run(text):
        return [[plain(value) for value in row] for row in spark.sql(text).collect()]

    file_format, name = made
    check_in(run, file, "lake", name, file_format)


@pytest.mark.sparks("3.5")
@pytest.mark.parametrize("file", FILES)
def test_another_spark_reads_them_so(other_spark, minor, made, file):
    file_format, name = made
    check_in(other_spark(minor).sql, file, "lake", name, file_format)
