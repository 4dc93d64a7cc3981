"""What properties, settings and options do to the files that Spark's tasks write.

Files are looked into by pyarrow and Parquet's own reader, and are as Iceberg's runtime writes them.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "file_settings_tests"
NUMBERS = itertools.count(1)
PREFIX = "spark.sql.iceberg."
ROWS = """
SELECT id, concat('text-', sha1(CAST(id AS STRING))) AS s, concat('k', id % 100) AS k,
IF(id % 3 = 0, NULL, named_struct('x', id)) AS st, array(id, id + 1) AS ls, map(concat('m', id), id) AS m
FROM range(0, 30000, 1, 1)
"""
P = "write.parquet."
PARQUET = {
    "rows of a page": {f"{P}page-row-limit": "1000"},
    "bytes of a page": {f"{P}page-size-bytes": "20000"},
    "dictionaries": {f"{P}dict-size-bytes": "10000"},
    "page version": {f"{P}page-version": "v2"},
    "row groups": {
        f"{P}row-group-size-bytes": "1000000",
        f"{P}row-group-check-min-record-count": "10",
        f"{P}row-group-check-max-record-count": "20",
    },
    "seldom looked at pages": {
        f"{P}page-size-bytes": "1000",
        f"{P}row-group-check-min-record-count": "5000",
        f"{P}row-group-check-max-record-count": "5000",
    },
    "bloom filters": {
        f"{P}bloom-filter-enabled.column.id": "true",
        f"{P}bloom-filter-enabled.column.s": "false",
        f"{P}bloom-filter-enabled.column.st.x": "true",
        f"{P}bloom-filter-enabled.column.ls.element": "true",
        f"{P}bloom-filter-enabled.column.m.key": "true",
        f"{P}bloom-filter-enabled.column.gone": "true",
    },
    "bloom filters of a number of values": {
        f"{P}bloom-filter-enabled.column.s": "true",
        f"{P}bloom-filter-ndv.column.s": "1000",
    },
    "bloom filters that are often wrong": {
        f"{P}bloom-filter-enabled.column.s": "true",
        f"{P}bloom-filter-ndv.column.s": "1000",
        f"{P}bloom-filter-fpp.column.s": "0.5",
    },
    "short bloom filters": {
        f"{P}bloom-filter-enabled.column.s": "true",
        f"{P}bloom-filter-max-bytes": "4096",
    },
    "statistics": {
        f"{P}stats-enabled.column.s": "false",
        f"{P}stats-enabled.column.st.x": "false",
        f"{P}stats-enabled.column.gone": "false",
    },
    "codec": {f"{P}compression-codec": "gzip"},
    "another codec": {f"{P}compression-codec": "snappy"},
    "no codec": {f"{P}compression-codec": "uncompressed"},
}
# what is then otherwise than in a file without properties; a list has a fact of each column chunk
ABOUT = {
    "rows of a page": {"pages": [10] * 7},
    "dictionaries": {"dictionary": [False, False, True, False, False, False, False]},
    "page version": {"kinds": {"DataPageV2"}},
    "bloom filters": {"bloom": [1 << 20, None, None, 1 << 20, None, 1 << 20, None]},
    "bloom filters that are often wrong": {"bloom": [None, 512, None, None, None, None, None]},
    "statistics": {"statistics": [True, False, True, False, True, True, True]},
    "codec": {"codec": {"GZIP"}},
}
OF_EVERY_SPARK = ("bloom filters", "short bloom filters", "page version", "rows of a page")


@pytest.fixture
def name(spark):
    table = f"{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    for each in (table, f"{table}_of_iceberg"):
        spark.sql(f"DROP TABLE IF EXISTS lake.{each} PURGE")


def written(sql, table, properties, rows=ROWS):
    """The only file of a new table, by the path that is open to us."""
    given = ", ".join(
        f"'{k}'='{v}'" for k, v in {"write.wap.enabled": "false", **properties}.items()
    )
    sql(f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ({given}) AS {rows}")
    [[path]] = sql(f"SELECT file_path FROM {table}.files")
    return Path(path.removeprefix("file:"))


def inside(spark, path):
    """Of each column chunk the number of data pages and the length of its bloom filter, and the
    kinds of pages that there are.
    """
    parquet = spark._jvm.org.apache.parquet.hadoop
    place = spark._jvm.org.apache.hadoop.fs.Path(str(path))
    conf = spark._jsc.hadoopConfiguration()
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(place, conf))
    try:
        chunks = [c for block in reader.getFooter().getBlocks() for c in block.getColumns()]
        pages = [reader.readOffsetIndex(chunk).getPageCount() for chunk in chunks]
        filters = [reader.readBloomFilter(chunk) for chunk in chunks]
        columns = reader.getFooter().getFileMetaData().getSchema().getColumns()
        store = reader.readNextRowGroup()
        kinds = {type_of(store.getPageReader(column).readPage()) for column in columns}
        return pages, [each and each.getBitsetSize() for each in filters], kinds
    finally:
        reader.close()


def type_of(page):
    return page.getClass().getSimpleName()


def facts(spark, path):
    """What a Parquet file is like, as far as the properties say it."""
    footer = pq.read_metadata(path)
    pages, filters, kinds = inside(spark, path)
    chunks = [
        footer.row_group(group).column(i)
        for group in range(footer.num_row_groups)
        for i in range(footer.num_columns)
    ]
    return {
        # ours are cut some rows earlier or later
        "rows": [
            round(footer.row_group(group).num_rows, -3) for group in range(footer.num_row_groups)
        ],
        "pages": [round(number / 3) for number in pages],
        "codec": {chunk.compression for chunk in chunks},
        "dictionary": [chunk.has_dictionary_page for chunk in chunks],
        "statistics": [chunk.is_stats_set for chunk in chunks],
        "bloom": filters,
        "kinds": kinds,
    }


@pytest.fixture(params=sampled(["4.3", "4.1"], keep=1))
def lake(request, sql_on):
    """Runs statements on the newest Spark, and on that of Iceberg's runtime."""
    return sql_on(request.param)


