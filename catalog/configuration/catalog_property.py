"""All properties of catalogs that have a meaning, and the detection of misspelled ones.

A misspelled name would leave the property at its default, as ``url`` for ``uri``. Names of other
programs, for example those below `hadoop.`, `fs.` or `s3.`, are kept unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import (
    Property,
    choice,
    flag,
    milliseconds,
    nearest,
    number,
    optional_number,
    registered,
    seconds,
    text,
)
from icecomb.format.property.table_property import (
    COMMIT_MAX_WAIT,
    COMMIT_TOTAL_TIMEOUT,
    HIVE_ENGINE,
    HIVE_LOCK,
)
from icecomb.format.secret import ShownProperties
from icecomb.format.storage.storage_property import STORAGE_PROPERTIES

T = TypeVar("T")
_SIZE: Final = re.compile(r"(\d{1,18})\s*([kmg]?)b?", re.ASCII)


def _renamed(known: Property[T]) -> Property[T]:
    """Add the name that Hive 3 and later use for one of Hive's properties."""
    return replace(known, also=(known.key.removeprefix("hive."),))


def _size(text: str) -> int:
    """Parse a size as Hive's `SizeValidator` does; 0 and -1 stand for the default."""
    found = _SIZE.fullmatch(text.lower())
    if text in {"0", "-1"}:
        return 1 << 30
    if found is None:
        raise ValueError(text)
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]


def _of_lock(name: str, default: int, about: str) -> Property[int]:
    return milliseconds(f"iceberg.hive.lock-{name}-ms", default, about)


TYPE: Final = text("type", "The kind of catalog; `hive` with a `uri`.", "hive, hadoop or local")
URI: Final = text(
    "uri", "The metastore's address.", "thrift://host:port, or several with commas between"
)
WAREHOUSE: Final = text("warehouse", "The root folder of new namespaces.", "a folder")
HADOOP_CONF_DIR: Final = text(
    "hadoop-conf-dir",
    "The folder of the cluster's configuration files; `HADOOP_CONF_DIR` by default.",
    "a folder",
)
HIVE_CONF_DIR: Final = text(
    "hive-conf-dir", "The folder of hive-site.xml; `HIVE_CONF_DIR` by default.", "a folder"
)
LIST_ALL_TABLES: Final = flag(
    "list-all-tables", "Whether tables that are not Iceberg tables are listed, too.", default=False
)
FORMAT_VERSION_MAX: Final = optional_number(
    "format-version.max",
    "The highest format version that tables are created with or upgraded to, for other engines.",
    least=1,
)
DOWNCAST_NANOSECONDS: Final = flag(
    "downcast-ns-timestamp-to-us-on-read",
    "Whether Spark shows `timestamp_ns` and `timestamptz_ns` in microseconds, rounded down.",
    default=False,
)
UNIQUE_LOCATION: Final = flag(
    "unique-table-location",
    "Whether the folder of a new table has a name that no other table ever had.",
    default=False,
)

CLIENTS: Final = number(
    "clients", 16, "Connections to a metastore that are in use at once.", least=1
)
CLIENTS_WAIT: Final = milliseconds(
    "clients.wait-timeout-ms", 60_000, "How long a thread waits for a connection."
)
IDLE: Final = milliseconds(
    "client.pool.cache.eviction-interval-ms",
    300_000,
    "The idle time after which a connection is replaced.",
)
CONNECT_TIMEOUT: Final = seconds(
    "hive.metastore.client.connect.timeout-s",
    10.0,
    "How long a metastore may take to accept a connection.",
)
SOCKET_TIMEOUT: Final = _renamed(
    seconds(
        "hive.metastore.client.socket.timeout", 180.0, "How long a reply of a metastore may take."
    )
)
LARGEST_REPLY: Final = Property(
    "hive.thrift.client.max.message.size",
    1 << 30,
    "The largest reply of a metastore; 100,000 partitions of 100 columns have about 500 MB.",
    "a size such as 1gb or 500mb, or a number of bytes",
    _size,
    also=("metastore.thrift.client.max.message.size",),
)
SOCKET_LIFETIME: Final = _renamed(
    seconds(
        "hive.metastore.client.socket.lifetime",
        0.0,
        "The age at which a connection to a metastore is replaced; 0 for never.",
    )
)
URI_SELECTION: Final = _renamed(
    choice(
        "hive.metastore.uri.selection",
        ("sequential", "random"),
        "The order in which several addresses are tried.",
    )
)
UGI: Final = text(
    "ugi",
    "The user reported to a server without SASL; the local user by default.",
    "a user's name",
)
SET_UGI: Final = _renamed(
    flag(
        "hive.metastore.execute.setugi",
        "Whether the user is reported to a server without SASL.",
        default=True,
    )
)
CATALOG: Final = text(
    "metastore.catalog.default", "A catalog of the metastore's own (Hive 3 and later).", "a name"
)

