"""Hive tables of ORC and Avro files, and of several formats: taken over by their tails, verified, given back."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest
from pyarrow import orc

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import HivePartition, StorageDescriptor
from icecomb.catalog.migrate.applying import migration
from icecomb.format.errors import CommitFailedError, MigrationError, UnsupportedError
from icecomb.format.rows.avro.reader import AvroReader
from icecomb.format.rows.orc.reader import OrcReader
from tests.catalog.migrate.conftest import AVRO, ORC, PARQUET
from tests.rings import sampled

COLUMNS = {
    "id": "bigint",
    "n": "smallint",
    "d": "double",
    "m": "decimal(9,2)",
    "s": "string",
    "day": "date",
    "f": "boolean",
    "bin": "binary",
    "st": "struct<x:int,tags:array<string>>",
    "kv": "map<string,int>",
}
AVRO_FIELDS: dict[str, Any] = {
    "id": "long",
    "n": "int",
    "d": "double",
    "m": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "s": "string",
    "day": {"type": "int", "logicalType": "date"},
    "f": "boolean",
    "bin": "bytes",
    "st": {
        "type": "record",
        "name": "st",
        "fields": [
            {"name": "x", "type": ["null", "int"]},
            {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        ],
    },
    "kv": {"type": "map", "values": ["null", "int"]},
}
INNER = pa.struct([("x", pa.int32()), ("tags", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int16()),
        ("d", pa.float64()),
        ("m", pa.decimal128(9, 2)),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("f", pa.bool_()),
        ("bin", pa.binary()),
        ("st", INNER),
        ("kv", pa.map_(pa.string(), pa.int32())),
    ]
)
FULL = {
    "id": 1 << 40,
    "n": -3,
    "d": -0.5,
    "m": Decimal("-1.50"),
    "s": "é" * 30,
    "day": dt.date(1969, 12, 31),
    "f": True,
    "bin": b"\0\xff",
    "st": {"x": 7, "tags": ["a", None]},
    "kv": [("k", 1)],
}
ROWS = [FULL, dict.fromkeys(COLUMNS), {**FULL, "id": 2, "f": False, "day": dt.date(9999, 12, 31)}]


def write_avro(data: pa.Table, path: Path, fields: dict[str, Any] = AVRO_FIELDS) -> None:
    stated = [{"name": n, "type": ["null", fields[n]]} for n in data.schema.names]
    rows = [
        {**row, **({"kv": dict(row["kv"])} if row.get("kv") is not None else {})}
        for row in data.to_pylist()
    ]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": stated}, rows)


FORMATS = {
    "parquet": (PARQUET, pq.write_table),
    "orc": (ORC, orc.write_table),
    "avro": (AVRO, write_avro),
}


def rows_of(*which: int) -> pa.Table:
    return pa.Table.from_pylist([ROWS[n] for n in which], SCHEMA)


def codes(plan: Any) -> set[str]:
    return {finding.code for finding in plan.blockers}


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def avro_file(path: Path, *fields: dict[str, Any], rows: tuple[dict[str, Any], ...] = ()) -> None:
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": list(fields)}, rows)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_of_any_format_goes_there_and_back(make_hive_table: Any, kind: str) -> None:
    storage, write = FORMATS[kind]
    table = make_hive_table(
        COLUMNS,
        {"k": "int"},
        {("1",): rows_of(0, 1), ("2",): rows_of(2)},
        storage=storage,
        write=write,
    )
    before, files = table.state, table.files()
    done = migrate.apply(table.catalog, table.name)
    assert (done.partitions, done.files, done.rows) == (2, 2, 3)
    expected = [{**ROWS[n], "k": k} for n, k in ((0, 1), (1, 1), (2, 2))]
    assert ordered(table.rows()) == ordered(expected)
    loaded = table.catalog.load_table(table.name)
    assert {t.file.file_format.value.lower() for t in loaded.scan().plan_files()} == {kind}
    assert loaded.scan("day > '9999-01-01'").to_arrow()["id"].to_pylist() == [2]
    assert loaded.scan("id is null").count() == 1
    compared = migrate.verify(table.catalog, table.name)
    assert (compared.difference_count, compared.hive.rows, compared.iceberg.rows) == (0, 3, 3)
    assert migrate.status(table.catalog, table.name)["state"]
    loaded.append(pa.Table.from_pylist([{**FULL, "k": 3}], loaded.schema().as_arrow()))
    assert migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True).done
    assert table.state == before
    assert files.items() <= table.files().items()
    migrate.apply(table.catalog, table.name)
    migrate.finalize(table.catalog, table.name, unverified=True)
    assert ordered(table.rows()) == ordered(expected)


def test_formats_differ_by_partition_and_by_file(make_hive_table: Any) -> None:
    table = make_hive_table(COLUMNS, {"k": "int"})
    client = table.catalog.client
    for number, (storage, write) in enumerate(FORMATS.values()):
        place = table.folder / f"p{number}"
        place.mkdir()
        write(rows_of(number), place / "000000_0")
        here = HivePartition("made", table.name.partition(".")[2], (str(number),), storage=storage)
        folder = {"location": f"file:{place}", "columns": table.entry.storage.columns}
        client.partitions.add([_with(here, **folder)])
    orc.write_table(rows_of(0), table.folder / "p0" / "other")
    migrate.apply(table.catalog, table.name)
    expected = [{**ROWS[n], "k": n} for n in (0, 0, 1, 2)]
    assert ordered(table.rows()) == ordered(expected)
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    assert migrate.revert(table.catalog, table.name, dry_run=False).done


def _with(partition: HivePartition, **changes: Any) -> HivePartition:

    return replace(partition, storage=replace(partition.storage, **changes))


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_no_row_is_read_for_a_plan(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    storage, write = FORMATS[kind]
    table = make_hive_table(COLUMNS, rows=rows_of(0, 1, 2), storage=storage, write=write)
    for reader in (OrcReader, AvroReader):
        monkeypatch.setattr(reader, "batches", lambda *_, **__: pytest.fail("rows were read"))
    plan = migrate.plan(table.catalog, table.name)
    assert (plan.rows, codes(plan)) == (3, set())


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_spellings_of_any_format_go_into_the_name_mapping(make_hive_table: Any, kind: str) -> None:
    storage, write = FORMATS[kind]
    table = make_hive_table({"id": "bigint", "s": "string"}, storage=storage)
    data = pa.table({"ID": pa.array([1], pa.int64()), "S": ["x"]})
    if kind == "orc":
        write(data, table.folder / "f")
    else:  # Hive's source compares names of Avro by case, Spark's does not
        client, entry = table.catalog.client, table.entry
        parameters = {**entry.parameters, "spark.sql.sources.provider": "avro"}

        client.alter_table(*table.name.split("."), replace(entry, parameters=parameters))
        write_avro(data, table.folder / "f", {"ID": "long", "S": "string"})
    migrate.apply(table.catalog, table.name)
    assert table.rows() == [{"id": 1, "s": "x"}]
    assert table.catalog.load_table(table.name).scan("id = 1").count() == 1
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_a_partition_column_in_an_orc_file_must_have_its_value(make_hive_table: Any) -> None:
    data = pa.table({"id": pa.array([1, 2], pa.int64()), "day": [dt.date(2024, 1, 2)] * 2})
    for text, blocked in (("2024-01-02", False), ("2024-01-03", True)):
        table = make_hive_table(
            {"id": "bigint"}, {"day": "date"}, {(text,): data}, storage=ORC, write=orc.write_table
        )
        found = codes(migrate.plan(table.catalog, table.name))
        assert found == ({"partition-column-in-file"} if blocked else set())


def test_timestamps_of_orc_have_no_zone(make_hive_table: Any) -> None:
    """Iceberg Java reads them as `timestamp` only."""
    moment = dt.datetime(2024, 7, 1, 12, 0, 0, 123456)  # noqa: DTZ001 - local time
    data = pa.table({"ts": pa.array([moment, None], pa.timestamp("us"))})
    table = make_hive_table({"ts": "timestamp"}, rows=data, storage=ORC, write=orc.write_table)
    assert codes(migrate.plan(table.catalog, table.name)) == {"timestamp-zone"}
    migrate.apply(table.catalog, table.name, migrate.Choices(timestamp="timestamp"))
    assert table.rows() == [{"ts": moment}, {"ts": None}]
    assert migrate.verify(table.catalog, table.name).difference_count == 0


NANOSECONDS = [1_719_835_200_123_456_789, -1, None]
"""Local times since 1970; Hive's ``timestamp`` has nine digits."""


