"""Resolution of locations to name nodes and paths: nameservices, mount tables, ports.

A location stays in metadata exactly as it was written; only requests use the resolved address.
Sources: Hadoop's hdfs-default.xml, HDFS high availability, ViewFs guide.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from icecomb.format.errors import ConfigurationError, ValidationError
from icecomb.format.storage.site_file import read_site_files, resolve, site_folders
from icecomb.format.storage.storage_property import HDFS_HTTP_POLICY, HDFS_SERVERS

SCHEMES: Final = ("hdfs", "webhdfs", "swebhdfs", "viewfs")

_LOCATION: Final = re.compile(
    r"(?P<scheme>[A-Za-z]+):(?://(?P<authority>[^/]*))?(?P<path>/.*|)", re.DOTALL
)
_SCHEME: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.\-]*):")
_HTTP_PORT: Final = "9870"
_HTTPS_PORT: Final = "9871"
_DEEPEST_MOUNT: Final = 8
_OVERLOADING: Final = frozenset({"ViewFileSystemOverloadScheme", "ViewDistributedFileSystem"})
"""Hadoop's classes by which locations of other schemes than viewfs have mount tables, too."""
_LINK: Final = re.compile(r"fs\.viewfs\.mounttable\..*\.link(?:Fallback|MergeSlash|\.)")
_MOUNTS_ELSEWHERE: Final = ("linkRegex.", "linkNfly.", "linkMerge.")
"""Links of mount tables that are not followed."""


@dataclass(frozen=True, slots=True)
class HdfsAddress:
    """A path of one cluster.

    Attributes:
        name_nodes: `host:port` of the HTTP interface of each name node; a single one unless the
            cluster is highly available.
        path: Absolute path without doubled or trailing slashes and dots, nothing escaped.
        cluster: `hdfs://` and the nameservice or the name node's own address; empty for a location
            whose scheme is WebHDFS.
    """

    name_nodes: tuple[str, ...]
    secure: bool
    path: str
    cluster: str = ""


def hadoop_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings: those of `HADOOP_CONF_DIR`, overridden by the given ones."""
    folder, _ = site_folders(os.environ)
    found: dict[str, str] = {}
    if folder is not None:
        stated = read_site_files([folder / "core-site.xml", folder / "hdfs-site.xml"])
        found = {name: resolve(stated, name, os.environ) for name in stated}
    return {**found, **properties}


def default_scheme(properties: Mapping[str, str]) -> str:
    """Return the scheme that Hadoop assumes for locations without one, in lower case.

    Without `fs.defaultFS` in the settings from `hadoop_properties` it is `file`.
    """
    match = _SCHEME.match(properties.get("fs.defaultFS", ""))
    return match[1].lower() if match else "file"


def resolve_location(location: str, properties: Mapping[str, str]) -> HdfsAddress:
    """Return the address of an absolute HDFS location.

    ConfigurationError is raised if neither it nor `fs.defaultFS` names a cluster, or if the
    settings do not describe its nameservice or mount table, or have an unknown `dfs.http.policy`.
    """
    is_target = False
    for _ in range(_DEEPEST_MOUNT):
        scheme, authority, path = _parts(location, properties)
        table = "" if is_target else _mount_table(location, scheme, authority, properties)
        if not table:
            secure = _is_secure(scheme, properties)
            name_nodes = _name_nodes(scheme, authority, properties, secure=secure)
            cluster = f"hdfs://{authority}" if scheme == "hdfs" else ""
            return HdfsAddress(name_nodes, secure, path, cluster)
        location = _mounted(location, table, path, properties)
        is_target = scheme != "viewfs"
    raise ConfigurationError(
        f"{location}: its mount table has a cycle",
        hint="Correct fs.viewfs.mounttable.* in core-site.xml.",
        path=location,
    )


def is_mounted(location: str, properties: Mapping[str, str]) -> bool:
    """Return whether a mount table tells where a location is; see `resolve_location`."""
    scheme, authority, _ = _parts(location, properties)
    return bool(_mount_table(location, scheme, authority, properties))


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster that the settings name.

    Attributes:
        nameservice: Its nameservice; empty if it has none.
        own: `host:port` of its name nodes, in lower case.
        web: `host:port` of their web interfaces, in lower case.
        is_secure: Whether the settings name it with TLS only.
    """

    nameservice: str
    own: frozenset[str]
    web: frozenset[str]
    is_secure: bool


