"""Rows that a table cannot take: each operation names the column, commits nothing, leaves no file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import IcecombError, ValidationError
from tests.rings import sampled

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("s", pa.string()),
        ("d", pa.decimal128(5, 2)),
        ("t", pa.timestamp("us")),
        ("p", pa.struct([pa.field("q", pa.int64(), nullable=False)])),
    ]
)
GOOD = pa.Table.from_pylist(
    [{"id": i, "s": "ab"[i % 2], "d": None, "t": None, "p": {"q": i}} for i in range(6)], SCHEMA
)
ROWS = 3


def with_column(name, array):
    return GOOD.slice(0, ROWS).set_column(GOOD.schema.get_field_index(name), name, array)


def not_text():
    offsets = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), ROWS, [None, offsets, pa.py_buffer(b"a\xffb")])


BAD = {
    "null in a required column": (with_column("id", pa.array([1, None, 3], pa.int32())), "'id'"),
    "null in a required field of a struct": (
        with_column("p", pa.array([{"q": 1}, {"q": None}, None])),
        r"'p\.q'",
    ),
    "wider integers": (with_column("id", pa.array([1, 2**40, 3])), "id"),
    "unsigned integers": (with_column("id", pa.array([1, 2, 3], pa.uint32())), "id: int"),
    "wider decimals": (
        with_column("d", pa.array([1, 2, 3], pa.decimal128(9, 2))),
        r"d: decimal\(5,",
    ),
    "finer decimals": (
        with_column("d", pa.array([1, 2, 3], pa.decimal128(5, 3))),
        r"d: decimal\(5,",
    ),
    "text for a number": (with_column("id", pa.array(["1", "2", "3"])), "id: int in the table"),
    "nanoseconds": (with_column("t", pa.array([1, 2, 3], pa.timestamp("ns"))), "'t'"),
    "seconds beyond the calendar": (
        with_column("t", pa.array([2**60] * 3, pa.timestamp("s"))),
        "'t'",
    ),
    "a time with a zone": (with_column("t", pa.array([1, 2, 3], pa.timestamp("us", "UTC"))), "t: "),
    "bytes that are no text": (with_column("s", not_text()), "'s'"),
    "an extra column": (GOOD.slice(0, ROWS).append_column("more", [[1] * ROWS]), r"\+ more"),
    "a required column missing": (GOOD.slice(0, ROWS).drop_columns(["id"]), "id"),
    "a column twice": (GOOD.slice(0, ROWS).append_column("s", [["a"] * ROWS]), "s"),
}
FINE_TO_MERGE = ("an extra column", "unsigned integers", "wider decimals", "finer decimals")
"""Sources may have more columns, and numbers of other types that fit exactly."""
OPERATIONS = {
    "append": lambda table, data: table.append(data),
    "overwrite": lambda table, data: table.overwrite(data, "id < 100"),
    "partitions": lambda table, data: table.dynamic_partition_overwrite(data),
    "upsert": lambda table, data: table.upsert(data, ["s"] if "id" not in data.schema.names else ["id"]),
    "merge": lambda table, data: (
        table.merge(data, ["id"]).when_matched_update_all().when_not_matched_insert_all().execute()
    ),
}  # fmt: skip


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def table(request, tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    properties = {f"write.{c}.mode": request.param for c in ("delete", "merge")}
    found = lake.create_table("db.t", SCHEMA, properties=properties)
    with found.update_spec() as update:
        update.add_field("s", "identity")
    found.append(GOOD)
    yield found
    lake.close()


def state(table):
    folder = Path(table.location().removeprefix("file:"))
    files = {str(p) for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")}
    return table.refresh().metadata_location, files


@pytest.mark.parametrize(
    ("kind", "operation"),
    sampled(
        [(k, o) for k in BAD for o in OPERATIONS if not (o == "merge" and k in FINE_TO_MERGE)],
        keep=33,
    ),
)
def test_bad_rows_are_refused_by_name_and_leave_nothing(table, kind, operation):
    bad, message = BAD[kind]
    before = state(table)
    with pytest.raises(ValidationError, match=message):
        OPERATIONS[operation](table, bad)
    assert state(table) == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_bad_rows_in_a_transaction_leave_nothing_of_it(table, operation):
    before = state(table)
    transaction = table.transaction()
    with pytest.raises(ValidationError, match="'id'"), transaction:
        _in_one(transaction, operation, BAD["null in a required column"][0])
    assert state(table) == before
    assert table.scan().to_arrow().sort_by("id").equals(GOOD)


def _in_one(transaction, operation, bad):
    transaction.delete("id = 1")
    OPERATIONS[operation](transaction, bad)


@pytest.mark.parametrize("operation", ["append", "overwrite", "partitions"])
def test_bad_rows_at_the_end_of_a_stream_take_written_files_along(table, operation):
    schema = pa.schema([f.with_nullable(True) for f in SCHEMA]).remove(4)
    table.transaction().set_properties(
        {"write.target-file-size-bytes": "1000"}
    ).commit_transaction()
    before = state(table)
    written = []

    def batches():
        for start in range(0, 600_000, 100_000):
            ids = pa.array(range(start, start + 100_000), pa.int32())
            rest = [pa.nulls(len(ids), f.type) for f in list(schema)[1:]]
            yield pa.record_batch([ids, *rest], schema)
        written.extend(state(table)[1] - before[1])
        yield pa.record_batch([pa.nulls(1, f.type) for f in schema], schema)

    with pytest.raises(ValidationError, match="'id' is required"):
        OPERATIONS[operation](table, pa.RecordBatchReader.from_batches(schema, batches()))
    assert written
    assert state(table) == before


@pytest.mark.parametrize("mode", ["delete", "overwrite"])
@pytest.mark.parametrize("unknown", ["nope = 1", "p.nope = 1", "id > 'x'", "S = 'a'"])
def test_an_unknown_column_of_a_filter_is_named(table, mode, unknown):
    before = state(table)
    with pytest.raises(IcecombError, match=r"nope|'x'|S"):
        table.delete(unknown) if mode == "delete" else table.overwrite(GOOD, unknown)
    assert state(table) == before
