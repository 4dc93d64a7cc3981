"""Catalogs and their namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icecomb.spark.planner.message import Message, Repeatable, Unrepeatable


@dataclass(frozen=True, slots=True)
class Done(Message):
    """It is done, and there is nothing to say about it."""


@dataclass(frozen=True, slots=True)
class Environment(Message):
    """The application that opens a catalog.

    Args:
        metastore_uris: ``hive.metastore.uris`` of Spark's own Hive support.
        application_id: Spark's name for it.
        spark_version: As ``4.3.0``.
        hadoop: What its Hadoop configuration states about file systems and metastores; may hold
            secrets.
        principal: Who Kerberos says it is, where it has a keytab; None where it has none.
        keytab: That keytab on the driver's host.
    """

    metastore_uris: str | None
    application_id: str
    spark_version: str
    hadoop: Mapping[str, str] = field(repr=False)
    principal: str | None = None
    keytab: str | None = None


@dataclass(frozen=True, slots=True)
class Identity(Message):
    """Hadoop's user whose statement it is.

    Args:
        user: Whose rights count.
        real_user: The server that acts for this user; None where there is none.
        login: Whether it is who started the application.
        secured: Whether Hadoop takes nobody's word for who he is (Kerberos).
        tokens: The user's delegation tokens, each as Hadoop's ``Token.encodeToUrlString``.
    """

    user: str
    real_user: str | None
    login: bool
    secured: bool
    tokens: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenCatalog(Repeatable):
    """Opens a catalog; nothing is asked of the metastore yet. Answer: `OpenedCatalog`.

    One that is open is told the user's new tokens.

    Args:
        name: Its name in SQL.
        options: ``spark.sql.catalog.<name>.*``.
        environment: The application.
        identity: For whom.
    """

    name: str
    options: Mapping[str, str] = field(repr=False)
    environment: Environment
    identity: Identity


@dataclass(frozen=True, slots=True)
class OpenedCatalog(Message):
    """A catalog that is open.

    Args:
        catalog: Its handle, which says nothing but name, settings and user: a restart gives the
            same.
        default_namespace: Where names without one are.
        version: Of icecomb, for ``system.iceberg_version()``.
        hadoop: What tasks are told of file systems over Spark's Hadoop configuration; may hold
            secrets.
    """

    catalog: str
    default_namespace: tuple[str, ...]
    version: str
    hadoop: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListNamespaces(Repeatable):
    """Names the namespaces inside another; the metastore has one level. Answer: `Namespaces`."""

    catalog: str
    parent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Namespaces(Message):
    """Names of namespaces, by level."""

    namespaces: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LoadNamespace(Repeatable):
    """Asks for a namespace. Answer: `NamespaceProperties`."""

    catalog: str
    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamespaceProperties(Message):
    """What a namespace says of itself."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateNamespace(Unrepeatable):
    """Makes a namespace. Answer: `Done`."""

    catalog: str
    namespace: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AlterNamespace(Unrepeatable):
    """Sets and removes properties of a namespace. Answer: `Done`."""

    catalog: str
    namespace: tuple[str, ...]
    set: Mapping[str, str]
    remove: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropNamespace(Unrepeatable):
    """Drops a namespace. Answer: `Dropped`."""

    catalog: str
    namespace: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True)
class Dropped(Message):
    """Whether there was something to drop."""

    dropped: bool