def nanoseconds(zone: str | None = None) -> pa.Table:
    return pa.table({"ts": pa.array(NANOSECONDS, pa.int64()).cast(pa.timestamp("ns", zone))})


def int96(data: pa.Table, path: Path) -> None:
    pq.write_table(data, path, use_deprecated_int96_timestamps=True)


def nanos(data: pa.Table, path: Path) -> None:
    pq.write_table(data, path, version="2.6")


@pytest.mark.parametrize(
    ("kind", "storage", "write", "zone"),
    sampled(
        [
            ("timestamptz_ns", PARQUET, int96, None),
            ("timestamp_ns", PARQUET, int96, None),
            ("timestamp_ns", PARQUET, nanos, None),
            ("timestamptz_ns", PARQUET, nanos, "UTC"),
            ("timestamp_ns", ORC, orc.write_table, None),
        ],
        keep=2,
    ),
)
def test_nanoseconds_of_hive_are_kept(
    make_hive_table: Any, kind: str, storage: StorageDescriptor, write: Any, zone: str | None
) -> None:
    first, second = "2024-01-31 10:00:00.123456789", "1969-12-31 23:59:59.999999999"
    table = make_hive_table(
        {"ts": "timestamp"},
        {"p": "timestamp"},
        {(first,): nanoseconds(zone), (second,): nanoseconds(zone)},
        storage=storage,
        write=write,
    )
    accept = ("int96-nanoseconds",) if write is int96 else ()
    choices, version = migrate.Choices(timestamp=kind, accept=accept), {"format-version": "3"}
    if accept:
        unaware = migrate.Choices(timestamp=kind)
        found = codes(migrate.plan(table.catalog, table.name, unaware, properties=version))
        assert found == set(accept)
    assert codes(migrate.plan(table.catalog, table.name, choices, properties=version)) == set()
    migrate.apply(table.catalog, table.name, choices, properties=version)
    loaded = table.catalog.load_table(table.name)
    assert {str(f.field_type) for f in loaded.schema().fields} == {kind}
    rows = loaded.scan().to_arrow()
    assert sorted(rows["ts"].cast(pa.int64()).drop_null().to_pylist()) == [
        -1,
        -1,
        NANOSECONDS[0],
        NANOSECONDS[0],
    ]
    assert set(rows["p"].cast(pa.int64()).to_pylist()) == {1_706_695_200_123_456_789, -1}
    end = "" if kind == "timestamp_ns" else "+00:00"
    assert loaded.scan(f"ts = '2024-07-01T12:00:00.123456789{end}'").count() == 2
    assert loaded.scan(f"ts = '2024-07-01T12:00:00.123456788{end}'").count() == 0
    assert loaded.scan(f"p = '1969-12-31T23:59:59.999999999{end}'").count() == 3
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_nanoseconds_need_format_version_3_and_files_that_have_them(make_hive_table: Any) -> None:
    table = make_hive_table({"ts": "timestamp"}, rows=nanoseconds(), write=nanos)
    choices = migrate.Choices(timestamp="timestamp_ns")
    for refused in (migrate.plan, migrate.apply):
        with pytest.raises(UnsupportedError, match=r"timestamp_ns belongs to format version 3"):
            refused(table.catalog, table.name, choices)
    with pytest.raises(UnsupportedError, match="property format-version=3"):
        migrate.snapshot(table.catalog, table.name, f"{table.name}_2", choices)
    assert not table.entry.is_iceberg
    pq.write_table(nanoseconds(), table.folder / "part-1.parquet", coerce_timestamps="us",
                   allow_truncated_timestamps=True)  # fmt: skip
    version = {"format-version": "3"}
    found = codes(migrate.plan(table.catalog, table.name, choices, properties=version))
    assert found == {"timestamp-unit"}