@pytest.fixture(scope="module")
def plain_file(spark, sql_on):
    """What a file of the newest Spark without properties is like."""
    name = f"lake.{NAMESPACE}.plain"
    try:
        return facts(spark, written(sql_on("4.3"), name, {}))
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")


@pytest.mark.parametrize("case", sampled(ABOUT, keep=1))
def test_a_property_changes_of_files_what_it_is_about(spark, sql_on, name, plain_file, case):
    found = facts(spark, written(sql_on("4.3"), f"lake.{name}", PARQUET[case]))
    assert found != plain_file
    assert found == plain_file | ABOUT[case]


def test_row_groups_are_as_large_as_a_property_says(spark, sql_on, name, plain_file):
    found = facts(spark, written(sql_on("4.3"), f"lake.{name}", PARQUET["row groups"]))
    assert found["rows"] == [10_000, 10_000, 10_000, 1_000]
    assert plain_file["rows"] == [30_000]


@pytest.fixture(scope="module")
def usual(spark, peers):
    """A file without properties."""
    try:
        yield facts(spark, written(peers["lake"], f"lake.{NAMESPACE}.usual", {}))
    finally:
        spark.sql(f"DROP TABLE IF EXISTS lake.{NAMESPACE}.usual PURGE")


@pytest.mark.parametrize("case", PARQUET)
def test_parquet_files_are_written_as_by_icebergs_runtime(spark, peers, name, usual, case):
    properties = PARQUET[case]
    expected = facts(spark, written(peers["ice"], f"ice.{name}_of_iceberg", properties))
    found = facts(spark, written(peers["lake"], f"lake.{name}", properties))
    assert found == expected
    assert found != usual


