"""Scans: which ranges of which files Spark reads, with what constants and which rows left out."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import UnsupportedError
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.partition import PartitionSpec
from icecomb.format.scan.task import FileScanTask, plan_task_groups
from icecomb.format.schema import Schema
from icecomb.format.transform import IdentityTransform
from icecomb.spark.planner.hadoop_locations import HadoopLocations
from icecomb.spark.planner.predicates import row_filter
from icecomb.spark.planner.split_size import split_size
from icecomb.spark.planner.states import TableState, TableStates
from icecomb.spark.planner.values import value_to_json
from icecomb.spark.schema import FIELD_ID

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# read options of Iceberg's Spark integration that ask for other rows than the table's
_OTHER_ROWS: Final = (
    "snapshot-id",
    "as-of-timestamp",
    "branch",
    "tag",
    "start-snapshot-id",
    "end-snapshot-id",
    "start-timestamp",
    "end-timestamp",
)


class Scans:
    """The method of the protocol that plans a scan."""

    def __init__(self, states: TableStates) -> None:
        self._states = states

    def plan_scan(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: plan_scan.

        Raises:
            UnsupportedError: A data file is not Parquet, or where Spark cannot open it, or equality
                deletes apply to one; or a read option asks for other rows.
        """
        state = self._states.find(params["reference"])
        _check_options(state, params.get("options") or {})
        tasks = _tasks(state, params["filters"], case_sensitive=params["case_sensitive"])
        total = sum(task.file.file_size_in_bytes for task in tasks)
        size = split_size(
            state.metadata.properties, params.get("options") or {}, params["hints"], total
        )
        groups = plan_task_groups(tasks, size.target, size.lookback, size.open_cost)
        deletes = _Deletes(state, tasks)
        constants = _Constants(
            state, [field["metadata"][FIELD_ID] for field in params["schema"]["fields"]]
        )
        mapping = state.metadata.name_mapping()
        locations = HadoopLocations(state.io.properties)
        return {
            "partitions": [
                [_task_json(task, constants, deletes, locations) for task in group.tasks]
                for group in groups
            ],
            "deletes": deletes.encoded,
            "name_mapping": None if mapping is None else [f.to_json() for f in mapping.fields],
            "statistics": {
                "rows": sum(task.file.record_count for task in tasks) - deletes.count,
                "bytes": total,
            },
        }


def _check_options(state: TableState, options: Mapping[str, str]) -> None:
    for option in options:
        if option.lower() in _OTHER_ROWS:
            raise UnsupportedError(
                f"table {state.name}: the read option {option} is not there yet",
                hint="a snapshot, branch or tag is read with VERSION AS OF or the option "
                "versionAsOf, a time with TIMESTAMP AS OF or timestampAsOf",
                table=state.name,
            )


def _tasks(
    state: TableState, filters: Sequence[Mapping[str, Any]], *, case_sensitive: bool
) -> list[FileScanTask]:
    predicate = row_filter(filters, state.schema, case_sensitive=case_sensitive)
    tasks = list(state.scan().filter(predicate).plan_files())
    for task in tasks:
        _check(state, task)
    return tasks


def _check(state: TableState, task: FileScanTask) -> None:
    if task.file.file_format is not FileFormat.PARQUET:
        raise UnsupportedError(
            f"table {state.name} has {task.file.file_format.value} data files, "
            "Spark reads Parquet ones only here",
            hint="read it from Python, or rewrite it to Parquet",
            table=state.name,
            path=task.file.file_path,
        )
    if any(file.content is DataFileContent.EQUALITY_DELETES for file in task.delete_files):
        raise UnsupportedError(
            f"table {state.name} has equality deletes, which Spark cannot apply here yet",
            hint="compact the table with the engine that wrote them (rewrite_data_files)",
            table=state.name,
            path=task.file.file_path,
        )


def _task_json(
    task: FileScanTask, constants: _Constants, deletes: _Deletes, locations: HadoopLocations
) -> dict[str, Any]:
    file = task.file
    return {
        "path": locations.of(file.file_path),
        "start": task.start,
        "length": task.length,
        "size": file.file_size_in_bytes,
        "format": "parquet",
        "rows": file.record_count,
        "spec_id": file.spec_id,
        "constants": constants.of(file),
        "deletes": deletes.index(file),
    }


class _Constants:
    """Values of identity partition columns, from the manifest: files may lack the column."""

    def __init__(self, state: TableState, read_ids: Sequence[int]) -> None:
        self._schema: Schema = state.schema
        self._read_ids = frozenset(read_ids)
        self._specs = state.metadata.specs()
        self._sources: dict[int, list[tuple[int, int]]] = {}

    def of(self, file: DataFile) -> dict[str, Any]:
        """The constants of a file, by field id as text."""
        if file.spec_id not in self._sources:
            self._sources[file.spec_id] = self._identities(self._specs[file.spec_id])
        return {
            str(source): value_to_json(self._schema.find_type(source), file.partition[position])
            for position, source in self._sources[file.spec_id]
        }

    def _identities(self, spec: PartitionSpec) -> list[tuple[int, int]]:
        return [
            (position, field.source_id)
            for position, field in enumerate(spec.fields)
            if isinstance(field.transform, IdentityTransform) and field.source_id in self._read_ids
        ]


class _Deletes:
    """Deleted positions of the scan's files, encoded once a file."""

    def __init__(self, state: TableState, tasks: Sequence[FileScanTask]) -> None:
        self.encoded: list[str] = []
        self.count = 0
        # by identity: a task's parts share its file, and every file lives as long as the tasks
        self._index: dict[int, int] = {}
        if any(task.delete_files for task in tasks):
            self._read(state, tasks)

    def index(self, file: DataFile) -> int | None:
        """Where the deletes of a file are in `encoded`."""
        return self._index.get(id(file))

    def _read(self, state: TableState, tasks: Sequence[FileScanTask]) -> None:
        from icecomb.format.rows.position_delete import PositionDeletes

        reader = PositionDeletes(state.io)
        for task in tasks:
            positions = reader.of(task.file, task.delete_files) if task.delete_files else None
            if positions is not None:
                self._index[id(task.file)] = len(self.encoded)
                self.encoded.append(encode_positions(positions))
                self.count += len(positions)


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Sorted distinct positions as base64 of the compressed little-endian int64 differences."""
    import numpy as np

    deltas = np.diff(positions, prepend=np.int64(0)).astype("<i8")
    return base64.b64encode(zlib.compress(deltas.tobytes(), 1)).decode("ascii")
