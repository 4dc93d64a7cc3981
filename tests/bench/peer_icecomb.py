"""icecomb, as the benchmarks use it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MODULES = ("icecomb.format", "icecomb.catalog", "icecomb.catalog.hive.catalog")
"""What the import benchmark imports."""


def version() -> str:
    """Of what is measured."""
    return importlib.metadata.version("icecomb")


def import_planning() -> None:
    """Import what planning needs."""
    import polars as pl

    import icecomb.catalog.hadoop.catalog
    import icecomb.format.expressions.sql.parser
    import icecomb.format.scan.scan_planner
    import icecomb.format.scan.table_scan

    assert icecomb
    assert pl


def open_table(metadata: str, properties: dict[str, str]) -> Any:
    """A table from its metadata file."""
    from icecomb.catalog import open_table

    return open_table(metadata, **properties)


def tasks(table: Any, predicate: Sequence[tuple[str, str, Any]]) -> Iterator[Any]:
    """The scan tasks."""
    text = " and ".join(f"{column} {op} {literal!r}" for column, op, literal in predicate)
    return iter(table.scan(row_filter=text or None).plan_files())


def to_arrow(table: Any) -> pa.Table:
    """All rows."""
    return table.scan().to_arrow()


def batches(table: Any) -> Iterator[Any]:
    """All rows, batch by batch."""
    yield from table.scan().to_arrow_batches()


def catalog(folder: str) -> Any:
    """A catalog without a server."""
    from icecomb.catalog import load_catalog

    found = load_catalog("bench", type="hadoop", warehouse=f"file://{folder}/warehouse")
    found.create_namespace_if_not_exists("db")
    return found


def create(catalog: Any, name: str, schema: pa.Schema, partitioned_by: str | None = None) -> Any:
    """A new table."""
    if partitioned_by is None:
        return catalog.create_table(f"db.{name}", schema)
    from icecomb.format.spec.partition import PartitionField, PartitionSpec
    from icecomb.format.spec.transform import parse_transform

    # a new table numbers its columns from 1
    source = schema.get_field_index(partitioned_by) + 1
    field = PartitionField(source, 1000, parse_transform("identity"), partitioned_by)
    return catalog.create_table(f"db.{name}", schema, partition_spec=PartitionSpec(0, (field,)))


def adopt(folder: str, name: str, metadata: str) -> Any:
    """A writable table whose first state is this metadata file in `<folder>/<name>/metadata`."""
    location = Path(folder, name, "metadata")
    Path(metadata).rename(location / "v1.metadata.json")
    (location / "version-hint.text").write_text("1")
    from icecomb.catalog import open_table

    return open_table(str(location.parent))


def append(table: Any, rows: pa.Table) -> None:
    """Append and commit."""
    table.append(rows)


def append_files(table: Any, files: Sequence[dict[str, Any]]) -> None:
    """Commit data files that are written already."""
    from icecomb.format.manifests.manifest import DataFile, FileFormat

    change = table.new_fast_append()
    for file in files:
        change.append_data_file(DataFile(file_format=FileFormat.PARQUET, **file))
    table.commit(change)
