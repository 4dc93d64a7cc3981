"""Messages about scans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.protocol.message import Long, Message, Opaque, Repeatable
from icecomb.spark.planner.protocol.tables import TableReference


@dataclass(frozen=True, slots=True)
class SplitHints(Message):
    """Spark's hints for the size of partitions.

    Args:
        parallelism: The number of tasks that run at once.
        split_bytes: ``spark.sql.files.maxPartitionBytes`` if it is set.
        open_cost_bytes: ``spark.sql.files.openCostInBytes`` if it is set.
    """

    parallelism: int
    split_bytes: Long | None
    open_cost_bytes: Long | None


@dataclass(frozen=True, slots=True)
class Selection(Message):
    """The rows of a table that a query reads.

    Args:
        filters: Spark's predicates, used only to skip files.
        case_sensitive: Whether names in them are case-sensitive.
        settings: Settings of its session that begin with ``spark.sql.iceberg.``.
    """

    reference: TableReference
    filters: tuple[Any, ...]
    case_sensitive: bool
    options: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AskedTopRows(Message):
    """The first rows of a sort order; only the first key, a top-level column, is given."""

    field_id: int
    descending: bool
    nulls_first: bool
    count: int


@dataclass(frozen=True, slots=True)
class PlanScan(Repeatable):
    """Request to plan the file ranges of a query. Answer: `ScanPage`s, then `ScanPlan`.

    Args:
        files: Spark's names of the data files to read; None for all.
        field_ids: Field ids of the columns to read, including the reserved ids of `_partition` and
            row lineage.
        changes: ``files`` for a statement that replaces files (see `Replaced`), ``rows`` for one
            that deletes rows by position (see `Delta`), else None.
        limit: A number of rows that is enough; None for all. Spark truncates the rows itself.
        top: The rows that are enough; None for all. Spark sorts and truncates the rows itself.
        estimates_columns: Whether the optimizer uses estimates of columns.
    """

    selection: Selection
    files: tuple[str, ...] | None
    field_ids: tuple[int, ...]
    hints: SplitHints
    changes: str | None
    limit: int | None
    top: AskedTopRows | None
    estimates_columns: bool


@dataclass(frozen=True, slots=True)
class DecideFilters(Repeatable):
    """Request for the filters that need not be evaluated on rows. Answer: `DecidedFilters`."""

    selection: Selection


@dataclass(frozen=True, slots=True)
class DecidedFilters(Message):
    """The filters that select whole partitions: all rows of the selected files match."""

    whole: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class AskedAggregate(Message):
    """An aggregate function of a query.

    Args:
        name: ``count``, ``min`` or ``max``.
        column: The column, as a list of names; None to count rows.
    """

    name: str
    column: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class AggregateFiles(Repeatable):
    """Request for aggregates without reading data files. Answer: `Aggregated`.

    Args:
        selection: The rows; all filters are whole according to `DecidedFilters`.
        group_by: The columns to group by, each as a list of names.
    """

    selection: Selection
    group_by: tuple[tuple[str, ...], ...]
    functions: tuple[AskedAggregate, ...]


@dataclass(frozen=True, slots=True)
class Aggregated(Message):
    """Aggregates of a query.

    Args:
        rows: One row per group, beginning with the group's values; a group may appear several
            times with partial aggregates. None if files would have to be read.
    """

    rows: tuple[tuple[Any, ...], ...] | None


@dataclass(frozen=True, slots=True)
class DeleteEntry(Opaque):
    """A position delete file, as the table has it; `size` is in bytes."""

    path: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class FileEntry(Opaque):
    """A data file that a statement reads and may replace, as the table has it.

    Args:
        path: The table's name of the file.
        rows: The number of its rows, including deleted ones.
        size: The size in bytes.
        has_deletes: Whether some of its rows are deleted.
        own_deletes: The position delete files that apply to no other data file; only if rows of it
            may be deleted by position delete files.
    """

    path: str
    spec_id: int
    partition: tuple[Any, ...]
    rows: int
    size: int
    has_deletes: bool
    own_deletes: tuple[DeleteEntry, ...]


@dataclass(frozen=True, slots=True)
class KeyColumns(Message):
    """The columns that equality deletes compare.

    Args:
        field_ids: Their field ids, which may be inside structs.
        schema: Spark's schema of the top-level columns that contain them, without other fields; a
            dropped column has its last type.
    """

    field_ids: tuple[int, ...]
    schema: Any


@dataclass(frozen=True, slots=True)
class DeleteFile(Message):
    """A delete file that tasks read, or a deletion vector.

    Args:
        path: Spark's name of the file.
        format: ``parquet``, ``orc`` or ``avro``; ``puffin`` for a deletion vector.
        rows: The number of its rows according to its manifest; negative if unknown.
        offset: The offset of a deletion vector in its file, else None.
        length: The length of a deletion vector, else None.
    """

    path: str
    format: str
    rows: Long
    offset: Long | None
    length: int | None


@dataclass(frozen=True, slots=True)
class EqualityDeletes(Message):
    """Delete files that apply to a data file and compare the same columns.

    Args:
        keys: The index of the columns in `ScanPage.keys`.
        files: The indices of the files in `ScanPage.delete_files`.
    """

    keys: int
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PositionDeleteFiles(Message):
    """Position delete files that tasks read for a data file.

    Args:
        path: The data file's path in the delete files: the table's name of it.
        files: The indices of the delete files in `ScanPage.delete_files`.
    """

    path: str
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeletePlace(Message):
    """The target of position deletes of a data file.

    Args:
        file: The data file's path in the delete files, if it differs from Spark's name.
        partition: The number of its partition, the same for files of one partition of one spec.
        folder: The path of that partition's folders, each with a trailing slash.
        has_own: Whether there are delete files for this data file only, which new ones replace.
    """

    file: str | None
    partition: int
    folder: str
    has_own: bool


@dataclass(frozen=True, slots=True)
class PlannedFile(Message):
    """A file of a plan, referred to by its index in the list.

    Args:
        path: Spark's name of the file.
        format: ``parquet``, ``orc`` or ``avro``.
        constants: Values of columns that are constant in it, by field id; also of those that
            deletes compare. Of the columns of row lineage, if requested: the id of its first row,
            and the sequence number of rows for which the file states none; null if its rows have
            no ids.
        deletes: The index of its deleted positions in `ScanPage.deletes`.
        position_delete_files: Its position delete files, if the scan has too many positions to
            send.
        partition: The value of `_partition` by field name, if requested; null in an unpartitioned
            table.
        entry: The entry that the bridge returns when the file is changed; only if requested.
        delete_place: The target for deletes of its rows; only if `PlanScan.changes` is ``rows``.
    """

    path: str
    format: str
    spec_id: int
    constants: Mapping[str, Any]
    deletes: int | None
    position_delete_files: PositionDeleteFiles | None
    equality_deletes: tuple[EqualityDeletes, ...]
    partition: Mapping[str, Any] | None
    entry: FileEntry | None
    delete_place: DeletePlace | None


@dataclass(frozen=True, slots=True)
class FileRange(Message):
    """A part of a file.

    Args:
        file: The file's index in `ScanPage.files`.
        start: The offset of the first byte.
        length: The length in bytes.
        last: Whether it extends to the end of the file, even if its manifest has a smaller size.
        rows: The row count of a whole file according to its manifest; negative if unknown.
    """

    file: int
    start: Long
    length: Long
    last: bool
    rows: Long


@dataclass(frozen=True, slots=True)
class ColumnEstimate(Message):
    """The estimated values of a column in the files of a scan.

    Args:
        distinct: The number of distinct values; 0 only where it is known that there is none.
        nulls: The number of nulls; None if it is unknown.
        min: A value that is not above the smallest one, as `icecomb.spark.values` writes it; None
            if there is none, or it is unknown.
        max: A value that is not below the greatest one, likewise.
    """

    distinct: Long
    nulls: Long | None
    min: Any
    max: Any


@dataclass(frozen=True, slots=True)
class ScanStatistics(Message):
    """The estimated size of a scan.

    Args:
        rows: The number of rows, without deleted ones whose positions are in the plan.
        columns: Estimates of columns whose number of distinct values is known, by field id as text.
    """

    rows: Long
    bytes: Long
    columns: Mapping[str, ColumnEstimate]


@dataclass(frozen=True, slots=True)
class GroupingField(Message):
    """A field by which tasks of a scan are grouped: Spark's transform and its result's type."""

    transform: Any
    type: Any


@dataclass(frozen=True, slots=True)
class ScanPage(Message):
    """A part of a scan's plan; the plan is the lists of all pages together.

    Indices count through the lists of all pages, and refer only to elements already sent.

    Args:
        partitions: The parts of files that each task reads.
        deletes: Deleted positions, base64 of compressed differences.
        keys: The columns that equality deletes compare.
        grouping_keys: The values of `ScanPlan.grouping` for each of `partitions`, or nothing if
            there is none. Tasks with different values read different rows.
    """

    files: tuple[PlannedFile, ...]
    partitions: tuple[tuple[FileRange, ...], ...]
    deletes: tuple[str, ...]
    delete_files: tuple[DeleteFile, ...]
    keys: tuple[KeyColumns, ...]
    grouping_keys: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class ScanPlan(Message):
    """The rest of a scan's plan, after its `ScanPage`s.

    Args:
        name_mapping: Iceberg's name mapping for files without ids.
        vectorized: Whether tasks return columnar batches; else rows.
        batch_rows: The number of rows of a batch; None for Spark's default.
        partition_columns: The columns to read by which the files are partitioned under any
            transform: runtime filters of joins on them narrow the scan.
        grouping: The fields that are constant within a task, if the session requested grouping.
        locality: Whether tasks prefer the hosts of their files.
        metrics: Metrics of planning, under Iceberg's names of scan metrics.
    """

    name_mapping: Any
    statistics: ScanStatistics
    vectorized: bool
    batch_rows: int | None
    partition_columns: tuple[str, ...]
    grouping: tuple[GroupingField, ...]
    locality: bool
    metrics: Mapping[str, Long]


@dataclass(frozen=True, slots=True)
class NarrowScan(Repeatable):
    """Request for the files of a plan that match runtime filters. Answer: `NarrowedScan`.

    Args:
        selection: The planned selection, plus the filters that became known at run time.
    """

    selection: Selection


@dataclass(frozen=True, slots=True)
class NarrowedScan(Message):
    """The files, by Spark's names, that may contain matching rows."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadRows(Repeatable):
    """Request for the rows of a table that has no files. Answer: `Rows`.

    Args:
        field_ids: Field ids of the columns to read; for structs, of the fields inside them.
        filters: Spark's predicates, which may be applied only partly.
        limit: A number of rows that is enough; None for all.
    """

    reference: TableReference
    field_ids: tuple[int, ...]
    filters: tuple[Any, ...]
    case_sensitive: bool
    limit: int | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rows(Message):
    """Rows of a table.

    Args:
        streams: Arrow IPC streams with the columns in the table's order, compressed by zlib, in
            base64. They have one column even if none was requested.
    """

    streams: tuple[str, ...]
