"""Hive tables that Spark and Hive's own classes wrote in ORC and Avro, taken over: Iceberg Java reads what Hive's readers read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError

pytestmark = pytest.mark.full("a second Spark reads and writes, too")

NUMBERS = count()
COLUMNS = (
    "b boolean, i int, l bigint, f float, d double, n decimal(10,2), s string, v varchar(5), c char(5), "
    "bin binary, day date, st struct<X:int,y:string>, arr array<int>, m map<string,int>"
)

VALUES = [
    (
        "true, 3, 4, 1.5F, 2.5D, 3.25BD, 'abc', 'vv', 'cc', X'00FF', DATE'1969-12-31', "
        "named_struct('X',1,'y','z'), array(1,null), map('k',1)"
    ),
    (
        "false, -3, -4, CAST('NaN' AS float), CAST('NaN' AS double), -0.50BD, repeat('é', 400), '', ' x', X'', "
        "DATE'9999-12-31', named_struct('X',null,'y',''), array(), map()"
    ),
    "null, null, null, null, null, null, null, null, null, null, null, null, null, null",
    (
        "true, 2147483647, 9223372036854775807, -0.0F, CAST('Infinity' AS double), 99999999.99BD, '', 'v', "
        "'ccccc', X'01', DATE'2024-02-29', null, null, map('a',null)"
    ),
]
FILTERS = [
    *("b", "NOT b", "i = 3", "i < 0", "i > 2147483646", "l = 9223372036854775807", "f = 1.5"),
    *("f = 0", "isnan(f)", "d > 2", "isnan(d)", "n = -0.5", "n > 9999", "s = 'abc'", "s > 'z'"),
    *("s = ''", "v = 'vv'", "trim(c) = 'cc'", "bin = X'01'", "day = DATE'1969-12-31'"),
    *("day > DATE'9000-01-01'", "st.x = 1", "st.y = ''", "st IS NULL", "i IS NULL", "s IS NOT NULL"),
]  # fmt: skip


@pytest.fixture
def hive(iceberg_java: Any, catalog: Any) -> Iterator[Any]:
    """Spark beside Iceberg Java, on a database of its own."""
    database = f"formats{next(NUMBERS)}"
    iceberg_java.sql(f"CREATE DATABASE spark_catalog.{database}")
    hive = Hive(iceberg_java, catalog, database)
    yield hive
    hive.by_hives_classes(orc=False, parquet=False)


class Hive:
    def __init__(self, java: Any, catalog: Any, database: str) -> None:
        self.java, self.catalog, self.database = java, catalog, database

    def sql(self, text: str) -> list[list[Any]]:
        return self.java.sql(text.format(db=f"spark_catalog.{self.database}"))

    def by_hives_classes(self, *, orc: bool, parquet: bool = False) -> None:
        """Whether tables of Hive are read and written by Hive's own classes."""
        for name, chosen in (("Orc", orc), ("Parquet", parquet)):
            self.java.sql(f"SET spark.sql.hive.convertMetastore{name}={str(not chosen).lower()}")

    def rows(self, table: str, columns: str, where: str = "true") -> list[str]:
        rows = self.sql(f"SELECT {columns} FROM {table} WHERE {where}")
        return sorted(map(repr, rows))

    def agree(self, table: str, columns: str, **choices: Any) -> Any:
        """Takes a table over; Iceberg Java and we read what Hive's readers read, by every filter."""
        names = [column.strip().split(" ")[0] for column in _split(columns)]
        listed = ", ".join("rtrim(c) AS c" if name == "c" else name for name in names)
        filters = [f for f in FILTERS if _column(f) in names]
        before = {f: self.rows(f"{{db}}.{table}", listed, f) for f in ("true", *filters)}
        migrate.apply(self.catalog, f"{self.database}.{table}", migrate.Choices(**choices))
        for where, rows in before.items():
            found = self.rows(f"ice.{self.database}.{table}", listed, where)
            assert found == rows, where
        compared = migrate.verify(self.catalog, f"{self.database}.{table}")
        assert (compared.difference_count, compared.hive.rows) == (0, len(before["true"]))
        loaded = self.catalog.load_table(f"{self.database}.{table}")
        assert loaded.scan().count() == len(loaded.scan().to_arrow()) == len(before["true"])
        return loaded


