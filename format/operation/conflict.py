"""Conflicts of an operation with the commits of other writers since it began.

The rules are Iceberg Java's: only snapshots between the starting one and the head of the branch
count, only those whose operation can cause the conflict in question, and only manifests that those
snapshots added.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np

from icecomb.format.errors import ConflictError, ValidationError
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_each_list, read_manifests
from icecomb.format.operation.file_match import FileMatcher, Mask
from icecomb.format.scan.delete_index import DELETE_STATISTICS, DeleteFileIndex
from icecomb.format.spec.partition import partition_key
from icecomb.format.spec.single_value import range_from_bytes
from icecomb.format.spec.snapshot import Operation, ancestors_of
from icecomb.format.spec.types import PrimitiveType
from icecomb.format.spec.values.temporal import utc_moment
from icecomb.format.storage.location import linked_texts

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import PartitionFieldSummary
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


_COMMITS: Final = 3
_FILES: Final = 3
"""The number of commits and files to name; the others are only counted."""


class VectorConflictError(ConflictError):
    """Deleted rows have to be found again, because of what others did to their data files.

    Others deleted rows of the same data files, which need one deletion vector each, or upgraded the
    table, so that it has vectors, and its rows ids.
    """


class OutdatedError(ConflictError):
    """What a change left as it is has been changed by others: it has to be found again."""


def clash_error(
    what: str,
    found: Iterable[tuple[int | None, str]],
    table: TableMetadata,
    hint: str,
    kind: type[ConflictError] = ConflictError,
) -> ConflictError | None:
    """Return the error that says which commits, and which of their files, conflict with a change.

    None if there are no such files; `found` has each with the snapshot that added or removed it.
    """
    files: dict[int | None, list[str]] = {}
    for snapshot_id, path in found:
        files.setdefault(snapshot_id, []).append(path)
    if not files:
        return None
    snapshots = [table.snapshot_by_id(i) for i in files if i is not None]
    known = sorted((s for s in snapshots if s is not None), key=_age)
    described = [_described(each, files[each.snapshot_id]) for each in known[:_COMMITS]]
    rest = files.keys() - {each.snapshot_id for each in known[:_COMMITS]}
    count = sum(map(len, files.values()))
    if not known:
        described = [_some(sorted(path for paths in files.values() for path in paths))]
    elif rest:
        more = sum(len(files[each]) for each in rest)
        described.append(f"{len(rest)} more {_plural('commit', len(rest))}: {_counted(more)}")
    first = known[0].snapshot_id if known else next(iter(files))
    return kind(
        f"{what}: {'; '.join(described)}",
        hint=hint,
        snapshot_ids=tuple(each.snapshot_id for each in known),
        path=min(files[first]),
        file_count=count,
    )


def _described(snapshot: Snapshot, files: list[str]) -> str:
    facts = [snapshot.operation or "unknown operation", utc_moment(snapshot.timestamp_ms)]
    facts += writer_of(snapshot)
    name = f"snapshot {snapshot.snapshot_id} ({', '.join(facts)})"
    return f"{name}, {_counted(len(files))}: {_some(sorted(files))}"


def writer_of(snapshot: Snapshot) -> list[str]:
    """Return the engine and application that made a snapshot, as far as its summary says."""
    summary = snapshot.summary
    engine = " ".join(summary[key] for key in ("engine-name", "engine-version") if summary.get(key))
    application = (
        summary.get("app-id") or summary.get("spark.app.id") or summary.get("flink.job-id")
    )
    return [*([engine] if engine else []), *([f"application {application}"] if application else [])]


def _some(files: list[str]) -> str:
    more = len(files) - _FILES
    return ", ".join(files[:_FILES]) + (f" and {more} more" if more > 0 else "")


def _counted(number: int) -> str:
    return f"{number} {_plural('file', number)}"


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def _age(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number, snapshot.timestamp_ms


_ADDING_DATA: Final = frozenset((Operation.APPEND, Operation.OVERWRITE))
_ADDING_DELETES: Final = frozenset((Operation.OVERWRITE, Operation.DELETE))
_ADDING_FILE_DELETES: Final = _ADDING_DELETES | {Operation.REPLACE}
"""Converting equality deletes replaces them with position deletes, which replaced files lack."""
_REMOVING_ROWS: Final = frozenset((Operation.OVERWRITE, Operation.DELETE))
_REMOVING_DATA: Final = _REMOVING_ROWS | {Operation.REPLACE}
_KNOWN: Final = frozenset(Operation)
_REWRITING_DATA: Final = frozenset((Operation.OVERWRITE, Operation.REPLACE))


@dataclass(frozen=True)
class History:
    """The history of a branch since a snapshot (None: the whole history).

    Args:
        own: The ids of snapshots that the operation's own transaction has made.
    """

    io: FileIO
    base: TableMetadata
    parent: Snapshot | None
    start: int | None
    own: frozenset[int] = frozenset()

    @cached_property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots of others since the start, newest first."""
        if self.parent is None and self.start is not None:
            raise ValidationError(
                f"Cannot determine the history since snapshot {self.start}: it is not part of the "
                "branch any more",
                hint="Begin the operation again on the current snapshot.",
            )
        found: list[Snapshot] = []
        head = None if self.parent is None else self.parent.snapshot_id
        for at in ancestors_of(self.base, head):
            if at.snapshot_id == self.start:
                return self._of_others(found)
            found.append(at)
        if found and found[-1].parent_snapshot_id != self.start:
            raise ValidationError(
                "Cannot determine the history between the starting snapshot "
                f"{self.start} and the last known ancestor {found[-1].snapshot_id}",
                hint="Begin the operation again on the current snapshot.",
            )
        return self._of_others(found)

    def _of_others(self, found: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
        return tuple(each for each in found if each.snapshot_id not in self.own)

    def no_new_data(
        self,
        expression: BooleanExpression | None = None,
        partitions: Collection[PartitionValues] | None = None,
    ) -> None:
        """Refuse when data files were added that may hold matching rows, by current names."""
        self._refuse(
            f"Found conflicting files that can contain {_target(expression, partitions)}",
            self._files(_ADDING_DATA, ManifestStatus.ADDED_DATA, expression, partitions),
            "Load the table again, look at the new rows, and repeat the change.",
        )

    def no_removed_data(
        self,
        expression: BooleanExpression | None = None,
        partitions: Collection[PartitionValues] | None = None,
        *,
        ignore_rewrites: bool = False,
    ) -> None:
        """Refuse when data files were removed that may have held matching rows.

        Args:
            ignore_rewrites: Whether to accept that files were replaced by files with the same
                rows.
        """
        operations = _REMOVING_ROWS if ignore_rewrites else _REMOVING_DATA
        self._refuse(
            f"Found conflicting deleted files that can contain {_target(expression, partitions)}",
            self._files(operations, ManifestStatus.REMOVED_DATA, expression, partitions),
            "Load the table again, look at what was removed, and repeat the change.",
        )

    def no_new_deletes(
        self,
        expression: BooleanExpression | None = None,
        partitions: Collection[PartitionValues] | None = None,
    ) -> None:
        """Refuse when delete files were added that may apply to matching rows."""
        if self.base.format_version < 2:
            return
        self._refuse(
            "Found new conflicting delete files that can apply to "
            f"{_target(expression, partitions)}",
            self._files(_ADDING_DELETES, ManifestStatus.ADDED_DELETES, expression, partitions),
            "Load the table again, look at what was deleted, and repeat the change.",
        )

    def no_new_deletes_for(
        self,
        files: Collection[DataFile],
        *,
        ignore_equality_deletes: bool = False,
    ) -> None:
        """Refuse when delete files were added that apply to one of these data files.

        Args:
            ignore_equality_deletes: Whether only position deletes count, because the replacing
                files keep an old data sequence number.
        """
        if not files or self.base.format_version < 2:
            return
        clashes = []
        for owner, path, found in self._deletes_for(files):
            if not ignore_equality_deletes or found.content is DataFileContent.POSITION_DELETES:
                clashes.append((owner, f"{path} (deletes in {found.file_path})"))
        kind = "position delete" if ignore_equality_deletes else "delete"
        self._refuse(
            f"Cannot commit, found new {kind} for replaced data file",
            clashes,
            "Load the table again and repeat the change with the new deletes.",
        )

    def no_new_vectors(self, vectors: Collection[DataFile]) -> None:
        """Refuse when rows were deleted by position from data files that get deletion vectors.

        Isolation levels do not matter: a vector stands for all position deletes of its data file,
        so it would bring back the rows that others deleted since it was written.
        """
        if not vectors:
            return
        targets = [
            replace(vector, file_path=vector.referenced_data_file or "") for vector in vectors
        ]
        self._refuse(
            "Found concurrently added DV for data file",
            (
                (owner, f"{path} (deletes in {found.file_path})")
                for owner, path, found in self._deletes_for(targets)
                if found.content is DataFileContent.POSITION_DELETES
            ),
            "Load the table again and repeat the change: the other commit deleted rows of the same "
            "data file.",
            VectorConflictError,
        )

    def _deletes_for(
        self, files: Collection[DataFile]
    ) -> Iterator[tuple[int | None, str, DataFile]]:
        """Yield the data files among these that got deletes, with the snapshot and delete file.

        Delete files that were replaced since are included, too.
        """
        index = DeleteFileIndex()
        added: dict[str, int] = {}
        paths = {file.file_path for file in files}
        for columns, rows in self._added_deletes():
            spec = self.base.spec_by_id(columns.manifest.partition_spec_id)
            # history may hold several vectors of a data file, of which each replaced the other
            others = []
            owners = _owned(columns, rows)
            found = columns.without_statistics().data_files(rows)
            for row, (owner, path), file in zip(rows, owners, found, strict=True):
                if not file.is_deletion_vector:
                    others.append(row)
                    added[path] = owner
                elif (target := file.referenced_data_file) in paths:
                    yield owner, target or "", file
            if others:
                index.add(columns, others, unpartitioned=spec.is_unpartitioned)
        number = self._start_sequence_number()
        for file in files if index else ():
            for one in index.files_for_data_file(number, index_key(file), file.file_path):
                yield added.get(one.file_path), file.file_path, one

    def files_exist(
        self,
        paths: Collection[str],
        *,
        ignore_deletes: bool = False,
        kind: type[ConflictError] = ConflictError,
    ) -> None:
        """Refuse when another commit removed one of these data files.

        Args:
            ignore_deletes: Whether to accept that a `delete` snapshot removed them.
        """
        if not paths:
            return
        operations = _REWRITING_DATA if ignore_deletes else _REMOVING_DATA
        self._refuse(
            "Cannot commit, missing data files",
            self._removed(operations, ManifestStatus.REMOVED_DATA, paths),
            "Load the table again and repeat the change.",
            kind,
        )

    def added(self, paths: Collection[str]) -> frozenset[str]:
        """Return those of these data files that others added, even if they existed before."""
        names, properties = list(paths), self.io.properties
        known = self._files(_KNOWN, ManifestStatus.ADDED_DATA, None, None)
        there = set(linked_texts((path for _, path in known), properties))
        plain = linked_texts(names, properties)
        pairs = zip(names, plain, strict=True)
        return frozenset(name for name, plain in pairs if plain in there)

    def refuse_missing(self, paths: Collection[str], content: ManifestContent) -> None:
        """Raise ConflictError for missing files to remove, naming the commits that removed them."""
        kind = (content, ManifestEntryStatus.DELETED)
        removed: dict[str, int | None] = dict.fromkeys(paths)
        # removals before the known history, or on another branch, are not reported
        with suppress(ValidationError):
            removed.update((path, owner) for owner, path in self._removed(_KNOWN, kind, paths))
        self._refuse(
            "Missing required files to delete, they are not in the table any more",
            [(owner, path) for path, owner in removed.items()],
            "Load the table again, plan its files, and repeat the change.",
        )

    def _refuse(
        self,
        what: str,
        found: Iterable[tuple[int | None, str]],
        hint: str,
        kind: type[ConflictError] = ConflictError,
    ) -> None:
        error = clash_error(what, found, self.base, hint, kind)
        if error is not None:
            raise error

    def _removed(
        self,
        operations: Collection[str],
        kind: tuple[ManifestContent, ManifestEntryStatus],
        paths: Collection[str],
    ) -> Iterator[tuple[int, str]]:
        wanted = frozenset(paths)
        for owner, path in self._files(operations, kind, None, None):
            if path in wanted:
                yield owner, path

    def _start_sequence_number(self) -> int:
        snapshot = None if self.start is None else self.base.snapshot_by_id(self.start)
        return 0 if snapshot is None else snapshot.sequence_number

    def _manifests(
        self, operations: Collection[str], content: ManifestContent
    ) -> Iterator[ManifestFile]:
        # only its manifests show what an operation of an unknown name did
        chosen = [
            snapshot
            for snapshot in self.snapshots
            if snapshot.operation in operations or snapshot.operation not in _KNOWN
        ]
        lists = read_each_list(self.io, chosen, partial(read_manifests, self.io))
        for snapshot, listed in zip(chosen, lists, strict=True):
            # a list of format version 1 may not say who added a manifest; its entries do
            owners = {None, snapshot.snapshot_id}
            for manifest in listed:
                if manifest.content is content and manifest.added_snapshot_id in owners:
                    yield manifest

    def _added_deletes(self) -> Iterator[tuple[ManifestColumns, list[int]]]:
        manifests = self._manifests(_ADDING_FILE_DELETES, ManifestContent.DELETES)
        return self._rows(
            manifests, ManifestEntryStatus.ADDED, None, None, statistics=DELETE_STATISTICS
        )

    def _files(
        self,
        operations: Collection[str],
        kind: tuple[ManifestContent, ManifestEntryStatus],
        expression: BooleanExpression | None,
        partitions: Collection[PartitionValues] | None,
    ) -> Iterator[tuple[int, str]]:
        """Yield the files that were added or removed, each with the snapshot that did it."""
        content, status = kind
        manifests = self._manifests(operations, content)
        for columns, rows in self._rows(manifests, status, expression, partitions):
            yield from _owned(columns, rows)

    def _rows(
        self,
        manifests: Iterable[ManifestFile],
        status: ManifestEntryStatus,
        expression: BooleanExpression | None,
        partitions: Collection[PartitionValues] | None,
        *,
        statistics: Collection[str] = (),
    ) -> Iterator[tuple[ManifestColumns, list[int]]]:
        """Yield the entries of manifests that got this status from one of `snapshots`."""
        matcher = FileMatcher(
            self.io,
            self.base,
            AlwaysTrue() if expression is None else expression,
        )
        ids = {snapshot.snapshot_id for snapshot in self.snapshots}
        for columns in matcher.read(filter(matcher.might_contain, manifests), statistics):
            statuses = columns.column("status").to_numpy(zero_copy_only=False)
            owners = columns.column("snapshot_id").to_pylist()
            chosen: Mask = (statuses == status.value) & np.fromiter(
                (owner in ids for owner in owners), bool, len(owners)
            )
            if chosen.any() and expression is not None:
                might, _ = matcher.match(columns)
                chosen &= might
            if chosen.any() and partitions is not None:
                spec_id = columns.manifest.partition_spec_id
                wanted = {partition_key(values) for spec, values in partitions if spec == spec_id}
                keys = map(partition_key, columns.partition_tuples())
                chosen &= np.fromiter((key in wanted for key in keys), bool, len(columns))
            if chosen.any():
                yield columns, np.flatnonzero(chosen).tolist()


class ManifestStatus:
    """The manifest content and entry status that show each kind of change."""

    ADDED_DATA: Final = (ManifestContent.DATA, ManifestEntryStatus.ADDED)
    REMOVED_DATA: Final = (ManifestContent.DATA, ManifestEntryStatus.DELETED)
    ADDED_DELETES: Final = (ManifestContent.DELETES, ManifestEntryStatus.ADDED)


def index_key(file: DataFile) -> tuple[Any, ...]:
    """Return a file's partition as the key that `DeleteFileIndex` uses."""
    values: Iterable[Any] = partition_key(file.partition)
    return (file.spec_id, *(v.bytes if isinstance(v, UUID) else v for v in values))


def _owned(columns: ManifestColumns, rows: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield the files of these rows, each with the snapshot of its entry."""
    owners = columns.column("snapshot_id").take(rows).to_pylist()
    yield from zip(owners, columns.column("file_path").take(rows).to_pylist(), strict=True)


def _target(
    expression: BooleanExpression | None, partitions: Collection[PartitionValues] | None
) -> str:
    if partitions is not None:
        return "records of the replaced partitions"
    return f"records matching {expression if expression is not None else 'true'}"


PartitionValues = tuple[int, tuple[Any, ...]]
"""A partition: the id of its spec, and its values."""


class PartitionPlaces:
    """Partitions whose files are looked for in manifests."""

    def __init__(self, base: TableMetadata, partitions: Iterable[PartitionValues]) -> None:
        self._base = base
        self._by_spec: dict[int, list[tuple[Any, ...]]] = {}
        for spec_id, values in partitions:
            self._by_spec.setdefault(spec_id, []).append(values)

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may hold a file of one of the partitions."""
        partitions = self._by_spec.get(manifest.partition_spec_id)
        if not partitions:
            return False
        spec = self._base.spec_by_id(manifest.partition_spec_id)
        fields = spec.partition_type(self._base.schema_of(spec)).fields
        summaries = manifest.partitions
        if summaries is None or len(summaries) != len(fields):
            return True
        ranges = [
            _Range(field.field_type, summary)
            for field, summary in zip(fields, summaries, strict=True)
        ]
        return any(
            len(values) != len(ranges)
            or all(found.may_hold(value) for found, value in zip(ranges, values, strict=True))
            for values in partitions
        )


class _Range:
    """The values of one partition field in a manifest."""

    def __init__(self, kind: Any, summary: PartitionFieldSummary) -> None:
        self._summary = summary
        self._bounds: tuple[Any, Any] | None = None
        low, high = summary.lower_bound, summary.upper_bound
        # Bounds are missing for a reason: there are only nulls and NaNs.
        self._is_empty = low is None and bool(summary.contains_null or summary.contains_nan)
        if isinstance(kind, PrimitiveType):
            # unknown, too, where they are of the type that the column had before it was changed
            self._bounds = range_from_bytes(kind, low, high)

    def may_hold(self, value: Any) -> bool:
        if value is None:
            return self._summary.contains_null
        if isinstance(value, float) and math.isnan(value):
            return self._summary.contains_nan is not False
        if self._bounds is None:
            return not self._is_empty
        low, high = self._bounds
        try:
            return bool(low <= value <= high)
        except TypeError:
            return True