def test_nanoseconds_beyond_their_range_are_refused_not_wrapped(make_hive_table: Any) -> None:
    moments = pa.array([dt.datetime(1500, 1, 1), None], pa.timestamp("us"))  # noqa: DTZ001
    table = make_hive_table({"ts": "timestamp"}, rows=pa.table({"ts": moments}), write=int96)
    choices = migrate.Choices(timestamp="timestamp_ns", accept=("int96-nanoseconds",))
    migrate.apply(table.catalog, table.name, choices, properties={"format-version": "3"})
    loaded = table.catalog.load_table(table.name)
    with pytest.raises(UnsupportedError, match="has times that nanoseconds cannot hold"):
        loaded.scan().to_arrow()
    migrate.revert(table.catalog, table.name, dry_run=False)
    migrate.apply(table.catalog, table.name, migrate.Choices(timestamp="timestamp"))
    assert table.rows()[0] == {"ts": dt.datetime(1500, 1, 1)}  # noqa: DTZ001


def test_timestamps_of_avro_are_instants(make_hive_table: Any) -> None:
    moment = dt.datetime(2024, 7, 1, 12, 0, 0, 123000, dt.timezone.utc)
    table = make_hive_table({"ts": "timestamp"}, storage=AVRO)
    kind = {"type": "long", "logicalType": "timestamp-millis"}
    avro_file(table.folder / "f", {"name": "ts", "type": kind}, rows=({"ts": moment},))
    other = migrate.Choices(timestamp="timestamp")
    assert codes(migrate.plan(table.catalog, table.name, other)) == {"timestamp-zone"}
    migrate.apply(table.catalog, table.name)
    assert table.rows() == [{"ts": moment}]
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    migrate.revert(table.catalog, table.name, dry_run=False)
    fine = migrate.Choices(timestamp="timestamptz_ns")
    migrate.apply(table.catalog, table.name, fine, properties={"format-version": "3"})
    (read,) = table.catalog.load_table(table.name).scan().to_arrow()["ts"].cast(pa.int64())
    assert read.as_py() == 1_719_835_200_123_000_000
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_times_far_away_in_orc_are_compared_too(make_hive_table: Any) -> None:
    moment = dt.datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001 - local time
    table = make_hive_table({"ts": "timestamp", "s": "string"}, storage=ORC)
    with (
        (table.folder / "f").open("wb") as out,
        pyorc.Writer(out, "struct<ts:timestamp,s:string>") as writer,
    ):
        writer.write((moment, "x"))
    migrate.apply(table.catalog, table.name, migrate.Choices(timestamp="timestamp"))
    assert table.rows() == [{"ts": moment, "s": "x"}]
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_chars_of_orc_lose_their_padding_as_in_java(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"c": "char(5)", "l": "array<char(3)>", "m": "map<char(2),char(2)>"}, storage=ORC
    )
    kind = "struct<c:char(5),l:array<char(3)>,m:map<char(2),char(2)>>"
    with (table.folder / "f").open("wb") as out, pyorc.Writer(out, kind) as writer:
        writer.write(("a", ["b", None, " c"], {"k": "v"}))
        writer.write((None, None, None))
    stored = orc.read_table(table.folder / "f")["c"].to_pylist()
    assert stored == ["a    ", None], "the library hands the padding out"
    migrate.apply(table.catalog, table.name)
    first = {"c": "a", "l": ["b", None, " c"], "m": [("k", "v")]}
    assert table.rows() == [first, {"c": None, "l": None, "m": None}]
    assert table.catalog.load_table(table.name).scan("c = 'a'").count() == 1
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_orc_files_with_field_ids_of_another_table_block(make_hive_table: Any) -> None:
    kind = pa.schema([pa.field("id", pa.int64(), metadata={"iceberg.id": "7"})])
    table = make_hive_table(
        {"id": "bigint"}, rows=pa.table({"id": [1]}, kind), storage=ORC, write=orc.write_table
    )
    assert codes(migrate.plan(table.catalog, table.name)) == {"foreign-field-ids"}