def known_clusters(properties: Mapping[str, str]) -> list[KnownCluster]:
    """Return the clusters that the settings from `hadoop_properties` name.

    Those are the nameservices, the single name node, targets of mount tables, and the clusters of
    `fs.defaultFS`, `warehouse` and `mapreduce.job.hdfs-servers`.
    """
    found = []
    services = _names(properties.get("dfs.nameservices", ""))
    secure = _is_secure("hdfs", properties)
    for service in (*services, ""):
        own, web = _known_addresses(service, properties)
        if web and (service or own.isdisjoint(with_port(each).lower() for each in services)):
            found.append(KnownCluster(service, frozenset(own), frozenset(web), secure))
    named = [properties.get("fs.defaultFS", ""), properties.get("warehouse", "")]
    named += _names(HDFS_SERVERS.of(properties) or "")
    named += [target for key, target in properties.items() if _LINK.match(key)]
    for location in named:
        with suppress(ValidationError, ConfigurationError):
            address = resolve_location(location.split(",")[0], properties)
            web = {each.lower() for each in address.name_nodes}
            if not any(web <= each.web and address.secure >= each.is_secure for each in found):
                own = {with_port(address.cluster.removeprefix("hdfs://")).lower()}
                own = own if address.cluster else set()
                found.append(KnownCluster("", frozenset(own), frozenset(web), address.secure))
    return found


def cluster_of(address: HdfsAddress, properties: Mapping[str, str]) -> str:
    """Return one name for a cluster, whichever of its addresses a location has.

    A name node of a known nameservice stands for the nameservice, by its own address as by that of
    its web interface.
    """
    host_and_port = with_port(address.cluster.removeprefix("hdfs://")).lower()
    web = {each.lower() for each in address.name_nodes}
    services = _names(properties.get("dfs.nameservices", ""))
    known = {service: _known_addresses(service, properties) for service in services}
    known[""] = _known_addresses("", properties)
    for service, (own, of_web) in known.items():
        if address.cluster == f"hdfs://{service}" or host_and_port in own:
            return f"hdfs://{service or min(of_web or own)}"
    for service, (own, of_web) in known.items():
        if not web.isdisjoint(of_web):
            return f"hdfs://{service or min(of_web or own)}"
    return f"hdfs://{','.join(sorted(web))}"


