"""The tables that Spark reads: TPC-H by DuckDB, and ten million rows of eight columns.

All are tables of a folder catalog, written once: Parquet by Spark through icecomb, ORC and Avro by
Iceberg Java. Those with deleted rows are made of the data files of the one without.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.catalog import load_catalog
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.deletion_vector_writer import delete_writer
from tests.bench.rows import arrow_rows
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

TPCH = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
QUERIES = (1, 3, 5, 6, 10, 12, 14, 19)
EVERY = 100
"""One row of so many is deleted by its position."""
KEYS = 100_000
_BLOCK = 1_000_000
_Sql = Callable[[str], Any]


def tpch_queries(numbers: Sequence[int] = QUERIES) -> dict[int, str]:
    """The text of each query."""
    with _duckdb() as connection:
        found = connection.sql("SELECT query_nr, query FROM tpch_queries()").fetchall()
    return {number: text.strip().rstrip(";") for number, text in found if number in numbers}


def make_tpch(work: Path, scale: float, sql: _Sql) -> None:
    """The tables `lake.tpch.…`.

    Args:
        work: A folder for the rows on their way.
        scale: The scale factor; 1 has six million rows in its biggest table.
        sql: Spark with our catalog `lake`.
    """
    source = work / "source"
    source.mkdir(parents=True)
    with _duckdb() as connection:
        connection.sql(f"CALL dbgen(sf = {scale})")
        for name in TPCH:
            connection.sql(f"COPY {name} TO '{source}/{name}.parquet'")
    sql("CREATE NAMESPACE IF NOT EXISTS lake.tpch")
    for name in TPCH:
        sql(f"CREATE TABLE lake.tpch.{name} AS SELECT * FROM parquet.`{source}/{name}.parquet`")
        (source / f"{name}.parquet").unlink()


def make_events(work: Path, rows: int, sql: _Sql) -> None:
    """The tables `lake.db.events`, one for each kind of deletes, and `lake.db.tiny`."""
    source = work / "source"
    source.mkdir(parents=True, exist_ok=True)
    schema = arrow_rows(1).schema
    with pq.ParquetWriter(source / "events.parquet", schema) as writer:
        for start in range(0, rows, _BLOCK):
            writer.write_table(arrow_rows(min(_BLOCK, rows - start), start))
    sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    for name, limit in (("events", ""), ("tiny", " LIMIT 10")):
        sql(
            f"CREATE TABLE lake.db.{name} AS SELECT * FROM parquet.`{source}/events.parquet`{limit}"
        )
    (source / "events.parquet").unlink()
    catalog = load_catalog("lake", type="hadoop", warehouse=str(work / "warehouse"))
    events = catalog.load_table("db.events")
    for name, version in (("positions", 2), ("vectors", 3), ("keys", 2), ("texts", 2)):
        changed = {"format-version": str(version)}
        table = catalog.create_table(f"db.events_{name}", events.schema(), properties=changed)
        table.add_files([task.file.file_path for task in events.scan().plan_files()])
    for name in ("positions", "vectors"):
        _delete_positions(catalog.load_table(f"db.events_{name}"))
    ids = pa.array(range(0, rows, max(1, rows // KEYS)), pa.int64())
    _delete_keys(catalog.load_table("db.events_keys"), pa.table({"id": ids}))
    texts = events.scan(selected_fields=("id", "u")).to_arrow()
    chosen = texts.filter(pc.is_in(texts["id"], ids)).select(["u"])
    _delete_keys(catalog.load_table("db.events_texts"), chosen)


def make_other_formats(rows: int, sql: _Sql) -> None:
    """The first rows of `events` as ORC and Avro, without `ts`, which plain ORC has no type for.

    Args:
        rows: How many.
        sql: Spark with Iceberg Java's catalog `lake`.
    """
    for name in ("orc", "avro"):
        sql(
            f"CREATE TABLE lake.db.events_{name} USING iceberg "
            f"TBLPROPERTIES ('write.format.default'='{name}') "
            f"AS SELECT id, i, l, d, f, s, u FROM lake.db.events WHERE id < {rows}"
        )


def _duckdb() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    folder = files("duckdb_extension_tpch") / "extensions" / f"v{duckdb.__version__}"
    made.load_extension(str(folder / "tpch.duckdb_extension"))
    return made


def _delete_positions(table: Any) -> None:
    writer = delete_writer(table.io, table.metadata, str(uuid.uuid4()))
    for task in table.scan().plan_files():
        writer.add(task.file, np.arange(0, task.file.record_count, EVERY))
    _commit(table, writer.close())


def _delete_keys(table: Any, keys: pa.Table) -> None:
    writer = EqualityDeleteWriter(table.io, table.metadata, str(uuid.uuid4()), keys.column_names)
    for batch in keys.to_batches():
        writer.write(batch)
    _commit(table, writer.close())


def _commit(table: Any, deletes: Sequence[Any]) -> None:
    delta = RowDelta(table.io)
    for file in deletes:
        delta.add_deletes(file)
    table.commit(delta)
