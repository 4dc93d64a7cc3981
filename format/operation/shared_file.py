"""Data files that are in several partitions of a table: a position delete applies to all of them.

This happens if two partitions of a Hive table share a folder. Readers find deletes for a data file
by its path, whatever its partition; so rows of a single entry cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.scan.delete_index import PartitionKey, partition_keys

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


def refuse_shared(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile], paths: Collection[str]
) -> None:
    """Refuse position deletes of files that are in several partitions.

    Args:
        io: File system to read the manifests from.
        metadata: The table metadata.
        manifests: The manifests of one snapshot.
        paths: The files from which rows are to be deleted.

    Raises:
        ValidationError: If a file is in several partitions.
    """
    data = [m for m in manifests if m.content is ManifestContent.DATA and m.has_live_files()]
    specs = {manifest.partition_spec_id for manifest in data}
    if not paths or (len(specs) == 1 and metadata.spec_by_id(*specs).is_unpartitioned):
        return
    wanted = pa.array(list(paths), pa.string())
    found: dict[str, PartitionKey] = {}
    for columns in read_each_columns(io, data, metadata.spec_by_id):
        named = pc.is_in(columns.column("file_path"), value_set=wanted)
        rows = pc.indices_nonzero(pc.and_(columns.live, named))
        names = columns.column("file_path").take(rows).to_pylist()
        for path, key in zip(names, partition_keys(columns, rows), strict=True):
            if found.setdefault(path, key) != key:
                raise ValidationError(
                    f"Cannot delete rows of {path} by position: the table has it more than once, "
                    "in several partitions, and all of them would lose the rows",
                    hint="remove the file, and add it once; or write with write.delete.mode and "
                    "write.merge.mode copy-on-write",
                    path=path,
                )
