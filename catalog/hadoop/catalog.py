"""The catalog of file-system tables below one folder: namespaces are folders, and so are tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from icecomb.catalog.catalog import Catalog
from icecomb.catalog.commit.commit import (
    check_commit_allowed,
    check_format_version,
    check_new_data_folder,
    settle,
)
from icecomb.catalog.commit.pointer import Described, MetadataPointer, MetadataVersion
from icecomb.catalog.commit.purge import PurgedTable, purge_files, reachable_files
from icecomb.catalog.commit.version_line import table_folder
from icecomb.catalog.configuration.catalog_property import WAREHOUSE
from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.catalog.identifier import Identifier, Name, parse_identifier
from icecomb.catalog.table.definition import Draft, TableDefinition
from icecomb.catalog.table.table import Table
from icecomb.format.argument import check_flags, checked_members, checked_text, property_texts
from icecomb.format.errors import (
    CommitFailedError,
    ConfigurationError,
    FileAlreadyExistsError,
    FileIOError,
    IcecombError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.holding import Holding
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.property.table_property import DATA_PATH, FOLDER_STORAGE_PATH, OBJECT_STORE_PATH
from icecomb.format.spec.metadata_file import (
    METADATA_SUFFIXES,
    UNPUBLISHED,
    read_metadata,
    version_of,
)
from icecomb.format.spec.own_folders import OwnFolders
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.location import linked_texts, plain_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from icecomb.format.spec.metadata import TableMetadata


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_OWNER: Final = {"owner"}
"""Property in which Spark names a namespace's creator; for a folder the file system knows it."""
_NAMESPACE: Final = "a namespace"
_TABLE: Final = "a table"
_OWN_FOLDERS: Final = {"data", "metadata"}
_LONGEST_NAME: Final = 255
"""Bytes that file systems allow, HDFS among them."""


