"""Examination of the HDFS under a warehouse: configuration, name nodes, rights and quotas."""

from __future__ import annotations

import os
import posixpath
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import IcecombError, NoSuchFileError
from icecomb.format.shell_command import quoted_word
from icecomb.format.storage.site_file import site_folders

if TYPE_CHECKING:
    from icecomb.format.storage.hdfs.name_node import NameNode
    from icecomb.format.storage.hdfs.web_hdfs import WebHdfs

_CALLS: Final = 5
_SLOW_S: Final = 0.5
_NEARLY: Final = 0.9
_BLOCK: Final = 128 << 20
_FILES: Final = ("core-site.xml", "hdfs-site.xml")


def examine_cluster(properties: Mapping[str, str], warehouse: str) -> Iterator[Finding]:
    """Examine the cluster of a warehouse folder in HDFS, and the folder; nothing is changed."""
    from icecomb.format.storage.hdfs.file_system import HdfsFileSystem
    from icecomb.format.storage.hdfs.name_node import name_nodes

    yield _files_read(properties)
    try:
        web, address = HdfsFileSystem(properties).cluster(warehouse)
        nodes = name_nodes(web)
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "hdfs", error.message, error.hint)
        return
    yield from _states(nodes, warehouse)
    if all(node.problem or node.state not in {"active", ""} for node in nodes):
        return
    try:
        yield _latency(web)
        yield from _folder(web, address.path, warehouse)
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "warehouse", error.message, error.hint)


def _files_read(properties: Mapping[str, str]) -> Finding:
    named = properties.get("hadoop-conf-dir")
    folder = Path(named).expanduser() if named else site_folders(os.environ)[0]
    if folder is None:
        return Finding(
            Severity.NOTE,
            "hdfs configuration",
            "no core-site.xml or hdfs-site.xml was read: HADOOP_CONF_DIR is not set",
            "export HADOOP_CONF_DIR=<the folder with the cluster's own files>",
        )
    found = [str(folder / name) for name in _FILES if (folder / name).exists()]
    if not found:
        return Finding(
            Severity.WARNING,
            "hdfs configuration",
            f"{folder} has neither {' nor '.join(_FILES)}",
            "point HADOOP_CONF_DIR at the folder with the cluster's own files",
        )
    return Finding(Severity.OK, "hdfs configuration", f"read: {', '.join(found)}")


def _states(nodes: list[NameNode], warehouse: str) -> Iterator[Finding]:
    active = [node for node in nodes if node.state == "active"]
    silent = [node for node in nodes if not node.state and not node.problem]
    for node in nodes:
        if node.problem:
            level = Severity.WARNING if active else Severity.PROBLEM
            yield Finding(
                level,
                "name node",
                node.problem,
                "start it, or correct dfs.namenode.http-address for it in hdfs-site.xml",
            )
        else:
            said = f"is {node.state}" if node.state else "answers, but hides its state"
            yield Finding(
                Severity.OK if node.state else Severity.NOTE,
                "name node",
                f"{node.address} {said} (answered in {node.seconds * 1000:.0f} ms)",
            )
    if not active and not silent and not all(node.problem for node in nodes):
        yield Finding(
            Severity.PROBLEM,
            "name node",
            f"none of the name nodes of {warehouse} is active",
            "hdfs haadmin -getAllServiceState; hdfs haadmin -transitionToActive <name>",
        )
    for node in active:
        if node.safe_mode:
            yield Finding(
                Severity.PROBLEM,
                "safe mode",
                f"{node.address} is in safe mode: everything can be read, nothing written",
                "it ends by itself once enough blocks are reported; if it was entered by hand: "
                "hdfs dfsadmin -safemode leave",
            )
        if node.live_data_nodes == 0:
            yield Finding(
                Severity.PROBLEM,
                "data nodes",
                "none is alive: no file can be read or written",
                "start them; hdfs dfsadmin -report lists those that are known",
            )
        elif node.live_data_nodes is not None:
            yield from _space(node, node.live_data_nodes)


