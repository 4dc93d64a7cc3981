"""WebHDFS calls to the name nodes of one cluster; the only module that uses pyhdfs.

pyhdfs finds the active name node and retries when one is down, starting or on standby. This module
adds the rest: whether a repeated rename succeeded the first time, timeouts and truncation at the
data nodes, another data node after a failed read, and responses that are not WebHDFS's: a login
page has status 200, too. Source: Hadoop's WebHDFS REST API.
"""

from __future__ import annotations

import logging
import operator
import posixpath
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, unquote, urlsplit

from icecomb.format.errors import FileIOError, IcecombError, NoSuchFileError
from icecomb.format.holding import is_interrupt
from icecomb.format.input_limit import UNPACKED, bounded_json, unpacked_bytes
from icecomb.format.log_filter import hide_secrets
from icecomb.format.secret import one_line, without_secrets
from icecomb.format.storage.file_system import state_unknown
from icecomb.format.storage.hdfs.address import HdfsAddress
from icecomb.format.storage.hdfs.failure import (
    UNREADY,
    HdfsAnswerLostError,
    HdfsDataLostError,
    failure,
    not_hdfs,
    reach,
    unreachable,
)
from icecomb.format.storage.hdfs.session import BYTES, HdfsSession, content_type
from icecomb.format.storage.hdfs.upload import HdfsUpload
from icecomb.format.storage.output_stream import Upload
from icecomb.format.storage.storage_property import (
    HDFS_BLOCK_SIZE,
    HDFS_FAILOVER_ATTEMPTS,
    HDFS_REPLICATION,
    HDFS_UMASK,
)

if TYPE_CHECKING:
    import pyhdfs
    import requests

_NODE_TRIES: Final = 4
FILE_MODE: Final = 0o666
"""The permissions of new files, without a umask."""
_FOLDER_MODE: Final = 0o777
_PRIVATE_MODE: Final = 0o700
_WRAPPED: Final = re.compile(
    r"(?:[\w.$]+\()?(?:[\w$]+\.)*(?P<name>"
    + "|".join((*sorted(UNREADY), "AccessControlException", "FileNotFoundException"))
    + r")\)?(?=:| - |$)"
)
"""The start of a message that wraps another exception: that exception's class."""
_SETTLE_TRIES: Final = 3
_AVOIDED_S: Final = 600.0
"""As `dfs.client.write.exclude.nodes.cache.expiry.interval.millis` of Hadoop's client."""


@dataclass(frozen=True, slots=True)
class HdfsStatus:
    """The status of one file or folder.

    Attributes:
        name: Name without its folder; empty for the requested path itself.
        mtime_ms: Time of the last change, milliseconds since the epoch.
        file_id: Inode, which a rename does not change.
    """

    name: str
    is_folder: bool
    size: int
    mtime_ms: int
    file_id: int


_SUMMARY: Final = ("directoryCount", "fileCount", "quota", "spaceConsumed", "spaceQuota")


