"""The catalogs of a Spark application, and their namespaces."""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ConfigurationError, NamespaceNotEmptyError, NoSuchNamespaceError
from icecomb.format.storage.delegation_token import DelegationToken, give_tokens
from icecomb.spark.conf import SESSION_CATALOG
from icecomb.spark.planner.protocol.catalogs import (
    AlterNamespace,
    CreateNamespace,
    Done,
    DropNamespace,
    Dropped,
    Environment,
    Identity,
    ListNamespaces,
    LoadNamespace,
    NamespaceProperties,
    Namespaces,
    OpenCatalog,
    OpenedCatalog,
)

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.configuration.configuration import Configuration
    from icecomb.catalog.table.table import Table
    from icecomb.format.storage.object_store.s3_settings import S3Settings


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

    def application(self, handle: str) -> dict[str, str]:
        """Return the summary properties that identify the application in snapshots."""
        return dict(self._engines.get(handle, {}))

    def metastore(self, handle: str) -> str | None:
        """Return ``hive.metastore.uris`` of the application's own Hive support."""
        return self._metastores.get(handle)

    def list_namespaces(self, request: ListNamespaces) -> Namespaces:
        catalog = self[request.catalog]
        if request.parent:
            catalog.load_namespace_properties(one_level(request.parent))
            return Namespaces(())
        return Namespaces(tuple(tuple(found) for found in catalog.list_namespaces()))

    def load_namespace(self, request: LoadNamespace) -> NamespaceProperties:
        catalog = self[request.catalog]
        return NamespaceProperties(catalog.load_namespace_properties(one_level(request.namespace)))

    def create_namespace(self, request: CreateNamespace) -> Done:
        self[request.catalog].create_namespace(
            one_level(request.namespace), dict(request.properties)
        )
        return Done()

    def alter_namespace(self, request: AlterNamespace) -> Done:
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
                error.message, hint="CASCADE is not done: drop its tables one by one first."
            ) from None
        return Dropped(dropped=True)


def one_level(namespace: Sequence[str]) -> tuple[str, ...]:
    """Check that a namespace of the metastore has one level."""
    if len(namespace) != 1:
        raise NoSuchNamespaceError(
            f"A namespace of the Hive metastore has one level, not {'.'.join(namespace) or 'none'}",
            hint="Name tables catalog.namespace.table.",
        )
    return tuple(namespace)


