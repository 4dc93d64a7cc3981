"""The metadata tables `entries`, `files` and similar, with a row for each manifest entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.inspect.entry_rows import EntryRows, statistics_for
from icecomb.format.inspect.manifest_choice import choose_manifests, each_manifest, spec_of
from icecomb.format.inspect.metadata_schema import entries_schema, files_schema
from icecomb.format.inspect.metadata_table import Part, Request, Rows
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile
from icecomb.format.manifests.reader import Fetched, fetch_batches, read_batch
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True)
class EntryTable:
    """The entries of the manifests of some snapshots, each manifest once.

    Args:
        is_files: Whether a row is a file of the snapshot, instead of an entry of any status.
        manifests: The manifests to read instead of those of the snapshots.
    """

    metadata: TableMetadata
    io: FileIO
    snapshots: Iterable[Snapshot]
    contents: frozenset[ManifestContent]
    is_files: bool
    manifests: Sequence[ManifestFile] | None = None

    @cached_property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return (files_schema if self.is_files else entries_schema)(self.metadata)

    def parts(self, request: Request) -> Iterator[Part]:
        """Yield a part for each manifest that can hold a selected entry."""
        statistics = statistics_for(request.fields)
        ids = {field.field_id: field.field_id for field in partition_union(self.metadata).fields}
        given = None if self.manifests is None else iter((self.manifests,))
        for manifests in given or each_manifest(self.io, iter(self.snapshots)):
            possible = [manifest for manifest in manifests if self._possible(manifest)]
            chosen = choose_manifests(possible, request.row_filter, self.metadata, ids)
            batches = fetch_batches(self.io, chosen, lambda _: statistics)
            for fetched in chain.from_iterable(batches):
                yield partial(self._rows, fetched, statistics)

    def _possible(self, manifest: ManifestFile) -> bool:
        live = not self.is_files or manifest.has_live_files()
        return live and manifest.content in self.contents

    def _rows(self, fetched: Fetched, statistics: frozenset[str]) -> Iterator[Rows]:
        manifest, _ = fetched
        spec = spec_of(manifest, self.metadata)
        known = self.metadata.spec_by_id
        [columns] = read_batch(self.io, (fetched,), known, lambda _: statistics)
        schema = self.metadata.schema()
        doubted = ColumnDoubts(self.metadata, schema).of(columns)
        rows: Rows = EntryRows(columns, spec, schema, doubted=doubted)
        if self.is_files and columns.live.true_count < len(columns):
            rows = rows.filter(columns.live)
        yield rows
