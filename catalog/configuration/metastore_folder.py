"""The traces of an embedded metastore: the folder ``.metastore`` of its warehouse, and its token.

Where another user could exchange that folder, it is below the user's data folder (see `warehouse`),
and one without contents stands for it in the warehouse, so that no second user serves that, too.

The folder, accessible only to its owner, has the Derby database, the configuration, the log, the
lock by which one process starts a server while others wait, and two small files:

* ``server.json`` (pid, port, name), which the server itself writes once it answers and removes when
  it ends. The server also returns the name over Thrift, so a stale file, a reused pid or a port
  taken by another program is never mistaken for the server.
* ``token``, a token file in Hadoop's format, new at every start. The server requires the token,
  because other users of the machine can reach its port, too.

A client that only has an address finds the folder by the port, below the user's own state
folder, if others could not exchange that. Ports of servers that ended stay there: other users can
listen on them.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icecomb.catalog.configuration.warehouse import (
    local_folder,
    warehouse_location,
    warehouse_text,
)
from icecomb.format.errors import ConfigurationError, FileAlreadyExistsError, MetastoreError
from icecomb.format.input_limit import bounded_json
from icecomb.format.private_path import make_private, open_part
from icecomb.format.process import is_alive, is_own
from icecomb.format.storage.delegation_token import DelegationToken, find_token, token_file
from icecomb.format.storage.local import LocalFileSystem

KIND: Final = "HIVE_DELEGATION_TOKEN"
SIGNATURE: Final = "icecomb"
"""``hive.metastore.token.signature``, which distinguishes the token from those of a cluster."""
_FOLDER: Final = ".metastore"
_OPEN: Final = stat.S_IWGRP | stat.S_IWOTH
_READ: Final = re.compile(r'[:;,"\\\x00-\x1f\x7f]|\$\{')
"""Characters that class paths, lists, options of Java, its settings or Derby's addresses read."""
_STATE: Final = "server.json"
_SECRET_BYTES: Final = 32
_LEAST_NAME: Final = 8
REMEMBERED: Final = 100
"""Records of ports, the newest, that are kept although their servers ended."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningMetastore:
    """A running embedded metastore.

    Attributes:
        warehouse: The folder whose tables it knows, or the one that represents a warehouse (see
            `warehouse`).
        port: The port on 127.0.0.1.
        name: The name that it returns over Thrift; new at every start.
    """

    warehouse: Path
    pid: int
    port: int
    name: str

    @property
    def uri(self) -> str:
        """The address, as ``hive.metastore.uris`` takes it."""
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def location(self) -> str:
        """The root of new databases, with its scheme."""
        return warehouse_location(self.warehouse)

    @property
    def log(self) -> Path:
        """The log file."""
        return self.warehouse / _FOLDER / "metastore.log"

    @property
    def token_file(self) -> Path:
        """A client's token file, as ``hadoop.token.files`` takes it; only its owner can read it."""
        return self.warehouse / _FOLDER / "token"

    @property
    def secret(self) -> str:
        """The secret of a client without SASL, to be sent as a group in ``set_ugi``.

        PyIceberg's property ``ugi`` then is ``"me:<secret>"``.
        """
        token = find_token(str(self.token_file), KIND, SIGNATURE)
        return token.password.decode() if token else ""

    @property
    def client_settings(self) -> dict[str, str]:
        """Settings to authenticate Hive's clients: properties of catalogs, and of Hadoop."""
        return {
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.token.signature": SIGNATURE,
            "hadoop.token.files": str(self.token_file),
        }

    def to_json(self) -> dict[str, object]:
        """Return the facts for ``--output json`` and logs."""
        return {
            "warehouse": warehouse_text(self.warehouse),
            "uri": self.uri,
            "token": str(self.token_file),
            "pid": self.pid,
            "log": str(self.log),
        }


