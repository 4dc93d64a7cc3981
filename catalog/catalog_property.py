"""Names of the properties of catalogs: what is not one of them is not passed over in silence.

A name of ours that is misspelt would leave what it means at its default, as ``url`` for ``uri``.
Names of other programs are theirs: those below `hadoop.`, `fs.` or `s3.`, say, are kept unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from icecomb.catalog.setting import Setting
from icecomb.format.errors import ConfigurationError

_PLAIN: Final = frozenset(
    {
        "clients",
        "hadoop-conf-dir",
        "hive-conf-dir",
        "list-all-tables",
        "type",
        "ugi",
        "unique-table-location",
        "uri",
        "warehouse",
    }
)
_ELSEWHERE: Final = frozenset(
    {
        "app-id",
        "cache-enabled",
        "credential",
        "downcast-ns-timestamp-to-us-on-write",
        "io-impl",
        "lock-impl",
        "metrics-reporter-impl",
        "py-io-impl",
        "scope",
        "token",
        "user",
    }
)
"""Iceberg's and PyIceberg's own names without a meaning for catalogs of a metastore or of folders.

They stand in settings that are shared with those.
"""
_OWN_FAMILIES: Final = ("clients.", "hdfs.", "local.")
_DOTTED: Final = frozenset(
    {
        "client.pool.cache.eviction-interval-ms",
        "clients.wait-timeout-ms",
        "engine.hive.enabled",
        "engine.hive.lock-enabled",
        "hdfs.ca-path",
        "hdfs.delegation-token",
        "hdfs.engine",
        "hdfs.kerberos.keytab",
        "hdfs.kerberos.principal",
        "hdfs.proxy-user",
        "hdfs.trash",
        "hdfs.user",
        "hive.check-and-put",
        "iceberg.engine.hive.enabled",
        "iceberg.engine.hive.lock-enabled",
        "iceberg.hive.keep.stats",
        "iceberg.hive.table-property-max-size",
        *(
            f"iceberg.hive.lock-{name}-ms"
            for name in (
                "check-max-wait",
                "check-min-wait",
                "creation-max-wait",
                "creation-min-wait",
                "creation-timeout",
                "heartbeat-interval",
                "timeout",
            )
        ),
        "io.manifest.cache-enabled",
        "io.manifest.cache.folder",
        "io.manifest.cache.folder-max-total-bytes",
        "io.manifest.cache.max-total-bytes",
        "local.sync-data-files",
        "lock.acquire-interval-ms",
        "lock.acquire-timeout-ms",
        "lock.heartbeat-timeout-ms",
        "metastore.catalog.default",
        *(
            f"{family}.{name}"
            for family in ("hive.metastore", "metastore")
            for name in (
                "client.keytab",
                "client.principal",
                "client.socket.lifetime",
                "client.socket.timeout",
                "execute.setugi",
                "kerberos.principal",
                "sasl.enabled",
                "token.signature",
                "truststore.path",
                "uri.selection",
                "use.SSL",
            )
        ),
        "hive.metastore.client.connect.timeout-s",
        "hive.metastore.uris",
        "hive.metastore.warehouse.dir",
        "metastore.thrift.uris",
        "metastore.warehouse.dir",
    }
)
_FAMILIES: Final = frozenset(
    {"table-default", "table-override", "view-default", "view-override"}
    | {name.partition(".")[0] for name in _DOTTED}
    | {"dfs", "fs", "hadoop", "ipc", "s3"}
)
_SHORTEST_FAMILY: Final = 6
"""Names of fewer letters are near to each other by chance."""
_LIKE_A_SLIP: Final = 0.93
"""How near (`difflib`) a longer name is that differs in a letter or two."""
_LIKE_A_FAMILY: Final = 0.85
_LIKE_A_WORD: Final = 0.6


def check_names(catalog: str, settings: Mapping[str, Setting]) -> None:
    """Refuse names that mean nothing and look like ours.

    Args:
        catalog: The catalog they are said of.
        settings: What users said of it; not what a cluster's own files say, where much stands that
            is nobody's business here.

    Raises:
        ConfigurationError: Names the first such name, where it stands, and what may be meant.
    """
    for key, setting in sorted(settings.items()):
        if _is_known(key):
            continue
        near = next(_meant(key), None)
        if near is None and "." in key and not key.startswith(_OWN_FAMILIES):
            continue
        raise ConfigurationError(
            f"catalog {catalog}: there is no setting {key!r} ({setting.source})",
            hint=f"Did you mean {near}?"
            if near
            else f"those without a dot are {', '.join(sorted(_PLAIN))}; docs/configuration.md",
        )


def _is_known(key: str) -> bool:
    return key in _PLAIN or key in _ELSEWHERE or key in _DOTTED


def _meant(key: str) -> Iterator[str]:
    lowered = key.lower()
    spelt = lowered.replace("_", "-")
    if "." not in key:
        yield from get_close_matches(spelt, sorted(_PLAIN), n=1, cutoff=_LIKE_A_WORD)
        yield from (name for name in sorted(_DOTTED) if name.replace(".", "-") == spelt)
        return
    own = key.startswith(_OWN_FAMILIES)
    cutoff = _LIKE_A_WORD if own else _LIKE_A_SLIP
    by_lowered = {name.lower(): name for name in sorted(_DOTTED)}
    yield from (by_lowered[n] for n in get_close_matches(lowered, by_lowered, n=1, cutoff=cutoff))
    family, _, rest = key.partition(".")
    if family not in _FAMILIES and len(family) >= _SHORTEST_FAMILY:
        found = get_close_matches(family.lower(), sorted(_FAMILIES), n=1, cutoff=_LIKE_A_FAMILY)
        yield from (f"{name}.{rest}" for name in found)