SASL: Final = _renamed(
    flag("hive.metastore.sasl.enabled", "Whether connections authenticate by SASL.", default=False)
)
SERVICE: Final = _renamed(
    text(
        "hive.metastore.kerberos.principal",
        "The metastore's principal.",
        "a principal such as hive/_HOST@REALM, where _HOST is the host connected to",
    )
)
PRINCIPAL: Final = _renamed(
    text(
        "hive.metastore.client.principal",
        "The client's principal; that of the ticket by default.",
        "a Kerberos principal",
    )
)
KEYTAB: Final = _renamed(
    text("hive.metastore.client.keytab", "The client's key, instead of a ticket.", "a keytab file")
)
METASTORE_PROXY_USER: Final = text(
    "hive.metastore.proxy-user",
    "The user to impersonate at a server with SASL, which must allow it.",
    "a user's name",
)
TOKEN_SIGNATURE: Final = _renamed(
    text(
        "hive.metastore.token.signature",
        "The service of the delegation token to use instead of Kerberos.",
        "a name",
    )
)
_PROTECTIONS: Final = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}


def _protection(said: str) -> str | None:
    names = [name.strip().lower() for name in said.split(",") if name.strip()]
    if any(name not in _PROTECTIONS for name in names):
        raise ValueError(said)
    return _PROTECTIONS[names[0]] if names else None


PROTECTION: Final[Property[str | None]] = Property(
    "hadoop.rpc.protection",
    None,
    "The protection to use if the metastore leaves the choice: the first one counts.",
    "authentication, integrity or privacy, or several with commas between",
    _protection,
)
"""The protection as SASL names it; by default the weakest that the metastore accepts."""
TLS: Final = _renamed(
    flag("hive.metastore.use.SSL", "Whether connections to the metastore use TLS.", default=False)
)
TRUST_STORE: Final = _renamed(
    text(
        "hive.metastore.truststore.path",
        "The trusted certificates for TLS; the system's by default.",
        "a file or folder in PEM",
    )
)

CHECK_AND_PUT: Final = choice(
    "hive.check-and-put",
    ("true", "trusted", "false"),
    "Whether the server checks which pointer it replaces.",
)
"""``true`` tests it; ``trusted`` assumes it where testing is not allowed, or where only the
operator knows that the metastore's own database is neither MySQL nor MariaDB; ``false`` never
sends the expected pointer together with a lock.
"""
LOCK_ENABLED: Final = replace(
    HIVE_LOCK,
    about="Whether commits take a metastore lock, unless the table's own property says it.",
    also=(f"iceberg.{HIVE_LOCK}",),
)
ENGINE_ENABLED: Final = replace(
    HIVE_ENGINE,
    about="Whether Hive itself can read new tables, unless the table's own property says it.",
    also=(f"iceberg.{HIVE_ENGINE}",),
)
KEEP_STATISTICS: Final = flag(
    "iceberg.hive.keep.stats",
    "Whether a commit keeps Hive's column statistics.",
    default=False,
)
PARAMETER_SIZE: Final = number(
    "iceberg.hive.table-property-max-size",
    32672,
    "Longer descriptions of a table are left out of its entry; 0 leaves out all.",
    least=0,
)
LOCK_CREATION_TIMEOUT: Final = _of_lock(
    "creation-timeout", 180_000, "How long a lock request is repeated after its reply was lost."
)
LOCK_CREATION_MIN_WAIT: Final = _of_lock(
    "creation-min-wait", 50, "The pause before such a request is repeated."
)
LOCK_CREATION_MAX_WAIT: Final = _of_lock("creation-max-wait", 5_000, "The longest such pause.")
LOCK_TIMEOUT: Final = _of_lock("timeout", 180_000, "How long a commit waits for its lock.")
LOCK_CHECK_MIN_WAIT: Final = _of_lock(
    "check-min-wait", 50, "The shortest pause between two checks of a lock that is waited for."
)
LOCK_CHECK_MAX_WAIT: Final = _of_lock("check-max-wait", 5_000, "The longest such pause.")
LOCK_HEARTBEAT: Final = _of_lock(
    "heartbeat-interval", 240_000, "The longest interval between two heartbeats of a lock."
)

COMMIT_LONGEST_WAIT: Final = replace(
    COMMIT_MAX_WAIT,
    about="The most that a table's own property, or its `commit.retry.min-wait-ms`, can ask for.",
)
COMMIT_LONGEST: Final = replace(
    COMMIT_TOTAL_TIMEOUT,
    about="The most that a table's own property, or all its retries, can ask for.",
)
FOLDER_LOCK_TIMEOUT: Final = milliseconds(
    "lock.acquire-timeout-ms",
    180_000,
    "How long a writer queues for the lock of a table in a folder.",
)
FOLDER_LOCK_PATIENCE: Final = milliseconds(
    "lock.heartbeat-timeout-ms",
    15_000,
    "How long it waits for another process that makes no progress.",
)

FOLDER_LOCK_INTERVAL: Final = number(
    "lock.acquire-interval-ms",
    250,
    "The longest pause between two checks of the queue, where folders are not locked.",
    least=1,
)
LOCK_IMPL: Final = text(
    "lock-impl",
    "Iceberg's lock of tables in folders; icecomb takes none.",
    "unset where a table in a folder is written to",
)

