"""Tracking of published and picked snapshots, so that no rows are added to `main` twice.

Picking a snapshot makes another one, which names it as its source and may itself be picked.
Snapshots that come from one snapshot, were staged under one `wap.id`, or hold one batch of a
streaming query, are one change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import AlreadyPublishedError
from icecomb.format.input_limit import whole_number
from icecomb.format.operation.snapshot_producer import PUBLISHED_WAP_ID, WAP_ID
from icecomb.format.property.table_property import PUBLISHED_SNAPSHOTS
from icecomb.format.spec.change.update import SetPropertiesUpdate
from icecomb.format.spec.column_history import SOURCE_SNAPSHOT
from icecomb.format.spec.snapshot import NO_PARENT, ancestors_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

QUERY_ID: Final = "spark.sql.streaming.queryId"
"""The summary key for the streaming query whose batch a snapshot holds, as in Iceberg Java's
sink."""
EPOCH_ID: Final = "spark.sql.streaming.epochId"
"""The summary key for the number of that batch."""
_PICKED_BATCH: Final = "icecomb.picked-batch"
"""The summary key for number and query of a batch that was picked when `main` had later ones:
Iceberg Java's sink takes the newest snapshot of its query for the last (SparkWrite), and would
write the later ones again."""


_SINKS: Final = ("flink.", "kafka.connect.")
"""What begins the keys of a summary by which Iceberg Java's other sinks know what they committed:
the newest snapshot of `main` that has those of a job says where it goes on."""
_FLINK_PROGRESS: Final = "flink.max-committed-checkpoint-id"
_CONNECT_OFFSETS: Final = "kafka.connect.offsets."


def batch_of(summary: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the streaming query and batch number that a snapshot summary names."""
    query, number = summary.get(QUERY_ID), summary.get(EPOCH_ID, "")
    if _PICKED_BATCH in summary:
        number, _, query = summary[_PICKED_BATCH].partition(" ")
    batch = whole_number(number)
    return (query, batch) if query is not None and batch is not None else None


def batch_keys(base: TableMetadata, picked: Snapshot) -> dict[str, str]:
    """Return the summary keys by which the job that wrote a picked snapshot recognizes its work."""
    main = list(ancestors_of(base, base.current_snapshot_id))
    found: dict[str, str] = {}
    for sink in _SINKS:
        own = {key: value for key, value in picked.summary.items() if key.startswith(sink)}
        job = _job_of(own)
        # a job that has gone on since knows more than what is picked says
        later = (_job_of(one.summary) for one in main if one.timestamp_ms >= picked.timestamp_ms)
        if job and job not in later:
            found |= own
    batch = batch_of(picked.summary)
    if batch is not None:
        query, number = batch
        there = (batch_of(one.summary) for one in main)
        if any(one is not None and one[0] == query and one[1] > number for one in there):
            found[_PICKED_BATCH] = f"{number} {query}"
        else:
            found |= {QUERY_ID: query, EPOCH_ID: str(number)}
    return found


def _job_of(summary: Mapping[str, str]) -> frozenset[str]:
    """Return what names the Flink or Kafka Connect job whose progress a summary notes."""
    if _FLINK_PROGRESS in summary:
        return frozenset(
            f"{key}={summary.get(key)}" for key in ("flink.job-id", "flink.operator-id")
        )
    return frozenset(key for key in summary if key.startswith(_CONNECT_OFFSETS))


def wap_id_of(snapshot: Snapshot) -> str | None:
    """Return the `wap.id` under which a snapshot, or its source, was staged."""
    return snapshot.summary.get(WAP_ID) or snapshot.summary.get(PUBLISHED_WAP_ID)


