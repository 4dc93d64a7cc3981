"""What every catalog can do, under PyIceberg's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from icecomb.catalog.definition import Draft, TableDefinition
from icecomb.catalog.identifier import AbandonedLock, Entry, Identifier, parse_identifier
from icecomb.catalog.setting import Properties
from icecomb.catalog.view_catalog import ViewCatalog
from icecomb.format.argument import checked_text
from icecomb.format.errors import (
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icecomb.format.property import shown

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa
    from typing_extensions import Self

    from icecomb.catalog.table import Table
    from icecomb.catalog.table_creation import CreateTableTransaction, ReplaceTableTransaction
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder
    from icecomb.format.storage.file_io import FileIO

Name: TypeAlias = "str | Iterable[str]"
"""A name as ``"db.table"`` or ``("db", "table")``."""


class Catalog(ViewCatalog, ABC):
    """Namespaces and tables by name.

    Args:
        name: The catalog's own name.
        properties: How it was configured.

    Attributes:
        io: Where metadata files are.
        has_levels: Whether namespaces may be inside of others, and names keep their case: folders
            are so, databases of a metastore are not.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        key = "uri" if "uri" in self.properties else "warehouse"
        value = shown(key, self.properties.get(key, ""))
        return f"{type(self).__name__}({self.name!r}, {key}={value!r})"

    @abstractmethod
    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """The namespaces below ``namespace``.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
        """

    @abstractmethod
    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace; properties ``comment`` and ``location`` have a meaning.

        Raises:
            NamespaceAlreadyExistsError: it exists.
        """

    def create_namespace_if_not_exists(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace unless it exists; an existing one is left as it is."""
        try:
            self.create_namespace(namespace, properties)
        except NamespaceAlreadyExistsError:
            return

    def namespace_exists(self, namespace: Name) -> bool:
        """Whether there is a namespace of this name."""
        try:
            self.load_namespace_properties(namespace)
        except NoSuchNamespaceError:
            return False
        return True

    @abstractmethod
    def drop_namespace(self, namespace: Name) -> None:
        """Drop an empty namespace.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            NamespaceNotEmptyError: something is in it.
        """

    @abstractmethod
    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """A namespace's properties, its ``location`` and ``comment`` among them.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
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
            NoSuchNamespaceError: there is no such namespace.
            ValidationError: a property is removed and set at once.
        """

    @abstractmethod
    def list_tables(self, namespace: Name) -> list[Identifier]:
        """The Iceberg tables of a namespace; no metadata file is opened.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
        """

    @abstractmethod
    def load_table(self, identifier: Name) -> Table:
        """A table in its current state.

        Raises:
            NoSuchTableError: there is no such table.
            NoSuchIcebergTableError: there is one, but it is not Iceberg's.
            FileMissingError: its metadata file is lost.
        """

    def table_exists(self, identifier: Name) -> bool:
        """Whether there is an Iceberg table of this name (its metadata may be lost)."""
        try:
            self.load_pointer(identifier)
        except (NoSuchTableError, LookupError):
            return False
        return True

    @abstractmethod
    def load_pointer(self, identifier: Name) -> str:
        """The location of a table's current metadata file, which is not opened.

        Raises:
            NoSuchTableError: there is no such table.
        """

    def entries_below(
        self,
        folder: str,  # noqa: ARG002
        namespace: Identifier | None = None,  # noqa: ARG002
    ) -> Iterator[Entry]:
        """What the catalog keeps of tables of any format that lie in a folder, or below it.

        A catalog in which tables are folders answers nothing: to look there tells more.

        Args:
            folder: The folder.
            namespace: Look at the tables of this one only; otherwise all are looked at.
        """
        return iter(())

    def abandoned_locks(self, identifier: Name | None = None) -> list[AbandonedLock]:  # noqa: ARG002
        """Locks on tables whose holders must be dead; a catalog without locks has none.

        Args:
            identifier: Only those on this table.

        Raises:
            MetastoreError: The catalog cannot be asked for them.
        """
        return []

    def refuses_late(self, identifier: Name, *, told: bool) -> bool:  # noqa: ARG002
        """Whether a commit that comes late is refused by whoever holds the pointer.

        The file system does: no file takes the place of another one.

        Args:
            identifier: The table or view.
            told: The commit's request says which pointer it expects, as icecomb's do.
        """
        return True

    def create_table(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec | None = None,
        sort_order: SortOrder | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Make an empty table.

        Args:
            identifier: Its name.
            schema: Its columns; field ids are assigned anew, spec and order follow them.
            location: Its folder; default below the namespace's.
            partition_spec: Default unpartitioned.
            sort_order: Default unsorted.
            properties: Its properties; ``format-version`` is 2 unless given as 1.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: there is no such namespace.
            ValidationError: the name, the location or a property is none that this catalog can
                take.
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
        """Make an empty table unless it exists; an existing one is loaded as it is.

        The arguments and the other errors are those of `create_table`.

        Raises:
            NoSuchIcebergTableError: the name is taken by a table that is not Iceberg's.
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
        """Make a table together with changes of it: others see all of it or nothing.

        >>> with catalog.create_table_transaction("db.t", schema) as new:  # doctest: +SKIP
        ...     new.append(rows)

        The arguments and errors are those of `create_table`. When others take the name
        meanwhile, the commit raises `TableAlreadyExistsError`, and what was written is removed.
        """
        from icecomb.catalog.table_creation import CreateTableTransaction

        wanted = TableDefinition.of(schema, location, partition_spec, sort_order, properties)
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
        """Make a table another one, empty; its snapshots, history, branches and tags stay.

        Args:
            identifier: Its name.
            schema: Its columns; they keep the ids of the old columns of the same names.
            location: Its folder; default the old one.
            partition_spec: Default unpartitioned.
            sort_order: Default unsorted.
            properties: Are added to the old ones; ``format-version`` upgrades the table.

        Raises:
            NoSuchTableError: there is no such table.
            CommitFailedError: others were first too often; nothing was committed.
            CommitStateUnknownError: it cannot be told whether the table was replaced.
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
        """Make a table another one together with changes: others see the old one or the new one.

        >>> with catalog.replace_table_transaction("db.t", schema) as new:  # doctest: +SKIP
        ...     new.append(rows)

        The arguments and errors are those of `replace_table`.
        """
        from icecomb.catalog.table_creation import ReplaceTableTransaction

        table = self.load_table(identifier)
        wanted = TableDefinition.of(schema, location, partition_spec, sort_order, properties)
        if location is not None:
            wanted = replace(wanted, location=self.new_location(table, location))
        # what new tables begin with is no wish to take an old one back
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
        """`replace_table` if there is such a table, else `create_table`."""
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
        """`replace_table_transaction` if there is such a table, else `create_table_transaction`.

        Which of them is decided now: the commit of a creation fails when others take the name.
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
        """A table that `publish` can make; nothing of it is written yet.

        Raises:
            TableAlreadyExistsError, NoSuchNamespaceError, ValidationError: see `create_table`.
        """

    @abstractmethod
    def publish(self, draft: Draft, metadata: TableMetadata) -> Table:
        """Make a table of a draft.

        Args:
            draft: The table.
            metadata: What it is like by now.

        Raises:
            TableAlreadyExistsError: the name was taken meanwhile.
        """

    def forget(self, draft: Draft) -> None:
        """Remove what is left of a draft that was not published and whose files are deleted."""

    def new_location(self, table: Table, location: str) -> str:  # noqa: ARG002
        """The new folder of a table that is replaced, as metadata names it.

        Raises:
            ValidationError: the table cannot be there.
        """
        return checked_text("location of a table", location).rstrip("/")

    @abstractmethod
    def register_table(self, identifier: Name, metadata_location: str) -> Table:
        """Take an existing metadata file in under a name; it is not copied, nor ever deleted.

        Raises:
            TableAlreadyExistsError: the name is taken.
            FileMissingError: there is no such file.
        """

    @abstractmethod
    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Rename a table; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table.
            TableAlreadyExistsError: the new name is taken.
            CommitFailedError: another writer changed it meanwhile; nothing was renamed.
        """

    @abstractmethod
    def drop_table(self, identifier: Name, purge_requested: bool = False) -> None:  # noqa: FBT001, FBT002 - PyIceberg's signature
        """Take a table out of the catalog; its files stay.

        Args:
            identifier: Its name.
            purge_requested: Delete every file reachable from its metadata, too, unless its property
                ``gc.enabled`` is false. It cannot be undone.

        Raises:
            NoSuchTableError: there is no such table.
            NoSuchIcebergTableError: it is not Iceberg's; it is left alone.
        """

    def check_drop(
        self, identifier: Name, metadata: TableMetadata | None, *, purge_requested: bool
    ) -> None:
        """Refuse what `drop_table` would refuse to do to a table of this metadata.

        Args:
            identifier: Its name.
            metadata: What it is like; None if that cannot be read.
            purge_requested: As in `drop_table`.

        Raises:
            ValidationError: it is to be purged, and its property ``gc.enabled`` is false.
        """
        from icecomb.catalog.purge import check_purge_allowed

        if purge_requested and metadata is not None:
            check_purge_allowed(".".join(parse_identifier(identifier)), metadata)

    def purge_table(self, identifier: Name) -> None:
        """`drop_table` with its files."""
        self.drop_table(identifier, purge_requested=True)

    def new_metadata(self, definition: TableDefinition, location: str) -> TableMetadata:
        """The metadata of a table to be made.

        The catalog's properties ``table-default.*`` and ``table-override.*`` are applied.

        Raises:
            ValidationError: schema, spec, order and properties do not go together.
        """
        return self._completed(definition).metadata(location)

    def _completed(self, definition: TableDefinition, without: str = "") -> TableDefinition:
        defaults = self.properties_below("table-default.")
        defaults.pop(without, None)
        overrides = self.properties_below("table-override.")
        properties = {**defaults, **definition.properties, **overrides}
        return replace(definition, properties=properties)

    def properties_below(self, prefix: str) -> dict[str, str]:
        """The catalog's properties whose keys begin so, without that beginning."""
        return self.properties.below(prefix)
