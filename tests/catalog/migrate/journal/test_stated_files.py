"""The files of a plan come back from the journal, whoever wrote it in few bytes or many."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.migrate.journal.journal import keep_files, kept_files
from icecomb.format.errors import CorruptFileError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus


def journal(folder: Path) -> Any:
    io = FileIO()
    return SimpleNamespace(
        io=io,
        location=str(folder),
        create=lambda name, data: io.create(f"{folder}/{name}", data),
        read=lambda name: io.read(f"{folder}/{name}"),
    )


def test_what_is_kept_is_read_page_by_page(tmp_path: Path) -> None:
    pages = [[FileStatus(f"hdfs://c/{page}/{at}", at, 5, 7) for at in range(3)] for page in (0, 1)]
    keep_files(journal(tmp_path), pages)
    assert list(kept_files(journal(tmp_path))) == pages


@pytest.mark.parametrize(
    "columns",
    [
        {"path": ["x"] * (1 << 20), "size": [1] * (1 << 20)},
        {"path": [None], "size": [1]},
        {"path": ["x"], "size": [None]},
    ],
)
def test_pages_that_state_no_files_are_refused(tmp_path: Path, columns: Any) -> None:
    kinds = {"path": pa.string(), "size": pa.int64()}
    table = {name: pa.array(values, kinds[name]) for name, values in columns.items()}
    table |= {name: pa.array([1] * len(columns["path"])) for name in ("mtime", "id")}
    pq.write_table(pa.table(table), tmp_path / "files-00000.parquet", compression="zstd")
    with pytest.raises(CorruptFileError, match=r"files-00000\.parquet is not what was written"):
        list(kept_files(journal(tmp_path)))
