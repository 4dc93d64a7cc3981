"""Epochs: batches of a streaming query, each committed to a branch exactly once.

The snapshot of an epoch has the query and the number under Iceberg Java's keys (SparkWrite,
``BaseStreamingWrite``), so that a query of Iceberg Java can continue here from its checkpoint, and
vice versa. An epoch is committed if the branch's history has a snapshot of the query with this
number or a later one. That is checked on the metadata of each commit attempt: the answer to an
earlier attempt may have been lost, and its request may still be in flight.

If snapshots expired, or one of the query is in the table but not in the branch's history, this may
be unknown: the table may have been replaced by a query of itself, the branch rolled back or
re-created. Iceberg Java then commits again, which duplicates the rows. Here the time at which Spark
planned the epoch decides: anything committed before that was another epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from icecomb.format.errors import CommitFailedError, UnsupportedError
from icecomb.format.operation.publication import EPOCH_ID, QUERY_ID, batch_of
from icecomb.format.property.property import flag, optional_number
from icecomb.format.spec.column_history import SOURCE_SNAPSHOT
from icecomb.format.spec.snapshot import NO_PARENT, Snapshot, ancestors_of
from icecomb.format.spec.values.json_object import lazily
from icecomb.spark.planner.protocol.writes import StreamedWrite
from icecomb.spark.planner.scan.predicates import exact_filter
from icecomb.spark.planner.table.audit import head
from icecomb.spark.planner.write.written_files import written_with

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.operation.append import FastAppend, MergeAppend
    from icecomb.format.operation.overwrite import OverwriteFiles
    from icecomb.format.row_changes.write_target import WrittenChange
    from icecomb.format.spec.change.update import Changes
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.protocol.writes import Epoch, StreamingQuery, WriteState
    from icecomb.spark.planner.table.audit import CommitTarget
    from icecomb.spark.planner.table.states import TableState

_MERGED: Final = flag(
    "use-merge-append-for-streaming",
    "Whether batches merge manifests like other appends.",
    default=False,
)
_COMMIT_EPOCH: Final = optional_number(
    "commit-epoch", "The batch to commit although it may be in the table.", least=0
)


class EpochThereError(CommitFailedError):
    """The branch already has the epoch: there is nothing to commit."""


def streamed_write(
    query: StreamingQuery, state: TableState, target: CommitTarget, options: Options
) -> StreamedWrite:
    """Return the information needed to commit an epoch that begins."""
    if target.is_staged:
        raise UnsupportedError(
            f"Table {state.name}: the batches of a streaming query cannot all be staged as "
            f"{target.wap_id!r} (spark.wap.id): only one snapshot can be published under an id",
            hint="Write to a branch: spark.wap.branch, or the option branch; or stage one batch "
            "in foreachBatch.",
            table=state.name,
        )
    return StreamedWrite(
        query=query.id,
        merged=options.of(_MERGED, {}, _MERGED.key),
        lost_ms=_lost_since(state.metadata, target.branch, query.id),
        commit_epoch=options.of(_COMMIT_EPOCH, {}, _COMMIT_EPOCH.key),
    )


@dataclass(frozen=True, slots=True)
class EpochChange:
    """A change that is committed once, however often its epoch is run.

    Args:
        change: The change that the epoch makes to the table.
        write: The write, as it began.
        streamed: The state of the streaming query, as it began.
    """

    change: WrittenChange
    write: WriteState
    streamed: StreamedWrite
    epoch: Epoch
    writes_files: ClassVar[bool] = True

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """Starting point, see `SnapshotProducer.starting_point`."""
        return self.change.starting_point

    def apply(self, base: TableMetadata) -> Changes:
        """Return the changes; `EpochThereError` if the table has the epoch.

        `CommitFailedError` if the table may have had it.
        """
        self.change.producer.check_not_committed(base)
        number = self.epoch.number
        last = _last_epoch(base, self.write.branch, self.streamed.query)
        if last is not None and last >= number:
            raise EpochThereError(
                f"Batch {number} is already committed", hint="Nothing is left to be done."
            )
        # an overwrite removes all earlier rows, so none can be duplicated
        if self.write.operation == "append":
            self._check_new(base, last)
        return self.change.apply(base)

    def clean_up(self, committed: TableMetadata | None) -> None:
        self.change.clean_up(committed)

    def _check_new(self, base: TableMetadata, last: int | None) -> None:
        lost, number = self.streamed.lost_ms, self.epoch.number
        if self.streamed.commit_epoch == number:
            return
        aside = _aside(base, self.write.branch, self.streamed.query, number)
        if aside is not None and self._may_be_of(aside.timestamp_ms):
            raise self._unsure(
                f"snapshot {aside.snapshot_id} of it is in the table's history, but not on branch "
                f"{self.write.branch}, which was replaced, rolled back or re-created",
                "let a query continue with the branch that it began with",
            )
        if last is None and lost is not None and self._may_be_of(lost):
            raise self._unsure(
                f"snapshots of branch {self.write.branch} until {lost} (ms since 1970) expired, "
                "and none that is left is the query's",
                "keep snapshots for longer than a query is ever stopped",
            )

    def _may_be_of(self, committed_ms: int) -> bool:
        """Return whether the epoch may have been committed by a time."""
        planned = self.epoch.planned_ms
        return planned is None or planned <= committed_ms

    def _unsure(self, found: str, next_time: str) -> CommitFailedError:
        name, number = ".".join(self.write.identifier), self.epoch.number
        return CommitFailedError(
            f"Table {name}: batch {number} of the streaming query {self.streamed.query} was begun "
            f"before and may have been committed: {found}",
            hint=f"Check whether its rows are in the table: if they are, copy a file of the "
            f"checkpoint's folder commits to commits/{number}; if not, start the query once with "
            f"the option {_COMMIT_EPOCH} set to {number}; {next_time}.",
            table=name,
        )


def epoch_change(  # noqa: PLR0917 - a write, its epoch, and what it adds
    table: Table,
    write: WriteState,
    streamed: StreamedWrite,
    epoch: Epoch,
    files: Sequence[DataFile],
    summary: Mapping[str, str],
) -> EpochChange:
    """Return the change of an epoch: it appends its rows, or replaces all rows by them."""
    from icecomb.format.operation.append import FastAppend, MergeAppend
    from icecomb.format.operation.overwrite import OverwriteFiles
    from icecomb.format.row_changes.write_target import WrittenChange

    told = {**summary, QUERY_ID: streamed.query, EPOCH_ID: str(epoch.number)}
    change: FastAppend | MergeAppend | OverwriteFiles
    if write.operation == "append":
        if streamed.merged:
            change = MergeAppend(table.io, told, write.branch)
        else:
            change = FastAppend(table.io, told, write.branch, fresh=True)
    else:
        # concurrently added rows are removed, too: the query's result is the whole table
        schema = table.metadata.schema()
        rows = exact_filter(write.filters, schema, case_sensitive=True)
        change = OverwriteFiles(table.io, told, write.branch, schema=schema)
        change.overwrite_by_row_filter(rows)
    for file in files:
        change.append_data_file(file)
    written = WrittenChange(change, written_with(table.metadata, write))
    return EpochChange(written, write, streamed, epoch)


def _last_epoch(metadata: TableMetadata, branch: str, query: str) -> int | None:
    """Return the last epoch of a query in a branch's known history; None if there is none."""
    last = None
    for snapshot in ancestors_of(metadata, head(metadata, branch)):
        batch = batch_of(snapshot.summary)
        if batch is None or batch[0] != query:
            continue
        last = batch[1] if last is None else max(last, batch[1])
        # a cherry-picked snapshot may be older than its ancestors; the query's own are in order
        if SOURCE_SNAPSHOT not in snapshot.summary:
            break
    return last