def test_orc_files_of_columns_by_number_block(make_hive_table: Any) -> None:
    data = pa.table({"_col0": pa.array([1], pa.int64()), "_col1": ["x"]})
    table = make_hive_table(
        {"id": "bigint", "s": "string"}, rows=data, storage=ORC, write=orc.write_table
    )
    (found,) = migrate.plan(table.catalog, table.name).blockers
    assert found.code == "numbered-columns"
    assert "CREATE TABLE `made`." in found.remedy


@pytest.mark.parametrize(
    ("names", "blocked"),
    [
        (["id", "S"], False),
        (["id"], False),
        (["id", "s", "more"], False),
        (["s", "id"], True),
        (["id", "old"], True),
    ],
    ids=str,
)
def test_positions_block_unless_names_agree(
    make_hive_table: Any,
    names: list[str],
    blocked: bool,  # noqa: FBT001
) -> None:
    data = pa.table([pa.array(["x"]) for _ in names], names)
    table = make_hive_table(
        {"id": "string", "s": "string"},
        rows=data,
        storage=ORC,
        write=orc.write_table,
        parameters={"orc.force.positional.evolution": "true"},
    )
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == ({"by-position"} if blocked else set())
    if blocked:
        assert "AS SELECT * FROM" in plan.blockers[0].remedy
        return
    migrate.apply(table.catalog, table.name)
    assert table.rows() == [{"id": "x", "s": "x" if len(names) > 1 else None}]
    properties = table.catalog.load_table(table.name).properties
    assert not [key for key in properties if key.startswith("orc.")]


