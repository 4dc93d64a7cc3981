"""Adding existing data files, each only once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.conflict import OutdatedError
from icecomb.format.property.table_property import NAME_MAPPING
from icecomb.format.rows.values.unread_field import UnreadField, with_unread
from icecomb.format.spec.change.requirement import AssertCurrentSchemaId
from icecomb.format.spec.change.update import (
    AddSchemaUpdate,
    Changes,
    SetPropertiesUpdate,
    TableUpdate,
)
from icecomb.format.spec.name_mapping import (
    NameMapping,
    create_name_mapping,
    join_name_mappings,
    update_name_mapping,
)
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.storage.location import (
    check_local_names,
    linked_texts,
    plain_locations,
    plain_texts,
)

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class FileAddition(FastAppend):
    """An append of files that the table does not have; a table without a name mapping gets one.

    Args:
        files: The files, described with the table's current schema and spec.
        name_mapping: The mapping that gave the files their field ids when they were described.
        unread: Fields that the files have and the table does not.
        skip: Whether to leave out files that the branch already has; otherwise the commit is
            refused.
        left_out: Locations of files that are not among these, because the branch had them.
        seen: The head of the branch that had them.
    """

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        files: Iterable[DataFile] = (),
        *,
        schema: Schema,
        name_mapping: NameMapping | None = None,
        unread: Iterable[UnreadField] = (),
        check: bool = True,
        skip: bool = False,
        left_out: Iterable[str] = (),
        seen: Snapshot | None = None,
    ) -> None:
        # files that are looked for are either not there or left out
        super().__init__(io, snapshot_properties, branch, fresh=check)
        self._schema = schema
        self._name_mapping = name_mapping
        self._unread = tuple(unread)
        self._check = check
        self._skip = skip
        self._looked_through: set[str] = set()
        self._left_out = tuple(left_out)
        self._seen = seen
        for file in files:
            self.append_data_file(file)

    def apply(self, base: TableMetadata) -> Changes:
        """Return the changes of the append; there are none if the branch already has all files."""
        check_local_names(self.io, base.location, [*self._files])
        if not self._files:
            self._check_left_out(base, self._parent(base))
            return Changes(requirements=(), updates=())
        changes = super().apply(base)
        if not self._files:
            return Changes(requirements=(), updates=())
        if self._unread and base.current_schema_id != self._schema.schema_id:
            raise ValidationError(
                "The table's columns changed while files were added that have more columns than it",
                hint="Load the table again and add the files again.",
            )
        mapping, last = with_unread(self._mapping(base), self._unread, base.last_column_id)
        updates: list[TableUpdate] = []
        if last != base.last_column_id:
            updates.append(AddSchemaUpdate(base.schema(), last))
        if mapping != base.name_mapping():
            updates.append(SetPropertiesUpdate({NAME_MAPPING.key: mapping.to_json()}))
        if not updates:
            return changes
        return Changes(
            requirements=(
                *changes.requirements,
                AssertCurrentSchemaId(current_schema_id=base.current_schema_id),
            ),
            updates=(*updates, *changes.updates),
        )

    def _mapping(self, base: TableMetadata) -> NameMapping:
        """Return the mapping that gives the files the field ids they were described with."""
        schema, known = base.schema(), base.name_mapping()
        described = self._name_mapping
        if described is None or described == known:
            return known or create_name_mapping(schema)
        if known is None:
            return update_name_mapping(described, self._schema, schema)
        try:
            return join_name_mappings(known, described)
        except SchemaError as error:
            raise ValidationError(
                f"The names of columns were given away while files were added: {error.message}",
                hint="Load the table again and add the files again.",
            ) from error

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Refuse files that the branch has; OutdatedError if it lost one that was left out."""
        super().validate(base, parent)
        self._check_left_out(base, parent)
        if not self._check:
            return
        twins = FileTwins(self.io, self._files)
        if parent is None:
            return
        there = known_paths(self.io, base, parent, self._files, self._looked_through, twins=twins)
        if there and not self._skip:
            path = min(there)
            raise ValidationError(
                f"The table has file {path} already",
                hint="Leave it out; on_duplicate of Python's add_files and of `icecomb add-files` "
                "skips such files.",
                path=path,
            )
        for path in there:
            del self._files[path]
            self._written = None

    def _check_left_out(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Refuse the commit if files that the branch had are no longer there."""
        if not self._left_out or _contents(parent) == _contents(self._seen):
            return
        there = set()
        if parent is not None:
            there = known_paths(self.io, base, parent, self._left_out, set())
        gone = [path for path in self._left_out if path not in there]
        if gone:
            raise OutdatedError(
                f"File {min(gone)} was left out, as the table had it, and others have removed it",
                hint="Load the table again and add the files again.",
                path=min(gone),
                file_count=len(gone),
            )


def _contents(head: Snapshot | None) -> tuple[int, str | None] | None:
    # each attempt of a transaction writes other lists for the same snapshots
    return None if head is None else (head.snapshot_id, head.manifest_list)


def known_paths(
    io: FileIO,
    base: TableMetadata,
    snapshot: Snapshot,
    paths: Iterable[str],
    looked_through: set[str],
    *,
    twins: FileTwins | None = None,
) -> set[str]:
    """Return those of these data files that a snapshot has, however their locations are spelled.

    Args:
        looked_through: The paths of manifests to skip; those that are read are added to it.
        twins: The files, to refuse those that the snapshot may have under another name of their
            cluster or bucket, such as a router's: of the same path, length and row count.
    """
    names = list(paths)
    plain = linked_texts(names, io.properties)
    values, wanted = pa.array(plain, pa.string()), dict(zip(plain, names, strict=True))
    found: set[str] = set()
    chosen = [
        manifest
        for manifest in read_manifests(io, snapshot)
        if manifest.content is ManifestContent.DATA and manifest.manifest_path not in looked_through
    ]
    for columns in read_each_columns(io, chosen, base.spec_by_id):
        locations = columns.column("file_path").filter(columns.live)
        normal = pa.array(linked_texts(locations, io.properties), pa.string())
        there: Sequence[str] = normal.filter(pc.is_in(normal, value_set=values)).to_pylist()
        found.update(wanted[name] for name in there)
        if twins is not None:
            twins.check(columns, normal)
    looked_through.update(manifest.manifest_path for manifest in chosen)
    return found


class FileTwins:
    """Files to add, compared with those there by path, length and row count.

    Which clusters and buckets are one is not always known: a router has names of its own, and a
    bucket access points.
    """

    def __init__(self, io: FileIO, files: Mapping[str, DataFile]) -> None:
        self._io = io
        self._files: dict[str, DataFile] = {}
        plain = self._plain(pa.array(list(files), pa.string()))
        for key, file in zip(plain.to_pylist(), files.values(), strict=True):
            known = self._files.setdefault(key, file)
            self._compare(file, known.file_path, known.file_size_in_bytes, known.record_count)
        self._values = pa.array(list(self._files), pa.string())

    def check(self, columns: ManifestColumns, normal: pa.Array) -> None:
        """Refuse a file of the same path, length and row count as a live one of a manifest.

        Args:
            normal: The canonical locations of its live files.
        """
        plain = self._plain(normal)
        rows = pc.is_in(plain, value_set=self._values)
        if not pc.any(rows).as_py():
            return
        facts = (
            columns.column(name).filter(columns.live).filter(rows).to_pylist()
            for name in ("file_path", "file_size_in_bytes", "record_count")
        )
        for key, path, size, count in zip(plain.filter(rows).to_pylist(), *facts, strict=True):
            self._compare(self._files[key], path, size, count)

    def _compare(self, file: DataFile, path: str, size: int, count: int) -> None:
        one, other = plain_texts([path, file.file_path], self._io.properties)
        if (size, count) == (file.file_size_in_bytes, file.record_count) and one != other:
            raise ValidationError(
                f"The table may have file {file.file_path} already: {path} has the same path, "
                "length and row count under another name of a cluster or bucket",
                hint="Leave it out if they are one file; check_duplicate_files=False of add_files "
                "adds it if they are not.",
                path=file.file_path,
            )

    def _plain(self, locations: pa.Array) -> pa.Array:
        return plain_locations(locations, self._io.properties, any_cluster=True)
