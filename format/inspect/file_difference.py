"""Which files one snapshot has and another has not, whether one came from the other or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from icecomb.format.inspect.file_tables import EntryTable
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

_PATH = "file_path"


def file_difference(
    metadata: TableMetadata,
    io: FileIO,
    before: Snapshot | None,
    after: Snapshot | None,
    columns: Sequence[str],
) -> tuple[pa.Table, pa.Table]:
    """The data and delete files that came and went, as rows of the metadata table `files`.

    Both manifest lists are read, and the manifests that only one of them has: so much is held.

    Args:
        metadata: The table.
        io: Where its files lie.
        before: A snapshot; None for no files.
        after: Another one.
        columns: Names of columns of `files`, `file_path` among them.

    Returns:
        Files that only ``after`` has, and those that only ``before`` has.

    Raises:
        CorruptFileError: A manifest cannot be read.
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
    return some.filter(pc.invert(pc.is_in(some[_PATH], others[_PATH])))