def _space(node: NameNode, live: int) -> Iterator[Finding]:
    free = node.free_bytes
    said = f"{live} alive" + ("" if free is None else f", {_size(free)} free")
    if free is not None and free < _BLOCK:
        yield Finding(
            Severity.PROBLEM,
            "data nodes",
            f"{said}: no new block fits",
            "free space on their disks",
        )
    else:
        yield Finding(Severity.OK, "data nodes", said)


def _latency(web: WebHdfs) -> Finding:
    taken = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        web.status("/", "/")
        taken.append(time.perf_counter() - started)
    seconds = statistics.median(taken)
    said = f"a call as {web.user} takes {seconds * 1000:.1f} ms"
    if seconds > _SLOW_S:
        return Finding(
            Severity.WARNING,
            "latency",
            said,
            "each file costs two to four calls: check the name node's load and the network",
        )
    return Finding(Severity.OK, "latency", said)


def _folder(web: WebHdfs, path: str, warehouse: str) -> Iterator[Finding]:
    """Check rights and quotas of the warehouse, or of the parent in which it would be created."""
    existing = path
    while True:
        try:
            status = web.status(existing, warehouse)
            break
        except NoSuchFileError:
            if existing == "/":
                raise
            existing = posixpath.dirname(existing)
    if not status.is_folder:
        yield Finding(
            Severity.PROBLEM,
            "warehouse",
            f"{existing} is a file",
            "choose another warehouse, or move the file away",
        )
        return
    if existing != path:
        yield Finding(
            Severity.NOTE, "warehouse", f"{warehouse} does not exist; the first table creates it"
        )
    yield _rights(web, existing, warehouse)
    if existing == path:
        yield from _quotas(web, path, warehouse)


def _rights(web: WebHdfs, path: str, warehouse: str) -> Finding:
    refused = _refused(web, path, warehouse, "r-x"), _refused(web, path, warehouse, "-wx")
    if refused == ("", ""):
        return Finding(Severity.OK, "permission", f"{web.user} may read and write in {path}")
    verb = "write" if not refused[0] else "read"
    return Finding(
        Severity.PROBLEM,
        "permission",
        f"{web.user} may not {verb} in {path}: {refused[0] or refused[1]}",
        f"hdfs dfs -setfacl -R -m {quoted_word(f'user:{web.user}:rwx')} {quoted_word(path)} (or "
        "-chown), or use another user: hdfs.user, HADOOP_USER_NAME",
    )


def _refused(web: WebHdfs, path: str, warehouse: str, action: str) -> str:
    """Return why something is not allowed; empty if it is."""
    try:
        web.check_access(path, warehouse, action)
    except IcecombError as error:
        return error.message.partition("Exception: ")[2] or error.message
    return ""


def _quotas(web: WebHdfs, path: str, warehouse: str) -> Iterator[Finding]:
    found = web.content_summary(path, warehouse)
    names = found["directoryCount"] + found["fileCount"]
    kinds = (
        ("names", found["quota"], names, 1, "-setQuota <number>", str),
        (
            "space",
            found["spaceQuota"],
            found["spaceConsumed"],
            _BLOCK,
            "-setSpaceQuota <bytes>",
            _size,
        ),
    )
    for what, quota, used, least, command, shown in kinds:
        if quota < 0:
            continue
        said = f"{shown(used)} of the {what} quota {shown(quota)} of {path} are used"
        remedy = f"delete what is not needed, or hdfs dfsadmin {command} {quoted_word(path)}"
        if quota - used < least:
            reason = " (HDFS reserves a whole block of 128 MiB)" if what == "space" else ""
            yield Finding(Severity.PROBLEM, "quota", f"{said}: no new file fits{reason}", remedy)
        elif used > _NEARLY * quota:
            yield Finding(Severity.WARNING, "quota", f"{said}: nearly full", remedy)
        else:
            yield Finding(Severity.OK, "quota", said)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
