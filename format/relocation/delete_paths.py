"""Delete files by position, which name the data files that they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.deletes.deletion_vector import REFERENCED_DATA_FILE
from icecomb.format.rows.deletes.position_delete import Positions, positions_by_path
from icecomb.format.rows.deletes.puffin_file import PuffinReader, PuffinWriter
from icecomb.format.rows.values.data_metrics import MetricsConfig, MetricsKind, MetricsMode
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.rows.write.file_options import delete_properties, load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO

Moved = Callable[[str], str]

_SCHEMA: Final = Schema((DELETE_FILE_PATH, DELETE_FILE_POS))
_ARROW: Final = schema_to_pyarrow(_SCHEMA, include_field_ids=False)
_FULL: Final = MetricsMode(MetricsKind.FULL)
_METRICS: Final = MetricsConfig(modes={field.field_id: _FULL for field in _SCHEMA.fields})
_ROWS: Final = 1 << 18
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_CHANGED: Final = (*_BOUNDS, "column_sizes")


@dataclass(frozen=True, slots=True)
class ChangedDeletes:
    """A delete file that names other data files, as its manifest describes it.

    Attributes:
        members: Values of its `data_file` that changed: its size, split offsets and metrics.
        offsets: New offsets of the deletion vectors in it, by the old ones.
    """

    members: Mapping[str, Any]
    offsets: Mapping[int, int]


def described(record: Mapping[str, Any], location: str) -> DataFile:
    """Return what `changed_deletes` needs of the `data_file` of a delete file's record."""
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat(record["file_format"]),
        record_count=record["record_count"],
        file_size_in_bytes=record["file_size_in_bytes"],
    )


def changed_deletes(
    io: FileIO, file: DataFile, moved: Moved, properties: Mapping[str, str]
) -> tuple[bytes, ChangedDeletes]:
    """Return a delete file, or a file of deletion vectors, with other paths of data files.

    The stated length of `file` may be wrong: Iceberg Java up to 1.11 left that of the original in
    the manifests of tables that it copied. The column `row` of some writers is not copied.
    """
    old = io.read(file.file_path)
    if file.file_format is FileFormat.PUFFIN:
        return _changed_vectors(old, file.file_path, moved)
    options = load_file_options(file.file_format.value.lower(), delete_properties(properties))
    settings = FileSettings(_SCHEMA, options, _METRICS, content=DataFileContent.POSITION_DELETES)
    stream = BytesIO()
    writer = settings.options.open(stream, settings)
    found = positions_by_path(_ReadFile(old), replace(file, file_size_in_bytes=len(old)))
    for group in _row_groups(found, moved):
        writer.write(group)
    metrics = writer.close()
    content = stream.getvalue()
    return content, ChangedDeletes(
        {
            "file_size_in_bytes": len(content),
            "split_offsets": list(metrics.split_offsets or ()) or None,
            **{name: getattr(metrics, name) for name in _CHANGED},
        },
        {},
    )


class _ReadFile(FileIO):
    """A file in memory, whose readers need no requests of their own."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def open_input(self, location: str, size: int | None = None) -> pa.NativeFile:  # noqa: ARG002
        return pa.BufferReader(self._content)


def _row_groups(found: Mapping[str, Positions], moved: Moved) -> Iterator[list[pa.RecordBatch]]:
    """Yield positions by data file, sorted by its new path as the specification has it."""
    group: list[pa.RecordBatch] = []
    rows = 0
    by_path = sorted(((moved(path), path) for path in found), key=lambda pair: pair[0].encode())
    for target, path in by_path:
        positions = np.sort(found[path])
        for start in range(0, len(positions), _ROWS):
            part = pa.array(positions[start : start + _ROWS], pa.int64())
            paths = pa.repeat(pa.scalar(target, pa.string()), len(part))
            group.append(pa.RecordBatch.from_arrays([paths, part], schema=_ARROW))
            rows += len(part)
            if rows >= _ROWS:
                yield group
                group, rows = [], 0
    if group:
        yield group


def change_record(
    record: dict[str, Any], changed: ChangedDeletes | None, moved: Callable[[str], str | None]
) -> None:
    """Change the `data_file` of a position delete file in place, but for its path.

    Args:
        changed: The new delete file; None for one that the snapshot does not have any more.
        moved: Function for the new path of a data file; None if it is not moved.
    """
    referenced = record.get("referenced_data_file")
    if referenced is not None:
        record["referenced_data_file"] = moved(referenced) or referenced
    if changed is None:
        _move_bounds(record, moved)
        return
    for name, value in changed.members.items():
        if record.get(name) is not None:
            record[name] = _like(record[name], value) if name in _CHANGED else value
    offset = record.get("content_offset")
    if offset is not None:
        record["content_offset"] = changed.offsets.get(offset, offset)


def _changed_vectors(content: bytes, path: str, moved: Moved) -> tuple[bytes, ChangedDeletes]:
    reader = PuffinReader(content, path)
    stream = BytesIO()
    writer = PuffinWriter(stream)
    offsets = {}
    for blob in reader.blobs:
        properties = dict(blob.properties)
        if REFERENCED_DATA_FILE in properties:
            properties[REFERENCED_DATA_FILE] = moved(properties[REFERENCED_DATA_FILE])
        new = writer.add(
            reader.content(blob),
            blob.type,
            blob.fields,
            properties,
            snapshot_id=blob.snapshot_id,
            sequence_number=blob.sequence_number,
        )
        offsets[blob.offset] = new.offset
    size = writer.finish()
    return stream.getvalue(), ChangedDeletes({"file_size_in_bytes": size}, offsets)


def _move_bounds(record: dict[str, Any], moved: Callable[[str], str | None]) -> None:
    """Move the bounds of the path column, or drop them where they are not whole paths."""
    bounds = {name: _pairs(record.get(name)) for name in _BOUNDS}
    paths = [values.get(DELETE_FILE_PATH.field_id) for values in bounds.values()]
    new = [None if path is None else moved(path.decode(errors="replace")) for path in paths]
    for (name, values), target in zip(bounds.items(), new, strict=True):
        values.pop(DELETE_FILE_PATH.field_id, None)
        if None not in new and target is not None:
            values[DELETE_FILE_PATH.field_id] = target.encode()
        if record.get(name) is not None:
            record[name] = _like(record[name], values)


def _pairs(given: Any) -> dict[int, Any]:
    """Return a map of column ids, in whichever way a writer encoded it."""
    if isinstance(given, dict):
        return {int(key): value for key, value in given.items()}
    return {pair["key"]: pair["value"] for pair in given or ()}


def _like(old: Any, new: Mapping[int, Any] | None) -> Any:
    """Return a map of column ids in the encoding of another one."""
    values = new or {}
    if isinstance(old, dict):
        return {str(key): value for key, value in values.items()}
    return [{"key": key, "value": value} for key, value in values.items()]
