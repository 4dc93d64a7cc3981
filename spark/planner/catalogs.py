"""The catalogs of a Spark application and their namespaces."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ConfigurationError, NamespaceNotEmptyError, NoSuchNamespaceError

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog

_NOT_FOR_CATALOG: Final = frozenset({"python"})
_HIVE_URIS: Final = "hive.metastore.uris"


class Catalogs:
    """The open catalogs, by handle.

    A handle says nothing but name and options, so that one opened again after a restart of the
    planner is the same.
    """

    def __init__(self) -> None:
        self._open: dict[str, Catalog] = {}
        self._engines: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def open_catalog(self, params: dict[str, Any]) -> dict[str, Any]:
        """Opens a catalog (protocol: open_catalog); nothing is asked of the metastore yet."""
        name = params["name"]
        environment = params.get("environment") or {}
        properties = catalog_properties(name, params["options"], environment)
        text = json.dumps([name, properties], sort_keys=True)
        handle = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        with self._lock:
            if handle not in self._open:
                from icecomb.catalog import load_catalog

                self._open[handle] = load_catalog(name, **properties)
            self._engines[handle] = _engine(environment)
        return {"catalog": handle, "default_namespace": ["default"]}

    def __getitem__(self, handle: str) -> Catalog:
        try:
            return self._open[handle]
        except KeyError:
            raise ConfigurationError(
                f"catalog {handle} is not open in this planner", hint="run the statement again"
            ) from None

    def engine(self, handle: str) -> dict[str, str]:
        """What snapshots say about the application that made them."""
        return dict(self._engines.get(handle, {}))

    def list_namespaces(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: list_namespaces. The metastore has one level."""
        catalog = self[params["catalog"]]
        if parent := params.get("parent"):
            catalog.load_namespace_properties(one_level(parent))
            return {"namespaces": []}
        return {"namespaces": [list(namespace) for namespace in catalog.list_namespaces()]}

    def load_namespace(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: load_namespace."""
        properties = self[params["catalog"]].load_namespace_properties(
            one_level(params["namespace"])
        )
        return {"properties": dict(properties)}

    def create_namespace(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: create_namespace."""
        self[params["catalog"]].create_namespace(
            one_level(params["namespace"]), dict(params["properties"])
        )
        return {}

    def alter_namespace(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: alter_namespace."""
        self[params["catalog"]].update_namespace_properties(
            one_level(params["namespace"]),
            removals=set(params["remove"]),
            updates=dict(params["set"]),
        )
        return {}

    def drop_namespace(self, params: dict[str, Any]) -> dict[str, Any]:
        """Protocol: drop_namespace. CASCADE is refused: it would drop tables that are not ours."""
        namespace = one_level(params["namespace"])
        try:
            self[params["catalog"]].drop_namespace(namespace)
        except NamespaceNotEmptyError as error:
            if not params["cascade"]:
                raise
            raise NamespaceNotEmptyError(
                error.message, hint="CASCADE is not done: drop its tables one by one first"
            ) from None
        return {"dropped": True}


def one_level(namespace: Sequence[str]) -> tuple[str, ...]:
    """A namespace of the metastore, which has one level.

    Raises:
        NoSuchNamespaceError: It has none or several.
    """
    if len(namespace) != 1:
        raise NoSuchNamespaceError(
            f"a namespace of the Hive metastore has one level, not {'.'.join(namespace) or 'none'}",
            hint="name tables catalog.namespace.table",
        )
    return tuple(namespace)


def catalog_properties(
    name: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """The catalog's options.

    Where nothing says where the metastore is, it is that of Spark's own Hive support, else one of
    the user's own: a name that nobody gave to Spark never gets here.
    """
    from icecomb.catalog.configuration import LOCAL, load_configuration

    properties = {key: value for key, value in options.items() if key not in _NOT_FOR_CATALOG}
    if load_configuration(name, properties).settings.keys().isdisjoint(("type", "uri")):
        inherited = environment.get(_HIVE_URIS)
        properties |= {"uri": inherited} if inherited else {"type": LOCAL}
    return properties


def _engine(environment: Mapping[str, str]) -> dict[str, str]:
    names = {"engine-version": "spark.version", "app-id": "spark.app.id"}
    known = {key: environment[name] for key, name in names.items() if environment.get(name)}
    return {"engine-name": "spark", **known}