CATALOG_PROPERTIES: Final[Mapping[str, Property[Any]]] = {
    **STORAGE_PROPERTIES,
    **registered(globals().values()),
}
"""Properties of catalogs and of storage, by key."""
MEANING: Final = {
    "hive.metastore.uris": URI.key,
    "metastore.thrift.uris": URI.key,
    "hive.metastore.warehouse.dir": WAREHOUSE.key,
    "metastore.warehouse.dir": WAREHOUSE.key,
}
"""Hive's names of properties that catalogs name differently; the newer names are Hive 3's."""
_ELSEWHERE: Final = frozenset(
    {
        "app-id",
        "cache-enabled",
        "credential",
        "downcast-ns-timestamp-to-us-on-write",
        "io-impl",
        "metrics-reporter-impl",
        "py-io-impl",
        "scope",
        "token",
        "user",
    }
)
"""Names of Iceberg and PyIceberg that mean nothing to catalogs of a metastore or of folders.

They occur in settings that are shared with those.
"""
_OWN_FAMILIES: Final = ("clients.", "hdfs.", "local.")
_OF_HADOOP: Final = ("hadoop.", "dfs.")
"""Prefixes of Hadoop's names, many of which are close to names that mean something here."""
_NAMES: Final = frozenset(
    name
    for one in CATALOG_PROPERTIES.values()
    for name in (one.key, *one.also)
    if not name.startswith(_OF_HADOOP)
).union(MEANING)
_OF_NAMES: Final = tuple(name for name in _NAMES if name.endswith("."))
"""Families of properties with one name that users choose."""
_PLAIN: Final = sorted(name for name in _NAMES if "." not in name)
_DOTTED: Final = sorted(name for name in _NAMES if "." in name)
_FAMILIES: Final = frozenset(
    {"table-default", "table-override", "view-default", "view-override"}
    | {name.partition(".")[0] for name in _DOTTED}
    | {"dfs", "fs", "hadoop", "ipc", "s3"}
)
_SHORTEST_FAMILY: Final = 6
"""Shorter names are close to each other by chance."""
_LIKE_A_SLIP: Final = 0.93
"""The similarity (`difflib`) of longer names that differ in a letter or two."""
_LIKE_A_FAMILY: Final = 0.85
_LIKE_A_WORD: Final = 0.6


def check_names(catalog: str, settings: Mapping[str, Setting]) -> None:
    """Refuse names that mean nothing and resemble a property.

    Settings are those that users gave; not those of a cluster's own files, most of which do not
    concern icecomb.
    """
    for key, setting in sorted(settings.items()):
        if _is_known(key):
            continue
        near = next(filter(None, _meant(key)), None)
        if near is None and "." in key and not key.startswith(_OWN_FAMILIES):
            continue
        raise ConfigurationError(
            f"Catalog {catalog}: there is no setting {key!r} ({setting.source})",
            hint=f"Did you mean {near}?"
            if near
            else f"The names without a dot are {', '.join(_PLAIN)}; docs/properties.md",
        )


def is_strange(key: str) -> bool:
    """Return whether an accepted name is neither icecomb's nor of another program's family."""
    return not _is_known(key) and key.partition(".")[0] not in _FAMILIES


def _is_known(key: str) -> bool:
    return key in _NAMES or key in _ELSEWHERE or key.startswith(_OF_NAMES)


def _meant(key: str) -> Iterator[str | None]:
    if "." not in key:
        spelt = key.lower().replace("_", "-")
        yield nearest(spelt, _PLAIN, _LIKE_A_WORD)
        yield from (name for name in _DOTTED if name.replace(".", "-") == spelt)
        return
    yield nearest(key, _DOTTED, _LIKE_A_WORD if key.startswith(_OWN_FAMILIES) else _LIKE_A_SLIP)
    family, _, rest = key.partition(".")
    if family not in _FAMILIES and len(family) >= _SHORTEST_FAMILY:
        found = nearest(family, _FAMILIES, _LIKE_A_FAMILY)
        yield found and f"{found}.{rest}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, hidden in the repr as it may be a secret, and its source.

    The source is ``argument``, the name of an environment variable, or ``path:line`` of a file.
    """

    value: str = field(repr=False)
    source: str


class Properties(ShownProperties):
    """Properties by key, whose repr hides secrets."""

    def below(self, prefix: str) -> dict[str, str]:
        """Return the properties whose keys begin with ``prefix``, without the prefix."""
        found = self.items()
        return {key[len(prefix) :]: value for key, value in found if key.startswith(prefix)}


_FROM: Final = {"hive": "4.2", "impala": "5"}
"""The first versions of engines that read format version 3 of tables; those of the others are not
their own, but those of Iceberg's library with them."""


def too_old_engines(engines: Iterable[str], format_version: int) -> str:
    """Return the engines too old for a format version, with the first versions that are not.

    They are joined by "and"; empty where there are none.
    """
    if format_version <= 2:
        return ""
    return " and ".join(f"{one} before {_FROM[one]}" for one in engines if one in _FROM)
