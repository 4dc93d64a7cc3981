"""Rewriting manifests, so that a scan reads fewer of them; the table keeps its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icecomb.format.arrow.row_selection import RowNumbers
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.columns import ManifestColumns, cache_key, joined
from icecomb.format.manifests.entry_spill import EntrySpill
from icecomb.format.manifests.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import (
    read_each_columns,
)
from icecomb.format.operation.snapshot_producer import (
    ROLL_EVERY,
    SnapshotProducer,
    parent_manifests,
)
from icecomb.format.property.table_property import MANIFEST_TARGET_BYTES
from icecomb.format.spec.change.update import Changes
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_AT_ONCE: Final = 1000
"""The number of files to hold as Python objects at a time."""


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """The result of one attempt.

    Attributes:
        entries: The number of live files in the old ones, by content.
    """

    replaced: Mapping[str, ManifestFile]
    created: tuple[ManifestFile, ...]
    entries: Counter[ManifestContent]
    version: int


class RewriteManifests(SnapshotProducer):
    """A replacement of manifests by others that hold the same live files.

    By default, the entries of all manifests are sorted by partition and written to manifests of
    about `commit.manifest.target-size-bytes`. Files keep their snapshot ids and sequence numbers;
    if nothing can be improved, no snapshot is made.
    """

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
    ) -> None:
        super().__init__(io, snapshot_properties, branch)
        self._key: Callable[[DataFile], Hashable] | None = None
        self._predicate: Callable[[ManifestFile], bool] | None = None
        self._order: tuple[str, ...] = ()
        self._done = _Rewritten({}, (), Counter(), 0)

    def cluster_by(self, key: Callable[[DataFile], Hashable]) -> Self:
        """Write the files of each key to separate manifests, instead of sorting by partition."""
        self._key = key
        return self

    def sort_by(self, fields: Iterable[str]) -> Self:
        """Sort by these partition fields in this order, instead of by all of them."""
        self._order = tuple(fields)
        return self

    def rewrite_if(self, predicate: Callable[[ManifestFile], bool]) -> Self:
        """Rewrite only the manifests for which the predicate is true."""
        self._predicate = predicate
        return self

    @property
    def operation(self) -> str:
        """The operation `replace`."""
        return Operation.REPLACE

    def apply(self, base: TableMetadata) -> Changes:
        """Return the changes of the rewrite; there are none if nothing can be improved."""
        parent = self._parent(base)
        self._draw_id(base)
        self.validate(base, parent)
        self._rewrite(base, parent_manifests(self.io, base, parent))
        if not self._done.replaced:
            return Changes((), ())
        return super().apply(base)

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Refuse nothing: the manifests are those of the newest snapshot."""

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        self._check_live(self._done.created)
        kept = parent_manifests(self.io, base, parent)
        gone = self._done.replaced
        return [*self._done.created, *(m for m in kept if m.manifest_path not in gone)]

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        return {
            "entries-processed": str(self._done.entries.total()),
            **self.new_summary(base).to_map(),
        }

    def replaced_manifest_count(self) -> int:
        return len(self._done.replaced)

    def created_manifest_count(self) -> int:
        """Return the number of manifests that take the place of the replaced ones."""
        return len(self._done.created)

    def clean_up(self, committed: TableMetadata | None) -> None:
        super().clean_up(committed)
        if committed is None:
            self._done = _Rewritten({}, (), Counter(), 0)

    def _rewrite(self, base: TableMetadata, parents: Sequence[ManifestFile]) -> None:
        """Write the new manifests, unless those of an earlier attempt still fit."""
        # A manifest of the same transaction inherits another sequence number in each attempt.
        present = set(map(cache_key, parents))
        done = set(map(cache_key, self._done.replaced.values()))
        # manifests of version 1 have no sequence numbers
        if done and done <= present and self._done.version == base.format_version:
            return
        replaced: dict[str, ManifestFile] = {}
        created: list[ManifestFile] = []
        entries: Counter[ManifestContent] = Counter()
        for (content, spec_id), group in self._groups(base, parents).items():
            with EntrySpill() as spill:
                for order in self._clusters(base, content, spec_id, group, spill):
                    for part in self._parts(base, order, group, spill):
                        found = spill.entries(part)
                        created += self.write_manifests(base, spec_id, found, content)
                entries[content] += len(spill)
            replaced.update((manifest.manifest_path, manifest) for manifest in group)
        self._done = _Rewritten(replaced, tuple(created), entries, base.format_version)

    def _groups(
        self, base: TableMetadata, parents: Iterable[ManifestFile]
    ) -> dict[tuple[ManifestContent, int], list[ManifestFile]]:
        """Return the manifests to rewrite, by content and partition spec."""
        groups: dict[tuple[ManifestContent, int], list[ManifestFile]] = {}
        for manifest in parents:
            if base.spec_by_id(manifest.partition_spec_id).has_unknown_transform:
                continue  # the type of its values is unknown, too
            wanted = self._predicate is None or self._predicate(manifest)
            if wanted:
                key = (manifest.content, manifest.partition_spec_id)
                groups.setdefault(key, []).append(manifest)
        if self._key is None:
            target = MANIFEST_TARGET_BYTES.of(base.properties)
            groups = {key: found for key, found in groups.items() if _improvable(found, target)}
        return groups

    def _clusters(
        self,
        base: TableMetadata,
        content: ManifestContent,
        spec_id: int,
        group: Iterable[ManifestFile],
        spill: EntrySpill,
    ) -> Iterator[RowNumbers]:
        """Yield the live entries of some manifests, one array of rows per cluster."""
        encoder = self.entry_encoder(base, spec_id, content)
        clusters: dict[Hashable, int] = {}
        cluster_of: list[RowNumbers] = []
        io = self.io.to_copy()
        decoded = read_each_columns(io, group, base.spec_by_id, None, cache=None)
        for columns in joined(decoded):
            rows = np.flatnonzero(columns.live.to_numpy(zero_copy_only=False))
            statuses = np.full(len(rows), ManifestEntryStatus.EXISTING.value, np.int32)
            spill.add(encoder.encode(columns, rows, statuses))
            keys = (clusters.setdefault(key, len(clusters)) for key in self._keys(columns, rows))
            cluster_of.append(np.fromiter(keys, np.int64, len(rows)))
        if self._key is None:
            yield self._sorted(spill, self._sorted_by(base, spec_id))
            return
        found = np.concatenate(cluster_of)
        order = np.argsort(found, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(found[order])) + 1)

    def _parts(
        self,
        base: TableMetadata,
        order: RowNumbers,
        group: Iterable[ManifestFile],
        spill: EntrySpill,
    ) -> list[RowNumbers]:
        """Return sorted entries in parts of about the target size, where these have few entries.

        Of others, `write_manifests` finds out while it writes them how large they become.
        """
        before = sum(manifest.manifest_length for manifest in group)
        size = min(before, spill.nbytes)
        parts = min(-(-size // MANIFEST_TARGET_BYTES.of(base.properties)), len(order))
        if self._key is not None or parts < 2 or -(-len(order) // parts) >= ROLL_EVERY:
            return [order]
        return np.array_split(order, parts)

    @staticmethod
    def _sorted(spill: EntrySpill, places: list[int]) -> RowNumbers:
        """Return the rows of all entries, sorted by some partition fields."""
        keys = [_sortable(partition[i] for i in places) for partition in spill.partitions]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        rank_of = np.array([ranks[key] for key in keys], np.int64)
        return np.argsort(rank_of[spill.partition_of], kind="stable")

    def _sorted_by(self, base: TableMetadata, spec_id: int) -> list[int]:
        """Return the positions of the partition fields to sort by."""
        names = [field.name for field in base.spec_by_id(spec_id).fields]
        if missing := [name for name in self._order if name not in names]:
            raise ValidationError(
                f"Partition spec {spec_id} has no field {', '.join(missing)} to sort by",
                hint=f"Its fields: {', '.join(names) or 'none'}.",
            )
        return [names.index(name) for name in self._order or names]

    def _keys(self, columns: ManifestColumns, rows: RowNumbers) -> Iterator[Hashable]:
        """Yield the cluster key of each of some entries."""
        if self._key is None:
            yield from repeat(None, len(rows))
            return
        for start in range(0, len(rows), _AT_ONCE):
            for file in columns.data_files(rows[start : start + _AT_ONCE].tolist()):
                yield self._key(file)

    def _check_live(self, new: Iterable[ManifestFile]) -> None:
        before, after = self._done.entries, _live_counts(new)
        if before != after:
            raise ValidationError(
                "The new manifests must hold as many live files as those they replace: "
                f"{_described(after)} instead of {_described(before)}",
                hint="Write every live entry of the replaced manifests to exactly one new one.",
            )


def _live_counts(manifests: Iterable[ManifestFile]) -> Counter[ManifestContent]:
    """Return the numbers of live files in manifests whose counts are their own."""
    counts: Counter[ManifestContent] = Counter()
    for manifest in manifests:
        live = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
        counts[manifest.content] += live
    return counts


def _improvable(manifests: Sequence[ManifestFile], target: int) -> bool:
    if len(manifests) > 1:
        return True
    (manifest,) = manifests
    return manifest.manifest_length > target or manifest.has_deleted_files()


def _sortable(partition: Iterable[Any]) -> tuple[tuple[int, Any], ...]:
    """Convert partition values to comparable ones: nulls first, NaN last."""
    return tuple(
        (0, 0) if value is None else (1, value) if value == value else (2, 0)  # noqa: PLR0124
        for value in partition
    )


def _described(counts: Mapping[ManifestContent, int]) -> str:
    data, deletes = counts[ManifestContent.DATA], counts[ManifestContent.DELETES]
    return f"{data} data files and {deletes} delete files"
