"""CALL compute_table_stats by the session's own executors, on the newest Spark and the oldest."""

from __future__ import annotations

import itertools
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.puffin_file import PuffinReader
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "session_sketches"
NUMBERS = itertools.count(1)
MORE = pytest.mark.full("one CALL by executors is in the gate, the others by Python")
REFUSED = (PySparkException, AssertionError)  # the second is that of a Spark in another process
INNER = StructType(NestedField(30, "x.y", LongType()))
ODD = "${system:user.name}"
"""Spark puts settings and the environment into SQL for such a text."""
COLUMNS = {
    "i": (IntegerType(), lambda n: n - 50, pa.int32()),
    "l": (LongType(), lambda n: (n << 33) - 5, pa.int64()),
    "f": (FloatType(), lambda n: -0.0 if n == 7 else n / 3 - 9, pa.float32()),
    "d": (DoubleType(), lambda n: float("nan") if n == 8 else n / 7 - 9, pa.float64()),
    "b": (BooleanType(), lambda n: n % 2 == 0, pa.bool_()),
    "day": (DateType(), lambda n: n * 7 - 99, pa.date32()),
    "ts": (TimestampType(), lambda n: n * 86_399_000_001 - 5, pa.timestamp("us")),
    "tz": (TimestamptzType(), lambda n: n * 86_399_000_001 - 5, pa.timestamp("us", "UTC")),
    "s": (StringType(), lambda n: "ä" * (n % 40), pa.string()),
    "y": (BinaryType(), lambda n: bytes([n % 256]) * (n % 20), pa.binary()),
    "x": (FixedType(3), lambda n: (n * 99).to_bytes(3, "big"), pa.binary(3)),
    "u": (UUIDType(), lambda n: uuid.UUID(int=n << 70).bytes, pa.binary(16)),
    "c": (DecimalType(9, 2), lambda n: Decimal(n * 3701 - 5000).scaleb(-2), pa.decimal128(9, 2)),
    "g": (DecimalType(30, 4), lambda n: Decimal(pow(7, n, 10**25) - n), pa.decimal128(30, 4)),
    ODD: (IntegerType(), lambda n: n % 13, pa.int32()),
    "in": (INNER, lambda n: {"x.y": n % 900}, pa.struct([("x.y", pa.int64())])),
}
SCHEMA = Schema(*(NestedField(n, k, COLUMNS[k][0]) for n, k in enumerate(COLUMNS, 1)))
NAMES = [*list(COLUMNS)[:-1], "in.x.y"]


def frame(begin, end, names=tuple(COLUMNS)):
    return pa.table(
        {
            name: pa.array(
                [None if n % 11 == 5 else COLUMNS[name][1](n) for n in range(begin, end)],
                COLUMNS[name][2],
            )
            for name in names
        }
    )


def sketches(table, snapshot_id=None):
    """The sketches of a snapshot, by default of the current one."""
    wanted = snapshot_id or table.current_snapshot().snapshot_id
    (file,) = [file for file in table.metadata.statistics if file["snapshot-id"] == wanted]
    reader = PuffinReader(table.io.read(file["statistics-path"]), file["statistics-path"])
    return {blob.fields[0]: reader.content(blob).hex() for blob in reader.blobs}


def pair(catalog, *begins, **properties):
    """Two tables of the same rows: one for executors, one for the planner."""
    number, made = next(NUMBERS), []
    for name in ("ours", "theirs"):
        table = catalog.create_table(f"{NAMESPACE}.{name}{number}", SCHEMA, properties=properties)
        for begin in begins:
            table.append(frame(begin, begin + 3000))
        made.append(table)
    return made


def delete_by_text(table, text):
    writer = EqualityDeleteWriter(table.io, table.metadata, uuid.uuid4().hex, ["s"])
    writer.write(pa.record_batch({"s": [text]}))
    change = RowDelta(table.io)
    for file in writer.close():
        change.add_deletes(file)
    table.commit(change)


def check(sql, ours, theirs, names=NAMES):
    """Executors and the planner make the same sketches, of so many columns; return them."""
    columns = ", ".join(f"'{name}'" for name in names).replace("$", r"\u0024")
    call = f"table => '{'.'.join(theirs.name())}', columns => array({columns}), engine => 'Spark'"
    ((path,),) = sql(f"CALL lake.system.compute_table_stats({call})")
    theirs.refresh()
    assert path == theirs.metadata.statistics[-1]["statistics-path"]
    ours.refresh().maintenance.compute_table_stats(columns=names)
    found = sketches(theirs)
    assert found == sketches(ours.refresh())
    assert len(found) == len(names)
    return found


