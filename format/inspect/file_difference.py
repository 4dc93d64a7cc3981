"""The difference between the files of two snapshots, which need not descend from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from icecomb.format.inspect.inspection import EntryTable
from icecomb.format.inspect.metadata_scan import MetadataScan
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

IDENTITY: Final = ("file_path", "content_offset", "content_size_in_bytes")
"""The columns of `files` that identify a file; see `DataFile.identity`."""


def file_difference(
    metadata: TableMetadata,
    io: FileIO,
    before: Snapshot | None,
    after: Snapshot | None,
    columns: Sequence[str],
) -> tuple[pa.Table, pa.Table]:
    """Return the files that only `after` has and those that only `before` has, as rows of `files`.

    Manifests that only one of them has are read into memory; `columns` must include `IDENTITY`.
    """
    lists = [() if one is None else tuple(read_manifests(io, one)) for one in (before, after)]
    old, new = ({manifest.manifest_path for manifest in manifests} for manifests in lists)
    gone, come = (
        _files(metadata, io, [m for m in manifests if m.manifest_path not in others], columns)
        for manifests, others in zip(lists, (new, old), strict=True)
    )
    return _without(come, gone), _without(gone, come)


def _files(
    metadata: TableMetadata, io: FileIO, manifests: Sequence[ManifestFile], columns: Sequence[str]
) -> pa.Table:
    table = EntryTable(
        metadata, io, (), frozenset(ManifestContent), is_files=True, manifests=manifests
    )
    return MetadataScan(table, None, tuple(columns)).to_arrow()


def _without(some: pa.Table, others: pa.Table) -> pa.Table:
    return some.filter(pc.invert(pc.is_in(_identities(some), _identities(others))))


def _identities(files: pa.Table) -> pa.ChunkedArray:
    path, *numbers = (files[name] for name in IDENTITY)
    return pc.binary_join_element_wise(
        path, *(pc.coalesce(number.cast("string"), "") for number in numbers), "\0"
    )
