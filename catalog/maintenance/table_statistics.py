"""Statistics of a table's columns, computed and registered for a snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.catalog.maintenance.partition_statistics import snapshot_to_count
from icecomb.format.argument import checked_members
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.types import SHAPE_TYPES, PrimitiveType, StructType, VariantType
from icecomb.format.statistics.column_sketches import ColumnSketches
from icecomb.format.statistics.statistics_file import SetStatistics, write_statistics

if TYPE_CHECKING:
    from icecomb.catalog.report.progress import Progress
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ComputedTableStats:
    """The statistics file of a snapshot.

    Attributes:
        statistics_file: Location of the file; None for a table without snapshots.
    """

    statistics_file: str | None


def compute_table_stats(
    table: Table, *, columns: Iterable[str] | None, snapshot: int | None, progress: Progress
) -> ComputedTableStats:
    """Run `Maintenance.compute_table_stats`."""
    chosen = snapshot_to_count(table, snapshot)
    names = None if columns is None else tuple(checked_members("columns", columns, str))
    if chosen is None:
        return ComputedTableStats(None)
    schema = TableScan(table.metadata, table.io, snapshot_id=chosen.snapshot_id).schema()
    field_ids = _field_ids(".".join(table.name()), schema, names)
    sketches = ColumnSketches(table.metadata, table.io, chosen, schema, field_ids)
    if sketches.unread is not None:
        progress.say(f"older statistics are not used: {sketches.unread}")
    if sketches.is_known:
        return ComputedTableStats(_known(table, chosen))
    with progress.task("distinct values", sketches.row_count, "rows") as advance:
        found = sketches.compute(advance)
    described = write_statistics(table.io, table.metadata, chosen, found, sketches.kept)
    table.commit(SetStatistics(described, table.io.delete))
    return ComputedTableStats(described["statistics-path"])


def _field_ids(table: str, schema: Schema, names: tuple[str, ...] | None) -> list[int]:
    """Return the field ids of columns that have a number of distinct values."""
    if names is None:
        found = [f.field_id for f in schema.fields if _is_counted(schema, f.field_id)]
    else:
        found = list(dict.fromkeys(_field_id(table, schema, name) for name in names))
    if not found:
        raise ValidationError(
            f"Table {table}: there is no column to compute statistics of",
            hint="Name columns of primitive types, or leave the columns out for all of them.",
            table=table,
        )
    return found


def _field_id(table: str, schema: Schema, name: str) -> int:
    if not schema.contains(name):
        raise ValidationError(
            f"Table {table} has no column {name!r} to compute statistics of",
            hint=f"It has: {', '.join(field.name for field in schema.fields)}",
            table=table,
            column=name,
        )
    field = schema.find_field(name)
    if not _is_counted(schema, field.field_id):
        raise UnsupportedError(
            f"Table {table}: statistics of column {name!r} cannot be computed: values of type "
            f"{field.field_type}, and of lists and maps, have no number of distinct values",
            hint="Name columns of primitive types, or such fields of structs.",
            table=table,
            column=name,
        )
    return field.field_id


def _is_counted(schema: Schema, field_id: int) -> bool:
    kind = schema.find_type(field_id)
    if not isinstance(kind, PrimitiveType) or isinstance(kind, (VariantType, *SHAPE_TYPES)):
        return False
    while (parent := schema.find_parent_id(field_id)) is not None:
        if not isinstance(schema.find_type(parent), StructType):
            return False
        field_id = parent
    return True


def _known(table: Table, snapshot: Snapshot) -> str:
    files = {file["snapshot-id"]: file for file in table.metadata.statistics}
    return str(files[snapshot.snapshot_id]["statistics-path"])
