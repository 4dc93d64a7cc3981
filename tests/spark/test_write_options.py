"""Options of writes, settings of the session and properties of tables: each is seen in the files.

An option goes before a setting, a setting before a property (Iceberg Java's SparkWriteConf).
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    UnsupportedOperationException,
)
from pyspark.sql.functions import lit

from tests.rings import sampled

NAMESPACE = "write_options_tests"
NUMBERS = itertools.count(1)
PREFIX = "spark.sql.iceberg."
DOCS = Path(__file__).parents[2] / "docs"
ROWS = 20_000
OF_ALL = pytest.mark.full("one of each format is in the gate; what an option says goes one way")


@pytest.fixture(scope="module", autouse=True)
def namespace(spark):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    yield
    spark.sql(f"DROP NAMESPACE lake.{NAMESPACE}")


@pytest.fixture
def name(spark):
    table = f"lake.{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")


def written(spark, table, properties, settings=None, options=None):
    """The data files that an append makes, as rows of the metadata table."""
    given = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    clause = f"TBLPROPERTIES ({given})" if given else ""
    spark.sql(f"CREATE TABLE {table} (id BIGINT, s STRING, k INT) USING iceberg {clause}")
    rows = spark.range(0, ROWS, 1, 1).selectExpr("id", "sha1(string(id)) AS s", "int(id % 2) AS k")
    for key, value in (settings or {}).items():
        spark.conf.set(PREFIX + key, value)
    try:
        write = rows.writeTo(table)
        for key, value in (options or {}).items():
            write = write.option(key, value)
        write.append()
    finally:
        for key in settings or {}:
            spark.conf.unset(PREFIX + key)
    return spark.table(f"{table}.files").collect()


def local(file):
    return file.file_path.removeprefix("file:")


def codec(file):
    """The format and codec of a file, as it says itself."""
    path, kind = local(file), file.file_format
    if kind == "PARQUET":
        return kind, pq.read_metadata(path).row_group(0).column(0).compression
    if kind == "ORC":
        return kind, orc.ORCFile(path).compression
    with Path(path).open("rb") as source:
        return kind, fastavro.block_reader(source).metadata["avro.codec"]


def said(file_format, name="compression-codec"):
    return f"write.{file_format}.{name}"


@pytest.mark.parametrize(
    ("properties", "settings", "options", "expected"),
    [
        pytest.param({}, {}, {}, ("PARQUET", "ZSTD"), marks=OF_ALL),
        pytest.param({said("parquet"): "gzip"}, {}, {}, ("PARQUET", "GZIP"), marks=OF_ALL),
        ({said("parquet"): "gzip"}, {"compression-codec": "snappy"}, {}, ("PARQUET", "SNAPPY")),
        (
            {said("parquet"): "gzip"},
            {"compression-codec": "snappy"},
            {"Compression-Codec": "uncompressed"},
            ("PARQUET", "UNCOMPRESSED"),
        ),
        pytest.param({"write.format.default": "orc"}, {}, {}, ("ORC", "ZLIB"), marks=OF_ALL),
        pytest.param(
            {"write.format.default": "orc", said("orc"): "zstd"},
            {},
            {},
            ("ORC", "ZSTD"),
            marks=OF_ALL,
        ),
        pytest.param(
            {"write.format.default": "orc", said("orc"): "zstd"},
            {"compression-codec": "snappy"},
            {},
            ("ORC", "SNAPPY"),
            marks=OF_ALL,
        ),
        (
            {"write.format.default": "orc"},
            {"compression-codec": "snappy"},
            {"compression-codec": "none"},
            ("ORC", "UNCOMPRESSED"),
        ),
        pytest.param({"write.format.default": "avro"}, {}, {}, ("AVRO", "deflate"), marks=OF_ALL),
        pytest.param(
            {"write.format.default": "avro", said("avro"): "snappy"},
            {"compression-codec": "zstd"},
            {},
            ("AVRO", "zstandard"),
            marks=OF_ALL,
        ),
        (
            {"write.format.default": "orc", said("avro"): "snappy"},
            {},
            {"write-format": "avro"},
            ("AVRO", "snappy"),
        ),
        ({}, {"write-format": "orc"}, {}, ("PARQUET", "ZSTD")),
    ],
)
def test_an_option_goes_before_a_setting_and_that_before_a_property(
    spark, name, properties, settings, options, expected
):
    [file] = written(spark, name, properties, settings, options)
    assert codec(file) == expected


def test_statements_without_tasks_compress_by_the_setting_too(spark, name):
    properties = {said("parquet"): "gzip", "write.delete.parquet.compression-codec": "gzip"}
    written(spark, name, {**properties, "write.delete.mode": "merge-on-read"})
    deletes = f"{name}.delete_files"
    rewrite = f"table => '{name[5:]}', options => map('rewrite-all', 'true')"
    try:
        spark.conf.set(f"{PREFIX}compression-codec", "snappy")
        spark.sql(f"DELETE FROM {name} WHERE id < 10")
        assert [codec(file) for file in spark.table(deletes).collect()] == [("PARQUET", "SNAPPY")]
        spark.conf.set(f"{PREFIX}compression-codec", "zstd")
        spark.sql(f"CALL lake.system.rewrite_position_delete_files({rewrite})")
        assert [codec(file) for file in spark.table(deletes).collect()] == [("PARQUET", "ZSTD")]
        spark.sql(f"CALL lake.system.rewrite_data_files({rewrite})")
        files = spark.table(f"{name}.data_files").collect()
        assert [codec(file) for file in files] == [("PARQUET", "ZSTD")]
    finally:
        spark.conf.unset(f"{PREFIX}compression-codec")
    assert spark.table(name).count() == ROWS - 10


@pytest.mark.parametrize("file_format", sampled(["parquet", "avro"], keep=1))
def test_levels_come_from_properties_settings_and_options(spark, name, file_format):
    properties = {
        "write.format.default": file_format,
        said(file_format): "zstd",
        said(file_format, "compression-level"): "19",
    }
    sizes = []
    for settings, options in (
        ({}, {}),
        ({"compression-level": "1"}, {}),
        ({"compression-level": "19"}, {"compression-level": "1"}),
    ):
        [file] = written(spark, name, properties, settings, options)
        sizes.append(file.file_size_in_bytes)
        spark.sql(f"DROP TABLE {name} PURGE")
    assert sizes[0] < sizes[1] == sizes[2]


@pytest.mark.parametrize("file_format", sampled(["orc", "parquet", "avro"], keep=1))
def test_a_file_ends_where_the_property_or_the_option_says(spark, name, file_format):
    few = {"write.format.default": file_format, "write.target-file-size-bytes": "100000000"}
    few |= {"write.orc.stripe-size-bytes": "100000", "write.parquet.row-group-size-bytes": "100000"}
    [_] = written(spark, name, few)
    spark.sql(f"DROP TABLE {name} PURGE")
    files = written(spark, name, few, {}, {"target-file-size-bytes": "150000"})
    assert len(files) > 2
    assert sum(file.record_count for file in files) == ROWS


def test_orc_files_have_the_stripes_and_bloom_filters_of_the_properties(spark, name):
    base = {"write.format.default": "orc"}
    [usual] = written(spark, name, base)
    assert orc.ORCFile(local(usual)).nstripes == 1
    spark.sql(f"DROP TABLE {name} PURGE")
    asked = base | {"write.orc.stripe-size-bytes": "100000", "write.orc.bloom.filter.columns": "s"}
    [file] = written(spark, name, asked)
    assert orc.ORCFile(local(file)).nstripes > 2
    spark.sql(f"DROP TABLE {name} PURGE")
    sizes = []
    for fpp in ("0.5", "0.001"):
        bloom = {"write.orc.bloom.filter.columns": "s", "write.orc.bloom.filter.fpp": fpp}
        [file] = written(spark, name, base | bloom)
        sizes.append(file.file_size_in_bytes)
        spark.sql(f"DROP TABLE {name} PURGE")
    assert usual.file_size_in_bytes < sizes[0] < sizes[1]


def test_metrics_are_kept_as_the_properties_say(spark, name):
    modes = {
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.id": "counts",
        "write.metadata.metrics.column.s": "truncate(3)",
    }
    [file] = written(spark, name, modes)
    assert sorted(file.value_counts) == [1, 2]
    assert sorted(file.lower_bounds) == [2]
    assert len(file.lower_bounds[2]) == 3
    assert len(file.upper_bounds[2]) == 3


def test_files_lie_where_the_properties_say(spark, name, tmp_path):
    [file] = written(spark, name, {"write.data.path": f"file:{tmp_path}/data"})
    assert Path(local(file)).parent == tmp_path / "data"
    spark.sql(f"DROP TABLE {name} PURGE")
    spread = {"write.object-storage.enabled": "true", "write.data.path": f"file:{tmp_path}/spread"}
    [file] = written(spark, name, spread)
    below = Path(local(file)).relative_to(tmp_path / "spread")
    assert re.fullmatch(r"[01]{4}/[01]{4}/[01]{4}/[01]{8}/.+\.parquet", str(below))


REFUSED = [
    ({"write-format": "csv"}, "write-format cannot be 'csv'"),
    ({"target-file-size-bytes": "0"}, "target-file-size-bytes cannot be '0'"),
    ({"compression-codec": "lzma"}, "compression-codec cannot be 'lzma'"),
    ({"compression-level": "high"}, "compression-level cannot be 'high'"),
    ({"fanout-enabled": "perhaps"}, "fanout-enabled cannot be 'perhaps'"),
    ({"distribution-mode": "some"}, "distribution-mode cannot be 'some'"),
    ({"advisory-partition-size": "0"}, "advisory-partition-size cannot be '0'"),
    ({"output-spec-id": "7"}, "Output spec id 7 is not a valid spec id"),
    ({"output-sort-order-id": "7"}, "Cannot use output sort order id 7"),
    ({"validate-from-snapshot-id": "7"}, "no snapshot 7 to validate from"),
    ({"isolation-level": "none"}, "isolation-level cannot be 'none'"),
    ({"use-table-distribution-and-ordering": "?"}, "ordering cannot be"),
    ({"snapshot-property.added-records": "1"}, "added-records"),
]


def test_an_option_that_cannot_be_what_it_says_is_refused(spark, name):
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    for options, message in REFUSED:
        with pytest.raises(IllegalArgumentException, match=re.escape(message)):
            spark.range(9).writeTo(name).options(**options).append()
        assert spark.table(f"{name}.snapshots").count() == 0


@pytest.mark.parametrize(
    ("overwrite", "change"),
    [
        (lambda write: write.overwrite(lit(True)), "INSERT INTO {t} VALUES (2)"),
        (lambda write: write.overwritePartitions(), "DELETE FROM {t} WHERE id = 1"),
    ],
    ids=["all rows, an INSERT", "partitions, a DELETE"],
)
def test_an_option_names_the_snapshot_that_rows_of_a_checkpoint_were_read_from(
    spark, name, overwrite, change
):
    """A checkpoint hides it: by default only what comes after the write began conflicts."""
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {name} VALUES (0), (1)")
    read = spark.table(f"{name}.snapshots").first().snapshot_id
    rows = spark.table(name).localCheckpoint()
    spark.sql(change.format(t=name))
    left = sorted(spark.table(name).collect())
    write = rows.writeTo(name).option("validate-from-snapshot-id", str(read))
    with pytest.raises(AnalysisException, match="Found conflicting"):
        overwrite(write)
    assert sorted(spark.table(name).collect()) == left
    overwrite(rows.writeTo(name))
    assert sorted(row.id for row in spark.table(name).collect()) == [0, 1]


def test_an_isolation_level_alone_looks_at_the_whole_history(
    spark, name, other_spark, iceberg_java
):
    """Iceberg's testOverwriteFilterNoSnapshotIdValidation, on the oldest Spark and on Iceberg's runtime."""
    for session, prefix in ((other_spark("3.5"), "lake"), (iceberg_java, "ice")):
        table = name.replace("lake", prefix)
        spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
        spark.sql(f"INSERT INTO {name} VALUES (1), (2)")
        session.sql(f"REFRESH TABLE {table}")
        change = (table, "id = 1", "SELECT 3L AS id")
        alone = {"isolation-level": "serializable"}
        with pytest.raises(
            AssertionError, match="Found conflicting files that can contain records"
        ):
            session.overwrite(*change, **alone)
        assert sorted(row.id for row in spark.table(name).collect()) == [1, 2]
        [row] = spark.sql(
            f"SELECT max_by(snapshot_id, committed_at) AS id FROM {name}.snapshots"
        ).collect()
        session.overwrite(*change, **alone | {"validate-from-snapshot-id": str(row.id)})
        spark.sql(f"REFRESH TABLE {name}")
        assert sorted(row.id for row in spark.table(name).collect()) == [2, 3]
        spark.sql(f"DROP TABLE {name} PURGE")


@pytest.mark.parametrize(
    ("option", "mode"),
    sampled(
        itertools.product(["branch", "tag", "snapshot-id"], ["copy-on-write", "merge-on-read"]),
        keep=1,
    ),
)
def test_a_statement_that_changes_rows_is_sent_nowhere_else_by_an_option(spark, name, option, mode):
    """Spark 4.3 takes options there; where whole files go it hands them to nobody."""
    modes = {f"write.{each}.mode": mode for each in ("delete", "update")}
    [_] = written(spark, name, modes)
    snapshot = spark.table(f"{name}.snapshots").first().snapshot_id
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH beside")
    spark.sql(f"ALTER TABLE {name} CREATE TAG kept")
    if option != "branch":
        # what it reads is then another state than the table's
        spark.sql(f"INSERT INTO {name} VALUES (-1, 'x', 0)")
    count = spark.table(name).count()
    value = {"branch": "beside", "tag": "kept", "snapshot-id": snapshot}[option]
    clause = f"WITH (`{option}` = '{value}')"
    for statement in (
        f"DELETE FROM {name} {clause}",
        f"DELETE FROM {name} {clause} WHERE true",
        f"DELETE FROM {name} {clause} WHERE id < {ROWS}",
        f"DELETE FROM {name} {clause} WHERE k = 1",
        f"UPDATE {name} {clause} SET k = 2 WHERE id = 1",
    ):
        with pytest.raises(
            UnsupportedOperationException, match="cannot read others by read options"
        ) as error:
            spark.sql(statement)
        assert "branch_beside" in str(error.value) or option != "branch"
    assert spark.table(name).where("k < 2").count() == count
    assert len(spark.table(f"{name}.refs").collect()) == 3
    # an option that says what the name says, and one that says nothing of rows
    other = f"{name}.branch_beside"
    spark.sql(f"DELETE FROM {other} WITH (`branch` = 'beside') WHERE id < {ROWS // 2}")
    assert spark.table(other).count() == ROWS // 2
    spark.sql(f"DELETE FROM {other} WITH (`branch` = 'beside')")
    assert spark.table(other).count() == 0
    assert spark.table(name).count() == count
    spark.sql(f"DELETE FROM {name} WITH (`split-size` = '1000000')")
    assert spark.table(name).count() == 0


def test_options_that_mean_nothing_here_or_to_a_statement_change_nothing(spark, name):
    """Iceberg passes over unknown ones, and over those of streaming queries and deletes."""
    nothing = {
        "anything": "else",
        "use-merge-append-for-streaming": "true",
        "delete-format": "orc",
        "delete-granularity": "partition",
        "target-delete-file-size-bytes": "1",
        "shred-variants": "true",
        "variant-inference-buffer-size": "5",
    }
    [file] = written(spark, name, {}, {}, nothing)
    assert codec(file) == ("PARQUET", "ZSTD")
    assert file.record_count == ROWS


OPTIONS = [
    "branch",
    "write-format",
    "target-file-size-bytes",
    "delete-format",
    "target-delete-file-size-bytes",
    "check-nullability",
    "check-ordering",
    "snapshot-property",
    "fanout-enabled",
    "output-spec-id",
    "output-sort-order-id",
    "overwrite-mode",
    "distribution-mode",
    "use-table-distribution-and-ordering",
    "merge-schema",
    "mergeSchema",
    "validate-from-snapshot-id",
    "isolation-level",
    "compression-codec",
    "compression-level",
    "compression-strategy",
    "advisory-partition-size",
    "delete-granularity",
    "shred-variants",
    "variant-inference-buffer-size",
    "use-merge-append-for-streaming",
]
"""The constants of Iceberg Java's SparkWriteOptions (1.12)."""


def test_every_option_of_iceberg_java_is_explained():
    pages = [DOCS / each for each in ("writing-from-spark.md", "streaming.md", "merge-on-read.md")]
    text = "".join(page.read_text() for page in pages)
    assert [option for option in OPTIONS if f"`{option}" not in text] == []