@pytest.mark.parametrize("case", OF_EVERY_SPARK)
def test_the_oldest_spark_writes_them_so_too(spark, other_spark, peers, name, usual, case):
    [found, expected] = [
        facts(spark, written(sql, f"lake.{name}{number}", PARQUET[case]))
        for number, sql in enumerate((other_spark("3.5").sql, peers["lake"]))
    ]
    for number in (0, 1):
        spark.sql(f"DROP TABLE lake.{name}{number} PURGE")
    assert found == expected
    assert found != usual


def test_a_column_has_no_dictionary_where_the_table_says_so(lake, name):
    off = {f"{P}dict-encoding-enabled.column.{column}": "false" for column in ("k", "m.key", "no")}
    path = written(lake, f"lake.{name}", off)
    found = pq.read_metadata(path).row_group(0)
    chunks = {found.column(i).path_in_schema: found.column(i) for i in range(found.num_columns)}
    encodings = {path: set(chunk.encodings) for path, chunk in chunks.items()}
    assert "PLAIN_DICTIONARY" not in encodings["k"] | encodings["m.key_value.key"]
    assert "PLAIN_DICTIONARY" in encodings["m.key_value.value"] | encodings["ls.list.element"]


@pytest.mark.full("a detail of one property")
def test_a_bloom_filter_is_as_short_as_its_values_allow_where_the_table_says_so(
    spark, lake, name, plain_file
):
    asked = {f"{P}bloom-filter-enabled.column.s": "true"}
    asked |= {f"{P}bloom-filter-adaptive-enabled": "true", f"{P}bloom-filter-fpp.column.s": "0.01"}
    found = facts(spark, written(lake, f"lake.{name}", asked))["bloom"]
    # 30,000 values need 9.7 bits each, and there are lengths of powers of two; else it is 1 MiB
    assert [length for length in found if length is not None] == [65536]
    assert plain_file["bloom"] == [None] * len(found)


def test_columns_without_statistics_are_found_by_filters(spark, catalog, lake, name):
    off = {f"{P}stats-enabled.column.{column}": "false" for column in ("id", "st.x")}
    written(lake, f"lake.{name}", off)
    table = spark.table(f"lake.{name}")
    assert table.where("st IS NULL").count() == 10_000
    assert table.where("st.x IS NULL").count() == 10_000
    assert table.where("id = 29999").count() == 1
    assert catalog.load_table(name).scan("st.x is null").to_arrow().num_rows == 10_000
    assert catalog.load_table(name).scan("id = 77").to_arrow().num_rows == 1


@pytest.mark.full("a detail of one property")
@pytest.mark.parametrize(
    ("codec", "low", "high"),
    sampled([("gzip", "1", "9"), ("zstd", "1", "19"), ("gzip", "0", "5")], keep=1),
)
def test_a_higher_level_makes_shorter_files(spark, lake, name, codec, low, high):
    """Hadoop has names for those of gzip; Iceberg Java hands on the number, and the task fails."""
    sizes = []
    for level in (low, high):
        properties = {f"{P}compression-codec": codec, f"{P}compression-level": level}
        path = written(lake, f"lake.{name}_{level}", properties)
        sizes.append(path.stat().st_size)
        spark.sql(f"DROP TABLE lake.{name}_{level} PURGE")
    assert sizes[1] < sizes[0] * 0.99


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({f"{P}compression-codec": "gzip", f"{P}compression-level": "12"}, "compression-level"),
        (
            {
                f"{P}row-group-check-min-record-count": "50",
                f"{P}row-group-check-max-record-count": "20",
            },
            "row-group-check-max-record-count is 20, less than 50",
        ),
    ],
)
def test_what_no_file_can_be_is_refused_before_a_task_begins(lake, name, properties, message):
    with pytest.raises((AssertionError, PySparkException), match=message):
        written(lake, f"lake.{name}", properties)
