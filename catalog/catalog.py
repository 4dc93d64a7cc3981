"""The operations that every catalog has, under PyIceberg's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from icecomb.catalog.administration import CatalogAdmin
from icecomb.catalog.configuration.catalog_property import Properties
from icecomb.catalog.identifier import Identifier, Name, parse_identifier
from icecomb.catalog.table.definition import Draft, TableDefinition
from icecomb.catalog.view.view_catalog import ViewCatalog
from icecomb.format.argument import checked_text
from icecomb.format.errors import (
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icecomb.format.secret import shown
from icecomb.format.spec.metadata import new_format_version

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from icecomb.catalog.commit.purge import PurgedTable
    from icecomb.catalog.table.table import Table
    from icecomb.catalog.table.table_creation import CreateTableTransaction, ReplaceTableTransaction
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder
    from icecomb.format.storage.file_io import FileIO


class Catalog(ViewCatalog, CatalogAdmin, ABC):
    """Namespaces and tables by name.

    Args:
        name: The catalog's own name.
        properties: Its configuration.

    Attributes:
        io: File system that holds the metadata files.
        has_levels: Whether namespaces may be nested, and names keep their case: true for folders,
            false for databases of a metastore.
    """

    io: FileIO
    has_levels: ClassVar[bool] = True

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self.properties = Properties(properties)

    def close(self) -> None:
        """Close the connections that the catalog holds open; it stays usable."""
        self.io.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        key = "uri" if "uri" in self.properties else "warehouse"
        value = shown(key, self.properties.get(key, ""))
        return f"{type(self).__name__}({self.name!r}, {key}={value!r})"

    @abstractmethod
    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """Return the namespaces below ``namespace``.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
        """

    @abstractmethod
    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace; its properties ``comment`` and ``location`` have a meaning.

        Raises:
            NamespaceAlreadyExistsError: If it exists.
        """

    def create_namespace_if_not_exists(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace unless it exists; leave an existing one unchanged."""
        try:
            self.create_namespace(namespace, properties)
        except NamespaceAlreadyExistsError:
            return

    def namespace_exists(self, namespace: Name) -> bool:
        """Return whether there is a namespace of this name."""
        try:
            self.load_namespace_properties(namespace)
        except NoSuchNamespaceError:
            return False
        return True

    @abstractmethod
    def drop_namespace(self, namespace: Name) -> None:
        """Drop an empty namespace.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
            NamespaceNotEmptyError: If it is not empty.
        """

    @abstractmethod
    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties, including its ``location`` and ``comment``.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
        """

    @abstractmethod
    def update_namespace_properties(
        self,
        namespace: Name,
        removals: Iterable[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> None:
        """Remove and set properties of a namespace.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
            ValidationError: If a property is both removed and set.
        """

    @abstractmethod
    def list_tables(self, namespace: Name) -> list[Identifier]:
        """Return the Iceberg tables of a namespace; no metadata file is opened.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
        """

    @abstractmethod
    def load_table(self, identifier: Name) -> Table:
        """Load a table in its current state.

        Raises:
            NoSuchTableError: If there is no such table.
            NoSuchIcebergTableError: If the table is not an Iceberg table.
            NoSuchFileError: If its metadata file is missing.
        """

    def table_exists(self, identifier: Name) -> bool:
        """Return whether there is an Iceberg table of this name (its metadata may be missing)."""
        try:
            self.load_pointer(identifier)
        except (NoSuchTableError, LookupError):
            return False
        return True

    @abstractmethod
    def load_pointer(self, identifier: Name) -> str:
        """Return the location of a table's current metadata file, which is not opened.

        Raises:
            NoSuchTableError: If there is no such table.
        """

    def create_table(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Create an empty table.

        Args:
            identifier: The table's name.
            schema: The columns; field ids are assigned anew, spec and order follow them.
            location: The table's folder; default below the namespace's.
            partition_spec: The partition spec; default unpartitioned.
            sort_order: The sort order; default unsorted.
            properties: The table's properties; ``format-version`` is 2 unless given as 1 or 3.

        Raises:
            TableAlreadyExistsError: If the name is taken.
            NoSuchNamespaceError: If there is no such namespace.
            ValidationError: If this catalog does not support the name, the location or a property.
        """
        return self.create_table_transaction(
            identifier, schema, location, partition_spec, sort_order, properties
        ).commit_transaction()

    def create_table_if_not_exists(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Create an empty table unless it exists; load an existing one unchanged.

        The arguments and the other errors are those of `create_table`.

        Raises:
            NoSuchIcebergTableError: If the name is taken by a table that is not an Iceberg table.
        """
        try:
            return self.create_table(
                identifier, schema, location, partition_spec, sort_order, properties
            )
        except TableAlreadyExistsError:
            return self.load_table(identifier)

    def create_table_transaction(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CreateTableTransaction:
        """Create a table together with changes of it: others see all of it or nothing.

        >>> with catalog.create_table_transaction("db.t", schema) as new:  # doctest: +SKIP
        ...     new.append(rows)

        The arguments and errors are those of `create_table`. If another writer takes the name
        meanwhile, the commit raises `TableAlreadyExistsError`, and the written files are removed.
        """
        from icecomb.catalog.table.table_creation import CreateTableTransaction

        wanted = TableDefinition.of(
            schema, location, partition_spec, sort_order, properties, version_of=self._new_version
        )
        return CreateTableTransaction(self.draft(identifier, wanted))

    def replace_table(  # noqa: PLR0917 - the signature of create_table
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Replace a table by an empty one; its snapshots, history, branches and tags stay.

        Args:
            identifier: The table's name.
            schema: The new columns; they keep the ids of the old columns of the same names.
            location: The table's folder; default the old one.
            partition_spec: The new partition spec; default unpartitioned.
            sort_order: The new sort order; default unsorted.
            properties: Properties added to the old ones; ``format-version`` upgrades the table.

        Raises:
            NoSuchTableError: If there is no such table.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the table was replaced.
        """
        return self.replace_table_transaction(
            identifier, schema, location, partition_spec, sort_order, properties
        ).commit_transaction()

    def replace_table_transaction(  # noqa: PLR0917 - the signature of create_table
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ReplaceTableTransaction:
        """Replace a table together with changes: others see the old table or the new one.

        >>> with catalog.replace_table_transaction("db.t", schema) as new:  # doctest: +SKIP
        ...     new.append(rows)

        The arguments and errors are those of `replace_table`.
        """
        from icecomb.catalog.table.table_creation import ReplaceTableTransaction

        table = self.load_table(identifier)
        now = {"format-version": str(table.metadata.format_version)}
        wanted = TableDefinition.of(
            schema,
            location,
            partition_spec,
            sort_order,
            properties,
            version_of=lambda given: new_format_version({**now, **given}),
        )
        if location is not None:
            wanted = replace(wanted, location=self.new_location(table, location))
        # the format version that new tables get by default must not downgrade an existing one
        return ReplaceTableTransaction(
            table, self._completed(wanted, without="format-version").replacement()
        )

    def create_or_replace_table(  # noqa: PLR0917 - the signature of create_table
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Run `replace_table` if there is such a table, else `create_table`."""
        return self.create_or_replace_table_transaction(
            identifier, schema, location, partition_spec, sort_order, properties
        ).commit_transaction()

    def create_or_replace_table_transaction(  # noqa: PLR0917 - the signature of create_table
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CreateTableTransaction | ReplaceTableTransaction:
        """Run `replace_table_transaction` if the table exists, else `create_table_transaction`.

        This is decided now: the commit of a creation fails when another writer takes the name.
        """
        try:
            return self.replace_table_transaction(
                identifier, schema, location, partition_spec, sort_order, properties
            )
        except NoSuchIcebergTableError:
            raise
        except NoSuchTableError:
            return self.create_table_transaction(
                identifier, schema, location, partition_spec, sort_order, properties
            )

    @abstractmethod
    def draft(self, identifier: Name, definition: TableDefinition) -> Draft:
        """Return a table that `publish` can create; nothing of it is written yet.

        Raises:
            TableAlreadyExistsError, NoSuchNamespaceError, ValidationError: As in `create_table`.
        """

    @abstractmethod
    def publish(self, draft: Draft, metadata: TableMetadata) -> Table:
        """Create the table of a draft.

        Args:
            draft: The draft.
            metadata: The table's metadata, with all changes since the draft.

        Raises:
            TableAlreadyExistsError: If the name was taken meanwhile.
        """

    def discard(self, draft: Draft) -> None:
        """Remove the remains of a draft that was not published and whose files are deleted."""

    def new_location(self, table: Table, location: str) -> str:  # noqa: ARG002
        """Return the new folder of a table to be replaced, as metadata names it.

        Raises:
            ValidationError: If the table cannot be stored there.
        """
        return checked_text("location of a table", location).rstrip("/")

    @abstractmethod
    def register_table(self, identifier: Name, metadata_location: str) -> Table:
        """Register an existing metadata file under a name; it is not copied, nor ever deleted.

        Raises:
            TableAlreadyExistsError: If the name is taken.
            NoSuchFileError: If there is no such file.
        """

    @abstractmethod
    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Rename a table; its files stay where they are.

        Raises:
            NoSuchTableError: If there is no such table.
            TableAlreadyExistsError: If the new name is taken.
            CommitFailedError: If another writer changed it meanwhile; nothing was renamed.
        """

    @abstractmethod
    def drop_table(self, identifier: Name, purge_requested: bool = False) -> None:  # noqa: FBT001, FBT002 - PyIceberg's signature
        """Drop a table from the catalog; its files stay.

        Args:
            identifier: The table's name.
            purge_requested: Whether to delete every file reachable from its metadata, too, unless
                its property ``gc.enabled`` is false. This cannot be undone.

        Raises:
            NoSuchTableError: If there is no such table.
            NoSuchIcebergTableError: If it is not an Iceberg table; it is unchanged.
        """

    def check_drop(
        self, identifier: Name, metadata: TableMetadata | None, *, purge_requested: bool
    ) -> None:
        """Refuse what `drop_table` would refuse for a table of this metadata.

        Args:
            identifier: The table's name.
            metadata: The table's metadata; None if it cannot be read.
            purge_requested: As in `drop_table`.

        Raises:
            ValidationError: If it is to be purged, but its property ``gc.enabled`` is false.
        """
        from icecomb.catalog.commit.purge import check_purge_allowed

        if purge_requested and metadata is not None:
            check_purge_allowed(".".join(parse_identifier(identifier)), metadata)

    @abstractmethod
    def purge_table(
        self, identifier: Name, *, delete_outside: Iterable[str] = (), dry_run: bool = False
    ) -> PurgedTable:
        """Drop a table and delete its files, as `drop_table` with ``purge_requested``.

        Files outside of the table's folders stay: a path in metadata may be anybody's.

        Args:
            identifier: The table's name.
            delete_outside: Absolute locations of folders, such as those that
                `PurgedTable.left_outside` of a dry run names, whose files are the table's alone:
                its files there are deleted, too.
            dry_run: Whether only to tell what would be left; nothing is changed.

        Raises:
            NoSuchTableError, NoSuchIcebergTableError: As in `drop_table`.
            ValidationError: If its property ``gc.enabled`` is false, or a folder of
                ``delete_outside`` is relative, the root of a storage, or holds the warehouse.
        """

    def new_metadata(self, definition: TableDefinition, location: str) -> TableMetadata:
        """Return the metadata of a table to be created.

        The catalog's properties ``table-default.*`` and ``table-override.*`` are applied.

        Raises:
            ValidationError: If schema, spec, order and properties do not go together.
        """
        return self._completed(definition).metadata(location)

    def _new_version(self, given: Mapping[str, str]) -> int:
        """Return the format version of a new table of these properties."""
        return new_format_version(self._with_defaults(given))

    def _completed(self, definition: TableDefinition, without: str = "") -> TableDefinition:
        properties = self._with_defaults(definition.properties, without)
        return replace(definition, properties=properties)

    def _with_defaults(self, given: Mapping[str, str], without: str = "") -> dict[str, str]:
        defaults = self.properties_below("table-default.")
        defaults.pop(without, None)
        return {**defaults, **given, **self.properties_below("table-override.")}

    def properties_below(self, prefix: str) -> dict[str, str]:
        """Return the catalog's properties whose keys begin with ``prefix``, without the prefix."""
        return self.properties.below(prefix)
