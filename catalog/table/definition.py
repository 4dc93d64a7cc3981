"""The definition of a wanted table, and a draft that is not in its catalog yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from icecomb.catalog.commit.commit import check_commit_allowed
from icecomb.format.argument import checked_text, json_of_pyiceberg, name_of_type, property_texts
from icecomb.format.errors import ValidationError
from icecomb.format.evolution.schema_edit import with_given_defaults
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.own_folders import named_folders
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from icecomb.format.spec.schema import Schema, as_schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER, SortOrder
from icecomb.format.storage.location import check_table_location

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.catalog.identifier import Identifier, Name
    from icecomb.catalog.table.table import Table
    from icecomb.format.evolution.replacement import TableReplacement
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The definition of a table to be created.

    Args:
        schema: The columns.
        location: The folder; None for the catalog's choice, or the old one of a replaced table.
        partition_spec: The partition spec.
        sort_order: The sort order.
        properties: The properties; ``format-version`` among them selects the version.
        last_column_id: None assigns all ids anew. A number keeps those of the schema and spec,
            and no later column gets an id up to this number: files use them already.
    """

    schema: Schema
    location: str | None = None
    partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC
    sort_order: SortOrder = UNSORTED_SORT_ORDER
    properties: Mapping[str, str] = field(default_factory=dict)
    last_column_id: int | None = None

    @classmethod
    def of(
        cls,
        schema: Schema | pa.Schema,
        location: str | None,
        partition_spec: PartitionSpec | None,
        sort_order: SortOrder | None,
        properties: Mapping[str, str] | None,
        *,
        version_of: Callable[[Mapping[str, str]], int],
    ) -> TableDefinition:
        """Create a definition from the arguments of `Catalog.create_table`.

        Args:
            schema: The columns.
            location: The table's folder.
            partition_spec: The partition spec.
            sort_order: The sort order.
            properties: The properties.
            version_of: Returns the format version of the table by its given properties.

        Raises:
            SchemaError: If an Arrow type has no Iceberg type.
            ValidationError: If a property is not text, an argument is of another type, or a default
                is not a value of its column's type.
        """
        if location is not None:
            location = checked_text("location of a table", location).rstrip("/")
        given = property_texts("property", properties)
        return cls(
            with_given_defaults(as_schema(schema, version_of(given))),
            location,
            _own(PartitionSpec, "partition spec", partition_spec),
            _own(SortOrder, "sort order", sort_order),
            given,
        )

    def metadata(self, location: str) -> TableMetadata:
        """Return the metadata of a new table at a location.

        Raises:
            ValidationError: If schema, spec, order and properties do not go together, or engines
                would interpret the location differently.
        """
        check_table_location(location)
        made = new_table_metadata(
            self.schema, self.partition_spec, self.sort_order, location, self.properties
        )
        if self.last_column_id is None:
            return made
        return replace(
            made,
            schemas=(self.schema,),
            current_schema_id=self.schema.schema_id,
            last_column_id=max(self.last_column_id, self.schema.highest_field_id),
            partition_specs=(self.partition_spec,),
            default_spec_id=self.partition_spec.spec_id,
            last_partition_id=self.partition_spec.last_assigned_field_id,
        )

    def replacement(self) -> TableReplacement:
        """Return the change that replaces a table by this one.

        Raises:
            ValidationError: If a property cannot be set to its value.
        """
        from icecomb.format.evolution.replacement import TableReplacement

        return TableReplacement(
            self.schema,
            self.partition_spec,
            self.sort_order,
            location=self.location,
            properties=self.properties,
        )


class DraftCatalog(Protocol):
    """The catalog that a draft is made for; each method is that of `Catalog`."""

    def load_table(self, identifier: Name) -> Table:
        """Load a table; see `Catalog.load_table`."""

    def publish(self, draft: Draft, metadata: TableMetadata) -> Table:
        """Make a table of a draft; see `Catalog.publish`."""

    def discard(self, draft: Draft) -> None:
        """Remove what is left of a draft; see `Catalog.discard`."""


class Draft:
    """A new table that is not in its catalog yet; nothing of it is written."""

    def __init__(
        self, identifier: Identifier, metadata: TableMetadata, io: FileIO, catalog: DraftCatalog
    ) -> None:
        self.identifier = identifier
        self.metadata = metadata
        self.io = io
        self.catalog = catalog

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return ".".join(self.identifier)

    def check_writable(self, metadata: TableMetadata) -> None:
        """Implement `WriteGuard.check_writable`: refuse only what can never be written."""
        check_commit_allowed(self.name, metadata)

    def check_deletable(self, metadata: TableMetadata) -> None:
        """Implement `WriteGuard.check_deletable`: a draft's files are nobody else's."""

    def own_folders(self) -> Sequence[str]:
        """Implement `WriteGuard.own_folders`: whoever makes the table names them."""
        return named_folders(self.metadata)


_F = TypeVar("_F", PartitionSpec, SortOrder)


def _own(kind: type[_F], what: str, given: Any) -> _F:
    """Convert a spec or order, also one of PyIceberg's class; None gives the empty one."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    raw = json_of_pyiceberg(given)
    if type(given).__name__ != kind.__name__ or not isinstance(raw, dict):
        raise ValidationError(
            f"A {what} is {kind.__name__}(...), not {name_of_type(given)}: {given!r}",
            hint=f"Take {kind.__name__} of icecomb.format.",
        )
    return kind.from_json(raw)