class WebHdfs:
    """A client of one cluster; `location` is used in messages, `path` in requests.

    Args:
        address: The cluster; its path does not matter.
        properties: `hdfs.user`, and Hadoop's settings for security, timeouts, failover, and the
            permissions and copies of new files.
    """

    reads_ahead: ClassVar[bool] = True
    """Whether requesting several ranges concurrently makes a reader faster."""

    def __init__(self, address: HdfsAddress, properties: Mapping[str, str]) -> None:
        import pyhdfs

        # pyhdfs logs every standby's response; errors have what matters
        logging.getLogger(pyhdfs.__name__).addHandler(logging.NullHandler())
        hide_secrets(pyhdfs.__name__, "urllib3.connectionpool")
        self.name_nodes = address.name_nodes
        highly_available = len(self.name_nodes) > 1
        self._session = HdfsSession(properties, address)
        self._failed = FailedDataNodes(self._name_node_info)
        umask = HDFS_UMASK.of(properties)
        self._umask = 0o022 if umask is None else umask
        self._replication = HDFS_REPLICATION.of(properties)
        self._block_size = HDFS_BLOCK_SIZE.of(properties)
        tries = HDFS_FAILOVER_ATTEMPTS.of(properties)
        self._client = pyhdfs.HdfsClient(
            list(self.name_nodes),
            randomize_hosts=False,
            user_name=self._session.user,
            timeout=self._session.read_timeout_s,
            max_tries=tries if highly_available else min(tries, 3),
            retry_delay=1.0 if highly_available else 0.5,
            scheme="https" if address.secure else "http",
            requests_session=self._session.requests,
        )

    @property
    def user(self) -> str:
        """The user whose permissions apply."""
        return self._session.effective_user

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._session.close()

    def active_name_node(self) -> str:
        """Return `host:port` of the active name node."""
        client = self._client
        with self._failures("reach", f"{client.scheme}://{','.join(self.name_nodes)}"):
            return str(client.get_active_namenode())

    def metrics(self, name_node: str, bean: str) -> dict[str, Any]:
        """Return one bean of a name node's metrics; empty if there is none."""
        import requests

        origin = f"{self._client.scheme}://{name_node}"
        try:
            with self._failures("reach", f"{origin}/jmx"):
                return self._session.metrics(origin, bean)
        except FileIOError as error:
            cause = error.__cause__
            tls = isinstance(cause, requests.exceptions.SSLError)
            if tls or not isinstance(cause, requests.ConnectionError):
                raise
            raise FileIOError(
                f"Cannot reach {name_node}: {reach(name_node)}",
                hint="Check that the name node runs, and dfs.namenode.http-address.",
            ) from error

    def check_access(self, path: str, location: str, action: str) -> None:
        """Check that the user may access a file or folder in a way such as `rwx`.

        The error names the user and the owner.
        """
        with self._failures("use", location):
            reply = self._call("get", path, "CHECKACCESS", HTTPStatus.OK, {"fsaction": action})
        if reply.content:  # which has no type here
            raise not_hdfs("use", location, self.name_nodes, _shown(reply))

    def status(self, path: str, location: str) -> HdfsStatus:
        """Return the status of a path."""
        with self._failures("access", location):
            return _status(self._client.get_file_status(path))

    def entries(self, path: str, location: str) -> list[HdfsStatus]:
        """Return the entries of a folder sorted by name, or the file itself."""
        with self._failures("list", location):
            found = [_status(each) for each in self._client.list_status(path)]
            names = [each.name for each in found]
            # that of a file is its only entry, without a name
            if "" in names and (len(names) > 1 or found[0].is_folder):
                raise ValueError(f"a folder has the entries {names[:3]}")
        return sorted(found, key=lambda status: status.name)

    def content_summary(self, path: str, location: str) -> dict[str, int]:
        """Return counts, bytes and quotas of a folder, as in Hadoop's `ContentSummary`."""
        with self._failures("access", location):
            found: dict[str, Any] = {"quota": -1, "spaceQuota": -1}
            found.update(self._client.get_content_summary(path))
            return {name: operator.index(found[name]) for name in _SUMMARY}

    def read(self, path: str, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read bytes of a file, fewer than `length` only at its end.

        After a failure another data node is tried.
        """
        wanted: dict[str, Any] = {"offset": offset}
        if length is not None:
            wanted["length"] = length
        failures = 0
        while True:
            try:
                url = self._data_node("get", path, location, "OPEN", wanted)
            except FileIOError as error:
                if _is_beyond_end(error):
                    return b""
                raise
            node = urlsplit(url).netloc
            try:
                found = self._download(url, path, location, offset, length)
            except NoSuchFileError as error:
                problem = self._unknown_there(error, path, location, node)
            except FileIOError as error:
                problem = error
            else:
                self._failed.discard(node)
                if length is None and len(found) > unpacked_bytes():
                    raise FileIOError(
                        f"Cannot read {location}: it is larger than the limit ({UNPACKED})",
                        hint=f"Check what it is, or set {UNPACKED.name} to more.",
                        path=location,
                    )
                return found
            if failures >= _NODE_TRIES:
                raise problem
            failures += 1
            self._failed.add(node)
            time.sleep(0.05 * failures)

    @contextmanager
    def upload(self, path: str, location: str) -> Iterator[Upload]:
        """Write a file that must not exist; it is complete when the block ends without an error."""
        with closing(self._begin_upload(path, location)) as upload:
            try:
                yield upload
            except BaseException:
                upload.abandon()
                raise
            else:
                with self._failures("create", location):
                    upload.finish()
            finally:
                if upload.is_lost:
                    self._failed.add(upload.node)

    def _begin_upload(self, path: str, location: str) -> HdfsUpload:
        """Connect to a data node, to another one where that fails."""
        wanted: dict[str, Any] = {"overwrite": "false", **self._modes(FILE_MODE)}
        if self._replication is not None:
            wanted["replication"] = self._replication
        if self._block_size is not None:
            wanted["blocksize"] = self._block_size
        failed: set[str] = set()
        while True:
            url = self._data_node("put", path, location, "CREATE", wanted)
            try:
                return self._session.upload(url, location)
            except HdfsDataLostError:
                node = urlsplit(url).netloc
                if node in failed or len(failed) >= _NODE_TRIES:
                    raise
                failed.add(node)
                self._failed.add(node)

    def _modes(self, unmasked: int) -> dict[str, str]:
        """Return the permissions of something new; where a folder has default ACLs, those mask."""
        return {
            "permission": f"{unmasked & ~self._umask:03o}",
            "unmaskedpermission": f"{unmasked:03o}",
        }

    def _data_node(
        self, method: str, path: str, location: str, operation: str, wanted: Mapping[str, Any]
    ) -> str:
        """Return the URL of a data node to which the name node sends, other than failed ones."""
        verb = "read" if operation == "OPEN" else "create"

        def redirected(**more: str) -> str:
            with self._failures(verb, location):
                asked = {**wanted, **more}
                reply = self._call(method, path, operation, HTTPStatus.TEMPORARY_REDIRECT, asked)
                return _location_of(path, reply, location)

        if failed := self._failed.addresses():
            try:
                return redirected(excludedatanodes=",".join(failed))
            except HdfsAnswerLostError:
                raise
            except FileIOError:
                pass  # all that have the file, or room for it, may have failed: any of them then
        return redirected()

    def _name_node_info(self) -> dict[str, Any]:
        with suppress(FileIOError):
            return self.metrics(self._client.hosts[0], "NameNodeInfo")
        return {}

    def rename(self, source: str, target: str, file_id: int, location: str) -> None:
        """Rename a file into an existing folder without overwriting.

        The inode `file_id` tells whether the call succeeded. FileStateUnknownError is raised if the
        rename may have happened or may still happen.
        """
        try:
            self._rename(source, target, file_id, location)
        except IcecombError as error:
            if self._is_done_after(error, target, file_id, location):
                return
            if isinstance(error, HdfsAnswerLostError):
                raise state_unknown(location, error) from error
            raise

    def publish(
        self,
        draft: str,
        target: str,
        file_id: int,
        location: str,
        *,
        replace: bool = False,
    ) -> None:
        """Rename a file or folder from a name nobody else knows to its final name.

        The target is looked at even if the response is right: it may be that of another rename. The
        inode `file_id` tells whether the call succeeded.

        After any error except `FileStateUnknownError` it has not been renamed and never will be.
        """
        lost_before = self._session.lost_answers
        try:
            self._rename(draft, target, file_id, location, replace=replace)
        except IcecombError as error:
            is_refused = (
                self._session.lost_answers == lost_before
                and not isinstance(error, HdfsAnswerLostError)
                and "SafeModeException" in error.message
            )
            withdrawn = None
            with suppress(IcecombError):
                # a delayed rename request then finds no source
                withdrawn = self.delete(draft, location)
            if not withdrawn:
                if self._is_done_after(error, target, file_id, location):
                    return
                # in safe mode the name node refuses both, and has no request left to carry out
                if withdrawn is None and not is_refused:
                    raise state_unknown(location, error) from error
            raise

    def _rename(
        self,
        source: str,
        target: str,
        file_id: int,
        location: str,
        *,
        replace: bool = False,
    ) -> None:
        options = "OVERWRITE" if replace else "NONE"
        wanted = {"destination": target, "renameoptions": options}
        with self._failures("rename to", location):
            reply = self._call("put", source, "RENAME", HTTPStatus.OK, wanted)
        # what is replaced here may be replaced by others right away
        looks_right = _is_done(reply) and replace
        if not looks_right and not self._is_at(target, file_id, location):
            raise not_hdfs("rename to", location, self.name_nodes, _shown(reply))

    def delete(self, path: str, location: str, *, recursive: bool = False) -> bool:
        """Delete a file or a folder; return whether there was one."""
        with self._failures("delete", location):
            return bool(self._client.delete(path, recursive="true" if recursive else "false"))

    def trash_root(self, path: str, location: str) -> str:
        """Return the folder of the user's trash for a file: in an encryption zone it is there.

        Name nodes before Hadoop 2.8 do not tell, nor do some that cannot act for the user.
        """
        try:
            with self._failures("find the trash for", location):
                reply = self._call("get", path, "GETTRASHROOT", HTTPStatus.OK, {})
                return str(reply.json()["Path"])
        except HdfsAnswerLostError:
            raise
        except FileIOError:
            return f"/user/{self.user}/.Trash"

    def snapshotted_folder(self, path: str, location: str) -> str | None:
        """Return the folder, at a path or below, that its snapshots keep from deletion.

        Below are found, from Hadoop 3.2, those that belong to the user, or all by a superuser.
        """
        with suppress(FileIOError):
            if self.entries(f"{path}/.snapshot", location):
                return path
        try:
            with self._failures("list the snapshots of", location):
                reply = self._call("get", "/", "GETSNAPSHOTTABLEDIRECTORYLIST", HTTPStatus.OK, {})
                for each in reply.json()["SnapshottableDirectoryList"] or []:
                    folder = posixpath.join(each["parentFullPath"], each["dirStatus"]["pathSuffix"])
                    if each["snapshotNumber"] and folder.startswith(f"{path}/"):
                        return str(folder)
        except HdfsAnswerLostError:
            raise
        except FileIOError:
            pass  # an older name node
        return None

    def make_folder(self, path: str, location: str, *, private: bool = False) -> None:
        """Create a folder and those above it, unless they exist; `private` for nobody else."""
        modes = self._modes(_PRIVATE_MODE if private else _FOLDER_MODE)
        with self._failures("create", location):
            made = self._client.mkdirs(path, **modes)
        if not made:
            raise not_hdfs("create", location, self.name_nodes, "it did not create the folder")

    def _is_done_after(self, error: IcecombError, target: str, file_id: int, location: str) -> bool:
        # roles may have changed, and a node that lags behind would not have the file
        self._session.active.discard()
        try:
            return self._is_at(target, file_id, location)
        except IcecombError:
            raise state_unknown(location, error) from error

    def _is_at(self, path: str, file_id: int, location: str) -> bool:
        for _ in range(_SETTLE_TRIES - 1):
            with suppress(FileIOError):
                return self._holds(path, file_id, location)
        return self._holds(path, file_id, location)

    def _holds(self, path: str, file_id: int, location: str) -> bool:
        try:
            return self.status(path, location).file_id == file_id
        except NoSuchFileError:
            return False

    def _unknown_there(
        self, error: NoSuchFileError, path: str, location: str, asked: str
    ) -> FileIOError:
        """Return the error for a data node that does not find a file known to the name node.

        The data node may have asked a name node that lags behind. NoSuchFileError is raised if the
        active name node does not have the file either.
        """
        self.status(path, location)
        problem = FileIOError(
            f"Cannot read {location}: {asked} does not know it, the active name node does",
            hint="It may ask an observer: see dfs.client.failover.proxy.provider there.",
            path=location,
        )
        problem.__cause__ = error
        return problem

    def _download(
        self, url: str, path: str, location: str, offset: int, length: int | None
    ) -> bytes:
        """Read bytes from a data node; see `read`.

        A response without a stated length may be truncated, so it is compared with the file's.
        """
        try:
            with self._failures("read", location):
                most = unpacked_bytes() if length is None else length
                content, is_framed = self._session.download(url, most)
        except FileIOError as error:
            if _is_beyond_end(error):
                return b""
            raise
        found = len(content)
        if length is None and found > most:
            return content
        if found == length or (is_framed and (length is None or found < length)):
            return content
        rest = max(self.status(path, location).size - offset, 0)
        expected = rest if length is None else min(rest, length)
        if found != expected:
            raise HdfsAnswerLostError(
                f"Cannot read {location}: {found} bytes arrived instead of {expected}",
                hint="A proxy between this machine and the cluster truncates responses: try again.",
                path=location,
            )
        return content

    def _call(
        self,
        method: str,
        path: str,
        operation: str,
        expected: HTTPStatus,
        wanted: Mapping[str, Any],
    ) -> requests.Response:
        # pyhdfs has no public call that leaves the second step to the caller, nor one that
        # accepts the empty response of RENAME with options
        send: Callable[..., requests.Response] = getattr(self._client, f"_{method}")
        return send(path, operation, expected, **wanted)

    @contextmanager
    def _failures(self, verb: str, location: str) -> Iterator[None]:
        import pyhdfs
        import requests
        import urllib3

        try:
            yield
        except IcecombError:
            raise
        # pyhdfs's exceptions contain what was answered, which may repeat the URL with the token
        except pyhdfs.HdfsHttpException as error:
            raise _translated(verb, location, error) from None
        except pyhdfs.HdfsNoServerException as error:
            raise unreachable(verb, location, self.name_nodes, str(error)) from None
        except pyhdfs.HdfsException as error:
            raise not_hdfs(verb, location, self.name_nodes, _one_line(error)) from None
        except Exception as error:
            if is_interrupt(error):
                raise
            lost = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
            odd = (ValueError, requests.exceptions.ContentDecodingError)
            if isinstance(error, odd) or not isinstance(error, lost):
                raise not_hdfs(verb, location, self.name_nodes, _one_line(error)) from error
            raise HdfsAnswerLostError(
                f"Cannot {verb} {location}: {_one_line(error)}",
                hint="The data node may be down, or its name unknown here "
                "(dfs.client.use.datanode.hostname).",
                path=location,
            ) from error


def _translated(verb: str, location: str, error: pyhdfs.HdfsHttpException) -> IcecombError:
    name, message = error.exception, error.message
    if isinstance(message, str):
        message = message.removeprefix(f"{name} - ")
        # a data node wraps the name node's exception; those merely mentioned did not occur
        if name in {"RemoteException", "IOException"} and (inner := _WRAPPED.match(message)):
            name = inner["name"]
    return failure(verb, location, name, message)


def _status(found: pyhdfs.FileStatus) -> HdfsStatus:
    """Return a status.

    ValueError, TypeError, AttributeError or KeyError is raised if it is not what HDFS says of a
    file.
    """
    name = found.pathSuffix
    if not isinstance(name, str) or "/" in name or name in {".", ".."}:
        raise ValueError(f"a file is called {name!r}")
    if found.length < 0:
        raise ValueError(f"a file has {found.length!r} bytes")
    return HdfsStatus(
        name,
        found.type == "DIRECTORY",
        operator.index(found.length),
        operator.index(found.modificationTime),
        int(str(found["fileId"])),
    )


def _is_done(reply: requests.Response) -> bool:
    """Return whether a response is the empty one of a name node: bytes of length zero."""
    return content_type(reply) == BYTES and not reply.content


def _shown(reply: requests.Response) -> str:
    text = without_secrets(reply.content.decode(errors="replace").strip())
    return f"{one_line(content_type(reply)) or 'no type'}: {text[:100]!r}"


def _is_beyond_end(error: FileIOError) -> bool:
    """Return whether the error says that the range begins at or after the file's end."""
    return "out of the range" in error.message


def _one_line(error: BaseException) -> str:
    return one_line(error, 200) or type(error).__name__


def _location_of(path: str, reply: requests.Response, location: str) -> str:
    """Return the data node's URL for a file, with the file's own name in it.

    Java's ``URI.toASCIIString``, by which the name node writes the URL, composes letters (NFC): of
    a name with decomposed letters it would be the URL of another file.
    """
    url = str(reply.headers["location"])
    told_to = urlsplit(url)
    # the port is checked where it is looked at
    is_address = told_to.scheme in {"http", "https"} and told_to.hostname and told_to.port != 0
    if not is_address or "@" in told_to.netloc:
        raise ValueError(f"it leads to {without_secrets(url)[:100]!r}")
    composed = unicodedata.normalize("NFC", path)
    if composed == path:
        return url
    told = unquote(told_to.path)
    if told.endswith(path):
        return url
    if not told.endswith(composed):
        raise FileIOError(
            f"{location} has letters with separate marks, for which WebHDFS would lead to another "
            f"file ({without_secrets(url)})",
            hint="Set hdfs.engine=native, or rename it to composed letters (Unicode's NFC).",
            path=location,
        )
    return told_to._replace(path=quote(told[: -len(composed)] + path)).geturl()


class FailedDataNodes:
    """The data nodes of one cluster that failed in the last ten minutes.

    A name node sends clients to a dead data node until it has missed its heartbeats for ten
    minutes; of those named here it is asked for others. A redirection has a data node's address of
    the HTTP interface, while `excludedatanodes` is compared with that of data transfers.

    The function `ask` returns the name node's bean `NameNodeInfo`; empty if there is none.
    """

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self._ask = ask
        self._failed: dict[str, tuple[str, float]] = {}

    def add(self, node: str) -> None:
        """Note that a data node failed, given as `host:port` of its HTTP interface."""
        known, _ = self._failed.get(node, ("", 0.0))
        address = known or transfer_address(node, self._ask())
        self._failed[node] = (address, time.monotonic() + _AVOIDED_S)

    def discard(self, node: str) -> None:
        """Note that a data node works."""
        self._failed.pop(node, None)

    def addresses(self) -> list[str]:
        """Return the addresses to exclude, as far as the name node knows them."""
        now = time.monotonic()
        return [where for where, until in [*self._failed.values()] if where and until > now]


def transfer_address(node: str, name_node_info: dict[str, Any]) -> str:
    """Return `address:port` of a data node's transfers; empty if the name node knows none.

    Args:
        node: `host:port` of its HTTP interface.
        name_node_info: The bean `NameNodeInfo` of a name node or router.
    """
    try:
        nodes = bounded_json(name_node_info.get("LiveNodes", "{}"))
        host, _, port = node.rpartition(":")
        for name, found in nodes.items():
            webs = {found.get("infoAddr", ""), found.get("infoSecureAddr", "")}
            if node in webs or (
                name.rpartition(":")[0] == host and port in {web.rpartition(":")[2] for web in webs}
            ):
                return str(found["xferaddr"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # a name node of another version says it otherwise
    return ""
