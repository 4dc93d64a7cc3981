"""Files of a plan and their delete files, described to Spark's tasks page by page."""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ConfigurationError, CorruptFileError, UnsupportedError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.rows.deletes.deletion_vector import check_stated_rows
from icecomb.format.rows.deletes.equality_delete import ColumnPlaces
from icecomb.format.rows.deletes.position_delete import PositionDeletes, only_target
from icecomb.format.rows.values.metadata_columns import LINEAGE, PARTITION
from icecomb.format.rows.values.scan_task import FileScanTask, ScanTaskGroup
from icecomb.format.spec.partition import PartitionSpec, partition_key
from icecomb.format.spec.transform import IdentityTransform
from icecomb.spark.planner.protocol.scans import (
    DeleteEntry,
    DeleteFile,
    DeletePlace,
    EqualityDeletes,
    FileEntry,
    FileRange,
    KeyColumns,
    PlannedFile,
    PlanScan,
    PositionDeleteFiles,
    ScanPage,
)
from icecomb.spark.planner.table.states import TableState
from icecomb.spark.planner.table.tables import PartitionValues
from icecomb.spark.schema import spark_struct
from icecomb.spark.values import partition_types, value_to_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.types import IcebergType
    from icecomb.format.storage.file_io import FileIO

MOST_POSITIONS: Final = 1 << 20
"""Some MiB of plan: beyond that, tasks read the delete files themselves, once per executor."""

CHANGED_ROWS: Final = "rows"
"""The `changes` of a request that deletes rows by position."""

_UNKNOWN: Final = -1
"""The row count of a part of a file."""
_PAGE_MEMBERS: Final = 2_000
_PAGE_CHARACTERS: Final = 1 << 20


def _is_last(task: FileScanTask) -> bool:
    return task.start + task.length >= task.file_size_in_bytes


