"""Conversion of equality deletes to position deletes: the rows that they delete are looked up once.

An equality delete file applies to older data files (spec: Scan Planning) of its partition or, if
its spec has no fields, of all partitions. For each key, only the newest file that has it matters: a
row of an older data file is deleted, whichever other files delete the same key. So all keys of a
group that are about one partition, or about all, form one set of keys with their ages, and each
data file is read once, only its key columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.cancellation import check_wanted
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.maintenance.file_group import RewriteGroup, ordered
from icecomb.format.maintenance.live_files import LiveDelete, check_once, live_deletes
from icecomb.format.maintenance.rewritten_deletes import RewrittenDeletes
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileIdentity, ManifestFile
from icecomb.format.operation.conflict import index_key
from icecomb.format.rows.deletes.deletion_vector_writer import DeletionVectorWriter, OlderDeletes
from icecomb.format.rows.deletes.equality_delete import KeySet, compared_columns, read_keys
from icecomb.format.rows.deletes.position_delete import PositionDeletes, Positions
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import IS_DELETED, ROW_POSITION
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.scan_planner import ScanPlanner
from icecomb.format.spec.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Collection

    from icecomb.format.maintenance.rewrite_options import PackingOptions
    from icecomb.format.scan.delete_index import DeleteFileIndex, PartitionKey
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

KEYS_AT_ONCE: Final = 1 << 22
"""The number of keys to hold in memory; for more, data files are read again."""
POSITIONS_AT_ONCE: Final = 1 << 24
_About: TypeAlias = "tuple[PartitionKey, tuple[int, ...]]"
"""The scope of equality deletes, see `_scope`, and the columns that they compare."""
_MATCHED: Final = Schema((IS_DELETED, ROW_POSITION))


@dataclass(frozen=True, slots=True)
class ReachedFile:
    """A data file, of an age (data sequence number), to which equality deletes apply."""

    task: FileScanTask
    age: int
    deletes: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class EqualityGroup(RewriteGroup[LiveDelete]):
    """A group of the equality delete files for one partition, or of those for all partitions.

    Attributes:
        data: All data files to which one of them applies.
    """

    data: tuple[ReachedFile, ...]


def plan_conversion(
    io: FileIO,
    metadata: TableMetadata,
    head: Snapshot,
    chosen: Collection[str],
    options: PackingOptions,
) -> list[EqualityGroup]:
    """Plan the groups of the chosen equality delete files, in the order of conversion."""
    planner = ScanPlanner(metadata, io, metadata.schema(), AlwaysTrue())
    manifests, index = planner.live(head)
    scopes: dict[PartitionKey, list[LiveDelete]] = {}
    for delete in live_deletes(io, metadata, manifests):
        if delete.file.content is DataFileContent.EQUALITY_DELETES and delete.file_path in chosen:
            scopes.setdefault(_scope(delete), []).append(delete)
    if () in scopes and metadata.format_version >= 3:
        # a data file gets one vector, whichever deletes apply to it
        scopes = {(): [delete for deletes in scopes.values() for delete in deletes]}
    scope_of = {delete.file_path: key for key, deletes in scopes.items() for delete in deletes}
    data: dict[PartitionKey, list[ReachedFile]] = {key: [] for key in scopes}
    for one in reached_files(planner, manifests if scopes else (), index, scope_of):
        own: dict[PartitionKey, list[DataFile]] = {}
        for file in one.deletes:
            own.setdefault(scope_of[file.file_path], []).append(file)
        for key, files in own.items():
            data[key].append(ReachedFile(one.task, one.age, tuple(files)))
    # positions name a file by its path: in a newer entry, or one of another partition, they would
    # delete rows, too
    paths = {one.task.file_path for reached in data.values() for one in reached}
    check_once(io, metadata, manifests, pa.array(paths, pa.string()))
    groups = [
        EqualityGroup(
            deletes[0].file.partition,
            tuple(deletes),
            sum(delete.file_size_in_bytes for delete in deletes),
            1,
            options.target_bytes,
            tuple(data[key]),
        )
        for key, deletes in scopes.items()
    ]
    return ordered(groups, options.job_order)


def reached_files(
    planner: ScanPlanner,
    manifests: Sequence[ManifestFile],
    index: DeleteFileIndex,
    chosen: Collection[str],
) -> Iterator[ReachedFile]:
    """Yield the data files of manifests to which the chosen equality deletes apply.

    The planner must be one for all files, and the index have all deletes of the snapshot.
    """
    for selected in planner.selected(manifests, index):
        ages = selected.column("sequence_number").fill_null(0).to_pylist()
        for task, age in zip(planner.tasks(selected, index), ages, strict=True):
            deletes = tuple(file for file in task.delete_files if file.file_path in chosen)
            if deletes:
                yield ReachedFile(task, age, deletes)


def _scope(delete: LiveDelete) -> PartitionKey:
    """Return the partition that an equality delete file is about; () if it is about all."""
    return () if delete.is_global else index_key(delete.file)


class _NewerKeys:
    """A set of keys, with the newest delete file that has each."""

    def __init__(
        self,
        field_ids: tuple[int, ...],
        parts: Sequence[Mapping[int, pa.Array]],
        numbers: Sequence[int],
    ) -> None:
        columns = {
            field_id: pa.chunked_array([part[field_id] for part in parts]).combine_chunks()
            for field_id in field_ids
        }
        self.keys = KeySet(field_ids, [columns[field_id] for field_id in field_ids])
        counts = [len(part[field_ids[0]]) for part in parts]
        self._newest = np.full(self.keys.count, -1, np.int64)
        np.maximum.at(self._newest, self.keys.places(columns), np.repeat(numbers, counts))

    def from_number(self, number: int) -> _KeysFrom:
        """Return the keys of delete files whose sequence number is at least `number`."""
        return _KeysFrom(self.keys, self._newest, number)


@dataclass(frozen=True, slots=True)
class _KeysFrom:
    """The keys in a set that some delete file with at least a given sequence number has."""

    keys: KeySet
    newest: npt.NDArray[np.int64]
    number: int

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The ids of the columns that are compared."""
        return self.keys.field_ids

    def contains(self, arrays: Mapping[int, pa.Array]) -> pa.BooleanArray:
        places = self.keys.places(arrays)
        return pa.array((places >= 0) & (self.newest[np.maximum(places, 0)] >= self.number))