def test_deltas_of_acid_tables_block_whatever_the_entry_says(make_hive_table: Any) -> None:
    row = pa.struct([("id", pa.int64())])
    data = pa.table(
        {
            "operation": pa.array([0], pa.int32()),
            "originalTransaction": pa.array([1], pa.int64()),
            "bucket": pa.array([0], pa.int32()),
            "rowId": pa.array([0], pa.int64()),
            "currentTransaction": pa.array([1], pa.int64()),
            "row": pa.array([{"id": 1}], row),
        }
    )
    table = make_hive_table({"id": "bigint"}, rows=data, storage=ORC, write=orc.write_table)
    assert codes(migrate.plan(table.catalog, table.name)) == {"acid-file"}
    bucketed = replace(ORC, num_buckets=1, bucket_columns=("id",))
    table = make_hive_table(
        {"id": "bigint"}, storage=bucketed, parameters={"transactional": "true"}
    )
    (table.folder / "base_0000001").mkdir()
    orc.write_table(data, table.folder / "base_0000001" / "bucket_00000")
    assert codes(migrate.plan(table.catalog, table.name)) == {"transactional", "bucketed"}


@pytest.mark.parametrize(
    ("hive", "arrow"),
    sampled(
        [
            ("bigint", pa.int16()),
            ("string", pa.binary()),
            ("binary", pa.string()),
            ("int", pa.int64()),
        ],
        keep=2,
    ),
    ids=str,
)
def test_types_of_orc_that_iceberg_java_cannot_read_block(
    make_hive_table: Any, hive: str, arrow: pa.DataType
) -> None:
    data = pa.table({"c": pa.array([None], arrow)})
    table = make_hive_table({"c": hive}, rows=data, storage=ORC, write=orc.write_table)
    assert codes(migrate.plan(table.catalog, table.name)) <= {"foreign-type", "type-differs"}
    assert codes(migrate.plan(table.catalog, table.name))


ID = {"name": "id", "type": "long"}


def fine(declared: Any, written: Any) -> Any:
    """Return a case in which nothing differs: two of them are enough for the gate."""
    return pytest.param(declared, written, None, marks=pytest.mark.full("fine, too"))


