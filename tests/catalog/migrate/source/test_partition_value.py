"""Partition texts as typed values: what Hive's own conversion reads, or nothing."""

from __future__ import annotations

import datetime as dt
import random
import struct
import subprocess
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog.java import find_javac
from icecomb.catalog.migrate.source.hive_type import parse_hive_type
from icecomb.catalog.migrate.source.source import convert, partition_values
from icecomb.format.errors import ValidationError
from icecomb.format.rows.write.partition_path import value_of_text
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import (
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    TimestampNanoType,
    TimestamptzNanoType,
)
from tests.peers.ivy import pyspark_jars

VALUES = {
    "tinyint": ["7", "-128", "127", "07", "+7"],
    "smallint": ["7", "32767", "-32768"],
    "int": ["7", "-7", "+7", "07", "2147483647", "-2147483648"],
    "bigint": ["9007199254740993", "9223372036854775807"],
    "float": ["1.5", "0.1", "-0.25", "NaN", "Infinity", "-Infinity", "1e3", ".5", "5."],
    "double": ["0.1", "1e3", "1E3", "-.5", "NaN", "Infinity"],
    "decimal(5,2)": ["1.5", "1.50", "-1.5", "+1.5", "123.45", "1e2", ".5", "5."],
    "decimal(38,2)": ["123456789012345678901234567890123456.78"],
    "date": ["2024-01-31", "0001-01-01", "9999-12-31"],
    "timestamp": ["2024-01-31", "2024-01-31 10:00:00", "2024-01-31 10:00:00.5", "2024-01-31 10:00:00.123456"],
    "char(3)": ["abc", "äöü"],
    "varchar(3)": ["abc"],
    "string": [" a ", "abc", "NaN", "٣"],
}  # fmt: skip
REFUSED = {
    "tinyint": ["128", "200", "-129"],
    "smallint": ["32768", "-32769", "40000"],
    "int": [" 7", "7 ", "1_0", "٣", "", "1.5", "1.", "1e3", "0x10", "2147483648"],
    "bigint": ["9223372036854775808", "٣", "1_0", "1.9"],
    "float": ["1_0", " 1.5", "nan", "inf", "1e400", "1e39", "1.5f", "0x1p3", "٣"],
    "double": ["nan", "infinity", "1e400", "1_0"],
    "decimal(5,2)": ["1_0", "1.234", "12345", " 1.5 ", "٣", "NaN", "Infinity", ""],
    "decimal(38,2)": ["1234567890123456789012345678901234567.5", "0.123"],
    "date": [
        *("20240101", "2024-W01-1", "2024-1-1", " 2024-01-01", "2024-01-01 10:00:00", "2024-02-30"),
        *("10000-01-01", "٢٠٢٤-01-01", "2024-001"),
    ],
    "timestamp": [
        *("20240131", "2024-01-31 10:00:00.123456789", "2024-01-31T10:00:00", "2024-01-31 10:00"),
        *("2024-W01-1", "2024-01-31 25:00:00", "٢٠٢٤-01-01 10:00:00"),
    ],
    "char(3)": ["abcd"],
    "varchar(3)": ["abcd", "äöüß"],
    "string": [],
}  # fmt: skip


def converted(kind: str, text: str) -> Any:
    column = NestedField(1, "c", parse_hive_type(kind, timestamp="timestamp").type)
    spec = PartitionSpec(0, (PartitionField(1, 1000, IdentityTransform(), "c"),))
    (value,) = partition_values([text], spec, Schema((column,)), hive_types=[kind])
    return value


@pytest.mark.parametrize("kind", VALUES)
def test_a_text_that_engines_read_differently_or_as_null_is_no_value(kind: str) -> None:
    for text in VALUES[kind]:
        assert converted(kind, text) is not None
    for text in REFUSED[kind]:
        with pytest.raises(ValidationError, match="is not a"):
            converted(kind, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01 00:00:00.000000001", 1),
        ("1969-12-31 23:59:59.999999999", -1),
        ("2262-04-11 23:47:16.854775807", (1 << 63) - 1),
        ("1677-09-21 00:12:43.145224192", -(1 << 63)),
        ("1970-01-02", 86_400 * 10**9),
        ("2262-04-11 23:47:16.854775808", None),
        ("1677-09-21 00:12:43.145224191", None),
        ("1500-01-01", None),
    ],
)
def test_nanoseconds_of_a_partition_are_kept_within_their_range(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(ValidationError, match="out of the range of nanoseconds"):
            convert(text, TimestampNanoType())
    else:
        assert convert(text, TimestampNanoType()) == value
    zoned = convert("1970-01-01 01:00:00.000000001", TimestamptzNanoType(), time_zone="Etc/GMT-1")
    assert zoned == 1


def as_hive_prints(value: Any, kind: str) -> Any:
    if kind == "date":
        return str(dt.date(1970, 1, 1) + dt.timedelta(days=value))
    if kind == "timestamp":
        return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)  # noqa: DTZ001
    return value


def read_back(printed: str, kind: str) -> Any:
    if kind == "timestamp":
        return dt.datetime.fromisoformat(printed[:19]) + dt.timedelta(
            microseconds=int(printed[20:].ljust(6, "0") or 0)
        )
    if kind.startswith("decimal"):
        return Decimal(printed)
    if kind == "float":
        return struct.unpack("f", struct.pack("f", float(printed)))[0]
    if kind == "double":
        return float(printed)
    return int(printed) if kind.endswith("int") else printed


@pytest.mark.jvm
def test_what_is_a_value_is_the_one_that_hive_reads() -> None:
    draw = random.Random(7)
    asked = [(kind, text) for kind in VALUES for text in (*VALUES[kind], *REFUSED[kind])]
    for kind, text in asked[:]:
        for _ in range(10):
            changed = list(text or "0")
            changed[draw.randrange(len(changed))] = draw.choice("0123456789-+.eE :T_aIN٣ ")
            asked.append((kind, "".join(changed)))
    command = [find_javac().with_name("java"), "-Duser.timezone=UTC", "-cp"]
    command += [":".join(map(str, pyspark_jars().glob("*.jar")))]
    answer = subprocess.run(
        [*command, Path(__file__).parents[3] / "peers" / "HiveValue.java"],
        input="".join(f"{kind}\t{text}\n" for kind, text in asked),
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    lines = answer.stdout.split("\n")[: len(asked)]
    values = 0
    for (kind, text), line in zip(asked, lines, strict=True):
        with suppress(ValidationError):
            value = as_hive_prints(converted(kind, text), kind)
            assert line != "NULL", (kind, text)
            hive = read_back(line[1:], kind)
            assert value == hive or str(value) == str(hive) == "nan", (kind, text)
            values += 1
    assert values > 300


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1_0", IntegerType()),
        ("٣", LongType()),
        (" 7", LongType()),
        ("nan", DoubleType()),
        ("1_0", DoubleType()),
        ("٢٠٢٤-01-01", DateType()),
    ],
)
def test_folders_of_added_files_are_read_as_strictly(text: str, kind: Any) -> None:
    with pytest.raises(ValidationError, match="is not a"):
        value_of_text(text, NestedField(1, "c", kind))
