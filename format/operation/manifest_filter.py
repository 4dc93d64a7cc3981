"""Removing files from manifests: a manifest that holds such a file is rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import ZERO, texts
from icecomb.format.arrow.number_view import numbers_of, truths_of
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import BooleanExpression, disjunction
from icecomb.format.manifests.columns import ManifestColumns, cache_key
from icecomb.format.manifests.manifest import (
    DataFile,
    FileIdentity,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import read_each_columns, read_manifest_columns
from icecomb.format.operation.file_match import FileMatcher, Mask
from icecomb.format.operation.partition_place import PartitionPlaces, PartitionValues
from icecomb.format.operation.position_rule import VectorRule, has_identity
from icecomb.format.spec.partition import partition_key

if TYPE_CHECKING:
    from icecomb.format.operation.merging import MergingProducer
    from icecomb.format.spec.metadata import TableMetadata

_Key = tuple[Any, ...]

_DELETED = ManifestEntryStatus.DELETED.value
_EXISTING = ManifestEntryStatus.EXISTING.value

_MOST_PLACES = 1000
"""The most partitions to check summaries for; files of more are looked for in all manifests."""


@dataclass(frozen=True, slots=True)
class _Filtered:
    manifest: ManifestFile
    removed: tuple[DataFile, ...]


class ManifestFilter:
    """The removals of one operation from the manifests of one content.

    Attributes:
        expression: A filter that removes the files whose every row matches; None removes none.
            It does not concern specs of which there are `partitions`.
        hint: The way on where a file holds rows that match and others.
        require_paths: Whether to refuse the commit if one of `paths` does not exist.
        removed: The files that the last `apply` removed.
        replaced: The number of manifests that the last `apply` rewrote.
    """

    def __init__(self, content: ManifestContent) -> None:
        self.content = content
        self.paths: set[str] = set()
        self.vectors: set[FileIdentity] = set()
        self._places: set[PartitionValues] | None = set()
        self.partitions: set[PartitionValues] = set()
        self.expression: BooleanExpression | None = None
        self.hint = "rewrite the file without the rows, or delete the rows by a delete file"
        self.require_paths = False
        self.removed: list[DataFile] = []
        self.replaced = 0
        # A manifest of the same transaction inherits another sequence number in each attempt.
        self._done: dict[_Key, _Filtered] = {}
        self._schema_id: int | None = None
        self._oldest = 0
        self._rule = VectorRule()

    @property
    def removes_files(self) -> bool:
        """Whether there is anything to remove."""
        named = self.paths or self.vectors or self.partitions
        return bool(named or self.expression is not None)

    def remove_file(self, file: DataFile | str) -> None:
        """Remove a file, given as a `DataFile` or by its path.

        The partition of a `DataFile` is known, so that most manifests need not be read.
        """
        if isinstance(file, DataFile) and file.is_deletion_vector:
            self.vectors.add(file.identity)
        else:
            self.paths.add(file if isinstance(file, str) else file.file_path)
        if isinstance(file, str):
            self._places = None
        elif self._places is not None:
            self._places.add((file.spec_id, file.partition))

    def add_expression(self, expression: BooleanExpression) -> None:
        """Also remove the files whose every row matches."""
        known = () if self.expression is None else (self.expression,)
        self.expression = disjunction((*known, expression))

    def apply(
        self,
        producer: MergingProducer,
        base: TableMetadata,
        manifests: Sequence[ManifestFile],
        min_sequence_number: int = 0,
        rule: VectorRule | None = None,
    ) -> list[ManifestFile]:
        """Return the manifests without the removed files, reusing those of earlier attempts.

        Args:
            min_sequence_number: Delete files with a lower number apply to no data file any
                more, and are dropped when their manifest is rewritten.
            rule: The rule for deletion vectors; by default, only those given are removed.
        """
        self.removed, self.replaced = [], 0
        rule = rule or VectorRule()
        if not self.removes_files and not rule:
            return list(manifests)
        # older data than at the last attempt, after a rollback, needs older deletes
        if self._schema_id != base.current_schema_id or min_sequence_number < self._oldest:
            self._done = {}
        self._schema_id, self._oldest = base.current_schema_id, min_sequence_number
        self._rule = rule
        matcher = self._matcher(producer, base)
        places = None
        if self._places is not None and len(self._places) + len(rule.places) <= _MOST_PLACES:
            places = PartitionPlaces(base, self._places | rule.places)
        given = (producer, base, matcher, manifests, min_sequence_number)
        out = self._filtered(*given, places=places)
        if places is not None and self._not_found():
            # the table may track a file with other partition values than the caller's
            out = self._filtered(*given, places=None)
        return out

    def _filtered(
        self,
        producer: MergingProducer,
        base: TableMetadata,
        matcher: FileMatcher | None,
        manifests: Sequence[ManifestFile],
        min_sequence_number: int,
        *,
        places: PartitionPlaces | None,
    ) -> list[ManifestFile]:
        self.removed, self.replaced = [], 0
        out = []
        chosen: dict[_Key, tuple[ManifestFile, FileMatcher | None]] = {}
        by_partition = {spec_id for spec_id, _ in self.partitions}
        for manifest in manifests:
            if cache_key(manifest) not in self._done and manifest.has_live_files():
                by_filter = (
                    matcher is not None
                    and manifest.partition_spec_id not in by_partition
                    and matcher.might_contain(manifest)
                )
                if by_filter or self._may_name(manifest, places):
                    chosen[cache_key(manifest)] = manifest, matcher if by_filter else None

        def statistics(manifest: ManifestFile) -> tuple[str, ...]:
            active = chosen[cache_key(manifest)][1]
            return () if active is None else active.statistics

        looked_at = [manifest for manifest, _ in chosen.values()]
        found_in = read_each_columns(producer.io, looked_at, base.spec_by_id, statistics)
        for (key, (manifest, active)), columns in zip(chosen.items(), found_in, strict=True):
            self._done[key] = self._filter(
                producer,
                base,
                active,
                manifest,
                columns,
                min_sequence_number=min_sequence_number,
            )
        for manifest in manifests:
            found = self._done.get(cache_key(manifest))
            if found is None:
                out.append(manifest)
            else:
                out.append(found.manifest)
                self.removed += found.removed
                self.replaced += found.manifest is not manifest and bool(found.removed)
        return out

    def _may_name(self, manifest: ManifestFile, places: PartitionPlaces | None) -> bool:
        """Return whether a file to remove by its path or partition may be in a manifest."""
        named = self.paths or self.vectors or self._rule
        if named and (places is None or places.may_hold(manifest)):
            return True
        return any(spec_id == manifest.partition_spec_id for spec_id, _ in self.partitions)

    def discard(self) -> None:
        """Discard the manifests of earlier attempts, so that the next `apply` writes them again."""
        self._done = {}

    def _matcher(self, producer: MergingProducer, base: TableMetadata) -> FileMatcher | None:
        if self.expression is None:
            return None
        return FileMatcher(producer.io, base, producer.rows(base, self.expression))

    def _filter(
        self,
        producer: MergingProducer,
        base: TableMetadata,
        matcher: FileMatcher | None,
        manifest: ManifestFile,
        columns: ManifestColumns,
        *,
        min_sequence_number: int,
    ) -> _Filtered:
        nothing = _Filtered(manifest, ())
        spec = base.spec_by_id(manifest.partition_spec_id)
        live = truths_of(columns.live)
        remove = self._named(columns) & live
        if matcher is not None:
            remove |= self._matching(columns, matcher, live & ~remove)
        if self._rule:
            remove |= live & self._rule.left_alone(columns)
            self._rule.check_once(columns, live & ~remove)
        if not remove.any():
            return nothing
        if self.content is ManifestContent.DELETES:
            remove |= live & _older(columns, min_sequence_number)
        complete = read_manifest_columns(producer.io, manifest, spec=spec)
        statuses = np.where(remove, _DELETED, _EXISTING).astype(np.int32)[live]
        encoder = producer.entry_encoder(base, manifest.partition_spec_id, self.content)
        (rewritten,) = producer.write_manifests(
            base,
            manifest.partition_spec_id,
            encoder.encode(complete, np.flatnonzero(live), statuses),
            self.content,
            roll=False,
        )
        gone = complete.data_files(np.flatnonzero(remove).tolist())
        return _Filtered(rewritten, tuple(gone))

    def _named(self, columns: ManifestColumns) -> Mask:
        named = np.zeros(len(columns), dtype=bool)
        if self.paths:
            found = pc.is_in(columns.column("file_path"), value_set=texts(sorted(self.paths)))
            named |= truths_of(found)
        if self.vectors:
            named |= has_identity(columns, self.vectors)
        spec_id = columns.manifest.partition_spec_id
        partitions = {partition_key(values) for spec, values in self.partitions if spec == spec_id}
        if partitions:
            keys = map(partition_key, columns.partition_tuples())
            named |= np.fromiter((key in partitions for key in keys), bool, len(columns))
        return named

    def _matching(self, columns: ManifestColumns, matcher: FileMatcher, rows: Mask) -> Mask:
        might, must = matcher.match(columns)
        partly = np.flatnonzero(rows & might & ~must)
        if len(partly) and self.content is ManifestContent.DATA:
            path = columns.column("file_path")[int(partly[0])].as_py()
            raise ValidationError(
                f"Cannot remove file {path}: some, but not all, of its rows may match "
                f"{self.expression}",
                hint=self.hint,
                path=path,
            )
        found: Mask = rows & must & might
        return found

    def missing(self) -> list[str]:
        """Return the files that must be removed but were not found by the last `apply`."""
        return self._not_found() if self.require_paths else []

    def _not_found(self) -> list[str]:
        paths = self.paths - {file.file_path for file in self.removed}
        vectors = self.vectors - {file.identity for file in self.removed}
        return sorted(paths | {path for path, _, _ in vectors})


def _older(columns: ManifestColumns, min_sequence_number: int) -> Mask:
    numbers = numbers_of(columns.column("sequence_number").fill_null(ZERO))
    older: Mask = (numbers > 0) & (numbers < min_sequence_number)
    return older
