"""PyIceberg, as the benchmarks use it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MODULES = ("pyiceberg.schema", "pyiceberg.catalog", "pyiceberg.catalog.hive")
"""What the import benchmark imports, in the order of icecomb's."""


def version() -> str:
    """Of what is measured."""
    return importlib.metadata.version("pyiceberg")


def import_planning() -> None:
    """Import what planning needs."""
    import pyiceberg.expressions
    import pyiceberg.io.pyarrow
    import pyiceberg.table

    assert pyiceberg


def open_table(metadata: str, properties: dict[str, str]) -> Any:
    """A table from its metadata file."""
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(metadata, properties)


def tasks(table: Any, predicate: Sequence[tuple[str, str, Any]]) -> Iterator[Any]:
    """The scan tasks."""
    from pyiceberg import expressions

    classes: dict[str, Any] = {
        ">=": expressions.GreaterThanOrEqual,
        "<": expressions.LessThan,
        "<=": expressions.LessThanOrEqual,
    }
    row_filter: Any = expressions.AlwaysTrue()
    for column, op, literal in predicate:
        row_filter = expressions.And(row_filter, classes[op](column, literal))
    return iter(table.scan(row_filter=row_filter).plan_files())


def to_arrow(table: Any) -> pa.Table:
    """All rows."""
    return table.scan().to_arrow()


def batches(table: Any) -> Iterator[Any]:
    """All rows, batch by batch."""
    yield from table.scan().to_arrow_batch_reader()


def catalog(folder: str) -> Any:
    """A catalog without a server."""
    from pyiceberg.catalog.sql import SqlCatalog

    Path(folder).mkdir(parents=True, exist_ok=True)
    found = SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    found.create_namespace_if_not_exists("db")
    return found


def create(catalog: Any, name: str, schema: pa.Schema, partitioned_by: str | None = None) -> Any:
    """A new table."""
    table = catalog.create_table(f"db.{name}", schema)
    if partitioned_by is not None:
        with table.update_spec() as spec:
            spec.add_identity(partitioned_by)
    return table


def adopt(folder: str, name: str, metadata: str) -> Any:
    """A writable table whose first state is this metadata file in `<folder>/<name>/metadata`."""
    return catalog(folder).register_table(f"db.{name}", f"file://{metadata}")


def append(table: Any, rows: pa.Table) -> None:
    """Append and commit."""
    table.append(rows)


def append_files(table: Any, files: Sequence[dict[str, Any]]) -> None:
    """Commit data files that are written already."""
    from pyiceberg.manifest import DataFile, FileFormat
    from pyiceberg.typedef import Record

    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as change:
        for file in files:
            own = DataFile.from_args(
                file_format=FileFormat.PARQUET, **{**file, "partition": Record()}
            )
            own.spec_id = table.spec().spec_id
            change.append_data_file(own)
