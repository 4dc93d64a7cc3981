"""Spark, through icecomb, reads files of every format as Iceberg Java and our Python read them."""

from __future__ import annotations

import pytest

from tests.interop.test_file_formats import FORMATS, SCHEMA, frame

pytestmark = pytest.mark.jvm


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


@pytest.fixture(scope="module")
def kinds(file_format, readers):
    """Every type, v1, some rows before and some after the schema and the spec changed."""
    name = f"kinds_{file_format}"
    create(readers, name, KINDS, file_format, version=1, clause="PARTITIONED BY (b)")
    readers.java_sql(f"INSERT INTO {{ns}}.{name} SELECT {VALUES} FROM range(0, 40)")
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
        readers.java_sql(f"ALTER TABLE {{ns}}.{name} {change}")
    readers.java_sql(f"ALTER TABLE {{ns}}.{name} REPLACE PARTITION FIELD b WITH bucket(2, id)")
    readers.java_sql(
        f"INSERT INTO {{ns}}.{name} (id, i2, extra, st) VALUES (99, 'new', named_struct('x', 1, 'y', NULL), "
        "named_struct('was_x', 5, 'y z', NULL, 'deep', NULL)), (100, NULL, NULL, NULL)"
    )
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
