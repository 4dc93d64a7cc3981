"""Tables whose data and delete files are Parquet, ORC or Avro, written by Iceberg Java."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

MERGE_ON_READ = ", ".join(
    f"'write.{mode}.mode'='merge-on-read'" for mode in ("delete", "update", "merge")
)


@pytest.fixture(scope="module", params=["parquet", "orc", "avro"])
def java_table(request, readers):
    """Rows of Iceberg Java with deletes between them, under two specs and two schemas."""
    name = f"java_{request.param}"
    readers.own(name)
    sql = readers.java_sql
    sql(
        f"CREATE TABLE {{ns}}.{name} (id BIGINT, i INT, f FLOAT, s STRING, b BINARY, d DATE, "
        "t TIMESTAMP, n TIMESTAMP_NTZ, m DECIMAL(9, 2), k INT, "
        "p STRUCT<x: INT, gone: STRING>, l ARRAY<STRUCT<x: INT>>, mp MAP<STRING, INT>) "
        f"USING iceberg PARTITIONED BY (k) TBLPROPERTIES ('format-version'='2', "
        f"'write.format.default'='{request.param}', {MERGE_ON_READ})"
    )
    sql(
        f"INSERT INTO {{ns}}.{name} SELECT id, CAST(id AS INT), CAST(id / 4 AS FLOAT), "
        "IF(id % 5 = 0, NULL, concat('v', id)), CAST(concat('b', id) AS BINARY), "
        "DATE'1969-12-30' + CAST(id AS INT), TIMESTAMP'1969-12-31 23:59:59.999999' + make_interval(0, 0, 0, id), "
        "TIMESTAMP_NTZ'2020-02-29 01:02:03.000004' + make_interval(0, 0, 0, id), "
        "CAST(id / 8 AS DECIMAL(9, 2)), IF(id % 7 = 0, NULL, CAST(id % 3 AS INT)), "
        "named_struct('x', CAST(id AS INT), 'gone', 'old'), array(named_struct('x', CAST(id AS INT)), NULL), "
        "map('a', CAST(id AS INT), 'z', NULL) FROM range(0, 100)"
    )
    sql(f"DELETE FROM {{ns}}.{name} WHERE id % 10 = 3")
    sql(f"ALTER TABLE {{ns}}.{name} ALTER COLUMN i TYPE BIGINT")
    sql(f"ALTER TABLE {{ns}}.{name} ALTER COLUMN f TYPE DOUBLE")
    sql(f"ALTER TABLE {{ns}}.{name} ALTER COLUMN m TYPE DECIMAL(20, 2)")
    sql(f"ALTER TABLE {{ns}}.{name} RENAME COLUMN s TO text")
    sql(f"ALTER TABLE {{ns}}.{name} DROP COLUMN p.gone")
    sql(f"ALTER TABLE {{ns}}.{name} ADD COLUMN l.element.y STRING")
    sql(f"ALTER TABLE {{ns}}.{name} REPLACE PARTITION FIELD k WITH bucket(2, id)")
    sql(
        f"INSERT INTO {{ns}}.{name} SELECT id, id * 10000000000, double('NaN'), 'new', NULL, NULL, NULL, NULL, "
        "NULL, 1, NULL, array(), map() FROM range(100, 120)"
    )
    sql(f"UPDATE {{ns}}.{name} SET text = 'updated' WHERE id % 20 = 1")
    return name


OTHERS = {"java_parquet": [], "java_orc": ["peer"], "java_avro": ["peer"]}
"""PyIceberg reads no Avro, and ORC with positions not."""


def test_rows_are_those_that_iceberg_java_reads(java_table, readers):
    rows = readers.agree(java_table, but=OTHERS[java_table])
    assert sorted(row[0] for row in rows) == [i for i in range(120) if i >= 100 or i % 10 != 3]


@pytest.mark.parametrize(
    "where", ["id = 41", "i > 1000000000000", "k is null and id < 50", "m > 11.5", "text = 'new'"]
)
def test_filters_select_what_they_select_in_iceberg_java(java_table, readers, where):
    assert readers.agree(java_table, where, "id, text, m", but=["peer"])


def test_metadata_columns_are_those_of_iceberg_java(java_table, readers):
    """Where rows lie; a scan of `_deleted` also shows the deleted ones."""
    columns = "_file, _pos, _spec_id, _partition, id"
    expected = readers.java(java_table, columns=columns)
    assert ours(readers, java_table, columns) == expected
    assert readers.spark(java_table, columns=columns) == expected
    inside = "_partition.k, _partition.id_bucket_2, id"
    assert readers.spark(java_table, columns=inside) == readers.java(java_table, columns=inside)
    marked = "id, _deleted"
    expected = sorted(readers.java(java_table, columns=marked), key=repr)
    assert sum(row[1] for row in expected) == 16
    assert ours(readers, java_table, marked) == expected
    assert readers.spark(java_table, columns=marked) == expected
    some = "id % 20 = 1 AND NOT _deleted"
    assert readers.spark(java_table, some) == readers.java(java_table, some)
    with pytest.raises(Exception, match="_deleted"):
        readers.spark_sql(f"UPDATE {{ns}}.{java_table} SET i = 1 WHERE _deleted")


def ours(readers, table, columns):
    names = [name.strip() for name in columns.split(",")]
    found = readers.load(table).scan(selected_fields=tuple(names)).to_arrow().select(names)
    return readers.arrow_rows(found)


def test_a_wide_file_of_iceberg_java_is_read_stripe_by_stripe(readers, tmp_path):
    """Parts of a file come to the whole, and filters skip stripes without losing rows."""
    name = "java_stripes"
    readers.own(name)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} USING iceberg TBLPROPERTIES ('write.format.default'='orc', "
        "'write.orc.stripe-size-bytes'='65536') AS SELECT id, sha2(CAST(id AS STRING), 256) AS s, "
        "CAST(id / 2 AS DECIMAL(12, 1)) AS m, CAST(id AS DOUBLE) AS d, "
        "TIMESTAMP'2020-01-01' + make_interval(0, 0, 0, 0, id) AS t FROM range(0, 60000, 1, 1)"
    )
    table = readers.load(name)
    (task,) = table.scan().plan_files()
    from icecomb.format.rows.read.data_file import open_data_file

    reader = open_data_file(table.io, task.file, None)
    assert len(reader.row_groups()) > 3
    reader.close()
    for where in (
        "id = 31234",
        "m between 100 and 120",
        "d < 7",
        "t >= '2026-06-01T00:00:00+00:00'",
        "s < '01'",
    ):
        readers.agree(name, where, but=["peer"])
    assert sum(p.num_rows for p in map(reading(table), task.split(task.length // 5))) == 60000


def reading(table):
    from icecomb.format.rows.read.arrow_scan import ArrowScan

    scan = ArrowScan(table.metadata, table.io, table.schema())
    return lambda part: scan.to_table([part])
