"""The operations of a catalog on views."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

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


class ViewCatalog:
    """The methods of a `Catalog` for views.

    Only a metastore keeps views: elsewhere there is none, and `create_view` raises
    `UnsupportedError`.

    Attributes:
        keeps_views: Whether the catalog keeps views: only a metastore does.
    """

    name: str
    properties: Properties
    keeps_views: ClassVar[bool] = False

    def list_views(self, namespace: Name) -> list[Identifier]:
        """Return the Iceberg views of a namespace; no metadata file is opened.

        Raises:
            NoSuchNamespaceError: If there is no such namespace.
        """
        self.load_namespace_properties(namespace)
        return []

    def load_view(self, identifier: Name) -> View:
        """Load a view in its current version.

        Raises:
            NoSuchViewError: If there is no such view.
            NoSuchIcebergViewError: If the name is that of something else.
        """
        self._no_view(identifier)

    def view_exists(self, identifier: Name) -> bool:  # noqa: ARG002 - there is none
        """Return whether there is an Iceberg view of this name."""
        return False

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
        return self._create_view(identifier, definition, location, given)

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

    def rename_view(self, from_identifier: Name, to_identifier: Name) -> View:  # noqa: ARG002
        """Rename a view; its metadata files stay where they are.

        Raises:
            NoSuchViewError: If there is no such view.
            TableAlreadyExistsError, ViewAlreadyExistsError: If the new name is taken.
            CommitFailedError: If another writer changed it meanwhile; nothing was renamed.
        """
        self._no_view(from_identifier)

    def drop_view(self, identifier: Name) -> None:
        """Drop a view from the catalog; its metadata files stay.

        Raises:
            NoSuchViewError: If there is no such view.
            NoSuchIcebergViewError: If the name is that of something else, which is unchanged.
        """
        self._no_view(identifier)

    def view_commit_status(
        self,
        identifier: Name,
        metadata_location: str,  # noqa: ARG002
        *,
        expectation_sent: bool = False,  # noqa: ARG002
    ) -> CommitStatus:
        """Return the status of a view's commit; see `commit_status.commit_status`.

        Raises:
            NoSuchViewError: If there is no such view.
            ValidationError: If the file is another view's.
        """
        self._no_view(identifier)

    @abstractmethod
    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties, as `Catalog.load_namespace_properties`."""

    def _create_view(
        self,
        identifier: Name,  # noqa: ARG002
        definition: ViewDefinition,  # noqa: ARG002
        location: str | None,  # noqa: ARG002
        properties: Mapping[str, str],  # noqa: ARG002
    ) -> View:
        raise UnsupportedError(
            f"Catalog {self.name} keeps no views: only a metastore does", hint=_METASTORE
        )

    def _no_view(self, identifier: Name) -> NoReturn:
        raise NoSuchViewError(
            f"There is no view {'.'.join(parts_of(identifier))}: catalog {self.name} keeps none, "
            "only a metastore does",
            hint=_METASTORE,
        )


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
