"""What WebHDFS answers when it refuses, as errors of icecomb in plain words."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from icecomb.format.errors import (
    FileIOError,
    IcecombError,
)
from icecomb.format.storage.file_system import exists_already, is_missing

MISSING = frozenset({"FileNotFoundException"})
EXISTS = frozenset({"FileAlreadyExistsException", "AlreadyBeingCreatedException"})
UNREADY = frozenset(
    {
        "StandbyException",
        "ObserverRetryOnActiveException",
        "RetriableException",
        "SafeModeException",
    }
)
"""Answers of a name node that is starting, not active or in safe mode: another, or later."""

TRANSIENT = frozenset({"IOException", "RemoteException", "RetriableException", "StandbyException"})
"""Answers of a data node whose name node changed roles, or that could not store a block."""

_ADVICE = {
    "AccessControlException": "give the user the right, or set hdfs.user or HADOOP_USER_NAME",
    "SecurityException": "check the user name, the ticket (klist) or the delegation token",
    "AuthorizationException": "allow this user in hadoop.proxyuser.* of the name node",
    "DSQuotaExceededException": "free space, or have the folder's space quota raised",
    "NSQuotaExceededException": "delete files, or have the folder's name quota raised",
    "SafeModeException": "the name node is read-only: hdfs dfsadmin -safemode get",
    "StandbyException": "no name node is active: hdfs haadmin -getAllServiceState",
    "InvalidPathException": "HDFS allows no colon in the name of a file or folder",
    "UnresolvedLinkException": "symbolic links are not followed",
}


class HdfsAnswerLostError(FileIOError):
    """A name node was asked and its answer is not known: it may have done it, or do it yet."""


class HdfsDataLostError(FileIOError):
    """A data node lost what was sent to it; nothing stands under the file's name."""


def failure(verb: str, location: str, exception: str, message: str) -> IcecombError:
    """The error for a remote exception.

    Args:
        verb: What was tried, as `read`.
        location: On what, as the caller spells it.
        exception: Hadoop's class, without its package.
        message: Its text; only the first line is for people.
    """
    if exception in MISSING:
        return is_missing(location)
    if exception in EXISTS:
        return exists_already(location)
    text = (message or exception).strip().splitlines()[0]
    advice = _ADVICE.get(exception, "look at the log of the name node")
    if '"user.name"' in text:
        advice = "the cluster takes no such user name: set hdfs.user or HADOOP_USER_NAME"
    return FileIOError(
        f"Cannot {verb} {location}: {exception}: {text}",
        hint=advice,
        path=location,
    )


def not_hdfs(verb: str, location: str, name_nodes: Sequence[str], cause: str) -> FileIOError:
    """The error for an answer that is none of WebHDFS."""
    return HdfsAnswerLostError(
        f"Cannot {verb} {location}: {' or '.join(name_nodes)} did not answer as WebHDFS does: "
        f"{cause}",
        hint="check the address: a proxy or another service may answer there",
        path=location,
    )


def unreachable(verb: str, location: str, name_nodes: Sequence[str], cause: str) -> FileIOError:
    """The error when no name node answered as an active one."""
    found = "; ".join(f"{node}: {reach(node)}" for node in name_nodes)
    return HdfsAnswerLostError(
        f"Cannot {verb} {location}: no active name node ({found or cause})",
        hint="check dfs.namenode.http-address, dfs.nameservices and that WebHDFS is enabled; "
        "`icecomb doctor` shows what is configured",
        path=location,
    )


def reach(name_node: str) -> str:
    """What becomes of an attempt to connect to `host:port`, in plain words."""
    host, _, port = name_node.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return "listens, but is not active or not ready"
    except socket.gaierror:
        described = (
            "" if "." in host else "; if it is a nameservice, hdfs-site.xml must describe it"
        )
        return f"the host name is unknown{described}"
    except (OSError, ValueError) as error:
        return f"{getattr(error, 'strerror', None) or error}"
