"""ORDER BY … LIMIT reads the files that may have the first rows, on the newest Spark and the oldest."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pytest

from tests.catalog.random_table import RandomTable

NAMESPACE = "top_rows"
ORDERS = [" ".join(order) for order in product(("ASC", "DESC"), ("NULLS FIRST", "NULLS LAST"))]
BY_ID = "first rows: {} by id {} NULLS {}"


@pytest.fixture
def name(sql):
    """The name of a table that is not there yet."""
    sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    # a folder that another table left is not empty
    name = f"{NAMESPACE}.t{uuid4().hex}"
    yield name
    sql(f"DROP TABLE IF EXISTS lake.{name}")
    sql(f"DROP NAMESPACE lake.{NAMESPACE}")


def planned(sql, query):
    return sql(f"EXPLAIN {query}")[0][0]


def check(sql, table, key, order, random, ties=""):
    """The first rows are those that come first among all rows, as a window over them counts."""
    order = f"ORDER BY `{key}` {order}{ties}"
    shown = f"hex(string(`{key}`)) AS shown{ties}"
    numbered = f"SELECT {shown}, row_number() OVER ({order}) AS place FROM {table}"
    rows = [row[:-1] for row in sql(f"SELECT * FROM ({numbered}) ORDER BY place")]
    for most in (4, len(rows) + 2):
        count, offset = random.randint(1, most), random.choice([0, 0, random.randint(1, most)])
        query = f"SELECT {shown} FROM {table} {order} LIMIT {count} OFFSET {offset}"
        assert f"first rows: {count + offset} by" in planned(sql, query)
        assert sql(query) == rows[offset : offset + count], query


@pytest.mark.full("random tables; the plan is shown by the other test")
@pytest.mark.seeds(2, gate=1)
def test_random_tables_have_the_first_rows_of_every_order(sql, catalog, name, seed):
    random = Random(seed)
    types = [
        pa.int32(),
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.decimal128(9, 2),
        pa.date32(),
        pa.timestamp("us", "UTC"),
    ]
    file_format = ("parquet", "orc", "avro")[seed % 3]
    made = RandomTable(random, catalog, name, file_format, types=types)
    for _ in range(9):
        made.change()
    sql(f"REFRESH TABLE lake.{name}")
    for field in made.table.schema().fields:
        check(sql, f"lake.{name}", field.name, random.choice(ORDERS), random)


KEYS = ("id", "n", "d", "Day", "ts", "x", "s")


@pytest.mark.full("random tables are in the gate")
@pytest.mark.parametrize(
    "orders",
    [
        # each of them meets nulls, and each key is met
        pytest.param(list(zip(KEYS, ORDERS * 2, strict=False)), id="each key"),
        pytest.param(
            list(product(KEYS, ORDERS)),
            id="each key in each order",
            marks=pytest.mark.full("28 orders, of which seven are in the gate"),
        ),
    ],
)
def test_the_first_rows_of_files_with_nulls_ties_deletes_and_other_types(sql, name, orders):
    random, table = Random(14), f"lake.{name}"
    sql(
        f"CREATE TABLE {table} (id BIGINT, n INT, d DECIMAL(38, 10), Day DATE, ts TIMESTAMP, x DOUBLE, "
        "s STRING) USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
        "'write.metadata.metrics.default' = 'truncate(2)')"
    )
    parts = list(range(9))
    random.shuffle(parts)
    for done, part in enumerate(parts):
        if done == 4:
            sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT")
        if done == 6:
            sql(
                f"ALTER TABLE {table} SET TBLPROPERTIES ('write.metadata.metrics.column.ts' = 'none')"
            )
        sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, IF(id % 7 = 0 OR id > 40, NULL, id div 4), "
            "(id - 20) * 12345678901234567890.0123456789, date_add(DATE '1969-12-20', int(id div 2)), "
            "timestamp_micros(id * 1000001 - 20000000), "
            "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D ELSE 20 - id END, "
            f"concat('aa', IF(id % 3 = 0, NULL, id)) FROM range({5 * part}, {5 * part + 5})"
        )
    sql(f"DELETE FROM {table} WHERE id IN (0, 13, 44) OR d = 12345678901234567890.0123456789")
    for key, order in orders:
        check(sql, table, key, order, random, ties=", id")


@pytest.mark.full("the order of the files is a rule in the gate's scan/test_top_rows")
def test_files_whose_rows_come_later_are_not_opened(sql, name):
    table = f"lake.{name}"
    sql(f"CREATE TABLE {table} (id BIGINT, v BIGINT, x DOUBLE) USING iceberg")
    for first in (0, 10, 20):
        numbers = f"range({first}, {first + 10})"
        sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, -id, id / 2 FROM {numbers}")
    [[path]] = sql(f"SELECT DISTINCT _file FROM {table} WHERE id = 25")
    Path(urlsplit(path).path).unlink()

    def first(query):
        return [row[0] for row in sql(query.format(t=table))]

    assert first("SELECT id FROM {t} ORDER BY id LIMIT 3") == [0, 1, 2]
    assert first("SELECT id FROM {t} ORDER BY ID, x LIMIT 15 OFFSET 5") == [*range(5, 20)]
    # names of a query are not those of the table
    assert first("SELECT v AS id, id AS v FROM {t} ORDER BY v LIMIT 2") == [0, -1]
    assert first("SELECT id FROM (SELECT id, v AS x FROM {t}) ORDER BY x DESC LIMIT 2") == [0, 1]
    # the last file has rows of these
    for needed in (
        "SELECT id FROM {t} ORDER BY id LIMIT 16 OFFSET 5",
        "SELECT id FROM {t} ORDER BY id DESC LIMIT 1",
        "SELECT v AS id FROM {t} ORDER BY id LIMIT 1",
        "SELECT id FROM {t} ORDER BY x LIMIT 1",
        "SELECT id FROM {t} WHERE x > 0 ORDER BY id LIMIT 1",
        "SELECT id FROM {t} ORDER BY id * 2 LIMIT 1",
        "SELECT id FROM {t} ORDER BY id",
    ):
        with pytest.raises(Exception, match=Path(path).name):
            sql(needed.format(t=table))


def test_what_is_asked_of_a_scan_is_shown_and_tells_scans_apart(sql, name):
    table = f"lake.{name}"
    sql(f"CREATE TABLE {table} (id BIGINT, s STRUCT<id: BIGINT>) USING iceberg")
    for first in (0, 10, 20):
        sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, named_struct('id', -id) "
            f"FROM range({first}, {first + 10})"
        )
    top = f"SELECT id FROM {table} ORDER BY id"
    assert BY_ID.format(3, "ASC", "FIRST") in planned(sql, f"{top} LIMIT 3")
    assert BY_ID.format(5, "DESC", "LAST") in planned(sql, f"{top} DESC LIMIT 3 OFFSET 2")
    for without in (
        top,
        f"SELECT id FROM {table} WHERE id > 3 ORDER BY id LIMIT 3",
        f"SELECT id FROM {table} ORDER BY s.id LIMIT 3",
        f"SELECT id FROM {table} ORDER BY -id LIMIT 3",
        f"SELECT _pos FROM {table} ORDER BY _pos LIMIT 3",
        f"SELECT id, count(*) FROM {table} GROUP BY id ORDER BY id LIMIT 3",
        f"SELECT snapshot_id FROM {table}.snapshots ORDER BY snapshot_id LIMIT 3",
        f"SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM {table}) ORDER BY n",
    ):
        assert "first rows" not in planned(sql, without)
    parts = [f"{top} LIMIT 2", f"{top} LIMIT 12", f"{top} DESC LIMIT 2", f"{top} DESC LIMIT 12"]
    sums = ", ".join(f"(SELECT sum(id) FROM ({part}))" for part in parts)
    assert sql(f"SELECT {sums}") == [[1, 66, 57, 282]]
    assert sql(f"SELECT s.id FROM {table} ORDER BY s.id LIMIT 2") == [[-29], [-28]]