@dataclass(frozen=True, slots=True)
class _Round:
    """The keys that are in memory at once, by the partition and the columns that they are about.

    Attributes:
        numbers: The scope and the data sequence number of the delete files that have some of them,
            by path.
    """

    keys: Mapping[_About, _NewerKeys]
    numbers: Mapping[str, tuple[PartitionKey, int]]

    def of(self, delete_files: Sequence[DataFile]) -> list[_KeysFrom]:
        """Return the keys that these files delete, all of which apply to one data file.

        These are all newer than it, except those whose bounds exclude all its rows: the oldest
        determines from which age on keys delete its rows.
        """
        oldest: dict[_About, int] = {}
        for file in delete_files:
            scope, number = self.numbers[file.file_path]
            about = scope, compared_columns(file)
            oldest[about] = min(oldest.get(about, number), number)
        return [self.keys[about].from_number(number) for about, number in oldest.items()]


class EqualityConverter:
    """A converter that finds the rows which groups of equality delete files delete.

    Args:
        operation_id: The common part of the names of new files.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, operation_id: str) -> None:
        self._io = io = io.to_copy()
        self._metadata = metadata
        self._operation_id = operation_id
        self._deleted = PositionDeletes(io)

    def rewrite(self, number: int, group: EqualityGroup, workers: int) -> RewrittenDeletes:
        """Write the positions of the rows that a group deletes, if not yet deleted by position.

        If anything fails, the written files are removed.
        """
        ages = {one.task.file_path: one.age for one in group.data}
        if self._metadata.format_version >= 3:
            return self._to_vectors(number, group, workers, ages)
        files: list[DataFile] = []
        parts = 0

        def new_writer() -> PositionDeleteWriter:
            nonlocal parts
            parts += 1
            name = f"{self._operation_id}-{number}-{parts}"
            return PositionDeleteWriter(self._io, self._metadata, name, target=group.split_size)

        try:
            for keys in self._rounds(group):
                self._convert(group.data, keys, workers, new_writer, files)
        except BaseException:
            self._io.discard([file.file_path for file in files])
            raise
        return RewrittenDeletes(group, tuple(files), None, ages)

    def _to_vectors(
        self, number: int, group: EqualityGroup, workers: int, ages: Mapping[str, int]
    ) -> RewrittenDeletes:
        """Write vectors of the data files that lose rows, with those deleted before."""
        writer = DeletionVectorWriter(self._io, self._metadata, f"{self._operation_id}-{number}")
        older = OlderDeletes(self._io)
        replaced: dict[FileIdentity, DataFile] = {}
        try:
            for keys in self._rounds(group):
                for one, positions in self._found(group.data, keys, workers):
                    everything, own = older.joined(one.task, positions)
                    replaced |= {file.identity: file for file in own}
                    writer.add(one.task.file, everything)
            files = writer.close()
        except BaseException:
            writer.abort()
            raise
        return RewrittenDeletes(group, tuple(files), None, ages, tuple(replaced.values()))

    def _convert(
        self,
        data: Iterable[ReachedFile],
        keys: _Round,
        workers: int,
        new_writer: Callable[[], PositionDeleteWriter],
        files: list[DataFile],
    ) -> None:
        """Write the positions of rows with some keys; finished files are added to `files`."""
        writer, held = new_writer(), 0
        try:
            for one, positions in self._found(data, keys, workers):
                writer.add(one.task.file, positions)
                held += len(positions)
                if held > POSITIONS_AT_ONCE:
                    files += writer.close()
                    writer, held = new_writer(), 0
            files += writer.close()
        except BaseException:
            writer.abort()
            raise

    def _found(
        self, data: Iterable[ReachedFile], keys: _Round, workers: int
    ) -> Iterator[tuple[ReachedFile, Positions]]:
        """Yield the positions of rows with some keys that are not deleted by position, by file."""
        # once the deletes are gone, a wrong value can no longer be noticed
        scan = ArrowScan(self._metadata, self._io, _MATCHED, workers=1, checksums=True, keys=keys)
        producers = (partial(self._matches, scan, one, keys) for one in data)
        for found in stream(producers, workers):
            check_wanted()
            yield found

    def _matches(
        self, scan: ArrowScan, one: ReachedFile, keys: _Round
    ) -> Iterator[tuple[ReachedFile, Positions]]:
        deletes = tuple(file for file in one.deletes if file.file_path in keys.numbers)
        if not deletes:
            return
        file = one.task.file
        found: list[Positions] = []
        for batch in scan.read(FileScanTask(file, deletes, spec=one.task.spec)):
            positions = batch.column(1).filter(batch.column(0))
            found.append(np.asarray(positions, np.int64))
        if not any(map(len, found)):
            return
        before = self._deleted.of(
            file,
            [f for f in one.task.delete_files if f.content is DataFileContent.POSITION_DELETES],
        )
        positions = np.concatenate(found)
        if before is not None:
            positions = np.setdiff1d(positions, before, assume_unique=True)
        if len(positions):
            yield one, positions

    def _rounds(self, group: EqualityGroup) -> Iterator[_Round]:
        """Yield the keys of a group, a bounded number at a time."""
        if not group.data:
            return
        grouped: dict[_About, list[LiveDelete]] = {}
        for delete in group.tasks:
            about = _scope(delete), compared_columns(delete.file)
            grouped.setdefault(about, []).append(delete)
        waiting: dict[_About, list[tuple[Mapping[int, pa.Array], int]]] = {}
        numbers: dict[str, tuple[PartitionKey, int]] = {}
        count = 0
        for (scope, ids), deletes in grouped.items():
            for delete in deletes:
                for arrays in read_keys(self._io, self._metadata, ids, delete.file):
                    check_wanted()
                    waiting.setdefault((scope, ids), []).append((arrays, delete.number))
                    numbers[delete.file_path] = scope, delete.number
                    count += len(arrays[ids[0]])
                    if count >= KEYS_AT_ONCE:
                        yield _round(waiting, numbers)
                        waiting, numbers, count = {}, {}, 0
        if waiting:
            yield _round(waiting, numbers)


def _round(
    waiting: Mapping[_About, Sequence[tuple[Mapping[int, pa.Array], int]]],
    numbers: Mapping[str, tuple[PartitionKey, int]],
) -> _Round:
    keys = {
        about: _NewerKeys(
            about[1], [arrays for arrays, _ in parts], [number for _, number in parts]
        )
        for about, parts in waiting.items()
    }
    return _Round(keys, numbers)