def test_executors_make_the_bytes_of_the_planner(sql, catalog):
    # more rows than the 4096 values that a sketch holds
    ours, theirs = pair(catalog, 0, 2000)
    before = check(sql, ours, theirs)
    for table in (ours, theirs):
        table.append(frame(5000, 5500))
    # of appended rows only
    assert check(sql, ours, theirs) != before


@MORE
def test_rows_of_other_columns_are_read_whole(sql, catalog):
    ours, theirs = pair(catalog, 0)
    first = theirs.current_snapshot().snapshot_id
    check(sql, ours, theirs)
    for table in (ours, theirs):
        table.append(frame(4000, 5000))
    second = theirs.current_snapshot().snapshot_id
    check(sql, ours, theirs)
    renamed = ["text" if name == "s" else name for name in COLUMNS]
    for table in (ours, theirs):
        with table.update_schema() as update:
            update.rename_column("s", "text")
            update.update_column("i", LongType())
        table.append(frame(5000, 5100).rename_columns(renamed))
    check(sql, ours, theirs, ["text" if name == "s" else name for name in NAMES])
    for table in (ours, theirs):
        with table.update_schema() as update:
            update.delete_column("d")
    # of a snapshot before that, with an older one's statistics
    name = ".".join(theirs.name())
    for column in ("d", "s", "i"):
        called = f"columns => array('{column}'), snapshot_id => {second}, engine => 'spark'"
        sql(f"CALL lake.system.compute_table_stats(table => '{name}', {called})")
        ours.refresh().maintenance.compute_table_stats(
            columns=[column], snapshot=ours.metadata.snapshots[1].snapshot_id
        )
    theirs.refresh()
    assert first != second
    assert sketches(theirs, second) == sketches(ours, ours.metadata.snapshots[1].snapshot_id)


@MORE
@pytest.mark.parametrize("version", ["2", "3"])
def test_deleted_rows_do_not_count(sql, catalog, version):
    merging = {"format-version": version, "write.delete.mode": "merge-on-read"}
    ours, theirs = pair(catalog, 0, **merging)
    before = check(sql, ours, theirs)
    for table in (ours, theirs):
        table.delete("i < 900")
        delete_by_text(table, "ä" * 7)
    after = check(sql, ours, theirs)
    assert all(after[field_id] != before[field_id] for field_id in (1, 2, 9))
    live = ours.scan(selected_fields=("s",)).to_arrow()["s"]
    told = ours.refresh().metadata.statistics[-1]["blob-metadata"]
    (text,) = [blob for blob in told if blob["fields"] == [9]]
    assert int(text["properties"]["ndv"]) == len(set(live.to_pylist()) - {None, ""}) == 38


@MORE
def test_tables_beyond_the_limit_are_read_by_executors(sql, catalog):
    ours, theirs = pair(catalog, 0, **{"icecomb.maintenance.local-limit": "0"})
    name = ".".join(theirs.name())
    sql(f"CALL lake.system.compute_table_stats('{name}')")
    ours.maintenance.compute_table_stats()
    assert sketches(theirs.refresh()) == sketches(ours.refresh())
    with theirs.update_schema() as update:
        update.add_column("t", TimeType())
    theirs.append(frame(0, 10))
    with pytest.raises(REFUSED, match="Spark does not have the values of column 't', of type time"):
        sql(f"CALL lake.system.compute_table_stats('{name}', engine => 'spark')")
    # read by the planner, as nobody asked for executors
    sql(f"CALL lake.system.compute_table_stats('{name}')")
    assert len(sketches(theirs.refresh())) == len(COLUMNS)
    with pytest.raises(REFUSED, match="There is no engine 'flink'"):
        sql(f"CALL lake.system.compute_table_stats('{name}', engine => 'flink')")


@MORE
def test_a_table_without_a_row_has_sketches_of_nothing(sql, catalog):
    ours, theirs = pair(catalog, 0)
    for table in (ours, theirs):
        table.delete("true")
    assert len(set(check(sql, ours, theirs).values())) == 1
