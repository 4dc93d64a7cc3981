"""Loading of catalogs and tables by name, configured by arguments, environment and files."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.configuration.configuration import Configuration
    from icecomb.catalog.metastore import RunningMetastore
    from icecomb.catalog.table.table import Table


def load_catalog(name: str | None = None, **properties: Any) -> Catalog:
    """Load the catalog ``name``, configured by arguments, environment and files.

    Args:
        name: Any name; its settings may be in the environment, in ``icecomb.yaml``, or in the
            cluster's own ``hive-site.xml`` (see `configuration`). None: the default catalog
            (see `default_catalog`).
        **properties: Settings: ``type`` (``hive``, ``local`` or ``hadoop``), ``uri``,
            ``warehouse``, ... Write a key with dots or dashes as
            ``**{"engine.hive.lock-enabled": "false"}``.

    Returns:
        With a ``uri``, the catalog of that Hive metastore, which is not contacted yet. With
        ``type="hadoop"``, that of the file-system tables below the folder ``warehouse``: it needs
        no server. With the name ``local`` or ``type="local"``, that of an embedded metastore over
        the folder ``warehouse``, local or in an object store: it is started unless it runs
        already.

    Raises:
        ConfigurationError: If the catalog's metastore is not configured, or a setting is unknown or
            invalid.
        MissingDependencyError, JavaError, MetastoreError: If the embedded metastore cannot start.
    """
    from icecomb.catalog.configuration.configuration import catalog_name, load_configuration

    name = catalog_name(properties) if name is None else name
    return catalog_of(load_configuration(name, properties))


def catalog_of(configuration: Configuration) -> Catalog:
    """Create the catalog of a configuration; see `load_catalog`."""
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
    # Located again for every connection: it may have stopped when idle, or been killed.
    return HiveCatalog(name, settings, locate=partial(_uri_of, running.warehouse))


def _as_spelt(settings: Mapping[str, str], running: RunningMetastore) -> str:
    """Return the root of new namespaces: in an object store, as the caller spelled it."""
    local = running.location.startswith("file:")
    return running.location if local else settings["warehouse"]


def _uri_of(warehouse: Path) -> str:
    from icecomb.catalog import metastore

    return metastore.start(warehouse).uri


def open_table(name: str | os.PathLike[str], **properties: Any) -> Table:
    """Load a table by its name in a catalog, or by its location.

    Args:
        name: ``catalog.namespace.table``, for `load_catalog` and `load_table` in one. With a
            slash: the folder of a file-system table, or a metadata file (``.metadata.json``) of
            any table, which is then read-only.
        **properties: Settings, as in `load_catalog`.

    Raises:
        NoSuchTableError: If there is no such table.
        NoSuchFileError: If there is no such metadata file.
        ConfigurationError: If ``name`` contains no catalog, or a setting is invalid.
    """
    name = os.fspath(name)
    if "/" in name:
        from icecomb.catalog.configuration.configuration import load_configuration
        from icecomb.catalog.hadoop.catalog import open_path

        return open_path(name, load_configuration("path", properties).properties)

    from icecomb.format.errors import ConfigurationError

    catalog, _, table = name.partition(".")
    if "." not in table:
        raise ConfigurationError(
            f"{name!r} is not catalog.namespace.table", hint="Write it as local.sales.orders."
        )
    return load_catalog(catalog, **properties).load_table(table)
