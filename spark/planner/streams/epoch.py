"""Epochs: what the batches of a streaming query write to a branch, each once.

The snapshot of an epoch names the query and the number, by Iceberg Java's keys (SparkWrite,
``BaseStreamingWrite``), so that a checkpoint of a query that wrote by it goes on here, and the
other way round. An epoch is committed when the branch comes from a snapshot of the query with this
number or a later one. That is looked up on each state that the commit is tried on: the answer of an
earlier attempt may have been lost, and its request may still be on its way.

Where snapshots expired, or one of the query is in the table but on another line than the branch, it
may not be known: the table may have been replaced by a query of itself, the branch rolled back or
made anew. Iceberg Java commits again then, and the rows are twice in the table. Here the time
decides at which Spark planned the epoch: what was committed before that was another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CommitFailedError, UnsupportedError
from icecomb.format.operation.publication import EPOCH_ID, QUERY_ID, batch_of
from icecomb.format.property import flag, optional_number
from icecomb.format.spec.ancestry import NO_PARENT, ancestors_of
from icecomb.format.spec.column_history import SOURCE_SNAPSHOT
from icecomb.format.spec.json_sequence import lazily
from icecomb.format.spec.snapshot import Snapshot
from icecomb.spark.planner.audit import head
from icecomb.spark.planner.predicates import exact_filter
from icecomb.spark.planner.protocol import StreamedWrite
from icecomb.spark.planner.written_files import written_with

if TYPE_CHECKING:
    from icecomb.catalog.table import Table
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.operation.append import FastAppend
    from icecomb.format.operation.overwrite import MergeAppend, OverwriteFiles
    from icecomb.format.row_changes.write_target import WrittenChange
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.update import Changes
    from icecomb.spark.planner.audit import Place
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.protocol import Epoch, StreamingQuery, WriteState
    from icecomb.spark.planner.states import TableState

_MERGED: Final = flag(
    "use-merge-append-for-streaming",
    "Whether batches put manifests together as other appends do.",
    default=False,
)
_COMMIT_EPOCH: Final = optional_number(
    "commit-epoch", "The batch that is committed though it may be in the table.", least=0
)


class EpochThereError(CommitFailedError):
    """The branch has the epoch: there is nothing to be committed."""


def streamed_write(
    query: StreamingQuery, state: TableState, place: Place, options: Options
) -> StreamedWrite:
    """What the commit of an epoch that begins needs to know.

    Args:
        query: The query.
        state: The table as it is now.
        place: Where the epoch goes.
        options: Of the write.

    Raises:
        UnsupportedError: It is to be staged.
        ConfigurationError: An option cannot be what it says.
    """
    if place.is_staged:
        raise UnsupportedError(
            f"Table {state.name}: the batches of a streaming query cannot all be staged as "
            f"{place.wap_id!r} (spark.wap.id): what is published by a name is one snapshot",
            hint="write to a branch: spark.wap.branch, or the option branch; or stage one batch "
            "in foreachBatch",
            table=state.name,
        )
    return StreamedWrite(
        query=query.id,
        merged=options.of(_MERGED, {}, _MERGED.key),
        lost_ms=_lost_since(state.metadata, place.branch, query.id),
        commit_epoch=options.of(_COMMIT_EPOCH, {}, _COMMIT_EPOCH.key),
    )


@dataclass(frozen=True, slots=True)
class EpochChange:
    """A change that is made once, however often its epoch is run.

    Args:
        change: What the epoch does to the table.
        write: What began the write.
        streamed: What began it, of the query.
        epoch: The epoch.
    """

    change: WrittenChange
    write: WriteState
    streamed: StreamedWrite
    epoch: Epoch

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """See `SnapshotProducer.starting_point`."""
        return self.change.starting_point

    def apply(self, base: TableMetadata) -> Changes:
        """See `SnapshotProducer.apply`.

        Raises:
            EpochThereError: The table has it.
            CommitFailedError: It may have had it.
        """
        self.change.producer.check_not_committed(base)
        number = self.epoch.number
        last = _last_epoch(base, self.write.branch, self.streamed.query)
        if last is not None and last >= number:
            raise EpochThereError(
                f"Batch {number} is committed already", hint="nothing is left to be done"
            )
        # all rows of before go: they are not there twice
        if self.write.operation == "append":
            self._check_new(base, last)
        return self.change.apply(base)

    def clean_up(self, committed: TableMetadata | None) -> None:
        """See `SnapshotProducer.clean_up`."""
        self.change.clean_up(committed)

    def _check_new(self, base: TableMetadata, last: int | None) -> None:
        lost, number = self.streamed.lost_ms, self.epoch.number
        if self.streamed.commit_epoch == number:
            return
        aside = _aside(base, self.write.branch, self.streamed.query, number)
        if aside is not None and self._may_be_of(aside.timestamp_ms):
            raise self._unsure(
                f"snapshot {aside.snapshot_id} of it is in the table's history, but not on branch "
                f"{self.write.branch}, which was replaced, rolled back or made anew",
                "let a query go on with the branch that it began with",
            )
        if last is None and lost is not None and self._may_be_of(lost):
            raise self._unsure(
                f"snapshots of branch {self.write.branch} until {lost} (ms since 1970) expired, "
                "and none that is left is the query's",
                "keep snapshots for longer than a query is ever stopped",
            )

    def _may_be_of(self, committed_ms: int) -> bool:
        """Whether the epoch may have been committed until a time."""
        planned = self.epoch.planned_ms
        return planned is None or planned <= committed_ms

    def _unsure(self, found: str, next_time: str) -> CommitFailedError:
        name, number = ".".join(self.write.identifier), self.epoch.number
        return CommitFailedError(
            f"Table {name}: batch {number} of the streaming query {self.streamed.query} was begun "
            f"before and may have been committed: {found}",
            hint=f"look whether its rows are in the table: if they are, copy a file of the "
            f"checkpoint's folder commits to commits/{number}; if not, start the query once with "
            f"the option {_COMMIT_EPOCH} set to {number}; {next_time}",
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
    """What an epoch does to the table: it adds rows, or its rows stand for all there were.

    Args:
        table: The table as it is now.
        write: What began the write.
        streamed: What began it, of the query.
        epoch: The epoch.
        files: The new data files.
        summary: More keys of the snapshot's summary.
    """
    from icecomb.format.operation.append import FastAppend
    from icecomb.format.operation.overwrite import MergeAppend, OverwriteFiles
    from icecomb.format.row_changes.write_target import WrittenChange

    told = {**summary, QUERY_ID: streamed.query, EPOCH_ID: str(epoch.number)}
    change: FastAppend | MergeAppend | OverwriteFiles
    if write.operation == "append":
        kind = MergeAppend if streamed.merged else FastAppend
        change = kind(table.io, told, write.branch)
    else:
        # what others added meanwhile goes, too: the query's result is the whole table
        rows = exact_filter(write.filters, table.metadata.schema(), case_sensitive=True)
        change = OverwriteFiles(table.io, told, write.branch).overwrite_by_row_filter(rows)
    for file in files:
        change.append_data_file(file)
    written = WrittenChange(change, written_with(table.metadata, write))
    return EpochChange(written, write, streamed, epoch)


def _last_epoch(metadata: TableMetadata, branch: str, query: str) -> int | None:
    """Return the last epoch of a query that a branch has, as far as its snapshots are known."""
    last = None
    for snapshot in ancestors_of(metadata, head(metadata, branch)):
        batch = batch_of(snapshot.summary)
        if batch is None or batch[0] != query:
            continue
        last = batch[1] if last is None else max(last, batch[1])
        # what was picked may be older than what was there; what the query wrote is not
        if SOURCE_SNAPSHOT not in snapshot.summary:
            break
    return last


def _aside(metadata: TableMetadata, branch: str, query: str, number: int) -> Snapshot | None:
    """Return the newest snapshot of a query's epoch, or a later one, beside a branch."""

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
    """Return until when snapshots of a branch expired that may have been the query's.

    Returns:
        The time of the oldest snapshot that is left, in ms since 1970; None where none expired, or
        one that is left says how far the query is.
    """
    if _last_epoch(metadata, branch, query) is not None:
        return None
    oldest = None
    for snapshot in ancestors_of(metadata, head(metadata, branch)):
        oldest = snapshot
    expired = oldest is not None and _had_others_before(metadata, oldest)
    return oldest.timestamp_ms if oldest is not None and expired else None


def _had_others_before(metadata: TableMetadata, oldest: Snapshot) -> bool:
    """Return whether the table had snapshots before the oldest of a line that are not known."""
    if oldest.parent_snapshot_id not in {None, NO_PARENT}:
        return True
    # REPLACE TABLE begins a line of its own; format version 1 has no numbers to tell by
    number = oldest.sequence_number
    if not number:
        return True
    earlier = {snapshot.sequence_number for snapshot in metadata.snapshots}
    return len({each for each in earlier if each and each < number}) < number - 1
