"""Batches of Parquet files take bounded memory, whatever few bytes say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.rows.parquet import batch_limit
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.storage.file_io import FileIO

LIMIT = 1 << 20
LONG = "x" * 10_000
ID = b"PARQUET:field_id"


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_limit, "BATCH_BYTES", LIMIT)


def batches(
    path: Path, column: pa.Array, *, dictionaries: Sequence[str] = (), **options: Any
) -> list[pa.RecordBatch]:
    schema = pa.schema([pa.field("c", column.type, metadata={ID: b"1"})])
    table = pa.Table.from_arrays([column], schema=schema)
    pq.write_table(table, path, compression="zstd", store_schema=False, **options)
    reader = ParquetReader(FileIO({}), str(path), None, None, dictionaries)
    try:
        leaves = [*range(reader._file.metadata.num_columns)]
        found, position = [], 0
        for first, batch in reader.batches(leaves, reader.row_groups(), 1 << 17):
            assert first == position
            position += batch.num_rows
            found.append(batch)
        return found
    finally:
        reader.close()


def coded(codes: Sequence[int | None], *values: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))


@pytest.mark.parametrize("first", [0, 20_000])
@pytest.mark.parametrize("groups", [1 << 20, 9_000])
def test_a_long_value_that_many_rows_share_is_read_in_small_batches(
    tmp_path: Path, first: int, groups: int
) -> None:
    """Also after rows that are short: the dictionary is looked up before."""
    column = coded([None, *[1] * first, *[0] * 20_000], LONG, "short")
    found = batches(tmp_path / "f", column, row_group_size=groups)
    assert (tmp_path / "f").stat().st_size < 10_000
    # the first batch is read before its file is known to be so
    assert all(batch.nbytes < LIMIT * 1.1 for batch in found)
    assert pa.chunked_array([b.column(0) for b in found]).equals(
        pa.chunked_array([column.cast(pa.string())])
    )


@pytest.mark.parametrize("nested", ["struct", "list"])
def test_nested_values_are_counted(tmp_path: Path, nested: str) -> None:
    texts = coded([0] * 20_000, LONG)
    if nested == "list":
        offsets = pa.array([*range(0, 20_001, 2)], pa.int32())
        column: pa.Array = pa.ListArray.from_arrays(offsets, texts)
        sizes = [b.nbytes for b in batches(tmp_path / "f", column)][1:]
    else:
        column = pa.StructArray.from_arrays([texts], ["s"])
        sizes = [b.nbytes for b in batches(tmp_path / "f", column)]
    assert max(sizes) < LIMIT * 1.1


def test_values_that_each_stand_in_the_file_are_counted(tmp_path: Path) -> None:
    column = pa.array([LONG] * 20_000)
    found = batches(tmp_path / "f", column, use_dictionary=False)
    assert max(batch.nbytes for batch in found[1:]) < LIMIT * 1.1
    assert sum(batch.num_rows for batch in found) == 20_000


def test_what_is_read_as_a_dictionary_is_as_long_as_it_likes(tmp_path: Path) -> None:
    column = coded([0] * 50_000, LONG)
    found = batches(tmp_path / "f", column, dictionaries=["c"])
    assert [batch.num_rows for batch in found] == [50_000]


def test_columns_of_fixed_width_are_read_as_far_as_memory_allows(tmp_path: Path) -> None:
    found = batches(tmp_path / "f", pa.array(range(300_000)))
    assert [batch.num_rows for batch in found] == [131_072, 131_072, 37_856]
    wide = pa.array([b"abcd" * 25] * 30_000, pa.binary(100))
    assert max(batch.nbytes for batch in batches(tmp_path / "f", wide)) < LIMIT * 1.1


def test_short_texts_are_read_in_large_batches(tmp_path: Path) -> None:
    column = pa.array([f"v{n}" for n in range(300_000)])
    assert len(batches(tmp_path / "f", column)) < 10


def test_a_header_that_cannot_be_told_is_looked_up(tmp_path: Path) -> None:
    column = coded([0] * 100, LONG)
    batches(tmp_path / "f", column)
    source = pa.OSFile(str(tmp_path / "f"))
    chunk = pq.read_metadata(source).row_group(0).column(0)
    assert batch_limit._dictionary_bytes(source, chunk)[0] == len(LONG) + 4
    assert batch_limit._dictionary_bytes(pa.BufferReader(b"\xff" * 4), chunk) == (None, 0)
