"""Row groups that a compaction copied, read by everybody, with filters that use what is in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

ROWS = 900
COLUMNS = (
    "id BIGINT, x DOUBLE, f FLOAT, s STRING, b BOOLEAN, i INT, d DECIMAL(9, 2), big DECIMAL(38, 5), "
    "day DATE, ts TIMESTAMP_NTZ, tz TIMESTAMP, bin BINARY, l ARRAY<INT>, m MAP<STRING, STRUCT<a: INT>>"
)
SELECT = """
    SELECT id, IF(id % 7 = 3, double('NaN'), id / 2.0D), IF(id % 3 = 0, NULL, float(id)),
      IF(id % 5 = 1, NULL, 's' || id), id % 2 = 0, IF(id % 11 = 0, NULL, int(-id)),
      CAST(id / 3.0 AS DECIMAL(9, 2)), CAST(id AS DECIMAL(38, 5)) * -1, date_add(DATE'1969-06-01', int(id)),
      TIMESTAMP_NTZ'1960-01-01 00:00:01.5' + make_dt_interval(int(id)),
      TIMESTAMP'2020-01-01 00:00:00Z' + make_dt_interval(int(id)),
      IF(id % 13 = 0, NULL, unhex(hex(id))), IF(id % 4 = 0, NULL, array(int(id), NULL)),
      map_filter(map('k' || id, named_struct('a', IF(id % 2 = 0, NULL, int(id)))), (k, v) -> id % 4 <> 1)
    FROM range({start}, {end}, 1, 1)
"""
PROPERTIES = {
    "format-version": "2",
    "write.parquet.row-group-size-bytes": "8000",
    "write.parquet.row-group-limit": "100",
    "write.parquet.row-group-check-min-record-count": "20",
    "write.parquet.row-group-check-max-record-count": "20",
    "write.parquet.page-row-limit": "20",
    "write.parquet.page-size-bytes": "400",
    "write.parquet.bloom-filter-enabled.column.s": "true",
    "write.parquet.bloom-filter-max-bytes": "4096",
    "write.delete.mode": "merge-on-read",
    "icecomb.maintenance.copy-min-row-group-bytes": "0",
}
FILTERS = (
    "id = 77",
    "id >= 295 and id < 305",
    "id < 0",
    "s = 's77'",
    "s = 'nowhere'",
    "s is null",
    "i = -500",
    "day = '1970-01-01'",
    "x < 3",
    "x = 3",
    "d < 5",
)


def made_by_java(readers: Any, name: str, start: int, end: int) -> None:
    readers.java_sql(f"INSERT INTO {{ns}}.{name} {SELECT.format(start=start, end=end)}")


def made_by_spark(readers: Any, name: str, start: int, end: int) -> None:
    readers.spark_sql(f"INSERT INTO {{ns}}.{name} {SELECT.format(start=start, end=end)}")


def made_by_us(readers: Any, name: str, start: int, end: int) -> None:
    readers.spark_sql(
        f"CREATE TABLE {{ns}}.{name}_more USING iceberg AS SELECT * FROM {{ns}}.{name} LIMIT 0"
    )
    readers.spark_sql(f"INSERT INTO {{ns}}.{name}_more {SELECT.format(start=start, end=end)}")
    readers.load(name).append(readers.load(f"{name}_more").scan().to_arrow())
    readers.spark_sql(f"DROP TABLE {{ns}}.{name}_more")


def sources_of(readers: Any, name: str) -> dict[str, Any]:
    """What a copy of all files has to say of its columns."""
    files = readers.files(name)
    floating = (2, 3)
    return {
        "nan": {
            n: sum(file.nan_value_counts[n] for file in files)
            for n in floating
            if all(n in (file.nan_value_counts or {}) for file in files)
        },
        "null": {
            n: sum(file.null_value_counts[n] for file in files) for n in files[0].null_value_counts
        },
        "value": {n: sum(file.value_counts[n] for file in files) for n in files[0].value_counts},
    }


@pytest.mark.parametrize("write", [made_by_java, made_by_spark, made_by_us])
def test_everybody_reads_copied_files_with_filters(
    readers: Any, iceberg_java: Any, write: Any
) -> None:
    name = f"copied_{write.__name__}"
    readers.own(name)
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} ({COLUMNS}) USING iceberg TBLPROPERTIES ({pairs})"
    )
    for start in range(0, ROWS, 300):
        write(readers, name, start, start + 300)
    before = readers.agree(name)
    assert len(before) == ROWS
    answers = {where: readers.java(name, where) for where in FILTERS}
    assert [len(found) for found in answers.values()][:3] == [1, 10, 0]
    wanted, groups = sources_of(readers, name), row_groups(readers, name)
    assert groups > 3
    table = readers.load(name)
    result = table.maintenance.rewrite_data_files(
        options={"copy": "require", "rewrite-all": "true"}
    )
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (3, 1)
    assert row_groups(readers, name) == groups
    assert readers.agree(name) == before
    for where, expected in answers.items():
        assert readers.agree(name, where, but=("peer",)) == expected, where
        assert readers.peer(name, where) == expected, where
    (file,) = readers.files(name)
    assert file.nan_value_counts == wanted["nan"]
    # of columns in lists and maps Java counts values, too
    assert file.value_counts.items() <= wanted["value"].items()
    assert file.null_value_counts.items() <= wanted["null"].items()
    assert len(file.value_counts) >= 12
    path = file.file_path.removeprefix("file:")
    check_bloom_filters(path)
    check_plain_readers(path, iceberg_java)
    # Java goes on with the table, and its deletes find the rows
    readers.java_sql(f"DELETE FROM {{ns}}.{name} WHERE id % 100 = 7")
    assert len(readers.agree(name)) == ROWS - 9


def row_groups(readers: Any, name: str) -> int:
    paths = (file.file_path.removeprefix("file:") for file in readers.files(name))
    return sum(pq.read_metadata(path).num_row_groups for path in paths)


def check_bloom_filters(path: str) -> None:
    """They say yes where a value is, and no in most row groups where it is not."""
    first: dict[int, int] = {}
    metadata = pq.read_metadata(path)
    ids = iter(pq.read_table(path, columns=["id"])["id"].to_pylist())
    for group in range(metadata.num_row_groups):
        for _ in range(metadata.row_group(group).num_rows):
            first[next(ids)] = group
    excluded = 0
    for number in (2, 302, 602, 899):
        probed = duckdb.sql(f"FROM parquet_bloom_probe('{path}', 's', 's{number}')").fetchall()
        answers = {group: gone for _, group, gone in probed}
        assert answers[first[number]] is False
        excluded += sum(answers.values())
    assert excluded >= 2 * metadata.num_row_groups


def check_plain_readers(path: str, iceberg_java: Any) -> None:
    """Spark's own reader of Parquet goes by page indexes and bloom filters; so do others."""
    assert Path(path).is_file()
    for where, expected in (
        ("id = 77", 1),
        ("s = 's302'", 1),
        ("s = 'nowhere'", 0),
        ("id > 890", 9),
    ):
        count = f"SELECT count(*) FROM parquet.`{path}` WHERE {where}"
        assert iceberg_java.sql(count) == [[expected]], where
        found = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {where}").fetchall()
        assert found == [(expected,)], where
    chunks = duckdb.sql(
        f"SELECT row_group_id, sum(num_values), min(total_compressed_size) FROM parquet_metadata('{path}') "
        "WHERE path_in_schema = 'id' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    metadata = pq.read_metadata(path)
    assert [(group, rows) for group, rows, _ in chunks] == [
        (group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)
    ]