_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_AUTH: Final = "org.apache.hadoop.fs.s3a.auth"
_OURS: Final = (
    "s3.", "client.region", "client.access-key-id", "client.secret-access-key",
    "client.session-token", "client.profile-name", "client.role-", "client.assume-role.",
)  # fmt: skip
_PROVIDER: Final = "fs.s3a.aws.credentials.provider"
_ENCRYPTIONS: Final = {"AES256": "AES256", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS"}


def task_settings(properties: Mapping[str, str], hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop settings of tasks, which override Spark's own."""
    found = {
        f"fs.{scheme}.impl": _S3A for scheme in ("s3", "s3n") if f"fs.{scheme}.impl" not in hadoop
    }
    if any(key.startswith(_OURS) for key in properties):
        from icecomb.format.storage.object_store.s3_settings import S3Settings

        found |= dict(_of_s3(S3Settings.of(properties, ""), hadoop))
    return found


def _of_s3(settings: S3Settings, hadoop: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    role = settings.role
    named = {
        "endpoint": ("fs.s3a.endpoint", settings.endpoint),
        "region": ("fs.s3a.endpoint.region", settings.region),
        "access_key": ("fs.s3a.access.key", settings.access_key),
        "secret_key": ("fs.s3a.secret.key", settings.secret_key),
        "session_token": ("fs.s3a.session.token", settings.session_token),
        "role_arn": ("fs.s3a.assumed.role.arn", settings.role_arn),
        "role_session": ("fs.s3a.assumed.role.session.name", role.get("RoleSessionName")),
        "role_external_id": ("fs.s3a.assumed.role.external.id", role.get("ExternalId")),
        "role_seconds": ("fs.s3a.assumed.role.session.duration", role.get("DurationSeconds")),
        "profile": ("fs.s3a.auth.profile.name", settings.profile),
    }
    for name, (key, value) in named.items():
        if value is not None and settings.sources.get(name, "").startswith(_OURS):
            yield key, str(value)
    if "Tags" in role:
        raise ConfigurationError(
            "Property client.assume-role.tags.* is not supported: Hadoop's S3A, with which Spark's "
            "tasks read and write, cannot tag the session of a role",
            hint="Leave the tags out for Spark.",
        )
    if settings.sources.get("endpoint", "").startswith(_OURS):
        # icecomb derives these from the endpoint, S3A does not
        yield "fs.s3a.endpoint.region", str(settings.region)
        yield "fs.s3a.path.style.access", str(settings.path_style).lower()
    if provider := _provider(settings, hadoop):
        yield _PROVIDER, provider
    yield from _written(settings)


def _provider(settings: S3Settings, hadoop: Mapping[str, str]) -> str | None:
    """Return the credentials provider of tasks; None for S3A's default."""
    if settings.anonymous:
        return "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    if _PROVIDER in hadoop:
        return None
    if settings.role_arn:
        return f"{_AUTH}.AssumedRoleCredentialProvider"
    if settings.profile:
        return f"{_AUTH}.ProfileAWSCredentialsProvider"
    return None


def _written(settings: S3Settings) -> Iterator[tuple[str, str]]:
    written = settings.written
    if encryption := written.get("ServerSideEncryption"):
        yield "fs.s3a.encryption.algorithm", _ENCRYPTIONS[encryption]
    if key := written.get("SSEKMSKeyId"):
        yield "fs.s3a.encryption.key", key
    if acl := written.get("ACL"):
        yield "fs.s3a.acl.default", "".join(word.capitalize() for word in acl.split("-"))
    if storage_class := written.get("StorageClass"):
        yield "fs.s3a.create.storage.class", storage_class.lower()
    if "Tagging" in written:
        raise ConfigurationError(
            "Property s3.write.tags.* is not supported: Hadoop's S3A, with which Spark's tasks "
            "write, cannot tag objects",
            hint="Leave the tags out for Spark, or let a rule of the bucket set them.",
        )


_SHORTEST_S: Final = 0.2
LONGEST_S: Final = 60.0


@dataclass(slots=True)
class _Held:
    configuration: Configuration
    idle_s: float
    catalog: Catalog | None = None
    used: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenCatalogs:
    """A thread-safe registry of catalogs by handle.

    A catalog unused for its ``client.pool.cache.eviction-interval-ms`` is released, like Iceberg
    Java's clients; the next request opens it again. A running request keeps its catalog: the
    connections close when nothing refers to it any more.

    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], None]] = []
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._watched = False

    def add(self, handle: str, configuration: Configuration) -> None:
        """Register a catalog, to be opened on first use."""
        from icecomb.catalog.configuration.catalog_property import IDLE

        idle_s = IDLE.of(configuration.properties) / 1000
        with self._lock:
            held = self._held.setdefault(handle, _Held(configuration, idle_s))
            # another session with the same settings may have newer locations
            held.configuration = configuration

    def __contains__(self, handle: str) -> bool:
        return handle in self._held

    def __getitem__(self, handle: str) -> Catalog:
        """Return the catalog, opening it if needed; `ConfigurationError` if not registered."""
        held = self._held.get(handle)
        if held is None:
            raise ConfigurationError(
                f"Catalog {handle} is not open in this planner", hint="Run the statement again."
            )
        with held.lock:
            held.used = time.monotonic()
            if held.catalog is None:
                from icecomb.catalog.loading import catalog_of

                held.catalog = catalog_of(held.configuration)
                self._watch()
            return held.catalog

    def when_let_go(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the handle of each catalog that is released."""
        self._listeners.append(tell)

    def let_idle_go(self) -> float:
        """Release catalogs idle for their interval; return seconds until the next check."""
        soonest, some = LONGEST_S, False
        for handle, held in [*self._held.items()]:
            with held.lock:
                if held.catalog is None:
                    continue
                left = held.used + held.idle_s - time.monotonic()
                if left > 0:
                    soonest = min(soonest, left)
                    continue
                held.catalog, some = None, True
            for tell in self._listeners:
                tell(handle)
        if some:
            # tables and their operations form cycles: collect them to close connections now
            gc.collect()
        return max(soonest, _SHORTEST_S)

    def _watch(self) -> None:
        with self._lock:
            if self._watched:
                return
            self._watched = True
        threading.Thread(
            target=_watch, args=(weakref.ref(self),), name="planner-idle-catalogs", daemon=True
        ).start()


def _watch(catalogs: weakref.ref[OpenCatalogs]) -> None:
    while (found := catalogs()) is not None:
        pause_s = found.let_idle_go()
        del found
        time.sleep(pause_s)


DEFAULT_NAMESPACE: Final = "default-namespace"
_OVERRIDE: Final = "hadoop.hive.metastore.uris"
_CONVERTING: Final = ("parquet-enabled", "avro-enabled", "orc-enabled")
_OF_THE_BRIDGE: Final = frozenset({"python", DEFAULT_NAMESPACE, "use-nullable-query-schema"})
_PASSED_OVER: Final = frozenset(
    {
        *_CONVERTING,
        # every statement loads the current metadata: no table is cached that could be stale
        "cache-enabled",
        "cache.case-sensitive",
        "cache.expiration-interval-ms",
        # one pool serves one catalog of one user
        "client-pool-cache-keys",
        # of REST catalogs
        "rest-catalog-purge",
    }
)
_CLASSES: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "io-impl": (
        frozenset(
            {
                "org.apache.iceberg.hadoop.HadoopFileIO",
                "org.apache.iceberg.io.ResolvingFileIO",
                "org.apache.iceberg.aws.s3.S3FileIO",
            }
        ),
        "leave it out: files are found by their location, local, on HDFS or in an object store",
    ),
    "metrics-reporter-impl": (
        frozenset({"org.apache.iceberg.metrics.LoggingMetricsReporter"}),
        "leave it out, and look at the commits' summaries in the metadata table snapshots",
    ),
    "catalog-impl": (frozenset(), "say type=hive with a uri, or type=hadoop with a warehouse"),
    "encryption.kms-impl": (
        frozenset(),
        "leave it out: encrypted tables cannot be read or written",
    ),
}
"""Options that name Java classes: those whose behavior is built in, and the remedy for others."""


def catalog_properties(
    name: str, options: Mapping[str, str], environment: Environment
) -> dict[str, str]:
    """Return the catalog's properties, without Hadoop's (see `Environment.hadoop`).

    Without an address, the metastore is that of Spark's own Hive support, as in Iceberg Java; with
    neither that nor a type, the user's embedded one: a name not configured in Spark never gets
    here.
    """
    from icecomb.catalog.configuration.configuration import LOCAL, load_configuration

    _check_honoured(name, options)
    passed = _OF_THE_BRIDGE | _PASSED_OVER | _CLASSES.keys()
    properties = {key: value for key, value in options.items() if key not in passed}
    hadoop = of_others(environment.hadoop)
    settings = load_configuration(name, properties, hadoop=hadoop).settings
    kind = settings["type"].value.lower() if "type" in settings else None
    if "uri" not in settings and kind in {None, "hive"}:
        if environment.metastore_uris:
            properties["uri"] = environment.metastore_uris
        elif kind is None and name != SESSION_CATALOG:
            properties["type"] = LOCAL
    if name == SESSION_CATALOG:
        if _OVERRIDE in options:
            raise ConfigurationError(
                f"Catalog {name}: {_OVERRIDE} would be another metastore than that of Spark's own "
                "Hive support",
                hint="Leave it out, or set spark.hadoop.hive.metastore.uris for both.",
            )
        uri = properties.get("uri") or (settings["uri"].value if "uri" in settings else None)
        _check_is_sparks(kind, uri, environment)
    return properties


def strange_names(properties: Mapping[str, str]) -> list[str]:
    """List the properties unknown to icecomb and to the programs it knows of."""
    from icecomb.catalog.configuration.catalog_property import is_strange

    return sorted(filter(is_strange, properties))


def _check_honoured(name: str, options: Mapping[str, str]) -> None:
    for key, (same, instead) in _CLASSES.items():
        if (given := options.get(key)) is not None and given not in same:
            raise ConfigurationError(
                f"Catalog {name}: {key}={given} names a Java class, which icecomb cannot load",
                hint=instead,
            )
    for key in _CONVERTING:
        if name == SESSION_CATALOG and options.get(key, "false").strip().lower() != "false":
            kind = key.removesuffix("-enabled")
            raise ConfigurationError(
                f"Catalog {name}: {key}={options[key]} has no effect: Spark makes tables USING "
                f"{kind} itself, without asking the session catalog",
                hint=f"Leave it out; write USING iceberg, or USING {kind} for plain {kind} files.",
            )


def _check_is_sparks(kind: str | None, uri: str | None, environment: Environment) -> None:
    """Refuse two metastores behind one name; file-system catalogs have none."""
    if kind not in {None, "hive", "local"}:
        return
    sparks = environment.metastore_uris
    if uri is None or kind == "local":
        raise ConfigurationError(
            f"Catalog {SESSION_CATALOG}: nothing says where the metastore of Spark's own Hive "
            "support is",
            hint="Set spark.hadoop.hive.metastore.uris and spark.sql.catalogImplementation=hive; "
            "`icecomb spark-conf --session-catalog` prints the lines.",
        )
    if sparks and _addresses(uri).isdisjoint(_addresses(sparks)):
        raise ConfigurationError(
            f"Catalog {SESSION_CATALOG} is on the metastore {uri}, Spark's own Hive support on "
            f"{sparks}",
            hint=f"Leave spark.sql.catalog.{SESSION_CATALOG}.uri out: it is the one of "
            "hive.metastore.uris then.",
        )


def _addresses(uri: str) -> set[str]:
    return {each.strip().rstrip("/").lower() for each in uri.split(",")}


_SOURCE: Final = "Spark's user"


def acting_as(
    configuration: Configuration, environment: Environment, identity: Identity, holder: str
) -> Configuration:
    """Return a catalog's configuration for one user; users in its settings take precedence.

    Without Hadoop's security, services accept a user name. With it they require proof: the user's
    delegation tokens, else the ticket or the keytab of the application (also for a user on whose
    behalf a server acts, if the service permits impersonation). It fails if nothing proves who the
    user is: acting as the server instead would give the user its rights.

    Args:
        holder: The name under which `give_tokens` holds the user's tokens.
    """
    from icecomb.catalog.configuration.catalog_property import METASTORE_PROXY_USER, UGI
    from icecomb.format.storage.storage_property import (
        HADOOP_AUTHENTICATION,
        HDFS_PROXY_USER,
        HDFS_USER,
        TOKEN_FILES,
    )

    given = give_tokens(holder, identity.tokens)
    found = configuration.properties
    kept = found.get(TOKEN_FILES.key) if identity.login else None
    secured = identity.secured or HADOOP_AUTHENTICATION.of(found) == "kerberos"
    acted_for = identity.real_user is not None
    known = {UGI.key: identity.user}
    if not secured:
        known[HDFS_USER.key] = identity.real_user or identity.user
    # the ticket is the server's: requests made with it are on behalf of this user
    if acted_for or not identity.login:
        known[METASTORE_PROXY_USER.key] = identity.user
    if acted_for or (secured and not identity.login):
        known[HDFS_PROXY_USER.key] = identity.user
    if identity.secured and not (acted_for or identity.login or identity.tokens):
        raise ConfigurationError(
            f"Catalog {configuration.name}: nothing proves to a secured cluster that "
            f"{identity.user} asks: Spark has neither a ticket nor a delegation token of this user",
            hint=f"Start an application for {identity.user}: spark-submit --proxy-user.",
        )
    tokens = {TOKEN_FILES.key: ",".join(filter(None, (given, kept)))}
    if (identity.login or acted_for) and not kept:
        known |= _keytabs(found, environment, identity.tokens)
    return configuration.over(known, _SOURCE).under(tokens, _SOURCE)


def _keytabs(
    properties: Mapping[str, str], environment: Environment, tokens: Sequence[str]
) -> dict[str, str]:
    """Return the application's keytab for services without a token or a key of the catalog."""
    from icecomb.catalog.configuration.catalog_property import KEYTAB, PRINCIPAL
    from icecomb.catalog.hive.thrift.security import TOKEN_KIND
    from icecomb.format.storage.hdfs.session import TOKEN_KINDS
    from icecomb.format.storage.storage_property import HDFS_KEYTAB, HDFS_PRINCIPAL

    if environment.keytab is None or environment.principal is None:
        return {}
    shown = {DelegationToken.of_url_text(token).kind for token in tokens}
    found: dict[str, str] = {}
    for kinds, principal, keytab in (
        (TOKEN_KINDS, HDFS_PRINCIPAL, HDFS_KEYTAB),
        ((TOKEN_KIND,), PRINCIPAL, KEYTAB),
    ):
        if shown.isdisjoint(kinds) and properties.keys().isdisjoint((principal.key, keytab.key)):
            found |= {principal.key: environment.principal, keytab.key: environment.keytab}
    return found


def of_others(hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings without Spark Hive support's login to an embedded metastore.

    Another metastore must not be sent that token, and connections find their own.
    """
    from icecomb.catalog.configuration.metastore_folder import SIGNATURE

    if hadoop.get("hive.metastore.token.signature") != SIGNATURE:
        return dict(hadoop)
    own = {"hive.metastore.sasl.enabled", "hive.metastore.token.signature", "hadoop.token.files"}
    return {key: value for key, value in hadoop.items() if key not in own}