def _aside(metadata: TableMetadata, branch: str, query: str, number: int) -> Snapshot | None:
    """Return the newest snapshot of a query's epoch or a later one outside a branch's history."""

    def is_it(summary: Mapping[str, str] | None) -> bool:
        batch = batch_of(summary or {})
        return batch is not None and batch[0] == query and batch[1] >= number

    found = lazily(metadata.snapshots, Snapshot.from_json).where("summary", is_it)
    if not found:
        return None
    line = {snapshot.snapshot_id for snapshot in ancestors_of(metadata, head(metadata, branch))}
    aside = [snapshot for snapshot in found if snapshot.snapshot_id not in line]
    return max(aside, key=lambda snapshot: snapshot.timestamp_ms, default=None)


def _lost_since(metadata: TableMetadata, branch: str, query: str) -> int | None:
    """Return the time until which expired snapshots of a branch may have been the query's.

    It is the time of the oldest snapshot that is left, in ms since 1970; None if none expired, or a
    remaining one has an epoch of the query.
    """
    if _last_epoch(metadata, branch, query) is not None:
        return None
    oldest = None
    for snapshot in ancestors_of(metadata, head(metadata, branch)):
        oldest = snapshot
    expired = oldest is not None and _had_others_before(metadata, oldest)
    return oldest.timestamp_ms if oldest is not None and expired else None


def _had_others_before(metadata: TableMetadata, oldest: Snapshot) -> bool:
    """Return whether the table had unknown snapshots before the oldest known ancestor."""
    if oldest.parent_snapshot_id not in {None, NO_PARENT}:
        return True
    # REPLACE TABLE starts a new history; format version 1 has no sequence numbers to compare
    number = oldest.sequence_number
    if not number:
        return True
    earlier = {snapshot.sequence_number for snapshot in metadata.snapshots}
    return len({each for each in earlier if each and each < number}) < number - 1
