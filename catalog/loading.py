"""A catalog or a table by its name, configured by arguments, environment and files."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.configuration import Configuration
    from icecomb.catalog.metastore import RunningMetastore
    from icecomb.catalog.table import Table


def load_catalog(name: str | None = None, **properties: Any) -> Catalog:
    """The catalog ``name``, configured by arguments, environment and files (see `configuration`).

    Args:
        name: Any name; its settings may stand in the environment, in ``icecomb.yaml``, or in the
            cluster's own ``hive-site.xml``. None: the default catalog (see `default_catalog`).
        **properties: ``type`` (``hive``, ``local`` or ``hadoop``), ``uri``, ``warehouse``, ...
            Write a key with dots or dashes as ``**{"engine.hive.lock-enabled": "false"}``.

    Returns:
        With a ``uri`` the catalog of that Hive metastore, which is not contacted yet. With
        ``type="hadoop"`` that of the file-system tables below the folder ``warehouse``: it needs
        no server. With the name ``local`` or ``type="local"`` that of a metastore of your own over
        the folder ``warehouse``, local or in an object store: it is started, or found if it runs
        already.

    Raises:
        ConfigurationError: If nothing says where the catalog's metastore is, or a setting is unknown
            or makes no sense.
        MissingDependencyError, JavaError, MetastoreError: If the metastore of your own cannot start.
    """
    from icecomb.catalog.configuration import catalog_name, load_configuration

    name = catalog_name(properties) if name is None else name
    return catalog_of(load_configuration(name, properties))


def catalog_of(configuration: Configuration) -> Catalog:
    """The catalog that a configuration describes; see `load_catalog`."""
    name, settings = configuration.name, configuration.properties
    if configuration.type == "hadoop":
        from icecomb.catalog.hadoop.catalog import HadoopCatalog

        return HadoopCatalog(name, settings)

    from icecomb.catalog.hive.catalog import HiveCatalog

    if configuration.type == "hive":
        return HiveCatalog(name, settings)

    from icecomb.catalog import metastore

    running = metastore.start(settings.get("warehouse"))
    place = {"uri": running.uri, "warehouse": _as_spelt(settings, running)}
    settings |= {**place, **running.client_settings}
    # Found anew at every connection: it may have ended when idle, or been killed.
    return HiveCatalog(name, settings, locate=partial(_uri_of, running.warehouse))


def _as_spelt(settings: Mapping[str, str], running: RunningMetastore) -> str:
    """Where new namespaces lie: in an object store by the scheme that the caller takes."""
    local = running.location.startswith("file:")
    return running.location if local else settings["warehouse"]


def _uri_of(warehouse: Path) -> str:
    from icecomb.catalog import metastore

    return metastore.start(warehouse).uri


def open_table(name: str | os.PathLike[str], **properties: Any) -> Table:
    """A table by its name in a catalog, or by its place.

    Args:
        name: ``catalog.namespace.table``, for `load_catalog` and `load_table` in one. With a slash
            in it: the folder of a file-system table, or a metadata file (``.metadata.json``) of
            any table, which can only be read then.
        **properties: As in `load_catalog`.

    Raises:
        NoSuchTableError: If there is no such table.
        FileMissingError: If there is no such metadata file.
        ConfigurationError: ``name`` has no catalog in it, or a setting makes no sense.
    """
    name = os.fspath(name)
    if "/" in name:
        from icecomb.catalog.configuration import load_configuration
        from icecomb.catalog.hadoop.catalog import open_path

        return open_path(name, load_configuration("path", properties).properties)

    from icecomb.format.errors import ConfigurationError

    catalog, _, table = name.partition(".")
    if "." not in table:
        raise ConfigurationError(
            f"{name!r} is not catalog.namespace.table", hint="write it as local.sales.orders"
        )
    return load_catalog(catalog, **properties).load_table(table)
