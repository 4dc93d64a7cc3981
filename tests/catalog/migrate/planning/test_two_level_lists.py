"""Lists of lists in Parquet's old form of two levels (spark.sql.parquet.writeLegacyFormat): sound, and not ours to read."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.parquet.compact_protocol import BINARY, I32, LIST, Items, read_struct
from icecomb.format.rows.parquet.raw_footer import MAGIC
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.storage.file_io import FileIO
from tests.catalog.migrate.conftest import PARQUET

SCHEMA, ROW_GROUPS, COLUMNS, META_DATA, PATH = 2, 4, 1, 3, 3
REPETITION, NAME, REPEATED = 3, 4, 2


def write_two_levels(path: Path) -> None:
    """Write [[1, null], []], null, [[3]] as Spark does where no inner list is null.

    A file of three levels, whose footer leaves the outer middle one out: that is required, so that
    repetition and definition levels of the pages stay as they are.
    """
    inner = pa.list_(pa.int32())
    rows = pa.array(
        [[[1, None], []], None, [[3]]], pa.list_(pa.field("element", inner, nullable=False))
    )
    sink = BytesIO()
    pq.write_table(pa.table({"a": rows}), sink, store_schema=False)
    data = sink.getvalue()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(data, begin)
    root, column, _, outer, bag, innermost = footer[SCHEMA].values
    outer.put(REPETITION, I32, REPEATED)
    outer.put(NAME, BINARY, b"array")
    footer[SCHEMA].values[:] = [root, column, outer, bag, innermost]
    for chunk in footer[ROW_GROUPS].values[0][COLUMNS].values:
        names = [b"a", b"array", b"list", b"element"]
        chunk[META_DATA].put(PATH, LIST, Items(BINARY, names))
    encoded = footer.encoded()
    path.write_bytes(data[:begin] + encoded + len(encoded).to_bytes(4, "little") + MAGIC)


def test_a_table_of_them_is_offered_a_copy(tmp_path: Path) -> None:
    write_two_levels(tmp_path / "f.parquet")
    (shown,) = duckdb.sql(f"SELECT list(a) FROM '{tmp_path}/f.parquet'").fetchall()
    assert shown == ([[[1, None], []], None, [[3]]],)
    columns = (FieldSchema("a", "array<array<int>>"),)
    storage = replace(PARQUET, columns=columns, location=tmp_path.as_uri())
    table = HiveTable("made", "t", storage=storage)
    (found,) = plan_source(FileIO(), table, [], Choices(), SILENT).blockers
    assert (found.code, found.count) == ("two-level-lists", 1)
    assert "are sound" in found.message
    assert "CREATE TABLE `made`.`t_parquet` USING parquet AS SELECT" in (found.remedy or "")
    assert "restore" not in f"{found.remedy} {found.places}"
    with pytest.raises(UnsupportedError, match="two levels") as refused:
        ParquetReader(FileIO(), str(tmp_path / "f.parquet"))
    assert "sound" in (refused.value.hint or "")
