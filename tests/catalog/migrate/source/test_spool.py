from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.migrate.source import spool
from icecomb.catalog.migrate.source.spool import RowWriter
from icecomb.format.errors import FileIOError

SCHEMA = pa.schema([("n", pa.int64()), ("data", pa.binary())])


def open_in(folder: Path) -> int:
    """Return the number of this process's descriptors of files in a folder, also of deleted ones.

    Others are not counted: threads of earlier tests open and close theirs meanwhile.
    """
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            links.append(str(descriptor.readlink()))
    return sum(link.startswith(f"{folder}/") for link in links)


@pytest.mark.parametrize("memory", [0, 1500, 1 << 20])
def test_rows_come_back_in_their_order_from_memory_and_disk(
    memory: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", memory)
    monkeypatch.setattr(spool, "ROWS", 7)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = [(n, None if n % 3 else os.urandom(n)) for n in range(40)]
    writer = RowWriter(SCHEMA)
    for row in rows:
        writer.add(row)
    writer.flush()
    assert writer.flush() is None
    made = writer.spool
    assert (made.rows, made.batches) == (40, 6)
    for _ in range(2):
        batches = [batch.to_pylist() for batch in made]
        assert [(row["n"], row["data"]) for batch in batches for row in batch] == rows
    assert made.batch(5).column("n").to_pylist() == [35, 36, 37, 38, 39]
    assert list(tmp_path.iterdir()) == [], "the file has no name"
    assert open_in(tmp_path) == (1 if memory < 1 << 20 else 0)
    del made, writer
    gc.collect()
    assert open_in(tmp_path) == 0


def test_long_rows_end_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BYTES", 100)
    writer = RowWriter(SCHEMA, "data")
    for n in range(5):
        writer.add((n, b"x" * 60))
    writer.flush()
    assert [batch.num_rows for batch in writer.spool] == [2, 2, 1]


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "IN_MEMORY", 0)
    monkeypatch.setattr(os, "write", full)
    writer = RowWriter(SCHEMA)
    writer.add((1, b"x"))
    with pytest.raises(FileIOError, match="No space left on device"):
        writer.flush()