class MetastoreFolder:
    """The folder ``.metastore`` of a folder that represents a warehouse (see `warehouse`).

    Attributes:
        location: The root of new databases, with its scheme.
        text: The warehouse for messages.
    """

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        self.home = warehouse / _FOLDER
        self.state = self.home / _STATE
        self.log = self.home / "metastore.log"
        self.derby = self.home / "derby"
        self.token = self.home / "token"
        self.location = warehouse_location(warehouse)
        self.text = warehouse_text(warehouse)
        local = local_folder(warehouse)
        self._sign = None if local in {None, warehouse} else local / _FOLDER
        self._check_name()
        self._check_owner()

    def _check_name(self) -> None:
        """Check that Java reads nothing but a folder in the path, which others may have named."""
        if found := _READ.search(str(self.home)):
            raise ConfigurationError(
                f"The metastore of {self.text} is not used: Java would read {found[0]!r} in the "
                f"path of its files, {self.home}, as a sign",
                hint="Rename the folder, or name another warehouse: without colons, semicolons, "
                "commas, quotes, backslashes, line ends and ${.",
                path=self.text,
            )

    def make(self) -> None:
        """Create the folder, for its owner only."""
        try:
            self._check_part(make_private(self.home))
            self._check_owner()
            self._check_sign()
            self.home.chmod(0o700)
            with tempfile.TemporaryFile(dir=self.home) as probe:
                probe.write(bytes(1 << 16))
                probe.flush()
        except OSError as error:
            raise ConfigurationError(
                f"The warehouse {self.text} cannot be used: {error.strerror or error}",
                hint="Name a local folder with free space that you may write to (warehouse=...)",
                path=self.text,
            ) from error

    def sign(self) -> None:
        """Show in a warehouse that others could exchange that it has a metastore, and whose."""
        if self._sign is not None:
            with contextlib.suppress(FileAlreadyExistsError):
                LocalFileSystem().create_folder(str(self._sign))

    def _check_sign(self) -> None:
        """Refuse to begin with an empty database where there was another."""
        if self._sign is None or self.derby.is_dir() or not self._sign.exists():
            return
        raise ConfigurationError(
            f"The database of the metastore of {self.text} is not in {self.home}, where it has to "
            f"be as others could exchange {self._sign}",
            hint=f"If {self._sign} has a folder derby, end the metastore and move that folder to "
            f"{self.home}, or take others' right to write away (chmod go-w). If the database is "
            f"gone, remove {self._sign}.",
            path=self.text,
        )

    @contextlib.contextmanager
    def lock(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock for starting or stopping a server; others wait."""
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.home / "start.lock", timeout=timeout_s):
                yield
        except Timeout:
            raise MetastoreError(
                f"Another process is still starting the metastore of {self.text}",
                hint=f"Check {self.log}",
            ) from None

    def announced(self) -> RunningMetastore | None:
        """Return the contents of the state file, which may be outdated."""
        return _announced(self.state)

    def write_token(self) -> None:
        """Write a new token, which the next server requires."""
        secret = secrets.token_hex(_SECRET_BYTES).encode()
        token = DelegationToken(_identifier(_user_name(os.geteuid())), secret, SIGNATURE)
        draft = self.home / f"token.{secrets.token_hex(6)}"
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_bytes(token_file(token, KIND))
        draft.replace(self.token)

    def _check_owner(self) -> None:
        """Check that no other user can exchange the folder for one of his own, root aside."""
        for owner in map(_owner, (self.home, self._sign or self.home)):
            if owner not in {None, os.geteuid()}:
                raise ConfigurationError(
                    f"The metastore of {self.text} belongs to the user {_user_name(owner)}",
                    hint="Only its owner can connect: name a warehouse of your own, or use a "
                    "metastore that serves several users (uri=thrift://...)",
                    path=self.text,
                )
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            home = self.home.lstat()
            is_open = not stat.S_ISDIR(home.st_mode) or home.st_mode & _OPEN
            self._check_part(self.home if is_open else open_part(self.home))

    def _check_part(self, part: Path | None) -> None:
        if part is not None:
            raise ConfigurationError(
                f"{part} is a link, or others may write to it: the files of {self.home} are not "
                "believed",
                hint="Make it a folder of yours alone (chmod 700), name another warehouse, or "
                "point XDG_DATA_HOME at a folder of yours.",
                path=self.text,
            )


def _owner(home: Path) -> int | None:
    """Return the owner of a metastore's folder, another user if what is above is his, or None."""
    with contextlib.suppress(OSError):
        above = home.parent.stat()
        return home.lstat().st_uid if is_own(above) else above.st_uid
    return None


def publish(server: RunningMetastore) -> None:
    """Register a server's folder by its port, so that this user's clients find it."""
    # Without it clients need the folder: an unwritable home must not prevent serving.
    with contextlib.suppress(OSError):
        folder = _ports()
        if (part := make_private(folder)) is not None:
            _warn(part)
            return
        link = folder / str(server.port)
        if _at(link) == server:
            return
        draft = folder / secrets.token_hex(6)
        draft.symlink_to(server.warehouse, target_is_directory=True)
        draft.replace(link)
        ended = []
        found = [each for each in folder.iterdir() if each.name.isdigit() and each.is_symlink()]
        for each in found:
            if _at(each) is None:
                ended.append(each)
            else:  # its age counts from its end
                os.utime(each, follow_symlinks=False)
        for old in sorted(ended, key=lambda each: each.lstat().st_mtime_ns)[:-REMEMBERED]:
            old.unlink(missing_ok=True)


def find(host: str, port: int) -> RunningMetastore | None:
    """Return this user's embedded metastore at an address; None if none is running."""
    if host not in {"127.0.0.1", "localhost"}:
        return None
    folder = _ports()
    return None if _is_open(folder) else _at(folder / str(port))


def record(port: int) -> Path | None:
    """Return the record of the last embedded metastore of this user at a port, ended or not.

    Where others could have exchanged the records, each counts: it only keeps a client away.
    """
    folder = _ports()
    links = [each / str(port) for each in (_port_folders() if _is_open(folder) else [folder])]
    return next((link for link in links if link.is_symlink()), None)


def announces(token: str, port: int) -> bool:
    """Return whether a live process of this user announced beside a token file that it serves."""
    return _is_at(port, _announced(Path(token).with_name(_STATE)))


def _at(link: Path) -> RunningMetastore | None:
    try:
        server = MetastoreFolder(Path(os.readlink(link))).announced()  # noqa: PTH115 - its own text
    except (OSError, ConfigurationError):
        return None
    return server if _is_at(int(link.name), server) else None


def _is_at(port: int, server: RunningMetastore | None) -> bool:
    return server is not None and server.port == port and is_alive(server.pid)


def _announced(state: Path) -> RunningMetastore | None:
    try:
        found = bounded_json(state.read_bytes())
        # A server of the first version, which admits everybody, stores its name as a token.
        name = found["name"] if "name" in found else found["token"]
        pid, port = int(found["pid"]), int(found["port"])
        if len(str(name)) < _LEAST_NAME:  # it is looked for in the command of the process
            return None
        return RunningMetastore(state.parent.parent, pid, port, str(name))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _ports() -> Path:
    """Return this user's folder of records by port, beside that of others who have the same state.

    What is in it is believed if nobody else could exchange it; see `open_part`.
    """
    folder, own = _port_folders()
    return own if _is_open(folder) else folder


def _port_folders() -> tuple[Path, Path]:
    from platformdirs import user_state_path

    state = Path(os.path.normpath(user_state_path("icecomb").absolute()))
    own = state.with_name(f"icecomb-{os.geteuid()}")
    return state / "metastores", own / "metastores"


def _is_open(folder: Path) -> bool:
    try:
        return open_part(folder) is not None
    except OSError:
        return True


@functools.cache
def _warn(part: Path) -> None:
    text = "clients find metastores by the warehouse only, not by the address: %s is open to others"
    _LOG.warning(text, part)


def _identifier(owner: str) -> bytes:
    """Encode Hive's ``DelegationTokenIdentifier``: version, owner, renewer, real user, no dates."""
    name = owner.encode()[:100]
    return bytes([0, len(name)]) + name + bytes(6)


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