def check_not_picked(base: TableMetadata, picked: Snapshot) -> None:
    """Refuse a change that `main` already has.

    It raises AlreadyPublishedError if the snapshot is an ancestor, it or its source was picked, its
    `wap.id` was published, or its streaming query has written the same batch to `main`.
    """
    number, wap_id, origins = picked.snapshot_id, wap_id_of(picked), _origins(base, picked)
    batch = batch_of(picked.summary)
    for found in ancestors_of(base, base.current_snapshot_id):
        if found.snapshot_id == number:
            raise AlreadyPublishedError(
                f"Cannot cherry-pick snapshot {number}: it is an ancestor already",
                hint="Its changes are in the table already: nothing to do.",
                snapshot_id=number,
            )
        if not origins.isdisjoint(_origins(base, found)):
            raise AlreadyPublishedError(
                f"Cannot cherry-pick snapshot {number}: it was picked already, "
                f"as snapshot {found.snapshot_id}",
                hint="Its changes are in the table already: nothing to do.",
                snapshot_id=number,
            )
        if wap_id and wap_id in (found.summary.get(WAP_ID), found.summary.get(PUBLISHED_WAP_ID)):
            raise AlreadyPublishedError(
                f"Cannot cherry-pick snapshot {number}: its wap.id {wap_id!r} was published "
                f"already, by snapshot {found.snapshot_id}",
                hint="Write the change again under another wap.id, if it is meant twice.",
                snapshot_id=number,
            )
        if batch is not None and batch == batch_of(found.summary):
            raise AlreadyPublishedError(
                f"Cannot cherry-pick snapshot {number}: batch {batch[1]} of the streaming query "
                f"{batch[0]} is in the table already, by snapshot {found.snapshot_id}",
                hint="Its rows are in the table already: nothing to do.",
                snapshot_id=number,
            )
    if may_be_hidden(base, picked):
        _check_not_noted(base, picked)


def may_be_hidden(base: TableMetadata, picked: Snapshot) -> bool:
    """Return whether the snapshot that published a change on `main` may have expired.

    It is newer than its source, so it may have expired if all known ancestors are, too.
    """
    line = list(ancestors_of(base, base.current_snapshot_id))
    if not line or line[-1].parent_snapshot_id in {None, NO_PARENT}:
        return False
    oldest = line[-1]
    for number in _origins(base, picked):
        origin = base.snapshot_by_id(number)
        if origin is None:
            return True
        if oldest.sequence_number and origin.sequence_number:
            newer = oldest.sequence_number > origin.sequence_number
        else:
            newer = oldest.timestamp_ms >= origin.timestamp_ms
        if newer:
            return True
    return False


def noted_publications(base: TableMetadata, picked: Snapshot) -> SetPropertiesUpdate:
    """Return an update that notes a snapshot and its sources as published."""
    return _note([*_noted(base), *sorted(_origins(base, picked))])


def noted_before_expiry(before: TableMetadata, after: TableMetadata) -> list[SetPropertiesUpdate]:
    """Return an update that notes published snapshots whose proof an expiration removes.

    They were staged and are in `main` because a branch was moved, or because another writer
    published them, which keeps no note.
    """
    shown = {snapshot.snapshot_id for snapshot in ancestors_of(after, after.current_snapshot_id)}
    ids = {
        number
        for snapshot in ancestors_of(before, before.current_snapshot_id)
        if snapshot.snapshot_id not in shown and wap_id_of(snapshot)
        for number in _origins(before, snapshot)
    }
    noted = _noted(before)
    new = ids.intersection(_left(after)).difference(noted)
    return [_note([*noted, *sorted(new)])] if new else []


def _check_not_noted(base: TableMetadata, picked: Snapshot) -> None:
    """Refuse a snapshot that was published by a snapshot which has expired since."""
    wap_id, origins = wap_id_of(picked), _origins(base, picked)
    for number in _noted(base):
        found = base.snapshot_by_id(number)
        same_id = wap_id and found is not None and wap_id_of(found) == wap_id
        if number in origins or same_id:
            raise AlreadyPublishedError(
                f"Cannot cherry-pick snapshot {picked.snapshot_id}: "
                + (f"its wap.id {wap_id!r}" if wap_id else "it")
                + " was published already, by a snapshot that has expired since",
                hint="Its changes were made. To make them again, append the rows again.",
                snapshot_id=picked.snapshot_id,
            )


def _noted(base: TableMetadata) -> list[int]:
    """Return the snapshots noted as published from which any snapshot in the table comes."""
    said = PUBLISHED_SNAPSHOTS.of(base.properties)
    if said is None:
        return []
    left = _left(base)
    return [number for number in map(int, said.split(",")) if number in left]


def _left(base: TableMetadata) -> set[int]:
    return {number for snapshot in base.snapshots for number in _origins(base, snapshot)}


def _note(ids: Iterable[int]) -> SetPropertiesUpdate:
    return SetPropertiesUpdate({PUBLISHED_SNAPSHOTS.key: ",".join(map(str, dict.fromkeys(ids)))})


def _origins(base: TableMetadata, snapshot: Snapshot) -> set[int]:
    """Return a snapshot, the one it was picked from, and so on; the last may have expired."""
    found = {snapshot.snapshot_id}
    at: Snapshot | None = snapshot
    while at is not None:
        try:
            source = int(at.summary[SOURCE_SNAPSHOT])
        except (KeyError, ValueError):
            break
        if source in found:
            break
        found.add(source)
        at = base.snapshot_by_id(source)
    return found
