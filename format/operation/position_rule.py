"""Rules for rows deleted by position: which delete files a commit may add, and which it removes.

A deletion vector does not outlive its data file: whatever removes the one removes the other in the
same commit. A data file has at most one: a commit that adds one must remove the one before.

A data file may be in several partitions of a table, if two partitions of a Hive table share a
folder. Readers find deletes for a data file by its path, whatever its partition; so rows of a
single entry cannot be deleted. Entries of one partition have the same rows, but for their lineage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import texts
from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.errors import REPEATED_FILE, REPEATED_FILE_OR_COPY, ValidationError
from icecomb.format.manifests.manifest import (
    DataFileContent,
    ManifestContent,
    ManifestFile,
)
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.conflict import index_key
from icecomb.format.scan.delete_index import PartitionKey, partition_keys

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import DataFile, FileIdentity
    from icecomb.format.operation.conflict import PartitionValues
    from icecomb.format.operation.file_match import Mask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


class VectorRule:
    """The deletion vectors that one attempt of a commit removes, or refuses."""

    def __init__(self, removed: Iterable[DataFile] = (), added: Iterable[DataFile] = ()) -> None:
        removed, added = list(removed), list(added)
        self._removed: frozenset[tuple[str, PartitionKey]] = frozenset(
            (file.file_path, index_key(file)) for file in removed
        )
        self._covered = frozenset(file.referenced_data_file or "" for file in added)
        self.places: frozenset[PartitionValues] = frozenset(
            (file.spec_id, file.partition) for file in (*removed, *added)
        )
        """The partitions of the data files."""

    def __bool__(self) -> bool:
        return bool(self._removed or self._covered)

    def left_alone(self, columns: ManifestColumns) -> Mask:
        """Return a mask of the vectors in a delete manifest whose data file is removed."""
        mask = np.zeros(len(columns), dtype=bool)
        rows = _vectors_of(columns, self._removed_paths)
        if len(rows):
            paths = columns.column("referenced_data_file").take(rows).to_pylist()
            pairs = zip(paths, partition_keys(columns, rows), strict=True)
            mask[rows] = [pair in self._removed for pair in pairs]
        return mask

    def check_once(self, columns: ManifestColumns, kept: Mask) -> None:
        """Refuse a second vector for a data file among the kept entries of a delete manifest."""
        rows = [r for r in _vectors_of(columns, self._covered_paths).to_pylist() if kept[r]]
        if not rows:
            return
        path = columns.column("referenced_data_file")[rows[0]].as_py()
        vector = columns.column("file_path")[rows[0]].as_py()
        raise ValidationError(
            f"Cannot add a deletion vector for data file {path}, which has one in {vector}",
            hint="Add one that deletes the rows of both, and remove the other one in the same "
            "commit.",
            path=path,
        )

    @cached_property
    def _removed_paths(self) -> pa.Array:
        return texts(sorted({path for path, _ in self._removed}))

    @cached_property
    def _covered_paths(self) -> pa.Array:
        return texts(sorted(self._covered))


def _vectors_of(columns: ManifestColumns, paths: pa.Array) -> pa.Array:
    """Return the rows of a delete manifest that are vectors of one of these data files."""
    rows = pc.indices_nonzero(pc.is_in(columns.column("referenced_data_file"), value_set=paths))
    return rows.filter(columns.vectors.take(rows))


def has_identity(columns: ManifestColumns, vectors: Collection[FileIdentity]) -> Mask:
    """Return a mask of the entries of a delete manifest that are one of these vectors."""
    mask = np.zeros(len(columns), dtype=bool)
    paths = texts(sorted({path for path, _, _ in vectors}))
    rows = pc.indices_nonzero(pc.is_in(columns.column("file_path"), value_set=paths))
    if len(rows):
        names = ("file_path", "content_offset", "content_size_in_bytes")
        parts = (columns.column(name).take(rows).to_pylist() for name in names)
        mask[numbers_of(rows)] = [one in vectors for one in zip(*parts, strict=True)]
    return mask


def check_delete_files(format_version: int, files: Iterable[DataFile]) -> None:
    """Refuse new delete files that the table's format version does not have.

    The version is looked at in each attempt: a table may be upgraded after its files were written.
    """
    if format_version < 2:
        raise ValidationError(
            "Format version 1 has no delete files",
            hint="Upgrade the table: set property format-version to 2.",
        )
    vectors: dict[str, DataFile] = {}
    for file in files:
        if file.content is DataFileContent.EQUALITY_DELETES:
            continue
        if not file.is_deletion_vector:
            if format_version < 3:
                continue
            raise ValidationError(
                f"Cannot add position delete file {file.file_path}: in format version "
                f"{format_version}, rows are deleted by deletion vectors",
                hint="Delete the rows again: the table was upgraded since the file was written, or "
                "its writer knows version 2 only.",
                path=file.file_path,
            )
        if format_version < 3:
            raise ValidationError(
                f"Cannot add a deletion vector in {file.file_path}: format version "
                f"{format_version} has position delete files only",
                hint="Upgrade the table: set property format-version to 3.",
                path=file.file_path,
            )
        target = file.referenced_data_file
        if target is None or file.content_offset is None or file.content_size_in_bytes is None:
            raise ValidationError(
                f"A deletion vector in {file.file_path} does not name its data file, or where it "
                "is in its file",
                hint="Set referenced_data_file, content_offset and content_size_in_bytes.",
                path=file.file_path,
            )
        if index_key(vectors.setdefault(target, file)) != index_key(file):
            raise ValidationError(
                f"Two deletion vectors for data file {target} are in different partitions",
                hint="Give both the partition spec and the partition of the data file.",
                path=target,
            )


def refuse_added_again(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile], paths: Collection[str]
) -> None:
    """Refuse new entries of data files that have a deletion vector, which would be older."""
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES and m.has_live_files()]
    wanted = texts(list(paths))
    for columns in read_each_columns(io, deletes, metadata.spec_by_id):
        rows = _vectors_of(columns, wanted)
        rows = rows.filter(columns.live.take(rows))
        if len(rows):
            path = columns.column("referenced_data_file")[rows[0].as_py()].as_py()
            raise ValidationError(
                f"Cannot add data file {path} again: the table has it, and it has a deletion "
                "vector, which cannot be that of a newer entry",
                hint="Leave it out, or add a copy of the file.",
                path=path,
            )


def refuse_shared(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Iterable[ManifestFile],
    paths: Collection[str],
    *,
    by_lineage: bool = False,
) -> None:
    """Refuse position deletes of files that are in several partitions.

    Args:
        by_lineage: Whether rows were found by their lineage, which is another in each entry:
            files that are in one partition more than once are refused, too.
    """
    for path in shared_files(io, metadata, manifests, paths, by_lineage=by_lineage):
        where = "and each entry" if by_lineage else "in several partitions, and all of them"
        raise ValidationError(
            f"Cannot delete rows of {path} by position: the table has it more than once, "
            f"{where} would lose the rows",
            hint=REPEATED_FILE if by_lineage else REPEATED_FILE_OR_COPY,
            path=path,
        )


def shared_files(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Iterable[ManifestFile],
    paths: Iterable[str],
    *,
    by_lineage: bool = False,
) -> set[str]:
    """Return those of some data files that are in several partitions; see `refuse_shared`."""
    wanted = texts(list(paths))
    data = [m for m in manifests if m.content is ManifestContent.DATA and m.has_live_files()]
    specs = {manifest.partition_spec_id for manifest in data}
    if not len(wanted):
        return set()
    if not by_lineage and len(specs) == 1 and metadata.spec_by_id(*specs).is_unpartitioned:
        return set()
    found: dict[str, PartitionKey] = {}
    shared: set[str] = set()
    for columns in read_each_columns(io, data, metadata.spec_by_id):
        named = pc.is_in(columns.column("file_path"), value_set=wanted)
        rows = pc.indices_nonzero(pc.and_(columns.live, named))
        names = columns.column("file_path").take(rows).to_pylist()
        for path, key in zip(names, partition_keys(columns, rows), strict=True):
            if path in found and (by_lineage or found[path] != key):
                shared.add(path)
            found[path] = key
    return shared