class PlannedFiles:
    """The files of a plan, each listed once even if it is read in several parts.

    Only what has not been returned as a page is held, and the index of a file that is read in
    parts, until its last part is added. `on_hdfs` says whether a file is stored on HDFS.

    Args:
        positions: The deleted positions that are sent with the plan.
        split_size: Bytes of the parts into which files are split.
    """

    def __init__(
        self, state: TableState, request: PlanScan, positions: PositionsOfFiles, split_size: int
    ) -> None:
        self.positions = positions
        self._metadata = state.metadata
        self._split_size = split_size
        self._has_entries = request.changes is not None
        self._locations = HadoopLocations(state.io)
        self._delete_files = ReadDeleteFiles(state, self._locations)
        self._constants = _Constants(state, request.field_ids)
        asked = PARTITION.field_id in request.field_ids
        self._partitions = PartitionValues(state.metadata, state.scan().schema()) if asked else None
        by_position = request.changes == CHANGED_ROWS
        self._delete_places = DeletePlaces(state.metadata) if by_position else None
        self._types: dict[int, list[IcebergType]] = {}
        # by identity: pending parts keep their file alive
        self._parts: dict[int, _Parts] = {}
        self._count = 0
        self._files: list[PlannedFile] = []
        self._groups: list[tuple[FileRange, ...]] = []
        self._keys: list[tuple[Any, ...]] = []
        self.on_hdfs = False
        self._members = 0
        self._sent = (0, 0)

    def begun(self, tasks: Iterable[FileScanTask]) -> Iterator[FileScanTask]:
        """Pass on the tasks of whole files, noting those that will be split."""
        for task in tasks:
            lengths = [part.length for part in task.split(self._split_size)]
            if len(lengths) > 1:
                self._parts[id(task.file)] = _Parts(sum(lengths))
            yield task

    def add(self, group: ScanTaskGroup, key: tuple[Any, ...]) -> None:
        """Add parts of files that one task reads, and its grouping key."""
        self._groups.append(tuple(map(self._range, group.tasks)))
        if key:
            self._keys.append(key)
        self._members += len(group.tasks)

    @property
    def has_page(self) -> bool:
        """Whether enough has been added for a page."""
        return self._members >= _PAGE_MEMBERS or self.positions.characters >= _PAGE_CHARACTERS

    def page(self) -> ScanPage:
        """Return what has been added since the last page."""
        files, keys = self._sent
        page = ScanPage(
            files=tuple(self._files),
            partitions=tuple(self._groups),
            deletes=self.positions.page(),
            delete_files=tuple(self._delete_files.files[files:]),
            keys=tuple(self._delete_files.keys[keys:]),
            grouping_keys=tuple(self._keys),
        )
        self._files, self._groups, self._keys, self._members = [], [], [], 0
        self._sent = len(self._delete_files.files), len(self._delete_files.keys)
        return page

    def _range(self, task: FileScanTask) -> FileRange:
        key = id(task.file)
        parts = self._parts.get(key)
        if parts is None:
            rows = task.file.record_count
            return FileRange(self._add(task), task.start, task.length, _is_last(task), rows)
        if parts.number is None:
            parts.number = self._add(task)
        parts.missing -= task.length
        if not parts.missing:
            del self._parts[key]
        return FileRange(parts.number, task.start, task.length, _is_last(task), _UNKNOWN)

    def _add(self, task: FileScanTask) -> int:
        self._files.append(self._planned(task))
        self._count += 1
        return self._count - 1

    def _planned(self, task: FileScanTask) -> PlannedFile:
        file = task.file
        path = self._locations.of(file.file_path)
        self.on_hdfs = self.on_hdfs or path.startswith("hdfs:")
        by_value = self._delete_files.by_value(task)
        compared = (i for d in by_value for i in self._delete_files.keys[d.keys].field_ids)
        return PlannedFile(
            path=path,
            format=file.file_format.value.lower(),
            spec_id=file.spec_id,
            constants=self._constants.of(file, compared),
            deletes=self.positions.of(task),
            position_delete_files=(
                self._delete_files.by_position(task) if self.positions.too_many else None
            ),
            equality_deletes=by_value,
            partition=None if self._partitions is None else self._partitions.of(file),
            entry=self._entry(task) if self._has_entries else None,
            delete_place=self._delete_places.of(task, path) if self._delete_places else None,
        )

    def _entry(self, task: FileScanTask) -> FileEntry:
        file = task.file
        if file.spec_id not in self._types:
            self._types[file.spec_id] = partition_types(self._metadata, file.spec_id)
        return FileEntry(
            path=file.file_path,
            spec_id=file.spec_id,
            partition=tuple(map(value_to_json, self._types[file.spec_id], file.partition)),
            rows=file.record_count,
            size=file.file_size_in_bytes,
            has_deletes=bool(task.delete_files),
            own_deletes=tuple(
                DeleteEntry(f.file_path, f.record_count, f.file_size_in_bytes)
                for f in (self._delete_places.own(task) if self._delete_places else ())
            ),
        )


class _Parts:
    """A file whose parts are not all in the plan yet."""

    __slots__ = ("missing", "number")

    def __init__(self, missing: int) -> None:
        self.missing = missing
        self.number: int | None = None


