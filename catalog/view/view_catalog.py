"""The operations of a catalog on views."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from icecomb.catalog.configuration.catalog_property import Properties
from icecomb.catalog.identifier import Identifier, parts_of
from icecomb.catalog.view.view import View
from icecomb.format.argument import property_texts
from icecomb.format.errors import NoSuchViewError, UnsupportedError
from icecomb.format.spec.metadata import DEFAULT_FORMAT_VERSION
from icecomb.format.spec.schema import as_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.catalog.commit.commit_status import CommitStatus
    from icecomb.catalog.identifier import Name
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.view import ViewDefinition


_METASTORE: Final = "Use a catalog with a metastore, uri=thrift://host:9083"


class Views(Protocol):
    """The views of one catalog; each method is that of `ViewCatalog`."""

    def listed(self, namespace: Name) -> list[Identifier]:
        """Return the views of a namespace, as `ViewCatalog.list_views`."""

    def load(self, identifier: Name) -> View:
        """Load a view, as `ViewCatalog.load_view`."""

    def exists(self, identifier: Name) -> bool:
        """Return whether a view exists, as `ViewCatalog.view_exists`."""

    def create(
        self,
        identifier: Name,
        definition: ViewDefinition,
        location: str | None,
        properties: Mapping[str, str],
    ) -> View:
        """Create a view, as `ViewCatalog.create_view`."""

    def rename(self, from_identifier: Name, to_identifier: Name) -> View:
        """Rename a view, as `ViewCatalog.rename_view`."""

    def drop(self, identifier: Name) -> None:
        """Drop a view, as `ViewCatalog.drop_view`."""

    def commit_status(
        self, identifier: Name, metadata_location: str, *, expectation_sent: bool
    ) -> CommitStatus:
        """Return a commit's status, as `ViewCatalog.view_commit_status`."""


class ViewCatalog:
    """The methods of a `Catalog` for views.

    Only a metastore keeps views: elsewhere there is none, and `create_view` raises
    `UnsupportedError`.
    """

    name: str
    properties: Properties
    _views: Views | None = None

    @property
    def keeps_views(self) -> bool:
        """Whether the catalog keeps views: only a metastore does."""
        return self._views is not None

    def list_views(self, namespace: Name) -> list[Identifier]:
        """Return the Iceberg views of a namespace; no metadata file is opened.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
        """
        if self._views is None:
            self.load_namespace_properties(namespace)
            return []
        return self._views.listed(namespace)

    def load_view(self, identifier: Name) -> View:
        """Load a view in its current version.

        Raises:
            NoSuchViewError: If there is no such view.
            NoSuchIcebergViewError: If the name is that of something else.
        """
        return self._views_with(identifier).load(identifier)

    def view_exists(self, identifier: Name) -> bool:
        """Return whether there is an Iceberg view of this name."""
        return self._views is not None and self._views.exists(identifier)

    def create_view(
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        queries: Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Create a view.

        >>> catalog.create_view("db.v", schema, {"spark": "SELECT ..."})  # doctest: +SKIP

        Args:
            identifier: The view's name.
            schema: The columns of its result.
            queries: SQL by dialect.
            default_namespace: The namespace of names without one; default the view's.
            default_catalog: The catalog of names without one; default the view's.
            location: The folder of its metadata; default below the namespace's.
            properties: The view's properties, such as ``comment``.

        Raises:
            TableAlreadyExistsError, ViewAlreadyExistsError: If the name is taken.
            NoSuchNamespaceError: If there is no such namespace.
            ValidationError: If there is no query, or two in one dialect.
        """
        definition = _definition(identifier, schema, queries, default_namespace, default_catalog)
        given = {
            **self.properties.below("view-default."),
            **property_texts("property", properties),
            **self.properties.below("view-override."),
        }
        if self._views is None:
            raise UnsupportedError(
                f"Catalog {self.name} keeps no views: only a metastore does", hint=_METASTORE
            )
        return self._views.create(identifier, definition, location, given)

    def replace_view(
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        queries: Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Replace a view by another one; its uuid, history and properties stay.

        The arguments are those of `create_view`.

        Raises:
            NoSuchViewError: If there is no such view.
            ValidationError: If it would lose a dialect, and ``replace.drop-dialect.allowed`` is not
                true.
            CommitFailedError: If other writers were first too often; nothing was changed.
            CommitStateUnknownError: If it is unknown whether it was replaced.
        """
        from icecomb.format.spec.view import replace_view

        view = self.load_view(identifier)
        definition = _definition(view.name(), schema, queries, default_namespace, default_catalog)
        given = property_texts("property", properties)
        wanted = {**given, **self.properties.below("view-override.")}
        return view.change(lambda base: replace_view(base, definition, wanted, location))

    def create_or_replace_view(
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        queries: Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Run `replace_view` if there is such a view, else `create_view`."""
        act = self.replace_view if self.view_exists(identifier) else self.create_view
        return act(
            identifier,
            schema,
            queries,
            default_namespace=default_namespace,
            default_catalog=default_catalog,
            location=location,
            properties=properties,
        )

    def rename_view(self, from_identifier: Name, to_identifier: Name) -> View:
        """Rename a view; its metadata files stay where they are.

        Raises:
            NoSuchViewError: If there is no such view.
            TableAlreadyExistsError, ViewAlreadyExistsError: If the new name is taken.
            CommitFailedError: If another writer changed it meanwhile; nothing was renamed.
        """
        return self._views_with(from_identifier).rename(from_identifier, to_identifier)

    def drop_view(self, identifier: Name) -> None:
        """Drop a view from the catalog; its metadata files stay.

        Raises:
            NoSuchViewError: If there is no such view.
            NoSuchIcebergViewError: If the name is that of something else, which is unchanged.
        """
        self._views_with(identifier).drop(identifier)

    def view_commit_status(
        self, identifier: Name, metadata_location: str, *, expectation_sent: bool = False
    ) -> CommitStatus:
        """Return the status of a view's commit; see `commit_status.commit_status`.

        Raises:
            NoSuchViewError: If there is no such view.
            ValidationError: If the file is another view's.
        """
        return self._views_with(identifier).commit_status(
            identifier, metadata_location, expectation_sent=expectation_sent
        )

    @abstractmethod
    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties, as `Catalog.load_namespace_properties`."""

    def _views_with(self, identifier: Name) -> Views:
        """Return the views, among which may be one of this name."""
        if self._views is None:
            name = ".".join(parts_of(identifier))
            raise NoSuchViewError(
                f"There is no view {name}: catalog {self.name} keeps none, only a metastore does",
                hint=_METASTORE,
            )
        return self._views


def _definition(
    identifier: Name,
    schema: Schema | pa.Schema,
    queries: Mapping[str, str],
    default_namespace: Name | None,
    default_catalog: str | None,
) -> ViewDefinition:
    from importlib.metadata import version

    from icecomb.format.spec.view import ViewDefinition

    namespace = (
        parts_of(identifier)[:-1] if default_namespace is None else parts_of(default_namespace)
    )
    summary = {"engine-name": "icecomb", "engine-version": version("icecomb")}
    # a view has no format version, and engines convert its query to these types
    chosen = as_schema(schema, DEFAULT_FORMAT_VERSION)
    return ViewDefinition(chosen, queries, namespace, default_catalog, summary)
