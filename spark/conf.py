"""Spark settings that add an icecomb catalog to a Spark application.

Every way to start Spark takes the same lines: PySpark's builder, ``spark-submit``, ``spark-sql``,
``spark-shell``, the Thrift server and Spark Connect. ``icecomb spark-conf`` prints them.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from icecomb.format.errors import ConfigurationError
from icecomb.format.secret import HIDDEN_NAMES
from icecomb.spark.jar import bridge_jar

CATALOG_CLASS: Final = "org.icecomb.spark.IcecombCatalog"
"""The catalog plug-in of the bridge, the value of ``spark.sql.catalog.<name>``."""

SESSION_CATALOG: Final = "spark_catalog"
"""Spark's name for its own catalog."""

SESSION_CATALOG_CLASS: Final = "org.icecomb.spark.IcecombSessionCatalog"
"""Spark's own catalog with Iceberg tables, the value of ``spark.sql.catalog.spark_catalog``."""

EXTENSIONS: Final = "spark.sql.extensions"
EXTENSIONS_CLASS: Final = "org.icecomb.spark.IcecombSessionExtensions"
"""The bridge's SQL statements, a value of ``spark.sql.extensions``."""

REDACTION: Final = "spark.redaction.regex"
_LOGIN: Final = r"://[^/\s:]*:[^/\s]*@"
"""A user and a password in a URL, such as that of a proxy."""
SECRETS: Final = f"(?i)(^|[.])ugi$|{HIDDEN_NAMES}|{_LOGIN}"
"""Settings that Spark hides in its UI and logs, by their names or values: its own default, and
icecomb's secrets."""

JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
TOKEN_FILES: Final = "hadoop.token.files"  # noqa: S105 - a setting
_NAMES: Final = {f"spark.hadoop.{key}" for key in (TOKEN_FILES, "hive.metastore.token.signature")}
"""Settings that sound secret, but are names, which Java is to know as it starts."""


def spark_conf(
    name: str = "lake",
    *,
    uri: str | None = None,
    warehouse: str | None = None,
    python: str | None = None,
    hive: bool = False,
    session_catalog: bool = False,
    jar: Path | None = None,
    deploy_mode: str = "client",
    options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return Spark's settings for one catalog, in the order to print them.

    Args:
        name: The catalog's name in SQL.
        uri: The metastore's address, ``thrift://host:9083``; by default the one configured for
            ``name`` or, with nothing configured, the embedded metastore.
        warehouse: The root folder of new namespaces.
        python: The interpreter that runs the planner beside the driver; by default this one.
        hive: Give the same metastore to Spark's own Hive support. Spark needs its address, so an
            embedded one is started now.
        session_catalog: Serve Spark's own catalog, too, so that Hive and Iceberg tables have their
            names side by side; implies `hive`, and is implied by the name ``spark_catalog``.
        jar: The bridge's jar; found or compiled by default.
        deploy_mode: ``cluster`` if the driver runs on another host. Without `python` that host
            decides: ``ICECOMB_PYTHON``, ``PYSPARK_DRIVER_PYTHON``, ``PYSPARK_PYTHON``, or
            ``python3`` on its path.
        options: Further options of the catalog, passed to ``icecomb.catalog.load_catalog``.

    Raises:
        ConfigurationError: If Spark cannot address the name, or has no such deploy mode.
        JavaError, MissingDependencyError, UnsupportedError: See ``icecomb.spark.jar.bridge_jar``.
    """
    if not name.isidentifier():
        raise ConfigurationError(
            f"{name!r} cannot be the name of a Spark catalog",
            hint="Take letters, digits and underscores, for example lake.",
        )
    if deploy_mode not in {"client", "cluster"}:
        raise ConfigurationError(
            f"Spark has no deploy mode {deploy_mode!r}", hint="Take client or cluster."
        )
    if deploy_mode == "client":
        python = python or sys.executable
    session_catalog = session_catalog or name == SESSION_CATALOG
    hive = hive or session_catalog
    if hive and not uri:
        uri, warehouse = _metastore(name, warehouse)
    place = {"uri": uri or None, "warehouse": _absolute(warehouse) if warehouse else None}
    more = {"python": python or None, **dict(sorted((options or {}).items()))}
    conf = {"spark.jars": str(jar or bridge_jar()), EXTENSIONS: EXTENSIONS_CLASS}
    if name != SESSION_CATALOG:
        conf |= _catalog(name, CATALOG_CLASS, {**place, **more})
    if session_catalog:
        # its metastore is the one of Spark's Hive support, which also creates its namespaces
        conf |= _catalog(SESSION_CATALOG, SESSION_CATALOG_CLASS, more)
    if hive:
        conf["spark.sql.catalogImplementation"] = "hive"
        conf["spark.hadoop.hive.metastore.uris"] = str(uri)
        conf |= _admission(str(uri))
        if warehouse:
            conf["spark.sql.warehouse.dir"] = _absolute(warehouse)
    if any(is_secret(key, value) for key, value in conf.items()):
        conf[REDACTION] = SECRETS
    return conf


def is_secret(key: str, value: str) -> bool:
    """Return whether a setting of Spark may be a secret: of a catalog, of Hadoop or its own.

    Of settings of Spark itself a login in the value does not count: `spark.jars` has to be known as
    it starts.
    """
    if key.startswith(("spark.sql.", "spark.hadoop.")) and re.search(_LOGIN, value):
        return True
    return key not in _NAMES and re.search(SECRETS, key) is not None


def _catalog(name: str, plug_in: str, options: Mapping[str, str | None]) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    given = {f"{prefix}.{key}": value for key, value in options.items() if value is not None}
    return {prefix: plug_in, **given}


def command_lines(conf: Mapping[str, str]) -> list[str]:
    """Return the settings as `--conf` arguments, quoted for a shell.

    No line ends in a backslash, so that `spark-sql $(icecomb spark-conf)` works.
    """
    return [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in conf.items()]


def _metastore(name: str, warehouse: str | None) -> tuple[str, str | None]:
    """Return address and warehouse of the metastore configured for `name`, else the embedded."""
    from icecomb.catalog import metastore
    from icecomb.catalog.configuration.configuration import LOCAL, load_configuration

    configuration = load_configuration(name, {"warehouse": warehouse})
    found = configuration.properties
    if not configuration.says_where or configuration.type == LOCAL:
        running = metastore.start(found.get("warehouse"))
        local = running.location.startswith("file:")
        return running.uri, str(running.warehouse) if local else found.get("warehouse")
    return found["uri"], found.get("warehouse")


def _admission(uri: str) -> dict[str, str]:
    """Return the settings that log Spark's own Hive support in to an embedded metastore."""
    from urllib.parse import urlsplit

    from icecomb.catalog import metastore

    parts = urlsplit(uri.partition(",")[0])
    found = metastore.find(parts.hostname or "", parts.port or 0)
    if found is None:
        return {}
    conf = {f"spark.hadoop.{key}": value for key, value in found.client_settings.items()}
    # Hadoop logs in, and reads token files, before Spark gives it this configuration.
    return {JAVA_OPTIONS: f'-D{TOKEN_FILES}="{found.token_file}"', **conf}


def _absolute(warehouse: str) -> str:
    """Return a path that means the same to driver, planner and a metastore elsewhere."""
    return warehouse if ":" in warehouse else str(Path(warehouse).absolute())
