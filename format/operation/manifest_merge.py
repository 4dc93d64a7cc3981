"""Merging small manifests into large ones (table properties `commit.manifest.*`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.array_build import scalar
from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.manifests.columns import cache_key, joined
from icecomb.format.manifests.manifest import (
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.property.table_property import (
    MANIFEST_MERGE,
    MANIFEST_MIN_COUNT,
    MANIFEST_TARGET_BYTES,
)

if TYPE_CHECKING:
    from icecomb.format.manifests.writer import EncodedEntry
    from icecomb.format.operation.snapshot_producer import SnapshotProducer
    from icecomb.format.spec.metadata import TableMetadata

_NO_SNAPSHOT: Final = scalar(-1, pa.int64())


class ManifestMerge:
    """A merge of the manifests of one content, which reuses the manifests of earlier attempts.

    Attributes:
        replaced: The number of manifests of earlier snapshots that the last `apply` merged.
    """

    def __init__(self, content: ManifestContent) -> None:
        self.content = content
        self.replaced = 0
        # A manifest of the same transaction inherits another sequence number in each attempt.
        self._done: dict[tuple[tuple[Any, ...], ...], ManifestFile] = {}

    def apply(
        self, producer: SnapshotProducer, base: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> list[ManifestFile]:
        """Merge manifests, newest first, of the same spec that fit together.

        Bins are filled from the oldest manifest on, so that full ones stay as they are; the bin of
        the newest manifest is not merged until it has enough manifests.
        """
        self.replaced = 0
        if not MANIFEST_MERGE.of(base.properties) or not manifests:
            return list(manifests)
        target = MANIFEST_TARGET_BYTES.of(base.properties)
        min_count = MANIFEST_MIN_COUNT.of(base.properties)
        by_spec: dict[int, list[ManifestFile]] = {}
        for manifest in manifests:
            by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
        out: list[ManifestFile] = []
        for spec_id in sorted(by_spec, reverse=True):
            if base.spec_by_id(spec_id).has_unknown_transform:
                out += by_spec[spec_id]  # the type of its values is unknown, too
                continue
            for group in _bins(by_spec[spec_id], target):
                newest = any(manifest is manifests[0] for manifest in group)
                if len(group) == 1 or (newest and len(group) < min_count):
                    out += group
                else:
                    out.append(self._merge(producer, base, spec_id, group))
        return out

    def discard(self) -> None:
        """Discard the manifests of earlier attempts, so that the next `apply` writes them again."""
        self._done = {}

    def _merge(
        self,
        producer: SnapshotProducer,
        base: TableMetadata,
        spec_id: int,
        group: Sequence[ManifestFile],
    ) -> ManifestFile:
        key = tuple(map(cache_key, group))
        merged = self._done.get(key)
        if merged is None:
            entries = _entries(producer, base, spec_id, self.content, group)
            (merged,) = producer.write_manifests(base, spec_id, entries, self.content, roll=False)
            self._done[key] = merged
        self.replaced += sum(m.added_snapshot_id != producer.snapshot_id for m in group)
        return merged


def _bins(manifests: Sequence[ManifestFile], target: int) -> list[list[ManifestFile]]:
    bins: list[list[ManifestFile]] = []
    weight = 0
    for manifest in reversed(manifests):
        if bins and weight + manifest.manifest_length <= target:
            bins[-1].append(manifest)
            weight += manifest.manifest_length
        else:
            bins.append([manifest])
            weight = manifest.manifest_length
    return [group[::-1] for group in reversed(bins)]


def _entries(
    producer: SnapshotProducer,
    base: TableMetadata,
    spec_id: int,
    content: ManifestContent,
    group: Iterable[ManifestFile],
) -> Iterator[EncodedEntry]:
    encoder = producer.entry_encoder(base, spec_id, content)
    decoded = read_each_columns(producer.io, group, base.spec_by_id, None, cache=None)
    for columns in joined(decoded):
        statuses = numbers_of(columns.column("status"))
        ids = numbers_of(columns.column("snapshot_id").fill_null(_NO_SNAPSHOT))
        own = ids == producer.snapshot_id
        # entries that an earlier snapshot deleted are of no use to this one
        rows = np.flatnonzero(own | (statuses != ManifestEntryStatus.DELETED.value))
        kept = np.where(own, statuses, ManifestEntryStatus.EXISTING.value).astype(np.int32)
        yield from encoder.encode(columns, rows, kept[rows])
