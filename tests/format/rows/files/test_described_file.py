"""What tails say of files: no bound excludes a row that is there, no count is wrong."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import orc

from icecomb.format.errors import CorruptFileError
from icecomb.format.rows.files.described_file import (
    DescribedFile,
    FileDescriber,
    UnknownFormatError,
)
from icecomb.format.rows.values.data_metrics import MetricsConfig, MetricsMode
from icecomb.format.spec import single_value
from icecomb.format.spec.name_mapping import create_name_mapping
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from icecomb.format.storage.file_io import FileIO

NAN = math.nan
STRIDE = 1000
KINDS: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "l": (LongType(), pa.int64(), [0, -(1 << 63), (1 << 63) - 1]),
    "i": (IntegerType(), pa.int16(), [0, -32768, 32767]),
    "d": (DoubleType(), pa.float64(), [NAN, -0.0, 0.0, 2.5, -math.inf, math.inf]),
    "f": (FloatType(), pa.float32(), [NAN, -0.0, 0.5, -math.inf]),
    "s": (StringType(), pa.string(), ["", "a", "é", "\U0001f600", "￿", "a" * 3000, "\x7f"]),
    "m": (DecimalType(38, 10), pa.decimal128(38, 10), [Decimal(10) ** 27, Decimal("-1E-10")]),
    "day": (DateType(), pa.date32(), [dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "b": (BooleanType(), pa.bool_(), [True, False]),
    "t": (TimestampType(), pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]),  # noqa: DTZ001
    "bin": (BinaryType(), pa.binary(), [b"", b"\xff" * 20]),
}
SCHEMA = Schema(
    (
        *(NestedField(n, name, kind) for n, (name, (kind, *_)) in enumerate(KINDS.items(), 1)),
        NestedField(20, "p", StructType((NestedField(21, "x", LongType()),))),
    )
)
ARROW = pa.schema(
    [
        *((name, arrow) for name, (_, arrow, _) in KINDS.items()),
        ("p", pa.struct([("x", pa.int64())])),
    ]
)
rows_drawn = st.lists(
    st.fixed_dictionaries(
        {
            **{name: st.none() | st.sampled_from(values) for name, (_, _, values) in KINDS.items()},
            "p": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-3, 3)}),
        }
    ),
    min_size=1,
    max_size=4,
)


def described(path: Path, mode: str = "full") -> tuple[FileDescriber, DescribedFile]:
    describer = FileDescriber(FileIO(), SCHEMA, MetricsConfig(MetricsMode.parse(mode)))
    tail, size = describer.look(str(path))
    assert size == path.stat().st_size
    return describer, describer.describe(str(path), tail, create_name_mapping(SCHEMA))


def internal(value: Any) -> Any:
    """As Iceberg counts: days, microseconds."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@given(drawn=rows_drawn, mode=st.sampled_from(["full", "truncate(2)"]))
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
def test_no_bound_excludes_a_row_and_no_count_is_wrong(
    tmp_path: Path, kind: str, drawn: list[dict[str, Any]], mode: str
) -> None:
    # each row fills row groups of its own, so that their statistics are put together
    records = [row for row in drawn for _ in range(STRIDE)]
    data = pa.Table.from_pylist(records, ARROW)
    path = tmp_path / f"f.{kind}"
    if kind == "orc":
        orc.write_table(data, path, row_index_stride=STRIDE, batch_size=500, stripe_size=64 << 10)
    else:
        pq.write_table(data, path, row_group_size=STRIDE)
    describer, file = described(path, mode)
    assert file.tail.record_count == len(records)
    assert not file.problems
    metrics = describer.metrics(file)
    values = {f.field_id: [row[f.name] for row in drawn] for f in SCHEMA.fields[:-1]}
    values[21] = [row["p"] and row["p"]["x"] for row in drawn]
    assert set(metrics.value_counts) == set(values)
    for number, some in values.items():
        assert metrics.value_counts[number] == len(records)
        assert metrics.null_value_counts[number] == STRIDE * sum(v is None for v in some)
        type_ = SCHEMA.find_type(number)
        there = [internal(v) for v in some if v is not None and v == v]  # noqa: PLR0124 - NaN
        for bounds, holds in (
            (metrics.lower_bounds, lambda bound, value: bound <= value),
            (metrics.upper_bounds, lambda bound, value: value <= bound),
        ):
            if number in bounds:
                bound = single_value.from_bytes(type_, bounds[number])
                assert all(holds(bound, value) for value in there), (number, bound, there)


