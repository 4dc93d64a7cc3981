"""The metadata tables `manifests` and `all_manifests`, with a row for each manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from icecomb.format.inspect.manifest_choice import spec_of, weakened
from icecomb.format.inspect.metadata_schema import (
    ALL_MANIFESTS,
    MANIFESTS,
    REFERENCE_SNAPSHOT_ID,
)
from icecomb.format.inspect.metadata_table import Part, TableRequest, TableRows, batch_rows
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.column_history import schema_of
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.promotion import unlike_columns
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import from_bytes
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.types import PrimitiveType
from icecomb.format.storage.file_io import FileIO

_MOST_AT_ONCE = 64
_PARTS = 32
"""Least number of parts to make of many snapshots, so that their lists are read side by side."""
_COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")


@dataclass(frozen=True)
class ManifestTable:
    """The manifests of some snapshots, with a row for each snapshot that has a manifest.

    Args:
        is_all: Whether rows name the snapshot.
    """

    metadata: TableMetadata
    io: FileIO
    snapshots: Iterable[Snapshot]
    is_all: bool

    @property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return ALL_MANIFESTS if self.is_all else MANIFESTS

    def parts(self, request: TableRequest) -> Iterator[Part]:
        """Yield parts of the snapshots that can be selected, of several where there are many."""
        snapshots = list(self.snapshots)
        ids = pa.array([snapshot.snapshot_id for snapshot in snapshots], pa.int64())
        asked = weakened(request.row_filter, {REFERENCE_SNAPSHOT_ID})
        chosen = row_mask(asked, {REFERENCE_SNAPSHOT_ID: ids}, len(ids)).to_pylist()
        selected = [one for one, is_chosen in zip(snapshots, chosen, strict=True) if is_chosen]
        # each part is a thread, which costs more than a short list
        size = max(1, min(_MOST_AT_ONCE, len(selected) // _PARTS))
        for start in range(0, len(selected), size):
            yield partial(self._rows, selected[start : start + size])

    def _rows(self, snapshots: Sequence[Snapshot]) -> Iterator[TableRows]:
        rows = [self._row(m, one) for one in snapshots for m in read_manifests(self.io, one)]
        if rows:
            yield batch_rows(self.schema, list(zip(*rows, strict=True)))

    def _row(self, manifest: ManifestFile, snapshot: Snapshot) -> tuple[Any, ...]:
        manifest = self._counted(manifest)
        counts = [getattr(manifest, name) for name in _COUNTS]
        is_data = manifest.content is ManifestContent.DATA
        row = (
            manifest.content.value,
            manifest.manifest_path,
            manifest.manifest_length,
            manifest.partition_spec_id,
            manifest.added_snapshot_id,
            *(counts if is_data else (0, 0, 0)),
            *((0, 0, 0) if is_data else counts),
            self._summaries(manifest),
        )
        return (*row, snapshot.snapshot_id, manifest.key_metadata) if self.is_all else row

    def _counted(self, manifest: ManifestFile) -> ManifestFile:
        # Lists of format version 1 may omit the counts; the manifest itself has them.
        if all(getattr(manifest, name) is not None for name in _COUNTS):
            return manifest
        from icecomb.format.manifests.decoder import count_manifest

        return count_manifest(self.io.read(manifest.manifest_path), manifest)

    def _summaries(self, manifest: ManifestFile) -> list[dict[str, Any]] | None:
        if manifest.partitions is None:
            # The column is required if rows do not name the snapshot.
            return None if self.is_all else []
        spec, written = spec_of(manifest, self.metadata), self._written_with(manifest)
        return [
            {
                "contains_null": summary.contains_null,
                "contains_nan": summary.contains_nan,
                "lower_bound": self._text(spec, at, summary.lower_bound, written),
                "upper_bound": self._text(spec, at, summary.upper_bound, written),
            }
            for at, summary in enumerate(manifest.partitions)
        ]

    def _written_with(self, manifest: ManifestFile) -> Schema | None:
        owner = manifest.added_snapshot_id
        snapshot = None if owner is None else self.metadata.snapshot_by_id(owner)
        return None if snapshot is None else schema_of(self.metadata, snapshot)

    def _schema_with(self, field_id: int, written: Schema | None) -> Schema:
        """Return the current schema, or an older one if it lacks the column or changed its type."""
        now = self.metadata.schema()
        if written is not None and written.contains(field_id):
            gone = not now.contains(field_id) or field_id in unlike_columns(written, now)
            return written if gone else now
        return self.metadata.schema_with(field_id)

    def _text(
        self, spec: PartitionSpec, at: int, bound: bytes | None, written: Schema | None
    ) -> str | None:
        """Return a bound as spelled in partition paths; a missing one is spelled `null`."""
        if at >= len(spec.fields):
            return None
        field = spec.fields[at]
        schema = self._schema_with(field.source_id, written)
        kind = spec.partition_type(schema).fields[at].field_type
        assert isinstance(kind, PrimitiveType)  # noqa: S101 - partition values are primitive
        source = schema.find_type(field.source_id) if schema.contains(field.source_id) else kind
        value = None if bound is None else from_bytes(kind, bound)
        return field.transform.to_human_string(source, value)