class HadoopCatalog(Catalog):
    """File-system tables, which Iceberg Java's ``HadoopCatalog`` can read and write, too.

    A namespace ``a.b`` is the folder ``a/b`` of the warehouse, the table ``a.b.t`` the folder
    ``a/b/t``. The file system decides which of two writers is first; see `HadoopPointer`.

    Args:
        name: The catalog's own name.
        properties: The configuration: ``warehouse`` (a folder), ``table-default.*``,
            ``table-override.*``, ``lock.acquire-timeout-ms`` (how long a thread waits for others
            of this process).

    Raises:
        ConfigurationError: If there is no ``warehouse``.
    """

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(name, properties)
        warehouse = WAREHOUSE.of(properties)
        if not warehouse:
            raise ConfigurationError(
                f"Catalog {name} has no warehouse",
                hint="Name the folder of its tables: warehouse=/data/warehouse",
            )
        self._root = absolute(warehouse, properties).rstrip("/")
        self.io = FileIO(self.properties)

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """Implement `Catalog.list_namespaces`: return those directly below."""
        return [parts for parts in self._below(namespace) if self._kind(parts) == _NAMESPACE]

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """Implement `Catalog.create_namespace`: create a folder, without properties.

        Raises:
            UnsupportedError: If properties are given.
            ValidationError: If the name is not valid for a folder, or a parent is a table.
        """
        parts = parse_identifier(namespace)
        _check_new_name(parts)
        if property_texts("property of a namespace", properties).keys() - _OWNER:
            raise _no_properties(parts)
        for depth in range(1, len(parts)):
            above = self._kind(parts[:depth])
            if above not in {None, _NAMESPACE}:
                raise ValidationError(
                    f"{'.'.join(parts[:depth])} is {above}, not a namespace",
                    hint="Choose another name for the namespace.",
                )
        try:
            self.io.create_folder(self._folder(parts))
        except FileAlreadyExistsError:
            raise NamespaceAlreadyExistsError(
                f"{'.'.join(parts)} exists already: it is {self._kind(parts)}",
                hint="Use the existing one, or choose another name.",
                namespace=".".join(parts),
            ) from None

    def drop_namespace(self, namespace: Name) -> None:
        parts = parse_identifier(namespace)
        self._require_namespace(parts)
        with suppress(NoSuchFileError):
            if not self.io.delete_folder(self._folder(parts)):
                raise NamespaceNotEmptyError(
                    f"Namespace {'.'.join(parts)} is not empty",
                    hint="Drop its tables and namespaces first.",
                )

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Implement `Catalog.load_namespace_properties`: return only the ``location``."""
        parts = parse_identifier(namespace)
        self._require_namespace(parts)
        return {"location": self._folder(parts)}

    def update_namespace_properties(
        self,
        namespace: Name,
        removals: Iterable[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> None:
        """Implement `Catalog.update_namespace_properties`.

        Raises:
            UnsupportedError: If there is something to change.
        """
        parts = parse_identifier(namespace)
        self._require_namespace(parts)
        if set(removals or ()) or updates:
            raise _no_properties(parts)

    def list_tables(self, namespace: Name) -> list[Identifier]:
        """Implement `Catalog.list_tables`; checks each folder of the namespace."""
        return [parts for parts in self._below(namespace) if self._kind(parts) == _TABLE]

    def load_pointer(self, identifier: Name) -> str:
        return self._pointer(_table_name(identifier)).locate()

    def load_table(self, identifier: Name) -> Table:
        parts = _table_name(identifier)
        pointer = self._pointer(parts)
        return self._table(parts, pointer.load(), pointer)

    def draft(self, identifier: Name, definition: TableDefinition) -> Draft:
        """Implement `Catalog.draft`.

        Raises:
            ValidationError: If a location other than the folder of this name is given, the name is
                not valid for a folder, ``write.metadata.path`` is set, or new files would go to a
                folder that only the metadata would name.
        """
        parts = self._free_name(identifier)
        folder = self._folder(parts)
        location = definition.location
        if location is not None and absolute(location, self.properties).rstrip("/") != folder:
            raise ValidationError(
                f"{'.'.join(parts)} cannot be at {location}: the location of a file-system table "
                f"follows from its name, {folder}",
                hint="Leave the location out.",
            )
        metadata = self.new_metadata(definition, folder)
        pointer = self._pointer(parts)
        check_commit_allowed(pointer.name, metadata)
        check_format_version(pointer.name, metadata, self.properties)
        check_new_data_folder(pointer, self.io, None, metadata)
        pointer.stage(None, metadata)  # refuses unsupported metadata, and writes nothing
        return Draft(parts, metadata, self.io, self)

    def publish(self, draft: Draft, metadata: TableMetadata) -> Table:
        check_format_version(".".join(draft.identifier), metadata, self.properties)
        check_new_data_folder(self._pointer(draft.identifier), self.io, None, metadata)
        return self._make(draft.identifier, metadata)

    def discard(self, draft: Draft) -> None:
        """Implement `Catalog.discard`: empty folders would look like a namespace."""
        self._delete_empty(self._folder(draft.identifier))

    def new_location(self, table: Table, location: str) -> str:
        """Implement `Catalog.new_location`: a file-system table cannot be moved."""
        wanted = absolute(checked_text("location", location), self.properties).rstrip("/")
        if wanted != table.location().rstrip("/"):
            raise ValidationError(
                f"{'.'.join(table.name())} cannot be moved to {location}: a file-system table "
                f"stays in its folder, {table.location()}",
                hint="Leave the location out.",
            )
        return table.location()

    def register_table(self, identifier: Name, metadata_location: str) -> Table:
        """Create a table from an existing metadata file: a copy of it becomes the first version.

        The file itself and the files it refers to stay where they are; new data files go to the
        location in the metadata.

        Raises:
            TableAlreadyExistsError: If the name is taken.
            NoSuchFileError: If there is no such file.
            ValidationError: If its property ``write.metadata.path`` is set, or it names files of
                this machine that a table on the warehouse's storage may not.
        """
        from icecomb.format.storage.location import check_local_names

        parts = self._free_name(identifier)
        metadata = read_metadata(self.io, absolute(metadata_location, self.properties))
        check_local_names(self.io, self._folder(parts), metadata.manifest_lists())
        return self._make(parts, metadata)

    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Refuse to rename: the name of a file-system table is its folder.

        Raises:
            NoSuchTableError: If there is no such table.
            UnsupportedError: If there is one.
        """
        source, target = _table_name(from_identifier), _table_name(to_identifier)
        self.load_pointer(source)
        raise UnsupportedError(
            f"{'.'.join(source)} cannot be renamed to {'.'.join(target)}: its name is its folder, "
            "and its metadata names its files by that folder",
            hint="Register its metadata file under the new name, which leaves its files in place.",
        )

    def drop_table(self, identifier: Name, purge_requested: bool = False) -> None:  # noqa: FBT001, FBT002
        """Delete a table: its folder, and its files elsewhere, which the catalog has to allow.

        A table cannot be dropped without its files: they are the table. Of a table that was
        registered from elsewhere, files outside its folder stay: they may be another table's.

        Raises:
            NoSuchTableError, NoSuchIcebergTableError: As in `Catalog.drop_table`.
            ValidationError: If ``purge_requested`` is false, the table's property ``gc.enabled`` is
                false, or its folder holds another table, files that are neither in ``data``
                nor in ``metadata`` nor the table's, or snapshots of HDFS; nothing was deleted.
            FileIOError: If something was written to the folder meanwhile, or it contains links.
        """
        check_flags(purge_requested=purge_requested)
        self._drop(identifier, purge_requested=purge_requested, more=(), dry_run=False)

    def purge_table(
        self, identifier: Name, *, delete_outside: Iterable[str] = (), dry_run: bool = False
    ) -> PurgedTable:
        """Implement `Catalog.purge_table` as `drop_table`."""
        check_flags(dry_run=dry_run)
        more = checked_members("delete_outside", delete_outside, str)
        return self._drop(identifier, purge_requested=True, more=more, dry_run=dry_run)

    def _drop(
        self, identifier: Name, *, purge_requested: bool, more: tuple[str, ...], dry_run: bool
    ) -> PurgedTable:
        parts = _table_name(identifier)
        pointer = self._pointer(parts)
        with Holding() as held, held:
            pointer.queue(held)
            pointer.locate()
            metadata = _readable(pointer)
            self.check_drop(parts, metadata, purge_requested=purge_requested)
            folder = TableFolder(self.io, self._folder(parts), ".".join(parts), metadata, more)
            return folder.delete(dry_run=dry_run)

    def check_drop(
        self, identifier: Name, metadata: TableMetadata | None, *, purge_requested: bool
    ) -> None:
        """Implement `Catalog.check_drop`.

        Raises:
            ValidationError: Also if ``purge_requested`` is false.
        """
        parts = _table_name(identifier)
        if not purge_requested:
            name = ".".join(parts)
            raise ValidationError(
                f"{name} cannot be dropped without its files: the folder {self._folder(parts)} "
                "is the table",
                hint="Drop it with purge_requested=True (purge_table, or --purge) to delete the "
                "folder, or move the folder out of the warehouse to keep it.",
                table=name,
            )
        super().check_drop(parts, metadata, purge_requested=purge_requested)

    def _make(self, parts: Identifier, metadata: TableMetadata) -> Table:
        pointer = self._pointer(parts)
        check_commit_allowed(".".join(parts), metadata)
        with Holding() as held, held:
            pointer.queue(held)
            new = pointer.stage(None, metadata)
            try:
                settle(pointer, None, new)
            except CommitFailedError:
                raise _taken(parts, "a table") from None
        return self._table(parts, new, pointer)

    def _table(
        self, parts: Identifier, version: MetadataVersion, pointer: MetadataPointer
    ) -> Table:
        return Table(parts, version, self.io, pointer, self)

    def _pointer(self, parts: Identifier) -> HadoopPointer:
        return HadoopPointer(self.io, self._folder(parts), ".".join(parts), self.properties)

    def _folder(self, parts: Identifier) -> str:
        return "/".join((self._root, *parts))

    def _kind(self, parts: Identifier) -> str | None:
        """Return the kind of thing that has this name; None if nothing has."""
        folder = self._folder(parts)
        if not self.io.is_folder(folder):
            return "a file" if self.io.exists(folder) else None
        try:
            self._pointer(parts).locate()
        except NoSuchIcebergTableError:
            return "a table of a catalog with a server"
        except NoSuchTableError:
            return _NAMESPACE
        return _TABLE

    def _require_namespace(self, parts: Identifier) -> None:
        if not all(map(_is_name, parts)) or self._kind(parts) != _NAMESPACE:
            raise NoSuchNamespaceError(
                f"There is no namespace {'.'.join(parts)}",
                hint="Create it by create_namespace, or list the existing ones by list_namespaces.",
                namespace=".".join(parts),
            )

    def _below(self, namespace: Name) -> list[Identifier]:
        parts = tuple(namespace.split(".")) if isinstance(namespace, str) else tuple(namespace)
        if parts:
            self._require_namespace(parts)
        try:
            return [(*parts, name) for name in self.io.folders(self._folder(parts) or "/")]
        except NoSuchFileError:
            return []

    def _free_name(self, identifier: Name) -> Identifier:
        """Return the parts of the name of a table to be created."""
        parts = parse_identifier(identifier)
        _check_new_name(parts)
        if parts[:-1]:
            self._require_namespace(parts[:-1])
        kind = self._kind(parts)
        if kind == _NAMESPACE:
            inside = set(self.io.folders(self._folder(parts)))
            # the remains of a creation that was killed are not a namespace
            if inside and inside <= _OWN_FOLDERS:
                kind = None
        if kind is not None:
            raise _taken(parts, kind)
        return parts

    def _delete_empty(self, folder: str) -> None:
        """Delete folders without files; another writer's file keeps its folders."""
        for each in self.io.folder_tree(folder):
            with suppress(NoSuchFileError):
                self.io.delete_folder(each)


