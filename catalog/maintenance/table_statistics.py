"""Statistics of a table's columns and partitions, computed and registered for a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from icecomb.catalog.maintenance.engine import Engine
from icecomb.format.argument import MAX_LONG, checked_int, checked_members
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.inspect import partition_statistics_file as partition_file
from icecomb.format.inspect.partition_statistics import PartitionCounter
from icecomb.format.property.table_property import LOCAL_LIMIT
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.own_folders import OwnFolders
from icecomb.format.spec.types import SHAPE_TYPES, PrimitiveType, StructType, VariantType
from icecomb.format.statistics.column_sketches import ColumnSketches, UnreadRows, column_path
from icecomb.format.statistics.statistics_file import (
    SetStatistics,
    newest_statistics,
    write_statistics,
)

if TYPE_CHECKING:
    from icecomb.catalog.report.progress import Progress
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.spec.types import NestedField


@dataclass(frozen=True, slots=True)
class ComputedTableStats:
    """The statistics file of a snapshot.

    Attributes:
        statistics_file: Location of the file; None for a table without snapshots, or
            without columns of primitive types.
    """

    statistics_file: str | None


@dataclass(frozen=True, slots=True)
class ComputedPartitionStats:
    """The partition statistics file of a snapshot.

    Attributes:
        partition_statistics_file: Location of the file; None for a snapshot without files.
    """

    partition_statistics_file: str | None


@dataclass(frozen=True, slots=True)
class SketchJob:
    """Columns for another engine to read.

    Attributes:
        base: A snapshot of which nothing is read: only rows appended since, with the table's
            current columns; None for all rows, with the columns of the snapshot.
        columns: The columns: the names that lead to each, and its field.
    """

    identifier: tuple[str, ...]
    snapshot_id: int
    base: int | None
    columns: Sequence[tuple[Sequence[str], NestedField]]


class SketchEngine(Protocol):
    """A reader of columns outside of this process."""

    def can_read(self, field: NestedField) -> bool:
        """Return whether it has the values of a column as the table has them."""

    def sketches(self, job: SketchJob) -> Iterator[bytes]:
        """Yield a theta sketch of each column, in their order."""


def compute_table_stats(
    table: Table,
    *,
    columns: Iterable[str] | None,
    snapshot: int | None,
    engine: Engine,
    progress: Progress,
    session: SketchEngine | None = None,
) -> ComputedTableStats:
    """Run `Maintenance.compute_table_stats`, by the engine of a session if there is one."""
    table.check_new_files()
    chosen = _snapshot(table, snapshot)
    names = None if columns is None else tuple(checked_members("columns", columns, str))
    if chosen is None:
        return ComputedTableStats(None)
    schema = TableScan(table.metadata, table.io, snapshot_id=chosen.snapshot_id).schema()
    field_ids = _field_ids(".".join(table.name()), schema, names)
    reader = _reader(table, [schema.find_field(each) for each in field_ids], engine, session)
    if not field_ids:
        return ComputedTableStats(None)
    folders = table._own_folders()  # noqa: SLF001 - the table knows its pointer
    own = OwnFolders(folders, table.metadata, table.io.properties)
    sketches = ColumnSketches(table.metadata, table.io, chosen, schema, field_ids, own=own)
    if sketches.unused is not None:
        progress.say(f"older statistics are not used: {sketches.unused}")
    if sketches.is_known:
        return ComputedTableStats(_known(table, chosen))
    rows = sum(part.row_count for part in sketches.unread)
    limit = LOCAL_LIMIT.of(table.metadata.properties)
    is_large = sum(part.size for part in sketches.unread) > limit
    with progress.task("distinct values", rows, "rows") as advance:
        if reader is not None and (is_large or engine is Engine.SPARK):
            for part in sketches.unread:
                _add(sketches, part, _job(table, chosen, schema, part), reader)
                advance(part.row_count)
        else:
            sketches.read(advance)
    described = write_statistics(table.io, table.metadata, chosen, sketches.sketches, sketches.kept)
    table.commit(SetStatistics(described, table.io.delete))
    return ComputedTableStats(described["statistics-path"])


def _reader(
    table: Table, fields: Sequence[NestedField], engine: Engine, session: SketchEngine | None
) -> SketchEngine | None:
    """Return the session if it may read the columns."""
    if engine is Engine.LOCAL:
        return None
    if session is None:
        if engine is Engine.SPARK:
            raise ValidationError(
                "Spark can compute statistics only where a session calls",
                hint="CALL lake.system.compute_table_stats(table => 'db.t', engine => 'spark')",
            )
        return None
    unread = [field for field in fields if not session.can_read(field)]
    if unread and engine is Engine.SPARK:
        name = ".".join(table.name())
        raise UnsupportedError(
            f"Table {name}: Spark does not have the values of column {unread[0].name!r}, of type "
            f"{unread[0].field_type}, as the table has them",
            hint="Name the other columns, or leave the engine out: the driver's machine reads it.",
            table=name,
            column=unread[0].name,
        )
    return None if unread else session


def _job(table: Table, snapshot: Snapshot, schema: Schema, part: UnreadRows) -> SketchJob:
    """Return the job of reading columns.

    Appended rows are read with the current columns. Where these are others, all rows are read: of
    those that were there before, the values are known already, and do not count again.
    """
    base, current = part.base, table.metadata.schema()
    if base is not None:
        same = all(
            current.contains(each) and current.find_type(each) == schema.find_type(each)
            for each in part.field_ids
        )
        base, schema = (base, current) if same else (None, schema)
    columns = [(column_path(schema, each), schema.find_field(each)) for each in part.field_ids]
    return SketchJob(table.name(), snapshot.snapshot_id, base, columns)


def _add(sketches: ColumnSketches, part: UnreadRows, job: SketchJob, reader: SketchEngine) -> None:
    for field_id, content in zip(part.field_ids, reader.sketches(job), strict=True):
        sketches.add(field_id, content, "the answer of an executor")


def _field_ids(table: str, schema: Schema, names: tuple[str, ...] | None) -> list[int]:
    """Return the field ids of columns that have a number of distinct values."""
    if names is None:
        return [f.field_id for f in schema.fields if _is_counted(schema, f.field_id)]
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
            hint=f"It has: {', '.join(field.name for field in schema.fields)}.",
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
    file = newest_statistics(table.metadata, snapshot.snapshot_id) or {}
    return str(file["statistics-path"])


def compute_partition_stats(table: Table, *, snapshot: int | None) -> ComputedPartitionStats:
    """Run `Maintenance.compute_partition_stats`."""
    metadata, io = table.metadata, table.io.to_copy()
    table.check_new_files()
    chosen = _snapshot(table, snapshot)
    counter = PartitionCounter(metadata, io, cache=None)
    if not counter.keys:
        raise ValidationError(
            f"Table {'.'.join(table.name())} is not partitioned: it has no partition statistics",
            hint="The metadata table partitions counts the files and rows of the whole table.",
        )
    if chosen is None:
        return ComputedPartitionStats(None)
    folders = table._own_folders()  # noqa: SLF001 - the table knows its pointer
    own = OwnFolders(folders, metadata, io.properties)
    known = partition_file.readable_file(counter, io, metadata, chosen, own)
    if known is not None:
        return ComputedPartitionStats(known)
    counts = partition_file.count_partitions(counter, io, metadata, chosen, own)
    if not len(counts):
        return ComputedPartitionStats(None)
    file = partition_file.write_statistics(io, metadata, chosen.snapshot_id, counter, counts)
    table.commit(SetStatistics(file, io.delete, of_partitions=True))
    return ComputedPartitionStats(file["statistics-path"])


def _snapshot(table: Table, snapshot_id: int | None) -> Snapshot | None:
    """Return the snapshot to compute statistics of: the current one if none is named."""
    if snapshot_id is None:
        return table.metadata.current_snapshot()
    number = checked_int("snapshot", snapshot_id, -MAX_LONG - 1, MAX_LONG)
    return existing_snapshot(table.metadata, number, f"Table {'.'.join(table.name())} has")
