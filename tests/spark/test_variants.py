"""Columns of variants in Spark SQL, which has them from version 4.0 on."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format import Variant, variants_from_arrow, variants_to_arrow
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "variant_tests"
NUMBERS = itertools.count(1)


@pytest.fixture
def name():
    return f"{NAMESPACE}.t{next(NUMBERS)}"


def python_values(array):
    return [None if v is None else v.to_python() for v in variants_from_arrow(array)]


def rows_of(table, column="v"):
    found = table.refresh().scan().to_arrow().sort_by("id")
    return python_values(found[column].combine_chunks())


@pytest.mark.sparks("4.3", "4.1")
@pytest.mark.parametrize("file_format", sampled(["parquet", "avro"], keep=1))
def test_variants_are_written_and_read_by_statements(sql_on, catalog, name, minor, file_format):
    sql = sql_on(minor)
    there = f"lake.{name}"
    told = f"('format-version'='3', 'write.format.default'='{file_format}')"
    sql(f"CREATE TABLE {there} (id BIGINT, v VARIANT, s STRUCT<a: VARIANT>) TBLPROPERTIES {told}")
    sql(
        f"INSERT INTO {there} SELECT id, parse_json(j), named_struct('a', parse_json('[7]')) "
        """FROM VALUES (1, '{"a": [1, "x", null], "b": 1.5}'), (2, 'null'), (3, NULL) AS v (id, j)"""
    )
    table = catalog.load_table(name)
    expected = [{"a": [1, "x", None], "b": 1.5}, None, None]
    found = rows_of(table)
    assert found[0]["a"] == expected[0]["a"]
    assert float(found[0]["b"]) == 1.5
    assert found[1:] == expected[1:]
    variants = table.scan("v is null").to_arrow()["id"].to_pylist()
    assert variants == [3]  # a variant null is a value
    sql(f"ALTER TABLE {there} ADD COLUMN l ARRAY<VARIANT>")
    schema = table.refresh().schema().as_arrow()
    given = variants_to_arrow([Variant.of({"a": "python"}), None])
    kind = schema.field("s").type
    inside = pa.array([None, None], kind)
    lists = pa.array([None, None], schema.field("l").type)
    table.append(pa.table({"id": [4, 5], "v": given, "s": inside, "l": lists}, schema=schema))
    sql(
        f"MERGE INTO {there} t USING (SELECT * FROM VALUES (2, 'm'), (6, 'i') AS v (id, j)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = to_variant_object(named_struct('m', s.j)) "
        "WHEN NOT MATCHED THEN INSERT (id, v, l) VALUES (s.id, parse_json('6'), array(parse_json('[1]')))"
    )
    sql(f"UPDATE {there} SET v = parse_json('{{\"u\": 1}}') WHERE id = 5")
    assert rows_of(table)[1:] == [{"m": "m"}, None, {"a": "python"}, {"u": 1}, 6]
    got = "variant_get(v, '$.a[1]', 'string'), v:m::string, to_json(s.a), to_json(l[0])"
    assert sql(f"SELECT id, {got} FROM {there} ORDER BY id") == [
        [1, "x", None, "[7]", None],
        [2, None, "m", "[7]", None],
        [3, None, None, "[7]", None],
        [4, None, None, None, None],
        [5, None, None, None, None],
        [6, None, None, None, "[1]"],
    ]
    assert sql(f"SELECT id FROM {there} WHERE v IS NULL OR v:a::string = 'python' ORDER BY id") == [
        [3],
        [4],
    ]
    sql(f"CREATE TABLE {there}_copy TBLPROPERTIES {told} AS SELECT id, v FROM {there} WHERE id > 3")
    assert rows_of(catalog.load_table(f"{name}_copy")) == [{"a": "python"}, {"u": 1}, 6]


def test_variants_that_others_shredded_are_put_together(spark, catalog, name):
    spark.sql(f"CREATE TABLE lake.{name} (v VARIANT) TBLPROPERTIES ('format-version'='3')")
    table = catalog.load_table(name)
    made = Variant.of({"k": 1, "more": "x"})
    part = pa.struct([("value", pa.binary()), ("typed_value", pa.int32())])
    rest = Variant.of({"k": None, "more": "x"})
    kept = Variant.of({"more": "x"})
    assert made.metadata == rest.metadata
    kind = pa.struct(
        [
            ("metadata", pa.binary()),
            ("value", pa.binary()),
            ("typed_value", pa.struct([("k", part)])),
        ]
    )
    rows = [
        {"metadata": kept.metadata, "value": kept.value, "typed_value": None},
        {"metadata": made.metadata, "value": None, "typed_value": {"k": {"typed_value": 1}}},
        None,
    ]
    folder = Path(table.location().removeprefix("file:")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    field = pa.field("v", kind, metadata={"PARQUET:field_id": "1"})
    pq.write_table(
        pa.table([pa.array(rows, kind)], pa.schema([field])), folder / "shredded.parquet"
    )
    table.add_files([f"{folder}/shredded.parquet"])
    found = spark.sql(f"SELECT to_json(v) FROM lake.{name} ORDER BY 1 NULLS FIRST").collect()
    assert [row[0] for row in found] == [None, '{"k":1}', '{"more":"x"}']


def test_iceberg_java_reads_our_variants_and_we_its_shredded_ones(
    spark, iceberg_java, catalog, name, tmp_path
):
    columns = "(id BIGINT, v VARIANT, s ARRAY<VARIANT>)"
    told = "('format-version'='3', 'write.parquet.shred-variants'='true')"
    insert = (
        "INSERT INTO {} SELECT id, parse_json(j), array(parse_json(j), NULL) FROM VALUES "
        """(1, '{{"a": 1, "b": "x"}}'), (2, '{{"a": 2}}'), (3, 'null'), (4, NULL) AS v (id, j)"""
    )
    values = ['{"a":1,"b":"x"}', '{"a":2}', "null", None]
    expected = [[i, v, v, v is None, True] for i, v in enumerate(values, 1)]
    shown = "SELECT id, to_json(v), to_json(s[0]), v IS NULL, s[1] IS NULL FROM {} ORDER BY id"
    spark.sql(f"CREATE TABLE lake.{name} {columns} TBLPROPERTIES {told}")
    spark.sql(insert.format(f"lake.{name}"))
    assert iceberg_java.sql(shown.format(f"ice.{name}")) == expected
    ours, *_ = catalog.load_table(name).scan().plan_files()
    assert "VARIANT" in str(pq.ParquetFile(ours.file_path.removeprefix("file:")).schema).upper()
    # its catalog of a Hive metastore cannot commit to tables with variants
    for setting, value in ((".type", "hadoop"), (".warehouse", tmp_path)):
        iceberg_java.sql(f"SET spark.sql.catalog.folders{setting}={value}")
    iceberg_java.sql("SET spark.sql.catalog.folders=org.apache.iceberg.spark.SparkCatalog")
    iceberg_java.sql(f"CREATE TABLE folders.db.t {columns} USING iceberg TBLPROPERTIES {told}")
    iceberg_java.sql(insert.format("folders.db.t"))
    schemas = [str(pq.ParquetFile(file).schema) for file in tmp_path.rglob("*.parquet")]
    assert any("typed_value" in schema for schema in schemas)
    found = spark.sql(shown.format(f"lake.`{tmp_path}/db/t`")).collect()
    assert [list(row) for row in found] == expected


@pytest.mark.sparks("3.5", "4.0")
def test_a_spark_without_the_type_or_its_annotation_refuses_the_column_only(
    sql_on, catalog, name, minor
):
    sql, there = sql_on(minor), f"lake.{name}"
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))])
    table = catalog.create_table(name, schema, properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("v", "variant")
        update.add_column("s.v", "variant")
    table.append(
        pa.table(
            {"id": [1], "s": [{"x": 2, "v": None}]}, schema=table.schema().as_arrow().remove(2)
        )
    )
    assert sql(f"SELECT id, s.x FROM {there}") == [[1, 2]]
    if minor == "3.5":
        assert "variant, which this Spark cannot read" in str(sql(f"DESCRIBE TABLE {there}"))
        for column in ("v", "s.v", "s"):
            with pytest.raises(Exception, match=r"Column v cannot be read by Spark: Spark 3\.5"):
                sql(f"SELECT {column} FROM {there}")
        problem = r"Column v cannot be written by Spark: Spark 3\.5"
        value = "NULL"
    else:
        assert sql(f"SELECT v, s.v FROM {there}") == [[None, None]]
        problem = r"Column s cannot be written to Parquet by Spark 4\.0.* lacks the annotation"
        value = "parse_json('1')"
    with pytest.raises(Exception, match=problem):
        sql(f"INSERT INTO {there} SELECT 2, NULL, {value}")
