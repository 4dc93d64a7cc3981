"""Messages about catalogs and namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icecomb.spark.planner.protocol.message import Message, Repeatable, Unrepeatable


@dataclass(frozen=True, slots=True)
class Done(Message):
    """An empty answer to a request that was executed."""


@dataclass(frozen=True, slots=True)
class Environment(Message):
    """The application that opens a catalog.

    Args:
        metastore_uris: ``hive.metastore.uris`` of Spark's own Hive support.
        spark_version: Spark's version, as ``4.3.0``.
        hadoop: Its Hadoop settings for file systems and metastores; may contain secrets.
        principal: Its Kerberos principal; None if it has no keytab.
        keytab: The path of its keytab on the driver's host.
        application_name: Its name; None if it is not known.
    """

    metastore_uris: str | None
    application_id: str
    spark_version: str
    hadoop: Mapping[str, str] = field(repr=False)
    principal: str | None = None
    keytab: str | None = None
    application_name: str | None = None


@dataclass(frozen=True, slots=True)
class Identity(Message):
    """The Hadoop user whose statement it is.

    Args:
        user: The user whose rights apply.
        real_user: The server that acts for this user; None if there is none.
        login: Whether the user started the application.
        secured: Whether Hadoop requires authentication (Kerberos).
        tokens: The user's delegation tokens, each as Hadoop's ``Token.encodeToUrlString``.
    """

    user: str
    real_user: str | None
    login: bool
    secured: bool
    tokens: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenCatalog(Repeatable):
    """Request to open a catalog, without access to the metastore yet. Answer: `OpenedCatalog`.

    A catalog that is already open gets the user's new tokens.

    Args:
        options: The options ``spark.sql.catalog.<name>.*``.
    """

    name: str
    options: Mapping[str, str] = field(repr=False)
    environment: Environment
    identity: Identity


@dataclass(frozen=True, slots=True)
class OpenedCatalog(Message):
    """An open catalog.

    Args:
        catalog: The handle, which depends only on name, settings and user: it is the same after a
            restart.
        default_namespace: The namespace of unqualified names.
        version: The version of icecomb, for ``system.iceberg_version()``.
        hadoop: Hadoop settings of tasks, which override Spark's own; may contain secrets.
    """

    catalog: str
    default_namespace: tuple[str, ...]
    version: str
    hadoop: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListNamespaces(Repeatable):
    """Request to list namespaces; the metastore has one level. Answer: `Namespaces`."""

    catalog: str
    parent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Namespaces(Message):
    """Names of namespaces, by level."""

    namespaces: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LoadNamespace(Repeatable):
    """Request to load a namespace. Answer: `NamespaceProperties`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamespaceProperties(Message):
    """The properties of a namespace."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateNamespace(Unrepeatable):
    """Request to create a namespace. Answer: `Done`."""

    catalog: str
    namespace: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AlterNamespace(Unrepeatable):
    """Request to set and remove properties of a namespace. Answer: `Done`."""

    catalog: str
    namespace: tuple[str, ...]
    set: Mapping[str, str]
    remove: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropNamespace(Unrepeatable):
    """Request to drop a namespace. Answer: `Dropped`."""

    catalog: str
    namespace: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True)
class Dropped(Message):
    """The answer whether there was something to drop."""

    dropped: bool
