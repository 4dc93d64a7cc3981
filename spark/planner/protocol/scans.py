"""Scans: what is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.message import Message, Repeatable
from icecomb.spark.planner.protocol.tables import Reference


@dataclass(frozen=True, slots=True)
class SplitHints(Message):
    """What Spark knows about the size of partitions.

    Args:
        parallelism: How many tasks run at once.
        split_bytes: ``spark.sql.files.maxPartitionBytes`` where somebody has set it.
        open_cost_bytes: ``spark.sql.files.openCostInBytes`` where somebody has set it.
    """

    parallelism: int
    split_bytes: int | None
    open_cost_bytes: int | None


@dataclass(frozen=True, slots=True)
class Selection(Message):
    """What a query reads of a table.

    Args:
        reference: The table's state.
        filters: Spark's predicates; they only leave out files.
        case_sensitive: Whether names in them are.
        options: Of the query.
        settings: Of its session, those that begin with ``spark.sql.iceberg.``.
    """

    reference: Reference
    filters: tuple[Any, ...]
    case_sensitive: bool
    options: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopRows(Message):
    """The first rows of an order, of which all keys but the first are not told.

    Args:
        field_id: The first key, a column at the top of the schema.
        descending: Whether the largest value comes first.
        nulls_first: Whether nulls come before all values.
        count: How many rows.
    """

    field_id: int
    descending: bool
    nulls_first: bool
    count: int


@dataclass(frozen=True, slots=True)
class PlanScan(Repeatable):
    """Asks which ranges of which files a query reads. Answer: `ScanPage`s, then `ScanPlan`.

    Args:
        selection: Of which rows.
        files: Spark's names for the data files that are read; None for all.
        field_ids: The columns to read, and `_partition` by its reserved id.
        hints: About partitions.
        changes: What a statement changes that reads this: ``files`` where it replaces them (see
            `Replaced`), ``rows`` where it deletes rows by position (see `Delta`), else None.
        limit: How many rows are enough; None for all. Spark cuts the rows itself.
        top: Which rows are enough; None for all. Spark sorts and cuts the rows itself.
    """

    selection: Selection
    files: tuple[str, ...] | None
    field_ids: tuple[int, ...]
    hints: SplitHints
    changes: str | None
    limit: int | None
    top: TopRows | None


@dataclass(frozen=True, slots=True)
class DecideFilters(Repeatable):
    """Asks which filters of a query need not be evaluated on rows. Answer: `DecidedFilters`.

    Args:
        selection: The query, with the filters in question.
    """

    selection: Selection


@dataclass(frozen=True, slots=True)
class DecidedFilters(Message):
    """Which filters select whole partitions: all rows of the files that they keep match.

    Args:
        whole: For each filter whether it does.
    """

    whole: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class AggregateFunction(Message):
    """What a query asks about its rows.

    Args:
        name: ``count``, ``min`` or ``max``.
        column: Of which column, as a list of names; None to count rows.
    """

    name: str
    column: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class AggregateFiles(Repeatable):
    """Asks for aggregates that need no data file. Answer: `Aggregated`.

    Args:
        selection: Of which rows; all its filters are such as `DecidedFilters` names whole.
        group_by: The columns whose values make groups, each as a list of names.
        functions: What is asked of each group.
    """

    selection: Selection
    group_by: tuple[tuple[str, ...], ...]
    functions: tuple[AggregateFunction, ...]


@dataclass(frozen=True, slots=True)
class Aggregated(Message):
    """Aggregates of a query.

    Args:
        rows: A row a group, the values of its columns first; some groups may come more than once,
            in parts. None where files would have to be read.
    """

    rows: tuple[tuple[Any, ...], ...] | None


@dataclass(frozen=True, slots=True)
class DeleteEntry(Message):
    """A file of position deletes, as the table has it.

    Args:
        path: The table's name for it.
        rows: How many it holds.
        size: In bytes.
    """

    path: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class FileEntry(Message):
    """A file that a statement reads and may replace, as the table has it.

    Args:
        path: The table's name for it.
        spec_id: Its partition spec.
        partition: Its partition, by the spec.
        rows: How many it holds, deleted ones included.
        size: In bytes.
        has_deletes: Whether some of its rows are deleted.
        own_deletes: The files of position deletes that are about no other data file; only where
            rows of it may be deleted by position.
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
        field_ids: Their ids, also of fields in structs.
        schema: The table's columns that they are or are in, with nothing else inside, as Spark has
            them; a column that was dropped as the table had it last.
    """

    field_ids: tuple[int, ...]
    schema: Any


@dataclass(frozen=True, slots=True)
class DeleteFile(Message):
    """A delete file that tasks read.

    Args:
        path: Spark's name for it.
        format: ``parquet``, ``orc`` or ``avro``.
        rows: As many as its manifest states; less than 0 for a number that is not known.
    """

    path: str
    format: str
    rows: int


@dataclass(frozen=True, slots=True)
class EqualityDeletes(Message):
    """Delete files that apply to a data file and compare the same columns.

    Args:
        keys: The place of the columns in `ScanPage.keys`.
        files: The places of the files in `ScanPage.delete_files`.
    """

    keys: int
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PositionDeleteFiles(Message):
    """Position delete files that tasks read for a data file.

    Args:
        path: What they call the data file: the table's name for it.
        files: Their places in `ScanPage.delete_files`.
    """

    path: str
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeletePlace(Message):
    """Where position deletes of a data file go.

    Args:
        file: What they call the data file, the table's name for it, where Spark has another.
        partition: The number of its partition, the same for files of one partition of one spec.
        folder: The folders of that partition, each with a slash at its end.
        has_own: Whether there are delete files about no other data file, which new ones replace.
    """

    file: str | None
    partition: int
    folder: str
    has_own: bool


@dataclass(frozen=True, slots=True)
class PlannedFile(Message):
    """A file of a plan, named by its place in the list.

    Args:
        path: Spark's name for it.
        format: ``parquet``, ``orc`` or ``avro``.
        spec_id: Its partition spec.
        constants: Columns that have one value in it, by field id; also those that deletes compare.
        deletes: Where its deleted positions are in `ScanPage.deletes`.
        position_delete_files: Where tasks find them, if the scan has too many to send.
        equality_deletes: What deletes rows of it by their values.
        partition: The value of `_partition` by field name, where it was asked for; null in a table
            without partitions.
        entry: What the bridge hands back when the file is changed; only where that was asked for.
        delete_place: Where deletes of its rows go; only where `PlanScan.changes` is ``rows``.
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
        file: Its place in `ScanPage.files`.
        start: The first byte.
        length: In bytes.
        last: Whether it goes to the end of the file, also if its manifest states a smaller size.
        rows: Of a whole file as many as its manifest states; less than 0 where that is not known.
    """

    file: int
    start: int
    length: int
    last: bool
    rows: int


@dataclass(frozen=True, slots=True)
class ScanStatistics(Message):
    """The size of a scan, as far as it is known: an estimate.

    Args:
        rows: Without those whose positions are in the plan.
        bytes: Of its files.
        distinct_values: How many columns have, by field id as text.
    """

    rows: int
    bytes: int
    distinct_values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GroupingField(Message):
    """A value by which the tasks of a scan are told apart.

    Args:
        transform: How it is made of a column, as Spark has it.
        type: Its type, as Spark has it.
    """

    transform: Any
    type: Any


@dataclass(frozen=True, slots=True)
class ScanPage(Message):
    """A part of what the tasks of a scan read; the lists of all pages make the plan.

    A place counts through the lists of all pages, and is named only where what it names has come.

    Args:
        files: The files, each once.
        partitions: The parts of files that each task reads.
        deletes: Deleted positions, base64 of compressed differences.
        delete_files: The delete files that tasks read.
        keys: What equality deletes compare.
        grouping_keys: For each of `partitions` the values of `ScanPlan.grouping`, or nothing where
            there is none. Tasks of other values read other rows.
    """

    files: tuple[PlannedFile, ...]
    partitions: tuple[tuple[FileRange, ...], ...]
    deletes: tuple[str, ...]
    delete_files: tuple[DeleteFile, ...]
    keys: tuple[KeyColumns, ...]
    grouping_keys: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class ScanPlan(Message):
    """What there is to say of a scan after its pages, each a `ScanPage`.

    Args:
        name_mapping: Iceberg's name mapping for files without ids.
        statistics: Of all together.
        vectorized: Whether tasks hand on batches of columns; else row by row.
        batch_rows: How many rows such a batch has; None for Spark's own number.
        partition_columns: Those of the columns to read by which the files are partitioned, whatever
            the transform: what a join comes to know of their values narrows the scan.
        grouping: What all rows of a task have in common, where the session asked for that.
        locality: Whether tasks are best run where their files lie.
        metrics: What planning looked at and left out, by Iceberg's names of a scan's metrics.
    """

    name_mapping: Any
    statistics: ScanStatistics
    vectorized: bool
    batch_rows: int | None
    partition_columns: tuple[str, ...]
    grouping: tuple[GroupingField, ...]
    locality: bool
    metrics: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NarrowScan(Repeatable):
    """Asks which files of a plan remain, when more is known of the rows. Answer: `NarrowedScan`.

    Args:
        selection: As when it was planned, and with the filters that came to be known at run time.
    """

    selection: Selection


@dataclass(frozen=True, slots=True)
class NarrowedScan(Message):
    """The files that may hold rows that are wanted.

    Args:
        files: Spark's names for them.
    """

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadRows(Repeatable):
    """Asks for the rows of a table that has no files. Answer: `Rows`.

    Args:
        reference: The table's state.
        field_ids: The columns to read, of structs the fields inside them.
        filters: Spark's predicates; they only leave out rows.
        case_sensitive: Whether names in filters are.
        limit: How many rows are enough; None for all.
        options: Of the query.
    """

    reference: Reference
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
            base64. Where no column was asked for they have one all the same.
    """

    streams: tuple[str, ...]