class _Constants:
    """Values from the manifest: of identity partition columns, and what rows inherit."""

    def __init__(self, state: TableState, read_ids: Sequence[int]) -> None:
        self._state = state
        self._read_ids = frozenset(read_ids)
        self._specs = state.metadata.specs()
        self._sources: dict[int, list[tuple[int, int]]] = {}

    def of(self, file: DataFile, more: Iterable[int] = ()) -> dict[str, Any]:
        """Return the constants of a file, by field id as text.

        Args:
            more: Ids of further columns that are read; they may have been dropped.
        """
        if file.spec_id not in self._sources:
            self._sources[file.spec_id] = _identities(self._specs[file.spec_id])
        wanted = self._read_ids.union(more)
        return self._lineage(file) | {
            str(source): value_to_json(self._type(source), file.partition[position])
            for position, source in self._sources[file.spec_id]
            if source in wanted
        }

    def _lineage(self, file: DataFile) -> dict[str, Any]:
        """Return what rows inherit for which the file states no lineage."""
        first = file.first_row_id
        # without ids, rows have no lineage at all
        values = first, None if first is None else file.sequence_number
        inherited = zip(LINEAGE, values, strict=True)
        return {str(f.field_id): value for f, value in inherited if f.field_id in self._read_ids}

    def _type(self, field_id: int) -> IcebergType:
        schema = self._state.schema
        if not schema.contains(field_id):
            schema = self._state.metadata.schema_with(field_id)
        return schema.find_type(field_id)


def _identities(spec: PartitionSpec) -> list[tuple[int, int]]:
    return [
        (position, field.source_id)
        for position, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform)
    ]


class PositionsOfFiles:
    """Deleted positions of a scan's files, encoded once per file unless they are too many."""

    def __init__(self, state: TableState, tasks: Collection[FileScanTask]) -> None:
        self.count = 0
        self.characters = 0
        self._encoded: list[str] = []
        self._arrays = 0
        files = {f.identity: f.record_count for task in tasks for f in position_delete_files(task)}
        self.too_many = sum(files.values()) > MOST_POSITIONS
        self._reader: PositionDeletes | None = None
        if files and not self.too_many:
            self._reader = PositionDeletes(state.io)

    def of(self, task: FileScanTask) -> int | None:
        """Return the index of the positions of a task's file; None if none are deleted."""
        files = position_delete_files(task) if self._reader is not None else []
        positions = self._reader.of(task.file, files) if self._reader and files else None
        return None if positions is None else self._keep(positions)

    def _keep(self, positions: npt.NDArray[np.int64]) -> int:
        text = encode_positions(positions)
        self._encoded.append(text)
        self.characters += len(text)
        self.count += len(positions)
        self._arrays += 1
        return self._arrays - 1

    def page(self) -> tuple[str, ...]:
        """Return the positions added since the last page, in the order of their indices."""
        encoded, self._encoded, self.characters = self._encoded, [], 0
        return tuple(encoded)


