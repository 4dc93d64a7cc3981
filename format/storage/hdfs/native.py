"""The engine `hdfs.engine=native`: data over Hadoop's own protocols, the rest over WebHDFS.

hdfs-native transfers the bytes of files from and to the data nodes. Publishing a file stays with
WebHDFS: hdfs-native does not expose a file's inode, without which nobody can tell whether a rename
whose response was lost had succeeded. Without any data node, hdfs-native retries for minutes; a
silent node it awaits without end, so each of its calls has the timeouts of WebHDFS here. With
Kerberos it believes a name node that asks for no login, and asks for a ticket of whichever service
one names; a few bytes of a node can end the process. This is the only module that uses it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, TimeoutError as StillRunning
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icecomb.format.errors import (
    ConfigurationError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
)
from icecomb.format.optional_library import optional_library
from icecomb.format.process import user_name
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.hdfs.address import HdfsAddress
from icecomb.format.storage.hdfs.failure import TRANSIENT, HdfsDataLostError, failure
from icecomb.format.storage.hdfs.web_hdfs import FILE_MODE, WebHdfs
from icecomb.format.storage.output_stream import Upload
from icecomb.format.storage.storage_property import (
    HADOOP_AUTHENTICATION,
    HADOOP_FALLBACK,
    HDFS_KEYTAB,
    HDFS_PRINCIPAL,
    HDFS_READ_TIMEOUT,
    HDFS_TOKEN,
)

if TYPE_CHECKING:
    import hdfs_native

_T = TypeVar("_T")
_SLOWEST: Final = 1 << 20
"""Bytes a second of the slowest transfer that is waited for."""
_SETTINGS: Final = ("fs.", "dfs.", "hadoop.", "ipc.")
_process: int | None = None
"""The process that opened the first client: in its forks hdfs-native waits for ever."""
_REMOTE: Final = re.compile(
    r'RPCError\("(?:[\w.]+\.)?(?P<name>[\w$]+)", "(?P<text>(?:[^"\\]|\\.)*)'
)


class _TimeLimit:
    """A time limit of hdfs-native's calls, which have none where a node accepts and is silent.

    Args:
        seconds: The most seconds for an answer; bytes that are transferred have more.
        nodes: The addresses of the name nodes, for messages.
    """

    def __init__(self, seconds: float, nodes: str) -> None:
        self._seconds = seconds
        self._nodes = nodes

    def within(self, verb: str, location: str, call: Callable[[], _T], size: int = 0) -> _T:
        """Return the result of a call that transfers `size` bytes; its thread may go on."""
        done: Future[_T] = Future()
        work = partial(copy_context().run, _settle, done, call)
        Thread(target=work, name="hdfs-native", daemon=True).start()
        seconds = self._seconds + size / _SLOWEST
        try:
            return done.result(seconds)
        except StillRunning:
            if done.done():
                raise
        raise FileIOError(
            f"Cannot {verb} {location}: there was no answer within {seconds:g} s through "
            f"hdfs-native, which asks {self._nodes} and its data nodes",
            hint=f"Check that port, or raise {HDFS_READ_TIMEOUT}; hdfs.engine=webhdfs does without "
            "it.",
            path=location,
        )


def _settle(done: Future[_T], call: Callable[[], _T]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised by who waits
        done.set_exception(error)


def works_here() -> bool:
    """Return whether hdfs-native works in this process: not in a fork of one that has used it."""
    return _process in {None, os.getpid()}


class NativeHdfs(WebHdfs):
    """A `WebHdfs` that transfers data through hdfs-native.

    Args:
        address: The cluster, with the nameservice or the name node's RPC address.
        properties: Settings of `WebHdfs`, and those of Hadoop that hdfs-native reads.
    """

    reads_ahead = False

    def __init__(self, address: HdfsAddress, properties: Mapping[str, str]) -> None:
        global _process  # noqa: PLW0603 - the library's threads are the process's, too
        super().__init__(address, properties)
        cluster = address.cluster
        library = optional_library(
            "hdfs_native", "hdfs.engine=native needs hdfs-native", "icecomb[hdfs-native]"
        )
        _check_user(self.user, properties)
        self.active_name_node()  # hdfs-native would wait long for an unreachable cluster
        _process = os.getpid()
        # hdfs-native knows nameservices of several name nodes only
        single = properties.get(f"dfs.namenode.rpc-address.{cluster.removeprefix('hdfs://')}")
        self._limit = _TimeLimit(
            self._session.connect_timeout_s + self._session.read_timeout_s,
            single or ", ".join(_rpc_addresses(cluster, properties)) or cluster,
        )
        with _failures("reach", cluster):
            self._native = library.Client(
                f"hdfs://{single}" if single else cluster,
                {key: value for key, value in properties.items() if key.startswith(_SETTINGS)},
                kerberos_principal=HDFS_PRINCIPAL.of(properties),
                kerberos_keytab=HDFS_KEYTAB.of(properties),
            )

    def read(self, path: str, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read bytes like `WebHdfs.read`; hdfs-native itself tries other data nodes."""
        try:
            with _failures("read", location):
                source = self._limit.within("read", location, partial(self._native.read, path))
                rest = max(len(source) - offset, 0)
                wanted = rest if length is None else min(length, rest)
                if not wanted:
                    return b""
                transfer: Callable[[], bytes] = partial(source.read_range, offset, wanted)
                return self._limit.within("read", location, transfer, wanted)
        except NoSuchFileError as error:
            # hdfs-native selects name nodes itself
            raise self._unknown_there(error, path, location, "hdfs-native") from error

    @contextmanager
    def upload(self, path: str, location: str) -> Iterator[Upload]:
        """Write a file like `WebHdfs.upload`, which does it where a folder has default ACLs.

        Those mask permissions instead of the umask, and hdfs-native sends none without it.
        """
        from hdfs_native import WriteOptions

        if self._has_default_acl(posixpath.dirname(path), location):
            with super().upload(path, location) as upload:
                yield upload
            return
        options = WriteOptions(
            block_size=self._block_size,
            replication=self._replication,
            permission=FILE_MODE & ~self._umask,
            overwrite=False,
            create_parent=True,
        )
        with _failures("create", location):
            make = partial(self._native.create, path, options)
            writer = self._limit.within("create", location, make)
        upload = NativeUpload(writer, location, self._limit)
        try:
            yield upload
        except BaseException:
            upload.abandon()
            raise
        upload.finish()

    def _has_default_acl(self, folder: str, location: str) -> bool:
        """Return whether what is new in a folder, or in the one above that exists, gets an ACL."""
        try:
            with _failures("look at the folder of", location):
                ask = partial(self._native.get_acl_status, folder)
                found = self._limit.within("look at the folder of", location, ask)
        except NoSuchFileError:
            return folder != "/" and self._has_default_acl(posixpath.dirname(folder), location)
        except FileIOError:
            return False  # the cluster has no ACLs, or creation will say what is wrong
        return any(entry.scope == "default" for entry in found.entries)