def open_path(location: str, properties: Mapping[str, str]) -> Table:
    """Open a table by its folder, or for reading only by any of its metadata files.

    NoSuchIcebergTableError is raised if the folder is a table of a catalog with a server.
    """
    place = absolute(location, properties).rstrip("/")
    is_file = place.endswith(METADATA_SUFFIXES)
    folder = re.sub(r"(/metadata)?/[^/]+$", "", place) if is_file else place
    catalog, identifier = catalog_of(folder, properties)
    pointer: MetadataPointer
    if is_file:
        pointer = StaticPointer(catalog.io, place)
    else:
        pointer = HadoopPointer(catalog.io, folder, folder, properties)
    return Table(identifier, pointer.load(), catalog.io, pointer, catalog)


def catalog_of(folder: str, properties: Mapping[str, str]) -> tuple[HadoopCatalog, Identifier]:
    """Return the catalog whose warehouse holds a table's folder, and the table's name there.

    The folder need not exist yet.
    """
    place = absolute(folder, properties).rstrip("/")
    root, _, name = place.rpartition("/")
    if not name or place.endswith(METADATA_SUFFIXES):
        raise ValidationError(
            f"{folder} cannot be the folder of a table",
            hint="Name a folder below another one; a metadata file can only be read.",
        )
    return HadoopCatalog("path", {**properties, "warehouse": root or "/"}), (name,)


