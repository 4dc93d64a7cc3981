"""The metadata tables that the metadata alone provides, such as `history` and `snapshots`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from icecomb.format.inspect.metadata_table import Part, TableRequest, batch_rows
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import parents_of

Row: TypeAlias = tuple[Any, ...]
_MICROS = 1000


@dataclass(frozen=True)
class LogTable:
    """A metadata table whose rows are in the table metadata itself."""

    schema: Schema
    rows: Callable[[], Iterator[Row]]

    def parts(self, request: TableRequest) -> Iterator[Part]:  # noqa: ARG002 - the scan filters
        """Yield a single part with all rows."""
        rows = list(self.rows())
        if rows:
            yield lambda: [batch_rows(self.schema, list(zip(*rows, strict=True)))]


def history_rows(metadata: TableMetadata) -> Iterator[Row]:
    """Yield when each snapshot became current, and whether that was undone."""
    parents = parents_of(metadata)
    ancestors = _ancestors(parents, metadata.current_snapshot_id)
    for entry in metadata.snapshot_log:
        at, number = entry.timestamp_ms * _MICROS, entry.snapshot_id
        yield at, number, parents.get(number), number in ancestors


def snapshot_rows(metadata: TableMetadata) -> Iterator[Row]:
    """Yield all snapshots that are not expired."""
    for snapshot in metadata.snapshots:
        summary = [(key, text) for key, text in snapshot.summary.items() if key != "operation"]
        yield (
            snapshot.timestamp_ms * _MICROS,
            snapshot.snapshot_id,
            snapshot.parent_snapshot_id,
            snapshot.operation,
            snapshot.manifest_list,
            summary if snapshot.summary else None,
        )


def ref_rows(metadata: TableMetadata) -> Iterator[Row]:
    """Yield the branches and tags."""
    for name, ref in metadata.refs.items():
        yield (
            name,
            ref.snapshot_ref_type.value.upper(),
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.min_snapshots_to_keep,
            ref.max_snapshot_age_ms,
        )


def metadata_log_rows(metadata: TableMetadata, location: str | None) -> Iterator[Row]:
    """Yield the metadata files with the snapshots current in each; `location`, if any, is last."""
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    if location is not None:
        files.append((metadata.last_updated_ms, location))
    changes = [(entry.timestamp_ms, entry.snapshot_id) for entry in metadata.snapshot_log]
    for timestamp, file in files:
        current = next((i for at, i in reversed(changes) if at <= timestamp), None)
        snapshot = None if current is None else metadata.snapshot_by_id(current)
        yield (
            timestamp * _MICROS,
            file,
            current,
            None if snapshot is None else snapshot.schema_id,
            None if snapshot is None else snapshot.sequence_number,
        )


def _ancestors(parents: Mapping[int, int | None], snapshot_id: int | None) -> set[int]:
    found: set[int] = set()
    at = snapshot_id
    while at is not None and at in parents and at not in found:
        found.add(at)
        at = parents[at]
    return found