class NativeUpload(Upload):
    """An `Upload` through hdfs-native."""

    def __init__(self, writer: hdfs_native.FileWriter, location: str, limit: _TimeLimit) -> None:
        super().__init__(location)
        self._writer = writer
        self._limit = limit

    def write(self, data: Any, /) -> int:
        """Send a chunk; HdfsDataLostError if no data node accepts it."""
        piece = memoryview(data).cast("B")
        if len(piece):
            with _failures("write", self._location, lost=True):
                # other buffers than bytes take ten times as long
                sent = data if isinstance(data, bytes) else bytes(piece)
                send = partial(self._writer.write, sent)
                self._limit.within("write", self._location, send, len(piece))
            self.written += len(piece)
        return len(piece)

    def finish(self) -> None:
        """End the file, and wait until it is stored; HdfsDataLostError if it was not."""
        with _failures("write", self._location, lost=True):
            self._limit.within("write", self._location, self._writer.close)

    def abandon(self) -> None:
        """End an unwanted file, so that it can be deleted."""
        with suppress(IcecombError):
            self.finish()


def _rpc_addresses(cluster: str, properties: Mapping[str, str]) -> list[str]:
    """Return the RPC addresses of the name nodes of a nameservice."""
    prefix = f"dfs.namenode.rpc-address.{cluster.removeprefix('hdfs://')}."
    return [value for key, value in properties.items() if key.startswith(prefix)]


def _check_user(asked: str, properties: Mapping[str, str]) -> None:
    if HDFS_TOKEN.of(properties):
        raise ConfigurationError(
            "hdfs.delegation-token does not go with hdfs.engine=native",
            hint="hdfs-native reads tokens from the file that HADOOP_TOKEN_FILE_LOCATION names.",
        )
    if HADOOP_AUTHENTICATION.of(properties) == "kerberos":
        if not HADOOP_FALLBACK.of(properties):
            raise ConfigurationError(
                "hdfs.engine=native does not go with Kerberos: hdfs-native asks for no proof of "
                "who a name node is",
                hint=f"Leave hdfs.engine at webhdfs; {HADOOP_FALLBACK}=true allows it where nobody "
                "else can answer in the name node's place.",
            )
        return
    own = os.environ.get("HADOOP_PROXY_USER") or user_name()
    if asked != own:
        raise ConfigurationError(
            f"The properties name the user {asked}, but hdfs-native would act as {own}",
            hint="It only reads the environment: set HADOOP_USER_NAME (or HADOOP_PROXY_USER) to "
            f"{asked}, or leave hdfs.engine at webhdfs.",
        )


@contextmanager
def _failures(verb: str, location: str, *, lost: bool = False) -> Iterator[None]:
    """Convert exceptions of hdfs-native to icecomb's errors.

    If `lost`, an unexplained error means that data was lost in transit.
    """
    try:
        yield
    except IcecombError:
        raise
    except FileExistsError:
        raise exists_already(location) from None
    except FileNotFoundError:
        raise is_missing(location) from None
    except BaseException as error:
        # a panic of hdfs-native is no `Exception`
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        remote = _REMOTE.search(str(error))
        if remote is not None and not (lost and remote["name"] in TRANSIENT):
            text = remote["text"].replace('\\"', '"').split("\\n")[0]
            raise failure(verb, location, remote["name"], text) from error
        kind = HdfsDataLostError if lost else FileIOError
        said = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise kind(
            f"Cannot {verb} {location}: {said}",
            hint="The data node may be down, or its name unknown here "
            "(dfs.client.use.datanode.hostname).",
            path=location,
        ) from error
