"""Files of icecomb's own that somebody else exchanged take no more memory than they justify."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.input_limit import UNPACKED
from icecomb.format.rows.parquet.own_table import OwnTable

SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("record", pa.binary())])


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", **options)
    return out.getvalue()


def rows(count: int, text: str = "/w/{}") -> pa.Table:
    paths = [text.format(at) for at in range(count)]
    return pa.table([paths, range(count), [b"r"] * count], schema=SCHEMA)


def equal(count: int, length: int) -> bytes:
    paths = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), ["x" * length])
    columns = [paths, pa.array([0] * count), pa.nulls(count, pa.binary())]
    table = pa.table(columns, ["path", "size", "record"])
    return written(table, store_schema=False)


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 7}])
@pytest.mark.parametrize("count", [0, 1, 30, 5000])
def test_what_was_written_is_read(count: int, options: Any) -> None:
    table = rows(count).replace_schema_metadata({"of": "a table"})
    found = OwnTable(written(table, **options), SCHEMA)
    assert found.facts == {b"of": b"a table"}
    batches = list(found.batches(100))
    assert pa.Table.from_batches(batches, SCHEMA) == rows(count)
    assert all(0 < batch.num_rows <= 100 for batch in batches)


def test_nulls_are_read() -> None:
    table = pa.table([["a", None], [None, 2], [None, b""]], schema=SCHEMA)
    (batch,) = OwnTable(written(table), SCHEMA).batches(10)
    assert batch.to_pylist() == table.to_pylist()
    with pytest.raises(ValueError, match="it has a null"):
        list(OwnTable(written(table), SCHEMA, nulls=False).batches(10))


def test_rows_of_any_number_of_files_are_allowed() -> None:
    names = rows(200_000, "/w/{:06d}_0")
    data = written(names)
    assert sum(batch.num_rows for batch in OwnTable(data, SCHEMA).batches(1000)) == 200_000


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "0 bytes"),
        (b"PAR1", "bytes"),
        (written(rows(3))[:-9], "magic"),
        (written(rows(3).select(["path"])), "it has the columns path"),
        (written(rows(3).rename_columns(["a", "b", "c"])), "it has the columns a, b, c"),
        (equal(1 << 20, 1), "it states 1048576 rows in"),
    ],
)
def test_what_is_not_such_a_file_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        OwnTable(data, SCHEMA)


def test_damaged_pages_are_refused() -> None:
    data = bytearray(written(rows(5000), use_dictionary=False))
    data[20:200] = bytes(180)
    with pytest.raises(ValueError, match=r"\w"):
        list(OwnTable(bytes(data), SCHEMA).batches(100))


def test_equal_rows_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    data = equal(8_000, 100_000)
    assert len(data) < 10_000
    monkeypatch.setenv(UNPACKED.name, "64")
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=UNPACKED.name):
            list(OwnTable(data, SCHEMA).batches(10_000))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 64 << 20