def absolute(location: str, properties: Mapping[str, str]) -> str:
    """Return a location unchanged, or make a path absolute, relative to the working directory.

    ``~`` is expanded. Such a path is local, and gets a scheme if the default one is another.
    """
    if _SCHEME.match(location):
        return location
    path = os.path.abspath(os.path.expanduser(location))  # noqa: PTH100, PTH111 - keeps the text
    if location.startswith("/"):
        return path
    from icecomb.format.storage.hdfs.address import default_scheme, hadoop_properties

    if default_scheme(hadoop_properties(properties)) == "file":
        return path
    return f"file://{path}"


def _readable(pointer: HadoopPointer) -> TableMetadata | None:
    with suppress(OSError, ValueError, UnsupportedError):
        return pointer.load().metadata
    return None


def _is_name(part: str) -> bool:
    """Return whether a folder can have this name, and stays inside its parent folder."""
    try:
        size = len(os.fsencode(part))
    except UnicodeEncodeError:
        return False
    return part not in {"", ".", ".."} and not re.search(r"[/\0]", part) and size <= _LONGEST_NAME


def _check_new_name(parts: Identifier) -> None:
    for part in parts:
        # Hadoop parses a colon as the end of a scheme
        if not _is_name(part) or ":" in part:
            raise ValidationError(
                f"{'.'.join(parts)!r}: {part!r} cannot be the name of a folder",
                hint=f"At most {_LONGEST_NAME} bytes, no slash, no colon, not . or ..",
            )