@pytest.mark.parametrize(
    ("declared", "written", "code"),
    [
        ([ID], [ID], None),
        fine([ID, {"name": "more", "type": ["null", "string"], "default": None}], [ID]),
        ([ID, {"name": "more", "type": "string", "default": "x"}], [ID], "avro-schema"),
        ([ID, {"name": "more", "type": "string", "aliases": ["m"]}], [ID], None),
        (
            [ID, {"name": "more", "type": "string", "aliases": ["m"]}],
            [ID, {"name": "m", "type": "string"}],
            "avro-schema",
        ),
        fine([{"name": "Id", "type": "long"}], [{"name": "Id", "type": "long"}]),
        ([{"name": "Id", "type": "long"}], [ID], "avro-schema"),
        fine(None, [ID]),
        (None, [{"name": "ID", "type": "long"}], "avro-schema"),
        ([ID], [{"name": "id", "type": ["long", "string"]}], "unreadable-file"),
        fine([ID], [{"name": "id", "type": ["long", "null"]}]),
        ([ID], [{"name": "id", "type": "string"}], "type-differs"),
    ],
)
def test_avro_files_are_compared_with_the_schema_that_hive_reads_by(
    make_hive_table: Any, declared: Any, written: Any, code: str | None
) -> None:
    columns = {f["name"].lower(): "string" for f in declared or ()} | {"id": "bigint"}
    literal = json.dumps({"type": "record", "name": "r", "fields": declared})
    table = make_hive_table(
        columns,
        storage=AVRO,
        parameters={} if declared is None else {"avro.schema.literal": literal},
    )
    first = "x" if written[0]["type"] == "string" else 7
    row = {f["name"]: first if f is written[0] else "x" for f in written}
    avro_file(table.folder / "f", *written, rows=(row,))
    assert codes(migrate.plan(table.catalog, table.name)) == ({code} if code else set())
    if code is None:
        migrate.apply(table.catalog, table.name)
        assert table.rows() == [dict.fromkeys(columns) | {"id": 7}]
        assert migrate.verify(table.catalog, table.name).difference_count == 0
        properties = table.catalog.load_table(table.name).properties
        assert not [key for key in properties if key.startswith("avro.")]


@pytest.mark.parametrize("of_table", sampled(["another", "the same", None], keep=1))
def test_a_partition_with_an_avro_schema_of_its_own_blocks(
    make_hive_table: Any, of_table: str | None
) -> None:
    """AvroGenericRecordReader asks the partition's properties, which Hive makes of its SerDe's, too."""
    own = json.dumps({"type": "record", "name": "r", "fields": [ID]})
    said = {
        None: {},
        "the same": {"avro.schema.literal": own},
        "another": {"avro.schema.literal": own + " "},
    }
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): None, ("2",): None},
        storage=AVRO,
        parameters=said[of_table],
    )
    for folder in ("p0", "p1"):
        (table.folder / folder).mkdir()
        avro_file(table.folder / folder / "f", ID, rows=({"id": 1},))
    first = table.partitions[0]
    storage = replace(first.storage, serde_parameters={"avro.schema.literal": own})
    table.catalog.client.partitions.alter(*table.name.split("."), [replace(first, storage=storage)])
    plan = migrate.plan(table.catalog, table.name)
    if of_table == "the same":
        assert plan.blockers == ()
        return
    [found] = plan.blockers
    assert (found.code, found.places) == ("avro-schema", ("k=1",))
    remedy = "SET SERDEPROPERTIES ('avro.schema.literal'=" if of_table else "CREATE TABLE"
    assert remedy in str(found.remedy)
    same = replace(first.storage, serde_parameters={"avro.schema.url": "none"})
    table.catalog.client.partitions.alter(*table.name.split("."), [replace(first, storage=same)])
    assert migrate.plan(table.catalog, table.name).blockers == ()


