"""Files written by Spark's tasks, as manifest entries."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFileContent, FileFormat
from icecomb.format.operation.snapshot_producer import WrittenWith
from icecomb.format.rows.values.data_metrics import (
    Metrics,
    MetricsConfig,
    MetricsKind,
    MetricsMode,
    bounds,
    ids_of_values,
    new_data_file,
)
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS, LINEAGE
from icecomb.format.rows.values.statistics import reliable_zeros
from icecomb.format.spec import single_value
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import PrimitiveType
from icecomb.spark.values import partition_types, value_from_json

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.protocol.scans import FileEntry
    from icecomb.spark.planner.protocol.writes import WriteState, WrittenFile

POSITION_DELETES: Final = Schema((DELETE_FILE_PATH, DELETE_FILE_POS))
"""The columns of position delete files."""

_LINEAGE: Final = frozenset(field.field_id for field in LINEAGE)
"""Columns whose metrics say nothing, as rows inherit a value where the file has none."""
_FULL: Final = MetricsMode(MetricsKind.FULL)


def metrics_modes(metadata: TableMetadata) -> dict[str, str]:
    """Return the metrics modes of columns other than none, by field id, for the writing tasks.

    They are stored with the write: its commit interprets the tasks' metrics by the same modes.
    """
    schema = metadata.schema()
    config = MetricsConfig.from_properties(metadata.properties, schema, metadata.sort_order())
    modes = {i: config.mode(i) for i in ids_of_values(schema)}
    return {str(i): str(mode) for i, mode in modes.items() if mode.kind is not MetricsKind.NONE}


def written_with(metadata: TableMetadata, write: WriteState) -> WrittenWith:
    """Return the schema and specs of a write's files, to compare with the current ones."""
    specs = map(PartitionSpec.from_json, write.specs)
    return WrittenWith(
        metadata.schema_by_id(write.schema_id), {spec.spec_id: spec for spec in specs}
    )


def data_files(
    metadata: TableMetadata, write: WriteState, files: Sequence[WrittenFile]
) -> list[DataFile]:
    """Return the data files of a write, as reported by tasks."""
    schema = metadata.schema_by_id(write.schema_id)
    spec = metadata.specs()[write.spec_id]
    types = [field.field_type for field in spec.partition_type(schema).fields]
    modes = {int(i): MetricsMode.parse(text) for i, text in write.metrics.items()}
    return [
        replace(
            new_data_file(
                _named(file.path, write),
                file.size,
                _metrics(file, schema, modes),
                spec,
                tuple(map(value_from_json, types, file.partition)),
                file_format=FileFormat(write.file_format.upper()),
            ),
            sort_order_id=write.sort_order_id,
            has_exact_bounds=True,
        )
        for file in files
    ]


def delete_file(
    metadata: TableMetadata,
    write: WriteState,
    file: WrittenFile,
    targets: Sequence[str],
    of: FileEntry,
) -> DataFile:
    """Return a new position delete file.

    Args:
        targets: The table's names of the data files that it applies to.
        of: One of them: all are in one partition.
    """
    types = partition_types(metadata, of.spec_id)
    made = new_data_file(
        _named(file.path, write),
        file.size,
        _metrics(file, POSITION_DELETES, dict.fromkeys(POSITION_DELETES.field_ids, _FULL)),
        metadata.spec_by_id(of.spec_id),
        tuple(map(value_from_json, types, of.partition)),
        file_format=FileFormat(str(write.delete_format).upper()),
    )
    only = targets[0] if len(targets) == 1 else None
    return replace(made, content=DataFileContent.POSITION_DELETES, referenced_data_file=only)


def _named(path: str, write: WriteState) -> str:
    """Return the table's name of a new file, if Spark was given another root."""
    told = write.told_root
    return write.root + path[len(told) :] if path.startswith(f"{told}/") else path


def _metrics(file: WrittenFile, schema: Schema, modes: Mapping[int, MetricsMode]) -> Metrics:
    found = Metrics(file.rows, {}, {}, {}, {}, {}, {}, file.split_offsets)
    for number, size, values, nulls, lower, upper, *nans in json.loads(file.columns):
        if number in _LINEAGE:
            continue
        kind = schema.find_type(number)
        found.column_sizes[number] = size
        if values is None or not isinstance(kind, PrimitiveType):
            continue
        found.value_counts[number] = values
        if nulls is not None:
            found.null_value_counts[number] = nulls
        if nans:
            found.nan_value_counts[number] = nans[0]
        limits = reliable_zeros(_bound(kind, lower), _bound(kind, upper))
        low, high = bounds(kind, *limits, modes[number])
        if low is not None:
            found.lower_bounds[number] = low
        if high is not None:
            found.upper_bounds[number] = high
    return found


def _bound(kind: PrimitiveType, encoded: str | None) -> Any:
    """Decode an internal value; None if it cannot be a bound."""
    if encoded is None:
        return None
    try:
        value = single_value.from_bytes(kind, base64.b64decode(encoded))
    except ValidationError:
        # Spark's strings may not be valid UTF-8
        return None
    return None if isinstance(value, float) and math.isnan(value) else value
