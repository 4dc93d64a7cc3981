"""Data and delete files of any format, written by libraries that are not under test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.format.manifests.manifest import DataFile, FileFormat

_ID = b"PARQUET:field_id"
_AVRO = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
}


def with_ids(columns: dict[int, tuple[str, pa.Array]]) -> pa.Table:
    """A table whose columns have these field ids."""
    fields = [pa.field(n, a.type, metadata={_ID: str(i)}) for i, (n, a) in columns.items()]
    return pa.table([array for _, array in columns.values()], schema=pa.schema(fields))


@pytest.fixture(params=["parquet", "orc", "avro"])
def write_file(request: Any, tmp_path: Path) -> Callable[..., DataFile]:
    """Writes columns, `{field id: (name, array)}`, as a file in each of the formats."""

    def write(name: str, columns: dict[int, tuple[str, pa.Array]], **more: Any) -> DataFile:
        table, path = with_ids(columns), tmp_path / f"{name}.{request.param}"
        _WRITERS[request.param](table, path)
        return DataFile(
            file_path=str(path),
            file_format=FileFormat(request.param.upper()),
            record_count=table.num_rows,
            file_size_in_bytes=path.stat().st_size,
            **more,
        )

    return write


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=7)


def _orc(table: pa.Table, path: Path) -> None:
    fields = [f.with_metadata({b"iceberg.id": f.metadata[_ID]}) for f in table.schema]
    orc.write_table(pa.table(table.columns, schema=pa.schema(fields)), path)


def _avro(table: pa.Table, path: Path) -> None:
    fields = [
        {"name": f.name, "type": ["null", _AVRO[f.type]], "field-id": int(f.metadata[_ID])}
        for f in table.schema
    ]
    schema = fastavro.parse_schema({"type": "record", "name": "t", "fields": fields})
    with path.open("wb") as file:
        fastavro.writer(file, schema, table.to_pylist(), codec="deflate", sync_interval=50)


_WRITERS = {"parquet": _parquet, "orc": _orc, "avro": _avro}
