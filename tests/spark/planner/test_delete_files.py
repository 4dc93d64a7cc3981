"""What executors are told to read is no more than the table's files can hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.errors import CorruptFileError
from icecomb.format.input_limit import UNPACKED
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.spark.planner.files import ReadDeleteFiles


def found(rows: int, stated: int) -> Any:
    data = DataFile(file_path="/t/a", record_count=rows, file_size_in_bytes=9)
    vector = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="/t/v.puffin",
        file_format=FileFormat.PUFFIN,
        record_count=stated,
        file_size_in_bytes=90,
        referenced_data_file="/t/a",
        content_offset=4,
        content_size_in_bytes=50,
    )
    locations: Any = SimpleNamespace(of=str)
    state: Any = None
    return ReadDeleteFiles(state, locations).by_position(FileScanTask(data, (vector,)))


def test_executors_get_no_vector_of_more_rows_than_its_data_file() -> None:
    assert found(3, 3).files == (0,)
    with pytest.raises(CorruptFileError, match="states 4 deleted rows of a file of 3"):
        found(3, 4)
    with pytest.raises(CorruptFileError, match=UNPACKED.name):
        found(1 << 40, 1 << 30)
