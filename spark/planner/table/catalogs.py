"""The catalogs of a Spark application, and their namespaces."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NamespaceNotEmptyError, NoSuchNamespaceError
from icecomb.spark.planner.protocol.catalogs import (
    AlterNamespace,
    CreateNamespace,
    Done,
    DropNamespace,
    Dropped,
    ListNamespaces,
    LoadNamespace,
    NamespaceProperties,
    Namespaces,
    OpenCatalog,
    OpenedCatalog,
)
from icecomb.spark.planner.table.catalog_options import (
    DEFAULT_NAMESPACE,
    catalog_properties,
    strange_names,
)
from icecomb.spark.planner.table.identity import acting_as, of_others
from icecomb.spark.planner.table.open_catalogs import OpenCatalogs
from icecomb.spark.planner.table.task_settings import task_settings

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.table.table import Table

_LOG: Final = logging.getLogger(__name__)


class Catalogs:
    """The open catalogs, by handle.

    A handle depends only on name, settings and user: a catalog opened again after a restart of the
    planner has the same one, and no user is served by the catalog of another.
    """

    def __init__(self) -> None:
        self._open = OpenCatalogs()
        self._metastores: dict[str, str | None] = {}
        self._engines: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def open_catalog(self, request: OpenCatalog) -> OpenedCatalog:
        """Answer `OpenCatalog`."""
        from icecomb.catalog.configuration.configuration import load_configuration

        name, environment, identity = request.name, request.environment, request.identity
        properties = catalog_properties(name, request.options, environment)
        hadoop = of_others(environment.hadoop)
        who = [identity.user, identity.real_user]
        text = json.dumps([name, properties, hadoop, who], sort_keys=True)
        handle = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        configuration = load_configuration(name, properties, hadoop=hadoop)
        configuration = acting_as(configuration, environment, identity, handle)
        with self._lock:
            known = handle in self._open
            self._open.add(handle, configuration)
            if not known and (strange := strange_names(properties)):
                _LOG.warning(
                    "catalog %s: nothing here has a meaning for %s", name, ", ".join(strange)
                )
            self._metastores[handle] = environment.metastore_uris
            self._engines[handle] = {
                "engine-name": "spark",
                "engine-version": environment.spark_version,
                "app-id": environment.application_id,
                "spark.app.id": environment.application_id,
            }
            if environment.application_name:
                self._engines[handle]["app-name"] = environment.application_name
        # report what the configuration lacks now, before the first request
        self._open[handle]
        default = request.options.get(DEFAULT_NAMESPACE, "default")
        return OpenedCatalog(
            handle,
            tuple(default.split(".")),
            f"icecomb {version('icecomb')}",
            task_settings(configuration.properties, environment.hadoop),
        )

    def when_let_go(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the handle of each catalog that is closed."""
        self._open.when_let_go(tell)

    def let_idle_go(self) -> float:
        """Close idle catalogs; return the seconds until the next check."""
        return self._open.let_idle_go()

    def __getitem__(self, handle: str) -> Catalog:
        return self._open[handle]

    def load_table(self, handle: str, name: tuple[str, ...]) -> Table:
        """Load the table of a name or at a location, as distinguished by `named`."""
        catalog = self[handle]
        if len(name) > 1:
            return catalog.load_table(name)
        from icecomb.catalog.hadoop.catalog import open_path

        return open_path(name[0], dict(catalog.properties))

    def home(self, handle: str, name: tuple[str, ...]) -> tuple[Catalog, tuple[str, ...]]:
        """Return the catalog that creates and drops a table, and the table's name in it.

        For a location it is a file-system catalog with the properties of this one: such a table
        consists of its folder only.
        """
        catalog = self[handle]
        if len(name) > 1:
            return catalog, name
        from icecomb.catalog.hadoop.catalog import catalog_of

        return catalog_of(name[0], dict(catalog.properties))

    def engine(self, handle: str) -> dict[str, str]:
        """Return the summary properties that identify the application in snapshots."""
        return dict(self._engines.get(handle, {}))

    def metastore(self, handle: str) -> str | None:
        """Return ``hive.metastore.uris`` of the application's own Hive support."""
        return self._metastores.get(handle)

    def list_namespaces(self, request: ListNamespaces) -> Namespaces:
        """Answer `ListNamespaces`."""
        catalog = self[request.catalog]
        if request.parent:
            catalog.load_namespace_properties(one_level(request.parent))
            return Namespaces(())
        return Namespaces(tuple(tuple(found) for found in catalog.list_namespaces()))

    def load_namespace(self, request: LoadNamespace) -> NamespaceProperties:
        """Answer `LoadNamespace`."""
        catalog = self[request.catalog]
        return NamespaceProperties(catalog.load_namespace_properties(one_level(request.namespace)))

    def create_namespace(self, request: CreateNamespace) -> Done:
        """Answer `CreateNamespace`."""
        self[request.catalog].create_namespace(
            one_level(request.namespace), dict(request.properties)
        )
        return Done()

    def alter_namespace(self, request: AlterNamespace) -> Done:
        """Answer `AlterNamespace`."""
        self[request.catalog].update_namespace_properties(
            one_level(request.namespace), removals=set(request.remove), updates=dict(request.set)
        )
        return Done()

    def drop_namespace(self, request: DropNamespace) -> Dropped:
        """Answer `DropNamespace`; CASCADE is refused: it would drop foreign tables."""
        namespace = one_level(request.namespace)
        try:
            self[request.catalog].drop_namespace(namespace)
        except NamespaceNotEmptyError as error:
            if not request.cascade:
                raise
            raise NamespaceNotEmptyError(
                error.message, hint="CASCADE is not done: drop its tables one by one first"
            ) from None
        return Dropped(dropped=True)


def one_level(namespace: Sequence[str]) -> tuple[str, ...]:
    """Check that a namespace of the metastore has one level."""
    if len(namespace) != 1:
        raise NoSuchNamespaceError(
            f"A namespace of the Hive metastore has one level, not {'.'.join(namespace) or 'none'}",
            hint="name tables catalog.namespace.table",
        )
    return tuple(namespace)
