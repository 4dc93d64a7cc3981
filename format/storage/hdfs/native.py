"""The engine `hdfs.engine=native`: data by Hadoop's own protocols, the rest by WebHDFS.

hdfs-native carries the bytes of files, from and to the data nodes. What makes a file visible stays
with WebHDFS: hdfs-native does not tell a file's inode, without which nobody can say whether a
rename whose answer was lost had been done. Where no data node is left, hdfs-native tries for
minutes before it gives up, with time-outs of its own. This is the only module that knows it.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import (
    ConfigurationError,
    FileIOError,
    FileMissingError,
    IcecombError,
)
from icecomb.format.optional_library import optional_library
from icecomb.format.storage.file_system import exists_already, is_missing
from icecomb.format.storage.hdfs.failure import TRANSIENT, HdfsDataLostError, failure
from icecomb.format.storage.hdfs.web_hdfs import WebHdfs
from icecomb.format.storage.output_stream import Upload
from icecomb.format.storage.storage_property import (
    HADOOP_AUTHENTICATION,
    HDFS_KEYTAB,
    HDFS_PRINCIPAL,
    HDFS_TOKEN,
)

if TYPE_CHECKING:
    import hdfs_native

_SETTINGS: Final = ("fs.", "dfs.", "hadoop.", "ipc.")
_REMOTE: Final = re.compile(
    r'RPCError\("(?:[\w.]+\.)?(?P<name>[\w$]+)", "(?P<text>(?:[^"\\]|\\.)*)'
)


class NativeHdfs(WebHdfs):
    """See `WebHdfs`.

    Args:
        name_nodes: `host:port` of their HTTP interfaces.
        cluster: `hdfs://` with the nameservice or the name node's RPC address.
        secure: Whether to use HTTPS.
        properties: As of `WebHdfs`; and what hdfs-native knows of Hadoop's settings.
        services: As of `WebHdfs`.

    Raises:
        MissingDependencyError: hdfs-native is not installed.
        ConfigurationError: the properties name a user that hdfs-native would not be.
        FileIOError: no name node is active.
    """

    reads_ahead = False

    def __init__(
        self,
        name_nodes: tuple[str, ...],
        cluster: str,
        *,
        secure: bool,
        properties: Mapping[str, str],
        services: Collection[str] = (),
    ) -> None:
        super().__init__(name_nodes, secure=secure, properties=properties, services=services)
        library = optional_library(
            "hdfs_native", "hdfs.engine=native needs hdfs-native", "icecomb[hdfs-native]"
        )
        _check_user(self.user, properties)
        self.active_name_node()  # hdfs-native would wait long for a cluster that is not there
        self._native = library.Client(
            cluster,
            {key: value for key, value in properties.items() if key.startswith(_SETTINGS)},
            kerberos_principal=HDFS_PRINCIPAL.of(properties),
            kerberos_keytab=HDFS_KEYTAB.of(properties),
        )

    def read(self, path: str, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """See `WebHdfs.read`; hdfs-native itself turns to another data node."""
        try:
            with _failures("read", location):
                source = self._native.read(path)
                rest = max(len(source) - offset, 0)
                wanted = rest if length is None else min(length, rest)
                return source.read_range(offset, wanted) if wanted else b""
        except FileMissingError as error:
            # it has its own way to find a name node
            raise self._unknown_there(error, path, location, "hdfs-native") from error

    @contextmanager
    def upload(self, path: str, location: str) -> Iterator[Upload]:
        """See `WebHdfs.upload`."""
        from hdfs_native import WriteOptions

        with _failures("create", location):
            writer = self._native.create(path, WriteOptions(overwrite=False, create_parent=True))
        upload = NativeUpload(writer, location)
        try:
            yield upload
        except BaseException:
            upload.abandon()
            raise
        upload.finish()


class NativeUpload(Upload):
    """See `Upload`.

    Args:
        writer: An open file.
        location: For messages.
    """

    def __init__(self, writer: hdfs_native.FileWriter, location: str) -> None:
        super().__init__(location)
        self._writer = writer

    def write(self, data: Any, /) -> int:
        """Send a piece.

        Raises:
            HdfsDataLostError: no data node takes it.
            FileIOError: the file is refused.
        """
        piece = memoryview(data).cast("B")
        if len(piece):
            with _failures("write", self._location, lost=True):
                # it takes any other buffer ten times as slowly
                self._writer.write(data if isinstance(data, bytes) else bytes(piece))
            self.written += len(piece)
        return len(piece)

    def finish(self) -> None:
        """Say that this was all, and wait until it is stored.

        Raises:
            HdfsDataLostError: it was not.
        """
        with _failures("write", self._location, lost=True):
            self._writer.close()

    def abandon(self) -> None:
        """End a file that is not wanted, so that it can be deleted."""
        with suppress(IcecombError):
            self.finish()


def _check_user(asked: str, properties: Mapping[str, str]) -> None:
    if HDFS_TOKEN.of(properties):
        raise ConfigurationError(
            "hdfs.delegation-token does not go with hdfs.engine=native",
            hint="hdfs-native reads tokens from the file that HADOOP_TOKEN_FILE_LOCATION names",
        )
    if HADOOP_AUTHENTICATION.of(properties) == "kerberos":
        return
    environment = os.environ
    own = (
        environment.get("HADOOP_PROXY_USER")
        or environment.get("HADOOP_USER_NAME")
        or getpass.getuser()
    )
    if asked != own:
        raise ConfigurationError(
            f"The properties say that {asked} asks, but hdfs-native asks as {own}",
            hint="it knows the environment only: set HADOOP_USER_NAME (or HADOOP_PROXY_USER) to "
            f"{asked}, or leave hdfs.engine at webhdfs",
        )


@contextmanager
def _failures(verb: str, location: str, *, lost: bool = False) -> Iterator[None]:
    """What hdfs-native raises, as our errors.

    Args:
        verb: What was tried.
        location: On what.
        lost: Whether what it does not explain means that data were lost on the way.
    """
    try:
        yield
    except IcecombError:
        raise
    except FileExistsError:
        raise exists_already(location) from None
    except FileNotFoundError:
        raise is_missing(location) from None
    except Exception as error:
        remote = _REMOTE.search(str(error))
        if remote is not None and not (lost and remote["name"] in TRANSIENT):
            text = remote["text"].replace('\\"', '"').split("\\n")[0]
            raise failure(verb, location, remote["name"], text) from error
        kind = HdfsDataLostError if lost else FileIOError
        said = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise kind(
            f"Cannot {verb} {location}: {said}",
            hint="the data node may be down, or its name unknown here "
            "(dfs.client.use.datanode.hostname)",
            path=location,
        ) from error
