"""What a catalog does with views; one without a metastore refuses it."""

# ruff: noqa: ARG002 - a refusal has the arguments of what it refuses

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icecomb.catalog.identifier import Identifier
from icecomb.catalog.view import View
from icecomb.format.errors import UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.catalog.catalog import Name
    from icecomb.catalog.commit_status import CommitFate
    from icecomb.format.spec.schema import Schema


class ViewCatalog:
    """The part of `Catalog` that is about views: here each call is refused."""

    name: str

    def list_views(self, namespace: Name) -> list[Identifier]:
        """The Iceberg views of a namespace; no metadata file is opened.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

    def load_view(self, identifier: Name) -> View:
        """A view in its current state.

        Raises:
            NoSuchViewError: there is no such view.
            NoSuchIcebergViewError: there is something else of this name.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

    def view_exists(self, identifier: Name) -> bool:
        """Whether there is an Iceberg view of this name.

        Raises:
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

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
        """Make a view.

        >>> catalog.create_view("db.v", schema, {"spark": "SELECT ..."})  # doctest: +SKIP

        Args:
            identifier: Its name.
            schema: The columns of its result.
            queries: SQL by dialect.
            default_namespace: Where names without one are looked up; default the view's.
            default_catalog: Where names without one are; default where the view is.
            location: The folder of its metadata; default below the namespace's.
            properties: Its properties, as ``comment``.

        Raises:
            TableAlreadyExistsError, ViewAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: there is no such namespace.
            ValidationError: there is no query, or two in one dialect.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

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
        """Make a view another one; its identity, history and properties stay.

        The arguments are those of `create_view`.

        Raises:
            NoSuchViewError: there is no such view.
            ValidationError: it would lose a dialect, and ``replace.drop-dialect.allowed`` is not
                true.
            CommitFailedError: others were first too often; nothing was changed.
            CommitStateUnknownError: it cannot be told whether it was replaced.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

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
        """`replace_view` if there is such a view, else `create_view`."""
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
            NoSuchViewError: there is no such view.
            TableAlreadyExistsError, ViewAlreadyExistsError: the new name is taken.
            CommitFailedError: another writer changed it meanwhile; nothing was renamed.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

    def drop_view(self, identifier: Name) -> None:
        """Take a view out of the catalog; its metadata files stay.

        Raises:
            NoSuchViewError: there is no such view.
            NoSuchIcebergViewError: there is something else of this name; it is left alone.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

    def view_fate(
        self, identifier: Name, metadata_location: str, *, told: bool = False
    ) -> CommitFate:
        """See `icecomb.catalog.commit_status.commit_fate`.

        Raises:
            NoSuchViewError: there is no such view.
            ValidationError: the file is another view's.
            UnsupportedError: the catalog keeps no views.
        """
        raise self._without_views()

    def _without_views(self) -> UnsupportedError:
        return UnsupportedError(
            f"Catalog {self.name} keeps no views: only a metastore does",
            hint="use a catalog with a metastore, uri=thrift://host:9083",
        )
