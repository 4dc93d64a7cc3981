"""Messages about writes: their beginning, commit and abort; and deletes without tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icecomb.spark.planner.protocol.message import (
    Long,
    Message,
    Opaque,
    Repeatable,
    Reported,
    Unrepeatable,
)
from icecomb.spark.planner.protocol.scans import FileEntry
from icecomb.spark.planner.protocol.tables import Audit, TableReference


@dataclass(frozen=True, slots=True)
class PlanChange(Repeatable):
    """Request to plan how a statement changes rows. Answer: `PlannedChange`.

    Args:
        command: ``delete``, ``update`` or ``merge``.
        settings: As in `BeginWrite`.
        keeps_metadata: Whether metadata columns of rows that move to other files reach the tasks
            that write them: Spark passes them on since 4.0, before a rule of the session extension
            carries those of row lineage.
    """

    reference: TableReference
    command: str
    options: Mapping[str, str]
    settings: Mapping[str, str]
    keeps_metadata: bool


@dataclass(frozen=True, slots=True)
class PlannedChange(Message):
    """The way in which a statement changes rows.

    Args:
        merge_on_read: Whether files stay and position deletes remove rows; else the files are
            rewritten.
        metadata_columns: Metadata columns of removed rows that Spark keeps, besides file and
            position, for `WriteInstructions.distribution` and `WriteInstructions.ordering`; and
            those of row lineage, which moved rows keep.
        refusal: The error to raise if Spark reads rows for the statement; None if it may. A DELETE
            may yet become `DeleteWhere`.
    """

    merge_on_read: bool
    metadata_columns: tuple[str, ...]
    refusal: str | None


@dataclass(frozen=True, slots=True)
class StreamingQuery(Message):
    """The streaming query of a write.

    Args:
        id: Spark's id of the query, stored in its checkpoint.
        uuid: The table's uuid, which a re-created table does not share.
    """

    id: str
    uuid: str


@dataclass(frozen=True, slots=True)
class QueriedTable(Message):
    """A read, with its options, of a state of a table by a query."""

    reference: TableReference
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BeginWrite(Repeatable):
    """Request to begin a write. Answer: `WriteInstructions`.

    Args:
        operation: ``append``, ``overwrite``, ``overwrite_partitions``, ``replace_files`` or
            ``change_rows``.
        command: For the last two: ``delete``, ``update`` or ``merge``. For ``append``: ``merge``
            for an insert-only MERGE.
        filters: For ``overwrite``: the rows to delete.
        settings: Settings of the session: Iceberg's, and Spark's for shuffles.
        audit: The session's WAP settings.
        query: The streaming query, if it is one, which writes to the current table.
        rows: Spark's struct of the rows' columns; None if they are the table's.
        queried: The query's reads of this table, if the rows replace others or depend on those
            reads.
    """

    reference: TableReference
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
class StreamedWrite(Opaque):
    """Further information for the commit of an epoch.

    Args:
        merged: Whether an append merges manifests.
        lost_ms: The time until which snapshots of the query may have expired, in ms since 1970;
            None if none has.
        commit_epoch: The epoch to commit although it may be in such a snapshot.
    """

    query: str
    merged: bool
    lost_ms: int | None
    commit_epoch: int | None


@dataclass(frozen=True, slots=True)
class WriteState(Opaque):
    """The state of a write from its beginning, for its commit.

    Args:
        schema_id: The id of the schema of the rows.
        spec_id: The id of the partition spec of new files.
        specs: All partition specs of the table, as in metadata files: an id may be another spec's
            by the time of the commit.
        sort_order_id: The id of the sort order of new files; 0 if there is none.
        operation: As in `BeginWrite`, like `command` and `filters`.
        rewrite: The id of the file group that its files replace, which a procedure commits; else
            None.
        snapshot_id: The snapshot from which concurrent commits are validated.
        older: Whether that is an older snapshot than the one whose rows it changes.
        wap_id: The id to stage the snapshot under; None to commit to the branch.
        serializable: Whether concurrently added rows conflict with an overwrite; None to use the
            table's properties.
        metrics: Metrics modes by field id.
        root: The table's name of the folder of new files.
        told_root: Spark's name of that folder.
        summary: Further properties of the snapshot's summary.
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
        transform: Iceberg's name of the transform, without the parameter.
        parameter: The parameter of bucket and truncate.
        source: The path of the column; empty for ``void``.
    """

    name: str
    transform: str
    parameter: int | None
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DataLocation(Message):
    """The location in which tasks create new files.

    Args:
        hashed: Whether each path begins with a hash, for object stores.
        partitioned_paths: Whether a hashed path contains the partition.
        context: The table's name in hashed paths outside its folder.
    """

    root: str
    hashed: bool
    partitioned_paths: bool
    context: str | None


@dataclass(frozen=True, slots=True)
class WriteOrder(Message):
    """A field of the required sort order of rows."""

    transform: Any
    direction: str
    nulls: str


@dataclass(frozen=True, slots=True)
class FileInstructions(Message):
    """Instructions for writing files of one kind.

    Args:
        format: ``parquet``, ``orc`` or ``avro``.
        schema: Spark's schema of the files, with ids.
        file_schema: The schema in the file format: Avro's JSON, ORC's type. None for Parquet,
            whose schema Spark creates.
        attributes: For ORC: the attributes of each type, in the order of type ids.
        target_bytes: The size at which a file is full.
        writer: Settings of the format's writer.
        metrics: Metrics modes by field id.
    """

    format: str
    schema: Any
    file_schema: str | None
    attributes: tuple[Mapping[str, str], ...]
    target_bytes: Long
    writer: Mapping[str, str]
    metrics: Mapping[str, str]
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeleteInstructions(Message):
    """Instructions for tasks that write position deletes.

    Args:
        by_file: Whether a delete file applies to one data file; else to all of a partition.
        as_vectors: Whether there are no delete files: tasks report positions, of which the commit
            makes deletion vectors.
    """

    files: FileInstructions
    by_file: bool
    as_vectors: bool


@dataclass(frozen=True, slots=True)
class WriteInstructions(Message):
    """Instructions for tasks that write.

    Args:
        write: The state of the write, to be returned with the files.
        operation_id: A part of every file's name.
        distribution: Transforms to cluster the rows by.
        ranges: The order whose ranges are distributed to tasks, instead of `distribution`.
        ordering: The order of the rows within a task.
        advisory_bytes: The approximate bytes of a shuffle per task; None for Spark's default.
        fanout: Whether a task keeps files of several partitions open.
        deletes: For ``change_rows``: the instructions for position deletes.
        lineage: Whether files have the columns of row lineage behind the table's.
        as_given: Whether Spark does not cast the rows, so that tasks have to fit them to the table.
    """

    write: WriteState
    files: FileInstructions
    partition: tuple[PartitionColumn, ...]
    location: DataLocation
    operation_id: str
    distribution: tuple[Any, ...]
    ranges: tuple[WriteOrder, ...]
    ordering: tuple[WriteOrder, ...]
    advisory_bytes: Long | None
    fanout: bool
    deletes: DeleteInstructions | None
    lineage: bool
    as_given: bool


@dataclass(frozen=True, slots=True)
class WrittenFile(Reported):
    """A new data file, as reported by the task that wrote it.

    Args:
        path: Spark's name of the file.
        size: The size in bytes.
        split_offsets: The offsets of its row groups or stripes.
        columns: A JSON array as text, which takes a tenth of the memory of its values: a commit
            may have thousands of files of hundreds of columns. For each column its field id, its
            size in bytes and, if requested and known: the counts of values and nulls, and the
            bounds as base64 of Iceberg's binary form, one character or byte longer than
            `FileInstructions.metrics` asks for; for floating-point numbers in data files also the
            count of NaN. Avro files have no metrics.
    """

    path: str
    size: Long
    rows: Long
    partition: tuple[Any, ...]
    split_offsets: tuple[Long, ...]
    columns: str


@dataclass(frozen=True, slots=True)
class Replaced(Message):
    """The files that UPDATE, DELETE or MERGE has read and rewritten.

    Args:
        reference: The state that was read.
        filters: The filters that selected the files.
    """

    reference: TableReference
    filters: tuple[Any, ...]
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class WrittenDeletes(Reported):
    """A new position delete file, as reported by the task that wrote it.

    Args:
        file: The file, without a partition, which is that of its data files; None if there is none,
            but `positions`.
        files: The table's names of the data files it applies to.
        deleted: The number of its rows that the statement deleted; the others were deleted before.
        replaces: Whether it contains all deletes of the delete files for its data file only.
        positions: The deleted positions of its only data file, encoded as in `ScanPage`.
    """

    file: WrittenFile | None
    files: tuple[str, ...]
    deleted: Long
    replaces: bool
    positions: str | None


@dataclass(frozen=True, slots=True)
class Delta(Message):
    """The rows that UPDATE, DELETE or MERGE deletes by position.

    Args:
        reference: The state that was read.
        filters: The filters that selected its files; None if Spark found that none need be read.
        files: The data files that lose rows.
    """

    reference: TableReference
    filters: tuple[Any, ...] | None
    files: tuple[FileEntry, ...]
    deletes: tuple[WrittenDeletes, ...]


@dataclass(frozen=True, slots=True)
class Epoch(Message):
    """A batch of a streaming query.

    Args:
        number: The number of the batch in its checkpoint.
        planned_ms: The time when Spark first planned it, in ms since 1970; None if unknown.
    """

    number: Long
    planned_ms: Long | None


@dataclass(frozen=True, slots=True)
class MergedRows(Message):
    """Spark's row counts of a MERGE; -1 for those it did not count.

    Args:
        copied: Rows rewritten unchanged.
        matched_updated: Rows updated because a source row matched; so `matched_deleted`.
        unmatched_updated: Rows updated because no source row matched; so `unmatched_deleted`.
    """

    copied: Long
    deleted: Long
    updated: Long
    inserted: Long
    matched_updated: Long
    matched_deleted: Long
    unmatched_updated: Long
    unmatched_deleted: Long


@dataclass(frozen=True, slots=True)
class CommitWrite(Unrepeatable):
    """Request to commit a write, unless nothing changes. Answer: `CommittedWrite`.

    An epoch that the table already has is not committed; its files are deleted.

    Args:
        replaced: For ``replace_files``: the files they replace.
        delta: For ``change_rows``: the deleted rows. For an ``append`` of MERGE: its read.
        epoch: The batch of a streaming query.
        merged: The row counts of a MERGE, if Spark has them.
    """

    write: WriteState
    files: tuple[WrittenFile, ...]
    replaced: Replaced | None
    delta: Delta | None
    epoch: Epoch | None
    merged: MergedRows | None


@dataclass(frozen=True, slots=True)
class CommittedWrite(Message):
    """The metrics of a commit for Spark's UI, by Iceberg's names; empty if nothing changed."""

    metrics: Mapping[str, Long]


@dataclass(frozen=True, slots=True)
class AbortWrite(Repeatable):
    """Request to delete the files of a failed write, by path. Answer: `Done`."""

    write: WriteState
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitStaged(Unrepeatable):
    """Request to create or replace a table together with its rows, if any. Answer: `Done`.

    Args:
        write: The state of the write of its rows.
        read: The states of the replaced table that the rows come from.
    """

    reference: TableReference
    write: WriteState | None
    files: tuple[WrittenFile, ...]
    read: tuple[TableReference, ...]


@dataclass(frozen=True, slots=True)
class AbortStaged(Repeatable):
    """Request to discard a staged table and delete its files. Answer: `Done`."""

    reference: TableReference
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CanDeleteWhere(Repeatable):
    """Request to check whether the planner itself can delete rows exactly. Answer: `Possible`."""

    reference: TableReference
    filters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Possible(Message):
    """The answer whether it can."""

    possible: bool


@dataclass(frozen=True, slots=True)
class DeleteWhere(Unrepeatable):
    """Request to delete the rows that match all filters, in one commit. Answer: `Done`."""

    reference: TableReference
    filters: tuple[Any, ...]
    settings: Mapping[str, str]
    audit: Audit
