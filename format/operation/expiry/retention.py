"""Snapshots and references that are due to expire (spec: Snapshot Retention Policy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.property.table_property import MAX_REF_AGE, MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS
from icecomb.format.spec.snapshot import MAIN_BRANCH, SnapshotRef, ancestors_of

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class Retention:
    """The lifetimes of snapshots and references, in milliseconds; times are since the epoch.

    Args:
        retain_last: The number of snapshots of each branch to keep, however old they are.
        max_ref_age_ms: The age above which a reference is removed; `main` is always kept.
    """

    now_ms: int
    older_than_ms: int
    retain_last: int
    max_ref_age_ms: int

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        now_ms: int,
        older_than_ms: int | None = None,
        retain_last: int | None = None,
    ) -> Retention:
        """Return the given limits; by default, those of the `history.expire.*` properties."""
        if older_than_ms is None:
            age = MAX_SNAPSHOT_AGE.of(metadata.properties)
            older_than_ms = now_ms - age
        if retain_last is None:
            retain_last = MIN_SNAPSHOTS.of(metadata.properties)
        max_ref_age = MAX_REF_AGE.of(metadata.properties)
        return cls(now_ms, older_than_ms, retain_last, max_ref_age)

    def expired_refs(self, metadata: TableMetadata) -> frozenset[str]:
        """Return the branches and tags that are too old, or whose snapshot is missing."""
        return frozenset(
            name
            for name, ref in metadata.refs.items()
            if name != MAIN_BRANCH and self._is_too_old(metadata, ref)
        )

    def expired_snapshots(
        self, metadata: TableMetadata, expired_refs: frozenset[str]
    ) -> frozenset[int]:
        """Return the snapshots that are too old, given the references that are removed.

        The head of a branch and the snapshot of a tag are kept. Snapshots under no reference
        expire only by their age.
        """
        kept: set[int] = set()
        referenced: set[int] = set()
        refs = {n: ref for n, ref in metadata.refs.items() if n not in expired_refs}
        if metadata.current_snapshot_id is not None:
            refs.setdefault(MAIN_BRANCH, SnapshotRef(metadata.current_snapshot_id))
        for ref in refs.values():
            kept.add(ref.snapshot_id)
            referenced.add(ref.snapshot_id)
            if ref.is_branch:
                self._keep(metadata, ref, kept, referenced)
        return frozenset(
            snapshot_id
            for snapshot_id in metadata.snapshot_ids()
            if snapshot_id not in kept
            and (snapshot_id in referenced or self._is_older(metadata, snapshot_id))
        )

    def _is_older(self, metadata: TableMetadata, snapshot_id: int) -> bool:
        snapshot = metadata.snapshot_by_id(snapshot_id)
        return snapshot is not None and snapshot.timestamp_ms < self.older_than_ms

    def _keep(
        self, metadata: TableMetadata, ref: SnapshotRef, kept: set[int], referenced: set[int]
    ) -> None:
        older_than = (
            self.older_than_ms
            if ref.max_snapshot_age_ms is None
            else self.now_ms - ref.max_snapshot_age_ms
        )
        least = ref.min_snapshots_to_keep or self.retain_last
        ended = False
        for count, snapshot in enumerate(ancestors_of(metadata, ref.snapshot_id)):
            referenced.add(snapshot.snapshot_id)
            ended = ended or (count >= least and snapshot.timestamp_ms < older_than)
            if not ended:
                kept.add(snapshot.snapshot_id)

    def _is_too_old(self, metadata: TableMetadata, ref: SnapshotRef) -> bool:
        snapshot = metadata.snapshot_by_id(ref.snapshot_id)
        if snapshot is None:
            return True
        limit = self.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return self.now_ms - snapshot.timestamp_ms > limit
