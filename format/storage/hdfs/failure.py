"""Conversion of WebHDFS error responses to icecomb's errors."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from icecomb.format.errors import (
    FileIOError,
    IcecombError,
)
from icecomb.format.secret import one_line
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
"""Errors of a name node that is starting, not active or in safe mode: try another, or later."""

TRANSIENT = frozenset({"IOException", "RemoteException", "RetriableException", "StandbyException"})
"""Errors of a data node whose name node changed roles, or that could not store a block."""

_ADVICE = {
    "AccessControlException": "Give the user the right, or set hdfs.user or HADOOP_USER_NAME.",
    "SecurityException": "Check the user name, the ticket (klist) or the delegation token.",
    "AuthorizationException": "Allow this user in hadoop.proxyuser.* of the name node.",
    "DSQuotaExceededException": "Free space, or have the folder's space quota raised.",
    "NSQuotaExceededException": "Delete files, or have the folder's name quota raised.",
    "SafeModeException": "The name node is read-only: hdfs dfsadmin -safemode get.",
    "SnapshotException": "Delete the folder's snapshots first: hdfs dfs -deleteSnapshot.",
    "StandbyException": "No name node is active: hdfs haadmin -getAllServiceState.",
    "InvalidPathException": "HDFS allows no colon in the name of a file or folder.",
    "UnresolvedLinkException": "Symbolic links are not followed.",
}


class HdfsAnswerLostError(FileIOError):
    """A lost response of a name node: the request may have been executed or may still be."""


class HdfsDataLostError(FileIOError):
    """A data node lost the data sent to it; there is no file under the name."""


def failure(verb: str, location: str, exception: object, message: object) -> IcecombError:
    """Return the error for a remote exception, with the first line of its message.

    Args:
        verb: The failed operation, such as `read`.
        exception: Hadoop's exception class, without its package.
    """
    name = one_line(exception)
    if name in MISSING:
        return is_missing(location)
    if name in EXISTS:
        return exists_already(location)
    text = one_line(message) or name
    advice = _ADVICE.get(name, "Check the log of the name node.")
    if '"user.name"' in text:
        advice = "The cluster rejects this user name: set hdfs.user or HADOOP_USER_NAME."
    return FileIOError(
        f"Cannot {verb} {location}: {name}: {text}",
        hint=advice,
        path=location,
    )


def not_hdfs(verb: str, location: str, name_nodes: Sequence[str], cause: str) -> FileIOError:
    """Return the error for a response that does not come from WebHDFS."""
    return HdfsAnswerLostError(
        f"Cannot {verb} {location}: {' or '.join(name_nodes)} did not answer as WebHDFS does: "
        f"{cause}",
        hint="Check the address: a proxy or another service may answer there.",
        path=location,
    )


def unreachable(verb: str, location: str, name_nodes: Sequence[str], cause: str) -> FileIOError:
    """Return the error for a cluster of which no name node responded as active."""
    found = "; ".join(f"{node}: {reach(node)}" for node in name_nodes)
    return HdfsAnswerLostError(
        f"Cannot {verb} {location}: no active name node ({found or cause})",
        hint="Check dfs.namenode.http-address, dfs.nameservices and that WebHDFS is enabled; "
        "`icecomb doctor` shows what is configured.",
        path=location,
    )


def reach(name_node: str) -> str:
    """Return the result of an attempt to connect to `host:port`, in plain words."""
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
