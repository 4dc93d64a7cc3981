"""The base class of operations that add and remove files and merge manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import ZERO, scalar, texts
from icecomb.format.arrow.number_view import numbers_of, truths_of
from icecomb.format.errors import REPEATED_FILE, ValidationError
from icecomb.format.expressions.binding import ColumnNames
from icecomb.format.expressions.expression import BooleanExpression, disjunction
from icecomb.format.manifests.columns import ManifestColumns, cache_key, joined
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileIdentity,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import read_each_columns, read_manifest_columns
from icecomb.format.operation.conflict import History, PartitionPlaces, PartitionValues
from icecomb.format.operation.file_match import FileMatcher, Mask
from icecomb.format.operation.position_rule import VectorRule, check_delete_files, has_identity
from icecomb.format.operation.snapshot_producer import (
    ONTO_PARENT,
    SnapshotProducer,
    check_new_file,
    parent_manifests,
)
from icecomb.format.property.table_property import (
    MANIFEST_MERGE,
    MANIFEST_MIN_COUNT,
    MANIFEST_TARGET_BYTES,
)
from icecomb.format.rows.deletes.deletion_vector_writer import (
    DeletionVectorWriter,
    joined_vectors,
    several_targets,
)
from icecomb.format.rows.values.metadata_columns import filter_columns
from icecomb.format.spec.partition import partition_key
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.manifests.writer import EncodedEntry
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


_DATA, _DELETES = ManifestContent.DATA, ManifestContent.DELETES


class MergingProducer(SnapshotProducer):
    """An operation that adds files, removes files, and merges the resulting manifests.

    Args:
        stage_only: Add the snapshot to the table without moving the branch.
        schema: The schema whose column names row filters use; by default the table schema at
            the first attempt. The same columns are meant in every attempt.
    """

    _no_conflicting_data = False

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        stage_only: bool = False,
        case_sensitive: bool = True,
        schema: Schema | None = None,
    ) -> None:
        super().__init__(io, snapshot_properties, branch, stage_only=stage_only)
        self.case_sensitive = case_sensitive
        self._schema = schema
        self.added: dict[ManifestContent, dict[FileIdentity, DataFile]] = {_DATA: {}, _DELETES: {}}
        self.filters = {content: ManifestFilter(content) for content in ManifestContent}
        self.removed_data_files: dict[str, DataFile] = {}
        self._removals: Counter[str] = Counter()
        self.data_sequence_number: int | None = None
        self.delete_sequence_numbers: Mapping[str, int] = {}
        self._merges = {content: ManifestMerge(content) for content in ManifestContent}
        self._written: dict[ManifestContent, list[ManifestFile]] = {}
        self._written_version: int | None = None
        self._joined: tuple[DeletionVectorWriter, list[DataFile]] | None = None

    def name_columns_by(self, schema: Schema) -> None:
        """Set the schema whose column names row filters use, unless it is set already."""
        if self._schema is None:
            self._schema = schema

    def rows(self, base: TableMetadata, expression: BooleanExpression) -> BooleanExpression:
        """Return a row filter with the current names of its columns."""
        schema = base.schema()
        seen = filter_columns(self._schema or schema)
        return ColumnNames(seen, self.case_sensitive).now(expression, filter_columns(schema))

    def validate_from_snapshot(self, snapshot_id: int | None) -> Self:
        """Check for conflicts with commits since this snapshot; None for the whole history."""
        self.starting_snapshot_id = snapshot_id
        return self

    @property
    def adds_data_files(self) -> bool:
        """Whether data files are added."""
        return bool(self.added[_DATA])

    @property
    def adds_delete_files(self) -> bool:
        """Whether delete files are added."""
        return bool(self.added[_DELETES])

    @property
    def added_data_files(self) -> list[DataFile]:
        return list(self.added[_DATA].values())

    @property
    def added_vectors(self) -> list[DataFile]:
        """The deletion vectors that are added."""
        return [file for file in self.added[_DELETES].values() if file.is_deletion_vector]

    @property
    def removes_data_files(self) -> bool:
        """Whether data files are to be removed."""
        return self.filters[_DATA].removes_files

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:  # noqa: ARG002
        """Check that the new files fit the table."""
        self.name_columns_by(base.schema())
        if self.adds_delete_files:
            check_delete_files(base.format_version, self.added[_DELETES].values())
        if not self._written:
            for files in self.added.values():
                for file in files.values():
                    check_new_file(base, file)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        if self._written_version not in {None, base.format_version}:
            # manifests of version 1 have no sequence numbers
            self._discard()
        self._written_version = base.format_version
        parents = parent_manifests(self.io, base, parent)
        data = self.filters[_DATA].apply(self, base, [m for m in parents if m.content is _DATA])
        numbers = (m.min_sequence_number for m in data if m.has_live_files())
        oldest = min((n for n in numbers if n >= 0), default=base.last_sequence_number)
        if self.data_sequence_number is not None:
            oldest = min(oldest, self.data_sequence_number)
        rule = VectorRule()
        if base.format_version >= 3:  # older tables have no vectors
            rule = VectorRule(self.filters[_DATA].removed, self.added_vectors)
        deletes = self.filters[_DELETES].apply(
            self, base, [m for m in parents if m.content is _DELETES], oldest, rule
        )
        for content, found in self.filters.items():
            if missing := found.missing():
                self.since_start(base, parent).refuse_missing(missing, content)
        out: list[ManifestFile] = []
        for content, kept in ((_DATA, data), (_DELETES, deletes)):
            useful = [
                m for m in kept if m.has_live_files() or m.added_snapshot_id == self.snapshot_id
            ]
            new = self.new_manifests(base, content)
            out += self._merges[content].apply(self, base, [*new, *useful])
        return out

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        counts = self.new_summary(base)
        for content in ManifestContent:
            for file in self._added_files(base, content):
                counts.add_file(file, base.spec_by_id(file.spec_id))
        for found in self.filters.values():
            for file in found.removed:
                counts.remove_file(file, base.spec_by_id(file.spec_id))
        # on main, too: a commit there may be lost, or rolled back and picked
        onto_parent = self._no_conflicting_data and self.operation == Operation.APPEND
        return {**counts.to_map(), **({ONTO_PARENT: "true"} if onto_parent else {})}

    def replaced_manifest_count(self) -> int:
        filtered = sum(found.replaced for found in self.filters.values())
        return filtered + sum(merge.replaced for merge in self._merges.values())

    def clean_up(self, committed: TableMetadata | None) -> None:
        super().clean_up(committed)
        if committed is None:
            self._discard()
        if self._joined is not None and not self.is_committed and not self._written_manifests:
            self._joined[0].abort()
            self._joined = None

    def _discard(self) -> None:
        """Discard all written manifests, so that the next attempt writes them again."""
        self._written = {}
        for content in ManifestContent:
            self.filters[content].discard()
            self._merges[content].discard()

    def since_start(self, base: TableMetadata, parent: Snapshot | None) -> History:
        """Return the history since `validate_from_snapshot`."""
        start = self.starting_snapshot_id
        return History(self.io, base, parent, start)

    def new_manifests(self, base: TableMetadata, content: ManifestContent) -> list[ManifestFile]:
        """Return the manifests of the added files, which are written only once."""
        written = self._written.get(content)
        if written is None:
            by_spec: dict[int, list[DataFile]] = {}
            for file in self._added_files(base, content):
                by_spec.setdefault(file.spec_id, []).append(file)
            written = [
                manifest
                for spec_id, files in by_spec.items()
                for manifest in self.write_manifests(
                    base, spec_id, self._entries(content, files), content
                )
            ]
            self._written[content] = written
        return written

    def _added_files(self, base: TableMetadata, content: ManifestContent) -> list[DataFile]:
        """Return the files to add; of several vectors of a data file one with the rows of all.

        Iceberg Java writes it likewise (MergingSnapshotProducer.mergeDVs).
        """
        files = list(self.added[content].values())
        several = several_targets(files)
        if not several:
            return files
        if self._joined is None:
            for path, vectors in several.items():
                if any(one.file_path in self.delete_sequence_numbers for one in vectors):
                    raise ValidationError(
                        f"Cannot join two deletion vectors for data file {path}: one keeps a "
                        "sequence number of its own",
                        hint="Give one that deletes the rows of both.",
                        path=path,
                    )
            name = f"{self.commit_uuid}-joined-{self._attempt}"
            writer = DeletionVectorWriter(self.io, base, name)
            try:
                self._joined = writer, joined_vectors(self.io, writer, several)
            except BaseException:
                writer.abort()
                raise
        kept = (file for file in files if file.referenced_data_file not in several)
        return [*kept, *self._joined[1]]

    def _entries(
        self, content: ManifestContent, files: Iterable[DataFile]
    ) -> Iterable[ManifestEntry]:
        for file in files:
            number = (
                self.data_sequence_number
                if content is _DATA
                else self.delete_sequence_numbers.get(file.file_path)
            )
            yield ManifestEntry(
                status=ManifestEntryStatus.ADDED, sequence_number=number, data_file=file
            )

    def _remove(self, file: DataFile) -> None:
        content = _DATA if file.content is DataFileContent.DATA else _DELETES
        self.filters[content].remove_file(file)
        if content is _DATA:
            self.removed_data_files[file.file_path] = file
            self._removals[file.file_path] += 1

    def _refuse_others_removed(self) -> None:
        """Refuse to remove a data file that the table has more often than it was given."""
        there = Counter(file.file_path for file in self.filters[_DATA].removed)
        for path, given in self._removals.items():
            if there[path] > given:
                raise ValidationError(
                    f"Cannot replace file {path}: the table has it {there[path]} times, and rows "
                    f"of {given} were rewritten",
                    hint=REPEATED_FILE,
                    path=path,
                )

    def _require_removed(self) -> None:
        for found in self.filters.values():
            found.require_paths = True

    def _add(self, file: DataFile, content: ManifestContent) -> None:
        if (file.content is DataFileContent.DATA) is not (content is _DATA):
            wanted = "data" if content is _DATA else "deletes"
            raise ValidationError(
                f"File {file.file_path!r} does not hold {wanted}",
                hint="Name it among the files of its own content.",
                path=file.file_path,
            )
        if self._attempt:
            raise ValidationError(
                "Cannot change an operation that was applied already",
                hint="Begin another operation.",
            )
        self.added[content].setdefault(file.identity, file)


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
    io = producer.io.to_copy()
    decoded = read_each_columns(io, group, base.spec_by_id, None, cache=None)
    for columns in joined(decoded):
        statuses = numbers_of(columns.column("status"))
        ids = numbers_of(columns.column("snapshot_id").fill_null(_NO_SNAPSHOT))
        own = ids == producer.snapshot_id
        # entries that an earlier snapshot deleted are of no use to this one
        rows = np.flatnonzero(own | (statuses != ManifestEntryStatus.DELETED.value))
        kept = np.where(own, statuses, ManifestEntryStatus.EXISTING.value).astype(np.int32)
        yield from encoder.encode(columns, rows, kept[rows])


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
        # what is kept in memory may have been read through anybody's link
        complete = read_manifest_columns(producer.io.to_copy(), manifest, spec=spec, cache=None)
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