def _known_addresses(service: str, properties: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Return the addresses of a nameservice's name nodes, their own and those of the web.

    An empty service stands for the single name node of settings without one.
    """
    nodes = _names(properties.get(f"dfs.ha.namenodes.{service}", "")) if service else []
    suffixes = [f".{service}.{node}" for node in nodes] or ([f".{service}"] if service else [""])
    own: set[str] = set()
    web: set[str] = set()
    for suffix in suffixes:
        rpc = properties.get(f"dfs.namenode.rpc-address{suffix}", "")
        if not rpc and not service:
            default = _LOCATION.fullmatch(properties.get("fs.defaultFS", ""))
            is_hdfs = default is not None and default["scheme"].lower() == "hdfs"
            rpc = (default["authority"] or "") if default is not None and is_hdfs else ""
        if rpc:
            own.add(with_port(rpc).lower())
        for kind, port in (("http", _HTTP_PORT), ("https", _HTTPS_PORT)):
            host = rpc.partition(":")[0]
            stated = properties.get(f"dfs.namenode.{kind}-address{suffix}") or host
            if stated:
                web.add(_reachable(stated, port, host).lower())
    return own, web


def rpc_location(location: str, properties: Mapping[str, str]) -> str:
    """Convert `webhdfs://` to `hdfs://`, for clients that only speak Hadoop's own protocol.

    ConfigurationError is raised if the settings do not say which cluster has this web interface.
    """
    match = _LOCATION.fullmatch(location)
    scheme = match["scheme"].lower() if match else ""
    if match is None or scheme not in {"webhdfs", "swebhdfs"}:
        return location
    address = resolve_location(location, properties)
    for service in _names(properties.get("dfs.nameservices", "")):
        # another nameservice may be described without its web interfaces
        with suppress(ConfigurationError):
            nodes = _name_nodes(scheme, service, properties, secure=address.secure)
            if set(address.name_nodes) <= set(nodes):
                return f"hdfs://{service}{match['path']}"
    default = _LOCATION.fullmatch(properties.get("fs.defaultFS", ""))
    authorities = [properties.get("dfs.namenode.rpc-address")]
    if default is not None and default["scheme"].lower() == "hdfs":
        authorities.append(default["authority"])
    for authority in filter(None, authorities):
        if _name_nodes("hdfs", authority, properties, secure=address.secure) == address.name_nodes:
            return f"hdfs://{authority}{match['path']}"
    raise ConfigurationError(
        f"{location}: the settings do not say which hdfs:// address this cluster has",
        hint="Point HADOOP_CONF_DIR at the cluster's own files (dfs.nameservices, or "
        "dfs.namenode.rpc-address with dfs.namenode.http-address), or give the table an hdfs:// "
        "location.",
        path=location,
    )


def _parts(location: str, properties: Mapping[str, str]) -> tuple[str, str, str]:
    match = _LOCATION.fullmatch(location)
    if match is None and location.startswith("/"):
        scheme, authority, path = "", None, location
    elif match is None or match["scheme"].lower() not in SCHEMES:
        raise ValidationError(
            f"Not an HDFS location: {location!r}",
            hint="Write hdfs://<nameservice or host:port>/... or webhdfs://...",
            path=location,
        )
    else:
        scheme, authority, path = match["scheme"].lower(), match["authority"], match["path"]
    if not authority:
        default = _LOCATION.fullmatch(properties.get("fs.defaultFS", ""))
        if default is None or default["scheme"].lower() not in SCHEMES:
            raise ConfigurationError(
                f"{location} names no cluster, and fs.defaultFS is "
                f"{properties.get('fs.defaultFS') or 'not set'}",
                hint="Write hdfs://<nameservice or host:port>/..., or set fs.defaultFS in the "
                "core-site.xml of HADOOP_CONF_DIR.",
                path=location,
            )
        if scheme in {"", default["scheme"].lower()}:
            scheme, authority = default["scheme"].lower(), default["authority"] or ""
    if "\0" in path:
        raise ValidationError(
            f"A file name cannot hold a NUL: {location!r}",
            hint="Leave the NUL out of the name.",
            path=location,
        )
    path = re.sub(r"/{2,}", "/", path).rstrip("/") or "/"
    # HTTP clients resolve dots, and would leave WebHDFS's part of the name node
    return scheme, authority or "", posixpath.normpath(path) if "/." in path else path


def _is_secure(scheme: str, properties: Mapping[str, str]) -> bool:
    if scheme == "swebhdfs":
        return True
    return scheme == "hdfs" and HDFS_HTTP_POLICY.of(properties) == "https_only"


def _name_nodes(
    scheme: str, authority: str, properties: Mapping[str, str], *, secure: bool
) -> tuple[str, ...]:
    kind, port = ("https", _HTTPS_PORT) if secure else ("http", _HTTP_PORT)
    key = f"dfs.namenode.{kind}-address"
    services = _names(properties.get("dfs.nameservices", ""))
    if authority in services:
        nodes = _names(properties.get(f"dfs.ha.namenodes.{authority}", ""))
        found = []
        for suffix in [f"{authority}.{node}" for node in nodes] or [authority]:
            address = properties.get(f"{key}.{suffix}") or (not nodes and properties.get(key))
            if not address:
                raise ConfigurationError(
                    f"Nameservice {authority}: no {key}.{suffix}",
                    hint="Add it to hdfs-site.xml, or point HADOOP_CONF_DIR at the cluster's own "
                    "files.",
                )
            rpc_host = properties.get(f"dfs.namenode.rpc-address.{suffix}", "").partition(":")[0]
            found.append(_reachable(address, port, rpc_host))
        return tuple(found)
    host, _, given = authority.rpartition(":") if ":" in authority else (authority, "", "")
    if scheme != "hdfs":
        return (authority if given else f"{authority}:{port}",)
    if not given and not re.search(r"[.:]", authority) and services:
        raise ConfigurationError(
            f"hdfs://{authority}: no nameservice of this name; dfs.nameservices has "
            f"{', '.join(services)}",
            hint="Correct the location, or point HADOOP_CONF_DIR at the files of its cluster.",
        )
    if _is_rpc_address(authority, properties) and properties.get(key):
        return (_reachable(properties[key], port, host),)
    for service in services:
        nodes = _names(properties.get(f"dfs.ha.namenodes.{service}", ""))
        for suffix in [f"{service}.{node}" for node in nodes] or [service]:
            rpc_address = properties.get(f"dfs.namenode.rpc-address.{suffix}", "")
            address = properties.get(f"{key}.{suffix}")
            if address and with_port(rpc_address) == with_port(authority):
                return (_reachable(address, port, host),)
    return (f"{host}:{port}",)


def _is_rpc_address(authority: str, properties: Mapping[str, str]) -> bool:
    """Return whether `hdfs://authority` is the configured single name node."""
    stated = properties.get("dfs.namenode.rpc-address")
    if stated is None:
        default = _LOCATION.fullmatch(properties.get("fs.defaultFS", ""))
        stated = (default["authority"] or "") if default else ""
    return with_port(stated) == with_port(authority)


def with_port(rpc_address: str) -> str:
    """Return a name node's address with its port, by default Hadoop's."""
    return rpc_address if ":" in rpc_address else f"{rpc_address}:8020"


def _reachable(address: str, port: str, host: str = "") -> str:
    """Return an address to connect to: the host's if it listens on all interfaces."""
    name, _, given = address.rpartition(":") if ":" in address else (address, "", port)
    if name in {"", "0.0.0.0"}:  # noqa: S104 - read from a configuration, not bound
        name = host or name
    return f"{name}:{given}"


def _mount_table(location: str, scheme: str, authority: str, properties: Mapping[str, str]) -> str:
    """Return the name of the mount table that a location belongs to; empty if to none."""
    if scheme == "viewfs":
        return authority or "default"
    if properties.get(f"fs.{scheme}.impl", "").rpartition(".")[2] not in _OVERLOADING:
        return ""
    if properties.get("fs.viewfs.mounttable.path"):
        raise ConfigurationError(
            f"{location}: its mount table is in the file of fs.viewfs.mounttable.path",
            hint="Write the links of that file into core-site.xml, or name the cluster "
            "behind them.",
            path=location,
        )
    counts_port = properties.get("fs.viewfs.ignore.port.in.mount.table.name", "") == "false"
    table = authority if counts_port else authority.partition(":")[0]
    # without a table the class leads to the cluster itself
    return table if any(k.startswith(f"fs.viewfs.mounttable.{table}.") for k in properties) else ""


def _mounted(location: str, table: str, path: str, properties: Mapping[str, str]) -> str:
    """Return the target of a path in a mount table (`fs.viewfs.mounttable.<table>.link.*`)."""
    start = f"fs.viewfs.mounttable.{table}."
    best, target = "", ""
    for key, value in properties.items():
        if key.startswith(tuple(start + kind for kind in _MOUNTS_ELSEWHERE)):
            raise ConfigurationError(
                f"{location}: its mount table has the link {key}, which icecomb does not follow",
                hint="Name the cluster and folder behind it (hdfs://...), or link with "
                f"{start}link.<folder>",
                path=location,
            )
        if not key.startswith(f"{start}link."):
            continue
        point = key.removeprefix(f"{start}link.").rstrip("/")
        if (path == point or path.startswith(f"{point}/")) and len(point) >= len(best):
            best, target = point, value
    if not target:
        fallback = properties.get(f"{start}linkFallback") or properties.get(
            f"{start}linkMergeSlash"
        )
        if not fallback:
            raise ConfigurationError(
                f"{location}: no mount point of table {table} covers it",
                hint=f"Add {start}link.<folder> to core-site.xml.",
                path=location,
            )
        target = fallback
    return f"{target.split(',')[0].rstrip('/')}{path[len(best) :]}" or "/"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