def _column(where: str) -> str:
    found = re.match(r"(?:NOT |isnan\(|trim\()?(\w+)", where)
    assert found is not None
    return found[1]


def _split(columns: str) -> list[str]:
    parts, depth, part = [], 0, ""
    for letter in columns:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [*parts, part]


def fill(hive: Hive, table: str) -> None:
    """A file a row, by Hive's own writers where the table is Hive's."""
    hive.by_hives_classes(orc=True)
    for values in VALUES:
        hive.sql(f"INSERT INTO {{db}}.{table} VALUES ({values})")
    # Hive's own reader of ORC finds no field of a struct that Spark spelled in large letters.
    hive.by_hives_classes(orc=False)


@pytest.mark.parametrize("stored", ["STORED AS ORC", "USING orc", "STORED AS AVRO"])
def test_iceberg_java_reads_tables_of_other_formats(hive: Any, stored: str) -> None:
    hive.sql(f"CREATE TABLE {{db}}.t ({COLUMNS}) {stored}")
    fill(hive, "t")
    loaded = hive.agree("t", COLUMNS)
    kinds = {task.file.file_format.value for task in loaded.scan().plan_files()}
    assert kinds == {"AVRO" if "AVRO" in stored else "ORC"}
    migrate.revert(hive.catalog, f"{hive.database}.t", dry_run=False)
    assert len(hive.sql("SELECT * FROM {db}.t")) == len(VALUES)


@pytest.mark.parametrize(
    ("stored", "by_hive", "blanks"),
    [
        ("PARQUET", False, True),
        ("PARQUET", True, False),
        ("ORC", False, True),
        ("ORC", True, False),
        ("AVRO", True, False),
    ],
)
def test_a_char_is_compared_afterwards_as_it_is_in_the_files_as_the_plan_says(
    hive: Any,
    stored: str,
    by_hive: bool,  # noqa: FBT001
    blanks: bool,  # noqa: FBT001
) -> None:
    hive.by_hives_classes(orc=by_hive, parquet=by_hive)
    hive.sql(f"CREATE TABLE {{db}}.t (c char(5)) PARTITIONED BY (k char(3)) STORED AS {stored}")
    hive.sql("INSERT INTO {db}.t PARTITION (k='x') VALUES ('ab')")
    counts = "count_if(c = 'ab'), count_if(c = 'ab   '), count_if(rtrim(c) = 'ab')"
    assert hive.sql(f"SELECT {counts} FROM {{db}}.t WHERE k = 'x'") == [[1, 1, 1]]
    name = f"{hive.database}.t"
    (found,) = (f for f in migrate.plan(hive.catalog, name).findings if f.code == "padded-char")
    assert found.places == ("c", "k")
    migrate.apply(hive.catalog, name, migrate.Choices(accept=("char-partition",)))
    after = hive.sql(f"SELECT {counts} FROM ice.{name} WHERE rtrim(k) = 'x'")
    assert after == [[0, 1, 1] if blanks else [1, 0, 1]]
    assert hive.sql(f"SELECT count_if(k = 'x'), count_if(k = 'x  ') FROM ice.{name}") == [[0, 1]]
    rows = hive.catalog.load_table(name).scan("c = 'ab'").count()
    assert rows == (0 if blanks else 1)