def decode_positions(text: str) -> npt.NDArray[np.int64]:
    """Decode what `encode_positions` returns."""
    import numpy as np

    return np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8"), dtype=np.int64)


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Encode sorted distinct positions: base64 of compressed little-endian int64 differences."""
    import numpy as np

    deltas = np.diff(positions, prepend=np.int64(0)).astype("<i8")
    return base64.b64encode(zlib.compress(deltas.tobytes(), 1)).decode("ascii")


_WEB: Final = ("webhdfs:", "swebhdfs:")


class HadoopLocations:
    """Conversion of `webhdfs://` to `hdfs://`: Spark's shaded client cannot open the former.

    Args:
        io: The table's file access; what it does not serve is not given to Spark, whose file
            systems would send requests to any web server, too.
    """

    def __init__(self, io: FileIO) -> None:
        self._io = io

    def of(self, location: str) -> str:
        """Return the location to give to Spark; UnsupportedError if no file system serves it."""
        self._io.served_by(location)
        if not location[:9].lower().startswith(_WEB):
            return location
        from icecomb.format.storage.hdfs.address import rpc_location

        try:
            return rpc_location(location, self._hadoop)
        except ConfigurationError as error:
            raise UnsupportedError(
                f"Spark cannot open {location}: it reads HDFS by hdfs:// only, and the settings "
                "do not say which hdfs:// address this cluster has",
                hint=error.hint,
                path=location,
            ) from error

    @cached_property
    def _hadoop(self) -> dict[str, str]:
        from icecomb.format.storage.hdfs.address import hadoop_properties

        return hadoop_properties(self._io.properties)


class ReadDeleteFiles:
    """Delete files that tasks read, each listed once."""

    def __init__(self, state: TableState, locations: HadoopLocations) -> None:
        self.files: list[DeleteFile] = []
        self.keys: list[KeyColumns] = []
        self._state = state
        self._locations = locations
        self._numbers: dict[tuple[str, int | None, int | None], int] = {}
        self._key_numbers: dict[tuple[int, ...], int] = {}

    def by_value(self, task: FileScanTask) -> tuple[EqualityDeletes, ...]:
        """Return the equality deletes that apply to a task's file."""
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for file in task.delete_files:
            if file.content is not DataFileContent.EQUALITY_DELETES:
                continue
            if not file.equality_ids:
                raise CorruptFileError(
                    f"Equality delete file {file.file_path} does not say what it compares",
                    hint="The metadata is damaged: read an older snapshot.",
                    path=file.file_path,
                )
            groups[tuple(sorted(file.equality_ids))].append(self._number(file))
        return tuple(
            EqualityDeletes(self._key_number(ids), tuple(sorted(files)))
            for ids, files in groups.items()
        )

    def by_position(self, task: FileScanTask) -> PositionDeleteFiles | None:
        """Return the position deletes of a task's file; None if it has none.

        Raises:
            CorruptFileError: If a deletion vector is said to delete more rows than there are.
        """
        found = position_delete_files(task)
        for file in found:
            if file.is_deletion_vector:
                check_stated_rows(file, task.file.record_count)
        files = tuple(map(self._number, found))
        return PositionDeleteFiles(task.file.file_path, files) if files else None

    def _number(self, file: DataFile) -> int:
        number = self._numbers.get(file.identity)
        if number is None:
            number = self._numbers[file.identity] = len(self.files)
            self.files.append(
                DeleteFile(
                    path=self._locations.of(file.file_path),
                    format=file.file_format.value.lower(),
                    rows=file.record_count,
                    offset=file.content_offset,
                    length=file.content_size_in_bytes,
                )
            )
        return number

    def _key_number(self, ids: tuple[int, ...]) -> int:
        number = self._key_numbers.get(ids)
        if number is None:
            number = self._key_numbers[ids] = len(self.keys)
            columns = ColumnPlaces(ids, (), self._state.metadata).extra
            self.keys.append(KeyColumns(ids, spark_struct(columns)))
        return number


def position_delete_files(task: FileScanTask) -> list[DataFile]:
    """Return the position delete files of a task, or its deletion vector."""
    return [f for f in task.delete_files if f.content is DataFileContent.POSITION_DELETES]


def own_deletes(task: FileScanTask) -> list[DataFile]:
    """Return the position delete files of a task that apply to no other data file."""
    path = task.file.file_path
    return [f for f in position_delete_files(task) if only_target(f) == path]


class DeletePlaces:
    """Targets of position deletes: each goes into the partition of its data file."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._known: dict[tuple[Any, ...], tuple[int, str]] = {}

    def own(self, task: FileScanTask) -> list[DataFile]:
        """Return the position delete files that a statement's new ones replace.

        Deletion vectors replace what the commit finds.
        """
        return own_deletes(task) if self._metadata.format_version < 3 else []

    def of(self, task: FileScanTask, spark_path: str) -> DeletePlace:
        """Return the target for the deletes of the whole file of a task."""
        file = task.file
        key = (file.spec_id, *partition_key(file.partition))
        if key not in self._known:
            spec = self._metadata.spec_by_id(file.spec_id)
            folder = spec.partition_to_path(file.partition, self._metadata.schema_of(spec))
            self._known[key] = len(self._known), f"{folder}/" if folder else ""
        number, folder = self._known[key]
        return DeletePlace(
            file=None if spark_path == file.file_path else file.file_path,
            partition=number,
            folder=folder,
            has_own=bool(self.own(task)),
        )
