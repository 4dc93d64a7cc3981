"""Delete files that tasks read, and the data files they apply to."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.rows.deletes.equality_delete import ColumnPlaces
from icecomb.format.rows.deletes.position_delete import only_target
from icecomb.format.rows.deletes.vector_reader import check_stated_rows
from icecomb.format.spec.partition import partition_key
from icecomb.spark.planner.protocol.scans import (
    DeleteFile,
    DeletePlace,
    EqualityDeletes,
    KeyColumns,
    PositionDeleteFiles,
)
from icecomb.spark.schema import spark_struct

if TYPE_CHECKING:
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.files.planned_files import HadoopLocations
    from icecomb.spark.planner.table.states import TableState


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