def test_partitions_of_several_formats_are_one_table(hive: Any) -> None:
    hive.by_hives_classes(orc=True, parquet=True)
    hive.sql("CREATE TABLE {db}.t (id int, S string) PARTITIONED BY (k string) STORED AS PARQUET")
    hive.sql("INSERT INTO {db}.t PARTITION (k='a b') VALUES (1, 'x'), (2, null)")
    for number, kind in enumerate(("orc", "avro")):
        hive.sql(f"CREATE TABLE {{db}}.{kind} (id int, S string) STORED AS {kind}")
        hive.sql(f"INSERT INTO {{db}}.{kind} VALUES ({10 + number}, '{kind}')")
        partitions = hive.catalog.client.partitions
        (first,) = next(iter(partitions.pages(hive.database, "t")))[:1]
        other = hive.catalog.client.table(hive.database, kind)
        place = replace(other.storage, columns=first.storage.columns)
        partitions.add([replace(first, values=(kind,), storage=place, parameters={}, wire=None)])
    loaded = hive.agree("t", "id int, s string, k string")
    kinds = {task.file.file_format.value for task in loaded.scan().plan_files()}
    assert kinds == {"PARQUET", "ORC", "AVRO"}
    assert hive.sql(f"SELECT s FROM ice.{hive.database}.t WHERE k = 'orc' AND id = 10") == [["orc"]]


@pytest.mark.parametrize("stored", ["STORED AS ORC", "USING orc"])
def test_timestamps_of_orc_are_read_as_they_were_written(hive: Any, stored: str) -> None:
    hive.by_hives_classes(orc=True)
    hive.sql(f"CREATE TABLE {{db}}.t (ts timestamp, ti tinyint, si smallint) {stored}")
    hive.sql(
        "INSERT INTO {db}.t VALUES (TIMESTAMP'2024-07-01 12:00:00.123456', 1Y, -2S), (null, null, null)"
    )
    with pytest.raises(MigrationBlockedError, match="whether a timestamp has a zone"):
        migrate.apply(hive.catalog, f"{hive.database}.t")
    hive.agree("t", "ts timestamp, ti tinyint, si smallint", timestamp="timestamp")
    found = hive.sql(
        f"SELECT ti FROM ice.{hive.database}.t WHERE ts > TIMESTAMP_NTZ'2024-07-01 12:00:00'"
    )
    assert found == [[1]]


@pytest.mark.parametrize("stored", ["STORED AS ORC", "USING orc"])
def test_dates_that_hive_counts_in_another_calendar_stay_hives(hive: Any, stored: str) -> None:
    hive.by_hives_classes(orc=True)
    hive.sql(f"CREATE TABLE {{db}}.t (day date) {stored}")
    hive.sql("INSERT INTO {db}.t VALUES (DATE'1001-01-01')")
    (found,) = migrate.plan(hive.catalog, f"{hive.database}.t").blockers
    assert found.code == "old-dates"
    _copied(hive, "t", found)


@pytest.mark.parametrize(
    "stored",
    [
        "STORED AS TEXTFILE",
        "STORED AS RCFILE",
        "STORED AS SEQUENCEFILE",
        "USING json",
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' STORED AS TEXTFILE",
    ],
)
def test_the_statement_of_a_blocker_copies_the_table(hive: Any, stored: str) -> None:
    own = "(id string, `a b` string, k string) USING json PARTITIONED BY (k)"
    hives = f"(id string, `a b` string) PARTITIONED BY (k string) {stored}"
    hive.sql(f"CREATE TABLE {{db}}.`order` {own if 'json' in stored else hives}")
    for row, key in (("'1', 'x'", "p/q"), ("'2', 'y'", "r")):
        hive.sql(f"INSERT INTO {{db}}.`order` PARTITION (k = '{key}') VALUES ({row})")
    found = next(
        f
        for f in migrate.plan(hive.catalog, f"{hive.database}.order").blockers
        if f.code == "format"
    )
    _copied(hive, "order", found)


def _copied(hive: Hive, table: str, found: Any) -> None:
    """Follows the remedy."""
    statement = found.remedy.split("run ", 1)[1].split(" in Spark", 1)[0]
    before = hive.rows(f"{{db}}.`{table}`", "*")
    hive.java.sql("USE spark_catalog")
    hive.java.sql(statement)
    assert f"{hive.database}.{table}_parquet" in found.remedy
    migrate.apply(hive.catalog, f"{hive.database}.{table}_parquet")
    assert hive.rows(f"ice.{hive.database}.`{table}_parquet`", "*") == before
