"""Writes: begun, committed, given up; and deletes that need no tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.message import Message, Repeatable, Unrepeatable
from icecomb.spark.planner.protocol.scans import FileEntry
from icecomb.spark.planner.protocol.tables import Audit, Reference


@dataclass(frozen=True, slots=True)
class PlanChange(Repeatable):
    """Asks how a statement changes rows. Answer: `PlannedChange`.

    Args:
        reference: The table's state.
        command: ``delete``, ``update`` or ``merge``.
        options: Of the statement.
        settings: As in `BeginWrite`.
    """

    reference: Reference
    command: str
    options: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlannedChange(Message):
    """How a statement changes rows.

    Args:
        merge_on_read: Whether their files stay, and position deletes say which rows are gone;
            else the files are written anew.
        metadata_columns: What Spark is to keep of rows that go, besides their file and position:
            `WriteInstructions.distribution` and `WriteInstructions.ordering` may name it.
    """

    merge_on_read: bool
    metadata_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamingQuery(Message):
    """The streaming query of a write.

    Args:
        id: Spark's, kept in its checkpoint.
        uuid: Of its table: another one of the name is not it.
    """

    id: str
    uuid: str


@dataclass(frozen=True, slots=True)
class QueriedTable(Message):
    """What a query reads of a table.

    Args:
        reference: The table's state.
        options: Of the reading.
    """

    reference: Reference
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BeginWrite(Repeatable):
    """Asks how rows are to be written. Answer: `WriteInstructions`.

    Args:
        reference: The table's state.
        operation: ``append``, ``overwrite``, ``overwrite_partitions``, ``replace_files`` or
            ``change_rows``.
        command: Of the last two: ``delete``, ``update`` or ``merge``. Of ``append``: ``merge``
            where it has the rows that a MERGE found missing, which does nothing else.
        filters: Of ``overwrite``: which rows go.
        options: Of the write.
        settings: Of the session: those that belong to Iceberg, and what Spark says of shuffles.
        audit: What the session says of write-audit-publish.
        query: The streaming query, if it is one: it writes to the table as it is now.
        rows: The columns of the rows, as Spark's struct; None where they are the table's.
        case_sensitive: Whether names of columns differ by case.
        queried: What the rows come from, of this table, where they stand for others or go by what
            is read of it.
    """

    reference: Reference
    operation: str
    command: str | None
    filters: tuple[Any, ...]
    options: Mapping[str, str]
    settings: Mapping[str, str]
    audit: Audit
    query: StreamingQuery | None
    rows: Any
    case_sensitive: bool
    queried: tuple[QueriedTable, ...]


@dataclass(frozen=True, slots=True)
class StreamedWrite(Message):
    """What the commit of an epoch needs to know besides.

    Args:
        query: The query's id.
        merged: Whether an append puts manifests together.
        lost_ms: Until when snapshots of the query may have expired, in ms since 1970; None where
            none has.
        commit_epoch: The epoch that is committed though it may have been such a snapshot.
    """

    query: str
    merged: bool
    lost_ms: int | None
    commit_epoch: int | None


@dataclass(frozen=True, slots=True)
class WriteState(Message):
    """What the commit of a write needs to know of its beginning.

    Args:
        catalog: The catalog's handle.
        identifier: The table's name.
        uuid: Its identity.
        schema_id: The schema the rows are written with.
        spec_id: Their partition spec.
        specs: All partition specs of the table, as in metadata files: an id may be another's by the
            time of the commit.
        sort_order_id: Their order; 0 where there is none.
        operation: As in `BeginWrite`.
        command: As in `BeginWrite`.
        filters: As in `BeginWrite`.
        rewrite: The group of files that its files stand for, which a procedure commits; else None.
        snapshot_id: What others do after it is looked at.
        older: Whether that is an older snapshot than the one whose rows it changes.
        branch: Where the change goes.
        wap_id: What it is staged under.
        serializable: Whether rows that others add meanwhile conflict with an overwrite; None where
            the table says that.
        metrics: Metrics modes by field id.
        file_format: Of new data files.
        delete_format: Of new delete files.
        root: The folder of new files as the table names it.
        told_root: The same as Spark was told it.
        summary: More keys of the snapshot's summary.
        streamed: Of a streaming query.
    """

    catalog: str
    identifier: tuple[str, ...]
    uuid: str
    schema_id: int
    spec_id: int
    specs: tuple[Any, ...]
    sort_order_id: int
    operation: str
    command: str | None
    filters: tuple[Any, ...]
    rewrite: str | None
    snapshot_id: int | None
    older: bool
    branch: str
    wap_id: str | None
    serializable: bool | None
    metrics: Mapping[str, str]
    file_format: str
    delete_format: str | None
    root: str
    told_root: str
    summary: Mapping[str, str]
    streamed: StreamedWrite | None


@dataclass(frozen=True, slots=True)
class PartitionColumn(Message):
    """A field of the partition spec.

    Args:
        name: Its name.
        transform: Iceberg's word for it, without the parameter.
        parameter: Of bucket and truncate.
        source: The path of the column; empty for ``void``.
    """

    name: str
    transform: str
    parameter: int | None
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DataLocation(Message):
    """Where the tasks put new files, each by its own name.

    Args:
        root: The folder they are all below.
        hashed: Whether a hash stands before each path, for object stores.
        partitioned_paths: Whether a hashed path names the partition.
        context: What names the table in hashed paths outside its folder.
    """

    root: str
    hashed: bool
    partitioned_paths: bool
    context: str | None


@dataclass(frozen=True, slots=True)
class SortField(Message):
    """A field of the order that rows are to come in."""

    transform: Any
    direction: str
    nulls: str


@dataclass(frozen=True, slots=True)
class FileInstructions(Message):
    """How files of one kind are written.

    Args:
        format: ``parquet``, ``orc`` or ``avro``.
        schema: Their columns, with ids.
        file_schema: The same in the format's own words: Avro's JSON, ORC's type. None for Parquet,
            whose schema Spark makes.
        attributes: Of ORC: what is said about each of its types, in the order of their numbers.
        target_bytes: Where a file is full.
        writer: Settings of the format's writer.
        metrics: Metrics modes by field id.
        metadata: Keys and values that each file holds.
    """

    format: str
    schema: Any
    file_schema: str | None
    attributes: tuple[Mapping[str, str], ...]
    target_bytes: int
    writer: Mapping[str, str]
    metrics: Mapping[str, str]
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeleteInstructions(Message):
    """How the tasks write position deletes.

    Args:
        files: The files.
        by_file: Whether a file is about one data file; else about all those of a partition.
    """

    files: FileInstructions
    by_file: bool


@dataclass(frozen=True, slots=True)
class WriteInstructions(Message):
    """How the tasks write.

    Args:
        write: To be handed back with the files.
        files: How data files are written.
        partition: The fields of the partition spec.
        location: Where files go.
        operation_id: Part of every file's name.
        distribution: Transforms to cluster the rows by.
        ranges: The order whose ranges make the tasks, instead of `distribution`.
        ordering: The order of the rows in a task.
        advisory_bytes: How much of a shuffle a task is to get, about; None where Spark says that.
        fanout: Whether a task keeps files of several partitions open.
        deletes: Of ``change_rows``: how deletes are written.
        as_given: Whether rows come as the query gives them, and tasks make them fit the table.
    """

    write: WriteState
    files: FileInstructions
    partition: tuple[PartitionColumn, ...]
    location: DataLocation
    operation_id: str
    distribution: tuple[Any, ...]
    ranges: tuple[SortField, ...]
    ordering: tuple[SortField, ...]
    advisory_bytes: int | None
    fanout: bool
    deletes: DeleteInstructions | None
    as_given: bool


@dataclass(frozen=True, slots=True)
class WrittenFile(Message):
    """A new data file, as the task that wrote it says.

    Args:
        path: As Spark was told to name it.
        size: In bytes.
        rows: How many.
        partition: Its partition values.
        split_offsets: Where its row groups or stripes begin.
        columns: A JSON array as text, which takes a tenth of the memory of its values: a commit
            may have thousands of files of hundreds of columns. For each column its field id, its
            size in bytes, and where they are asked for and known: values, nulls, and the bounds as
            base64 of Iceberg's binary form, one character or byte longer than
            `FileInstructions.metrics` asks for; for floating numbers in data files the count of
            NaN, too. Avro files tell nothing.
    """

    path: str
    size: int
    rows: int
    partition: tuple[Any, ...]
    split_offsets: tuple[int, ...]
    columns: str


@dataclass(frozen=True, slots=True)
class Replaced(Message):
    """The files that UPDATE, DELETE or MERGE has read and written anew.

    Args:
        reference: The state that was read.
        filters: What the files were chosen by.
        files: The files.
    """

    reference: Reference
    filters: tuple[Any, ...]
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class WrittenDeletes(Message):
    """A new file of position deletes, as the task that wrote it says.

    Args:
        file: The file, without a partition: that is its data files'.
        files: The data files that it deletes rows of, by the table's names.
        deleted: How many of its rows the statement has deleted; the others were deleted before.
        replaces: Whether it has all that the delete files about its data file alone have.
    """

    file: WrittenFile
    files: tuple[str, ...]
    deleted: int
    replaces: bool


@dataclass(frozen=True, slots=True)
class Delta(Message):
    """The rows that UPDATE, DELETE or MERGE deletes by position.

    Args:
        reference: The state that was read.
        filters: What its files were chosen by; None where Spark found that none need be read.
        files: The data files that lose rows.
        deletes: The new delete files.
    """

    reference: Reference
    filters: tuple[Any, ...] | None
    files: tuple[FileEntry, ...]
    deletes: tuple[WrittenDeletes, ...]


@dataclass(frozen=True, slots=True)
class Epoch(Message):
    """A batch of a streaming query.

    Args:
        number: Of the batch, as its checkpoint counts them.
        planned_ms: When Spark planned it first, in ms since 1970; None where that is not known.
    """

    number: int
    planned_ms: int | None


@dataclass(frozen=True, slots=True)
class MergedRows(Message):
    """How many rows a MERGE has treated in which way, as Spark counts them; -1 where it did not.

    Args:
        copied: Written anew, but as they were.
        deleted: Deleted.
        updated: Updated.
        inserted: Inserted.
        matched_updated: Updated because a row of the source matched.
        matched_deleted: Deleted because of that.
        unmatched_updated: Updated because no row of the source matched.
        unmatched_deleted: Deleted because of that.
    """

    copied: int
    deleted: int
    updated: int
    inserted: int
    matched_updated: int
    matched_deleted: int
    unmatched_updated: int
    unmatched_deleted: int


@dataclass(frozen=True, slots=True)
class CommitWrite(Unrepeatable):
    """Commits a write; nothing is committed when nothing changes. Answer: `Committed`.

    Nor is an epoch that the table has already: the files are deleted then.

    Args:
        write: What began it.
        files: The new data files.
        replaced: Of ``replace_files``: the files they stand for.
        delta: Of ``change_rows``: the rows that go. Of an ``append`` of MERGE: what it read.
        epoch: Of a streaming query.
        merged: Of a MERGE, where Spark counts its rows.
    """

    write: WriteState
    files: tuple[WrittenFile, ...]
    replaced: Replaced | None
    delta: Delta | None
    epoch: Epoch | None
    merged: MergedRows | None


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """What a commit did.

    Args:
        metrics: What it changed, by Iceberg's names for Spark's UI; empty where nothing was.
    """

    metrics: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AbortWrite(Repeatable):
    """Deletes the files of a write that failed, given by their paths. Answer: `Done`."""

    write: WriteState
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitStaged(Unrepeatable):
    """Makes, or replaces, a table together with its rows, if there are any. Answer: `Done`.

    Args:
        reference: The table.
        write: What began the write of its rows.
        files: The new data files.
        read: The states of the table it replaces that the rows come from.
    """

    reference: Reference
    write: WriteState | None
    files: tuple[WrittenFile, ...]
    read: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class AbortStaged(Repeatable):
    """Forgets a table that was begun, and deletes its files. Answer: `Done`."""

    reference: Reference
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CanDeleteWhere(Repeatable):
    """Asks whether the planner can delete rows alone, as Spark means it. Answer: `Possible`."""

    reference: Reference
    filters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Possible(Message):
    """Whether it can."""

    possible: bool


@dataclass(frozen=True, slots=True)
class DeleteWhere(Unrepeatable):
    """Deletes the rows that match all filters, in one commit. Answer: `Done`."""

    reference: Reference
    filters: tuple[Any, ...]
    settings: Mapping[str, str]
    audit: Audit