@given(
    st.lists(st.none() | st.sampled_from(["", "a", "b" * 40_000]), max_size=8),
    st.sampled_from(["null", "deflate"]),
    st.integers(1, 3),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_avro_are_counted_by_block(
    tmp_path: Path, texts: list[str | None], codec: str, interval: int
) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "s", "type": ["null", "string"]}]}
    path = tmp_path / "f.avro"
    with path.open("wb") as out:
        rows = [{"s": text} for text in texts]
        fastavro.writer(out, schema, rows, codec=codec, sync_interval=interval)
    describer, file = described(path)
    assert file.tail.record_count == len(texts)
    metrics = describer.metrics(file)
    assert metrics.lower_bounds == metrics.upper_bounds == metrics.null_value_counts == {}


def test_a_column_of_avro_that_is_no_union_has_no_nulls(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "l", "type": "long"}]}
    with (tmp_path / "f").open("wb") as out:
        fastavro.writer(out, schema, [{"l": 1}] * 3)
    describer, file = described(tmp_path / "f")
    assert describer.metrics(file).null_value_counts == {1: 0}


def test_a_block_of_avro_that_is_cut_or_moved_is_told(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "s", "type": "string"}]}
    path = tmp_path / "f"
    with path.open("wb") as out:
        fastavro.writer(out, schema, [{"s": "x" * 9000}] * 5, sync_interval=1)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:-5000], whole[:-40] + bytes(40), whole + b"\0"):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError):
            described(path)


def orc_file(path: Path, kind: str, *rows: tuple[Any, ...], **options: Any) -> Path:
    with path.open("wb") as out, pyorc.Writer(out, kind, **options) as writer:
        for row in rows:
            writer.write(row)
    return path


def test_texts_of_orc_that_are_padded_have_no_bounds(tmp_path: Path) -> None:
    describer, file = described(orc_file(tmp_path / "f", "struct<s:char(5)>", ("a",)))
    metrics = describer.metrics(file)
    number = SCHEMA.find_field("s").field_id
    assert metrics.null_value_counts[number] == 0
    assert number not in metrics.lower_bounds
    assert number not in metrics.upper_bounds


def test_timestamps_of_orc_have_counts_only(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc)
    for kind in ("timestamp", "timestamp with local time zone"):
        describer, file = described(orc_file(tmp_path / "f", f"struct<t:{kind}>", (moment,)))
        metrics = describer.metrics(file)
        number = SCHEMA.find_field("t").field_id
        assert (metrics.value_counts[number], number in metrics.lower_bounds) == (1, False)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "unknown-format"),
        (b"some text that is long enough", "unknown-format"),
        (b"PAR1", "unknown-format"),
        (b"PAR1" + bytes(50), "unknown-format"),
        (b"PARE" + bytes(50) + b"PARE", "encrypted-file"),
        (b"PAR1" + bytes(50) + b"PARE", "encrypted-file"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(UnknownFormatError) as caught:
        described(tmp_path / "f")
    assert caught.value.context["code"] == code


def test_a_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    really = FileIO.open_input

    def note(self: FileIO, location: str, size: int | None = None) -> pa.NativeFile:
        opened.append(location)
        return really(self, location, size)

    monkeypatch.setattr(FileIO, "open_input", note)
    data = pa.table({"l": [1], "s": ["x"]})
    pq.write_table(data, tmp_path / "p")
    orc.write_table(data, tmp_path / "o")
    for name in "po":
        describer, file = described(tmp_path / name)
        describer.check_values(str(tmp_path / name), file, create_name_mapping(SCHEMA))
    assert opened == [str(tmp_path / "p"), str(tmp_path / "o")]


OLD = dt.date(1001, 1, 1)


@pytest.mark.parametrize(
    ("said", "old"),
    [
        ({}, False),
        ({"org.apache.spark.version": "2.4.8"}, True),
        ({"org.apache.spark.version": "3.5.1"}, False),
        ({"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""}, True),
        ({"writer.date.proleptic": "false"}, True),
        ({"writer.date.proleptic": "true", "org.apache.spark.version": "2.4.8"}, False),
    ],
    ids=str,
)
def test_dates_that_parquet_counts_in_another_calendar_are_told(
    tmp_path: Path,
    said: dict[str, str],
    old: bool,  # noqa: FBT001
) -> None:
    for day, expected in ((OLD, ["old-dates"] if old else []), (dt.date(1600, 1, 1), [])):
        data = pa.table({"day": [day]}).replace_schema_metadata(said)
        pq.write_table(data, tmp_path / "f")
        _, file = described(tmp_path / "f")
        assert [p.code for p in file.problems] == expected