def test_a_schema_behind_a_location_is_read_or_blocks(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, storage=AVRO)
    avro_file(table.folder / "f", ID, rows=({"id": 1},))
    schema = table.folder.parent / f"{table.folder.name}.avsc"
    cases = [
        (json.dumps({"type": "record", "name": "r", "fields": [ID]}), f"file:{schema}", set()),
        (
            json.dumps({"type": "record", "name": "r", "fields": []}),
            f"file:{schema}",
            {"avro-schema"},
        ),
        ("no json", f"file:{schema}", {"avro-schema"}),
        (None, f"file:{schema}", {"avro-schema"}),
        (None, "http://127.0.0.1:9/schema", {"avro-schema"}),
        (None, "none", set()),
    ]

    for text, url, found in cases:
        schema.unlink(missing_ok=True)
        if text is not None:
            schema.write_text(text)
        entry = replace(table.entry, parameters={"avro.schema.url": url})
        table.catalog.client.alter_table(*table.name.split("."), entry)
        assert codes(migrate.plan(table.catalog, table.name)) == found, (text, url)


def test_what_cannot_be_taken_over_says_how_to_copy_it(make_hive_table: Any) -> None:
    text = "org.apache.hadoop.mapred.TextInputFormat"
    lazy = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, storage=StorageDescriptor(input_format=text, serde=lazy)
    )
    (found,) = migrate.plan(table.catalog, table.name).blockers
    name = table.name.partition(".")[2]
    assert found.code == "format"
    assert (
        f"CREATE TABLE `made`.`{name}_parquet` USING parquet PARTITIONED BY (`k`) AS "
        f"SELECT * FROM `made`.`{name}`" in found.remedy
    )
    assert f"ALTER TABLE `made`.`{name}_parquet` RENAME TO `made`.`{name}`" in found.remedy


def test_a_cut_file_blocks_whatever_its_format(make_hive_table: Any) -> None:
    for storage, write in FORMATS.values():
        table = make_hive_table(COLUMNS, rows=rows_of(0, 1, 2), storage=storage, write=write)
        file = table.folder / "part-0.parquet"
        file.write_bytes(file.read_bytes()[:-20])
        assert codes(migrate.plan(table.catalog, table.name)) <= {
            "unreadable-file",
            "unknown-format",
        }
        assert codes(migrate.plan(table.catalog, table.name))


def test_an_attempt_that_is_given_up_takes_only_its_own_files_away(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table(COLUMNS, rows=rows_of(0), storage=AVRO, write=write_avro)
    writers = table.folder / "metadata" / "000000_0.avro"
    seen: list[set[str]] = []

    def disturbed(*_: Any) -> None:
        seen.append({path.name for path in writers.parent.iterdir()} - {writers.name})
        write_avro(rows_of(1), writers)
        raise CommitFailedError("changed", hint="again")

    monkeypatch.setattr(migration, "is_unchanged", disturbed)
    with pytest.raises(MigrationError, match="are in sub-folders"):
        migrate.apply(table.catalog, table.name)
    assert min(map(len, seen)) == 3, "a manifest, a list and the metadata"
    assert [path.name for path in writers.parent.iterdir()] == [writers.name]


def test_columns_that_pyarrow_reads_in_other_layouts_are_compared_too(make_hive_table: Any) -> None:
    """A Parquet file of pyarrow says in which layout its columns were given."""
    views = pa.ListViewArray.from_arrays(
        pa.array([1, 0, 0]), pa.array([2, 3, 0]), pa.array([7, 8, None])
    )
    data = pa.table(
        {
            "l": views,
            "f": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2)),
            "s": pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
            "b": pa.array([b"a", None, b"\xff"], pa.binary_view()),
            "d": pa.array(["x", None, "x"]).dictionary_encode(),
            "n": pa.StructArray.from_arrays([views], ["x"]),
        }
    )
    columns = {
        "l": "array<bigint>",
        "f": "array<bigint>",
        "s": "string",
        "b": "binary",
        "d": "string",
        "n": "struct<x:array<bigint>>",
    }
    table = make_hive_table(columns, rows=data)
    assert codes(migrate.plan(table.catalog, table.name)) == set()
    migrate.apply(table.catalog, table.name)
    assert ordered(table.rows()) == ordered(data.to_pylist())
    assert migrate.verify(table.catalog, table.name).difference_count == 0