def _table_name(identifier: Name) -> Identifier:
    parts = tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)
    if not parts or not all(map(_is_name, parts)):
        raise NoSuchTableError(
            f"There is no table {'.'.join(parts) or 'without a name'}",
            hint="Name it namespace.table.",
        )
    return parts


def _taken(parts: Identifier, kind: str) -> TableAlreadyExistsError:
    name = ".".join(parts)
    return TableAlreadyExistsError(
        f"{name} exists already: it is {kind}",
        hint="Choose another name, or drop it first.",
        table=name,
    )


def _no_properties(parts: Identifier) -> IcecombError:
    return UnsupportedError(
        f"Namespace {'.'.join(parts)} is a folder: it cannot have properties",
        hint="Leave them out, or use a catalog with a metastore.",
    )


class StaticPointer:
    """A `MetadataPointer` that always points to one file."""

    def __init__(self, io: FileIO, location: str) -> None:
        self._io = io
        self._location = location

    @property
    def name(self) -> str:
        """The file's location."""
        return self._location

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the storage."""
        return self._io.properties

    def check_writable(self, metadata: TableMetadata) -> NoReturn:  # noqa: ARG002
        """Refuse every table, as `MetadataPointer.check_writable`."""
        raise UnsupportedError(
            f"{self._location} was opened as a metadata file: such a table can only be read",
            hint="Open the table by its catalog, or by its folder, to change it.",
            path=self._location,
        )

    def check_deletable(self, metadata: TableMetadata) -> NoReturn:
        """Refuse, as `check_writable`."""
        self.check_writable(metadata)

    def own_folders(self) -> Sequence[str]:
        """Implement `WriteGuard.own_folders`: there is only the folder that the file is in."""
        return (table_folder(self._location),)

    def load(self) -> MetadataVersion:
        """Implement `MetadataPointer.load`."""
        from icecomb.format.spec.metadata_file import read_metadata

        return MetadataVersion(self._location, read_metadata(self._io, self._location))

    def stage(self, base: MetadataVersion | None, metadata: TableMetadata) -> NoReturn:  # noqa: ARG002
        """Refuse, as `check_writable`."""
        self.check_writable(metadata)

    def swap(self, expected: MetadataVersion | None, new: MetadataVersion) -> NoReturn:  # noqa: ARG002
        """Refuse, as `check_writable`."""
        self.check_writable(new.metadata)

    def discard(self, new: MetadataVersion) -> None:
        """Implement `MetadataPointer.discard`: nothing is ever staged."""

    def queue(self, held: Holding, base: MetadataVersion | None = None) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.queue`: there is nothing to wait for."""
        return False

    def wait_in_queue(self, base: MetadataVersion) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.wait_in_queue`: there is no queue."""
        return False

    def exclusive(self, held: Holding, metadata: Described) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.exclusive`: there are no locks."""
        return False


_SHOWN: Final = 3


class TableFolder:
    """The files of a table's folder, listed once, before anything is deleted.

    ValidationError is raised if there are files that other tables may need, or a folder that cannot
    be deleted; the metadata is None if unreadable.
    """

    def __init__(
        self,
        io: FileIO,
        folder: str,
        name: str,
        metadata: TableMetadata | None,
        more: tuple[str, ...],
    ) -> None:
        self._io = io
        self._more = more
        self._folder = folder
        self._name = name
        self._files = [status.location for status in io.list(folder)]
        if metadata is not None:
            location = metadata.location.rstrip("/")
            if not Spelling(io.properties).are_same(folder, location):
                # it was registered from elsewhere: its files are those of the table stored there
                metadata = None
            elif self._is_linked(location):
                raise self._refusal(
                    f"by a link, its folder {folder} is that of the table at {location}",
                    "drop that one by its own name or location; to lose this name only, remove "
                    "the link",
                    location,
                )
        self._metadata = metadata
        if more:
            self._check_more()
        self._check_tables()
        self._check_files()
        if kept := io.undeletable_folder(folder):
            raise self._refusal(
                f"{kept} has snapshots of HDFS, which keep the folder and the name",
                "delete the snapshots (hdfs dfs -deleteSnapshot) first",
                kept,
            )

    def delete(self, *, dry_run: bool) -> PurgedTable:
        """Delete the table: rows first, the newest version last, and the folder."""
        purged = PurgedTable()
        if self._metadata is not None:
            here = frozenset(self._files)
            purged = purge_files(
                self._io,
                self._metadata,
                self._own(self._metadata),
                lambda batch: [one for one in batch if one not in here],
                dry_run=dry_run,
            )
        if dry_run:
            return purged
        numbers = {name: version_of(name) for name in self._files}
        last = sorted((number, name) for name, number in numbers.items() if number is not None)
        older = [name for number, name in last if number < last[-1][0]]
        self._io.delete(name for name, number in numbers.items() if number is None)
        # an older version that outlived the newest would be read as the table
        self._io.delete(older)
        self._io.delete(name for _, name in last[len(older) :])
        self._delete_folders()
        return purged

    def _own(self, metadata: TableMetadata) -> OwnFolders:
        return OwnFolders((self._folder,), metadata, self._io.properties, self._more)

    def _check_more(self) -> None:
        """Refuse to delete more than the folder if the table's own files elsewhere are unknown."""
        if self._metadata is None:
            raise self._refusal(
                "nothing is deleted outside of its folder: its metadata is unreadable, or it was "
                "registered from elsewhere, and its files are those of the table there",
                "leave delete_outside (--outside) out",
                self._folder,
            )
        self._own(self._metadata).check_more(self._name)

    def _is_linked(self, location: str) -> bool:
        """Return whether a link leads to the folder, which the table itself calls otherwise."""
        properties = self._io.properties
        folder, own = plain_texts([self._folder, location], properties)
        return folder != own and linked_texts([folder], properties) != [folder]

    def _check_tables(self) -> None:
        for location in self._files:
            if not location.endswith(METADATA_SUFFIXES):
                continue
            if location.rpartition("/")[0] != f"{self._folder}/metadata":
                raise self._refusal(
                    f"another table is in its folder: {location}",
                    "drop or move that table first",
                    location,
                )
            file = location.rpartition("/")[2]
            if version_of(file) is None and not UNPUBLISHED.fullmatch(file):
                raise self._refusal(
                    f"its folder is also that of a table of another catalog: {location}",
                    "drop it there, without purging; if no catalog has it, delete the "
                    "metadata files that are not named v<number> first",
                    location,
                )

    def _check_files(self) -> None:
        own = [f"{self._folder}/{name}/" for name in ("data", "metadata")]
        properties = self._metadata.properties if self._metadata is not None else {}
        for place in (DATA_PATH, OBJECT_STORE_PATH, FOLDER_STORAGE_PATH):
            named = place.of(properties)
            if named and named.startswith(f"{self._folder}/"):
                own.append(f"{named.rstrip('/')}/")
        others = [
            location
            for location in self._files
            if not location.startswith(tuple(own))
            and not location.rpartition("/")[2].startswith(("_", "."))
        ]
        if not others:
            return
        foreign = dict(zip(self._plain(others), others, strict=True))
        if self._metadata is not None:
            for batch in reachable_files(self._io, self._metadata):
                for plain in self._plain(batch):
                    foreign.pop(plain, None)
        if foreign:
            found = sorted(foreign.values())
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise self._refusal(
                f"in its folder are files that are not its own: {', '.join(found[:_SHOWN])}{more}",
                "move them elsewhere, or delete them, first",
                found[0],
            )

    def _refusal(self, found: str, way_out: str, path: str) -> ValidationError:
        return ValidationError(
            f"{self._name} cannot be dropped: {found}",
            hint=f"{way_out}; nothing was deleted.",
            table=self._name,
            path=path,
        )

    def _plain(self, locations: list[str]) -> list[str]:
        return plain_texts(locations, self._io.properties, any_cluster=True)

    def _delete_folders(self) -> None:
        for folder in self._io.folder_tree(self._folder):
            problem = (
                f"Cannot delete {folder}: it is not empty. Links are in it, or something was "
                "written to it meanwhile"
            )
            hint = "The table is gone; check the folder and delete it by hand."
            try:
                deleted = self._io.delete_folder(folder)
            except NoSuchFileError:
                continue
            except FileIOError as error:
                deleted, problem, hint = False, error.message, f"{hint} {error.hint}"
            if not deleted:
                raise FileIOError(problem, hint=hint, path=folder)
