"""Spark sessions with an icecomb catalog, for PySpark users.

The session is a plain `SparkSession`. With nothing configured, its catalog uses the embedded
metastore, the same one as `icecomb.catalog.load_catalog("local")`.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ConfigurationError, MissingDependencyError
from icecomb.spark.conf import (
    CATALOG_CLASS,
    EXTENSIONS,
    JAVA_OPTIONS,
    REDACTION,
    SECRETS,
    SESSION_CATALOG,
    TOKEN_FILES,
    is_secret,
    spark_conf,
)

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_LOCAL_DIR: Final = "spark.local.dir"
_JVM_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""The variable of options for a driver's JVM, before those that Spark's settings have."""
_LOCAL: Final = {
    "spark.authenticate": "true",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""Settings of a driver without a cluster: its ports run what they are sent, and its page shows
statements, both by default for every user of the machine and the network."""


def session(
    name: str = "lake",
    *,
    warehouse: str | None = None,
    uri: str | None = None,
    hive: bool = False,
    session_catalog: bool = False,
    app_name: str = "icecomb",
    **conf: str,
) -> SparkSession:
    """Return a Spark session whose catalog `name` serves the tables of a Hive metastore.

    Slow steps (compiling the bridge, starting a metastore) are reported on standard error. What
    others on the machine could use is off with a local master, unless it is set: the driver's
    ports are on 127.0.0.1 and ask for a login (`spark.authenticate`), its files are in a private
    folder (`spark.local.dir`), and there is no web page (`spark.ui.enabled`). With any master, the
    temporary files of a JVM that is started are in a private folder (`java.io.tmpdir`).

    Args:
        name: The catalog's name in SQL.
        warehouse: The root folder of new namespaces, and of the embedded metastore without `uri`.
        uri: The metastore's address, `thrift://host:9083`.
        hive: Give Spark's own Hive support the same metastore, so that `spark_catalog` shows its
            Hive tables.
        session_catalog: Serve `spark_catalog`, too: Hive and Iceberg tables side by side under
            their old names; implies `hive`.
        app_name: The application's name.
        **conf: Further Spark settings, given as `**{"spark.driver.memory": "2g"}`.

    Returns:
        The session: the running one if it can serve the catalog.

    Raises:
        ConfigurationError: If a session is running to which the catalog cannot be added.
        MissingDependencyError: If pyspark is not installed.
        JavaError: If there is no Java, or the bridge has to be compiled and there is no JDK.
    """
    builder = _pyspark().builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    configured = configure(
        builder, name, warehouse=warehouse, uri=uri, hive=hive, session_catalog=session_catalog
    )
    return configured.getOrCreate()


def configure(
    builder: SparkSession.Builder,
    name: str = "lake",
    *,
    warehouse: str | None = None,
    uri: str | None = None,
    hive: bool = False,
    session_catalog: bool = False,
    **options: str,
) -> SparkSession.Builder:
    """Add the catalog `name` to a builder; the arguments are those of `session`.

    Args:
        builder: `SparkSession.builder`, before `getOrCreate`.
        name: The catalog's name in SQL.
        warehouse: The root folder of new namespaces.
        uri: The metastore's address.
        hive: Give Spark's own Hive support the same metastore.
        session_catalog: Serve `spark_catalog`, too, with the same options; implies `hive`.
        **options: Further options of the catalog, as for `icecomb.catalog.load_catalog`.

    Returns:
        The builder.
    """
    _pyspark()
    with _said_what_takes_long():
        conf = spark_conf(
            name,
            uri=uri,
            warehouse=warehouse,
            hive=hive,
            session_catalog=session_catalog,
            options=options,
        )
    _check_running(name, conf)
    if token_file := conf.get(f"spark.hadoop.{TOKEN_FILES}"):
        _show_token(token_file, conf["spark.hadoop.hive.metastore.uris"])
    conf.pop(REDACTION, None)
    for key, value in conf.items():
        builder = builder.config(key, _with_given(builder, key, value))
    builder.getOrCreate = partial(  # type: ignore[method-assign] # there is no other hook
        _get_or_create, builder, builder.getOrCreate
    )
    return builder


def _get_or_create(
    builder: SparkSession.Builder, create: Callable[[], SparkSession]
) -> SparkSession:
    """Start Spark with nothing that other users of the machine can read, call or exchange.

    They can read commands, in which pyspark has all settings, so secrets are set later; and call a
    driver's ports, which by default ask nobody for a login.
    """
    from pyspark import SparkConf, SparkContext

    options: dict[str, Any] = builder._options  # noqa: SLF001 - there is no public access
    if SparkContext._active_spark_context or _is_elsewhere(options):  # noqa: SLF001
        return create()
    secret = {key for key, value in options.items() if is_secret(key, str(value))}
    with _own_temporary_files(options):
        is_remote = _is_remote(options)
        if SparkContext._gateway is None and not is_remote:  # noqa: SLF001 - no public access
            command = SparkConf(loadDefaults=False)
            for key in options.keys() - secret:
                command.set(key, options[key])
            SparkContext._ensure_initialized(conf=command)  # noqa: SLF001 - no public access
        given = SparkConf()  # spark-submit's, with the files of defaults, once there is a JVM
        wanted = {REDACTION: SECRETS} if secret else {}
        if _is_local(_remote(options) if is_remote else _master(options, given)):
            wanted |= _LOCAL
            if not os.environ.get("SPARK_LOCAL_DIRS") and not _outlives(options):
                wanted[_LOCAL_DIR] = _private_folder()
        for key, value in wanted.items():
            if key not in options and not given.contains(key):
                builder.config(key, value)
        return create()


@contextmanager
def _own_temporary_files(options: Mapping[str, Any]) -> Iterator[None]:
    """Have a JVM that is started meanwhile keep its temporary files in a private folder.

    Libraries unpack native code into `java.io.tmpdir`, and run what they find there: lz4-java in a
    file whose name another user of `/tmp` learns, and takes, before it is made.
    """
    before = os.environ.get(_JVM_OPTIONS)
    if not _outlives(options):
        # options that are given come later, and count
        ours = f'-Djava.io.tmpdir="{_private_folder()}"'
        os.environ[_JVM_OPTIONS] = f"{ours} {before or ''}".strip()
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_JVM_OPTIONS, None)
        else:
            os.environ[_JVM_OPTIONS] = before


def _master(options: Mapping[str, Any], given: SparkConf) -> str:
    return str(options.get("spark.master") or given.get("spark.master", ""))


def _is_local(master: str) -> bool:
    """Return whether executors are threads of the driver, so that nobody else calls its ports."""
    return re.fullmatch(r"local(?:\[.*\])?", master) is not None


@functools.cache
def _private_folder() -> str:
    """Return a new folder for rows and files that Spark writes to disk, until this process ends."""
    folder = tempfile.mkdtemp(prefix="icecomb-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_remote(options: Mapping[str, Any]) -> bool:
    """Return whether the builder connects to a server by Spark Connect."""
    mode = options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    started = {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & os.environ.keys()
    return mode.lower() == "connect" or "spark.remote" in options or bool(started)


def _remote(options: Mapping[str, Any]) -> str:
    """Return the server that pyspark connects to, or the master of the one that it starts here."""
    named = options.get("spark.remote") or os.environ.get("SPARK_REMOTE")
    return str(named or options.get("spark.master") or os.environ.get("MASTER", "local"))


def _is_elsewhere(options: Mapping[str, Any]) -> bool:
    return _is_remote(options) and _remote(options).startswith("sc:")


def _outlives(options: Mapping[str, Any]) -> bool:
    """Return whether pyspark starts a server that goes on after this process (Spark 4.3)."""
    named = os.environ.get("SPARK_LOCAL_CONNECT_REUSE", "")
    wanted = str(options.get("spark.local.connect.reuse", named)).lower() in {"1", "true"}
    return wanted and _is_remote(options)


@contextmanager
def _said_what_takes_long() -> Iterator[None]:
    """Show on standard error what is started or compiled, unless the application logs it."""
    log = logging.getLogger("icecomb.catalog")
    if log.isEnabledFor(logging.INFO):
        yield
        return
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("icecomb: %(message)s"))
    before = log.level, log.propagate
    log.addHandler(shown)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(before[0])
        log.propagate = before[1]


def _with_given(builder: SparkSession.Builder, key: str, value: str) -> str:
    """Return the value of a setting, appended to the builder's own list where it is a list."""
    separator = {"spark.jars": ",", EXTENSIONS: ",", JAVA_OPTIONS: " "}.get(key)
    options: dict[str, Any] = builder._options  # noqa: SLF001 - there is no public access
    if separator is None or key not in options:
        return value
    given = [part for part in str(options[key]).split(separator) if part]
    return separator.join(given if value in given else [*given, value])


def _show_token(path: str, uris: str) -> None:
    """Load the embedded metastore's token into a running JVM; a new one reads it as it starts.

    Hive's clients send any server a login by it that can be relayed to the metastore: it is not
    for a Hive support that calls another address.
    """
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm  # noqa: SLF001 - there is no public access to the JVM
    if jvm is None:
        return
    context = SparkContext._active_spark_context  # noqa: SLF001 - must not start Spark
    if context and context.getConf().get("spark.hadoop.hive.metastore.uris", uris) != uris:
        return
    hadoop = jvm.org.apache.hadoop
    file, conf = jvm.java.io.File(path), hadoop.conf.Configuration()
    tokens = hadoop.security.Credentials.readTokenStorageFile(file, conf)
    hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(tokens)


def _check_running(name: str, conf: dict[str, str]) -> None:
    """Refuse a running session that lacks what the catalog needs; Spark would fail much later."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # noqa: SLF001 - must not start Spark
    if context is None and SparkContext._gateway is None:  # noqa: SLF001 - no public access
        return
    if not _has_bridge():
        raise ConfigurationError(
            "Spark is already running without icecomb's jar on its class path",
            hint="spark.stop() does not unload it: call icecomb.spark first in a new process, "
            "or start Spark with the --conf lines of `icecomb spark-conf`.",
        )
    if context is None:
        return
    running = context.getConf()
    if (
        "spark.sql.catalogImplementation" in conf
        and running.get("spark.sql.catalogImplementation", "in-memory") != "hive"
    ):
        raise ConfigurationError(
            "A Spark session is already running without Hive support",
            hint="Stop it with spark.stop() before you ask for hive=True",
        )
    for catalog in {name, SESSION_CATALOG}:
        prefix = f"spark.sql.catalog.{catalog}"
        for key in (prefix, f"{prefix}.uri") if prefix in conf else ():
            given = running.get(key)
            if given is not None and given != conf.get(key):
                raise ConfigurationError(
                    f"The running Spark session has another catalog {catalog!r} ({key}={given})",
                    hint="Take another name, or stop the session with spark.stop()",
                )


def _has_bridge() -> bool:
    """Return whether the running JVM sees the bridge's classes."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm  # noqa: SLF001 - there is no public access to the JVM
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass(CATALOG_CLASS)
    except Py4JError:
        return False
    return True


def _pyspark() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "Spark SQL needs pyspark, which is not installed",
            hint="pip install 'icecomb[spark]'",
        ) from error
    return SparkSession
